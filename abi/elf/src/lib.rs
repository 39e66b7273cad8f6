//! Headers of ELF files (elf(5); System V ABI, chapters 4 and 5), for everything in the kernel that loads, rewrites or describes programs.
//!
//! The structures are the crate `object`'s. What is added is that 32 and 64 bits and both byte orders look the same to a loader, and that a loader
//! chooses how a file is read: execve(2) goes by the machine and looks at neither class nor byte order, the others believe the file.
//! What a file claims is not checked here, but for the size of its program headers.
#![no_std]
#![forbid(unsafe_code)]

use object::elf::{
    ELFCLASS32, ELFCLASS64, ELFDATA2LSB, ELFDATA2MSB, ELFOSABI_SYSV, EV_CURRENT, FileFlags, FileHeader32, FileHeader64, Ident,
    ProgramHeader32, ProgramHeader64, SHN_UNDEF,
};
use object::read::elf::{FileHeader, NoteIterator};
use object::{Endianness, LittleEndian, bytes_of, from_bytes};

pub use object::elf::{
    ELFMAG, EM_386, EM_SPARC, EM_X86_64, ET_CORE, ET_DYN, ET_EXEC, FileType, Machine, PF_R, PF_W, PF_X, PT_GNU_EH_FRAME,
    PT_GNU_STACK, PT_INTERP, PT_LOAD, PT_NOTE, ProgramFlags, ProgramType,
};

/// Width and byte order of a file's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    pub is_64: bool,
    pub is_big_endian: bool,
}

impl Form {
    /// Little-endian files of 32 bits (i386) and of 64 (x86-64).
    pub const I386: Form = Form { is_64: false, is_big_endian: false };
    pub const X86_64: Form = Form { is_64: true, is_big_endian: false };
    /// What programs of the processor have that this code runs on.
    pub const NATIVE: Form = Form { is_64: usize::BITS == 64, is_big_endian: cfg!(target_endian = "big") };

    fn endian(self) -> Endianness {
        if self.is_big_endian { Endianness::Big } else { Endianness::Little }
    }

    /// Bytes of a file header, and of a program header.
    pub const fn sizes(self) -> (usize, usize) {
        type Order = Endianness;
        if self.is_64 {
            (size_of::<FileHeader64<Order>>(), size_of::<ProgramHeader64<Order>>())
        } else {
            (size_of::<FileHeader32<Order>>(), size_of::<ProgramHeader32<Order>>())
        }
    }
}

/// A file header, in the words of ELF64 whatever the form.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// How it was read, whatever `ident` claims.
    pub form: Form,
    pub ident: Ident,
    pub kind: FileType,
    pub machine: Machine,
    pub entry: u64,
    /// Where the program headers are in the file, the size of one, and how many there are.
    pub phoff: u64,
    pub phentsize: u16,
    pub phnum: u16,
}

fn header<H: FileHeader<Endian = Endianness>>(start: &[u8], form: Form) -> Option<Header> {
    let (header, _) = from_bytes::<H>(start).ok()?;
    let endian = form.endian();
    Some(Header {
        form,
        ident: *header.e_ident(),
        kind: header.e_type(endian),
        machine: header.e_machine(endian),
        entry: header.e_entry(endian).into(),
        phoff: header.e_phoff(endian).into(),
        phentsize: header.e_phentsize(endian),
        phnum: header.e_phnum(endian),
    })
}

impl Header {
    /// Reads the header at the start of a file. `None` when that is too short.
    pub fn read(start: &[u8], form: Form) -> Option<Header> {
        if form.is_64 { header::<FileHeader64<_>>(start, form) } else { header::<FileHeader32<_>>(start, form) }
    }

    /// Whether it begins as an ELF file does.
    pub fn has_magic(&self) -> bool {
        self.ident.magic == ELFMAG
    }

    /// Whether the file claims to be an ELF file of the form that it was read in.
    pub fn claims_form(&self) -> bool {
        let class = if self.form.is_64 { ELFCLASS64 } else { ELFCLASS32 };
        let order = if self.form.is_big_endian { ELFDATA2MSB } else { ELFDATA2LSB };
        self.has_magic() && self.ident.class == class && self.ident.data == order
    }

    /// Bytes of the program headers. `None` when one has another size than the form's.
    pub fn table_size(&self) -> Option<usize> {
        let (_, size) = self.form.sizes();
        (usize::from(self.phentsize) == size).then(|| usize::from(self.phnum) * size)
    }

    /// The program headers of a file of which `file` is the start, in file order. `None` when not all of them are in it.
    pub fn segments<'a>(&self, file: &'a [u8]) -> Option<impl Iterator<Item = ProgramHeader> + use<'a>> {
        let at = usize::try_from(self.phoff).ok()?;
        Some(program_headers(file.get(at..at.checked_add(self.table_size()?)?)?, self.form))
    }
}

/// A program header, in the words of ELF64 whatever the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramHeader {
    pub kind: ProgramType,
    pub flags: ProgramFlags,
    pub offset: u64,
    pub vaddr: u64,
    pub filesz: u64,
    pub memsz: u64,
    pub align: u64,
}

fn program_header<P: object::read::elf::ProgramHeader<Endian = Endianness>>(bytes: &[u8], form: Form) -> Option<ProgramHeader> {
    let (header, _) = from_bytes::<P>(bytes).ok()?;
    let endian = form.endian();
    Some(ProgramHeader {
        kind: header.p_type(endian),
        flags: header.p_flags(endian),
        offset: header.p_offset(endian).into(),
        vaddr: header.p_vaddr(endian).into(),
        filesz: header.p_filesz(endian).into(),
        memsz: header.p_memsz(endian).into(),
        align: header.p_align(endian).into(),
    })
}

/// The program headers in the bytes of such a table. What follows the last whole one is left out.
pub fn program_headers(table: &[u8], form: Form) -> impl Iterator<Item = ProgramHeader> {
    table.chunks_exact(form.sizes().1).filter_map(move |bytes| {
        if form.is_64 {
            program_header::<ProgramHeader64<_>>(bytes, form)
        } else {
            program_header::<ProgramHeader32<_>>(bytes, form)
        }
    })
}

impl ProgramHeader {
    /// Whether the segment is to be readable, writable or executable.
    pub fn has(&self, flag: ProgramFlags) -> bool {
        self.flags.0 & flag.0 != 0
    }

    /// What a file holds of the segment. `None` when `file` does not have all of it.
    pub fn data<'a>(&self, file: &'a [u8]) -> Option<&'a [u8]> {
        let from = usize::try_from(self.offset).ok()?;
        file.get(from..from.checked_add(usize::try_from(self.filesz).ok()?)?)
    }

    /// The segment's notes (PT_NOTE) in a little-endian file, each with its name (with a NUL), kind and description. They end where they make no sense.
    pub fn notes<'a>(&self, file: &'a [u8]) -> impl Iterator<Item = (&'a [u8], u32, &'a [u8])> {
        let data = self.data(file).unwrap_or_default();
        let notes = NoteIterator::<FileHeader64<LittleEndian>>::new(LittleEndian, self.align, data);
        notes
            .into_iter()
            .flatten()
            .map_while(Result::ok)
            .map(|note| (note.name_bytes(), note.n_type(LittleEndian).0, note.desc()))
    }

    /// As it is in a file of the form [`Form::X86_64`].
    pub fn bytes(&self) -> [u8; Form::X86_64.sizes().1] {
        let header = ProgramHeader64::<LittleEndian> {
            p_type: self.kind.into(),
            p_flags: self.flags.into(),
            p_offset: self.offset.into(),
            p_vaddr: self.vaddr.into(),
            p_paddr: 0.into(),
            p_filesz: self.filesz.into(),
            p_memsz: self.memsz.into(),
            p_align: self.align.into(),
        };
        whole(bytes_of(&header))
    }
}

/// The header of a file for x86-64 whose `segments` program headers follow it at once, and which has no sections.
pub fn file_header(kind: FileType, entry: u64, segments: u16) -> [u8; Form::X86_64.sizes().0] {
    let (size, entry_size) = Form::X86_64.sizes();
    let ident = Ident {
        magic: ELFMAG,
        class: ELFCLASS64,
        data: ELFDATA2LSB,
        version: EV_CURRENT,
        os_abi: ELFOSABI_SYSV,
        abi_version: 0,
        padding: [0; 7],
    };
    let header = FileHeader64::<LittleEndian> {
        e_ident: ident,
        e_type: kind.into(),
        e_machine: EM_X86_64.into(),
        e_version: 1.into(),
        e_entry: entry.into(),
        e_phoff: (size as u64).into(),
        e_shoff: 0.into(),
        e_flags: FileFlags(0).into(),
        e_ehsize: (size as u16).into(),
        e_phentsize: (entry_size as u16).into(),
        e_phnum: segments.into(),
        e_shentsize: 0.into(),
        e_shnum: 0.into(),
        e_shstrndx: SHN_UNDEF.into(),
    };
    whole(bytes_of(&header))
}

/// A structure's bytes, of which there are `N`.
fn whole<const N: usize>(bytes: &[u8]) -> [u8; N] {
    core::array::from_fn(|at| bytes.get(at).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    const LOAD: ProgramHeader = ProgramHeader {
        kind: PT_LOAD,
        flags: ProgramFlags(PF_R.0 | PF_X.0),
        offset: 0x1000,
        vaddr: 0x40_1000,
        filesz: 0x123,
        memsz: 0x456,
        align: 0x1000,
    };

    fn file() -> Vec<u8> {
        let note = ProgramHeader { kind: PT_NOTE, offset: 176, filesz: 20, align: 4, ..LOAD };
        let mut file = [&file_header(ET_EXEC, 0x40_1000, 2)[..], &LOAD.bytes(), &note.bytes()].concat();
        file.extend([4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0]);
        file.extend(b"GNU\0idid");
        file
    }

    #[test]
    fn what_is_written_is_read() {
        let file = file();
        let header = Header::read(&file, Form::X86_64).unwrap();
        assert!(header.claims_form());
        assert_eq!((header.kind, header.machine, header.entry, header.phnum), (ET_EXEC, EM_X86_64, 0x40_1000, 2));
        let segments: Vec<_> = header.segments(&file).unwrap().collect();
        assert_eq!(segments[0], LOAD);
        // 196 bytes: the note is there to its last.
        let notes: Vec<_> = segments[1].notes(&file).collect();
        assert_eq!(notes, [(&b"GNU\0"[..], 3, &b"idid"[..])]);
        assert_eq!(segments[1].notes(&file[..195]).count(), 0);
    }

    #[test]
    fn a_file_that_is_cut_off_has_no_headers() {
        let file = file();
        for len in 0..176 {
            assert!(Header::read(&file[..len], Form::X86_64).is_none_or(|header| header.segments(&file[..len]).is_none()));
        }
    }

    /// The fields of 32 bits are in another order.
    #[test]
    fn narrow_and_big_endian_files_are_read_alike() {
        let mut sparc = b"\x7fELF\x01\x02\x01".to_vec();
        sparc.resize(16, 0);
        for half in [2u16, 2] {
            sparc.extend(half.to_be_bytes());
        }
        for word in [1u32, 0x4000_0000, 52, 0, 0] {
            sparc.extend(word.to_be_bytes());
        }
        for half in [52u16, 32, 1, 0, 0, 0] {
            sparc.extend(half.to_be_bytes());
        }
        for word in [1u32, 0x1000, 0x40_1000, 0, 0x123, 0x456, 5, 0x1000] {
            sparc.extend(word.to_be_bytes());
        }
        let form = Form { is_64: false, is_big_endian: true };
        let header = Header::read(&sparc, form).unwrap();
        assert!(header.claims_form());
        assert_eq!((header.kind, header.machine, header.entry), (ET_EXEC, EM_SPARC, 0x4000_0000));
        assert_eq!(header.segments(&sparc).unwrap().collect::<Vec<_>>(), [LOAD]);
        assert!(!Header::read(&sparc, Form::I386).unwrap().claims_form());
    }
}
