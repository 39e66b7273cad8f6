//! Waiting for several files: poll(2), select(2), epoll(7).

pub mod epoll;
#[allow(clippy::module_inception, reason = "the call's own name")]
pub mod poll;
pub mod select;

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use janua_kernel::table::Fd;
use janua_kernel::thread::work;
use janua_kernel::wait::Cut;
use janua_kernel::{Errno, Result, UserPtr};
use janua_object::fdtable::FdTable;
use janua_object::file::flags;
use janua_object::{Events, OpenFile};
use janua_port::Nanos;
use smallvec::SmallVec;

use crate::signal::SigSet;
use crate::thread::ThreadExt;
use crate::{Thread, signal};

/// A file that is waited for.
pub struct Watched {
    /// `None` for a descriptor that is to be passed over.
    pub file: Option<Arc<OpenFile>>,
    /// Events wanted, errors among them.
    pub wanted: u32,
    /// Those that are ready.
    pub ready: u32,
}

/// So many need no allocation.
pub type WatchList = SmallVec<[Watched; 8]>;

/// So many files are looked at before the thread looks whether it is to end.
const PART: usize = 64;

/// Waits until one of the files is ready; `ready` of each is set. Returns how many are.
pub async fn wait(thread: &Thread, list: &mut [Watched], deadline: Option<Nanos>) -> Result<usize, Cut> {
    thread
        .wait_polling(deadline, move |mut table| {
            let mut count = 0;
            for (at, watched) in list.iter_mut().enumerate() {
                // Each takes memory of the kernel's: who is to end for want of that takes no more.
                if at % PART == PART - 1 && thread.work() & work::KILL != 0 {
                    return None;
                }
                let Some(file) = &watched.file else { continue };
                if let Some(table) = &mut table {
                    table.set_mask(watched.wanted);
                }
                watched.ready = file.poll(&thread.caller(), table.as_deref_mut()).bits() & watched.wanted;
                if watched.ready != 0 && table.is_some() {
                    // What is reported once is reported to who asks, not to who registers.
                    watched.ready = file.poll(&thread.caller(), None).bits() & watched.wanted;
                }
                if watched.ready != 0 {
                    count += 1;
                    // Nobody is going to wait: the rest need only be asked.
                    table = None;
                }
            }
            (count > 0).then_some(count)
        })
        .await
}

/// The file behind a descriptor, unless it was opened for its path alone. EBADF.
pub fn file(files: &FdTable, fd: Fd) -> Result<Arc<OpenFile>> {
    let file = files.get(fd)?;
    if file.flags() & flags::O_PATH != 0 { Err(Errno::EBADF) } else { Ok(file) }
}

/// Events that are always wanted.
pub const ALWAYS: u32 = Events::ERR.bits() | Events::HUP.bits();

/// When a wait of `nanos` ends: 0, at once, for a wait of no length.
pub fn deadline(thread: &Thread, nanos: u64) -> Nanos {
    if nanos == 0 { 0 } else { thread.machine().clock().monotonic().saturating_add(nanos) }
}

/// Has `store` give the program what is left of a wait's time, if it set one and wants to know (STICKY_TIMEOUTS of personality(2) means
/// that it does not). Whether it could not be reported.
fn report_rest(thread: &Thread, deadline: Option<Nanos>, store: impl FnOnce(Nanos) -> Result<()>) -> bool {
    const STICKY_TIMEOUTS: u32 = 0x0400_0000;
    let Some(at) = deadline.filter(|&deadline| deadline != 0) else { return false };
    let sticky = thread.process().settings.personality.load(Ordering::Relaxed) & STICKY_TIMEOUTS != 0;
    sticky || store(remaining(thread, at)).is_err()
}

/// What is left of a wait.
pub fn remaining(thread: &Thread, deadline: Nanos) -> u64 {
    deadline.saturating_sub(thread.machine().clock().monotonic())
}

/// Puts the mask at `set` in force for the rest of the call; a null pointer leaves the mask alone. EINVAL for another size than 8.
pub fn begin_mask(thread: &Thread, set: UserPtr<u64>, size: usize) -> Result<()> {
    let Some(set) = set.non_null() else { return Ok(()) };
    if size != 8 {
        return Err(Errno::EINVAL);
    }
    let mask = SigSet(set.read(thread.user())?);
    thread.set_temporary_mask(mask);
    Ok(())
}

/// Puts the old mask back in a call that was not interrupted: signals only the temporary mask let in stay pending. In one that
/// was interrupted the return to user mode does it, after it has set up the handler.
pub fn end_mask(thread: &Thread) {
    let saved = thread.signals.saved.lock().take();
    if let Some(mask) = saved {
        thread.clear_work(work::RESTORE);
        signal::set_mask(thread, mask);
    }
}
