//! /proc/PID/stat and status.

use core::fmt::Write;
use core::sync::atomic::Ordering;

use janua_abi::linux::Result;
use janua_abi::linux::time::TICK;
use janua_object::mm::Sizes;
use janua_port::PAGE;
use janua_port::machine::Usage;

use super::{Subject, Text};
use crate::process::State;
use crate::signal::SigSet;
use crate::time::cpu;

/// Bytes the host holds in memory for the process; 0 when it does not report them.
pub fn resident(subject: &Subject) -> u64 {
    let Ok(seat) = subject.seat() else { return 0 };
    seat.context().and_then(|context| context.resident()).unwrap_or(0)
}

/// What the process, or the thread, has used.
fn usage(subject: &Subject) -> Result<Usage> {
    Ok(match &subject.seat {
        Some(seat) if subject.is_thread => cpu::usage_of_thread(seat),
        _ => cpu::usage_of_task(subject.task()?, None),
    })
}

/// The letter and word of a state.
pub fn state(subject: &Subject) -> (char, &'static str) {
    let Ok(task) = subject.task() else { return ('X', "dead") };
    let Ok(seat) = subject.seat() else {
        return match task.group.lock().state {
            State::Dead(_) => ('Z', "zombie"),
            // Init, which has no threads, waits for orphans.
            _ => ('S', "sleeping"),
        };
    };
    if crate::ptrace::is_stopped(seat) {
        ('t', "tracing stop")
    } else if seat.signals.stopped.load(Ordering::Relaxed) {
        ('T', "stopped")
    } else if seat.is_waiting() && !seat.is_woken() {
        ('S', "sleeping")
    } else {
        ('R', "running")
    }
}

/// The device number of the controlling terminal and the group in its foreground; 0 and -1 without one.
fn tty(subject: &Subject) -> (u64, i64) {
    match subject.task().ok().and_then(|task| crate::dev::terminal::of(task)) {
        Some(terminal) => (terminal.device(), terminal.job().foreground().into()),
        None => (0, -1),
    }
}

/// /proc/PID/stat (proc_pid_stat(5)).
pub fn stat(subject: &Subject, text: &mut Text) -> Result<()> {
    let task = subject.task()?;
    let seat = subject.seat.as_ref();
    let comm = subject.comm();
    let mm = task.mm();
    let image = mm.as_ref().map(|mm| mm.image()).unwrap_or_default();
    let size = mm.as_ref().map_or(0, |mm| mm.sizes().total);
    let brk = mm.as_ref().map_or(0, |mm| mm.heap().0);
    let used = usage(subject)?;
    let children = task.usage.children.get();
    let nice = task.settings.nice.load(Ordering::Relaxed);
    let (ignored, caught) = task.actions().summary();
    let (pending, blocked) = seat
        .map_or((SigSet::EMPTY, SigSet::EMPTY), |seat| (seat.signals.pending().union(task.pending()), seat.signals.blocked()));
    let (policy, priority) =
        seat.map_or((0, 0), |seat| (seat.sched.policy.load(Ordering::Relaxed), seat.sched.priority.load(Ordering::Relaxed)));
    let shown_priority = if priority > 0 { -1 - i64::from(priority) } else { 20 + i64::from(nice) };
    let start = task.started.saturating_sub(subject.kernel.booted);
    let status = task.ended().unwrap_or(0);
    let id = seat.filter(|_| subject.is_thread).map_or(task.pid, |seat| seat.tid());
    // Signal sets are shown as far as they fit 31 bits, as ever.
    let few = |set: SigSet| set.0 & 0x7fff_ffff;
    // Where the program is in memory, and how it ended, is not for everybody: 1 is shown for where its code begins and ends.
    let open = subject.is_for_tracer();
    let shown = |word: usize| if open { word } else { 0 };
    let code = |word: usize| if open { word } else { usize::from(mm.is_some()) };
    let status = if open { status } else { 0 };

    let _ = write!(text, "{id} (");
    text.bytes(&comm);
    let _ = write!(
        text,
        ") {} {} {} {} {} {} 4194304 {} {} {} {} {} {} {} {} {shown_priority} {nice} {} 0 {} {size} {} {} ",
        state(subject).0,
        task.parent(),
        task.pgrp(),
        task.session().id,
        tty(subject).0,
        tty(subject).1,
        used.minor_faults,
        children.minor_faults,
        used.major_faults,
        children.major_faults,
        used.user / TICK,
        used.system / TICK,
        children.user / TICK,
        children.system / TICK,
        task.threads().len().max(1),
        start / TICK,
        resident(subject) / PAGE as u64,
        task.limits.soft(janua_abi::linux::process::rlimit::RSS),
    );
    let _ = writeln!(
        text,
        "{} {} {} 0 0 {} {} {} {} {} 0 0 {} 0 {priority} {policy} 0 0 0 {} {} {} {} {} {} {} {status}",
        code(image.start_code),
        code(image.end_code),
        shown(image.start_stack),
        few(pending),
        few(blocked),
        few(ignored),
        few(caught),
        u8::from(seat.is_some_and(|seat| seat.is_waiting())),
        task.exit_signal.load(Ordering::Relaxed),
        shown(image.start_data),
        shown(image.end_data),
        shown(brk),
        shown(image.args.0),
        shown(image.args.1),
        shown(image.env.0),
        shown(image.env.1),
    );
    Ok(())
}

/// /proc/PID/status (proc_pid_status(5)).
pub fn status(subject: &Subject, text: &mut Text) -> Result<()> {
    let task = subject.task()?;
    let seat = subject.seat.as_ref();
    let (letter, word) = state(subject);
    text.bytes(b"Name:\t");
    text.escaped(&subject.comm(), b"\n");
    let umask = subject.fs()?.umask.load(Ordering::Relaxed);
    let tid = seat.filter(|_| subject.is_thread).map_or(task.pid, |seat| seat.tid());
    let _ = write!(
        text,
        "\nUmask:\t{umask:04o}\nState:\t{letter} ({word})\nTgid:\t{}\nNgid:\t0\nPid:\t{tid}\nPPid:\t{}\nTracerPid:\t{}\n",
        task.pid,
        task.parent(),
        seat.map_or(0, |seat| crate::ptrace::tracer_of(seat)),
    );
    let cred = seat.map(|seat| seat.cred()).or_else(|| task.last_cred.read().clone());
    if let Some(cred) = &cred {
        let _ = writeln!(text, "Uid:\t{}\t{}\t{}\t{}", cred.uid, cred.euid, cred.suid, cred.fsuid);
        let _ = writeln!(text, "Gid:\t{}\t{}\t{}\t{}", cred.gid, cred.egid, cred.sgid, cred.fsgid);
    } else {
        text.bytes(b"Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n");
    }
    let _ = write!(text, "FDSize:\t{}\nGroups:\t", subject.files()?.numbers().len().next_power_of_two().max(64));
    for group in cred.iter().flat_map(|cred| &cred.groups) {
        let _ = write!(text, "{group} ");
    }
    let _ = write!(
        text,
        "\nNStgid:\t{}\nNSpid:\t{tid}\nNSpgid:\t{}\nNSsid:\t{}\nKthread:\t0\n",
        task.pid,
        task.pgrp(),
        task.session().id
    );
    if let Some(mm) = task.mm() {
        let rss = resident(subject) / 1024;
        let peak = task.usage.maxrss.load(Ordering::Relaxed).max(rss);
        memory_lines(&mm.sizes(), peak, rss, text);
    }
    let (ignored, caught) = task.actions().summary();
    let own = seat.map_or(0, |seat| seat.signals.pending().0);
    let blocked = seat.map_or(0, |seat| seat.signals.blocked().0);
    let limit = task.limits.soft(janua_abi::linux::process::rlimit::SIGPENDING);
    let queued = seat.map_or(0, |seat| seat.charge.lock().user().signals());
    let _ = write!(
        text,
        "Threads:\t{}\nSigQ:\t{queued}/{limit}\nSigPnd:\t{own:016x}\nShdPnd:\t{:016x}\nSigBlk:\t{blocked:016x}\nSigIgn:\t{:016x}\nSigCgt:\t{:016x}\n",
        task.threads().len().max(1),
        task.pending().0,
        ignored.0,
        caught.0,
    );
    if let Some(cred) = &cred {
        let _ = write!(
            text,
            "CapInh:\t{:016x}\nCapPrm:\t{:016x}\nCapEff:\t{:016x}\nCapBnd:\t{:016x}\nCapAmb:\t{:016x}\nNoNewPrivs:\t{}\n",
            cred.cap_inheritable,
            cred.cap_permitted,
            cred.cap_effective,
            cred.cap_bounding,
            cred.cap_ambient,
            u8::from(cred.no_new_privs),
        );
    }
    text.bytes(b"Seccomp:\t0\nSeccomp_filters:\t0\n");
    if let Some(seat) = seat {
        processor_lines(&seat.sched.processors(subject.kernel.machine), text);
    }
    if let Some(tile) = crate::place::shown(&task.kernel, task) {
        let _ = writeln!(text, "Tile:\t{tile}");
    }
    // Counted by thread; a process shows its leader's.
    let used = seat.map(|seat| cpu::usage_of_thread(seat)).unwrap_or_default();
    let _ = write!(text, "voluntary_ctxt_switches:\t{}\nnonvoluntary_ctxt_switches:\t{}\n", used.waits, used.preemptions);
    Ok(())
}

/// What the process' memory is, of [`status`]. `peak` and `rss` are kibibytes, as everything there.
fn memory_lines(sizes: &Sizes, peak: u64, rss: u64, text: &mut Text) {
    let kib = |bytes: usize| bytes / 1024;
    let _ = write!(
        text,
        "VmPeak:\t{:8} kB\nVmSize:\t{:8} kB\nVmLck:\t{:8} kB\nVmPin:\t       0 kB\nVmHWM:\t{peak:8} kB\nVmRSS:\t{rss:8} kB\n",
        kib(sizes.peak),
        kib(sizes.total),
        kib(sizes.locked),
    );
    let _ = write!(
        text,
        "VmData:\t{:8} kB\nVmStk:\t{:8} kB\nVmExe:\t{:8} kB\nVmLib:\t{:8} kB\nVmPTE:\t       0 kB\nVmSwap:\t       0 kB\n",
        kib(sizes.data),
        kib(sizes.stack),
        kib(sizes.text),
        kib(sizes.lib),
    );
}

/// The processors that a thread may run on, of [`status`].
fn processor_lines(words: &[u64], text: &mut Text) {
    text.bytes(b"Cpus_allowed:\t");
    // The highest first, in groups of eight digits, without leading groups of zeroes.
    let halves = words.iter().rev().flat_map(|word| [word >> 32, word & 0xffff_ffff]).skip_while(|half| *half == 0);
    for (at, half) in halves.enumerate() {
        let _ = if at == 0 { write!(text, "{half:x}") } else { write!(text, ",{half:08x}") };
    }
    text.bytes(b"\nCpus_allowed_list:\t");
    list(text, words);
    text.bytes(b"\nMems_allowed:\t1\nMems_allowed_list:\t0\n");
}

/// Bits as ranges: "0-3,6".
fn list(text: &mut Text, words: &[u64]) {
    let has = |bit: usize| words.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 != 0);
    let mut bit = 0;
    let mut comma = "";
    while bit < words.len() * 64 {
        if !has(bit) {
            bit += 1;
            continue;
        }
        let start = bit;
        while has(bit + 1) {
            bit += 1;
        }
        let _ = if start == bit { write!(text, "{comma}{start}") } else { write!(text, "{comma}{start}-{bit}") };
        comma = ",";
        bit += 1;
    }
}

/// /proc/PID/sched: what is known of how it has been scheduled; the rest the machine knows alone.
pub fn sched(subject: &Subject, text: &mut Text) -> Result<()> {
    const NAME: usize = 45;
    let task = subject.task()?;
    let id = subject.seat.as_ref().filter(|_| subject.is_thread).map_or(task.pid, |seat| seat.tid());
    text.escaped(&subject.comm(), b"\n");
    let _ = writeln!(text, " ({id}, #threads: {})", task.threads().len().max(1));
    text.bytes(&[b'-'; 67]);
    text.bytes(b"\n");
    let Ok(seat) = subject.seat() else { return Ok(()) };
    let counted = seat.context().and_then(|context| context.scheduled());
    let used = cpu::usage_of_thread(seat);
    let ran = counted.map_or(used.user + used.system, |counted| counted.ran);
    let _ = writeln!(text, "{:NAME$}:{:14}.{:06}", "se.sum_exec_runtime", ran / 1_000_000, ran % 1_000_000);
    let (policy, priority) = (seat.sched.policy.load(Ordering::Relaxed), seat.sched.priority.load(Ordering::Relaxed));
    let nice = i64::from(task.settings.nice.load(Ordering::Relaxed));
    // As the kernel numbers them: 0 to 98 of real time, 100 to 139 by nice value.
    let shown = if priority > 0 { 99 - i64::from(priority) } else { 120 + nice };
    for (name, value) in [
        ("nr_switches", (used.waits + used.preemptions) as i64),
        ("nr_voluntary_switches", used.waits as i64),
        ("nr_involuntary_switches", used.preemptions as i64),
        ("policy", i64::from(policy)),
        ("prio", shown),
    ] {
        let _ = writeln!(text, "{name:NAME$}:{value:21}");
    }
    Ok(())
}
