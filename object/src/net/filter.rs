//! Filters of sockets: programs of the classic BPF machine (bpf(4), Linux' networking/filter.rst).
//!
//! A program is checked when it is attached and can then neither loop nor leave itself or its memory: jumps lead forward and into
//! it, its last instruction returns, and what it loads from memory it has stored before on every way there. So running it takes at
//! most as many steps as it has instructions.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use janua_abi::linux::net::{SockFilter, bpf};
use janua_abi::linux::{Errno, Result};
use janua_port::Machine;
use janua_rt::RwLock;

/// Words of memory a program has.
const WORDS: usize = 16;

/// A datagram as filters see it: the transport's header and the contents behind it, and what else is known.
#[derive(Default)]
pub struct Packet<'a> {
    pub head: &'a [u8],
    pub data: &'a [u8],
    /// The network's header, where there is one; otherwise what counts from it counts from the datagram.
    pub network: &'a [u8],
    /// The Ethernet type of the network protocol; 0 without one.
    pub protocol: u16,
    /// The interface it came by and its kind of hardware (ARPHRD_*).
    pub interface: Option<(u32, u16)>,
}

impl Packet<'_> {
    fn len(&self) -> u32 {
        (self.head.len() + self.data.len()) as u32
    }

    /// `size` bytes at an offset, big-endian. Negative offsets count from the network's header (SKF_NET_OFF).
    fn load(&self, at: u32, size: u32) -> Option<u32> {
        let byte = |at: usize| -> Option<u8> {
            if at < self.head.len() { Some(self.head[at]) } else { self.data.get(at - self.head.len()).copied() }
        };
        let mut value = 0;
        for turn in 0..size {
            let next = if (at as i32) < 0 {
                // All of the datagram is behind that header.
                let at = usize::try_from(at.checked_sub(bpf::NET_OFF)?.checked_add(turn)?).ok()?;
                match self.network.get(at) {
                    Some(byte) => Some(*byte),
                    None => byte(at - self.network.len()),
                }
            } else {
                byte(usize::try_from(at.checked_add(turn)?).ok()?)
            };
            value = value << 8 | u32::from(next?);
        }
        Some(value)
    }
}

/// A program that has been checked.
pub struct Filter {
    code: Box<[SockFilter]>,
    machine: &'static dyn Machine,
}

impl Filter {
    /// Checks a program. EINVAL.
    pub fn new(code: Vec<SockFilter>, machine: &'static dyn Machine) -> Result<Filter> {
        if code.is_empty() || code.len() > bpf::MAX || !check(&code) {
            return Err(Errno::EINVAL);
        }
        Ok(Filter { code: code.into_boxed_slice(), machine })
    }

    pub fn code(&self) -> &[SockFilter] {
        &self.code
    }

    /// How many bytes of a datagram are to be kept; 0: it is dropped.
    pub fn run(&self, packet: &Packet<'_>) -> u32 {
        let (mut a, mut x) = (0u32, 0u32);
        let mut memory = [0u32; WORDS];
        let mut at = 0;
        // What cannot be loaded, like what cannot be divided, ends the program with 0.
        while let Some(&SockFilter { code, jt, jf, k }) = self.code.get(at) {
            at += 1;
            let operand = if code & bpf::X != 0 { x } else { k };
            match code & bpf::CLASS {
                bpf::LD | bpf::LDX => match self.load(packet, code, k, (a, x), &memory) {
                    Load::A(value) => a = value,
                    Load::X(value) => x = value,
                    Load::End(value) => return value,
                },
                bpf::ST => memory[k as usize % WORDS] = a,
                bpf::STX => memory[k as usize % WORDS] = x,
                bpf::ALU => match compute(code, a, operand) {
                    Some(value) => a = value,
                    None => return 0,
                },
                bpf::JMP => {
                    let jump = match code & bpf::OP {
                        bpf::JA => k as usize,
                        op => usize::from(if compare(op, a, operand) { jt } else { jf }),
                    };
                    at += jump;
                }
                bpf::RET if code & bpf::A != 0 => return a,
                bpf::RET => return k,
                _ if code & bpf::TXA != 0 => a = x,
                _ => x = a,
            }
        }
        0
    }

    fn load(&self, packet: &Packet<'_>, code: u16, k: u32, (a, x): (u32, u32), memory: &[u32; WORDS]) -> Load {
        let size = match code & bpf::SIZE {
            bpf::H => 2,
            bpf::B => 1,
            _ => 4,
        };
        let to_x = code & bpf::CLASS == bpf::LDX;
        let value = match code & bpf::MODE {
            bpf::IMM => Some(k),
            bpf::LEN => Some(packet.len()),
            bpf::MEM => Some(memory[k as usize % WORDS]),
            bpf::MSH => packet.load(k, 1).map(|byte| (byte & 0xf) * 4),
            bpf::IND => packet.load(x.wrapping_add(k), size),
            _ if k >= bpf::AD_OFF => return self.extension(packet, k - bpf::AD_OFF, a, x),
            _ => packet.load(k, size),
        };
        match value {
            Some(value) if to_x => Load::X(value),
            Some(value) => Load::A(value),
            None => Load::End(0),
        }
    }

    /// What Linux adds to the machine, by loads beyond SKF_AD_OFF.
    fn extension(&self, packet: &Packet<'_>, which: u32, a: u32, x: u32) -> Load {
        match which {
            bpf::AD_PROTOCOL => Load::A(packet.protocol.into()),
            // Without an interface the program ends, with what it has.
            bpf::AD_IFINDEX => packet.interface.map_or(Load::End(a), |(index, _)| Load::A(index)),
            bpf::AD_HATYPE => packet.interface.map_or(Load::End(a), |(_, hardware)| Load::A(hardware.into())),
            bpf::AD_CPU => Load::A(self.machine.cpu() as u32),
            bpf::AD_ALU_XOR_X => Load::A(a ^ x),
            _ => {
                let mut bytes = [0; 4];
                self.machine.random(&mut bytes);
                Load::A(u32::from_ne_bytes(bytes))
            }
        }
    }
}

/// What a load does.
enum Load {
    A(u32),
    X(u32),
    /// Ends the program with this value.
    End(u32),
}

fn compute(code: u16, a: u32, operand: u32) -> Option<u32> {
    Some(match code & bpf::OP {
        bpf::ADD => a.wrapping_add(operand),
        bpf::SUB => a.wrapping_sub(operand),
        bpf::MUL => a.wrapping_mul(operand),
        bpf::DIV => a.checked_div(operand)?,
        bpf::MOD => a.checked_rem(operand)?,
        bpf::OR => a | operand,
        bpf::AND => a & operand,
        bpf::XOR => a ^ operand,
        bpf::LSH => a.wrapping_shl(operand),
        bpf::RSH => a.wrapping_shr(operand),
        _ => a.wrapping_neg(),
    })
}

fn compare(op: u16, a: u32, operand: u32) -> bool {
    match op {
        bpf::JEQ => a == operand,
        bpf::JGT => a > operand,
        bpf::JGE => a >= operand,
        _ => a & operand != 0,
    }
}

/// Whether an instruction exists and its constant is one it can have.
fn is_known(insn: &SockFilter) -> bool {
    let SockFilter { code, k, .. } = *insn;
    let rest = code & !bpf::CLASS;
    match code & bpf::CLASS {
        bpf::LD => match rest {
            // An extension there is.
            _ if rest & bpf::MODE == bpf::ABS && k >= bpf::AD_OFF => {
                let known = [bpf::AD_PROTOCOL, bpf::AD_IFINDEX, bpf::AD_HATYPE, bpf::AD_CPU, bpf::AD_ALU_XOR_X, bpf::AD_RANDOM];
                rest & bpf::SIZE != bpf::SIZE && rest & !(bpf::MODE | bpf::SIZE) == 0 && known.contains(&(k - bpf::AD_OFF))
            }
            bpf::MEM => (k as usize) < WORDS,
            bpf::IMM | bpf::LEN => true,
            _ => {
                matches!(rest & bpf::MODE, bpf::ABS | bpf::IND)
                    && rest & bpf::SIZE != bpf::SIZE
                    && rest & !(bpf::MODE | bpf::SIZE) == 0
            }
        },
        bpf::LDX => match rest {
            bpf::MEM => (k as usize) < WORDS,
            bpf::IMM | bpf::LEN => true,
            _ => rest == bpf::MSH | bpf::B,
        },
        bpf::ST | bpf::STX => rest == 0 && (k as usize) < WORDS,
        bpf::ALU => match rest {
            bpf::NEG => true,
            bpf::DIV | bpf::MOD => k != 0,
            bpf::LSH | bpf::RSH => k < 32,
            _ => rest & !(bpf::OP | bpf::X) == 0 && rest & bpf::OP <= bpf::XOR && rest & bpf::OP != bpf::NEG,
        },
        bpf::JMP => match rest {
            bpf::JA => true,
            _ => rest & !(bpf::OP | bpf::X) == 0 && matches!(rest & bpf::OP, bpf::JEQ | bpf::JGT | bpf::JGE | bpf::JSET),
        },
        bpf::RET => matches!(rest, 0 | bpf::A),
        _ => matches!(rest, 0 | bpf::TXA),
    }
}

/// Whether a program can be run (see the module's description).
fn check(code: &[SockFilter]) -> bool {
    // For each instruction the words that are stored on every way there; nothing leads there yet: all of them.
    let mut stored = vec![u16::MAX; code.len()];
    let mut now = 0;
    for (at, insn) in code.iter().enumerate() {
        if !is_known(insn) {
            return false;
        }
        now &= stored[at];
        let mut lead = |distance: usize, now: u16| match (at + 1).checked_add(distance).and_then(|to| stored.get_mut(to)) {
            Some(there) => {
                *there &= now;
                true
            }
            None => false,
        };
        let class = insn.code & bpf::CLASS;
        match class {
            bpf::ST | bpf::STX => now |= 1 << insn.k,
            bpf::LD | bpf::LDX if insn.code & bpf::MODE == bpf::MEM && now & 1 << insn.k == 0 => return false,
            bpf::JMP => {
                let fine = match insn.code & bpf::OP {
                    bpf::JA => lead(insn.k as usize, now),
                    _ => lead(insn.jt.into(), now) && lead(insn.jf.into(), now),
                };
                if !fine {
                    return false;
                }
                // Only jumps lead to what follows.
                now = u16::MAX;
            }
            _ => {}
        }
    }
    code.last().is_some_and(|last| last.code & bpf::CLASS == bpf::RET)
}

/// The place of a socket's filter.
#[derive(Default)]
pub struct FilterPlace {
    /// Whether there is one, for senders.
    set: AtomicBool,
    /// SO_LOCK_FILTER.
    locked: AtomicBool,
    filter: RwLock<Option<Arc<Filter>>>,
}

impl FilterPlace {
    /// Attaches a filter in exchange for the one there is, or takes that off. EPERM when it is locked, ENOENT when there is none to take
    /// off.
    pub fn set(&self, filter: Option<Filter>) -> Result<()> {
        self.may_change()?;
        let mut place = self.filter.write();
        if filter.is_none() && place.is_none() {
            return Err(Errno::ENOENT);
        }
        self.set.store(filter.is_some(), Ordering::Release);
        *place = filter.map(Arc::new);
        Ok(())
    }

    /// EPERM when the filter is locked.
    pub fn may_change(&self) -> Result<()> {
        if self.is_locked() { Err(Errno::EPERM) } else { Ok(()) }
    }

    /// SO_LOCK_FILTER: it cannot be unlocked again. EPERM.
    pub fn lock(&self, locked: bool) -> Result<()> {
        if !locked {
            return self.may_change();
        }
        self.locked.store(true, Ordering::Relaxed);
        Ok(())
    }

    pub fn is_locked(&self) -> bool {
        self.locked.load(Ordering::Relaxed)
    }

    pub fn get(&self) -> Option<Arc<Filter>> {
        if self.set.load(Ordering::Acquire) { self.filter.read().clone() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insn(code: u16, k: u32) -> SockFilter {
        SockFilter { code, jt: 0, jf: 0, k }
    }

    #[test]
    fn every_program_of_two_words_that_passes_the_check_ends() {
        // All codes, followed by a return: nothing may be out of bounds.
        for code in 0..=u16::MAX {
            for k in [0, 1, 15, 16, 31, 32, u32::MAX, bpf::AD_OFF, bpf::NET_OFF] {
                let program = [insn(code, k), insn(bpf::RET, 7)];
                if check(&program) {
                    assert!(is_known(&program[0]) && code <= 0xff, "{code:#x}");
                }
            }
        }
    }

    #[test]
    fn jumps_lead_into_the_program_and_memory_is_stored_first() {
        let jump = |k| [insn(bpf::JMP | bpf::JA, k), insn(bpf::RET, 0)];
        assert!(check(&jump(0)));
        assert!(!check(&jump(1)) && !check(&jump(u32::MAX)));
        let branch = SockFilter { code: bpf::JMP | bpf::JEQ, jt: 0, jf: 1, k: 0 };
        let one_way = [branch, insn(bpf::ST, 2), insn(bpf::LD | bpf::MEM, 2), insn(bpf::RET, 0)];
        assert!(!check(&one_way));
        let both = [insn(bpf::ST, 2), branch, insn(bpf::ST, 2), insn(bpf::LD | bpf::MEM, 2), insn(bpf::RET, 0)];
        assert!(check(&both));
        assert!(!check(&[insn(bpf::LD | bpf::IMM, 1)]));
    }

    #[test]
    fn loads_are_big_endian_and_stay_within_the_packet() {
        let packet = Packet { head: &[1, 2, 3], data: &[4, 5], network: &[0x45, 0, 9], ..Packet::default() };
        assert_eq!(packet.load(1, 4), Some(0x0203_0405));
        assert_eq!(packet.load(2, 4), None);
        assert_eq!(packet.load(u32::MAX, 1), None);
        assert_eq!(packet.load(bpf::NET_OFF, 1), Some(0x45));
        assert_eq!(packet.load(bpf::NET_OFF + 2, 2), Some(0x0901));
        assert_eq!(packet.load(bpf::NET_OFF + 7, 2), None);
        let alone = Packet { data: &[1, 2], ..Packet::default() };
        assert_eq!((alone.load(bpf::NET_OFF, 2), alone.load(bpf::NET_OFF + 1, 2)), (Some(0x0102), None));
        assert_eq!(packet.load(bpf::NET_OFF - 1, 1), None);
    }
}
