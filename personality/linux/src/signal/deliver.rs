//! Delivery: what a thread does with its signals on its return to user mode.

use alloc::format;
use core::sync::atomic::Ordering;

use janua_abi::linux::Errno;
use janua_abi::linux::signal::*;
use janua_kernel::task::Leave;
use janua_kernel::thread::work;
use janua_port::Frame;

use super::action::{Default, default_action};
use super::{coredump, death_status, dequeue, force, recompute, set_mask};
use crate::process::State;
use crate::processor::{frame as stack_frame, restart_syscall};
use crate::signal::SigSet;
use crate::task::{exit, stop};
use crate::thread::ThreadExt;
use crate::{Thread, place, ptrace, signal};

/// The return to user mode: ends, stops, or delivers until nothing is left to do.
pub fn leave(thread: &Thread, frame: &mut Frame) -> Leave {
    loop {
        if ptrace::before_leave(thread, frame) {
            return Leave::Wait;
        }
        if place::is_elsewhere(thread) {
            // By which it has been brought here.
            thread.clear_work(work::STOP);
            return Leave::Wait;
        }
        let flags = thread.work();
        if flags & work::KILL != 0 {
            if coredump::before_end(thread, frame) == coredump::Before::Wait {
                return Leave::Wait;
            }
            exit::end_thread(thread);
            return Leave::Exit;
        }
        if flags & work::STOP != 0 && (ptrace::trap(thread, frame) || stop::join(thread)) {
            return Leave::Wait;
        }
        if flags & work::LOOK != 0 {
            thread.clear_work(work::LOOK);
            crate::time::cpu::own(thread);
            crate::task::io::begin(thread);
        }
        if flags & work::TASK != 0 {
            crate::uring::errands(thread);
        }
        if flags & work::RESTORE != 0 && !is_interrupted_call(frame) {
            // The call is over and was not cut short: the signals it let in are not to be taken now.
            restore_mask(thread);
            continue;
        }
        // Cleared before looking, so that what is sent from here on raises it again.
        thread.clear_work(work::INTERRUPT);
        let wanted = SigSet::FULL.without(thread.signals.blocked());
        if let Some(info) = dequeue(thread, wanted) {
            if ptrace::signal_stop(thread, frame, &info) {
                return Leave::Wait;
            }
            take(thread, frame, &info);
            recompute(thread);
            continue;
        }
        finish_call(frame, None);
        if thread.work() & work::RESTORE != 0 {
            restore_mask(thread);
        }
        if thread.work() & (work::KILL | work::STOP | work::INTERRUPT | work::RESTORE) == 0 {
            return Leave::Resume;
        }
    }
}

/// Whether the frame is that of a call a signal has cut short: one to be restarted, or one that never is (epoll_pwait(2)).
fn is_interrupted_call(frame: &Frame) -> bool {
    let result = frame.result();
    frame.is_call() && (crate::linux::is_restart_code(result) || result == Errno::EINTR.as_result())
}

fn restore_mask(thread: &Thread) {
    thread.clear_work(work::RESTORE);
    let saved = thread.signals.saved.lock().take();
    if let Some(mask) = saved {
        set_mask(thread, mask);
    }
}

/// Acts on one signal that has been taken from the queues.
pub fn take(thread: &Thread, frame: &mut Frame, info: &SigInfo) {
    let number = info.signal();
    let actions = thread.process().actions();
    let action = actions.get(number);
    if thread.kernel.tracer.is_on() {
        trace(thread, frame, info);
    }
    match action.handler {
        SIG_IGN => {}
        SIG_DFL => act_by_default(thread, frame, info),
        _ => handle(thread, frame, info, &actions, action),
    }
}

/// The line of a signal in the trace; of a fault also where it was and what it wanted.
fn trace(thread: &Thread, frame: &Frame, info: &SigInfo) {
    let (tid, code, name) = (thread.tid(), info.code, signal::SignalName(info.signal()));
    let line = if signal::SYNCHRONOUS.has(info.signal()) && code > 0 && code != si::KERNEL {
        format!("[{tid}] --- {name} (code {code}, address {:#x}, at {:#x}) ---", info.addr(), frame.program_counter())
    } else {
        format!("[{tid}] --- {name} (code {code}) ---")
    };
    thread.kernel.tracer.line(&line);
}

fn act_by_default(thread: &Thread, frame: &Frame, info: &SigInfo) {
    let number = info.signal();
    match default_action(number) {
        Default::Ignore | Default::Continue => {}
        Default::Stop => {
            let process = thread.process();
            // Nobody could continue a member of an orphaned group (POSIX); SIGSTOP is unconditional.
            let orphaned = number != SIGSTOP
                && process.home.load(Ordering::Relaxed) == 0
                && thread.kernel.tree.lock().is_orphaned(process.pgrp());
            if !orphaned {
                stop::begin(thread, number);
            }
        }
        Default::Core if coredump::begin(thread, frame, info) => thread.set_work(work::KILL),
        Default::Terminate | Default::Core => {
            let alive = matches!(thread.process().group.lock().state, State::Running);
            if alive {
                exit::end_group(thread, death_status(number));
            }
            thread.set_work(work::KILL);
        }
    }
}

/// Makes the thread run a handler next.
fn handle(thread: &Thread, frame: &mut Frame, info: &SigInfo, actions: &super::Actions, action: SigAction) {
    let number = info.signal();
    finish_call(frame, Some(&action));
    // A temporary mask ends when the handler returns: its frame holds the one from before.
    thread.clear_work(work::RESTORE);
    let blocked = thread.signals.blocked();
    let mask = thread.signals.saved.lock().take().unwrap_or(blocked);
    if action.flags & sa::RESETHAND != 0 {
        actions.set(number, SigAction { handler: SIG_DFL, ..action });
    }
    if stack_frame::push(thread, frame, &action, info, mask).is_err() {
        set_mask(thread, mask);
        if number == SIGSEGV {
            // Its own handler cannot be reached: the next one must not be tried.
            actions.set(SIGSEGV, SigAction::default());
        }
        force(thread, signal::kernel_signal(SIGSEGV));
        return;
    }
    let own = if action.flags & sa::NODEFER != 0 { SigSet::EMPTY } else { SigSet::of(number) };
    set_mask(thread, blocked.union(SigSet(action.mask)).union(own));
}

/// The end of a call that was cut short: it begins again, or returns EINTR. `action` is that of the handler that runs
/// before, if one does.
fn finish_call(frame: &mut Frame, action: Option<&SigAction>) {
    if !is_interrupted_call(frame) {
        return;
    }
    let again = |frame: &mut Frame| frame.repeat_call();
    let code = Errno::from_raw(frame.result());
    match (code, action) {
        (Err(Errno::ERESTARTNOINTR), _) => again(frame),
        (Err(Errno::ERESTARTSYS), Some(action)) if action.flags & sa::RESTART != 0 => again(frame),
        (_, Some(_)) => frame.set_result(Errno::EINTR.as_result()),
        (Err(Errno::ERESTART_RESTARTBLOCK), None) => frame.restart_call(restart_syscall(frame)),
        // What never begins again does not after a stop either (signal(7), "Interruption of system calls by stop signals").
        (Err(Errno::EINTR), None) => {}
        (_, None) => again(frame),
    }
    frame.forget_call();
}
