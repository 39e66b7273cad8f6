//! The bare x86_64 machine: where a thread's registers are while it is in the kernel, what an entry finds through GS, and what it passes on to
//! the loop of the platform, which all calls that do not take the fast path go through.
//!
//! An entry of a gate is two texts, "plain", where what the processor has pushed is the end of the thread's frame, and "isolated", with
//! page-table isolation, where it is at the end of the core's entry stack and stays there. The `pieces` they are made of have both;
//! [`bare_entries`](crate::bare_entries) puts them where the tables of user code map them.

use core::mem::offset_of;
use core::sync::atomic::AtomicU32;

use janua_arch::Frame;
use janua_port::Plain;
use janua_port::guest::{NO_CALLS, PLAIN_CALLS, PlainCalls, Verdict};

mod pieces;

/// GS' offset of what an interrupt pushes on the core's entry stack, with isolation: rip, cs, rflags, rsp, ss.
pub const PUSHED: usize = 1304;
/// Where GS has the numbers of the vsyscall page's calls (`abi/src/linux/vsyscall.rs:CALLS`), two bytes each.
pub const VSYSCALL_NUMBERS: usize = 80;

/// What the loop gets beside vectors (`platform/x86_64/src/entry.rs:enter_user`): an entry by `syscall`.
pub const SYSCALL: usize = 256;
/// By `sysenter`.
pub const SYSENTER: usize = 257;
/// By a call gate.
pub const CALL_GATE: usize = 258;
/// A call was made on the fast path and left work behind or has a verdict, which is joined with this: its result is in the frame.
pub const RETURNED: usize = 259;
/// The same for one of the i386 ABI.
pub const RETURNED_COMPAT: usize = 260;

/// By `sysenter` in a 32-bit program, and by the `syscall` of 32-bit code.
pub const SYSENTER_COMPAT: usize = 261;
pub const SYSCALL_COMPAT: usize = 262;

/// Where a thread's registers are while it is in the kernel, and what the fast path needs.
#[repr(C, align(16))]
pub struct Save {
    /// An interrupt may come between a far call and the gate's `cli`: what it pushes reaches beyond the frame, and nothing that is
    /// needed may be there.
    room: [u64; 9],
    pub frame: Frame,
    /// Stack pointer of the loop in `enter_user`.
    pub kernel_rsp: u64,
    pub thread: *const (),
    pub work: *const AtomicU32,
    pub native: *const PlainCalls,
    pub compat: *const PlainCalls,
    /// What a number that is too large becomes: [`LAST_CALL`].
    pub none: usize,
    /// What the processor had pushed on the core's entry stack when the thread left the core (`platform/x86_64/src/core.rs:Core::exchange_pushed`).
    pub pushed: [u64; 5],
    /// Where a 32-bit program's calls go on that did not come by `int 0x80` ([`janua_port::Registers::set_landing`]).
    pub landing: u64,
}

const _: () = {
    // The processor aligns what it pushes at.
    assert!((offset_of!(Save, frame) + size_of::<Frame>()).is_multiple_of(16) && align_of::<Save>() == 16);
    assert!(offset_of!(Save, kernel_rsp) == offset_of!(Save, frame) + size_of::<Frame>());
    // Behind a far call four words are pushed, or with the flags five; then, at a multiple of 16, by the processor five, by the stub
    // two, and the rest of a frame's registers.
    assert!(offset_of!(Save, frame) + size_of::<Frame>() >= (5 + 1 + 5 + 2 + 14) * 8);
    assert!(offset_of!(Frame, rcx) == 11 * 8 && offset_of!(Frame, r11) == 6 * 8);
    assert!(offset_of!(Frame, rax) == 10 * 8 && offset_of!(Frame, rdi) == 14 * 8);
    assert!(offset_of!(Frame, rip) == 16 * 8 && BASE_TO_END == 5 * 8);
};

/// The bits of a verdict.
pub const VERDICT: u32 = Verdict::BITS;
/// The last place in a table, which is always null.
pub const LAST_CALL: usize = PLAIN_CALLS - 1;

static NO_WORK: AtomicU32 = AtomicU32::new(0);

impl Save {
    pub const fn new(frame: Frame) -> Save {
        Save {
            room: [0; 9],
            kernel_rsp: 0,
            frame,
            thread: core::ptr::null(),
            work: &raw const NO_WORK,
            native: &raw const NO_CALLS,
            compat: &raw const NO_CALLS,
            none: LAST_CALL,
            pushed: [0; 5],
            landing: 0,
        }
    }

    /// Sets which calls take the fast path: those of the thread's guest, which must live as long as the thread runs.
    pub fn set_plain(&mut self, plain: Option<Plain<'_>>) {
        let none = Save::new(self.frame);
        match plain {
            Some(plain) => {
                self.thread = plain.thread;
                self.work = plain.work;
                self.native = plain.native;
                self.compat = plain.compat;
            }
            None => *self = Save { kernel_rsp: self.kernel_rsp, landing: self.landing, ..none },
        }
    }

    /// The same for a thread that is under way: which calls take the fast path from its next entry on.
    ///
    /// # Safety
    /// `save` is the running thread's.
    pub unsafe fn set_calls(save: *mut Save, plain: Option<Plain<'_>>) {
        let none = &raw const NO_CALLS;
        let (native, compat) = plain.map_or((none, none), |plain| (&raw const *plain.native, &raw const *plain.compat));
        // SAFETY: words that only the thread's entries read. The rest of what the fast path needs is the guest's for its life.
        unsafe {
            (&raw mut (*save).native).write_volatile(native);
            (&raw mut (*save).compat).write_volatile(compat);
        }
    }

    /// Where entries start to push: the end of the frame.
    pub fn end(&self) -> usize {
        core::ptr::from_ref(self) as usize + offset_of!(Save, frame) + size_of::<Frame>()
    }
}

/// Bytes from the "base", the place of rip in a frame, to the frame's end. The fast path finds its words by the base: in the kernel
/// it is in GS (`platform/x86_64/src/core.rs`), in entries in r11.
pub const BASE_TO_END: usize = size_of::<Frame>() - offset_of!(Frame, rip);

/// Offset from the base to a field of [`Save`].
pub const fn from_base(offset: usize) -> isize {
    offset as isize - (offset_of!(Save, frame) + offset_of!(Frame, rip)) as isize
}
