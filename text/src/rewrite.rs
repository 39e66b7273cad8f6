//! Rewriting the code of a whole file.
//!
//! The trampolines of a file are right below its lowest segment, so that their distance from the code is the same wherever the
//! file is loaded and the rewritten pages can be shared by all processes.

use alloc::vec::Vec;

use janua_abi::linux::mman::PAGE_SIZE;

use crate::elf::{Layout, Segment};
use crate::frames;
use crate::sites::{self, Found, Refusal, Site};
use crate::trampoline::{self, Patch};

/// A page, bytes.
const PAGE: u64 = PAGE_SIZE as u64;
/// No trampoline is larger than this.
const LARGEST: u64 = 96;

/// How many sites a file has, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub rewritten: u32,
    /// By [`Refusal`].
    pub refused: [u32; Refusal::COUNT],
}

impl Count {
    /// All call sites.
    pub fn found(&self) -> u32 {
        self.rewritten + self.refused.iter().sum::<u32>()
    }
}

/// A file whose code has been rewritten.
#[derive(Debug)]
pub struct Rewritten {
    /// Whole pages that belong right below the file's lowest segment.
    pub trampolines: Vec<u8>,
    /// By trampoline. Addresses are the file's own.
    pub patches: Vec<Patch>,
    pub count: Count,
}

/// Rewrites the call sites in the code of a file: `code` are the segments of `layout.code`, in that order, each with its
/// bytes from the first on. `entry` is the address the trampolines enter the kernel at; `read` reads the file as [`frames::Read`]. `None`
/// when nothing was rewritten; then the bytes are as they were.
pub fn rewrite(
    layout: &Layout,
    code: &mut [(Segment, &mut [u8])],
    entry: u64,
    read: &mut frames::Read,
) -> (Count, Option<Rewritten>) {
    let mut count = Count::default();
    let mut search = |(segment, bytes): &(Segment, &mut [u8])| {
        let mut found = sites::find(bytes);
        found.take_returns(|site| frames::is_signal_frame(layout, segment.vaddr.wrapping_add(site.start as u64), &mut *read));
        found
    };
    let mut found: Vec<Found> = code.iter().map(&mut search).collect();
    for found in &found {
        for (sum, refused) in count.refused.iter_mut().zip(found.refused) {
            *sum += refused;
        }
    }
    let total: usize = found.iter().map(|found| found.sites.len()).sum();
    let room = (total as u64 * LARGEST).next_multiple_of(PAGE);
    if total == 0 {
        return (count, None);
    }
    // Sizes do not depend on addresses, so a first writing reports how many pages there will be.
    let mut size = 0;
    for ((segment, bytes), found) in code.iter().zip(&mut found) {
        let mut scratch = Vec::new();
        found.sites.retain(|site: &Site| {
            scratch.clear();
            let built = trampoline::build(bytes, segment.vaddr, site, layout.low.wrapping_sub(room), entry, &mut scratch);
            match built {
                Ok(_) => size += scratch.len(),
                Err(refusal) => count.refused[refusal as usize] += 1,
            }
            built.is_ok()
        });
    }
    let pages = (size as u64).next_multiple_of(PAGE);
    // A file that is at 0 until it is loaded has them at the very end: addresses wrap.
    let first = layout.low.wrapping_sub(pages);
    let mut trampolines = Vec::with_capacity(pages as usize);
    let mut patches = Vec::with_capacity(total);
    for ((segment, bytes), found) in code.iter_mut().zip(&found) {
        for site in &found.sites {
            let at = first.wrapping_add(trampolines.len() as u64);
            match trampoline::build(bytes, segment.vaddr, site, at, entry, &mut trampolines) {
                Ok(patch) => patches.push(patch),
                Err(refusal) => count.refused[refusal as usize] += 1,
            }
        }
        // All are built before the first byte changes.
        for patch in patches.iter().filter(|patch| patch.start.wrapping_sub(segment.vaddr) < segment.len) {
            let at = (patch.start - segment.vaddr) as usize;
            if let (Some(jump), Some(place)) = (patch.jump(), bytes.get_mut(at..at + sites::JUMP)) {
                place.copy_from_slice(&jump);
            }
        }
    }
    count.rewritten = patches.len() as u32;
    if patches.is_empty() {
        return (count, None);
    }
    trampolines.resize(pages as usize, 0xcc);
    (count, Some(Rewritten { trampolines, patches, count }))
}
