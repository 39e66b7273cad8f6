//! Mappings that the host's process has before anybody faults on them. Those of a program that begins: it touches its first page of code and of its
//! stack, and all that is in memory goes with them. Those of a personality whose tasks map what they are about to touch: a message of L4 that
//! maps pages is the answer to a fault on one of them as a rule, and a fault more for each would cost more than all of them in one trip.

use core::sync::atomic::{AtomicBool, Ordering};

use janua_paging::PAGE;

use super::{BEGINS, Change, EXPECTED, INHERITED, Inner, Mirror, note};
use crate::tracee::{Lost, Tracee};

/// Larger ranges come by faults: nobody touches all of them, and their pages would be memory at once.
const MOST: usize = 256 * PAGE;

static ON: AtomicBool = AtomicBool::new(false);

/// From here on, for all spaces of the machine: before there are any.
pub fn turn_on() {
    ON.store(true, Ordering::Relaxed);
}

/// Whether a range of this length is shown as it is mapped.
pub fn suits(len: usize) -> bool {
    ON.load(Ordering::Relaxed) && len <= MOST
}

impl Inner {
    /// Notes what shows the pages of a range as their entries have them: whether there is anything to be shown.
    fn show_range(&mut self, start: usize, end: usize) -> bool {
        for page in (start..end).step_by(PAGE) {
            let word = self.word(page);
            let rights = word.rights();
            if !word.is_present() || rights == 0 || word.shown() == Some(rights) {
                continue;
            }
            let change = match word.shown() {
                Some(_) => Change::Protect { addr: page, pages: 1, rights },
                None => Change::Map { addr: page, pages: 1, frame: word.frame(), rights, now: true },
            };
            note(&mut self.pending, change);
            self.put(page, word.show(Some(rights)));
        }
        !self.pending.is_empty()
    }

    /// Notes what shows all pages that are not shown, each to be met with, as long as no more than `most` changes wait.
    fn show_all(&mut self, most: usize) {
        let mut at = 0;
        while let Some((addr, word)) = self.chunks.next(at, usize::MAX) {
            at = addr + PAGE;
            let rights = word.rights();
            if word.shown().is_some() || rights == 0 {
                continue;
            }
            // What is put together with a change that waits takes no place, but whether it will be is not known before.
            if self.pending.len() >= most {
                return;
            }
            note(&mut self.pending, Change::Map { addr, pages: 1, frame: word.frame(), rights, now: false });
            self.put(addr, word.show(Some(rights)));
        }
    }
}

impl Mirror {
    /// A program begins in the space, which is empty: before its first instruction its process is shown, in one trip, what is in memory of it by then.
    pub fn begins(&self) {
        self.expected.store(BEGINS, Ordering::SeqCst);
    }

    /// Makes a process ready for a thread that goes to user code, by that thread: what waits, and where a program begins what is in memory of it.
    pub fn make_ready(&self, tracee: &mut Tracee) -> Result<(), Lost> {
        let mut inner = self.inner.lock();
        if self.expected.swap(EXPECTED, Ordering::SeqCst) == BEGINS {
            inner.show_all(INHERITED);
        }
        let changes = core::mem::take(&mut inner.pending);
        self.make_all(&mut inner, tracee, &changes)
    }

    /// The host's process has the pages of a range, which are in the table, before a thread of it goes on. Not while one runs that could meet with them
    /// on the way: to that one they come by faults.
    pub fn show_soon(&self, addr: usize, len: usize) {
        if self.pid() == 0 || self.threads().iter().any(|thread| !thread.is_caller() && thread.may_run()) {
            return;
        }
        if self.inner.lock().show_range(addr, addr + len) {
            self.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use janua_paging::{Entry, PageFrame};
    use janua_port::Prot;

    use super::*;

    const READ: Prot = Prot { read: true, write: false, exec: false };
    const BOTH: Prot = Prot { read: true, write: true, exec: false };

    #[test]
    fn a_range_is_shown_in_one_piece_and_once() {
        let mut inner = Inner::default();
        for page in 0..64 {
            inner.set(0x10_0000 + page * PAGE, Entry { frame: PageFrame(7 + page), prot: BOTH });
        }
        // What is not there is left out.
        assert!(inner.show_range(0x10_0000, 0x10_0000 + 80 * PAGE));
        assert_eq!(inner.pending, [Change::Map { addr: 0x10_0000, pages: 64, frame: PageFrame(7), rights: 3, now: true }]);
        inner.pending.clear();
        assert!(!inner.show_range(0x10_0000, 0x10_0000 + 64 * PAGE));
    }

    #[test]
    fn rights_that_are_added_are_shown_too() {
        let mut inner = Inner::default();
        inner.set(0x10_0000, Entry { frame: PageFrame(7), prot: READ });
        inner.show_range(0x10_0000, 0x10_1000);
        inner.pending.clear();
        inner.set(0x10_0000, Entry { frame: PageFrame(7), prot: BOTH });
        assert!(inner.show_range(0x10_0000, 0x10_1000));
        assert_eq!(inner.pending, [Change::Protect { addr: 0x10_0000, pages: 1, rights: 3 }]);
    }

    #[test]
    fn a_program_begins_with_what_is_in_memory_of_it() {
        let mut inner = Inner::default();
        for (at, frame) in [(0x20_0000, 10), (0x20_1000, 11), (0x7f20_0000, 12), (0x7f40_0000, 13)] {
            inner.set(at, Entry { frame: PageFrame(frame), prot: BOTH });
        }
        inner.show(0x20_0000);
        inner.show_all(1);
        let map = |addr, frame| Change::Map { addr, pages: 1, frame: PageFrame(frame), rights: 3, now: false };
        assert_eq!(inner.pending, [map(0x7f20_0000, 12)]);
        assert!(inner.word(0x7f40_0000).shown().is_none(), "there was no room for it");
        inner.show_all(9);
        assert_eq!(inner.pending, [map(0x7f20_0000, 12), map(0x7f40_0000, 13)]);
    }
}
