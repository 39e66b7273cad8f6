//! Where calls run: the options that `janua run` and `janua boot` share.

use janua_personality_outside::linux::{BootModules, BootPolicy, KINDS};

use super::{Refusal, refuse};

#[derive(clap::Args)]
pub struct Away {
    /// Run system calls on N threads of the kernel's own instead of on the program's threads, as far as --handover says; those that must be made at home
    /// stay there (see `janua support`). 0: all at home
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=64), hide_default_value = true)]
    syscall_cores: u8,

    /// What runs on them: on each one module for all calls, or one module for each kind (fs, mm, ipc, task, time, net), which go where there is less to do
    #[arg(long = "modules", value_name = "one|kind", default_value = "one", value_parser = ["one", "kind"], requires = "syscall_cores", hide_possible_values = true, hide_default_value = true)]
    division: String,

    /// Which call a module makes next: the oldest (fifo), one of the kind it made last (cohort), or the least nice process' (priority). Of all modules,
    /// or of some by name: fs=cohort,ipc=priority; cohort,net=fifo for all but one
    #[arg(long, value_name = "HOW", default_value = "fifo", requires = "syscall_cores", hide_default_value = true)]
    policy: String,

    /// When a call is handed over: when a syscall core looks for calls or another thread is ready to run meanwhile (adaptive), or always
    #[arg(long, value_name = "WHEN", default_value = "adaptive", value_parser = ["adaptive", "always"], requires = "syscall_cores", hide_default_value = true)]
    handover: String,

    /// Keep each syscall core on a processor of its own, from the last one on, where there is one more for the program
    #[arg(long, requires = "syscall_cores")]
    pin: bool,
}

impl Away {
    /// Whether any call may be made away from the thread that makes it.
    pub fn is_on(&self) -> bool {
        self.syscall_cores > 0
    }

    /// What is asked for.
    pub fn modules(&self) -> Result<BootModules, Refusal> {
        let mut modules = BootModules {
            cores: self.syscall_cores.into(),
            by_kind: self.division == "kind",
            policies: Vec::new(),
            always: self.handover == "always",
            pinned: self.pin,
        };
        modules.policies = policies(&self.policy, &modules.names())?;
        Ok(modules)
    }
}

fn policy(text: &str) -> Result<BootPolicy, Refusal> {
    Ok(match text {
        "fifo" => BootPolicy::Fifo,
        "cohort" => BootPolicy::Cohort,
        "priority" => BootPolicy::Priority,
        _ => return refuse(format!("--policy: there is no policy `{text}`"), "there are fifo, cohort and priority"),
    })
}

/// The policy of each of these modules, from `HOW`, or `MODULE=HOW` for one, with commas between them; the one without a module comes first.
fn policies(text: &str, names: &[String]) -> Result<Vec<BootPolicy>, Refusal> {
    let mut policies = vec![BootPolicy::default(); names.len()];
    let mut given = vec![false; names.len()];
    for (n, part) in text.split(',').enumerate() {
        let Some((module, how)) = part.split_once('=') else {
            if n > 0 {
                return refuse(
                    format!("--policy: `{part}` stands behind others and is for no module"),
                    "what all modules have comes first, then MODULE=HOW for some",
                );
            }
            policies.fill(policy(part)?);
            continue;
        };
        let how = policy(how)?;
        let Some(at) = names.iter().position(|name| name == module) else {
            let why = if KINDS.contains(&module) { ", or add --modules kind" } else { "" };
            let there = if names.len() == 1 { "the module is" } else { "the modules are" };
            return refuse(format!("--policy: there is no module `{module}`"), format!("{there} {}{why}", names.join(", ")));
        };
        if core::mem::replace(&mut given[at], true) {
            return refuse(format!("--policy: the module `{module}` has two policies"), "name it once");
        }
        policies[at] = how;
    }
    Ok(policies)
}

#[cfg(test)]
mod tests {
    use BootPolicy::{Cohort, Fifo, Priority};

    use super::*;

    fn names(by_kind: bool, cores: usize) -> Vec<String> {
        BootModules { cores, by_kind, ..BootModules::default() }.names()
    }

    #[test]
    fn modules_have_policies_of_their_own() {
        let kinds = names(true, 1);
        assert_eq!(policies("cohort", &kinds).ok(), Some(vec![Cohort; 6]));
        assert_eq!(policies("fs=cohort,ipc=priority", &kinds).ok(), Some(vec![Cohort, Fifo, Priority, Fifo, Fifo, Fifo]));
        assert_eq!(policies("cohort,net=fifo", &kinds).ok(), Some(vec![Cohort, Cohort, Cohort, Cohort, Cohort, Fifo]));
        assert_eq!(policies("all=priority", &names(false, 1)).ok(), Some(vec![Priority]));
        assert_eq!(policies("all1=priority", &names(false, 2)).ok(), Some(vec![Fifo, Priority]));
    }

    #[test]
    fn modules_have_the_names_that_the_kernel_gives_them() {
        use janua_kernel::module::Division;
        for cores in [1, 2, 64] {
            assert_eq!(names(false, cores), Division::One.names(cores));
            assert_eq!(names(true, cores), Division::Kind.names(cores));
        }
    }

    #[test]
    fn what_is_no_policy_is_refused_with_what_there_is() {
        let kinds = names(true, 2);
        let why = |text, names: &[String]| policies(text, names).expect_err(text).to_string();
        for (text, says) in [
            ("lifo", "fifo, cohort and priority"),
            ("fs=lifo", "fifo, cohort and priority"),
            ("", "``"),
            ("fs=", "``"),
            ("fs=fifo,", "behind others"),
            ("fs=fifo,cohort", "behind others"),
            ("disk=fifo", "fs, mm, ipc, task, time, net"),
            ("home=fifo", "fs, mm, ipc, task, time, net"),
            ("fs=fifo,fs=fifo", "two policies"),
        ] {
            assert!(why(text, &kinds).contains(says), "{}", why(text, &kinds));
        }
        assert!(why("fs=fifo", &names(false, 1)).contains("all, or add --modules kind"));
        assert!(why("all=fifo", &names(false, 3)).contains("all0, all1, all2"));
    }
}
