//! The vDSO: a shared object the kernel maps into every program, with the clock calls done in user space (vdso(7)).
//!
//! It is written here as a file is laid out: ELF header, program headers, symbols with both kinds of hash table, versions,
//! unwind table, code. glibc, musl and Go find its functions by name and the version `LINUX_2.6`. Addresses in it are offsets
//! from its start, so it runs wherever it is, as one page of code right behind its page of [`Data`].
//!
//! Time comes from the machine's own source, given as addresses in [`Data`]: on a Linux host these are the functions of the
//! host's vDSO, which stays mapped below. What that does not serve (the clocks of processor time, bad clock numbers, a machine
//! without a source) becomes a system call.

use core::arch::global_asm;

/// Bytes of the data page, which precedes the code page.
pub const DATA_SIZE: usize = 4096;
/// Bytes of the code page.
pub const CODE_SIZE: usize = 4096;

/// What the vDSO's code reads: addresses of functions with the C interface of its own of the same name, 0 where there is none.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Data {
    pub clock_gettime: u64,
    pub gettimeofday: u64,
    pub time: u64,
    pub getcpu: u64,
    pub clock_getres: u64,
    /// Where system calls go that need no trap; no C function: see `gate/src/call/entry.rs:hosted_call_entry`.
    pub call_entry: u64,
}

const _: () = assert!(core::mem::offset_of!(Data, clock_getres) == 32 && core::mem::offset_of!(Data, call_entry) == 40);

/// Clocks that need no system call: REALTIME, MONOTONIC, MONOTONIC_RAW, both coarse ones, BOOTTIME, TAI, by their numbers.
pub(super) const SERVED: u32 = 1 << 0 | 1 << 1 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 11;

/// The hash of DT_HASH and of version names (System V ABI, "Hash Table").
pub(super) const fn sysv_hash(name: &[u8]) -> u32 {
    let mut hash = 0u32;
    let mut at = 0;
    while at < name.len() {
        hash = (hash << 4).wrapping_add(name[at] as u32);
        let high = hash & 0xf000_0000;
        hash = (hash ^ high >> 24) & !high;
        at += 1;
    }
    hash
}

/// The hash of DT_GNU_HASH, whose lowest bit the table uses for itself: set at the end of a chain.
const fn gnu_hash(name: &[u8], last: bool) -> u32 {
    let mut hash = 5381u32;
    let mut at = 0;
    while at < name.len() {
        hash = hash.wrapping_mul(33).wrapping_add(name[at] as u32);
        at += 1;
    }
    hash & !1 | last as u32
}

global_asm!(
    ".pushsection .rodata.vdso, \"a\", @progbits",
    ".balign 64",
    ".globl vdso_image, vdso_image_end",
    "vdso_image:",
    // Elf64_Ehdr: ELFCLASS64, little endian, ET_DYN, EM_X86_64; four program headers, no sections.
    ".ascii \"\\177ELF\\2\\1\\1\"",
    ".zero 9",
    ".short 3, 62",
    ".long 1",
    ".quad 0, 64, 0",
    ".long 0",
    ".short 64, 56, 4, 64, 0, 0",
    // Elf64_Phdr: type, flags; offset, vaddr, paddr, filesz, memsz, align.
    // PT_LOAD, R+X: everything.
    ".long 1, 5",
    ".quad 0, 0, 0, vdso_image_end - vdso_image, vdso_image_end - vdso_image, 4096",
    // PT_DYNAMIC, R.
    ".long 2, 4",
    ".quad 20f - vdso_image, 20f - vdso_image, 20f - vdso_image, 21f - 20f, 21f - 20f, 8",
    // PT_NOTE, R.
    ".long 4, 4",
    ".quad 22f - vdso_image, 22f - vdso_image, 22f - vdso_image, 23f - 22f, 23f - 22f, 4",
    // PT_GNU_EH_FRAME, R.
    ".long 0x6474e550, 4",
    ".quad 24f - vdso_image, 24f - vdso_image, 24f - vdso_image, 25f - 24f, 25f - 24f, 4",

    // DT_HASH: one bucket, every symbol in its chain.
    ".balign 8",
    "10:",
    ".long 1, 11, 1",
    ".long 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0",
    // DT_GNU_HASH: one bucket from symbol 1 on; a filter that lets every name through.
    ".balign 8",
    "11:",
    ".long 1, 1, 1, 0",
    ".quad -1",
    ".long 1",
    ".long {gnu1}, {gnu2}, {gnu3}, {gnu4}, {gnu5}, {gnu6}, {gnu7}, {gnu8}, {gnu9}, {gnu10}",
    // DT_SYMTAB, Elf64_Sym: name; info, other, section; value, size. 0x12 is a global function, 0x22 a weak one; any section
    // number but 0 means "defined".
    ".balign 8",
    "12:",
    ".zero 24",
    ".macro vdso_symbol name, info, code, end",
    ".long \\name - 13f",
    ".byte \\info, 0",
    ".short 1",
    ".quad \\code - vdso_image, \\end - \\code",
    ".endm",
    "vdso_symbol 31f, 0x12, 51f, 52f",
    "vdso_symbol 32f, 0x12, 52f, 53f",
    "vdso_symbol 33f, 0x12, 53f, 54f",
    "vdso_symbol 34f, 0x12, 54f, 55f",
    "vdso_symbol 35f, 0x12, 55f, 56f",
    "vdso_symbol 36f, 0x22, 51f, 52f",
    "vdso_symbol 37f, 0x22, 52f, 53f",
    "vdso_symbol 38f, 0x22, 53f, 54f",
    "vdso_symbol 39f, 0x22, 54f, 55f",
    "vdso_symbol 40f, 0x22, 55f, 56f",
    ".purgem vdso_symbol",
    // DT_STRTAB. The names without the prefix are the ends of those with it, but each has its own here.
    "13:",
    ".byte 0",
    "31: .asciz \"__vdso_clock_gettime\"",
    "32: .asciz \"__vdso_gettimeofday\"",
    "33: .asciz \"__vdso_time\"",
    "34: .asciz \"__vdso_getcpu\"",
    "35: .asciz \"__vdso_clock_getres\"",
    "36: .asciz \"clock_gettime\"",
    "37: .asciz \"gettimeofday\"",
    "38: .asciz \"time\"",
    "39: .asciz \"getcpu\"",
    "40: .asciz \"clock_getres\"",
    "41: .asciz \"linux-vdso.so.1\"",
    "42: .asciz \"LINUX_2.6\"",
    "14:",
    // DT_VERSYM: every symbol is of version 2.
    ".balign 8",
    "15:",
    ".short 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2",
    // DT_VERDEF, Elf64_Verdef: version, flags, index, names; hash, offset of the names, offset of the next. The first (VER_FLG_BASE)
    // is the object itself.
    ".balign 8",
    "16:",
    ".short 1, 1, 1, 1",
    ".long {soname_hash}, 20, 28",
    ".long 41b - 13b, 0",
    ".short 1, 0, 2, 1",
    ".long {version_hash}, 20, 0",
    ".long 42b - 13b, 0",

    // PT_DYNAMIC: SONAME, HASH, GNU_HASH, STRTAB, SYMTAB, STRSZ, SYMENT, VERSYM, VERDEF, VERDEFNUM, NULL.
    ".balign 8",
    "20:",
    ".quad 14, 41b - 13b",
    ".quad 4, 10b - vdso_image",
    ".quad 0x6ffffef5, 11b - vdso_image",
    ".quad 5, 13b - vdso_image",
    ".quad 6, 12b - vdso_image",
    ".quad 10, 14b - 13b",
    ".quad 11, 24",
    ".quad 0x6ffffff0, 15b - vdso_image",
    ".quad 0x6ffffffc, 16b - vdso_image",
    ".quad 0x6ffffffd, 2",
    ".quad 0, 0",
    "21:",

    // The note Linux has too: owner "Linux", type 0, the version as KERNEL_VERSION(6, 12, 0).
    ".balign 4",
    "22:",
    ".long 6, 4, 0",
    ".asciz \"Linux\"",
    ".zero 2",
    ".long 6 << 16 | 12 << 8",
    "23:",

    // .eh_frame_hdr: version 1; pointer to .eh_frame pc-relative, count and table as 4 bytes, table relative to here.
    ".balign 4",
    "24:",
    ".byte 1, 0x1b, 0x03, 0x3b",
    ".long 26f - .",
    ".long 1",
    ".long 50f - 24b, 27f - 24b",
    "25:",
    // .eh_frame: no function changes the stack, so one rule holds everywhere: CFA = rsp + 8, return address at CFA - 8.
    ".balign 8",
    "26:",
    ".long 60f - 61f",
    "61:",
    ".long 0",
    ".byte 1",
    ".asciz \"zR\"",
    ".byte 1, 0x78, 16, 1, 0x1b",
    ".byte 0x0c, 7, 8, 0x90, 1",
    ".balign 8",
    "60:",
    "27:",
    ".long 62f - 63f",
    "63:",
    ".long 63b - 26b",
    ".long 50f - .",
    ".long 59f - 50f",
    ".byte 0",
    ".balign 8",
    "62:",
    ".long 0",

    // edi clock, rsi timespec
    ".balign 64, 0xcc",
    "50:",
    "51:",
    "endbr64",
    "mov ecx, {served}",
    "cmp edi, 31",
    "ja 2f",
    "bt ecx, edi",
    "jnc 2f",
    "mov rcx, [rip + vdso_image - {data_size}]",
    "test rcx, rcx",
    "jz 2f",
    "jmp rcx",
    "2:",
    "mov eax, 228",
    "jmp 57f",
    // rdi timeval, rsi timezone
    ".balign 16, 0xcc",
    "52:",
    "endbr64",
    "mov rcx, [rip + vdso_image - {data_size} + 8]",
    "test rcx, rcx",
    "jz 2f",
    "jmp rcx",
    "2:",
    "mov eax, 96",
    "jmp 57f",
    // rdi time_t
    ".balign 16, 0xcc",
    "53:",
    "endbr64",
    "mov rcx, [rip + vdso_image - {data_size} + 16]",
    "test rcx, rcx",
    "jz 2f",
    "jmp rcx",
    "2:",
    "mov eax, 201",
    "jmp 57f",
    // rdi processor, rsi node
    ".balign 16, 0xcc",
    "54:",
    "endbr64",
    "mov rcx, [rip + vdso_image - {data_size} + 24]",
    "test rcx, rcx",
    "jz 2f",
    "jmp rcx",
    "2:",
    "mov eax, 309",
    "jmp 57f",
    // edi clock, rsi timespec
    ".balign 16, 0xcc",
    "55:",
    "endbr64",
    "mov ecx, {served}",
    "cmp edi, 31",
    "ja 2f",
    "bt ecx, edi",
    "jnc 2f",
    "mov rcx, [rip + vdso_image - {data_size} + 32]",
    "test rcx, rcx",
    "jz 2f",
    "jmp rcx",
    "2:",
    "mov eax, 229",
    "jmp 57f",
    "56:",
    // eax: a system call with the arguments in place, by the kernel's call entry where there is one: that wants the address to
    // go on at in rcx.
    ".balign 16, 0xcc",
    "57:",
    "mov r11, [rip + vdso_image - {data_size} + 40]",
    "test r11, r11",
    "jz 2f",
    "lea rcx, [rip + 3f]",
    "jmp r11",
    "2:",
    "syscall",
    "3:",
    "ret",
    "59:",
    "vdso_image_end:",
    ".popsection",
    served = const SERVED,
    data_size = const DATA_SIZE,
    soname_hash = const sysv_hash(b"linux-vdso.so.1"),
    version_hash = const sysv_hash(b"LINUX_2.6"),
    gnu1 = const gnu_hash(b"__vdso_clock_gettime", false),
    gnu2 = const gnu_hash(b"__vdso_gettimeofday", false),
    gnu3 = const gnu_hash(b"__vdso_time", false),
    gnu4 = const gnu_hash(b"__vdso_getcpu", false),
    gnu5 = const gnu_hash(b"__vdso_clock_getres", false),
    gnu6 = const gnu_hash(b"clock_gettime", false),
    gnu7 = const gnu_hash(b"gettimeofday", false),
    gnu8 = const gnu_hash(b"time", false),
    gnu9 = const gnu_hash(b"getcpu", false),
    gnu10 = const gnu_hash(b"clock_getres", true),
);

unsafe extern "C" {
    static vdso_image: u8;
    static vdso_image_end: u8;
}

/// The file, to be copied to the start of the code page.
pub fn image() -> &'static [u8] {
    let (start, end) = (&raw const vdso_image, &raw const vdso_image_end);
    // SAFETY: both labels are of the same read-only section, laid out above.
    unsafe { core::slice::from_raw_parts(start, end as usize - start as usize) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes() {
        // The values binutils writes for the host's vDSO and every glibc.
        assert_eq!(sysv_hash(b"LINUX_2.6"), 0x03ae_75f6);
        assert_eq!(gnu_hash(b"printf", false), 0x156b_2bb8);
        assert_eq!(gnu_hash(b"", true), 5381);
    }

    #[test]
    fn the_file_is_whole() {
        let file = image();
        assert!(file.starts_with(b"\x7fELF") && file.len() <= CODE_SIZE);
        let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
        // The one loadable segment is all of it.
        assert_eq!((word(64 + 32), word(64 + 40)), (file.len() as u64, file.len() as u64));
    }
}
