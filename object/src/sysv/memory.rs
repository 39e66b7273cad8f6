//! The memory of shared memory segments: pieces of a few memory objects.
//!
//! An object for each segment would cost a descriptor of the host for each, of which all programs together have no more than one process
//! of the host may have. So most segments have a range of an object that they share. A range is used once: what is mapped of it by a process
//! that is just ending can never be another segment's. Behind its end are others, so no mapping goes that far ([`Piece::end_of`]).

use alloc::sync::Arc;
use core::any::Any;
use core::sync::atomic::Ordering;

use janua_abi::linux::fcntl::falloc::{KEEP_SIZE, PUNCH_HOLE};
use janua_abi::linux::{Errno, Result};
use janua_kernel::view::View;
use janua_port::{Backing, Machine, MemoryObject};
use janua_rt::{AtomicU64, Mutex};

use crate::caller::{Caller, Cred};
use crate::coverage::{Charge, Coverage, PAGE};
use crate::file::File;
use crate::vfs::{Attr, FileKind, Inode, Vfs};

/// Bytes of a segment that has an object of its own.
const ALONE: u64 = 64 << 20;
/// Bytes of an object that segments share.
const SHARED: u64 = 32 << 30;
/// Runs of pages that are counted one by one; what is behind them counts as if it were there.
const RUNS: usize = 256;

/// Where the pieces come from.
pub struct Pool {
    machine: &'static dyn Machine,
    dev: u64,
    next_ino: AtomicU64,
    /// The object from which pieces are taken, and where the next one begins.
    open: Mutex<Option<(Arc<dyn MemoryObject>, u64)>>,
    /// An object without contents.
    void: Mutex<Option<Arc<dyn MemoryObject>>>,
}

impl Pool {
    pub fn new(vfs: &Vfs) -> Arc<Pool> {
        Arc::new(Pool {
            machine: vfs.machine,
            dev: vfs.new_dev(),
            next_ino: AtomicU64::new(1),
            open: Mutex::new(None),
            void: Mutex::new(None),
        })
    }

    fn object(&self) -> Result<Arc<dyn MemoryObject>> {
        self.machine.memory_object("janua-segments")
    }

    /// An object with a range of `size` bytes, a multiple of the page size, in which nothing has been yet.
    fn range(&self, size: u64) -> Result<(Arc<dyn MemoryObject>, u64)> {
        if size >= ALONE {
            let object = self.object()?;
            object.truncate(size)?;
            return Ok((object, 0));
        }
        let mut open = self.open.lock();
        let (object, next) = match &*open {
            Some((object, next)) if next + size <= SHARED => (object.clone(), *next),
            _ => (self.object()?, 0),
        };
        object.truncate(next + size)?;
        *open = Some((object.clone(), next + size));
        Ok((object, next))
    }

    /// Memory of `size` bytes, a multiple of the page size, which counts as it is mapped. ENFILE, ENOMEM; ENODEV as [`Machine::memory_object`].
    pub fn piece(self: &Arc<Pool>, size: u64, mode: u32, cred: &Cred) -> Result<Arc<Piece>> {
        let (object, base) = self.range(size)?;
        Ok(Arc::new(Piece {
            pool: self.clone(),
            object,
            base,
            size,
            ino: self.next_ino.fetch_add(1, Ordering::Relaxed),
            mode,
            uid: cred.euid,
            gid: cred.egid,
            used: Mutex::new((Coverage::default(), Charge::none(self.machine))),
        }))
    }

    /// Every access to a mapping of it is a SIGBUS.
    fn void(&self) -> Result<Arc<dyn MemoryObject>> {
        let mut void = self.void.lock();
        match &*void {
            Some(object) => Ok(object.clone()),
            None => Ok(void.insert(self.object()?).clone()),
        }
    }
}

/// The memory of a segment.
pub struct Piece {
    pool: Arc<Pool>,
    object: Arc<dyn MemoryObject>,
    /// Where in the object it begins, and its bytes.
    base: u64,
    size: u64,
    ino: u64,
    mode: u32,
    uid: u32,
    gid: u32,
    /// The pages that are there or may come to be, and what they cost.
    used: Mutex<(Coverage, Charge)>,
}

impl Piece {
    /// All of it is about to be used: it counts from now on. ENOMEM.
    pub fn reserve(&self) -> Result<()> {
        self.count(0, self.size)
    }

    fn count(&self, from: u64, to: u64) -> Result<()> {
        let (coverage, charge) = &mut *self.used.lock();
        charge.take(coverage.to_map(from, to, self.size) * PAGE)?;
        coverage.map(from, to);
        Ok(())
    }

    /// Where the object ends that is mapped from `offset` on ([`File::end_of_object`]).
    pub fn end_of(&self, offset: u64) -> u64 {
        if offset < self.size { self.size } else { u64::MAX }
    }

    /// What a mapping is made of. EINVAL for one that goes beyond [`Piece::end_of`].
    pub fn backing(&self, offset: u64, len: usize, shared: bool) -> Result<Backing> {
        let end = offset.checked_add(len as u64).filter(|end| *end <= self.end_of(offset)).ok_or(Errno::EINVAL)?;
        if offset >= self.size {
            return Ok(Backing::Object { object: self.pool.void()?, offset: 0, shared, frozen: false });
        }
        self.count(offset, end)?;
        Ok(Backing::Object { object: self.object.clone(), offset: self.base + offset, shared, frozen: false })
    }

    /// The object it is a part of, and where in it it begins.
    pub fn contents(&self) -> (&dyn MemoryObject, u64) {
        (&*self.object, self.base)
    }

    /// All of it, as the kernel looks at it.
    pub fn view(&self) -> View {
        View::new(self.object.clone(), self.base, self.size as usize)
    }

    /// Bytes of it in memory.
    pub fn resident(&self) -> u64 {
        let end = self.base + self.size;
        let seek = |at: u64, hole| self.object.seek(at, hole).map_or(end, |found| found.min(end));
        let (mut at, mut bytes) = (self.base, 0);
        for _ in 0..RUNS {
            let data = seek(at, false);
            at = seek(data, true);
            bytes += at - data;
            if at >= end {
                return bytes;
            }
        }
        bytes + (end - at)
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // Of an object of its own nothing is left in any case.
        if self.size < ALONE {
            let _ = self.object.allocate(PUNCH_HOLE | KEEP_SIZE, self.base, self.size);
        }
    }
}

impl Inode for Piece {
    fn kind(&self) -> FileKind {
        FileKind::Regular
    }

    fn attr(&self) -> Result<Attr> {
        Ok(Attr {
            dev: self.pool.dev,
            ino: self.ino,
            mode: FileKind::Regular as u32 | self.mode,
            uid: self.uid,
            gid: self.gid,
            size: self.size,
            blksize: PAGE as u32,
            blocks: self.resident() / 512,
            ..Attr::default()
        })
    }

    fn id(&self) -> Option<(u64, u64)> {
        Some((self.pool.dev, self.ino))
    }

    fn open(self: Arc<Self>, _caller: &dyn Caller, _flags: u32) -> Result<Arc<dyn File>> {
        // Nobody has a name for it.
        Err(Errno::EACCES)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
