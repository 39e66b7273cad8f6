//! Files as memory.

use janua_abi::linux::mman::{MAP_FIXED, MAP_PRIVATE, MAP_SHARED};
use janua_abi::pal::{ALLOC_ALIGN, Error, Kind, prot};
use janua_kernel::table::Fd;
use janua_object::mm::MapRequest;
use janua_personality_linux::Thread;

use super::free;
use crate::answer::{Reply, reply};
use crate::{handle, memory, state};

/// DkStreamMap.
pub fn map(thread: &Thread, fd: Fd, addr: usize, rights: u32, offset: u64, size: usize) -> Reply {
    reply(|| {
        let state = state::of(thread)?;
        let file = handle::get(thread, fd)?;
        if !matches!(handle::kind(&file), Kind::File | Kind::Device) {
            return Err(Error::NotSupported.into());
        }
        if !offset.is_multiple_of(ALLOC_ALIGN as u64) {
            return Err(Error::Invalid.into());
        }
        memory::check(&state, addr, size, rights, prot::WRITECOPY)?;
        let shared = if rights & prot::WRITECOPY != 0 { MAP_PRIVATE } else { MAP_SHARED };
        let flags = shared | if addr != 0 { MAP_FIXED } else { 0 };
        let request = MapRequest { addr, len: size, prot: memory::rights(rights), flags, file: Some(file), offset };
        memory::place(thread, request)
    })
}

/// DkStreamUnmap.
pub fn unmap(thread: &Thread, addr: usize, size: usize) -> Reply {
    reply(|| free(thread, addr, size))
}
