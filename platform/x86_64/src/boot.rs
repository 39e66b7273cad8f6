//! The way from the loader to 64-bit Rust code, and what the loader reports.
//!
//! The loader (QEMU's `-kernel`, or any that knows the PVH protocol: Xen's `hvm_start_info`) enters `pvh_start` in 32-bit
//! protected mode without paging, with the physical address of the start information in ebx. Page tables made here map
//! the first 4 GiB three times: where they are (until [`crate::tables::init`] takes that away), at [`DIRECT`], and the first two
//! of them at -2 GiB, where the kernel is linked. Then the image's `janua_start` is called.

use core::arch::global_asm;
use core::sync::atomic::AtomicUsize;

/// All of physical memory is mapped here.
pub const DIRECT: usize = 0xffff_8000_0000_0000;
/// Where physical address 0 is in the kernel's own mapping.
pub const KERNEL_OFFSET: usize = 0xffff_ffff_8000_0000;

/// Value of the first word of `hvm_start_info`.
const START_INFO_MAGIC: u32 = 0x336e_c578;

/// Bytes of the stack the first core starts on; it becomes the stack of its first thread.
const FIRST_STACK: usize = 128 * 1024;

#[repr(C, align(4096))]
struct Stack([u8; FIRST_STACK]);

#[unsafe(no_mangle)]
static mut BOOT_STACK: Stack = Stack([0; FIRST_STACK]);

global_asm!(
    // XEN_ELFNOTE_PHYS32_ENTRY: the address to start at.
    ".pushsection .note.pvh, \"a\", @note",
    ".balign 4",
    ".long 4, 4, 18",
    ".asciz \"Xen\"",
    ".long pvh_start",
    ".popsection",

    ".pushsection .boot, \"awx\", @progbits",
    ".code32",
    ".globl pvh_start",
    "pvh_start:",
    "cli",
    "cld",
    "mov esi, ebx",
    // Long mode?
    "mov eax, 0x80000001",
    "cpuid",
    "test edx, 0x20000000",
    "jnz 2f",
    "3: hlt",
    "jmp 3b",
    "2:",
    // Four page directories of 2 MiB pages: the first 4 GiB.
    "mov edi, offset boot_directories",
    "mov eax, 0x83",
    "xor ecx, ecx",
    "4:",
    "mov [edi + ecx*8], eax",
    "mov dword ptr [edi + ecx*8 + 4], 0",
    "add eax, 0x200000",
    "inc ecx",
    "cmp ecx, 2048",
    "jne 4b",
    "mov edi, offset boot_pointers",
    "mov eax, offset boot_directories",
    "or eax, 3",
    "xor ecx, ecx",
    "5:",
    "mov [edi + ecx*8], eax",
    "add eax, 4096",
    "inc ecx",
    "cmp ecx, 4",
    "jne 5b",
    "mov edi, offset boot_kernel_pointers",
    "mov eax, offset boot_directories",
    "or eax, 3",
    "mov [edi + 510*8], eax",
    "add eax, 4096",
    "mov [edi + 511*8], eax",
    "mov edi, offset boot_root",
    "mov eax, offset boot_pointers",
    "or eax, 3",
    "mov [edi], eax",
    "mov [edi + 256*8], eax",
    "mov eax, offset boot_kernel_pointers",
    "or eax, 3",
    "mov [edi + 511*8], eax",
    // PAE; then EFER's LME, NXE and SCE; then paging with write protection, and floating-point errors as exceptions.
    "mov eax, cr4",
    "or eax, 0x20",
    "mov cr4, eax",
    "mov cr3, edi",
    "mov ecx, 0xc0000080",
    "rdmsr",
    "or eax, 0x901",
    "wrmsr",
    "mov eax, cr0",
    "and eax, 0x9fffffff",
    "or eax, 0x80010023",
    "mov cr0, eax",
    "lgdt [boot_gdt_pointer]",
    // A far return is a far jump that every assembler knows.
    "mov esp, offset boot_far",
    "retf",
    ".code64",
    "boot_long:",
    "mov eax, 0x18",
    "mov ds, eax",
    "mov es, eax",
    "mov ss, eax",
    "xor eax, eax",
    "mov fs, eax",
    "mov gs, eax",
    "movabs rsp, offset BOOT_STACK + {stack}",
    "xor ebp, ebp",
    "mov edi, esi",
    "movabs rax, offset {first}",
    "call rax",
    "ud2",
    // Where the other cores begin, in real mode: copied to a page below 1 MiB, which CS has.
    ".code16",
    ".balign 16",
    ".globl other_start, other_start_end",
    "other_start:",
    "jmp 6f",
    ".balign 8",
    ".word 31",
    ".long boot_gdt",
    ".balign 16",
    "6:",
    "cli",
    "cld",
    "mov ax, cs",
    "mov ds, ax",
    "lgdt [8]",
    "mov eax, cr0",
    "or al, 1",
    "mov cr0, eax",
    // A far jump to 32-bit code.
    ".byte 0x66, 0xea",
    ".long other_protected",
    ".word 0x8",
    "other_start_end:",
    ".code32",
    "other_protected:",
    "mov eax, 0x18",
    "mov ds, eax",
    "mov es, eax",
    "mov ss, eax",
    "mov eax, cr4",
    "or eax, 0x20",
    "mov cr4, eax",
    "mov eax, offset boot_root",
    "mov cr3, eax",
    "mov ecx, 0xc0000080",
    "rdmsr",
    "or eax, 0x901",
    "wrmsr",
    "mov eax, cr0",
    "and eax, 0x9fffffff",
    "or eax, 0x80010023",
    "mov cr0, eax",
    "mov esp, offset other_far",
    "retf",
    ".code64",
    "other_long:",
    "mov eax, 0x18",
    "mov ds, eax",
    "mov es, eax",
    "mov ss, eax",
    "xor eax, eax",
    "mov fs, eax",
    "mov gs, eax",
    "movabs rax, offset other_high",
    "jmp rax",
    ".balign 8",
    "boot_gdt:",
    ".quad 0, 0x00cf9b000000ffff, 0x00af9b000000ffff, 0x00cf93000000ffff",
    "boot_far: .long boot_long, 0x10",
    "other_far: .long other_long, 0x10",
    "boot_gdt_pointer:",
    ".word 31",
    ".long boot_gdt",
    ".balign 4096",
    "boot_root: .fill 4096, 1, 0",
    "boot_pointers: .fill 4096, 1, 0",
    "boot_kernel_pointers: .fill 4096, 1, 0",
    "boot_directories: .fill 16384, 1, 0",
    ".popsection",

    // Where the kernel's own page tables have it: takes them, and the stack that waits for one core.
    ".pushsection .text.other, \"ax\", @progbits",
    "other_high:",
    "mov rax, [rip + {root}]",
    "mov cr3, rax",
    "xor eax, eax",
    "xchg rax, [rip + {other_stack}]",
    "test rax, rax",
    "jz 7f",
    "mov rsp, rax",
    "xor ebp, ebp",
    "ret",
    // Given up, but came after all.
    "7:",
    "cli",
    "hlt",
    "jmp 7b",
    ".popsection",
    stack = const FIRST_STACK,
    first = sym crate::machine::first,
    root = sym crate::tables::KERNEL_ROOT,
    other_stack = sym OTHER_STACK,
);

/// The stack of the core that starts next, at the address it goes to; the core takes it.
pub static OTHER_STACK: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    static other_start: u8;
    static other_start_end: u8;
}

/// The page below 1 MiB where other cores begin.
pub const OTHER_PAGE: u8 = 8;

/// Puts the code there that other cores begin with.
pub fn place_other_start() {
    let (start, end) = (&raw const other_start as usize, &raw const other_start_end as usize);
    // SAFETY: memory below 1 MiB is left free for this; the code is in the image, at its physical address.
    unsafe {
        core::ptr::copy_nonoverlapping(
            (DIRECT + start) as *const u8,
            (DIRECT + usize::from(OTHER_PAGE) * 4096) as *mut u8,
            end - start,
        );
    }
}

/// `struct hvm_start_info`, version 1 (Xen, public/arch-x86/hvm/start_info.h).
#[repr(C)]
struct StartInfo {
    magic: u32,
    version: u32,
    flags: u32,
    modules: u32,
    module_list: u64,
    command_line: u64,
    rsdp: u64,
    memory_map: u64,
    memory_map_entries: u32,
    reserved: u32,
}

#[repr(C)]
struct Module {
    address: u64,
    size: u64,
    command_line: u64,
    reserved: u64,
}

#[repr(C)]
struct MapEntry {
    address: u64,
    size: u64,
    kind: u32,
    reserved: u32,
}

/// `kind` of usable memory.
const RAM: u32 = 1;

/// Physical ranges the loader reports.
pub struct Loaded {
    info: &'static StartInfo,
}

impl Loaded {
    /// What is at the address the loader left; `None` when it is no start information.
    ///
    /// # Safety
    /// The address is what the entry got, and the first 4 GiB are mapped at [`DIRECT`].
    pub unsafe fn at(address: usize) -> Option<Loaded> {
        let info = (DIRECT + address) as *const StartInfo;
        // SAFETY: mapped, by the caller's word; a wrong address gives a wrong magic.
        let info = unsafe { &*info };
        (info.magic == START_INFO_MAGIC && info.version >= 1).then_some(Loaded { info })
    }

    /// Usable memory: start and end.
    pub fn memory(&self) -> impl Iterator<Item = (usize, usize)> {
        // SAFETY: the loader's table, as it states, below 4 GiB.
        let entries = unsafe {
            core::slice::from_raw_parts(
                (DIRECT + self.info.memory_map as usize) as *const MapEntry,
                self.info.memory_map_entries as usize,
            )
        };
        entries
            .iter()
            .filter(|entry| entry.kind == RAM && entry.size > 0)
            .map(|entry| (entry.address as usize, (entry.address + entry.size) as usize))
    }

    /// Where the loader found the ACPI tables' root pointer; 0 when it found none.
    pub fn rsdp(&self) -> usize {
        self.info.rsdp as usize
    }

    /// The command line; empty when there is none.
    pub fn command_line(&self) -> &'static [u8] {
        const MOST: usize = 4096;
        if self.info.command_line == 0 {
            return &[];
        }
        let start = (DIRECT + self.info.command_line as usize) as *const u8;
        // SAFETY: the loader's string, as it states, below 4 GiB, with a zero at its end; read no further than that.
        unsafe {
            let len = (0..MOST).find(|at| *start.add(*at) == 0).unwrap_or(0);
            core::slice::from_raw_parts(start, len)
        }
    }

    /// The initial file tree: its physical range, when the loader was given one.
    pub fn initrd(&self) -> Option<(usize, usize)> {
        if self.info.modules == 0 {
            return None;
        }
        // SAFETY: the loader's list, as it states, below 4 GiB.
        let module = unsafe { &*((DIRECT + self.info.module_list as usize) as *const Module) };
        Some((module.address as usize, (module.address + module.size) as usize))
    }
}
