//! Events: what the processor or the outside does to a program, handed to its library.
//!
//! The kernel enters the library as it enters a handler of Linux' signals, with the same frame: the registers in it are in the order of PAL_CONTEXT.

use janua_abi::linux::signal::*;
use janua_abi::pal::{Error, event};
use janua_kernel::table::CallResult;
use janua_personality_linux::Thread;
use janua_personality_linux::thread::ThreadExt;
use janua_personality_linux::x86::frame::sigreturn;
use janua_port::Frame;

use crate::answer::{Reply, Result, reply};
use crate::state::{self, State};

/// The signals of an event.
fn signals(number: u32) -> Option<&'static [u32]> {
    Some(match number {
        event::DIV_ZERO => &[SIGFPE],
        event::MEMFAULT => &[SIGSEGV, SIGBUS],
        event::ILLEGAL => &[SIGILL],
        event::QUIT => &[SIGTERM],
        event::SUSPEND => &[SIGINT],
        event::RESUME => &[SIGCONT],
        _ => return None,
    })
}

/// Has the kernel enter the library for an event, or do what it does without.
fn enter_for(thread: &Thread, state: &State, number: u32, on: bool) -> Result<()> {
    let library = *state.library.read();
    let action = match on {
        true => SigAction {
            handler: library.upcall as u64,
            // A handler may never return, so nothing is kept off for its sake.
            flags: sa::SIGINFO | sa::RESTORER | sa::NODEFER,
            restorer: library.restorer as u64,
            mask: 0,
        },
        false => SigAction::default(),
    };
    for signal in signals(number).ok_or(Error::Invalid)? {
        thread.process().actions().set(*signal, action);
    }
    Ok(())
}

/// What holds from the library's start on: a thread that is resumed enters the library, and what Linux' calls announce by signals are errors here.
pub fn begin(thread: &Thread, state: &State) -> Result<()> {
    for signal in [SIGPIPE, SIGXFSZ] {
        thread.process().actions().set(signal, SigAction { handler: SIG_IGN, ..SigAction::default() });
    }
    enter_for(thread, state, event::RESUME, true)
}

/// DkSetExceptionHandler: whether the library is to be entered for an event. It knows whose handler is to run.
pub fn set_handler(thread: &Thread, number: u32, on: u32) -> Reply {
    reply(|| {
        let state = state::of(thread)?;
        enter_for(thread, &state, number, on != 0 || number == event::RESUME)?;
        Ok(0)
    })
}

/// DkExceptionReturn: goes on as the frame at the stack pointer has it.
pub fn go_on(thread: &Thread, frame: &mut Frame) -> isize {
    match state::of(thread) {
        Ok(_) => sigreturn(thread, frame),
        Err(failure) => Reply::of(Err(failure)).word(),
    }
}
