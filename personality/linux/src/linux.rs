//! The personality as the kernel sees it.

use alloc::format;
use alloc::string::String;
use core::fmt::Write;
use core::sync::atomic::Ordering;

use janua_abi::linux::Result;
use janua_abi::linux::signal::SIGKILL;
use janua_kernel::table::Words;
use janua_kernel::task::Leave;
use janua_kernel::thread::watch;
use janua_kernel::{Before, Personality, Row, Trapped};
use janua_port::{Frame, Payer, Trap};

use crate::process::Process;
use janua_port::space::Access;

use crate::system::System;
use crate::thread::{ThreadExt, ThreadState};
use crate::{Thread, ptrace, queue, signal, task};

/// Whether a call's result is one of the codes that never reach a program: the call begins again or returns EINTR.
pub fn is_restart_code(result: isize) -> bool {
    (-516..=-512).contains(&result)
}

/// Results above this are taken for addresses in a trace of a 32-bit program: programs begin about here.
const LOWEST_CODE_32: usize = 0x0800_0000;

/// Linux on x86-64, with the calls of i386.
pub struct Linux;

impl Personality for Linux {
    type System = System;
    type Task = Process;
    type Thread = ThreadState;

    fn start(thread: &Thread, frame: &mut Frame) -> Leave {
        if thread.loads.swap(false, Ordering::Relaxed) {
            crate::boot::load(thread, frame);
        }
        task::clone::begin(thread);
        task::io::begin(thread);
        signal::recompute(thread);
        Leave::Resume
    }

    /// An int, whatever is in the register's upper half.
    fn number(word: usize) -> usize {
        word as u32 as usize
    }

    fn trap(thread: &Thread, frame: &mut Frame, trap: Trap) -> Trapped {
        if let Trap::Exception(exception) = trap {
            signal::fault::raise(thread, frame, &exception);
        }
        Trapped::Done
    }

    fn store_fault(thread: &Thread, addr: usize) -> bool {
        thread.process().mm().is_some_and(|mm| mm.fault(addr, Access::Store))
    }

    fn hole_fault(thread: &Thread, addr: usize) -> bool {
        thread.process().mm().is_some_and(|mm| mm.grow_down_for_copy(addr, &crate::mm::limits(thread), thread.tid()))
    }

    fn out_of_memory(thread: &Thread, resident: u64) {
        // First: nothing that it has to do with may come before its end.
        let _ = signal::send_task(&thread.task, signal::kernel_signal(SIGKILL));
        let name = thread.comm();
        let line = format!(
            "janua: out of memory: process {} ({}) is killed, which has {} MiB\n",
            thread.process().pid,
            String::from_utf8_lossy(&name).replace(char::is_control, "?"),
            resident >> 20
        );
        thread.machine().console().write(line.as_bytes());
    }

    fn ended_outside(thread: &Thread) {
        let _ = signal::send_task(&thread.task, signal::kernel_signal(SIGKILL));
    }

    fn payer(thread: &Thread) -> Payer {
        Payer::user(thread.cred.read().uid)
    }

    fn call_trapped(thread: &Thread, frame: &mut Frame) {
        let process = thread.process();
        let Some(mm) = process.mm() else { return };
        let alone = !mm.is_shared() && process.group.lock().threads.len() == 1;
        frame.set_program_counter(mm.trapped(frame.program_counter(), alone));
    }

    fn call_begins(thread: &Thread, frame: &mut Frame) -> Before {
        ptrace::call_begins(thread, frame)
    }

    fn call_ends(thread: &Thread, frame: &Frame) {
        if thread.is_watched_for(watch::COUNT) {
            task::io::count(thread, frame);
        }
        if thread.is_watched_for(watch::TRACE) {
            ptrace::call_ends(thread);
        }
    }

    fn errands(thread: &Thread) {
        crate::uring::errands(thread);
    }

    const SPECIAL: &'static str = "a signal came first";

    fn is_special(result: isize) -> bool {
        is_restart_code(result)
    }

    fn is_address(value: usize, compat: bool) -> bool {
        value > if compat { LOWEST_CODE_32 } else { u32::MAX as usize }
    }

    fn leave(thread: &Thread, frame: &mut Frame) -> Leave {
        signal::deliver::leave(thread, frame)
    }

    async fn stopped(thread: &Thread) -> isize {
        if ptrace::is_inside(thread) {
            ptrace::stopped(thread).await;
        } else if crate::place::is_elsewhere(thread) {
            crate::place::until_ended(thread).await;
        } else {
            task::stop::stopped(thread).await;
        }
        0
    }

    fn trace_named(family: &str, word: usize, out: &mut dyn Write) -> bool {
        crate::trace::named(family, word, out) || crate::net::args::trace(family, word, out)
    }

    fn trace_data(thread: &Thread, row: &'static Row<Linux>, at: usize, words: Words, result: Option<isize>) -> Option<String> {
        let narrow = thread.kernel.compat.holds(row);
        crate::trace::data::shown(thread.user(), narrow, row.name, at, words, result)
    }

    fn trace_id(thread: &Thread) -> u32 {
        thread.tid()
    }

    fn nice(thread: &Thread) -> i8 {
        thread.process().settings.nice.load(Ordering::Relaxed) as i8
    }

    fn stand_in(thread: &Thread) -> Option<ThreadState> {
        Some(queue::stand_in(thread))
    }

    fn may_queue(row: &'static Row<Linux>) -> bool {
        queue::may_queue(row)
    }

    fn lend(thread: &Thread, stand_in: &Thread, row: &'static Row<Linux>) -> Result<()> {
        queue::lend(thread, stand_in, row)
    }

    fn take_back(stand_in: &Thread) {
        queue::take_back(stand_in);
    }
}
