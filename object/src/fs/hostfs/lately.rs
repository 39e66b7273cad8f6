//! How long what has been seen of a bind's files may be relied on.
//!
//! Files of a bind are changed by others, so each question about them goes to the host. Many programs ask two questions in a row to which
//! the host's first reply would do: open(2) looks at what it has opened and fstat(2) is called next; a thousand files of a directory
//! are asked for, each by the same way. So a reply counts for [`LATELY`] more, **unless a guest can have learnt of something
//! newer**: since then no thread has waited and gone on, and none has read what others write ([`EVENTS`]), and no guest has
//! changed anything on the host itself ([`CHANGES`]; attributes only, and where directories are, only by moving them). Who changes files outside
//! and then notifies the sandbox, by whatever way but memory that both have mapped, finds it to know.

use alloc::sync::Arc;
use core::hash::Hasher;
use core::sync::atomic::Ordering;

use janua_kernel::wait::EVENTS;
use janua_port::host::HostStat;
use janua_rt::{Epoch, Mutex};

use super::HostInode;
use crate::vfs::NameHasher;

/// Nanoseconds.
const LATELY: u64 = 50_000;

/// Advances after guests have changed files of the host.
static CHANGES: Epoch = Epoch::new();

/// A change of the host's files by a guest, until it is dropped.
pub struct Change(());

impl Change {
    pub fn begin() -> Change {
        Change(())
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        CHANGES.advance();
    }
}

/// The moment before a question.
#[derive(Clone, Copy, Default)]
pub(super) struct Moment {
    events: u64,
    changes: u64,
}

impl Moment {
    pub fn now() -> Moment {
        Moment { events: EVENTS.stamp(), changes: CHANGES.stamp() }
    }

    /// No guest can have learnt of anything since, and none has changed anything.
    fn lasts(self) -> bool {
        EVENTS.is(self.events) && CHANGES.is(self.changes)
    }
}

/// Ways to directories, by the hash of where they begin and of their names.
const WAYS: usize = 8;

/// A way along which a directory was found.
#[derive(Default)]
struct Way {
    hash: u64,
    to: (u64, u64),
    events: u64,
    at: u64,
}

/// The ways along which directories of a bind have been found lately.
#[derive(Default)]
pub(super) struct Ways([Mutex<Way>; WAYS]);

impl Ways {
    fn of(&self, base: &HostInode, names: &[u8]) -> (&Mutex<Way>, u64) {
        let mut hasher = NameHasher::default();
        hasher.write_u64(base.id.0);
        hasher.write_u64(base.id.1);
        hasher.write(names);
        let hash = hasher.finish();
        (&self.0[(hash >> 32) as usize % WAYS], hash)
    }

    /// Notes that `names` in `base` have led to `dir`, which was asked at `moment`.
    pub fn note(&self, base: &HostInode, names: &[u8], dir: &HostInode, moment: Moment) {
        let (way, hash) = self.of(base, names);
        *way.lock() = Way { hash, to: dir.id, events: moment.events, at: dir.looked.load(Ordering::Relaxed) };
    }

    /// Whether they have done so lately.
    pub fn is_known(&self, base: &HostInode, names: &[u8], dir: &HostInode) -> bool {
        let (way, hash) = self.of(base, names);
        let way = way.lock();
        way.hash == hash && way.to == dir.id && EVENTS.is(way.events) && base.is_lately(way.at)
    }
}

/// Files that have been looked at by their names lately, without an inode.
const LOOKS: usize = 4;
/// Bytes of a longer name are not kept.
const SHORT: usize = 48;

/// What a name in a directory was found to be.
struct Look {
    dir: (u64, u64),
    len: usize,
    name: [u8; SHORT],
    stat: HostStat,
    moment: Moment,
    at: u64,
}

/// What has been looked at by name lately: who opens a file next asks for the same name again.
#[derive(Default)]
pub(super) struct Looks([Mutex<Option<Look>>; LOOKS]);

impl Looks {
    fn of(&self, dir: &HostInode, name: &[u8]) -> &Mutex<Option<Look>> {
        // Threads that go through directories of their own seldom meet; names of one directory take turns.
        let last = name.last().map_or(0, |byte| usize::from(*byte));
        &self.0[(dir.id.1 as usize).wrapping_add(last) % LOOKS]
    }

    /// Notes what `name` in `dir` is, which was asked at `moment`.
    pub fn note(&self, dir: &HostInode, name: &[u8], stat: &HostStat, moment: Moment) {
        let mut kept = [0; SHORT];
        let Some(short) = kept.get_mut(..name.len()) else { return };
        short.copy_from_slice(name);
        let at = dir.shared.machine.clock().monotonic();
        *self.of(dir, name).lock() = Some(Look { dir: dir.id, len: name.len(), name: kept, stat: *stat, moment, at });
    }

    /// What `name` in `dir` was found to be a moment ago, if it was asked for.
    pub fn find(&self, dir: &HostInode, name: &[u8]) -> Option<HostStat> {
        let look = self.of(dir, name).lock();
        let look = look.as_ref().filter(|look| look.dir == dir.id && look.name.get(..look.len) == Some(name))?;
        (look.moment.lasts() && dir.is_lately(look.at)).then_some(look.stat)
    }
}

impl HostInode {
    fn is_lately(&self, at: u64) -> bool {
        self.shared.machine.clock().monotonic().saturating_sub(at) <= LATELY
    }

    /// Takes over what the host reports of the file for a question asked after `moment`.
    pub(super) fn saw_at(&self, stat: HostStat, moment: Moment) {
        let mut known = self.stat.lock();
        *known = stat;
        self.looked.store(self.shared.machine.clock().monotonic(), Ordering::Relaxed);
        self.events.store(moment.events, Ordering::Relaxed);
        self.changes.store(moment.changes, Ordering::Relaxed);
    }

    /// What the host reported of the file a moment ago, if it did.
    pub(super) fn seen_lately(&self) -> Option<HostStat> {
        let known = self.stat.lock();
        let moment = Moment { events: self.events.load(Ordering::Relaxed), changes: self.changes.load(Ordering::Relaxed) };
        let holds = moment.lasts() && self.is_lately(self.looked.load(Ordering::Relaxed));
        holds.then(|| *known)
    }

    /// [`crate::vfs::Inode::check_names`], of which the last is a directory's, as far as that is known.
    pub(super) fn led_lately(&self, names: &[u8], dir: &HostInode) -> bool {
        Arc::ptr_eq(&self.shared, &dir.shared) && self.shared.ways.is_known(self, names, dir)
    }
}
