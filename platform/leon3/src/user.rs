//! User memory: reached with the user's rights, so a check of the range only saves faults.

use janua_arch::sparc::usercopy;
use janua_port::{Fault, UserMemory};

use crate::tables::{HIGH, LOW};

/// The memory of the space in use.
pub struct Memory;

impl UserMemory for Memory {
    fn is_user(&self, addr: usize, len: usize) -> bool {
        addr >= LOW && addr.checked_add(len).is_some_and(|end| end <= HIGH)
    }

    fn copy_in_partial(&self, dst: &mut [u8], src: usize) -> usize {
        if !self.is_user(src, dst.len()) {
            return 0;
        }
        // SAFETY: the destination is a slice of ours.
        dst.len() - unsafe { usercopy::usercopy_in(dst.as_mut_ptr(), src, dst.len()) }
    }

    fn copy_out_partial(&self, dst: usize, src: &[u8]) -> usize {
        if !self.is_user(dst, src.len()) {
            return 0;
        }
        // SAFETY: the source is a slice of ours.
        src.len() - unsafe { usercopy::usercopy_out(dst, src.as_ptr(), src.len()) }
    }

    fn load_u32(&self, addr: usize) -> Result<u32, Fault> {
        if addr % 4 != 0 {
            return Err(Fault);
        }
        let mut word = [0; 4];
        self.copy_in(&mut word, addr)?;
        Ok(u32::from_be_bytes(word))
    }

    fn cmpxchg_u32(&self, addr: usize, old: u32, new: u32) -> Result<u32, Fault> {
        if addr % 4 != 0 || !self.is_user(addr, 4) {
            return Err(Fault);
        }
        let mut found = 0;
        // SAFETY: the address is aligned, the word ours.
        if unsafe { usercopy::usercopy_cmpxchg32(addr, old, new, &raw mut found) } == 0 { Ok(found) } else { Err(Fault) }
    }
}
