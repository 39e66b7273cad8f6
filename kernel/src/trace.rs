//! `--trace`: one line a call, readable beside strace's.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt::Write;
use core::sync::atomic::{AtomicBool, Ordering};

use janua_rt::Mutex;

use crate::table::{Kind, Row, Words};
use crate::task::Personality;
use crate::thread::Thread;

/// Where trace lines go; a line is written whole.
pub trait TraceSink: Send + Sync {
    fn line(&self, line: &[u8]);
}

/// The trace of a kernel, off until a sink is set.
#[derive(Default)]
pub struct Tracer {
    on: AtomicBool,
    sink: Mutex<Option<Arc<dyn TraceSink>>>,
}

impl Tracer {
    pub fn set_sink(&self, sink: Arc<dyn TraceSink>) {
        *self.sink.lock() = Some(sink);
        self.on.store(true, Ordering::Release);
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

impl<P: Personality> Thread<P> {
    /// Before a call runs. Strings are read now, while they are what the call sees.
    pub(crate) fn trace_enter(&self, _row: &'static Row<P>, _words: Words) {}

    pub(crate) fn trace_leave(&self, row: &'static Row<P>, words: Words, result: isize, _nanos: u64, _waited: bool) {
        if !self.kernel.tracer.is_on() {
            return;
        }
        let mut line = String::new();
        let _ = write!(line, "[{}] {}(", P::trace_id(self), row.name);
        for (at, (param, word)) in row.params.iter().zip(words).enumerate() {
            if at > 0 {
                line.push_str(", ");
            }
            self.trace_word(&mut line, param.kind, word);
        }
        line.push_str(") = ");
        match janua_abi::linux::Errno::from_raw(result) {
            Ok(value) if value > 0xffff_ffff => {
                let _ = write!(line, "{value:#x}");
            }
            Ok(value) => {
                let _ = write!(line, "{value}");
            }
            Err(errno) => {
                let _ = write!(line, "-1 {errno:?}");
            }
        }
        self.kernel.tracer.line(&line);
    }

    fn trace_word(&self, line: &mut String, kind: Kind, word: usize) {
        let _ = match kind {
            Kind::Fd | Kind::Int => write!(line, "{}", word as i32),
            Kind::Unsigned => write!(line, "{word}"),
            Kind::Octal => write!(line, "{word:#o}"),
            Kind::Ptr if word == 0 => line.write_str("NULL"),
            Kind::Hex | Kind::Ptr => write!(line, "{word:#x}"),
            Kind::Str if word == 0 => line.write_str("NULL"),
            Kind::Str => match crate::UserStr(word).read(self.user(), 64, janua_abi::linux::Errno::E2BIG) {
                Ok(text) => write!(line, "{:?}", String::from_utf8_lossy(&text)),
                Err(_) => write!(line, "{word:#x}"),
            },
            Kind::Named(family) => {
                if P::trace_named(family, word, line) { Ok(()) } else { write!(line, "{word:#x}") }
            }
        };
    }
}
