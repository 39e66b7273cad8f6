//! The personality as the kernel sees it.

use janua_kernel::task::Leave;
use janua_kernel::thread::work;
use janua_kernel::{Personality, Trapped};
use janua_port::trap::{Cause, Exception};
use janua_port::{Frame, Machine, Segments, Trap};

use crate::registers::Registers;
use crate::system::{L4Task, L4Thread, System, ThreadExt, turn};
use crate::{Thread, debug, fault, flag};

/// L4, Version 2.
pub struct L4v2;

impl Personality for L4v2 {
    type System = System;
    type Task = L4Task;
    type Thread = L4Thread;

    fn start(thread: &Thread, frame: &mut Frame) -> Leave {
        *frame = Frame::start32(0, 0);
        let [eax, ebx, ecx] = thread.initial;
        (frame.rax, frame.rbx, frame.rcx) = (eax.into(), ebx.into(), ecx.into());
        // The creator does this too, but perhaps only after the thread has begun.
        drop(thread.task.ext.space.lock());
        if let Ok(registers) = thread.registers() {
            registers.set_segments(Segments::FLAT);
            registers.fpu_reset();
        }
        // One processor, as the interface has it: a thread that gets the turn need not call another there. A machine that refuses has one.
        if let Some(context) = thread.context() {
            let _ = context.restrict(&first(thread.machine()));
        }
        // What is next is decided when it has the turn.
        Leave::Wait
    }

    fn trap(thread: &Thread, frame: &mut Frame, trap: Trap) -> Trapped {
        let Trap::Exception(exception) = trap else { return Trapped::Done };
        match exception.cause {
            Cause::Page { .. } => {
                thread.note(&Registers::of(frame));
                return Trapped::Wait;
            }
            Cause::Breakpoint => debug::breakpoint(thread, frame),
            Cause::Protection | Cause::Privileged if flag::emulate(thread, frame) => {}
            _ => fault::stop(thread, frame, &exception),
        }
        Trapped::Done
    }

    async fn handle(thread: &Thread, exception: Exception) {
        fault::page(thread, &exception).await;
    }

    fn out_of_memory(thread: &Thread, _resident: u64) {
        fault::end_task(thread, "no memory is left");
    }

    fn ended_outside(thread: &Thread) {
        fault::end_task(thread, "its process was ended from outside");
    }

    fn is_special(_result: isize) -> bool {
        false
    }

    fn leave(thread: &Thread, frame: &mut Frame) -> Leave {
        thread.clear_work(work::LOOK);
        if thread.work() & work::KILL != 0 {
            return Leave::Exit;
        }
        let mut state = thread.state();
        let Some(tcb) = state.get_mut(thread.key) else { return Leave::Exit };
        let entry = [tcb.entry[0].take(), tcb.entry[1].take()];
        if entry != [None; 2] {
            let Registers { eip, esp, .. } = Registers::of(frame);
            // 32-bit code, whatever it was that it ran.
            frame.call_user32(entry[0].unwrap_or(eip), entry[1].unwrap_or(esp));
            if let Ok(registers) = thread.registers() {
                registers.set_segments(Segments::FLAT);
            }
        }
        let Registers { eip, esp, eflags, .. } = Registers::of(frame);
        tcb.at = crate::state::Place { eip, esp, eflags };
        if state.has_turn(thread.key) { Leave::Resume } else { Leave::Wait }
    }

    async fn stopped(thread: &Thread) -> isize {
        // Who is no more finds out when it leaves.
        let _ = turn(thread).await;
        0
    }

    fn trace_id(thread: &Thread) -> u32 {
        u32::from(thread.key.task()) << 8 | u32::from(thread.key.thread())
    }
}

/// The first of the processors that there are for the system, as a set.
fn first(machine: &dyn Machine) -> [u64; 16] {
    let mut set = [0; 16];
    for (at, place) in set.iter_mut().enumerate() {
        let word = machine.allowed(at);
        if word != 0 {
            *place = 1 << word.trailing_zeros();
            break;
        }
    }
    set
}

/// A thread's name for people: its task and its number there.
pub fn name(thread: &Thread) -> alloc::string::String {
    alloc::format!("{}.{}", thread.key.task(), thread.key.thread())
}
