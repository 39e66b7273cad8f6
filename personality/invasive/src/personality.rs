//! The personality as the kernel sees it.

use janua_kernel::task::Leave;
use janua_kernel::{Personality, Trapped};
use janua_port::trap::{Cause, Exception, Refusal};
use janua_port::{Frame, Trap};

use crate::system::{BAD_ACCESS, BAD_CALL, Core, NO_ROOM, System, ThreadExt, TileTask};
use crate::{Thread, load, switch, table};

/// OctoPOS' application interface.
pub struct Invasive;

/// The exit code of an application that does not get over this: as if by the signal of Linux.
fn exit_code(cause: Cause) -> u8 {
    match cause {
        Cause::Page { refusal: Refusal::BeyondEnd | Refusal::Broken, .. } | Cause::Segment | Cause::Alignment => 128 + 7,
        Cause::Page { .. } | Cause::Protection => BAD_ACCESS,
        Cause::Illegal | Cause::Privileged | Cause::Software => 128 + 4,
        Cause::Arithmetic(_) => 128 + 8,
        Cause::Step | Cause::Watchpoint | Cause::Breakpoint | Cause::DebugTrap => 128 + 5,
        Cause::HostCall => BAD_CALL,
    }
}

impl Personality for Invasive {
    type System = System;
    type Task = TileTask;
    type Thread = Core;

    const SPECIAL: &'static str = "the core is given up";

    fn start(thread: &Thread, _frame: &mut Frame) -> Leave {
        // The creator does this too, but perhaps only after the thread has run for a while.
        load::start_core(thread);
        Leave::Wait
    }

    fn unknown(thread: &Thread, _frame: &mut Frame, number: usize) -> isize {
        if thread.kernel.table.get(number).is_some() {
            // There are no others.
            thread.fatal(BAD_CALL, format_args!("a system call of another ABI ({number:#x})"));
        }
        match table::ROWS.get(number) {
            None => thread.fatal(
                BAD_CALL,
                format_args!("system call {number:#x} is out of range, the last is {:#x}", table::ROWS.len() - 1),
            ),
            Some(row) => {
                thread.fatal(BAD_CALL, format_args!("system call {number:#x} ({}) is not registered in this kernel", row.name))
            }
        }
    }

    fn trap(thread: &Thread, frame: &mut Frame, trap: Trap) -> Trapped {
        let Trap::Exception(Exception { cause, addr, .. }) = trap else { return Trapped::Done };
        let pc = frame.program_counter();
        let code = exit_code(cause);
        match cause {
            Cause::Page { refusal, .. } if addr != 0 || refusal == Refusal::BeyondEnd => {
                thread.fatal(code, format_args!("user code at {pc:#x} used the address {addr:#x}, which it may not"))
            }
            // Without an address it was not a page that refused: a privileged instruction, or an address no page can have.
            Cause::Page { .. } | Cause::Protection => {
                thread.fatal(code, format_args!("user code at {pc:#x} used the address 0, or what only the kernel may use"))
            }
            Cause::Segment | Cause::Alignment => {
                thread.fatal(code, format_args!("user code at {pc:#x} used the address {addr:#x}, which it may not"))
            }
            Cause::Illegal | Cause::Privileged | Cause::Software => {
                thread.fatal(code, format_args!("user code at {pc:#x} is no instruction it may execute"))
            }
            Cause::HostCall => thread.fatal(code, format_args!("user code at {pc:#x} made a system call of the host's")),
            Cause::Arithmetic(_) => thread.fatal(code, format_args!("user code at {pc:#x} divided by zero or overflowed")),
            Cause::Step | Cause::Watchpoint | Cause::Breakpoint | Cause::DebugTrap => {
                thread.fatal(code, format_args!("user code at {pc:#x} stopped for a debugger, and there is none"))
            }
        }
    }

    fn out_of_memory(thread: &Thread, _resident: u64) {
        thread.fatal(NO_ROOM, format_args!("no memory is left"))
    }

    fn ended_outside(thread: &Thread) {
        thread.fatal(NO_ROOM, format_args!("its host process was ended from outside"))
    }

    fn is_special(result: isize) -> bool {
        result == switch::SWITCH
    }

    fn leave(thread: &Thread, frame: &mut Frame) -> Leave {
        switch::leave(thread, frame)
    }

    async fn stopped(thread: &Thread) -> isize {
        switch::idle(thread).await
    }

    fn trace_id(thread: &Thread) -> u32 {
        u32::from(thread.ext.tile) << 8 | thread.index as u32
    }
}
