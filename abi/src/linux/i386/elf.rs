//! ELF32 files as exec reads them, in the words of ELF64.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::structs;
use crate::linux::elf::{Header, ProgramHeader};

pub const EM_386: u16 = 3;
pub const AT_SYSINFO: u64 = 32;

structs! {
    /// The file header.
    Header32 (52) {
        ident: [u8; 16],
        kind: u16,
        machine: u16,
        version: u32,
        entry: u32,
        phoff: u32,
        shoff: u32,
        flags: u32,
        ehsize: u16,
        phentsize: u16,
        phnum: u16,
        shentsize: u16,
        shnum: u16,
        shstrndx: u16,
    }
    /// A program header.
    ProgramHeader32 (32) {
        kind: u32,
        offset: u32,
        vaddr: u32,
        paddr: u32,
        filesz: u32,
        memsz: u32,
        flags: u32,
        align: u32,
    }
}

impl Header32 {
    /// The same with wide words.
    pub fn widen(self) -> Header {
        Header {
            ident: self.ident,
            kind: self.kind,
            machine: self.machine,
            version: self.version,
            entry: self.entry.into(),
            phoff: self.phoff.into(),
            shoff: self.shoff.into(),
            flags: self.flags,
            ehsize: self.ehsize,
            phentsize: self.phentsize,
            phnum: self.phnum,
            shentsize: self.shentsize,
            shnum: self.shnum,
            shstrndx: self.shstrndx,
        }
    }
}

impl ProgramHeader32 {
    /// The same with wide words.
    pub fn widen(self) -> ProgramHeader {
        ProgramHeader {
            kind: self.kind,
            flags: self.flags,
            offset: self.offset.into(),
            vaddr: self.vaddr.into(),
            paddr: self.paddr.into(),
            filesz: self.filesz.into(),
            memsz: self.memsz.into(),
            align: self.align.into(),
        }
    }
}
