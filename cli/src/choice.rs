//! Which gate and jail a run gets: what was asked for, if the machine has it, otherwise the best it has.

use janua_platform_host::{self as host, Probe};

use crate::options::{Gate, Jail};

/// Whether a gate works on this machine, without a jail.
pub fn gate_works(gate: Gate) -> Probe {
    match gate {
        Gate::Call => host::call_gate(),
        Gate::Sud => host::syscall_user_dispatch(),
        Gate::Seccomp => host::seccomp_trap(),
        // Signals are everywhere; what keeps the program to them is not.
        Gate::Signal => host::syscall_user_dispatch().and_then(|()| host::seccomp_trap()),
    }
}

/// Whether a jail works on this machine.
pub fn jail_works(jail: Jail) -> Probe {
    match jail {
        Jail::Pkey => host::call_under_pkey(),
        Jail::None => Ok(()),
    }
}

/// Whether a jail holds with a gate. A filter cannot tell the kernel's own calls from a guest's jump to one of its `syscall`
/// instructions; the selector can.
fn fits(gate: Gate, jail: Jail) -> bool {
    jail == Jail::None || gate != Gate::Seccomp
}

/// The gate and the jail of a run; `None` leaves the choice open. An error names the cause and the remedy.
pub fn choose(gate: Option<Gate>, jail: Option<Jail>) -> Result<(Gate, Jail), String> {
    if let (Some(gate), Some(jail)) = (gate, jail)
        && !fits(gate, jail)
    {
        return Err(format!(
            "the jail `{}` does not hold with the gate `{}`: a program could jump to the kernel's own host calls\n       take --gate call or \
             --gate sud, or --jail none",
            jail.name(),
            gate.name()
        ));
    }
    let jail = match jail {
        Some(jail) => match jail_works(jail) {
            Ok(()) => jail,
            Err(why) => {
                return Err(format!(
                    "the jail `pkey` does not work here, this host cannot lock the kernel's memory by protection keys: {}\n       \
                     it needs a processor with protection keys and Linux 6.12 or newer; `janua doctor` tells more, --jail none does without",
                    crate::doctor::refused(why)
                ));
            }
        },
        None if gate.is_some_and(|gate| !fits(gate, Jail::Pkey)) => Jail::None,
        None => Jail::ALL.into_iter().find(|jail| jail_works(*jail).is_ok()).unwrap_or(Jail::None),
    };
    let gate = match gate {
        Some(gate) => gate,
        // The probe of the jail covered what the gate needs but the dispatch, which every machine with such a host has.
        None if jail == Jail::Pkey => Gate::Call,
        None => Gate::ALL.into_iter().find(|gate| gate_works(*gate).is_ok()).ok_or_else(|| {
            "this host offers none of the gates janua has\n       `janua doctor` tells what it tried".to_owned()
        })?,
    };
    Ok((gate, jail))
}
