//! Instructions of the gates' entries that open and close user memory where the processor guards it (SMAP): `janua_entry::bare_guard`
//! notes where they are.

use crate::boot::{DIRECT, physical};

unsafe extern "C" {
    /// Their addresses; from the linker script.
    static guard_sites_start: usize;
    static guard_sites_end: usize;
}

/// Takes out the instructions that a processor without SMAP does not know. Before the kernel's own tables are made, while there is
/// one core.
pub fn init(guarded: bool) {
    /// A `nop` as long as they are.
    const NOTHING: [u8; 3] = [0x0f, 0x1f, 0x00];
    if guarded {
        return;
    }
    // SAFETY: the linker's symbols bound the addresses. Each is of three bytes of this kernel's code, which nobody executes yet; all
    // memory is mapped writable at DIRECT.
    unsafe {
        let (mut site, end) = (&raw const guard_sites_start, &raw const guard_sites_end);
        while site < end {
            ((DIRECT + physical(*site)) as *mut [u8; 3]).write(NOTHING);
            site = site.add(1);
        }
    }
}
