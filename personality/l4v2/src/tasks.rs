//! Making and ending tasks and threads.

use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::l4v2::id::Id;
use janua_abi::linux::{Errno, Result};
use janua_kernel::thread::work;
use janua_port::{Frame, Spawn, SpawnKind};
use janua_rt::Mutex;

use crate::state::{Key, New, TaskEntry};
use crate::system::{L4Task, L4Thread, Room, ThreadExt};
use crate::{Kernel, Seat, Task, Thread};

/// What the first thread of a task is given.
pub struct First {
    /// Its name, of thread 0.
    pub id: Id,
    pub priority: u8,
    pub mcp: u8,
    pub pager: Id,
    /// eip and esp; eax, ebx and ecx.
    pub entry: [u32; 2],
    pub initial: [u32; 3],
}

/// Makes a task with its first thread, which does not run before [`crate::state::State::make_ready`]. EAGAIN, ENOMEM.
pub fn make_task(kernel: &Arc<Kernel>, first: First) -> Result<Key> {
    let (number, key) = (first.id.task(), Key::of(first.id));
    let room = Room::take(kernel.machine)?;
    let task = Arc::new(Task { kernel: kernel.clone(), ext: L4Task { number, space: Mutex::new(None) } });
    let seat = Seat::new(Thread::new(task.clone(), L4Thread { key, initial: first.initial, room }));
    {
        let mut state = kernel.system.state();
        state.tasks.insert(number, TaskEntry { task: task.clone(), id: first.id });
        state.add(New {
            id: first.id,
            seat: seat.clone(),
            priority: first.priority,
            mcp: first.mcp,
            pager: first.pager,
            entry: first.entry,
        });
    }
    // Held while the thread is made, which takes its space from here, and may run before this function goes on.
    let mut slot = task.ext.space.lock();
    match kernel.machine.spawn_first(seat) {
        Ok((_, space)) => {
            kernel.memory.add_space(number, space.clone());
            *slot = Some(space);
            Ok(key)
        }
        Err(errno) => {
            let mut state = kernel.system.state();
            state.remove(key);
            state.tasks.remove(&number);
            Err(errno)
        }
    }
}

/// Makes a thread of the caller's task, which does not run before [`crate::state::State::make_ready`]. EAGAIN, ENOMEM.
pub fn make_thread(thread: &Thread, number: u8, pager: Id, entry: [u32; 2]) -> Result<Key> {
    let key = Key::new(thread.key.task(), number);
    let room = Room::take(thread.machine())?;
    let seat = Seat::new(Thread::new(thread.task.clone(), L4Thread { key, initial: [0; 3], room }));
    {
        let mut state = thread.state();
        let own = state.get(thread.key).ok_or(Errno::ESRCH)?;
        let (id, priority, mcp) = (own.id.sibling(number), own.priority, own.mcp);
        state.add(New { id, seat: seat.clone(), priority, mcp, pager, entry });
    }
    let space = thread.task.ext.space.lock().clone();
    let spawn = Spawn { kind: SpawnKind::Thread, frame: Frame::default(), tls: None, guest: seat, space };
    match thread.context().map_or(Err(Errno::ESRCH), |context| context.spawn(spawn)) {
        Ok(_) => Ok(key),
        Err(errno) => {
            thread.state().remove(key);
            Err(errno)
        }
    }
}

/// Ends a task, the tasks it is chief of, those that they are chief of, and so on; their numbers go to `heir`. Not the heir itself.
pub fn end_task(kernel: &Kernel, number: u16, heir: u16) {
    let mut ends = Vec::from([number]);
    let mut at = 0;
    while at < ends.len() {
        let task = ends[at];
        at += 1;
        let mut state = kernel.system.state();
        for member in state.clan(task) {
            if member != heir && !ends.contains(&member) {
                ends.push(member);
                state.set_chief(member, heir);
            }
        }
        let seats: Vec<Arc<Seat>> = state.threads_of(task).into_iter().filter_map(|key| state.remove(key)).collect();
        let entry = state.tasks.remove(&task);
        drop(state);
        for seat in seats {
            seat.interrupt(work::KILL);
        }
        if entry.is_some() {
            kernel.memory.remove_space(task);
        }
    }
    kernel.system.state().orphans();
}
