//! `--trace`: one line a call, readable beside strace's.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;
use core::sync::atomic::{AtomicBool, Ordering};

use janua_abi::linux::Errno;
use janua_port::guest::Abi;
use janua_port::{Host, HostFd, Machine, outside};
use janua_rt::Mutex;

use crate::table::{Kind, Row, Support, Words};
use crate::task::Personality;
use crate::thread::Thread;

/// Where trace lines go; a line is written whole.
pub trait TraceSink: Send + Sync {
    fn line(&self, line: &[u8]);
}

/// A host file as the sink.
struct HostSink {
    machine: &'static dyn Machine,
    host: &'static dyn Host,
    fd: HostFd,
    /// A line that is lost ends the machine.
    whole: bool,
    lost: AtomicBool,
}

impl TraceSink for HostSink {
    fn line(&self, line: &[u8]) {
        let mut rest = line;
        while !rest.is_empty() {
            let why = match self.host.write(self.fd, rest, None) {
                Ok(0) => Errno::EIO,
                Ok(count) => {
                    rest = rest.get(count..).unwrap_or_default();
                    continue;
                }
                Err(Errno::EINTR) => continue,
                Err(why) => why,
            };
            return self.lose(why);
        }
    }
}

impl HostSink {
    /// A line could not be written: reported once, and the end of the run where the trace has to be whole.
    fn lose(&self, why: Errno) {
        if !self.lost.swap(true, Ordering::Relaxed) {
            let what = if self.whole { "the sandbox is stopped" } else { "calls are missing in it from here on" };
            self.machine.console().write(alloc::format!("janua: the trace cannot be written ({why:?}): {what}\n").as_bytes());
        }
        if self.whole {
            outside::over(self.machine, TRACE_LOST);
        }
    }
}

/// The exit code of a run that ended because its trace could not be written: Janua's own failure.
const TRACE_LOST: u8 = 125;

/// The trace of a kernel, off until a sink is set.
#[derive(Default)]
pub struct Tracer {
    on: AtomicBool,
    sink: Mutex<Option<Arc<dyn TraceSink>>>,
    /// Numbers whose lack has been explained, and whether they are of the second ABI.
    reported: Mutex<Vec<(bool, usize)>>,
}

impl Tracer {
    pub fn set_sink(&self, sink: Arc<dyn TraceSink>) {
        *self.sink.lock() = Some(sink);
        self.on.store(true, Ordering::Release);
    }

    /// Writes to a host file; with `whole`, a line that cannot be written ends the machine.
    pub fn write_to(&self, machine: &'static dyn Machine, fd: HostFd, whole: bool) {
        if let Some(host) = machine.host() {
            self.set_sink(Arc::new(HostSink { machine, host, fd, whole, lost: AtomicBool::new(false) }));
        }
    }

    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Writes one line (without its end) if a sink is set.
    pub fn line(&self, line: &str) {
        let sink = self.sink.lock().clone();
        if let Some(sink) = sink {
            let mut whole = String::with_capacity(line.len() + 1);
            whole.push_str(line);
            whole.push('\n');
            sink.line(whole.as_bytes());
        }
    }
}

/// How much of a string is shown, in bytes.
const SHOWN_STRING: usize = 256;

/// What is written for the arguments of a call under way that are read before it runs, by position.
pub(crate) type Taken = Vec<(usize, String)>;

impl<P: Personality> Thread<P> {
    /// Before a call runs: reads what it will act on, while that is still there and unchanged.
    pub(crate) fn trace_enter(&self, row: &'static Row<P>, words: Words) {
        if !self.kernel.tracer.is_on() {
            return;
        }
        let mut taken = Taken::new();
        for (at, (param, word)) in row.params.iter().zip(words).enumerate() {
            let text =
                if matches!(param.kind, Kind::Str) { self.string(word) } else { P::trace_data(self, row, at, words, None) };
            taken.extend(text.map(|text| (at, text)));
        }
        *self.taken.lock() = taken;
    }

    pub(crate) fn trace_leave(&self, row: &'static Row<P>, words: Words, result: isize) {
        if !self.kernel.tracer.is_on() {
            return;
        }
        let taken = core::mem::take(&mut *self.taken.lock());
        let mut line = String::new();
        let _ = write!(line, "[{}] {}(", P::trace_id(self), row.name);
        for (at, (param, word)) in row.params.iter().zip(words).enumerate() {
            if at > 0 {
                line.push_str(", ");
            }
            match taken.iter().find(|(position, _)| *position == at) {
                Some((_, text)) => line.push_str(text),
                None => match P::trace_data(self, row, at, words, Some(result)) {
                    Some(text) => line.push_str(&text),
                    None => trace_word::<P>(&mut line, param.kind, word),
                },
            }
        }
        line.push_str(") = ");
        match janua_abi::linux::Errno::from_raw(result) {
            _ if P::is_special(result) => {
                let _ = write!(line, "? ({})", P::SPECIAL);
            }
            Ok(value) if P::is_address(value, self.kernel.compat.holds(row)) => {
                let _ = write!(line, "{value:#x}");
            }
            Ok(value) => {
                let _ = write!(line, "{value}");
            }
            Err(errno) => {
                let _ = write!(line, "-1 {errno:?}");
            }
        }
        if self.was_away() {
            let _ = write!(line, " <{}>", row.place.name());
        }
        self.kernel.tracer.line(&line);
    }

    /// A number that is not in force; why, when it is met first.
    pub(crate) fn trace_unknown(&self, abi: Abi, number: usize, words: Words, result: isize) {
        let (table, compat) = match abi {
            Abi::Native => (&self.kernel.table, false),
            Abi::Compat => (&self.kernel.compat, true),
        };
        let row = table.rows().get(number);
        let mut line = String::new();
        let _ = write!(line, "[{}] ", P::trace_id(self));
        let _ = match row {
            Some(row) => line.write_str(row.name),
            None => write!(line, "syscall_{number}"),
        };
        let [a, b, c, d, e, f] = words;
        let _ = write!(line, "({a:#x}, {b:#x}, {c:#x}, {d:#x}, {e:#x}, {f:#x}) = ");
        let _ = match janua_abi::linux::Errno::from_raw(result) {
            Ok(value) => write!(line, "{value}"),
            Err(errno) => write!(line, "-1 {errno:?}"),
        };
        let mut reported = self.kernel.tracer.reported.lock();
        if !reported.contains(&(compat, number)) {
            reported.push((compat, number));
            let why = match row.map(|row| row.support) {
                Some(Support::Missing(why)) => why,
                Some(_) => "taken out of force",
                None => "no such number",
            };
            let _ = write!(line, " (missing: {why})");
        }
        drop(reported);
        self.kernel.tracer.line(&line);
    }

    fn string(&self, word: usize) -> Option<String> {
        if word == 0 {
            return None;
        }
        let text = crate::UserStr(word).path(self.user()).ok()?;
        Some(quoted(&text, SHOWN_STRING))
    }
}

fn trace_word<P: Personality>(line: &mut String, kind: Kind, word: usize) {
    let _ = match kind {
        Kind::Fd | Kind::Int => write!(line, "{}", word as i32),
        Kind::Unsigned => write!(line, "{word}"),
        Kind::Octal => write!(line, "{word:#o}"),
        Kind::Ptr | Kind::Str if word == 0 => line.write_str("NULL"),
        Kind::Hex | Kind::Ptr | Kind::Str => write!(line, "{word:#x}"),
        Kind::Named(family) => {
            if P::trace_named(family, word, line) {
                Ok(())
            } else {
                write!(line, "{word:#x}")
            }
        }
    };
}

/// At most `most` bytes as a C string literal, with dots after it when there are more.
pub fn quoted(bytes: &[u8], most: usize) -> String {
    let mut text = String::with_capacity(bytes.len().min(most) + 2);
    text.push('"');
    let mut shown = bytes.iter().take(most).peekable();
    while let Some(&byte) = shown.next() {
        let _ = match byte {
            b'\n' => text.write_str("\\n"),
            b'\t' => text.write_str("\\t"),
            b'\r' => text.write_str("\\r"),
            b'"' | b'\\' => write!(text, "\\{}", char::from(byte)),
            b' '..=b'~' => text.write_char(char::from(byte)),
            // As short as the next character allows.
            _ if shown.peek().is_some_and(|next| next.is_ascii_digit()) => write!(text, "\\{byte:03o}"),
            _ => write!(text, "\\{byte:o}"),
        };
    }
    text.push('"');
    if bytes.len() > most {
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn strings_are_written_as_c_writes_them() {
        assert_eq!(quoted(b"a\n\"\\", 32), r#""a\n\"\\""#);
        assert_eq!(quoted(b"\0\x001\x7f", 32), r#""\0\0001\177""#);
        assert_eq!(quoted(b"abcd", 3), r#""abc"..."#);
        assert_eq!(quoted(b"", 3), r#""""#);
    }
}
