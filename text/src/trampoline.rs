//! Trampolines: what a rewritten site jumps to.
//!
//! ```text
//! Number:  [the site's mov]                Tail:   lea   RETURN(%rip), %rcx
//!          lea   RETURN(%rip), %rcx                movabs $entry, %r11
//!          movabs $entry, %r11                     jmp   *%r11
//!          jmp   *%r11                             syscall
//!                                          RETURN: [the instructions that were moved]
//! (RETURN is behind the site's syscall)            jmp   behind the site
//! ```
//! The entry takes the place to go on at in rcx, which a `syscall` would leave there. The `syscall` before RETURN is never
//! reached in order: it is there because a call that is made again is made by going back two bytes, and then traps.

use alloc::vec::Vec;

use iced_x86::{FlowControl, Instruction, OpKind};

use crate::decode;
use crate::sites::{Form, JUMP, Refusal, Site};

/// Trampolines start at multiples of this.
pub const ALIGN: usize = 16;
/// Most instructions a site moves.
const MOVED: usize = 3;

/// `lea rel32(%rip), %rcx`, `movabs imm64, %r11`, `jmp *%r11`.
const ENTER: usize = 7 + 10 + 3;
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// A rewritten site, for finding out what an address in its trampoline stands for. Addresses are relative to one base for all
/// sites of a file (or are absolute, for single sites).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch {
    pub form: Form,
    /// The first byte overwritten, and how many the trampoline stands for.
    pub start: u64,
    pub len: u8,
    /// The trampoline and its bytes.
    pub trampoline: u64,
    pub size: u8,
    /// Offsets in the trampoline, and from `start`, of each moved instruction (the one that loads the number included), and
    /// last of what comes behind them. Unused places repeat the last.
    marks: [(u8, u8); MOVED + 1],
}

impl Patch {
    /// A trampoline that stands for one instruction as a whole.
    pub fn instruction(start: u64, len: u8, trampoline: u64, size: u8) -> Patch {
        // Nothing in it is behind the instruction.
        let mut marks = [(size, len); MOVED + 1];
        marks[0] = (0, 0);
        Patch { form: Form::Number, start, len, trampoline, size, marks }
    }

    /// The address in the program that an address in the trampoline stands for; `None` outside. The call itself stands for
    /// the site's `syscall` (or for its start, when that is overwritten): executed again it does the same.
    pub fn original(&self, pc: u64) -> Option<u64> {
        let offset = pc.checked_sub(self.trampoline).filter(|&offset| offset < u64::from(self.size))? as u8;
        Some(match self.form {
            Form::Tail if offset < self.marks[0].0 => self.start,
            Form::Number | Form::Tail => {
                let mark = self.marks.iter().rev().find(|mark| mark.0 <= offset).unwrap_or(&self.marks[0]);
                self.start.wrapping_add(u64::from(mark.1))
            }
        })
    }

    /// Whether nothing of the site has been done yet at an address in the trampoline: it stands for the start.
    pub fn is_before(&self, pc: u64) -> bool {
        self.original(pc) == Some(self.start)
    }

    /// The address in the trampoline for an instruction that has moved there; `None` for addresses that are as they were.
    pub fn moved(&self, pc: u64) -> Option<u64> {
        let offset = pc.checked_sub(self.start).filter(|&offset| offset > 0 && offset < u64::from(self.len))? as u8;
        if self.form == Form::Number {
            return None;
        }
        let mark = self.marks.iter().find(|mark| mark.1 == offset)?;
        Some(self.trampoline.wrapping_add(u64::from(mark.0)))
    }

    /// The jump that the site becomes.
    pub fn jump(&self) -> Option<[u8; JUMP]> {
        let [a, b, c, d] = relative(self.trampoline, self.start.wrapping_add(JUMP as u64))?;
        Some([0xe9, a, b, c, d])
    }
}

/// The displacement that leads from the address behind an instruction to a target.
fn relative(target: u64, next: u64) -> Option<[u8; 4]> {
    let distance = target.wrapping_sub(next) as i64;
    Some(i32::try_from(distance).ok()?.to_le_bytes())
}

/// Writes the trampoline for a site of `code`, whose first byte has the address `base`, to be at `at`, a multiple of
/// [`ALIGN`]. The bytes are appended to `out`, filled up to the next multiple.
pub fn build(code: &[u8], base: u64, site: &Site, at: u64, entry: u64, out: &mut Vec<u8>) -> Result<Patch, Refusal> {
    let begin = out.len();
    let result = write(code, base, site, at, entry, out);
    match result {
        Ok(_) => {
            // Breakpoints, as between functions.
            let padding = (out.len() - begin).next_multiple_of(ALIGN) - (out.len() - begin);
            out.extend(core::iter::repeat_n(0xcc, padding));
        }
        Err(_) => out.truncate(begin),
    }
    result
}

fn write(code: &[u8], base: u64, site: &Site, at: u64, entry: u64, out: &mut Vec<u8>) -> Result<Patch, Refusal> {
    let begin = out.len();
    let here = |out: &Vec<u8>| at.wrapping_add((out.len() - begin) as u64);
    let start = base.wrapping_add(site.start as u64);
    let mut marks = [(0, 0); MOVED + 1];
    let mut count = 0;
    let mut mark = |tramp: usize, original: usize| -> Result<(), Refusal> {
        let mark = (u8::try_from(tramp).ok(), u8::try_from(original).ok());
        let (Some(tramp), Some(original)) = mark else { return Err(Refusal::Unmovable) };
        // The last one is repeated in the places that are not used.
        marks.get_mut(count..).filter(|rest| !rest.is_empty()).ok_or(Refusal::Unmovable)?.fill((tramp, original));
        count += 1;
        Ok(())
    };
    let enter = |out: &mut Vec<u8>, target: u64| -> Result<(), Refusal> {
        out.extend_from_slice(&[0x48, 0x8d, 0x0d]);
        let next = here(out).wrapping_add(4);
        out.extend_from_slice(&relative(target, next).ok_or(Refusal::Far)?);
        out.extend_from_slice(&[0x49, 0xbb]);
        out.extend_from_slice(&entry.to_le_bytes());
        out.extend_from_slice(&[0x41, 0xff, 0xe3]);
        Ok(())
    };
    match site.form {
        Form::Number => {
            let mut from = site.start;
            while from < site.call {
                mark(out.len() - begin, from - site.start)?;
                let (instruction, constants) = decode::with_constants(code, base, from).ok_or(Refusal::Unmovable)?;
                let bytes = code.get(from..from + instruction.len()).ok_or(Refusal::Unclear)?;
                copy(&instruction, bytes, constants.displacement_offset(), here(out), out)?;
                from += instruction.len();
            }
            mark(out.len() - begin, site.len)?;
            enter(out, base.wrapping_add(site.call as u64 + 2))?;
        }
        Form::Tail => {
            let back = here(out).wrapping_add((ENTER + SYSCALL.len()) as u64);
            enter(out, back)?;
            out.extend_from_slice(&SYSCALL);
            let mut from = site.call + 2;
            let mut runs_on = true;
            while from < site.start + site.len {
                mark(out.len() - begin, from - site.start)?;
                let (instruction, constants) = decode::with_constants(code, base, from).ok_or(Refusal::Unmovable)?;
                let bytes = code.get(from..from + instruction.len()).ok_or(Refusal::Unmovable)?;
                runs_on = copy(&instruction, bytes, constants.displacement_offset(), here(out), out)?;
                from += instruction.len();
            }
            mark(out.len() - begin, site.len)?;
            if runs_on {
                jump(0xe9, start.wrapping_add(site.len as u64), here(out), out)?;
            }
        }
    }
    let size = u8::try_from(out.len() - begin).map_err(|_| Refusal::Unmovable)?;
    let len = u8::try_from(site.len).map_err(|_| Refusal::Unmovable)?;
    let patch = Patch { form: site.form, start, len, trampoline: at, size, marks };
    patch.jump().ok_or(Refusal::Far)?;
    Ok(patch)
}

fn jump(opcode: u8, target: u64, at: u64, out: &mut Vec<u8>) -> Result<(), Refusal> {
    out.push(opcode);
    out.extend_from_slice(&relative(target, at.wrapping_add(JUMP as u64)).ok_or(Refusal::Far)?);
    Ok(())
}

/// Copies one instruction to `at` so that it does what it did; whether the flow goes on behind it.
fn copy(instruction: &Instruction, bytes: &[u8], displacement: usize, at: u64, out: &mut Vec<u8>) -> Result<bool, Refusal> {
    match instruction.flow_control() {
        FlowControl::UnconditionalBranch => {
            jump(0xe9, instruction.near_branch_target(), at, out)?;
            Ok(false)
        }
        FlowControl::ConditionalBranch => {
            out.push(0x0f);
            out.push(0x80 | condition(bytes).ok_or(Refusal::Unmovable)?);
            out.extend_from_slice(&relative(instruction.near_branch_target(), at.wrapping_add(6)).ok_or(Refusal::Far)?);
            Ok(true)
        }
        flow => {
            let begin = out.len();
            out.extend_from_slice(bytes);
            if instruction.is_ip_rel_memory_operand() {
                let target = instruction.ip_rel_memory_address();
                let next = at.wrapping_add(bytes.len() as u64);
                let field = out.get_mut(begin + displacement..begin + displacement + 4).ok_or(Refusal::Unmovable)?;
                field.copy_from_slice(&relative(target, next).ok_or(Refusal::Far)?);
            } else if matches!(instruction.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64) {
                return Err(Refusal::Unmovable);
            }
            Ok(flow != FlowControl::Return)
        }
    }
}

/// The condition of a conditional jump, short or near, without prefixes other than hints.
fn condition(bytes: &[u8]) -> Option<u8> {
    let bytes = match bytes {
        [0x2e | 0x3e, rest @ ..] => rest,
        bytes => bytes,
    };
    match bytes {
        [opcode @ 0x70..=0x7f, _] => Some(opcode & 15),
        [0x0f, opcode @ 0x80..=0x8f, _, _, _, _] => Some(opcode & 15),
        _ => None,
    }
}
