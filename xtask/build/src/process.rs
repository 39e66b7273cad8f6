//! Running other programs: quietly when they succeed, with all they printed when they fail.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use std::{io, thread};

use crate::workspace;

/// How often a step that goes on is reported.
const REPORTED: Duration = Duration::from_secs(30);

/// Runs `command` as the step `name`. Its output goes to `target/log/NAME.log` and is shown only when it fails, or with JANUA_VERBOSE at once.
pub fn step(name: &str, what: &str, command: &mut Command) -> Result<(), String> {
    let dir = workspace::target().join("log");
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let path = dir.join(format!("{name}.log"));
    let log = File::create(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let err = log.try_clone().map_err(|e| format!("{}: {e}", path.display()))?;
    let began = Instant::now();
    command.stdin(Stdio::null());
    if std::env::var_os("JANUA_VERBOSE").is_some_and(|value| value != "0") {
        command.stdout(output_to_stderr());
    } else {
        command.stdout(log).stderr(err);
    }
    let status = watched(what, command, began, &path);
    let text = || String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned();
    match status {
        Ok(status) if status.success() => {
            let seconds = began.elapsed().as_secs();
            if seconds >= 2 {
                eprintln!("janua: {what}: {seconds} s");
            }
            Ok(())
        }
        Ok(status) => Err(format!("{what} failed ({status})\n{}\n{what} failed; this text is in {}", text(), path.display())),
        Err(e) => Err(format!("{what}: {}: {e}", command.get_program().to_string_lossy())),
    }
}

/// Runs a command, and reports now and then that it goes on and what it has come to.
fn watched(what: &str, command: &mut Command, began: Instant, log: &Path) -> io::Result<ExitStatus> {
    let (over, ended) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while ended.recv_timeout(REPORTED) == Err(RecvTimeoutError::Timeout) {
                let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
                eprintln!("janua: {what}: {} s so far{}", began.elapsed().as_secs(), last_crate(&text));
            }
        });
        let status = command.status();
        drop(over);
        status
    })
}

/// The crate that cargo has come to.
fn last_crate(log: &str) -> String {
    let name = log.lines().rev().find_map(|line| line.trim_start().strip_prefix("Compiling ")?.split(' ').next());
    name.map(|name| format!(", at {name}")).unwrap_or_default()
}

/// Begins anew with all signals at their default when some are ignored, as under nohup(1), and with no open files but the standard
/// ones, because tests would inherit both.
pub fn start_clean() -> Result<(), String> {
    /// Signals that a runtime takes for itself and gives back in its children: SIGPIPE, and the C library's two.
    const OURS: u64 = 1 << 12 | 1 << 31 | 1 << 32;
    const TRIED: &str = "JANUA_STARTED_CLEAN";
    /// Closes what is open, the shell's own included, and goes on.
    const CLOSE: &str =
        r#"for f in /proc/self/fd/*; do n=${f##*/}; [ "$n" -le 2 ] || eval "exec $n>&-"; done; exec env --default-signal "$@""#;
    if std::env::var_os(TRIED).is_some() {
        return Ok(());
    }
    let status = fs::read_to_string("/proc/self/status").map_err(|e| format!("/proc/self/status: {e}"))?;
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|word| u64::from_str_radix(word.trim(), 16).ok()).unwrap_or(0);
    // One of them is the listing's own.
    let open = fs::read_dir("/proc/self/fd").map_err(|e| format!("/proc/self/fd: {e}"))?.count();
    if ignored & !OURS == 0 && open <= 4 {
        return Ok(());
    }
    let own = std::env::current_exe().map_err(|e| format!("/proc/self/exe: {e}"))?;
    let mut command = Command::new("bash");
    command.args(["-c", CLOSE, "bash"]).arg(own).args(std::env::args_os().skip(1)).env(TRIED, "1");
    Err(format!("bash: {}", command.exec()))
}

/// Standard output of `command` if it runs and succeeds.
pub fn output(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a program of this name is on `PATH`.
pub fn on_path(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

/// A handle that sends a child's standard output to our standard error.
pub fn output_to_stderr() -> Stdio {
    use std::os::fd::AsFd;
    std::io::stderr().as_fd().try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from)
}

#[cfg(test)]
mod tests {
    use super::last_crate;

    #[test]
    fn what_cargo_is_at() {
        assert_eq!(last_crate("   Compiling a v1.0.0\n   Compiling b-c v0.1.0 (/x)\nwarning: y\n"), ", at b-c");
        assert_eq!(last_crate(""), "");
    }
}
