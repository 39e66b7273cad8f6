//! Which cores there are, from the ACPI tables (ACPI 6.5, 5.2): the MADT lists their local APICs.

use crate::boot::DIRECT;
use crate::core::MOST;

/// Tables above this are not mapped when they are read.
const REACH: usize = 4 << 30;
/// Where firmware leaves the root pointer when nobody passes it.
const LOW: core::ops::Range<usize> = 0xe_0000..0x10_0000;

/// A range of physical memory. Empty when it is not within reach.
fn bytes(address: usize, len: usize) -> &'static [u8] {
    if address == 0 || address.checked_add(len).is_none_or(|end| end > REACH) {
        return &[];
    }
    // SAFETY: the first 4 GiB are mapped at DIRECT; the tables are firmware's, and nobody changes them.
    unsafe { core::slice::from_raw_parts((DIRECT + address) as *const u8, len) }
}

fn number(bytes: &[u8], at: usize, len: usize) -> usize {
    bytes.get(at..at + len).map_or(0, |bytes| bytes.iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte)))
}

fn is_sound(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)) == 0
}

/// A table with its header, when its checksum is right.
fn table(address: usize) -> Option<&'static [u8]> {
    let len = number(bytes(address, 36), 4, 4);
    let table = bytes(address, len);
    (len >= 36 && is_sound(table)).then_some(table)
}

fn is_root(address: usize) -> bool {
    let root = bytes(address, 20);
    root.starts_with(b"RSD PTR ") && is_sound(root)
}

/// The MADT.
fn madt(rsdp: usize) -> Option<&'static [u8]> {
    let rsdp = if is_root(rsdp) { rsdp } else { LOW.step_by(16).find(|at| is_root(*at))? };
    let root = bytes(rsdp, 36);
    // Revision 2 has the list with addresses of 64 bits.
    let extended = if number(root, 15, 1) >= 2 { number(root, 24, 8) } else { 0 };
    let (list, width) = match table(extended) {
        Some(list) => (list, 8),
        None => (table(number(root, 16, 4))?, 4),
    };
    list[36..].chunks_exact(width).filter_map(|entry| table(number(entry, 0, width))).find(|table| table.starts_with(b"APIC"))
}

/// The local APICs of the cores that can be used, and how many.
pub struct Cores {
    ids: [u32; MOST],
    count: usize,
}

impl Cores {
    /// Those the tables list; none when there are no tables.
    pub fn find(rsdp: usize) -> Cores {
        let mut cores = Cores { ids: [0; MOST], count: 0 };
        let mut rest = madt(rsdp).and_then(|table| table.get(44..)).unwrap_or_default();
        while let [kind, len, ..] = *rest
            && len >= 2
            && usize::from(len) <= rest.len()
        {
            const LOCAL: u8 = 0;
            const USABLE: usize = 1;
            if kind == LOCAL && number(rest, 4, 4) & USABLE != 0 && cores.count < MOST {
                cores.ids[cores.count] = u32::from(rest[3]);
                cores.count += 1;
            }
            rest = &rest[usize::from(len)..];
        }
        cores
    }

    /// The numbers by which interrupts find them.
    pub fn ids(&self) -> &[u32] {
        &self.ids[..self.count]
    }
}
