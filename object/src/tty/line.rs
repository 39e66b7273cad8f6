//! The terminal at the other end of a line of bytes (a serial port): keyboard and screen are there, the discipline is here.

use alloc::sync::Arc;

use janua_abi::linux::poll::event;
use janua_abi::linux::termios::{Winsize, request};
use janua_abi::linux::{Errno, Result};
use janua_port::host::HostReady;
use janua_port::{Host, HostFd};
use janua_rt::Mutex;
use zerocopy::IntoBytes;

use super::GroupSignals;
use super::host::CONSOLE;
use super::pts::Pairs;
use super::pty::{Pty, Screen};
use crate::vfs::Attr;

/// Bytes taken off the line at a time.
const PIECE: usize = 256;

/// A line and the terminal on it.
pub struct Line {
    wire: Arc<Wire>,
    pub terminal: Arc<Pty>,
}

struct Wire {
    host: &'static dyn Host,
    /// `None` once the line has been closed: the number may be another's by then.
    fd: Mutex<Option<HostFd>>,
    something: Arc<dyn Fn() + Send + Sync>,
}

impl Screen for Wire {
    fn show(&self, bytes: &[u8]) -> usize {
        let fd = self.fd.lock();
        let Some(fd) = *fd else { return bytes.len() };
        let mut left = bytes;
        while !left.is_empty() {
            match self.host.write(fd, left, None) {
                Ok(n) if n > 0 => left = &left[n.min(left.len())..],
                Err(Errno::EAGAIN) => return bytes.len() - left.len(),
                // Nobody is at the other end.
                _ => break,
            }
        }
        bytes.len()
    }
    fn input_taken(&self) {
        (self.something)();
    }
}

/// Notified when something happens at the other end; it is looked at in [`Line::pump`], by a thread that may wait for locks.
struct Notify(Arc<dyn Fn() + Send + Sync>);

impl HostReady for Notify {
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
        let wire = Arc::new(Wire { host, fd: Mutex::new(Some(fd)), something: something.clone() });
        let terminal = Pty::at_screen(None, CONSOLE, "/dev/console", wire.clone(), attr, signals);
        host.watch(fd, Arc::new(Notify(something)))?;
        let line = Line { wire, terminal };
        line.pump();
        Ok(line)
    }

    /// The same as one of the kernel's pseudoterminals, a user's, until [`Line::close`]. The descriptor is closed if it cannot be made.
    pub fn among(
        pairs: &Pairs,
        host: &'static dyn Host,
        fd: HostFd,
        attr: Attr,
        something: Arc<dyn Fn() + Send + Sync>,
    ) -> Result<Line> {
        let wire = Arc::new(Wire { host, fd: Mutex::new(Some(fd)), something: something.clone() });
        let made = pairs.at_screen(wire.clone(), attr).and_then(|terminal| {
            host.watch(fd, Arc::new(Notify(something))).inspect_err(|_| pairs.free(terminal.number))?;
            Ok(terminal)
        });
        match made {
            Ok(terminal) => Ok(Line { wire, terminal }),
            Err(errno) => {
                host.close(fd);
                Err(errno)
            }
        }
    }

    /// The end of a line [`among`](Line::among) others: readers find the end, the session is notified, nothing goes out any more.
    pub fn close(&self, pairs: &Pairs) {
        self.terminal.unplug();
        pairs.free(self.terminal.number);
        if let Some(fd) = self.wire.fd.lock().take() {
            self.wire.host.unwatch(fd);
            self.wire.host.close(fd);
        }
    }

    /// Hands on what has come: the window's size, bytes from the keyboard, the end of the line. False once that has come.
    pub fn pump(&self) -> bool {
        let Some(fd) = *self.wire.fd.lock() else { return false };
        let host = self.wire.host;
        let mut size = Winsize::default();
        if host.ioctl(fd, request::TIOCGWINSZ, size.as_mut_bytes()).is_ok() && size != Winsize::default() {
            self.terminal.set_size(size);
        }
        let mut bytes = [0; PIECE];
        while host.poll(fd, event::IN) & event::IN != 0 {
            let room = self.terminal.input_room().min(PIECE);
            if room == 0 {
                break;
            }
            match host.read(fd, &mut bytes[..room], None) {
                Ok(0) | Err(_) => {
                    host.unwatch(fd);
                    self.terminal.unplug();
                    return false;
                }
                Ok(n) => drop(self.terminal.type_bytes(&bytes[..n])),
            }
        }
        true
    }
}
