//! Exceptions: page faults, which are messages to pagers, and those that stop a thread.

use janua_abi::l4v2::id::{ROOT_TASK, SIGMA0_TASK};
use janua_abi::l4v2::message::{ERROR, Error};
use janua_abi::l4v2::timeout::Timeout;
use janua_port::Frame;
use janua_port::space::Access;
use janua_port::trap::{Cause, Exception};

use crate::ipc::ask_pager;
use crate::personality::name;
use crate::registers::Registers;
use crate::state::Phase;
use crate::system::{NO_ROOM, ThreadExt, end, say};
use crate::{Thread, debug, tasks};

/// Handles a page fault, by the thread's pager. A thread that gets no answer is stopped.
pub async fn page(thread: &Thread, exception: &Exception) {
    let Cause::Page { access, .. } = exception.cause else { return };
    let registers = Registers::of(&thread.frame());
    let addr = u32::try_from(exception.addr).unwrap_or(u32::MAX);
    if thread.key.task() == SIGMA0_TASK {
        // It has all there is.
        return stop_for(thread, &registers, exception, "there is no memory, and sigma0 has no pager");
    }
    let write = access == Access::Store;
    let Ok(outcome) = ask_pager(thread, addr, write, registers.eip, Timeout::Never).await else { return };
    let error = outcome.dope & ERROR;
    if error == 0 || error == Error::Canceled.receiving() || error == Error::Canceled.sending() {
        return;
    }
    let why = match error & !Error::SENDER {
        0 => "it has no pager",
        error if error == Error::MapFailed.receiving() => "what its pager sent could not be mapped",
        error if error == Error::Cut.receiving() => "its pager's answer was no answer to a page fault",
        _ => "its pager did not answer",
    };
    stop_for(thread, &registers, exception, why);
}

/// Stops a thread for an exception that has no handler.
pub fn stop(thread: &Thread, frame: &Frame, exception: &Exception) {
    stop_for(thread, &Registers::of(frame), exception, "nobody handles it");
}

fn stop_for(thread: &Thread, registers: &Registers, exception: &Exception, why: &str) {
    let machine = thread.machine();
    let Exception { number, addr, detail, .. } = *exception;
    let place = if matches!(exception.cause, Cause::Page { .. }) {
        alloc::format!(" at {addr:#x}")
    } else {
        alloc::string::String::new()
    };
    say(machine, format_args!("thread {} stops: exception {number}{place}, code {detail:#x}: {why}", name(thread)));
    debug::show(thread, registers);
    let mut state = thread.state();
    state.failures += 1;
    if let Some(tcb) = state.get_mut(thread.key) {
        let Registers { eip, esp, eflags, .. } = *registers;
        tcb.at = crate::state::Place { eip, esp, eflags };
    }
    state.block(thread.key, Phase::Stopped, None, None);
    drop(state);
    // It goes no further than the end of this exception.
    thread.set_work(janua_kernel::thread::work::LOOK);
}

/// Ends a thread's task, for a reason that is not its own.
pub fn end_task(thread: &Thread, why: &str) {
    let task = thread.key.task();
    say(thread.machine(), format_args!("task {task} ends: {why}"));
    if task == SIGMA0_TASK || task == ROOT_TASK {
        end(&thread.kernel, NO_ROOM)
    }
    let heir = thread.state().chief(task);
    tasks::end_task(&thread.kernel, task, heir);
}
