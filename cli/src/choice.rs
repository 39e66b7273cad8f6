//! Which gate and jail a run gets: what was asked for, if the machine has it, otherwise the best it has.

use janua_abi::linux::{Errno, signal};
use janua_platform_host::boot::NO_PROCESSES;
use janua_platform_host::{self as host, Probe, Refused};

use crate::options::{Gate, Jail};

/// What ends a process whose signal frame the host could not write.
const SIGSEGV: i32 = signal::SIGSEGV as i32;

/// Whether a gate works on this machine, without a jail.
pub fn gate_works(gate: Gate) -> Probe {
    match gate {
        Gate::Call => host::call_gate(),
        Gate::Sud => host::syscall_user_dispatch(),
        Gate::Seccomp => host::seccomp_trap(),
        // Signals are everywhere; what keeps the program to them is not.
        Gate::Ptrace => host::traced_calls(),
        Gate::Signal => host::syscall_user_dispatch().and_then(|()| host::seccomp_trap()),
    }
}

/// Whether a jail works on this machine.
pub fn jail_works(jail: Jail) -> Probe {
    match jail {
        Jail::Pkey => host::call_under_pkey(),
        Jail::Process => host::traced_calls(),
        Jail::None => Ok(()),
    }
}

/// Whether a jail holds with a gate. A filter cannot tell the kernel's own calls from a guest's jump to one of its `syscall`
/// instructions; the selector can.
fn fits(gate: Gate, jail: Jail) -> bool {
    match jail {
        Jail::None => gate != Gate::Ptrace,
        Jail::Pkey => !matches!(gate, Gate::Seccomp | Gate::Ptrace),
        Jail::Process => matches!(gate, Gate::Call | Gate::Ptrace),
    }
}

/// The gate and the jail of a run.
pub struct Choice {
    pub gate: Gate,
    pub jail: Jail,
    /// Why there is no jail, where nobody asked for none.
    pub unlocked: Option<String>,
}

/// The gate and the jail of a run; `None` leaves the choice open. An error names the cause and the remedy.
pub fn choose(gate: Option<Gate>, jail: Option<Jail>) -> Result<Choice, String> {
    // Not by looking for gates and jails: guests' threads can be traced here as on a host.
    if inside_janua() {
        return Err("this is a program on Janua's kernel already, and Janua does not run inside itself yet\n       \
                    run the program as it is: it is in the sandbox"
            .to_owned());
    }
    if let (Some(gate), Some(jail)) = (gate, jail)
        && !fits(gate, jail)
    {
        if gate == Gate::Ptrace || jail == Jail::Process {
            return Err(format!(
                "the jail `{}` does not go with the gate `{}`\n       take --jail process with --gate call or --gate ptrace, or leave both out",
                jail.name(),
                gate.name()
            ));
        }
        return Err(format!(
            "the jail `{}` does not hold with the gate `{}`: a program could jump to the kernel's own host calls\n       take --gate call or \
             --gate sud, or --jail none",
            jail.name(),
            gate.name()
        ));
    }
    let mut unlocked = None;
    let jail = match jail {
        Some(jail) => match jail_works(jail) {
            Ok(()) => jail,
            Err(why) if is_starved(why) => return Err(NO_PROCESSES.to_owned()),
            Err(why) if jail == Jail::Process => {
                return Err(format!(
                    "the jail `process` does not work here: {}\n       `janua doctor` prints more, --jail none does without",
                    crate::doctor::refused(why).trim_end_matches('.')
                ));
            }
            Err(why) => {
                return Err(format!(
                    "the jail `pkey` does not work here: {}\n       `janua doctor` prints more, --jail none does without",
                    no_keys(why)
                ));
            }
        },
        // Nothing else goes with this gate.
        None if gate == Some(Gate::Ptrace) => {
            return choose(gate, Some(Jail::Process));
        }
        None => match best(gate) {
            Ok(jail) => jail,
            Err(NoJail { starved: true, .. }) => return Err(NO_PROCESSES.to_owned()),
            Err(NoJail { why, .. }) => {
                unlocked = Some(why);
                Jail::None
            }
        },
    };
    let gate = match gate {
        Some(gate) => gate,
        // The probe of the jail covered what the gate needs but the dispatch, which every machine with such a host has.
        None if jail == Jail::Pkey => Gate::Call,
        None if jail == Jail::Process => host::traced_mailboxes().map_or(Gate::Ptrace, |()| Gate::Call),
        None => any_gate()?,
    };
    if (gate, jail) == (Gate::Call, Jail::Process)
        && let Err(why) = host::traced_mailboxes()
    {
        return Err(format!(
            "the gate `call` does not work here under the jail `process`: {}\n       take --gate ptrace, or leave --gate out",
            crate::doctor::refused(why).trim_end_matches('.')
        ));
    }
    Ok(Choice { gate, jail, unlocked })
}

/// What an errno of the host's means where a sandbox could not be started.
pub fn host_error(errno: i32) -> String {
    match errno == i32::from(Errno::EAGAIN.0.get()) {
        true => NO_PROCESSES.to_owned(),
        false => std::io::Error::from_raw_os_error(errno).to_string(),
    }
}

/// Whether something was not even tried, because there may be no more processes.
fn is_starved(why: Refused) -> bool {
    why == Refused::Errno(Errno::EAGAIN.0.get().into())
}

/// Why there is no jail.
struct NoJail {
    why: String,
    /// One could not be tried.
    starved: bool,
}

/// The best jail that works here, with this gate if one was asked for: keys, as calls are fastest behind them, or else the kernel in a process of its
/// own.
fn best(gate: Option<Gate>) -> Result<Jail, NoJail> {
    let mut tried = Vec::new();
    for jail in [Jail::Pkey, Jail::Process].into_iter().filter(|jail| gate.is_none_or(|gate| fits(gate, *jail))) {
        match jail_works(jail) {
            Ok(()) => return Ok(jail),
            Err(why) => tried.push((jail, why)),
        }
    }
    let starved = tried.iter().any(|(_, why)| is_starved(*why));
    let with = gate.map_or(String::new(), |gate| format!(" with the gate `{}`", gate.name()));
    let why = |(jail, why): (Jail, Refused)| match jail {
        Jail::Pkey => no_keys(why),
        jail => format!("the jail `{}`: {}", jail.name(), crate::doctor::refused(why).trim_end_matches('.')),
    };
    let all: Vec<String> = tried.into_iter().map(why).collect();
    let why = if all.is_empty() { format!("no jail holds{with}") } else { format!("no jail works{with}: {}", all.join("; ")) };
    Err(NoJail { why, starved })
}

/// The best gate that works here. If there is none, why, and what would help.
fn any_gate() -> Result<Gate, String> {
    let mut starved = false;
    for gate in Gate::ALL {
        match gate_works(gate) {
            Ok(()) => return Ok(gate),
            Err(why) => starved |= is_starved(why),
        }
    }
    Err(match starved {
        true => NO_PROCESSES.to_owned(),
        false => "this host offers none of the gates janua has\n       `janua doctor` prints what it tried".to_owned(),
    })
}

/// Whether this command itself runs on Janua's kernel, which its version shows.
pub fn inside_janua() -> bool {
    // What follows the name of who has built a host's kernel.
    std::fs::read_to_string("/proc/version").is_ok_and(|text| text.contains(" SMP Janua "))
}

/// Why protection keys do not lock the kernel's memory here, in words.
pub fn no_keys(why: Refused) -> String {
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = flags.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let has = |flag: &str| flags.split_whitespace().any(|one| one == flag);
    if !has("pku") {
        "this processor has no protection keys".to_owned()
    } else if !has("ospke") {
        "Linux does not offer the processor's protection keys (started with `nopku`?)".to_owned()
    } else if matches!(why, Refused::Signal(SIGSEGV)) {
        "Linux is older than 6.12 and cannot deliver a signal on a locked stack".to_owned()
    } else {
        format!("the host refuses what it needs: {}", crate::doctor::refused(why).trim_end_matches('.'))
    }
}
