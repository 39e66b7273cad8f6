//! Which gates and jails are measured: those that run a program here.

use std::process::{Command, Stdio};

use crate::model::{Configuration, NATIVE, Refused};
use crate::{Failure, Plan, emulated};

/// What works and what does not.
pub struct Choice {
    /// Native first.
    pub configurations: Vec<Configuration>,
    pub refused: Vec<Refused>,
}

/// The arguments that make janua run a program under a configuration.
pub fn run_arguments(configuration: &Configuration) -> Vec<&str> {
    let mut arguments = vec!["run"];
    for (option, value) in [("--gate", &configuration.gate), ("--jail", &configuration.jail)] {
        arguments.extend(value.iter().flat_map(|value| [option, value.as_str()]));
    }
    arguments
}

/// The arguments that make janua start itself again under a configuration, on so many processors where they are emulated: what
/// follows is for the program inside.
pub fn start_arguments(plan: &Plan, configuration: &Configuration, processors: u8) -> Vec<String> {
    match &plan.emulated {
        Some(tree) if configuration.name == emulated::NAME => tree.boot_arguments(processors),
        _ if configuration.name == NATIVE => Vec::new(),
        _ => {
            let command = plan.command.to_string_lossy().into_owned();
            run_arguments(configuration).into_iter().map(String::from).chain(["--".into(), command]).collect()
        }
    }
}

/// Tries every gate with every jail on a program that does nothing.
pub fn discover(plan: &Plan) -> Result<Choice, Failure> {
    let mut choice = Choice { configurations: vec![Configuration::native()], refused: Vec::new() };
    for gate in &plan.gates {
        for jail in &plan.jails {
            let configuration = Configuration::janua(gate, jail);
            match refusal(plan, &configuration) {
                None => choice.configurations.push(configuration),
                Some(reason) => choice.refused.push(Refused { name: configuration.name, reason }),
            }
        }
    }
    if plan.emulated.is_some() {
        let configuration = Configuration::emulated();
        match refusal(plan, &configuration) {
            None => choice.configurations.push(configuration),
            Some(reason) => return Failure::new(format!("the bare machine cannot be measured: {reason}")),
        }
    }
    if plan.named && choice.configurations.len() == 1 {
        let reasons: Vec<String> = choice.refused.iter().map(|r| format!("{}: {}", r.name, r.reason)).collect();
        return Failure::new(format!(
            "no gate and jail that were asked for work here\n       {}\n       `janua doctor` prints what does",
            reasons.join("\n       ")
        ));
    }
    Ok(choice)
}

/// Why a configuration cannot be measured.
fn refusal(plan: &Plan, configuration: &Configuration) -> Option<String> {
    let mut command = Command::new(&plan.command);
    command.args(start_arguments(plan, configuration, 1)).args(["probe", "--list"]);
    let output = match command.stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) => return Some(format!("{}: {error}", plan.command.display())),
    };
    if output.status.success() && !output.stdout.is_empty() {
        return None;
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let line = errors.lines().map(str::trim).find(|line| !line.is_empty());
    Some(line.map_or_else(|| format!("a program ended with {}", output.status), |l| l.trim_start_matches("janua: ").into()))
}
