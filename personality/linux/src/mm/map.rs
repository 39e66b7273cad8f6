//! mmap(2) and the calls that change or ask about mappings; arch_prctl(2).

use core::sync::atomic::Ordering;

use janua_abi::linux::mman::*;
use janua_abi::linux::prctl::arch;
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::table::{Arg, Fd, Kind};
use janua_object::mm::{MapRequest, RemapRequest};
use janua_port::Prot;

use super::{Addr, AdviceWord, MapWord, ProtWord, RemapWord, SyncWord, is_killed, limits, mm};
use crate::Thread;
use crate::thread::ThreadExt;

/// personality(2): reading means executing.
const READ_IMPLIES_EXEC: u32 = 0x040_0000;

/// The rights a word asks for, and whether the right to execute is among them only because of the personality.
fn prot(thread: &Thread, word: u32) -> (Prot, bool) {
    let read = word & PROT_READ != 0;
    let implied =
        read && word & PROT_EXEC == 0 && thread.process().settings.personality.load(Ordering::Relaxed) & READ_IMPLIES_EXEC != 0;
    (Prot { read, write: word & PROT_WRITE != 0, exec: word & PROT_EXEC != 0 || implied }, implied)
}

/// Makes a mapping or changes one; where it may not be executable and the call does not ask for that, without that right.
fn with_rights<T>((prot, implied): (Prot, bool), mut call: impl FnMut(Prot) -> Result<T>) -> Result<T> {
    match call(prot) {
        Err(Errno::EACCES | Errno::EPERM) if implied => call(Prot { exec: false, ..prot }),
        result => result,
    }
}

/// mmap(2).
pub fn mmap(
    thread: &Thread,
    addr: Addr,
    len: usize,
    protection: ProtWord,
    flags: MapWord,
    fd: Fd,
    offset: u64,
) -> Result<usize> {
    if !offset.is_multiple_of(PAGE_SIZE as u64) {
        return Err(Errno::EINVAL);
    }
    let file = if flags.0 & MAP_ANONYMOUS != 0 { None } else { Some(thread.files().get(fd)?) };
    let (mm, limits) = (mm(thread)?, limits(thread));
    let mapped = with_rights(prot(thread, protection.0), |prot| {
        let request = MapRequest { addr: addr.0, len, prot, flags: flags.0, file: file.clone(), offset };
        mm.map_until(request, &limits, &|| is_killed(thread))
    });
    if let (Some(file), Ok(addr)) = (file, mapped) {
        crate::uring::mapped(&file, addr, offset);
    }
    mapped
}

/// munmap(2).
pub fn munmap(thread: &Thread, addr: Addr, len: usize) -> Result<()> {
    mm(thread)?.unmap(addr.0, len)
}

/// brk(2), with the kernel's return value: the break that is in force.
pub fn brk(thread: &Thread, addr: Addr) -> Result<usize> {
    Ok(mm(thread)?.brk(addr.0, &limits(thread)))
}

/// mprotect(2).
pub fn mprotect(thread: &Thread, addr: Addr, len: usize, protection: ProtWord) -> Result<()> {
    let word = protection.0;
    if word & !(PROT_READ | PROT_WRITE | PROT_EXEC | PROT_SEM | PROT_GROWSDOWN | PROT_GROWSUP) != 0 || word & PROT_GROWSUP != 0
    {
        // No mapping grows up on this machine.
        return Err(Errno::EINVAL);
    }
    let (mm, limits) = (mm(thread)?, limits(thread));
    with_rights(prot(thread, word), |prot| mm.protect(addr.0, len, prot, word & PROT_GROWSDOWN != 0, &limits))
}

/// pkey_mprotect(2): without keys, -1 alone names one.
pub fn pkey_mprotect(thread: &Thread, addr: Addr, len: usize, protection: ProtWord, key: i32) -> Result<()> {
    if key != -1 {
        return Err(Errno::EINVAL);
    }
    mprotect(thread, addr, len, protection)
}

/// pkey_alloc(2): there are no keys to be had.
pub fn pkey_alloc(_thread: &Thread, flags: usize, rights: usize) -> Result<usize> {
    if flags != 0 || rights & !3 != 0 { Err(Errno::EINVAL) } else { Err(Errno::ENOSPC) }
}

/// pkey_free(2): no key has been given out.
pub fn pkey_free(_thread: &Thread, _key: i32) -> Result<()> {
    Err(Errno::EINVAL)
}

/// mremap(2).
pub fn mremap(thread: &Thread, old: Addr, old_len: usize, new_len: usize, flags: RemapWord, new: Addr) -> Result<usize> {
    let request = RemapRequest { old: old.0, old_len, new_len, flags: flags.0, new: new.0 };
    mm(thread)?.remap(request, &limits(thread), &|| is_killed(thread))
}

/// madvise(2).
pub fn madvise(thread: &Thread, addr: Addr, len: usize, advice: AdviceWord) -> Result<()> {
    mm(thread)?.advise(addr.0, len, advice.0, &|| is_killed(thread))
}

/// msync(2).
pub fn msync(thread: &Thread, addr: Addr, len: usize, flags: SyncWord) -> Result<()> {
    mm(thread)?.sync(addr.0, len, flags.0)
}

/// mincore(2).
pub fn mincore(thread: &Thread, addr: Addr, len: usize, vector: UserPtr<u8>) -> Result<()> {
    let pages = len.div_ceil(PAGE_SIZE);
    if !addr.0.is_multiple_of(PAGE_SIZE) {
        return Err(Errno::EINVAL);
    }
    if !thread.user().in_range(addr.0, len) {
        return Err(Errno::ENOMEM);
    }
    if !thread.user().is_user(vector.addr(), pages) {
        return Err(Errno::EFAULT);
    }
    let mut to = vector;
    mm(thread)?.resident(addr.0, len, &|| is_killed(thread), |bytes| {
        thread.user().copy_out(to.addr(), bytes).map_err(|_| Errno::EFAULT)?;
        to = to.at(bytes.len());
        Ok(())
    })
}

/// ARCH_* as an argument.
#[derive(Clone, Copy, Debug)]
pub struct ArchCode(pub u32);

impl Arg for ArchCode {
    const KIND: Kind = Kind::Named("arch_prctl");
    fn decode(word: usize) -> Result<Self> {
        Ok(ArchCode(word as u32))
    }
}

/// A base of FS or GS is an address of the program's: a processor refuses others, in the kernel. EPERM.
pub fn check_base(thread: &Thread, addr: usize) -> Result<usize> {
    if addr == 0 || thread.user().is_user(addr, 1) { Ok(addr) } else { Err(Errno::EPERM) }
}

/// arch_prctl(2): the thread bases. CPUID cannot be switched off; shadow stacks and dynamic vector state are not offered.
pub fn arch_prctl(thread: &Thread, code: ArchCode, addr: Addr) -> Result<usize> {
    let registers = thread.registers()?;
    match code.0 {
        arch::SET_FS => registers.set_tls(check_base(thread, addr.0)?),
        arch::SET_GS => registers.set_gs(check_base(thread, addr.0)?),
        arch::GET_FS => UserPtr::<u64>::new(addr.0).write(thread.user(), &(registers.tls() as u64))?,
        arch::GET_GS => UserPtr::<u64>::new(addr.0).write(thread.user(), &(registers.gs() as u64))?,
        arch::GET_CPUID => return Ok(1),
        // As where the processor cannot have it trap.
        arch::SET_CPUID => return Err(Errno::ENODEV),
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}
