//! Finding call sites, and judging whether they can be rewritten.
//!
//! Two forms are rewritten. [`Form::Number`]: the number is loaded by a `mov` just before the `syscall`; five bytes of the
//! `mov` become the jump, the `syscall` stays. A thread between the two, and code that jumps straight to the `syscall`, do what
//! they always did. So do they where a `lea` or a copy of a register is between the two: it stays as well, and the trampoline has a copy. The same is done with
//! any move just before the `syscall` that a jump fits in, wherever the number comes from. [`Form::Tail`]: the `syscall` and what follows it become the
//! jump, and what followed runs in the trampoline. That takes more certainty: nothing may jump to what has moved. Every direct jump and call of the segment is
//! looked at; against jumps through tables, the first instruction moved must be one that looks at the call's result, which no
//! other way leads to than one that has a result.

use alloc::vec::Vec;

use iced_x86::{Code, FlowControl, Instruction, Mnemonic, OpKind, Register, RflagsBits};
use janua_arch::x86_64::search;

use crate::decode::{self, Before, Boundary, LONGEST, Lengths};

/// Bytes of `jmp rel32`.
pub const JUMP: usize = 5;
/// The bytes of a site are at most so far from its call, on either side: an instruction and what is between it and the call, or the
/// call and what it moves.
pub const SPAN: usize = 2 * LONGEST;
/// How far back decoding starts to find boundaries.
const BACK: usize = 64;
/// The same when short jumps have to be found.
const BACK_SHORT: usize = 240;
/// How far a short jump reaches, with the longest instruction that may be in between.
const SHORT: usize = 130;
/// How many instructions behind a call are looked at for flags.
const LOOK_AHEAD: usize = 12;
/// rt_sigreturn(2): unwinders know the place it is made from by its bytes.
const RT_SIGRETURN: u64 = 15;

/// How a site is rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The instruction that loads the number is overwritten, or another before the `syscall`.
    Number,
    /// The `syscall` itself and what follows are.
    Tail,
}

/// Why a site stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Refusal {
    /// The bytes before it can be read in more than one way.
    Unclear,
    /// The return from a signal handler, which debuggers and unwinders know by its bytes.
    SignalReturn,
    /// What follows does not look at the result, so that it might be jumped to through a table.
    Unrelated,
    /// What follows cannot run elsewhere (calls, loops, another call of the kernel).
    Unmovable,
    /// What follows looks at flags from before the call, which a rewritten call does not keep.
    Flags,
    /// What follows is jumped to.
    JumpedTo,
    /// The trampoline would be too far away.
    Far,
    /// Other threads may be running there.
    Threads,
    /// The memory cannot be changed safely.
    Memory,
}

impl Refusal {
    /// How many reasons there are.
    pub const COUNT: usize = 9;
    /// All of them, by number.
    pub const ALL: [Refusal; Refusal::COUNT] = [
        Refusal::Unclear,
        Refusal::SignalReturn,
        Refusal::Unrelated,
        Refusal::Unmovable,
        Refusal::Flags,
        Refusal::JumpedTo,
        Refusal::Far,
        Refusal::Threads,
        Refusal::Memory,
    ];

    /// A few words for `--stats`.
    pub fn text(self) -> &'static str {
        match self {
            Refusal::Unclear => "unclear instruction boundaries",
            Refusal::SignalReturn => "return from a signal handler",
            Refusal::Unrelated => "what follows does not look at the result",
            Refusal::Unmovable => "what follows cannot be moved",
            Refusal::Flags => "flags from before the call are used after it",
            Refusal::JumpedTo => "what follows is jumped to",
            Refusal::Far => "too far from a trampoline",
            Refusal::Threads => "other threads may be running there",
            Refusal::Memory => "memory that may change",
        }
    }
}

/// A site that can be rewritten. Offsets are into the segment's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    pub form: Form,
    /// The first byte overwritten.
    pub start: usize,
    /// The bytes whose instructions the trampoline does instead: at least [`JUMP`].
    pub len: usize,
    /// The `syscall` instruction.
    pub call: usize,
}

/// What a search found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// By address.
    pub sites: Vec<Site>,
    /// Sites that stay, by [`Refusal`].
    pub refused: [u32; Refusal::COUNT],
    /// Those among them that return from signal handlers, as they would be rewritten: [`Found::take_returns`].
    returns: Vec<Site>,
}

impl Found {
    /// What moves may reach into the next site: to the end of the instruction that loads its number. A jump for each has no place there, so
    /// that the first call stays as it is.
    fn refuse_overlaps(&mut self) {
        let mut starts: Vec<usize> = self.sites.iter().chain(&self.returns).map(|site| site.start).collect();
        starts.sort_unstable();
        let before = self.sites.len();
        self.sites.retain(|site| {
            let next = starts.get(starts.partition_point(|&start| start <= site.start));
            next.is_none_or(|&next| next >= site.start + site.len)
        });
        self.refused[Refusal::Unmovable as usize] += (before - self.sites.len()) as u32;
    }

    /// Has the returns from signal handlers rewritten for which `known` is true: unwinders know them otherwise than by their bytes.
    pub fn take_returns(&mut self, mut known: impl FnMut(&Site) -> bool) {
        for site in core::mem::take(&mut self.returns) {
            if known(&site) {
                let at = self.sites.partition_point(|other| other.start < site.start);
                self.sites.insert(at, site);
                self.refused[Refusal::SignalReturn as usize] -= 1;
            }
        }
    }
}

/// Searches a whole executable segment.
pub fn find(code: &[u8]) -> Found {
    let mut found = Found::default();
    for at in calls(code) {
        match judge(code, Place::Whole, at) {
            Some(Ok(site)) => found.sites.push(site),
            Some(Err(refusal)) => {
                found.refused[refusal as usize] += 1;
                found.returns.extend(signal_return(code, at).filter(|_| refusal == Refusal::SignalReturn));
            }
            None => {}
        }
    }
    found.refuse_overlaps();
    let moved: Vec<(usize, usize)> =
        found.sites.iter().filter(|site| site.form == Form::Tail).map(|site| (site.start, site.len)).collect();
    if !moved.is_empty() {
        let mut hit = alloc::vec![false; moved.len()];
        near_jumps(code, &moved, &mut hit);
        let mut hits = moved.iter().zip(&hit).filter(|(_, hit)| **hit).map(|(window, _)| window.0).peekable();
        let before = found.sites.len();
        found.sites.retain(|site| {
            let is_hit = site.form == Form::Tail && hits.peek() == Some(&site.start);
            if is_hit {
                hits.next();
            }
            !is_hit
        });
        found.refused[Refusal::JumpedTo as usize] += (before - found.sites.len()) as u32;
    }
    found
}

/// The site of a return from a signal handler, if the jump has room in the instruction just before the call.
fn signal_return(code: &[u8], call: usize) -> Option<Site> {
    let start = Place::Whole.before(code, call, BACK).previous(call)?;
    let loads = decode::at(code, 0, start)?;
    let fits = loaded_number(&loads) == Some(RT_SIGRETURN) && loads.len() >= JUMP;
    fits.then_some(Site { form: Form::Number, start, len: call - start, call })
}

/// Judges the one site at `at`, where a `syscall` was executed, with `code` around it as far as it is known. A `Tail` is
/// checked against the direct jumps of all of `code`.
pub fn find_at(code: &[u8], at: usize) -> Result<Site, Refusal> {
    let site = judge(code, Place::Executed, at).unwrap_or(Err(Refusal::Unclear))?;
    if site.form == Form::Tail {
        let mut hit = [false];
        near_jumps(code, &[(site.start, site.len)], &mut hit);
        if hit[0] {
            return Err(Refusal::JumpedTo);
        }
    }
    Ok(site)
}

/// The offsets of the bytes 0f 05.
fn calls(code: &[u8]) -> impl Iterator<Item = usize> {
    let mut at = 0;
    // Marks of the word that ends at `at`, in the highest bit of each byte.
    let mut marks = 0u64;
    core::iter::from_fn(move || {
        loop {
            if marks != 0 {
                let found = at - 8 + marks.trailing_zeros() as usize / 8;
                marks &= marks - 1;
                return Some(found);
            }
            match (word(code, at), word(code, at + 1)) {
                (Some(first), Some(second)) => {
                    marks = zero_bytes(first ^ (0x0f * ONES)) & zero_bytes(second ^ (0x05 * ONES));
                    at += 8;
                }
                _ => {
                    let rest = code.get(at..)?;
                    let found = rest.windows(2).position(|pair| pair == [0x0f, 0x05])?;
                    at += found + 1;
                    return Some(at - 1);
                }
            }
        }
    })
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// The highest bit of each byte that is zero.
fn zero_bytes(word: u64) -> u64 {
    !((word & !HIGHS).wrapping_add(!HIGHS) | word | !HIGHS)
}

fn word(code: &[u8], at: usize) -> Option<u64> {
    let bytes = code.get(at..at + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// What is known of a place in code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The code is a segment from its beginning.
    Whole,
    /// The call has been made.
    Executed,
}

impl Place {
    fn before(self, code: &[u8], call: usize, span: usize) -> Before {
        match self {
            Place::Whole => Before::new(code, true, call, span),
            Place::Executed => Before::executed(code, call, span),
        }
    }
}

/// `None`: the bytes at `call` are no instruction of their own.
fn judge(code: &[u8], place: Place, call: usize) -> Option<Result<Site, Refusal>> {
    let before = place.before(code, call, BACK);
    match before.boundary(call) {
        Boundary::No => return None,
        Boundary::Unknown => return Some(Err(Refusal::Unclear)),
        Boundary::Yes => {}
    }
    let direct = before.previous(call);
    let mut start = direct;
    if let Some(between) = start.filter(|&at| decode::at(code, 0, at).as_ref().is_some_and(may_stand_between)) {
        start = before.previous(between);
    }
    if let Some(start) = start
        && let Some(loads) = decode::at(code, 0, start)
        && let Some(number) = loaded_number(&loads)
    {
        if number == RT_SIGRETURN {
            return Some(Err(Refusal::SignalReturn));
        }
        if uses_old_flags(code, call + 2) {
            return Some(Err(Refusal::Flags));
        }
        if loads.len() >= JUMP {
            return Some(Ok(Site { form: Form::Number, start, len: call - start, call }));
        }
    }
    if uses_old_flags(code, call + 2) {
        return Some(Err(Refusal::Flags));
    }
    let moves = |&at: &usize| decode::at(code, 0, at).as_ref().is_some_and(moves_whole);
    if let Some(start) = direct.filter(moves).or(start.filter(moves)) {
        return Some(Ok(Site { form: Form::Number, start, len: call - start, call }));
    }
    Some(tail(code, place, call))
}

/// Whether the code from `at` on reads a flag before it has written it. Followed up to the first branch: compiled code takes
/// no flags across a call of the kernel and a branch.
fn uses_old_flags(code: &[u8], mut at: usize) -> bool {
    let mut written = 0;
    for _ in 0..LOOK_AHEAD {
        let Some(instruction) = decode::at(code, 0, at) else {
            // Where what is known ends, nobody knows who reads them behind it.
            return at + LONGEST > code.len();
        };
        if instruction.mnemonic() == Mnemonic::Syscall {
            // It reads them only to save them where nobody looks.
            return false;
        }
        if instruction.rflags_read() & !written & !RflagsBits::DF != 0
            || matches!(instruction.mnemonic(), Mnemonic::Pushf | Mnemonic::Pushfq)
        {
            return true;
        }
        written |= instruction.rflags_modified();
        if instruction.flow_control() != FlowControl::Next {
            return false;
        }
        at += instruction.len();
    }
    false
}

/// Whether an instruction between the one that is overwritten and the call may run in the trampoline too: it computes an address or
/// copies a register, so that it cannot fault, and does the same when it is done again.
fn may_stand_between(instruction: &Instruction) -> bool {
    let to = instruction.op0_register().full_register();
    let same = match instruction.code() {
        Code::Lea_r64_m => instruction.memory_base().full_register() != to && instruction.memory_index().full_register() != to,
        Code::Mov_rm64_r64 | Code::Mov_r64_rm64 => {
            instruction.op0_kind() == OpKind::Register && instruction.op1_kind() == OpKind::Register
        }
        _ => false,
    };
    same && to != Register::RAX
}

/// Whether an instruction just before a call does nothing but move a value to or from memory, or load one, and is as long as a jump: `mov
/// %r11, 8(%rsp)` at the cancellation points of musl and of glibc from 2.41 on, whose number comes from a caller and behind which there is
/// nothing but a `ret`; `movups %xmm0, 0x2d8(%rbx)` before glibc's set_robust_list(2). The trampoline does it before anything else, once;
/// a fault of it is shown as one at its own place.
fn moves_whole(instruction: &Instruction) -> bool {
    let moves = matches!(
        instruction.mnemonic(),
        Mnemonic::Mov
            | Mnemonic::Movups
            | Mnemonic::Movaps
            | Mnemonic::Movdqu
            | Mnemonic::Movdqa
            | Mnemonic::Movq
            | Mnemonic::Movd
    );
    moves
        && instruction.flow_control() == FlowControl::Next
        && instruction.segment_prefix() == Register::None
        && instruction.len() >= JUMP
}

/// The number an instruction loads into rax.
fn loaded_number(instruction: &Instruction) -> Option<u64> {
    let loads =
        matches!(instruction.code(), Code::Mov_r32_imm32 | Code::Mov_rm32_imm32 | Code::Mov_rm64_imm32 | Code::Mov_r64_imm64)
            && instruction.op0_kind() == OpKind::Register
            && instruction.op0_register().full_register() == Register::RAX;
    loads.then(|| instruction.immediate(1))
}

fn tail(code: &[u8], place: Place, call: usize) -> Result<Site, Refusal> {
    let mut at = call + 2;
    while at < call + JUMP {
        let instruction = decode::at(code, 0, at).ok_or(Refusal::Unmovable)?;
        if at == call + 2 && !looks_at_result(&instruction) {
            return Err(Refusal::Unrelated);
        }
        let ends = !is_movable(&instruction)?;
        at += instruction.len();
        if ends && at < call + JUMP {
            // Nothing runs on from here, so what is behind belongs to somebody else.
            return Err(Refusal::Unmovable);
        }
    }
    let site = Site { form: Form::Tail, start: call, len: at - call, call };
    if short_jumps(code, place, &site) { Err(Refusal::JumpedTo) } else { Ok(site) }
}

/// Whether an instruction that follows a call uses rax as the call left it.
fn looks_at_result(instruction: &Instruction) -> bool {
    let is_rax = |operand: u32| {
        instruction.op_count() > operand
            && instruction.op_kind(operand) == OpKind::Register
            && instruction.op_register(operand).full_register() == Register::RAX
    };
    let addresses = instruction.memory_base().full_register() == Register::RAX
        || instruction.memory_index().full_register() == Register::RAX;
    match instruction.mnemonic() {
        Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Neg | Mnemonic::Add | Mnemonic::Sub | Mnemonic::And | Mnemonic::Or => {
            is_rax(0) || is_rax(1)
        }
        Mnemonic::Mov | Mnemonic::Movsxd | Mnemonic::Movsx | Mnemonic::Movzx => is_rax(1),
        Mnemonic::Lea => addresses,
        Mnemonic::Cdqe => true,
        _ => false,
    }
}

/// Whether an instruction may run in a trampoline; `Ok(false)` when nothing runs on behind it.
fn is_movable(instruction: &Instruction) -> Result<bool, Refusal> {
    let short_or_near = !matches!(
        instruction.mnemonic(),
        Mnemonic::Loop | Mnemonic::Loope | Mnemonic::Loopne | Mnemonic::Jcxz | Mnemonic::Jecxz | Mnemonic::Jrcxz
    );
    match instruction.flow_control() {
        FlowControl::Next if !matches!(instruction.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Endbr64) => {
            Ok(true)
        }
        FlowControl::ConditionalBranch if short_or_near && instruction.is_jcc_short_or_near() => Ok(true),
        FlowControl::UnconditionalBranch if instruction.is_jmp_short_or_near() => Ok(false),
        FlowControl::Return if instruction.mnemonic() == Mnemonic::Ret => Ok(false),
        _ => Err(Refusal::Unmovable),
    }
}

/// Whether a target is in what a site moves: behind its first byte.
fn is_inside(start: usize, len: usize, target: u64) -> bool {
    target > start as u64 && target < (start + len) as u64
}

/// Whether a branch near the site may lead into it. Every way to read the bytes counts.
fn short_jumps(code: &[u8], place: Place, site: &Site) -> bool {
    let leads_in = |at: usize| {
        code.get(at..).is_some_and(may_branch)
            && decode::at(code, 0, at).is_some_and(|instruction| {
                matches!(instruction.op0_kind(), OpKind::NearBranch64 | OpKind::NearBranch32 | OpKind::NearBranch16)
                    && is_inside(site.start, site.len, instruction.near_branch_target())
            })
    };
    let before = place.before(code, site.start, BACK_SHORT);
    // Nothing certain close by: then nothing is known of what jumps.
    let settled = site.start.saturating_sub(SHORT);
    if (settled..site.start).all(|at| before.boundary(at) != Boundary::Yes) && settled != site.start {
        return true;
    }
    if before.possible().any(leads_in) {
        return true;
    }
    // The moved instructions themselves, then what follows them.
    let mut at = site.start + 2;
    let end = (site.start + site.len + SHORT).min(code.len());
    while at < end {
        if leads_in(at) {
            return true;
        }
        let Some(instruction) = decode::at(code, 0, at) else { break };
        at += instruction.len();
        if at >= site.start + site.len
            && matches!(
                instruction.flow_control(),
                FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Return
            )
        {
            break;
        }
    }
    // Behind a break in the flow there may be data first: all ways to read on are followed.
    let mut lengths = Lengths::new(code);
    let mut seen = [false; SHORT + 2 * LONGEST];
    for phase in 0..LONGEST + 1 {
        let mut place = at + phase;
        while place < end {
            let Some(seen) = seen.get_mut(place - at) else { break };
            if core::mem::replace(seen, true) {
                break;
            }
            if leads_in(place) {
                return true;
            }
            match lengths.at(place) {
                0 => break,
                length => place += usize::from(length),
            }
        }
    }
    false
}

/// Whether the instruction that `code` starts with may be a relative branch: one of those, a prefix, or `xbegin`.
fn may_branch(code: &[u8]) -> bool {
    let opcode = match *code {
        [0x40..=0x4f, second, ..] => second,
        [first, ..] => first,
        [] => return false,
    };
    match opcode {
        0x0f => code.iter().skip(1).take(2).any(|byte| byte & 0xf0 == 0x80),
        0x70..=0x7f | 0xe0..=0xe3 | 0xe8 | 0xe9 | 0xeb | 0xc7 => true,
        0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3 | 0xd5 => true,
        _ => false,
    }
}

/// Marks the windows (start, length; by address) that a near jump, conditional jump or call leads into. Every offset is taken for an
/// instruction.
fn near_jumps(code: &[u8], windows: &[(usize, usize)], hit: &mut [bool]) {
    // Most targets are far from every window: a bit for each granule of code that windows touch shows it without a search.
    let granule = |target: u64| ((target >> 12) as usize, target >> 6 & 63);
    let mut near = alloc::vec![0u64; (code.len() >> 12) + 1];
    for &(start, len) in windows {
        for target in [start, start + len] {
            let (word, bit) = granule(target as u64);
            if let Some(word) = near.get_mut(word) {
                *word |= 1 << bit;
            }
        }
    }
    let mut mark = |next: usize, displacement: u32| {
        let target = (next as i64).wrapping_add(i64::from(displacement as i32)) as u64;
        let (word, bit) = granule(target);
        if near.get(word).is_none_or(|word| word >> bit & 1 == 0) {
            return;
        }
        let index = windows.partition_point(|&(start, _)| (start as u64) < target);
        if let Some(index) = index.checked_sub(1)
            && is_inside(windows[index].0, windows[index].1, target)
            && let Some(hit) = hit.get_mut(index)
        {
            *hit = true;
        }
    };
    // Whole jumps only: one that is cut off leads nowhere.
    let mut check = |at: usize| match *code.get(at..).unwrap_or_default() {
        [0xe8 | 0xe9, a, b, c, d, ..] => mark(at + 5, u32::from_le_bytes([a, b, c, d])),
        [0x0f, 0x80..=0x8f, a, b, c, d, ..] => mark(at + 6, u32::from_le_bytes([a, b, c, d])),
        _ => {}
    };
    let mut at = 0;
    let mut marks = [0; 64];
    loop {
        let blocks = search::near_branches(code, at, &mut marks);
        for &block in &marks[..blocks] {
            let mut block = block;
            while block != 0 {
                check(at + block.trailing_zeros() as usize);
                block &= block - 1;
            }
            at += search::BLOCK;
        }
        if blocks < marks.len() {
            break;
        }
    }
    (at..code.len()).for_each(check);
}
