//! Directories whose changes are announced by a signal (fcntl(2), F_NOTIFY): an older way than inotify(7), which has the same events. An announcement
//! belongs to a process and a description of the directory, and ends when either does.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use hashbrown::HashMap;
use janua_abi::linux::{Errno, Result};
use janua_rt::{Mutex, Notify};

use crate::vfs::watch::event;

/// What is announced.
pub mod change {
    pub const ACCESS: u32 = 1;
    pub const MODIFY: u32 = 2;
    pub const CREATE: u32 = 4;
    pub const DELETE: u32 = 8;
    /// Of a name within the directory.
    pub const RENAME: u32 = 0x10;
    pub const ATTRIB: u32 = 0x20;
    /// More than once.
    pub const MULTISHOT: u32 = 0x8000_0000;
}

struct Notice {
    description: u64,
    process: u32,
    wanted: AtomicU32,
    /// The cookie of the last name that was moved away, 0 for none.
    moved: AtomicU32,
    target: Arc<dyn Notify>,
}

impl Notice {
    /// Whether it is of an event of a name in the directory, or of the directory itself.
    fn is_of(&self, of_name: bool, mask: u32, cookie: u32) -> bool {
        if !of_name && mask & event::IS_DIR == 0 {
            return false;
        }
        let mut changes = 0;
        for (events, one) in [
            (event::ACCESS, change::ACCESS),
            (event::MODIFY, change::MODIFY),
            (event::CREATE | event::MOVED_TO, change::CREATE),
            (event::DELETE | event::MOVED_FROM, change::DELETE),
            (event::ATTRIB, change::ATTRIB),
        ] {
            changes |= if mask & events != 0 { one } else { 0 };
        }
        if mask & event::MOVED_FROM != 0 {
            self.moved.store(cookie, Ordering::Relaxed);
        }
        if mask & event::MOVED_TO != 0 && cookie != 0 && self.moved.swap(0, Ordering::Relaxed) == cookie {
            changes |= change::RENAME;
        }
        changes & self.wanted.load(Ordering::Relaxed) != 0
    }
}

/// Processes that one description can announce to. Each event signals to all of them.
const MOST: usize = 128;

/// All of them, by the directory's inode, which its description keeps.
#[derive(Default)]
pub struct Notices(Mutex<HashMap<usize, Vec<Arc<Notice>>>>);

impl Notices {
    /// Announces changes of a directory to `target`, and those that a former request of the same process by the same description has asked for. Whether
    /// there was none. ENOMEM, also for more than [`MOST`].
    pub fn add(&self, inode: usize, description: u64, process: u32, wanted: u32, target: Arc<dyn Notify>) -> Result<bool> {
        let mut all = self.0.lock();
        all.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        let list = all.entry(inode).or_default();
        if let Some(own) = list.iter().find(|notice| notice.description == description && notice.process == process) {
            own.wanted.fetch_or(wanted, Ordering::Relaxed);
            return Ok(false);
        }
        if list.iter().filter(|notice| notice.description == description).count() >= MOST {
            return Err(Errno::ENOMEM);
        }
        let (wanted, moved) = (AtomicU32::new(wanted), AtomicU32::new(0));
        if list.try_reserve(1).is_ok() {
            list.push(Arc::new(Notice { description, process, wanted, moved, target }));
            return Ok(true);
        }
        if list.is_empty() {
            all.remove(&inode);
        }
        Err(Errno::ENOMEM)
    }

    /// Ends those of a description, of one process or of all: how many.
    pub fn remove(&self, inode: usize, description: u64, process: Option<u32>) -> usize {
        self.take(inode, |notice| notice.description == description && process.is_none_or(|process| process == notice.process))
    }

    /// Ends those of a process: how many.
    pub fn remove_process(&self, process: u32) -> usize {
        let mut gone = 0;
        self.0.lock().retain(|_, list| {
            let before = list.len();
            list.retain(|notice| notice.process != process);
            gone += before - list.len();
            !list.is_empty()
        });
        gone
    }

    fn take(&self, inode: usize, goes: impl Fn(&Notice) -> bool) -> usize {
        let mut all = self.0.lock();
        let Some(list) = all.get_mut(&inode) else { return 0 };
        let before = list.len();
        // A target is a message to a process, and dropping it asks nobody for anything.
        list.retain(|notice| !goes(notice));
        let gone = before - list.len();
        if list.is_empty() {
            all.remove(&inode);
        }
        gone
    }

    /// Something has happened: how many have ended by having been announced once.
    pub fn event(&self, inode: usize, of_name: bool, mask: u32, cookie: u32) -> usize {
        let mut list = Vec::new();
        if let Some(all) = self.0.lock().get(&inode) {
            if list.try_reserve_exact(all.len()).is_err() {
                // No memory to announce it with.
                return 0;
            }
            list.extend(all.iter().cloned());
        }
        let mut ended = 0;
        for notice in list.iter().filter(|notice| notice.is_of(of_name, mask, cookie)) {
            notice.target.notify(0);
            if notice.wanted.load(Ordering::Relaxed) & change::MULTISHOT == 0 {
                ended += self.take(inode, |other| core::ptr::eq(other, &raw const **notice));
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Heard(AtomicU32);

    impl Notify for Heard {
        fn notify(&self, _what: u32) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_rename_within_is_one_and_the_halves_are_others() {
        let (notices, heard) = (Notices::default(), Arc::new(Heard::default()));
        assert_eq!(notices.add(1, 7, 3, change::RENAME | change::MULTISHOT, heard.clone()), Ok(true));
        for (mask, cookie) in [(event::MOVED_FROM, 5), (event::MOVED_TO, 6), (event::MOVED_FROM, 8), (event::MOVED_TO, 8)] {
            assert_eq!(notices.event(1, true, mask, cookie), 0);
        }
        assert_eq!(heard.0.load(Ordering::Relaxed), 1);
        assert_eq!(notices.add(1, 7, 3, change::CREATE, heard.clone()), Ok(false));
        notices.event(1, true, event::CREATE, 0);
        notices.event(2, true, event::CREATE, 0);
        assert_eq!(heard.0.load(Ordering::Relaxed), 2);
        assert_eq!((notices.remove(1, 7, Some(4)), notices.remove(1, 7, None), notices.remove(1, 7, None)), (0, 1, 0));
    }

    #[test]
    fn once_is_once() {
        let (notices, heard) = (Notices::default(), Arc::new(Heard::default()));
        assert_eq!(notices.add(1, 7, 3, change::ATTRIB, heard.clone()), Ok(true));
        assert_eq!(notices.event(1, false, event::ATTRIB, 0), 0);
        assert_eq!(notices.event(1, false, event::ATTRIB | event::IS_DIR, 0), 1);
        assert_eq!(notices.event(1, true, event::ATTRIB, 0), 0);
        assert_eq!(heard.0.load(Ordering::Relaxed), 1);
    }
}
