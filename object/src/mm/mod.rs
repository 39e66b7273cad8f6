//! Address spaces: the list of mappings, and what mmap(2) and related calls do to it.
//!
//! The list is the truth about what a process has asked for; the machine's [`Space`] makes it real. Every operation checks
//! against the list first, then asks the machine, and changes the list when the machine has agreed, all under the list's
//! lock. The lock is held across host calls that map memory, and across no access to user memory but a jail's to code that it
//! rewrites (`jail/src/site.rs`). That one cannot come back for the lock: it reads and writes mappings of the list, so it never
//! meets a hole where a stack might grow, and a fault for the rights of a page asks the jail's guard, which does without the list.
//! It may wait for a page of the program's file, and then who changes the same space waits with it, as on Linux for a page fault.

mod advise;
mod change;
mod exec_gain;
mod free;
mod gap;
pub mod jail;
mod key;
pub mod list;
mod lock;
mod map;
mod paid;
mod remap;
mod report;
mod shown;
#[cfg(test)]
mod tests;
mod traced;
pub mod vma;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use janua_abi::linux::mman::PAGE_SIZE;
use janua_abi::linux::process::rlimit;
use janua_abi::linux::{Errno, Result};
use janua_port::space::Bounds;
use janua_port::{Machine, Space};
use janua_rt::{AtomicU64, Mutex, MutexGuard, RwLock};

use crate::file::OpenFile;

use jail::{Enclosed, Guard, Jail, Jailed};
pub use key::FutexKey;
use list::VmaList;
pub use map::MapRequest;
use paid::Paid;
pub use remap::RemapRequest;
pub use report::{Label, Region, Sizes};
pub use vma::{Source, VmFlags, Vma};

/// Most mappings a process may have (vm.max_map_count).
pub const MAX_MAP_COUNT: usize = 65530;

/// The resource limits that bear on memory, in bytes; and whether the caller may lock memory beyond them.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub address_space: u64,
    pub data: u64,
    pub stack: u64,
    pub memlock: u64,
    /// CAP_IPC_LOCK.
    pub may_lock: bool,
}

impl Limits {
    /// No limits, for what the kernel maps for itself.
    pub const NONE: Limits = Limits {
        address_space: rlimit::INFINITY,
        data: rlimit::INFINITY,
        stack: rlimit::INFINITY,
        memlock: rlimit::INFINITY,
        may_lock: true,
    };
}

/// A file that runs: it cannot be opened for writing as long as this lives.
pub struct Running {
    pub file: Arc<OpenFile>,
}

impl Running {
    /// ETXTBSY while the file is open for writing.
    pub fn new(file: Arc<OpenFile>) -> Result<Running> {
        if let Some(busy) = file.inode().and_then(|inode| inode.busy()) {
            busy.begin_run()?;
        }
        Ok(Running { file })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(busy) = self.file.inode().and_then(|inode| inode.busy()) {
            busy.end_run();
        }
    }
}

/// Where exec has put things; what /proc shows and brk needs. Addresses are the guest's.
#[derive(Clone, Default)]
pub struct Image {
    /// The program, for /proc/self/exe.
    pub exe: Option<Arc<Running>>,
    pub start_code: usize,
    pub end_code: usize,
    pub start_data: usize,
    pub end_data: usize,
    /// Stack pointer at the start.
    pub start_stack: usize,
    /// Where the argument and environment strings are (`start..end`).
    pub args: (usize, usize),
    pub env: (usize, usize),
    /// The strings as they were at the start, each with its NUL: another process's memory cannot be read for them.
    pub args_text: Arc<[u8]>,
    pub env_text: Arc<[u8]>,
    /// The auxiliary vector, pairs of words, AT_NULL included.
    pub auxv: Arc<[u64]>,
}

struct State {
    list: VmaList,
    /// New mappings go below this.
    mmap_base: usize,
    brk_start: usize,
    brk: usize,
    /// What mlockall(MCL_FUTURE) gives to new mappings.
    lock_future: VmFlags,
    /// What the jail keeps of this space.
    jailed: Option<Box<dyn Jailed>>,
    /// What the mappings have been charged for.
    paid: Paid,
}

/// The state of an address space while it is looked at or changed. What has gone from the list is paid back at the end.
struct Locked<'a>(MutexGuard<'a, State>);

impl Deref for Locked<'_> {
    type Target = State;
    fn deref(&self) -> &State {
        &self.0
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.0
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let (due, tables) = (self.0.list.charged(), self.0.list.tables());
        self.0.paid.settle(due);
        self.0.paid.settle_tables(tables);
    }
}

/// The right to believe that nobody maps, unmaps or changes rights: [`Mm::still`].
pub struct Still<'a> {
    holder: &'a AtomicU32,
    state: Locked<'a>,
}

impl Drop for Still<'_> {
    fn drop(&mut self) {
        // Before the lock goes.
        self.holder.store(NOBODY, Ordering::Relaxed);
    }
}

/// In [`Mm::holder`]: nobody keeps the mappings as they are.
const NOBODY: u32 = 0;

/// Whether the calling thread is to end as soon as it can: asked between parts of what takes long.
pub type Killed<'a> = &'a dyn Fn() -> bool;

/// For what a kill need not cut short.
pub const NEVER: Killed<'static> = &|| false;

/// An address space with its list of mappings.
pub struct Mm {
    /// Unlike any other's of this kernel.
    pub id: u64,
    space: Arc<dyn Space>,
    /// The kernel's jail, if it has one, and what it has between the list and the machine's pages here.
    jail: Option<&'static dyn Jail>,
    guard: Option<Arc<dyn Guard>>,
    bounds: Bounds,
    state: Mutex<State>,
    /// The thread that keeps the mappings as they are.
    holder: AtomicU32,
    image: RwLock<Image>,
    /// Processes that use this space. Exec may empty it in place only when there is one.
    users: AtomicUsize,
    /// The program's own code is to be seen for the time being: somebody looks at it from outside.
    own_code: AtomicBool,
    /// What it refuses of memory that could be written and run: PR_MDWE_*.
    exec_gain: AtomicU32,
}

/// Identities for address spaces and shared anonymous memory; only their difference matters.
fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Where user memory starts on this machine, known from the first address space on.
static LEAST: AtomicUsize = AtomicUsize::new(0);

/// The lowest address anybody may map (vm.mmap_min_addr): Linux's default, or what the machine leaves.
pub fn least_address() -> usize {
    LEAST.load(Ordering::Relaxed).max(0x1_0000)
}

impl Mm {
    /// An empty address space with one user.
    pub fn new(space: Arc<dyn Space>) -> Mm {
        Mm::below(space, usize::MAX)
    }

    /// The same without what is at `high` and above: for programs that reach no further.
    pub fn below(space: Arc<dyn Space>, high: usize) -> Mm {
        let bounds = space.bounds();
        let bounds = Bounds { high: bounds.high.min(high), ..bounds };
        LEAST.store(bounds.low, Ordering::Relaxed);
        Mm {
            id: next_id(),
            space,
            jail: None,
            guard: None,
            bounds,
            state: Mutex::new(State {
                list: VmaList::default(),
                mmap_base: bounds.high,
                brk_start: 0,
                brk: 0,
                lock_future: VmFlags::empty(),
                jailed: None,
                paid: Paid::new(None),
            }),
            holder: AtomicU32::new(NOBODY),
            image: RwLock::new(Image::default()),
            users: AtomicUsize::new(1),
            own_code: AtomicBool::new(false),
            exec_gain: AtomicU32::new(0),
        }
    }

    /// What is mapped from now on counts among what guests of `machine` may have.
    pub fn accounted(self, machine: &'static dyn Machine) -> Mm {
        self.state.lock().paid = Paid::new(Some(machine));
        self
    }

    fn lock_state(&self) -> Locked<'_> {
        Locked(self.state.lock())
    }

    /// The same for a caller that may hold the lock of a file: none when it is not to be had for so long that its holder may be waiting
    /// for that one. Lock order: mappings, files; a copy from or to user memory under a file's lock has the second first.
    fn lock_state_late(&self) -> Option<Locked<'_>> {
        /// Some tens of milliseconds where nobody else wants the processor.
        const LOOKS: usize = 100_000;
        for _ in 0..LOOKS {
            if let Some(state) = self.state.try_lock() {
                return Some(Locked(state));
            }
            janua_rt::sync::give_way();
        }
        None
    }

    /// Keeps the mappings as they are until the result goes: for as long as the machine copies them. A stack does not grow meanwhile
    /// where thread `by` accesses it.
    pub fn still(&self, by: u32) -> Still<'_> {
        let state = self.lock_state();
        self.holder.store(by, Ordering::Relaxed);
        Still { holder: &self.holder, state }
    }

    /// The list a child of fork starts with; `space` is the child's. `still` is of this space: what the list holds is what the
    /// machine will copy.
    pub fn fork_copy(&self, still: &Still<'_>, space: Arc<dyn Space>) -> Mm {
        let state = &still.state;
        let Enclosed { space, guard, jailed } = match &state.jailed {
            Some(jailed) => jailed.copied(space),
            None => Enclosed::free(space),
        };
        let mut list = VmaList::default();
        for (start, vma) in state.list.iter() {
            if !vma.flags.contains(VmFlags::DONTFORK) {
                let mut vma = vma.clone();
                if let Source::File(mapped) = &vma.source
                    && let Some(copy) = mapped.copy()
                {
                    vma.source = Source::File(Arc::new(copy));
                }
                vma.flags -= VmFlags::LOCKED | VmFlags::LOCKONFAULT;
                list.insert(start, vma);
            }
        }
        let mut paid = Paid::new(state.paid.machine);
        // Most of it will stay shared: what the child really makes its own is looked at when there is too little memory.
        let _ = paid.pay(list.charged(), true);
        paid.settle_tables(list.tables());
        Mm {
            id: next_id(),
            space,
            jail: self.jail,
            guard,
            bounds: self.bounds,
            state: Mutex::new(State {
                list,
                mmap_base: state.mmap_base,
                brk_start: state.brk_start,
                brk: state.brk,
                lock_future: VmFlags::empty(),
                jailed,
                paid,
            }),
            holder: AtomicU32::new(NOBODY),
            image: RwLock::new(self.image.read().clone()),
            users: AtomicUsize::new(1),
            own_code: AtomicBool::new(false),
            exec_gain: AtomicU32::new(self.inherited_exec_gain()),
        }
    }

    /// One process more uses this space (CLONE_VM without CLONE_THREAD).
    pub fn join(&self) {
        self.users.fetch_add(1, Ordering::AcqRel);
    }

    /// A process has left this space (exec, exit); the last one takes the mappings' hold on files and shared memory with it.
    pub fn leave(&self) {
        if self.users.fetch_sub(1, Ordering::AcqRel) == 1 {
            let dropped = core::mem::take(&mut self.lock_state().list);
            drop(dropped);
            self.image.write().exe = None;
        }
    }

    /// Whether another process uses this space too.
    pub fn is_shared(&self) -> bool {
        self.users.load(Ordering::Acquire) > 1
    }

    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// What exec has noted.
    pub fn image(&self) -> Image {
        self.image.read().clone()
    }

    pub fn set_image(&self, image: Image) {
        *self.image.write() = image;
    }

    /// Sets where new mappings go: below `base`.
    pub fn set_mmap_base(&self, base: usize) {
        self.lock_state().mmap_base = base & !(PAGE_SIZE - 1);
    }

    /// Sets where the heap begins; it is empty then.
    pub fn set_brk_start(&self, start: usize) {
        let mut state = self.lock_state();
        state.brk_start = start;
        state.brk = start;
    }

    /// The machine's part of it.
    pub fn space(&self) -> &Arc<dyn Space> {
        &self.space
    }

    /// Whether `addr..addr+len` may hold user mappings.
    fn is_user(&self, addr: usize, len: usize) -> bool {
        self.bounds.contains(addr, len)
    }

    /// The page-aligned range of a call that wants its address aligned and rounds its length up. EINVAL, ENOMEM on overflow.
    fn range(&self, addr: usize, len: usize) -> Result<(usize, usize)> {
        if !addr.is_multiple_of(PAGE_SIZE) {
            return Err(Errno::EINVAL);
        }
        let len = round_up(len).ok_or(Errno::EINVAL)?;
        let end = addr.checked_add(len).ok_or(Errno::EINVAL)?;
        Ok((addr, end))
    }
}

impl State {
    /// Pays for `len` bytes of a mapping with these flags, if such a mapping has pages of its own. What the list does not hold when the
    /// state is let go is paid back. ENOMEM.
    fn pay(&mut self, flags: VmFlags, len: usize) -> Result<()> {
        if flags.contains(VmFlags::CHARGED) { self.paid.pay(len, flags.contains(VmFlags::NORESERVE)) } else { Ok(()) }
    }

    /// EAGAIN or ENOMEM when `grow` bytes more with these flags are beyond a limit; `replaced` bytes go away in exchange.
    fn check_growth(&self, limits: &Limits, flags: VmFlags, grow: usize, replaced: usize) -> Result<()> {
        let beyond = |limit: u64, used: usize| {
            limit != rlimit::INFINITY && used.saturating_sub(replaced).saturating_add(grow) as u64 > limit
        };
        if limits.address_space != rlimit::INFINITY && beyond(limits.address_space, self.list.bytes(0, usize::MAX, |_| true)) {
            return Err(Errno::ENOMEM);
        }
        let data = flags & (VmFlags::WRITE | VmFlags::SHARED | VmFlags::GROWSDOWN) == VmFlags::WRITE;
        if data && limits.data != rlimit::INFINITY && beyond(limits.data, self.list.bytes(0, usize::MAX, Vma::is_data)) {
            return Err(Errno::ENOMEM);
        }
        Ok(())
    }

    fn locked_bytes(&self) -> usize {
        self.list.bytes(0, usize::MAX, |vma| vma.flags.contains(VmFlags::LOCKED))
    }

    /// Whether `grow` bytes more may be locked.
    fn may_lock(&self, limits: &Limits, grow: usize) -> bool {
        limits.may_lock
            || limits.memlock == rlimit::INFINITY
            || self.locked_bytes().saturating_add(grow) as u64 <= limits.memlock
    }
}

/// The length rounded up to whole pages; `None` on overflow.
pub fn round_up(len: usize) -> Option<usize> {
    len.checked_add(PAGE_SIZE - 1).map(|len| len & !(PAGE_SIZE - 1))
}

/// Pieces taken out of a list. Dropped after the list's lock: a file's release may do much.
type Removed = Vec<(usize, Vma)>;
