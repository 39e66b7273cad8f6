//! Rows about processes and threads.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use crate::files::Scratch;
use crate::isolate::wait;
use crate::meter::Meter;
use crate::{Samples, Skip, tiny};

/// Row `thread`.
pub fn thread(meter: &Meter) -> Samples {
    meter.each(|| {
        let started = std::thread::Builder::new().stack_size(128 * 1024).spawn(|| ());
        let thread = started.map_err(|error| Skip(format!("starting a thread: {error}")))?;
        thread.join().map_err(|_| Skip("the thread failed".into()))
    })
}

/// Checks that a child ended well.
fn ended(child: libc::pid_t) -> Result<(), Skip> {
    match wait(child)? {
        0 => Ok(()),
        status => Err(Skip(format!("the child ended with status {status:#x}"))),
    }
}

/// A child that only ends, and is waited for.
pub fn fork_end() -> Result<(), Skip> {
    // SAFETY: one thread; the child only ends.
    match unsafe { libc::fork() } {
        -1 => Err(Skip::last("fork")),
        // SAFETY: ends the child.
        0 => unsafe { libc::_exit(0) },
        child => ended(child),
    }
}

/// Row `fork-wait`.
pub fn fork_wait(meter: &Meter) -> Samples {
    meter.each(fork_end)
}

/// The tiny program's path, for exec.
fn program(scratch: &Scratch) -> Result<CString, Skip> {
    CString::new(tiny::install(&scratch.path)?.as_os_str().as_bytes()).map_err(|error| Skip(error.to_string()))
}

/// Row `fork-exec-wait`.
pub fn fork_exec_wait(meter: &Meter) -> Samples {
    let scratch = Scratch::new()?;
    let path = program(&scratch)?;
    let (arguments, environment) = ([path.as_ptr(), ptr::null()], [ptr::null()]);
    meter.each(|| {
        // SAFETY: one thread; the child makes one call; strings and arrays live.
        match unsafe { libc::fork() } {
            -1 => Err(Skip::last("fork")),
            0 => {
                // SAFETY: as above.
                unsafe {
                    libc::execve(path.as_ptr(), arguments.as_ptr(), environment.as_ptr());
                    libc::_exit(127)
                }
            }
            child => ended(child),
        }
    })
}

/// Row `vfork-exec-wait`.
pub fn spawn_wait(meter: &Meter) -> Samples {
    let scratch = Scratch::new()?;
    let path = program(&scratch)?;
    let (arguments, environment) = ([path.as_ptr().cast_mut(), ptr::null_mut()], [ptr::null_mut()]);
    meter.each(|| {
        let mut child = 0;
        // SAFETY: strings and arrays live; no attributes, no actions.
        let result = unsafe {
            let (none, same) = (ptr::null(), ptr::null());
            libc::posix_spawn(&mut child, path.as_ptr(), none, same, arguments.as_ptr(), environment.as_ptr())
        };
        if result == 0 { ended(child) } else { Err(Skip::call("posix_spawn", i64::from(result))) }
    })
}
