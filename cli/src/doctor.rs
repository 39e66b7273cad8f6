//! `janua doctor`: what this machine offers, what is chosen by default, and why.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use janua_platform_host as host;
use janua_platform_host::sandbox::Limits;
use janua_platform_host::{Probe, Refused};

use crate::boot;
use crate::choice::{Choice, choose, gate_works, jail_works, no_keys};
use crate::exit;
use crate::options::{Gate, Jail};
use crate::run::cgroup::Group;

/// The lowest `vm.max_map_count` that large programs (a JVM, a browser engine) get along with.
const MAP_COUNT: u64 = 65530;

/// How many descriptors the sandbox wants: all its processes share one host table.
const DESCRIPTORS: u64 = 4096;

/// What carries the bare machine.
const QEMU: &str = "qemu-system-x86_64";

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

/// Prints the report. The exit code is 125 when no program could be run here.
pub fn print() -> ExitCode {
    let (text, usable) = report();
    let printed = exit::print(text.as_bytes());
    if usable { printed } else { ExitCode::from(exit::JANUA) }
}

/// The report, and whether programs can be run here.
fn report() -> (String, bool) {
    let sections = [
        ("system", vec![system(), memfd()]),
        ("gates: how a system call enters the kernel", gates()),
        ("walls: what a compromised kernel still meets", walls()),
        ("jail: what locks the kernel's memory while the program runs", jails()),
        ("the bare machine (janua boot)", vec![machine(), acceleration()]),
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
    let choice = choose(None, None);
    match &choice {
        Ok(Choice { gate, jail, unlocked }) => {
            text += &format!("  gate         {:<8} {}\n", gate.name(), why_gate(*gate, *jail));
            text += &format!("  jail         {:<8} {}\n", jail.name(), why_jail(*jail, unlocked.as_deref()));
        }
        Err(why) => {
            usable = false;
            text += &format!("  gate         (none)   {}\n", why.lines().next().unwrap_or_default());
        }
    }
    text += "  personality  linux    the others are --personality invasive (applications for OctoPOS), --personality l4v2 and --personality pal\n";
    if let Ok(choice) = choice {
        text += "\nwhat is isolated from what\n";
        text += &isolation(choice.jail);
    }
    (text, usable)
}

/// What a program on Janua reaches on this machine, in plain words.
fn isolation(jail: Jail) -> String {
    let hostile = match jail {
        Jail::Pkey => HOSTILE_IN_JAIL,
        Jail::Process => HOSTILE_IN_PROCESS,
        Jail::None => HOSTILE_WITHOUT,
    };
    format!("{PROGRAM}{hostile}{OTHERS}")
}

const PROGRAM: &str = concat!(
    "  a program from the host    It sees the host's files, read-only; what it writes stays in memory and is gone at the end,\n",
    "                             except below a writable --bind. It sees no other process, and no network but its own loopback.\n",
);
const HOSTILE_IN_JAIL: &str = concat!(
    "  a hostile program          The kernel it talks to is in its own process, behind the jail: locked memory. What broke that\n",
    "                             would meet the second and third wall above. This is a security boundary; docs/security.md says\n",
    "                             what was tried against it.\n",
);
const HOSTILE_IN_PROCESS: &str = concat!(
    "  a hostile program          The kernel it talks to is in another process: none of its memory is the program's. What broke that\n",
    "                             would meet the second and third wall above. This is a security boundary, younger than that of\n",
    "                             the other jail; docs/security.md says what was tried against it.\n",
);
const HOSTILE_WITHOUT: &str = concat!(
    "  a hostile program          Without a jail it can take over the kernel in its own process, and then make the few host calls\n",
    "                             that kernel may make. The second and third wall above are what keeps it from your files and\n",
    "                             processes. Do not rely on them alone: run what you would also run without Janua. A processor\n",
    "                             with protection keys (Intel servers since 2017, AMD since Zen 3) and Linux 6.12 bring the jail.\n",
);
const OTHERS: &str =
    "  one sandbox from another   Each `janua run` has a kernel of its own; they share only what you bind into both.\n";

fn why_jail(jail: Jail, unlocked: Option<&str>) -> String {
    match jail {
        Jail::Pkey => "protection keys lock the kernel's memory while the program runs; --jail none does without".into(),
        Jail::Process => format!(
            "the kernel is in a process of its own, as {}; --jail none is faster, for programs you trust",
            jail_works(Jail::Pkey).map_or_else(no_keys, |()| "the gate wants it".into())
        ),
        Jail::None => unlocked.unwrap_or("asked for").into(),
    }
}

fn why_gate(gate: Gate, jail: Jail) -> &'static str {
    match gate {
        Gate::Call if jail == Jail::Process => "the fastest; --gate ptrace is the other of this jail",
        Gate::Call => "the fastest; --gate sud and --gate seccomp are the others",
        Gate::Sud => "the gate `call` does not work here; --gate seccomp is the other",
        Gate::Ptrace => "with the jail `process`",
        Gate::Signal => "for programs on the system-call library",
        Gate::Seccomp => "neither the gate `call` nor Syscall User Dispatch works here",
    }
}

fn finding(probe: Probe, what: &str, good: &str, lacking: &str) -> Finding {
    match probe {
        Ok(()) => Finding { mark: Mark::Good, what: what.into(), note: good.into() },
        Err(why) => Finding { mark: Mark::Lacking, what: what.into(), note: format!("{} {lacking}", refused(why)) },
    }
}

/// A refusal in words.
pub fn refused(why: Refused) -> String {
    match why {
        Refused::Errno(code) => format!("the host says: {}.", io::Error::from_raw_os_error(code)),
        Refused::Signal(number) => format!("the host ended the attempt with signal {number}."),
        Refused::NoEffect => "the host accepts it, without effect.".into(),
    }
}

/// With a capital letter.
fn upper(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
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
            gate_works(Gate::Call),
            "call (rewritten call sites)",
            "",
            "It needs what `sud` needs, and a host with 32-bit calls (CONFIG_IA32_EMULATION).",
        ),
        finding(
            gate_works(Gate::Sud),
            "sud (Syscall User Dispatch)",
            "",
            "It needs Linux 5.11 or newer; a container's seccomp profile may forbid it.",
        ),
        finding(gate_works(Gate::Seccomp), "seccomp (trap)", "", "A container's seccomp profile may forbid it."),
    ]
}

fn walls() -> Vec<Finding> {
    let filter = finding(
        host::seccomp_trap(),
        "second: filter of calls",
        "only the host calls the kernel makes, and only from its text",
        "Without seccomp filters no program can be run.",
    );
    let landlock = finding(
        host::wall::landlock(),
        "third: Landlock",
        "no writing outside writable binds, no hand on other processes",
        "It needs Linux 5.19 and `landlock` in the host's list of security modules (lsm=). Without it a program that took \
         the kernel over could change what your account can change.",
    );
    const RIGHT: &str = "It needs CAP_SYS_ADMIN. (A user namespace would do without, but in it all files of others belong to the overflow user, nobody.)";
    let files =
        finding(host::namespaces::files(), "third: mount namespace", "nothing but writable binds can be changed at all", RIGHT);
    let processes = finding(
        host::namespaces::processes(),
        "third: pid namespace",
        "other processes have no numbers there; ipc, uts and cgroup namespaces go with it",
        RIGHT,
    );
    vec![
        Finding { mark: if filter.mark == Mark::Good { Mark::Good } else { Mark::Fatal }, ..filter },
        landlock,
        files,
        processes,
    ]
}

fn jails() -> Vec<Finding> {
    let kvm = Path::new("/dev/kvm");
    let opened = fs::OpenOptions::new().read(true).write(true).open(kvm).map(drop);
    let kvm = opened.map_err(|e| Refused::Errno(e.raw_os_error().unwrap_or(0)));
    let keys = host::protection_key();
    let stacks = match keys {
        Ok(()) => finding(
            host::protected_signal_stack(),
            "protected signal stacks",
            "the jail `pkey` needs them",
            "The jail `pkey` is not possible here: it needs Linux 6.12 or newer.",
        ),
        Err(_) => Finding {
            mark: Mark::Lacking,
            what: "protected signal stacks".into(),
            note: "not tried: they need protection keys".into(),
        },
    };
    vec![
        match keys {
            Ok(()) => finding(keys, "protection keys", "the jail `pkey` locks the kernel's memory by one", ""),
            Err(why) => Finding {
                mark: Mark::Lacking,
                what: "protection keys".into(),
                note: format!(
                    "{}. It matters: calls cost less behind them than under the jail `process`, which takes their place.",
                    upper(&no_keys(why))
                ),
            },
        },
        stacks,
        finding(
            host::thread_descriptor(),
            "thread descriptors",
            "the gate `call` needs them",
            "The gate `call` is not possible here: it needs a host with 32-bit calls (CONFIG_IA32_EMULATION).",
        ),
        finding(
            host::traced_calls(),
            "traced calls",
            "the jail `process` needs them, and its gate `ptrace`",
            "The jail `process` is not possible here: the host lets no process trace its children.",
        ),
        finding(
            host::traced_mailboxes(),
            "mailboxes of traced threads",
            "the gate `call` of the jail `process`",
            "The jail `process` has the gate `ptrace` alone here: the host gives traced threads no descriptors (CONFIG_IA32_EMULATION).",
        ),
        finding(
            kvm,
            "/dev/kvm",
            "what the gate `kvm` will use; that gate is not built yet",
            "It does not matter today: the gate `kvm` is not built yet.",
        ),
    ]
}

fn machine() -> Finding {
    let answer = std::process::Command::new(QEMU).arg("--version").output();
    match answer.ok().filter(|answer| answer.status.success()) {
        Some(answer) => {
            let text = String::from_utf8_lossy(&answer.stdout);
            let version = text.lines().next().unwrap_or_default().trim_start_matches("QEMU emulator version ");
            Finding {
                mark: Mark::Good,
                what: format!("QEMU {}", version.split(' ').next().unwrap_or_default()),
                note: String::new(),
            }
        }
        None => Finding {
            mark: Mark::Lacking,
            what: QEMU.into(),
            note: "`janua boot` needs it: apt-get install qemu-system-x86".into(),
        },
    }
}

fn acceleration() -> Finding {
    let what = "KVM for the kernel's gates".into();
    match boot::kvm::test() {
        Ok(()) => Finding { mark: Mark::Good, what, note: "it runs ring 0 natively: `janua boot` uses it".into() },
        Err(why) => {
            // Only the first line states why; the rest what to type, which `./janua boot` does by itself.
            let why = why.lines().next().unwrap_or_default().trim_end_matches('.');
            let note = format!("{}. Not needed: `janua boot` emulates the processor, slower.", upper(why));
            Finding { mark: Mark::Lacking, what, note }
        }
    }
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
        cgroup(),
        at_least(maps, MAP_COUNT, format!("vm.max_map_count {maps}"), format!("sysctl vm.max_map_count={MAP_COUNT}")),
        at_least(
            hard,
            DESCRIPTORS,
            format!("open files {soft}, at most {hard}"),
            format!("ulimit -Hn {DESCRIPTORS} (as root)"),
        ),
    ]
}

/// Whether a sandbox gets a cgroup of its own.
fn cgroup() -> Finding {
    const ASKED: Limits = Limits { memory: 256 << 20, threads: 64, cpus: 1, ..Limits::NONE };
    let what = "cgroup".into();
    match Group::make(&ASKED) {
        Ok(group) => {
            let place = group.path().parent().unwrap_or(group.path()).display();
            let holds: Vec<&str> = ["memory", "pids", "cpus"]
                .into_iter()
                .filter(|name| group.holds.iter().any(|held| name.starts_with(held)))
                .collect();
            let options = format!("--{}", holds.join(", --"));
            Finding {
                mark: Mark::Good,
                what,
                note: format!("{options}: the host keeps them too, by a group of the sandbox's own in {place}"),
            }
        }
        Err(why) => Finding {
            mark: Mark::Lacking,
            what,
            note: format!(
                "{}. The kernel's own accounts keep --memory, --pids and --cpus, as far as they go (docs/architecture.md).",
                upper(&why)
            ),
        },
    }
}

/// The soft and hard limit of open files.
fn descriptors() -> (u64, u64) {
    let limits = read("/proc/self/limits");
    let line = limits.lines().find_map(|l| l.strip_prefix("Max open files")).unwrap_or_default();
    let mut numbers = line.split_whitespace().map(|n| if n == "unlimited" { u64::MAX } else { n.parse().unwrap_or(0) });
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}
