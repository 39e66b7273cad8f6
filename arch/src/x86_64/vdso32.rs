//! The vDSO of 32-bit programs (vdso(7)): `__kernel_vsyscall`, by which their C library makes calls, the two returns from handlers,
//! and the clock calls done in user space.
//!
//! As [`super::vdso`] written the way a file is laid out, and of one page, at whose start it must be. A machine makes its own from it once,
//! by [`image`]: with the instruction its processor enters by, and with the [`Data`] that the clock functions read, which are in the
//! image itself.
//!
//! `sysenter` saves no address to go on at and the 32-bit `syscall` takes a register for it that holds an argument, so the kernel goes
//! on at a fixed place behind either (`LANDING`), where the registers are popped that the entry needed. In front of it is an
//! `int $0x80`, the two bytes that make a call again after a signal.

use core::arch::global_asm;

use super::vdso::{SERVED, sysv_hash};
use crate::Vdso32;

/// What the clock functions read.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Data {
    /// The time-stamp counter at start.
    pub start: u64,
    /// Nanoseconds a count, times 2^32; 0: the clocks are asked for by calls.
    pub scale: u64,
    /// Nanoseconds since 1970 at start.
    pub date: u64,
    /// What coarse clocks count in, nanoseconds.
    pub coarse: u32,
}

const _: () = assert!(core::mem::offset_of!(Data, scale) == 8 && core::mem::offset_of!(Data, coarse) == 24);

/// How `__kernel_vsyscall` enters the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    Int80,
    Sysenter,
    Syscall,
}

impl Instruction {
    /// The four bytes in front of `int $0x80`: nothing; `mov %esp, %ebp; sysenter`; `mov %ecx, %ebp; syscall`.
    fn code(self) -> [u8; 4] {
        match self {
            Instruction::Int80 => [0x0f, 0x1f, 0x40, 0],
            Instruction::Sysenter => [0x89, 0xe5, 0x0f, 0x34],
            Instruction::Syscall => [0x89, 0xcd, 0x0f, 0x05],
        }
    }
}

/// Most bytes of the image.
pub const SIZE: usize = 4096;
/// Offsets of the functions; the data come first behind the tables.
pub const DATA: u32 = 0x600;
const VSYSCALL: u32 = 0x640;
const SIGRETURN: u32 = 0x650;
const RT_SIGRETURN: u32 = 0x660;
/// Where calls go on.
const LANDING: u32 = VSYSCALL + 9;
/// Those that the kernel uses.
pub const PLACES: Vdso32 = Vdso32 { vsyscall: VSYSCALL, sigreturn: SIGRETURN, rt_sigreturn: RT_SIGRETURN, landing: LANDING };
/// Bytes of `__kernel_vsyscall` in front of those that [`Instruction`] names.
const PUSHES: u32 = 3;

/// ecx: low, edi: high half of the nanoseconds since start, ebx: the image. Changes eax, edx, ebp. Goes to the label when
/// there is no counter to be read. The product is as the kernel has it, bit for bit: the middle 64 bits of 128.
#[rustfmt::skip]
macro_rules! now {
    ($none:literal) => {
        concat!(
            "call 70f\n70:\npop ebx\nand ebx, -4096\n",
            "mov ebp, [ebx + {scale}]\nmov edx, [ebx + {scale} + 4]\nmov eax, ebp\nor eax, edx\njz ", $none, "\n",
            "push edx\nlfence\nrdtsc\nsub eax, [ebx + {start}]\nsbb edx, [ebx + {start} + 4]\n",
            "mov esi, eax\npush edx\nmul ebp\nmov ecx, edx\n",
            "mov eax, [esp]\nmul ebp\nadd ecx, eax\nadc edx, 0\nmov edi, edx\n",
            "mov eax, esi\nmul dword ptr [esp + 4]\nadd ecx, eax\nadc edi, edx\n",
            "pop eax\npop edx\nimul eax, edx\nadd edi, eax"
        )
    };
}

/// Adds the date to edi:ecx.
macro_rules! add_date {
    () => {
        "add ecx, [ebx + {date}]\nadc edi, [ebx + {date} + 4]"
    };
}

/// edi:ecx nanoseconds: eax the seconds, edi their high half, edx the rest.
macro_rules! divide {
    () => {
        "mov ebp, 1000000000\nmov eax, edi\nxor edx, edx\ndiv ebp\nmov edi, eax\nmov eax, ecx\ndiv ebp"
    };
}

/// What every clock function begins and ends with; arguments are at esp + 20 in between.
macro_rules! begin {
    () => {
        "push ebx\npush esi\npush edi\npush ebp"
    };
}

macro_rules! end {
    () => {
        "pop ebp\npop edi\npop esi\npop ebx\nret"
    };
}

/// clock_gettime; to the label with a clock that needs a call. Leaves seconds and nanoseconds as `divide`.
#[rustfmt::skip]
macro_rules! clock {
    ($call:literal) => {
        concat!(
            "mov eax, [esp + 20]\ncmp eax, 31\nja ", $call, "\nmov ecx, {served}\nbt ecx, eax\njnc ", $call, "\n",
            now!($call),
            // 0x821: the clocks that count from 1970 (REALTIME, its coarse one, TAI).
            "\nmov eax, [esp + 20]\nmov edx, 0x821\nbt edx, eax\njnc 71f\n",
            add_date!(),
            "\n71:\n",
            divide!()
        )
    };
}

/// The call itself, with two arguments.
#[rustfmt::skip]
macro_rules! call {
    ($number:literal) => {
        concat!("mov eax, ", $number, "\nmov ebx, [esp + 20]\nmov ecx, [esp + 24]\ncall 50b\n", end!())
    };
}

/// An unwinder's entry for a function that begins and ends with four pushes and pops. The ends of functions are within; rows: after
/// each push, at the last pops.
#[rustfmt::skip]
macro_rules! unwind {
    ($from:literal, $to:literal) => {
        concat!(
            ".balign 4\n72: .long 74f - 73f\n73: .long 73b - 26b\n.long ", $from, " - .\n.long ", $to, " - ", $from, "\n.byte 0\n",
            // DW_CFA_advance_loc, DW_CFA_def_cfa_offset, DW_CFA_offset of ebx (3), esi (6), edi (7), ebp (5).
            ".byte 0x41, 0x0e, 8, 0x83, 2, 0x41, 0x0e, 12, 0x86, 3, 0x41, 0x0e, 16, 0x87, 4, 0x41, 0x0e, 20, 0x85, 5\n",
            ".balign 4\n74:\n"
        )
    };
}

global_asm!(
    ".pushsection .rodata.vdso32, \"a\", @progbits",
    ".balign 64",
    ".globl vdso32_image, vdso32_image_end",
    "vdso32_image:",
    // Elf32_Ehdr: ELFCLASS32, little endian, ET_DYN, EM_386; three program headers, no sections.
    ".ascii \"\\177ELF\\1\\1\\1\"",
    ".zero 9",
    ".short 3, 3",
    ".long 1",
    ".long 50f - vdso32_image, 52, 0",
    ".long 0",
    ".short 52, 32, 4, 40, 0, 0",
    // Elf32_Phdr: type, offset, vaddr, paddr, filesz, memsz, flags, align.
    // PT_LOAD, R+X: everything.
    ".long 1, 0, 0, 0, vdso32_image_end - vdso32_image, vdso32_image_end - vdso32_image, 5, 4096",
    // PT_DYNAMIC, R.
    ".long 2, 20f - vdso32_image, 20f - vdso32_image, 20f - vdso32_image, 21f - 20f, 21f - 20f, 4, 4",
    // PT_NOTE, R.
    ".long 4, 22f - vdso32_image, 22f - vdso32_image, 22f - vdso32_image, 23f - 22f, 23f - 22f, 4, 4",
    // PT_GNU_EH_FRAME, R.
    ".long 0x6474e550, 24f - vdso32_image, 24f - vdso32_image, 24f - vdso32_image, 25f - 24f, 25f - 24f, 4, 4",

    // DT_HASH: one bucket, every symbol in its chain.
    "10:",
    ".long 1, 10, 1",
    ".long 0, 2, 3, 4, 5, 6, 7, 8, 9, 0",
    // DT_SYMTAB, Elf32_Sym: name, value, size; info (a global function), other, section (any but 0 means "defined").
    "12:",
    ".zero 16",
    ".macro vdso32_symbol name, code, end",
    ".long \\name - 13f, \\code - vdso32_image, \\end - \\code",
    ".byte 0x12, 0",
    ".short 1",
    ".endm",
    "vdso32_symbol 31f, 50f, 51f",
    "vdso32_symbol 32f, 52f, 53f",
    "vdso32_symbol 33f, 54f, 55f",
    "vdso32_symbol 34f, 56f, 57f",
    "vdso32_symbol 35f, 57f, 58f",
    "vdso32_symbol 36f, 58f, 59f",
    "vdso32_symbol 37f, 59f, 60f",
    "vdso32_symbol 38f, 60f, 61f",
    "vdso32_symbol 39f, 61f, 62f",
    ".purgem vdso32_symbol",
    // DT_STRTAB.
    "13:",
    ".byte 0",
    "31: .asciz \"__kernel_vsyscall\"",
    "32: .asciz \"__kernel_sigreturn\"",
    "33: .asciz \"__kernel_rt_sigreturn\"",
    "34: .asciz \"__vdso_clock_gettime\"",
    "35: .asciz \"__vdso_clock_gettime64\"",
    "36: .asciz \"__vdso_gettimeofday\"",
    "37: .asciz \"__vdso_time\"",
    "38: .asciz \"__vdso_clock_getres\"",
    "39: .asciz \"__vdso_getcpu\"",
    "41: .asciz \"linux-gate.so.1\"",
    "42: .asciz \"LINUX_2.5\"",
    "43: .asciz \"LINUX_2.6\"",
    "14:",
    // DT_VERSYM: the first three are of LINUX_2.5 (2), the others of LINUX_2.6 (3).
    ".balign 4",
    "15:",
    ".short 0, 2, 2, 2, 3, 3, 3, 3, 3, 3",
    // DT_VERDEF, Elf32_Verdef: version, flags, index, names; hash, offset of the names, offset of the next. The first (VER_FLG_BASE)
    // is the object itself.
    ".balign 4",
    "16:",
    ".short 1, 1, 1, 1",
    ".long {soname_hash}, 20, 28",
    ".long 41b - 13b, 0",
    ".short 1, 0, 2, 1",
    ".long {version5_hash}, 20, 28",
    ".long 42b - 13b, 0",
    ".short 1, 0, 3, 1",
    ".long {version6_hash}, 20, 0",
    ".long 43b - 13b, 0",

    // PT_DYNAMIC: SONAME, HASH, STRTAB, SYMTAB, STRSZ, SYMENT, VERSYM, VERDEF, VERDEFNUM, NULL.
    "20:",
    ".long 14, 41b - 13b",
    ".long 4, 10b - vdso32_image",
    ".long 5, 13b - vdso32_image",
    ".long 6, 12b - vdso32_image",
    ".long 10, 14b - 13b",
    ".long 11, 16",
    ".long 0x6ffffff0, 15b - vdso32_image",
    ".long 0x6ffffffc, 16b - vdso32_image",
    ".long 0x6ffffffd, 3",
    ".long 0, 0",
    "21:",

    // The note Linux has too: owner "Linux", type 0, the version as KERNEL_VERSION(6, 12, 0).
    "22:",
    ".long 6, 4, 0",
    ".asciz \"Linux\"",
    ".zero 2",
    ".long 6 << 16 | 12 << 8",
    "23:",

    // .eh_frame_hdr: version 1; pointer to .eh_frame pc-relative, no table.
    "24:",
    ".byte 1, 0x1b, 0xff, 0xff",
    ".long 26f - .",
    "25:",
    // .eh_frame. The CIE: CFA = esp + 4 at a function's start, return address at CFA - 4; units of -4 bytes; addresses relative.
    "26:",
    ".long 64f - 63f",
    "63:",
    ".long 0",
    ".byte 1",
    ".asciz \"zR\"",
    ".byte 1, 0x7c, 8, 1, 0x1b",
    ".byte 0x0c, 4, 4, 0x88, 1",
    ".balign 4",
    "64:",
    // `__kernel_vsyscall`: the three pushes (ecx is 1, edx 2), and behind the landing the three pops (DW_CFA_restore).
    ".long 66f - 65f",
    "65:",
    ".long 65b - 26b",
    ".long 50f - .",
    ".long 51f - 50f",
    ".byte 0",
    ".byte 0x41, 0x0e, 8, 0x81, 2, 0x41, 0x0e, 12, 0x82, 3, 0x41, 0x0e, 16, 0x85, 4",
    ".byte 0x47, 0x0e, 12, 0xc5, 0x41, 0x0e, 8, 0xc2, 0x41, 0x0e, 4, 0xc1",
    ".balign 4",
    "66:",
    unwind!("56f", "57f"),
    unwind!("57f", "58f"),
    unwind!("58f", "59f"),
    unwind!("59f", "60f"),
    unwind!("60f", "61f"),
    ".long 0",

    ".code32",
    ".org vdso32_image + {data}",
    ".zero 32",
    ".org vdso32_image + {vsyscall}, 0xcc",
    "50:",
    "push ecx",
    "push edx",
    "push ebp",
    // `Instruction::code` goes here.
    ".byte 0x0f, 0x1f, 0x40, 0",
    "int 0x80",
    "pop ebp",
    "pop edx",
    "pop ecx",
    "ret",
    "51:",
    // Unwinders know a signal's frame by these bytes.
    ".org vdso32_image + {sigreturn}, 0xcc",
    "52:",
    "pop eax",
    "mov eax, 119",
    "int 0x80",
    "53:",
    ".org vdso32_image + {rt_sigreturn}, 0xcc",
    "54:",
    "mov eax, 173",
    "int 0x80",
    "55:",

    // clock, timespec of 32 bits
    ".balign 32, 0xcc",
    "56:",
    begin!(),
    clock!("2f"),
    "mov ecx, [esp + 24]",
    "mov [ecx], eax",
    "mov [ecx + 4], edx",
    "xor eax, eax",
    end!(),
    "2:",
    call!("265"),
    // clock, timespec of 64 bits
    ".balign 32, 0xcc",
    "57:",
    begin!(),
    clock!("2f"),
    "mov ecx, [esp + 24]",
    "mov [ecx], eax",
    "mov [ecx + 4], edi",
    "mov [ecx + 8], edx",
    "mov dword ptr [ecx + 12], 0",
    "xor eax, eax",
    end!(),
    "2:",
    call!("403"),
    // timeval, timezone
    ".balign 32, 0xcc",
    "58:",
    begin!(),
    "cmp dword ptr [esp + 20], 0",
    "je 3f",
    now!("2f"),
    add_date!(),
    divide!(),
    "mov ecx, [esp + 20]",
    "mov [ecx], eax",
    "mov eax, edx",
    "xor edx, edx",
    "mov ebp, 1000",
    "div ebp",
    "mov [ecx + 4], eax",
    "3:",
    "mov ecx, [esp + 24]",
    "test ecx, ecx",
    "jz 4f",
    "mov dword ptr [ecx], 0",
    "mov dword ptr [ecx + 4], 0",
    "4:",
    "xor eax, eax",
    end!(),
    "2:",
    call!("78"),
    // time_t
    ".balign 32, 0xcc",
    "59:",
    begin!(),
    now!("2f"),
    add_date!(),
    divide!(),
    "mov ecx, [esp + 20]",
    "test ecx, ecx",
    "jz 3f",
    "mov [ecx], eax",
    "3:",
    end!(),
    "2:",
    call!("13"),
    // clock, timespec of 32 bits. 0x60: the coarse ones.
    ".balign 32, 0xcc",
    "60:",
    begin!(),
    "mov eax, [esp + 20]",
    "cmp eax, 31",
    "ja 2f",
    "mov ecx, {served}",
    "bt ecx, eax",
    "jnc 2f",
    "call 70f",
    "70:",
    "pop ebx",
    "and ebx, -4096",
    "mov edx, [ebx + {coarse}]",
    "test edx, edx",
    "jz 2f",
    "mov ecx, 0x60",
    "bt ecx, eax",
    "jc 3f",
    "mov edx, 1",
    "3:",
    "mov ecx, [esp + 24]",
    "test ecx, ecx",
    "jz 4f",
    "mov dword ptr [ecx], 0",
    "mov [ecx + 4], edx",
    "4:",
    "xor eax, eax",
    end!(),
    "2:",
    call!("266"),
    // processor, node: the limit of Linux' descriptor of a processor holds both, twelve bits for the first.
    ".balign 32, 0xcc",
    "61:",
    "mov eax, 0x7b",
    "lsl eax, eax",
    "mov edx, eax",
    "and eax, 0xfff",
    "shr edx, 12",
    "mov ecx, [esp + 4]",
    "test ecx, ecx",
    "jz 3f",
    "mov [ecx], eax",
    "3:",
    "mov ecx, [esp + 8]",
    "test ecx, ecx",
    "jz 4f",
    "mov [ecx], edx",
    "4:",
    "xor eax, eax",
    "ret",
    "62:",
    ".code64",
    "vdso32_image_end:",
    ".popsection",
    served = const SERVED,
    data = const DATA,
    start = const DATA,
    scale = const DATA + 8,
    date = const DATA + 16,
    coarse = const DATA + 24,
    vsyscall = const VSYSCALL,
    sigreturn = const SIGRETURN,
    rt_sigreturn = const RT_SIGRETURN,
    soname_hash = const sysv_hash(b"linux-gate.so.1"),
    version5_hash = const sysv_hash(b"LINUX_2.5"),
    version6_hash = const sysv_hash(b"LINUX_2.6"),
);

unsafe extern "C" {
    static vdso32_image: u8;
    static vdso32_image_end: u8;
}

/// The file, and zeros up to the page's end.
pub fn image(instruction: Instruction, data: &Data) -> [u8; SIZE] {
    let (start, end) = (&raw const vdso32_image, &raw const vdso32_image_end);
    // SAFETY: both labels are of the same read-only section, laid out above.
    let file = unsafe { core::slice::from_raw_parts(start, end as usize - start as usize) };
    let mut image = [0; SIZE];
    let mut put = |at: u32, bytes: &[u8]| image[at as usize..][..bytes.len()].copy_from_slice(bytes);
    put(0, file);
    put(VSYSCALL + PUSHES, &instruction.code());
    for (at, word) in [data.start, data.scale, data.date, data.coarse.into()].into_iter().enumerate() {
        put(DATA + 8 * at as u32, &word.to_le_bytes());
    }
    image
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes() {
        assert_eq!(sysv_hash(b"LINUX_2.5"), 0x03ae_75f5);
    }

    #[test]
    fn the_file_is_whole() {
        let data = Data { start: 1, scale: 2, date: 3, coarse: 4 };
        let file = image(Instruction::Sysenter, &data);
        assert!(file.starts_with(b"\x7fELF\x01"));
        let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        // The entry, and the one loadable segment: all of it.
        assert_eq!((word(24), word(52 + 8)), (VSYSCALL, 0));
        let (in_file, in_memory) = (word(52 + 16) as usize, word(52 + 20) as usize);
        assert!(in_file == in_memory && file[in_file..].iter().all(|byte| *byte == 0) && file[in_file - 1] == 0xc3);
        let code = [0x51, 0x52, 0x55, 0x89, 0xe5, 0x0f, 0x34, 0xcd, 0x80, 0x5d, 0x5a, 0x59, 0xc3];
        assert_eq!(file[VSYSCALL as usize..][..code.len()], code);
        assert_eq!(file[LANDING as usize - 2..][..2], [0xcd, 0x80]);
        assert_eq!(file[SIGRETURN as usize..][..8], [0x58, 0xb8, 119, 0, 0, 0, 0xcd, 0x80]);
        assert_eq!(file[RT_SIGRETURN as usize..][..7], [0xb8, 173, 0, 0, 0, 0xcd, 0x80]);
        assert_eq!([0, 8, 16, 24].map(|at| word(DATA as usize + at)), [1, 2, 3, 4]);
    }
}
