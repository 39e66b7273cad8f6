//! The debugger's other half: what `janua run --gdb` starts beside the program, in the sandbox, and what gdb talks to.
//!
//! It is a guest like any other: it traces the program by ptrace(2), reads its memory by /proc and its files by their names, all of it of the
//! kernel inside. So it works by every gate and under every jail, and the kernel has no part in it but to hold the program until it is there.
//!
//! Outside, between it and gdb, only what [`filter`] lets pass goes on.
//!
//! [`packets`] carries bytes, [`session`] knows threads and processes, [`answers`] one of them at rest by way of the crate `gdbstub`;
//! [`tracer`] lets them run and stops them.

mod answers;
mod filter;
mod host;
mod packets;
mod points;
mod registers;
mod session;
mod signals;
mod tracer;

pub use filter::{Filter, Refusal};
use session::{End, Session};

/// Where the kernel has put the connection to gdb.
pub const CONNECTION: i32 = 3;
/// And what this program was loaded from.
pub const PROGRAM: i32 = 4;

/// Serves gdb by [`CONNECTION`] about the process `first`: the exit code.
pub fn serve(first: u32) -> u8 {
    drop(host::inherited(PROGRAM));
    let connection = host::inherited(CONNECTION);
    let events = match host::begin() {
        Ok(events) => events,
        Err(error) => {
            eprintln!("janua: the debugger cannot take signals ({error}): the program goes on without it");
            return 125;
        }
    };
    match Session::new(connection, events, first).serve() {
        End::Over => 0,
        End::Lost => {
            eprintln!("janua: the connection to gdb is lost: the program goes on without it");
            1
        }
        End::Noise => {
            eprintln!("janua: what came for gdb is not its protocol: the program goes on without it");
            1
        }
    }
}
