//! The calls about the rings of the gate `ring`: Janua's own, under numbers that Linux never gives to calls of x86-64 (387 to 423).
//!
//! A thread has one ring, in its own memory ([`janua_abi::ring`]). Where modules reach that memory one of them looks into it ([`janua_kernel::Queue`]); otherwise the thread
//! makes what it has submitted when it asks ([`janua_kernel::queue::home`]). Memory that the kernel has mapped for it ([`memory`]) a module shares with the program.

mod memory;

use alloc::boxed::Box;
use alloc::sync::Arc;

use janua_abi::linux::{Errno, Result};
use janua_abi::ring;
use janua_kernel::Queue;
use janua_kernel::queue::home::HomeQueue;
use janua_kernel::table::{CallResult, OutcomeOf, SeatOf};
use janua_kernel::wait::{Cut, PollTable};
use janua_port::RingGate;

use self::memory::Memory;
use crate::{Linux, Thread};

/// A thread's ring.
pub enum Ring {
    Home(Box<HomeQueue<Linux>>),
    /// With the memory, which stays as long as the module looks into it.
    Module(Arc<Queue<Linux>>, Memory),
}

/// Opens the calling thread's ring, in its memory from `at` on, with so many calls under way at most: 1 when a module looks into it, 0 when the thread has to ask
/// ([`ring_wait`]). With 0 for `at` the kernel maps the memory, and the result is more by its address; the program unmaps it, after it has closed the ring. EBUSY when it has
/// one, ENOSYS where there is no such gate; EINVAL, ENOMEM and EFAULT, as [`janua_port::RingGate::open`] and [`Queue`] describe.
pub fn ring_open(thread: &Thread, at: usize, submissions: u32, completions: u32, calls: u32) -> Result<usize> {
    let gate = (*thread.kernel.ring_gate.read()).ok_or(Errno::ENOSYS)?;
    thread.shared_context().ok_or(Errno::ESRCH)?;
    if thread.ring.lock().is_some() {
        return Err(Errno::EBUSY);
    }
    let watched = thread.kernel.modules.look_into_queues_of(thread);
    if at != 0 {
        if !thread.user().in_range(at, 1) {
            return Err(Errno::EFAULT);
        }
        return open(thread, gate, Memory::of_program(at), (submissions, completions), calls, watched);
    }
    let memory = Memory::map(thread, (submissions, completions), watched)?;
    let at = memory.at();
    let mapped = memory.mapped();
    let opened = open(thread, gate, memory, (submissions, completions), calls, watched);
    if opened.is_err() {
        mapped.unmap(thread);
    }
    opened.map(|watched| at + watched)
}

fn open(thread: &Thread, gate: &dyn RingGate, memory: Memory, entries: (u32, u32), calls: u32, watched: bool) -> Result<usize> {
    let seat = thread.seat().ok_or(Errno::ESRCH)?;
    let context = thread.shared_context().ok_or(Errno::ESRCH)?;
    let queue = gate.open(context, memory.at(), entries, watched, memory.window())?;
    let ring = match watched {
        true => Ring::Module(seat.open_queue(queue, calls as usize)?, memory),
        false => Ring::Home(Box::new(HomeQueue::open(thread, queue, calls as usize)?)),
    };
    *thread.ring.lock() = Some(ring);
    Ok(usize::from(watched))
}

/// Closes it, with all that is under way. ENXIO without one.
pub fn ring_close(thread: &Thread) -> Result<()> {
    match leave(thread) {
        true => Ok(()),
        false => Err(Errno::ENXIO),
    }
}

/// By a thread that loses its memory, by its end or for another program, or closes its ring: whether it had one.
pub fn leave(thread: &Thread) -> bool {
    let ring = thread.ring.lock().take();
    match ring {
        None => return false,
        Some(Ring::Home(queue)) => queue.close(),
        // The thread has no other queues.
        Some(Ring::Module(..)) => thread.close_queues(),
    }
    true
}

/// Has what has been submitted made, and waits until at least so many completions can be taken, no longer than `nanos` (0: for ever): how many there are. ENXIO without a
/// ring; ETIMEDOUT, EINTR.
pub fn ring_wait(seat: SeatOf<'_, Linux>, least: usize, nanos: u64) -> OutcomeOf {
    let thread = seat.get_ref().owner();
    match &mut *thread.ring.lock() {
        None => return Errno::ENXIO.as_result().into(),
        Some(Ring::Home(queue)) => {
            let there = queue.serve(seat);
            if there >= least {
                return there.word().into();
            }
        }
        Some(Ring::Module(queue, _)) => queue.ring(),
    }
    Thread::begin(seat, wait, [least, nanos as usize, 0, 0, 0, 0])
}

async fn wait(thread: &Thread, words: [usize; 6]) -> isize {
    waited(thread, words[0], words[1] as u64).await.word()
}

async fn waited(thread: &Thread, least: usize, nanos: u64) -> Result<usize> {
    let module = match &*thread.ring.lock() {
        None => return Err(Errno::ENXIO),
        Some(Ring::Home(_)) => None,
        Some(Ring::Module(queue, _)) => Some(queue.clone()),
    };
    let least = least.min(ring::MOST as usize);
    let deadline = (nanos != 0).then(|| thread.machine().clock().monotonic().saturating_add(nanos));
    let waited = match module {
        Some(queue) => queue.wait(thread, least, deadline).await,
        None => {
            let seat = thread.seat().ok_or(Errno::ESRCH)?;
            let step = |table: Option<&mut PollTable>| match &mut *thread.ring.lock() {
                Some(Ring::Home(queue)) => queue.step(&seat, least, table),
                _ => Some(0),
            };
            thread.wait_polling(deadline, step).await
        }
    };
    waited.map_err(|cut| if cut == Cut::TimedOut { Errno::ETIMEDOUT } else { Errno::EINTR })
}
