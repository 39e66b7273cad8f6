//! One mapping of an address space.

use alloc::sync::Arc;

use bitflags::bitflags;
use janua_abi::linux::{Errno, Result};
use janua_port::{Backing, Prot, Space};

use crate::coverage::Charge;
use crate::file::OpenFile;

bitflags! {
    /// State of a mapping; the values are those `/proc/self/smaps` abbreviates (VM_* in Linux' include/linux/mm.h).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct VmFlags: u32 {
        const READ = 0x1;
        const WRITE = 0x2;
        const EXEC = 0x4;
        const SHARED = 0x8;
        /// mprotect may give these.
        const MAY_READ = 0x10;
        const MAY_WRITE = 0x20;
        const MAY_EXEC = 0x40;
        /// A fault just below extends the mapping (MAP_GROWSDOWN).
        const GROWSDOWN = 0x100;
        const LOCKED = 0x2000;
        const SEQ_READ = 0x8000;
        const RAND_READ = 0x1_0000;
        /// Not copied to a child of fork.
        const DONTFORK = 0x2_0000;
        const DONTEXPAND = 0x4_0000;
        const LOCKONFAULT = 0x8_0000;
        /// Has, or had, private pages that may be written: they count as memory in use (VM_ACCOUNT).
        const CHARGED = 0x10_0000;
        const NORESERVE = 0x20_0000;
        /// Zero-filled in a child of fork.
        const WIPEONFORK = 0x200_0000;
        const DONTDUMP = 0x400_0000;
        /// What the jail has, or may have, in place of these pages ([`super::jail::Instead`]); no flags of Linux.
        const JAIL = 0x1800_0000;
        const HUGEPAGE = 0x2000_0000;
        const NOHUGEPAGE = 0x4000_0000;
        const MERGEABLE = 0x8000_0000;
        const ACCESS = 0x7;
        const MAY_ALL = 0x70;
    }
}

impl VmFlags {
    /// The access rights as the machine takes them.
    pub fn prot(self) -> Prot {
        Prot { read: self.contains(VmFlags::READ), write: self.contains(VmFlags::WRITE), exec: self.contains(VmFlags::EXEC) }
    }

    /// With [`VmFlags::CHARGED`] if these are the flags of a mapping that can have pages of its own.
    pub(super) fn with_charge(self) -> VmFlags {
        if self & (VmFlags::WRITE | VmFlags::SHARED) == VmFlags::WRITE { self | VmFlags::CHARGED } else { self }
    }

    /// Replaces the access rights.
    pub fn with_prot(self, prot: Prot) -> VmFlags {
        let mut flags = self - VmFlags::ACCESS;
        flags.set(VmFlags::READ, prot.read);
        flags.set(VmFlags::WRITE, prot.write);
        flags.set(VmFlags::EXEC, prot.exec);
        flags
    }
}

/// A file under a mapping. When this goes, the file is notified that the mapping is gone.
pub struct MappedFile {
    pub file: Arc<OpenFile>,
    /// What [`crate::file::File::mapping_made`] was called with, if it was.
    reported: Option<bool>,
    /// [`crate::file::File::counts_pieces`].
    pieces: bool,
}

impl MappedFile {
    /// A file about to be mapped. `writable`: shared, and may be written now or later. EPERM.
    pub(super) fn new(file: &Arc<OpenFile>, writable: bool) -> Result<MappedFile> {
        let reported = (writable || file.ops.counts_mappings()).then_some(writable);
        if let Some(writable) = reported {
            file.ops.mapping_made(writable)?;
        }
        Ok(MappedFile { file: file.clone(), reported, pieces: file.ops.counts_pieces() })
    }

    /// The same for a copy of the address space; `None` when the file does not care.
    pub(super) fn copy(&self) -> Option<MappedFile> {
        if self.file.ops.counts_mappings() { MappedFile::new(&self.file, self.reported?).ok() } else { None }
    }

    /// The same for a piece that is cut off a mapping; `None` when all pieces count as one.
    pub(super) fn piece(&self) -> Option<MappedFile> {
        if self.pieces { self.copy() } else { None }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        if let Some(writable) = self.reported {
            self.file.ops.mapping_gone(writable);
        }
    }
}

/// What is under a mapping.
#[derive(Clone)]
pub enum Source {
    /// Zero pages: private, or an object of its own when the mapping is shared. The name is PR_SET_VMA_ANON_NAME's.
    Anon(Option<Arc<[u8]>>),
    File(Arc<MappedFile>),
    /// Put there by the machine, with the name maps shows.
    Special(&'static str),
}

/// A mapping; its start is its key in the list.
#[derive(Clone)]
pub struct Vma {
    /// First address behind it.
    pub end: usize,
    pub flags: VmFlags,
    pub source: Source,
    /// Bytes into the file or the shared object at the start.
    pub offset: u64,
    /// Identity of the file or the shared object: device and inode; zeros for private anonymous memory.
    pub dev: u64,
    pub ino: u64,
    /// What shared anonymous memory has been charged for: all mappings of it hold the same.
    pub charge: Option<Arc<Charge>>,
}

impl Vma {
    /// The upper part of this mapping, which starts at `start`, from `addr` on.
    pub(super) fn upper(&self, start: usize, addr: usize) -> Vma {
        let mut upper = Vma { offset: self.offset_of(start, addr), ..self.clone() };
        if let Source::File(mapped) = &self.source
            && let Some(piece) = mapped.piece()
        {
            upper.source = Source::File(Arc::new(piece));
        }
        upper
    }

    pub fn is_shared(&self) -> bool {
        self.flags.contains(VmFlags::SHARED)
    }

    pub fn is_special(&self) -> bool {
        matches!(self.source, Source::Special(_))
    }

    pub fn is_anon(&self) -> bool {
        matches!(self.source, Source::Anon(_))
    }

    /// Private, writable, not a stack: what RLIMIT_DATA counts.
    pub fn is_data(&self) -> bool {
        self.flags & (VmFlags::WRITE | VmFlags::SHARED | VmFlags::GROWSDOWN) == VmFlags::WRITE
    }

    pub fn file(&self) -> Option<&Arc<OpenFile>> {
        match &self.source {
            Source::File(mapped) => Some(&mapped.file),
            _ => None,
        }
    }

    /// The offset of `addr` in the file or shared object.
    pub fn offset_of(&self, start: usize, addr: usize) -> u64 {
        if self.counts_offset() { self.offset.wrapping_add((addr - start) as u64) } else { 0 }
    }

    fn counts_offset(&self) -> bool {
        !matches!(self.source, Source::Anon(_)) || self.is_shared()
    }

    /// Whether `next`, which starts where this one (starting at `start`) ends, is a continuation of it.
    pub(super) fn continues(&self, start: usize, next: &Vma) -> bool {
        let same_source = match (&self.source, &next.source) {
            (Source::Anon(a), Source::Anon(b)) => a == b,
            (Source::File(a), Source::File(b)) => Arc::ptr_eq(&a.file, &b.file) && !a.pieces,
            _ => false,
        };
        same_source
            && self.flags == next.flags
            && !self.flags.contains(VmFlags::GROWSDOWN)
            && (self.dev, self.ino) == (next.dev, next.ino)
            && self.offset_of(start, self.end) == next.offset_of(self.end, self.end)
    }

    /// Maps `len` bytes at `offset` of this source, of whatever objects they are. Where one cannot be mapped, none is.
    pub(super) fn map_at(&self, space: &dyn Space, addr: usize, offset: u64, len: usize) -> Result<()> {
        let mut done = 0;
        while done < len {
            let at = offset + done as u64;
            let end = self.file().map_or(u64::MAX, |file| file.ops.end_of_object(at));
            let part = (len - done).min(usize::try_from(end - at).unwrap_or(usize::MAX));
            let mapped = self.backing(at, part).and_then(|backing| space.map(addr + done, part, self.flags.prot(), &backing));
            if let Err(errno) = mapped {
                if done > 0 {
                    let _ = space.unmap(addr, done);
                }
                return Err(errno);
            }
            done += part;
        }
        Ok(())
    }

    /// What the machine needs to map `len` bytes at `offset` of this source. Shared anonymous memory has no second mapping.
    pub fn backing(&self, offset: u64, len: usize) -> Result<Backing> {
        match &self.source {
            Source::File(mapped) => mapped.file.ops.backing(&mapped.file, offset, len, self.is_shared()),
            Source::Anon(_) if !self.is_shared() => Ok(Backing::Anon),
            _ => Err(Errno::EINVAL),
        }
    }
}
