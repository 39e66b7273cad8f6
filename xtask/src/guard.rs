//! Running a tested program so that nothing of it outlives the test.
//!
//! The runner starts itself again as `xtask guard`: a small process that adopts every orphan of its descendants
//! (child subreaper), so that it can tell what the program left behind and, at the time limit, kill the whole tree.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};

/// How long processes that outlive the program may take to end by themselves: on a busy machine one that has been killed waits for a processor to
/// end on. It costs nothing where none stays.
const GRACE: Duration = Duration::from_secs(10);

/// The most output kept of one program, in bytes.
const OUTPUT_LIMIT: u64 = 16 << 20;

/// What to run, and how.
pub struct Run<'a> {
    pub command: Vec<String>,
    pub dir: &'a Path,
    /// Added to the small environment every test gets.
    pub env: Vec<(String, String)>,
    /// Seconds until the whole tree is killed.
    pub limit: u64,
    /// Where the program's standard streams are, when it runs on a terminal.
    pub terminal: Option<OwnedFd>,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Standard output and standard error in the order they were written. Empty for a run on a terminal.
    pub output: Vec<u8>,
    /// As a shell reports it: 128+n for signal n.
    pub code: i32,
    /// The time limit struck.
    pub timeout: bool,
    /// Processes that were still there some time after the program had ended.
    pub left: Vec<String>,
}

/// A run that has begun.
pub struct Running {
    guard: std::process::Child,
    reader: Option<thread::JoinHandle<io::Result<Vec<u8>>>>,
    report: PathBuf,
}

impl Run<'_> {
    /// Starts the program under a guard; `report` is a file the guard may write.
    pub fn start(self, report: &Path) -> Result<Running, String> {
        let what = |e: io::Error| format!("cannot run {}: {e}", self.command.join(" "));
        let mut command = Command::new(std::env::current_exe().map_err(what)?);
        command
            .arg("guard")
            .arg(self.limit.to_string())
            .arg(report)
            .arg(if self.terminal.is_some() { "terminal" } else { "pipe" })
            .args(&self.command)
            .current_dir(self.dir)
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin")
            .env("HOME", self.dir)
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm")
            .env("TZ", "UTC")
            .env(crate::random::VARIABLE, crate::suite::seed().to_string())
            .envs(crate::suite::long().then_some((crate::random::LONG, "1")))
            .envs(self.env.iter().map(|(k, v)| (k, v)));
        let _ = fs::remove_file(report);
        let reader = match self.terminal {
            Some(fd) => {
                command.stdin(fd.try_clone().map_err(what)?).stdout(fd.try_clone().map_err(what)?).stderr(fd);
                None
            }
            None => {
                let (read, write) = io::pipe().map_err(what)?;
                command.stdin(Stdio::null()).stdout(write.try_clone().map_err(what)?).stderr(write);
                Some(thread::spawn(move || {
                    let mut output = Vec::new();
                    let mut read = read;
                    (&mut read).take(OUTPUT_LIMIT).read_to_end(&mut output)?;
                    // Beyond the limit the program still must not block.
                    io::copy(&mut read, &mut io::sink())?;
                    Ok(output)
                }))
            }
        };
        let guard = command.spawn().map_err(what)?;
        Ok(Running { guard, reader, report: report.to_path_buf() })
    }

    /// Runs the program to its end.
    pub fn outcome(self, report: &Path) -> Result<Outcome, String> {
        self.start(report)?.wait()
    }
}

impl Running {
    /// The host process numbers of all that was started, the guard's first child first.
    pub fn processes(&self) -> Vec<i32> {
        let table = table();
        let mut found = vec![self.guard.id() as i32];
        let mut next = 0;
        while let Some(parent) = found.get(next).copied() {
            let mut children: Vec<i32> = table.iter().filter(|(_, p)| p.parent == parent).map(|(pid, _)| *pid).collect();
            found.append(&mut children);
            next += 1;
        }
        found.split_off(1)
    }

    /// Waits for the end and what the guard has to report.
    pub fn wait(mut self) -> Result<Outcome, String> {
        self.guard.wait().map_err(|e| format!("guard: {e}"))?;
        let output = match self.reader.take() {
            Some(reader) => reader
                .join()
                .map_err(|_| "the output reader panicked".to_string())?
                .map_err(|e| format!("reading the output: {e}"))?,
            None => Vec::new(),
        };
        let report = fs::read_to_string(&self.report)
            .map_err(|e| format!("the guard left no report ({}): {e}", self.report.display()))?;
        let _ = fs::remove_file(&self.report);
        let mut outcome = Outcome { output, code: -1, timeout: false, left: Vec::new() };
        for line in report.lines() {
            match line.split_once(' ') {
                Some(("code", code)) => outcome.code = code.parse().unwrap_or(-1),
                Some(("left", who)) => outcome.left.push(who.to_string()),
                _ if line == "timeout" => outcome.timeout = true,
                _ => return Err(line.to_string()),
            }
        }
        Ok(outcome)
    }
}

/// `xtask guard SECONDS REPORT pipe|terminal PROGRAM ARGS...`: the guard itself.
pub fn command(args: &[String]) -> Result<ExitCode, String> {
    let [seconds, report, streams, program @ ..] = args else {
        return Err("usage: xtask guard SECONDS REPORT pipe|terminal PROGRAM ARGS... (used by the tests)".into());
    };
    let seconds = seconds.parse().map_err(|e| format!("{seconds}: {e}"))?;
    let lines = match watch(Duration::from_secs(seconds), streams == "terminal", program) {
        Ok(lines) => lines,
        Err(e) => format!("cannot run {}: {e}\n", program.join(" ")),
    };
    fs::write(report, lines).map_err(|e| format!("{report}: {e}"))?;
    Ok(ExitCode::SUCCESS)
}

fn watch(limit: Duration, terminal: bool, program: &[String]) -> io::Result<String> {
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own))?;
    let mut command = Command::new("setsid");
    if terminal {
        command.arg("--ctty");
    }
    let mut child = command.arg("--wait").args(program).spawn()?;
    drop_streams(terminal)?;
    let end = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if Instant::now() >= end {
            break None;
        }
        thread::sleep(Duration::from_millis(2));
    };
    let mut report = String::new();
    match status {
        Some(status) => {
            let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
            report += &format!("code {code}\n");
            for (pid, process) in left(own) {
                report += &format!("left {pid} {}\n", process.name);
            }
        }
        None => report += "timeout\n",
    }
    // Killing one may hand its children to us: again until there is none. Ours is not yet reaped after a timeout.
    loop {
        let alive = children(own);
        if alive.is_empty() {
            break;
        }
        for pid in alive.keys().filter_map(|pid| Pid::from_raw(*pid)) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(report)
}

/// What is still there when [`GRACE`] is over.
fn left(own: Pid) -> BTreeMap<i32, Process> {
    // A process whose parent ends while /proc is read belongs to nobody for that look.
    const LOOKS: u32 = 3;
    let patience = Instant::now() + GRACE;
    let mut empty = 0;
    loop {
        let alive = children(own);
        empty = if alive.is_empty() { empty + 1 } else { 0 };
        if empty == LOOKS || !alive.is_empty() && Instant::now() >= patience {
            return alive;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// The guard keeps no end of the program's pipe open: its reader must see the end.
fn drop_streams(terminal: bool) -> io::Result<()> {
    if !terminal {
        let null = File::options().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
        rustix::stdio::dup2_stderr(&null)?;
    }
    Ok(())
}

struct Process {
    parent: i32,
    name: String,
    zombie: bool,
}

/// The living processes of this machine.
fn table() -> BTreeMap<i32, Process> {
    let mut table = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read(entry.path().join("stat")) else {
            continue;
        };
        let stat = String::from_utf8_lossy(&stat);
        // The name is in parentheses and may hold anything.
        let Some((head, tail)) = stat.rsplit_once(") ") else {
            continue;
        };
        let mut fields = tail.split(' ');
        let state = fields.next();
        let Some(parent) = fields.next().and_then(|p| p.parse().ok()) else {
            continue;
        };
        // A process whose first thread has ended is a zombie while others go on: num_threads, the fields before it read already.
        let threads: usize = fields.nth(15).and_then(|count| count.parse().ok()).unwrap_or(1);
        table.insert(
            pid,
            Process {
                parent,
                name: head.split_once('(').map_or(head, |(_, name)| name).to_string(),
                zombie: state == Some("Z") && threads <= 1,
            },
        );
    }
    table
}

/// The living children of `own`; the dead ones are reaped.
fn children(own: Pid) -> BTreeMap<i32, Process> {
    let mut mine = table();
    mine.retain(|_, p| p.parent == own.as_raw_nonzero().get());
    for pid in mine.iter().filter(|(_, p)| p.zombie).filter_map(|(pid, _)| Pid::from_raw(*pid)) {
        let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
    }
    mine.retain(|_, p| !p.zombie);
    mine
}
