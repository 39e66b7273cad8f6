//! The host's calls, as this platform needs them.
//!
//! Safe wrappers take what the compiler can check (words, slices); everything else goes through [`raw`].

use janua_abi::linux::{Errno, Result};
use janua_entry::hosted::hostcall::hostcall;

use crate::faults;
pub use crate::wall::{Call, nr};

/// A host call of six words.
///
/// # Safety
/// Memory the call reads or writes through its arguments must be valid for that.
pub unsafe fn raw(call: Call, args: [usize; 6]) -> Result<usize> {
    if let Some(errno) = faults::of(call) {
        return Err(errno);
    }
    // SAFETY: the caller's promise.
    Errno::from_raw(unsafe { hostcall(call.number(), args[0], args[1], args[2], args[3], args[4], args[5]) })
}

/// Like [`raw`], again while it is interrupted.
///
/// # Safety
/// As [`raw`].
pub unsafe fn raw_retry(call: Call, args: [usize; 6]) -> Result<usize> {
    loop {
        // SAFETY: the caller's promise.
        match unsafe { raw(call, args) } {
            Err(Errno::EINTR) => {}
            other => return other,
        }
    }
}

/// A call whose arguments are words and never addresses.
pub fn words(call: Call, args: [usize; 6]) -> Result<usize> {
    // SAFETY: no memory is involved, by this function's contract; its callers are in this crate.
    unsafe { raw(call, args) }
}

/// Writes all of `bytes`, giving up on errors.
pub fn write_all(fd: i32, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: a slice of ours.
        match unsafe { raw_retry(nr::WRITE, [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]) } {
            Ok(n) if n > 0 => bytes = &bytes[n..],
            _ => return,
        }
    }
}

/// Writes to standard error as much of `bytes` as can be written without waiting. The supervisor has made a pipe or a terminal there such that no call
/// waits; a socket has to be asked.
pub fn report(mut bytes: &[u8]) {
    const STDERR: usize = 2;
    const AT_END: usize = usize::MAX;
    const RWF_NOWAIT: usize = 8;
    while !bytes.is_empty() {
        let piece = [bytes.as_ptr() as usize, bytes.len()];
        // SAFETY: a slice of ours, named by an array of ours.
        let written = unsafe { raw_retry(nr::PWRITEV2, [STDERR, piece.as_ptr() as usize, 1, AT_END, AT_END, RWF_NOWAIT]) };
        match written {
            Ok(n) if n > 0 => bytes = &bytes[n..],
            // A file, for which there is nothing to wait, or a terminal.
            Err(Errno::EOPNOTSUPP) => return write_all(STDERR as i32, bytes),
            _ => return,
        }
    }
}

/// Ends this host process at once.
pub fn exit_group(code: u8) -> ! {
    let _ = words(nr::EXIT_GROUP, [usize::from(code), 0, 0, 0, 0, 0]);
    unreachable!("exit_group does not return")
}
