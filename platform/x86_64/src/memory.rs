//! What stands for the host's files on the bare machine: the serial line and the initial file tree. The kernel reaches them by descriptors,
//! as it reaches a host's; whatever else a host would do is refused (ENOSYS).

use alloc::sync::Arc;

use janua_abi::linux::fcntl::open::O_RDWR;
use janua_abi::linux::poll::event;
use janua_abi::linux::stat::{S_IFCHR, S_IFREG};
use janua_abi::linux::termios::request::{FIONREAD, TIOCGWINSZ};
use janua_abi::linux::{Errno, Result};
use janua_paging::PAGE;
pub use janua_platform_bare::outside::{INITRD, SERIAL};
use janua_port::host::{HostReady, HostStat, SocketCall};
use janua_port::{Host, HostFd, UserMemory};

use crate::lock::Mutex;
use crate::serial;
use crate::user::BareUser;

/// Bytes moved at a time between user memory and the line.
const CHUNK: usize = PAGE;

static INITIAL: Mutex<Option<&'static [u8]>> = Mutex::new(None);

/// Gives descriptor [`INITRD`] its bytes.
pub fn set_initrd(bytes: &'static [u8]) {
    *INITIAL.lock() = Some(bytes);
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
        Err(Errno::EBADF)
    }
}

impl Host for BareHost {
    fn open(&self, _dir: HostFd, _path: &[u8], _flags: u32, _mode: u32, _resolve: u64) -> Result<HostFd> {
        Err(Errno::ENOSYS)
    }

    fn close(&self, _fd: HostFd) {
        // What there is stays.
    }

    fn flags(&self, fd: HostFd) -> Result<u32> {
        if is_serial(fd) { Ok(O_RDWR) } else { Err(Errno::EBADF) }
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
        Err(Errno::EBADF)
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

    fn lseek(&self, _fd: HostFd, _offset: i64, _whence: u32) -> Result<u64> {
        Err(Errno::ESPIPE)
    }

    fn read(&self, fd: HostFd, out: &mut [u8], offset: Option<u64>) -> Result<usize> {
        if is_serial(fd) {
            return Ok(serial::read(out));
        }
        self.read_at(fd, out, offset.ok_or(Errno::EINVAL)?)
    }

    fn write(&self, fd: HostFd, data: &[u8], _offset: Option<u64>) -> Result<usize> {
        if is_serial(fd) {
            serial::write(data);
            return Ok(data.len());
        }
        Err(Errno::EBADF)
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

    fn truncate(&self, _fd: HostFd, _len: u64) -> Result<()> {
        Err(Errno::EINVAL)
    }

    fn fallocate(&self, _fd: HostFd, _mode: u32, _offset: u64, _len: u64) -> Result<()> {
        Err(Errno::ENODEV)
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
