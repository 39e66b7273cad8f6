//! Time: the time-stamp counter, and the date from the battery-backed clock at start.

use core::sync::atomic::{AtomicU64, Ordering};

use janua_arch::x86_64::cpu::rdtsc;
use janua_port::{Clock, Nanos};

use crate::apic;
use crate::cpu::{inb, outb};

const SECOND: u64 = 1_000_000_000;

/// The counter's value at start.
static START: AtomicU64 = AtomicU64::new(0);
/// Nanoseconds per count, times 2^32.
static SCALE: AtomicU64 = AtomicU64::new(1 << 32);
/// Nanoseconds since 1970 at start.
static DATE: AtomicU64 = AtomicU64::new(0);

/// Measures the counter and reads the date.
pub fn init() {
    let frequency = apic::calibrate().max(1);
    SCALE.store(((u128::from(SECOND) << 32) / u128::from(frequency)) as u64, Ordering::Relaxed);
    DATE.store(date() * SECOND, Ordering::Relaxed);
    START.store(rdtsc(), Ordering::Relaxed);
}

/// Takes what another tile has measured and read ([`numbers`]): one clock for both.
pub fn set([start, scale, date]: [u64; 3]) {
    START.store(start, Ordering::Relaxed);
    SCALE.store(scale, Ordering::Relaxed);
    DATE.store(date, Ordering::Relaxed);
}

/// The counter's value at start, nanoseconds per count times 2^32, and nanoseconds since 1970 at start.
pub fn numbers() -> [u64; 3] {
    [&START, &SCALE, &DATE].map(|number| number.load(Ordering::Relaxed))
}

/// Nanoseconds since start.
pub fn now() -> Nanos {
    let counts = rdtsc().wrapping_sub(START.load(Ordering::Relaxed));
    ((u128::from(counts) * u128::from(SCALE.load(Ordering::Relaxed))) >> 32) as u64
}

/// Seconds since 1970, from the MC146818's registers; 0 when there is no such clock.
fn date() -> u64 {
    let register = |number: u8| {
        // SAFETY: reads a register of the clock by its index port; other bits of the index keep the NMI as it is.
        unsafe {
            outb(0x70, number);
            inb(0x71)
        }
    };
    const UPDATING: u8 = 0x80;
    let all = || [0u8, 2, 4, 7, 8, 9].map(register);
    let mut looks = 0;
    let fields = loop {
        let fields = all();
        looks += 1;
        if register(10) & UPDATING == 0 && fields == all() {
            break fields;
        }
        if looks > 100_000 {
            return 0;
        }
    };
    if fields == [0xff; 6] {
        return 0;
    }
    const BINARY: u8 = 4;
    const HOURS_24: u8 = 2;
    let status = register(11);
    let plain = |value: u8| u64::from(if status & BINARY != 0 { value } else { (value >> 4) * 10 + (value & 15) });
    let [second, minute, hour, day, month, year] = fields;
    let mut hours = plain(hour & 0x7f);
    if status & HOURS_24 == 0 {
        hours = hours % 12 + if hour & 0x80 != 0 { 12 } else { 0 };
    }
    let (year, month, day) = (2000 + plain(year), plain(month), plain(day));
    // Days since 1970-01-01 of the proleptic Gregorian calendar, the year counted from March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
    ((days * 24 + hours) * 60 + plain(minute)) * 60 + plain(second)
}

/// The machine's clocks.
pub struct BareClock;

impl Clock for BareClock {
    fn monotonic(&self) -> Nanos {
        now()
    }

    fn realtime(&self) -> Nanos {
        DATE.load(Ordering::Relaxed) + now()
    }
}
