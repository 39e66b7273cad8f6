//! The registers of a thread in gdb's order, and their description for gdb.
//!
//! gdb numbers registers in the order in which the description names them. A thread has one of two orders, by its code (64-bit or i386),
//! and the upper halves of vector registers where the processor has them; so the order is made anew for each thread that is asked for, which
//! is also what an exec of a program of the other kind needs.

use std::fmt::Write;
use std::io::{Error, ErrorKind, Result};
use std::num::NonZeroUsize;

use gdbstub::arch::{Arch, RegId, Registers};

use crate::host;

/// x86 of either kind: what gdb sends and is sent are bytes, in the order of [`Bank`].
pub enum X86 {}

impl Arch for X86 {
    type Usize = u64;
    type Registers = Bytes;
    type BreakpointKind = usize;
    type RegId = Number;
}

/// All registers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bytes(pub Vec<u8>);

impl Registers for Bytes {
    type ProgramCounter = u64;

    fn pc(&self) -> u64 {
        0
    }

    fn gdb_serialize(&self, mut write_byte: impl FnMut(Option<u8>)) {
        self.0.iter().for_each(|byte| write_byte(Some(*byte)));
    }

    fn gdb_deserialize(&mut self, bytes: &[u8]) -> core::result::Result<(), ()> {
        self.0 = bytes.to_vec();
        Ok(())
    }
}

/// A register by gdb's number.
#[derive(Clone, Copy, Debug)]
pub struct Number(pub usize);

impl RegId for Number {
    fn from_raw_id(id: usize) -> Option<(Number, Option<NonZeroUsize>)> {
        Some((Number(id), None))
    }
}

/// Where a register is.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In the general set, at an offset.
    General(usize),
    /// In the area that XSAVE stores, at an offset.
    Area(usize),
    /// The tags of the x87 registers, two bits each; the area has one for each.
    Tags,
}

/// A register of the description.
struct Register {
    name: String,
    /// Bytes gdb is sent.
    size: usize,
    /// Bytes there are of it.
    held: usize,
    place: Place,
    kind: &'static str,
}

/// General registers in gdb's order by their places in `struct user_regs_struct`, in words.
const GENERAL: [(&str, usize, &str); 24] = [
    ("rax", 10, "int64"),
    ("rbx", 5, "int64"),
    ("rcx", 11, "int64"),
    ("rdx", 12, "int64"),
    ("rsi", 13, "int64"),
    ("rdi", 14, "int64"),
    ("rbp", 4, "data_ptr"),
    ("rsp", 19, "data_ptr"),
    ("r8", 9, "int64"),
    ("r9", 8, "int64"),
    ("r10", 7, "int64"),
    ("r11", 6, "int64"),
    ("r12", 3, "int64"),
    ("r13", 2, "int64"),
    ("r14", 1, "int64"),
    ("r15", 0, "int64"),
    ("rip", 16, "code_ptr"),
    ("eflags", 18, "i386_eflags"),
    ("cs", 17, "int32"),
    ("ss", 20, "int32"),
    ("ds", 23, "int32"),
    ("es", 24, "int32"),
    ("fs", 25, "int32"),
    ("gs", 26, "int32"),
];
const ORIG_RAX: usize = 15;
const FS_BASE: usize = 21;
const GS_BASE: usize = 22;
/// The instruction pointer's and the status register's places.
const RIP: usize = 16;

/// The same of i386.
const GENERAL_32: [(&str, usize, &str); 16] = [
    ("eax", 6, "int32"),
    ("ecx", 1, "int32"),
    ("edx", 2, "int32"),
    ("ebx", 0, "int32"),
    ("esp", 15, "data_ptr"),
    ("ebp", 5, "data_ptr"),
    ("esi", 3, "int32"),
    ("edi", 4, "int32"),
    ("eip", 12, "code_ptr"),
    ("eflags", 14, "i386_eflags"),
    ("cs", 13, "int32"),
    ("ss", 16, "int32"),
    ("ds", 7, "int32"),
    ("es", 8, "int32"),
    ("fs", 9, "int32"),
    ("gs", 10, "int32"),
];
const ORIG_EAX: usize = 11;
const EIP: usize = 12;
/// Bytes of the general set of i386 code.
const SIZE_32: usize = 17 * 4;

/// The x87 unit's own in gdb's order, by offset and size in the area.
const CONTROL: [(&str, usize, usize); 8] = [
    ("fctrl", 0, 2),
    ("fstat", 2, 2),
    ("ftag", 4, 1),
    ("fiseg", 12, 2),
    ("fioff", 8, 4),
    ("foseg", 20, 2),
    ("fooff", 16, 4),
    ("fop", 6, 2),
];
const ST: usize = 32;
const XMM: usize = 160;
const MXCSR: usize = 24;
const LEGACY: usize = 512;
/// Which components the area holds, and in its legacy part which there can be.
const PRESENT: usize = 512;
const POSSIBLE: usize = 464;
/// The upper halves of the 256-bit registers (Intel SDM 1, 13.4.1: at this offset in the standard form).
const YMM_HIGH: usize = 576;
const X87: u64 = 1;
const SSE: u64 = 2;
const AVX: u64 = 4;

const FLAGS: &str = r#"<flags id="i386_eflags" size="4"><field name="CF" start="0" end="0"/><field name="PF" start="2" end="2"/><field name="AF" start="4" end="4"/><field name="ZF" start="6" end="6"/><field name="SF" start="7" end="7"/><field name="TF" start="8" end="8"/><field name="IF" start="9" end="9"/><field name="DF" start="10" end="10"/><field name="OF" start="11" end="11"/><field name="NT" start="14" end="14"/><field name="RF" start="16" end="16"/><field name="VM" start="17" end="17"/><field name="AC" start="18" end="18"/><field name="ID" start="21" end="21"/></flags>"#;

const VECTORS: &str = r#"<vector id="v4f" type="ieee_single" count="4"/><vector id="v2d" type="ieee_double" count="2"/><vector id="v16i8" type="int8" count="16"/><vector id="v8i16" type="int16" count="8"/><vector id="v4i32" type="int32" count="4"/><vector id="v2i64" type="int64" count="2"/><union id="vec128"><field name="v4_float" type="v4f"/><field name="v2_double" type="v2d"/><field name="v16_int8" type="v16i8"/><field name="v8_int16" type="v8i16"/><field name="v4_int32" type="v4i32"/><field name="v2_int64" type="v2i64"/><field name="uint128" type="uint128"/></union><flags id="i386_mxcsr" size="4"><field name="IE" start="0" end="0"/><field name="DE" start="1" end="1"/><field name="ZE" start="2" end="2"/><field name="OE" start="3" end="3"/><field name="UE" start="4" end="4"/><field name="PE" start="5" end="5"/><field name="DAZ" start="6" end="6"/><field name="IM" start="7" end="7"/><field name="DM" start="8" end="8"/><field name="ZM" start="9" end="9"/><field name="OM" start="10" end="10"/><field name="UM" start="11" end="11"/><field name="PM" start="12" end="12"/><field name="FZ" start="15" end="15"/></flags>"#;

/// The registers of a stopped thread.
pub struct Bank {
    general: Vec<u8>,
    area: Vec<u8>,
    /// Which set the area is.
    area_set: i32,
    is_32: bool,
}

impl Bank {
    pub fn of(tid: u32) -> Result<Bank> {
        let general = host::registers(tid, host::GENERAL)?;
        let is_32 = general.len() == SIZE_32;
        let (area_set, mut area) = match host::registers(tid, host::XSAVE) {
            Ok(area) if area.len() >= YMM_HIGH => (host::XSAVE, area),
            _ => {
                let set = if is_32 { host::FXSAVE_32 } else { host::FXSAVE };
                (set, host::registers(tid, set)?)
            }
        };
        if area.len() < LEGACY {
            return Err(ErrorKind::InvalidData.into());
        }
        if area_set == host::XSAVE {
            settle(&mut area);
        }
        Ok(Bank { general, area, area_set, is_32 })
    }

    fn has_avx(&self) -> bool {
        self.area_set == host::XSAVE && word(&self.area, POSSIBLE) & AVX != 0 && self.area.len() >= YMM_HIGH + 256
    }

    /// The registers by feature.
    fn features(&self) -> Vec<(&'static str, Vec<Register>)> {
        let (width, vectors) = if self.is_32 { (4, 8) } else { (8, 16) };
        let table: &[(&str, usize, &'static str)] = if self.is_32 { &GENERAL_32 } else { &GENERAL };
        let general = |&(name, at, kind): &(&str, usize, &'static str)| {
            let size = if kind == "int32" || kind == "i386_eflags" { 4 } else { width };
            Register { name: name.to_owned(), size, held: size, place: Place::General(at * width), kind }
        };
        let area = |name: String, size: usize, held: usize, at: usize, kind| Register {
            name,
            size,
            held,
            place: Place::Area(at),
            kind,
        };
        let mut core: Vec<Register> = table.iter().map(general).collect();
        core.extend((0..8).map(|n| area(format!("st{n}"), 10, 10, ST + 16 * n, "i387_ext")));
        core.extend(CONTROL.iter().map(|&(name, at, held)| {
            let place = if name == "ftag" { Place::Tags } else { Place::Area(at) };
            Register { name: name.to_owned(), size: 4, held, place, kind: "int" }
        }));
        let mut sse: Vec<Register> = (0..vectors).map(|n| area(format!("xmm{n}"), 16, 16, XMM + 16 * n, "vec128")).collect();
        sse.push(area("mxcsr".to_owned(), 4, 4, MXCSR, "i386_mxcsr"));
        let mut all = vec![("core", core), ("sse", sse)];
        if self.is_32 {
            all.push(("linux", vec![general(&("orig_eax", ORIG_EAX, "int"))]));
        } else {
            all.push(("linux", vec![general(&("orig_rax", ORIG_RAX, "int"))]));
            all.push(("segments", vec![general(&("fs_base", FS_BASE, "int")), general(&("gs_base", GS_BASE, "int"))]));
        }
        if self.has_avx() {
            let high = (0..vectors).map(|n| area(format!("ymm{n}h"), 16, 16, YMM_HIGH + 16 * n, "uint128"));
            all.push(("avx", high.collect()));
        }
        all
    }

    fn in_order(&self) -> Vec<Register> {
        self.features().into_iter().flat_map(|(_, registers)| registers).collect()
    }

    /// The description, as gdb reads it.
    pub fn description(&self) -> String {
        let architecture = if self.is_32 { "i386" } else { "i386:x86-64" };
        let mut text = format!(
            "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target><architecture>{architecture}</architecture>\
             <osabi>GNU/Linux</osabi>"
        );
        for (feature, registers) in self.features() {
            let types = match feature {
                "core" => FLAGS,
                "sse" => VECTORS,
                _ => "",
            };
            // A string takes it all.
            let _ = write!(text, "<feature name=\"org.gnu.gdb.i386.{feature}\">{types}");
            for Register { name, size, kind, .. } in registers {
                let group = if kind == "i387_ext" || feature == "core" && kind == "int" { " group=\"float\"" } else { "" };
                let _ = write!(text, "<reg name=\"{name}\" bitsize=\"{}\" type=\"{kind}\"{group}/>", size * 8);
            }
            text.push_str("</feature>");
        }
        text.push_str("</target>");
        text
    }

    fn get(&self, register: &Register) -> Vec<u8> {
        let source = match register.place {
            Place::General(at) => self.general.get(at..at + register.held),
            Place::Area(at) => self.area.get(at..at + register.held),
            Place::Tags => return u32::from(self.tags()).to_le_bytes().to_vec(),
        };
        let mut bytes = source.unwrap_or_default().to_vec();
        bytes.resize(register.size, 0);
        bytes
    }

    fn set(&mut self, register: &Register, bytes: &[u8]) {
        let target = match register.place {
            Place::General(at) => self.general.get_mut(at..at + register.held),
            Place::Area(at) => self.area.get_mut(at..at + register.held),
            Place::Tags => {
                let tags = u16::from_le_bytes([bytes[0], bytes[1]]);
                self.area[4] = (0..8).fold(0, |short, n| short | u8::from(tags >> (2 * n) & 3 != 3) << n);
                return;
            }
        };
        if let Some(target) = target {
            target.copy_from_slice(&bytes[..target.len()]);
        }
    }

    /// The tag word: empty, or what kind of number a register holds (Intel SDM 1, 8.1.7 and 10.5.1.1).
    fn tags(&self) -> u16 {
        let top = usize::from(self.area[3] >> 3 & 7);
        (0..8).fold(0, |tags, n| {
            let at = ST + 16 * ((n + 8 - top) % 8);
            let exponent = u16::from_le_bytes([self.area[at + 8], self.area[at + 9]]) & 0x7fff;
            let fraction = word(&self.area, at);
            let tag = match (self.area[4] >> n & 1, exponent, fraction) {
                (0, ..) => 3,
                (_, 0, 0) => 1,
                (_, 1..0x7fff, fraction) if fraction >> 63 == 1 => 0,
                _ => 2,
            };
            tags | tag << (2 * n)
        })
    }

    /// All registers.
    pub fn bytes(&self) -> Vec<u8> {
        self.in_order().iter().flat_map(|register| self.get(register)).collect()
    }

    pub fn one(&self, number: usize) -> Option<Vec<u8>> {
        self.in_order().get(number).map(|register| self.get(register))
    }

    /// Replaces the first registers. False for bytes that end within one, or beyond the last.
    pub fn replace(&mut self, mut bytes: &[u8]) -> bool {
        for register in self.in_order() {
            if bytes.is_empty() {
                break;
            }
            let Some((own, rest)) = bytes.split_at_checked(register.size) else { return false };
            self.set(&register, own);
            bytes = rest;
        }
        bytes.is_empty()
    }

    pub fn replace_one(&mut self, number: usize, bytes: &[u8]) -> bool {
        let order = self.in_order();
        match order.get(number).filter(|register| register.size == bytes.len()) {
            Some(register) => {
                self.set(register, bytes);
                true
            }
            None => false,
        }
    }

    /// Gives them back to the thread.
    pub fn store(mut self, tid: u32) -> Result<()> {
        host::set_registers(tid, host::GENERAL, &self.general)?;
        if self.area_set == host::XSAVE {
            let avx = if self.has_avx() { AVX } else { 0 };
            let present = word(&self.area, PRESENT) | X87 | SSE | avx;
            self.area[PRESENT..PRESENT + 8].copy_from_slice(&present.to_le_bytes());
        }
        host::set_registers(tid, self.area_set, &self.area)
    }
}

/// What the area does not hold is as after a reset, whatever is in its place (Intel SDM 1, 13.6).
fn settle(area: &mut [u8]) {
    let present = word(area, PRESENT);
    if present & X87 == 0 {
        area[..MXCSR].fill(0);
        area[..2].copy_from_slice(&0x37fu16.to_le_bytes());
        area[ST..XMM].fill(0);
    }
    if present & SSE == 0 {
        area[XMM..XMM + 256].fill(0);
        if present & AVX == 0 {
            area[MXCSR..MXCSR + 4].copy_from_slice(&0x1f80u32.to_le_bytes());
        }
    }
    if present & AVX == 0
        && let Some(high) = area.get_mut(YMM_HIGH..YMM_HIGH + 256)
    {
        high.fill(0);
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// The instruction pointer of a stopped thread.
pub fn pc(tid: u32) -> Result<u64> {
    let general = host::registers(tid, host::GENERAL)?;
    Ok(if general.len() == SIZE_32 { word(&general, EIP * 4) & 0xffff_ffff } else { word(&general, RIP * 8) })
}

pub fn set_pc(tid: u32, pc: u64) -> Result<()> {
    let mut general = host::registers(tid, host::GENERAL)?;
    let (at, len) = if general.len() == SIZE_32 { (EIP * 4, 4) } else { (RIP * 8, 8) };
    general.get_mut(at..at + len).ok_or(Error::from(ErrorKind::InvalidData))?.copy_from_slice(&pc.to_le_bytes()[..len]);
    host::set_registers(tid, host::GENERAL, &general)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bank(is_32: bool) -> Bank {
        let mut area = vec![0; YMM_HIGH + 256];
        area[POSSIBLE] = 7;
        area[PRESENT] = 7;
        Bank { general: vec![0; if is_32 { SIZE_32 } else { 27 * 8 }], area, area_set: host::XSAVE, is_32 }
    }

    #[test]
    fn registers_have_the_numbers_gdb_gives_them() {
        for (is_32, expected) in [
            (
                false,
                [
                    ("rip", 16),
                    ("gs", 23),
                    ("st0", 24),
                    ("fop", 39),
                    ("xmm0", 40),
                    ("mxcsr", 56),
                    ("orig_rax", 57),
                    ("ymm15h", 75),
                ],
            ),
            (
                true,
                [
                    ("eip", 8),
                    ("gs", 15),
                    ("st0", 16),
                    ("fop", 31),
                    ("xmm0", 32),
                    ("mxcsr", 40),
                    ("orig_eax", 41),
                    ("ymm7h", 49),
                ],
            ),
        ] {
            let order = bank(is_32).in_order();
            for (name, number) in expected {
                assert_eq!(order.iter().position(|register| register.name == name), Some(number), "{name}");
            }
        }
    }

    #[test]
    fn what_is_read_can_be_written() {
        for is_32 in [false, true] {
            let mut bank = bank(is_32);
            let bytes: Vec<u8> = (0..bank.bytes().len()).map(|n| n as u8 | 1).collect();
            assert!(bank.replace(&bytes));
            let (general, area) = (bank.general.clone(), bank.area.clone());
            let back = bank.bytes();
            assert!(bank.replace(&back));
            assert_eq!((bank.general.clone(), bank.area.clone()), (general, area));
            assert!(!bank.replace(&back[1..]) && !bank.replace(&[&back[..], &[0]].concat()));
            assert!(bank.replace_one(0, &back[..if is_32 { 4 } else { 8 }]) && !bank.replace_one(0, &back[..1]));
            assert!(!bank.replace_one(99, &back[..8]) && bank.one(99).is_none());
        }
    }

    #[test]
    fn tags_tell_what_a_register_holds() {
        let mut bank = bank(false);
        assert_eq!(bank.tags(), 0xffff);
        // One number on the stack, in physical register 7: 1.0.
        bank.area[3] = 7 << 3;
        bank.area[4] = 0x80;
        bank.area[ST + 7] = 0x80;
        bank.area[ST + 8..ST + 10].copy_from_slice(&0x3fffu16.to_le_bytes());
        assert_eq!(bank.tags(), 0x3fff);
        bank.area[ST..ST + 10].fill(0);
        assert_eq!(bank.tags(), 0x7fff);
    }
}
