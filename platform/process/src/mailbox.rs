//! The gate `call` where the kernel is in another process: a page for each guest thread, in which its rewritten calls leave their words, and the code
//! that does it.
//!
//! Call sites jump to [`entry`], in the page of the stub's code. It stores the registers in the thread's page and sets a word, on which a thread of
//! the kernel's looks if there is a processor to spare; then it spins on that word itself, for as many turns as the kernel has left there. When nothing
//! has come until then, and at once where nobody looks, it makes a host call of its own, at which the host stops it as at any other ([`crate::tracee`]):
//! the kernel finds the same words, and none can get lost.
//!
//! The page is the guest's to write, and so are the registers with which it comes here, at whatever instruction. Its place shows whose it is; the kernel
//! reads each word of it once, and takes them for the guest's registers, which they might be. What the guest does to them, or in the code, it does to
//! itself.
//!
//! ```text
//!   0  state    (who writes what: [`State`])         64          128  rcx, where to go on
//!   8  rax, the number; then the result                          136  rsp rbx rbp r12 r13 r14 r15
//!  16  rdi rsi rdx r10 r8 r9                                     256  patience (the kernel's)
//! ```
//! What a call that returns at once needs is in the first line, which goes to the kernel's processor and back; the second stays with the guest's until
//! the kernel wants a whole frame, and the third with both as long as nobody sleeps.

use core::arch::global_asm;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use janua_abi::linux::Errno;
use janua_abi::linux::i386::UserDesc;
use janua_entry::hosted::THREADS;
use janua_entry::hosted::entry::{CALL_FLAGS, THREAD_ENTRY, THREAD_SELECTOR};
use janua_paging::{Frames, PAGE, PageFrame};
use janua_platform_linux::machine;
use janua_port::{Frame, GateId};

use crate::physical::{MEMORY, Physical};
use crate::stub;

/// What the first word of a mailbox means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum State {
    /// Nothing (the kernel's word).
    Idle = 0,
    /// The guest has left a call.
    Call = 1,
    /// The kernel has left its result.
    Answer = 2,
    /// The kernel wants the thread to stop.
    Stop = 3,
}

/// Turns for which a guest looks for its answer: about as long as a stop and what follows it take.
const PATIENCE: u32 = 600;

/// Where the code is in the stub's page, and the words of the page.
const PLACE: usize = 1024;
const STATE: usize = 0;
const NUMBER: usize = 8;
const WORDS: usize = 16;
const REST: usize = 128;
const LIMIT: usize = 256;

global_asm!(
    ".pushsection .rodata.janua_mailbox, \"a\", @progbits",
    ".globl janua_mailbox_start",
    ".globl janua_mailbox_lost",
    ".globl janua_mailbox_said",
    ".globl janua_mailbox_stopped",
    ".globl janua_mailbox_found",
    ".globl janua_mailbox_back",
    ".globl janua_mailbox_base",
    ".globl janua_mailbox_end",
    // A rewritten call: rax is the number, rcx where to go on; r11 and the flags hold nothing that is needed.
    "janua_mailbox_start:",
    "mov r11d, {selector}",
    "lsl r11d, r11d",
    "add r11, [rip + janua_mailbox_base]",
    "mov [r11 + {number}], rax",
    "mov [r11 + {words}], rdi",
    "mov [r11 + {words} + 8], rsi",
    "mov [r11 + {words} + 16], rdx",
    "mov [r11 + {words} + 24], r10",
    "mov [r11 + {words} + 32], r8",
    "mov [r11 + {words} + 40], r9",
    "mov [r11 + {rest}], rcx",
    "mov [r11 + {rest} + 8], rsp",
    "mov [r11 + {rest} + 16], rbx",
    "mov [r11 + {rest} + 24], rbp",
    "mov [r11 + {rest} + 32], r12",
    "mov [r11 + {rest} + 40], r13",
    "mov [r11 + {rest} + 48], r14",
    "mov [r11 + {rest} + 56], r15",
    "mov eax, [r11 + {limit}]",
    // From here on the number is in the page alone.
    "janua_mailbox_lost:",
    "mov dword ptr [r11 + {state}], {call}",
    // From here on the call has been made.
    "janua_mailbox_said:",
    "2:",
    "cmp dword ptr [r11 + {state}], {call}",
    "jne 3f",
    "pause",
    "sub eax, 1",
    "jnc 2b",
    "4:",
    "syscall",
    // The kernel lets the thread go on here when the result is in the page.
    "janua_mailbox_stopped:",
    "mov r11d, {selector}",
    "lsl r11d, r11d",
    "add r11, [rip + janua_mailbox_base]",
    "mov rcx, [r11 + {rest}]",
    "janua_mailbox_found:",
    "mov rax, [r11 + {number}]",
    "jmp rcx",
    "3:",
    "cmp dword ptr [r11 + {state}], {answer}",
    "jne 4b",
    "mov rax, [r11 + {number}]",
    "janua_mailbox_back:",
    "jmp rcx",
    "int3",
    ".balign 8, 0xcc",
    // Where the pages are, less what `lsl` has too much.
    "janua_mailbox_base:",
    ".quad 0",
    "janua_mailbox_end:",
    ".popsection",
    selector = const THREAD_SELECTOR,
    state = const STATE,
    number = const NUMBER,
    words = const WORDS,
    rest = const REST,
    limit = const LIMIT,
    call = const State::Call as u32,
    answer = const State::Answer as u32,
);

unsafe extern "C" {
    static janua_mailbox_start: u8;
    static janua_mailbox_lost: u8;
    static janua_mailbox_said: u8;
    static janua_mailbox_stopped: u8;
    static janua_mailbox_found: u8;
    static janua_mailbox_back: u8;
    static janua_mailbox_base: u8;
    static janua_mailbox_end: u8;
}

/// Whether this sandbox has them.
pub fn are_used() -> bool {
    machine::get().gate.id() == GateId::Call
}

/// Where the pages of a process' threads are: below the stub's code.
pub fn places() -> Range<usize> {
    let end = stub::base() - PAGE;
    if are_used() { end - THREADS * PAGE..end } else { end..end }
}

/// Where the page with this number is.
pub fn place(number: usize) -> usize {
    places().start + number * PAGE
}

/// The entry of the host's descriptor table by whose limit a thread finds its page.
pub fn descriptor(number: usize) -> UserDesc {
    // `struct user_desc` flags: a 32-bit data segment, not writable; its limit counts pages.
    const FLAGS: u32 = 1 | 1 << 3 | 1 << 4;
    UserDesc { entry: THREAD_ENTRY, base: 0, limit: number as u32, flags: FLAGS }
}

/// The code, without the address it needs.
fn code() -> &'static [u8] {
    // SAFETY: constants of the image between two of its labels.
    unsafe {
        let start = &raw const janua_mailbox_start;
        core::slice::from_raw_parts(start, (&raw const janua_mailbox_end).offset_from_unsigned(start))
    }
}

fn offset(label: *const u8) -> usize {
    label as usize - &raw const janua_mailbox_start as usize
}

/// Where rewritten calls jump.
pub fn entry() -> usize {
    stub::base() + PLACE
}

/// Puts the code into the stub's page.
pub fn write(page: PageFrame) {
    assert!(stub::code().len() <= PLACE && PLACE + code().len() <= PAGE, "code that does not fit into its page");
    MEMORY.write(page, PLACE, code());
    // `lsl` returns the last byte of the limit's last page.
    let base = places().start.wrapping_sub(PAGE - 1);
    MEMORY.write(page, PLACE + offset(&raw const janua_mailbox_base), &base.to_le_bytes());
}

/// What has come of the call of a thread that was stopped somewhere in the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Point {
    /// It is not made yet; the number is in rax, or in the page alone.
    Before { lost: bool },
    /// It is made, and perhaps has its answer. The address to go on at is in rcx, or in the page alone.
    Behind { lost: bool },
    /// The result is in rax.
    Back,
}

fn point(pc: usize) -> Option<Point> {
    point_at(pc.wrapping_sub(entry()))
}

/// The same for a distance from the code's start.
fn point_at(at: usize) -> Option<Point> {
    if at >= offset(&raw const janua_mailbox_base) {
        return None;
    }
    Some(match at {
        at if at < offset(&raw const janua_mailbox_lost) => Point::Before { lost: false },
        at if at < offset(&raw const janua_mailbox_said) => Point::Before { lost: true },
        at if at == offset(&raw const janua_mailbox_back) => Point::Back,
        at => {
            let lost = offset(&raw const janua_mailbox_stopped)..offset(&raw const janua_mailbox_found);
            Point::Behind { lost: lost.contains(&at) }
        }
    })
}

/// Whether a thread that the host has stopped at a call has made that call here.
pub fn is_stop(pc: usize) -> bool {
    pc == entry() + offset(&raw const janua_mailbox_stopped)
}

/// Whether an address is in the code.
pub fn holds(pc: usize) -> bool {
    point(pc).is_some()
}

/// A thread's page, as the kernel has it.
#[derive(Clone, Copy)]
pub struct Mailbox {
    page: PageFrame,
    number: usize,
}

impl Mailbox {
    pub fn new(page: PageFrame, number: usize) -> Mailbox {
        Mailbox { page, number }
    }

    /// Which one of its process it is.
    pub fn number(&self) -> usize {
        self.number
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: aligned, within a page that stays mapped in the kernel's process as long as the sandbox runs; any bits are a word, and it is changed
        // as atomics alone, by the guest as it likes.
        unsafe { AtomicU32::from_ptr(Physical::pointer(self.page).add(at).cast()) }
    }

    fn long(&self, at: usize) -> &AtomicU64 {
        // SAFETY: as above.
        unsafe { AtomicU64::from_ptr(Physical::pointer(self.page).add(at).cast()) }
    }

    /// Whether there is a call.
    #[inline]
    pub fn has_call(&self) -> bool {
        self.word(STATE).load(Ordering::Acquire) == State::Call as u32
    }

    /// Whether there is an answer that may not have been seen.
    pub fn has_answer(&self) -> bool {
        self.word(STATE).load(Ordering::Acquire) == State::Answer as u32
    }

    pub fn set(&self, state: State) {
        self.word(STATE).store(state as u32, Ordering::Release);
    }

    /// Leaves a result.
    #[inline]
    pub fn answer(&self, result: u64) {
        self.long(NUMBER).store(result, Ordering::Relaxed);
        self.set(State::Answer);
    }

    /// The number of the call and its words.
    #[inline]
    pub fn call(&self) -> Words {
        let read = |at| self.long(at).load(Ordering::Relaxed);
        let word = |number: usize| read(WORDS + 8 * number);
        Words { number: read(NUMBER), words: [word(0), word(1), word(2), word(3), word(4), word(5)] }
    }

    /// The frame of a call with these words.
    pub fn frame(&self, call: &Words) -> Frame {
        let rest = |number: usize| self.long(REST + 8 * number).load(Ordering::Relaxed);
        let [rdi, rsi, rdx, r10, r8, r9] = call.words;
        let (rcx, rsp) = (rest(0), rest(1));
        let [rbx, rbp, r12, r13, r14, r15] = [2, 3, 4, 5, 6, 7].map(rest);
        Frame {
            rax: Errno::ENOSYS.as_result() as u64,
            orig_rax: call.number,
            rflags: CALL_FLAGS,
            r11: CALL_FLAGS,
            rcx,
            rdi,
            rsi,
            rdx,
            r10,
            r8,
            r9,
            rbx,
            rbp,
            r12,
            r13,
            r14,
            r15,
            ..Frame::start(rcx, rsp)
        }
    }

    /// Whether the guest is to look for answers before it stops.
    pub fn set_patience(&self, looked_at: bool) {
        self.word(LIMIT).store(if looked_at { PATIENCE } else { 0 }, Ordering::Relaxed);
    }

    /// Makes the registers of a thread that was stopped in the code those of its call site: behind the call, if that has its answer, and before it
    /// otherwise, where it will be made again by an instruction.
    pub fn leave(&self, frame: &mut Frame) {
        let Some(point) = point(frame.program_counter()) else { return };
        let back = |lost| if lost { self.long(REST).load(Ordering::Relaxed) } else { frame.rcx };
        let number = || self.long(NUMBER).load(Ordering::Relaxed);
        let again = |back: u64| back.wrapping_sub(2);
        (frame.rip, frame.rax) = match point {
            Point::Before { lost } => (again(frame.rcx), if lost { number() } else { frame.rax }),
            Point::Behind { lost } if self.has_answer() => (back(lost), number()),
            Point::Behind { lost } => (again(back(lost)), number()),
            Point::Back => (frame.rcx, frame.rax),
        };
        self.set(State::Idle);
    }
}

/// The number of a call and its six words.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    pub number: u64,
    pub words: [u64; 6],
}

const _: () = assert!(WORDS + 6 * 8 == 64 && REST + 8 * 8 <= LIMIT && LIMIT + 4 <= PAGE);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_of_the_code_says_what_has_come_of_the_call() {
        let [lost, said, stopped, found, back, base] = [
            &raw const janua_mailbox_lost,
            &raw const janua_mailbox_said,
            &raw const janua_mailbox_stopped,
            &raw const janua_mailbox_found,
            &raw const janua_mailbox_back,
            &raw const janua_mailbox_base,
        ]
        .map(offset);
        assert!(
            lost < said && said < stopped && stopped < found && found < back && back < base && PLACE + code().len() <= PAGE
        );
        assert_eq!(code()[stopped - 2..stopped], [0x0f, 0x05], "a host call, at which it stops");
        assert_eq!(code().windows(2).filter(|pair| *pair == [0x0f, 0x05]).count(), 1, "and no other");
        for (at, point) in [
            (0, Point::Before { lost: false }),
            (lost, Point::Before { lost: true }),
            (said, Point::Behind { lost: false }),
            (stopped - 2, Point::Behind { lost: false }),
            (stopped, Point::Behind { lost: true }),
            (found, Point::Behind { lost: false }),
            (back, Point::Back),
        ] {
            assert_eq!(point_at(at), Some(point), "at {at}");
        }
        assert_eq!((point_at(base), point_at(usize::MAX)), (None, None));
    }
}
