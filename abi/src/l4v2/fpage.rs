//! Flexpages: ranges of an address space, a power of two long and as well aligned.

use core::ops::Range;

use super::PAGE;

/// A flexpage as the word that stands for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fpage(pub u32);

/// The least and the greatest size, as powers of two.
const PAGE_SHIFT: u32 = 12;
const WHOLE_SHIFT: u32 = 32;

impl Fpage {
    /// The whole address space.
    pub const WHOLE: Fpage = Fpage(WHOLE_SHIFT << 2);

    /// `1 << shift` bytes at an address, which is aligned down to that.
    pub const fn new(addr: u32, shift: u32, write: bool, grant: bool) -> Fpage {
        Fpage(addr & !(PAGE - 1) | shift << 2 | (write as u32) << 1 | grant as u32)
    }

    /// The sender loses what the receiver gets.
    pub const fn grant(self) -> bool {
        self.0 & 1 != 0
    }

    /// The right to write goes with it.
    pub const fn write(self) -> bool {
        self.0 & 2 != 0
    }

    const fn shift(self) -> u32 {
        self.0 >> 2 & 0x3f
    }

    /// Its addresses; `None` for a word that is no flexpage of memory.
    pub const fn range(self) -> Option<Range<u64>> {
        let shift = self.shift();
        if shift < PAGE_SHIFT || shift > WHOLE_SHIFT {
            return None;
        }
        let size = 1u64 << shift;
        let start = (self.0 & !(PAGE - 1)) as u64 & !(size - 1);
        Some(start..start + size)
    }
}

/// What of a flexpage goes where: pages from `source` on for `len` bytes appear at `target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub source: u64,
    pub target: u64,
    pub len: u64,
}

/// Where a flexpage that is sent comes to lie in the receiver's, which may be larger or smaller: `base` selects the part of the larger one.
/// `None` when one of them is none.
pub fn window(sent: Fpage, received: Fpage, base: u32) -> Option<Window> {
    let (sent, received) = (sent.range()?, received.range()?);
    let base = u64::from(base & !(PAGE - 1));
    let (from, to) = (sent.end - sent.start, received.end - received.start);
    if to >= from {
        let inside = base & (to - 1);
        // A base that is not aligned to what is sent may reach out of what is received.
        return Some(Window { source: sent.start, target: received.start + inside, len: from.min(to - inside) });
    }
    let inside = base & (from - 1);
    Some(Window { source: sent.start + inside, target: received.start, len: to.min(from - inside) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEG: u32 = 1 << 20;

    #[test]
    fn sizes_are_powers_of_two_from_a_page_on() {
        assert_eq!(Fpage::new(0x1234_5678, 12, true, false).range(), Some(0x1234_5000..0x1234_6000));
        assert_eq!(Fpage::new(0x1234_5678, 22, true, false).range(), Some(0x1200_0000..0x1240_0000));
        assert_eq!(Fpage::WHOLE.range(), Some(0..1 << 32));
        assert_eq!(Fpage(0).range(), None);
        assert_eq!(Fpage(11 << 2).range(), None);
        assert_eq!(Fpage(33 << 2).range(), None);
    }

    #[test]
    fn a_page_for_a_whole_space_is_where_the_base_says() {
        let page = Fpage::new(0x20_0000, 12, false, false);
        let there = Window { source: 0x20_0000, target: 0x40_3000, len: 4096 };
        assert_eq!(window(page, Fpage::WHOLE, 0x40_3fff), Some(there));
    }

    #[test]
    fn the_larger_one_is_cut_by_the_base() {
        let (large, small) = (Fpage::new(16 * MEG, 22, true, false), Fpage::new(MEG, 13, true, false));
        let cut = Window { source: u64::from(16 * MEG) + 0x3000, target: u64::from(MEG), len: 0x2000 };
        assert_eq!(window(large, small, 0x3000), Some(cut));
        let placed = Window { source: u64::from(MEG), target: u64::from(16 * MEG) + 0x4000, len: 0x2000 };
        assert_eq!(window(small, large, 0x4000), Some(placed));
    }

    #[test]
    fn nothing_is_outside_of_either() {
        let (large, small) = (Fpage::new(16 * MEG, 22, true, false), Fpage::new(MEG, 20, true, false));
        for base in (0..8 * MEG).step_by(4096) {
            for (sent, received) in [(large, small), (small, large), (small, small), (large, large)] {
                let window = window(sent, received, base).unwrap();
                let (from, to) = (sent.range().unwrap(), received.range().unwrap());
                assert!(window.source >= from.start && window.source + window.len <= from.end);
                assert!(window.target >= to.start && window.target + window.len <= to.end);
                assert!(window.len > 0);
            }
        }
    }
}
