//! The process that guests' processes are made from: it has nothing but the stub's code, the vDSO and the descriptor of physical memory.
//!
//! It is made before the second wall is raised, and has a filter of its own, which its children inherit: only what the stub's code does.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use janua_abi::linux::mman::{MAP_FIXED_NOREPLACE, MAP_SHARED, PROT_EXEC, PROT_READ, PROT_WRITE};
use janua_abi::linux::net::{SockFilter as Filter, bpf};
use janua_abi::linux::prctl;
use janua_abi::linux::ptrace::ARCH_X86_64;
use janua_abi::linux::seccomp::data;
use janua_abi::linux::seccomp::verdict::{ALLOW, KILL_PROCESS};
use janua_abi::linux::signal::{SIGCHLD, SIGKILL};
use janua_abi::linux::{Errno, Result};
use janua_paging::{Frames, PAGE, PageFrame};
use janua_platform_linux::clock::HostClock;
use janua_platform_linux::spawn;
use janua_platform_linux::sys::{self, nr};
use janua_port::Clock;
use janua_rt::Mutex;

use crate::physical::{MEMORY, Physical};
use crate::stub::{self, Request};
use crate::tracee::moment;

global_asm!(
    ".pushsection .text.janua_zygote, \"ax\", @progbits",
    // fork(2) with the flags in rdi; the child goes on at rsi, with rdx in rbx, rcx in rbp and r8 in r15, and touches no stack.
    ".globl janua_make_zygote",
    ".type janua_make_zygote, @function",
    "janua_make_zygote:",
    "push rbx",
    "push rbp",
    "push r14",
    "push r15",
    "mov r14, rsi",
    "mov rbx, rdx",
    "mov rbp, rcx",
    "mov r15, r8",
    "xor esi, esi",
    "xor edx, edx",
    "xor r10d, r10d",
    "xor r8d, r8d",
    "mov eax, 56",
    "syscall",
    "test rax, rax",
    "jz 2f",
    "pop r15",
    "pop r14",
    "pop rbp",
    "pop rbx",
    "ret",
    "2:",
    "jmp r14",
    ".size janua_make_zygote, . - janua_make_zygote",
    ".popsection",
);

unsafe extern "C" {
    fn janua_make_zygote(flags: u64, entry: usize, first: usize, end: usize, word: usize) -> isize;
}

/// Its page of code, and that of its word.
struct Zygote {
    word: Option<PageFrame>,
}

static ZYGOTE: Mutex<Zygote> = Mutex::new(Zygote { word: None });

/// The calls of the stub's code, by number: mmap, mprotect, munmap, pause, clone, exit, prctl, futex, restart_syscall, membarrier. Then those
/// of the vsyscall page, which the host emulates without a stop, and looks here first: time alone, and which processor it is.
const CALLS: [u32; 13] = [9, 10, 11, 34, 56, 60, 157, 202, 219, 324, 96, 201, 309];
/// Where the filter is in the page of requests.
const FILTER: usize = PAGE / 2;

fn filter() -> [Filter; CALLS.len() * 2 + 5] {
    const LOAD: u16 = bpf::LD | bpf::ABS;
    const EQUAL: u16 = bpf::JMP | bpf::JEQ;
    let op = |code, k| Filter { code, jt: 0, jf: 0, k };
    let skip = |k, jf| Filter { code: EQUAL, jt: 0, jf, k };
    let mut code = [op(bpf::RET, KILL_PROCESS); CALLS.len() * 2 + 5];
    code[0] = op(LOAD, data::ARCH);
    code[1] = Filter { code: EQUAL, jt: 1, jf: 0, k: ARCH_X86_64 };
    code[3] = op(LOAD, data::NUMBER);
    for (at, number) in CALLS.into_iter().enumerate() {
        code[4 + at * 2] = skip(number, 1);
        code[5 + at * 2] = op(bpf::RET, ALLOW);
    }
    code
}

/// What it does first: all that is not its own goes.
fn first(descriptor: usize) -> [Request; 6] {
    const CLOSE_RANGE: usize = 436;
    const PRCTL: usize = 157;
    [
        [CLOSE_RANGE, 0, descriptor.wrapping_sub(1), 0, 0, 0, 0, 0],
        [CLOSE_RANGE, descriptor + 1, u32::MAX as usize, 0, 0, 0, 0, 0],
        stub::unmap(0, stub::base()),
        [PRCTL, prctl::SET_PDEATHSIG as usize, SIGKILL as usize, 0, 0, 0, 0, 0],
        [PRCTL, prctl::SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0, 0, 0],
        [nr::SECCOMP.number(), 1, 0, stub::requests() + FILTER, 0, 0, 0, 0],
    ]
}

/// Makes it, in the sandbox's first process, before the second wall is raised.
pub fn start() -> Result<()> {
    let pages = [PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE];
    let mut frames = [PageFrame(0); 3];
    for (at, prot) in pages.into_iter().enumerate() {
        frames[at] = MEMORY.take().ok_or(Errno::ENOMEM)?;
        let flags = (MAP_SHARED | MAP_FIXED_NOREPLACE) as usize;
        let args = [stub::base() + at * PAGE, PAGE, prot as usize, flags, MEMORY.descriptor(), Physical::offset(frames[at])];
        // SAFETY: pages beside the vDSO, where nothing is (the flag makes sure).
        unsafe { sys::raw(nr::MMAP, args) }?;
    }
    let [code, requests, word] = frames;
    MEMORY.write(code, 0, stub::code());
    let first = first(MEMORY.descriptor());
    let skipped = usize::from(MEMORY.descriptor() == 0);
    let program = filter();
    // SAFETY: pages of ours that nobody else uses yet; what is written fits (the assertion below).
    unsafe {
        let place = Physical::pointer(requests);
        place.cast::<Request>().copy_from_nonoverlapping(first.as_ptr(), first.len());
        // struct sock_fprog, and its instructions behind it.
        let head = place.add(FILTER).cast::<usize>();
        head.write(program.len());
        head.add(1).write(stub::requests() + FILTER + 16);
        head.add(2).cast::<Filter>().copy_from_nonoverlapping(program.as_ptr(), program.len());
        let start = stub::requests() + skipped * size_of::<Request>();
        let end = stub::requests() + size_of_val(&first);
        Errno::from_raw(janua_make_zygote(u64::from(SIGCHLD), stub::zygote(), start, end, stub::word()))?;
    }
    ZYGOTE.lock().word = Some(word);
    Ok(())
}

const _: () = assert!(6 * size_of::<Request>() <= FILTER && 16 + (CALLS.len() * 2 + 5) * 8 <= PAGE - FILTER);

/// A new process, whose only thread waits in the stub's code: its number. EAGAIN.
pub fn make() -> Result<u32> {
    /// It has been killed, or the machine stands still.
    const LONG: u64 = 10_000_000_000;
    let zygote = ZYGOTE.lock();
    let place = Physical::pointer(zygote.word.ok_or(Errno::EAGAIN)?);
    // SAFETY: two words of a page that stays; both sides use them as atomics.
    let (word, child) = unsafe { (AtomicU32::from_ptr(place.cast()), AtomicU64::from_ptr(place.add(8).cast())) };
    word.store(1, Ordering::SeqCst);
    spawn::unpark(word, 1);
    let end = HostClock.monotonic() + LONG;
    while word.load(Ordering::SeqCst) != 2 {
        moment(word, 1);
        if HostClock.monotonic() > end {
            return Err(Errno::EAGAIN);
        }
    }
    let pid = Errno::from_raw(child.load(Ordering::SeqCst) as isize)?;
    Ok(pid as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_knows_the_calls_of_the_stub_and_no_other() {
        let code = filter();
        assert_eq!(code.last().map(|last| last.k), Some(KILL_PROCESS));
        assert_eq!(code.iter().filter(|op| op.code == bpf::RET && op.k == ALLOW).count(), CALLS.len());
        // Another architecture's calls end at once.
        assert_eq!((code[2].code, code[2].k), (bpf::RET, KILL_PROCESS));
    }
}
