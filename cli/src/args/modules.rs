//! Where calls run: the options that `janua run` and `janua boot` share.

use janua_personality_outside::linux::{BootModules, BootPolicy};

#[derive(clap::Args)]
pub struct Away {
    /// Run system calls on N threads of the kernel's own instead of on the program's threads, as far as --handover says; those that must be made at home
    /// stay there (see `janua support`). 0: all at home
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=64), hide_default_value = true)]
    syscall_cores: u8,

    /// What runs on them: on each one module for all calls, or one module for each kind (fs, mm, ipc, task, time, net), which go where there is less to do
    #[arg(long = "modules", value_name = "one|kind", default_value = "one", value_parser = ["one", "kind"], requires = "syscall_cores", hide_possible_values = true, hide_default_value = true)]
    division: String,

    /// Which call a module makes next: the oldest (fifo), one of the kind it made last (cohort), or the least nice process' (priority)
    #[arg(long, value_name = "HOW", default_value = "fifo", value_parser = ["fifo", "cohort", "priority"], requires = "syscall_cores", hide_default_value = true)]
    policy: String,

    /// When a call is handed over: when a syscall core looks for calls or another thread is ready to run meanwhile (adaptive), or always
    #[arg(long, value_name = "WHEN", default_value = "adaptive", value_parser = ["adaptive", "always"], requires = "syscall_cores", hide_default_value = true)]
    handover: String,
}

impl Away {
    /// Whether any call may be made away from the thread that makes it.
    pub fn is_on(&self) -> bool {
        self.syscall_cores > 0
    }

    /// What is asked for.
    pub fn modules(&self) -> BootModules {
        BootModules {
            cores: self.syscall_cores.into(),
            by_kind: self.division == "kind",
            policy: match self.policy.as_str() {
                "cohort" => BootPolicy::Cohort,
                "priority" => BootPolicy::Priority,
                _ => BootPolicy::Fifo,
            },
            always: self.handover == "always",
        }
    }
}
