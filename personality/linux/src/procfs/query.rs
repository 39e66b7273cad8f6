//! PROCMAP_QUERY: the mapping at an address, asked of /proc/PID/maps (Linux' filesystems/proc.rst).

use alloc::vec;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use janua_abi::linux::{Errno, Result};
use janua_elf::{Form, Header, PT_NOTE};
use janua_kernel::UserPtr;
use janua_kernel::iobuf::ReadBuf;
use janua_object::mm::{Label, Region, VmFlags};
use janua_object::vfs::device;
use janua_object::{Caller, OpenFile};
use janua_port::PAGE;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::memory::{mm, name};
use super::{Entry, Subject, Text};

/// The request.
pub const REQUEST: u32 = 0xc068_6611;

/// `struct procmap_query`.
#[repr(C)]
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct Query {
    size: u64,
    flags: u64,
    addr: u64,
    start: u64,
    end: u64,
    vma_flags: u64,
    page_size: u64,
    offset: u64,
    inode: u64,
    major: u32,
    minor: u32,
    name_size: u32,
    build_id_size: u32,
    name: u64,
    build_id: u64,
}

/// What it can begin with at least: size, flags and address.
const LEAST: usize = 24;
const MOST: usize = 4096;

/// Flags: rights the mapping is to have, which are those it is reported to have as well; the next one if none holds the address; one of a file.
const RIGHTS: u64 = 0xf;
const OR_NEXT: u64 = 0x10;
const OF_FILE: u64 = 0x20;

/// Whether a file of a process's is the one to ask.
pub fn is_asked(entry: &Entry) -> bool {
    entry.name == "maps"
}

/// Handles the request. EINVAL, E2BIG, ESRCH, ENOENT, ENAMETOOLONG, EFAULT.
pub fn answer(subject: &Subject, caller: &dyn Caller, arg: usize) -> Result<usize> {
    let user = caller.user();
    let size = usize::try_from(UserPtr::<u64>::new(arg).read(user)?).unwrap_or(usize::MAX);
    match size {
        ..LEAST => return Err(Errno::EINVAL),
        LEAST..=MOST => {}
        _ => return Err(Errno::E2BIG),
    }
    let bytes = UserPtr::<u8>::new(arg).slice(size).read_vec(user, MOST)?;
    let known = size.min(size_of::<Query>());
    if bytes[known..].iter().any(|byte| *byte != 0) {
        return Err(Errno::E2BIG);
    }
    let mut query = Query::new_zeroed();
    query.as_mut_bytes()[..known].copy_from_slice(&bytes[..known]);
    let half = (query.name_size != 0) != (query.name != 0) || (query.build_id_size != 0) != (query.build_id != 0);
    if half || query.flags & !(RIGHTS | OR_NEXT | OF_FILE) != 0 {
        return Err(Errno::EINVAL);
    }
    let region = find(subject, &query)?;
    describe(&region, &mut query);
    let id = if query.build_id_size != 0 { build_id(&region, caller) } else { Vec::new() };
    if id.len() > query.build_id_size as usize {
        return Err(Errno::ENAMETOOLONG);
    }
    query.build_id_size = id.len() as u32;
    let mut text = Text::default();
    if query.name_size != 0 {
        name(subject, &region, &mut text);
        if !text.0.is_empty() {
            text.bytes(b"\0");
        }
        if text.0.len() > query.name_size as usize {
            return Err(Errno::ENAMETOOLONG);
        }
        query.name_size = text.0.len() as u32;
    }
    let out =
        |to: u64, bytes: &[u8]| user.copy_out(usize::try_from(to).unwrap_or(usize::MAX), bytes).map_err(|_| Errno::EFAULT);
    if !text.0.is_empty() {
        out(query.name, &text.0)?;
    }
    if !id.is_empty() {
        out(query.build_id, &id)?;
    }
    out(arg as u64, &query.as_bytes()[..known])?;
    Ok(0)
}

fn rights(region: &Region) -> u64 {
    let [read, write, exec, shared] =
        [VmFlags::READ, VmFlags::WRITE, VmFlags::EXEC, VmFlags::SHARED].map(|flag| u64::from(region.flags.contains(flag)));
    read | write << 1 | exec << 2 | shared << 3
}

fn find(subject: &Subject, query: &Query) -> Result<Region> {
    let addr = usize::try_from(query.addr).map_err(|_| Errno::ENOENT)?;
    let fits = |region: &Region| {
        let of_file = matches!(region.label, Label::File(_));
        rights(region) & query.flags & RIGHTS == query.flags & RIGHTS && (of_file || query.flags & OF_FILE == 0)
    };
    let mut found = None;
    mm(subject)?.each_region(addr, |region| {
        let wanted = fits(&region) && (region.start <= addr || query.flags & OR_NEXT != 0);
        if wanted {
            found = Some(region);
        }
        if wanted || query.flags & OR_NEXT == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found.ok_or(Errno::ENOENT)
}

fn describe(region: &Region, query: &mut Query) {
    query.start = region.start as u64;
    query.end = region.end as u64;
    query.vma_flags = rights(region);
    query.page_size = PAGE as u64;
    // Shared anonymous memory is one of Linux' files as well.
    let has_file = region.ino != 0 || matches!(region.label, Label::File(_));
    (query.offset, query.inode) = if has_file { (region.offset, region.ino) } else { (0, 0) };
    (query.major, query.minor) = (device::major(region.dev), device::minor(region.dev));
}

/// The build id that the first page of a mapped file holds; empty without one.
fn build_id(region: &Region, caller: &dyn Caller) -> Vec<u8> {
    let Label::File(file) = &region.label else { return Vec::new() };
    let mut page = vec![0; PAGE];
    let len = read(file, caller, &mut page).unwrap_or(0);
    id_in(&page[..len]).unwrap_or_default().to_vec()
}

fn read(file: &OpenFile, caller: &dyn Caller, page: &mut [u8]) -> Result<usize> {
    file.ops.read(file, caller, &mut ReadBuf::kernel(page), 0)
}

/// The note of GNU's that holds the id, in the first page of an ELF64 file.
fn id_in(page: &[u8]) -> Option<&[u8]> {
    const GNU_BUILD_ID: u32 = 3;
    const LONGEST: usize = 20;
    let header = Header::read(page, Form::X86_64).filter(Header::claims_form)?;
    header
        .segments(page)?
        .filter(|segment| segment.kind == PT_NOTE)
        .find_map(|segment| {
            let mut notes = segment.notes(page);
            notes.find(|&(name, kind, id)| name == b"GNU\0" && kind == GNU_BUILD_ID && (1..=LONGEST).contains(&id.len()))
        })
        .map(|(_, _, id)| id)
}

#[cfg(test)]
mod tests {
    use janua_elf::{ET_DYN, PF_R, ProgramHeader, file_header};

    use super::*;

    /// An ELF file with one segment of notes right behind its headers.
    fn file(notes: &[u8]) -> Vec<u8> {
        let (header, entry) = Form::X86_64.sizes();
        let segment = ProgramHeader {
            kind: PT_NOTE,
            flags: PF_R,
            offset: (header + entry) as u64,
            vaddr: 0,
            filesz: notes.len() as u64,
            memsz: notes.len() as u64,
            align: 4,
        };
        [&file_header(ET_DYN, 0, 1)[..], &segment.bytes(), notes].concat()
    }

    #[test]
    fn the_id_is_found_among_notes_and_false_sizes_find_nothing() {
        let note = |name: &[u8], desc: &[u8], kind: u32| {
            let head = [name.len() as u32, desc.len() as u32, kind];
            [head.as_bytes(), name, desc].concat()
        };
        let notes = [note(b"GNU\0", &[9; 8], 1), note(b"GNU\0", &[7; 20], 3)].concat();
        assert_eq!(id_in(&file(&notes)), Some(&[7u8; 20][..]));
        assert_eq!(id_in(&file(&note(b"XYZ\0", &[7; 20], 3))), None);
        assert_eq!(id_in(&file(&note(b"GNU\0", &[7; 24], 3))), None);
        for lie in [[u32::MAX, 20, 3], [4, u32::MAX, 3], [u32::MAX, u32::MAX, 3], [0, 0, 3]] {
            assert_eq!(id_in(&file(lie.as_bytes())), None);
        }
        let whole = file(&notes);
        for len in 0..whole.len() {
            assert_eq!(id_in(&whole[..len]), None);
        }
    }
}
