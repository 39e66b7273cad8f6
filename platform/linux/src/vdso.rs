//! The vDSO in every guest process: a page of data and a page of code, right below the host's own.
//!
//! They are made once, in the first process, as private memory; every later process has them by fork, and exec leaves them
//! alone. The data page holds the addresses of the host's functions, which serve the clocks.

use janua_abi::linux::Result;
use janua_abi::linux::mman::{MAP_ANONYMOUS, MAP_FIXED, MAP_PRIVATE, PROT_EXEC, PROT_READ, PROT_WRITE};
use janua_arch::x86_64::vdso::{CODE_SIZE, DATA_SIZE, Data, image};
use janua_entry::hosted::USER_END;

use crate::boot;
use crate::sys::{self, nr};

const MAP_FLAGS: u32 = MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS;

/// Start and end of the data and of the code, the same in every process.
pub fn ranges() -> [(usize, usize); 2] {
    let host = boot::info().vdso_start as usize;
    let end = if host == 0 { USER_END } else { host };
    let code = end - CODE_SIZE;
    [(code - DATA_SIZE, code), (code, end)]
}

/// Sets where the functions' own calls go, without a trap: in the first process, before there are others.
pub fn set_call_entry(entry: usize) -> Result<()> {
    let [(data, code), _] = ranges();
    let protect = |rights: u32| {
        // SAFETY: the page of data, which `map` has made, and nothing else.
        unsafe { sys::raw(nr::MPROTECT, [data, code - data, rights as usize, 0, 0, 0]) }
    };
    protect(PROT_READ | PROT_WRITE)?;
    // SAFETY: the page is there and writable, and no other thread of this process reads it.
    unsafe { (&raw mut (*(data as *mut Data)).call_entry).write(entry as u64) };
    protect(PROT_READ).map(|_| ())
}

/// Makes the two pages in the calling process, which must be the first one. `call_entry` is where calls of the vDSO's own go
/// that need no trap.
pub fn map(call_entry: Option<usize>) -> Result<()> {
    let [(data, code), (_, end)] = ranges();
    // SAFETY: the pages are outside what guests may map and nothing of the kernel's is there; they are filled before they are
    // made unwritable, and the image fits (its own test).
    unsafe {
        sys::raw(nr::MMAP, [data, end - data, (PROT_READ | PROT_WRITE) as usize, MAP_FLAGS as usize, usize::MAX, 0])?;
        (data as *mut Data).write(Data { call_entry: call_entry.unwrap_or(0) as u64, ..boot::info().vdso });
        core::ptr::copy_nonoverlapping(image().as_ptr(), code as *mut u8, image().len().min(CODE_SIZE));
        sys::raw(nr::MPROTECT, [data, code - data, PROT_READ as usize, 0, 0, 0])?;
        sys::raw(nr::MPROTECT, [code, end - code, (PROT_READ | PROT_EXEC) as usize, 0, 0, 0])?;
    }
    Ok(())
}
