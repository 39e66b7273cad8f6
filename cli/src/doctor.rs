//! `janua doctor`: what this machine offers, what is chosen by default, and why.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use janua_platform_host as host;
use janua_platform_host::{Probe, Refused};

use crate::exit;
use crate::options::Gate;

/// The lowest `vm.max_map_count` that large programs (a JVM, a browser engine) get along with.
const MAP_COUNT: u64 = 65530;

/// How many descriptors the sandbox wants: all its processes share one host table.
const DESCRIPTORS: u64 = 4096;

/// One line of the report.
struct Finding {
    mark: Mark,
    what: String,
    /// What it is for, or what its lack means and what to do.
    note: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Mark {
    Good,
    Lacking,
    /// Nothing works without it.
    Fatal,
}

/// Whether a gate works on this machine.
pub fn gate(gate: Gate) -> Probe {
    match gate {
        Gate::Sud => host::syscall_user_dispatch(),
        Gate::Seccomp => host::seccomp_trap(),
    }
}

/// The gate taken when none is asked for: the first of `Gate::ALL` that works.
pub fn default_gate() -> Option<Gate> {
    Gate::ALL.into_iter().find(|g| gate(*g).is_ok())
}

/// Prints the report. The exit code is 125 when no program could be run here.
pub fn print() -> ExitCode {
    let (text, usable) = report();
    // A reader that closes early has seen what it wanted.
    let _ = io::stdout().lock().write_all(text.as_bytes());
    if usable { ExitCode::SUCCESS } else { ExitCode::from(exit::JANUA) }
}

/// The report, and whether programs can be run here.
fn report() -> (String, bool) {
    let sections = [
        ("system", vec![system(), memfd()]),
        ("gates", gates()),
        ("for jails and gates to come", jails()),
        ("limits", limits()),
    ];
    let mut text = String::new();
    let mut usable = true;
    for (title, findings) in sections {
        text += &format!("{title}\n");
        for finding in findings {
            usable &= finding.mark != Mark::Fatal;
            let mark = if finding.mark == Mark::Good { "yes" } else { "no " };
            let line = format!("  {mark}  {:<28} {}", finding.what, finding.note);
            text += &format!("{}\n", line.trim_end());
        }
        text += "\n";
    }
    text += "chosen by default\n";
    match default_gate() {
        Some(gate) => text += &format!("  gate         {:<8} {}\n", gate.name(), why(gate)),
        None => {
            usable = false;
            text += "  gate         (none)   no gate works here: see above\n";
        }
    }
    text += "\
  jail         none     no other is built yet
  personality  linux    no other is built yet

There is no jail yet: a hostile program can reach the memory of Janua's kernel and, through it,
the host with your account's rights. Run programs you would run without Janua.
";
    (text, usable)
}

fn why(gate: Gate) -> &'static str {
    match gate {
        Gate::Sud => "the faster of the two; --gate seccomp is the other",
        Gate::Seccomp => "Syscall User Dispatch does not work here",
    }
}

fn finding(probe: Probe, what: &str, good: &str, lacking: &str) -> Finding {
    match probe {
        Ok(()) => Finding { mark: Mark::Good, what: what.into(), note: good.into() },
        Err(why) => Finding { mark: Mark::Lacking, what: what.into(), note: format!("{} {lacking}", refused(why)) },
    }
}

fn refused(why: Refused) -> String {
    match why {
        Refused::Errno(code) => format!("the host says: {}.", io::Error::from_raw_os_error(code)),
        Refused::Signal(number) => format!("the host ended the attempt with signal {number}."),
        Refused::NoEffect => "the host accepts it, without effect.".into(),
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_string()
}

fn system() -> Finding {
    let release = read("/proc/sys/kernel/osrelease");
    let machine = std::env::consts::ARCH;
    let what = format!("Linux {release}, {machine}");
    if machine == "x86_64" {
        Finding { mark: Mark::Good, what, note: String::new() }
    } else {
        Finding { mark: Mark::Fatal, what, note: "only x86_64 hosts are supported".into() }
    }
}

fn memfd() -> Finding {
    let mut line = finding(
        host::executable_memfd(),
        "executable memfd",
        "carries the kernel",
        "The kernel cannot be loaded. If vm.memfd_noexec is 2: sysctl vm.memfd_noexec=0",
    );
    if line.mark == Mark::Lacking {
        line.mark = Mark::Fatal;
    }
    line
}

fn gates() -> Vec<Finding> {
    vec![
        finding(
            gate(Gate::Sud),
            "sud (Syscall User Dispatch)",
            "",
            "It needs Linux 5.11 or newer; a container's seccomp profile may forbid it.",
        ),
        finding(gate(Gate::Seccomp), "seccomp (trap)", "", "A container's seccomp profile may forbid it."),
    ]
}

fn jails() -> Vec<Finding> {
    let kvm = Path::new("/dev/kvm");
    let opened = fs::OpenOptions::new().read(true).write(true).open(kvm).map(drop);
    let kvm = opened.map_err(|e| Refused::Errno(e.raw_os_error().unwrap_or(0)));
    vec![
        finding(
            host::protection_key(),
            "protection keys",
            "what the jail `pkey` will use; that jail is not built yet",
            "The jail `pkey` will not be possible here.",
        ),
        finding(
            host::namespaces(),
            "own namespaces",
            "a wall more round the jails to come",
            "Those jails will have a wall less.",
        ),
        finding(
            kvm,
            "/dev/kvm",
            "what the gate `kvm` will use; that gate is not built yet",
            "The gate `kvm` will not be possible here.",
        ),
    ]
}

fn limits() -> Vec<Finding> {
    let maps: u64 = read("/proc/sys/vm/max_map_count").parse().unwrap_or(0);
    let (soft, hard) = descriptors();
    let at_least = |value: u64, wanted: u64, what: String, remedy: String| {
        let good = value >= wanted;
        Finding {
            mark: if good { Mark::Good } else { Mark::Lacking },
            what,
            note: if good { String::new() } else { format!("fewer than {wanted}: large programs may fail; {remedy}") },
        }
    };
    vec![
        at_least(maps, MAP_COUNT, format!("vm.max_map_count {maps}"), format!("sysctl vm.max_map_count={MAP_COUNT}")),
        at_least(
            hard,
            DESCRIPTORS,
            format!("open files {soft}, at most {hard}"),
            format!("ulimit -Hn {DESCRIPTORS} (as root)"),
        ),
    ]
}

/// The soft and hard limit of open files.
fn descriptors() -> (u64, u64) {
    let limits = read("/proc/self/limits");
    let line = limits.lines().find_map(|l| l.strip_prefix("Max open files")).unwrap_or_default();
    let mut numbers = line.split_whitespace().map(|n| if n == "unlimited" { u64::MAX } else { n.parse().unwrap_or(0) });
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}
