//! The calling guest thread's registers that stay in the processor while the kernel works: bases, segments, vector state.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, Ordering};

use janua_abi::linux::i386::UserDesc;
use janua_abi::linux::prctl::arch;
use janua_abi::linux::{Errno, Result};
use janua_arch::x86_64::segments::{self, Segments};
use janua_arch::x86_64::{cpu, fpu};
use janua_entry::hosted::USER_END;
use janua_port::Registers;
use janua_port::machine::Fpu;

use crate::sys::{self, nr};
use crate::{boot, compat};

/// Largest XSAVE area passed to guests.
const FPU_MOST: usize = 4096;

#[repr(C, align(64))]
struct FpuArea([u8; FPU_MOST]);

impl FpuArea {
    /// Fills as much of an area as the processor has use for with `start` and then zeroes. What is behind that stays as it is, since nobody
    /// looks at it: clearing it too was a sixth of a signal's time.
    fn fill<'a>(room: &'a mut MaybeUninit<FpuArea>, start: &[u8]) -> &'a mut [u8] {
        let size = size().min(FPU_MOST);
        let len = start.len().min(size);
        let bytes = room.as_mut_ptr().cast::<u8>();
        // SAFETY: bytes of the area, each of which is written before the slice of them is made.
        unsafe {
            bytes.copy_from_nonoverlapping(start.as_ptr(), len);
            bytes.add(len).write_bytes(0, size - len);
            core::slice::from_raw_parts_mut(bytes, size)
        }
    }
}

/// Bytes of the legacy part and the header.
const HEAD: usize = 576;

/// A head that names no component, so that each is put in its initial state.
#[repr(C, align(64))]
struct Initial([u8; HEAD]);

static INITIAL: Initial = {
    let mut head = [0; HEAD];
    // MXCSR's start value, 0x1f80; it is loaded even where the header states "initial".
    (head[24], head[25]) = (0x80, 0x1f);
    Initial(head)
};

/// Components guests may use: everything switched on but PKRU (bit 9), whose value is never taken from memory, and AMX
/// (17, 18), which the host gives only on request.
fn fpu_layout() -> (u64, usize) {
    let mask = cpu::xcr0() & !(1 << 9 | 1 << 17 | 1 << 18);
    let end = (2..63).filter(|bit| mask & (1 << bit) != 0).map(|bit| {
        let [size, offset, ..] = cpu::cpuid(0xd, bit);
        (size + offset) as usize
    });
    (mask, end.fold(HEAD, usize::max))
}

/// XSAVE components guests may use, and the bytes they take in the standard form.
static LAYOUT: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Finds out what there is, once. EOPNOTSUPP when it is larger than this platform has room for.
pub fn find_layout() -> Result<()> {
    let (mask, size) = fpu_layout();
    if size > FPU_MOST {
        return Err(Errno::EOPNOTSUPP);
    }
    LAYOUT[0].store(mask, Ordering::Relaxed);
    LAYOUT[1].store(size as u64, Ordering::Relaxed);
    Ok(())
}

fn components() -> u64 {
    LAYOUT[0].load(Ordering::Relaxed)
}

fn size() -> usize {
    LAYOUT[1].load(Ordering::Relaxed) as usize
}

/// How it is stored.
pub fn layout() -> Fpu {
    Fpu { size: size(), features: components() }
}

fn get_base(what: u32) -> usize {
    let mut base = 0usize;
    // SAFETY: the word is ours.
    let _ = unsafe { sys::raw(nr::ARCH_PRCTL, [what as usize, &raw mut base as usize, 0, 0, 0, 0]) };
    base
}

/// Whether user code may read and set the bases of FS and GS without the host.
pub fn has_base_instructions() -> bool {
    const HWCAP2_FSGSBASE: u64 = 1 << 1;
    boot::info().hwcap[1] & HWCAP2_FSGSBASE != 0
}

/// Those of the calling thread.
pub struct HostedRegisters;

impl Registers for HostedRegisters {
    fn tls(&self) -> usize {
        // SAFETY: the host has reported that the instruction is there.
        if has_base_instructions() { unsafe { segments::fs_base() } } else { get_base(arch::GET_FS) }
    }
    fn set_tls(&self, value: usize) {
        if has_base_instructions() && Segments::current().fs == 0 && value < USER_END {
            // SAFETY: the host has reported that the instruction is there; the base is canonical.
            return unsafe { segments::set_fs_base(value) };
        }
        let _ = sys::words(nr::ARCH_PRCTL, [arch::SET_FS as usize, value, 0, 0, 0, 0]);
    }
    fn gs(&self) -> usize {
        // SAFETY: the host has reported that the instruction is there.
        if has_base_instructions() { unsafe { segments::gs_base() } } else { get_base(arch::GET_GS) }
    }
    fn set_gs(&self, value: usize) {
        if has_base_instructions() && Segments::current().gs == 0 && value < USER_END {
            // SAFETY: the host has reported that the instruction is there; the base is canonical.
            return unsafe { segments::set_gs_base(value) };
        }
        let _ = sys::words(nr::ARCH_PRCTL, [arch::SET_GS as usize, value, 0, 0, 0, 0]);
    }

    fn fpu_save(&self, area: &mut [u8]) {
        let mut room = MaybeUninit::uninit();
        let own = FpuArea::fill(&mut room, &[]);
        // SAFETY: the buffer is aligned, zeroed (so the header is) and as large as the components of the mask need.
        unsafe { fpu::hosted_fpu_store(own.as_mut_ptr(), components()) };
        let len = area.len().min(own.len());
        area[..len].copy_from_slice(&own[..len]);
    }

    fn fpu_restore(&self, area: &[u8]) -> Result<()> {
        if area.len() < 512 {
            return Err(Errno::EINVAL);
        }
        let mut room = MaybeUninit::uninit();
        let own = FpuArea::fill(&mut room, area);
        let whole = area.len().min(own.len()) >= HEAD;
        // MXCSR: reserved bits would fault.
        own[26..28].fill(0);
        let mask = if whole { components() } else { 3 };
        let present = if whole { u64::from_le_bytes(own[512..520].try_into().unwrap_or_default()) } else { 3 };
        own[512..520].copy_from_slice(&(present & mask).to_le_bytes());
        own[520..HEAD].fill(0);
        // SAFETY: aligned, large enough, and the header is clean: only components of the mask, standard form.
        unsafe { fpu::hosted_fpu_load(own.as_ptr(), components()) };
        Ok(())
    }

    fn fpu_restore_part(&self, area: &[u8], mask: u64) -> Result<()> {
        const COMPACTED: u64 = 1 << 63;
        if area.len() < HEAD || area.len() > FPU_MOST {
            return Err(Errno::EINVAL);
        }
        let mut own = FpuArea([0; FPU_MOST]);
        own.0[..area.len()].copy_from_slice(area);
        let word = |at: usize| u64::from_le_bytes(own.0[at..at + 8].try_into().unwrap_or_default());
        let (present, layout) = (word(512), word(520));
        let allowed = if layout & COMPACTED != 0 { layout & !COMPACTED } else { components() };
        let fine = present & !allowed == 0
            && allowed & !components() == 0
            && (layout == 0 || layout & COMPACTED != 0)
            && own.0[528..576].iter().all(|&byte| byte == 0);
        // MXCSR is loaded whenever SSE or AVX is asked for, but from the compacted form only with SSE's own state: `xsavec`
        // leaves the bytes as they were when there is none.
        const SSE: u64 = 1 << 1;
        let loads_mxcsr = layout & COMPACTED == 0 || present & SSE != 0;
        if !fine || loads_mxcsr && own.0[26..28] != [0; 2] {
            return Err(Errno::EINVAL);
        }
        // SAFETY: aligned; the header names only components guests may use, whose bytes are in the buffer in either form, since
        // the compacted one is never longer than the standard one; reserved bits are zero.
        unsafe { fpu::hosted_fpu_load(own.0.as_ptr(), mask & components()) };
        Ok(())
    }

    fn fpu_reset(&self) {
        // SAFETY: aligned, and a header of zeroes means the initial state of every component, of which nothing is read then.
        unsafe { fpu::hosted_fpu_load(INITIAL.0.as_ptr(), components()) };
    }

    fn segments(&self) -> Segments {
        Segments::current()
    }

    fn set_segments(&self, segments: Segments) {
        segments.load();
    }

    fn set_thread_area(&self, descriptor: &UserDesc) -> Result<()> {
        compat::set_thread_area(descriptor)
    }
}
