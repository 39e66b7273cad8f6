//! Reads that a module makes, whose bytes it brings into the program's memory together.
//!
//! A module may reach that memory by copies alone, each of which is a call of a host's. So the bytes of reads that are submitted one after the other, of regular files at an offset,
//! are collected in memory of the kernel's, and copied by one step when they are many, when something else is to be done for the ring, or at the turn's end. Until then
//! those reads are under way: they have no completions, and nothing that comes after them is begun.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use janua_abi::linux::Errno;
use janua_abi::linux::uring::{Sqe, op, setup, sqe};
use janua_object::OpenFile;
use janua_object::vfs::FileKind;
use janua_object::vfs::watch::event;

use super::op::Reply;
use super::ops;
use super::turn::Turn;

/// Most reads that are held, and bytes of one and of all.
const MOST: usize = 64;
const MOST_OF_ONE: usize = 32 << 10;
const MOST_BYTES: usize = 128 << 10;

/// A read whose bytes are there.
struct Read {
    sqe: Sqe,
    file: Arc<OpenFile>,
    /// Where they begin, and how many they are.
    at: usize,
    len: usize,
}

/// Reads of a turn, and their bytes.
#[derive(Default)]
pub struct Held {
    /// There are some: all that most operations look at.
    any: Cell<bool>,
    reads: RefCell<Vec<Read>>,
    bytes: RefCell<Vec<u8>>,
}

impl Turn<'_> {
    /// Makes a read as far as it needs no memory of the program's, and holds it. False for another operation, and for one that comes to an error.
    pub fn hold(&self, sqe: &Sqe, file: &Arc<OpenFile>) -> bool {
        let len = sqe.len as usize;
        let plain = matches!(sqe.opcode, op::READ | op::READ_FIXED) && sqe.flags & sqe::BUFFER_SELECT == 0 && sqe.op_flags == 0;
        let regular = || file.inode().is_some_and(|inode| inode.kind() == FileKind::Regular);
        if !plain || len > MOST_OF_ONE || self.ring.shape.has(setup::IOPOLL) || !self.issuer.is_away() || !regular() {
            return false;
        }
        let used = self.held.reads.borrow().last().map_or(0, |last| last.at + last.len);
        if used + len > MOST_BYTES || self.held.reads.borrow().len() == MOST {
            self.bring();
            return self.hold(sqe, file);
        }
        let mut bytes = self.held.bytes.borrow_mut();
        if bytes.is_empty() {
            *bytes = self.issuer.lend_bytes();
        }
        if bytes.len() < used + len {
            bytes.resize(used + len, 0);
        }
        let Some(len) = ops::read_apart(self, sqe, file, &mut bytes[used..used + len]) else { return false };
        self.held.reads.borrow_mut().push(Read { sqe: *sqe, file: file.clone(), at: used, len });
        self.held.any.set(true);
        true
    }

    /// Copies what is held to the program, and completes the reads.
    #[inline]
    pub fn bring(&self) {
        if self.held.any.get() {
            self.bring_all();
        }
    }

    #[cold]
    fn bring_all(&self) {
        self.held.any.set(false);
        let reads = self.held.reads.take();
        let mut next = 0;
        while let Some((first, left)) = reads.get(next).map(|first| (first, &reads[next..])) {
            let user = self.issuer.double.user();
            let bytes = self.held.bytes.borrow();
            let part = |read: &Read| (read.sqe.addr as usize, &bytes[read.at..read.at + read.len]);
            let mut copied = user.copy_out_some(&left.iter().map(part).collect::<Vec<_>>());
            if copied < first.len {
                // It cannot be copied as a whole: by itself, as far as it goes.
                let (addr, data) = part(first);
                copied += user.copy_out_partial(addr + copied, &data[copied..]);
                drop(bytes);
                self.brought(first, copied.min(first.len));
                next += 1;
                continue;
            }
            drop(bytes);
            for read in left {
                let Some(rest) = copied.checked_sub(read.len) else { break };
                copied = rest;
                self.brought(read, read.len);
                next += 1;
            }
        }
    }

    fn brought(&self, read: &Read, done: usize) {
        let result = if done == 0 && read.len > 0 { Err(Errno::EFAULT) } else { Ok(done) };
        if done > 0 {
            read.file.notify(event::ACCESS);
        }
        self.over_at_once(&read.sqe, Reply::transfer(result, read.sqe.len as usize));
    }

    /// By the turn's end: the memory is the next one's.
    pub fn leave_bytes(&self) {
        let bytes = self.held.bytes.take();
        if !bytes.is_empty() {
            self.issuer.take_bytes(bytes);
        }
    }
}
