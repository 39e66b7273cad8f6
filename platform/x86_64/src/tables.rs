//! Hardware page tables: the kernel's own half, and the user half of each space.

use alloc::sync::Arc;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use janua_paging::format::x86_64::{ADDRESS, NO_EXECUTE, PRESENT, USER, WRITE, X86_64};
use janua_paging::tree::{Nodes, Tree};
use janua_paging::{Frames, PAGE, PageFrame};

use crate::boot::{self, DIRECT};
use crate::frames::{FRAMES, Physical};
use crate::{core as cores, cpu, isolation, shoot, tiles};

const UNCACHED: u64 = 1 << 4;
const LARGE: u64 = 1 << 7;
const GLOBAL: u64 = 1 << 8;

const ENTRIES: usize = 512;
/// First entry of the root that is the kernel's.
const KERNEL_HALF: usize = 256;
/// Entry of the root for thread stacks.
const STACKS_ENTRY: usize = 384;
/// Where thread stacks are mapped.
pub const STACKS: usize = 0xffff_0000_0000_0000 | STACKS_ENTRY << 39;
/// Where the heap has pages that are anywhere in memory: another entry of the root.
pub const HEAP: usize = 0xffff_0000_0000_0000 | (STACKS_ENTRY + 1) << 39;

/// Bytes of a page that a table of the level above the last maps.
pub const LARGE_PAGE: usize = 2 << 20;

/// Longer ranges are forgotten by forgetting everything.
const FLUSH_SINGLY: usize = 64;

type Node = [u64; ENTRIES];

/// The physical address of a root whose upper half is what user code's tables map of the kernel, with page-table isolation; 0
/// without.
static SHARED_ROOT: AtomicUsize = AtomicUsize::new(0);
/// The physical address of the kernel's own root.
static KERNEL_ROOT: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    static kernel_text_start: u8;
    static kernel_entry_end: u8;
    static kernel_text_end: u8;
    static kernel_rodata_end: u8;
    static kernel_end: u8;
}

/// The table at a physical address.
///
/// # Safety
/// A page-table page is there, and the caller is the only one to change it.
#[allow(clippy::mut_from_ref, reason = "tables are raw memory")]
unsafe fn node<'a>(address: u64) -> &'a mut Node {
    // SAFETY: the caller's word; all memory is mapped at DIRECT.
    unsafe { &mut *((DIRECT + (address & ADDRESS) as usize) as *mut Node) }
}

fn index(addr: usize, level: u32) -> usize {
    addr >> (12 + 9 * level) & (ENTRIES - 1)
}

/// The entry for a page of the kernel's half, with the tables on the way to it made.
///
/// # Safety
/// As [`node`], for the tree below `root`.
unsafe fn reach<'a>(root: u64, addr: usize, flags: u64, levels: u32) -> Option<&'a mut u64> {
    let mut at = root;
    for level in (levels..4).rev() {
        // SAFETY: an entry that is present in a table above the last level points at a table of this tree.
        let entry = unsafe { &mut node(at)[index(addr, level)] };
        if *entry & PRESENT == 0 {
            // The kernel's own tables are what it needs to get out of a shortage.
            let fresh = FRAMES.take_for_kernel()?;
            *entry = Physical::address_of(fresh) as u64 | PRESENT | WRITE | flags;
        }
        at = *entry;
    }
    // SAFETY: as above.
    Some(unsafe { &mut node(at)[index(addr, levels - 1)] })
}

/// Replaces the boot page tables by the kernel's own: all memory (of several tiles, all that is this one's) writable and not executable at [`DIRECT`], device memory
/// uncached, the image with the rights of its sections, nothing else.
pub fn init() {
    let fresh = || FRAMES.take().expect("no memory for the kernel's page tables");
    let root = Physical::address_of(fresh()) as u64;
    // SAFETY: a new tree that nobody else knows.
    unsafe {
        for entry in &mut node(root)[KERNEL_HALF..] {
            // Made now, so that every space can copy the upper half once and for all.
            *entry = Physical::address_of(fresh()) as u64 | PRESENT | WRITE;
        }
        for address in (0..FRAMES.end().max(4 << 30)).step_by(LARGE_PAGE).filter(|address| tiles::has(*address)) {
            // Between 3 and 4 GiB no PC has memory.
            let device = if (3 << 30..4 << 30).contains(&address) { UNCACHED } else { 0 };
            let entry = reach(root, DIRECT + address, 0, 2).expect("no memory for the direct map");
            *entry = address as u64 | PRESENT | WRITE | LARGE | GLOBAL | NO_EXECUTE | device;
        }
        for address in tiles::pages() {
            let entry = reach(root, DIRECT + address, 0, 1).expect("no memory for the direct map");
            *entry = address as u64 | PRESENT | WRITE | GLOBAL | NO_EXECUTE;
        }
        let text = &raw const kernel_text_start as usize..&raw const kernel_text_end as usize;
        let rodata = text.end..&raw const kernel_rodata_end as usize;
        // The linker script makes large pages of it.
        for addr in text.clone().step_by(LARGE_PAGE) {
            let entry = reach(root, addr, 0, 2).expect("no memory for the kernel's map");
            *entry = boot::physical(addr) as u64 | PRESENT | LARGE | GLOBAL;
        }
        for addr in (text.end..&raw const kernel_end as usize).step_by(PAGE) {
            let rights = if rodata.contains(&addr) { NO_EXECUTE } else { WRITE | NO_EXECUTE };
            let entry = reach(root, addr, 0, 1).expect("no memory for the kernel's map");
            *entry = boot::physical(addr) as u64 | PRESENT | GLOBAL | rights;
        }
        KERNEL_ROOT.store(root as usize, Ordering::Release);
        if isolation::is_on() {
            let shared = Physical::address_of(fresh()) as u64;
            for addr in [DIRECT, text.start] {
                node(shared)[index(addr, 3)] = Physical::address_of(fresh()) as u64 | PRESENT | WRITE;
            }
            SHARED_ROOT.store(shared as usize, Ordering::Release);
            for addr in (text.start..&raw const kernel_entry_end as usize).step_by(PAGE) {
                let entry = reach(shared, addr, 0, 1).expect("no memory for user code's tables");
                *entry = boot::physical(addr) as u64 | PRESENT;
            }
            let (start, len) = cores::interrupt_table();
            share(start, len);
        }
        // The boot stack, which we are on, is in the image's data.
        cpu::set_root(root as usize);
    }
    FRAMES.open_all();
}

/// Makes the tables of user code map whole pages of kernel data, for the kernel only; nothing without page-table isolation. They
/// are mapped by the kernel's own tables.
pub fn share(start: usize, len: usize) {
    let root = SHARED_ROOT.load(Ordering::Acquire);
    if root == 0 {
        return;
    }
    debug_assert!(start.is_multiple_of(PAGE) && len.is_multiple_of(PAGE));
    for addr in (start..start + len).step_by(PAGE) {
        // SAFETY: called by one core after the other at their start; all of this part of user code's tables is made here. The
        // kernel's own are only read.
        unsafe {
            let entry = reach(root as u64, addr, 0, 1).expect("no memory for user code's tables");
            *entry = physical(addr) | PRESENT | WRITE | NO_EXECUTE;
        }
    }
}

/// Maps a page in the kernel's half of all spaces for user code, which may read it, or read and execute it. Before there are spaces.
pub fn map_for_user(addr: usize, physical: usize, exec: bool) {
    let rights = if exec { 0 } else { NO_EXECUTE };
    for root in [kernel_root(), SHARED_ROOT.load(Ordering::Acquire)] {
        if root == 0 {
            continue;
        }
        // SAFETY: at start, on the one core; each root and the tables below it are the kernel's own.
        unsafe {
            node(root as u64)[index(addr, 3)] |= USER;
            let entry = reach(root as u64, addr, USER, 1).expect("no memory for user code's pages");
            *entry = physical as u64 | PRESENT | USER | rights;
        }
    }
}

/// Where a page is that the kernel's own tables map.
///
/// # Safety
/// They do.
unsafe fn physical(addr: usize) -> u64 {
    let mut at = kernel_root() as u64;
    for level in (1..4).rev() {
        // SAFETY: the caller's word.
        at = unsafe { node(at)[index(addr, level)] };
        if at & LARGE != 0 {
            let inside = addr & ((1 << (12 + 9 * level)) - 1);
            return (at & ADDRESS & !((1 << (12 + 9 * level)) - 1)) + inside as u64;
        }
    }
    // SAFETY: as above.
    unsafe { node(at)[index(addr, 0)] & ADDRESS }
}

/// The kernel's own root: no user half.
pub fn kernel_root() -> usize {
    KERNEL_ROOT.load(Ordering::Acquire)
}

/// Maps a fresh frame for the kernel at an address among the thread stacks, which has none, or returns that there is no memory.
/// Called under the thread table's lock.
pub fn map_stack_page(addr: usize) -> bool {
    map_kernel_page(addr, FRAMES.take())
}

/// Maps a fresh frame for the heap, as [`map_stack_page`]. Called under the heap's lock.
pub fn map_heap_page(addr: usize) -> bool {
    map_kernel_page(addr, FRAMES.take_for_kernel())
}

fn map_kernel_page(addr: usize, frame: Option<PageFrame>) -> bool {
    let Some(frame) = frame else { return false };
    // SAFETY: each of the two parts of the kernel half is changed here only, under one lock.
    match unsafe { reach(kernel_root() as u64, addr, 0, 1) } {
        // Of an attempt that failed at a later page.
        Some(entry) if *entry & PRESENT != 0 => {
            FRAMES.release(frame);
            true
        }
        Some(entry) => {
            *entry = Physical::address_of(frame) as u64 | PRESENT | WRITE | GLOBAL | NO_EXECUTE;
            true
        }
        None => {
            FRAMES.release(frame);
            false
        }
    }
}

/// The root of a space's tables, and which cores use it.
pub struct Root {
    /// Physical.
    address: usize,
    /// User code's; the same without page-table isolation. It has the same tables below its user half.
    user: usize,
    active: AtomicU64,
}

impl Root {
    pub fn address(&self) -> usize {
        self.address
    }

    /// The cores that use it, or are about to.
    pub fn active(&self) -> u64 {
        // A change of the tables before is seen by a core that is not seen here.
        fence(Ordering::SeqCst);
        self.active.load(Ordering::SeqCst)
    }
}

/// The root a core uses; none is the kernel's own. Touched by the core itself only.
pub struct InUse(UnsafeCell<Option<Arc<Root>>>);

// SAFETY: see above.
unsafe impl Sync for InUse {}

impl InUse {
    #[allow(clippy::new_without_default, reason = "used in statics")]
    pub const fn new() -> InUse {
        InUse(UnsafeCell::new(None))
    }
}

/// The calling core uses these tables from now on; none are the kernel's own, which every space's contain.
pub fn enter(root: Option<&Arc<Root>>) {
    let address = root.map_or(kernel_root(), |root| root.address);
    if address == cpu::root() {
        return;
    }
    let core = cores::here();
    if let Some(root) = root {
        root.active.fetch_or(core.bit(), Ordering::SeqCst);
    }
    core.set_roots(address, root.map_or(address, |root| root.user));
    // SAFETY: every space maps the kernel alike.
    unsafe { cpu::set_root(address) };
    // SAFETY: the calling core's own, with interrupts off.
    let old = core::mem::replace(unsafe { &mut *core.in_use.0.get() }, root.cloned());
    if let Some(old) = &old {
        old.active.fetch_and(!core.bit(), Ordering::SeqCst);
    }
}

/// The calling core forgets what it remembers of a range, if it uses the root.
pub fn forget(root: usize, start: usize, end: usize) {
    if cpu::root() != root {
        return;
    }
    if (end - start) / PAGE > FLUSH_SINGLY {
        // SAFETY: the root in use.
        unsafe { cpu::set_root(root) };
    } else {
        (start..end).step_by(PAGE).for_each(cpu::forget_page);
    }
}

/// The memory of a space's tables: its user half.
pub struct UserHalf {
    root: Arc<Root>,
}

/// The tables of a space.
pub type Hardware = Tree<X86_64, UserHalf>;

/// Empty ones. `None` without memory.
pub fn make() -> Option<Hardware> {
    let address = Physical::address_of(FRAMES.take()?);
    // SAFETY: the new root is ours; the kernel's half of the kernel's root never changes.
    unsafe {
        node(address as u64)[KERNEL_HALF..].copy_from_slice(&node(kernel_root() as u64)[KERNEL_HALF..]);
    }
    let shared = SHARED_ROOT.load(Ordering::Acquire);
    let user = if shared == 0 {
        address
    } else {
        let Some(frame) = FRAMES.take() else {
            FRAMES.release(PageFrame(address / PAGE));
            return None;
        };
        let user = Physical::address_of(frame);
        // SAFETY: as above.
        unsafe {
            node(user as u64)[KERNEL_HALF..].copy_from_slice(&node(shared as u64)[KERNEL_HALF..]);
        }
        user
    };
    Some(Tree::new(address, UserHalf { root: Arc::new(Root { address, user, active: AtomicU64::new(0) }) }))
}

impl UserHalf {
    /// The root, for [`enter`].
    pub fn root(&self) -> &Arc<Root> {
        &self.root
    }
}

/// An entry of a table, by its physical address.
#[inline]
fn place(table: usize, index: usize) -> *mut u64 {
    ((DIRECT + table) as *mut u64).wrapping_add(index)
}

impl Nodes<X86_64> for UserHalf {
    const END: usize = KERNEL_HALF << 39;

    #[inline]
    fn load(&self, table: usize, index: usize) -> u64 {
        // SAFETY: a table of this space's own tree; who changes it has `&mut self`.
        unsafe { *place(table, index) }
    }

    #[inline]
    fn store(&mut self, table: usize, index: usize, word: u64) {
        let Root { address, user, .. } = *self.root;
        // SAFETY: as above, for both roots.
        unsafe {
            *place(table, index) = word;
            if table == address && user != address {
                *place(user, index) = word;
            }
        }
    }

    fn make(&mut self) -> Option<usize> {
        FRAMES.take().map(Physical::address_of)
    }

    fn free(&mut self, table: usize) {
        FRAMES.release(PageFrame(table / PAGE));
    }

    fn flush(&mut self, start: usize, end: usize) {
        self.flush_here(start, end);
        shoot::forget_elsewhere(&self.root, start, end);
    }

    fn flush_here(&mut self, start: usize, end: usize) {
        // The compiler must have written the entries by now.
        fence(Ordering::SeqCst);
        forget(self.root.address, start, end);
    }
}

impl Drop for UserHalf {
    fn drop(&mut self) {
        // Who uses a root holds its space.
        debug_assert!(self.root.active() == 0);
        if self.root.user != self.root.address {
            FRAMES.release(PageFrame(self.root.user / PAGE));
        }
    }
}
