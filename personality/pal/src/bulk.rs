//! Pages that go from one picoprocess to another without being copied twice.
//!
//! What is committed is copied once, into a file in memory. The receiver maps that for itself: its stores are its own, and pages that it only reads are
//! never copied again.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec;
use alloc::vec::Vec;
use core::any::Any;

use janua_abi::linux::mman::{MAP_FIXED, MAP_PRIVATE};
use janua_abi::linux::{Errno, Result as LinuxResult};
use janua_abi::pal::{ALLOC_ALIGN, Error};
use janua_kernel::UserPtr;
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::table::Fd;
use janua_kernel::thread::work;
use janua_kernel::wait::PollTable;
use janua_object::file::flags::O_RDWR;
use janua_object::mm::MapRequest;
use janua_object::vfs::Attr;
use janua_object::{Caller, Events, File, OpenFile, anon};
use janua_personality_linux::Thread;
use janua_personality_linux::thread::ThreadExt;
use janua_port::Clock;
use janua_rt::{Mutex, WaitQueue};
use zerocopy::IntoBytes;

use crate::answer::{Reply, Result, reply};
use crate::state::{self, System};
use crate::{handle, memory};

/// Most ranges in a call, most bytes that a channel holds, and most channels there are.
const MOST_RANGES: usize = 1024;
const MOST_BYTES: usize = 256 << 20;
const MOST_CHANNELS: usize = 65_536;

/// Pages that have been committed.
struct Piece {
    file: Arc<OpenFile>,
    offset: usize,
    len: usize,
}

#[derive(Default)]
struct Queue {
    pieces: VecDeque<Piece>,
    bytes: usize,
}

/// A channel.
pub struct Channel {
    system: Arc<System>,
    clock: &'static dyn Clock,
    key: u64,
    queue: Mutex<Queue>,
    arrivals: WaitQueue,
}

impl Channel {
    /// Opens one by its key. STREAMNOTEXIST.
    pub fn open(system: &System, key: u64) -> Result<Arc<OpenFile>> {
        let channel = system.channels.lock().get(&key).and_then(Weak::upgrade).ok_or(Errno::ENOENT)?;
        Ok(OpenFile::new(channel, O_RDWR, None))
    }

    /// Puts pages behind those that are there. TRYAGAIN when they are too many.
    fn push(&self, pieces: Vec<Piece>) -> Result<()> {
        let bytes: usize = pieces.iter().map(|piece| piece.len).sum();
        let mut queue = self.queue.lock();
        if bytes > MOST_BYTES.saturating_sub(queue.bytes) {
            return Err(Error::TryAgain.into());
        }
        queue.bytes += bytes;
        queue.pieces.extend(pieces);
        drop(queue);
        self.arrivals.wake_all();
        Ok(())
    }

    /// Takes up to `len` bytes of the first piece.
    fn take(&self, len: usize) -> Option<Piece> {
        let mut queue = self.queue.lock();
        let first = queue.pieces.front_mut()?;
        let len = len.min(first.len);
        let taken = Piece { file: first.file.clone(), offset: first.offset, len };
        first.offset += len;
        first.len -= len;
        if first.len == 0 {
            queue.pieces.pop_front();
        }
        queue.bytes -= len;
        Some(taken)
    }

    /// Puts in front again what has been taken, though that be more than may be put behind by now.
    fn put_back(&self, piece: Piece) {
        let mut queue = self.queue.lock();
        queue.bytes += piece.len;
        queue.pieces.push_front(piece);
        drop(queue);
        self.arrivals.wake_all();
    }

    /// Maps pieces from `addr` on until `len` bytes are there or no piece is left: the bytes, and why it ended before. A piece that cannot be mapped
    /// stays in the channel.
    fn map(&self, thread: &Thread, (addr, len): (usize, usize), prot: u32) -> (usize, Result<()>) {
        let mut done = 0;
        while done < len {
            let Some(piece) = self.take(len - done) else { break };
            let request = MapRequest {
                addr: addr + done,
                len: piece.len,
                prot: memory::rights(prot),
                flags: MAP_PRIVATE | MAP_FIXED,
                file: Some(piece.file.clone()),
                offset: piece.offset as u64,
            };
            if let Err(failure) = memory::place(thread, request) {
                self.put_back(piece);
                return (done, Err(failure));
            }
            done += piece.len;
        }
        (done, Ok(()))
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.system.channels.lock().remove(&self.key);
    }
}

impl File for Channel {
    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut ReadBuf<'_>, _offset: u64) -> LinuxResult<usize> {
        Err(Error::NotSupported.errno())
    }

    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut WriteBuf<'_>, _offset: u64) -> LinuxResult<usize> {
        Err(Error::NotSupported.errno())
    }

    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, table: Option<&mut PollTable>) -> Events {
        if let Some(table) = table {
            table.add(&self.arrivals);
        }
        if self.queue.lock().pieces.is_empty() { Events::empty() } else { Events::IN }
    }

    fn attr(&self) -> LinuxResult<Attr> {
        Ok(anon::attr(self.clock))
    }

    fn label(&self) -> String {
        format!("gipc:{}", self.key)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// DkCreatePhysicalMemoryChannel: stores the key.
pub fn create(thread: &Thread, key: UserPtr<u64>) -> Reply {
    reply(|| {
        let state = state::of(thread)?;
        let number = state::random(thread.machine());
        let channel = Arc::new(Channel {
            system: state.system.clone(),
            clock: thread.machine().clock(),
            key: number,
            queue: Mutex::default(),
            arrivals: WaitQueue::new(),
        });
        {
            let mut channels = state.system.channels.lock();
            if channels.len() == MOST_CHANNELS {
                return Err(Error::NoMemory.into());
            }
            channels.insert(number, Arc::downgrade(&channel));
        }
        key.write(thread.user(), &number)?;
        handle::install(thread, OpenFile::new(channel, O_RDWR, None))
    })
}

/// Reads an array of `count` words.
fn words(thread: &Thread, count: usize, at: UserPtr<u64>) -> Result<Vec<u64>> {
    let mut words = vec![0u64; count];
    thread.user().copy_in(words.as_mut_slice().as_mut_bytes(), at.addr()).map_err(|_| Errno::EFAULT)?;
    Ok(words)
}

/// The ranges of a call: pages, none of them empty.
fn ranges(thread: &Thread, count: usize, addrs: UserPtr<u64>, sizes: UserPtr<u64>) -> Result<Vec<(usize, usize)>> {
    if count == 0 || count > MOST_RANGES {
        return Err(Error::Invalid.into());
    }
    let (addrs, sizes) = (words(thread, count, addrs)?, words(thread, count, sizes)?);
    let mut sum = 0usize;
    for (addr, size) in addrs.iter().zip(&sizes) {
        let aligned = addr.is_multiple_of(ALLOC_ALIGN as u64) && size.is_multiple_of(ALLOC_ALIGN as u64) && *size > 0;
        sum = sum.saturating_add(usize::try_from(*size).unwrap_or(usize::MAX));
        if !aligned || addr.checked_add(*size).is_none() {
            return Err(Error::Invalid.into());
        }
    }
    if sum > MOST_BYTES {
        return Err(Error::TooLong.into());
    }
    Ok(addrs.into_iter().zip(sizes).map(|(addr, size)| (addr as usize, size as usize)).collect())
}

/// DkPhysicalMemoryCommit: how many pages have been queued. No flags are known.
pub fn commit(thread: &Thread, fd: Fd, count: usize, addrs: UserPtr<u64>, sizes: UserPtr<u64>, flags: u32) -> Reply {
    reply(|| {
        state::of(thread)?;
        let open = handle::get(thread, fd)?;
        let channel = open.downcast::<Channel>().ok_or(Error::BadHandle)?;
        if flags != 0 {
            return Err(Error::Invalid.into());
        }
        let mut pieces = Vec::new();
        let mut pages = 0;
        for (addr, len) in ranges(thread, count, addrs, sizes)? {
            let file = thread.kernel.memory.memfd(&thread.kernel.vfs, b"gipc", 0o600, 0, &thread.cred());
            let mut buf = WriteBuf::user(thread.user(), addr, len)?.until(thread.work_word(), work::KILL);
            let mut done = 0;
            while done < len {
                match file.ops.write(&file, &thread.caller(), &mut buf, done as u64)? {
                    0 => return Err(Error::BadAddress.into()),
                    n => done += n,
                }
            }
            pages += len / ALLOC_ALIGN;
            pieces.push(Piece { file, offset: 0, len });
        }
        channel.push(pieces)?;
        Ok(pages)
    })
}

/// DkPhysicalMemoryMap: how many pages have been mapped, in the order in which they came. An address of 0 is any, and is stored back. TRYAGAIN when
/// none is there. An error only when none has been mapped.
pub fn map(thread: &Thread, fd: Fd, count: usize, addrs: UserPtr<u64>, sizes: UserPtr<u64>, rights: UserPtr<u32>) -> Reply {
    reply(|| {
        let state = state::of(thread)?;
        let open = handle::get(thread, fd)?;
        let channel = open.downcast::<Channel>().ok_or(Error::BadHandle)?;
        let wanted = ranges(thread, count, addrs, sizes)?;
        let mut prots = vec![0u32; count];
        thread.user().copy_in(prots.as_mut_slice().as_mut_bytes(), rights.addr()).map_err(|_| Errno::EFAULT)?;
        for ((addr, len), prot) in wanted.iter().zip(&prots) {
            memory::check(&state, *addr, *len, *prot, 0)?;
        }
        // Where pages went that cannot be reported, nobody would have them.
        for (at, (addr, _)) in wanted.iter().enumerate() {
            addrs.at(at).write(thread.user(), &(*addr as u64))?;
        }
        let mut pages = 0;
        for (at, ((addr, len), prot)) in wanted.into_iter().zip(prots).enumerate() {
            let wanted_any = addr == 0;
            let addr = match wanted_any {
                true if pages == 0 => reserve(thread, len)?,
                true => match reserve(thread, len) {
                    Ok(addr) => addr,
                    Err(_) => break,
                },
                false => addr,
            };
            let (done, ended) = channel.map(thread, (addr, len), prot);
            pages += done / ALLOC_ALIGN;
            if wanted_any && done < len {
                memory::unmap(thread, addr + done, len - done)?;
            }
            if wanted_any && done > 0 {
                addrs.at(at).write(thread.user(), &(addr as u64))?;
            }
            match ended {
                Err(failure) if pages == 0 => return Err(failure),
                _ if done < len => break,
                _ => {}
            }
        }
        if pages == 0 { Err(Error::TryAgain.into()) } else { Ok(pages) }
    })
}

/// Addresses for pages that may go anywhere.
fn reserve(thread: &Thread, len: usize) -> Result {
    use janua_abi::linux::mman::{MAP_ANONYMOUS, MAP_NORESERVE};
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    let prot = memory::rights(0);
    memory::place(thread, MapRequest { addr: 0, len, prot, flags, file: None, offset: 0 })
}
