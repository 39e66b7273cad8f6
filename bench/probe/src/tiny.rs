//! The smallest static program: it ends at once, or waits for a signal when it is given an argument.

use std::arch::global_asm;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::Skip;
use crate::files::Scratch;

global_asm!(
    // Data here: the code of a running program may be rewritten, and its bytes are what the file gets.
    ".pushsection .rodata.janua_tiny, \"a\", @progbits",
    ".globl tiny_begin, tiny_end",
    ".hidden tiny_begin, tiny_end",
    "tiny_begin:",
    // argc
    "cmp qword ptr [rsp], 1",
    "ja 2f",
    "xor edi, edi",
    "mov eax, {exit}",
    "syscall",
    "2:",
    "mov eax, {pause}",
    "syscall",
    "jmp 2b",
    "tiny_end:",
    ".popsection",
    exit = const libc::SYS_exit_group,
    pause = const libc::SYS_pause,
);

unsafe extern "C" {
    static tiny_begin: u8;
    static tiny_end: u8;
}

/// The program as an executable file: an ELF header, one program header, the code.
pub fn elf() -> Vec<u8> {
    // SAFETY: both symbols bound one piece of code.
    executable(unsafe {
        let begin = &raw const tiny_begin;
        std::slice::from_raw_parts(begin, (&raw const tiny_end).offset_from(begin) as usize)
    })
}

/// Position-independent code that begins with its entry, as an executable file.
pub fn executable(code: &[u8]) -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    let length = HEADERS + code.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    for half in [libc::ET_EXEC, libc::EM_X86_64] {
        file.extend(half.to_le_bytes());
    }
    file.extend(1_u32.to_le_bytes());
    for word in [BASE + HEADERS, 64, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend(0_u32.to_le_bytes());
    // Sizes and numbers: this header, program headers, section headers.
    for half in [64_u16, 56, 1, 64, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    for word in [libc::PT_LOAD, libc::PF_R | libc::PF_X] {
        file.extend(word.to_le_bytes());
    }
    for word in [0, BASE, BASE, length, length, 4096] {
        file.extend(word.to_le_bytes());
    }
    file.extend(code);
    file
}

/// Writes the program into `dir`.
pub fn install(dir: &Path) -> Result<PathBuf, Skip> {
    let path = dir.join("tiny");
    let mut options = std::fs::OpenOptions::new();
    let written = options.write(true).create(true).truncate(true).mode(0o755).open(&path);
    written
        .and_then(|mut file| std::io::Write::write_all(&mut file, &elf()))
        .map_err(|error| Skip(format!("{}: {error}", path.display())))?;
    Ok(path)
}

/// `--idle N`: as many processes that wait, until standard input ends.
pub fn idle(number: usize) -> ExitCode {
    let started = Scratch::new().and_then(|scratch| {
        let program = install(&scratch.path)?;
        let start = || Command::new(&program).arg("wait").stdin(Stdio::null()).spawn();
        (0..number).map(|_| start()).collect::<Result<Vec<_>, _>>().map_err(|error| Skip(format!("starting: {error}")))
    });
    let mut children = match started {
        Ok(children) => children,
        Err(Skip(why)) => {
            eprintln!("janua probe: {why}");
            return ExitCode::FAILURE;
        }
    };
    // One that fell at its start is not idle.
    std::thread::sleep(std::time::Duration::from_millis(100));
    if children.iter_mut().any(|child| !matches!(child.try_wait(), Ok(None))) {
        eprintln!("janua probe: an idle process ended");
        return ExitCode::FAILURE;
    }
    println!("ready");
    // Whatever ends the reading ends the waiting.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    for child in &mut children {
        let _ = child.kill();
        let _ = child.wait();
    }
    ExitCode::SUCCESS
}
