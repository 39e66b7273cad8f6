//! The kernel in the address space of its guests: where it lies, a thread's area, the way in from a host signal, the way out.
//!
//! Every guest process maps the same kernel memory, one shared file, at [`KERNEL_BASE`]. A thread in the kernel runs on its own
//! 64 KiB stack; its [`Area`] lies at the stack's top. The stack is the host's alternate signal stack for the thread, so a
//! host signal that interrupts user code starts at its top, and one that interrupts the kernel nests below the stack pointer.
//!
//! The way in: the host delivers a signal (SIGSYS for a call, a fault, a kick) to `hosted_signal_entry`. Nothing is believed
//! but the stack pointer, which the host took from sigaltstack: it gives the thread's index, hence area and selector.
//! The handler never returns to user code by sigreturn: it copies the registers into the area's frame, loads the vector
//! registers back (the kernel itself uses none) and leaves through `hosted_exit` like everybody else.
//!
//! The way out: `in_guest` is set, then the work flags are read, then the frame is loaded with the stack pointer *in the area*
//! (outside the signal stack), ending in `iretq`. A kick between the setting of `in_guest` and the `iretq` finds user
//! registers still whole in the frame and simply starts over with them: see `on_signal` in the platform.
//!
//! A kick may also come on the way in, on top of the signal that is just being delivered, while `in_guest` still says 1: then
//! the user's registers are in that signal's context and the frame is that of an earlier entry. [`way_in`] tells the two
//! apart; the entry goes on as if nothing had been, and the kick's mark is found on the way out.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU8, AtomicU32};

use super::frame::Frame;

/// Where kernel memory starts in every process.
pub const KERNEL_BASE: usize = 0x6000_0000_0000;
/// The image's room: text, read-only data, data.
pub const IMAGE_SIZE: usize = 16 << 20;
/// The boot information and the words shared with the supervisor.
pub const CONTROL_BASE: usize = KERNEL_BASE + IMAGE_SIZE;
pub const CONTROL_SIZE: usize = 16 << 20;
/// The selector bytes, one cache line a thread; a region of its own, so that a key can make it readable and not writable.
pub const SELECTOR_BASE: usize = KERNEL_BASE + (32 << 20);
pub const SELECTOR_STRIDE: usize = 64;
/// Thread stacks; near the rest, so that a process needs few page tables.
pub const STACK_BASE: usize = KERNEL_BASE + (64 << 20);
pub const STACK_SIZE: usize = 64 << 10;
pub const STACK_SHIFT: u32 = 16;
/// Most threads of a sandbox.
pub const THREADS: usize = 32768;
/// The kernel's heap.
pub const HEAP_BASE: usize = KERNEL_BASE + (4 << 30);
pub const HEAP_SIZE: usize = 64 << 30;
/// Bytes of the shared file, sparse.
pub const FILE_SIZE: usize = HEAP_BASE + HEAP_SIZE - KERNEL_BASE;
/// End of the range no guest may map.
pub const KERNEL_END: usize = KERNEL_BASE + (1 << 40);
/// End of the user half of the address space, as Linux sees it (the last page is left out).
pub const USER_END: usize = 0x7fff_ffff_f000;

/// Selector values of Syscall User Dispatch.
pub const SELECTOR_ALLOW: u8 = 0;
pub const SELECTOR_BLOCK: u8 = 1;

/// Bytes at a stack's top that belong to the area.
pub const AREA_SIZE: usize = 512;

/// What lies at the top of a thread's kernel stack.
#[repr(C, align(64))]
pub struct Area {
    /// User registers while the thread is in the kernel.
    pub frame: Frame,
    /// 1 from just before the last look at the work flags until the next entry.
    pub in_guest: AtomicU8,
    /// [`SELECTOR_BLOCK`] where calls are dispatched by selector; what the way out writes there.
    pub selector_value: u8,
    /// 0 free, 1 taken.
    pub state: AtomicU32,
    /// Host ids of the thread.
    pub host_pid: AtomicU32,
    pub host_tid: AtomicU32,
    /// The guest thread: the two words of a `*const dyn Guest` made by `Arc::into_raw`.
    pub guest: [usize; 2],
    /// Address of a boxed body, for threads of the kernel's own.
    pub body: usize,
    /// Where the thread pointer of a new thread is to be; `usize::MAX` keeps it.
    pub tls: usize,
}

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<Area>() <= AREA_SIZE);
    assert!(offset_of!(Area, frame) == 0);
    assert!(offset_of!(Area, in_guest) == 168);
    assert!(offset_of!(Area, selector_value) == 169);
    assert!(offset_of!(Area, state) == 172);
    assert!(STACK_BASE.trailing_zeros() >= STACK_SHIFT && SELECTOR_BASE.trailing_zeros() >= 12);
};

/// The area of the thread with this index.
pub const fn area(index: usize) -> *mut Area {
    (STACK_BASE + (index + 1) * STACK_SIZE - AREA_SIZE) as *mut Area
}

/// The selector byte of the thread with this index.
pub const fn selector(index: usize) -> *mut u8 {
    (SELECTOR_BASE + index * SELECTOR_STRIDE) as *mut u8
}

/// The thread whose kernel stack holds `sp`.
pub const fn index_of(sp: usize) -> usize {
    (sp - STACK_BASE) >> STACK_SHIFT
}

/// The range of the thread's stack below its area: base and bytes.
pub const fn stack(index: usize) -> (usize, usize) {
    (STACK_BASE + index * STACK_SIZE, STACK_SIZE - AREA_SIZE)
}

global_asm!(
    ".pushsection .text.hosted, \"ax\", @progbits",

    // From the host: rdi signal, rsi siginfo, rdx ucontext, rsp in the thread's stack.
    ".globl hosted_signal_entry",
    ".type hosted_signal_entry, @function",
    ".balign 64",
    "hosted_signal_entry:",
    // Calls must pass before the first one is made, the return from a nested signal included.
    "mov rax, rsp",
    "mov rcx, {stacks}",
    "sub rax, rcx",
    "shr rax, {shift}",
    "lea r8, [rax + 1]",
    "shl r8, {shift}",
    "add r8, rcx",
    "shl rax, 6",
    "mov rcx, {selectors}",
    "mov byte ptr [rax + rcx], 0",
    // Out of user code: what the word said goes to the handler.
    "xor eax, eax",
    "xchg byte ptr [r8 - {area} + 168], al",
    ".globl hosted_signal_entered",
    "hosted_signal_entered:",
    "movzx ecx, al",
    // The host clears DF and TF for a handler but leaves AC, with which unaligned kernel accesses would fault.
    "pushfq",
    "and dword ptr [rsp], ~0x40000",
    "popfq",
    "push rbp",
    "mov rbp, rsp",
    "and rsp, -16",
    "call {on_signal}",
    // rax: the area when user code is next, 0 when kernel code was interrupted and goes on.
    "mov rdi, rax",
    "test rax, rax",
    "jnz hosted_exit",
    "mov rsp, rbp",
    "pop rbp",
    // The frame the host pushed starts with the restorer's address; rt_sigreturn wants rsp just above it.
    "add rsp, 8",
    "mov eax, 15",
    "syscall",
    "ud2",
    ".size hosted_signal_entry, . - hosted_signal_entry",

    // rdi: area, whose in_guest is set and whose thread has no work. Does not return.
    ".globl hosted_exit",
    ".type hosted_exit, @function",
    ".balign 64",
    "hosted_exit:",
    "mov rax, rdi",
    "mov rcx, {stacks}",
    "sub rax, rcx",
    "shr rax, {shift}",
    "shl rax, 6",
    "mov rcx, {selectors}",
    "mov dl, [rdi + 169]",
    "mov rsp, rdi",
    "mov byte ptr [rax + rcx], dl",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "pop r11",
    "pop r10",
    "pop r9",
    "pop r8",
    "pop rax",
    "pop rcx",
    "pop rdx",
    "pop rsi",
    "pop rdi",
    "add rsp, 8",
    "iretq",
    ".size hosted_exit, . - hosted_exit",

    // clone(2) onto a new kernel stack: rdi flags, rsi new stack, rdx parent tid, rcx child tid, r8 tls -> rax as clone.
    // The child calls hosted_child_main with the word at the top of its stack and never comes back.
    ".globl hosted_clone",
    ".type hosted_clone, @function",
    "hosted_clone:",
    "mov r10, rcx",
    "mov eax, 56",
    "syscall",
    "test rax, rax",
    "jz 2f",
    "ret",
    "2:",
    "xor ebp, ebp",
    "pop rdi",
    "call {child_main}",
    "ud2",
    ".size hosted_clone, . - hosted_clone",

    // The thread goes on in a new host process with a copy of the address space; the old host thread ends. rdi flags,
    // rsi child tid word -> rax 0 in the new process, or a negative error in the old one. Both have the same stack in shared
    // memory, so the old one must not touch it again: it ends without a push.
    ".globl hosted_hop",
    ".type hosted_hop, @function",
    "hosted_hop:",
    "mov r10, rsi",
    "xor esi, esi",
    "xor edx, edx",
    "xor r8d, r8d",
    "mov eax, 56",
    "syscall",
    "test rax, rax",
    "jg 3f",
    "ret",
    "3:",
    "xor edi, edi",
    "mov eax, 60",
    "syscall",
    "ud2",
    ".size hosted_hop, . - hosted_hop",

    // rdi: the area's state word. Gives the stack back and ends the host thread: nothing may touch the stack after the store,
    // and signals are blocked.
    ".globl hosted_end",
    ".type hosted_end, @function",
    "hosted_end:",
    "mov dword ptr [rdi], 0",
    "xor edi, edi",
    "mov eax, 60",
    "syscall",
    "ud2",
    ".size hosted_end, . - hosted_end",

    // rdi: xsave area, rsi: component mask. PKRU (bit 9) never comes from memory.
    ".globl hosted_fpu_load",
    ".type hosted_fpu_load, @function",
    "hosted_fpu_load:",
    "mov rax, rsi",
    "mov rdx, rsi",
    "shr rdx, 32",
    "and eax, 0xfffffdff",
    "xrstor64 [rdi]",
    "test eax, 0x200",
    "jnz 4f",
    "ret",
    "4:",
    "ud2",
    ".size hosted_fpu_load, . - hosted_fpu_load",

    ".globl hosted_fpu_store",
    ".type hosted_fpu_store, @function",
    "hosted_fpu_store:",
    "mov rax, rsi",
    "mov rdx, rsi",
    "shr rdx, 32",
    "xsave64 [rdi]",
    "ret",
    ".size hosted_fpu_store, . - hosted_fpu_store",

    ".globl hosted_text_end",
    "hosted_text_end:",
    ".popsection",
    stacks = const STACK_BASE,
    shift = const STACK_SHIFT,
    area = const AREA_SIZE,
    selectors = const SELECTOR_BASE,
    on_signal = sym on_signal,
    child_main = sym child_main,
);

/// Whether an interrupted instruction belongs to the first steps of an entry, before it has cleared `in_guest`: then the address
/// just behind the clearing, where what the word said is expected in al.
pub fn way_in(rip: usize) -> Option<usize> {
    let start = hosted_signal_entry as *const () as usize;
    let end = hosted_signal_entered as *const () as usize;
    (start..end).contains(&rip).then_some(end)
}

/// What the platform registers: the Rust ends of the assembly.
pub struct Hooks {
    /// Handles a host signal (number, siginfo, ucontext, and the area's `in_guest` as it was; it is 0 now): the area to leave
    /// through, or null to go on where it interrupted.
    ///
    /// # Safety
    /// Called by `hosted_signal_entry` only.
    pub on_signal: unsafe extern "C" fn(i32, *mut u8, *mut u8, u8) -> *mut Area,
    /// First Rust code of a new host thread.
    ///
    /// # Safety
    /// Called by `hosted_clone` only.
    pub child_main: unsafe extern "C" fn(*mut Area) -> !,
}

static HOOKS: core::sync::atomic::AtomicPtr<Hooks> = core::sync::atomic::AtomicPtr::new(core::ptr::null_mut());

/// Registers the platform's ends, before the first signal handler is set.
pub fn set_hooks(hooks: &'static Hooks) {
    HOOKS.store((&raw const *hooks).cast_mut(), core::sync::atomic::Ordering::Release);
}

fn hooks() -> &'static Hooks {
    // SAFETY: set once at start, before anything can call the assembly above, from a `&'static`.
    unsafe { &*HOOKS.load(core::sync::atomic::Ordering::Acquire) }
}

unsafe extern "C" fn on_signal(signal: i32, info: *mut u8, context: *mut u8, in_guest: u8) -> *mut Area {
    // SAFETY: the arguments are the host's, as given to the entry above.
    unsafe { (hooks().on_signal)(signal, info, context, in_guest) }
}

unsafe extern "C" fn child_main(area: *mut Area) -> ! {
    // SAFETY: the area is the one `hosted_clone`'s caller put on the new stack.
    unsafe { (hooks().child_main)(area) }
}

unsafe extern "C" {
    pub fn hosted_signal_entry();
    fn hosted_signal_entered();
    pub fn hosted_exit(area: *mut Area) -> !;
    pub fn hosted_clone(flags: usize, stack: usize, parent_tid: *mut u32, child_tid: *mut u32, tls: usize) -> isize;
    pub fn hosted_hop(flags: usize, child_tid: *mut u32) -> isize;
    pub fn hosted_end(state: *const AtomicU32) -> !;
    pub fn hosted_fpu_load(area: *const u8, mask: u64);
    pub fn hosted_fpu_store(area: *mut u8, mask: u64);
}
