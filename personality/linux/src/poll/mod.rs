//! Waiting for several files: poll(2), select(2), epoll(7).

pub mod epoll;
#[allow(clippy::module_inception, reason = "the call's own name")]
pub mod poll;
pub mod select;

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use janua_kernel::table::Fd;
use janua_kernel::thread::work;
use janua_kernel::wait::{Cut, PollTable};
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

/// Lists up to this length are had in any case, and in longer ones so many files are looked at between two looks at what else there is.
const PART: usize = 64;

/// The error where the kernel has no memory for so many files.
#[cold]
fn refused(thread: &Thread) -> Errno {
    thread.machine().accounts().memory.refuse();
    Errno::ENOMEM
}

/// Bytes of a list that is one of few.
const LARGE: usize = 64 << 10;

/// An empty list with room for `len`. What is as long as a program likes is had as long as the kernel keeps to its limit. ENOMEM.
pub fn list_of<A: smallvec::Array>(thread: &Thread, len: usize) -> Result<SmallVec<A>> {
    let mut list = SmallVec::new();
    if len > list.inline_size() {
        let bytes = len.saturating_mul(size_of::<A::Item>());
        let accounts = thread.machine().accounts();
        if len > PART && (accounts.is_tight() || bytes > LARGE && !accounts.has_firm(bytes)) {
            return Err(refused(thread));
        }
        list.try_reserve_exact(len).map_err(|_| refused(thread))?;
    }
    Ok(list)
}

/// Waits until one of the files is ready; `ready` of each is set. Returns how many are. ENOMEM when the kernel has no memory for so many.
pub async fn wait(thread: &Thread, list: &mut [Watched], deadline: Option<Nanos>) -> Result<Result<usize, Cut>> {
    let waited = thread.wait_polling(deadline, move |table| look(thread, list, table)).await;
    match waited {
        Ok(counted) => counted.map(Ok),
        Err(cut) => Ok(Err(cut)),
    }
}

/// One look at all files, which registers with them where there is a table; `None` if none is ready.
fn look(thread: &Thread, list: &mut [Watched], mut table: Option<&mut PollTable>) -> Option<Result<usize>> {
    let mut count = 0;
    let is_long = list.len() > PART;
    if let Some(table) = table.as_mut().filter(|_| is_long) {
        table.may_refuse();
    }
    for (at, watched) in list.iter_mut().enumerate() {
        if at % PART == PART - 1 {
            // Who is to end takes no more of the kernel's memory for its registrations, and nobody does beyond the limit.
            if thread.work() & work::KILL != 0 {
                return None;
            }
            if is_long && table.is_some() && thread.machine().accounts().is_tight() {
                return Some(Err(refused(thread)));
            }
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
        } else if table.as_ref().is_some_and(|table| table.is_refused()) {
            return Some(Err(refused(thread)));
        }
    }
    (count > 0).then_some(Ok(count))
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
