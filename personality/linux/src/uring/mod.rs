//! Rings of submissions (io_uring(7)) and contexts of asynchronous i/o (io_setup(2)).
//!
//! | | |
//! |---|---|
//! | [`setup`], [`enter`], [`register`] | the calls |
//! | [`ring`], [`memory`], [`resources`] | a ring: what its descriptor refers to, the memory shared with the program, what is registered |
//! | [`submit`] | submissions: taken, checked, linked |
//! | [`issuer`], [`op`], [`turn`] | what a thread has under way, one operation, and how operations begin, go on and end |
//! | [`ops`] | what operations do |
//! | [`poller`], [`server`] | who looks into the rings that nobody announces (IORING_SETUP_SQPOLL): a thread of the kernel's, or a module |
//! | [`aio`] | io_setup(2) and the calls on what it makes |

pub mod aio;
pub mod enter;
mod held;
pub mod issuer;
pub mod memory;
pub mod op;
mod ops;
pub mod poller;
pub mod register;
pub mod resources;
pub mod ring;
pub mod server;
pub mod setup;
pub mod submit;
pub mod turn;

use alloc::sync::Arc;
use core::sync::atomic::AtomicU32;

use janua_abi::linux::{Errno, Result};
use janua_kernel::table::Fd;
use janua_kernel::thread::work;
use janua_object::OpenFile;
use janua_object::sysv::memory::Pool;
use janua_object::vfs::Vfs;

pub use enter::io_uring_enter;
pub use issuer::{Held, Issuer};
pub use register::io_uring_register;
pub use ring::Ring;
pub use server::Server;
pub use setup::io_uring_setup;

use crate::Thread;
use crate::fs::fd;
use poller::Poller;

/// What a kernel has for all rings.
pub struct Rings {
    /// Where their memory comes from.
    pub pool: Arc<Pool>,
    poller: Arc<Poller>,
    /// Events that the contexts of io_setup(2) may have in all, as they were asked for.
    aio: Arc<AtomicU32>,
}

impl Rings {
    pub fn new(vfs: &Vfs) -> Rings {
        Rings { pool: Pool::new(vfs), poller: Arc::default(), aio: Arc::default() }
    }

    /// Events that contexts have been made for (/proc/sys/fs/aio-nr).
    pub fn aio_events(&self) -> u32 {
        self.aio.load(core::sync::atomic::Ordering::Relaxed)
    }
}

/// By a thread with [`work::TASK`]: sees to what it has under way.
pub fn errands(thread: &Thread) {
    thread.clear_work(work::TASK);
    let held = thread.uring.lock().clone();
    if let Held::Issuer(issuer) = held {
        issuer.work(thread);
    }
}

/// By a thread that is about to run another program, or to end: all it has under way ends, and nothing is begun for it until [`begin`].
pub fn leave(thread: &Thread) {
    let servers = core::mem::take(&mut *thread.ring_servers.lock());
    servers.iter().for_each(|server| server.leave(thread));
    let held = core::mem::replace(&mut *thread.uring.lock(), Held::Over);
    if let Held::Issuer(issuer) = held {
        issuer.end(thread);
    }
}

/// By a thread that begins another program.
pub fn begin(thread: &Thread) {
    *thread.uring.lock() = Held::None;
}

/// A file has been mapped.
pub fn mapped(file: &OpenFile, addr: usize, offset: u64) {
    if let Some(ring) = file.downcast::<Ring>()
        && offset != janua_abi::linux::uring::mmap::CQ_RING
        && let Some(region) = ring::region_at(offset)
    {
        ring.shared.mapped(region, addr);
    }
}

/// The ring behind a descriptor, or behind a number of the thread's registered ones. EBADF, EINVAL, EOPNOTSUPP.
fn find(thread: &Thread, number: u32, registered: bool) -> Result<(Arc<OpenFile>, Arc<Ring>)> {
    let file = if registered {
        let issuer = issuer::of(thread)?;
        let rings = issuer.rings.lock();
        rings.get(number as usize).ok_or(Errno::EINVAL)?.clone().ok_or(Errno::EBADF)?
    } else {
        fd::get(thread, Fd(number as i32))?
    };
    let ring = Ring::of(&file)?;
    Ok((file, ring))
}
