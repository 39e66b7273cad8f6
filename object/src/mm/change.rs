//! mprotect(2), and names for anonymous memory.

use alloc::sync::Arc;

use janua_abi::linux::mman::*;
use janua_abi::linux::process::rlimit;
use janua_abi::linux::{Errno, Result};
use janua_port::Prot;

use super::jail::Change;
use super::vma::{Source, VmFlags, Vma};
use super::{Limits, MAX_MAP_COUNT, Mm};

impl Mm {
    /// Changes access rights. `grows_down` (PROT_GROWSDOWN) extends the range to the start of its mapping, which is the program's stack or grows as that
    /// does on Linux. ENOMEM for a hole,
    /// EACCES when a mapping may not have the rights; what is before the failure is changed.
    pub fn protect(&self, addr: usize, len: usize, prot: Prot, grows_down: bool, limits: &Limits) -> Result<()> {
        if !addr.is_multiple_of(PAGE_SIZE) {
            return Err(Errno::EINVAL);
        }
        if len == 0 {
            return Ok(());
        }
        let (mut start, end) = self.range(addr, len).map_err(|_| Errno::ENOMEM)?;
        let stack = self.image.read().start_stack;
        let mut state = self.lock_state();
        if grows_down {
            let (begin, vma) = state.list.find(start).ok_or(Errno::ENOMEM)?;
            let is_stack = matches!(vma.source, Source::Anon(None)) && (begin..vma.end).contains(&stack);
            if !is_stack && !vma.flags.contains(VmFlags::GROWSDOWN) {
                return Err(Errno::EINVAL);
            }
            start = begin;
        }
        if state.list.len() + state.list.cuts(start, end) > MAX_MAP_COUNT {
            return Err(Errno::ENOMEM);
        }
        // How far the range is mapped and may have the rights.
        let mut at = start;
        let mut refusal = None;
        let mut newly_data = 0;
        let mut newly_charged = [0; 2];
        for (begin, vma) in state.list.touching(start, end) {
            if begin > at {
                break;
            }
            if vma.is_jails() {
                refusal = Some(Errno::EACCES);
                break;
            }
            let want = VmFlags::empty().with_prot(prot);
            let may = VmFlags::from_bits_truncate((vma.flags & VmFlags::MAY_ALL).bits() >> 4);
            if !may.contains(want) || self.refuses_exec(vma.flags, want) {
                refusal = Some(Errno::EACCES);
                break;
            }
            let after = Vma { flags: vma.flags.with_prot(prot).with_charge(), ..vma.clone() };
            if after.flags.contains(VmFlags::CHARGED) && !vma.flags.contains(VmFlags::CHARGED) {
                newly_charged[usize::from(vma.flags.contains(VmFlags::NORESERVE))] += vma.end.min(end) - at;
            }
            if after.is_data() && !vma.is_data() {
                newly_data += vma.end.min(end) - at;
            }
            at = vma.end.min(end);
        }
        if refusal.is_none() && at < end {
            refusal = Some(Errno::ENOMEM);
        }
        if newly_data > 0 {
            let flags = VmFlags::empty().with_prot(prot);
            let data_only = Limits { address_space: rlimit::INFINITY, ..*limits };
            state.check_growth(&data_only, flags, newly_data, 0)?;
        }
        state.paid.pay(newly_charged[0], false)?;
        state.paid.pay(newly_charged[1], true)?;
        if at > start {
            self.changes(&mut state, start, at, Change::Rights(prot))?;
            self.space.protect(start, at - start, prot)?;
            state.list.change(start, at, |vma| vma.flags = vma.flags.with_prot(prot).with_charge());
        }
        refusal.map_or(Ok(()), Err)
    }

    /// Names anonymous memory (PR_SET_VMA_ANON_NAME); `None` takes the name away. ENOMEM for a hole, EBADF for a file.
    pub fn set_anon_name(&self, addr: usize, len: usize, name: Option<Arc<[u8]>>) -> Result<()> {
        let (start, end) = self.range(addr, len)?;
        if start == end {
            return Ok(());
        }
        let mut state = self.lock_state();
        if !state.list.is_covered(start, end) || state.list.len() + state.list.cuts(start, end) > MAX_MAP_COUNT {
            return Err(Errno::ENOMEM);
        }
        if state.list.touching(start, end).any(|(_, vma)| !vma.is_anon()) {
            return Err(Errno::EBADF);
        }
        state.list.change(start, end, |vma| vma.source = Source::Anon(name.clone()));
        Ok(())
    }
}
