//! 32-bit programs: the thread-local segments in each core's descriptor table, and the data segment registers.
//!
//! Both are the running thread's while it runs, like the vector registers: the kernel uses none of them. Loading GS would change
//! the core's own base, so it is done with the user's in its place.

use core::arch::asm;

use janua_abi::linux::i386::UserDesc;
use janua_abi::linux::i386::process::FIRST_THREAD_AREA;
use janua_abi::linux::i386::process::user_desc as flag;
use janua_abi::linux::{Errno, Result};
use janua_arch::Segments;
use janua_arch::x86_64::vdso32;
use janua_port::{Compat, Vdso32};

use crate::core as cores;
use crate::{cpu, sched, vdso};

/// The first entry, and how many: Linux' place. The personality keeps two.
pub const FIRST: u32 = FIRST_THREAD_AREA;
pub const COUNT: usize = 2;

/// What a thread has of it while it does not run.
#[derive(Clone, Copy, Default)]
pub struct State {
    areas: [u64; COUNT],
    segments: Segments,
    /// Whether its program is a 32-bit one.
    is_32: bool,
}

/// A data segment of user code as the processor reads it (Intel's manual, volume 3, "Segment Descriptors").
fn encode(desc: &UserDesc) -> u64 {
    if desc.is_empty() {
        return 0;
    }
    let has = |bit: u32| u64::from(desc.flags & bit != 0);
    let (base, limit) = (u64::from(desc.base), u64::from(desc.limit));
    // Data, accessed, of ring 3; writable unless marked read-only; bit 2: growing down.
    let kind = 0x11 | (1 - has(flag::READ_EXEC_ONLY)) << 1 | u64::from(desc.flags & flag::CONTENTS) << 1 & 4;
    let access = kind | 3 << 5 | (1 - has(flag::SEG_NOT_PRESENT)) << 7;
    let size = has(flag::USEABLE) | has(flag::SEG_32BIT) << 2 | has(flag::LIMIT_IN_PAGES) << 3;
    limit & 0xffff | (base & 0xff_ffff) << 16 | access << 40 | (limit >> 16 & 0xf) << 48 | size << 52 | (base >> 24) << 56
}

/// Loads segment registers as [`Segments::load`], which would change the kernel's own GS base: the user's takes its place meanwhile.
fn load(segments: Segments) {
    // SAFETY: interrupts are off in the kernel, and what comes nevertheless uses no GS in ring 0. The two exchange the bases and
    // exchange them back.
    unsafe { asm!("swapgs", options(nostack, preserves_flags)) };
    segments.load();
    // SAFETY: as above.
    unsafe { asm!("swapgs", options(nostack, preserves_flags)) };
}

impl State {
    /// Takes the running thread's registers; its areas are kept as they are set.
    pub fn store(&mut self) {
        self.segments = Segments::current();
    }

    /// Makes them the core's. The bases of FS and GS must be loaded after this.
    pub fn load(&self) {
        let core = cores::here();
        core.set_areas(self.areas);
        core.set_program(self.is_32);
        if Segments::current() != self.segments {
            load(self.segments);
        }
    }
}

/// [`janua_port::Registers::set_thread_area`].
pub fn set_thread_area(descriptor: &UserDesc) -> Result<()> {
    let thread = sched::current();
    let own = thread.own.get();
    let index = descriptor.entry.checked_sub(FIRST).ok_or(Errno::EINVAL)? as usize;
    // SAFETY: the running thread's own part.
    let areas = unsafe { &mut (*own).compat.areas };
    *areas.get_mut(index).ok_or(Errno::EINVAL)? = encode(descriptor);
    cores::here().set_areas(*areas);
    // A register that holds the entry has what was there before until it is loaded again.
    let now = Segments::current();
    if [now.ds, now.es, now.fs, now.gs].iter().any(|selector| u32::from(selector >> 3) == descriptor.entry) {
        load(now);
    }
    Ok(())
}

/// [`janua_port::Registers::set_segments`].
pub fn set_segments(segments: Segments) {
    // SAFETY: every 64-bit processor has the registers.
    let bases = || unsafe { (cpu::rdmsr(cpu::MSR_FS_BASE), cpu::rdmsr(cpu::MSR_KERNEL_GS_BASE)) };
    let before = bases();
    load(segments);
    // A null selector leaves the base on some processors and clears it on others: it stays, as after Linux' return to user mode.
    // SAFETY: values that the registers had.
    unsafe {
        if segments.fs & !3 == 0 {
            cpu::wrmsr(cpu::MSR_FS_BASE, before.0);
        }
        if segments.gs & !3 == 0 {
            cpu::wrmsr(cpu::MSR_KERNEL_GS_BASE, before.1);
        }
    }
}

/// [`janua_port::Registers::set_landing`].
pub fn set_landing(address: u32) {
    let thread = sched::current();
    let own = thread.own.get();
    // SAFETY: the running thread's own part.
    unsafe {
        (*own).save.landing = address.into();
        (*own).compat.is_32 = address != 0;
    }
    cores::here().set_program(address != 0);
}

/// 32-bit programs of this platform.
pub struct BareCompat;

impl Compat for BareCompat {
    fn thread_areas(&self) -> (u32, u32) {
        (FIRST, COUNT as u32)
    }

    fn vdso(&self) -> Vdso32 {
        vdso32::PLACES
    }

    fn vdso_image(&self) -> [u8; vdso32::SIZE] {
        vdso32::image(cores::instruction32(), &vdso::data32())
    }
}
