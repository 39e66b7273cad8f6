//! Calls on memory.

mod fault;
mod lock;
mod map;
mod memfd;
mod remote;
pub mod watch;

pub use fault::fault;
pub use lock::{mlock, mlock2, mlockall, munlock, munlockall};
pub use map::{
    ArchCode, arch_prctl, brk, check_base, madvise, mincore, mmap, mprotect, mremap, msync, munmap, pkey_alloc, pkey_free,
    pkey_mprotect,
};
pub use memfd::{MemfdFlags, memfd_create};
pub use remote::{membarrier, process_vm_readv, process_vm_writev};

use alloc::sync::Arc;

use janua_abi::linux::capability::CAP_IPC_LOCK;
use janua_abi::linux::process::rlimit;
use janua_abi::linux::{Errno, Result};
use janua_kernel::table::{Arg, Kind};
use janua_kernel::thread::work;
use janua_object::mm::{Limits, Mm};

use crate::Thread;
use crate::thread::ThreadExt;

/// Flag words of this group, named for the trace.
macro_rules! words {
    ($($name:ident: $family:literal,)*) => {
        $(
            #[doc = concat!("A word of the family `", $family, "`.")]
            #[derive(Clone, Copy, Debug)]
            pub struct $name(pub u32);

            impl Arg for $name {
                const KIND: Kind = Kind::Named($family);
                fn decode(word: usize) -> Result<Self> {
                    Ok($name(word as u32))
                }
            }
        )*
    };
}

words! {
    ProtWord: "mmap_prot",
    MapWord: "mmap_flags",
    RemapWord: "mremap",
    AdviceWord: "madvise",
    SyncWord: "msync",
    LockWord: "mlockall",
}

/// An address that is no pointer to data the call looks at.
#[derive(Clone, Copy, Debug)]
pub struct Addr(pub usize);

impl Arg for Addr {
    const KIND: Kind = Kind::Ptr;
    fn decode(word: usize) -> Result<Self> {
        Ok(Addr(word))
    }
}

/// The caller's memory. A thread that makes calls has some.
fn mm(thread: &Thread) -> Result<Arc<Mm>> {
    thread.process().mm().ok_or(Errno::ENOMEM)
}

/// Whether the thread is to end: what takes long gives up.
fn is_killed(thread: &Thread) -> bool {
    thread.work() & work::KILL != 0
}

/// What the thread's mappings may come to.
pub fn limits(thread: &Thread) -> Limits {
    Limits {
        address_space: thread.limit(rlimit::AS),
        data: thread.limit(rlimit::DATA),
        stack: thread.limit(rlimit::STACK),
        memlock: thread.limit(rlimit::MEMLOCK),
        may_lock: thread.ext.capable(CAP_IPC_LOCK),
    }
}
