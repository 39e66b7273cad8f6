//! What of the processor's doings goes through the TLB: instructions, their accesses to memory, and what exceptions read unasked.

use crate::model::{Kind, Misses, Page, Tlb};

/// An instruction that means something here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    Other,
    /// `rdtsc`: a sample is what is between two of the measuring program's.
    Counter,
    /// `mov %reg, %cr3`.
    Root,
    /// `invlpg`: its operand's address comes as the next access.
    Forget,
    /// `syscall`, `sysenter`, a far call: ways into the kernel that are no exceptions.
    Entry,
    /// A near call through a register or memory.
    Call,
}

impl Class {
    const ALL: [Class; 6] = [Class::Other, Class::Counter, Class::Root, Class::Forget, Class::Entry, Class::Call];

    /// Of an instruction's bytes.
    pub fn of(bytes: &[u8]) -> Class {
        let is_prefix = |byte: &&u8| matches!(**byte, 0x40..=0x4f | 0x2e | 0x36 | 0x3e | 0x26 | 0x64..=0x67 | 0xf2 | 0xf3);
        let prefixes = bytes.iter().take_while(is_prefix).count();
        // The second byte of a ModRM: which of eight operations, and whether the operand is in memory.
        match bytes.get(prefixes..).unwrap_or_default() {
            [0x0f, 0x31, ..] => Class::Counter,
            [0x0f, 0x22, 0xd8..=0xdf, ..] => Class::Root,
            [0x0f, 0x01, modrm, ..] if *modrm < 0xc0 && modrm >> 3 & 7 == 7 => Class::Forget,
            [0x0f, 0x05 | 0x34, ..] => Class::Entry,
            [0xff, modrm, ..] if modrm >> 3 & 7 == 3 => Class::Entry,
            [0xff, modrm, ..] if modrm >> 3 & 7 == 2 => Class::Call,
            _ => Class::Other,
        }
    }
}

/// An instruction in one word, as QEMU carries it from its translation to its execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    pub addr: u64,
    pub size: u8,
    pub class: Class,
}

impl Instruction {
    /// Addresses are canonical: 48 bits hold all.
    pub fn pack(self) -> u64 {
        self.addr << 16 | u64::from(self.size & 15) << 8 | self.class as u64
    }

    pub fn unpack(word: u64) -> Instruction {
        Instruction {
            addr: (word as i64 >> 16) as u64,
            size: (word >> 8 & 15) as u8,
            class: Class::ALL.get(usize::from(word as u8)).copied().unwrap_or(Class::Other),
        }
    }
}

/// The kernel's code: from here up to the pages of the upper half that programs execute. It is mapped by large pages, but by small ones in the
/// tables of user code, which with isolation have its first pages only. Its data is mapped by small pages.
const KERNEL_CODE: std::ops::Range<u64> = 0xffff_ffff_8000_0000..0xffff_ffff_c000_0000;
/// The direct map of all memory, by large pages.
const DIRECT_MAP: std::ops::Range<u64> = 0xffff_8000_0000_0000..0xffff_c000_0000_0000;
/// The measuring program's code (`janua_probe::bare`).
const PROGRAM: std::ops::Range<u64> = 0x40_0000..0x1_0000_0000;
/// Represents the interrupt descriptors, a page that nothing but the processor touches.
const DESCRIPTORS: u64 = 0xffff_ffff_ffff_f000;

/// What one sample counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    pub misses: Misses,
    /// Writes of CR3.
    pub roots: u64,
}

/// The processor.
pub struct Machine {
    tlb: Tlb,
    /// Whether the kernel's pages are global: there is no isolation.
    global: bool,
    /// With isolation: whether the tables in use are user code's.
    user_tables: bool,
    counting: bool,
    forget: bool,
    roots: u64,
    /// The last instruction.
    last: Instruction,
}

impl Machine {
    /// `global`: the kernel maps its own half so, as it does without page-table isolation.
    pub fn new(global: bool) -> Machine {
        let last = Instruction { addr: 0, size: 0, class: Class::Other };
        Machine { tlb: Tlb::new(), global, user_tables: !global, counting: false, forget: false, roots: 0, last }
    }

    fn touch(&mut self, kind: Kind, addr: u64, size: u64) {
        let page = |addr: u64| {
            let code = kind == Kind::Instruction && KERNEL_CODE.contains(&addr) && !self.user_tables;
            let large = code || DIRECT_MAP.contains(&addr);
            let global = self.global && (KERNEL_CODE.contains(&addr) || (DIRECT_MAP.start..KERNEL_CODE.start).contains(&addr));
            Page { number: addr >> if large { 21 } else { 12 }, large, global }
        };
        let (first, last) = (page(addr), page(addr + size.max(1) - 1));
        self.tlb.access(kind, first);
        if last != first {
            self.tlb.access(kind, last);
        }
    }

    /// An instruction is executed; a sample that ends with it.
    pub fn execute(&mut self, word: u64) -> Option<Sample> {
        let instruction = Instruction::unpack(word);
        let before = std::mem::replace(&mut self.last, instruction);
        let mark = instruction.class == Class::Counter && PROGRAM.contains(&instruction.addr);
        if !self.counting {
            if mark {
                (self.counting, self.roots, self.tlb.misses) = (true, 0, Misses::default());
            }
            return None;
        }
        let was_user = !KERNEL_CODE.contains(&before.addr);
        if !KERNEL_CODE.contains(&instruction.addr) {
            self.user_tables = !self.global;
        }
        if was_user && KERNEL_CODE.contains(&instruction.addr) && before.class != Class::Entry {
            // An exception or interrupt. After a call it was the fetch at the address that was called.
            self.touch(Kind::Data, DESCRIPTORS, 16);
            if before.class == Class::Call {
                self.tlb.access_unmapped(Kind::Instruction);
            }
        }
        self.touch(Kind::Instruction, instruction.addr, instruction.size.into());
        match instruction.class {
            Class::Root => {
                self.roots += 1;
                self.user_tables = !self.global && !self.user_tables;
                self.tlb.change_root();
            }
            Class::Forget => self.forget = true,
            _ if mark => {
                self.counting = false;
                return Some(Sample { misses: self.tlb.misses, roots: self.roots });
            }
            _ => {}
        }
        None
    }

    /// An access to memory.
    pub fn access(&mut self, addr: u64, size: u64) {
        if std::mem::take(&mut self.forget) {
            self.tlb.forget_page(addr);
        } else if self.counting {
            self.touch(Kind::Data, addr, size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_known_by_their_bytes() {
        for (bytes, class) in [
            (&[0x0f, 0x31][..], Class::Counter),
            (&[0x0f, 0x22, 0xdc], Class::Root),
            (&[0x41, 0x0f, 0x22, 0xd8], Class::Root),
            (&[0x0f, 0x22, 0xe0], Class::Other),
            (&[0x0f, 0x01, 0x38], Class::Forget),
            (&[0x0f, 0x01, 0xf8], Class::Other),
            (&[0x0f, 0x05], Class::Entry),
            (&[0x48, 0xff, 0x5c, 0x24, 0x78], Class::Entry),
            (&[0xff, 0xd0], Class::Call),
            (&[0xcd, 0x30], Class::Other),
            (&[0x48], Class::Other),
            (&[], Class::Other),
        ] {
            assert_eq!(Class::of(bytes), class, "{bytes:x?}");
        }
    }

    #[test]
    fn an_instruction_fits_a_word() {
        for addr in [0, 0x40_0078, 0xffff_ffff_8000_0123, 0xffff_8000_0000_0000] {
            let instruction = Instruction { addr, size: 15, class: Class::Call };
            assert_eq!(Instruction::unpack(instruction.pack()), instruction);
        }
    }

    fn run(machine: &mut Machine, code: &[(u64, Class)]) -> Option<Sample> {
        let instructions = code.iter().map(|(addr, class)| Instruction { addr: *addr, size: 2, class: *class });
        instructions.fold(None, |sample, instruction| machine.execute(instruction.pack()).or(sample))
    }

    const USER: u64 = 0x40_0100;
    const KERNEL: u64 = 0xffff_ffff_8000_0000;

    /// The second of two turns: what is there already is no miss.
    fn second(global: bool, turn: &[(u64, Class)]) -> Sample {
        let mut machine = Machine::new(global);
        let turn = [&[(USER, Class::Counter)], turn, &[(USER, Class::Counter)]].concat();
        run(&mut machine, &turn);
        run(&mut machine, &turn).unwrap()
    }

    #[test]
    fn isolation_costs_walks() {
        let plain = second(true, &[(USER, Class::Entry), (KERNEL, Class::Other)]);
        assert_eq!(plain, Sample::default());
        let isolated = second(
            false,
            &[(USER, Class::Entry), (KERNEL, Class::Root), (KERNEL + 9, Class::Other), (KERNEL + 18, Class::Root)],
        );
        // The entry's page by user code's tables, the same by the kernel's, and after the second write the program's.
        assert_eq!(isolated, Sample { misses: Misses { first: [3, 0], walks: [3, 0] }, roots: 2 });
    }

    #[test]
    fn exceptions_read_descriptors_and_fetches_that_fail_walk() {
        let gate = second(false, &[(USER, Class::Other), (KERNEL, Class::Root)]);
        assert_eq!(gate.misses.walks, [2, 1]);
        let page = second(true, &[(USER, Class::Call), (KERNEL, Class::Other)]);
        assert_eq!(page.misses.walks, [1, 0]);
    }

    #[test]
    fn accesses_count_between_the_readings_only() {
        let mut machine = Machine::new(false);
        machine.access(0x1000, 8);
        run(&mut machine, &[(USER, Class::Counter)]);
        // Over the end of a page.
        machine.access(0x1ffc, 8);
        machine.access(0x2000, 8);
        let sample = run(&mut machine, &[(USER, Class::Counter)]).unwrap();
        assert_eq!(sample.misses.walks, [1, 2]);
        assert!(run(&mut machine, &[(KERNEL, Class::Counter)]).is_none());
    }
}
