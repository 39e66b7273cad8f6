//! Processes whose guests have ended, for those that come next: a process that is used again need not be made, and not be taken down.
//!
//! Between two guests it is what a new one is: it has nothing mapped but the stub's code, its page of requests and one mailbox, and waits in the stub's
//! code, untraced, under the filter it was made with. Registers come with who uses it next. Whatever else the host keeps for a process would set
//! it apart from a new one, so a process that had another thread, chose its processors or its nice value, or has an entry in its descriptor table or a
//! registration for membarrier(2), is not kept.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use janua_paging::{Frames, PAGE};
use janua_platform_linux::{clock, usage};
use janua_port::Nanos;
use janua_port::machine::{Scheduled, Usage};
use janua_rt::Mutex;

use crate::mailbox;
use crate::mirror::{Mirror, Pages};
use crate::physical::MEMORY;
use crate::stub;
use crate::thread::Thread;
use crate::tracee::{NAME, Tracee, has_ended, wait};

/// As many are kept.
const MOST: usize = 8;
/// What the host calls one that waits.
const WAITING: [u8; NAME] = *b"janua: spare\0\0\0\0";

/// A process that waits in the stub's code, with its pages, and what the host has counted for it so far.
pub struct Spare {
    pub pid: u32,
    pub pages: Pages,
    pub counted: Counted,
}

/// What the host has counted for a process before its guest began.
#[derive(Clone, Copy, Default)]
pub struct Counted {
    pub cpu: Nanos,
    pub usage: Usage,
    pub scheduled: Scheduled,
}

static SPARES: Mutex<Vec<Spare>> = Mutex::new(Vec::new());
/// How many there are, with those that are about to be.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// One that nobody has ended meanwhile: the last that was used.
pub fn take() -> Option<Spare> {
    loop {
        let spare = SPARES.lock().pop()?;
        COUNT.fetch_sub(1, Ordering::Relaxed);
        if !has_ended(spare.pid) {
            return Some(spare);
        }
        spare.pages.release();
    }
}

/// One that was taken has been ended since, or the host does not let the caller trace it: its pages stay its own as long as it lives.
pub fn give_up(pid: u32, pages: Pages, tracee: &mut Tracee) {
    let was_traced = tracee.is_traced();
    tracee.end();
    if was_traced && wait(pid).is_ok() || has_ended(pid) {
        pages.release();
    }
}

/// Keeps the process of a thread that is at its end: false when it is none to be kept, or too many are. Nothing is lost then.
pub fn keep(thread: &Thread, mirror: &Mirror, tracee: &mut Tracee) -> bool {
    if !mirror.is_bare() || thread.areas.lock().iter().any(Option::is_some) {
        return false;
    }
    let is_kept = COUNT.fetch_add(1, Ordering::Relaxed) < MOST && clear_away(mirror, tracee);
    if !is_kept {
        COUNT.fetch_sub(1, Ordering::Relaxed);
    }
    is_kept
}

fn clear_away(mirror: &Mirror, tracee: &mut Tracee) -> bool {
    let Some(page) = mirror.requests() else { return false };
    let pid = mirror.pid();
    tracee.set_name(WAITING);
    // The page of the process it was made from has gone with its first trip, if that could be made.
    let all = [stub::unmap(0, mailbox::places().start), stub::unmap(stub::word(), PAGE)];
    if !matches!(tracee.calls(page, &all), Ok(true)) {
        return false;
    }
    let counted = counted(mirror, pid);
    if tracee.rest().is_err() {
        return false;
    }
    let Some(pages) = mirror.part() else { return false };
    if let Some(mailbox) = pages.mailbox {
        // The next guest reads it.
        MEMORY.write(mailbox, 0, &[0; PAGE]);
    }
    SPARES.lock().push(Spare { pid, pages, counted });
    true
}

/// What the host has counted until now. The thread's end has asked for most of it a moment ago.
fn counted(mirror: &Mirror, pid: u32) -> Counted {
    let (usage, scheduled) = mirror.counted();
    let usage = usage.or_else(|| usage::of_process(pid)).unwrap_or_default();
    let scheduled = scheduled.or_else(|| usage::scheduled((pid, pid))).unwrap_or_default();
    let cpu = clock::of_other((pid, pid), true).unwrap_or_default();
    // The same count, as of now.
    Counted { cpu, usage, scheduled: Scheduled { ran: scheduled.ran.max(cpu), ..scheduled } }
}
