//! Measuring in a child process: for rows that change the process for good, or may end it.

use std::ptr;

use crate::{Samples, Skip};

/// What the child leaves behind, in memory shared with its parent.
#[repr(C)]
struct Slate {
    /// Samples written, or `usize::MAX` when `why` was.
    count: usize,
    samples: [f64; ROOM],
    length: usize,
    why: [u8; 256],
}

/// The most samples a child can hand back.
const ROOM: usize = 4096;

/// Runs `body` in a child and hands its samples on. A child that a signal ends makes the row skipped.
pub fn isolated(body: impl FnOnce() -> Samples) -> Samples {
    // SAFETY: a new mapping, of the size of a Slate, shared with the child.
    let slate = unsafe {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        libc::mmap(ptr::null_mut(), size_of::<Slate>(), protection, flags, -1, 0)
    };
    if slate == libc::MAP_FAILED {
        return Err(Skip::last("mmap"));
    }
    let slate = slate.cast::<Slate>();
    // SAFETY: this process has one thread when rows are measured, so the child may do what it likes.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(Skip::last("fork"));
    }
    if child == 0 {
        let result = body();
        // SAFETY: the mapping is writable, zeroed, and nobody reads it before this process ends.
        unsafe {
            match result {
                Ok(samples) => {
                    let count = samples.len().min(ROOM);
                    (&mut (*slate).samples)[..count].copy_from_slice(&samples[..count]);
                    (*slate).count = count;
                }
                Err(Skip(why)) => {
                    let length = why.len().min(256);
                    (&mut (*slate).why)[..length].copy_from_slice(&why.as_bytes()[..length]);
                    (*slate).length = length;
                    (*slate).count = usize::MAX;
                }
            }
            libc::_exit(0)
        }
    }
    let result = match wait(child) {
        // SAFETY: the child has ended; what it wrote is here and keeps still.
        Ok(0) => unsafe {
            match (*slate).count {
                usize::MAX => Err(Skip(String::from_utf8_lossy(&(&(*slate).why)[..(*slate).length]).into_owned())),
                count => Ok((&(*slate).samples)[..count].to_vec()),
            }
        },
        Ok(status) if libc::WIFSIGNALED(status) => {
            Err(Skip(format!("ends the program with signal {}", libc::WTERMSIG(status))))
        }
        Ok(status) => Err(Skip(format!("the measuring process ended with status {status:#x}"))),
        Err(skip) => Err(skip),
    };
    // SAFETY: the mapping made above; no reference to it is left.
    unsafe { libc::munmap(slate.cast(), size_of::<Slate>()) };
    result
}

/// Waits for a child to end and gives its status.
pub fn wait(child: libc::pid_t) -> Result<i32, Skip> {
    let mut status = 0;
    // SAFETY: the status is a local.
    if unsafe { libc::waitpid(child, &mut status, 0) } != child {
        return Err(Skip::last("waitpid"));
    }
    Ok(status)
}
