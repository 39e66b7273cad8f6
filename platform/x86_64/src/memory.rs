//! What stands for the host's files on the bare machine: memory objects (anonymous files), the serial line, the initial file
//! tree. The kernel reaches them by descriptors, as it reaches a host's; whatever else a host would do is refused (ENOSYS).

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ops::Range;

use janua_abi::linux::fcntl::open::O_RDWR;
use janua_abi::linux::poll::event;
use janua_abi::linux::stat::{S_IFCHR, S_IFREG};
use janua_abi::linux::termios::request::{FIONREAD, TIOCGWINSZ};
use janua_abi::linux::{Errno, Result};
use janua_paging::{Object, PAGE};
pub use janua_platform_bare::outside::{INITRD, SERIAL};
use janua_port::host::{Fill, HostReady, HostStat, SocketCall};
use janua_port::{Host, HostFd, UserMemory};

use crate::frames::{FRAMES, Physical};
use crate::lock::Mutex;
use crate::serial;
use crate::user::BareUser;

/// The first descriptor of a memory object.
const FIRST: i32 = 4;

/// Bytes moved at a time between user memory and an object.
const CHUNK: usize = PAGE;

type Memory = Arc<Object<Physical>>;

struct Table {
    objects: Vec<Option<Memory>>,
    free: Vec<usize>,
}

static TABLE: Mutex<Table> = Mutex::new(Table { objects: Vec::new(), free: Vec::new() });
static INITIAL: Mutex<Option<&'static [u8]>> = Mutex::new(None);

/// Gives descriptor [`INITRD`] its bytes.
pub fn set_initrd(bytes: &'static [u8]) {
    *INITIAL.lock() = Some(bytes);
}

/// The memory object of a descriptor. EBADF.
pub fn object(fd: HostFd) -> Result<Memory> {
    let index = usize::try_from(fd.0 - FIRST).map_err(|_| Errno::EBADF)?;
    TABLE.lock().objects.get(index).cloned().flatten().ok_or(Errno::EBADF)
}

fn is_serial(fd: HostFd) -> bool {
    SERIAL.contains(&fd)
}

/// The machine's own "host".
pub struct BareHost;

impl BareHost {
    fn read_at(&self, fd: HostFd, out: &mut [u8], offset: u64) -> Result<usize> {
        if fd == INITRD {
            let bytes = INITIAL.lock().ok_or(Errno::EBADF)?;
            let rest = usize::try_from(offset).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
            let len = out.len().min(rest.len());
            out[..len].copy_from_slice(&rest[..len]);
            return Ok(len);
        }
        Ok(object(fd)?.read(offset, out))
    }
}

impl Host for BareHost {
    fn open(&self, _dir: HostFd, _path: &[u8], _flags: u32, _mode: u32, _resolve: u64) -> Result<HostFd> {
        Err(Errno::ENOSYS)
    }

    fn close(&self, fd: HostFd) {
        let Ok(index) = usize::try_from(fd.0 - FIRST) else { return };
        let mut table = TABLE.lock();
        let gone = table.objects.get_mut(index).and_then(Option::take);
        if gone.is_some() {
            table.free.push(index);
        }
        drop(table);
        drop(gone);
    }

    fn flags(&self, fd: HostFd) -> Result<u32> {
        if is_serial(fd) { Ok(O_RDWR) } else { object(fd).map(|_| O_RDWR) }
    }

    fn stat(&self, fd: HostFd, path: &[u8]) -> Result<HostStat> {
        if !path.is_empty() {
            return Err(Errno::ENOSYS);
        }
        const BLOCK: u32 = PAGE as u32;
        if is_serial(fd) {
            // /dev/ttyS0.
            const TTY_S0: u64 = 4 << 8 | 64;
            let mode = S_IFCHR | 0o620;
            return Ok(HostStat { ino: 1, mode, nlink: 1, rdev: TTY_S0, blksize: BLOCK, ..HostStat::default() });
        }
        if fd == INITRD {
            let size = INITIAL.lock().ok_or(Errno::EBADF)?.len() as u64;
            let mode = S_IFREG | 0o400;
            return Ok(HostStat { ino: 2, mode, nlink: 1, size, blksize: BLOCK, ..HostStat::default() });
        }
        let object = object(fd)?;
        let blocks = (object.pages() * (PAGE / 512)) as u64;
        let (size, mode) = (object.size(), S_IFREG | 0o600);
        Ok(HostStat { ino: fd.0 as u64, mode, nlink: 1, size, blksize: BLOCK, blocks, ..HostStat::default() })
    }

    fn statfs(&self, _fd: HostFd) -> Result<[u64; 15]> {
        Err(Errno::ENOSYS)
    }

    fn readlink(&self, _dir: HostFd, _path: &[u8], _out: &mut [u8]) -> Result<usize> {
        Err(Errno::ENOSYS)
    }

    fn getdents(&self, _fd: HostFd, _out: &mut [u8]) -> Result<usize> {
        Err(Errno::ENOTDIR)
    }

    fn lseek(&self, fd: HostFd, offset: i64, whence: u32) -> Result<u64> {
        if is_serial(fd) {
            return Err(Errno::ESPIPE);
        }
        object(fd)?.lseek(offset, whence)
    }

    fn read(&self, fd: HostFd, out: &mut [u8], offset: Option<u64>) -> Result<usize> {
        if is_serial(fd) {
            return Ok(serial::read(out));
        }
        self.read_at(fd, out, offset.ok_or(Errno::EINVAL)?)
    }

    fn write(&self, fd: HostFd, data: &[u8], offset: Option<u64>) -> Result<usize> {
        if is_serial(fd) {
            serial::write(data);
            return Ok(data.len());
        }
        object(fd)?.write(offset.ok_or(Errno::EINVAL)?, data)
    }

    fn read_user(&self, fd: HostFd, addr: usize, len: usize, offset: Option<u64>) -> Result<usize> {
        let mut chunk = [0; CHUNK];
        let mut done = 0;
        while done < len {
            let want = (len - done).min(CHUNK);
            let n = self.read(fd, &mut chunk[..want], offset.map(|at| at + done as u64))?;
            let copied = BareUser.copy_out_partial(addr + done, &chunk[..n]);
            done += copied;
            if copied < n && done == 0 {
                return Err(Errno::EFAULT);
            }
            if copied < want {
                break;
            }
        }
        Ok(done)
    }

    fn write_user(&self, fd: HostFd, addr: usize, len: usize, offset: Option<u64>) -> Result<usize> {
        let mut chunk = [0; CHUNK];
        let mut done = 0;
        while done < len {
            let want = (len - done).min(CHUNK);
            let have = BareUser.copy_in_partial(&mut chunk[..want], addr + done);
            if have == 0 && done == 0 {
                return Err(Errno::EFAULT);
            }
            let n = match self.write(fd, &chunk[..have], offset.map(|at| at + done as u64)) {
                Err(_) if done > 0 => break,
                other => other?,
            };
            done += n;
            if n < want {
                break;
            }
        }
        Ok(done)
    }

    fn truncate(&self, fd: HostFd, len: u64) -> Result<()> {
        object(fd)?.truncate(len)
    }

    fn fallocate(&self, fd: HostFd, mode: u32, offset: u64, len: u64) -> Result<()> {
        object(fd)?.fallocate(mode, offset, len)
    }

    fn fsync(&self, _fd: HostFd, _data_only: bool) -> Result<()> {
        // Memory has nothing behind it; the line keeps nothing back.
        Ok(())
    }

    fn mkdir(&self, _dir: HostFd, _path: &[u8], _mode: u32) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    fn mknod(&self, _dir: HostFd, _path: &[u8], _mode: u32, _dev: u64) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    fn unlink(&self, _dir: HostFd, _path: &[u8], _is_dir: bool) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    fn symlink(&self, _target: &[u8], _dir: HostFd, _path: &[u8]) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    fn link(&self, _old_dir: HostFd, _old: &[u8], _new_dir: HostFd, _new: &[u8]) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    fn rename(&self, _old_dir: HostFd, _old: &[u8], _new_dir: HostFd, _new: &[u8], _flags: u32) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    fn chmod(&self, _fd: HostFd, _mode: u32) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    fn chown(&self, _dir: HostFd, _path: &[u8], _uid: u32, _gid: u32) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    fn utimens(&self, _dir: HostFd, _path: &[u8], _atime: Option<i64>, _mtime: Option<i64>) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    fn getxattr(&self, _fd: HostFd, _name: &[u8], _out: &mut [u8]) -> Result<usize> {
        Err(Errno::ENOSYS)
    }
    fn setxattr(&self, _fd: HostFd, _name: &[u8], _value: &[u8], _flags: u32) -> Result<()> {
        Err(Errno::ENOSYS)
    }
    fn listxattr(&self, _fd: HostFd, _out: &mut [u8]) -> Result<usize> {
        Err(Errno::ENOSYS)
    }
    fn removexattr(&self, _fd: HostFd, _name: &[u8]) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    fn memfd(&self, _name: &[u8]) -> Result<HostFd> {
        let object = Object::new(&FRAMES, 0);
        let mut table = TABLE.lock();
        let index = table.free.pop().unwrap_or(table.objects.len());
        if index == table.objects.len() {
            table.objects.push(None);
        }
        table.objects[index] = Some(object);
        i32::try_from(index).map(|index| HostFd(index + FIRST)).map_err(|_| Errno::ENFILE)
    }

    fn set_fill(&self, fd: HostFd, fill: Weak<dyn Fill>) -> Result<()> {
        object(fd)?.set_fill(fill);
        Ok(())
    }

    fn take_stored(&self, fd: HostFd, each: &mut dyn FnMut(Range<u64>)) -> Result<()> {
        object(fd)?.take_stored(each);
        Ok(())
    }

    fn ioctl(&self, fd: HostFd, request: u32, arg: &mut [u8]) -> Result<usize> {
        if is_serial(fd) && request == FIONREAD && arg.len() >= 4 {
            arg[..4].copy_from_slice(&(serial::pending() as u32).to_ne_bytes());
            return Ok(0);
        }
        if is_serial(fd) && request == TIOCGWINSZ && arg.len() >= 8 {
            // A line of bytes otherwise, without settings of its own.
            let (columns, rows) = serial::window();
            arg[..8].fill(0);
            arg[..2].copy_from_slice(&rows.to_ne_bytes());
            arg[2..4].copy_from_slice(&columns.to_ne_bytes());
            return Ok(0);
        }
        Err(Errno::ENOTTY)
    }

    fn ioctl_word(&self, _fd: HostFd, _request: u32, _arg: usize) -> Result<usize> {
        Err(Errno::ENOTTY)
    }

    fn poll(&self, fd: HostFd, interest: u32) -> u32 {
        let readable = if !is_serial(fd) || serial::pending() > 0 || serial::ended() { event::IN } else { 0 };
        (readable | event::OUT) & interest
    }

    fn watch(&self, fd: HostFd, target: Arc<dyn HostReady>) -> Result<()> {
        if !is_serial(fd) {
            return Err(Errno::EPERM);
        }
        if serial::watch(fd.0, target) { Ok(()) } else { Err(Errno::EEXIST) }
    }

    fn unwatch(&self, fd: HostFd) {
        serial::unwatch(fd.0);
    }

    fn socket_call(&self, _call: SocketCall<'_>) -> Result<usize> {
        Err(Errno::EAFNOSUPPORT)
    }
}
