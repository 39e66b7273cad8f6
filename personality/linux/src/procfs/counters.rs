//! What the system counts of its own work: interrupts, softirqs and pressure of /proc.

use core::fmt::Write;

use janua_abi::linux::{Errno, Result};
use janua_port::machine::processors;

use super::{Entry, Subject, Text};

/// A line that names the processors, behind so many blanks.
fn heading(subject: &Subject, blanks: usize, text: &mut Text) {
    let _ = write!(text, "{:blanks$}", "");
    for cpu in processors(subject.kernel.machine) {
        let _ = write!(text, "CPU{cpu:<8}");
    }
    text.bytes(b"\n");
}

/// /proc/interrupts. On a host the host takes them; a bare machine does not count its own: no source is listed.
pub fn interrupts(subject: &Subject, text: &mut Text) -> Result<()> {
    heading(subject, 11, text);
    Ok(())
}

/// /proc/softirqs: no work is put off in this way, so none of any kind has been done.
pub fn softirqs(subject: &Subject, text: &mut Text) -> Result<()> {
    const KINDS: [&str; 10] = ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
    heading(subject, 20, text);
    for kind in KINDS {
        let _ = write!(text, "{kind:>12}:");
        for _ in processors(subject.kernel.machine) {
            let _ = write!(text, " {:10}", 0);
        }
        text.bytes(b"\n");
    }
    Ok(())
}

/// /proc/pressure: for how much of the time somebody, or everybody, was kept waiting.
pub static PRESSURE: &[Entry] = &[Entry::text("cpu", on_a_host), Entry::text("io", on_a_host), Entry::text("memory", none)];

/// Nobody is kept waiting by this kernel: it reclaims no memory.
fn none(_: &Subject, text: &mut Text) -> Result<()> {
    for who in ["some", "full"] {
        let _ = writeln!(text, "{who} avg10=0.00 avg60=0.00 avg300=0.00 total=0");
    }
    Ok(())
}

/// On a host all threads that can run are the host's to schedule, files are its or in memory, and none waits for this kernel. Where the kernel schedules and
/// has a disk, it does not measure that: EOPNOTSUPP, as on Linux with pressure switched off.
fn on_a_host(subject: &Subject, text: &mut Text) -> Result<()> {
    if subject.kernel.machine.host().is_none() {
        return Err(Errno::EOPNOTSUPP);
    }
    none(subject, text)
}
