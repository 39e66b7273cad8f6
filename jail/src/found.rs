//! What has been found in files' code, so that nothing is looked at twice. [`super::guard::CodeGuard`] asks here before it scans.
//!
//! Files of the host's are known by their identity and the range that was mapped. Objects the kernel has made itself
//! ([`super::image`]) are scanned before they are written, and what would have to be overwritten in every process' mapping
//! is overwritten in the object: their pages are then the same for all, no process has copies of its own, and a fork has no page tables
//! of theirs to copy.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::linux::{Errno, Result};
use janua_object::fs::objectio;
use janua_port::{Machine, MemoryObject};
use janua_rt::Mutex;
use janua_text::patch_out;
use janua_text::scan::{self, CONTEXT, Hit};

use crate::guard::PatchedOut;

/// Most results of scans kept; they are small, and a sandbox uses few files as programs.
const SCANNED_MOST: usize = 4096;
/// Most pages of files with an instruction overwritten.
const PATCHED_MOST: usize = 1024;

/// What a kernel has found.
#[derive(Default)]
pub struct Found {
    /// Scan results of files that do not change: hits by offset in the range.
    scanned: Mutex<BTreeMap<Range, Arc<[Hit]>>>,
    /// The kernel's own objects, by address, for as long as they live.
    made: Mutex<BTreeMap<usize, Arc<Made>>>,
    patched: Mutex<Patched>,
}

/// Pages of files with an instruction overwritten, one after the other in an object of the kernel's: where in it, by contents.
#[derive(Default)]
struct Patched {
    object: Option<Arc<dyn MemoryObject>>,
    places: BTreeMap<Box<[u8]>, u64>,
}

impl Found {
    /// Where an object of the kernel's has a page with these contents. Mapped in place of a file's own page it leaves the mapping
    /// around it without a page of its process' own, so that a fork has no page tables of it to copy, and is the same for all.
    pub fn patched(&self, machine: &'static dyn Machine, page: &[u8]) -> Result<(Arc<dyn MemoryObject>, u64)> {
        let mut patched = self.patched.lock();
        let object = match &patched.object {
            Some(object) => object.clone(),
            None => patched.object.insert(machine.memory_object("janua-patched")?).clone(),
        };
        if let Some(&place) = patched.places.get(page) {
            return Ok((object, place));
        }
        if patched.places.len() >= PATCHED_MOST {
            return Err(Errno::ENOSPC);
        }
        let place = (patched.places.len() * page.len()) as u64;
        objectio::write_all(&*object, page, place)?;
        patched.places.insert(page.into(), place);
        Ok((object, place))
    }

    /// What an earlier scan has found.
    pub fn hits(&self, range: &Range) -> Option<Arc<[Hit]>> {
        self.scanned.lock().get(range).cloned()
    }

    /// Keeps what a scan has found.
    pub fn keep(&self, range: Range, hits: Arc<[Hit]>) {
        let mut kept = self.scanned.lock();
        if kept.len() < SCANNED_MOST {
            kept.insert(range, hits);
        }
    }

    /// Reports to the guard of all spaces what the object holds, now that it is written and nobody will change it.
    pub fn publish(&self, object: &Arc<dyn MemoryObject>, made: Made) {
        self.made.lock().insert(key(object), Arc::new(made));
    }

    /// Forgets the object, before it goes.
    pub fn withdraw(&self, object: &Arc<dyn MemoryObject>) {
        self.made.lock().remove(&key(object));
    }

    /// What is known of an object, if it is one of the kernel's own.
    pub fn of(&self, object: &Arc<dyn MemoryObject>) -> Option<Arc<Made>> {
        self.made.lock().get(&key(object)).cloned()
    }
}

/// A range of a file at a point of its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    dev: u64,
    ino: u64,
    mtime: i64,
    ctime: i64,
    size: u64,
    offset: u64,
    len: usize,
}

impl Range {
    /// `None` for what is no host's file, or when the host does not report it.
    pub fn new(object: &dyn MemoryObject, offset: u64, len: usize) -> Option<Range> {
        let file = object.host_file()?;
        let stat = file.host().stat(file.fd()).ok()?;
        Some(Range { dev: stat.dev, ino: stat.ino, mtime: stat.mtime, ctime: stat.ctime, size: stat.size, offset, len })
    }
}

/// What is in an object of the kernel's own; places are offsets in it.
#[derive(Default)]
pub struct Made {
    /// What could not be overwritten, in order.
    hits: Vec<Hit>,
    /// What was.
    patched_out: Vec<(usize, PatchedOut)>,
}

impl Made {
    /// Scans a piece of code that will be at `offset`, whole pages, and overwrites what can be.
    pub fn add(&mut self, code: &mut [u8], offset: u64) {
        let offset = offset as usize;
        let mut hits: Vec<Hit> = scan::hits(code).filter(|hit| hit.kind.loads_keys()).collect();
        let first = self.patched_out.len();
        for hit in hits.clone() {
            let is_there = |(at, found): &(usize, PatchedOut)| (*at..at + found.len).contains(&(offset + hit.at));
            if self.patched_out[first..].iter().any(is_there) {
                continue;
            }
            let from = hit.at.saturating_sub(patch_out::BEFORE);
            let to = (hit.at + patch_out::LONGEST).min(code.len());
            let Some(found) = patch_out::instruction(&code[from..to], hit.at - from) else { continue };
            let place = from + found.start..from + found.end;
            let mut bytes = [0; patch_out::LONGEST];
            bytes[..place.len()].copy_from_slice(&code[place.clone()]);
            code[place.clone()].copy_from_slice(&patch_out::filler(place.len())[..place.len()]);
            // What is there now, together with what is around it.
            hits.retain(|hit| hit.at >= place.end || hit.at + hit.len <= place.start);
            let around = place.start.saturating_sub(CONTEXT)..(place.end + CONTEXT).min(code.len());
            let changed = place.start - around.start..place.end - around.start;
            let again = scan::hits_touching(&code[around.clone()], changed).filter(|hit| hit.kind.loads_keys());
            hits.extend(again.map(|hit| Hit { at: around.start + hit.at, ..hit }));
            self.patched_out.push((offset + place.start, PatchedOut { bytes, len: place.len() }));
        }
        hits.sort_unstable_by_key(|hit| hit.at);
        self.hits.extend(hits.into_iter().map(|hit| Hit { at: offset + hit.at, ..hit }));
    }

    /// What is left in `offset..offset+len`, relative to its start. One that is across a border belongs to both sides.
    pub fn hits(&self, offset: u64, len: usize) -> Arc<[Hit]> {
        let (start, end) = (offset as usize, offset as usize + len);
        let inside = self.hits.iter().filter(|hit| hit.at >= start && hit.at + hit.len <= end);
        inside.map(|hit| Hit { at: hit.at - start, ..*hit }).collect()
    }

    /// What was overwritten there, likewise.
    pub fn patched_out(&self, offset: u64, len: usize) -> impl Iterator<Item = (usize, PatchedOut)> {
        let (start, end) = (offset as usize, offset as usize + len);
        self.patched_out.iter().filter(move |(at, _)| (start..end).contains(at)).map(move |&(at, found)| (at - start, found))
    }
}

/// What an object is known by as long as it lives.
fn key(object: &Arc<dyn MemoryObject>) -> usize {
    Arc::as_ptr(object).addr()
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use janua_platform_model::{Model, Settings};

    use super::*;

    #[test]
    fn each_kernel_has_its_own_machines_pages() {
        let page = [0x90; 4096];
        let machine = || -> &'static dyn Machine { Model::new(Settings::default()) };
        let (first, second) = (Found::default(), Found::default());
        let (one, place) = first.patched(machine(), &page).unwrap();
        let (other, elsewhere) = second.patched(machine(), &page).unwrap();
        assert!(!Arc::ptr_eq(&one, &other));
        assert_eq!((place, elsewhere), (0, 0));
        let (again, place) = first.patched(machine(), &page).unwrap();
        assert!(Arc::ptr_eq(&one, &again) && place == 0);
    }

    #[test]
    fn what_can_be_overwritten_is() {
        // mov $0xef010f, %edi among instructions of one byte, and the same bytes where they may be anything.
        let mov = [0xbf, 0x0f, 0x01, 0xef, 0x00];
        let mut code = vec![0x90; 4096];
        code[1000..1005].copy_from_slice(&mov);
        code[1..4].copy_from_slice(&mov[1..4]);
        let mut made = Made::default();
        made.add(&mut code, 8192);
        assert_eq!(code[1000..1002], [0x0f, 0x0b]);
        assert_eq!(code[1..4], mov[1..4]);
        assert_eq!(made.hits.iter().map(|hit| hit.at).collect::<Vec<_>>(), [8193]);
        let patched_out: Vec<_> =
            made.patched_out(4096, 8192).map(|(at, found)| (at, found.bytes[..found.len].to_vec())).collect();
        assert_eq!(patched_out, [(4096 + 1000, mov.to_vec())]);
        assert_eq!(made.patched_out(0, 8192).count() + made.hits(0, 8192).len(), 0);
        assert_eq!(made.hits(8192, 4096)[0].at, 1);
    }
}
