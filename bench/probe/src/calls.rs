//! Rows about descriptors that are not files, and about memory.

use std::ptr;

use crate::meter::Meter;
use crate::{Samples, Skip, sys};

pub const PAGE: usize = 4096;

/// A descriptor, closed in the end.
pub struct Fd(pub i32);

impl Fd {
    pub fn new(what: &str, fd: i32) -> Result<Fd, Skip> {
        if fd < 0 { Err(Skip::last(what)) } else { Ok(Fd(fd)) }
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: owned.
        unsafe { libc::close(self.0) };
    }
}

/// Row `eventfd`.
pub fn eventfd(meter: &Meter) -> Samples {
    // SAFETY: no pointers.
    let event = Fd::new("eventfd", unsafe { libc::eventfd(0, 0) })?;
    let mut value = 1_u64;
    let (fd, at) = (event.0 as usize, (&raw mut value) as usize);
    meter.each(|| {
        // SAFETY: eight bytes of a local.
        unsafe {
            sys::call3::<{ libc::SYS_write }>("write", fd, at, 8)?;
            sys::call3::<{ libc::SYS_read }>("read", fd, at, 8).map(drop)
        }
    })
}

/// Row `epoll`.
pub fn epoll(meter: &Meter) -> Samples {
    // SAFETY: no pointers but the event's, a local.
    let (epoll, _event) = unsafe {
        let (epoll, ready) = (libc::epoll_create1(0), libc::eventfd(1, 0));
        let (epoll, ready) = (Fd::new("epoll_create1", epoll)?, Fd::new("eventfd", ready)?);
        let mut interest = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 1 };
        if libc::epoll_ctl(epoll.0, libc::EPOLL_CTL_ADD, ready.0, &mut interest) != 0 {
            return Err(Skip::last("epoll_ctl"));
        }
        (epoll, ready)
    };
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; 4];
    let (fd, at) = (epoll.0 as usize, events.as_mut_ptr() as usize);
    meter.each(|| {
        // SAFETY: room for four events.
        match unsafe { sys::call::<{ libc::SYS_epoll_wait }>([fd, at, 4, 0, 0, 0]) } {
            1 => Ok(()),
            result => Err(Skip(format!("epoll_wait gave {result}"))),
        }
    })
}

/// Maps anonymous memory of `length` bytes, readable and writable.
pub fn map(length: usize) -> Result<usize, Skip> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let arguments = [0, length, protection as usize, flags as usize, usize::MAX, 0];
    // SAFETY: a new mapping where the kernel likes.
    let at = unsafe { sys::call::<{ libc::SYS_mmap }>(arguments) };
    if at < 0 { Err(Skip::call("mmap", -at)) } else { Ok(at as usize) }
}

/// Unmaps memory of [`map`].
pub fn unmap(at: usize, length: usize) -> Result<(), Skip> {
    // SAFETY: a mapping of `map`, not used any more.
    unsafe { sys::call3::<{ libc::SYS_munmap }>("munmap", at, length, 0) }.map(drop)
}

/// Writes to memory of [`map`].
pub fn touch(at: usize) {
    // SAFETY: in a mapping of `map`, writable.
    unsafe { ptr::write_volatile(at as *mut u8, 1) };
}

/// Row `mmap-munmap`.
pub fn mmap_munmap(meter: &Meter) -> Samples {
    meter.each(|| unmap(map(16 * PAGE)?, 16 * PAGE))
}

/// Row `mmap-touch`.
pub fn mmap_touch(meter: &Meter) -> Samples {
    meter.each(|| {
        let at = map(PAGE)?;
        touch(at);
        unmap(at, PAGE)
    })
}

/// Row `fault`: in mappings too small for huge pages, whose making is shared by their 256 pages.
pub fn fault(meter: &Meter) -> Samples {
    const PAGES: u64 = 256;
    let samples = meter.each(|| {
        let at = map(PAGES as usize * PAGE)?;
        (0..PAGES as usize).for_each(|page| touch(at + page * PAGE));
        unmap(at, PAGES as usize * PAGE)
    })?;
    Ok(samples.into_iter().map(|ticks| ticks / PAGES as f64).collect())
}

/// Row `brk`.
pub fn brk(meter: &Meter) -> Samples {
    // SAFETY: asks only.
    let end = unsafe { sys::call::<{ libc::SYS_brk }>([0; 6]) } as usize;
    meter.each(|| {
        for wanted in [end + PAGE, end] {
            // SAFETY: nothing allocates between the two, and the page between is not touched.
            if unsafe { sys::call::<{ libc::SYS_brk }>([wanted, 0, 0, 0, 0, 0]) } as usize != wanted {
                return Err(Skip("brk did not move the end of the heap".into()));
            }
        }
        Ok(())
    })
}
