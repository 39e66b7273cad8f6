//! Reading an ELF file: its headers as claims, checked before anything is built on them.
//!
//! Nothing here touches an address space, so a file can be judged while the old program still runs. Checks and errors follow
//! execve(2): a file that is not for this machine is ENOEXEC, a bad interpreter ELIBBAD.

use alloc::vec;
use alloc::vec::Vec;

use janua_abi::linux::elf::{self, Header, ProgramHeader};
use janua_abi::linux::i386::elf::{EM_386, Header32, ProgramHeader32};
use janua_abi::linux::{Errno, Result};
use janua_kernel::user::PATH_MAX;
use janua_port::PAGE;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// Bytes of a file by offset: how many could be read.
pub type Source<'a> = &'a dyn Fn(u64, &mut [u8]) -> Result<usize>;

/// Most bytes of program headers.
const MOST_HEADERS: usize = 65536;

/// An ELF file that may be run, or may be the interpreter of one.
pub struct Elf {
    /// In the words of ELF64, whatever the class.
    pub header: Header,
    /// A program of 32-bit code (ELFCLASS32, EM_386).
    pub is_32: bool,
    pub segments: Vec<ProgramHeader>,
}

/// Fills `out` from the file. `short` when the file ends before.
fn read_exact(source: Source<'_>, mut offset: u64, mut out: &mut [u8], short: Errno) -> Result<()> {
    while !out.is_empty() {
        let n = source(offset, out)?.min(out.len());
        if n == 0 {
            return Err(short);
        }
        offset = offset.checked_add(n as u64).ok_or(short)?;
        out = &mut out[n..];
    }
    Ok(())
}

/// The header at the start of a file, and whether it is one of ELF32. The machine decides that, which is at the same place in both:
/// Linux looks at neither class nor byte order. `None` when the file is too short.
fn read_header(start: &[u8]) -> Option<(Header, bool)> {
    let (header, _) = Header::read_from_prefix(start).ok()?;
    if header.machine == EM_386 {
        let (header, _) = Header32::read_from_prefix(start).ok()?;
        return Some((header.widen(), true));
    }
    Some((header, false))
}

impl Elf {
    /// Reads a program whose first bytes are in `start`. ENOEXEC, EIO when the headers are not in the file.
    pub fn program(start: &[u8], source: Source<'_>) -> Result<Elf> {
        let (header, is_32) = read_header(start).ok_or(Errno::ENOEXEC)?;
        Elf::checked(header, is_32, source, Errno::ENOEXEC)
    }

    /// Reads an interpreter. ELIBBAD, EIO when it is too short for a header.
    pub fn interpreter(source: Source<'_>) -> Result<Elf> {
        let mut start = [0; size_of::<Header>()];
        read_exact(source, 0, &mut start, Errno::EIO)?;
        let (header, is_32) = read_header(&start).ok_or(Errno::EIO)?;
        Elf::checked(header, is_32, source, Errno::ELIBBAD)
    }

    fn checked(header: Header, is_32: bool, source: Source<'_>, bad: Errno) -> Result<Elf> {
        let (machine, entry) =
            if is_32 { (EM_386, size_of::<ProgramHeader32>()) } else { (elf::EM_X86_64, size_of::<ProgramHeader>()) };
        let fits = header.ident[..4] == elf::MAGIC
            && matches!(header.kind, elf::ET_EXEC | elf::ET_DYN)
            && header.machine == machine
            && usize::from(header.phentsize) == entry;
        let count = usize::from(header.phnum);
        if !fits || count == 0 || count * entry > MOST_HEADERS {
            return Err(bad);
        }
        let segments = if is_32 {
            let mut segments = vec![ProgramHeader32::new_zeroed(); count];
            read_exact(source, header.phoff, segments.as_mut_slice().as_mut_bytes(), bad)?;
            segments.into_iter().map(ProgramHeader32::widen).collect()
        } else {
            let mut segments = vec![ProgramHeader::new_zeroed(); count];
            read_exact(source, header.phoff, segments.as_mut_slice().as_mut_bytes(), bad)?;
            segments
        };
        Ok(Elf { header, is_32, segments })
    }

    /// The segments to be mapped, in file order.
    pub fn loads(&self) -> impl Iterator<Item = &ProgramHeader> {
        self.segments.iter().filter(|segment| segment.kind == elf::PT_LOAD)
    }

    /// The path of the interpreter the program asks for. ENOEXEC when it is not a NUL-terminated path.
    pub fn interpreter_path(&self, source: Source<'_>) -> Result<Option<Vec<u8>>> {
        let Some(segment) = self.segments.iter().find(|segment| segment.kind == elf::PT_INTERP) else {
            return Ok(None);
        };
        let size = usize::try_from(segment.filesz).map_err(|_| Errno::ENOEXEC)?;
        if !(2..=PATH_MAX).contains(&size) {
            return Err(Errno::ENOEXEC);
        }
        let mut path = vec![0; size];
        read_exact(source, segment.offset, &mut path, Errno::EIO)?;
        if path.pop() != Some(0) {
            return Err(Errno::ENOEXEC);
        }
        if let Some(end) = path.iter().position(|&byte| byte == 0) {
            path.truncate(end);
        }
        Ok(Some(path))
    }

    /// Whether the stack is to be executable.
    pub fn wants_exec_stack(&self) -> bool {
        self.segments.iter().rev().find(|s| s.kind == elf::PT_GNU_STACK).is_some_and(|s| s.flags & elf::PF_X != 0)
    }

    pub fn is_relocatable(&self) -> bool {
        self.header.kind == elf::ET_DYN
    }

    /// The page-aligned addresses from the lowest segment to the end of the highest; `None` when there are none or they make
    /// no sense.
    pub fn span(&self) -> Option<(usize, usize)> {
        let mut span: Option<(usize, usize)> = None;
        for segment in self.loads() {
            let start = usize::try_from(segment.vaddr).ok()? & !(PAGE - 1);
            let end = usize::try_from(segment.vaddr.checked_add(segment.memsz)?).ok()?;
            let end = end.checked_next_multiple_of(PAGE)?;
            span = Some(span.map_or((start, end), |(low, high)| (low.min(start), high.max(end))));
        }
        span.filter(|(start, end)| start < end)
    }

    /// The strictest alignment a segment asks for; at least a page. What is no power of two is ignored.
    pub fn alignment(&self) -> usize {
        self.loads()
            .filter_map(|segment| usize::try_from(segment.align).ok())
            .filter(|align| align.is_power_of_two() && *align <= 1 << 30)
            .max()
            .map_or(PAGE, |align| align.max(PAGE))
    }

    /// The address of the program headers in memory, before the load bias: where a segment holds them.
    pub fn headers_addr(&self) -> u64 {
        self.loads()
            .find(|s| s.offset <= self.header.phoff && self.header.phoff - s.offset < s.filesz)
            .map_or(0, |s| s.vaddr.wrapping_add(self.header.phoff - s.offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with a header and one segment.
    fn sample() -> Vec<u8> {
        let mut ident = [0; 16];
        ident[..4].copy_from_slice(&elf::MAGIC);
        ident[elf::EI_CLASS] = elf::CLASS64;
        ident[elf::EI_DATA] = elf::DATA_LSB;
        let header = Header {
            ident,
            kind: elf::ET_DYN,
            machine: elf::EM_X86_64,
            version: 1,
            entry: 0x1000,
            phoff: 64,
            shoff: 0,
            flags: 0,
            ehsize: 64,
            phentsize: 56,
            phnum: 2,
            shentsize: 0,
            shnum: 0,
            shstrndx: 0,
        };
        let load = ProgramHeader { kind: 1, flags: 5, offset: 0, vaddr: 0, paddr: 0, filesz: 200, memsz: 200, align: 4096 };
        let interp = ProgramHeader { kind: 3, offset: 176, filesz: 8, memsz: 8, ..load };
        let mut file = header.as_bytes().to_vec();
        file.extend_from_slice(load.as_bytes());
        file.extend_from_slice(interp.as_bytes());
        file.extend_from_slice(b"/lib/ld\0");
        file
    }

    fn judge(file: &[u8]) -> Result<Option<Vec<u8>>> {
        let source = |offset: u64, out: &mut [u8]| {
            let from = usize::try_from(offset).unwrap_or(usize::MAX).min(file.len());
            let n = out.len().min(file.len() - from);
            out[..n].copy_from_slice(&file[from..from + n]);
            Ok(n)
        };
        let program = Elf::program(file, &source)?;
        let _ = (program.span(), program.alignment(), program.headers_addr(), program.wants_exec_stack());
        program.interpreter_path(&source)
    }

    #[test]
    fn reads_a_program() {
        assert_eq!(judge(&sample()), Ok(Some(b"/lib/ld".to_vec())));
    }

    #[test]
    fn refuses_other_machines() {
        for (at, value) in [(0, 0), (16, 1), (18, 3), (54, 32), (56, 0)] {
            let mut file = sample();
            file[at] = value;
            assert_eq!(judge(&file), Err(Errno::ENOEXEC), "byte {at}");
        }
    }

    #[test]
    fn class_and_byte_order_are_not_looked_at() {
        for (at, value) in [(4, 1), (4, 0), (5, 2)] {
            let mut file = sample();
            file[at] = value;
            assert_eq!(judge(&file), Ok(Some(b"/lib/ld".to_vec())), "byte {at}");
        }
    }

    /// Every byte of the headers with every value of a telling set: a result, never a panic.
    #[test]
    fn survives_mutation() {
        let good = sample();
        for at in 0..good.len() {
            for value in [0, 1, 0x7f, 0x80, 0xfe, 0xff] {
                let mut file = good.clone();
                file[at] = value;
                let _ = judge(&file);
                let _ = judge(&file[..at]);
            }
        }
    }
}
