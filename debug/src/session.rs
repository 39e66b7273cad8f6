//! A session with gdb: which threads there are, what runs, what has stopped. The protocol is gdb's remote one with its extensions for
//! several processes ("Debugging with GDB", appendix E).

use std::fmt::Write;
use std::fs::File;
use std::io::Result;

use crate::answers::{Answers, Guests};
use crate::host;
use crate::packets::{self, Incoming, Line, Noise};
use crate::points::Hardware;
use crate::signals;
use crate::tracer::{Action, Report, What};

/// What the server can do that gdb may make use of.
const SUPPORTED: &str = "QStartNoAckMode+;vContSupported+;multiprocess+;fork-events+;vfork-events+;exec-events+;swbreak+;hwbreak+;\
                         no-resumed+;QPassSignals+;qXfer:features:read+;qXfer:auxv:read+;qXfer:exec-file:read+;\
                         qXfer:threads:read+;qXfer:siginfo:read+";

/// How a session has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing is traced any more: what there was has ended, or goes on as gdb has requested.
    Over,
    /// The connection is gone.
    Lost,
    /// What comes by the connection is no protocol of gdb's.
    Noise,
}

/// Processes and threads as gdb names them: 0 is any, [`ALL`] all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Id {
    pid: u32,
    tid: u32,
}

const ALL: u32 = u32::MAX;

impl Id {
    fn means(self, pid: u32, tid: u32) -> bool {
        matches!(self.pid, 0 | ALL) | (self.pid == pid) && matches!(self.tid, 0 | ALL) | (self.tid == tid)
    }
}

/// `-1`, or hexadecimal digits.
fn number(text: &str) -> Option<u32> {
    if text == "-1" { Some(ALL) } else { u32::from_str_radix(text, 16).ok() }
}

/// `pPID.TID`, `pPID` (all of it) or `TID`.
fn id(text: &str) -> Option<Id> {
    let Some(both) = text.strip_prefix('p') else { return Some(Id { pid: 0, tid: number(text)? }) };
    match both.split_once('.') {
        Some((pid, tid)) => Some(Id { pid: number(pid)?, tid: number(tid)? }),
        None => Some(Id { pid: number(both)?, tid: ALL }),
    }
}

/// The session.
pub struct Session {
    line: Line,
    /// Readable when the kernel has an event to report.
    events: File,
    guests: Guests,
    answers: Answers,
    /// gdb names processes, too.
    several: bool,
    /// Something runs, and gdb waits for a stop.
    running: bool,
    /// The last stop.
    last: Report,
    /// The thread that `c` and `s` mean.
    resumed: Id,
    over: bool,
}

impl Session {
    /// A session over `connection` about the program `first`, which is held before its first instruction.
    pub fn new(connection: File, events: File, first: u32) -> Session {
        let mut guests = Guests::default();
        let last = guests.tracer.begin(first);
        let answers = Answers::new(&mut guests);
        Session {
            line: Line::new(connection),
            events,
            guests,
            answers,
            several: false,
            running: false,
            last,
            resumed: Id { pid: 0, tid: ALL },
            over: false,
        }
    }

    /// Serves gdb to the end.
    pub fn serve(mut self) -> End {
        let end = loop {
            match self.turn() {
                Ok(true) => {}
                Ok(false) => break End::Over,
                Err(end) => break end,
            }
        };
        let traced = !self.guests.tracer.is_empty();
        self.guests.tracer.detach_all();
        if traced { end } else { End::Over }
    }

    /// One wait, and all that has come. False when gdb need not be waited for any more.
    fn turn(&mut self) -> core::result::Result<bool, End> {
        let gone = |_| End::Lost;
        let [came, happened] = match self.running {
            true => host::wait([&self.line.file, &self.events]),
            false => [host::wait([&self.line.file])[0], false],
        };
        if came && !self.line.receive() {
            return Err(End::Lost);
        }
        while let Some(incoming) = self.line.next().map_err(|Noise| End::Noise)? {
            match incoming {
                Incoming::Packet(said) => self.hear(&said).map_err(gone)?,
                Incoming::Interrupt if self.running => {
                    let report = self.guests.tracer.interrupted();
                    self.report(report).map_err(gone)?;
                }
                _ => {}
            }
            if self.over {
                return Ok(false);
            }
        }
        if happened {
            self.drain();
            if self.running {
                let report = self.guests.tracer.next_report();
                self.report(report).map_err(gone)?;
            }
        }
        Ok(!self.over)
    }

    /// Reads the notices of events; the events themselves are looked for afterwards.
    fn drain(&mut self) {
        let mut room = [0; 1024];
        while std::io::Read::read(&mut self.events, &mut room).is_ok_and(|count| count > 0) {}
    }

    fn say(&mut self, text: &str) -> Result<()> {
        self.line.send(text.as_bytes())
    }

    /// Reports a stop to gdb, if there is one. With none, and nothing that runs, there will be none.
    fn report(&mut self, report: Option<Report>) -> Result<()> {
        let Some(report) = report else {
            if self.guests.tracer.runs() || !self.running {
                return Ok(());
            }
            self.running = false;
            return self.say("N");
        };
        self.running = false;
        self.last = report;
        let text = self.stop();
        let sent = self.say(&text);
        if !matches!(self.last.what, What::Exited(_) | What::Killed(_)) {
            self.guests.tracer.selected = self.last.tid;
        }
        // Who waits for the process may know now; where that is the first program, this is the end.
        self.guests.tracer.reap();
        sent
    }

    /// The last stop, as gdb reads it.
    fn stop(&self) -> String {
        let Report { pid, tid, what } = &self.last;
        let of = if self.several { format!(";process:{pid:x}") } else { String::new() };
        let trap = signals::to_gdb(libc::SIGTRAP as u32);
        let (signal, more) = match what {
            What::Exited(code) => return format!("W{code:02x}{of}"),
            What::Killed(signal) => return format!("X{:02x}{of}", signals::to_gdb(*signal)),
            What::Signal(signal) => (signals::to_gdb(*signal), String::new()),
            What::Breakpoint => (trap, "swbreak:;".to_owned()),
            What::Hardware(Hardware::Execute(_)) => (trap, "hwbreak:;".to_owned()),
            What::Hardware(Hardware::Write(address, _)) => (trap, format!("watch:{address:x};")),
            What::Fork(child) => (trap, format!("fork:{};", self.name(*child, *child))),
            What::Vfork(child) => (trap, format!("vfork:{};", self.name(*child, *child))),
            What::VforkDone => (trap, "vforkdone:;".to_owned()),
            What::Exec(path) => (trap, format!("exec:{};", hex(path))),
        };
        format!("T{signal:02x}{more}thread:{};", self.name(*pid, *tid))
    }

    fn name(&self, pid: u32, tid: u32) -> String {
        if self.several { format!("p{pid:x}.{tid:x}") } else { format!("{tid:x}") }
    }

    /// Does what a packet requests, and sends the answer.
    fn hear(&mut self, said: &[u8]) -> Result<()> {
        let text = std::str::from_utf8(said).unwrap_or_default();
        // While something runs gdb waits for a stop.
        if self.running {
            return Ok(());
        }
        if let Some(rest) = text.strip_prefix("qSupported") {
            return self.agree(rest.strip_prefix(':').unwrap_or_default());
        }
        if let Some(rest) = text.strip_prefix("qXfer:threads:read::") {
            let whole = self.list();
            return self.piece(&whole.into_bytes(), rest);
        }
        if let Some(rest) = text.strip_prefix("qXfer:siginfo:read::") {
            return match host::signal_info(self.guests.tracer.selected) {
                Ok(whole) => self.piece(&whole, rest),
                Err(_) => self.say("E01"),
            };
        }
        if let Some(rest) = text.strip_prefix("QPassSignals:") {
            let numbers = rest.split(';').filter_map(|number| u8::from_str_radix(number, 16).ok());
            self.guests.tracer.passed = numbers.filter_map(signals::from_gdb).collect();
            return self.say("OK");
        }
        if let Some(rest) = text.strip_prefix("qThreadExtraInfo,") {
            let name = id(rest).and_then(|id| self.comm(id.tid)).unwrap_or_default();
            return self.say(&hex(name.as_bytes()));
        }
        match text {
            "QStartNoAckMode" => {
                self.say("OK")?;
                self.line.trust();
                Ok(())
            }
            "!" => self.say("OK"),
            "?" => {
                let text = self.stop();
                let sent = self.say(&text);
                self.guests.tracer.reap();
                sent
            }
            "qC" => {
                let tid = self.guests.tracer.selected;
                match self.guests.tracer.process_of(tid) {
                    Some(pid) => self.say(&format!("QC{}", self.name(pid, tid))),
                    None => self.say("E01"),
                }
            }
            "qfThreadInfo" => {
                let all: Vec<String> = self.guests.tracer.threads().map(|(pid, tid)| self.name(pid, tid)).collect();
                self.say(&if all.is_empty() { "l".to_owned() } else { format!("m{}", all.join(",")) })
            }
            "qsThreadInfo" => self.say("l"),
            "vCont?" => self.say("vCont;c;C;s;S"),
            "k" => {
                self.guests.tracer.processes().into_iter().for_each(|pid| self.guests.tracer.kill(pid));
                self.over = true;
                Ok(())
            }
            "D" => {
                self.say("OK")?;
                self.guests.tracer.detach_all();
                Ok(())
            }
            _ => self.hear_more(text, said),
        }
    }

    fn hear_more(&mut self, text: &str, said: &[u8]) -> Result<()> {
        if text.starts_with("qAttached") {
            // `janua run` has started it, and gdb ends it when it quits without a word.
            return self.say("0");
        }
        if let Some(rest) = text.strip_prefix("vCont;") {
            return self.resume_by(rest);
        }
        if let Some(rest) = text.strip_prefix("vKill;") {
            return match number(rest).filter(|pid| self.guests.tracer.any_of(Some(*pid)).is_some()) {
                Some(pid) => {
                    self.guests.tracer.kill(pid);
                    let sent = self.say("OK");
                    self.guests.tracer.reap();
                    sent
                }
                None => self.say("E03"),
            };
        }
        if let Some(rest) = text.strip_prefix("D;") {
            return match number(rest).filter(|pid| self.guests.tracer.any_of(Some(*pid)).is_some()) {
                Some(pid) => {
                    self.guests.tracer.detach(pid);
                    let sent = self.say("OK");
                    self.guests.tracer.reap();
                    sent
                }
                None => self.say("E03"),
            };
        }
        match said.first() {
            Some(b'H') => self.select(text),
            Some(b'T') => {
                let alive = id(&text[1..]).is_some_and(|id| self.guests.tracer.process_of(id.tid).is_some());
                self.say(if alive { "OK" } else { "E03" })
            }
            Some(b'c' | b's') if text.len() == 1 => {
                let action = Action { step: text == "s", signal: 0 };
                self.resume(&[(action, self.resumed)])
            }
            Some(b'C' | b'S') if text.len() == 3 => {
                let Some(signal) = signal(&text[1..]) else { return self.say("E16") };
                let action = Action { step: text.starts_with('S'), signal };
                self.resume(&[(action, self.resumed)])
            }
            // More than a packet can hold.
            Some(b'm') if length(text).is_none_or(|len| len > packets::MOST) => self.say("E16"),
            _ => {
                let answer = self.answers.answer(&mut self.guests, said);
                self.line.send_packet(answer)
            }
        }
    }

    /// What gdb can do, and what the server can.
    fn agree(&mut self, features: &str) -> Result<()> {
        let has = |name: &str| features.split(';').any(|feature| feature.strip_suffix('+') == Some(name));
        self.several = has("multiprocess");
        // Without a name for another process it cannot be followed.
        let events = &mut self.guests.tracer.events;
        events.fork = has("fork-events") && self.several;
        events.vfork = has("vfork-events") && self.several;
        events.exec = has("exec-events");
        self.say(&format!("PacketSize={:x};{SUPPORTED}", packets::MOST))
    }

    /// `Hg` and `Hc`: which thread is meant from now on.
    fn select(&mut self, text: &str) -> Result<()> {
        let Some(wanted) = text.get(2..).and_then(id) else { return self.say("E16") };
        if text.as_bytes()[1] == b'c' {
            self.resumed = wanted;
            return self.say("OK");
        }
        let tracer = &mut self.guests.tracer;
        let found = match wanted {
            Id { tid: 0 | ALL, pid } if wanted.means(tracer.process_of(tracer.selected).unwrap_or(pid), tracer.selected) => {
                Some(tracer.selected)
            }
            Id { tid: 0 | ALL, pid } => tracer.any_of(Some(pid)),
            Id { tid, .. } => Some(tid).filter(|tid| tracer.process_of(*tid).is_some()),
        };
        match found {
            Some(tid) => {
                tracer.selected = tid;
                self.say("OK")
            }
            None => self.say("E03"),
        }
    }

    /// `vCont`: what each thread does.
    fn resume_by(&mut self, text: &str) -> Result<()> {
        let mut actions = Vec::new();
        for one in text.split(';') {
            let (what, whom) = one.split_once(':').unwrap_or((one, "-1"));
            let Some(whom) = id(whom) else { return self.say("E16") };
            let action = match (what.get(..1), what.get(1..)) {
                (Some("c"), Some("")) => Some(Action { step: false, signal: 0 }),
                (Some("s"), Some("")) => Some(Action { step: true, signal: 0 }),
                (Some("C"), Some(number)) => signal(number).map(|signal| Action { step: false, signal }),
                (Some("S"), Some(number)) => signal(number).map(|signal| Action { step: true, signal }),
                _ => None,
            };
            let Some(action) = action else { return self.say("E16") };
            actions.push((action, whom));
        }
        self.resume(&actions)
    }

    /// The first action that means a thread is its.
    fn resume(&mut self, actions: &[(Action, Id)]) -> Result<()> {
        let of = |pid, tid| actions.iter().find(|(_, id)| id.means(pid, tid)).map(|(action, _)| *action);
        let report = self.guests.tracer.resume(of);
        self.running = true;
        // What has come before may have been taken with the last stop.
        let report = report.or_else(|| self.guests.tracer.next_report());
        self.report(report)
    }

    /// All threads with their names.
    fn list(&self) -> String {
        let mut text = "<?xml version=\"1.0\"?><threads>".to_owned();
        for (pid, tid) in self.guests.tracer.threads() {
            let name = self.comm(tid).unwrap_or_default();
            // A string takes it all.
            let _ = write!(text, "<thread id=\"{}\" name=\"{}\"/>", self.name(pid, tid), quoted(&name));
        }
        text + "</threads>"
    }

    fn comm(&self, tid: u32) -> Option<String> {
        let pid = self.guests.tracer.process_of(tid)?;
        let name = std::fs::read(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
        Some(String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned())
    }

    /// The part `OFFSET,LENGTH` of something long.
    fn piece(&mut self, whole: &[u8], which: &str) -> Result<()> {
        let words = which
            .split_once(',')
            .and_then(|(offset, len)| Some((usize::from_str_radix(offset, 16).ok()?, usize::from_str_radix(len, 16).ok()?)));
        let Some((offset, len)) = words else { return self.say("E16") };
        let rest = whole.get(offset..).unwrap_or_default();
        // Escaped it may be twice as long.
        let part = &rest[..rest.len().min(len).min(packets::MOST / 2 - 1)];
        let mark: &[u8] = if part.len() < rest.len() { b"m" } else { b"l" };
        self.line.send(&[mark, &packets::escaped(part)].concat())
    }
}

/// A signal by gdb's number in hexadecimal digits.
fn signal(digits: &str) -> Option<u32> {
    u8::from_str_radix(digits, 16).ok().and_then(signals::from_gdb)
}

/// How much `mADDRESS,LENGTH` asks for.
fn length(text: &str) -> Option<usize> {
    usize::from_str_radix(text.split_once(',')?.1, 16).ok()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// As XML has it between quotes; what it cannot have is left out.
fn quoted(text: &str) -> String {
    let mut all = String::new();
    for letter in text.chars() {
        match letter {
            '<' => all.push_str("&lt;"),
            '&' => all.push_str("&amp;"),
            '"' => all.push_str("&quot;"),
            letter if letter < ' ' => {}
            letter => all.push(letter),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_names() {
        assert_eq!(id("p2.3"), Some(Id { pid: 2, tid: 3 }));
        assert_eq!(id("p-1.-1"), Some(Id { pid: ALL, tid: ALL }));
        assert_eq!(id("p1f"), Some(Id { pid: 31, tid: ALL }));
        assert_eq!((id("0"), id("-1")), (Some(Id { pid: 0, tid: 0 }), Some(Id { pid: 0, tid: ALL })));
        assert_eq!([id(""), id("px.1"), id("p1."), id("123456789")], [None; 4]);
        let one = Id { pid: 2, tid: ALL };
        assert!(one.means(2, 7) && !one.means(3, 7) && Id { pid: 0, tid: 7 }.means(2, 7) && !Id { pid: 0, tid: 7 }.means(7, 2));
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(quoted("a<b>&\"c\"\n"), "a&lt;b>&amp;&quot;c&quot;");
        assert_eq!((length("m1000,40"), length("m1000"), length("mx,")), (Some(64), None, None));
    }
}
