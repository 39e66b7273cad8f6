//! Programs for [`crate::processor`]: code with labels, an executable around it, a file tree that holds it.

use std::collections::BTreeMap;

/// General registers by their numbers in instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reg {
    Rax,
    Rcx,
    Rdx,
    Rbx,
    Rsp,
    Rbp,
    Rsi,
    Rdi,
    R8,
    R9,
    R10,
    R11,
    R12,
    R13,
    R14,
    R15,
}

/// Where code begins in memory.
pub const CODE: u64 = 0x40_0000;
/// Where data begins: a megabyte of zeroes, to be read and written.
pub const DATA: u64 = 0x80_0000;
const DATA_SIZE: u64 = 1 << 20;

/// Registers of a call's words, as Linux has them.
const WORDS: [Reg; 6] = [Reg::Rdi, Reg::Rsi, Reg::Rdx, Reg::R10, Reg::R8, Reg::R9];

/// A program in the making. Instructions follow in the order of the calls.
#[derive(Clone, Default)]
pub struct Program {
    code: Vec<u8>,
    labels: BTreeMap<String, usize>,
    /// Places of relative words, and of absolute ones, with the labels they name.
    jumps: Vec<(usize, String)>,
    words: Vec<(usize, String)>,
}

impl Program {
    /// Bytes in front of the first instruction, in the executable and so behind [`CODE`].
    pub const HEADERS: usize = 64 + 2 * 56;

    pub fn new() -> Program {
        Program::default()
    }

    pub fn label(mut self, name: &str) -> Program {
        let old = self.labels.insert(name.into(), self.code.len());
        assert!(old.is_none(), "the label {name} is there twice");
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Program {
        self.code.extend_from_slice(bytes);
        self
    }

    pub fn set(self, reg: Reg, value: u64) -> Program {
        let number = reg as u8;
        self.bytes(&[0x48 | number >> 3, 0xb8 + (number & 7)]).bytes(&value.to_le_bytes())
    }

    /// A register holds where a label is.
    pub fn set_label(mut self, reg: Reg, label: &str) -> Program {
        self = self.set(reg, 0);
        self.words.push((self.code.len() - 8, label.into()));
        self
    }

    fn mov(self, opcode: u8, mode: u8, reg: Reg, base: Reg) -> Program {
        let (reg, base) = (reg as u8, base as u8);
        self.bytes(&[0x48 | reg >> 3 << 2 | base >> 3, opcode, mode << 6 | (reg & 7) << 3 | base & 7])
    }

    pub fn copy(self, to: Reg, from: Reg) -> Program {
        self.mov(0x89, 3, from, to)
    }

    pub fn load(self, to: Reg, pointer: Reg) -> Program {
        assert_plain(pointer);
        self.mov(0x8b, 0, to, pointer)
    }

    pub fn store(self, pointer: Reg, from: Reg) -> Program {
        assert_plain(pointer);
        self.mov(0x89, 0, from, pointer)
    }

    /// Stores a constant; rbx and rcx are lost.
    pub fn store_at(self, addr: u64, value: u64) -> Program {
        self.set(Reg::Rbx, addr).set(Reg::Rcx, value).store(Reg::Rbx, Reg::Rcx)
    }

    /// rax becomes what is at an address; rbx is lost.
    pub fn load_at(self, addr: u64) -> Program {
        self.set(Reg::Rbx, addr).load(Reg::Rax, Reg::Rbx)
    }

    /// A call: number and words. The result is in rax.
    pub fn call(self, number: usize, words: &[u64]) -> Program {
        let with = words.iter().zip(WORDS).fold(self, |program, (word, reg)| program.set(reg, *word));
        with.set(Reg::Rax, number as u64).bytes(&[0x0f, 0x05])
    }

    /// A call with the words that are in the registers already.
    pub fn call_again(self, number: usize) -> Program {
        self.set(Reg::Rax, number as u64).bytes(&[0x0f, 0x05])
    }

    /// `int`: a call with all registers as they are.
    pub fn interrupt(self, vector: u8) -> Program {
        self.bytes(&[0xcd, vector])
    }

    /// `int3`, and bytes behind it.
    pub fn breakpoint(self, behind: &[u8]) -> Program {
        self.bytes(&[0xcc]).bytes(behind)
    }

    pub fn add_to_rax(self, value: i32) -> Program {
        self.bytes(&[0x48, 0x05]).bytes(&value.to_le_bytes())
    }

    fn jump_by(mut self, opcode: &[u8], label: &str) -> Program {
        self = self.bytes(opcode).bytes(&[0; 4]);
        self.jumps.push((self.code.len() - 4, label.into()));
        self
    }

    pub fn jump(self, label: &str) -> Program {
        self.jump_by(&[0xe9], label)
    }

    /// Goes on at the label if rax is this.
    pub fn jump_if(self, value: i32, label: &str) -> Program {
        self.bytes(&[0x48, 0x3d]).bytes(&value.to_le_bytes()).jump_by(&[0x0f, 0x84], label)
    }

    /// Goes on at the label unless rax is this.
    pub fn jump_unless(self, value: i32, label: &str) -> Program {
        self.bytes(&[0x48, 0x3d]).bytes(&value.to_le_bytes()).jump_by(&[0x0f, 0x85], label)
    }

    /// Ends the program with this exit code (exit_group) unless rax is the value.
    pub fn expect(mut self, value: i32, code: u64) -> Program {
        const EXIT_GROUP: usize = 231;
        let right = format!("right at {}", self.code.len());
        self = self.jump_if(value, &right);
        self.call(EXIT_GROUP, &[code]).label(&right)
    }

    /// Only for the kernel, both.
    pub fn cli(self) -> Program {
        self.bytes(&[0xfa])
    }

    pub fn sti(self) -> Program {
        self.bytes(&[0xfb])
    }

    /// So many turns of a loop of three instructions; rax is 0 then.
    pub fn turns(self, count: u64) -> Program {
        let label = format!("turns at {}", self.size());
        self.set(Reg::Rax, count).label(&label).add_to_rax(-1).jump_unless(0, &label)
    }

    pub fn nop(self) -> Program {
        self.bytes(&[0x90])
    }

    /// Bytes so far.
    pub fn size(&self) -> usize {
        self.code.len()
    }

    pub fn ret(self) -> Program {
        self.bytes(&[0xc3])
    }

    pub fn invalid(self) -> Program {
        self.bytes(&[0x0f, 0x0b])
    }

    /// The executable (ELF) with this code and [`DATA`].
    pub fn executable(mut self) -> Vec<u8> {
        let base = Program::HEADERS;
        for (at, label) in std::mem::take(&mut self.jumps) {
            let to = *self.labels.get(&label).unwrap_or_else(|| panic!("there is no label {label}"));
            let distance = i32::try_from(to as i64 - (at + 4) as i64).expect("programs are small");
            self.code[at..at + 4].copy_from_slice(&distance.to_le_bytes());
        }
        for (at, label) in std::mem::take(&mut self.words) {
            let to = *self.labels.get(&label).unwrap_or_else(|| panic!("there is no label {label}"));
            self.code[at..at + 8].copy_from_slice(&(CODE + (base + to) as u64).to_le_bytes());
        }
        let size = (base + self.code.len()) as u64;
        let mut file = Vec::new();
        // ELF, 64 bits, little-endian; executable for x86-64.
        file.extend_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 62, 0, 1, 0, 0, 0]);
        for word in [CODE + base as u64, 64, 0] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(&0u32.to_le_bytes());
        for half in [64u16, 56, 2, 0, 0, 0] {
            file.extend_from_slice(&half.to_le_bytes());
        }
        const LOAD: u32 = 1;
        let (read, write, run) = (4, 2, 1);
        segment(&mut file, LOAD, read | run, CODE, size, size);
        segment(&mut file, LOAD, read | write, DATA, 0, DATA_SIZE);
        file.extend_from_slice(&self.code);
        file
    }
}

/// With these as a base an instruction needs more bytes than the processor knows.
fn assert_plain(pointer: Reg) {
    assert!(!matches!(pointer as u8 & 7, 4 | 5), "{pointer:?} cannot be a pointer here");
}

/// A program header, of bytes from the file's beginning on.
fn segment(file: &mut Vec<u8>, kind: u32, rights: u32, at: u64, in_file: u64, size: u64) {
    file.extend_from_slice(&kind.to_le_bytes());
    file.extend_from_slice(&rights.to_le_bytes());
    for word in [0, at, at, in_file, size, 0x1000] {
        file.extend_from_slice(&word.to_le_bytes());
    }
}

/// A file tree in the format of cpio's "newc": names with their bytes, all of them executable.
pub fn tree(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = Vec::new();
    let dirs = ["dev", "proc", "tmp"].map(|name| (name, 0o040_755, Vec::new()));
    let files = files.iter().map(|(name, bytes)| (*name, 0o100_755, bytes.clone()));
    for (index, (name, mode, bytes)) in dirs.into_iter().chain(files).chain([("TRAILER!!!", 0, Vec::new())]).enumerate() {
        let fields = [index as u32 + 1, mode, 0, 0, 1, 0, bytes.len() as u32, 0, 0, 0, 0, name.len() as u32 + 1, 0];
        archive.extend_from_slice(b"070701");
        for field in fields {
            archive.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        archive.extend_from_slice(name.as_bytes());
        archive.push(0);
        archive.resize(archive.len().next_multiple_of(4), 0);
        archive.extend_from_slice(&bytes);
        archive.resize(archive.len().next_multiple_of(4), 0);
    }
    archive
}
