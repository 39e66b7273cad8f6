//! A supervisor that goes on in the background, and the process beside it that keeps the log: a thread of the supervisor's could not be had
//! beside a number space for its sandbox, and a child of it would be taken for one of the sandbox's.

use std::fs::File;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use janua_platform_host::{channel, found};
use janua_port::Answer;
use rustix::fd::{AsFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};

use super::log;
use super::server::Server;
use crate::exit;

/// What the supervisor in the background still has of who started it.
pub struct Detached {
    /// Who started it waits here for a byte, the exit code, and the name behind a 0.
    report: Option<File>,
    /// Their standard error, until the program runs.
    stderr: Option<OwnedFd>,
    /// To who keeps the log: takes the sandbox's name, and ends when all has been written. And what goes into it.
    keeper: UnixStream,
    pipe: Option<OwnedFd>,
}

/// Goes on in the background. In the process that was called: the exit code, once the program runs or cannot be run.
pub fn begin() -> Result<Detached, ExitCode> {
    let failed = |why: &dyn std::fmt::Display| exit::fail(&format!("cannot go on in the background: {why}"));
    let (reading, writing) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed(&error))?;
    let stderr = std::io::stderr().as_fd().try_clone_to_owned().map_err(|error| failed(&error))?;
    match channel::detach() {
        Ok(true) => {
            drop(reading);
            twice(writing, stderr).map_err(|error| failed(&error))
        }
        Ok(false) => {
            drop(stderr);
            drop(writing);
            let mut report = Vec::new();
            // What has come by then counts.
            let _ = File::from(reading).read_to_end(&mut report);
            Err(match report.split_first() {
                Some((0, name)) => exit::print(format!("{}\n", String::from_utf8_lossy(name)).as_bytes()),
                Some((code, _)) => ExitCode::from(*code),
                None => failed(&"its supervisor has ended"),
            })
        }
        Err(errno) => Err(failed(&std::io::Error::from_raw_os_error(errno))),
    }
}

/// Goes on in one more process, while this one keeps the log.
fn twice(report: OwnedFd, stderr: OwnedFd) -> std::io::Result<Detached> {
    let (keeper, name) = UnixStream::pair()?;
    let (reading, writing) = pipe_with(PipeFlags::CLOEXEC)?;
    if channel::detach().map_err(std::io::Error::from_raw_os_error)? {
        return Ok(Detached { report: Some(File::from(report)), stderr: Some(stderr), keeper, pipe: Some(writing) });
    }
    drop((report, stderr, keeper, writing));
    silence(None)?;
    log::keep(name, reading);
    std::process::exit(0)
}

impl Detached {
    /// Standard output and error go to the log from here on, and nothing comes by standard input.
    pub fn redirect(&mut self, server: &Server) -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| format!("cannot keep a log: {error}");
        let (place, name) = server.found().ok_or_else(|| failed(&"there is no place for it"))?;
        place.forget_end(name);
        self.keeper.write_all(name.as_str().as_bytes()).map_err(|error| failed(&error))?;
        let _ = self.keeper.shutdown(Shutdown::Write);
        // The log is there, or cannot be made.
        let made = self.keeper.read_exact(&mut [0]);
        made.map_err(|_| failed(&"its file cannot be made"))?;
        silence(self.pipe.take()).map_err(|error| failed(&error))?;
        found::opened();
        Ok(())
    }

    /// What the kernel reports of the program.
    pub fn hear(&mut self, answer: &Answer, server: &Server) {
        match answer {
            Answer::Started { .. } => self.runs(server),
            Answer::Says { text, .. } => {
                if let Some(stderr) = self.stderr.take() {
                    // There is nobody else to report it to.
                    let _ = File::from(stderr).write_all(printable(text).as_bytes());
                }
            }
            _ => {}
        }
    }

    /// The program runs.
    pub fn runs(&mut self, server: &Server) {
        let name = server.found().map_or("", |(_, name)| name.as_str());
        self.report(&[&[0], name.as_bytes()].concat());
    }

    /// Nothing was started: from here on standard error is theirs who wanted it.
    pub fn failed(&mut self) {
        if let Some(stderr) = self.stderr.take() {
            let _ = rustix::stdio::dup2_stderr(&stderr);
        }
    }

    fn report(&mut self, report: &[u8]) {
        self.stderr = None;
        if let Some(mut waiting) = self.report.take() {
            // They may not have waited.
            let _ = waiting.write_all(report);
        }
    }

    /// Completes the log. Whether the program ever ran.
    pub fn finish_log(&mut self) -> bool {
        self.pipe = None;
        if self.report.is_none() {
            let _ = silence(None);
            // Nothing comes but the end.
            let _ = self.keeper.read(&mut [0]);
        }
        self.report.is_none()
    }

    /// The end: notifies a command that still waits.
    pub fn end(mut self, code: u8) {
        self.report(&[code.max(1)]);
    }
}

/// Standard input is empty, output and error go to `output`, or nowhere.
fn silence(output: Option<OwnedFd>) -> std::io::Result<()> {
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    let output = match &output {
        Some(output) => output.as_fd(),
        None => nothing.as_fd(),
    };
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(output)?;
    rustix::stdio::dup2_stderr(output)?;
    Ok(())
}

/// A text of the inside's as a terminal may show it: in one line, without control characters.
pub fn printable(text: &str) -> String {
    let line: String =
        text.trim_end_matches('\n').chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect();
    line + "\n"
}
