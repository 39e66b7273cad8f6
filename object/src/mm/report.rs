//! What /proc shows of an address space.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use super::vma::{Source, VmFlags};
use super::{Mm, Vma};
use crate::file::OpenFile;

/// What the last column of /proc/self/maps shows.
#[derive(Clone)]
pub enum Label {
    None,
    /// A file: its path, or its label when it has none.
    File(Arc<OpenFile>),
    /// A fixed name: `[heap]`, `[stack]`, `[vdso]`, `/dev/zero (deleted)`.
    Fixed(&'static str),
    /// PR_SET_VMA_ANON_NAME: shown as `[anon:name]`.
    Named(Arc<[u8]>),
}

/// A line of /proc/self/maps.
#[derive(Clone)]
pub struct Region {
    pub start: usize,
    pub end: usize,
    pub flags: VmFlags,
    pub offset: u64,
    pub dev: u64,
    pub ino: u64,
    pub label: Label,
}

impl Region {
    /// The permissions column: "rw-p".
    pub fn perms(&self) -> [u8; 4] {
        let bit = |flag, letter| if self.flags.contains(flag) { letter } else { b'-' };
        [
            bit(VmFlags::READ, b'r'),
            bit(VmFlags::WRITE, b'w'),
            bit(VmFlags::EXEC, b'x'),
            if self.flags.contains(VmFlags::SHARED) { b's' } else { b'p' },
        ]
    }
}

/// Sizes in bytes, for /proc/self/status and statm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    pub total: usize,
    /// The most that `total` has been.
    pub peak: usize,
    pub locked: usize,
    /// Private writable mappings.
    pub data: usize,
    pub stack: usize,
    /// Executable mappings of the program itself.
    pub text: usize,
    /// Other executable file mappings.
    pub lib: usize,
    pub shared: usize,
}

impl Mm {
    /// The mappings in order, as they are at this moment.
    pub fn regions(&self) -> Vec<Region> {
        let mut all = Vec::new();
        self.each_region(0, |region| {
            all.push(region);
            ControlFlow::Continue(())
        });
        all
    }

    /// Shows the mappings that end behind `from`, in order, as long as `see` wants more.
    pub fn each_region(&self, from: usize, mut see: impl FnMut(Region) -> ControlFlow<()>) {
        let start_stack = self.image.read().start_stack;
        let state = self.lock_state();
        for (start, vma) in state.list.touching(from, usize::MAX) {
            let region = Region {
                start,
                end: vma.end,
                flags: vma.flags,
                offset: vma.offset_of(start, start),
                dev: vma.dev,
                ino: vma.ino,
                label: label(start, vma, start_stack, (state.brk_start, state.brk)),
            };
            if see(region).is_break() {
                break;
            }
        }
    }

    /// The mapping that holds `addr`, for fault reports.
    pub fn region_of(&self, addr: usize) -> Option<(usize, Vma)> {
        self.lock_state().list.find(addr).map(|(start, vma)| (start, vma.clone()))
    }

    pub fn sizes(&self) -> Sizes {
        let image = self.image.read();
        let (start_stack, code) = (image.start_stack, (image.start_code, image.end_code));
        drop(image);
        let state = self.lock_state();
        let mut sizes = Sizes { peak: state.list.peak(), ..Sizes::default() };
        for (start, vma) in state.list.iter() {
            let len = vma.end - start;
            sizes.total += len;
            if vma.flags.contains(VmFlags::LOCKED) {
                sizes.locked += len;
            }
            if (start..vma.end).contains(&start_stack) {
                sizes.stack += len;
            } else if vma.is_data() {
                sizes.data += len;
            }
            if vma.flags.contains(VmFlags::EXEC) && vma.file().is_some() {
                if start < code.1 && vma.end > code.0 {
                    sizes.text += len;
                } else {
                    sizes.lib += len;
                }
            }
            if vma.is_shared() {
                sizes.shared += len;
            }
        }
        sizes
    }

    /// The heap: where it starts and the break.
    pub fn heap(&self) -> (usize, usize) {
        let state = self.lock_state();
        (state.brk_start, state.brk)
    }
}

fn label(start: usize, vma: &Vma, start_stack: usize, (brk_start, brk): (usize, usize)) -> Label {
    match &vma.source {
        Source::File(mapped) => Label::File(mapped.file.clone()),
        Source::Special(name) => Label::Fixed(name),
        Source::Anon(Some(name)) => Label::Named(name.clone()),
        Source::Anon(None) if vma.is_shared() => Label::Fixed("/dev/zero (deleted)"),
        Source::Anon(None) if (start..vma.end).contains(&start_stack) => Label::Fixed("[stack]"),
        Source::Anon(None) if brk > brk_start && start < brk && vma.end > brk_start => Label::Fixed("[heap]"),
        Source::Anon(None) => Label::None,
    }
}
