//! Loading a kernel image: segments and relocations into the sandbox's memory, and the host's vDSO found.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use janua_abi::linux::mman::HUGE_PAGE;
use janua_arch::x86_64::vdso;
use janua_entry::hosted::{IMAGE_SIZE, KERNEL_BASE};
use janua_port::PAGE;
use object::elf::{PF_R, PF_W, PF_X, PT_GNU_RELRO, PT_LOAD, R_X86_64_RELATIVE};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SectionKind};

/// A page range of the image.
pub struct Segment {
    pub range: Range<usize>,
    /// What of it the image contains; the rest is zeroes.
    pub filled: Range<usize>,
    /// Where the bytes of `filled` begin in the image.
    pub offset: usize,
    /// Protection once it is loaded (PROT_* bits).
    pub prot: i32,
    /// It stays as the image has it: nothing in it is relocated.
    pub is_fixed: bool,
    /// It is in place already: pages of the file that has the image.
    pub is_mapped: bool,
}

impl Segment {
    /// Whether it changes after loading, so that all processes must share it.
    pub fn is_data(&self) -> bool {
        self.prot & libc::PROT_WRITE != 0
    }

    pub fn is_text(&self) -> bool {
        self.prot & libc::PROT_EXEC != 0
    }

    /// The huge pages it is in, which text has to itself.
    pub fn huge(&self) -> Range<usize> {
        self.range.start & !(HUGE_PAGE - 1)..self.range.end.next_multiple_of(HUGE_PAGE)
    }

    /// Where its pages are in a file that has the image at `image`; `None` where they are not pages of the file too.
    pub fn place(&self, image: u64) -> Option<u64> {
        let before = (self.filled.start - self.range.start) as u64;
        let place = image.checked_add(self.offset as u64)?.checked_sub(before)?;
        place.is_multiple_of(PAGE as u64).then_some(place)
    }
}

/// Why an image could not be loaded: the build made it wrong.
pub type Broken = &'static str;

/// What an image wants to have mapped, lowest first.
pub fn segments(image: &[u8]) -> Result<Vec<Segment>, Broken> {
    let elf = ElfFile64::<Endianness>::parse(image).map_err(|_| "it is not an ELF file")?;
    let endian = elf.endian();
    let relocated = elf.elf_program_headers().iter().find(|header| header.p_type(endian) == PT_GNU_RELRO);
    let relocated =
        relocated.map_or(0..0, |header| header.p_vaddr(endian)..header.p_vaddr(endian).saturating_add(header.p_memsz(endian)));
    let used = used_from(&elf);
    let (mut segments, mut free): (Vec<Segment>, usize) = (Vec::new(), KERNEL_BASE);
    for header in elf.elf_program_headers() {
        if header.p_type(endian) != PT_LOAD {
            continue;
        }
        let (start, size) = (header.p_vaddr(endian), header.p_memsz(endian));
        let end = start.checked_add(size).filter(|&end| end <= IMAGE_SIZE as u64).ok_or("a segment is too large")?;
        let flags = header.p_flags(endian);
        let mut prot = 0;
        for (flag, bit) in [(PF_R, libc::PROT_READ), (PF_W, libc::PROT_WRITE), (PF_X, libc::PROT_EXEC)] {
            if flags.0 & flag.0 != 0 {
                prot |= bit;
            }
        }
        if relocated.contains(&start) && end <= relocated.end {
            prot &= !libc::PROT_WRITE;
        }
        let start = start.max(used.min(end)) as usize;
        let offset = header.p_offset(endian) as usize + (start - header.p_vaddr(endian) as usize);
        let filled = start..start.max((header.p_vaddr(endian) + header.p_filesz(endian)) as usize);
        let filled = KERNEL_BASE + filled.start..KERNEL_BASE + filled.end;
        let range = filled.start & !(PAGE - 1)..(KERNEL_BASE + end as usize).next_multiple_of(PAGE);
        let segment = Segment { range, filled, offset, prot, is_fixed: flags.0 & PF_W.0 == 0, is_mapped: false };
        let taken = if segment.is_text() { segment.huge() } else { segment.range.clone() };
        if taken.start < free {
            return Err("its segments share pages");
        }
        free = taken.end;
        segments.push(segment);
    }
    Ok(segments)
}

/// Where the image begins to be of use once it is loaded: behind the relocations, which come first and are half of the constants.
fn used_from(elf: &ElfFile64<'_, Endianness>) -> u64 {
    elf.section_by_name(".rela.dyn").map_or(0, |section| section.address() + section.size())
}

/// Writes the image to `memory`, which represents the bytes from [`KERNEL_BASE`] on, but for segments that are in place already. Returns
/// the entry point.
pub fn load(image: &[u8], memory: &mut [u8], segments: &[Segment]) -> Result<usize, Broken> {
    let elf = ElfFile64::<Endianness>::parse(image).map_err(|_| "it is not an ELF file")?;
    for segment in segments.iter().filter(|segment| !segment.is_mapped) {
        let data = image.get(segment.offset..).and_then(|data| data.get(..segment.filled.len()));
        let place = memory.get_mut(segment.filled.start - KERNEL_BASE..segment.filled.end - KERNEL_BASE);
        place.ok_or("a segment is too large")?.copy_from_slice(data.ok_or("a segment is outside the file")?);
    }
    if let Some(section) = elf.section_by_name(".rela.dyn") {
        let data = section.data().map_err(|_| "its relocations lie outside the file")?;
        for entry in data.chunks_exact(24) {
            let word = |at: usize| u64::from_le_bytes(entry[at..at + 8].try_into().unwrap_or_default());
            if word(8) as u32 != R_X86_64_RELATIVE.0 {
                return Err("it has a relocation of an unexpected type");
            }
            let place = word(0) as usize;
            let value = (KERNEL_BASE as u64).wrapping_add(word(16));
            memory
                .get_mut(place..place.wrapping_add(8))
                .ok_or("a relocation is outside the image")?
                .copy_from_slice(&value.to_le_bytes());
        }
    }
    Ok(KERNEL_BASE + elf.entry() as usize)
}

/// Bytes of the image's room behind all it has, in whole huge pages: there the kernel makes those that come in place of its text.
pub fn room_behind(segments: &[Segment]) -> usize {
    let last = segments.last().map_or(KERNEL_BASE, |last| last.range.end);
    (KERNEL_BASE + IMAGE_SIZE).saturating_sub(last.next_multiple_of(HUGE_PAGE))
}

/// The file of the running command and the place of `image` in it, if the image is a part of that file.
pub fn file_of(image: &[u8]) -> Option<(i32, u64)> {
    struct Sought {
        start: usize,
        end: usize,
        place: Option<u64>,
    }
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, sought: *mut core::ffi::c_void) -> i32 {
        // SAFETY: `dl_iterate_phdr` calls this with its own description of a program and with what it was given below.
        let (info, sought) = unsafe { (&*info, &mut *sought.cast::<Sought>()) };
        for at in 0..usize::from(info.dlpi_phnum) {
            // SAFETY: one of the `dlpi_phnum` headers.
            let header = unsafe { &*info.dlpi_phdr.add(at) };
            let start = (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
            let is_here = sought.start >= start && sought.end - start <= header.p_filesz as usize;
            if header.p_type == libc::PT_LOAD && is_here && header.p_flags & libc::PF_W == 0 {
                sought.place = Some(header.p_offset + (sought.start - start) as u64);
            }
        }
        // The first one is the command itself.
        1
    }
    let range = image.as_ptr_range();
    let mut sought = Sought { start: range.start as usize, end: range.end as usize, place: None };
    // SAFETY: the function and what it is given, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut sought).cast()) };
    let place = sought.place?;
    // SAFETY: a descriptor of its own, a structure of its own; all zeroes are a valid one.
    unsafe {
        let fd = libc::open(c"/proc/self/exe".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let mut stat: libc::stat = core::mem::zeroed();
        let is_whole = fd >= 0 && libc::fstat(fd, &raw mut stat) == 0 && stat.st_size as u64 >= place + image.len() as u64;
        if fd >= 0 && !is_whole {
            libc::close(fd);
        }
        is_whole.then_some((fd, place))
    }
}

/// Bytes of the loaded text and constants that are in memory. They are private and written, so every forked process has them as well.
pub fn resident(segments: &[Segment]) -> usize {
    let pages_of = |range: &Range<usize>| {
        let mut pages = alloc::vec![0u8; range.len() / PAGE];
        // SAFETY: the call looks at page tables alone, and there is a byte for each page.
        let known = unsafe { libc::mincore(range.start as *mut _, range.len(), pages.as_mut_ptr()) } == 0;
        pages.iter().filter(|page| known && **page & 1 != 0).count()
    };
    segments.iter().filter(|segment| !segment.is_data()).map(|segment| pages_of(&segment.range)).sum::<usize>() * PAGE
}

/// A function of the kernel, where every sandbox has it.
pub struct Function<'a> {
    pub address: usize,
    /// Bytes, up to the next function where the image gives none.
    pub size: usize,
    /// As the compiler has mangled it.
    pub name: &'a str,
}

/// The functions of an image, lowest first; of several names for one place the first.
pub fn functions(image: &[u8]) -> Result<Vec<Function<'_>>, Broken> {
    let elf = ElfFile64::<Endianness>::parse(image).map_err(|_| "it is not an ELF file")?;
    let text = |symbol: &object::read::elf::ElfSymbol64<'_, '_, Endianness>| {
        symbol.section_index().and_then(|index| elf.section_by_index(index).ok())
    };
    let mut found: Vec<(Function<'_>, usize)> = Vec::new();
    for symbol in elf.symbols() {
        let Some(section) = text(&symbol).filter(|section| section.kind() == SectionKind::Text) else { continue };
        let Some(name) = symbol.name().ok().filter(|name| !name.is_empty()) else { continue };
        let end = KERNEL_BASE + (section.address() + section.size()) as usize;
        found.push((Function { address: KERNEL_BASE + symbol.address() as usize, size: symbol.size() as usize, name }, end));
    }
    found.sort_by_key(|(function, _)| (function.address, function.size == 0));
    found.dedup_by_key(|(function, _)| function.address);
    for at in 0..found.len() {
        let next = found.get(at + 1).map_or(usize::MAX, |(function, _)| function.address);
        let (function, end) = &mut found[at];
        if function.size == 0 {
            function.size = next.min(*end) - function.address;
        }
    }
    Ok(found.into_iter().map(|(function, _)| function).filter(|function| function.size > 0).collect())
}

/// The host's vDSO and its data pages: where they are, and the functions in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vdso {
    pub start: usize,
    pub end: usize,
    pub functions: vdso::Data,
}

/// Finds the calling process' vDSO, from the text of /proc/self/maps.
pub fn vdso(maps: &str) -> Option<Vdso> {
    let (mut found, mut header) = (Vdso::default(), 0);
    for line in maps.lines() {
        let name = line.split_ascii_whitespace().nth(5).unwrap_or_default();
        let Some((start, end)) = line.split_ascii_whitespace().next().and_then(|range| range.split_once('-')) else {
            continue;
        };
        let (Ok(start), Ok(end)) = (usize::from_str_radix(start, 16), usize::from_str_radix(end, 16)) else { continue };
        if name.starts_with("[vvar") || name == "[vdso]" {
            found.start = if found.start == 0 { start } else { found.start.min(start) };
            found.end = found.end.max(end);
        }
        if name == "[vdso]" {
            header = start;
        }
    }
    if header == 0 {
        return None;
    }
    // SAFETY: the mapping the host lists as its vDSO: readable, and there for the process' life.
    let bytes = unsafe { core::slice::from_raw_parts(header as *const u8, found.end - header) };
    let elf = ElfFile64::<Endianness>::parse(bytes).ok()?;
    for symbol in elf.dynamic_symbols() {
        let function = match symbol.name() {
            Ok("__vdso_clock_gettime") => &mut found.functions.clock_gettime,
            Ok("__vdso_gettimeofday") => &mut found.functions.gettimeofday,
            Ok("__vdso_time") => &mut found.functions.time,
            Ok("__vdso_getcpu") => &mut found.functions.getcpu,
            Ok("__vdso_clock_getres") => &mut found.functions.clock_getres,
            _ => continue,
        };
        *function = header as u64 + symbol.address();
    }
    Some(found)
}

/// A whole small file of /proc.
pub fn read_proc(path: &core::ffi::CStr) -> Option<String> {
    // SAFETY: plain calls on a descriptor of our own and a buffer of our own.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return None;
        }
        let mut text = Vec::new();
        let mut chunk = [0u8; 4096];
        loop {
            let n = libc::read(fd, chunk.as_mut_ptr().cast(), chunk.len());
            if n <= 0 {
                break;
            }
            text.extend_from_slice(&chunk[..n as usize]);
        }
        libc::close(fd);
        String::from_utf8(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_vdso_is_found() {
        let maps = read_proc(c"/proc/self/maps").expect("the host lists mappings");
        let vdso = vdso(&maps).expect("there is a vDSO");
        let vdso::Data { clock_gettime, gettimeofday, time, getcpu, clock_getres, call_entry } = vdso.functions;
        assert_eq!(call_entry, 0);
        for function in [clock_gettime, gettimeofday, time, getcpu, clock_getres] {
            assert!((vdso.start..vdso.end).contains(&(function as usize)), "{function:#x}");
        }
    }
}
