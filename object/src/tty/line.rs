//! The terminal at the other end of a line of bytes (a serial port): keyboard and screen are there, the discipline is here.

use alloc::sync::Arc;

use janua_abi::linux::Result;
use janua_abi::linux::termios::{Winsize, request};
use janua_port::host::HostReady;
use janua_port::{Host, HostFd};
use zerocopy::IntoBytes;

use super::GroupSignals;
use super::host::CONSOLE;
use super::pty::{Pty, Screen};
use crate::vfs::Attr;

/// poll(2): there is something to read.
const POLLIN: u32 = 1;
/// Bytes taken off the line at a time.
const PIECE: usize = 256;

/// A line and the terminal on it.
pub struct Line {
    host: &'static dyn Host,
    fd: HostFd,
    pub terminal: Arc<Pty>,
}

struct Wire {
    host: &'static dyn Host,
    fd: HostFd,
    something: Arc<dyn Fn() + Send + Sync>,
}

impl Screen for Wire {
    fn show(&self, bytes: &[u8]) {
        let mut left = bytes;
        while !left.is_empty() {
            match self.host.write(self.fd, left, None) {
                Ok(n) if n > 0 => left = &left[n.min(left.len())..],
                // Nobody is at the other end.
                _ => break,
            }
        }
    }
    fn input_taken(&self) {
        (self.something)();
    }
}

/// Told when something happens at the other end; it is looked at in [`Line::pump`], by a thread that may wait for locks.
struct Told(Arc<dyn Fn() + Send + Sync>);

impl HostReady for Told {
    fn ready(&self, _events: u32) {
        (self.0)();
    }
}

impl Line {
    /// The terminal at the line `fd`; `something` is called whenever [`Line::pump`] has something to do.
    pub fn new(
        host: &'static dyn Host,
        fd: HostFd,
        attr: Attr,
        signals: Arc<dyn GroupSignals>,
        something: Arc<dyn Fn() + Send + Sync>,
    ) -> Result<Line> {
        let wire = Arc::new(Wire { host, fd, something: something.clone() });
        let terminal = Pty::at_screen(CONSOLE, "/dev/console", wire, attr, signals);
        host.watch(fd, Arc::new(Told(something)))?;
        let line = Line { host, fd, terminal };
        line.pump();
        Ok(line)
    }

    /// Hands on what has come: the window's size, bytes from the keyboard, the end of the line.
    pub fn pump(&self) {
        let mut size = Winsize::default();
        if self.host.ioctl(self.fd, request::TIOCGWINSZ, size.as_mut_bytes()).is_ok() && size != Winsize::default() {
            self.terminal.set_size(size);
        }
        let mut bytes = [0; PIECE];
        while self.host.poll(self.fd, POLLIN) & POLLIN != 0 {
            let room = self.terminal.input_room().min(PIECE);
            if room == 0 {
                return;
            }
            match self.host.read(self.fd, &mut bytes[..room], None) {
                Ok(0) | Err(_) => {
                    self.host.unwatch(self.fd);
                    return self.terminal.unplug();
                }
                Ok(n) => drop(self.terminal.type_bytes(&bytes[..n])),
            }
        }
    }
}
