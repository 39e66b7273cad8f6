//! The table of calls: `int 0x30` and the numbers behind it. All registers are words of a call; the rows have those that the machine's second ABI
//! has too, in its order, for the trace. What is in eax comes besides.

use janua_kernel::table::{Arg, Kind};
use janua_port::Frame;

use crate::{L4v2, Thread, calls};

/// A register.
struct Word;

impl Arg for Word {
    const KIND: Kind = Kind::Hex;
    fn decode(_: usize) -> janua_abi::linux::Result<Word> {
        // Handlers take them from the frame.
        Ok(Word)
    }
}

macro_rules! answer_at_once {
    ($($name:ident)*) => {
        $(#[allow(clippy::too_many_arguments, reason = "as many as a row's function has")]
        fn $name(thread: &Thread, frame: &mut Frame, _: Word, _: Word, _: Word, _: Word, _: Word, _: Word) -> isize {
            calls::$name(thread, frame)
        })*
    };
}

answer_at_once! { id_nearest thread_switch thread_schedule lthread_ex_regs task_new }

async fn ipc(thread: &Thread, _: Word, _: Word, _: Word, _: Word, _: Word, _: Word) -> isize {
    crate::ipc::ipc(thread).await
}

async fn fpage_unmap(thread: &Thread, _: Word, _: Word, _: Word, _: Word, _: Word, _: Word) -> isize {
    calls::fpage_unmap(thread).await
}

janua_kernel::calls! {
    /// By number.
    pub static ROWS for L4v2;
    0 ipc(ebx: Word, ecx: Word, edx: Word, esi: Word, edi: Word, ebp: Word) => frame_wait ipc, home, Partial("no deceit and no redirection to chiefs, no interrupts but the clock's, no flexpages of I/O ports");
    1 id_nearest(ebx: Word, ecx: Word, edx: Word, esi: Word, edi: Word, ebp: Word) => frame id_nearest, home, Full;
    2 fpage_unmap(ebx: Word, ecx: Word, edx: Word, esi: Word, edi: Word, ebp: Word) => frame_wait fpage_unmap, home, Full;
    3 thread_switch(ebx: Word, ecx: Word, edx: Word, esi: Word, edi: Word, ebp: Word) => frame thread_switch, home, Full;
    4 thread_schedule(ebx: Word, ecx: Word, edx: Word, esi: Word, edi: Word, ebp: Word) => frame thread_schedule, home, Partial("external preempters are kept and get no messages, no small spaces, no times but that of the processor");
    5 lthread_ex_regs(ebx: Word, ecx: Word, edx: Word, esi: Word, edi: Word, ebp: Word) => frame lthread_ex_regs, home, Partial("internal preempters are kept and get no messages, no virtual 8086 mode");
    6 task_new(ebx: Word, ecx: Word, edx: Word, esi: Word, edi: Word, ebp: Word) => frame task_new, home, Full;
}

#[cfg(test)]
mod tests {
    use super::ROWS;
    use janua_abi::l4v2::CALLS;

    #[test]
    fn there_are_as_many_rows_as_vectors() {
        assert_eq!(ROWS.len(), usize::from(CALLS));
        assert!(ROWS.iter().all(|row| !matches!(row.run, janua_kernel::Run::Missing)));
    }
}
