//! A space's page table, and what of it the host's mappings show.
//!
//! An entry holds what is, and beside it with which rights the host's process has the page now: none, as a rule, until a fault asks for it,
//! and never more than the entry grants once [`Table::flush`] has returned. What is to be taken away is noted and done there,
//! in as few trips as there can be.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use janua_abi::linux::Errno;
use janua_paging::table::NoMemory;
use janua_paging::{Entry, Frames, PAGE, PageFrame, Table};
use janua_port::Prot;
use janua_port::machine::{Scheduled, Usage};
use janua_rt::Mutex;

use crate::mailbox;
use crate::physical::MEMORY;
use crate::spare::Counted;
use crate::stub::{self, Request};
use crate::thread::{self, Thread};
use crate::tracee::{Lost, Tracee, moment};

mod chunks;
pub mod eager;

use chunks::{CHUNK, Chunks};

/// Pages around one that faulted that are shown with it: an aligned group of this many.
const AROUND: usize = 64;
/// With those behind it that go on in the same mapping of the host's, as many at most.
const MOST_AROUND: usize = 256;
/// Mappings that a fork's child begins with, at most: as many as go into one trip with what else it is for.
const INHERITED: usize = stub::MOST - 4;
/// Pages that a fork copies.
const COPIED: usize = 64;

/// What is to be done before a thread goes to user code: changes wait; a program begins ([`Mirror::begins`]), too.
const EXPECTED: u8 = 1;
const BEGINS: u8 = 2;

/// Bits of a word; the frame's number is above them.
const PRESENT: u64 = 1;
const RIGHTS: u32 = 1;
const SHOWN_RIGHTS: u32 = 4;
const SHOWN: u64 = 1 << 7;
const FRAME: u32 = 12;

fn pack(prot: Prot) -> u64 {
    stub::bits(prot) as u64
}

fn unpack(bits: u64) -> Prot {
    Prot { read: bits & 1 != 0, write: bits & 2 != 0, exec: bits & 4 != 0 }
}

#[derive(Clone, Copy)]
pub struct Word(u64);

impl Word {
    fn new(entry: Entry) -> Word {
        Word(PRESENT | pack(entry.prot) << RIGHTS | (entry.frame.0 as u64) << FRAME)
    }
    fn is_present(self) -> bool {
        self.0 & PRESENT != 0
    }
    fn entry(self) -> Option<Entry> {
        self.is_present().then(|| Entry { frame: self.frame(), prot: unpack(self.rights()) })
    }
    fn frame(self) -> PageFrame {
        PageFrame((self.0 >> FRAME) as usize)
    }
    fn rights(self) -> u64 {
        self.0 >> RIGHTS & 7
    }
    /// The rights the host's process has.
    fn shown(self) -> Option<u64> {
        (self.0 & SHOWN != 0).then_some(self.0 >> SHOWN_RIGHTS & 7)
    }
    fn show(self, rights: Option<u64>) -> Word {
        let bare = self.0 & !(SHOWN | 7 << SHOWN_RIGHTS);
        Word(bare | rights.map_or(0, |rights| SHOWN | rights << SHOWN_RIGHTS))
    }
}

/// A change of the host's mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Unmap {
        addr: usize,
        pages: usize,
    },
    /// `now`: the host's page table has the pages at once, too; otherwise each has yet to be met with there, which stops nobody.
    Map {
        addr: usize,
        pages: usize,
        frame: PageFrame,
        rights: u64,
        now: bool,
    },
    Protect {
        addr: usize,
        pages: usize,
        rights: u64,
    },
}

impl Change {
    /// Takes the next page in, if that goes on where this ends.
    fn join(&mut self, next: &Change) -> bool {
        match (self, next) {
            (Change::Unmap { addr, pages }, Change::Unmap { addr: at, pages: more }) if *addr + *pages * PAGE == *at => {
                *pages += more;
            }
            (
                Change::Map { addr, pages, frame, rights, now },
                Change::Map { addr: at, pages: more, frame: from, rights: same, now: when },
            ) if *addr + *pages * PAGE == *at && frame.0 + *pages == from.0 && rights == same && now == when => {
                *pages += more;
            }
            (Change::Protect { addr, pages, rights }, Change::Protect { addr: at, pages: more, rights: same })
                if *addr + *pages * PAGE == *at && rights == same =>
            {
                *pages += more;
            }
            _ => return false,
        }
        true
    }

    /// Whether it is one of what the guest has mapped.
    fn is_guests(&self) -> bool {
        let (Change::Unmap { addr, .. } | Change::Map { addr, .. } | Change::Protect { addr, .. }) = *self;
        addr < mailbox::places().start
    }

    fn request(&self) -> Request {
        match *self {
            Change::Unmap { addr, pages } => stub::unmap(addr, pages * PAGE),
            Change::Map { addr, pages, frame, rights, now } => stub::map(addr, frame, pages, unpack(rights), now),
            Change::Protect { addr, pages, rights } => stub::protect(addr, pages, unpack(rights)),
        }
    }
}

fn note(changes: &mut Vec<Change>, change: Change) {
    if !changes.last_mut().is_some_and(|last| last.join(&change)) {
        changes.push(change);
    }
}

#[derive(Default)]
struct Inner {
    chunks: Chunks,
    pending: Vec<Change>,
    /// The page of requests of the host's process, once there is one.
    requests: Option<PageFrame>,
    /// The mailboxes in it, and whether each is a thread's now: they stay for those who come after.
    mailboxes: Vec<(PageFrame, bool)>,
}

impl Inner {
    fn word(&self, addr: usize) -> Word {
        self.chunks.word(addr)
    }

    fn put(&mut self, addr: usize, word: Word) {
        self.chunks.put(addr, word);
    }

    fn set(&mut self, addr: usize, entry: Entry) {
        let old = self.word(addr);
        let mut new = Word::new(entry);
        if let Some(shown) = old.shown() {
            let (rights, frame) = (new.rights(), entry.frame);
            if old.frame() != frame {
                note(&mut self.pending, Change::Map { addr, pages: 1, frame, rights, now: true });
                new = new.show(Some(rights));
            } else if shown & !rights != 0 {
                note(&mut self.pending, Change::Protect { addr, pages: 1, rights });
                new = new.show(Some(rights));
            } else {
                new = new.show(Some(shown));
            }
        }
        self.put(addr, new);
    }

    fn next(&self, from: usize, end: usize) -> Option<(usize, Entry)> {
        let (addr, word) = self.chunks.next(from, end)?;
        Some((addr, word.entry()?))
    }

    fn take(&mut self, from: usize, end: usize) -> Option<(usize, Entry)> {
        let (addr, word) = self.chunks.next(from, end)?;
        if word.shown().is_some() {
            note(&mut self.pending, Change::Unmap { addr, pages: 1 });
        }
        self.put(addr, Word(0));
        Some((addr, word.entry()?))
    }

    /// Nothing is shown any more.
    fn hide_all(&mut self) {
        self.chunks.change_all(|word| word.show(None));
        self.pending.clear();
    }

    /// What shows a page, behind all that waits: a change that is older must not undo it.
    fn bring(&mut self, addr: usize) -> Vec<Change> {
        let mut changes = core::mem::take(&mut self.pending);
        changes.append(&mut self.show(addr));
        changes
    }

    /// What shows a page and those around it as their entries have them, and what follows it in the same mapping.
    fn show(&mut self, addr: usize) -> Vec<Change> {
        let mut changes = Vec::new();
        let group = addr & !(AROUND * PAGE - 1);
        let mut before = Word(0);
        for page in (group..group + MOST_AROUND * PAGE).step_by(PAGE) {
            let word = self.word(page);
            let rights = word.rights();
            let follows = word.is_present() && word.frame().0 == before.frame().0 + 1 && rights == before.rights();
            if page >= group + AROUND * PAGE && (!follows || word.shown().is_some()) {
                break;
            }
            before = word;
            if !word.is_present() || rights == 0 || word.shown() == Some(rights) {
                continue;
            }
            let change = match word.shown() {
                Some(_) => Change::Protect { addr: page, pages: 1, rights },
                None => Change::Map { addr: page, pages: 1, frame: word.frame(), rights, now: true },
            };
            note(&mut changes, change);
            self.put(page, word.show(Some(rights)));
        }
        changes
    }
}

/// The pages of the kernel's that a process has from the beginning.
#[derive(Clone, Copy)]
pub struct Pages {
    pub requests: PageFrame,
    pub mailbox: Option<PageFrame>,
}

impl Pages {
    /// ENOMEM.
    pub fn take() -> janua_abi::linux::Result<Pages> {
        let requests = MEMORY.take().ok_or(Errno::ENOMEM)?;
        if !mailbox::are_used() {
            return Ok(Pages { requests, mailbox: None });
        }
        let mailbox = MEMORY.take();
        if mailbox.is_none() {
            MEMORY.release(requests);
        }
        mailbox.map(|page| Pages { requests, mailbox: Some(page) }).ok_or(Errno::ENOMEM)
    }

    pub fn release(self) {
        MEMORY.release(self.requests);
        self.mailbox.into_iter().for_each(|page| MEMORY.release(page));
    }
}

/// The page table of a space with the host's process that shows it.
pub struct Mirror {
    inner: Mutex<Inner>,
    /// The threads whose host threads are in that process.
    threads: Mutex<Vec<Arc<Thread>>>,
    /// Changes wait for the next thread that goes to user code, and somebody waits for them.
    waiting: AtomicBool,
    /// The same where nobody does: 0, [`EXPECTED`] or [`BEGINS`].
    expected: AtomicU8,
    /// Becomes another when they have been made.
    made: AtomicU32,
    /// How often the host's mappings have been changed.
    changes: AtomicU64,
    /// The host's number of the process; 0 before there is one.
    pid: AtomicU32,
    /// The registrations for membarrier(2) that its space has, as their commands: bits.
    barriers: AtomicU32,
    /// Nanoseconds that the kernel's threads of its ended threads have used.
    ended: AtomicU64,
    /// Not all of its threads can be ended.
    abandoned: AtomicBool,
    /// Pages that have come by faults.
    faults: AtomicU64,
    /// Threads it has had; and somebody has changed what the host keeps for its process besides memory and registers.
    begun: AtomicU32,
    touched: AtomicBool,
    /// What the host had counted for the process before it was its, and what it has counted since.
    counted_before: Mutex<Counted>,
    counted: Mutex<(Option<Usage>, Option<Scheduled>)>,
}

impl Mirror {
    pub fn new() -> Arc<Mirror> {
        Arc::new(Mirror {
            inner: Mutex::default(),
            threads: Mutex::default(),
            waiting: AtomicBool::new(false),
            expected: AtomicU8::new(0),
            made: AtomicU32::new(0),
            changes: AtomicU64::new(0),
            pid: AtomicU32::new(0),
            barriers: AtomicU32::new(0),
            ended: AtomicU64::new(0),
            abandoned: AtomicBool::new(false),
            faults: AtomicU64::new(0),
            begun: AtomicU32::new(0),
            touched: AtomicBool::new(false),
            counted_before: Mutex::default(),
            counted: Mutex::default(),
        })
    }

    /// The host's number of its process; 0 before there is one.
    pub fn pid(&self) -> u32 {
        self.pid.load(Ordering::Relaxed)
    }

    /// Nanoseconds that its threads have used in the kernel.
    pub fn used_in_kernel(&self) -> u64 {
        // Each is among the threads or among those that have ended.
        let threads = self.threads.lock();
        let alive: u64 = threads.iter().map(|thread| thread.used_in_kernel()).sum();
        self.ended.load(Ordering::Relaxed) + alive
    }

    /// So many pages have come by a fault.
    pub fn note_faults(&self, pages: u64) {
        self.faults.fetch_add(pages, Ordering::Relaxed);
    }

    /// Pages that have come by faults.
    pub fn faults(&self) -> u64 {
        self.faults.load(Ordering::Relaxed)
    }

    pub fn barriers(&self) -> u32 {
        self.barriers.load(Ordering::Relaxed)
    }

    pub fn add_barriers(&self, commands: u32) {
        self.barriers.fetch_or(commands, Ordering::Relaxed);
    }

    /// It has a process, with its page of requests and the first of its mailboxes.
    pub fn set_process(&self, pid: u32, pages: Pages) {
        self.pid.store(pid, Ordering::Relaxed);
        let mut inner = self.inner.lock();
        inner.requests = Some(pages.requests);
        inner.mailboxes = pages.mailbox.into_iter().map(|page| (page, false)).collect();
    }

    /// The process had another guest before, for which the host had counted this.
    pub fn set_counted_before(&self, counted: Counted) {
        *self.counted_before.lock() = counted;
    }

    /// What the host had counted for the process before it was its.
    pub fn counted_before(&self) -> Counted {
        *self.counted_before.lock()
    }

    /// Notes what the host counts for its process altogether, if it is of the first thread, which says so.
    pub fn note_counted(&self, usage: Option<Usage>, scheduled: Option<Scheduled>) {
        let mut counted = self.counted.lock();
        counted.0 = usage.or(counted.0);
        counted.1 = scheduled.or(counted.1);
    }

    /// What was noted last.
    pub fn counted(&self) -> (Option<Usage>, Option<Scheduled>) {
        *self.counted.lock()
    }

    /// Its process is no longer as one that has had one guest thread and nothing else.
    pub fn touch(&self) {
        self.touched.store(true, Ordering::Relaxed);
    }

    /// Whether its process could be another guest's once its memory is gone.
    pub fn is_bare(&self) -> bool {
        let one = self.begun.load(Ordering::Relaxed) == 1 && self.inner.lock().mailboxes.len() <= 1;
        one && !self.touched.load(Ordering::Relaxed) && self.barriers() == 0 && !self.is_abandoned() && self.pid() != 0
    }

    /// The process is no longer its own: its pages.
    pub fn part(&self) -> Option<Pages> {
        let mut inner = self.inner.lock();
        inner.hide_all();
        self.pid.store(0, Ordering::Relaxed);
        let mailbox = inner.mailboxes.pop().map(|(page, _)| page);
        inner.requests.take().map(|requests| Pages { requests, mailbox })
    }

    /// Its process' page of requests.
    pub fn requests(&self) -> Option<PageFrame> {
        self.inner.lock().requests
    }

    /// The process has the page of the word of the one it was made from, until the next trip.
    pub fn has_word(&self) {
        self.inner.lock().pending.push(Change::Unmap { addr: stub::word(), pages: 1 });
    }

    /// A fork's child is shown, in its first trip, what it is most likely to touch: the code that its parent has, and what its parent writes; then the rest.
    /// Returns how many pages.
    pub fn inherit(&self, parent: &Mirror) -> u64 {
        let parent = parent.inner.lock();
        let mut inner = self.inner.lock();
        let (mut changes, mut pages) = (Vec::new(), 0);
        'all: for likely in [true, false] {
            for (number, chunk) in parent.chunks.iter() {
                for (at, theirs) in chunk.iter() {
                    let Some(shown) = theirs.shown() else { continue };
                    let addr = number * CHUNK + at * PAGE;
                    let word = inner.word(addr);
                    let (rights, frame) = (word.rights(), word.frame());
                    let is_likely = unpack(rights).write || unpack(shown & rights).exec;
                    if !word.is_present() || rights == 0 || word.shown().is_some() || is_likely != likely {
                        continue;
                    }
                    note(&mut changes, Change::Map { addr, pages: 1, frame, rights, now: false });
                    if changes.len() > INHERITED {
                        changes.pop();
                        break 'all;
                    }
                    inner.put(addr, word.show(Some(rights)));
                    pages += 1;
                }
            }
        }
        inner.pending.append(&mut changes);
        pages
    }

    /// The host does not let one of its process' threads be traced, and so not be ended either: it waits in the stub's code until the kernel ends.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    pub fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// The page of requests and the mailboxes, which nobody uses any more.
    pub fn take_pages(&self) -> Vec<PageFrame> {
        let mut inner = self.inner.lock();
        inner.hide_all();
        let mailboxes = core::mem::take(&mut inner.mailboxes);
        inner.requests.take().into_iter().chain(mailboxes.into_iter().map(|(page, _)| page)).collect()
    }

    /// Gives a thread a mailbox: its number. [`Lost`] without memory, too: a thread without a mailbox could make no rewritten call.
    pub fn take_mailbox(&self, tracee: &mut Tracee) -> Result<(usize, PageFrame), Lost> {
        /// As many are mapped at a time, once a process has threads.
        const GROUP: usize = 8;
        // Held until the new ones are there: others would take them.
        let mut inner = self.inner.lock();
        let mut requests = Vec::new();
        if inner.mailboxes.iter().all(|(_, taken)| *taken) {
            let have = inner.mailboxes.len();
            let more = if have == 0 { 1 } else { GROUP - have % GROUP };
            let rights = Prot { read: true, write: true, exec: false };
            for number in have..have + more {
                let page = MEMORY.take().ok_or(Lost)?;
                inner.mailboxes.push((page, false));
                requests.push(stub::map(mailbox::place(number), page, 1, rights, true));
            }
        }
        let page = inner.requests.ok_or(Lost)?;
        if !requests.is_empty() && !tracee.calls(page, &requests)? {
            return Err(Lost);
        }
        let free = inner.mailboxes.iter_mut().enumerate().find(|(_, (_, taken))| !*taken);
        let (number, (page, taken)) = free.ok_or(Lost)?;
        *taken = true;
        Ok((number, *page))
    }

    /// It is no thread's any more.
    pub fn return_mailbox(&self, number: usize) {
        if let Some((_, taken)) = self.inner.lock().mailboxes.get_mut(number) {
            *taken = false;
        }
    }

    pub fn add(&self, thread: Arc<Thread>) {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.threads.lock().push(thread);
    }

    /// A thread is not there any more, which has used so many nanoseconds in the kernel: how many are.
    pub fn remove(&self, thread: &Thread, used: u64) -> usize {
        let mut threads = self.threads.lock();
        self.ended.fetch_add(used, Ordering::Relaxed);
        threads.retain(|other| !core::ptr::eq(&**other, thread));
        threads.len()
    }

    pub fn threads(&self) -> Vec<Arc<Thread>> {
        self.threads.lock().clone()
    }

    /// How often the host's mappings have been changed.
    pub fn generation(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// The rights with which the host's process has a page.
    pub fn shown(&self, addr: usize) -> Option<Prot> {
        self.inner.lock().word(addr & !(PAGE - 1)).shown().map(unpack)
    }

    /// Whether changes wait.
    pub fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) || self.expected.load(Ordering::SeqCst) != 0
    }

    /// Whether a page that a thread has found missing is one that its process should have, and has not as changes wait: they are made before the thread
    /// goes on.
    pub fn is_overdue(&self, addr: usize) -> bool {
        let inner = self.inner.lock();
        let is_overdue = !inner.pending.is_empty() && inner.word(addr & !(PAGE - 1)).shown().is_some();
        if is_overdue {
            self.expected.fetch_max(EXPECTED, Ordering::SeqCst);
        }
        is_overdue
    }

    /// Makes the changes that wait, by the calling thread's own host thread.
    pub fn settle(&self, tracee: &mut Tracee) -> Result<(), Lost> {
        let mut inner = self.inner.lock();
        let changes = core::mem::take(&mut inner.pending);
        self.make_all(&mut inner, tracee, &changes)
    }

    /// Shows a page that a fault has asked for, by the calling thread's own host thread.
    pub fn bring(&self, tracee: &mut Tracee, addr: usize) -> Result<(), Lost> {
        let mut inner = self.inner.lock();
        let changes = inner.bring(addr & !(PAGE - 1));
        self.make_all(&mut inner, tracee, &changes)
    }

    /// Makes changes, the pending ones among them, so that nothing waits any more.
    fn make_all(&self, inner: &mut Inner, tracee: &mut Tracee, changes: &[Change]) -> Result<(), Lost> {
        self.make(inner, tracee, changes)?;
        let _ = self.expected.compare_exchange(EXPECTED, 0, Ordering::SeqCst, Ordering::Relaxed);
        if self.waiting.swap(false, Ordering::SeqCst) {
            self.made.fetch_add(1, Ordering::SeqCst);
            janua_platform_linux::spawn::unpark(&self.made, u32::MAX);
        }
        Ok(())
    }

    fn make(&self, inner: &mut Inner, tracee: &mut Tracee, changes: &[Change]) -> Result<(), Lost> {
        let (false, Some(page)) = (changes.is_empty(), inner.requests) else { return Ok(()) };
        let everything = stub::unmap(0, mailbox::places().start);
        let is_cleared = inner.chunks.is_empty() && changes.len() > 1;
        let requests: Vec<Request> = if is_cleared {
            // Of whatever else there is, which no guest has mapped.
            let rest = changes.iter().filter(|change| !change.is_guests());
            core::iter::once(everything).chain(rest.map(Change::request)).collect()
        } else {
            changes.iter().map(Change::request).collect()
        };
        if !tracee.calls(page, &requests)? {
            // The host has no room for so many mappings: all come anew, by faults.
            inner.hide_all();
            // So does the page that a new process has of the one it was made from, whose going may have been among them.
            if !tracee.calls(page, &[stub::unmap(stub::word(), PAGE), everything])? {
                return Err(Lost);
            }
        }
        // Afterwards: who began to run meanwhile, and has met what was before, finds another number.
        self.changes.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// Takes from user code what the table no longer grants: now, where the caller's own thread is in the process; otherwise
    /// the next thread to go there does it first, and the caller waits for those that are there.
    fn flush(&self) {
        if self.inner.lock().pending.is_empty() {
            return;
        }
        if self.pid() == 0 {
            return self.inner.lock().pending.clear();
        }
        if let Some(own) = thread::current().filter(|own| own.is_in(self)) {
            if self.settle(&mut own.tracee.lock()).is_err() {
                // Somebody has ended the process: what was to be taken away is the others' until they have noticed.
                for other in self.threads() {
                    while other.may_run() {
                        moment(&self.made, self.made.load(Ordering::SeqCst));
                    }
                }
            }
            return;
        }
        self.waiting.store(true, Ordering::SeqCst);
        let made = self.made.load(Ordering::SeqCst);
        for thread in self.threads() {
            while thread.may_run() && self.waiting.load(Ordering::SeqCst) && self.made.load(Ordering::SeqCst) == made {
                thread.interrupt();
                moment(&self.made, made);
            }
        }
    }
}

/// A mirror as the space's table.
pub struct Shown(pub Arc<Mirror>);

impl Table for Shown {
    const FAULTS_ARE_DEAR: bool = true;

    fn expect(&mut self, start: usize, end: usize) {
        let mut inner = self.0.inner.lock();
        let mut changes = Vec::new();
        let mut at = start;
        while let Some((addr, entry)) = inner.next(at, end) {
            let word = inner.word(addr);
            if word.shown().is_none() && word.rights() != 0 {
                note(&mut changes, Change::Map { addr, pages: 1, frame: entry.frame, rights: word.rights(), now: false });
                inner.put(addr, word.show(Some(word.rights())));
            }
            at = addr + PAGE;
        }
        if !changes.is_empty() {
            inner.pending.append(&mut changes);
            // They go with the next trip: who finds them missing before sees to that ([`Mirror::is_overdue`]).
            if inner.pending.len() > INHERITED {
                self.0.expected.fetch_max(EXPECTED, Ordering::SeqCst);
            }
        }
    }

    fn copies_at_fork(&self) -> usize {
        // Others would go on writing.
        if self.0.threads.lock().len() == 1 { COPIED } else { 0 }
    }
    fn get(&self, addr: usize) -> Option<Entry> {
        self.0.inner.lock().word(addr).entry()
    }
    fn set(&mut self, addr: usize, entry: Entry) -> Result<(), NoMemory> {
        self.0.inner.lock().set(addr, entry);
        Ok(())
    }
    fn next(&self, from: usize, end: usize) -> Option<(usize, Entry)> {
        self.0.inner.lock().next(from, end)
    }
    fn take(&mut self, from: usize, end: usize) -> Option<(usize, Entry)> {
        self.0.inner.lock().take(from, end)
    }
    fn flush(&mut self, _start: usize, _end: usize) {
        self.0.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Prot = Prot { read: true, write: false, exec: false };
    const BOTH: Prot = Prot { read: true, write: true, exec: false };

    fn entry(frame: usize, prot: Prot) -> Entry {
        Entry { frame: PageFrame(frame), prot }
    }

    #[test]
    fn what_no_fault_has_asked_for_costs_nothing() {
        let mut inner = Inner::default();
        inner.set(0x1000, entry(7, BOTH));
        inner.set(0x1000, entry(7, READ));
        assert_eq!(inner.word(0x1000).entry(), Some(entry(7, READ)));
        assert_eq!(inner.take(0, usize::MAX), Some((0x1000, entry(7, READ))));
        assert!(inner.pending.is_empty() && inner.next(0, usize::MAX).is_none());
    }

    #[test]
    fn a_fault_shows_its_neighbours_in_runs() {
        let mut inner = Inner::default();
        for (at, frame) in [(0x20_0000, 10), (0x20_1000, 11), (0x20_2000, 20), (0x20_4000, 22)] {
            inner.set(at, entry(frame, BOTH));
        }
        let map = |addr, pages, frame| Change::Map { addr, pages, frame: PageFrame(frame), rights: 3, now: true };
        assert_eq!(inner.show(0x20_2000), [map(0x20_0000, 2, 10), map(0x20_2000, 1, 20), map(0x20_4000, 1, 22)]);
        assert!(inner.show(0x20_2000).is_empty(), "all of it is there");
    }

    #[test]
    fn what_is_shown_loses_rights_at_once_and_gets_more_by_a_fault() {
        let mut inner = Inner::default();
        inner.set(0x5000, entry(1, BOTH));
        inner.set(0x6000, entry(2, BOTH));
        inner.show(0x5000);
        inner.set(0x5000, entry(1, READ));
        inner.set(0x6000, entry(2, READ));
        assert_eq!(inner.pending, [Change::Protect { addr: 0x5000, pages: 2, rights: 1 }]);
        inner.pending.clear();
        inner.set(0x5000, entry(1, BOTH));
        assert!(inner.pending.is_empty());
        assert_eq!(inner.show(0x5000), [Change::Protect { addr: 0x5000, pages: 1, rights: 3 }]);
        inner.set(0x6000, entry(9, BOTH));
        assert_eq!(inner.pending, [Change::Map { addr: 0x6000, pages: 1, frame: PageFrame(9), rights: 3, now: true }]);
        inner.pending.clear();
        inner.take(0x5000, 0x6000);
        inner.take(0x5000, 0x7000);
        assert_eq!(inner.pending, [Change::Unmap { addr: 0x5000, pages: 2 }]);
    }

    #[test]
    fn what_waits_is_made_before_what_a_fault_brings() {
        let mut inner = Inner::default();
        inner.set(0x5000, entry(1, BOTH));
        inner.show(0x5000);
        inner.set(0x5000, entry(1, READ));
        inner.set(0x5000, entry(1, BOTH));
        let protect = |rights| Change::Protect { addr: 0x5000, pages: 1, rights };
        assert_eq!(inner.bring(0x5000), [protect(1), protect(3)]);
        assert!(inner.pending.is_empty());
        inner.take(0x5000, 0x6000);
        inner.set(0x5000, entry(2, BOTH));
        let unmap = Change::Unmap { addr: 0x5000, pages: 1 };
        assert_eq!(
            inner.bring(0x5000),
            [unmap, Change::Map { addr: 0x5000, pages: 1, frame: PageFrame(2), rights: 3, now: true }]
        );
    }

    #[test]
    fn what_maps_nothing_takes_no_memory() {
        let mut inner = Inner::default();
        for number in 0..100 {
            let addr = number * CHUNK;
            inner.set(addr, entry(1, READ));
            inner.set(addr + PAGE, entry(2, READ));
            assert!(inner.take(addr, addr + PAGE).is_some() && !inner.chunks.is_empty());
            assert!(inner.take(addr, addr + CHUNK).is_some() && inner.chunks.is_empty());
        }
    }

    #[test]
    fn chunks_do_not_hide_what_is_behind_them() {
        let mut inner = Inner::default();
        inner.set(CHUNK * 3 + 0x1000, entry(1, READ));
        inner.set(CHUNK * 9, entry(2, READ));
        assert_eq!(inner.next(CHUNK * 3 + 0x2000, usize::MAX), Some((CHUNK * 9, entry(2, READ))));
        assert_eq!(inner.next(CHUNK * 3 + 0x2000, CHUNK * 9), None);
    }
}
