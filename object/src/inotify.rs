//! inotify(7): queues of events about watched files.
//!
//! [`Registry`] knows which inodes are watched; the virtual file system reports to it what happens, once there is a watch at
//! all. A watch keeps its place, and with it the inode, so an inode's address names it as long as it is watched.
//!
//! Lock order: an instance's state, then the registry's map. Wait queues are woken with neither held.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use hashbrown::HashMap;
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_rt::{Mutex, WaitQueue};

use crate::caller::Caller;
use crate::dnotify::Notices;
use crate::file::{Events, File, OpenFile, request};
use crate::vfs::watch::{Sink, event};
use crate::vfs::{Attr, Dentry, Inode, Path, Watches};

/// Bits of a watch's mask beyond the events, and of what is read.
pub mod mask {
    pub const ALL_EVENTS: u32 = 0xfff;
    pub const Q_OVERFLOW: u32 = 0x4000;
    pub const IGNORED: u32 = 0x8000;
    pub const ONLYDIR: u32 = 0x0100_0000;
    pub const DONT_FOLLOW: u32 = 0x0200_0000;
    pub const EXCL_UNLINK: u32 = 0x0400_0000;
    pub const MASK_CREATE: u32 = 0x1000_0000;
    pub const MASK_ADD: u32 = 0x2000_0000;
    pub const ONESHOT: u32 = 0x8000_0000;
    /// What inotify_add_watch(2) may be given.
    pub const KNOWN: u32 = ALL_EVENTS
        | super::event::UNMOUNT
        | Q_OVERFLOW
        | IGNORED
        | ONLYDIR
        | DONT_FOLLOW
        | EXCL_UNLINK
        | MASK_CREATE
        | MASK_ADD
        | super::event::IS_DIR
        | ONESHOT;
}

/// Bytes of the kernel's memory for the events of all instances of a user: they are made by the process that changes a file, so that it is the
/// one who watches who must do without. Ten full queues of ordinary names.
const MAX_BYTES: usize = 16 << 20;
/// What can be set (/proc/sys/fs/inotify).
pub struct Limits {
    /// Events an instance holds before it gives up (max_queued_events).
    pub queued: AtomicUsize,
    /// Instances a user may have (max_user_instances).
    pub instances: AtomicUsize,
    /// Watches in all of them (max_user_watches).
    pub watches: AtomicUsize,
}

/// Room for events that an empty queue keeps.
const KEPT: usize = 64;

/// What a user has of them.
#[derive(Default)]
pub struct Counts {
    instances: AtomicUsize,
    watches: AtomicUsize,
    /// Bytes of queued events.
    bytes: AtomicUsize,
}

/// One more of what `count` counts, unless there are `most` already.
fn take(count: &AtomicUsize, most: usize) -> bool {
    let fits = count.fetch_add(1, Ordering::Relaxed) < most;
    if !fits {
        count.fetch_sub(1, Ordering::Relaxed);
    }
    fits
}

/// The user on whose account an instance is.
pub type Owner = Arc<dyn AsRef<Counts> + Send + Sync>;

/// Bytes of `struct inotify_event` without the name; names are padded to a multiple of it.
const HEADER: usize = 16;

struct Watch {
    wd: i32,
    mask: AtomicU32,
    instance: Weak<Inotify>,
    /// Keeps the inode, whose address is the watch's key.
    place: Path,
}

fn key(inode: &Arc<dyn Inode>) -> usize {
    Arc::as_ptr(inode).cast::<()>() as usize
}

/// Which inodes are watched, by whom.
pub struct Registry {
    watches: Weak<Watches>,
    by_inode: Mutex<HashMap<usize, Vec<Arc<Watch>>>>,
    /// What is announced by signals.
    notices: Notices,
    pub limits: Limits,
}

impl Registry {
    /// A registry that `watches` notifies.
    pub fn new(watches: &Arc<Watches>) -> Arc<Registry> {
        let limits = Limits { queued: 16384.into(), instances: 128.into(), watches: 65536.into() };
        let registry = Arc::new(Registry {
            watches: Arc::downgrade(watches),
            by_inode: Mutex::default(),
            notices: Notices::default(),
            limits,
        });
        watches.set_sink(registry.clone());
        registry
    }

    fn count(&self, more: bool) {
        if let Some(watches) = self.watches.upgrade() {
            watches.count(more);
        }
    }

    /// A watch less: files that ended for it alone are let go.
    fn released(&self) {
        if let Some(watches) = self.watches.upgrade() {
            watches.released();
        }
    }

    /// Has changes of an open directory announced to `target` ([`crate::dnotify`]). ENOMEM.
    pub fn announce(&self, file: &OpenFile, process: u32, wanted: u32, target: Arc<dyn janua_rt::Notify>) -> Result<()> {
        let inode = file.inode().ok_or(Errno::ENOTDIR)?;
        if self.notices.add(key(inode), file.id, process, wanted, target)? {
            self.count(true);
        }
        Ok(())
    }

    /// No longer: what that process has asked for by that description, or what everybody has.
    pub fn silence(&self, inode: &Arc<dyn Inode>, description: u64, process: Option<u32>) {
        (0..self.notices.remove(key(inode), description, process)).for_each(|_| self.count(false));
    }

    /// The same for all that a process has asked for.
    pub fn silence_process(&self, process: u32) {
        (0..self.notices.remove_process(process)).for_each(|_| self.count(false));
    }

    /// ENOMEM.
    fn insert(&self, watch: &Arc<Watch>) -> Result<()> {
        let mut map = self.by_inode.lock();
        map.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        map.entry(key(watch.place.inode())).or_default().push(watch.clone());
        drop(map);
        self.count(true);
        Ok(())
    }

    /// The watch that an instance has of an inode.
    fn watch(&self, inode: usize, instance: &Inotify) -> Option<Arc<Watch>> {
        let map = self.by_inode.lock();
        map.get(&inode)?.iter().find(|watch| core::ptr::eq(watch.instance.as_ptr(), instance)).cloned()
    }

    fn remove(&self, watch: &Arc<Watch>) {
        let key = key(watch.place.inode());
        let mut map = self.by_inode.lock();
        let Some(list) = map.get_mut(&key) else { return };
        let Some(at) = list.iter().position(|other| Arc::ptr_eq(other, watch)) else { return };
        // The caller holds the watch, so nothing is dropped under the lock.
        list.swap_remove(at);
        if list.is_empty() {
            map.remove(&key);
        }
        drop(map);
        self.count(false);
    }
}

impl Sink for Registry {
    fn held(&self, dentry: &Arc<Dentry>) -> usize {
        let map = self.by_inode.lock();
        map.get(&key(&dentry.inode))
            .map_or(0, |list| list.iter().filter(|watch| Arc::ptr_eq(&watch.place.dentry, dentry)).count())
    }

    fn closed(&self, inode: &Arc<dyn Inode>, description: u64) {
        self.silence(inode, description, None);
    }

    fn event(&self, inode: &Arc<dyn Inode>, name: Option<&[u8]>, mask: u32, cookie: u32) {
        (0..self.notices.event(key(inode), name.is_some(), mask, cookie)).for_each(|_| self.count(false));
        let reported: Vec<Arc<Watch>> = match self.by_inode.lock().get(&key(inode)) {
            Some(list) => list.clone(),
            None => return,
        };
        let unlinked = mask & event::UNLINKED != 0;
        let mask = mask & !event::UNLINKED;
        let of_events = mask & (mask::ALL_EVENTS | event::UNMOUNT);
        for watch in reported {
            let Some(instance) = watch.instance.upgrade() else { continue };
            let wanted = watch.mask.load(Ordering::Relaxed);
            if unlinked && wanted & mask::EXCL_UNLINK != 0 {
                continue;
            }
            // The end of the file is the end of the watch, whether or not anybody asked to hear of it.
            let ends = name.is_none() && mask & (event::DELETE_SELF | event::UNMOUNT) != 0;
            if of_events & (wanted | event::UNMOUNT) != 0 {
                instance.push(watch.wd, mask, cookie, name.unwrap_or(b""));
                if wanted & mask::ONESHOT != 0 {
                    instance.forget(watch.wd);
                    continue;
                }
            }
            if ends {
                instance.forget(watch.wd);
            }
        }
    }
}

#[derive(PartialEq, Eq)]
struct Event {
    wd: i32,
    mask: u32,
    cookie: u32,
    name: Vec<u8>,
}

impl Event {
    fn padded_name(&self) -> usize {
        if self.name.is_empty() { 0 } else { (self.name.len() + 1).next_multiple_of(HEADER) }
    }

    fn size(&self) -> usize {
        HEADER + self.padded_name()
    }

    /// Bytes of the kernel's memory.
    fn cost(&self) -> usize {
        size_of::<Event>() + self.name.len()
    }

    fn is_overflow(&self) -> bool {
        self.mask & mask::Q_OVERFLOW != 0
    }
}

#[derive(Default)]
struct State {
    watches: BTreeMap<i32, Arc<Watch>>,
    last_wd: i32,
    queue: VecDeque<Event>,
    /// The queue reports that events are missing.
    overflowed: bool,
}

/// An inotify instance.
pub struct Inotify {
    registry: Arc<Registry>,
    owner: Owner,
    state: Mutex<State>,
    readable: WaitQueue,
    attr: Attr,
    /// The limit of its queue, as it was when it was made.
    most_queued: usize,
}

impl Inotify {
    /// An instance without watches; `attr` is what fstat(2) returns. EMFILE when its user has too many.
    pub fn new(registry: &Arc<Registry>, owner: Owner, attr: Attr) -> Result<Arc<Inotify>> {
        if !take(&(*owner).as_ref().instances, registry.limits.instances.load(Ordering::Relaxed)) {
            return Err(Errno::EMFILE);
        }
        Ok(Arc::new(Inotify {
            registry: registry.clone(),
            owner,
            state: Mutex::new(State::default()),
            readable: WaitQueue::new(),
            attr,
            most_queued: registry.limits.queued.load(Ordering::Relaxed),
        }))
    }

    fn counts(&self) -> &Counts {
        (*self.owner).as_ref()
    }

    /// Watches a place, or changes the mask of the watch that is there: its descriptor. EEXIST with
    /// MASK_CREATE, ENOSPC.
    pub fn add(self: &Arc<Inotify>, place: Path, given: u32) -> Result<i32> {
        let kept = given & (mask::ALL_EVENTS | mask::ONESHOT | mask::EXCL_UNLINK);
        let wanted = key(place.inode());
        let mut state = self.state.lock();
        // One that is being given up is in the list a moment longer.
        if let Some(watch) = self.registry.watch(wanted, self).filter(|watch| state.watches.contains_key(&watch.wd)) {
            if given & mask::MASK_CREATE != 0 {
                return Err(Errno::EEXIST);
            }
            if given & mask::MASK_ADD != 0 {
                watch.mask.fetch_or(kept, Ordering::Relaxed);
            } else {
                watch.mask.store(kept, Ordering::Relaxed);
            }
            return Ok(watch.wd);
        }
        let wd = state.last_wd.checked_add(1).ok_or(Errno::ENOSPC)?;
        if !take(&self.counts().watches, self.registry.limits.watches.load(Ordering::Relaxed)) {
            return Err(Errno::ENOSPC);
        }
        let watch = Arc::new(Watch { wd, mask: AtomicU32::new(kept), instance: Arc::downgrade(self), place });
        if let Err(errno) = self.registry.insert(&watch) {
            self.counts().watches.fetch_sub(1, Ordering::Relaxed);
            return Err(errno);
        }
        state.last_wd = wd;
        state.watches.insert(wd, watch);
        Ok(wd)
    }

    /// Gives a watch up, with the event that reports it. EINVAL.
    pub fn remove(&self, wd: i32) -> Result<()> {
        if !self.forget(wd) {
            return Err(Errno::EINVAL);
        }
        self.registry.released();
        Ok(())
    }

    /// Watches and their masks, for /proc/PID/fdinfo.
    pub fn list(&self) -> Vec<(i32, Path, u32)> {
        let state = self.state.lock();
        state.watches.values().map(|w| (w.wd, w.place.clone(), w.mask.load(Ordering::Relaxed))).collect()
    }

    fn forget(&self, wd: i32) -> bool {
        let Some(watch) = self.state.lock().watches.remove(&wd) else { return false };
        self.registry.remove(&watch);
        self.counts().watches.fetch_sub(1, Ordering::Relaxed);
        self.push(wd, mask::IGNORED, 0, b"");
        true
    }

    fn push(&self, wd: i32, mask: u32, cookie: u32, name: &[u8]) {
        // A name's own type belongs to its directory's events; of a file itself these two are reported without it.
        let mask = if mask & (event::DELETE_SELF | event::MOVE_SELF) != 0 { mask & !event::IS_DIR } else { mask };
        let mut state = self.state.lock();
        let is_same = |last: &Event| last.wd == wd && last.mask == mask && last.cookie == cookie && last.name == name;
        if state.queue.back().is_some_and(is_same) {
            return;
        }
        let new = match self.event(&mut state, wd, mask, cookie, name) {
            Some(event) => event,
            None if state.overflowed => return,
            None => {
                state.overflowed = true;
                self.counts().bytes.fetch_add(size_of::<Event>(), Ordering::Relaxed);
                Event { wd: -1, mask: mask::Q_OVERFLOW, cookie: 0, name: Vec::new() }
            }
        };
        state.queue.push_back(new);
        drop(state);
        self.readable.wake(Events::IN.bits() | Events::RDNORM.bits());
    }

    /// An event that its owner is charged for; `None` when he can have no more, or there is no memory.
    fn event(&self, state: &mut State, wd: i32, mask: u32, cookie: u32, text: &[u8]) -> Option<Event> {
        // Room for the word that something is missing is there in any case.
        state.queue.try_reserve(2).ok()?;
        if state.queue.len() >= self.most_queued {
            return None;
        }
        let mut name = Vec::new();
        name.try_reserve_exact(text.len()).ok()?;
        name.extend_from_slice(text);
        let event = Event { wd, mask, cookie, name };
        let bytes = &self.counts().bytes;
        if bytes.fetch_add(event.cost(), Ordering::Relaxed) + event.cost() > MAX_BYTES {
            bytes.fetch_sub(event.cost(), Ordering::Relaxed);
            return None;
        }
        Some(event)
    }

    /// Takes the first event out.
    fn take(&self, state: &mut State) -> Option<Event> {
        let event = state.queue.pop_front()?;
        self.counts().bytes.fetch_sub(event.cost(), Ordering::Relaxed);
        if event.is_overflow() {
            state.overflowed = false;
        }
        if state.queue.is_empty() && state.queue.capacity() > KEPT {
            state.queue = VecDeque::new();
        }
        Some(event)
    }
}

impl Drop for Inotify {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        let watches = core::mem::take(&mut state.watches);
        let bytes = state.queue.iter().map(Event::cost).sum();
        for watch in watches.values() {
            self.registry.remove(watch);
        }
        self.registry.released();
        self.counts().bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.counts().watches.fetch_sub(watches.len(), Ordering::Relaxed);
        self.counts().instances.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The open file of an instance.
pub struct InotifyFile(pub Arc<Inotify>);

impl File for InotifyFile {
    fn splices(&self, _write: bool) -> bool {
        false
    }

    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut ReadBuf<'_>, _offset: u64) -> Result<usize> {
        let mut done = 0;
        loop {
            let next = {
                let mut state = self.0.state.lock();
                match state.queue.front() {
                    None if done == 0 => return Err(Errno::EAGAIN),
                    Some(event) if event.size() > buf.left() && done == 0 => return Err(Errno::EINVAL),
                    Some(event) if event.size() <= buf.left() => self.0.take(&mut state),
                    _ => None,
                }
            };
            let Some(event) = next else { return Ok(done) };
            let mut header = [0; HEADER];
            header[..4].copy_from_slice(&event.wd.to_ne_bytes());
            header[4..8].copy_from_slice(&event.mask.to_ne_bytes());
            header[8..12].copy_from_slice(&event.cookie.to_ne_bytes());
            let padded = event.padded_name();
            header[12..].copy_from_slice(&(padded as u32).to_ne_bytes());
            buf.put(&header)?;
            buf.put(&event.name)?;
            buf.put_zeros(padded - event.name.len())?;
            done += event.size();
        }
    }

    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut WriteBuf<'_>, _offset: u64) -> Result<usize> {
        Err(Errno::EBADF)
    }

    /// There is no position, and moving it is no error.
    fn seek(&self, _file: &OpenFile, _offset: i64, _whence: u32) -> Result<u64> {
        Ok(0)
    }

    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, table: Option<&mut PollTable>) -> Events {
        if let Some(table) = table {
            table.add(&self.0.readable);
        }
        if self.0.state.lock().queue.is_empty() { Events::empty() } else { Events::IN | Events::RDNORM }
    }

    fn announces(&self) -> bool {
        true
    }

    fn ioctl(&self, _file: &OpenFile, caller: &dyn Caller, request: u32, arg: usize) -> Result<usize> {
        match request {
            request::FIONREAD => {
                let bytes: usize = self.0.state.lock().queue.iter().map(Event::size).sum();
                UserPtr::<i32>::new(arg).write(caller.user(), &(bytes as i32))?;
                Ok(0)
            }
            _ => Err(Errno::ENOTTY),
        }
    }

    fn attr(&self) -> Result<Attr> {
        Ok(self.0.attr)
    }

    fn label(&self) -> String {
        String::from("anon_inode:inotify")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
