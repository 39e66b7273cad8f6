//! Where an ELF file wants to be loaded, and which parts of it are code. The headers are claims; they are checked here.

use alloc::vec::Vec;

use janua_abi::linux::mman::PAGE_SIZE;
use janua_elf::{self as elf, Form, Header};

/// A page, bytes.
const PAGE: u64 = PAGE_SIZE as u64;
/// Most program headers looked at.
const MOST_HEADERS: usize = 64;

/// An executable part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First byte in the file and in the file's own addresses; the same place in a page.
    pub offset: u64,
    pub vaddr: u64,
    /// Bytes in the file.
    pub len: u64,
}

/// The layout of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The pages of all segments, `low..high`, in the file's own addresses.
    pub low: u64,
    pub high: u64,
    pub code: Vec<Segment>,
    /// Where the table of what unwinders know of the code is (PT_GNU_EH_FRAME), and the segment around it.
    pub frames: Option<(u64, Segment)>,
}

/// Reads the layout from the start of a file (as much of it as holds the program headers). `None` when it is no x86-64 file
/// to be loaded, or one that makes no sense.
pub fn layout(start: &[u8]) -> Option<Layout> {
    let header = Header::read(start, Form::X86_64).filter(Header::claims_form)?;
    let fine = header.machine == elf::EM_X86_64
        && matches!(header.kind, elf::ET_EXEC | elf::ET_DYN)
        && usize::from(header.phnum) <= MOST_HEADERS;
    if !fine {
        return None;
    }
    let mut layout = Layout { low: u64::MAX, high: 0, code: Vec::new(), frames: None };
    let mut loaded = Vec::new();
    let mut table = None;
    for segment in header.segments(start)? {
        if segment.kind == elf::PT_GNU_EH_FRAME {
            table = Some(segment.vaddr);
        }
        if segment.kind != elf::PT_LOAD || segment.memsz == 0 {
            continue;
        }
        let end = segment.vaddr.checked_add(segment.memsz)?.checked_next_multiple_of(PAGE)?;
        segment.offset.checked_add(segment.filesz)?;
        if segment.filesz > segment.memsz || segment.offset % PAGE != segment.vaddr % PAGE {
            return None;
        }
        layout.low = layout.low.min(segment.vaddr & !(PAGE - 1));
        layout.high = layout.high.max(end);
        let place = Segment { offset: segment.offset, vaddr: segment.vaddr, len: segment.filesz };
        loaded.push(place);
        if segment.has(elf::PF_X) && !segment.has(elf::PF_W) && segment.filesz > 0 {
            layout.code.push(place);
        }
    }
    let holds = |table: u64| loaded.iter().find(|segment| table.wrapping_sub(segment.vaddr) < segment.len);
    layout.frames = table.and_then(|table| Some((table, *holds(table)?)));
    (layout.low < layout.high).then_some(layout)
}
