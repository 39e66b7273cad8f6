//! Epolls that watch epolls: how deep they may be, and how many of them one wake-up may pass.
//!
//! A wake-up goes from its file to each epoll that watches it, and on to each that watches that one, along every path. So the paths
//! are counted before one is added, with Linux's limits (fs/eventpoll.c); the walks visit each epoll once, however many ways lead
//! to it.
//!
//! Who watches whom among epolls changes under the kernel's one lock for it. A file that is no epoll is added without that lock to
//! an epoll that nobody watches: such an epoll that is to be watched has the lock of its items taken after its watcher is noted, so
//! one of the two sees the other.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use janua_abi::linux::{Errno, Result};
use janua_rt::Mutex;

use super::Epoll;
use crate::file::OpenFile;

/// Longest chain of epolls watching one another.
const MAX_CHAIN: usize = 5;

/// Most ways from a file to an epoll that nobody watches, by the number of epolls between; at 0 there is no limit.
const MOST_PATHS: [u32; MAX_CHAIN] = [u32::MAX, 500, 100, 50, 10];

/// The epolls that watch a file, once for each item.
#[derive(Default)]
pub struct Watchers(Mutex<Vec<Weak<Epoll>>>);

impl Watchers {
    /// One more; those that are gone are forgotten now and then.
    pub(super) fn add(&self, epoll: &Weak<Epoll>) {
        let mut list = self.0.lock();
        if list.len() == list.capacity() {
            list.retain(|watcher| watcher.strong_count() > 0);
        }
        list.push(epoll.clone());
    }

    pub(super) fn remove(&self, epoll: &Weak<Epoll>) {
        let mut list = self.0.lock();
        if let Some(at) = list.iter().position(|watcher| Weak::ptr_eq(watcher, epoll)) {
            list.swap_remove(at);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        let mut list = self.0.lock();
        while list.pop_if(|watcher| watcher.strong_count() == 0).is_some() {}
        list.is_empty()
    }

    fn live(&self) -> Vec<Arc<Epoll>> {
        self.0.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Counts the ways that lead on from here. EINVAL when there are too many.
    fn count_paths(&self, counts: &mut [u32; MAX_CHAIN], depth: usize) -> Result<()> {
        for epoll in self.live() {
            if !epoll.watchers.is_empty() {
                if depth + 1 == MAX_CHAIN {
                    return Err(Errno::EINVAL);
                }
                epoll.watchers.count_paths(counts, depth + 1)?;
                continue;
            }
            counts[depth] = counts[depth].saturating_add(1);
            if counts[depth] > MOST_PATHS[depth] {
                return Err(Errno::EINVAL);
            }
        }
        Ok(())
    }
}

/// ELOOP when `inner` watches `outer`, however indirectly, or the chain would be too long.
pub(super) fn check_chain(outer: &Epoll, inner: &Arc<OpenFile>) -> Result<()> {
    let mut below = Below::default();
    let below = below.depth(inner, Some(outer), MAX_CHAIN)?;
    let above = depth_above(outer, &mut BTreeMap::new(), MAX_CHAIN)?;
    // The epolls above and below, and these two.
    if above + below + 1 > MAX_CHAIN { Err(Errno::ELOOP) } else { Ok(()) }
}

/// EINVAL when a wake-up of `file`, or of any file that it watches, has too many ways to go.
pub(super) fn check_paths(file: &Arc<OpenFile>) -> Result<()> {
    let mut below = Below::default();
    below.depth(file, None, MAX_CHAIN)?;
    below.files.values().try_for_each(|file| file.watchers.count_paths(&mut [0; MAX_CHAIN], 0))
}

/// What is found on the way down.
#[derive(Default)]
struct Below {
    /// The epolls visited, with the length of the chain that begins with each.
    epolls: BTreeMap<u64, usize>,
    /// The files that are none.
    files: BTreeMap<u64, Arc<OpenFile>>,
}

impl Below {
    /// The number of epolls in the longest chain from `file` on.
    fn depth(&mut self, file: &Arc<OpenFile>, never: Option<&Epoll>, left: usize) -> Result<usize> {
        let Some(epoll) = file.downcast::<Epoll>() else {
            if never.is_none() {
                self.files.insert(file.id, file.clone());
            }
            return Ok(0);
        };
        if left == 0 || never.is_some_and(|never| core::ptr::eq(epoll, never)) {
            return Err(Errno::ELOOP);
        }
        if let Some(&known) = self.epolls.get(&file.id) {
            return Ok(known);
        }
        let mut deepest = 0;
        let watched: Vec<Arc<OpenFile>> = epoll.items.lock().map.values().filter_map(|item| item.file.upgrade()).collect();
        for inner in &watched {
            deepest = deepest.max(self.depth(inner, never, left - 1)?);
        }
        self.epolls.insert(file.id, deepest + 1);
        Ok(deepest + 1)
    }
}

/// The number of epolls in the longest chain that leads to `epoll`, without it.
fn depth_above(epoll: &Epoll, known: &mut BTreeMap<usize, usize>, left: usize) -> Result<usize> {
    if left == 0 {
        return Err(Errno::ELOOP);
    }
    let place = core::ptr::from_ref(epoll).addr();
    if let Some(&known) = known.get(&place) {
        return Ok(known);
    }
    let mut highest = 0;
    for watcher in epoll.watchers.live() {
        highest = highest.max(depth_above(&watcher, known, left - 1)? + 1);
    }
    known.insert(place, highest);
    Ok(highest)
}
