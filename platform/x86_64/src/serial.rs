//! The first serial port (16550): what programs read and write; and QEMU's debug port, the kernel's own voice.
//!
//! What comes in is in the language of telnet (RFC 854), so that the other side can send more than bytes: the end of its input
//! (RFC 1184, EOF) and the size of its window (RFC 1073, NAWS). A byte 255 comes twice.

//!
//! The interrupt takes bytes off the port and wakes a thread ([`serve`]), which notifies who waits for them: that may mean to wait for a
//! lock of the kernel's, and an interrupt handler cannot wait.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use janua_platform_bare::outside::telnet;
use janua_port::host::HostReady;

use crate::cpu::{inb, outb};
use crate::lock::Mutex;
use crate::sched;
use crate::tiles::{self, Voice};

const PORT: u16 = 0x3f8;
const INTERRUPTS: u16 = PORT + 1;
const FIFO: u16 = PORT + 2;
const LINE: u16 = PORT + 3;
const MODEM: u16 = PORT + 4;
const STATUS: u16 = PORT + 5;

const RECEIVED: u8 = 1;
/// The sender's queue is empty: it has room for [`QUEUE`] bytes.
const CAN_SEND: u8 = 1 << 5;
const QUEUE: usize = 16;
/// Both queues on and empty; an interrupt when 14 bytes have come, or when some have come and no more for the time of four.
const QUEUES_ON: u8 = 0xc7;

/// QEMU's isa-debugcon: reads as its own number where it exists.
const DEBUG_PORT: u16 = 0xe9;

/// Bytes kept for readers. When there are more they stay in the port, and QEMU waits; on a wire they would be lost.
const INPUT_MOST: usize = 64 * 1024;

/// What was received and not read, and who waits for more.
struct Input {
    bytes: VecDeque<u8>,
    decoder: Decoder,
    /// No more will come.
    ended: bool,
    /// Columns and rows of the other side's window; 0 where it has not reported them.
    window: (u16, u16),
    /// The port is left alone until somebody reads.
    held: bool,
    watchers: Vec<(i32, Arc<dyn HostReady>)>,
}

static INPUT: Mutex<Input> = Mutex::new(Input {
    bytes: VecDeque::new(),
    decoder: Decoder::Data,
    ended: false,
    window: (0, 0),
    held: false,
    watchers: Vec::new(),
});

/// Held while bytes are written, so that what two cores write is not mixed byte by byte.
static OUTPUT: Mutex<()> = Mutex::new(());
/// Changes when bytes have come of which no reader has been notified.
static CAME: AtomicU32 = AtomicU32::new(0);

/// Where in the other side's words the line is.
enum Decoder {
    Data,
    /// Behind IAC.
    Command,
    /// Behind WILL, WONT, DO or DONT: an option follows. None gets a reply.
    Option,
    /// In a subnegotiation: what has come of it, at most five bytes; whether IAC came last.
    Sub {
        bytes: [u8; 5],
        len: usize,
        escaped: bool,
    },
}

impl Input {
    /// Takes one byte off the line.
    fn take(&mut self, byte: u8) {
        use telnet::*;
        self.decoder = match core::mem::replace(&mut self.decoder, Decoder::Data) {
            Decoder::Data if byte == IAC => Decoder::Command,
            Decoder::Data => {
                self.bytes.push_back(byte);
                Decoder::Data
            }
            Decoder::Command => match byte {
                IAC => {
                    self.bytes.push_back(byte);
                    Decoder::Data
                }
                EOF => {
                    self.ended = true;
                    Decoder::Data
                }
                SB => Decoder::Sub { bytes: [0; 5], len: 0, escaped: false },
                WILL..=DONT => Decoder::Option,
                _ => Decoder::Data,
            },
            Decoder::Option => Decoder::Data,
            Decoder::Sub { bytes, len, escaped: false } if byte == IAC => Decoder::Sub { bytes, len, escaped: true },
            Decoder::Sub { bytes, len, escaped: true } if byte != IAC => {
                if let ([NAWS, a, b, c, d], 5, SE) = (bytes, len, byte) {
                    self.window = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
                }
                Decoder::Data
            }
            Decoder::Sub { mut bytes, len, .. } => {
                if let Some(slot) = bytes.get_mut(len) {
                    *slot = byte;
                }
                Decoder::Sub { bytes, len: (len + 1).min(6), escaped: false }
            }
        };
    }

    /// Takes what the port holds, as long as there is room.
    fn drain(&mut self) {
        // SAFETY: the standard port's registers.
        while self.bytes.len() < INPUT_MOST && unsafe { inb(STATUS) } & RECEIVED != 0 {
            // SAFETY: as above; the status shows that there is a byte.
            let byte = unsafe { inb(PORT) };
            self.take(byte);
        }
        let full = self.bytes.len() >= INPUT_MOST;
        if full != self.held {
            self.held = full;
            // SAFETY: the standard port's registers: an interrupt when something was received, or none.
            unsafe { outb(INTERRUPTS, u8::from(!full)) };
        }
    }
}

/// Sets the port up: 115200 baud, 8 bits, FIFOs.
pub fn init() {
    // SAFETY: the standard port's registers, at start.
    unsafe {
        outb(INTERRUPTS, 0);
        outb(LINE, 0x80);
        outb(PORT, 1);
        outb(INTERRUPTS, 0);
        outb(LINE, 0x03);
        outb(FIFO, QUEUES_ON);
        outb(MODEM, 0x0b);
    }
}

/// No input ever comes: the port is another tile's.
pub fn has_no_input() {
    INPUT.lock().ended = true;
}

/// Takes input from now on; interrupts are routed.
pub fn listen() {
    // SAFETY: the standard port's registers. With the interrupt enabled now, what is there already raises one.
    unsafe { outb(INTERRUPTS, 1) };
    if has_debug_port() {
        // What came before now may be lost: the program that started the machine waits for this.
        say(LISTENS);
    }
}

/// A line on the debug port: the serial line takes input.
const LISTENS: &[u8] = b"janua-listens\n";

/// Whether QEMU's debug port is there.
fn has_debug_port() -> bool {
    // SAFETY: reading the debug port has no effect, nor has a port that does not exist.
    unsafe { inb(DEBUG_PORT) as u16 == DEBUG_PORT }
}

/// Writes bytes to the line, in one piece. The port is the first tile's: others have it write.
pub fn write(bytes: &[u8]) {
    if tiles::own() != 0 {
        return tiles::write(Voice::Program, bytes);
    }
    let _output = OUTPUT.lock();
    send(bytes);
}

/// Writes bytes to the line as they are.
fn send(bytes: &[u8]) {
    for queue in bytes.chunks(QUEUE) {
        // SAFETY: the standard port's registers; a port that never gets ready is given up after a while.
        unsafe {
            for _ in 0..100_000 {
                if inb(STATUS) & CAN_SEND != 0 {
                    break;
                }
            }
            for byte in queue {
                outb(PORT, *byte);
            }
        }
    }
}

/// Writes the kernel's own messages: to the debug port where there is one, otherwise to the line. Takes no lock: a core that was
/// stopped may hold it. On other tiles than the first as [`write()`].
pub fn say(bytes: &[u8]) {
    if tiles::own() != 0 {
        return tiles::write(Voice::Kernel, bytes);
    }
    if has_debug_port() {
        for byte in bytes {
            // SAFETY: QEMU's debug port, as just found.
            unsafe { outb(DEBUG_PORT, *byte) };
        }
    } else {
        send(bytes);
    }
}

/// Takes what the port has received. Called at its interrupt.
pub fn on_interrupt() {
    INPUT.lock().drain();
    CAME.fetch_add(1, Ordering::SeqCst);
    sched::unpark(&CAME, 1);
}

/// The kernel thread that notifies who waits for input.
pub fn serve() {
    const POLLIN: u32 = 1;
    loop {
        let seen = CAME.load(Ordering::SeqCst);
        let watchers: Vec<Arc<dyn HostReady>> = INPUT.lock().watchers.iter().map(|(_, watcher)| watcher.clone()).collect();
        for watcher in watchers {
            watcher.ready(POLLIN);
        }
        sched::park(&CAME, seen, None);
    }
}

/// Takes received bytes: how many. 0 where nothing is left to wait for, too.
pub fn read(out: &mut [u8]) -> usize {
    let mut input = INPUT.lock();
    let len = out.len().min(input.bytes.len());
    for (slot, byte) in out.iter_mut().zip(input.bytes.drain(..len)) {
        *slot = byte;
    }
    if input.held {
        input.drain();
    }
    len
}

/// Whether the other side has reported that no more will come.
pub fn ended() -> bool {
    INPUT.lock().ended
}

/// Columns and rows of the other side's window; 0 where it has not reported them.
pub fn window() -> (u16, u16) {
    INPUT.lock().window
}

/// Bytes received and not read.
pub fn pending() -> usize {
    INPUT.lock().bytes.len()
}

/// Notifies `target` when bytes come; `false` when the descriptor has a target already.
pub fn watch(fd: i32, target: Arc<dyn HostReady>) -> bool {
    let mut input = INPUT.lock();
    if input.watchers.iter().any(|(known, _)| *known == fd) {
        return false;
    }
    input.watchers.push((fd, target));
    true
}

pub fn unwatch(fd: i32) {
    let mut gone = Vec::new();
    {
        let mut input = INPUT.lock();
        let (out, kept) = core::mem::take(&mut input.watchers).into_iter().partition(|(known, _)| *known == fd);
        gone.extend::<Vec<_>>(out);
        input.watchers = kept;
    }
    // Dropped with the lock free: it may be the last reference.
    drop(gone);
}
