//! Machine code of guests: what is found in it, how it is rewritten, and single instructions done for it.

use iced_x86::{InstructionInfoFactory, Mnemonic, OpAccess};
use janua_abi::linux::Errno;
use janua_text::decode::{self, LONGEST};
use janua_text::elf::{Layout, Segment};
use janua_text::rewrite::rewrite;
use janua_text::scan::{self, Kind};
use janua_text::sites::{self, JUMP};
use janua_text::step::{self, Core};
use janua_text::{access, patch_out, restore};

const ENTRY: u64 = 0x6000_0000_1234;

pub fn run(code: &[u8]) {
    scanned(code);
    let found = sites::find(code);
    let mut end = 0;
    for site in &found.sites {
        assert!(site.start >= end && site.len >= JUMP && site.start + site.len <= code.len(), "{site:?}");
        assert_eq!(code[site.call..site.call + 2], [0x0f, 0x05], "{site:?}");
        end = site.start + site.len;
    }
    rewritten(code);
    for at in 0..code.len() {
        // Whatever is around the call that has been made.
        let site = sites::find_at(code, at).ok().filter(|_| code[at..].starts_with(&[0x0f, 0x05]));
        if let Some(site) = site {
            assert!(site.call == at && site.len >= JUMP && site.start + site.len <= code.len(), "{site:?}");
            assert!((site.start..=site.start + site.len).contains(&at), "{site:?}");
        }
        stepped(code, at);
        for wide in [false, true] {
            access::only_stores(&code[at..code.len().min(at + LONGEST)], wide);
        }
    }
}

/// What no guest may run is found, whatever it is hidden in; and what is put in its place is not found again.
fn scanned(code: &[u8]) {
    let hits: Vec<scan::Hit> = scan::hits(code).collect();
    for at in 0..code.len() {
        let Some(instruction) = decode::at(code, 0, at) else { continue };
        let kind = match instruction.mnemonic() {
            Mnemonic::Wrpkru => Kind::Wrpkru,
            Mnemonic::Xrstor | Mnemonic::Xrstor64 => Kind::Xrstor,
            Mnemonic::Xrstors | Mnemonic::Xrstors64 => Kind::Xrstors,
            Mnemonic::Wrfsbase => Kind::Wrfsbase,
            Mnemonic::Wrgsbase => Kind::Wrgsbase,
            _ => continue,
        };
        let inside = |hit: &&scan::Hit| hit.kind == kind && (at..at + instruction.len()).contains(&hit.at);
        assert!(hits.iter().any(|hit| inside(&hit)), "{kind:?} at {at} is missed");
    }
    for hit in &hits {
        let from = hit.at.saturating_sub(patch_out::BEFORE);
        let to = code.len().min(hit.at + LONGEST);
        let Some(range) = patch_out::instruction(&code[from..to], hit.at - from) else { continue };
        let range = range.start + from..range.end + from;
        assert!(range.contains(&hit.at) && range.end <= code.len());
        let mut changed = code.to_vec();
        let len = range.len();
        changed[range].copy_from_slice(&patch_out::filler(len)[..len]);
        assert!(scan::hits(&changed).all(|other| other.at != hit.at), "{hit:?} is still there");
    }
}

/// The whole as the code of a file.
fn rewritten(code: &[u8]) {
    let len = code.len() as u64;
    let segment = Segment { offset: 0, vaddr: 0x40_0000, len };
    let layout = Layout { low: segment.vaddr, high: segment.vaddr + 0x1_0000, code: vec![segment], frames: None };
    let mut changed = code.to_vec();
    let mut parts = [(segment, changed.as_mut_slice())];
    let (count, rewritten) = rewrite(&layout, &mut parts, ENTRY, &mut |_, _| Err(Errno::EIO));
    let Some(mut rewritten) = rewritten else { return assert!(count.rewritten == 0 && changed == code) };
    restore::rewrite(&layout, &mut parts, &mut rewritten.trampolines, &mut rewritten.patches, ENTRY);
    let mut wanted = code.to_vec();
    for patch in &rewritten.patches {
        let at = (patch.start - segment.vaddr) as usize;
        wanted[at..at + JUMP].copy_from_slice(&patch.jump().expect("a trampoline is near"));
        assert!(patch.trampoline >= layout.low - rewritten.trampolines.len() as u64 && patch.trampoline < layout.low);
    }
    assert!(changed == wanted, "other bytes than those of sites have changed");
}

/// Registers, and memory that is the code itself, all over again.
struct Registers<'a> {
    general: [u64; 16],
    /// Those that were set, a bit each.
    set: u16,
    flags: u64,
    memory: &'a [u8],
}

impl Core for Registers<'_> {
    fn register(&self, number: usize) -> u64 {
        self.general[number]
    }
    fn set_register(&mut self, number: usize, value: u64) {
        self.general[number] = value;
        self.set |= 1 << number;
    }
    fn flags(&self) -> u64 {
        self.flags
    }
    fn set_flags(&mut self, flags: u64) {
        assert_eq!((flags ^ self.flags) & !0x8d5, 0, "more than the status flags");
        self.flags = flags;
    }
    fn load(&mut self, addr: u64, bytes: &mut [u8]) -> bool {
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = self.memory[(addr.wrapping_add(index as u64) % self.memory.len() as u64) as usize];
        }
        addr % 16 != 15
    }
    fn store(&mut self, addr: u64, _: &[u8]) -> bool {
        addr % 16 != 15
    }
    fn set_vector(&mut self, number: usize, _: u128) -> bool {
        assert!(number < 16);
        true
    }
    fn restore(&mut self, _: u64, _: u64) -> bool {
        true
    }
}

fn stepped(code: &[u8], at: usize) {
    let bytes = &code[at..code.len().min(at + LONGEST)];
    let general =
        core::array::from_fn(|number| u64::from(code[(at + number) % code.len()]).wrapping_mul(0x0101_0001_0000_8001));
    let flags = 0x202 | u64::from(code[code.len() - 1]) & 0xd5;
    let mut core = Registers { general, set: 0, flags, memory: code };
    let rip = 0x40_0000 + at as u64;
    if step::step(&mut core, bytes, rip).is_none() {
        assert_eq!((core.general, core.flags), (general, flags), "{bytes:02x?}: a second try would find other registers");
        return;
    }
    // All registers that the instruction writes in any case have been written.
    let instruction = decode::at(bytes, rip, 0).expect("it has been done");
    for used in InstructionInfoFactory::new().info(&instruction).used_registers() {
        let register = used.register();
        if register.is_gpr() && matches!(used.access(), OpAccess::Write | OpAccess::ReadWrite) {
            assert!(core.set >> register.full_register().number() & 1 == 1, "{bytes:02x?}: {register:?} is not written");
        }
    }
}
