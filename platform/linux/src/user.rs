//! Guest memory: it is simply there, at the guest's addresses, in the process the thread runs in.

use janua_arch::x86_64::usercopy;
use janua_entry::hosted::{KERNEL_BASE, KERNEL_END, LOW_PAGE, LOW_SIZE, USER_END};
use janua_port::{Fault, UserMemory};

/// The memory of the calling thread's process.
pub struct HostedUser;

/// Whether a range is the guest's: below the end of user space and clear of the kernel's own.
pub fn is_user(addr: usize, len: usize) -> bool {
    match addr.checked_add(len) {
        Some(end) => {
            end <= USER_END && (end <= KERNEL_BASE || addr >= KERNEL_END) && (addr >= LOW_PAGE + LOW_SIZE || end <= LOW_PAGE)
        }
        None => false,
    }
}

impl UserMemory for HostedUser {
    fn is_user(&self, addr: usize, len: usize) -> bool {
        is_user(addr, len)
    }

    fn is_direct(&self, addr: usize, len: usize) -> bool {
        is_user(addr, len)
    }

    fn in_range(&self, addr: usize, len: usize) -> bool {
        addr.checked_add(len).is_some_and(|end| end <= USER_END)
    }

    fn copy_in_partial(&self, dst: &mut [u8], src: usize) -> usize {
        if !is_user(src, dst.len()) {
            return 0;
        }
        // SAFETY: the destination is a slice of ours; the source is guest memory, and a fault there ends the copy (fixup).
        dst.len() - unsafe { usercopy::usercopy_bytes(dst.as_mut_ptr(), src as *const u8, dst.len()) }
    }

    fn copy_out_partial(&self, dst: usize, src: &[u8]) -> usize {
        if !is_user(dst, src.len()) {
            return 0;
        }
        // SAFETY: the source is a slice of ours; the destination is guest memory, which no Rust object is in.
        src.len() - unsafe { usercopy::usercopy_bytes(dst as *mut u8, src.as_ptr(), src.len()) }
    }

    fn zero(&self, dst: usize, len: usize) -> Result<(), Fault> {
        if !is_user(dst, len) {
            return Err(Fault);
        }
        // SAFETY: guest memory, which no Rust object is in; a fault ends the loop.
        if unsafe { usercopy::usercopy_zero(dst as *mut u8, len) } == 0 { Ok(()) } else { Err(Fault) }
    }

    fn copy_str(&self, dst: &mut [u8], src: usize) -> Result<Option<usize>, Fault> {
        // A string may end just before the border, so the range is cut rather than refused.
        let border = [LOW_PAGE, KERNEL_BASE, USER_END].into_iter().find(|border| src < *border);
        let room = border.map_or(0, |border| border - src);
        let most = dst.len().min(room);
        if most == 0 || !is_user(src, most) {
            return Err(Fault);
        }
        // SAFETY: at most `most` bytes are written to the slice and read from guest memory.
        let len = unsafe { usercopy::usercopy_string(dst.as_mut_ptr(), src as *const u8, most) };
        match usize::try_from(len) {
            Err(_) => Err(Fault),
            Ok(len) if len < most => Ok(Some(len)),
            Ok(_) if most < dst.len() => Err(Fault),
            Ok(_) => Ok(None),
        }
    }

    fn load_u32(&self, addr: usize) -> Result<u32, Fault> {
        if !is_user(addr, 4) || !addr.is_multiple_of(4) {
            return Err(Fault);
        }
        let mut value = 0;
        // SAFETY: guest memory read, our own word written.
        if unsafe { usercopy::usercopy_load32(addr, &raw mut value) } == 0 { Ok(value) } else { Err(Fault) }
    }

    fn cmpxchg_u32(&self, addr: usize, old: u32, new: u32) -> Result<u32, Fault> {
        if !is_user(addr, 4) || !addr.is_multiple_of(4) {
            return Err(Fault);
        }
        let mut found = 0;
        // SAFETY: an atomic access to guest memory, which no Rust object is in; our own word is written.
        if unsafe { usercopy::usercopy_cmpxchg32(addr, old, new, 0, &raw mut found) } == 0 { Ok(found) } else { Err(Fault) }
    }
}
