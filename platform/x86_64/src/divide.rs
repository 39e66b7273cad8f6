//! How a machine becomes several tiles: the first kernel, before anything of its data has changed, gives each other one a share of the memory, with a
//! copy of the image in it, of the initial file tree, and of the start information; and when it is ready itself, starts the first core of each.
//!
//! ```text
//! the largest piece of memory below 4 GiB
//! |  the first tile's ... |  share of tile 1  |  share of tile 2  | ... | the first tile's Given | pairs |
//! a share: image | Given | boot page tables | file tree | free
//! ```
//!
//! The code of a tile is its own copy too: gates and page-table isolation change it at start.

use core::ptr;

use janua_paging::PAGE;
use janua_port::tiles::TILES_MOST;

use crate::boot::{self, DIRECT, FIRST_STACK, KERNEL_OFFSET, Loaded, MapEntry, Module, OtherPage, StartInfo};
use crate::core::MOST;
use crate::frames::{self, REACH, Range};
use crate::tables::LARGE_PAGE;
use crate::tiles::{self, Given, LINE_MOST, Pair};
use crate::{machine, measure, report, smp};

/// What a tile needs besides image and file tree.
const SPARE: usize = 16 << 20;

/// Bytes of boot page tables: root, pointers, one directory.
const TABLES: usize = 3 * PAGE;
/// Bits of their entries: present and writable; a large page.
const TABLE: u64 = 3;
const PAGE_OF_2_MIB: u64 = 0x83;

unsafe extern "C" {
    static kernel_text_start: u8;
    static kernel_end: u8;
}

/// The image in memory, as it was loaded: all of it that is linked at [`KERNEL_OFFSET`].
fn image() -> Range {
    let address = |symbol: *const u8| symbol as usize - KERNEL_OFFSET;
    (address(&raw const kernel_text_start), address(&raw const kernel_end).next_multiple_of(PAGE))
}

/// Where things are in a share that begins at an address.
struct Places {
    given: usize,
    tables: usize,
    tree: usize,
}

impl Places {
    fn of(share: usize) -> Places {
        let (start, end) = image();
        let given = share + end - start;
        let tables = given + PAGE;
        Places { given, tables, tree: tables + TABLES }
    }
}

/// A number in a word of the command line.
fn number(command_line: &[u8], name: &[u8]) -> Option<u32> {
    let word = command_line.split(|byte| *byte == b' ').find_map(|word| word.strip_prefix(name))?;
    let number = core::str::from_utf8(word).ok().and_then(|word| word.parse().ok());
    let Some(number) = number else {
        report::stop(format_args!("the command line: what follows {:?} is no number", name.escape_ascii()))
    };
    Some(number)
}

/// The APIC number of the calling core, as the processor has had it since its reset.
fn own_apic() -> u32 {
    janua_arch::x86_64::cpu::cpuid(1, 0)[1] >> 24
}

/// Divides the machine if the command line asks for it (`tiles=T cores=C`): which memory is not the first tile's any more. `ids` are the cores' APIC numbers.
pub fn divide(loaded: &Loaded, ids: &[u32]) -> Range {
    let line = loaded.command_line();
    let Some(count) = number(line, b"tiles=").filter(|count| *count > 1) else { return (0, 0) };
    let cores = number(line, b"cores=").unwrap_or(1) as usize;
    let fits = count <= TILES_MOST && (1..=MOST).contains(&cores) && line.len() <= LINE_MOST;
    if !fits || ids.len() < count as usize * cores {
        report::stop(format_args!(
            "{count} tiles of {cores} cores: there are at most {TILES_MOST} tiles, and {} cores here",
            ids.len()
        ));
    }
    let (pieces, _) = frames::pieces(loaded, (0, 0));
    let low = pieces.into_iter().filter(|(_, end)| *end <= REACH);
    let piece = low.max_by_key(|(start, end)| end - start).unwrap_or_default();
    let shared = PAGE + tiles::pairs_of(count) * size_of::<Pair>();
    let size = ((piece.1 - piece.0) / count as usize) & !(LARGE_PAGE - 1);
    let end = piece.1 & !(LARGE_PAGE - 1);
    let tree = loaded.initrd().unwrap_or((0, 0));
    let needed = Places::of(0).tree + 2 * (tree.1 - tree.0) + SPARE;
    let others = (count as usize - 1) * size;
    // The first tile has what the others leave, which is no less than what each of them has, but for what is shared.
    let start = end.checked_sub(shared).map(|at| at & !(LARGE_PAGE - 1)).and_then(|at| at.checked_sub(others));
    let Some(start) = start.filter(|start| size >= needed && *start >= piece.0 + needed) else {
        report::stop(format_args!("not enough memory for {count} tiles: each needs {} MiB", needed.div_ceil(1 << 20)))
    };
    let first = (end - shared) & !(PAGE - 1);
    let apics = Apics::of(ids, count as usize, cores);
    let given = |tile: u32, share: Range, moved: usize| Given {
        info: StartInfo::default(),
        module: Module::default(),
        map: MapEntry::default(),
        tile,
        count,
        moved,
        share,
        size,
        pairs: first + PAGE,
        cores: apics.cores(tile as usize),
        core_count: cores,
        firsts: apics.firsts(),
        line: terminated(line),
    };
    // SAFETY: free memory, which nobody else uses; the boot page tables map it.
    unsafe { ptr::write_bytes((DIRECT + first) as *mut u8, 0, end - first) };
    for tile in 1..count {
        let share = start + (tile as usize - 1) * size;
        // SAFETY: the share is free memory, of which nothing else is used; all of it is below `REACH`.
        unsafe { furnish(share, given(tile, (share, share + size), share - image().0), tree) };
    }
    let own = (DIRECT + first) as *mut Given;
    // SAFETY: as above; a page for it, aligned.
    let own = unsafe {
        own.write(given(0, (start, end), 0));
        &*own
    };
    tiles::become_first(own);
    (start, end)
}

/// A string with a zero at its end, and behind it.
fn terminated(line: &[u8]) -> [u8; LINE_MOST + 1] {
    let mut all = [0; LINE_MOST + 1];
    all[..line.len()].copy_from_slice(line);
    all
}

/// The machine's cores in the order in which tiles have them: the calling one first.
struct Apics {
    ids: [u32; MOST],
    tiles: usize,
    cores: usize,
}

impl Apics {
    fn of(ids: &[u32], tiles: usize, cores: usize) -> Apics {
        let mut all = [0; MOST];
        let own = own_apic();
        let order = ids.iter().copied().filter(|id| *id == own).chain(ids.iter().copied().filter(|id| *id != own));
        all.iter_mut().zip(order).for_each(|(place, id)| *place = id);
        Apics { ids: all, tiles, cores }
    }

    fn cores(&self, tile: usize) -> [u32; MOST] {
        core::array::from_fn(|core| if core < self.cores { self.ids[tile * self.cores + core] } else { 0 })
    }

    fn firsts(&self) -> [u32; TILES_MOST as usize] {
        core::array::from_fn(|tile| if tile < self.tiles { self.ids[tile * self.cores] } else { 0 })
    }
}

/// Puts into a share what its kernel begins with.
///
/// # Safety
/// It is free memory below [`REACH`], large enough; the boot page tables are in use; nothing of the kernel's data has been changed.
unsafe fn furnish(share: usize, mut given: Given, tree: Range) {
    let places = Places::of(share);
    let (start, end) = image();
    let tree_end = places.tree + tree.1 - tree.0;
    given.map = MapEntry::memory((places.tree, given.share.1));
    given.module = Module::at((places.tree, tree_end));
    let at = |offset: usize| places.given + offset;
    let (map, module) = (at(core::mem::offset_of!(Given, map)), at(core::mem::offset_of!(Given, module)));
    given.info = StartInfo::of_tile(map, module, at(core::mem::offset_of!(Given, line)));
    let moved = given.moved;
    let place = |address: usize| (DIRECT + address) as *mut u8;
    // SAFETY: the caller's word: image and tree are mapped where they were loaded, and the share where it is. The stack that is in use is in the
    // image; a copy of it is as good as any.
    unsafe {
        ptr::copy_nonoverlapping(place(start), place(share), end - start);
        ptr::copy_nonoverlapping(place(tree.0), place(places.tree), tree.1 - tree.0);
        place(places.given).cast::<Given>().write(given);
        let [root, pointers, directory] = [0, 1, 2].map(|index| places.tables + index * PAGE);
        let entry = |table: usize, index: usize| place(table).cast::<u64>().add(index);
        ptr::write_bytes(place(root), 0, TABLES);
        let all = boot::first_4_gib() as u64 | TABLE;
        entry(root, DIRECT >> 39 & 511).write(all);
        entry(root, KERNEL_OFFSET >> 39 & 511).write(pointers as u64 | TABLE);
        entry(pointers, KERNEL_OFFSET >> 30 & 511).write(directory as u64 | TABLE);
        for address in (start..end).step_by(LARGE_PAGE) {
            entry(directory, address >> 21).write((address + moved) as u64 | PAGE_OF_2_MIB);
        }
        // What the core that begins there returns to.
        let first = machine::first as *const () as usize;
        place(first_stack() - KERNEL_OFFSET + moved).cast::<usize>().write(first);
    }
}

/// Where a tile's first core begins on its boot stack: at the address it returns to, as after a call.
fn first_stack() -> usize {
    &raw const boot::BOOT_STACK as usize + FIRST_STACK - 16
}

/// Starts all other tiles, if there are any, and waits for them. One that cannot be started ends the machine.
pub fn start_others(command_line: &[u8]) {
    for tile in 1..tiles::count() {
        let (share, id) = tiles::start_of(tile);
        let places = Places::of(share);
        tiles::leave_clock(tile);
        let page = OtherPage::of(tile);
        page.fill();
        page.leave(places.tables, first_stack(), places.given);
        if !smp::begin(id, page) {
            report::stop(format_args!("tile {tile} cannot start: the core with APIC number {id} does not begin"));
        }
        measure::measure(command_line, tile);
    }
    tiles::wait_for_all();
}
