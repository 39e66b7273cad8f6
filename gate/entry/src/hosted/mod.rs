//! The kernel in the address space of its guests: where it is, a thread's area, and the entry and exit that its gates share.
//!
//! Every guest process maps the same kernel memory, one shared file, at [`KERNEL_BASE`]. A thread in the kernel runs on its own
//! 64 KiB stack; its [`Area`] is at the stack's top. The stack is the host's alternate signal stack for the thread, so a
//! host signal that interrupts user code is put at its top. [`SIGNAL_ROOM`] below the area is for that; kernel code starts
//! further down.
//! Entries and exits are in [`entry`].

#[cfg(test)]
mod claims;
pub mod entry;
mod hooks;
pub mod hostcall;
mod pieces;

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};

use janua_arch::Frame;
use janua_port::Link;
use janua_port::tiles::TILES_MOST;

/// Where kernel memory starts in every process. Below every place where the host puts relocatable programs, and in no range that a
/// known runtime lays claim to (docs/layout.md).
pub const KERNEL_BASE: usize = 0x5520_0000_0000;
/// All of the kernel's range, and nothing else, has these upper bits.
pub const KERNEL_SHIFT: u32 = 37;
/// The image's room: text, read-only data, data, and behind them as much again as the text takes: there its huge pages are made.
pub const IMAGE_SIZE: usize = 24 << 20;
/// The boot information and the words shared with the supervisor, in one page; behind it the page that is shown at [`LOW_PAGE`], since every
/// new process touches both and one fault of the host is enough then; behind that the configuration.
pub const CONTROL_BASE: usize = KERNEL_BASE + IMAGE_SIZE;
pub const CONTROL_SIZE: usize = 8 << 20;
pub const INFO_SIZE: usize = 4096;
pub const CONFIG_BASE: usize = LOW_SHOWS + LOW_SIZE;
/// The selector lines, one a thread: the selector byte, then what the exit needs after the key is closed. A region of its
/// own, private to each host process, so that a key can make it readable and not writable and no other process sees it.
pub const SELECTOR_BASE: usize = KERNEL_BASE + (32 << 20);
pub const SELECTOR_SHIFT: u32 = 7;
pub const SELECTOR_SIZE: usize = THREADS << SELECTOR_SHIFT;
/// In line 0, whose thread never runs user code: the process' guest threads. The lower half counts them, the upper half is the
/// exclusive or of their indices, so that of a single one it is the index.
pub const ALONE: usize = SELECTOR_BASE + 64;
/// Behind it: one more than the index of the process' spare thread, which has no guest and waits for one; 0 for none.
pub const SPARE: usize = ALONE + 8;
/// Behind that: not 0 once the process has, or has had, a second host thread.
pub const SEVERAL: usize = SPARE + 8;
/// Thread stacks; near the rest, so that a process needs few page tables.
pub const STACK_BASE: usize = KERNEL_BASE + (64 << 20);
pub const STACK_SIZE: usize = 64 << 10;
pub const STACK_SHIFT: u32 = 16;
/// Most threads of a sandbox.
pub const THREADS: usize = 32768;
/// The kernel's heap.
pub const HEAP_BASE: usize = KERNEL_BASE + (4 << 30);
pub const HEAP_SIZE: usize = 64 << 30;
/// Bytes of the shared file, sparse.
pub const FILE_SIZE: usize = HEAP_BASE + HEAP_SIZE - KERNEL_BASE;
/// A page of kernel memory that the host's 32-bit calls can name, and can only be read there: its address and what it shows. It is the
/// first that the host lets anybody map (vm.mmap_min_addr), and guests' memory starts behind it: a hole further up would be in the way
/// of AddressSanitizer's shadow, or would split what 32-bit programs have.
pub const LOW_PAGE: usize = 0x1_0000;
pub const LOW_SIZE: usize = 4096;
pub const LOW_SHOWS: usize = CONTROL_BASE + INFO_SIZE;
/// What a tile shares with each other one: a link a tile, at the place of that tile's number. None is part of the shared file: two tiles have each.
pub const LINKS_BASE: usize = KERNEL_BASE + FILE_SIZE;
pub const LINK_SIZE: usize = 64 << 10;
/// End of the range no guest may map.
pub const KERNEL_END: usize = KERNEL_BASE + (1 << KERNEL_SHIFT);
/// End of the user half of the address space, as Linux sees it (the last page is left out).
pub const USER_END: usize = 0x7fff_ffff_f000;

/// Selector values of Syscall User Dispatch.
pub const SELECTOR_ALLOW: u8 = 0;
pub const SELECTOR_BLOCK: u8 = 1;

/// The host signal that gets a thread's attention: SIGURG, which nothing else uses. Not a real-time one: those queue, the host
/// lays a frame on the stack for each that is pending before the first handler runs, and enough of them overflow it.
pub const KICK: u32 = 23;

/// The host signal that user code sends to itself to make a call, where that is the gate: SIGSTKFLT, which nothing uses. Of two
/// pending signals the host lays out the frame of the lower number first, and the other's on top: this one must be below
/// [`KICK`], so that the frame of a call is the user's and a kick interrupts the entry, as with SIGSYS.
pub const QUEUED: u32 = 16;

const _: () = assert!(QUEUED < KICK);

/// Bytes at a stack's top that belong to the area, and where in them its thread's memory cache starts.
pub const AREA_SIZE: usize = 640;
const CACHE_OFFSET: usize = 512;
/// Bytes of a thread's memory cache.
pub const CACHE_SIZE: usize = AREA_SIZE - CACHE_OFFSET;

/// Bytes below the area that kernel code leaves to a host signal: its frame, up to 4 KiB with all vector registers, or 12 with
/// the tile registers, and what runs on it until it returns. See [`entry`].
pub const SIGNAL_ROOM: usize = 16 << 10;

/// The exit status of host processes that end because the kernel wants it. Another one means to the supervisor that a process has
/// ended by itself.
pub const ENDED: u8 = 74;

/// What is at the top of a thread's kernel stack.
#[repr(C, align(64))]
pub struct Area {
    pub own: Own,
    pub shared: Shared,
}

/// The thread's own part, which nobody else touches once it runs.
#[repr(C)]
pub struct Own {
    /// User registers while the thread is in the kernel.
    pub frame: Frame,
    /// [`SELECTOR_BLOCK`] where calls are dispatched by selector; what the exit writes there.
    pub selector_value: u8,
    /// 1 under the jail `pkey`: the exit closes the kernel's key.
    pub keyed: u8,
    /// 1 when a single step was interrupted by an entry: the exit sets the trap flag again.
    pub stepping: u8,
    /// The calls the entry makes itself.
    pub fast_path: FastPath,
    /// Address of a boxed body, for threads of the kernel's own.
    pub body: usize,
    /// Where the thread pointer of a new thread is to be; `usize::MAX` keeps it.
    pub tls: usize,
    /// Address of what a spare thread's next guest begins with, boxed; 0 for a new thread. Of one that goes on for another: its stack pointer.
    pub inherited: usize,
    /// The last host signal that interrupted user code.
    pub arrival: Arrival,
    /// The address space ([`Shared::space`]) that has a guard below this stack; 0: none is known of.
    pub guarded: u64,
}

/// What others may read and change, the thread itself in the middle of anything among them.
#[repr(C)]
pub struct Shared {
    /// 1 from just before the last look at the work flags until the next entry, 2 when a kick is on its way; else 0.
    pub in_guest: AtomicU8,
    /// Host ids of the thread.
    pub host_pid: AtomicU32,
    pub host_tid: AtomicU32,
    /// The guest thread: the two words of a `*const dyn Guest` made by `Arc::into_raw`; 0 where there is none.
    pub guest: [AtomicUsize; 2],
    /// What the thread remembers of its waits, for the platform.
    pub idle: AtomicU32,
    /// Which address space the thread runs in: a number of its own for each; 0 for threads of the kernel's own.
    pub space: AtomicU64,
    /// How many guest threads have ended here.
    pub ended: AtomicU32,
    /// Processes that the thread has made since its own process let go of the stacks of others.
    pub made: AtomicU32,
    /// The host thread has its identity: [`entry::THREAD_SELECTOR`]'s limit is the index.
    pub identified: AtomicBool,
    /// One more than the index of the guest thread that a thread of the kernel's own works for; 0 for none.
    pub serves: AtomicU32,
    /// What a thread without a guest is to do, for the platform.
    pub spare: AtomicU32,
    /// The host keeps something for the thread, besides memory and registers, that its process' other threads need not have.
    pub touched: AtomicBool,
    /// What the host calls it, if anybody has said that.
    pub name: [AtomicU64; NAME_WORDS],
    /// What the host had counted for the thread before its guest began, for the platform.
    pub counted: [AtomicU64; COUNTED],
}

// What is a thread's own, or not atomic inside, is none of it.
const _: () = {
    const fn is_shared<T: Sync>() {}
    is_shared::<Shared>();
};

/// Words of a host thread's name, and of what the host counts for a thread.
pub const NAME_WORDS: usize = 2;
pub const COUNTED: usize = 9;

/// The calls that the entry makes without looking at the frame: C functions of the call's six words and of `thread`, which return a
/// result and a verdict (0: nothing is to be done).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FastPath {
    /// [`FAST_CALLS`] functions by number, null where a call is not among them.
    pub functions: *const AtomicPtr<()>,
    pub thread: *const (),
    /// Not 0 after a call that left work behind. No bit of it is one of a verdict.
    pub work: *const AtomicU32,
}

/// The entry takes the last place, which must be null, for all numbers beyond it.
pub const FAST_CALLS: usize = 512;

/// A host signal, copied from the host's frame by the entry.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub signal: i32,
    pub code: i32,
    /// Fault address, or the trapped call's address.
    pub addr: u64,
    /// SIGSYS: number and architecture (AUDIT_ARCH_*).
    pub number: i32,
    pub arch: u32,
    /// The processor's error code and vector.
    pub error: u64,
    pub vector: u64,
    /// What was interrupted.
    pub rip: u64,
}

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<Area>() <= CACHE_OFFSET && AREA_SIZE.is_multiple_of(align_of::<Area>()));
    assert!(offset_of!(Area, own.frame) == 0);
    assert!(offset_of!(Arrival, rip) == 40);
    assert!(STACK_BASE.trailing_zeros() >= STACK_SHIFT && SELECTOR_BASE.trailing_zeros() >= 12);
    assert!(link(TILES_MOST as usize) <= KERNEL_END && KERNEL_BASE.trailing_zeros() >= KERNEL_SHIFT);
    assert!(size_of::<Link>() <= LINK_SIZE && LINKS_BASE.is_multiple_of(LINK_SIZE));
};

/// Where a tile has what it shares with the tile of this number.
pub const fn link(tile: usize) -> usize {
    LINKS_BASE + tile * LINK_SIZE
}

/// The area of the thread with this index.
pub const fn area(index: usize) -> *mut Area {
    (STACK_BASE + (index + 1) * STACK_SIZE - AREA_SIZE) as *mut Area
}

/// The memory cache of the thread with this index: the platform's heap lays it out; zeroes at first.
pub const fn cache(index: usize) -> *mut u8 {
    (STACK_BASE + (index + 1) * STACK_SIZE - AREA_SIZE + CACHE_OFFSET) as *mut u8
}

/// The selector byte of the thread with this index, at the start of its line.
pub const fn selector(index: usize) -> *mut u8 {
    (SELECTOR_BASE + (index << SELECTOR_SHIFT)) as *mut u8
}

fn members() -> &'static core::sync::atomic::AtomicU64 {
    // SAFETY: in a page that is mapped for the process' life; zero at its start.
    unsafe { &*(ALONE as *const core::sync::atomic::AtomicU64) }
}

fn change_members(index: usize, by: u32) {
    use core::sync::atomic::Ordering;
    let change = |word: u64| {
        let (count, indices) = (word as u32, (word >> 32) as u32);
        Some(u64::from(count.wrapping_add(by)) | u64::from(indices ^ index as u32) << 32)
    };
    // The closure always returns `Some`.
    let _ = members().fetch_update(Ordering::SeqCst, Ordering::SeqCst, change);
}

/// A guest thread is about to start in the calling process. To be called before it can run user code there.
pub fn join(index: usize) {
    change_members(index, 1);
}

/// A guest thread will not run user code in the calling process again.
pub fn leave(index: usize) {
    change_members(index, u32::MAX);
}

/// Whether the calling process has had no guest thread yet.
pub fn is_empty() -> bool {
    members().load(core::sync::atomic::Ordering::SeqCst) == 0
}

/// Whether no thread but the calling one can run user code in the calling process.
pub fn is_alone() -> bool {
    members().load(core::sync::atomic::Ordering::SeqCst) as u32 <= 1
}

/// The thread whose kernel stack holds `sp`.
pub const fn index_of(sp: usize) -> usize {
    (sp - STACK_BASE) >> STACK_SHIFT
}

/// Where kernel code of the thread starts on its stack; on a 16-byte boundary.
pub const fn stack_start(index: usize) -> usize {
    STACK_BASE + (index + 1) * STACK_SIZE - AREA_SIZE - SIGNAL_ROOM
}

/// The range of the thread's stack below its area: base and bytes.
pub const fn stack(index: usize) -> (usize, usize) {
    (STACK_BASE + index * STACK_SIZE, STACK_SIZE - AREA_SIZE)
}
