//! The serial console as a terminal: busybox sessions, natively and on the bare machine; every byte on the terminal and the exit
//! code must be the same. And what `janua boot` leaves behind on a terminal.

use std::path::Path;

use super::compare;
use super::terminal::{Step, on_terminal};
use crate::build;
use crate::guard::Outcome;
use crate::tally::Tally;

use Step::{Kill, Resize, Type, Until};

struct Session {
    name: &'static str,
    /// For /bin/busybox.
    command: &'static [&'static str],
    steps: &'static [Step],
}

/// A shell with a prompt that is the same everywhere.
const SHELL: &[&str] = &["sh", "-c", "PS1='ok> ' HISTFILE= exec busybox sh -i"];

const SESSIONS: &[Session] = &[
    Session {
        name: "boot/terminal/size",
        command: &["sh", "-c", "busybox stty size; test -t 0 && test -t 1 && test -t 2 && echo a terminal; echo x >/dev/tty"],
        steps: &[],
    },
    Session {
        name: "boot/terminal/line",
        command: &["sh", "-c", "echo ready; while read l; do echo \"<$l>\"; done; echo end"],
        steps: &[Until("ready"), Type("one\n"), Until("<one>"), Type("x\x7ftwo\n"), Until("<two>"), Type("\x04")],
    },
    Session {
        name: "boot/terminal/interrupt",
        command: &["sh", "-c", "echo ready; exec busybox sleep 100"],
        steps: &[Until("ready"), Type("\x03")],
    },
    Session {
        name: "boot/terminal/interrupt_loop",
        command: &["sh", "-c", "echo ready; while :; do :; done"],
        steps: &[Until("ready"), Type("\x03")],
    },
    Session {
        name: "boot/terminal/resize",
        command: &["sh", "-c", "trap 'busybox stty size; exit 4' WINCH; echo ready; while :; do busybox sleep 0.05; done"],
        steps: &[Until("ready"), Resize(40, 255)],
    },
    Session {
        name: "boot/terminal/raw",
        command: &[
            "sh",
            "-c",
            "busybox stty raw -echo; echo ready; busybox dd bs=1 count=5 2>/dev/null | busybox od -c; busybox stty sane",
        ],
        steps: &[Until("ready"), Type("\x03\x04\r\u{ff}")],
    },
    Session {
        name: "boot/terminal/job_control",
        command: SHELL,
        steps: &[
            Until("ok> "),
            Type("busybox sleep 100\r"),
            Until("sleep"),
            Type("\x1a"),
            Until("ok> "),
            Type("jobs\r"),
            Until("ok> "),
            Type("bg\r"),
            Until("ok> "),
            Type("fg\r"),
            Until("sleep"),
            Type("\x03"),
            Until("ok> "),
            Type("echo code $?\r"),
            Until("ok> "),
            Type("busybox cat\r"),
            Until("cat"),
            Type("hello\r"),
            Until("hello\r\nhello"),
            Type("\x04"),
            Until("ok> "),
            Type("busybox sleep 50 | busybox cat\r"),
            Until("cat"),
            Type("\x03"),
            Until("ok> "),
            Type("exit 9\r"),
        ],
    },
];

/// Runs the sessions whose name holds the filter.
pub fn run(filter: Option<&str>, image: &Path, dir: &Path, tally: &mut Tally) -> Result<(), String> {
    for session in SESSIONS.iter().filter(|session| super::wanted(filter, session.name)) {
        tally.check(session.name, compare_session(session, image, dir));
    }
    for (name, command, steps, code) in [
        ("boot/terminal/escape", "cat", &[Type("x\r"), Until("x\r\nx"), Type("\x1dq")][..], 130),
        ("boot/terminal/killed", "cat", &[Type("x\r"), Until("x\r\nx"), Kill("janua")], 128 + 9),
    ] {
        if super::wanted(filter, name) {
            tally.check(name, boot(&[command], steps, image, dir).and_then(|outcome| expect(&outcome, code)));
        }
    }
    Ok(())
}

fn compare_session(session: &Session, image: &Path, dir: &Path) -> Result<(), String> {
    let command = |words: &[&str]| ["/bin/busybox"].iter().chain(words).map(ToString::to_string).collect();
    let native = on_terminal(command(session.command), dir, session.steps, false)
        .map_err(|why| format!("the test itself fails without Janua: {why}"))?;
    let words: Vec<&str> = ["/bin/busybox"].iter().chain(session.command).copied().collect();
    let there = boot(&words, session.steps, image, dir)?;
    if there.output != native.output {
        return Err(compare::difference(&native.output, &there.output));
    }
    expect(&there, native.code)
}

fn expect(outcome: &Outcome, code: i32) -> Result<(), String> {
    match outcome {
        Outcome { timeout: true, .. } => Err("did not end".into()),
        Outcome { left, .. } if !left.is_empty() => Err(format!("left behind: {}", left.join(", "))),
        Outcome { code: there, .. } if *there != code => Err(format!("exit code {there} instead of {code}")),
        _ => Ok(()),
    }
}

fn boot(command: &[&str], steps: &[Step], image: &Path, dir: &Path) -> Result<Outcome, String> {
    // The runner's environment has no room for it: `env` hands it on.
    let variable = format!("JANUA_IMAGE_X86_64={}", image.display());
    let mut words = vec!["env".into(), variable, build::janua().display().to_string(), "boot".into(), "--".into()];
    words.extend(command.iter().map(ToString::to_string));
    on_terminal(words, dir, steps, true)
}
