//! The console: this side of the machine's serial line, and the terminal `janua boot` was started on.
//!
//! The line carries telnet's language towards the machine (`platform/x86_64/src/serial.rs`): bytes, the size of the window, the
//! end of the input. When standard input and output are a terminal it is set to raw mode, and keys go to the machine as they are;
//! editing, echo and signals are the machine's own. Otherwise the line is a plain stream.

use janua_platform_bare::outside::telnet::{EOF, IAC, NAWS, SB, SE};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};

/// Ctrl-]: the key that speaks to `janua`.
const ESCAPE: u8 = 0x1d;
/// How soon a change of the window's size is noticed, nanoseconds.
const LOOK: i64 = 200_000_000;

/// The terminal `janua` was started on, in raw mode until it is dropped.
pub struct Terminal {
    saved: Termios,
}

impl Terminal {
    /// Whether standard input and output both are a terminal.
    pub fn is_there() -> bool {
        isatty(io::stdin()) && isatty(io::stdout())
    }

    /// Sets raw mode.
    pub fn raw() -> io::Result<Terminal> {
        let saved = tcgetattr(io::stdin())?;
        let mut raw = saved.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Drain, &raw)?;
        Ok(Terminal { saved })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Nothing can be done about a terminal that is gone.
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.saved);
    }
}

/// Standard input's way to the machine.
pub struct Keyboard {
    line: Mutex<File>,
    interactive: bool,
    /// The escape key and `q` were typed.
    quit: AtomicBool,
}

impl Keyboard {
    /// Feeds `line`, the machine's end of input.
    pub fn new(line: File, interactive: bool) -> Arc<Keyboard> {
        Arc::new(Keyboard { line: Mutex::new(line), interactive, quit: AtomicBool::new(false) })
    }

    /// Whether the person at the terminal asked for the end.
    pub fn has_quit(&self) -> bool {
        self.quit.load(Ordering::Relaxed)
    }

    /// Hands on what comes, on a thread of its own that ends with the process, or with the input. `end` ends the machine.
    pub fn feed(self: &Arc<Keyboard>, end: impl FnOnce() + Send + 'static) {
        let keyboard = self.clone();
        std::thread::spawn(move || {
            if keyboard.interactive {
                if keyboard.terminal().unwrap_or(false) {
                    keyboard.quit.store(true, Ordering::Relaxed);
                    end();
                }
            } else {
                keyboard.stream();
            }
        });
    }

    /// What cannot be written has no reader any more: the machine is gone, and its end is seen elsewhere.
    fn send(&self, words: &[u8]) {
        let mut line = self.line.lock().unwrap_or_else(|error| error.into_inner());
        let _ = line.write_all(words);
    }

    fn stream(&self) {
        let mut bytes = [0; 4096];
        loop {
            match io::stdin().lock().read(&mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return self.send(&[IAC, EOF]),
                Ok(n) => self.send(&escaped(&bytes[..n])),
            }
        }
    }

    /// Until the terminal is gone, or `true` when the end is asked for.
    fn terminal(&self) -> io::Result<bool> {
        let mut size = (0, 0);
        let mut keys = Keys::default();
        loop {
            if let Ok(now) = tcgetwinsize(io::stdout())
                && (now.ws_col, now.ws_row) != size
            {
                size = (now.ws_col, now.ws_row);
                self.send(&window(size.0, size.1));
            }
            let stdin = io::stdin();
            let mut waiting = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
            match poll(&mut waiting, Some(&Timespec { tv_sec: 0, tv_nsec: LOOK })) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            let mut bytes = [0; 256];
            match rustix::io::read(stdin.as_fd(), &mut bytes) {
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Ok(0) | Err(_) => {
                    self.send(&[IAC, EOF]);
                    return Ok(false);
                }
                Ok(n) => match keys.typed(&bytes[..n]) {
                    Some(words) => self.send(&words),
                    None => return Ok(true),
                },
            }
        }
    }
}

/// The words for bytes.
fn escaped(bytes: &[u8]) -> Vec<u8> {
    let mut words = Vec::with_capacity(bytes.len());
    for byte in bytes {
        words.push(*byte);
        if *byte == IAC {
            words.push(IAC);
        }
    }
    words
}

/// The words for a window's size.
fn window(columns: u16, rows: u16) -> Vec<u8> {
    let mut size = columns.to_be_bytes().to_vec();
    size.extend(rows.to_be_bytes());
    [&[IAC, SB, NAWS], &escaped(&size)[..], &[IAC, SE]].concat()
}

/// What is typed, without what is meant for `janua`.
#[derive(Default)]
struct Keys {
    escape: bool,
}

impl Keys {
    /// The words for what was typed; `None` when it asks for the end.
    fn typed(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        for byte in bytes {
            match (std::mem::take(&mut self.escape), *byte) {
                (true, b'q') => return None,
                (false, ESCAPE) => self.escape = true,
                // Twice is once, and before any other key it counts as typed.
                (true, ESCAPE) => out.push(ESCAPE),
                (true, other) => out.extend([ESCAPE, other]),
                (false, other) => out.push(other),
            }
        }
        Some(escaped(&out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_escape_key_is_kept_from_the_machine() {
        let mut keys = Keys::default();
        assert_eq!(keys.typed(b"a\x03\xff"), Some(b"a\x03\xff\xff".to_vec()));
        assert_eq!(keys.typed(b"\x1d"), Some(Vec::new()));
        assert_eq!(keys.typed(b"\x1dx\x1dy"), Some(b"\x1dx\x1dy".to_vec()));
        assert_eq!(keys.typed(b"x\x1d"), Some(b"x".to_vec()));
        assert_eq!(keys.typed(b"q"), None);
    }

    #[test]
    fn a_window_is_sent_in_telnets_words() {
        assert_eq!(window(80, 24), [255, 250, 31, 0, 80, 0, 24, 255, 240]);
        assert_eq!(window(255, 1), [255, 250, 31, 0, 255, 255, 0, 1, 255, 240]);
    }
}
