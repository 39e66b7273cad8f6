//! Transfers between files of the host's and a call's buffers.

use alloc::vec;

use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::EVENTS;
use janua_port::{Host, HostFd, OwnedFd, PAGE};

use crate::file::offset;

/// Bytes copied at a time.
pub const CHUNK: usize = 256 * 1024;

/// Bytes that the host moves in one call. It would not end one for who is killed in here.
const PART: usize = 16 << 20;

/// Reads from `offset` on until the buffer is full or the file ends: bytes read. Guest memory is filled by the host itself.
pub fn read_at(from: &OwnedFd, buf: &mut ReadBuf<'_>, offset: u64) -> Result<usize> {
    let read = read_all_at(from, buf, offset);
    EVENTS.advance();
    read
}

fn read_all_at(from: &OwnedFd, buf: &mut ReadBuf<'_>, offset: u64) -> Result<usize> {
    let mut moved = 0usize;
    while buf.left() > 0 && (moved == 0 || !buf.is_stopped()) {
        let at = offset + moved as u64;
        let (want, result) = match buf.host_range().map(|((addr, len), here)| (addr, len.min(PART), here)) {
            Some((_, 0, _)) => break,
            Some((addr, len, true)) if from.copies() => {
                let result = from.host().read_user(from.fd(), addr, len, Some(at));
                if let Ok(n) = result {
                    buf.advance(n);
                }
                (len, result)
            }
            Some((addr, len, _)) => {
                let want = len.min(CHUNK);
                (want, read_through(from.host(), from.fd(), buf, addr, want, Some(at)))
            }
            None => {
                let Some(to) = buf.kernel_range() else { break };
                let want = to.len();
                let result = from.host().read(from.fd(), to, Some(at));
                if let Ok(n) = result {
                    buf.advance(n);
                }
                (want, result)
            }
        };
        match result {
            Ok(n) => {
                moved += n;
                if n < want {
                    break;
                }
            }
            Err(_) if moved > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(moved)
}

/// Reads `want` bytes for the start of the buffer's range, which is user memory at `addr`, by way of the kernel's: bytes read. `at` as
/// for [`Host::read`].
pub fn read_through(
    host: &dyn Host,
    fd: HostFd,
    buf: &mut ReadBuf<'_>,
    addr: usize,
    want: usize,
    at: Option<u64>,
) -> Result<usize> {
    let mut room = vec![0; want + PAGE];
    // As far behind a border of pages as the reader's: that is what O_DIRECT asks for.
    let start = addr.wrapping_sub(room.as_ptr().addr()) % PAGE;
    let n = host.read(fd, &mut room[start..start + want], at)?;
    buf.put(&room[start..start + n.min(want)])
}

/// Writes the buffer at `offset`, which may be [`offset::END`]: bytes written. Guest memory is read by the host itself.
pub fn write_at(to: &OwnedFd, buf: &mut WriteBuf<'_>, offset: u64) -> Result<usize> {
    let mut moved = 0usize;
    while buf.left() > 0 && (moved == 0 || !buf.is_stopped()) {
        let at = match offset {
            offset::END => janua_port::host::END,
            offset => offset.checked_add(moved as u64).ok_or(Errno::EFBIG)?,
        };
        let (want, result) = match buf.host_range().map(|((addr, len), here)| (addr, len.min(PART), here)) {
            Some((_, 0, _)) => break,
            Some((_, len, false)) => {
                let want = len.min(CHUNK);
                let result = write_through(to.host(), to.fd(), buf, want, Some(at));
                if let Ok(n) = result {
                    buf.advance(n);
                }
                (want, result)
            }
            Some((addr, len, true)) => {
                let result = to.host().write_user(to.fd(), addr, len, Some(at));
                if let Ok(n) = result {
                    buf.advance(n);
                }
                (len, result)
            }
            None => {
                let Some(from) = buf.kernel_range() else { break };
                let want = from.len();
                let result = to.host().write(to.fd(), from, Some(at));
                if let Ok(n) = result {
                    buf.advance(n);
                }
                (want, result)
            }
        };
        match result {
            Ok(n) => {
                moved += n;
                if n < want {
                    break;
                }
            }
            Err(_) if moved > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(moved)
}

/// Writes `want` bytes from the start of the buffer's range, which is user memory, by way of the kernel's: bytes written, which the caller takes
/// from the buffer. `at` as for [`Host::write`].
pub fn write_through(host: &dyn Host, fd: HostFd, buf: &WriteBuf<'_>, want: usize, at: Option<u64>) -> Result<usize> {
    let mut bytes = vec![0; want];
    let got = buf.clone().get(&mut bytes)?;
    host.write(fd, &bytes[..got], at)
}
