//! Pauses the processes of a sandbox, and lets them go on.

use alloc::collections::BTreeSet;

use crate::processes::{children, descendants, signal_threads};
use crate::sandbox::Sandbox;

/// Why the processes of a sandbox could not be stopped, or let go on.
const UNLISTED: &str = "the host does not list the sandbox's processes";

/// Stops all children, so that none of them makes more: until a look shows nobody new, or they are made faster than they can be
/// stopped for long, which is an error. `stopped` gets those that were sent the signal.
pub(crate) fn stop_children(stopped: &mut BTreeSet<i32>) -> Result<(), &'static str> {
    const LOOKS: usize = 1000;
    for _ in 0..LOOKS {
        let before = stopped.len();
        for child in children().ok_or(UNLISTED)? {
            if stopped.insert(child) {
                // SAFETY: a signal to a child, which is not reaped meanwhile.
                unsafe { libc::kill(child, libc::SIGSTOP) };
            }
        }
        if stopped.len() == before {
            return Ok(());
        }
    }
    Err("its processes are made faster than they can be stopped")
}

/// Stops all processes of the sandbox: the kernel's first where it has one of its own, then those that it runs guests in.
fn stop_all(stopped: &mut BTreeSet<i32>) -> Result<(), &'static str> {
    stop_children(stopped)?;
    // Who could make more of these, or reap one, is paused.
    let family = descendants().ok_or(UNLISTED)?;
    for &pid in &family {
        if stopped.insert(pid) {
            signal_threads(pid, &family, libc::SIGSTOP);
        }
    }
    Ok(())
}

/// Lets all processes of the sandbox go on.
fn continue_all() -> Result<(), &'static str> {
    let family = descendants().ok_or(UNLISTED)?;
    // Guests' first: until their kernel takes note of it they stay paused. The kernel's own process may have any thread taken for all.
    family.iter().rev().for_each(|pid| signal_threads(*pid, &family, libc::SIGCONT));
    Ok(())
}

impl Sandbox {
    /// Stops every process of the sandbox where it is, those that are being born too. The kernel inside is paused with them, and is not
    /// asked; nobody inside is notified. The error states why not all of them could be stopped; `undo`: then they go on.
    pub fn pause(&self, undo: bool) -> Result<(), &'static str> {
        let result = stop_all(&mut BTreeSet::new());
        if result.is_err() && undo {
            continue_all()?;
        }
        result
    }

    /// Lets them go on. The error states why they could not.
    pub fn resume(&self) -> Result<(), &'static str> {
        continue_all()
    }
}
