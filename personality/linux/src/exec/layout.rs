//! Where a new program's parts go: stack, mmap base, program, heap; randomised unless personality(2) says otherwise.
//!
//! The stack is mapped at its full size at once (host memory is taken only when a page is touched): the kernel's own copies
//! into a stack page the program has not touched yet must find it mapped, as they would on a kernel that grows stacks by fault.

use janua_object::mm::Mm;
use janua_port::{Machine, PAGE};

/// A stack without a limit gets this.
const MOST_STACK: u64 = 1 << 30;
/// The smallest room for a stack beyond its strings.
const LEAST_STACK: u64 = 128 << 10;
/// Space between the mmap base and the stack at least (Linux: MIN_GAP, 128 MiB).
const LEAST_GAP: usize = 128 << 20;
const GUARD: usize = 1 << 20;

/// Random bits, in pages, as Linux takes them on x86-64.
const STACK_BITS: u32 = 22;
const MMAP_BITS: u32 = 28;
const BRK_BITS: u32 = 13;

/// The same for 32-bit programs, which have less room for chance; and the most their stack gets.
const STACK_BITS_32: u32 = 11;
const MMAP_BITS_32: u32 = 8;
const MOST_STACK_32: u64 = 256 << 20;
/// Where a relocatable 32-bit program is wanted.
const PROGRAM_32: usize = 0x5655_5000;

/// The choices for one program.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Lowest address of the stack and the one behind it.
    pub stack: (usize, usize),
    pub mmap_base: usize,
    /// Where a relocatable program is wanted.
    pub program: usize,
    /// How far behind the program the heap starts, in bytes.
    pub brk_offset: usize,
}

/// The end of user space in processes of a host, and the lowest address that may be meant by it: the host's vDSO, below which guests
/// map, may be a good tebibyte further down.
const TOP: u64 = (1 << 47) - PAGE as u64;
const NEAR_TOP: u64 = 0x7e90_0000_0000;

/// Where Linux puts relocatable programs: at two thirds of all there is, 0x5555_5555_4000. What the kernel keeps at the top counts as
/// well, since sanitizers know the place (docs/layout.md).
fn two_thirds(high: usize) -> usize {
    let all = if (NEAR_TOP..TOP).contains(&(high as u64)) { TOP as usize } else { high };
    (all / 3 * 2) & !(PAGE - 1)
}

/// Where mappings begin, `below` downwards, `chance` bytes or fewer from there. Sanitizers take what is further down than Linux would
/// ever begin for something else.
fn mmap_base(below: usize, chance: usize) -> usize {
    let room = (below as u64).saturating_sub(NEAR_TOP) as usize;
    below.saturating_sub(if room > LEAST_GAP { chance % room } else { chance }) & !(PAGE - 1)
}

impl Layout {
    /// Chooses. `strings` are the bytes of arguments and environment.
    pub fn choose(mm: &Mm, machine: &dyn Machine, stack_limit: u64, strings: usize, random: bool) -> Layout {
        let mut bytes = [0; 32];
        if random {
            machine.random(&mut bytes);
        }
        let (words, _) = bytes.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_ne_bytes(*word));
        let mut pages = |bits: u32| (words.next().unwrap_or(0) & ((1 << bits) - 1)) as usize * PAGE;
        let high = mm.bounds().high & !(PAGE - 1);
        let narrow = u32::try_from(high).is_ok();
        let (stack_bits, mmap_bits, most_stack) =
            if narrow { (STACK_BITS_32, MMAP_BITS_32, MOST_STACK_32) } else { (STACK_BITS, MMAP_BITS, MOST_STACK) };
        let top = high - pages(stack_bits);
        let size = stack_limit.min(most_stack).max(LEAST_STACK + strings as u64) as usize & !(PAGE - 1);
        let bottom = top - size;
        let gap = (high - bottom + GUARD).max(LEAST_GAP);
        Layout {
            stack: (bottom, top),
            mmap_base: mmap_base(high - gap, pages(mmap_bits)),
            program: if narrow { PROGRAM_32 } else { two_thirds(high) } + pages(mmap_bits),
            brk_offset: pages(BRK_BITS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_mappings_begin_where_linux_has_them() {
        assert_eq!(two_thirds(TOP as usize), 0x5555_5555_4000);
        assert_eq!(two_thirds(0x7eff_1234_5000), 0x5555_5555_4000);
        assert_eq!(two_thirds(0x3fff_ffff_f000), 0x2aaa_aaaa_a000);
        for below in [0x7fff_f000_0000, 0x7efb_0000_0000, 0x7f12_3456_7000] {
            for chance in [0, 4096, 0xff_ffff_f000] {
                let base = mmap_base(below, chance);
                assert!((NEAR_TOP as usize..=below).contains(&base), "{below:#x} {chance:#x}: {base:#x}");
            }
        }
        // Not a machine of that kind.
        assert_eq!(mmap_base(0x3fff_0000_0000, 0x1000_0000), 0x3ffe_f000_0000);
    }
}
