//! Reading an ELF file: its headers as claims, checked before anything is built on them.
//!
//! Nothing here touches an address space, so a file can be judged while the old program still runs. Checks and errors follow
//! execve(2): a file that is not for this machine is ENOEXEC, a bad interpreter ELIBBAD.

use alloc::vec;
use alloc::vec::Vec;

use janua_abi::linux::{Errno, Result};
use janua_elf::{self as elf, Form, Header, ProgramHeader};
use janua_kernel::user::PATH_MAX;
use janua_port::PAGE;

use crate::processor;

/// Bytes of a file by offset: how many could be read.
pub type Source<'a> = &'a dyn Fn(u64, &mut [u8]) -> Result<usize>;

/// Most bytes of program headers.
const MOST_HEADERS: usize = 65536;

/// An ELF file that may be run, or may be the interpreter of one.
pub struct Elf {
    pub header: Header,
    /// A program of 32-bit code (EM_386).
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

/// The header at the start of a file. The machine, which is at the same place in both, decides whether it is one of ELF32: Linux looks at
/// neither class nor byte order. `None` when the file is too short.
fn read_header(start: &[u8]) -> Option<Header> {
    let header = Header::read(start, Form::X86_64)?;
    if header.machine == elf::EM_386 { Header::read(start, Form::I386) } else { Some(header) }
}

impl Elf {
    /// Reads a program whose first bytes are in `start`. ENOEXEC, EIO when the headers are not in the file.
    pub fn program(start: &[u8], source: Source<'_>) -> Result<Elf> {
        Elf::checked(read_header(start).ok_or(Errno::ENOEXEC)?, source, Errno::ENOEXEC)
    }

    /// Reads an interpreter. ELIBBAD, EIO when it is too short for a header.
    pub fn interpreter(source: Source<'_>) -> Result<Elf> {
        let mut start = [0; Form::X86_64.sizes().0];
        read_exact(source, 0, &mut start, Errno::EIO)?;
        Elf::checked(read_header(&start).ok_or(Errno::EIO)?, source, Errno::ELIBBAD)
    }

    fn checked(header: Header, source: Source<'_>, bad: Errno) -> Result<Elf> {
        let is_32 = header.form == Form::I386;
        let size = header.table_size().ok_or(bad)?;
        let fits = header.has_magic() && matches!(header.kind, elf::ET_EXEC | elf::ET_DYN) && processor::runs(header.machine);
        if !fits || size == 0 || size > MOST_HEADERS {
            return Err(bad);
        }
        let mut table = vec![0; size];
        read_exact(source, header.phoff, &mut table, bad)?;
        Ok(Elf { header, is_32, segments: elf::program_headers(&table, header.form).collect() })
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
        self.segments.iter().rev().find(|s| s.kind == elf::PT_GNU_STACK).is_some_and(|s| s.has(elf::PF_X))
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

    /// A file with a header and two segments.
    fn sample() -> Vec<u8> {
        let load = ProgramHeader {
            kind: elf::PT_LOAD,
            flags: elf::ProgramFlags(5),
            offset: 0,
            vaddr: 0,
            filesz: 200,
            memsz: 200,
            align: 4096,
        };
        let interp = ProgramHeader { kind: elf::PT_INTERP, offset: 176, filesz: 8, memsz: 8, ..load };
        [&elf::file_header(elf::ET_DYN, 0x1000, 2)[..], &load.bytes(), &interp.bytes(), b"/lib/ld\0"].concat()
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
