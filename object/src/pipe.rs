//! Pipes and FIFOs (pipe(7), fifo(7)).
//!
//! The bytes are in a ring that grows on demand. What fits is counted in slots of [`PIPE_BUF`] bytes, as programs can observe
//! on Linux: a write starts new slots, except that its odd bytes join the last one if they fit there whole, and a slot is free
//! again when its last byte has been read. Writes of at most [`PIPE_BUF`] bytes go in whole or not at all.
//!
//! Readers are notified of every write (edge-triggered pollers count on it), writers when the first slot becomes free: a write
//! that did not fit has found none, so that is the moment it can go on.
//!
//! Lock order: the ring's lock is the innermost; wait queues are woken after it is released.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::any::Any;

use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_rt::{Mutex, WaitQueue};

use crate::caller::Caller;
use crate::file::{Events, File, OpenFile, flags, request};
use crate::vfs::{Attr, FileKind, SetAttr};

/// Writes up to this size are atomic (limits.h).
pub const PIPE_BUF: usize = 4096;
/// Bytes a new pipe holds.
pub const DEFAULT_CAPACITY: usize = 64 * 1024;
/// Most a process without privilege may ask for (/proc/sys/fs/pipe-max-size).
pub const MAX_CAPACITY: usize = 1024 * 1024;

/// A growing ring of bytes.
#[derive(Default)]
struct Ring {
    bytes: Vec<u8>,
    head: usize,
    len: usize,
}

impl Ring {
    /// Makes room for `want` bytes in all.
    fn reserve(&mut self, want: usize) {
        if want <= self.bytes.len() {
            return;
        }
        let mut bigger = vec![0; want.next_power_of_two().max(PIPE_BUF)];
        let (first, second) = self.readable(self.len);
        bigger[..first.len()].copy_from_slice(first);
        bigger[first.len()..first.len() + second.len()].copy_from_slice(second);
        self.bytes = bigger;
        self.head = 0;
    }

    /// The first `len` bytes held, in at most two pieces.
    fn readable(&self, len: usize) -> (&[u8], &[u8]) {
        let len = len.min(self.len);
        let first = len.min(self.bytes.len() - self.head);
        (&self.bytes[self.head..self.head + first], &self.bytes[..len - first])
    }

    fn consume(&mut self, len: usize) {
        self.len -= len;
        self.head = if self.len == 0 { 0 } else { (self.head + len) % self.bytes.len() };
    }

    /// Fills up to `len` bytes of free room (reserved before) through `fill`, piece by piece: how many. An error counts only
    /// when nothing was stored.
    fn append(&mut self, len: usize, mut fill: impl FnMut(&mut [u8]) -> Result<usize>) -> Result<usize> {
        let size = self.bytes.len();
        let mut stored = 0;
        while stored < len {
            let start = (self.head + self.len) % size;
            let piece = (len - stored).min(size - start);
            match fill(&mut self.bytes[start..start + piece]) {
                Ok(n) => {
                    self.len += n;
                    stored += n;
                    if n < piece {
                        break;
                    }
                }
                Err(errno) if stored == 0 => return Err(errno),
                Err(_) => break,
            }
        }
        Ok(stored)
    }

    /// Puts bytes back at the front.
    fn prepend(&mut self, bytes: &[u8]) {
        self.reserve(self.len + bytes.len());
        let size = self.bytes.len();
        self.head = (self.head + size - bytes.len()) % size;
        let first = bytes.len().min(size - self.head);
        self.bytes[self.head..self.head + first].copy_from_slice(&bytes[..first]);
        self.bytes[..bytes.len() - first].copy_from_slice(&bytes[first..]);
        self.len += bytes.len();
    }
}

/// A page's worth of the capacity and what is in it.
#[derive(Clone, Copy)]
struct Slot {
    /// Bytes ever put in, those read already included.
    filled: u16,
    /// Bytes still to be read, at least one.
    left: u16,
    kind: SlotKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SlotKind {
    /// Part of a stream; later writes may be added.
    Open,
    /// Part of a stream; complete.
    Closed,
    /// A packet (O_DIRECT): one read takes it, and drops what it has no room for.
    Packet,
}

struct State {
    ring: Ring,
    slots: VecDeque<Slot>,
    /// Slots there may be: the capacity in [`PIPE_BUF`]s.
    most: usize,
    readers: usize,
    writers: usize,
    /// Ends ever opened, for opens that wait for a peer and for HUP, which is about writers there once were.
    readers_ever: u64,
    writers_ever: u64,
}

impl State {
    fn is_full(&self) -> bool {
        self.slots.len() >= self.most
    }

    /// Bytes of whole slots that are free.
    fn room(&self) -> usize {
        self.most.saturating_sub(self.slots.len()) * PIPE_BUF
    }

    /// Bytes the last slot can take when `odd` are to be added to it: all of them or none.
    fn joins(&self, odd: usize) -> usize {
        match self.slots.back() {
            Some(last) if last.kind == SlotKind::Open && usize::from(last.filled) + odd <= PIPE_BUF => odd,
            _ => 0,
        }
    }

    /// Notes `stored` new bytes of the ring, the first `joined` of them in the last slot.
    fn account(&mut self, stored: usize, joined: usize, kind: SlotKind) {
        let joined = joined.min(stored);
        if let Some(last) = self.slots.back_mut()
            && joined > 0
        {
            last.filled += joined as u16;
            last.left += joined as u16;
        }
        let mut left = stored - joined;
        while left > 0 {
            let len = left.min(PIPE_BUF) as u16;
            self.slots.push_back(Slot { filled: len, left: len, kind });
            left -= usize::from(len);
        }
    }

    /// Takes `len` bytes out of the first slot, which has as many.
    fn consume(&mut self, len: usize) {
        self.ring.consume(len);
        if let Some(first) = self.slots.front_mut() {
            first.left -= len as u16;
            if first.left == 0 {
                self.slots.pop_front();
            }
        }
    }
}

/// What both ends of a pipe, or all openers of a FIFO, share.
pub struct Pipe {
    state: Mutex<State>,
    /// Readers wait here for bytes, writers for room; opens wait for the other side's arrival on their own side's queue.
    readable: WaitQueue,
    writable: WaitQueue,
    /// Attributes of an anonymous pipe; a FIFO's are its inode's.
    attr: Mutex<Attr>,
}

impl Pipe {
    /// A pipe without ends. `attr` is what fstat(2) returns for an anonymous one.
    pub fn new(attr: Attr) -> Arc<Pipe> {
        Arc::new(Pipe {
            state: Mutex::new(State {
                ring: Ring::default(),
                slots: VecDeque::new(),
                most: DEFAULT_CAPACITY / PIPE_BUF,
                readers: 0,
                writers: 0,
                readers_ever: 0,
                writers_ever: 0,
            }),
            readable: WaitQueue::new(),
            writable: WaitQueue::new(),
            attr: Mutex::new(attr),
        })
    }

    /// The two ends of a new anonymous pipe with this inode number and owner, made `now` (nanoseconds since 1970).
    pub fn pair(ino: u64, uid: u32, gid: u32, now: i64) -> (PipeEnd, PipeEnd) {
        let attr = Attr {
            dev: PIPE_DEV,
            ino,
            mode: FileKind::Fifo as u32 | 0o600,
            nlink: 1,
            uid,
            gid,
            blksize: PIPE_BUF as u32,
            atime: now,
            mtime: now,
            ctime: now,
            btime: now,
            ..Attr::default()
        };
        let pipe = Pipe::new(attr);
        (pipe.end(true, false, true), pipe.end(false, true, true))
    }

    /// An end of a FIFO opened with these flags; the caller then waits until [`PipeEnd::peer_arrived`] unless the open is
    /// non-blocking. ENXIO for a non-blocking writer without a reader.
    pub fn open(self: &Arc<Pipe>, open_flags: u32) -> Result<PipeEnd> {
        let (read, write) = match open_flags & flags::O_ACCMODE {
            flags::O_RDONLY => (true, false),
            flags::O_WRONLY => (false, true),
            _ => (true, true),
        };
        if write && !read && open_flags & flags::O_NONBLOCK != 0 && self.state.lock().readers == 0 {
            return Err(Errno::ENXIO);
        }
        Ok(self.end(read, write, false))
    }

    fn end(self: &Arc<Pipe>, read: bool, write: bool, anonymous: bool) -> PipeEnd {
        let mut state = self.state.lock();
        // Whether the other side is there is decided here: it may be gone again before the open is over.
        let (peers, peers_ever) = if read { (state.writers, state.writers_ever) } else { (state.readers, state.readers_ever) };
        let seen = (!anonymous && peers == 0 && !(read && write)).then_some(peers_ever);
        if read {
            state.readers += 1;
            state.readers_ever += 1;
        }
        if write {
            state.writers += 1;
            state.writers_ever += 1;
        }
        drop(state);
        if !anonymous {
            self.readable.wake_all();
            self.writable.wake_all();
        }
        PipeEnd { pipe: self.clone(), read, write, seen }
    }

    fn try_read(&self, buf: &mut ReadBuf<'_>) -> Result<usize> {
        if buf.left() == 0 {
            return Ok(0);
        }
        let mut state = self.state.lock();
        if state.ring.len == 0 {
            return if state.writers == 0 { Ok(0) } else { Err(Errno::EAGAIN) };
        }
        let was_full = state.is_full();
        let mut moved = 0;
        while let Some(first) = state.slots.front().copied() {
            let want = usize::from(first.left).min(buf.left());
            if want == 0 {
                break;
            }
            let (front, back) = state.ring.readable(want);
            // A slot is taken whole, or as far as it was asked for; what meets a fault stays.
            if let Err(errno) = buf.put_whole(front).and_then(|_| buf.put_whole(back)) {
                if moved == 0 {
                    return Err(errno);
                }
                break;
            }
            let packet = first.kind == SlotKind::Packet;
            state.consume(if packet { usize::from(first.left) } else { want });
            moved += want;
            if packet {
                break;
            }
        }
        let freed = was_full && !state.is_full();
        drop(state);
        if freed {
            self.writable.wake(Events::OUT.bits() | Events::WRNORM.bits());
        }
        Ok(moved)
    }

    fn try_write(&self, buf: &mut WriteBuf<'_>, packets: bool) -> Result<usize> {
        let want = buf.left();
        if want == 0 {
            return Ok(0);
        }
        let mut state = self.state.lock();
        if state.readers == 0 {
            return Err(Errno::EPIPE);
        }
        let joined = state.joins(want % PIPE_BUF);
        let len = want.min(joined + state.room());
        if len == 0 || (want <= PIPE_BUF && len < want) {
            return Err(Errno::EAGAIN);
        }
        let held = state.ring.len;
        state.ring.reserve(held + len);
        let mut stored = state.ring.append(len, |piece| buf.get(piece))?;
        if stored < len {
            // What joins a slot does so whole, and a new slot is one only once it is complete.
            let whole = stored.checked_sub(joined).map_or(0, |rest| joined + rest / PIPE_BUF * PIPE_BUF);
            state.ring.len -= stored - whole;
            stored = whole;
            if stored == 0 {
                return Err(Errno::EFAULT);
            }
        }
        state.account(stored, joined, if packets { SlotKind::Packet } else { SlotKind::Open });
        drop(state);
        self.readable.wake(Events::IN.bits() | Events::RDNORM.bits());
        Ok(stored)
    }

    /// Adds bytes beyond the capacity if need be, for who asked for room before and cannot put them back (splice). EPIPE.
    pub fn push(&self, bytes: &[u8]) -> Result<()> {
        let mut state = self.state.lock();
        if state.readers == 0 {
            return Err(Errno::EPIPE);
        }
        let held = state.ring.len;
        state.ring.reserve(held + bytes.len());
        let mut at = 0;
        state.ring.append(bytes.len(), |piece| {
            piece.copy_from_slice(&bytes[at..at + piece.len()]);
            at += piece.len();
            Ok(piece.len())
        })?;
        state.account(bytes.len(), 0, SlotKind::Closed);
        drop(state);
        self.readable.wake(Events::IN.bits() | Events::RDNORM.bits());
        Ok(())
    }

    /// Takes up to `out.len()` bytes: how many, 0 at the end. EAGAIN.
    pub fn take(&self, out: &mut [u8]) -> Result<usize> {
        self.try_read(&mut ReadBuf::kernel(out))
    }

    /// Bytes that can be added now. EPIPE without a reader, EAGAIN when full.
    pub fn room_or_wait(&self) -> Result<usize> {
        let state = self.state.lock();
        match state.room() {
            _ if state.readers == 0 => Err(Errno::EPIPE),
            0 => Err(Errno::EAGAIN),
            room => Ok(room),
        }
    }

    /// Puts back bytes that were read but could not be passed on (splice), before all others.
    pub fn unread(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        state.ring.prepend(bytes);
        for piece in bytes.rchunks(PIPE_BUF) {
            let len = piece.len() as u16;
            state.slots.push_front(Slot { filled: len, left: len, kind: SlotKind::Closed });
        }
        drop(state);
        self.readable.wake(Events::IN.bits() | Events::RDNORM.bits());
    }

    /// Copies the first bytes without taking them (tee): how many. EAGAIN when empty with writers about.
    pub fn peek(&self, out: &mut [u8]) -> Result<usize> {
        let state = self.state.lock();
        if state.ring.len == 0 {
            return if state.writers == 0 { Ok(0) } else { Err(Errno::EAGAIN) };
        }
        let (first, second) = state.ring.readable(out.len());
        out[..first.len()].copy_from_slice(first);
        out[first.len()..first.len() + second.len()].copy_from_slice(second);
        Ok(first.len() + second.len())
    }

    /// Bytes held.
    pub fn held(&self) -> usize {
        self.state.lock().ring.len
    }

    /// Announces room.
    pub fn writable(&self) -> &WaitQueue {
        &self.writable
    }

    /// F_GETPIPE_SZ.
    pub fn capacity(&self) -> usize {
        self.state.lock().most * PIPE_BUF
    }

    /// F_SETPIPE_SZ: the capacity got, a power of two of at least a page. EBUSY when more is held, EPERM above
    /// `most` (/proc/sys/fs/pipe-max-size) without `privileged`, EINVAL for more than 2 GiB.
    pub fn set_capacity(&self, want: usize, most: usize, privileged: bool) -> Result<usize> {
        if want > 1 << 31 {
            return Err(Errno::EINVAL);
        }
        let new = want.next_power_of_two().max(PIPE_BUF);
        let mut state = self.state.lock();
        if new > most && new / PIPE_BUF > state.most && !privileged {
            return Err(Errno::EPERM);
        }
        // What root may ask for is bounded all the same: it is kernel memory.
        if new > 16 * MAX_CAPACITY {
            return Err(Errno::ENOMEM);
        }
        if state.slots.len() > new / PIPE_BUF {
            return Err(Errno::EBUSY);
        }
        let was_full = state.is_full();
        state.most = new / PIPE_BUF;
        let freed = was_full && !state.is_full();
        drop(state);
        if freed {
            self.writable.wake(Events::OUT.bits() | Events::WRNORM.bits());
        }
        Ok(new)
    }
}

/// `st_dev` of anonymous pipes: a device number without a device.
const PIPE_DEV: u64 = 14;

/// An end of a pipe, or of both directions for a FIFO opened O_RDWR.
pub struct PipeEnd {
    pub pipe: Arc<Pipe>,
    read: bool,
    write: bool,
    /// Peers ever opened when this end of a FIFO was, if there was none just then: a reader reports HUP only once a writer has come since.
    seen: Option<u64>,
}

impl PipeEnd {
    /// Whether there is, or has been since this end was opened, somebody on the other side (fifo(7)).
    pub fn peer_arrived(&self) -> bool {
        let Some(seen) = self.seen else { return true };
        let state = self.pipe.state.lock();
        seen != if self.read { state.writers_ever } else { state.readers_ever }
    }

    pub fn reads(&self) -> bool {
        self.read
    }

    pub fn writes(&self) -> bool {
        self.write
    }

    /// Announces arrivals.
    pub fn arrivals(&self) -> &WaitQueue {
        if self.read { &self.pipe.readable } else { &self.pipe.writable }
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        let mut state = self.pipe.state.lock();
        state.readers -= usize::from(self.read);
        state.writers -= usize::from(self.write);
        let (readers, writers) = (state.readers, state.writers);
        if readers == 0 && writers == 0 {
            // A FIFO outlives its openers; what they left does not.
            state.ring = Ring::default();
            state.slots.clear();
        }
        drop(state);
        if self.write && writers == 0 {
            self.pipe.readable.wake_all();
        }
        if self.read && readers == 0 {
            self.pipe.writable.wake_all();
        }
    }
}

impl File for PipeEnd {
    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut ReadBuf<'_>, _offset: u64) -> Result<usize> {
        self.pipe.try_read(buf)
    }

    fn write(&self, file: &OpenFile, _caller: &dyn Caller, buf: &mut WriteBuf<'_>, _offset: u64) -> Result<usize> {
        self.pipe.try_write(buf, file.flags() & flags::O_DIRECT != 0)
    }

    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, table: Option<&mut PollTable>) -> Events {
        if let Some(table) = table {
            if self.read {
                table.add(&self.pipe.readable);
            }
            if self.write {
                table.add(&self.pipe.writable);
            }
        }
        let state = self.pipe.state.lock();
        let mut events = Events::empty();
        if self.read {
            if state.ring.len > 0 {
                events |= Events::IN | Events::RDNORM;
            }
            if state.writers == 0 && self.seen != Some(state.writers_ever) {
                events |= Events::HUP;
            }
        }
        if self.write {
            if !state.is_full() {
                events |= Events::OUT | Events::WRNORM;
            }
            if state.readers == 0 {
                events |= Events::ERR;
            }
        }
        events
    }

    fn streams(&self) -> bool {
        true
    }

    fn announces(&self) -> bool {
        true
    }

    fn ioctl(&self, _file: &OpenFile, caller: &dyn Caller, request: u32, arg: usize) -> Result<usize> {
        match request {
            request::FIONREAD => {
                let held = i32::try_from(self.pipe.held()).unwrap_or(i32::MAX);
                UserPtr::<i32>::new(arg).write(caller.user(), &held)?;
                Ok(0)
            }
            _ => Err(Errno::ENOTTY),
        }
    }

    fn reopen(&self, _file: &OpenFile, _caller: &dyn Caller, open_flags: u32) -> Result<Arc<dyn File>> {
        // Only pipes without a name are opened this way, and those wait for nobody (fifo(7) is about named ones).
        let access = open_flags & flags::O_ACCMODE;
        Ok(Arc::new(self.pipe.end(access != flags::O_WRONLY, access != flags::O_RDONLY, true)))
    }

    fn attr(&self) -> Result<Attr> {
        Ok(*self.pipe.attr.lock())
    }

    fn set_attr(&self, change: &SetAttr) -> Result<()> {
        change.apply(&mut self.pipe.attr.lock());
        Ok(())
    }

    fn label(&self) -> String {
        format!("pipe:[{}]", self.pipe.attr.lock().ino)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (PipeEnd, PipeEnd) {
        Pipe::pair(1, 0, 0, 0)
    }

    fn write(end: &PipeEnd, bytes: &[u8], packets: bool) -> Result<usize> {
        end.pipe.try_write(&mut WriteBuf::kernel(bytes), packets)
    }

    fn read(end: &PipeEnd, most: usize) -> Result<Vec<u8>> {
        let mut out = vec![0; most];
        let n = end.pipe.try_read(&mut ReadBuf::kernel(&mut out))?;
        out.truncate(n);
        Ok(out)
    }

    #[test]
    fn bytes_keep_their_order_round_the_ring() {
        let (reader, writer) = pair();
        let mut next_in = 0u8;
        let mut next_out = 0u8;
        for step in 1..400usize {
            let chunk: Vec<u8> = (0..step * 7 % 3000).map(|at| next_in.wrapping_add(at as u8)).collect();
            next_in = next_in.wrapping_add(chunk.len() as u8);
            if !chunk.is_empty() {
                assert_eq!(write(&writer, &chunk, false), Ok(chunk.len()));
            }
            while reader.pipe.held() > 2000 {
                for byte in read(&reader, 1777).unwrap() {
                    assert_eq!(byte, next_out);
                    next_out = next_out.wrapping_add(1);
                }
            }
        }
    }

    #[test]
    fn small_writes_are_atomic_and_large_ones_partial() {
        let (reader, writer) = pair();
        assert_eq!(write(&writer, &[1; DEFAULT_CAPACITY - 100], false), Ok(DEFAULT_CAPACITY - 100));
        assert_eq!(write(&writer, &[2; 101], false), Err(Errno::EAGAIN));
        assert_eq!(write(&writer, &[2; 100], false), Ok(100), "the last slot has room for these");
        assert_eq!(read(&reader, PIPE_BUF).unwrap().len(), PIPE_BUF);
        assert_eq!(write(&writer, &[2; PIPE_BUF + 1], false), Ok(PIPE_BUF));
        assert_eq!(write(&writer, &[2; PIPE_BUF + 1], false), Err(Errno::EAGAIN));
        assert_eq!(reader.pipe.set_capacity(4096, MAX_CAPACITY, false), Err(Errno::EBUSY));
        assert_eq!(reader.pipe.set_capacity(65537, MAX_CAPACITY, false), Ok(131072));
        assert_eq!(write(&writer, &[2; 101], false), Ok(101));
    }

    #[test]
    fn single_bytes_fill_the_whole_capacity() {
        let (reader, writer) = pair();
        for _ in 0..DEFAULT_CAPACITY {
            assert_eq!(write(&writer, b"x", false), Ok(1));
        }
        assert_eq!(write(&writer, b"x", false), Err(Errno::EAGAIN));
        assert_eq!(read(&reader, PIPE_BUF - 1).unwrap().len(), PIPE_BUF - 1);
        assert_eq!(write(&writer, b"x", false), Err(Errno::EAGAIN), "no whole slot is free");
        assert_eq!(read(&reader, 1).unwrap().len(), 1);
        assert_eq!(write(&writer, b"x", false), Ok(1));
    }

    #[test]
    fn packets_are_read_one_at_a_time_and_cut() {
        let (reader, writer) = pair();
        assert_eq!(write(&writer, b"first packet", true), Ok(12));
        assert_eq!(write(&writer, b"second", true), Ok(6));
        assert_eq!(write(&writer, b"stream", false), Ok(6));
        assert_eq!(read(&reader, 5).unwrap(), b"first");
        assert_eq!(read(&reader, 100).unwrap(), b"second");
        assert_eq!(read(&reader, 100).unwrap(), b"stream");
        assert_eq!(read(&reader, 100), Err(Errno::EAGAIN));
    }

    #[test]
    fn ends_going_is_end_of_file_and_broken_pipe() {
        let (reader, writer) = pair();
        assert_eq!(write(&writer, b"x", false), Ok(1));
        drop(writer);
        assert_eq!(read(&reader, 9).unwrap(), b"x");
        assert_eq!(read(&reader, 9).unwrap(), b"");
        let (reader, writer) = pair();
        drop(reader);
        assert_eq!(write(&writer, b"x", false), Err(Errno::EPIPE));
    }

    #[test]
    fn a_fifo_writer_needs_a_reader() {
        let fifo = Pipe::new(Attr::default());
        assert_eq!(fifo.open(flags::O_WRONLY | flags::O_NONBLOCK).err(), Some(Errno::ENXIO));
        let reader = fifo.open(flags::O_RDONLY | flags::O_NONBLOCK).unwrap();
        assert!(!reader.peer_arrived());
        let writer = fifo.open(flags::O_WRONLY | flags::O_NONBLOCK).unwrap();
        let late = fifo.open(flags::O_RDONLY).unwrap();
        assert!(reader.peer_arrived() && writer.peer_arrived());
        drop(writer);
        assert!(reader.peer_arrived() && late.peer_arrived(), "a writer that came and went has been there");
    }

    #[test]
    fn what_is_put_back_comes_first() {
        let (reader, writer) = pair();
        assert_eq!(write(&writer, b"abcdef", false), Ok(6));
        assert_eq!(read(&reader, 4).unwrap(), b"abcd");
        reader.pipe.unread(b"cd");
        assert_eq!(read(&reader, 10).unwrap(), b"cdef");
    }
}
