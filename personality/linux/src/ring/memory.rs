//! The memory of a ring of the gate `ring`.
//!
//! It is the program's own, or the kernel maps it. Where a module is to look into it that mapping is shared, of a piece of memory that the module sees by a window of its own
//! ([`janua_port::MemoryObject::window`]): what the program unmaps or maps there then is no matter of the ring's. A child of fork(2), which has no ring, has none of it.

use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;

use janua_abi::linux::mman::{MADV_DONTFORK, MAP_ANONYMOUS, MAP_POPULATE, MAP_PRIVATE, MAP_SHARED};
use janua_abi::linux::{Errno, Result};
use janua_abi::ring;
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_object::file::flags::O_RDWR;
use janua_object::mm::MapRequest;
use janua_object::sysv::memory::Piece;
use janua_object::vfs::{Attr, Inode};
use janua_object::{Caller, Events, File, OpenFile};
use janua_port::user::Window;
use janua_port::{Backing, PAGE, Prot};

use crate::Thread;
use crate::mm::limits;
use crate::thread::ThreadExt;

/// A ring's memory.
pub struct Memory {
    mapped: Mapped,
    /// What a module shares with the program.
    piece: Option<Arc<Piece>>,
}

/// Where it is in the program's memory, and the bytes that the kernel has mapped.
#[derive(Clone, Copy)]
pub struct Mapped {
    at: usize,
    len: usize,
}

impl Mapped {
    /// Takes back what the kernel has mapped.
    pub fn unmap(self, thread: &Thread) {
        if let Some(space) = thread.process().mm().filter(|_| self.len != 0) {
            // What was mapped can be unmapped, unless the host has no memory for that: then it stays.
            let _ = space.unmap(self.at, self.len);
        }
    }
}

impl Memory {
    /// Memory that the program has at this address.
    pub fn of_program(at: usize) -> Memory {
        Memory { mapped: Mapped { at, len: 0 }, piece: None }
    }

    /// Maps memory for a ring of so many entries, for a module to look into if it is `watched`. EINVAL for numbers no ring has; ENOMEM.
    pub fn map(thread: &Thread, entries: (u32, u32), watched: bool) -> Result<Memory> {
        if entries.0 > ring::MOST || entries.1 > ring::MOST {
            return Err(Errno::EINVAL);
        }
        let len = ring::bytes(entries.0, entries.1).next_multiple_of(PAGE);
        let piece = if watched { piece(thread, len) } else { None };
        let (flags, file) = match &piece {
            Some(piece) => (MAP_SHARED, Some(OpenFile::new(Arc::new(Rings(piece.clone())), O_RDWR, None))),
            None => (MAP_PRIVATE | MAP_ANONYMOUS, None),
        };
        let prot = Prot { read: true, write: true, exec: false };
        let request = MapRequest { addr: 0, len, prot, flags: flags | MAP_POPULATE, file, offset: 0 };
        let space = thread.process().mm().ok_or(Errno::ENOMEM)?;
        let at = space.map(request, &limits(thread))?;
        if piece.is_some() {
            // A child that has given up its parent's rights could make calls with them here.
            space.advise(at, len, MADV_DONTFORK, &|| false).inspect_err(|_| {
                let _ = space.unmap(at, len);
            })?;
        }
        Ok(Memory { mapped: Mapped { at, len }, piece })
    }

    pub fn at(&self) -> usize {
        self.mapped.at
    }

    pub fn mapped(&self) -> Mapped {
        self.mapped
    }

    /// It as a module sees it.
    pub fn window(&self) -> Option<Arc<dyn Window>> {
        let view: Arc<dyn Window> = Arc::new(self.piece.as_ref()?.view());
        Some(view)
    }
}

/// Memory to be shared. `None` where the machine has none of that kind, or no more: the ring does without.
fn piece(thread: &Thread, len: usize) -> Option<Arc<Piece>> {
    let piece = thread.kernel.rings.pool.piece(len as u64, 0o600, &thread.cred()).ok()?;
    piece.reserve().ok()?;
    Some(piece)
}

/// Memory of a ring as a file under a mapping.
struct Rings(Arc<Piece>);

impl File for Rings {
    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut ReadBuf<'_>, _offset: u64) -> Result<usize> {
        Err(Errno::EINVAL)
    }
    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut WriteBuf<'_>, _offset: u64) -> Result<usize> {
        Err(Errno::EINVAL)
    }
    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, _table: Option<&mut PollTable>) -> Events {
        Events::ALWAYS
    }
    fn backing(&self, _file: &OpenFile, offset: u64, len: usize, shared: bool) -> Result<Backing> {
        self.0.backing(offset, len, shared)
    }
    fn end_of_object(&self, offset: u64) -> u64 {
        self.0.end_of(offset)
    }
    fn counts_pieces(&self) -> bool {
        true
    }
    fn attr(&self) -> Result<Attr> {
        self.0.attr()
    }
    fn label(&self) -> String {
        String::from("/[ring]")
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
