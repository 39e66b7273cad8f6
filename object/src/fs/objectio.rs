//! Transfers between memory objects and a call's buffers.

use alloc::sync::Arc;
use alloc::vec;
use core::any::Any;
use core::ops::Deref;

use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::EVENTS;
use janua_port::{MemoryObject, OwnedFd, PAGE};

use super::hostio::{self, CHUNK};

/// A memory object of which the kind is known: a transfer of a host's file asks no table for it, since behind a host call each indirect call costs
/// as much as the copy of a few hundred bytes.
#[derive(Clone)]
pub enum Held {
    /// A file of the host's.
    File(Arc<OwnedFd>),
    Other(Arc<dyn MemoryObject>),
}

impl Held {
    pub fn new(object: Arc<dyn MemoryObject>) -> Held {
        let any: Arc<dyn Any + Send + Sync> = object.clone();
        any.downcast().map_or(Held::Other(object), Held::File)
    }

    /// What a mapping names.
    pub fn object(&self) -> Arc<dyn MemoryObject> {
        match self {
            Held::File(file) => file.clone(),
            Held::Other(object) => object.clone(),
        }
    }

    /// Reads from `offset` on until the buffer is full or the object ends: bytes read. What is a host's file it moves itself.
    pub fn read_at(&self, buf: &mut ReadBuf<'_>, offset: u64) -> Result<usize> {
        match self {
            Held::File(file) => hostio::read_at(file, buf, offset),
            Held::Other(object) => {
                let read = read_pages(&**object, buf, offset);
                EVENTS.advance();
                read
            }
        }
    }

    /// Writes the buffer at `offset`: bytes written. As [`Held::read_at`].
    pub fn write_at(&self, buf: &mut WriteBuf<'_>, offset: u64) -> Result<usize> {
        match self {
            Held::File(file) => hostio::write_at(file, buf, offset),
            Held::Other(object) => write_pages(&**object, buf, offset),
        }
    }
}

impl Deref for Held {
    type Target = dyn MemoryObject;

    fn deref(&self) -> &(dyn MemoryObject + 'static) {
        match self {
            Held::File(file) => &**file,
            Held::Other(object) => &**object,
        }
    }
}

// Not inlined: the page would be on the stack of those as well who do not need it.
#[inline(never)]
fn read_pages(from: &dyn MemoryObject, buf: &mut ReadBuf<'_>, offset: u64) -> Result<usize> {
    let mut page = [0; PAGE];
    let mut moved = 0;
    while buf.left() > 0 && (moved == 0 || !buf.is_stopped()) {
        let at = offset + moved as u64;
        let (want, result) = match buf.kernel_range() {
            Some(to) => {
                let want = to.len();
                (want, from.read(at, to).inspect(|n| buf.advance(*n)))
            }
            None => {
                let want = buf.left().min(PAGE);
                (want, from.read(at, &mut page[..want]).and_then(|n| buf.put(&page[..n])))
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

#[inline(never)]
fn write_pages(to: &dyn MemoryObject, buf: &mut WriteBuf<'_>, offset: u64) -> Result<usize> {
    let mut page = [0; PAGE];
    let mut moved = 0usize;
    while buf.left() > 0 && (moved == 0 || !buf.is_stopped()) {
        let at = offset.checked_add(moved as u64).ok_or(Errno::EFBIG)?;
        let (want, result) = match buf.kernel_range() {
            Some(bytes) => (bytes.len(), to.write(at, bytes)),
            None => {
                let want = buf.left().min(PAGE);
                (want, buf.clone().get(&mut page[..want]).and_then(|have| to.write(at, &page[..have])))
            }
        };
        match result {
            Ok(n) => {
                buf.skip(n);
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

/// Writes all of `bytes` at `offset`.
pub fn write_all(to: &dyn MemoryObject, bytes: &[u8], offset: u64) -> Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match to.write(offset + done as u64, &bytes[done..])? {
            0 => return Err(Errno::ENOSPC),
            n => done += n,
        }
    }
    Ok(())
}

/// Copies up to `len` bytes from the start of one object to the start of another; what the source lacks stays away. EINTR once `stop`
/// returns true.
pub fn copy(from: &dyn MemoryObject, to: &dyn MemoryObject, len: u64, stop: &dyn Fn() -> bool) -> Result<()> {
    let mut chunk = vec![0u8; usize::try_from(len).unwrap_or(usize::MAX).clamp(1, CHUNK)];
    let mut at = 0;
    while at < len {
        if stop() {
            return Err(Errno::EINTR);
        }
        // Holes stay holes where the host can report them.
        match from.seek(at, false) {
            Ok(data) => at = data.min(len),
            Err(Errno::ENXIO) => break,
            Err(_) => {}
        }
        let want = chunk.len().min(usize::try_from(len - at).unwrap_or(usize::MAX));
        let n = from.read(at, &mut chunk[..want])?;
        if n == 0 {
            break;
        }
        write_all(to, &chunk[..n], at)?;
        at += n as u64;
    }
    Ok(())
}
