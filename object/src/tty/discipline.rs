//! The line discipline (termios(3)): what becomes of bytes between keyboard, program and screen. Pure: it moves bytes between
//! queues and returns the signals that are due.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use janua_abi::linux::signal::{SIGINT, SIGQUIT, SIGTSTP};
use janua_abi::linux::termios::{Termios, cc, iflag, lflag, oflag};

/// Longest line being edited, and most bytes waiting to be read.
pub const INPUT_MOST: usize = 4096;
/// Most bytes on their way to the screen before writers wait.
pub const OUTPUT_MOST: usize = 16384;

/// A finished line; without bytes it is an end of file.
struct Line {
    bytes: VecDeque<u8>,
}

/// The discipline's state.
#[derive(Default)]
pub struct Discipline {
    pub termios: Termios,
    /// Canonical mode: lines ready to be read.
    lines: VecDeque<Line>,
    /// Canonical mode: the line being edited.
    editing: Vec<u8>,
    /// Other modes: bytes ready to be read.
    raw: VecDeque<u8>,
    /// The next byte is taken as it is (VLNEXT).
    literal: bool,
    /// Output is held (VSTOP).
    pub stopped: bool,
    /// For the screen.
    pub output: VecDeque<u8>,
    column: usize,
}

impl Discipline {
    fn canonical(&self) -> bool {
        self.termios.lflag & lflag::ICANON != 0
    }

    /// Changes the settings; what was typed stays readable when the mode changes.
    pub fn set_termios(&mut self, new: Termios) {
        let was = self.canonical();
        self.termios = new;
        if was && !self.canonical() {
            for line in self.lines.drain(..) {
                self.raw.extend(line.bytes);
            }
            self.raw.extend(self.editing.drain(..));
        } else if !was && self.canonical() && !self.raw.is_empty() {
            let bytes = core::mem::take(&mut self.raw);
            self.lines.push_back(Line { bytes });
        }
        if new.iflag & iflag::IXON == 0 {
            self.stopped = false;
        }
    }

    /// Forgets what was typed and not read.
    pub fn flush_input(&mut self) {
        self.lines.clear();
        self.editing.clear();
        self.raw.clear();
    }

    /// Forgets what was written and not shown.
    pub fn flush_output(&mut self) {
        self.output.clear();
    }

    /// Bytes a read could take now.
    pub fn readable(&self) -> usize {
        if self.canonical() { self.lines.iter().map(|line| line.bytes.len()).sum() } else { self.raw.len() }
    }

    /// Whether poll(2) shows input. VMIN and VTIME of 0 make a read return at once, but what is empty is not readable for that.
    pub fn is_ready(&self) -> bool {
        if self.canonical() {
            return !self.lines.is_empty();
        }
        !self.raw.is_empty() && self.has_enough(INPUT_MOST)
    }

    /// Whether a read of `most` bytes without lines would not wait.
    fn has_enough(&self, most: usize) -> bool {
        let min = usize::from(self.termios.cc[cc::VMIN]);
        let time = self.termios.cc[cc::VTIME];
        match (min, time) {
            (0, 0) => true,
            (0, _) => !self.raw.is_empty(),
            (min, 0) => self.raw.len() >= min.min(INPUT_MOST).min(most),
            // An inter-byte timer returns what there is; one byte starts it, and it is taken as run out.
            (_, _) => !self.raw.is_empty(),
        }
    }

    /// How long a read that finds nothing waits, in nanoseconds, and then returns 0 bytes (VMIN 0, VTIME set).
    pub fn read_timeout(&self) -> Option<u64> {
        let time = u64::from(self.termios.cc[cc::VTIME]);
        (!self.canonical() && self.termios.cc[cc::VMIN] == 0 && time > 0).then_some(time * 100_000_000)
    }

    /// Takes up to `most` bytes of input: of one line, in canonical mode. `None` when a read has to wait.
    pub fn read(&mut self, most: usize) -> Option<Vec<u8>> {
        if !self.canonical() {
            // Who asks for less than VMIN waits for no more than that.
            if !self.has_enough(most) {
                return None;
            }
            let n = self.raw.len().min(most);
            return Some(self.raw.drain(..n).collect());
        }
        let line = self.lines.front_mut()?;
        let n = line.bytes.len().min(most);
        let taken = line.bytes.drain(..n).collect();
        if line.bytes.is_empty() {
            self.lines.pop_front();
        }
        Some(taken)
    }

    /// Whether the keyboard can deliver a byte.
    pub fn has_input_room(&self) -> bool {
        // A full line without an end must still be able to take its end, so in canonical mode bytes are dropped instead.
        // An end of file has no bytes and is kept all the same.
        let held = || self.lines.iter().map(|line| line.bytes.len().max(1)).sum();
        self.canonical() && self.lines.is_empty() || if self.canonical() { held() } else { self.raw.len() } < INPUT_MOST
    }

    /// One byte from the keyboard. Returns a signal for the foreground group, if it is the character for one. Nothing of it is shown
    /// when nobody takes what is shown already: who types has no part in that, and so cannot be made to wait for it.
    pub fn type_byte(&mut self, byte: u8) -> Option<u32> {
        let (waiting, column) = (self.output.len(), self.column);
        let signal = self.take_typed(byte);
        if waiting >= OUTPUT_MOST && self.output.len() > waiting {
            self.output.truncate(waiting);
            self.column = column;
        }
        signal
    }

    fn take_typed(&mut self, byte: u8) -> Option<u32> {
        let mut byte = byte;
        let (input, local) = (self.termios.iflag, self.termios.lflag);
        if input & iflag::ISTRIP != 0 {
            byte &= 0x7f;
        }
        if core::mem::take(&mut self.literal) {
            self.insert(byte);
            return None;
        }
        match byte {
            b'\r' if input & iflag::IGNCR != 0 => return None,
            b'\r' if input & iflag::ICRNL != 0 => byte = b'\n',
            b'\n' if input & iflag::INLCR != 0 => byte = b'\r',
            _ => {}
        }
        let is = |index: usize| byte != 0 && self.termios.cc[index] == byte;
        if input & iflag::IXON != 0 {
            if is(cc::VSTART) {
                self.stopped = false;
                return None;
            }
            if is(cc::VSTOP) {
                self.stopped = true;
                return None;
            }
            if self.stopped && input & iflag::IXANY != 0 {
                self.stopped = false;
            }
        }
        if local & lflag::ISIG != 0 {
            for (index, signal) in [(cc::VINTR, SIGINT), (cc::VQUIT, SIGQUIT), (cc::VSUSP, SIGTSTP)] {
                if is(index) {
                    if local & lflag::NOFLSH == 0 {
                        self.flush_input();
                        self.flush_output();
                    }
                    self.echo(byte);
                    return Some(signal);
                }
            }
        }
        if !self.canonical() {
            self.insert(byte);
            return None;
        }
        let extended = local & lflag::IEXTEN != 0;
        if is(cc::VERASE) {
            self.erase();
        } else if is(cc::VWERASE) && extended {
            self.erase_word();
        } else if is(cc::VKILL) {
            self.kill(byte);
        } else if is(cc::VLNEXT) && extended {
            self.literal = true;
            if local & lflag::ECHO != 0 && local & lflag::ECHOCTL != 0 {
                self.output.extend(b"^\x08");
            }
        } else if is(cc::VREPRINT) && extended {
            self.echo(byte);
            self.output.extend(b"\r\n");
            for byte in self.editing.clone() {
                self.echo(byte);
            }
        } else if is(cc::VEOF) {
            self.finish(None);
        } else if byte == b'\n' {
            if local & (lflag::ECHO | lflag::ECHONL) != 0 {
                self.put(b'\n');
            }
            self.finish(Some(byte));
        } else if is(cc::VEOL) || is(cc::VEOL2) {
            self.echo(byte);
            self.finish(Some(byte));
        } else {
            self.insert(byte);
        }
        None
    }

    fn finish(&mut self, end: Option<u8>) {
        let mut bytes: VecDeque<u8> = core::mem::take(&mut self.editing).into();
        bytes.extend(end);
        self.lines.push_back(Line { bytes });
    }

    fn insert(&mut self, byte: u8) {
        let full = if self.canonical() { self.editing.len() >= INPUT_MOST - 1 } else { self.raw.len() >= INPUT_MOST };
        if full {
            if self.termios.iflag & iflag::IMAXBEL != 0 {
                self.output.push_back(7);
            }
            return;
        }
        if self.canonical() {
            self.editing.push(byte);
        } else {
            self.raw.push_back(byte);
        }
        self.echo(byte);
    }

    /// Shows a typed byte, if echo is on.
    fn echo(&mut self, byte: u8) {
        let local = self.termios.lflag;
        if local & lflag::ECHO == 0 {
            return;
        }
        if local & lflag::ECHOCTL != 0 && (byte < 32 && byte != b'\t' && byte != b'\n' || byte == 127) {
            self.output.push_back(b'^');
            self.output.push_back(byte ^ 0x40);
            self.column += 2;
        } else {
            self.put(byte);
        }
    }

    /// Columns a byte of the edited line takes on the screen.
    fn width(&self, byte: u8) -> usize {
        match byte {
            b'\t' => 8,
            0..32 | 127 if self.termios.lflag & lflag::ECHOCTL != 0 => 2,
            // A continuation byte of UTF-8 shares its character's column.
            0x80..0xc0 if self.termios.iflag & iflag::IUTF8 != 0 => 0,
            _ => 1,
        }
    }

    fn wipe(&mut self, columns: usize) {
        for _ in 0..columns {
            self.output.extend(b"\x08 \x08");
            self.column = self.column.saturating_sub(1);
        }
    }

    /// Takes the last character of the edited line back.
    fn erase(&mut self) {
        let utf8 = self.termios.iflag & iflag::IUTF8 != 0;
        let echo = self.termios.lflag & lflag::ECHO != 0;
        while let Some(byte) = self.editing.pop() {
            if utf8 && byte & 0xc0 == 0x80 && !self.editing.is_empty() {
                continue;
            }
            if echo {
                if self.termios.lflag & lflag::ECHOE != 0 {
                    let columns = self.width(byte);
                    self.wipe(columns);
                } else {
                    let erase = self.termios.cc[cc::VERASE];
                    self.echo(erase);
                }
            }
            return;
        }
    }

    fn erase_word(&mut self) {
        let mut seen = false;
        while let Some(&byte) = self.editing.last() {
            let word = byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
            if seen && !word {
                return;
            }
            seen |= word;
            self.erase();
        }
    }

    fn kill(&mut self, byte: u8) {
        let local = self.termios.lflag;
        if local & lflag::ECHO != 0 {
            if local & lflag::ECHOKE != 0 && local & lflag::ECHOE != 0 {
                let columns = self.editing.iter().map(|byte| self.width(*byte)).sum();
                self.wipe(columns);
            } else {
                self.echo(byte);
                if local & lflag::ECHOK != 0 {
                    self.put(b'\n');
                }
            }
        }
        self.editing.clear();
    }

    /// Whether the screen takes more.
    pub fn has_output_room(&self) -> bool {
        !self.stopped && self.output.len() < OUTPUT_MOST
    }

    /// One byte from a program to the screen.
    pub fn put(&mut self, byte: u8) {
        let out = self.termios.oflag;
        if out & oflag::OPOST == 0 {
            self.output.push_back(byte);
            return;
        }
        let byte = if out & oflag::OLCUC != 0 { byte.to_ascii_uppercase() } else { byte };
        match byte {
            b'\n' => {
                if out & oflag::ONLCR != 0 {
                    self.output.push_back(b'\r');
                }
                if out & (oflag::ONLCR | oflag::ONLRET) != 0 {
                    self.column = 0;
                }
                self.output.push_back(b'\n');
            }
            b'\r' if out & oflag::ONOCR != 0 && self.column == 0 => {}
            b'\r' => {
                let byte = if out & oflag::OCRNL != 0 { b'\n' } else { b'\r' };
                self.column = 0;
                self.output.push_back(byte);
            }
            b'\t' => {
                let spaces = 8 - self.column % 8;
                self.column += spaces;
                if out & oflag::TABDLY == oflag::XTABS {
                    self.output.extend(core::iter::repeat_n(b' ', spaces));
                } else {
                    self.output.push_back(b'\t');
                }
            }
            8 => {
                self.column = self.column.saturating_sub(1);
                self.output.push_back(8);
            }
            byte => {
                if byte >= 32 && byte & 0xc0 != 0x80 {
                    self.column += 1;
                }
                self.output.push_back(byte);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(tty: &mut Discipline, text: &[u8]) {
        for byte in text {
            assert_eq!(tty.type_byte(*byte), None);
        }
    }

    fn shown(tty: &mut Discipline) -> Vec<u8> {
        tty.output.drain(..).collect()
    }

    #[test]
    fn poll_shows_no_input_where_there_is_none_though_a_read_would_not_wait() {
        let mut tty = Discipline::default();
        tty.termios.lflag &= !lflag::ICANON;
        (tty.termios.cc[cc::VMIN], tty.termios.cc[cc::VTIME]) = (0, 0);
        assert!(!tty.is_ready());
        assert_eq!(tty.read(8), Some(Vec::new()));
        typed(&mut tty, b"a");
        assert!(tty.is_ready());
    }

    #[test]
    fn a_line_is_read_when_it_is_finished() {
        let mut tty = Discipline::default();
        typed(&mut tty, b"ab\x7fc");
        assert_eq!(tty.read(10), None);
        typed(&mut tty, b"\r");
        assert_eq!(tty.read(2), Some(b"ac".to_vec()));
        assert_eq!(tty.read(10), Some(b"\n".to_vec()));
        assert_eq!(shown(&mut tty), b"ab\x08 \x08c\r\n");
    }

    #[test]
    fn end_of_file_ends_a_read_without_bytes() {
        let mut tty = Discipline::default();
        typed(&mut tty, b"x\x04\x04");
        assert_eq!(tty.read(10), Some(b"x".to_vec()));
        assert_eq!(tty.read(10), Some(Vec::new()));
        assert_eq!(tty.read(10), None);
    }

    #[test]
    fn the_interrupt_character_forgets_the_line_and_signals() {
        let mut tty = Discipline::default();
        typed(&mut tty, b"abc");
        assert_eq!(tty.type_byte(3), Some(SIGINT));
        typed(&mut tty, b"d\n");
        assert_eq!(tty.read(10), Some(b"d\n".to_vec()));
    }

    #[test]
    fn what_nobody_reads_or_looks_at_is_bounded() {
        let mut tty = Discipline::default();
        let mut settings = tty.termios;
        settings.lflag |= lflag::NOFLSH;
        tty.set_termios(settings);
        for _ in 0..4 * OUTPUT_MOST {
            assert_eq!(tty.type_byte(3), Some(SIGINT));
        }
        assert!(tty.output.len() <= OUTPUT_MOST + 2);
        shown(&mut tty);
        assert_eq!(tty.type_byte(3), Some(SIGINT));
        assert_eq!(shown(&mut tty), b"^C");
        let ends = (0..4 * INPUT_MOST).take_while(|_| tty.has_input_room() && tty.type_byte(4).is_none()).count();
        assert_eq!(ends, INPUT_MOST);
        assert_eq!(tty.read(10), Some(Vec::new()));
        assert!(tty.has_input_room());
    }

    #[test]
    fn raw_mode_hands_every_byte_on() {
        let mut tty = Discipline::default();
        typed(&mut tty, b"half");
        let mut raw = tty.termios;
        raw.lflag = 0;
        raw.iflag = 0;
        raw.oflag = 0;
        tty.set_termios(raw);
        typed(&mut tty, b"\x03\r");
        assert_eq!(tty.read(10), Some(b"half\x03\r".to_vec()));
        tty.put(b'\n');
        assert_eq!(tty.output.back(), Some(&b'\n'));
    }

    #[test]
    fn words_and_lines_can_be_taken_back() {
        let mut tty = Discipline::default();
        typed(&mut tty, b"one two \x17");
        typed(&mut tty, b"three\n");
        assert_eq!(tty.read(64), Some(b"one three\n".to_vec()));
        typed(&mut tty, b"gone\x15kept\n");
        assert_eq!(tty.read(64), Some(b"kept\n".to_vec()));
    }
}
