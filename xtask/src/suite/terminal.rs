//! Programs on a terminal, driven by what they print: natively, then on Janua under each gate; every byte they write and
//! the exit code must be the same.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use super::compare::{self, Verdict};
use super::skips::Skips;
use crate::guard::{Outcome, Run, Running};
use crate::tally::Tally;

/// Seconds one of these may take.
const LIMIT: u64 = 120;

/// How long a program must be silent to be taken to wait for input.
const QUIET: Duration = Duration::from_millis(250);

/// What happens at the terminal.
pub enum Step {
    /// Waits until this text has come since the last step, then for silence.
    Until(&'static str),
    /// Types.
    Type(&'static str),
    /// Changes the window's size: rows, columns.
    Resize(u16, u16),
    /// Kills the first process of that name among those the session has started.
    Kill(&'static str),
}
use Step::{Kill, Resize, Type, Until};

struct Session {
    name: &'static str,
    command: &'static [&'static str],
    steps: &'static [Step],
}

const SESSIONS: &[Session] = &[
    Session {
        name: "terminal/size",
        command: &["/bin/sh", "-c", "stty size; tty -s && echo is a terminal; stty -a | head -n 1; echo out >/dev/tty"],
        steps: &[],
    },
    Session {
        name: "terminal/line",
        command: &["/bin/sh", "-c", "echo ready; while read l; do echo \"<$l>\"; done; echo end"],
        steps: &[Until("ready"), Type("one\n"), Until("<one>"), Type("x\x7ftwo\n"), Until("<two>"), Type("\x04")],
    },
    Session {
        name: "terminal/interrupt",
        command: &["/bin/sh", "-c", "echo ready; exec sleep 100"],
        steps: &[Until("ready"), Type("\x03")],
    },
    Session {
        name: "terminal/quit",
        command: &["/bin/sh", "-c", "ulimit -c 0; trap '' INT; echo ready; sleep 100; echo not reached"],
        // The second flushes what the first has not shown yet.
        steps: &[Until("ready"), Type("\x03"), Until("^C"), Type("\x1c")],
    },
    Session {
        name: "terminal/resize",
        command: &["/bin/bash", "-c", "trap 'stty size; exit 4' WINCH; stty size; echo ready; while :; do sleep 0.05; done"],
        steps: &[Until("ready"), Resize(40, 100)],
    },
    Session {
        name: "terminal/job_control",
        command: &["/bin/bash", "--norc", "--noprofile", "--noediting", "-i"],
        steps: &[
            Until("bash-"),
            Type("PS1='ok> '\n"),
            Until("ok> "),
            Type("sleep 100\n"),
            Until("sleep"),
            Type("\x1a"),
            Until("ok> "),
            Type("jobs\n"),
            Until("ok> "),
            Type("bg\n"),
            Until("ok> "),
            Type("fg\n"),
            Until("sleep"),
            Type("\x03"),
            Until("ok> "),
            Type("echo code $?\n"),
            Until("ok> "),
            Type("cat\n"),
            Until("cat"),
            Type("hello\n"),
            Until("hello\r\nhello"),
            Type("\x04"),
            Until("ok> "),
            Type("sleep 0.1 | (exit 3); echo $?\n"),
            Until("ok> "),
            Type("sleep 50 | cat\n"),
            Until("cat"),
            Type("\x03"),
            Until("ok> "),
            Type("exit 9\n"),
        ],
    },
    Session {
        name: "terminal/editing_shell",
        command: &["/bin/bash", "--norc", "--noprofile", "-i"],
        steps: &[
            Until("bash-"),
            Type("PS1='ok> '\r"),
            Until("ok> "),
            Type("echo fisrt\x02\x02\x02\x14\r"),
            Until("ok> "),
            Type("\x10\r"),
            Until("ok> "),
            Type("stty size\r"),
            Until("ok> "),
            Type("\x04"),
        ],
    },
    Session {
        name: "terminal/less",
        command: &["/bin/sh", "-c", "seq 1 500 | sed 's/.*/line &/' >text; less text; echo code $?"],
        steps: &[
            Until("line 23"),
            Type(" "),
            Until("line 46"),
            Type("/line 300\n"),
            Until("line 300"),
            Type("G"),
            Until("line 500"),
            Type("g"),
            Until("line 1"),
            Type("q"),
        ],
    },
    Session {
        name: "terminal/less_pipe",
        command: &["/bin/sh", "-c", "seq 1 500 | less; echo code $?"],
        steps: &[Until("23"), Type("j"), Until("24"), Type("q")],
    },
    Session {
        name: "terminal/vi",
        command: &["/bin/sh", "-c", "vi -u NONE -N file; cat file; echo code $?"],
        steps: &[Until("file"), Type("ihello world\x1b"), Until("world"), Type("yyp0cwbye\x1b"), Until("bye"), Type(":wq\r")],
    },
    Session {
        name: "terminal/python",
        command: &[
            "/usr/bin/python3",
            "-c",
            "import getpass, os; n = input('name? '); p = getpass.getpass('secret? '); print(n, p, os.get_terminal_size())",
        ],
        steps: &[Until("name? "), Type("janua\n"), Until("secret? "), Type("hidden\n")],
    },
];

/// Runs the sessions whose name holds the filter.
pub fn run(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    let skips = Skips::read()?;
    let chosen: Vec<&Session> = SESSIONS.iter().filter(|s| super::wanted(filter, s.name)).collect();
    compare::parallel(&chosen, |session| judge(session, &skips), |verdicts| verdicts.into_iter().for_each(|v| v.count(tally)));
    Ok(())
}

/// The names of all sessions, as the skip list writes them.
pub fn names() -> impl Iterator<Item = String> {
    SESSIONS.iter().map(|s| s.name.to_string())
}

fn judge(session: &Session, skips: &Skips) -> Vec<Verdict> {
    let name = |gate: &str| format!("{}/{gate}", session.name);
    let native = match play(session, None) {
        Ok(native) => native,
        Err(why) => {
            return vec![Verdict::Failed(name("native"), format!("the test itself fails without Janua: {why}"))];
        }
    };
    if super::native() {
        return vec![Verdict::Passed(name("native"))];
    }
    compare::gates()
        .iter()
        .map(|gate| {
            if let Some(reason) = skips.reason(session.name, gate) {
                return Verdict::Skipped(name(gate), reason);
            }
            let result = play(session, Some(gate)).and_then(|there| {
                if there.code != native.code {
                    Err(format!(
                        "exit code {}, native {}\n{}",
                        there.code,
                        native.code,
                        compare::difference(&native.output, &there.output)
                    ))
                } else if there.output != native.output {
                    Err(compare::difference(&native.output, &there.output))
                } else {
                    Ok(())
                }
            });
            match result {
                Ok(()) => Verdict::Passed(name(gate)),
                Err(why) => Verdict::Failed(name(gate), why),
            }
        })
        .collect()
}

/// Plays a session in an empty directory; the outcome's output is what came on the terminal.
fn play(session: &Session, gate: Option<&str>) -> Result<Outcome, String> {
    let dir = compare::place().join("run").join(session.name);
    compare::fresh(&dir)?;
    let command: Vec<String> = session.command.iter().map(ToString::to_string).collect();
    let command = gate.map_or(command.clone(), |gate| compare::under(gate, &command));
    let outcome = on_terminal(command, &dir, session.steps, false)?;
    let _ = compare::clear(&dir);
    if outcome.timeout {
        return Err(format!("did not end within {LIMIT} s\n{}", tail(&outcome.output)));
    }
    if !outcome.left.is_empty() {
        return Err(format!("left behind: {}", outcome.left.join(", ")));
    }
    Ok(outcome)
}

/// Plays steps on a terminal of `command`'s own. With `kept`, a terminal whose settings are others in the end is an error.
pub fn on_terminal(command: Vec<String>, dir: &Path, steps: &[Step], kept: bool) -> Result<Outcome, String> {
    let (master, slave) = open().map_err(|e| format!("no pseudo-terminal: {e}"))?;
    // Outlives the session, so that the terminal does.
    let terminal = slave.try_clone().map_err(|e| e.to_string())?;
    let settings = || rustix::termios::tcgetattr(&terminal).map(|t| format!("{t:?}")).map_err(|e| e.to_string());
    let before = settings()?;
    let mut typist = master.try_clone().map_err(|e| e.to_string())?;
    let screen = Arc::new((Mutex::new(Screen::default()), Condvar::new()));
    let reader = {
        let screen = Arc::clone(&screen);
        thread::spawn(move || watch(master, &screen))
    };
    let run = Run { command, dir, env: Vec::new(), limit: LIMIT, terminal: Some(slave) };
    let running = run.start(&dir.with_extension("report"))?;
    let mut trouble = None;
    let mut seen = 0;
    for step in steps {
        match step {
            Until(text) => match until(&screen, seen, text) {
                Some(length) => seen = length,
                None => {
                    trouble = Some(format!("waited in vain for {text:?}"));
                    break;
                }
            },
            Type(text) => typist.write_all(text.as_bytes()).map_err(|e| format!("typing: {e}"))?,
            Resize(rows, columns) => resize(&typist, *rows, *columns).map_err(|e| format!("resizing: {e}"))?,
            Kill(name) => kill(&running, name)?,
        }
    }
    if trouble.is_some() {
        // Whatever it waits for, let it end.
        let _ = typist.write_all(b"\x03\x04\x1c");
    }
    let mut outcome = running.wait()?;
    let after = settings()?;
    drop(terminal);
    // The program and its guard are gone; the last bytes are on their way.
    let _ = reader.join();
    let (lock, _) = &*screen;
    outcome.output = lock.lock().unwrap_or_else(|e| e.into_inner()).bytes.clone();
    match trouble {
        Some(trouble) => Err(format!("{trouble}; on the terminal:\n{}", tail(&outcome.output))),
        None if kept && before != after => Err(format!("the terminal's settings are not what they were:\n{before}\n{after}")),
        None => Ok(outcome),
    }
}

#[derive(Default)]
struct Screen {
    bytes: Vec<u8>,
    ended: bool,
}

fn watch(mut master: File, screen: &(Mutex<Screen>, Condvar)) {
    let mut buffer = [0; 4096];
    loop {
        // The error is EIO: the other side is closed.
        let count = master.read(&mut buffer).unwrap_or(0);
        let mut state = screen.0.lock().unwrap_or_else(|e| e.into_inner());
        state.bytes.extend_from_slice(&buffer[..count]);
        state.ended = count == 0;
        screen.1.notify_all();
        if state.ended {
            return;
        }
    }
}

/// Waits for `text` after the first `from` bytes, then for silence; the length of all output then.
fn until(screen: &(Mutex<Screen>, Condvar), from: usize, text: &str) -> Option<usize> {
    let end = Instant::now() + Duration::from_secs(LIMIT / 3);
    let mut state = screen.0.lock().unwrap_or_else(|e| e.into_inner());
    loop {
        let found = state.bytes[from..].windows(text.len()).any(|w| w == text.as_bytes());
        let patience = if found { QUIET } else { end.saturating_duration_since(Instant::now()) };
        if state.ended || patience.is_zero() {
            return found.then_some(state.bytes.len());
        }
        let (next, time) = screen.1.wait_timeout(state, patience).unwrap_or_else(|e| e.into_inner());
        state = next;
        if time.timed_out() && found {
            return Some(state.bytes.len());
        }
    }
}

fn kill(running: &Running, name: &str) -> Result<(), String> {
    let named = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim_end() == name);
    let pid = running.processes().into_iter().find(named).and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| format!("there is no process {name}"))?;
    rustix::process::kill_process(pid, Signal::KILL).map_err(|e| format!("killing {name}: {e}"))
}

fn open() -> rustix::io::Result<(File, OwnedFd)> {
    let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    let name = rustix::pty::ptsname(&master, Vec::new())?;
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
    let slave = rustix::fs::open(name.as_c_str(), flags, rustix::fs::Mode::empty())?;
    let master = File::from(master);
    resize(&master, 24, 80)?;
    Ok((master, slave))
}

fn resize(terminal: &File, rows: u16, columns: u16) -> rustix::io::Result<()> {
    rustix::termios::tcsetwinsize(terminal, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })
}

/// The end of what a terminal showed, made readable.
fn tail(output: &[u8]) -> String {
    output[output.len().saturating_sub(2000)..].escape_ascii().to_string()
}
