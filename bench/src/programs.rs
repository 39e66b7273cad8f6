//! Running a whole program natively or on Janua.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::Plan;
use crate::choice::run_arguments;
use crate::model::{Configuration, NATIVE};

/// How long one program may run, in seconds.
const PATIENCE: &str = "180";

/// One finished run.
pub struct Run {
    pub took: Duration,
    pub stdout: String,
    pub stderr: String,
}

/// A command that runs `words` under a configuration; `options` are more options of `janua run`.
pub fn command(plan: &Plan, configuration: &Configuration, options: &[&str], words: &[&str]) -> Command {
    if configuration.name == NATIVE {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        return command;
    }
    let mut command = Command::new(&plan.command);
    command.args(run_arguments(configuration)).args(options).arg("--").args(words);
    command
}

/// Runs `words` to the end. An error is a reason for people.
pub fn run(plan: &Plan, configuration: &Configuration, options: &[&str], words: &[&str]) -> Result<Run, String> {
    let inner = command(plan, configuration, options, words);
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", PATIENCE]).arg(inner.get_program()).args(inner.get_args()).stdin(Stdio::null());
    finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
}

/// As [`run`], directly and with its output thrown away: for programs too short to have others beside them.
pub fn run_bare(plan: &Plan, configuration: &Configuration, words: &[&str]) -> Result<Duration, String> {
    let mut command = command(plan, configuration, &[], words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    finish(&mut command).map(|run| run.took)
}

fn finish(command: &mut Command) -> Result<Run, String> {
    let begin = Instant::now();
    let Output { status, stdout, stderr } =
        command.output().map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))?;
    let took = begin.elapsed();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout).into_owned(), String::from_utf8_lossy(&stderr).into_owned());
    if status.success() {
        return Ok(Run { took, stdout, stderr });
    }
    let said = stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(format!("{status}: {}", said.trim()))
}

/// Where a program is, by PATH.
pub fn on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| Path::new(&dir).join(name).is_file())
}

/// The share of calls that went by a gate without a trap, from what `janua run --stats` printed.
pub fn fast_share(stats: &str) -> Option<f64> {
    const FAST: [&str; 2] = ["call", "vdso"];
    let (mut fast, mut all) = (0_u64, 0_u64);
    for line in stats.lines() {
        let Some((count, gate)) = line.split_once(" calls by the gate ") else { continue };
        let Ok(count) = count.trim().parse::<u64>() else { continue };
        all += count;
        // The gate's name is the line's next word.
        if gate.split_whitespace().next().is_some_and(|gate| FAST.contains(&gate)) {
            fast += count;
        }
    }
    (all > 0).then(|| fast as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::fast_share;

    #[test]
    fn shares() {
        let stats = "100.0 total\n75 calls by the gate call\n25 calls by the gate sud\n";
        assert_eq!(fast_share(stats), Some(0.75));
        assert_eq!(fast_share("143 calls by the gate sud\n"), Some(0.0));
        assert_eq!(fast_share("nothing"), None);
    }
}
