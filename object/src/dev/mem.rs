//! The memory devices, major 1: null, zero, full, random, urandom (null(4), random(4)).

use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;

use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_port::{Backing, Machine};

use crate::caller::Caller;
use crate::file::{ENDLESS_PART, Events, File, OpenFile};
use crate::vfs::{Device, FileKind, Path, Vfs};

/// Which device; the value is the minor number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Memory {
    Null = 3,
    Zero = 5,
    Full = 7,
    Random = 8,
    Urandom = 9,
}

impl Memory {
    /// All of them, with their names in /dev.
    pub const ALL: [(Memory, &'static str); 5] = [
        (Memory::Null, "null"),
        (Memory::Zero, "zero"),
        (Memory::Full, "full"),
        (Memory::Random, "random"),
        (Memory::Urandom, "urandom"),
    ];
}

/// Major number of the memory devices.
pub const MAJOR: u32 = 1;

/// Enters the drivers.
pub fn register(vfs: &Vfs) {
    for (kind, _) in Memory::ALL {
        let driver = Arc::new(MemoryDevice { kind, machine: vfs.machine });
        vfs.devices.register(FileKind::CharDevice, MAJOR, Some(kind as u32), driver);
    }
}

#[derive(Clone, Copy)]
struct MemoryDevice {
    kind: Memory,
    machine: &'static dyn Machine,
}

impl Device for MemoryDevice {
    fn open(&self, _caller: &dyn Caller, _path: &Path, _minor: u32, _flags: u32) -> Result<Arc<dyn File>> {
        Ok(Arc::new(*self))
    }
}

impl File for MemoryDevice {
    fn splices(&self, write: bool) -> bool {
        match self.kind {
            Memory::Null => write,
            Memory::Full => !write,
            _ => true,
        }
    }

    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut ReadBuf<'_>, _offset: u64) -> Result<usize> {
        match self.kind {
            Memory::Null => Ok(0),
            Memory::Zero | Memory::Full => buf.put_zeros(buf.left().min(ENDLESS_PART)),
            Memory::Random | Memory::Urandom => {
                let want = buf.left().min(ENDLESS_PART);
                let mut done = 0;
                while done < want {
                    let mut bytes = [0; 256];
                    let len = (want - done).min(bytes.len());
                    self.machine.random(&mut bytes[..len]);
                    match buf.put(&bytes[..len]) {
                        Ok(moved) => done += moved,
                        Err(errno) if done == 0 => return Err(errno),
                        Err(_) => break,
                    }
                }
                Ok(done)
            }
        }
    }

    fn endless(&self) -> bool {
        self.kind != Memory::Null
    }

    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut WriteBuf<'_>, _offset: u64) -> Result<usize> {
        // The bytes are not looked at, so a bad address is none.
        if self.kind == Memory::Full { Err(Errno::ENOSPC) } else { Ok(buf.left()) }
    }

    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, _table: Option<&mut PollTable>) -> Events {
        Events::ALWAYS
    }

    fn seekable(&self) -> bool {
        true
    }

    fn size(&self) -> Result<u64> {
        Ok(0)
    }

    fn may_wait(&self) -> bool {
        false
    }

    fn ioctl(&self, _file: &OpenFile, caller: &dyn Caller, request: u32, arg: usize) -> Result<usize> {
        /// RNDGETENTCNT: the bits in the pool, which is full once it has been filled.
        const GET_COUNT: u32 = 0x8004_5200;
        match (self.kind, request) {
            (Memory::Random | Memory::Urandom, GET_COUNT) => UserPtr::<i32>::new(arg).write(caller.user(), &256).map(|()| 0),
            _ => Err(Errno::ENOTTY),
        }
    }

    fn seek(&self, _file: &OpenFile, _offset: i64, _whence: u32) -> Result<u64> {
        Ok(0)
    }

    fn backing(&self, _file: &OpenFile, _offset: u64, _len: usize, shared: bool) -> Result<Backing> {
        match self.kind {
            Memory::Zero => Ok(if shared { Backing::AnonShared } else { Backing::Anon }),
            _ => Err(Errno::ENODEV),
        }
    }

    fn label(&self) -> String {
        String::from("/dev/mem")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
