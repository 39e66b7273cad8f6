//! Page-table isolation: while user code runs, the tables in use map nothing of the kernel but what an entry needs before it has
//! changed to the kernel's: the entries' code, the interrupt descriptors, and each core's own words, descriptors and stacks.
//!
//! On a processor that lets user code guess at what its tables map but its rights forbid (Meltdown), there is nothing left to guess.
//! It is decided once, at start: by `kpti=on` or `kpti=off` on the kernel's command line, or by the processor.
//!
//! Every space has two roots then, which share the tables of the user half. Gates have entries of their own for
//! it. All other vectors come by this file, whose entries change to the kernel's root, move what the processor has pushed
//! from the core's entry stack to the thread's frame, and go on at the entries of [`crate::entry`], which never know. The loop's return to user
//! mode ends in `swapgs` and `iretq` or `sysretq`: these instructions are replaced by a jump to this file, at start, so that without
//! isolation they cost nothing more than they did.

use core::arch::global_asm;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use janua_arch::x86_64::cpu::cpuid;

use crate::boot::{DIRECT, physical};
use crate::cpu;
use crate::entry;
use crate::report::STOPPING;

static ON: AtomicBool = AtomicBool::new(false);

/// Whether it is on.
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Where an entry of user code goes on, by vector: the entry that there would be without isolation.
#[repr(transparent)]
struct Targets([AtomicU64; 256]);

static TARGETS: Targets = Targets([const { AtomicU64::new(0) }; 256]);

global_asm!(
    ".pushsection .text.entry, \"ax\", @progbits",
    ".globl isolated_stubs, isolated_debug, isolated_nmi, isolated_double_fault, isolated_machine_check",
    ".globl isolated_refused, isolated_iret, isolated_sysret",

    // What the tables of user code map of a core: gs:[0] the frame's end without ss, gs:[8] and gs:[56] for a register each, gs:[32]
    // the kernel's root, gs:[40] user code's, gs:[48] the end of the entry stack, gs:[64] where what an exception pushes there begins.
    ".balign 64",
    "isolated_stubs:",
    ".set isolated_vector, 0",
    ".rept 256",
    ".balign 64",
    ".if isolated_vector == 8 || (isolated_vector >= 10 && isolated_vector <= 14) || isolated_vector == 17 || isolated_vector == 21 || isolated_vector == 29 || isolated_vector == 30",
    "test byte ptr [rsp + 16], 3",
    "jz vector_stubs + isolated_vector*16",
    "swapgs",
    "lfence",
    "mov gs:[8], rax",
    "mov eax, offset isolated_vector",
    "jmp isolated_with_error",
    ".else",
    "test byte ptr [rsp + 8], 3",
    "jz vector_stubs + isolated_vector*16",
    "swapgs",
    "lfence",
    "mov gs:[8], rax",
    "mov eax, offset isolated_vector",
    "jmp isolated_plain",
    ".endif",
    ".set isolated_vector, isolated_vector + 1",
    ".endr",

    "isolated_plain:",
    "mov gs:[56], rax",
    "mov rax, gs:[32]",
    "mov cr3, rax",
    "mov rax, rsp",
    "mov rsp, gs:[0]",
    "add rsp, 8",
    "push [rax + 32]",
    "push [rax + 24]",
    "push [rax + 16]",
    "push [rax + 8]",
    "push [rax]",
    "2:",
    "mov rax, gs:[56]",
    "push [rax*8 + {targets}]",
    "mov rax, gs:[8]",
    "swapgs",
    "ret",
    "isolated_with_error:",
    "mov gs:[56], rax",
    "mov rax, gs:[32]",
    "mov cr3, rax",
    "mov rax, rsp",
    "mov rsp, gs:[0]",
    "add rsp, 8",
    "push [rax + 40]",
    "push [rax + 32]",
    "push [rax + 24]",
    "push [rax + 16]",
    "push [rax + 8]",
    "push [rax]",
    "jmp 2b",

    // On its own stack, which both tables map.
    "isolated_debug:",
    "test byte ptr [rsp + 8], 3",
    "jz debug_entry",
    "swapgs",
    "lfence",
    "mov gs:[8], rax",
    "mov rax, gs:[32]",
    "mov cr3, rax",
    "mov rax, gs:[8]",
    "swapgs",
    "jmp debug_entry",

    // These may come anywhere, with any tables and any GS: the kernel's root is above their stacks.
    "isolated_nmi:",
    "push rax",
    "push rcx",
    "mov rcx, cr3",
    "mov rax, [rsp + 7*8]",
    "mov cr3, rax",
    "cmp byte ptr [rip + {stopping}], 0",
    "jne 3f",
    "mov cr3, rcx",
    "pop rcx",
    "pop rax",
    "iretq",
    "3:",
    "cli",
    "hlt",
    "jmp 3b",
    "isolated_double_fault:",
    "push rax",
    "mov rax, [rsp + 7*8]",
    "mov cr3, rax",
    "pop rax",
    "jmp vector_stubs + 8*16",
    "isolated_machine_check:",
    "push rax",
    "mov rax, [rsp + 6*8]",
    "mov cr3, rax",
    "pop rax",
    "jmp vector_stubs + 18*16",

    ".balign 64",
    "isolated_refused:",
    "swapgs",
    "mov gs:[8], rsp",
    "mov rsp, gs:[32]",
    "mov cr3, rsp",
    "jmp syscall32_inside",

    // In place of `swapgs` and `iretq`: what that takes is moved to the entry stack.
    ".balign 64",
    "isolated_iret:",
    "mov gs:[8], rax",
    "mov rax, rsp",
    "mov rsp, gs:[48]",
    "push [rax + 32]",
    "push [rax + 24]",
    "push [rax + 16]",
    "push [rax + 8]",
    "push [rax]",
    "mov rax, gs:[40]",
    "mov cr3, rax",
    "mov rax, gs:[8]",
    "swapgs",
    "iretq",
    // In place of `swapgs` and `sysretq`.
    ".balign 64",
    "isolated_sysret:",
    "mov gs:[8], rax",
    "mov rax, gs:[40]",
    "mov cr3, rax",
    "mov rax, gs:[8]",
    "swapgs",
    "sysretq",
    ".popsection",
    stopping = sym STOPPING,
    targets = sym TARGETS,
);

unsafe extern "C" {
    static isolated_stubs: u8;
    fn isolated_debug();
    fn isolated_nmi();
    fn isolated_double_fault();
    fn isolated_machine_check();
    fn isolated_refused();
    /// Pairs of an instruction's address and where to jump instead; from the linker script.
    static exit_sites_start: [u64; 2];
    static exit_sites_end: [u64; 2];
}

/// The address of the entry that refuses `syscall` in 32-bit code.
pub fn refused_address() -> u64 {
    if is_on() { isolated_refused as *const () as u64 } else { entry::refused_address() }
}

/// The address of a vector's entry, where no gate has one.
pub fn vector_address(vector: u8) -> u64 {
    use entry::{DEBUG, DOUBLE_FAULT, MACHINE_CHECK, NMI};
    let plain = entry::stub(vector);
    if !is_on() {
        return plain;
    }
    TARGETS.0[usize::from(vector)].store(plain, Ordering::Relaxed);
    let own: unsafe extern "C" fn() = match vector {
        DEBUG => isolated_debug,
        NMI => isolated_nmi,
        DOUBLE_FAULT => isolated_double_fault,
        MACHINE_CHECK => isolated_machine_check,
        _ => return &raw const isolated_stubs as u64 + u64::from(vector) * 64,
    };
    own as *const () as u64
}

/// Decides, and changes the exits accordingly. Before the kernel's own tables are made, while there is one core.
pub fn init(command_line: &[u8]) {
    let asked = command_line.split(|byte| *byte == b' ').rev().find_map(|word| match word {
        b"kpti=on" => Some(true),
        b"kpti=off" => Some(false),
        _ => None,
    });
    if !asked.unwrap_or_else(is_needed) {
        return;
    }
    ON.store(true, Ordering::Relaxed);
    // SAFETY: the linker's symbols bound the pairs. Each names five bytes or more of this kernel's code, which nobody executes yet,
    // and a target within reach of a jump; all memory is mapped writable at DIRECT.
    unsafe {
        let (mut site, end) = (&raw const exit_sites_start, &raw const exit_sites_end);
        while site < end {
            let [from, to] = *site;
            let jump = (DIRECT + physical(from as usize)) as *mut u8;
            jump.write(0xe9);
            jump.add(1).cast::<i32>().write_unaligned(to.wrapping_sub(from + 5) as i32);
            site = site.add(1);
        }
    }
}

/// Whether user code could read what its tables map and its rights forbid: Intel's processors, unless they report that it cannot, and
/// unless they are software.
fn is_needed() -> bool {
    const HAS_CAPABILITIES: u32 = 1 << 29;
    const ARCH_CAPABILITIES: u32 = 0x10a;
    const NO_MELTDOWN: u64 = 1;
    if cpu::vendor() != *b"GenuineIntel" {
        return false;
    }
    // QEMU's emulation executes nothing ahead.
    if cpu::is_emulated() {
        return false;
    }
    let tells = cpuid(0, 0)[0] >= 7 && cpuid(7, 0)[3] & HAS_CAPABILITIES != 0;
    // SAFETY: the register exists when CPUID reports it.
    !(tells && unsafe { cpu::rdmsr(ARCH_CAPABILITIES) } & NO_MELTDOWN != 0)
}
