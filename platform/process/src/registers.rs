//! A guest thread's registers beyond its frame: the host keeps them with its host thread, and hands them out while that is stopped.

use alloc::boxed::Box;

use janua_abi::linux::i386::UserDesc;
use janua_abi::linux::i386::process::FIRST_THREAD_AREA;
use janua_abi::linux::{Errno, Result};
use janua_arch::Segments;
use janua_platform_linux::registers;
use janua_port::Registers;

use crate::context::ProcessContext;
use crate::tracee::{Lost, Regs, XSTATE_MOST};

/// Where the area's header begins, which names the components there are.
const HEADER: usize = 512;
/// And ends.
const BODY: usize = 576;
/// x87 and SSE.
const LEGACY: u64 = 3;

impl ProcessContext {
    /// Changes the vector and floating-point registers.
    fn change_fpu(&self, change: impl FnOnce(&mut [u8])) -> Result<()> {
        let mut area = Box::new([0; XSTATE_MOST]);
        let mut tracee = self.0.tracee.lock();
        let len = tracee.xstate(&mut area)?;
        change(&mut area[..len]);
        tracee.set_xstate(&area[..len])
    }
}

fn components(area: &[u8]) -> u64 {
    area.get(HEADER..HEADER + 8).and_then(|word| word.try_into().ok()).map_or(LEGACY, u64::from_le_bytes)
}

impl Registers for ProcessContext {
    fn tls(&self) -> usize {
        self.0.tracee.lock().regs().map_or(0, |regs| regs.fs_base as usize)
    }
    fn set_tls(&self, value: usize) {
        if let Ok(regs) = self.0.tracee.lock().regs() {
            (regs.fs, regs.fs_base) = (0, value as u64);
        }
    }
    fn gs(&self) -> usize {
        self.0.tracee.lock().regs().map_or(0, |regs| regs.gs_base as usize)
    }
    fn set_gs(&self, value: usize) {
        if let Ok(regs) = self.0.tracee.lock().regs() {
            (regs.gs, regs.gs_base) = (0, value as u64);
        }
    }

    fn fpu_save(&self, out: &mut [u8]) {
        let mut area = Box::new([0; XSTATE_MOST]);
        let Ok(have) = self.0.tracee.lock().xstate(&mut area) else { return out.fill(0) };
        // Words of the host's own behind the registers of old.
        area[464..HEADER].fill(0);
        let known = components(&*area) & registers::layout().features;
        area[HEADER..HEADER + 8].copy_from_slice(&known.to_le_bytes());
        let len = out.len().min(registers::layout().size).min(have);
        out[..len].copy_from_slice(&area[..len]);
    }

    fn fpu_restore(&self, area: &[u8]) -> Result<()> {
        if area.len() < HEADER {
            return Err(Errno::EINVAL);
        }
        let whole = area.len() >= BODY;
        let may = if whole { registers::layout().features } else { LEGACY };
        self.change_fpu(|own| {
            let kept = components(own) & !registers::layout().features;
            let len = area.len().min(own.len()).min(registers::layout().size);
            own[..len].copy_from_slice(&area[..len]);
            // MXCSR: reserved bits would be refused.
            own[26..28].fill(0);
            let present = if whole { components(own) & may } else { LEGACY };
            own[HEADER..BODY].fill(0);
            own[HEADER..HEADER + 8].copy_from_slice(&(present | kept).to_le_bytes());
        })
    }

    fn fpu_reset(&self) {
        // The area is the host's own, changed only to what every processor starts with.
        let _ = self.change_fpu(|own| {
            let kept = components(own) & !registers::layout().features;
            own[..BODY].fill(0);
            own[..2].copy_from_slice(&0x37fu16.to_le_bytes());
            own[24..28].copy_from_slice(&0x1f80u32.to_le_bytes());
            own[HEADER..HEADER + 8].copy_from_slice(&(LEGACY | kept).to_le_bytes());
        });
    }

    fn segments(&self) -> Segments {
        let of = |regs: &mut Regs| Segments { ds: regs.ds as u16, es: regs.es as u16, fs: regs.fs as u16, gs: regs.gs as u16 };
        self.0.tracee.lock().regs().map_or_else(|Lost| Segments::default(), of)
    }

    fn set_segments(&self, segments: Segments) {
        let mut tracee = self.0.tracee.lock();
        let Ok(regs) = tracee.regs() else { return };
        let user = |selector: u16| if selector == 0 { 0 } else { u64::from(selector | 3) };
        (regs.ds, regs.es) = (user(segments.ds), user(segments.es));
        (regs.fs, regs.gs) = (user(segments.fs), user(segments.gs));
    }

    fn set_thread_area(&self, descriptor: &UserDesc) -> Result<()> {
        let place = descriptor.entry.wrapping_sub(FIRST_THREAD_AREA) as usize;
        let mut areas = self.0.areas.lock();
        let area = areas.get_mut(place).ok_or(Errno::EINVAL)?;
        let mut tracee = self.0.tracee.lock();
        tracee.set_thread_area(descriptor.entry, core::ptr::from_ref(descriptor) as usize)?;
        *area = Some(*descriptor);
        // Who has its selector already goes on with its base, which the processor would otherwise take when the selector is loaded.
        if let Ok(regs) = tracee.regs() {
            let selector = u64::from(descriptor.entry) << 3 | 3;
            for (register, base) in [(regs.fs, &mut regs.fs_base), (regs.gs, &mut regs.gs_base)] {
                if register == selector {
                    *base = u64::from(descriptor.base);
                }
            }
        }
        Ok(())
    }
}
