//! The names that `--gate` takes, by the personality whose programs enter by them.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};

use crate::args::{Refusal, refuse};
use crate::options::Gate;

/// The name that leaves the choice to Janua.
const AUTO: &str = "auto";
/// Gates that are designed and not built: refused with other words than a name that means nothing.
const TO_COME: [&str; 3] = ["vdso", "stub", "kvm"];
/// The gate that programs open themselves, beside the one they are run with.
const BESIDE: &str = "ring";

/// Which gates each personality has.
const BY_PERSONALITY: [(&str, &[Gate]); 4] = [
    ("linux", &[Gate::Call, Gate::Sud, Gate::Seccomp, Gate::Ptrace]),
    ("invasive", &[Gate::Signal, Gate::Call, Gate::Sud, Gate::Seccomp]),
    ("l4v2", &[Gate::Ptrace]),
    ("pal", &[Gate::Call, Gate::Sud, Gate::Seccomp, Gate::Ptrace]),
];

/// The parser of `--gate`.
#[derive(Clone)]
pub struct Names;

impl TypedValueParser for Names {
    type Value = String;

    fn parse_ref(&self, command: &Command, _: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        let name = value.to_string_lossy();
        if name == AUTO || TO_COME.contains(&&*name) || BY_PERSONALITY.iter().any(|(_, gates)| by_name(gates, &name).is_some())
        {
            return Ok(name.into_owned());
        }
        if name == BESIDE {
            let why = "programs open the gate `ring` themselves (docs/gates.md), beside the one named here";
            return Err(Error::raw(ErrorKind::InvalidValue, format!("{why}: {}\n", list())).with_cmd(command));
        }
        Err(Error::raw(ErrorKind::InvalidValue, format!("there is no gate `{name}`; gates that are: {}\n", list()))
            .with_cmd(command))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let built = Gate::ALL.into_iter().chain([Gate::Ptrace, Gate::Signal]).map(Gate::name);
        let shown = [AUTO].into_iter().chain(built).map(PossibleValue::new);
        Some(Box::new(shown.chain(TO_COME.into_iter().map(|name| PossibleValue::new(name).hide(true)))))
    }
}

/// The gate of that name; none for `auto`.
pub fn named(name: &str) -> Result<Option<Gate>, Refusal> {
    if name == AUTO {
        return Ok(None);
    }
    match BY_PERSONALITY.iter().find_map(|(_, gates)| by_name(gates, name)) {
        Some(gate) => Ok(Some(gate)),
        None => {
            refuse(format!("the gate `{name}` is not built yet"), format!("gates that are: {}; or leave --gate out", list()))
        }
    }
}

fn by_name(gates: &[Gate], name: &str) -> Option<Gate> {
    gates.iter().copied().find(|gate| gate.name() == name)
}

/// The gates of each personality.
fn list() -> String {
    let line = |(personality, gates): &(&str, &[Gate])| {
        let names: Vec<&str> = gates.iter().map(|gate| gate.name()).collect();
        format!("{} ({personality})", names.join(", "))
    };
    BY_PERSONALITY.iter().map(line).collect::<Vec<_>>().join("; ")
}
