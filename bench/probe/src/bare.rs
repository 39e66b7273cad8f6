//! The program that measures the gates of the bare x86_64 machine: small, without a library, one ELF file put together here.
//!
//! It is a list of records, each a name and a routine that makes [`TURNS`] calls between two readings of the time stamp counter.
//! For each record it writes a line `row NAME TICKS...` with [`SAMPLES`] counts. Under QEMU's `-icount shift=0` a tick is one
//! instruction, so a count is exact; otherwise it is the host's counter.

use std::arch::global_asm;

/// Calls in one sample.
pub const TURNS: u64 = 1000;
/// Samples of a record.
pub const SAMPLES: u64 = 8;

/// Where a record's name begins, behind its length and the place of its code.
pub(crate) const NAME: usize = 8;

/// A record of 64-bit code: `before` the readings, then every turn `loads` and `gate`. The counter is in r12.
#[rustfmt::skip]
macro_rules! record {
    ($name:expr, $before:expr, $loads:expr, $gate:expr) => {
        concat!(
            ".balign 4\n7: .long 9f - 7b, 8f - 7b\n.asciz \"", $name, "\"\n8:\n", $before,
            "\nrdtsc\nshl rdx, 32\nlea r15, [rax + rdx]\nmov r12d, {turns}\n2:\n", $loads, "\n", $gate,
            "\ndec r12\njnz 2b\nrdtsc\nshl rdx, 32\nadd rax, rdx\nsub rax, r15\nret\n.balign 4\n9:\n"
        )
    };
}

/// The records of one gate that takes the registers of `syscall`, with 0 to 6 arguments loaded.
#[rustfmt::skip]
macro_rules! null_calls {
    ($gate:literal, $code:expr) => {
        concat!(
            record!(concat!("null-", $gate, "-0"), "", "", $code),
            record!(concat!("null-", $gate, "-1"), "", "mov edi, 1", $code),
            record!(concat!("null-", $gate, "-2"), "", "mov edi, 1\nmov esi, 2", $code),
            record!(concat!("null-", $gate, "-3"), "", "mov edi, 1\nmov esi, 2\nmov edx, 3", $code),
            record!(concat!("null-", $gate, "-4"), "", "mov edi, 1\nmov esi, 2\nmov edx, 3\nmov r10d, 4", $code),
            record!(concat!("null-", $gate, "-5"), "", "mov edi, 1\nmov esi, 2\nmov edx, 3\nmov r10d, 4\nmov r8d, 5", $code),
            record!(
                concat!("null-", $gate, "-6"), "",
                "mov edi, 1\nmov esi, 2\nmov edx, 3\nmov r10d, 4\nmov r8d, 5\nmov r9d, 6", $code
            )
        )
    };
}

/// The same with the registers of i386.
#[rustfmt::skip]
macro_rules! null_calls_i386 {
    ($gate:literal, $code:expr) => {
        concat!(
            record!(concat!("null-", $gate, "-0"), "", "", $code),
            record!(concat!("null-", $gate, "-1"), "", "mov ebx, 1", $code),
            record!(concat!("null-", $gate, "-2"), "", "mov ebx, 1\nmov ecx, 2", $code),
            record!(concat!("null-", $gate, "-3"), "", "mov ebx, 1\nmov ecx, 2\nmov edx, 3", $code),
            record!(concat!("null-", $gate, "-4"), "", "mov ebx, 1\nmov ecx, 2\nmov edx, 3\nmov esi, 4", $code),
            record!(concat!("null-", $gate, "-5"), "", "mov ebx, 1\nmov ecx, 2\nmov edx, 3\nmov esi, 4\nmov edi, 5", $code),
            record!(
                concat!("null-", $gate, "-6"), "",
                "mov ebx, 1\nmov ecx, 2\nmov edx, 3\nmov esi, 4\nmov edi, 5\nmov ebp, 6", $code
            )
        )
    };
}

global_asm!(
    // Data here: the code of a running program may be rewritten, and its bytes are what the file gets.
    ".pushsection .rodata.janua_bare, \"a\", @progbits",
    ".balign 16",
    ".globl bare_begin, bare_records, bare_end",
    ".hidden bare_begin, bare_records, bare_end",
    "bare_begin:",
    // Past the arguments and the environment to the auxiliary vector: AT_SYSINFO_EHDR (33) reports where the vDSO is.
    "mov rbx, [rsp]",
    "lea rbx, [rsp + rbx*8 + 16]",
    "3:",
    "add rbx, 8",
    "cmp qword ptr [rbx - 8], 0",
    "jne 3b",
    "4:",
    "mov rax, [rbx]",
    "add rbx, 16",
    "test rax, rax",
    "jz 5f",
    "cmp rax, 33",
    "jne 4b",
    "mov rbx, [rbx - 8]",
    // Its dynamic section (program header type 2), there the tables of names (5) and of symbols (6).
    "mov rcx, [rbx + 32]",
    "lea rcx, [rbx + rcx - 56]",
    "6:",
    "add rcx, 56",
    "cmp dword ptr [rcx], 2",
    "jne 6b",
    "mov rcx, [rcx + 16]",
    "lea rcx, [rbx + rcx - 16]",
    "7:",
    "add rcx, 16",
    "mov rax, [rcx]",
    "cmp rax, 5",
    "jne 8f",
    "mov r8, [rcx + 8]",
    "8:",
    "cmp rax, 6",
    "jne 9f",
    "mov r9, [rcx + 8]",
    "9:",
    "test rax, rax",
    "jnz 7b",
    // The symbol of that name; there is one in every vDSO.
    "lea r8, [rbx + r8]",
    "lea r9, [rbx + r9]",
    "10:",
    "add r9, 24",
    "mov esi, [r9]",
    "add rsi, r8",
    "lea rdi, [rip + bare_vdso_name]",
    "mov ecx, 20",
    "repe cmpsb",
    "jne 10b",
    "mov rax, [r9 + 8]",
    "add rax, rbx",
    "5:",
    "lea r14, [rip + bare_records]",
    // At rsp: 64 bytes for routines, the vDSO's function, the call gate's far pointer, then the line.
    "sub rsp, 2048",
    "mov [rsp + 64], rax",
    // The call gate's far pointer: offset and selector.
    "mov dword ptr [rsp + 72], 0",
    "mov dword ptr [rsp + 76], 0x53",

    "20:",
    "cmp dword ptr [r14], 0",
    "je 29f",
    "lea rdi, [rsp + 128]",
    "mov dword ptr [rdi], 0x20776f72",
    "add rdi, 4",
    "lea rsi, [r14 + {name}]",
    "21:",
    "lodsb",
    "stosb",
    "test al, al",
    "jnz 21b",
    "dec rdi",
    "mov r13d, {samples}",
    // Once to warm up.
    "push rdi",
    "sub rsp, 8",
    "call 26f",
    "add rsp, 8",
    "pop rdi",
    "22:",
    "push rdi",
    "sub rsp, 8",
    "call 26f",
    "add rsp, 8",
    "pop rdi",
    "mov byte ptr [rdi], 32",
    "inc rdi",
    // Decimal digits, from the last.
    "lea rsi, [rdi + 20]",
    "mov ecx, 10",
    "xor r8d, r8d",
    "23:",
    "xor edx, edx",
    "div rcx",
    "add edx, 48",
    "dec rsi",
    "mov [rsi], dl",
    "inc r8",
    "test rax, rax",
    "jnz 23b",
    "mov rcx, r8",
    "rep movsb",
    "dec r13",
    "jnz 22b",
    "mov byte ptr [rdi], 10",
    "lea rsi, [rsp + 128]",
    "lea rdx, [rdi + 1]",
    "sub rdx, rsi",
    "mov edi, 1",
    "mov eax, {write}",
    "syscall",
    "mov eax, [r14]",
    "add r14, rax",
    "jmp 20b",
    "29:",
    "xor edi, edi",
    "mov eax, {exit}",
    "syscall",
    // Runs the record's routine with the registers it wants: rbx the vDSO's function, rbp the scratch words.
    "26:",
    "lea rbp, [rsp + 24]",
    "mov rbx, [rbp + 64]",
    "push rbp",
    "sub rsp, 8",
    "mov eax, [r14 + 4]",
    "add rax, r14",
    "call rax",
    "add rsp, 8",
    "pop rbp",
    "ret",

    "bare_vdso_name: .asciz \"__vdso_gettimeofday\"",

    ".balign 4",
    "bare_records:",
    record!("loop", "", "", ""),
    null_calls!("syscall", "mov eax, {getppid}\nsyscall"),
    null_calls!("sysenter", "mov eax, {getppid}\nmov r11, rsp\nlea rcx, [rip + 6f]\nsysenter\n6:"),
    null_calls!("int30", "mov eax, {getppid}\nint 0x30"),
    null_calls!("callgate", "mov eax, {getppid}\ncall fword ptr [rsp + 120]\nint 0x30"),
    null_calls!("ud", "mov eax, {getppid}\n.byte 0xf0, 0x90"),
    null_calls_i386!("int80", "mov eax, {getppid_i386}\nint 0x80"),
    record!("null-vsyscall-0", "xor edi, edi\nxor esi, esi", "", "mov rax, 0xffffffffff600800\ncall rax"),
    record!("null-vsyscall-1", "xor edi, edi\nxor esi, esi", "xor edi, edi", "mov rax, 0xffffffffff600800\ncall rax"),
    record!("null-vsyscall-2", "", "xor edi, edi\nxor esi, esi", "mov rax, 0xffffffffff600800\ncall rax"),
    record!("null-vsyscall-3", "", "xor edi, edi\nxor esi, esi\nxor edx, edx", "mov rax, 0xffffffffff600800\ncall rax"),
    record!("tod-syscall", "", "mov rdi, rbp\nxor esi, esi", "mov eax, {gettimeofday}\nsyscall"),
    record!("tod-vsyscall", "", "mov rdi, rbp\nxor esi, esi", "mov rax, 0xffffffffff600000\ncall rax"),
    record!("tod-vsyscall-native", "", "mov rdi, rbp\nxor esi, esi", "mov rax, 0xffffffffff600000\ncall rax"),
    record!("tod-vdso", "test rbx, rbx\njnz 3f\nxor eax, eax\nret\n3:", "mov rdi, rbp\nxor esi, esi", "call rbx"),
    ".long 0",
    "bare_end:",
    ".popsection",
    turns = const TURNS,
    samples = const SAMPLES,
    name = const NAME,
    write = const libc::SYS_write,
    exit = const libc::SYS_exit_group,
    getppid = const libc::SYS_getppid,
    gettimeofday = const libc::SYS_gettimeofday,
    getppid_i386 = const 64,
);

unsafe extern "C" {
    static bare_begin: u8;
    static bare_records: u8;
    static bare_end: u8;
}

/// The bytes between two symbols.
pub(crate) fn bytes(begin: *const u8, end: *const u8) -> &'static [u8] {
    // SAFETY: both symbols bound one piece of read-only data.
    unsafe { std::slice::from_raw_parts(begin, end.offset_from(begin) as usize) }
}

fn word(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, |word| u32::from_le_bytes(word) as usize)
}

/// Names and bytes of the records.
pub(crate) fn records(mut list: &'static [u8]) -> impl Iterator<Item = (&'static str, &'static [u8])> {
    std::iter::from_fn(move || {
        let length = word(list, 0);
        let record = list.get(..length).filter(|_| length > NAME)?;
        list = &list[length..];
        let name = record[NAME..].split(|byte| *byte == 0).next().unwrap_or_default();
        Some((std::str::from_utf8(name).unwrap_or_default(), record))
    })
}

/// The names of the records.
pub fn names() -> Vec<&'static str> {
    records(bytes(&raw const bare_records, &raw const bare_end)).map(|(name, _)| name).collect()
}

/// The program with those records that are `wanted`.
pub fn elf(wanted: impl Fn(&str) -> bool) -> Vec<u8> {
    let mut code = bytes(&raw const bare_begin, &raw const bare_records).to_vec();
    let list = bytes(&raw const bare_records, &raw const bare_end);
    records(list).filter(|(name, _)| wanted(name)).for_each(|(_, record)| code.extend(record));
    code.extend([0; 4]);
    crate::tiny::executable(&code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_found() {
        let names = names();
        assert_eq!(names.first(), Some(&"loop"));
        for name in ["null-syscall-0", "null-int80-6", "null-ud-3", "null-vsyscall-3", "tod-vdso"] {
            assert!(names.contains(&name), "{name} in {names:?}");
        }
    }

    #[test]
    fn the_program_runs_natively() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("janua-bare-{}", std::process::id()));
        std::fs::write(&path, elf(|name| ["loop", "null-syscall-2", "tod-syscall", "tod-vdso"].contains(&name))).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let output = crate::tests::output_of(&path);
        std::fs::remove_file(&path).unwrap();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
        assert_eq!(lines.iter().map(|line| line[1]).collect::<Vec<_>>(), ["loop", "null-syscall-2", "tod-syscall", "tod-vdso"]);
        assert!(lines.iter().all(|line| line.len() == 2 + SAMPLES as usize), "{text}");
        assert!(lines.iter().flat_map(|line| &line[2..]).all(|ticks| ticks.parse::<u64>().is_ok()), "{text}");
    }
}
