//! Random code whose instructions are known, because they were made one by one: what is rewritten or overwritten in it are whole
//! instructions, and a trampoline does what they did.

use std::collections::BTreeSet;
use std::vec::Vec;
use std::{format, vec};

use iced_x86::{ConditionCode, FlowControl, Instruction, Mnemonic, OpKind, RflagsBits};
use janua_abi::linux::Errno;

use crate::decode::{self, LONGEST};
use crate::elf::{self, Layout, Segment};
use crate::rewrite::rewrite;
use crate::scan::{self, Kind};
use crate::sites::{self, Form, JUMP, Site};
use crate::step::{self, Core};
use crate::trampoline::{self, Patch};
use crate::{frames, patch_out, random};

const ENTRY: u64 = 0x6000_0000_1234;
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// Numbers of a stream below a bound.
type Numbers<'a> = &'a mut dyn FnMut(u64) -> u64;

/// Code, and the offsets at which its instructions start.
struct Code {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

/// What compilers write round calls, and what could be mistaken for it.
const COMMON: &[&[u8]] = &[
    &SYSCALL,
    &SYSCALL,
    // mov $n, %eax; mov $n, %rax; the return from a signal handler; xor %eax, %eax.
    &[0xb8, 0x27, 0, 0, 0],
    &[0x48, 0xc7, 0xc0, 0x27, 0, 0, 0],
    &[0xb8, 0x0f, 0, 0, 0],
    &[0x31, 0xc0],
    // Moves that may be before a call: between numbers and calls, or long enough for a jump.
    &[0x49, 0x89, 0xca],
    &[0x48, 0x8d, 0x35, 0x10, 0x05, 0x0f, 0x05],
    &[0x48, 0x8d, 0x05, 0x10, 0, 0, 0],
    &[0x4c, 0x89, 0x5c, 0x24, 0x08],
    &[0x4c, 0x8b, 0x4c, 0x24, 0x10],
    &[0x0f, 0x11, 0x83, 0xd8, 0x02, 0, 0],
    &[0x48, 0x8b, 0x05, 0x0f, 0x05, 0, 0],
    // What looks at results: cmp, test, neg, mov, cltq, lea.
    &[0x48, 0x3d, 0x00, 0xf0, 0xff, 0xff],
    &[0x83, 0xf8, 0xff],
    &[0x85, 0xc0],
    &[0x48, 0x85, 0xc0],
    &[0xf7, 0xd8],
    &[0x48, 0x89, 0xc3],
    &[0x89, 0xc2],
    &[0x48, 0x98],
    &[0x48, 0x8d, 0x48, 0x01],
    &[0x48, 0x03, 0x05, 0x0f, 0x05, 0, 0],
    // Users of flags: setc, cmovne, adc, pushfq.
    &[0x0f, 0x92, 0xc1],
    &[0x0f, 0x45, 0xd8],
    &[0x11, 0xd8],
    &[0x9c],
    // Breaks: ret, leave, nops, int3, and bytes of a call in constants.
    &[0xc3],
    &[0xc9],
    &[0x90],
    &[0x0f, 0x1f, 0x44, 0, 0],
    &[0xcc],
    &[0xb9, 0x0f, 0x05, 0xe9, 0xb8],
    &[0x48, 0xb8, 0xb8, 0x27, 0, 0, 0, 0x0f, 0x05, 0x0f],
    &[0x68, 0x31, 0xc0, 0x0f, 0x05],
    // xrstor 0x40(%rsp), wrpkru, and their bytes inside others.
    &[0x0f, 0xae, 0x6c, 0x24, 0x40],
    &[0x0f, 0x01, 0xef],
    &[0xb8, 0x0f, 0x01, 0xef, 0],
    &[0x48, 0x8d, 0x3d, 0x0f, 0xae, 0x2b, 0],
    &[0xe8, 0, 0, 0, 0x0f],
];

/// Branches whose targets are chosen later: opcode bytes, and whether their distance has one byte.
const BRANCHES: &[(&[u8], bool)] = &[
    (&[0x74], true),
    (&[0x78], true),
    (&[0xeb], true),
    (&[0xe3], true),
    (&[0x2e, 0x75], true),
    (&[0x0f, 0x87], false),
    (&[0x0f, 0x84], false),
    (&[0xe9], false),
    (&[0xe8], false),
];

impl Code {
    /// Some `len` bytes of random instructions.
    fn random(len: usize, next: Numbers<'_>) -> Code {
        let mut code = Code { bytes: Vec::new(), starts: Vec::new() };
        let mut branches = Vec::new();
        while code.bytes.len() < len {
            let at = code.bytes.len();
            code.starts.push(at);
            match next(10) {
                0..=5 => code.bytes.extend_from_slice(COMMON[next(COMMON.len() as u64) as usize]),
                6 => {
                    let (opcode, short) = BRANCHES[next(BRANCHES.len() as u64) as usize];
                    code.bytes.extend_from_slice(opcode);
                    code.bytes.extend_from_slice(if short { &[0] } else { &[0; 4] });
                    branches.push((code.bytes.len(), short));
                }
                _ => code.push_any(next),
            }
        }
        for (end, short) in branches {
            let reach = if short { 120 } else { len + 2 * LONGEST };
            let near: Vec<usize> = code.starts.iter().copied().filter(|start| start.abs_diff(end) < reach).collect();
            let distance = near[next(near.len() as u64) as usize] as i32 - end as i32;
            if short {
                code.bytes[end - 1] = distance as u8;
            } else {
                code.bytes[end - 4..end].copy_from_slice(&distance.to_le_bytes());
            }
        }
        code
    }

    /// Any instruction there is.
    fn push_any(&mut self, next: Numbers<'_>) {
        loop {
            let mut bytes = [0u8; LONGEST];
            bytes.fill_with(|| if next(8) == 0 { [0x0f, 0x05, 0xae, 0xe9][next(4) as usize] } else { next(256) as u8 });
            if let Some(instruction) = decode::at(&bytes, 0, 0) {
                return self.bytes.extend_from_slice(&bytes[..instruction.len()]);
            }
        }
    }

    fn is_start(&self, at: usize) -> bool {
        at == self.bytes.len() || self.starts.binary_search(&at).is_ok()
    }

    fn instruction(&self, base: u64, at: usize) -> Option<Instruction> {
        decode::at(&self.bytes, base, at)
    }

    /// Where direct jumps and calls lead, as offsets.
    fn targets(&self) -> BTreeSet<u64> {
        let branches = self.starts.iter().filter_map(|at| self.instruction(0, *at));
        branches.filter(is_direct).map(|instruction| instruction.near_branch_target()).collect()
    }

    /// Whether flags from before the call are looked at behind it, before its first branch.
    fn needs_flags(&self, call: usize) -> bool {
        let mut written = RflagsBits::DF;
        let mut at = call + 2;
        for _ in 0..8 {
            let Some(instruction) = self.instruction(0, at).filter(|found| found.mnemonic() != Mnemonic::Syscall) else {
                break;
            };
            if instruction.rflags_read() & !written != 0 {
                return true;
            }
            written |= instruction.rflags_modified();
            if instruction.flow_control() != FlowControl::Next {
                break;
            }
            at += instruction.len();
        }
        false
    }
}

fn is_direct(instruction: &Instruction) -> bool {
    matches!(instruction.op0_kind(), OpKind::NearBranch64 | OpKind::NearBranch32 | OpKind::NearBranch16)
}

/// Whether both do the same, each where it is. Constants count by what they mean: iced compares addresses, not distances.
fn same(one: &Instruction, other: &Instruction) -> bool {
    if is_direct(one) && is_direct(other) {
        let kind = |of: &Instruction| (of.flow_control(), of.condition_code(), of.near_branch_target());
        return kind(one) == kind(other) && one.condition_code() != ConditionCode::None
            || kind(one) == kind(other) && one.mnemonic() == other.mnemonic();
    }
    one == other
}

/// A site is made of whole instructions, at a call, and may be moved.
fn check_site(code: &Code, site: &Site, targets: &BTreeSet<u64>) {
    let what = format!("{site:?}: {:02x?}", &code.bytes[site.start.saturating_sub(20)..code.bytes.len().min(site.call + 20)]);
    let end = site.start + site.len;
    assert!([site.start, site.call, end].into_iter().all(|at| code.is_start(at)), "half an instruction: {what}");
    assert_eq!(code.bytes[site.call..site.call + 2], SYSCALL, "{what}");
    assert!(site.len >= JUMP && site.call - site.start <= sites::SPAN && end - site.call <= sites::SPAN, "{what}");
    assert!(!code.needs_flags(site.call), "flags are lost: {what}");
    match site.form {
        Form::Number => {
            assert_eq!(end, site.call, "{what}");
            let first = code.instruction(0, site.start).unwrap();
            assert!(first.len() >= JUMP, "the jump does not fit: {what}");
            // mov $15, %eax; syscall.
            let returns = code.bytes[site.start..].starts_with(&[0xb8, 0x0f, 0, 0, 0]);
            assert!(!returns, "a signal return: {what}");
        }
        Form::Tail => {
            assert_eq!(site.start, site.call, "{what}");
            assert!(targets.range(site.start as u64 + 1..end as u64).next().is_none(), "jumped into: {what}");
        }
    }
}

/// The trampoline does what the site did: its bytes at `at`, for code at `base`.
fn check_trampoline(code: &Code, base: u64, site: &Site, patch: &Patch, bytes: &[u8]) {
    let at = patch.trampoline;
    let mut place = 0;
    let mut take = |what: &str| {
        let found = decode::at(&bytes[..usize::from(patch.size)], at, place).unwrap_or_else(|| panic!("{site:?}: no {what}"));
        place += found.len();
        (found, place)
    };
    let moved: Vec<usize> = code.starts.iter().copied().filter(|at| (site.start..site.start + site.len).contains(at)).collect();
    let check_moved = |take: &mut dyn FnMut(&str) -> (Instruction, usize), from: usize| {
        let original = code.instruction(base, from).unwrap();
        let (copy, end) = take("moved instruction");
        assert!(same(&original, &copy), "{site:?}: {original:?} became {copy:?}");
        // A fault or a signal in it is shown at its own place.
        let shown = patch.original(at.wrapping_add((end - copy.len()) as u64));
        assert_eq!(shown, Some(base.wrapping_add(from as u64)), "{site:?}");
        original
    };
    let enter = |take: &mut dyn FnMut(&str) -> (Instruction, usize)| {
        let (address, _) = take("address");
        assert_eq!(address.mnemonic(), Mnemonic::Lea);
        let (entry, _) = take("entry");
        assert_eq!((entry.mnemonic(), entry.immediate64()), (Mnemonic::Mov, ENTRY));
        let (jump, end) = take("jump");
        assert_eq!(jump.flow_control(), FlowControl::IndirectBranch);
        (address.ip_rel_memory_address(), end)
    };
    match site.form {
        Form::Number => {
            for from in moved {
                check_moved(&mut take, from);
            }
            let (back, _) = enter(&mut take);
            assert_eq!(back, base.wrapping_add(site.call as u64 + 2));
        }
        Form::Tail => {
            let (back, _) = enter(&mut take);
            let (call, end) = take("call");
            assert_eq!((call.mnemonic(), back), (Mnemonic::Syscall, at.wrapping_add(end as u64)));
            let mut runs_on = true;
            for &from in &moved[1..] {
                assert!(runs_on, "{site:?}: something stands behind the end");
                let original = check_moved(&mut take, from);
                runs_on = !matches!(original.flow_control(), FlowControl::UnconditionalBranch | FlowControl::Return);
            }
            if runs_on {
                let (jump, _) = take("return");
                let behind = base.wrapping_add((site.start + site.len) as u64);
                assert_eq!((jump.flow_control(), jump.near_branch_target()), (FlowControl::UnconditionalBranch, behind));
            }
        }
    }
    assert_eq!(place, usize::from(patch.size), "{site:?}: more stands there");
    // What has moved is found again, and nothing else.
    for offset in 0..site.len {
        if let Some(to) = patch.moved(base.wrapping_add((site.start + offset) as u64)) {
            assert!(site.form == Form::Tail && code.is_start(site.start + offset), "{site:?}");
            assert_eq!(patch.original(to), Some(base.wrapping_add((site.start + offset) as u64)), "{site:?}");
        }
    }
}

/// Where code may be: low, at the end of the address space, and anywhere.
fn base(next: Numbers<'_>) -> u64 {
    [0x1000, 0x40_1000, 0x7fff_0000_0000, 0u64.wrapping_sub(1 << 20), 0x5555_5555_5000][next(5) as usize]
}

#[test]
fn rewriting_keeps_the_meaning() {
    let (mut forms, mut count) = ([0, 0], 0);
    for stream in 0..random::rounds(120) {
        let mut numbers = random::numbers(random::given().unwrap_or(0), stream);
        let next: Numbers<'_> = &mut numbers;
        let code = Code::random(1 + next(3000) as usize, next);
        let targets = code.targets();
        let (found, base) = (sites::find(&code.bytes), base(next));
        let mut end = 0;
        for site in &found.sites {
            assert!(site.start >= end, "two sites in one place");
            end = site.start + site.len;
            check_site(&code, site, &targets);
            let at = base.wrapping_add(next(1 << 32)).wrapping_sub(1 << 31) & !(trampoline::ALIGN as u64 - 1);
            let mut bytes = Vec::new();
            // One that cannot be is a refusal; nothing of it stays.
            match trampoline::build(&code.bytes, base, site, at, ENTRY, &mut bytes) {
                Ok(patch) => check_trampoline(&code, base, site, &patch, &bytes),
                Err(_) => assert!(bytes.is_empty()),
            }
            forms[site.form as usize] += 1;
        }
        // The same with one call that was made, and with what is known of the code cut off anywhere.
        for call in code.starts.iter().copied().filter(|at| code.bytes[*at..].starts_with(&SYSCALL)) {
            count += 1;
            if let Ok(site) = sites::find_at(&code.bytes, call) {
                check_site(&code, &site, &targets);
            }
            let (mut from, to) = (call.saturating_sub(next(400) as usize), code.bytes.len().min(call + 2 + next(400) as usize));
            // Too little before it shows nothing, unless code begins there.
            while call - from <= LONGEST && !code.is_start(from) {
                from -= 1;
            }
            if let Ok(site) = sites::find_at(&code.bytes[from..to], call - from) {
                let whole = Site { start: site.start + from, call: site.call + from, ..site };
                check_site(&code, &whole, &BTreeSet::new());
            }
        }
    }
    assert!(forms[0] > 100 && forms[1] > 10 && count > 1000, "{forms:?} of {count}");
}

#[test]
fn nothing_but_jumps_is_written() {
    for stream in 0..random::rounds(60) {
        let mut numbers = random::numbers(random::given().unwrap_or(0), 1000 + stream);
        let next: Numbers<'_> = &mut numbers;
        let parts: Vec<Code> = (0..1 + next(3)).map(|_| Code::random(1 + next(1500) as usize, next)).collect();
        let low = base(next) & !0xfff;
        let segment = |index: usize, code: &Code| {
            let vaddr = low.wrapping_add(index as u64 * 0x2000);
            Segment { offset: 0x1000 * index as u64, vaddr, len: code.bytes.len() as u64 }
        };
        let segments: Vec<Segment> = parts.iter().enumerate().map(|(index, code)| segment(index, code)).collect();
        let layout = Layout { low, high: low.wrapping_add(0x8000), code: segments.clone(), frames: None };
        let mut changed: Vec<Vec<u8>> = parts.iter().map(|code| code.bytes.clone()).collect();
        let mut slices: Vec<(Segment, &mut [u8])> =
            segments.iter().copied().zip(changed.iter_mut().map(Vec::as_mut_slice)).collect();
        let (count, rewritten) = rewrite(&layout, &mut slices, ENTRY, &mut |_, _| Err(Errno::EIO));
        let mut wanted: Vec<Vec<u8>> = parts.iter().map(|code| code.bytes.clone()).collect();
        if let Some(rewritten) = &rewritten {
            assert_eq!(rewritten.patches.len() as u32, count.rewritten);
            let first = low.wrapping_sub(rewritten.trampolines.len() as u64);
            for patch in &rewritten.patches {
                let index = segments.iter().position(|part| patch.start.wrapping_sub(part.vaddr) < part.len).unwrap();
                let at = (patch.start - segments[index].vaddr) as usize;
                wanted[index][at..at + JUMP].copy_from_slice(&patch.jump().unwrap());
                let jump = decode::at(&changed[index], segments[index].vaddr, at).unwrap();
                assert_eq!(jump.near_branch_target(), patch.trampoline);
                let offset = patch.trampoline.wrapping_sub(first) as usize;
                let call = at + if patch.form == Form::Number { usize::from(patch.len) } else { 0 };
                let site = Site { form: patch.form, start: at, len: usize::from(patch.len), call };
                check_trampoline(&parts[index], segments[index].vaddr, &site, patch, &rewritten.trampolines[offset..]);
            }
        }
        assert!(changed == wanted, "stream {stream}: other bytes have changed");
    }
}

#[test]
fn what_is_overwritten_is_one_instruction() {
    let mut seen = 0;
    for stream in 0..random::rounds(200) {
        let mut numbers = random::numbers(random::given().unwrap_or(0), 2000 + stream);
        let code = Code::random(2000, &mut numbers);
        for hit in scan::hits(&code.bytes) {
            let from = hit.at.saturating_sub(patch_out::BEFORE);
            let to = code.bytes.len().min(hit.at + LONGEST);
            let Some(range) = patch_out::instruction(&code.bytes[from..to], hit.at - from) else { continue };
            let range = range.start + from..range.end + from;
            assert!(code.is_start(range.start) && code.is_start(range.end) && range.contains(&hit.at), "{hit:?}: {range:?}");
            let mut bytes = code.bytes.clone();
            let len = range.len();
            bytes[range].copy_from_slice(&patch_out::filler(len)[..len]);
            assert!(scan::hits(&bytes).all(|other| other.at != hit.at), "{hit:?} is still there");
            seen += 1;
        }
    }
    assert!(seen > 100);
}

/// The decoder as a second opinion: from every offset on.
#[test]
fn no_forbidden_instruction_is_missed() {
    for stream in 0..random::rounds(100) {
        let mut numbers = random::numbers(random::given().unwrap_or(0), 3000 + stream);
        let next: Numbers<'_> = &mut numbers;
        let bytes: Vec<u8> = (0..3000)
            .map(|_| match next(3) {
                0 => [0x0f, 0xae, 0x01, 0xef, 0xc7, 0xf3, 0xf2, 0x66, 0x48, 0x2e, 0xd5, 0x80][next(12) as usize],
                _ => next(256) as u8,
            })
            .collect();
        let hits: Vec<scan::Hit> = scan::hits(&bytes).collect();
        for at in 0..bytes.len() {
            let Some(found) = decode::at(&bytes, 0, at) else { continue };
            let kind = match found.mnemonic() {
                Mnemonic::Wrpkru => Kind::Wrpkru,
                Mnemonic::Xrstor | Mnemonic::Xrstor64 => Kind::Xrstor,
                Mnemonic::Xrstors | Mnemonic::Xrstors64 => Kind::Xrstors,
                Mnemonic::Wrfsbase => Kind::Wrfsbase,
                Mnemonic::Wrgsbase => Kind::Wrgsbase,
                _ => continue,
            };
            let inside = |hit: &&scan::Hit| hit.kind == kind && (at..at + found.len()).contains(&hit.at);
            assert!(hits.iter().any(|hit| inside(&hit)), "{:02x?} is {kind:?}", &bytes[at..at + found.len()]);
        }
        // A part with its context finds what the whole has in it.
        let from = next(2900) as usize;
        let to = from + next((bytes.len() - from) as u64) as usize;
        let (begin, end) = (from.saturating_sub(scan::CONTEXT), bytes.len().min(to + scan::CONTEXT));
        let part: Vec<usize> =
            scan::hits_touching(&bytes[begin..end], from - begin..to - begin).map(|hit| hit.at + begin).collect();
        let whole: Vec<usize> = scan::hits_touching(&bytes, from..to).map(|hit| hit.at).collect();
        assert_eq!(part, whole);
    }
}

/// A processor whose memory is accessible sometimes.
struct Moody<'a> {
    registers: [u64; 16],
    flags: u64,
    next: Numbers<'a>,
}

impl Core for Moody<'_> {
    fn register(&self, number: usize) -> u64 {
        self.registers[number]
    }
    fn set_register(&mut self, number: usize, value: u64) {
        self.registers[number] = value;
    }
    fn flags(&self) -> u64 {
        self.flags
    }
    fn set_flags(&mut self, flags: u64) {
        // Nothing but the status flags is a program's to change so.
        assert_eq!((flags ^ self.flags) & !0x8d5, 0);
        self.flags = flags;
    }
    fn load(&mut self, _: u64, bytes: &mut [u8]) -> bool {
        bytes.fill_with(|| (self.next)(256) as u8);
        (self.next)(16) > 0
    }
    fn store(&mut self, _: u64, _: &[u8]) -> bool {
        (self.next)(16) > 0
    }
    fn set_vector(&mut self, number: usize, _: u128) -> bool {
        assert!(number < 16);
        true
    }
    fn restore(&mut self, _: u64, _: u64) -> bool {
        true
    }
}

#[test]
fn steps_go_on_behind_the_instruction_or_where_it_leads() {
    let mut done = 0;
    for stream in 0..random::rounds(60) {
        let mut numbers = random::numbers(random::given().unwrap_or(0), 4000 + stream);
        let code = Code::random(4000, &mut numbers);
        for &at in &code.starts {
            let pc = base(&mut numbers);
            let registers = core::array::from_fn(|_| numbers(u64::MAX));
            let flags = 0x202 | numbers(0x1000) & 0x8d5;
            let bytes = &code.bytes[at..code.bytes.len().min(at + LONGEST)];
            let mut core = Moody { registers, flags, next: &mut numbers };
            let result = step::step(&mut core, bytes, pc);
            let Some(found) = decode::at(bytes, pc, 0) else { continue };
            match result {
                Some(to) if found.flow_control() == FlowControl::Next => assert_eq!(to, pc.wrapping_add(found.len() as u64)),
                Some(_) => {}
                // What cannot be done has changed nothing that a second try would miss.
                None => assert_eq!((core.registers, core.flags), (registers, flags), "{found:?}"),
            }
            assert!(result.is_none() || step::knows(&found), "{found:?}");
            done += u64::from(result.is_some());
        }
    }
    assert!(done > 1000);
}

/// Headers with random words in them.
#[test]
fn layouts_make_sense_or_are_none() {
    const WORDS: [u64; 12] =
        [0, 1, 4095, 4096, 0x1000_0000, u32::MAX as u64, 1 << 47, 1 << 63, u64::MAX, u64::MAX - 4095, !4095, 200];
    let mut seen = 0;
    for stream in 0..random::rounds(20_000) {
        let mut next = random::numbers(random::given().unwrap_or(0), 100_000 + stream);
        let mut file = vec![0u8; 64];
        file[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1]);
        let count = next(6);
        let at = 64 + if next(20) == 0 { next(1000) } else { 0 };
        for (place, half) in [(16, 2 + next(2)), (18, 62), (54, 56), (56, count)] {
            file[place..place + 2].copy_from_slice(&(half as u16).to_le_bytes());
        }
        file[32..40].copy_from_slice(&at.to_le_bytes());
        for _ in 0..count {
            let word = |next: &mut dyn FnMut(u64) -> u64| match next(3) {
                0 => WORDS[next(12) as usize].wrapping_add(next(3)).wrapping_sub(1),
                1 => next(64) * 4096,
                _ => next(0x4_0000),
            };
            let kind = [1u32, 1, 1, 0x6474_e550, 2][next(5) as usize];
            file.extend_from_slice(&kind.to_le_bytes());
            file.extend_from_slice(&(next(8) as u32).to_le_bytes());
            let (offset, vaddr) = (word(&mut next), word(&mut next));
            let vaddr = if next(4) > 0 { vaddr & !4095 | offset & 4095 } else { vaddr };
            let size = word(&mut next);
            let in_file = if next(4) > 0 { size / (1 + next(3)) } else { word(&mut next) };
            for field in [offset, vaddr, vaddr, in_file, size, 4096] {
                file.extend_from_slice(&field.to_le_bytes());
            }
        }
        if next(16) == 0 {
            file.truncate(next(file.len() as u64 + 1) as usize);
        }
        let Some(layout) = elf::layout(&file) else { continue };
        seen += 1;
        assert!(layout.low < layout.high && (layout.low | layout.high) % 4096 == 0);
        for segment in &layout.code {
            let end = segment.vaddr.checked_add(segment.len).expect("no end");
            assert!(segment.vaddr >= layout.low && end <= layout.high && segment.offset.checked_add(segment.len).is_some());
        }
        let Some((table, around)) = layout.frames else { continue };
        assert!(table.wrapping_sub(around.vaddr) < around.len);
        let mut read = |to: &mut [u8], at: u64| {
            // Only what the file declares is there.
            assert!(at >= around.offset && at + to.len() as u64 <= around.offset + around.len);
            to.fill_with(|| if next(3) == 0 { [1, 0x1b, 3, 0x3b, 0, b'z'][next(6) as usize] } else { next(256) as u8 });
            // As a table begins.
            if to.len() == 4 && next(4) > 0 && at == around.offset + (table - around.vaddr) {
                to.copy_from_slice(&[1, 0x1b, 3, 0x3b]);
            }
            Ok(())
        };
        for address in [0, table, around.vaddr, u64::MAX] {
            frames::is_signal_frame(&layout, address, &mut read);
        }
    }
    assert!(seen > 1000);
}
