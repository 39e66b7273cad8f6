//! The code that makes host calls in a guest's process for the kernel, and the page with their words.
//!
//! Both are beside the vDSO, above all that a guest maps. The code keeps nothing in memory: what it needs is in registers, which the kernel
//! sets while the thread is stopped, and in the page of requests, which the guest's process can only read. A guest that jumps here
//! gets what it would get by a call of its own: the host stops it at each `syscall`.

use core::arch::global_asm;

use janua_abi::linux::futex::op;
use janua_abi::linux::mman::{MAP_FIXED, MAP_POPULATE, MAP_SHARED};
use janua_abi::linux::prctl::{self, SET_PDEATHSIG};
use janua_abi::linux::process::clone;
use janua_abi::linux::signal::{SIGCHLD, SIGKILL};
use janua_paging::{PAGE, PageFrame};
use janua_platform_linux::sys::nr;
use janua_platform_linux::vdso;
use janua_port::Prot;

use crate::physical::{MEMORY, Physical};

/// One host call: its number and six words, and a word that fills the line.
pub type Request = [usize; 8];

/// pause(2) and getppid(2), which the kernel itself never makes.
pub const PAUSE: u32 = 34;
pub const GETPPID: u32 = 110;
/// The flags of clone(2) for a process, which is the child of the kernel's, and for a thread.
pub const CHILD_FLAGS: u32 = clone::PARENT as u32 | SIGCHLD;
pub const THREAD_FLAGS: u32 = (clone::VM | clone::FS | clone::FILES | clone::SIGHAND | clone::THREAD | clone::SYSVSEM) as u32;
/// How every page is mapped, and how where the host's page table is to have it at once.
pub const MAP_FLAGS: u32 = MAP_SHARED | MAP_FIXED;
pub const MAP_NOW_FLAGS: u32 = MAP_FLAGS | MAP_POPULATE;

/// Requests that fit into the page, and a thread's name behind them.
pub const MOST: usize = PAGE / size_of::<Request>() - 1;
pub const NAME_PLACE: usize = MOST * size_of::<Request>();

global_asm!(
    ".pushsection .rodata.janua_stub, \"a\", @progbits",
    ".globl janua_stub_start",
    ".globl janua_stub_one",
    ".globl janua_stub_thread",
    ".globl janua_stub_rest",
    ".globl janua_stub_zygote",
    ".globl janua_stub_end",
    // Makes the calls from rbx up to rbp, until one fails; the result is in rax.
    "janua_stub_start:",
    "2:",
    "cmp rbx, rbp",
    "je 3f",
    "mov rax, [rbx]",
    "mov rdi, [rbx + 8]",
    "mov rsi, [rbx + 16]",
    "mov rdx, [rbx + 24]",
    "mov r10, [rbx + 32]",
    "mov r8, [rbx + 40]",
    "mov r9, [rbx + 48]",
    "syscall",
    "cmp rax, -4095",
    "jae 3f",
    "add rbx, 64",
    "jmp 2b",
    "3:",
    "int3",
    "jmp 3b",
    // Makes one call, whose words are in their registers.
    "janua_stub_one:",
    "syscall",
    "4:",
    "int3",
    "jmp 4b",
    // The same for clone(2): the new thread waits to be traced.
    "janua_stub_thread:",
    "syscall",
    "test rax, rax",
    "jz 5f",
    "6:",
    "int3",
    "jmp 6b",
    "janua_stub_rest:",
    "5:",
    "mov eax, {pause}",
    "syscall",
    "jmp 5b",
    // The process that others are made from. First the calls from rbx up to rbp; then r15 is a word: 1 asks for a child, and each of the two adds one
    // to it, the maker when the child's number is in the second word, the child when it has its pages. The third has the number of the kernel's
    // process, without which each ends: who asks for its signal after that gets none. Then come the file's descriptor, where the page of requests
    // is in it, and the mailbox, and where that is to be mapped, if there is one.
    "janua_stub_zygote:",
    "cmp rbx, rbp",
    "je 12f",
    "mov rax, [rbx]",
    "mov rdi, [rbx + 8]",
    "mov rsi, [rbx + 16]",
    "mov rdx, [rbx + 24]",
    "mov r10, [rbx + 32]",
    "mov r8, [rbx + 40]",
    "mov r9, [rbx + 48]",
    "syscall",
    "cmp rax, -4095",
    "jae 9f",
    "add rbx, 64",
    "jmp janua_stub_zygote",
    "12:",
    "mov eax, {parent}",
    "syscall",
    "cmp eax, [r15 + 16]",
    "jne 9f",
    "7:",
    "mov edx, [r15]",
    "cmp edx, 1",
    "je 8f",
    "mov rdi, r15",
    "mov esi, {wait}",
    "xor r10d, r10d",
    "mov eax, {futex}",
    "syscall",
    "jmp 7b",
    "8:",
    // The next one may be asked for before the child has looked.
    "mov rbx, [r15 + 24]",
    "mov r12, [r15 + 32]",
    "mov r13, [r15 + 40]",
    "mov r14, [r15 + 48]",
    "mov edi, {child}",
    "xor esi, esi",
    "xor edx, edx",
    "xor r10d, r10d",
    "xor r8d, r8d",
    "mov eax, {clone}",
    "syscall",
    "test rax, rax",
    "jz 10f",
    "mov [r15 + 8], rax",
    "test rax, rax",
    "jns 14f",
    // There is none.
    "lock add dword ptr [r15], 1",
    "14:",
    "lock add dword ptr [r15], 1",
    "mov rdi, r15",
    "mov esi, {wake}",
    "mov edx, {everybody}",
    "mov eax, {futex}",
    "syscall",
    "jmp 7b",
    "9:",
    "mov edi, 1",
    "mov eax, {exit}",
    "syscall",
    "ud2",
    "10:",
    "mov edi, {parent_death}",
    "mov esi, {kill}",
    "mov eax, {prctl}",
    "syscall",
    "mov eax, {parent}",
    "syscall",
    "cmp eax, [r15 + 16]",
    "jne 9b",
    "lea rdi, [rip + janua_stub_start]",
    "add rdi, {page}",
    "mov edx, {read}",
    "mov r9, r12",
    "15:",
    "mov esi, {page}",
    "mov r10d, {map_flags}",
    "mov r8, rbx",
    "mov eax, {mmap}",
    "syscall",
    "cmp rax, -4095",
    "jae 16f",
    "mov rdi, r14",
    "mov edx, {write}",
    "mov r9, r13",
    "xor r14d, r14d",
    "test rdi, rdi",
    "jnz 15b",
    "lock add dword ptr [r15], 1",
    "mov rdi, r15",
    "mov esi, {wake}",
    "mov edx, {everybody}",
    "mov eax, {futex}",
    "syscall",
    "17:",
    "mov eax, {pause}",
    "syscall",
    "jmp 17b",
    // It ends, and is found to have.
    "16:",
    "lock add dword ptr [r15], 1",
    "mov rdi, r15",
    "mov esi, {wake}",
    "mov edx, {everybody}",
    "mov eax, {futex}",
    "syscall",
    "jmp 9b",
    "janua_stub_end:",
    ".popsection",
    pause = const PAUSE,
    parent = const GETPPID,
    futex = const nr::FUTEX.number(),
    clone = const nr::CLONE.number(),
    exit = const nr::EXIT.number(),
    prctl = const nr::PRCTL.number(),
    wait = const op::WAIT,
    wake = const op::WAKE,
    child = const CHILD_FLAGS,
    parent_death = const SET_PDEATHSIG,
    kill = const SIGKILL,
    everybody = const i32::MAX,
    page = const PAGE,
    map_flags = const MAP_NOW_FLAGS,
    mmap = const nr::MMAP.number(),
    read = const 1,
    write = const 3,
);

unsafe extern "C" {
    static janua_stub_start: u8;
    static janua_stub_one: u8;
    static janua_stub_thread: u8;
    static janua_stub_rest: u8;
    static janua_stub_zygote: u8;
    static janua_stub_end: u8;
}

/// Where the page of code is in every process; behind it that of requests, and the word of the process that others are made from.
pub fn base() -> usize {
    vdso::ranges()[0].0 - 4 * PAGE
}

/// The page of requests.
pub fn requests() -> usize {
    base() + PAGE
}

/// The word of the process that others are made from.
pub fn word() -> usize {
    base() + 2 * PAGE
}

/// The code.
pub fn code() -> &'static [u8] {
    // SAFETY: constants of the image between two of its labels.
    unsafe {
        let start = &raw const janua_stub_start;
        core::slice::from_raw_parts(start, (&raw const janua_stub_end).offset_from_unsigned(start))
    }
}

fn entry(label: *const u8) -> usize {
    base() + (label as usize - (&raw const janua_stub_start) as usize)
}

/// Where the code begins that makes the calls of the page of requests.
pub fn many() -> usize {
    entry(&raw const janua_stub_start)
}

/// Where that begins that makes one call out of registers.
pub fn one() -> usize {
    entry(&raw const janua_stub_one)
}

/// Where that begins that makes a thread.
pub fn thread() -> usize {
    entry(&raw const janua_stub_thread)
}

/// Where a thread waits to be traced.
pub fn rest() -> usize {
    entry(&raw const janua_stub_rest)
}

/// Where the process begins that others are made from.
pub fn zygote() -> usize {
    entry(&raw const janua_stub_zygote)
}

/// Whether a thread that is there has met an `int3` of the code.
pub fn is_done(rip: usize) -> bool {
    const INT3: u8 = 0xcc;
    rip.wrapping_sub(base()).checked_sub(1).and_then(|at| code().get(at)).is_some_and(|byte| *byte == INT3)
}

/// PROT_* bits.
pub fn bits(prot: Prot) -> usize {
    usize::from(prot.read) | usize::from(prot.write) << 1 | usize::from(prot.exec) << 2
}

/// mmap(2) of pages in a row, which the host's page table has at once or when they are met with.
pub fn map(addr: usize, frame: PageFrame, pages: usize, prot: Prot, now: bool) -> Request {
    let flags = if now { MAP_NOW_FLAGS } else { MAP_FLAGS } as usize;
    [nr::MMAP.number(), addr, pages * PAGE, bits(prot), flags, MEMORY.descriptor(), Physical::offset(frame), 0]
}

/// mprotect(2).
pub fn protect(addr: usize, pages: usize, prot: Prot) -> Request {
    [nr::MPROTECT.number(), addr, pages * PAGE, bits(prot), 0, 0, 0, 0]
}

/// Where a thread's name is in the page of requests.
pub fn name_place() -> usize {
    requests() + NAME_PLACE
}

/// prctl(2) that gives the calling thread the name that is there.
pub fn name() -> Request {
    [nr::PRCTL.number(), prctl::SET_NAME as usize, name_place(), 0, 0, 0, 0, 0]
}

/// munmap(2).
pub fn unmap(addr: usize, len: usize) -> Request {
    [nr::MUNMAP.number(), addr, len, 0, 0, 0, 0, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_fits_into_its_page_and_reads_its_words_by_a_register() {
        assert!(!code().is_empty() && code().len() <= PAGE);
        // `syscall` in each of its parts.
        assert!(code().windows(2).filter(|pair| *pair == [0x0f, 0x05]).count() >= 6);
        assert!(code().windows(3).any(|bytes| bytes == [0x48, 0x8b, 0x03]), "mov rax, [rbx]");
    }
}
