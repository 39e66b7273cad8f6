//! Dentries: the names of a file system that are known in memory, as a tree, with the inodes they lead to.
//!
//! A dentry always has an inode; that a name leads nowhere is remembered in its directory. The directory's `children` lock is
//! taken shared to find a name and exclusively by whatever changes names in the directory or asks the file system for one, so
//! a name is looked up, made, removed or moved by one caller at a time and the cache never disagrees with the file system.
//!
//! Lock order: the rename lock ([`super::Vfs`]), `children` of an ancestor, `children` of a descendant (unrelated directories:
//! by address), `place`, the queue of the cache.

use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use core::hash::{BuildHasherDefault, Hasher};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use hashbrown::HashMap;
use janua_rt::{Mutex, RwLock};

use crate::vfs::inode::{FileKind, Inode};

/// Hashes names eight bytes at a time by folded multiplication. Deterministic, since the map lives in memory shared by
/// processes; a guest that makes collisions slows itself down.
#[derive(Default)]
pub struct NameHasher(u64);

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

impl NameHasher {
    #[inline]
    fn mix(&mut self, word: u64) {
        let wide = u128::from(self.0 ^ word) * u128::from(MULTIPLIER);
        self.0 = (wide as u64) ^ ((wide >> 64) as u64) ^ word.rotate_left(32);
    }
}

impl Hasher for NameHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.mix(u64::from_le_bytes(word));
        }
    }
    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64);
    }
    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.mix(value);
    }
    #[inline]
    fn finish(&self) -> u64 {
        self.0.wrapping_mul(MULTIPLIER) ^ (self.0 >> 29)
    }
}

/// A map from names.
pub type NameMap<V> = HashMap<Arc<[u8]>, V, BuildHasherDefault<NameHasher>>;

/// Where a dentry hangs.
pub(super) struct Place {
    /// `None` for the root of a file system.
    pub parent: Option<Arc<Dentry>>,
    pub name: Arc<[u8]>,
}

/// The known names of a directory: `None` is a name known not to exist.
#[derive(Default)]
pub(super) struct Children {
    pub map: NameMap<Option<Arc<Dentry>>>,
    negatives: usize,
}

/// Names known not to exist that one directory may remember.
const MOST_NEGATIVES: usize = 2048;
/// The same for all directories together.
const ALL_NEGATIVES: usize = 65536;
/// Names remembered as not existing.
static NEGATIVES: AtomicUsize = AtomicUsize::new(0);

impl Children {
    pub fn insert(&mut self, name: Arc<[u8]>, dentry: Arc<Dentry>) {
        if let Some(None) = self.map.insert(name, Some(dentry)) {
            self.fewer(1);
        }
    }

    pub fn insert_negative(&mut self, name: &[u8]) {
        let full = || NEGATIVES.load(Ordering::Relaxed) >= ALL_NEGATIVES;
        if self.negatives >= MOST_NEGATIVES || full() {
            self.forget_negatives();
        }
        if full() {
            self.remove(name);
            return;
        }
        match self.map.get_mut(name) {
            Some(slot) => {
                if slot.take().is_none() {
                    return;
                }
            }
            None => {
                self.map.insert(Arc::from(name), None);
            }
        }
        self.negatives += 1;
        NEGATIVES.fetch_add(1, Ordering::Relaxed);
    }

    pub fn remove(&mut self, name: &[u8]) {
        if let Some(None) = self.map.remove(name) {
            self.fewer(1);
        }
    }

    fn forget_negatives(&mut self) {
        if self.negatives > 0 {
            self.map.retain(|_, child| child.is_some());
            self.fewer(self.negatives);
        }
    }

    fn fewer(&mut self, negatives: usize) {
        self.negatives -= negatives;
        NEGATIVES.fetch_sub(negatives, Ordering::Relaxed);
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.fewer(self.negatives);
    }
}

/// A name in a directory and what it leads to.
pub struct Dentry {
    pub inode: Arc<dyn Inode>,
    kind: FileKind,
    pub(super) place: RwLock<Place>,
    pub(super) children: RwLock<Children>,
    /// The name has been removed; the dentry lives on as long as somebody uses it.
    deleted: AtomicBool,
    /// Used since the cache's hand last passed.
    used: AtomicBool,
    /// How many mounts sit on this dentry.
    mounted: AtomicU32,
    /// A name that is only a label (`pipe:[7]`), outside every tree.
    label: bool,
}

impl Dentry {
    fn make(inode: Arc<dyn Inode>, parent: Option<Arc<Dentry>>, name: Arc<[u8]>, label: bool) -> Arc<Dentry> {
        Arc::new(Dentry {
            kind: inode.kind(),
            inode,
            place: RwLock::new(Place { parent, name }),
            children: RwLock::new(Children::default()),
            deleted: AtomicBool::new(false),
            used: AtomicBool::new(false),
            mounted: AtomicU32::new(0),
            label,
        })
    }

    /// The root of a file system.
    pub fn root(inode: Arc<dyn Inode>) -> Arc<Dentry> {
        Dentry::make(inode, None, Arc::from(&b""[..]), false)
    }

    /// A dentry outside every tree: a file without a name, shown as `label`.
    pub fn labelled(inode: Arc<dyn Inode>, label: &[u8]) -> Arc<Dentry> {
        Dentry::make(inode, None, Arc::from(label), true)
    }

    pub(super) fn child(inode: Arc<dyn Inode>, parent: &Arc<Dentry>, name: Arc<[u8]>) -> Arc<Dentry> {
        Dentry::make(inode, Some(parent.clone()), name, false)
    }

    /// A child that no name leads to (O_TMPFILE): deleted from the start, shown as "#ino".
    pub(super) fn unnamed(inode: Arc<dyn Inode>, parent: &Arc<Dentry>, name: &[u8]) -> Arc<Dentry> {
        let dentry = Dentry::make(inode, Some(parent.clone()), Arc::from(name), false);
        dentry.set_deleted();
        dentry
    }

    #[inline]
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    #[inline]
    pub fn is_dir(&self) -> bool {
        self.kind == FileKind::Directory
    }

    pub fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Acquire)
    }

    pub(super) fn set_deleted(&self) {
        self.deleted.store(true, Ordering::Release);
    }

    pub(super) fn is_label(&self) -> bool {
        self.label
    }

    #[inline]
    pub fn is_mounted_on(&self) -> bool {
        self.mounted.load(Ordering::Acquire) != 0
    }

    pub(super) fn mounted(&self, on: bool) {
        if on {
            self.mounted.fetch_add(1, Ordering::AcqRel);
        } else {
            self.mounted.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Notes that the name is in use, for the cache's hand.
    #[inline]
    pub(super) fn is_used(&self) {
        // Read first: most are noted already, and others look at the same words.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    pub fn name(&self) -> Arc<[u8]> {
        self.place.read().name.clone()
    }

    /// The directory this name is in; `None` for the root of a file system.
    pub fn parent(&self) -> Option<Arc<Dentry>> {
        self.place.read().parent.clone()
    }

    /// Whether this is `ancestor` or is below it, in the same file system.
    pub fn is_below(self: &Arc<Self>, ancestor: &Arc<Dentry>) -> bool {
        let mut at = self.clone();
        loop {
            if Arc::ptr_eq(&at, ancestor) {
                return true;
            }
            match at.parent() {
                Some(parent) => at = parent,
                None => return false,
            }
        }
    }

    /// The known name, without asking the file system: outer `None` means unknown.
    #[inline]
    pub(super) fn cached(&self, name: &[u8]) -> Option<Option<Arc<Dentry>>> {
        let children = self.children.read();
        let found = children.map.get(name)?.clone();
        if let Some(child) = &found {
            child.is_used();
        }
        Some(found)
    }
}

/// A chain of removed directories may be held by its deepest alone: it is let go link by link, not by recursion.
impl Drop for Dentry {
    fn drop(&mut self) {
        let mut parent = self.place.get_mut().parent.take();
        while let Some(mut dentry) = parent.and_then(Arc::into_inner) {
            parent = dentry.place.get_mut().parent.take();
        }
    }
}

/// Bounds the dentries held by names alone: a clock over all of them.
pub(super) struct Cache {
    queue: Mutex<VecDeque<Weak<Dentry>>>,
    count: AtomicUsize,
    /// Names removed since the queue was last cleared of those that nobody uses any more, of which it still has the memory.
    removed: AtomicUsize,
    limit: usize,
}

/// Dentries looked at per insertion once the cache is full.
const SWEEP: usize = 8;

impl Cache {
    pub fn new(limit: usize) -> Cache {
        Cache { queue: Mutex::new(VecDeque::new()), count: AtomicUsize::new(0), removed: AtomicUsize::new(0), limit }
    }

    /// A name has been removed.
    pub fn removed(&self) {
        const FEW: usize = 1024;
        let removed = self.removed.fetch_add(1, Ordering::Relaxed) + 1;
        if removed >= FEW && removed >= self.count.load(Ordering::Relaxed) / 2 {
            self.clear();
        }
    }

    /// Lets go of what is gone.
    #[cold]
    fn clear(&self) {
        self.removed.store(0, Ordering::Relaxed);
        let mut queue = self.queue.lock();
        let before = queue.len();
        queue.retain(|dentry| dentry.strong_count() > 0);
        self.count.fetch_sub(before - queue.len(), Ordering::Relaxed);
    }

    /// Enters a new dentry. No `children` lock may be held.
    pub fn add(&self, dentry: &Arc<Dentry>) {
        self.queue.lock().push_back(Arc::downgrade(dentry));
        if self.count.fetch_add(1, Ordering::Relaxed) >= self.limit {
            self.sweep();
        }
    }

    #[cold]
    fn sweep(&self) {
        for _ in 0..SWEEP {
            let Some(weak) = self.queue.lock().pop_front() else { return };
            let gone = match weak.upgrade() {
                Some(dentry) => !dentry.used.swap(false, Ordering::Relaxed) && evict(&dentry),
                None => true,
            };
            if gone {
                self.count.fetch_sub(1, Ordering::Relaxed);
                return;
            }
            self.queue.lock().push_back(weak);
        }
    }
}

/// Takes a dentry that nobody uses out of its directory.
fn evict(dentry: &Arc<Dentry>) -> bool {
    if dentry.is_mounted_on() {
        return false;
    }
    if dentry.is_dir() {
        let Some(mut children) = dentry.children.try_write() else { return false };
        if children.map.len() > children.negatives {
            return false;
        }
        children.forget_negatives();
    }
    let (Some(parent), name) = ({
        let place = dentry.place.read();
        (place.parent.clone(), place.name.clone())
    }) else {
        return false;
    };
    let Some(mut siblings) = parent.children.try_write() else { return false };
    // With the directory locked nobody can find the name: this reference and the directory's are all there are.
    let ours = siblings.map.get(&*name).is_some_and(|child| child.as_ref().is_some_and(|c| Arc::ptr_eq(c, dentry)));
    if !ours {
        // No name leads to it any more; it goes with its last user.
        return true;
    }
    if Arc::strong_count(dentry) > 2 {
        return false;
    }
    let gone = siblings.map.remove(&*name);
    drop(siblings);
    drop(gone);
    true
}

/// Cuts the tree below a dentry apart, so that it can be freed: a file system is gone.
pub(super) fn take_apart(root: &Arc<Dentry>) {
    let mut pending = alloc::vec![root.clone()];
    while let Some(dentry) = pending.pop() {
        let mut children = core::mem::take(&mut *dentry.children.write());
        pending.extend(core::mem::take(&mut children.map).into_values().flatten());
    }
}
