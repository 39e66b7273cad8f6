//! What a file describes of its code for unwinders (.eh_frame, by way of the sorted table of .eh_frame_hdr).
//!
//! An unwinder that comes to the return from a signal handler has to know it for one, because the frame above looks like no other. Where the
//! file states it (augmentation `S`: glibc's `__restore_rt`) it asks nothing else; elsewhere it looks at the instructions
//! (gcc's linux-unwind.h, LLVM's and others), which then must stay.
//!
//! Only the encodings that linkers write are read: pc-relative and table-relative words of 32 bits. Sources: Linux Standard Base, Core
//! Generic 5.0, 10.6; gcc's unwind-dw2-fde-dip.c.

use janua_abi::linux::Errno;

use crate::elf::{Layout, Segment};

/// Fills the bytes from an offset of the file on.
pub type Read<'a> = dyn FnMut(&mut [u8], u64) -> Result<(), Errno> + 'a;

/// DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_udata4, DW_EH_PE_datarel | DW_EH_PE_sdata4.
const FROM_HERE: u8 = 0x1b;
const NUMBER: u8 = 0x03;
const FROM_TABLE: u8 = 0x3b;
/// Bytes before the table's entries, and of one.
const HEADER: u64 = 12;
const ENTRY: u64 = 8;

/// Whether unwinders are informed that code which returns to `address`, of the file's own addresses, is a signal's.
pub fn is_signal_frame(layout: &Layout, address: u64, read: &mut Read) -> bool {
    let Some((table, segment)) = layout.frames else { return false };
    // They look for the instruction before a return address.
    Frames { table, segment, read }.is_signal(address.wrapping_sub(1)).unwrap_or(false)
}

struct Frames<'a, 'b> {
    table: u64,
    segment: Segment,
    read: &'a mut Read<'b>,
}

impl Frames<'_, '_> {
    fn bytes<const N: usize>(&mut self, at: u64) -> Option<[u8; N]> {
        let inside = at.wrapping_sub(self.segment.vaddr);
        let mut bytes = [0; N];
        if inside.checked_add(N as u64)? > self.segment.len {
            return None;
        }
        (self.read)(&mut bytes, self.segment.offset.checked_add(inside)?).ok()?;
        Some(bytes)
    }

    fn word(&mut self, at: u64) -> Option<u32> {
        self.bytes(at).map(u32::from_le_bytes)
    }

    /// A word at `at` that counts from `base`.
    fn address(&mut self, at: u64, base: u64) -> Option<u64> {
        Some(base.wrapping_add_signed(i64::from(self.word(at)? as i32)))
    }

    /// The description (FDE) of what holds `pc`, by the table.
    fn find(&mut self, pc: u64) -> Option<u64> {
        let [version, _, count, entries] = self.bytes(self.table)?;
        if (version, count, entries) != (1, NUMBER, FROM_TABLE) {
            return None;
        }
        let (mut low, mut high) = (0, u64::from(self.word(self.table.checked_add(8)?)?));
        while low < high {
            let middle = (low + high) / 2;
            let entry = self.table.checked_add(HEADER + middle * ENTRY)?;
            if self.address(entry, self.table)? <= pc { low = middle + 1 } else { high = middle }
        }
        let entry = self.table.checked_add(HEADER + low.checked_sub(1)? * ENTRY + 4)?;
        self.address(entry, self.table)
    }

    fn is_signal(&mut self, pc: u64) -> Option<bool> {
        let fde = self.find(pc)?;
        // Length, then how far back what it has in common with others (CIE) is.
        let back = fde.checked_add(4)?;
        let common = back.checked_sub(u64::from(self.word(back)?))?;
        let begin = fde.checked_add(8)?;
        let start = self.address(begin, begin)?;
        let len = u64::from(self.word(fde.checked_add(12)?)?);
        // Its length, 0, version 1, and "zRS" with the end: code factor 1, data factor and return address in a byte each, then the length
        // of what `R` brings.
        let head: [u8; 17] = self.bytes(common)?;
        let is_signal = head[4..13] == *b"\0\0\0\0\x01zRS\0" && head[16] == 1;
        let [encoding] = self.bytes(common.checked_add(17)?)?;
        Some(is_signal && encoding == FROM_HERE && pc.wrapping_sub(start) < len)
    }
}
