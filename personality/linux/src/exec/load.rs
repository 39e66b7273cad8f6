//! Putting a judged ELF file into an address space.

use alloc::sync::Arc;

use janua_abi::linux::mman::{MAP_ANONYMOUS, MAP_FIXED, MAP_PRIVATE, PAGE_SIZE};
use janua_abi::linux::{Errno, Result};
use janua_elf::{self as elf, ProgramHeader};
use janua_object::OpenFile;
use janua_object::mm::jail::Loader;
use janua_object::mm::{Limits, MapRequest, Mm, round_up};
use janua_port::{Prot, UserMemory};

use super::elf::Elf;

/// Where a loaded file's parts are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loaded {
    /// What was added to the file's addresses.
    pub bias: usize,
    pub entry: usize,
    /// Address of the program headers, 0 when no segment holds them.
    pub headers: usize,
    pub code: (usize, usize),
    pub data: (usize, usize),
    /// Behind the last byte of the highest segment.
    pub end: usize,
}

/// Loads a program, or with `hint` `None` its interpreter. A relocatable one goes to `hint` when that is free, otherwise where there is
/// room.
pub fn load(
    mm: &Mm,
    mem: &dyn UserMemory,
    elf: &Elf,
    file: &Arc<OpenFile>,
    hint: Option<usize>,
    limits: &Limits,
) -> Result<Loaded> {
    let (low, high) = elf.span().ok_or(Errno::EINVAL)?;
    let code = mm.code_of(file, if hint.is_none() { Loader::ExecLinker } else { Loader::Exec });
    let room = code.as_ref().map_or(0, |code| code.room);
    let bias = if elf.is_relocatable() {
        let align = elf.alignment();
        // The jail's room below, as much as keeps the segments aligned.
        let below = room.next_multiple_of(align);
        let hint = (hint.unwrap_or_default() & !(align - 1)).saturating_sub(below);
        (mm.find_free(hint, below.checked_add(high - low).ok_or(Errno::ENOMEM)?, align)? + below).wrapping_sub(low)
    } else if mm.find_free(low, high - low, PAGE_SIZE)? == low {
        0
    } else {
        return Err(Errno::EEXIST);
    };
    if let Some(code) = &code {
        // Where there is no room for it the code runs as it is.
        let _ = mm.place_code(code, low.wrapping_add(bias));
    }
    let mut loaded = Loaded { bias, code: (usize::MAX, 0), ..Loaded::default() };
    for segment in elf.loads() {
        let start = bias.wrapping_add(segment.vaddr as usize);
        map_segment(mm, mem, segment, start, file, limits)?;
        let file_end = start.wrapping_add(segment.filesz as usize);
        loaded.end = loaded.end.max(start.wrapping_add(segment.memsz as usize));
        if segment.has(elf::PF_X) {
            loaded.code = (loaded.code.0.min(start), loaded.code.1.max(file_end));
        }
        if start >= loaded.data.0 {
            loaded.data = (start, file_end);
        }
    }
    if loaded.code.0 == usize::MAX {
        loaded.code = (0, 0);
    }
    loaded.entry = bias.wrapping_add(elf.header.entry as usize);
    let headers = elf.headers_addr() as usize;
    loaded.headers = if headers == 0 && elf.header.phoff != 0 && low != 0 { 0 } else { bias.wrapping_add(headers) };
    Ok(loaded)
}

/// Maps one segment; `start` is its first byte's address, whose range `Elf::span` has covered.
fn map_segment(
    mm: &Mm,
    mem: &dyn UserMemory,
    segment: &ProgramHeader,
    start: usize,
    file: &Arc<OpenFile>,
    limits: &Limits,
) -> Result<()> {
    if segment.filesz > segment.memsz {
        return Err(Errno::EINVAL);
    }
    let prot = Prot { read: segment.has(elf::PF_R), write: segment.has(elf::PF_W), exec: segment.has(elf::PF_X) };
    let lead = start % PAGE_SIZE;
    let page = start - lead;
    let mem_end = start.checked_add(segment.memsz as usize).and_then(round_up).ok_or(Errno::EINVAL)?;
    let mut zero_from = page;
    if segment.filesz > 0 {
        let offset = segment.offset.checked_sub(lead as u64).ok_or(Errno::EINVAL)?;
        if offset % PAGE_SIZE as u64 != 0 {
            return Err(Errno::EINVAL);
        }
        let file_end = start + segment.filesz as usize;
        zero_from = round_up(file_end).ok_or(Errno::EINVAL)?;
        let flags = MAP_PRIVATE | MAP_FIXED;
        mm.map(MapRequest { addr: page, len: file_end - page, prot, flags, file: Some(file.clone()), offset }, limits)?;
        if segment.memsz > segment.filesz && prot.write {
            // What the file has behind the segment must not be seen in the zero-filled part of the last page.
            mem.zero(file_end, zero_from - file_end).map_err(|_| Errno::EFAULT)?;
        }
    }
    if mem_end > zero_from {
        let flags = MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS;
        mm.map(MapRequest { addr: zero_from, len: mem_end - zero_from, prot, flags, file: None, offset: 0 }, limits)?;
    }
    Ok(())
}
