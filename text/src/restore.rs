//! The dynamic linker's return to the caller that has called a function for the first time.
//!
//! When it has found the function it loads the registers of arguments again, the vector registers among them by an `xrstor` that could
//! load the key register as well. Overwritten with an invalid instruction it costs a signal for each function a program
//! calls: tens for a small program, a thousand for Python. glibc's is always the same code, so in a file that is rewritten in any case
//! ([`crate::rewrite`]) it becomes a jump to a trampoline and from there to a routine of the kernel's, in memory that user code can
//! run and not change, which has the same `xrstor` and looks behind it that it was not the key register's.
//!
//! ```text
//! lea  RETURN(%rip), %rcx      RETURN is behind the xrstor; the third load behind it is rcx'
//! jmp  *0(%rip)                flags and all other registers stay
//! .quad ROUTINE
//! ```

use alloc::vec::Vec;

use crate::elf::{Layout, Segment};
use crate::scan;
use crate::sites::JUMP;
use crate::trampoline::{ALIGN, Patch};

/// `xrstor 0x40(%rsp)`.
const RESTORE: [u8; JUMP] = [0x0f, 0xae, 0x6c, 0x24, 0x40];
/// `mov 0x30(%rsp), %r9` and five more, to the one that loads rcx.
const LOADS: [u8; 30] = [
    0x4c, 0x8b, 0x4c, 0x24, 0x30, 0x4c, 0x8b, 0x44, 0x24, 0x28, 0x48, 0x8b, 0x7c, 0x24, 0x20, 0x48, 0x8b, 0x74, 0x24, 0x18,
    0x48, 0x8b, 0x54, 0x24, 0x10, 0x48, 0x8b, 0x4c, 0x24, 0x08,
];
const SIZE: usize = 7 + 6 + 8;

/// Changes such instructions in the code of a file that has been rewritten: `trampolines` are its own, which stay as many pages as
/// they are, `patches` those made so far, `routine` is the kernel's. Where there is no room left the instruction stays.
pub fn rewrite(
    layout: &Layout,
    code: &mut [(Segment, &mut [u8])],
    trampolines: &mut [u8],
    patches: &mut Vec<Patch>,
    routine: u64,
) {
    let first = layout.low.wrapping_sub(trampolines.len() as u64);
    let ends = patches.iter().map(|patch| patch.trampoline.wrapping_sub(first) as usize + usize::from(patch.size));
    let mut used = ends.max().unwrap_or(0);
    for (segment, bytes) in code {
        for at in places(bytes) {
            let begin = used.next_multiple_of(ALIGN);
            let Some(place) = trampolines.get_mut(begin..begin + SIZE) else { return };
            let (start, trampoline) = (segment.vaddr.wrapping_add(at as u64), first.wrapping_add(begin as u64));
            let back = start.wrapping_add(JUMP as u64).wrapping_sub(trampoline.wrapping_add(7)) as i64;
            let patch = Patch::instruction(start, JUMP as u8, trampoline, SIZE as u8);
            let (Ok(back), Some(jump)) = (i32::try_from(back), patch.jump()) else { return };
            place[..3].copy_from_slice(&[0x48, 0x8d, 0x0d]);
            place[3..7].copy_from_slice(&back.to_le_bytes());
            place[7..13].copy_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
            place[13..].copy_from_slice(&routine.to_le_bytes());
            bytes[at..at + JUMP].copy_from_slice(&jump);
            patches.push(patch);
            used = begin + SIZE;
        }
    }
}

/// Where the instruction is among those that follow it there. Eight bytes at a time: its second byte is a rare one.
fn places(code: &[u8]) -> Vec<usize> {
    let words = code.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    let near = words.enumerate().filter(|&(_, word)| scan::has(word, RESTORE[1]) != 0);
    let starts = near.flat_map(|(index, _)| 8 * index..8 * index + 8).filter_map(|second| second.checked_sub(1));
    let is_there = |&at: &usize| code[at..].strip_prefix(&RESTORE).is_some_and(|rest| rest.starts_with(&LOADS));
    starts.filter(is_there).collect()
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn it_is_found_at_every_offset() {
        for at in 0..20 {
            let mut code = vec![0xae; at];
            code.extend(RESTORE.into_iter().chain(LOADS));
            assert_eq!(places(&code), [at]);
            assert_eq!(places(&code[..code.len() - 1]), []);
        }
    }

    #[test]
    fn the_jump_leads_there_and_back() {
        let mut code = vec![0x90; 200];
        code[100..105].copy_from_slice(&RESTORE);
        code[105..135].copy_from_slice(&LOADS);
        // The same instruction among others is none of it.
        code[20..25].copy_from_slice(&RESTORE);
        let segment = Segment { offset: 0, vaddr: 0x1000, len: 200 };
        let layout = Layout { code: vec![segment], low: 0, high: 0x2000, frames: None };
        let mut trampolines = vec![0xcc; 4096];
        let mut patches = Vec::new();
        rewrite(&layout, &mut [(segment, &mut code)], &mut trampolines, &mut patches, 0x6000_1234_5678);
        let [patch] = &patches[..] else { panic!("{patches:?}") };
        assert_eq!((patch.start, patch.original(patch.trampoline + 7)), (0x1064, Some(0x1064)));
        assert_eq!(code[20..25], RESTORE);
        assert_eq!(code[100..105], patch.jump().unwrap());
        let word = |at: usize| i32::from_le_bytes(trampolines[at..at + 4].try_into().unwrap());
        assert_eq!(patch.trampoline.wrapping_add(7).wrapping_add_signed(word(3).into()), 0x1069);
        assert_eq!(trampolines[13..21], 0x6000_1234_5678_u64.to_le_bytes());
        assert_eq!(trampolines[21], 0xcc);
    }
}
