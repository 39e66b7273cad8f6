//! Windows: memory that guests have mapped, in the address space of the kernel's own process as well.
//!
//! Guest memory is in the guests' processes, and threads of the kernel's own reach it by calls of the host's. What is an anonymous file can be mapped where they run, too,
//! since nothing else is there but the kernel: that process never runs user code. No other has it, so a window is of use to the threads of that one alone.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use janua_abi::linux::mman::{MAP_SHARED, PROT_READ, PROT_WRITE};
use janua_abi::linux::{Errno, Result};
use janua_port::user::Window;
use janua_port::{Fault, HostFd, UserMemory};

use crate::lock::Mutex;
use crate::sys::{self, nr};
use crate::user::HostedUser;
use crate::{area, context, machine};

/// Most of them at a time. The host has a limit on the mappings of a process.
const MOST: usize = 4096;

/// How many there are, those that are yet to be closed among them.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Address and length of those that others have dropped, for the service thread to close; and whether there are any.
static LEFT: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());
static IS_LEFT: AtomicBool = AtomicBool::new(false);

/// A range of guests' memory in the kernel's process.
struct HostedWindow {
    addr: usize,
    len: usize,
}

/// Whether the caller is a thread of the kernel's own process.
#[inline]
fn is_here() -> bool {
    // Area 0 is the service thread's, the first of that process.
    area::of(context::here()).host_pid.load(Ordering::Relaxed) == area::of(0).host_pid.load(Ordering::Relaxed)
}

/// [`janua_port::MemoryObject::window`], of an anonymous file.
pub fn open(fd: HostFd, at: u64, len: usize) -> Result<Arc<dyn Window>> {
    if !is_here() {
        return Err(Errno::EXDEV);
    }
    if COUNT.fetch_add(1, Ordering::Relaxed) >= MOST {
        COUNT.fetch_sub(1, Ordering::Relaxed);
        return Err(Errno::ENOMEM);
    }
    let rights = (PROT_READ | PROT_WRITE) as usize;
    // SAFETY: a new mapping where the host finds room, of which there is no Rust object.
    let mapped = unsafe { sys::raw(nr::MMAP, [0, len, rights, MAP_SHARED as usize, fd.0 as usize, at as usize]) };
    match mapped {
        Ok(addr) => Ok(Arc::new(HostedWindow { addr, len })),
        Err(errno) => {
            COUNT.fetch_sub(1, Ordering::Relaxed);
            Err(errno)
        }
    }
}

fn close(addr: usize, len: usize) {
    // SAFETY: mapped by `open`, and its window is gone.
    let _ = unsafe { sys::raw(nr::MUNMAP, [addr, len, 0, 0, 0, 0]) };
    COUNT.fetch_sub(1, Ordering::Relaxed);
}

/// By the service thread: closes what was dropped elsewhere.
pub fn close_left() {
    if IS_LEFT.swap(false, Ordering::SeqCst) {
        let left = core::mem::take(&mut *LEFT.lock());
        left.into_iter().for_each(|(addr, len)| close(addr, len));
    }
}

impl Drop for HostedWindow {
    fn drop(&mut self) {
        if is_here() {
            return close(self.addr, self.len);
        }
        LEFT.lock().push((self.addr, self.len));
        IS_LEFT.store(true, Ordering::SeqCst);
        machine::wake_service();
    }
}

impl Window for HostedWindow {
    #[inline]
    fn here(&self) -> Option<&dyn UserMemory> {
        if is_here() { Some(self) } else { None }
    }
}

impl HostedWindow {
    /// Where a range of it is.
    #[inline]
    fn place(&self, offset: usize, len: usize) -> Option<usize> {
        offset.checked_add(len).filter(|end| *end <= self.len).map(|_| self.addr + offset)
    }
}

// It is mapped where guests' memory may be in other processes, and like that it may fault: the file may have been cut off.
impl UserMemory for HostedWindow {
    fn is_user(&self, addr: usize, len: usize) -> bool {
        self.place(addr, len).is_some()
    }

    fn copy_in_partial(&self, dst: &mut [u8], src: usize) -> usize {
        self.place(src, dst.len()).map_or(0, |addr| HostedUser.copy_in_partial(dst, addr))
    }

    fn copy_out_partial(&self, dst: usize, src: &[u8]) -> usize {
        self.place(dst, src.len()).map_or(0, |addr| HostedUser.copy_out_partial(addr, src))
    }

    fn load_u32(&self, addr: usize) -> core::result::Result<u32, Fault> {
        HostedUser.load_u32(self.place(addr, 4).ok_or(Fault)?)
    }

    fn cmpxchg_u32(&self, addr: usize, old: u32, new: u32) -> core::result::Result<u32, Fault> {
        HostedUser.cmpxchg_u32(self.place(addr, 4).ok_or(Fault)?, old, new)
    }
}
