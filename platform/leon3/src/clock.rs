//! Time: timer 2 of the GPTIMER runs freely at the processor's 40 MHz, timer 1 is the alarm.

use core::ptr::{read_volatile, write_volatile};

use janua_port::{Clock, Nanos};

use crate::lock::Mutex;

/// The page that holds the timers' registers, and those of the interrupt controller and the serial line.
pub const DEVICES: usize = 0x8000_0000;
const TIMER: usize = DEVICES + 0x300;
const SCALER: usize = TIMER;
const SCALER_RELOAD: usize = TIMER + 4;
const ALARM: usize = TIMER + 0x10;
const RUNNING: usize = TIMER + 0x20;
/// Of each timer, from its counter on.
const RELOAD: usize = 4;
const CONTROL: usize = 8;
/// Bits of a control register.
const ENABLE: u32 = 1;
const RESTART: u32 = 2;
const LOAD: u32 = 4;
const INTERRUPT: u32 = 8;

const INTERRUPTS: usize = DEVICES + 0x200;
const CLEAR: usize = INTERRUPTS + 0xc;
const MASK: usize = INTERRUPTS + 0x40;
/// The interrupt of timer 1.
pub const LEVEL: u32 = 6;

/// Nanoseconds of a tick.
pub const TICK: Nanos = 25;
/// The alarm comes at least this often: the running timer goes round after 107 seconds.
const MOST: Nanos = 60_000_000_000;

struct Seen {
    ticks: u64,
    /// The running timer, which counts down, as of `ticks`.
    counter: u32,
}

static SEEN: Mutex<Seen> = Mutex::new(Seen { ticks: 0, counter: u32::MAX });

fn write(register: usize, value: u32) {
    // SAFETY: a register of the timer or of the interrupt controller; the alarm's interrupt has a handler.
    unsafe { write_volatile(register as *mut u32, value) };
}

/// Starts the clock.
pub fn init() {
    write(SCALER_RELOAD, 0);
    write(SCALER, 0);
    write(RUNNING + RELOAD, u32::MAX);
    write(RUNNING + CONTROL, ENABLE | RESTART | LOAD);
    write(MASK, 1 << LEVEL);
    arm(None);
}

/// The running timer's counter: counts down, 40 a microsecond.
pub fn counter() -> u32 {
    // SAFETY: reading the register changes nothing.
    unsafe { read_volatile(RUNNING as *const u32) }
}

/// Nanoseconds since the start.
pub fn now() -> Nanos {
    let mut seen = SEEN.lock();
    let counter = counter();
    seen.ticks += u64::from(seen.counter.wrapping_sub(counter));
    seen.counter = counter;
    seen.ticks * TICK
}

/// Sets the alarm.
pub fn arm(after: Option<Nanos>) {
    let ticks = (after.unwrap_or(MOST).min(MOST) / TICK).max(1) as u32;
    write(ALARM + CONTROL, 0);
    write(ALARM + RELOAD, ticks);
    write(ALARM + CONTROL, ENABLE | LOAD | INTERRUPT);
}

/// The alarm has been heard.
pub fn heard() {
    write(ALARM + CONTROL, 0);
    write(CLEAR, 1 << LEVEL);
}

/// The machine's clock. It does not know the date: real time counts from its start.
pub struct Ticks;

impl Clock for Ticks {
    fn monotonic(&self) -> Nanos {
        now()
    }
    fn realtime(&self) -> Nanos {
        now()
    }
}
