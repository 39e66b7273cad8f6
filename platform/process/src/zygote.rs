//! The process that guests' processes are made from: it has nothing but the stub's code, the vDSO and the descriptor of physical memory.
//!
//! It is made before the second wall is raised, and has a filter of its own, which its children inherit: only what the stub's code does.

use alloc::vec;
use alloc::vec::Vec;
use core::arch::global_asm;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use janua_abi::linux::futex::op;
use janua_abi::linux::mman::{MAP_FIXED_NOREPLACE, MAP_SHARED, PROT_EXEC, PROT_READ, PROT_WRITE};
use janua_abi::linux::net::{SockFilter as Filter, bpf};
use janua_abi::linux::prctl;
use janua_abi::linux::process::{CLONE_ARGS_SIZE_VER0, CloneArgs, clone};
use janua_abi::linux::ptrace::ARCH_X86_64;
use janua_abi::linux::seccomp::data;
use janua_abi::linux::seccomp::verdict::{ALLOW, KILL_PROCESS};
use janua_abi::linux::signal::{SIGCHLD, SIGKILL};
use janua_abi::linux::{Errno, Result, vsyscall};
use janua_paging::{Frames, PAGE, PageFrame};
use janua_platform_linux::clock::HostClock;
use janua_platform_linux::spawn;
use janua_platform_linux::sys::{self, nr};
use janua_port::Clock;
use janua_rt::Mutex;

use crate::mailbox;
use crate::mirror::Pages;
use crate::physical::{MEMORY, Physical};
use crate::stub::{self, Request};
use crate::tracee::has_ended;

global_asm!(
    ".pushsection .text.janua_zygote, \"ax\", @progbits",
    // clone3(2) with its structure at rdi, which gives it no stack; the child goes on at rsi, with rdx in rbx, rcx in rbp and r8 in r15, and touches no stack.
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
    "mov esi, {size}",
    "mov eax, 435",
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
    size = const CLONE_ARGS_SIZE_VER0,
);

unsafe extern "C" {
    fn janua_make_zygote(args: &CloneArgs, entry: usize, first: usize, end: usize, word: usize) -> isize;
}

/// The host's number of it, and the page of its word.
struct Zygote {
    pid: u32,
    word: PageFrame,
}

/// None before it is made, and when somebody outside has ended it.
static ZYGOTE: Mutex<Option<Zygote>> = Mutex::new(None);

/// A call that passes, and what the lower words of its arguments are then; of those that are not here it does not matter.
type Rule = (u32, &'static [(u8, &'static [u32])]);

/// The calls of the stub's code, but for mmap(2) and prctl(2). Then those of the vsyscall page, which the host emulates without a stop, and looks here first:
/// time alone, and which processor it is.
const RULES: [Rule; 12] = [
    (nr::MPROTECT.number() as u32, &[]),
    (nr::MUNMAP.number() as u32, &[]),
    (nr::EXIT.number() as u32, &[]),
    (nr::RESTART_SYSCALL.number() as u32, &[]),
    (nr::MEMBARRIER.number() as u32, &[]),
    (stub::PAUSE, &[]),
    (stub::GETPPID, &[]),
    (nr::CLONE.number() as u32, &[(0, &[stub::CHILD_FLAGS, stub::THREAD_FLAGS])]),
    (nr::FUTEX.number() as u32, &[(1, &[op::WAIT, op::WAKE])]),
    (vsyscall::CALLS[0] as u32, &[]),
    (vsyscall::CALLS[1] as u32, &[]),
    (vsyscall::CALLS[2] as u32, &[]),
];
/// Where the filter is in the page of requests, and most instructions that fit.
const FILTER: usize = PAGE / 2;
const MOST: usize = (PAGE - FILTER) / size_of::<Filter>() - 2;

/// The filter of the process and of all that are made from it, which have the file at this descriptor, and a thread's name at this address.
fn filter(descriptor: u32, name: u32) -> Vec<Filter> {
    const LOAD: u16 = bpf::LD | bpf::ABS;
    let op = |code, k| Filter { code, jt: 0, jf: 0, k };
    let equal = |k, jt, jf| Filter { code: bpf::JMP | bpf::JEQ, jt, jf, k };
    let mut code = vec![op(LOAD, data::ARCH), equal(ARCH_X86_64, 1, 0), op(bpf::RET, KILL_PROCESS), op(LOAD, data::NUMBER)];
    let mut pass = |number, arguments: &[(u8, &[u32])]| {
        let mut own = Vec::new();
        for (at, values) in arguments {
            own.push(op(LOAD, data::ARGS + 8 * u32::from(*at)));
            for (at, value) in values.iter().enumerate() {
                own.push(equal(*value, (values.len() - at) as u8, 0));
            }
            own.push(op(bpf::RET, KILL_PROCESS));
        }
        own.push(op(bpf::RET, ALLOW));
        code.push(equal(number, 0, own.len() as u8));
        code.append(&mut own);
    };
    // Its own file alone, wherever: what is a guest's is the kernel's to know.
    pass(nr::MMAP.number() as u32, &[(3, &[stub::MAP_FLAGS, stub::MAP_NOW_FLAGS]), (4, &[descriptor])]);
    // The signal for the kernel's end, and a name from the page of requests.
    let words = [SIGKILL, name];
    pass(nr::PRCTL.number() as u32, &[(0, &[prctl::SET_PDEATHSIG, prctl::SET_NAME]), (1, &words)]);
    RULES.iter().for_each(|(number, arguments)| pass(*number, arguments));
    code.push(op(bpf::RET, KILL_PROCESS));
    code
}

/// What it does first: all that is not its own goes.
fn first(descriptor: usize) -> [Request; 6] {
    const CLOSE_RANGE: usize = 436;
    const PRCTL: usize = nr::PRCTL.number();
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
    mailbox::write(code);
    let first = first(MEMORY.descriptor());
    let skipped = usize::from(MEMORY.descriptor() == 0);
    let program = filter(MEMORY.descriptor() as u32, stub::name_place() as u32);
    assert!(program.len() <= MOST, "a filter that does not fit into its half of a page");
    // SAFETY: pages of ours that nobody else uses yet; what is written fits (the assertions).
    let pid = unsafe {
        let place = Physical::pointer(requests);
        place.cast::<Request>().copy_from_nonoverlapping(first.as_ptr(), first.len());
        // struct sock_fprog, and its instructions behind it.
        let head = place.add(FILTER).cast::<usize>();
        head.write(program.len());
        head.add(1).write(stub::requests() + FILTER + 16);
        head.add(2).cast::<Filter>().copy_from_nonoverlapping(program.as_ptr(), program.len());
        let start = stub::requests() + skipped * size_of::<Request>();
        let end = stub::requests() + size_of_val(&first);
        // The calling thread is its process' first.
        Physical::pointer(word).cast::<u32>().add(4).write(sys::raw(nr::GETTID, [0; 6])? as u32);
        // Handlers would be the kernel's, in guests' memory: a thread that is not traced yet, or no longer, is to have none.
        let args = CloneArgs { flags: clone::CLEAR_SIGHAND, exit_signal: u64::from(SIGCHLD), ..CloneArgs::default() };
        Errno::from_raw(janua_make_zygote(&args, stub::zygote(), start, end, stub::word()))?
    };
    *ZYGOTE.lock() = Some(Zygote { pid: pid as u32, word });
    Ok(())
}

const _: () = assert!(6 * size_of::<Request>() <= FILTER);

/// A new process, whose only thread waits in the stub's code, or is about to, and which has these pages: its number. EAGAIN.
pub fn make(pages: Pages) -> Result<u32> {
    /// Both have added one ([`stub`]).
    const MADE: u32 = 3;
    /// The machine hangs.
    const LONG: u64 = 10_000_000_000;
    const LOOK: u64 = 10_000_000;
    let mut slot = ZYGOTE.lock();
    let Some(Zygote { pid, word }) = *slot else { return Err(Errno::EAGAIN) };
    let place = Physical::pointer(word);
    // SAFETY: two words of a page that stays; both sides use them as atomics.
    let (word, child) = unsafe { (AtomicU32::from_ptr(place.cast()), AtomicU64::from_ptr(place.add(8).cast())) };
    let offset = |page: Option<PageFrame>| page.map_or(0, Physical::offset);
    let wanted = [
        MEMORY.descriptor(),
        Physical::offset(pages.requests),
        offset(pages.mailbox),
        match pages.mailbox {
            Some(_) => mailbox::place(0),
            None => 0,
        },
    ];
    for (at, value) in wanted.into_iter().enumerate() {
        // SAFETY: further words of the same page, which the other side reads when it is asked.
        unsafe { place.cast::<usize>().add(3 + at).write_volatile(value) };
    }
    word.store(1, Ordering::SeqCst);
    spawn::unpark(word, 1);
    let end = HostClock.monotonic() + LONG;
    loop {
        let state = word.load(Ordering::SeqCst);
        if state == MADE {
            break;
        }
        // It is woken; now and then it looks whether there is still somebody who would.
        spawn::park(word, state, Some(HostClock.monotonic() + LOOK));
        if word.load(Ordering::SeqCst) != MADE && has_ended(pid) {
            *slot = None;
            return Err(Errno::EAGAIN);
        }
        if HostClock.monotonic() > end {
            // Nobody else waits for it. A child of it that comes later ends with the kernel.
            *slot = None;
            return Err(Errno::EAGAIN);
        }
    }
    let made = Errno::from_raw(child.load(Ordering::SeqCst) as isize)?;
    Ok(made as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: u32 = 7;
    const NAME: u32 = 0x7fff_1000;

    /// What the filter returns for a call.
    fn judge(arch: u32, number: u32, args: [u32; 6]) -> u32 {
        let code = filter(OWN, NAME);
        let (mut at, mut loaded) = (0, 0);
        loop {
            let step = code[at];
            at += 1;
            match step.code {
                bpf::RET => return step.k,
                code if code == bpf::JMP | bpf::JEQ => at += usize::from(if loaded == step.k { step.jt } else { step.jf }),
                _ => {
                    loaded = match step.k {
                        data::ARCH => arch,
                        data::NUMBER => number,
                        // The upper words are not looked at: the host takes the lower ones alone.
                        place => args[(place - data::ARGS) as usize / 8],
                    };
                }
            }
        }
    }

    fn passes(number: u32, args: [u32; 6]) -> bool {
        judge(ARCH_X86_64, number, args) == ALLOW
    }

    #[test]
    fn the_filter_knows_the_calls_of_the_stub_and_no_other() {
        assert!(filter(OWN, NAME).len() <= MOST);
        let map = nr::MMAP.number() as u32;
        let known =
            |number: u32| number == map || number == nr::PRCTL.number() as u32 || RULES.iter().any(|(rule, _)| *rule == number);
        for number in 0..1024 {
            let bare = RULES.iter().any(|(rule, arguments)| *rule == number && arguments.is_empty());
            assert_eq!(passes(number, [u32::MAX; 6]), bare, "call {number}");
            assert!(known(number) || !passes(number, [0; 6]), "call {number}");
            // x32 and another architecture.
            assert_eq!(judge(ARCH_X86_64, number | 0x4000_0000, [0; 6]), KILL_PROCESS);
            assert_eq!(judge(0x4000_0003, number, [0; 6]), KILL_PROCESS);
        }
    }

    #[test]
    fn the_filter_passes_what_the_stub_asks_for_and_nothing_like_it() {
        let map = nr::MMAP.number() as u32;
        let passes_map = |flags, descriptor| passes(map, [0x1000, 0x1000, 3, flags, descriptor, 0]);
        for flags in [stub::MAP_FLAGS, stub::MAP_NOW_FLAGS] {
            assert!(passes_map(flags, OWN));
            assert!(!passes_map(flags, OWN + 1) && !passes_map(flags | 0x20, OWN) && !passes_map(flags & !1 | 2, OWN));
        }
        assert!(!passes_map(2, OWN));
        let fork = nr::CLONE.number() as u32;
        assert!(passes(fork, [stub::CHILD_FLAGS, 0, 0, 0, 0, 0]) && passes(fork, [stub::THREAD_FLAGS, 0, 0, 0, 0, 0]));
        for bit in 0..32 {
            assert!(!passes(fork, [stub::THREAD_FLAGS ^ 1 << bit, 0, 0, 0, 0, 0]), "thread, bit {bit}");
            assert!(!passes(fork, [stub::CHILD_FLAGS ^ 1 << bit, 0, 0, 0, 0, 0]), "child, bit {bit}");
        }
        let control = nr::PRCTL.number() as u32;
        assert!(passes(control, [prctl::SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0]));
        assert!(!passes(control, [prctl::SET_PDEATHSIG, 0, 0, 0, 0, 0]) && !passes(control, [4, SIGKILL, 0, 0, 0, 0]));
        assert!(
            passes(control, [prctl::SET_NAME, NAME, 0, 0, 0, 0]) && !passes(control, [prctl::SET_NAME, NAME + 1, 0, 0, 0, 0])
        );
        let futex = nr::FUTEX.number() as u32;
        assert!(passes(futex, [0, op::WAIT, 0, 0, 0, 0]) && passes(futex, [0, op::WAKE, 0, 0, 0, 0]));
        assert!(!passes(futex, [0, op::LOCK_PI, 0, 0, 0, 0]));
    }
}
