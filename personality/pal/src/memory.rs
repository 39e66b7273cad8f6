//! Memory: the three calls, and what mappings of files and pages that come by a channel have in common with them.

use janua_abi::linux::Errno;
use janua_abi::linux::mman::{MAP_32BIT, MAP_ANONYMOUS, MAP_FIXED, MAP_NORESERVE, MAP_PRIVATE};
use janua_abi::pal::{ALLOC_ALIGN, Error, alloc_type, prot};
use janua_kernel::thread::work;
use janua_object::mm::MapRequest;
use janua_personality_linux::Thread;
use janua_personality_linux::mm::limits;
use janua_personality_linux::thread::ThreadExt;
use janua_port::Prot;

use crate::answer::{Reply, Result, reply};
use crate::state::{self, State};

/// The first address that is not below 4 GiB.
const LOW_END: usize = 1 << 32;

/// Rights as the machine has them.
pub fn rights(word: u32) -> Prot {
    Prot { read: word & prot::READ != 0, write: word & prot::WRITE != 0, exec: word & prot::EXEC != 0 }
}

/// INVAL for a range that is none or bits that there are not, DENIED for one that holds something of the library's. Address 0 is for anywhere.
pub fn check(state: &State, addr: usize, size: usize, rights: u32, more: u32) -> Result<()> {
    let known = prot::READ | prot::WRITE | prot::EXEC | more;
    let aligned = addr.is_multiple_of(ALLOC_ALIGN) && size.is_multiple_of(ALLOC_ALIGN) && size != 0;
    if !aligned || rights & !known != 0 {
        return Err(Error::Invalid.into());
    }
    let end = addr.checked_add(size).ok_or(Error::Invalid)?;
    if addr == 0 {
        return Ok(());
    }
    let (low, high) = state.library.read().code;
    if addr < high && low < end { Err(Error::Denied.into()) } else { Ok(()) }
}

/// Maps: the address.
pub fn place(thread: &Thread, request: MapRequest) -> Result {
    let mm = thread.process().mm().ok_or(Errno::ENOMEM)?;
    Ok(mm.map_until(request, &limits(thread), &|| thread.work() & work::KILL != 0)?)
}

/// DkVirtualMemoryAlloc.
pub fn alloc(thread: &Thread, addr: usize, size: usize, kind: u32, access: u32) -> Reply {
    reply(|| {
        let state = state::of(thread)?;
        check(&state, addr, size, access, 0)?;
        if kind & !(alloc_type::BELOW_4G | alloc_type::RESERVE) != 0 {
            return Err(Error::Invalid.into());
        }
        let low = kind & alloc_type::BELOW_4G != 0;
        if low && addr.saturating_add(size) > LOW_END {
            return Err(Error::Invalid.into());
        }
        let mut flags = MAP_PRIVATE | MAP_ANONYMOUS;
        if addr != 0 {
            flags |= MAP_FIXED;
        } else if low {
            flags |= MAP_32BIT;
        }
        let reserve = kind & alloc_type::RESERVE != 0;
        if reserve {
            flags |= MAP_NORESERVE;
        }
        let prot = if reserve { Prot { read: false, write: false, exec: false } } else { rights(access) };
        place(thread, MapRequest { addr, len: size, prot, flags, file: None, offset: 0 })
    })
}

/// DkVirtualMemoryFree: any part of what there is.
pub fn free(thread: &Thread, addr: usize, size: usize) -> Reply {
    reply(|| unmap(thread, addr, size))
}

/// Takes mappings away.
pub fn unmap(thread: &Thread, addr: usize, size: usize) -> Result {
    let state = state::of(thread)?;
    if addr == 0 {
        return Err(Error::Invalid.into());
    }
    check(&state, addr, size, 0, 0)?;
    thread.process().mm().ok_or(Errno::ENOMEM)?.unmap(addr, size)?;
    Ok(0)
}

/// DkVirtualMemoryProtect.
pub fn protect(thread: &Thread, addr: usize, size: usize, access: u32) -> Reply {
    reply(|| {
        let state = state::of(thread)?;
        if addr == 0 {
            return Err(Error::Invalid.into());
        }
        check(&state, addr, size, access, prot::WRITECOPY)?;
        let mm = thread.process().mm().ok_or(Errno::ENOMEM)?;
        mm.protect(addr, size, rights(access), false, &limits(thread))?;
        Ok(0)
    })
}
