//! [`crate::bare`] for 32-bit programs: the gates they have, in a program of 32-bit code. `sysenter` and `syscall` are reached as a C library
//! reaches them, by `__kernel_vsyscall`, whose pushes and pops are part of the figure.
//!
//! The records and the lines are those of [`crate::bare`]; a row whose instruction this machine's vDSO does not use has counts of 0.

use std::arch::global_asm;

use crate::bare::{NAME, SAMPLES, TURNS, bytes, records};

/// A record of 32-bit code: `before` the readings, then every turn `loads` and `gate`. The stack has, from the top, the counter of turns,
/// the first reading, and from 52 on what the program keeps: 64 bytes for routines, `__kernel_vsyscall`, `__vdso_gettimeofday`.
#[rustfmt::skip]
macro_rules! record {
    ($name:expr, $before:expr, $loads:expr, $gate:expr) => {
        concat!(
            ".balign 4\n7: .long 9f - 7b, 8f - 7b\n.asciz \"", $name, "\"\n8:\n", $before,
            "\nrdtsc\npush edx\npush eax\npush {turns}\n2:\n", $loads, "\n", $gate,
            "\ndec dword ptr [esp]\njnz 2b\nrdtsc\nadd esp, 4\nsub eax, [esp]\nadd esp, 8\nret\n.balign 4\n9:\n"
        )
    };
}

/// Returns 0 unless `__kernel_vsyscall` has this instruction.
#[rustfmt::skip]
macro_rules! only_by {
    ($instruction:literal) => {
        concat!("mov eax, [esp + 104]\ncmp word ptr [eax + 5], ", $instruction, "\nje 3f\nxor eax, eax\nret\n3:")
    };
}

/// The records of one gate with 0 to 6 arguments loaded.
#[rustfmt::skip]
macro_rules! null_calls {
    ($gate:literal, $before:expr, $code:expr) => {
        concat!(
            record!(concat!("null-", $gate, "-0"), $before, "", $code),
            record!(concat!("null-", $gate, "-1"), $before, "mov ebx, 1", $code),
            record!(concat!("null-", $gate, "-2"), $before, "mov ebx, 1\nmov ecx, 2", $code),
            record!(concat!("null-", $gate, "-3"), $before, "mov ebx, 1\nmov ecx, 2\nmov edx, 3", $code),
            record!(concat!("null-", $gate, "-4"), $before, "mov ebx, 1\nmov ecx, 2\nmov edx, 3\nmov esi, 4", $code),
            record!(concat!("null-", $gate, "-5"), $before, "mov ebx, 1\nmov ecx, 2\nmov edx, 3\nmov esi, 4\nmov edi, 5", $code),
            record!(
                concat!("null-", $gate, "-6"), $before,
                "mov ebx, 1\nmov ecx, 2\nmov edx, 3\nmov esi, 4\nmov edi, 5\nmov ebp, 6", $code
            )
        )
    };
}

global_asm!(
    // Data here, as in `crate::bare`.
    ".pushsection .rodata.janua_bare32, \"a\", @progbits",
    ".balign 16",
    ".globl bare32_begin, bare32_records, bare32_end",
    ".hidden bare32_begin, bare32_records, bare32_end",
    "bare32_begin:",
    ".code32",
    // Past the arguments and the environment to the auxiliary vector: AT_SYSINFO (32) and AT_SYSINFO_EHDR (33).
    "mov ebx, [esp]",
    "lea ebx, [esp + ebx*4 + 8]",
    "3:",
    "add ebx, 4",
    "cmp dword ptr [ebx - 4], 0",
    "jne 3b",
    "xor esi, esi",
    "xor edi, edi",
    "4:",
    "mov eax, [ebx]",
    "mov edx, [ebx + 4]",
    "add ebx, 8",
    "cmp eax, 32",
    "cmove esi, edx",
    "cmp eax, 33",
    "cmove edi, edx",
    "test eax, eax",
    "jnz 4b",
    "sub esp, 2048",
    "mov [esp + 64], esi",
    "mov dword ptr [esp + 68], 0",
    // Where the name and the records are, as distances from here.
    "call 5f",
    "18: .long 19f - 18b, bare32_records - 18b",
    "5:",
    "pop ebp",
    "test edi, edi",
    "jz 5f",
    // The dynamic section (program header type 2), there the tables of names (5) and of symbols (6).
    "mov ecx, [edi + 28]",
    "lea ecx, [edi + ecx - 32]",
    "6:",
    "add ecx, 32",
    "cmp dword ptr [ecx], 2",
    "jne 6b",
    "mov ecx, [ecx + 8]",
    "lea ecx, [edi + ecx - 8]",
    "7:",
    "add ecx, 8",
    "mov eax, [ecx]",
    "cmp eax, 5",
    "jne 8f",
    "mov edx, [ecx + 4]",
    "8:",
    "cmp eax, 6",
    "jne 9f",
    "mov ebx, [ecx + 4]",
    "9:",
    "test eax, eax",
    "jnz 7b",
    // The symbol of that name; there is one in every vDSO.
    "add edx, edi",
    "add ebx, edi",
    "6:",
    "add ebx, 16",
    "push edi",
    "mov esi, [ebx]",
    "add esi, edx",
    "mov edi, [ebp]",
    "add edi, ebp",
    "mov ecx, 20",
    "repe cmpsb",
    "pop edi",
    "jne 6b",
    "add edi, [ebx + 4]",
    "mov [esp + 68], edi",
    "5:",
    "add ebp, [ebp + 4]",

    "20:",
    "cmp dword ptr [ebp], 0",
    "je 29f",
    "lea edi, [esp + 128]",
    "mov dword ptr [edi], 0x20776f72",
    "add edi, 4",
    "lea esi, [ebp + {name}]",
    "21:",
    "lodsb",
    "stosb",
    "test al, al",
    "jnz 21b",
    "dec edi",
    "mov dword ptr [esp + 72], {samples}",
    // Once to warm up.
    "call 26f",
    "22:",
    "call 26f",
    "mov byte ptr [edi], 32",
    "inc edi",
    // Decimal digits, from the last.
    "lea esi, [edi + 20]",
    "mov ecx, 10",
    "xor ebx, ebx",
    "23:",
    "xor edx, edx",
    "div ecx",
    "add edx, 48",
    "dec esi",
    "mov [esi], dl",
    "inc ebx",
    "test eax, eax",
    "jnz 23b",
    "mov ecx, ebx",
    "rep movsb",
    "dec dword ptr [esp + 72]",
    "jnz 22b",
    "mov byte ptr [edi], 10",
    "lea ecx, [esp + 128]",
    "lea edx, [edi + 1]",
    "sub edx, ecx",
    "mov ebx, 1",
    "mov eax, 4",
    "int 0x80",
    "add ebp, [ebp]",
    "jmp 20b",
    "29:",
    "xor ebx, ebx",
    "mov eax, 252",
    "int 0x80",
    // Runs the record's routine: eax.
    "26:",
    "pushad",
    "mov eax, [ebp + 4]",
    "add eax, ebp",
    "call eax",
    "mov [esp + 28], eax",
    "popad",
    "ret",
    "19: .asciz \"__vdso_gettimeofday\"",

    ".balign 4",
    "bare32_records:",
    record!("loop-32", "", "", ""),
    null_calls!("int80-32", "", "mov eax, {getppid}\nint 0x80"),
    null_calls!("sysenter-32", only_by!("0x340f"), "mov eax, {getppid}\ncall dword ptr [esp + 116]"),
    null_calls!("syscall-32", only_by!("0x050f"), "mov eax, {getppid}\ncall dword ptr [esp + 116]"),
    record!("tod-int80", "", "lea ebx, [esp + 68]\nxor ecx, ecx", "mov eax, {gettimeofday}\nint 0x80"),
    record!("tod-sysenter", only_by!("0x340f"), "lea ebx, [esp + 68]\nxor ecx, ecx", "mov eax, {gettimeofday}\ncall dword ptr [esp + 116]"),
    record!("tod-syscall-32", only_by!("0x050f"), "lea ebx, [esp + 68]\nxor ecx, ecx", "mov eax, {gettimeofday}\ncall dword ptr [esp + 116]"),
    record!(
        "tod-vdso32", "cmp dword ptr [esp + 108], 0\njne 3f\nxor eax, eax\nret\n3:",
        "push 0\nlea eax, [esp + 72]\npush eax", "call dword ptr [esp + 128]\nadd esp, 8"
    ),
    ".long 0",
    ".code64",
    "bare32_end:",
    ".popsection",
    turns = const TURNS,
    samples = const SAMPLES,
    name = const NAME,
    getppid = const 64,
    gettimeofday = const 78,
);

unsafe extern "C" {
    static bare32_begin: u8;
    static bare32_records: u8;
    static bare32_end: u8;
}

/// The record of the loop alone, for those of this program.
pub const LOOP: &str = "loop-32";

/// The names of the records.
pub fn names() -> Vec<&'static str> {
    records(bytes(&raw const bare32_records, &raw const bare32_end)).map(|(name, _)| name).collect()
}

/// The program with those records that are `wanted`.
pub fn elf(wanted: impl Fn(&str) -> bool) -> Vec<u8> {
    let mut code = bytes(&raw const bare32_begin, &raw const bare32_records).to_vec();
    let list = bytes(&raw const bare32_records, &raw const bare32_end);
    records(list).filter(|(name, _)| wanted(name)).for_each(|(_, record)| code.extend(record));
    code.extend([0; 4]);
    executable(&code)
}

/// Position-independent code that begins with its entry, as an executable file.
fn executable(code: &[u8]) -> Vec<u8> {
    const BASE: u32 = 0x40_0000;
    const HEADERS: u32 = 52 + 32;
    let length = HEADERS + code.len() as u32;
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    for half in [libc::ET_EXEC, libc::EM_386] {
        file.extend(half.to_le_bytes());
    }
    for word in [1, BASE + HEADERS, 52, 0, 0] {
        file.extend(word.to_le_bytes());
    }
    // Sizes and numbers: this header, program headers, section headers.
    for half in [52_u16, 32, 1, 40, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    for word in [libc::PT_LOAD, 0, BASE, BASE, length, length, libc::PF_R | libc::PF_X, 4096] {
        file.extend(word.to_le_bytes());
    }
    file.extend(code);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_runs_natively() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("janua-bare32-{}", std::process::id()));
        std::fs::write(&path, elf(|name| !name.starts_with("null-") || name.ends_with("-6"))).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let output = crate::tests::output_of(&path);
        std::fs::remove_file(&path).unwrap();
        let output = match output {
            Ok(output) => output,
            // A host without 32-bit programs.
            Err(error) => return assert_eq!(error.raw_os_error(), Some(libc::ENOEXEC)),
        };
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
        let names: Vec<&str> = lines.iter().map(|line| line[1]).collect();
        assert_eq!(
            names,
            [
                "loop-32",
                "null-int80-32-6",
                "null-sysenter-32-6",
                "null-syscall-32-6",
                "tod-int80",
                "tod-sysenter",
                "tod-syscall-32",
                "tod-vdso32"
            ]
        );
        assert!(lines.iter().all(|line| line.len() == 2 + SAMPLES as usize), "{text}");
        let counts = |name: &str| {
            lines.iter().find(|line| line[1] == name).unwrap()[2..].iter().map(|ticks| ticks.parse::<u64>().unwrap())
        };
        // One of the two instructions at most is this processor's.
        assert!(counts("null-int80-32-6").all(|ticks| ticks > 0));
        assert!(counts("tod-sysenter").all(|ticks| ticks == 0) || counts("tod-syscall-32").all(|ticks| ticks == 0));
    }
}
