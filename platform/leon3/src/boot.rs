//! From reset to Rust: processor state, the first page tables, the boot stack.
//!
//! The first tables map, for the supervisor only, the memory and the devices where they are, by entries of 16 MiB, and the core's
//! page at the top. The context table and the table of level 1 stay in use: user space is added to them.
//!
//! The compiler knows one address space for its compare-and-swap, the user's data (0xA). For the kernel's own memory, which users
//! have no rights to, it must be the supervisor's (0xB). So the boot code changes the instructions before the first one runs:
//! `casa` differs from all others in its operation, its third operation field and the address space, and the text section holds
//! nothing but instructions.

use core::arch::global_asm;

/// The module's header: the mark, the memory's bytes, the module's bytes, 0.
pub use janua_platform_bare::outside::{MODULE, MODULE_MARK};

#[repr(C, align(1024))]
pub struct Level1(pub core::cell::UnsafeCell<[u32; 256]>);
#[repr(C, align(256))]
struct Small(core::cell::UnsafeCell<[u32; 64]>);

// SAFETY: changed by the boot code, and by `tables` with its lock held; otherwise by the MMU.
unsafe impl Sync for Level1 {}
// SAFETY: as above.
unsafe impl Sync for Small {}

#[unsafe(no_mangle)]
pub static JANUA_LEVEL1: Level1 = Level1(core::cell::UnsafeCell::new([0; 256]));
#[unsafe(no_mangle)]
static JANUA_TOP2: Small = Small(core::cell::UnsafeCell::new([0; 64]));
#[unsafe(no_mangle)]
static JANUA_TOP3: Small = Small(core::cell::UnsafeCell::new([0; 64]));
#[unsafe(no_mangle)]
static JANUA_CONTEXTS: Small = Small(core::cell::UnsafeCell::new([0; 64]));

/// Bytes of the boot stack, which becomes the first thread's.
const STACK: usize = 64 * 1024;

#[repr(C, align(16))]
struct Stack(core::cell::UnsafeCell<[u8; STACK]>);
// SAFETY: the first thread's alone.
unsafe impl Sync for Stack {}

#[unsafe(no_mangle)]
static JANUA_BOOT_STACK: Stack = Stack(core::cell::UnsafeCell::new([0; STACK]));

global_asm!(
    ".section .text.janua_boot, \"ax\"",
    ".globl janua_boot",
    "janua_boot:",
    // Supervisor, FPU on, level 15, traps off, window 0; window 1 is the invalid one.
    "set 0x1fc0, %g1",
    "wr %g1, 0, %psr",
    "nop",
    "nop",
    "nop",
    "wr %g0, 2, %wim",
    "set janua_traps, %g1",
    "wr %g1, 0, %tbr",
    "set janua_bss_start, %g1",
    "set janua_bss_end, %g2",
    "1:",
    "st %g0, [%g1]",
    "add %g1, 4, %g1",
    "cmp %g1, %g2",
    "blu 1b",
    "nop",
    // Compare-and-swap in the supervisor's data space.
    "set janua_text_start, %g1",
    "set janua_text_end, %g2",
    "set 0xc1f83fe0, %g3",
    "set 0xc1e00140, %g4",
    "2:",
    "ld [%g1], %l0",
    "and %l0, %g3, %l1",
    "cmp %l1, %g4",
    "bne 3f",
    "xor %l0, 0x20, %l0",
    "st %l0, [%g1]",
    "flush %g1",
    "3:",
    "add %g1, 4, %g1",
    "cmp %g1, %g2",
    "blu 2b",
    "nop",
    // Level 1: memory (0x40 to 0x7f, cached), devices (0x80), each entry of 16 MiB for the supervisor (access 7).
    "set JANUA_LEVEL1, %g1",
    "set 0x0400009e, %g2",
    "add %g1, 4 * 0x40, %g3",
    "mov 64, %g4",
    "sethi %hi(0x00100000), %l0",
    "4:",
    "st %g2, [%g3]",
    "add %g2, %l0, %g2",
    "deccc %g4",
    "bne 4b",
    "add %g3, 4, %g3",
    "set 0x0800001e, %g2",
    "st %g2, [%g1 + 4 * 0x80]",
    // The core's page: the last of the last table of the last entry.
    "set JANUA_TOP2, %g2",
    "srl %g2, 4, %g3",
    "or %g3, 1, %g3",
    "st %g3, [%g1 + 4 * 0xff]",
    "set JANUA_TOP3, %g3",
    "srl %g3, 4, %g4",
    "or %g4, 1, %g4",
    "st %g4, [%g2 + 4 * 63]",
    "set JANUA_CORE, %g4",
    "srl %g4, 4, %g4",
    "or %g4, 0x9e, %g4",
    "st %g4, [%g3 + 4 * 63]",
    // Context 0, and the MMU on.
    "srl %g1, 4, %g1",
    "or %g1, 1, %g1",
    "set JANUA_CONTEXTS, %g2",
    "st %g1, [%g2]",
    "srl %g2, 4, %g2",
    "set 0x100, %g3",
    "sta %g2, [%g3] 0x19",
    "set 0x200, %g3",
    "sta %g0, [%g3] 0x19",
    "mov 1, %g2",
    "sta %g2, [%g0] 0x19",
    // A stack, traps on, Rust.
    "set JANUA_BOOT_STACK + {stack} - 96, %sp",
    "mov 0, %fp",
    "rd %psr, %g1",
    "wr %g1, 0x20, %psr",
    "nop",
    "nop",
    "nop",
    "call janua_start",
    "nop",
    "ta 0",
    ".previous",
    stack = const STACK,
);

/// What the loader reports.
pub struct Loaded {
    /// End of the memory.
    pub memory_end: usize,
    /// The module without its header.
    pub module: &'static [u8],
}

/// Reads the header. `None` when there is none.
pub fn loaded() -> Option<Loaded> {
    // SAFETY: memory of the machine, which nothing else uses: the allocators begin behind the module.
    let [mark, memory, len, _] = unsafe { core::ptr::read_volatile(MODULE as *const [u32; 4]) };
    let (start, memory_end) = (MODULE + 16, MEMORY + memory as usize);
    let end = start.checked_add(len as usize)?;
    if mark != MODULE_MARK || end > memory_end {
        return None;
    }
    // SAFETY: as above; it is never written again.
    Some(Loaded { memory_end, module: unsafe { core::slice::from_raw_parts(start as *const u8, len as usize) } })
}

/// Where the memory starts.
pub const MEMORY: usize = 0x4000_0000;
