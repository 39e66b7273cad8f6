//! The personality as the kernel sees it.

use core::fmt::Write;

use janua_abi::linux::Errno;
use janua_kernel::task::Leave;
use janua_kernel::{Personality, Row};
use janua_port::{Frame, Trap};

use crate::process::Process;
use crate::system::System;
use crate::thread::ThreadState;
use crate::{Seat, Task, Thread};

/// Linux on x86-64.
pub struct Linux;

impl Personality for Linux {
    type System = System;
    type Task = Process;
    type Thread = ThreadState;

    fn start(_thread: &Thread, _frame: &mut Frame) -> Leave {
        Leave::Resume
    }

    fn unknown(_thread: &Thread, _frame: &mut Frame, _number: usize) -> isize {
        Errno::ENOSYS.as_result()
    }

    fn trap(_thread: &Thread, _frame: &mut Frame, _trap: Trap) {}

    fn is_special(result: isize) -> bool {
        (-516..=-512).contains(&result)
    }

    fn leave(_thread: &Thread, _frame: &mut Frame, _call: Option<&'static Row<Linux>>) -> Leave {
        Leave::Resume
    }

    async fn stopped(_thread: &Thread) -> isize {
        0
    }

    fn trace_named(_family: &str, _word: usize, _out: &mut dyn Write) -> bool {
        false
    }

    fn trace_id(thread: &Thread) -> u32 {
        thread.tid()
    }
}

const _: fn(&Seat, &Task) = |_, _| ();
