//! The way from the loader to 64-bit Rust code, and what the loader reports.
//!
//! The loader (QEMU's `-kernel`, or any that knows the PVH protocol: Xen's `hvm_start_info`) enters `pvh_start` in 32-bit
//! protected mode without paging, with the physical address of the start information in ebx. Page tables made here map
//! the first 4 GiB three times: where they are (until [`crate::tables::init`] takes that away), at [`DIRECT`], and the first two
//! of them at -2 GiB, where the kernel is linked. Then the image's `janua_start` is called.

use core::arch::global_asm;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::tiles::{self, Given};

/// All of physical memory is mapped here.
pub const DIRECT: usize = 0xffff_8000_0000_0000;
/// Where physical address 0 is in the kernel's own mapping.
pub const KERNEL_OFFSET: usize = 0xffff_ffff_8000_0000;

/// The physical address of something in the image.
pub fn physical(addr: usize) -> usize {
    addr - KERNEL_OFFSET + tiles::moved()
}

/// Value of the first word of `hvm_start_info`.
const START_INFO_MAGIC: u32 = 0x336e_c578;
/// The same in what the first tile leaves for another: a [`Given`].
const TILE_MAGIC: u32 = 0x454c_4954;

/// Bytes of the stack the first core starts on; it becomes the stack of its first thread.
pub const FIRST_STACK: usize = 128 * 1024;

#[repr(C, align(4096))]
pub struct Stack([u8; FIRST_STACK]);

#[unsafe(no_mangle)]
pub static mut BOOT_STACK: Stack = Stack([0; FIRST_STACK]);

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
    // The page's address, for what is at its end.
    "xor ebx, ebx",
    "mov bx, ax",
    "shl ebx, 4",
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
    "mov ebx, ebx",
    "mov rdi, [rbx + {argument}]",
    "mov rdx, [rbx + {root}]",
    "xchg rax, [rbx + {other_stack}]",
    "test rax, rax",
    "jz 7f",
    "mov rsp, rax",
    "movabs rax, offset other_high",
    "jmp rax",
    // Given up, but came after all.
    "7:",
    "cli",
    "hlt",
    "jmp 7b",
    ".balign 8",
    "boot_gdt:",
    ".quad 0, 0x00cf9b000000ffff, 0x00af9b000000ffff, 0x00cf93000000ffff",
    "boot_far: .long boot_long, 0x10",
    "other_far: .long other_long, 0x10",
    "boot_gdt_pointer:",
    ".word 31",
    ".long boot_gdt",
    ".balign 4096",
    ".globl boot_pointers",
    "boot_root: .fill 4096, 1, 0",
    "boot_pointers: .fill 4096, 1, 0",
    "boot_kernel_pointers: .fill 4096, 1, 0",
    "boot_directories: .fill 16384, 1, 0",
    ".popsection",

    // Where all page tables of a kernel have it: takes those that were left for the core.
    ".pushsection .text.other, \"ax\", @progbits",
    "other_high:",
    "mov cr3, rdx",
    "xor ebp, ebp",
    "ret",
    ".popsection",
    stack = const FIRST_STACK,
    first = sym crate::machine::first,
    argument = const OTHER_ARGUMENT,
    root = const OTHER_ROOT,
    other_stack = const OTHER_STACK,
);

unsafe extern "C" {
    static other_start: u8;
    static other_start_end: u8;
    static boot_pointers: u8;
}

/// The page below 1 MiB where other cores of the first tile begin; those of the next tile have the next page, and so on.
const OTHER_PAGE: u8 = 8;

/// Where words for the core that starts are in that page: what it has in its first argument, the root of its page tables, and its stack, at the address it goes to,
/// which it takes.
const OTHER_ARGUMENT: usize = 0xfe0;
const OTHER_ROOT: usize = 0xfe8;
const OTHER_STACK: usize = 0xff0;

/// The page below 1 MiB where other cores of a tile begin.
#[derive(Clone, Copy)]
pub struct OtherPage(u8);

impl OtherPage {
    pub fn of(tile: u32) -> OtherPage {
        OtherPage(OTHER_PAGE + tile as u8)
    }

    /// Its number.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Its physical address.
    pub fn address(self) -> usize {
        usize::from(self.0) * 4096
    }

    fn word(self, at: usize) -> &'static AtomicUsize {
        // SAFETY: memory below 1 MiB is left free for this, and mapped for who starts cores by this page; it is read and written as words alone.
        unsafe { AtomicUsize::from_ptr((DIRECT + self.address() + at) as *mut usize) }
    }

    /// Puts the code there that other cores begin with.
    pub fn fill(self) {
        let (start, end) = (&raw const other_start as usize, &raw const other_start_end as usize);
        // SAFETY: as above; the code is in the image, at its physical address.
        unsafe {
            core::ptr::copy_nonoverlapping((DIRECT + start) as *const u8, (DIRECT + self.address()) as *mut u8, end - start);
        }
    }

    /// Leaves what the next core begins with.
    pub fn leave(self, root: usize, stack: usize, argument: usize) {
        self.word(OTHER_ROOT).store(root, Ordering::Relaxed);
        self.word(OTHER_ARGUMENT).store(argument, Ordering::Relaxed);
        self.word(OTHER_STACK).store(stack, Ordering::Release);
    }

    /// Whether a core has taken it.
    pub fn is_taken(self) -> bool {
        self.word(OTHER_STACK).load(Ordering::Acquire) == 0
    }

    /// Takes it back: false if a core was faster.
    pub fn take_back(self) -> bool {
        self.word(OTHER_STACK).swap(0, Ordering::AcqRel) != 0
    }
}

/// The physical address of the table by which boot page tables map the first 4 GiB. It never changes.
pub fn first_4_gib() -> usize {
    &raw const boot_pointers as usize
}

/// `struct hvm_start_info`, version 1 (Xen, public/arch-x86/hvm/start_info.h).
#[derive(Default)]
#[repr(C)]
pub struct StartInfo {
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

#[derive(Default)]
#[repr(C)]
pub struct Module {
    address: u64,
    size: u64,
    command_line: u64,
    reserved: u64,
}

#[derive(Default)]
#[repr(C)]
pub struct MapEntry {
    address: u64,
    size: u64,
    kind: u32,
    reserved: u32,
}

/// `kind` of usable memory.
const RAM: u32 = 1;

impl StartInfo {
    /// What a further tile begins with, from the first one: a piece of memory, a module, and a command line, by their physical addresses.
    pub fn of_tile(map: usize, module: usize, command_line: usize) -> StartInfo {
        StartInfo {
            magic: TILE_MAGIC,
            version: 1,
            modules: 1,
            module_list: module as u64,
            command_line: command_line as u64,
            memory_map: map as u64,
            memory_map_entries: 1,
            ..StartInfo::default()
        }
    }
}

impl Module {
    pub fn at((start, end): (usize, usize)) -> Module {
        Module { address: start as u64, size: (end - start) as u64, ..Module::default() }
    }
}

impl MapEntry {
    pub fn memory((start, end): (usize, usize)) -> MapEntry {
        MapEntry { address: start as u64, size: (end - start) as u64, kind: RAM, ..MapEntry::default() }
    }
}

/// Physical ranges the loader reports.
pub struct Loaded {
    /// Where the start information is.
    address: usize,
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
        (matches!(info.magic, START_INFO_MAGIC | TILE_MAGIC) && info.version >= 1).then_some(Loaded { address, info })
    }

    /// What this kernel is beside others, if the first of them has started it.
    pub fn given(&self) -> Option<&'static Given> {
        let given = (DIRECT + self.address) as *const Given;
        // SAFETY: with this magic the start information is the first part of one, which nobody changes any more.
        (self.info.magic == TILE_MAGIC).then(|| unsafe { &*given })
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
