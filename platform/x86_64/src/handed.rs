//! The descriptors the kernel has from the start: the serial line three times, and the initial file tree, which is read and nothing else.

use alloc::sync::Arc;

use janua_abi::linux::fcntl::open::O_RDWR;
use janua_abi::linux::poll::event;
use janua_abi::linux::stat::{S_IFCHR, S_IFREG};
use janua_abi::linux::termios::request::{FIONREAD, TIOCGWINSZ};
use janua_abi::linux::{Errno, Result};
use janua_paging::PAGE;
pub use janua_platform_bare::outside::{INITRD, SERIAL};
use janua_port::host::{HostReady, HostStat};
use janua_port::{Host, HostFd};

use crate::lock::Mutex;
use crate::serial;

static INITIAL: Mutex<Option<&'static [u8]>> = Mutex::new(None);

/// Gives descriptor [`INITRD`] its bytes.
pub fn set_initrd(bytes: &'static [u8]) {
    *INITIAL.lock() = Some(bytes);
}

fn is_serial(fd: HostFd) -> bool {
    SERIAL.contains(&fd)
}

/// What is outside of the bare machine.
pub struct BareHost;

impl Host for BareHost {
    fn close(&self, _fd: HostFd) {
        // What there is stays.
    }

    fn flags(&self, fd: HostFd) -> Result<u32> {
        if is_serial(fd) { Ok(O_RDWR) } else { Err(Errno::EBADF) }
    }

    fn stat(&self, fd: HostFd) -> Result<HostStat> {
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

    fn read(&self, fd: HostFd, out: &mut [u8], offset: Option<u64>) -> Result<usize> {
        if is_serial(fd) {
            return Ok(serial::read(out));
        }
        if fd != INITRD {
            return Err(Errno::EBADF);
        }
        let offset = offset.ok_or(Errno::EINVAL)?;
        let bytes = INITIAL.lock().ok_or(Errno::EBADF)?;
        let rest = usize::try_from(offset).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
        let len = out.len().min(rest.len());
        out[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn write(&self, fd: HostFd, data: &[u8], _offset: Option<u64>) -> Result<usize> {
        if !is_serial(fd) {
            return Err(Errno::EBADF);
        }
        serial::write(data);
        Ok(data.len())
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
}
