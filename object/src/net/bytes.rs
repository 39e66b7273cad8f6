//! The byte queue of a stream socket.
//!
//! Bytes are kept in blocks. A large write fills a block of its own before the queue is locked, a small one goes straight to the end
//! of the last block; a reader takes whole blocks out and copies from them with only the readers' lock held. So a byte is copied
//! once in and once out, and the lock that both sides take is never held across a copy of more than [`SMALL`] bytes. Drained
//! blocks go back to the writer: a busy queue allocates nothing.
//!
//! Lock order: `reader`, then `shared`. `held` is raised while `shared` is locked, before the bytes can be seen, and lowered
//! after they have been copied out: it never falls below what is there.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::WriteBuf;
use janua_rt::Mutex;

/// Writes up to this size are joined to the block before them.
const SMALL: usize = 4096;
/// Bytes of a large block.
const LARGE: usize = 64 * 1024;
/// Bytes of the smallest block.
const LEAST: usize = 2048;
/// Bytes that one write moves at most: a caller with more looks between whether it is to go on.
const MOST: usize = 1024 * 1024;

/// What may hang on a stretch of bytes (descriptors and credentials on AF_UNIX). Stretches with a note share no block.
pub trait Note: Clone + Send {
    /// What the first reader of the stretch gets; what is left is for readers of its rest.
    fn take(&mut self) -> Self;

    /// What hangs on the further blocks of a write whose first block bears this note.
    fn rest(&self) -> Option<Self>;

    /// Whether a read that got this note takes nothing from behind its stretch.
    fn ends_read(&self) -> bool;
}

impl Note for () {
    fn take(&mut self) {}

    fn rest(&self) -> Option<()> {
        None
    }

    fn ends_read(&self) -> bool {
        false
    }
}

struct Block<N> {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    note: Option<N>,
}

impl<N> Block<N> {
    fn new(bytes: Box<[u8]>, note: Option<N>) -> Block<N> {
        Block { bytes, start: 0, end: 0, note }
    }

    fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }
}

struct Shared<N> {
    blocks: VecDeque<Block<N>>,
    spare: Option<Box<[u8]>>,
}

impl<N> Shared<N> {
    /// Memory for a block of at least `len` bytes, if it is ready.
    fn take_spare(&mut self, len: usize) -> Option<Box<[u8]>> {
        self.spare.take_if(|spare| spare.len() >= len)
    }

    fn give_spare(&mut self, bytes: Box<[u8]>) {
        if self.spare.as_ref().is_none_or(|spare| spare.len() < bytes.len()) {
            self.spare = Some(bytes);
        }
    }
}

/// A queue of bytes with one lock for each side.
pub struct ByteQueue<N> {
    reader: Mutex<Option<Block<N>>>,
    shared: Mutex<Shared<N>>,
    held: AtomicUsize,
}

impl<N: Note> Default for ByteQueue<N> {
    fn default() -> Self {
        ByteQueue {
            reader: Mutex::new(None),
            shared: Mutex::new(Shared { blocks: VecDeque::new(), spare: None }),
            held: AtomicUsize::new(0),
        }
    }
}

/// Memory for a block. ENOBUFS.
fn memory(len: usize) -> Result<Box<[u8]>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| Errno::ENOBUFS)?;
    bytes.resize(len, 0);
    Ok(bytes.into_boxed_slice())
}

impl<N: Note> ByteQueue<N> {
    /// Bytes in the queue.
    pub fn len(&self) -> usize {
        self.held.load(Ordering::SeqCst)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Moves bytes from `buf` into the queue until that holds `limit`, [`MOST`] at most: how many. EAGAIN when it already does; EFAULT;
    /// ENOBUFS. Writers that race may overshoot the limit by what each of them moves at once.
    pub fn write(&self, buf: &mut WriteBuf<'_>, limit: usize, mut note: Option<N>) -> Result<usize> {
        let want = buf.left().min(limit.saturating_sub(self.len())).min(MOST);
        if want == 0 {
            return if buf.left() == 0 { Ok(0) } else { Err(Errno::EAGAIN) };
        }
        let mut moved = 0;
        while moved < want {
            let piece = (want - moved).min(LARGE);
            let stored = if piece <= SMALL { self.append(buf, piece, &mut note) } else { self.push(buf, piece, &mut note) };
            match stored {
                Ok(n) => {
                    moved += n;
                    if n < piece {
                        break;
                    }
                }
                Err(errno) if moved == 0 => return Err(errno),
                Err(_) => break,
            }
        }
        Ok(moved)
    }

    /// A small write: behind the last byte if there is room, with the queue locked.
    fn append(&self, buf: &mut WriteBuf<'_>, len: usize, note: &mut Option<N>) -> Result<usize> {
        let mut shared = self.shared.lock();
        let fits = note.is_none()
            && shared.blocks.back().is_some_and(|last| last.note.is_none() && last.bytes.len() - last.end >= len);
        if !fits {
            let bytes = match shared.take_spare(len) {
                Some(bytes) => bytes,
                None => memory((len * 2).next_power_of_two().max(LEAST))?,
            };
            shared.blocks.push_back(Block::new(bytes, note.clone()));
        }
        let Some(last) = shared.blocks.back_mut() else { return Ok(0) };
        let stored = buf.get(&mut last.bytes[last.end..last.end + len]);
        match stored {
            Ok(n) => {
                last.end += n;
                if !fits {
                    *note = note.as_ref().and_then(N::rest);
                }
                self.held.fetch_add(n, Ordering::SeqCst);
                Ok(n)
            }
            Err(errno) => {
                if !fits && let Some(empty) = shared.blocks.pop_back() {
                    shared.give_spare(empty.bytes);
                }
                Err(errno)
            }
        }
    }

    /// A large write: into a block of its own, which is then handed over.
    fn push(&self, buf: &mut WriteBuf<'_>, len: usize, note: &mut Option<N>) -> Result<usize> {
        let spare = self.shared.lock().take_spare(len);
        let mut bytes = spare.map_or_else(|| memory(LARGE), Ok)?;
        let n = buf.get(&mut bytes[..len])?;
        let rest = note.as_ref().and_then(N::rest);
        let mut block = Block::new(bytes, core::mem::replace(note, rest));
        block.end = n;
        let mut shared = self.shared.lock();
        shared.blocks.push_back(block);
        self.held.fetch_add(n, Ordering::SeqCst);
        Ok(n)
    }

    /// Takes up to `most` bytes out through `sink`, which returns how many it took: how many in all, and the last note that
    /// hangs on them. A read stops behind a note that ends it, and before a stretch whose note `joins` does not accept after
    /// the one before it. 0 when the queue is empty; an error of `sink` counts only when nothing was taken.
    pub fn read(
        &self,
        most: usize,
        joins: impl Fn(Option<&N>, Option<&N>) -> bool,
        mut sink: impl FnMut(&[u8]) -> Result<usize>,
    ) -> Result<(usize, Option<N>)> {
        let mut reader = self.reader.lock();
        let mut moved = 0;
        let mut note: Option<N> = None;
        while moved < most && !note.as_ref().is_some_and(N::ends_read) {
            if reader.as_ref().is_none_or(|block| block.start == block.end) {
                let mut shared = self.shared.lock();
                if moved > 0 && shared.blocks.front().is_some_and(|next| !joins(note.as_ref(), next.note.as_ref())) {
                    break;
                }
                if let Some(drained) = reader.as_mut() {
                    // Of one that `consume` has emptied here.
                    drained.note = None;
                }
                let Some(next) = shared.blocks.pop_front() else { break };
                if let Some(drained) = reader.replace(next) {
                    shared.give_spare(drained.bytes);
                }
            }
            let Some(block) = reader.as_mut() else { break };
            if block.start == block.end {
                // Emptied by `consume`.
                block.note = None;
                continue;
            }
            let piece = (most - moved).min(block.end - block.start);
            let n = match sink(&block.unread()[..piece]) {
                Ok(n) => n,
                Err(errno) if moved == 0 => return Err(errno),
                Err(_) => break,
            };
            if let Some(held) = &mut block.note {
                note = Some(held.take());
            }
            block.start += n;
            moved += n;
            if block.start == block.end {
                block.note = None;
            }
            if n < piece {
                break;
            }
        }
        self.held.fetch_sub(moved, Ordering::SeqCst);
        Ok((moved, note))
    }

    /// Like [`Self::read`], but the bytes stay; `skip` bytes are passed over first.
    pub fn peek(
        &self,
        mut skip: usize,
        most: usize,
        joins: impl Fn(Option<&N>, Option<&N>) -> bool,
        mut sink: impl FnMut(&[u8]) -> Result<usize>,
    ) -> Result<(usize, Option<N>)> {
        let reader = self.reader.lock();
        let shared = self.shared.lock();
        let mut moved = 0;
        let mut note: Option<N> = None;
        for block in reader.iter().chain(&shared.blocks) {
            let unread = block.unread();
            if unread.is_empty() {
                if moved > 0 && block.note.is_some() && !joins(note.as_ref(), block.note.as_ref()) {
                    break;
                }
                continue;
            }
            if skip >= unread.len() {
                skip -= unread.len();
                continue;
            }
            let ended = note.as_ref().is_some_and(N::ends_read);
            if moved == most || ended || (moved > 0 && !joins(note.as_ref(), block.note.as_ref())) {
                break;
            }
            let unread = &unread[skip..];
            skip = 0;
            let piece = (most - moved).min(unread.len());
            let n = match sink(&unread[..piece]) {
                Ok(n) => n,
                Err(errno) if moved == 0 => return Err(errno),
                Err(_) => break,
            };
            note = block.note.clone().or(note);
            moved += n;
            if n < piece {
                break;
            }
        }
        Ok((moved, note))
    }

    /// Empties the stretch whose note is `this`: what a reader would get of its note, to be dropped without a lock held. The rest of the
    /// note stays where it is until it is read past.
    pub fn consume(&self, this: impl Fn(&N) -> bool) -> Option<N> {
        let mut reader = self.reader.lock();
        let mut shared = self.shared.lock();
        let mut blocks = reader.iter_mut().chain(&mut shared.blocks);
        let block = blocks.find(|block| block.note.as_ref().is_some_and(&this))?;
        self.held.fetch_sub(block.end - block.start, Ordering::SeqCst);
        block.start = block.end;
        block.note.as_mut().map(N::take)
    }

    /// Whether the first stretch has a note that is `this`; emptied ones before it do not count.
    pub fn front(&self, this: impl Fn(&N) -> bool) -> bool {
        let reader = self.reader.lock();
        let shared = self.shared.lock();
        for block in reader.iter().chain(&shared.blocks) {
            let found = block.note.as_ref().is_some_and(&this);
            if found || block.start < block.end {
                return found;
            }
        }
        false
    }

    /// Shows every note in the queue.
    pub fn each_note(&self, mut see: impl FnMut(&N)) {
        let reader = self.reader.lock();
        let shared = self.shared.lock();
        reader.iter().chain(&shared.blocks).filter_map(|block| block.note.as_ref()).for_each(&mut see);
    }

    /// Empties the queue and gives its memory back: the bytes that were lost. Notes are dropped without a lock held.
    pub fn clear(&self) -> usize {
        let mut reader = self.reader.lock();
        let mut shared = self.shared.lock();
        let first = reader.take();
        let rest = core::mem::take(&mut shared.blocks);
        shared.spare = None;
        let lost = first.iter().chain(&rest).map(|block| block.end - block.start).sum();
        self.held.fetch_sub(lost, Ordering::SeqCst);
        drop(shared);
        drop(reader);
        drop((first, rest));
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[derive(Clone, Debug, PartialEq)]
    struct Tag(u32);
    impl Note for Tag {
        fn take(&mut self) -> Tag {
            core::mem::replace(self, Tag(0))
        }

        fn rest(&self) -> Option<Tag> {
            Some(Tag(0))
        }

        fn ends_read(&self) -> bool {
            self.0 != 0
        }
    }

    fn write(queue: &ByteQueue<Tag>, bytes: &[u8], limit: usize, note: Option<u32>) -> Result<usize> {
        queue.write(&mut WriteBuf::kernel(bytes), limit, note.map(Tag))
    }

    fn read(queue: &ByteQueue<Tag>, most: usize) -> (Vec<u8>, Option<u32>) {
        let mut out = Vec::new();
        let (n, note) = queue
            .read(
                most,
                |_, _| true,
                |bytes| {
                    out.extend_from_slice(bytes);
                    Ok(bytes.len())
                },
            )
            .unwrap();
        assert_eq!(n, out.len());
        (out, note.map(|tag| tag.0))
    }

    #[test]
    fn bytes_come_out_in_order_whatever_the_pieces() {
        let queue = ByteQueue::default();
        let data: Vec<u8> = (0..300_000u32).map(|n| (n * 7 + n / 251) as u8).collect();
        let mut out = Vec::new();
        let mut at = 0;
        for (turn, size) in [1usize, 5000, 100, 70_000, 4096, 4097, 1, 131_072, 2048].iter().cycle().enumerate() {
            if at == data.len() {
                break;
            }
            let end = (at + size).min(data.len());
            while at < end {
                match write(&queue, &data[at..end], 100_000, None) {
                    Ok(n) => at += n,
                    Err(errno) => {
                        assert_eq!(errno, Errno::EAGAIN);
                        out.extend(read(&queue, 30_000).0);
                    }
                }
            }
            if turn % 3 == 0 {
                out.extend(read(&queue, 777).0);
            }
        }
        out.extend(read(&queue, usize::MAX).0);
        assert_eq!(out, data);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn a_full_queue_answers_eagain_and_takes_what_fits() {
        let queue = ByteQueue::default();
        assert_eq!(write(&queue, &[1; 100], 60, None), Ok(60));
        assert_eq!(write(&queue, &[2; 1], 60, None), Err(Errno::EAGAIN));
        assert_eq!(read(&queue, 10).0.len(), 10);
        assert_eq!(write(&queue, &[2; 100], 60, None), Ok(10));
        assert_eq!(queue.clear(), 60);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_read_stops_behind_a_note_that_is_delivered_once() {
        let queue = ByteQueue::default();
        write(&queue, b"ab", 1000, None).unwrap();
        write(&queue, b"cd", 1000, Some(7)).unwrap();
        write(&queue, b"ef", 1000, None).unwrap();
        let peek = |skip| queue.peek(skip, 100, |_, _| true, |b| Ok(b.len())).unwrap();
        assert_eq!(peek(0), (4, Some(Tag(7))));
        assert_eq!(peek(4), (2, None));
        assert_eq!(read(&queue, 3), (b"abc".to_vec(), Some(7)));
        assert_eq!(read(&queue, 100), (b"def".to_vec(), Some(0)));
        write(&queue, b"gh", 1000, Some(8)).unwrap();
        write(&queue, b"ij", 1000, Some(9)).unwrap();
        assert_eq!(read(&queue, 100), (b"gh".to_vec(), Some(8)));
        assert_eq!(read(&queue, 100), (b"ij".to_vec(), Some(9)));
    }

    #[test]
    fn stretches_that_do_not_join_are_read_apart() {
        let queue = ByteQueue::default();
        for (bytes, note) in [(b"ab", None), (b"cd", None), (b"ef", Some(0)), (b"gh", Some(0))] {
            write(&queue, bytes, 1000, note).unwrap();
        }
        let apart = |one: Option<&Tag>, next: Option<&Tag>| one.is_some() == next.is_some();
        assert_eq!(queue.peek(0, 100, apart, |b| Ok(b.len())).unwrap(), (4, None));
        assert_eq!(queue.read(100, apart, |b| Ok(b.len())).unwrap(), (4, None));
        assert_eq!(queue.read(100, apart, |b| Ok(b.len())).unwrap(), (4, Some(Tag(0))));
    }

    /// A note with a mark that stays when it is taken.
    #[derive(Clone, Debug, PartialEq)]
    struct Mark(u32, Option<&'static str>);
    impl Note for Mark {
        fn take(&mut self) -> Mark {
            Mark(self.0, self.1.take())
        }

        fn rest(&self) -> Option<Mark> {
            Some(Mark(self.0, None))
        }

        fn ends_read(&self) -> bool {
            self.1.is_some()
        }
    }

    #[test]
    fn a_stretch_that_was_emptied_keeps_its_place() {
        let queue = ByteQueue::default();
        let write = |bytes: &[u8], note| queue.write(&mut WriteBuf::kernel(bytes), 1000, note).unwrap();
        write(b"ab", None);
        write(b"cd", Some(Mark(3, Some("rights"))));
        write(b"ef", None);
        assert_eq!(queue.consume(|note| note.0 == 3), Some(Mark(3, Some("rights"))));
        assert_eq!((queue.consume(|note| note.0 == 4), queue.len()), (None, 4));
        let to_mark = |_: Option<&Mark>, next: Option<&Mark>| next.is_none_or(|next| next.0 != 3);
        assert_eq!(queue.peek(0, 100, to_mark, |b| Ok(b.len())).unwrap().0, 2);
        assert!(!queue.front(|note| note.0 == 3));
        assert_eq!(queue.read(100, to_mark, |b| Ok(b.len())).unwrap().0, 2);
        assert!(queue.front(|note| note.0 == 3));
        assert_eq!(queue.peek(0, 100, to_mark, |b| Ok(b.len())).unwrap().0, 2);
        assert_eq!(queue.read(100, |_, _| true, |b| Ok(b.len())).unwrap(), (2, None));
        write(b"g", Some(Mark(5, None)));
        assert_eq!(queue.read(100, to_mark, |_| Err(Errno::EAGAIN)), Err(Errno::EAGAIN));
        assert_eq!((queue.consume(|note| note.0 == 5), queue.front(|note| note.0 == 5)), (Some(Mark(5, None)), true));
        assert_eq!(queue.read(100, |_, _| true, |b| Ok(b.len())).unwrap(), (0, None));
        assert!(!queue.front(|note| note.0 == 5 || note.0 == 3) && queue.is_empty());
    }

    #[test]
    fn every_block_of_a_large_write_bears_a_note() {
        let queue = ByteQueue::default();
        write(&queue, &[1; LARGE + 5], usize::MAX, Some(7)).unwrap();
        assert_eq!(read(&queue, usize::MAX), (alloc::vec![1; LARGE], Some(7)));
        assert_eq!(read(&queue, usize::MAX), (alloc::vec![1; 5], Some(0)));
    }
}
