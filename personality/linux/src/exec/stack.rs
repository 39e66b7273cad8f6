//! What a program finds on its stack: argument count, pointers, auxiliary vector, strings (System V ABI, 3.4.1).

use alloc::vec::Vec;

use janua_abi::linux::auxv;
use janua_abi::linux::i386;
use janua_abi::linux::{Errno, Result};
use janua_object::Cred;
use janua_object::mm::{Image, Mm};
use janua_port::{Machine, PAGE, UserMemory};

use super::args::Strings;
use crate::processor::vdso::Vdso;
use crate::processor::{NAME, NAME_32};

/// What the auxiliary vector holds, besides what the machine and the stack itself give.
pub struct Handed<'a> {
    /// Address, size and number of the program headers.
    pub headers: (usize, usize, usize),
    /// Load address of the interpreter, 0 without one.
    pub base: usize,
    /// The program's own entry point.
    pub entry: usize,
    pub cred: &'a Cred,
    /// The program gained privileges by exec.
    pub secure: bool,
    pub execfn: &'a [u8],
    pub args: &'a Strings,
    pub env: &'a Strings,
    /// Of a 32-bit program: where its vDSO is.
    pub vdso32: Option<Vdso>,
}

/// Of `times(2)` and /proc: ticks a second.
const CLOCK_TICKS: u64 = 100;
/// A signal frame besides the processor state: registers, siginfo, red zone, alignment.
const SIGNAL_FRAME: usize = 128 + 568 + 64 + 8;
/// The same for 32-bit code, whose larger frame is that without SA_SIGINFO.
const SIGNAL_FRAME_32: usize = 732 + 112 + 64 + 16;

/// Writes the stack below `top`: the stack pointer, and the places of the strings for `image`.
pub fn write(machine: &dyn Machine, mem: &dyn UserMemory, top: usize, handed: &Handed<'_>, image: &mut Image) -> Result<usize> {
    // From the top down: a null word, the file name, environment, arguments; then the platform's name and random bytes.
    let (word_size, platform) = if handed.vdso32.is_some() { (4, NAME_32) } else { (8, NAME) };
    let strings = handed.execfn.len() + 1 + handed.env.text().len() + handed.args.text().len();
    let args_at = top.checked_sub(8 + strings).ok_or(Errno::E2BIG)?;
    let env_at = args_at + handed.args.text().len();
    let execfn_at = env_at + handed.env.text().len();
    let platform_at = args_at.checked_sub(platform.len() + 1).ok_or(Errno::E2BIG)? & !15;
    let random_at = platform_at - 16;

    let auxv = auxiliary(machine, handed, random_at, execfn_at, platform_at);
    let words = 1 + handed.args.count() + 1 + handed.env.count() + 1 + auxv.len();
    let sp = random_at.checked_sub(words * word_size).ok_or(Errno::E2BIG)? & !15;

    let mut bytes = Vec::with_capacity(top - sp);
    let mut word = |value: usize| bytes.extend_from_slice(&(value as u64).to_ne_bytes()[..word_size]);
    word(handed.args.count());
    for (strings, start) in [(handed.args, args_at), (handed.env, env_at)] {
        let mut at = start;
        for string in strings.iter() {
            word(at);
            at += string.len() + 1;
        }
        word(0);
    }
    for &value in &auxv {
        word(value as usize);
    }
    bytes.resize(random_at - sp, 0);
    let mut random = [0; 16];
    machine.random(&mut random);
    bytes.extend_from_slice(&random);
    bytes.extend_from_slice(platform.as_bytes());
    bytes.resize(args_at - sp, 0);
    bytes.extend_from_slice(handed.args.text());
    bytes.extend_from_slice(handed.env.text());
    bytes.extend_from_slice(handed.execfn);
    bytes.resize(top - sp, 0);
    mem.copy_out(sp, &bytes).map_err(|_| Errno::EFAULT)?;

    image.start_stack = sp;
    image.args = (args_at, env_at);
    image.env = (env_at, execfn_at);
    image.args_text = handed.args.text().into();
    image.env_text = handed.env.text().into();
    image.auxv = auxv.into();
    Ok(sp)
}

/// The auxiliary vector that a program was given, in the words of the program.
pub fn auxiliary_vector(mm: &Mm) -> Vec<u8> {
    let word_size = if mm.bounds().high <= i386::HIGHEST { 4 } else { 8 };
    mm.image().auxv.iter().flat_map(|word| word.to_ne_bytes().into_iter().take(word_size)).collect()
}

fn auxiliary(machine: &dyn Machine, handed: &Handed<'_>, random: usize, execfn: usize, platform: usize) -> Vec<u64> {
    let hwcap = machine.isa().hwcap;
    let (headers, header_size, header_count) = handed.headers;
    let mut auxv = Vec::with_capacity(46);
    let mut entry = |kind: u64, value: u64| auxv.extend([kind, value]);
    if let Some(vdso) = handed.vdso32 {
        entry(auxv::AT_SYSINFO, vdso.vsyscall.into());
        entry(auxv::AT_SYSINFO_EHDR, vdso.header.into());
    } else if let Some([_, (vdso, _)]) = machine.vdso() {
        entry(auxv::AT_SYSINFO_EHDR, vdso as u64);
    }
    let frame = if handed.vdso32.is_some() { SIGNAL_FRAME_32 } else { SIGNAL_FRAME };
    entry(auxv::AT_MINSIGSTKSZ, (machine.isa().fpu.size + frame) as u64);
    entry(auxv::AT_HWCAP, hwcap[0]);
    entry(auxv::AT_PAGESZ, PAGE as u64);
    entry(auxv::AT_CLKTCK, CLOCK_TICKS);
    entry(auxv::AT_PHDR, headers as u64);
    entry(auxv::AT_PHENT, header_size as u64);
    entry(auxv::AT_PHNUM, header_count as u64);
    entry(auxv::AT_BASE, handed.base as u64);
    entry(auxv::AT_FLAGS, 0);
    entry(auxv::AT_ENTRY, handed.entry as u64);
    entry(auxv::AT_UID, handed.cred.uid.into());
    entry(auxv::AT_EUID, handed.cred.euid.into());
    entry(auxv::AT_GID, handed.cred.gid.into());
    entry(auxv::AT_EGID, handed.cred.egid.into());
    entry(auxv::AT_SECURE, handed.secure.into());
    entry(auxv::AT_RANDOM, random as u64);
    entry(auxv::AT_HWCAP2, hwcap[1]);
    entry(auxv::AT_EXECFN, execfn as u64);
    entry(auxv::AT_PLATFORM, platform as u64);
    entry(auxv::AT_NULL, 0);
    auxv
}
