//! Ends that come from outside: signals to the supervisor, kills, stops; what a program leaves running.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::super::terminal::{Step, on_terminal};
use super::{Sandbox, clean, expect, text};
use crate::suite::{attacks, compare};
use crate::workspace;

/// A program that is up: its shell and its child have reported it in a file of a writable bind.
pub fn up(s: &Sandbox, script: &str) -> Result<crate::guard::Running, String> {
    up_as(s, &[], script)
}

/// The same, started by another command.
pub fn up_as(s: &Sandbox, by: &[&str], script: &str) -> Result<crate::guard::Running, String> {
    let bind = format!("{}:{}:rw", s.dir.display(), s.dir.display());
    let line = s.line(&["--bind", &bind], &["/bin/sh", "-c", &format!("cd {}; {script}", s.dir.display())]);
    let running = s.start(by.iter().map(ToString::to_string).chain(line).collect())?;
    let ready = s.dir.join("ready");
    let end = Instant::now() + Duration::from_secs(10);
    while !ready.exists() && Instant::now() < end {
        thread::sleep(Duration::from_millis(10));
    }
    if !ready.exists() {
        return Err(format!("the program did not come up: {:?}", running.wait()?));
    }
    thread::sleep(Duration::from_millis(100));
    Ok(running)
}

pub fn kill(pid: Option<&i32>, signal: Signal) -> Result<(), String> {
    let pid = pid.copied().and_then(Pid::from_raw).ok_or("no such host process")?;
    rustix::process::kill_process(pid, signal).map_err(|e| format!("kill: {e}"))
}

/// The supervisor hands SIGTERM on.
pub fn terminated(s: &Sandbox) -> Result<(), String> {
    let running = up(s, "trap 'echo caught; exit 9' TERM; sleep 100 & touch ready; wait; wait")?;
    kill(running.processes().first(), Signal::TERM)?;
    expect("a handler", &clean(running.wait()?)?, 9, &["caught"])?;
    let _ = fs::remove_file(s.dir.join("ready"));
    let running = up(s, "touch ready; exec sleep 100")?;
    kill(running.processes().first(), Signal::TERM)?;
    expect("no handler", &clean(running.wait()?)?, 143, &[])
}

/// A guest process killed from outside Janua stops all, with a message.
pub fn guest_killed(s: &Sandbox) -> Result<(), String> {
    for last in [true, false] {
        let _ = fs::remove_file(s.dir.join("ready"));
        let running = up(s, "sleep 100 & sleep 101 & touch ready; wait")?;
        let processes = running.processes();
        // The first is the supervisor; the others are the sandbox's.
        kill(if last { processes.last() } else { processes.get(1) }, Signal::KILL)?;
        let outcome = clean(running.wait()?)?;
        if outcome.code == 0 || text(&outcome).trim().is_empty() {
            return Err(format!("code {}, message {:?}", outcome.code, text(&outcome)));
        }
        expect("a killed host process", &outcome, 125, &["killed"])?;
    }
    Ok(())
}

/// Without its supervisor nothing goes on.
pub fn supervisor_killed(s: &Sandbox) -> Result<(), String> {
    let running = up(s, "sleep 100 & sleep 101 & touch ready; wait")?;
    kill(running.processes().first(), Signal::KILL)?;
    let outcome = clean(running.wait()?)?;
    if outcome.code == 137 { Ok(()) } else { Err(format!("code {}", outcome.code)) }
}

/// The same while processes are being born, and with a caller who has no pid namespace that ends with its first process.
pub fn supervisor_killed_early(s: &Sandbox) -> Result<(), String> {
    for _ in 0..8 {
        let _ = fs::remove_file(s.dir.join("ready"));
        let script = "for i in 1 2 3 4; do (while :; do (:); done) & done; touch ready; wait";
        let ordinary = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"];
        let running = up_as(s, if rustix::process::geteuid().is_root() { &ordinary } else { &[] }, script)?;
        kill(running.processes().first(), Signal::KILL)?;
        let outcome = clean(running.wait()?)?;
        if outcome.code != 137 {
            return Err(format!("code {}\n{}", outcome.code, text(&outcome)));
        }
    }
    Ok(())
}

/// The same while the sandbox is being made, at moments half a millisecond apart.
pub fn supervisor_killed_at_once(s: &Sandbox) -> Result<(), String> {
    for round in 0..60 {
        let running = s.start(s.line(&[], &["/bin/sh", "-c", "while :; do (:); done"]))?;
        thread::sleep(Duration::from_micros(500 * round));
        // None yet: it is waited for, so that every round shows something.
        let end = Instant::now() + Duration::from_secs(10);
        let supervisor = loop {
            match running.processes().first() {
                Some(pid) => break *pid,
                None if Instant::now() > end => return Err("the command did not start".into()),
                None => thread::sleep(Duration::from_micros(100)),
            }
        };
        kill(Some(&supervisor), Signal::KILL)?;
        let outcome = clean(running.wait()?).map_err(|why| format!("round {round}: {why}"))?;
        if outcome.code != 137 {
            return Err(format!("round {round}: code {}\n{}", outcome.code, text(&outcome)));
        }
    }
    Ok(())
}

/// Stops or continues all processes of the sandbox but its supervisor, and waits until they are.
pub fn stop_all(processes: &[i32], stop: bool) -> Result<(), String> {
    let end = Instant::now() + Duration::from_secs(20);
    for pid in &processes[1..] {
        kill(Some(pid), if stop { Signal::STOP } else { Signal::CONT })?;
        let is_stopped = || fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") T "));
        while is_stopped() != stop {
            if Instant::now() > end {
                return Err(format!("process {pid} does not stop or go on"));
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
    Ok(())
}

/// Waits of all kinds go on when the host has stopped the sandbox's processes and continued them, as a freezer does.
pub fn stopped_and_continued(s: &Sandbox) -> Result<(), String> {
    let script = "trap 'echo went on; kill $one $two; exit 5' TERM
        mkfifo fifo; sleep 100 & one=$!; timeout 100 cat <>fifo & two=$!; touch ready; wait; wait";
    let running = up(s, script)?;
    let processes = running.processes();
    for _ in 0..3 {
        stop_all(&processes, true)?;
        stop_all(&processes, false)?;
    }
    kill(processes.first(), Signal::TERM)?;
    expect("a sandbox that was stopped", &clean(running.wait()?)?, 5, &["went on"])
}

/// `janua run` as a background job of an interactive shell: a program that reads from the terminal stops, as natively, and goes on in the foreground.
pub fn background_job(s: &Sandbox) -> Result<(), String> {
    let janua = format!("J='{}'", s.line(&[], &["/bin/cat"]).join("' '"));
    let command = ["/usr/bin/env", &janua, "/bin/bash", "--norc", "--noprofile", "--noediting", "-i"].map(str::to_owned);
    let waits = "while ! jobs -l | grep -q 'Stopped (tty input)'; do sleep 0.05; done; echo $((40+2)) stopped\n";
    let steps = [
        Step::Until("bash-"),
        Step::Type("PS1='ok> '\n"),
        Step::Until("ok> "),
        Step::Type("eval \"$J\" '&'\n"),
        Step::Until("ok> "),
        Step::Type(waits),
        Step::Until("42 stopped"),
        // In the background it stops again.
        Step::Type("bg >/dev/null; sleep 0.2; "),
        Step::Type(waits),
        Step::Until("42 stopped"),
        Step::Type("fg\n"),
        Step::Until("cat"),
        Step::Type("hello\n"),
        Step::Until("hello\r\nhello"),
        Step::Type("\x04"),
        Step::Until("ok> "),
        Step::Type("exit 9\n"),
    ];
    let outcome = clean(on_terminal(command.to_vec(), &s.dir, &steps, false)?)?;
    if outcome.code == 9 { Ok(()) } else { Err(format!("exit code {}\n{}", outcome.code, text(&outcome))) }
}

/// A kernel that does not run does not take the signal: the second one ends the sandbox.
pub fn unanswered(s: &Sandbox) -> Result<(), String> {
    let running = up(s, "touch ready; exec sleep 100")?;
    let processes = running.processes();
    stop_all(&processes, true)?;
    let end = Instant::now() + Duration::from_secs(30);
    while running.processes().len() > 1 && Instant::now() < end {
        // Until the first has been passed on and the kernel's time is over.
        if kill(processes.first(), Signal::TERM).is_err() {
            break;
        }
        thread::sleep(Duration::from_millis(50));
    }
    expect("a second SIGTERM", &clean(running.wait()?)?, 125, &["not taken"])
}

/// What the program leaves running ends with the sandbox.
pub fn daemon_ends(s: &Sandbox) -> Result<(), String> {
    expect(
        "a daemon",
        &s.run(&[], &["/bin/sh", "-c", "setsid sleep 100 & (sleep 101 &) ; echo started; exit 4"])?,
        4,
        &["started"],
    )
}

/// Standard error takes nothing more, for good, and a program uses up the sandbox's memory: its end does not wait for the line about it, nor do others. The line holds
/// nothing for a terminal that the program has put into its name.
pub fn full_stderr(s: &Sandbox) -> Result<(), String> {
    let program = compare::place().join("bin/sandbox/full_stderr");
    attacks::build(&workspace::root().join("test/sandbox/full_stderr.c"), &program, &[])?;
    let line = s.line(&["--memory", "96M"], &[&program.display().to_string()]);
    // Who holds the other end reads nothing until the program has said its last line.
    let reader = "{ for i in $(seq 300); do grep -q nanosleep said && exit; sleep 0.1; done; echo too late >>said; }";
    let script = format!("cd {}; >said; '{}' 2>&1 >said | {reader}; cat said", s.dir.display(), line.join("' '"));
    let wanted = ["who has too much: killed by SIGKILL", "nanosleep(&most, 0) = -1 EINTR"];
    let ended = clean(s.start(vec!["/bin/sh".into(), "-c".into(), script])?.wait()?)?;
    expect("with standard error full", &ended, 0, &wanted)?;
    if text(&ended).contains("too late") {
        return Err("the program's end waited for somebody to read what is said of it".into());
    }
    let named = s.run(&["--memory", "96M"], &[&program.display().to_string(), "named"])?;
    expect("with a name", &named, 0, &wanted)?;
    match text(&named).lines().find(|line| line.contains("out of memory")) {
        Some(line) if !line.contains('\x1b') && line.contains("is killed") => Ok(()),
        other => Err(format!("the line about it: {other:?}")),
    }
}
