//! The memory that a ring shares with programs.
//!
//! The kernel reads and writes it where the calling process has it mapped, if that is in place; who looks into it for the program, by a window
//! of its own; and through the memory object it is a part of otherwise. Where it is mapped is looked up each time: a program may have put something else there.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_kernel::view::View;
use janua_object::sysv::memory::Piece;
use janua_object::{File, OpenFile};
use janua_port::user::Window;
use janua_port::{Backing, PAGE, UserMemory};

use crate::Thread;
use crate::thread::ThreadExt;

/// A part of the memory that is mapped by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// Counts and completions, and which submission is next.
    Rings,
    Submissions,
}

/// The memory, and where it was mapped last.
pub struct Shared {
    piece: Arc<Piece>,
    /// Bytes of the first region; the second is behind it.
    first: usize,
    /// Bytes in all.
    len: usize,
    /// What offset each region is mapped at, and where it was last; 0 for nowhere.
    offsets: [u64; 2],
    places: [AtomicUsize; 2],
    /// Words that the kernel writes have eight bytes for themselves, which can be written in one step from anywhere.
    wide: bool,
    /// All of it, for who looks into it again and again.
    view: Option<View>,
}

impl Shared {
    /// Memory of two regions of so many bytes, both multiples of the page size, mapped at these offsets. `watched`: the kernel looks into it by itself.
    pub fn new(piece: Arc<Piece>, lens: [usize; 2], offsets: [u64; 2], wide: bool, watched: bool) -> Shared {
        Shared {
            view: watched.then(|| piece.view()),
            piece,
            first: lens[0],
            len: lens[0] + lens[1],
            offsets,
            places: [AtomicUsize::new(0), AtomicUsize::new(0)],
            wide,
        }
    }

    /// What a mapping of a region's is made of. EINVAL for one that is longer than it.
    pub fn backing(&self, region: Region, len: usize, shared: bool) -> Result<Backing> {
        let (start, size) = self.range(region);
        if len > size {
            return Err(Errno::EINVAL);
        }
        self.piece.backing(start as u64, len, shared)
    }

    /// A region has been mapped.
    pub fn mapped(&self, region: Region, addr: usize) {
        self.places[region as usize].store(addr, Ordering::Relaxed);
    }

    /// Where a region begins, and its bytes.
    fn range(&self, region: Region) -> (usize, usize) {
        match region {
            Region::Rings => (0, self.first),
            Region::Submissions => (self.first, self.len - self.first),
        }
    }

    /// The memory as a thread reaches it; `file` is what it is the memory of.
    pub fn access<'a>(&'a self, thread: &'a Thread, file: *const ()) -> Access<'a> {
        let mut access = self.from_anywhere();
        let user = thread.user();
        if user.in_place()
            && let Some(mm) = thread.process().mm()
        {
            let is = |open: &OpenFile| core::ptr::from_ref::<dyn File>(&*open.ops).cast::<()>() == file;
            for region in [Region::Rings, Region::Submissions] {
                let (at, len) = (self.places[region as usize].load(Ordering::Relaxed), self.range(region).1);
                if at != 0 && mm.shows(at, len, self.offsets[region as usize], is) {
                    access.at[region as usize] = at;
                }
            }
            access.user = Some(user);
        }
        access
    }

    /// The same for who is no thread of a program's.
    pub fn from_anywhere(&self) -> Access<'_> {
        let window = self.view.as_ref().and_then(|view| view.here());
        Access { shared: self, window, user: None, at: [0; 2] }
    }
}

/// The memory as somebody reaches it.
pub struct Access<'a> {
    shared: &'a Shared,
    /// All of it at addresses from 0 on, where there is such a window.
    window: Option<&'a dyn UserMemory>,
    user: Option<&'a dyn UserMemory>,
    /// Where each region is in that one's memory; 0 for nowhere.
    at: [usize; 2],
}

impl Access<'_> {
    /// Where it can be reached in place.
    fn place(&self, region: Region, offset: usize) -> Option<(&dyn UserMemory, usize)> {
        let at = self.at[region as usize];
        match self.user.filter(|_| at != 0) {
            Some(user) => Some((user, at + offset)),
            None => Some((self.window?, self.shared.range(region).0 + offset)),
        }
    }

    fn object(&self, region: Region, offset: usize) -> (&dyn janua_port::MemoryObject, u64) {
        let (object, base) = self.shared.piece.contents();
        (object, base + (self.shared.range(region).0 + offset) as u64)
    }

    /// An aligned word of the first region's.
    pub fn load(&self, offset: usize) -> u32 {
        if let Some((user, addr)) = self.place(Region::Rings, offset)
            && let Ok(word) = user.load_u32(addr)
        {
            return word;
        }
        let mut word = [0; 4];
        self.read_object(Region::Rings, offset, &mut word);
        u32::from_ne_bytes(word)
    }

    /// Stores an aligned word of the first region's, in one step: who reads it finds what was written before.
    pub fn store(&self, offset: usize, value: u32) {
        // A program that keeps changing it has the word as it likes.
        const TRIES: u32 = 16;
        if let Some((user, addr)) = self.place(Region::Rings, offset) {
            let mut old = user.load_u32(addr);
            for _ in 0..TRIES {
                let Ok(expected) = old else { break };
                match user.cmpxchg_u32(addr, expected, value) {
                    Ok(found) if found == expected => return,
                    found => old = found,
                }
            }
        }
        let cell = u64::from(value).to_ne_bytes();
        self.write_object(Region::Rings, offset, if self.shared.wide { &cell } else { &cell[..4] });
    }

    pub fn read(&self, region: Region, offset: usize, out: &mut [u8]) {
        match self.place(region, offset) {
            Some((user, addr)) if user.copy_in(out, addr).is_ok() => {}
            _ => self.read_object(region, offset, out),
        }
    }

    pub fn write(&self, region: Region, offset: usize, data: &[u8]) {
        match self.place(region, offset) {
            Some((user, addr)) if user.copy_out(addr, data).is_ok() => {}
            _ => self.write_object(region, offset, data),
        }
    }

    fn read_object(&self, region: Region, offset: usize, out: &mut [u8]) {
        let (object, at) = self.object(region, offset);
        // It is all there: what cannot be read is a machine's failure, and reads as nothing.
        if object.read(at, out) != Ok(out.len()) {
            out.fill(0);
        }
    }

    fn write_object(&self, region: Region, offset: usize, data: &[u8]) {
        let (object, at) = self.object(region, offset);
        // As above: then the program does not learn of it.
        let _ = object.write(at, data);
    }
}

/// Bytes in whole pages.
pub const fn pages(bytes: usize) -> usize {
    bytes.next_multiple_of(PAGE)
}
