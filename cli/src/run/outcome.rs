//! How a sandbox ended: for the reader of standard error, for a program (`--status-fd`), and as an exit code.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use janua_platform_host::sandbox::{self, Limits, Sandbox};
use janua_port::Account;

use super::cgroup::{Counted, Group};
use crate::allowance::{Allowed, shown};
use crate::exit;

/// The exit code of a sandbox whose time was over, as timeout(1) has it.
const TIME_IS_OVER: u8 = 124;

/// How it ended, and what of.
#[derive(Default)]
pub struct Outcome {
    code: u8,
    /// The wait status of the first program, if it came to its end.
    status: Option<u32>,
    /// Why janua failed.
    fault: Option<String>,
    met: Vec<Met>,
    /// Each account by name.
    accounts: Vec<(&'static str, Figures)>,
    /// Bytes of the memory in use that are no private memory of programs.
    firm: usize,
    /// The sandbox's cgroup by name, by what it held it, and what the host has counted for it.
    group: Option<(String, Vec<&'static str>, Counted)>,
    /// With JANUA_FAULT: how many calls of the host could have failed.
    faults: Option<u64>,
}

/// What an account shows at the end.
struct Figures {
    peak: usize,
    used: usize,
    limit: usize,
}

/// A limit that was met.
struct Met {
    name: &'static str,
    /// What happened, in words.
    text: String,
}

impl Outcome {
    /// The sandbox ended by itself.
    pub fn ended(code: u8) -> Outcome {
        Outcome { code, ..Outcome::default() }
    }

    /// The program cannot be run, and why.
    pub fn not_begun(code: u8, why: String) -> Outcome {
        Outcome { code, fault: Some(why), ..Outcome::default() }
    }

    /// Somebody had it ended.
    pub fn killed() -> Outcome {
        Outcome { code: super::limits::KILLED, ..Outcome::default() }
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        self.code
    }

    /// Janua failed.
    pub fn fault(why: impl Into<String>) -> Outcome {
        Outcome { code: exit::JANUA, fault: Some(why.into()), ..Outcome::default() }
    }

    /// The sandbox was ended since its time was over.
    pub fn timeout(time: Duration) -> Outcome {
        let text = format!("time ({}; the sandbox was ended)", time_text(time));
        Outcome { code: TIME_IS_OVER, met: vec![Met { name: "time", text }], ..Outcome::default() }
    }

    /// With the figures of the sandbox's accounts.
    pub fn of(mut self, sandbox: &Sandbox, limits: &Limits, allowed: &Allowed) -> Outcome {
        if self.met.is_empty() && self.fault.is_none() {
            self.status = sandbox.status();
        }
        let accounts = sandbox.accounts();
        let ended = accounts.killed();
        let mut words = Vec::new();
        // A default limit is reported only when it was nearly used up: programs try absurd sizes to see whether they are refused.
        let asked =
            |asked: bool, account: &Account| account.refused() > 0 && (asked || account.peak() > account.limit() / 4 * 3);
        if asked(allowed.memory.is_some(), &accounts.memory) {
            words.push(times(accounts.memory.refused(), "request", "refused"));
        }
        if ended > 0 {
            words.push(times(ended, "process", "killed"));
        }
        if accounts.is_exhausted() {
            words.push("the kernel's own memory is used up: the sandbox was ended".to_owned());
        }
        // What the kernel has at its start is not asked for.
        if words.is_empty()
            && self.code == exit::JANUA
            && sandbox.status().is_none()
            && accounts.memory.used() > accounts.memory.limit()
        {
            words.push("less than the kernel itself takes".to_owned());
        }
        if !words.is_empty() {
            self.met.push(Met { name: "memory", text: format!("memory ({}; {})", shown(limits.memory), words.join(", ")) });
        }
        if asked(allowed.disk.is_some(), &accounts.disk) {
            let refused = times(accounts.disk.refused(), "request", "refused");
            self.met.push(Met { name: "disk", text: format!("disk ({}; {refused})", shown(limits.disk)) });
        }
        if accounts.tasks.refused() > 0 {
            let refused = times(accounts.tasks.refused(), "request", "refused");
            self.met.push(Met { name: "pids", text: format!("pids ({}; {refused})", limits.threads) });
        }
        for (name, account) in [("memory", &accounts.memory), ("disk", &accounts.disk), ("pids", &accounts.tasks)] {
            let figures = Figures { peak: account.peak(), used: account.used(), limit: account.limit() };
            self.accounts.push((name, figures));
        }
        self.firm = accounts.firm();
        self.faults = sandbox.faults();
        self
    }

    /// With what the host has counted for the sandbox's cgroup, all of whose processes have ended.
    pub fn grouped(mut self, group: Option<&Group>, limits: &Limits) -> Outcome {
        let Some(group) = group else { return self };
        let counted = group.counted();
        if counted.killed > 0 {
            let killed = times(counted.killed as usize, "process", "killed by the host for want of memory");
            match self.met.iter_mut().find(|met| met.name == "memory") {
                Some(met) => met.text.insert_str(met.text.len() - 1, &format!(", {killed}")),
                None => {
                    self.met.insert(0, Met { name: "memory", text: format!("memory ({}; {killed})", shown(limits.memory)) })
                }
            }
        }
        self.group = Some((group.path().display().to_string(), group.holds.clone(), counted));
        self
    }

    /// Reports on standard error and to the status descriptor how it ended: the exit code.
    pub fn report(&self, allowed: &Allowed, wall: Duration) -> ExitCode {
        if let Some(why) = &self.fault {
            crate::exit::say(&format_args!("janua: {why}\n"));
        }
        if !self.met.is_empty() {
            let all: Vec<&str> = self.met.iter().map(|met| met.text.as_str()).collect();
            crate::exit::say(&format_args!(
                "janua: limit met: {}; `janua run --help` explains how to set it\n",
                all.join(", ")
            ));
        }
        if let Some(fd) = allowed.status_fd
            && let Err(errno) = sandbox::write_to(fd, self.json(wall).as_bytes())
        {
            let error = std::io::Error::from_raw_os_error(errno);
            crate::exit::say(&format_args!("janua: --status-fd {fd}: cannot write how it ended: {error}\n"));
        }
        ExitCode::from(self.code)
    }

    fn json(&self, wall: Duration) -> String {
        let signal = self.status.map(|status| status & 0x7f).filter(|signal| *signal != 0);
        let or_null = |text: Option<String>| text.unwrap_or_else(|| "null".to_owned());
        let quoted = |text: &str| format!("\"{}\"", escaped(text));
        let used = sandbox::used_by_children();
        let mut text = format!(
            "{{\"exit\":{},\"signal\":{},\"limit\":{},\"fault\":{},\"usage\":{{\"wall\":{:.6},\"user\":{:.6},\"system\":{:.6},\"memory\":{},\"resident\":{}}}",
            self.code,
            or_null(signal.map(|signal| signal.to_string())),
            or_null(self.met.first().map(|met| quoted(met.name))),
            or_null(self.fault.as_deref().map(quoted)),
            wall.as_secs_f64(),
            used.user.as_secs_f64(),
            used.system.as_secs_f64(),
            self.accounts.first().map_or(0, |(_, memory)| memory.peak),
            used.resident,
        );
        text.push_str(",\"limits\":{");
        for (at, (name, Figures { peak, used, limit })) in self.accounts.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let limit = if *limit == usize::MAX { "null".to_owned() } else { limit.to_string() };
            // A string takes it all.
            let _ = write!(text, "{comma}\"{name}\":{{\"peak\":{peak},\"used\":{used},\"limit\":{limit}");
            if *name == "memory" {
                let _ = write!(text, ",\"firm\":{}", self.firm);
            }
            text.push('}');
        }
        text.push_str("},\"cgroup\":");
        match &self.group {
            None => text.push_str("null"),
            Some((path, holds, counted)) => {
                let holds: Vec<String> = holds.iter().map(|name| quoted(name)).collect();
                let _ = write!(
                    text,
                    "{{\"path\":{},\"holds\":[{}],\"memory\":{},\"killed\":{},\"user\":{:.6},\"system\":{:.6}}}",
                    quoted(path),
                    holds.join(","),
                    or_null(counted.memory.map(|bytes| bytes.to_string())),
                    counted.killed,
                    counted.user.as_secs_f64(),
                    counted.system.as_secs_f64(),
                );
            }
        }
        if let Some(faults) = self.faults {
            let _ = write!(text, ",\"faults\":{faults}");
        }
        text.push_str("}\n");
        text
    }
}

fn times(count: usize, what: &str, how: &str) -> String {
    match (count, what) {
        (1, _) => format!("1 {what} {how}"),
        (_, "process") => format!("{count} processes {how}"),
        _ => format!("{count} {what}s {how}"),
    }
}

fn time_text(time: Duration) -> String {
    let millis = time.as_millis();
    if millis.is_multiple_of(1000) { format!("{}s", millis / 1000) } else { format!("{millis}ms") }
}

/// As JSON wants it between quotes.
pub fn escaped(text: &str) -> String {
    let mut all = String::new();
    for letter in text.chars() {
        match letter {
            '"' | '\\' => all.extend(['\\', letter]),
            '\n' => all.push_str("\\n"),
            letter if letter < ' ' => {
                let _ = write!(all, "\\u{:04x}", letter as u32);
            }
            letter => all.push(letter),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_one_line_of_json() {
        let mut outcome = Outcome::fault("a \"word\"\nand\ttwo");
        outcome.accounts.push(("memory", Figures { peak: 10, used: 9, limit: usize::MAX }));
        let json = outcome.json(Duration::from_millis(1500));
        assert!(json.starts_with("{\"exit\":125,\"signal\":null,\"limit\":null,\"fault\":\"a \\\"word\\\"\\nand\\u0009two\",\"usage\":{\"wall\":1.500000,"));
        assert!(
            json.ends_with("\"limits\":{\"memory\":{\"peak\":10,\"used\":9,\"limit\":null,\"firm\":0}},\"cgroup\":null}\n")
        );
        let killed = Outcome { code: 137, status: Some(9), ..Outcome::default() };
        assert!(killed.json(Duration::ZERO).starts_with("{\"exit\":137,\"signal\":9,"));
        let late = Outcome::timeout(Duration::from_secs(10)).json(Duration::ZERO);
        assert!(late.starts_with("{\"exit\":124,\"signal\":null,\"limit\":\"time\""));
    }
}
