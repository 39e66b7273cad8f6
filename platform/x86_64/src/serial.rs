//! The first serial port (16550): what programs read and write; and QEMU's debug port, the kernel's own voice.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use janua_port::host::HostReady;

use crate::cpu::{inb, outb};
use crate::lock::Mutex;

const PORT: u16 = 0x3f8;
const INTERRUPTS: u16 = PORT + 1;
const FIFO: u16 = PORT + 2;
const LINE: u16 = PORT + 3;
const MODEM: u16 = PORT + 4;
const STATUS: u16 = PORT + 5;

const RECEIVED: u8 = 1;
const CAN_SEND: u8 = 1 << 5;

/// QEMU's isa-debugcon: reads as its own number where it exists.
const DEBUG_PORT: u16 = 0xe9;

/// Bytes kept for readers; what comes when there are more is lost, as on any serial line.
const INPUT_MOST: usize = 64 * 1024;

/// What was received and not read, and who waits for more.
struct Input {
    bytes: VecDeque<u8>,
    watchers: alloc::vec::Vec<(i32, Arc<dyn HostReady>)>,
}

static INPUT: Mutex<Input> = Mutex::new(Input { bytes: VecDeque::new(), watchers: alloc::vec::Vec::new() });

/// Sets the port up: 115200 baud, 8 bits, FIFOs, an interrupt when something was received.
pub fn init() {
    // SAFETY: the standard port's registers, at start.
    unsafe {
        outb(INTERRUPTS, 0);
        outb(LINE, 0x80);
        outb(PORT, 1);
        outb(INTERRUPTS, 0);
        outb(LINE, 0x03);
        outb(FIFO, 0x07);
        outb(MODEM, 0x0b);
        outb(INTERRUPTS, 1);
    }
}

/// Writes bytes to the line.
pub fn write(bytes: &[u8]) {
    for byte in bytes {
        // SAFETY: the standard port's registers; a port that never gets ready is given up after a while.
        unsafe {
            for _ in 0..100_000 {
                if inb(STATUS) & CAN_SEND != 0 {
                    break;
                }
            }
            outb(PORT, *byte);
        }
    }
}

/// Writes the kernel's own messages: to the debug port where there is one, otherwise to the line.
pub fn say(bytes: &[u8]) {
    // SAFETY: reading the debug port has no effect, nor has a port that does not exist.
    if unsafe { inb(DEBUG_PORT) } as u16 == DEBUG_PORT {
        for byte in bytes {
            // SAFETY: QEMU's debug port, as just found.
            unsafe { outb(DEBUG_PORT, *byte) };
        }
    } else {
        write(bytes);
    }
}

/// Takes what the port has received. Called at its interrupt.
pub fn on_interrupt() {
    let mut woken = alloc::vec::Vec::new();
    {
        let mut input = INPUT.lock();
        // SAFETY: the standard port's registers.
        while unsafe { inb(STATUS) } & RECEIVED != 0 {
            // SAFETY: as above; the status says that there is a byte.
            let byte = unsafe { inb(PORT) };
            if input.bytes.len() < INPUT_MOST {
                input.bytes.push_back(byte);
            }
        }
        woken.extend(input.watchers.iter().map(|(_, watcher)| watcher.clone()));
    }
    const POLLIN: u32 = 1;
    for watcher in woken {
        watcher.ready(POLLIN);
    }
}

/// Takes received bytes: how many.
pub fn read(out: &mut [u8]) -> usize {
    let mut input = INPUT.lock();
    let len = out.len().min(input.bytes.len());
    for (slot, byte) in out.iter_mut().zip(input.bytes.drain(..len)) {
        *slot = byte;
    }
    len
}

/// Bytes received and not read.
pub fn pending() -> usize {
    INPUT.lock().bytes.len()
}

/// Tells `target` when bytes come; `false` when the descriptor has one to be told already.
pub fn watch(fd: i32, target: Arc<dyn HostReady>) -> bool {
    let mut input = INPUT.lock();
    if input.watchers.iter().any(|(known, _)| *known == fd) {
        return false;
    }
    input.watchers.push((fd, target));
    true
}

pub fn unwatch(fd: i32) {
    let mut gone = alloc::vec::Vec::new();
    {
        let mut input = INPUT.lock();
        let (out, kept) = core::mem::take(&mut input.watchers).into_iter().partition(|(known, _)| *known == fd);
        gone.extend::<alloc::vec::Vec<_>>(out);
        input.watchers = kept;
    }
    // Dropped with the lock free: it may be the last reference.
    drop(gone);
}
