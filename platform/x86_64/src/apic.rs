//! The local APIC (end of interrupt, timer) and the I/O APIC (the serial port's line).

use core::sync::atomic::{AtomicU64, Ordering};

use janua_port::Nanos;

use crate::boot::DIRECT;
use crate::cpu::{self, inb, outb};

/// Vectors of interrupts.
pub const TIMER: u8 = 0xef;
pub const SERIAL: u8 = 0xee;
pub const DISK: u8 = 0xed;
/// From another core: look at the queues, or at the running thread's work.
pub const RESCHEDULE: u8 = 0xec;
/// From another core: forget translations ([`crate::shoot`]).
pub const FORGET: u8 = 0xeb;
/// From another tile: look at what it shares with this one.
pub const TILE: u8 = 0xea;
pub const SPURIOUS: u8 = 0xff;

pub const LOCAL: usize = 0xfee0_0000;
const ID: usize = 0x20;
const TASK_PRIORITY: usize = 0x80;
const END: usize = 0xb0;
const SPURIOUS_VECTOR: usize = 0xf0;
const COMMAND: usize = 0x300;
const DESTINATION: usize = 0x310;
const TIMER_ENTRY: usize = 0x320;
const INITIAL: usize = 0x380;
const CURRENT: usize = 0x390;
const DIVIDE: usize = 0x3e0;
const MASKED: u32 = 1 << 16;
const BY_ONE: u32 = 0b1011;

const IO: usize = 0xfec0_0000;
/// microvm's second I/O APIC, and the lines of each.
const SECOND_IO: usize = 0xfec1_0000;
const LINES: u32 = 24;
/// The serial port's line, on every PC and on microvm.
const SERIAL_LINE: u32 = 4;

/// The timer's frequency, Hz.
static FREQUENCY: AtomicU64 = AtomicU64::new(1_000_000_000);

fn local(register: usize) -> *mut u32 {
    (DIRECT + LOCAL + register) as *mut u32
}

fn write(register: usize, value: u32) {
    // SAFETY: the local APIC's registers, mapped uncached.
    unsafe { local(register).write_volatile(value) };
}

fn read(register: usize) -> u32 {
    // SAFETY: as above.
    unsafe { local(register).read_volatile() }
}

fn write_io(io: usize, register: u32, value: u32) {
    // SAFETY: the I/O APIC's index and data registers, mapped uncached.
    unsafe {
        ((DIRECT + io) as *mut u32).write_volatile(register);
        ((DIRECT + io + 0x10) as *mut u32).write_volatile(value);
    }
}

/// Lets a line of the I/O APICs, counted through, interrupt the calling core at the given vector, at its rising edge.
pub fn route(line: u32, vector: u8) {
    let (io, line) = if line < LINES { (IO, line) } else { (SECOND_IO, line - LINES) };
    write_io(io, 0x10 + line * 2 + 1, id() << 24);
    write_io(io, 0x10 + line * 2, u32::from(vector));
}

/// Switches the first core's local APIC on and the old interrupt controllers off, and lets the serial port's line through.
pub fn init() {
    // SAFETY: the old controllers' masks are written where there are some.
    unsafe {
        outb(0x21, 0xff);
        outb(0xa1, 0xff);
    }
    init_local();
    route(SERIAL_LINE, SERIAL);
}

/// Switches the calling core's local APIC on.
pub fn init_local() {
    const ENABLE: u64 = 1 << 11;
    // SAFETY: the register exists on every 64-bit processor; the base stays where it is.
    unsafe { cpu::wrmsr(cpu::MSR_APIC_BASE, cpu::rdmsr(cpu::MSR_APIC_BASE) | ENABLE) };
    write(TASK_PRIORITY, 0);
    write(SPURIOUS_VECTOR, 0x100 | u32::from(SPURIOUS));
    write(DIVIDE, BY_ONE);
    write(TIMER_ENTRY, u32::from(TIMER));
}

/// The number by which interrupts find the calling core.
pub fn id() -> u32 {
    read(ID) >> 24
}

/// Sends a command to another core: vector and kind (Intel SDM 3A, 11.6.1).
fn command(target: u32, what: u32) {
    const PENDING: u32 = 1 << 12;
    while read(COMMAND) & PENDING != 0 {
        core::hint::spin_loop();
    }
    write(DESTINATION, target << 24);
    write(COMMAND, what);
}

/// Sends a core an interrupt.
pub fn send(target: u32, vector: u8) {
    command(target, u32::from(vector));
}

const NMI: u32 = 4 << 8;
const ASSERT: u32 = 1 << 14;

/// Stops another core, whatever it does: an interrupt that cannot be masked.
pub fn send_nmi(target: u32) {
    command(target, ASSERT | NMI);
}

/// Stops all other cores, whatever they do: an interrupt that cannot be masked.
pub fn send_nmi_to_others() {
    const OTHERS: u32 = 3 << 18;
    command(0, OTHERS | ASSERT | NMI);
}

/// Resets a core that sleeps.
pub fn send_init(target: u32) {
    const INIT: u32 = 5 << 8;
    command(target, ASSERT | INIT);
}

/// Makes a core that was reset begin at a page below 1 MiB, in real mode.
pub fn send_start(target: u32, page: u8) {
    const START: u32 = 6 << 8;
    command(target, ASSERT | START | u32::from(page));
}

/// The interrupt is dealt with: the next may come.
pub fn end() {
    write(END, 0);
}

/// The timer's frequency, Hz.
pub fn frequency() -> u64 {
    FREQUENCY.load(Ordering::Relaxed)
}

/// Sets it, where somebody else has measured it.
pub fn set_frequency(frequency: u64) {
    FREQUENCY.store(frequency, Ordering::Relaxed);
}

/// Asks for [`TIMER`] after that many nanoseconds; `None`: not at all.
pub fn arm(after: Option<Nanos>) {
    let ticks = after.map_or(0, |after| {
        let ticks = u128::from(after) * u128::from(frequency()) / 1_000_000_000;
        // Longer waits are woken early and armed again.
        ticks.clamp(1, u32::MAX.into()) as u32
    });
    write(INITIAL, ticks);
}

/// Counts the time-stamp counter and the timer against the interval timer (8254, 1.193182 MHz): the counter's frequency in Hz.
/// A machine without one gets QEMU's figures: both run at 1 GHz.
pub fn calibrate() -> u64 {
    const PIT: u64 = 1_193_182;
    /// About ten milliseconds.
    const TURNS: u16 = 11_932;
    const CONTROL: u16 = 0x43;
    const CHANNEL: u16 = 0x40;
    let count = || {
        // SAFETY: latches and reads channel 0, which nobody else uses.
        unsafe {
            outb(CONTROL, 0);
            u16::from(inb(CHANNEL)) | u16::from(inb(CHANNEL)) << 8
        }
    };
    // SAFETY: channel 0, rate generator, 65536 turns; its interrupt is masked.
    unsafe {
        outb(CONTROL, 0x34);
        outb(CHANNEL, 0);
        outb(CHANNEL, 0);
    }
    write(TIMER_ENTRY, u32::from(TIMER) | MASKED);
    write(INITIAL, u32::MAX);
    let (mut first, mut looks) = (count(), 0u32);
    // It starts to count with the next turn.
    while first == 0 || first == 0xffff {
        looks += 1;
        if looks > 1000 {
            write(INITIAL, 0);
            write(TIMER_ENTRY, u32::from(TIMER));
            return 1_000_000_000;
        }
        first = count();
    }
    let (tsc, timer) = (janua_arch::x86_64::cpu::rdtsc(), read(CURRENT));
    let mut turns = 0;
    while turns < TURNS {
        turns = first.wrapping_sub(count());
    }
    let tsc = janua_arch::x86_64::cpu::rdtsc() - tsc;
    let timer = u64::from(timer - read(CURRENT));
    write(INITIAL, 0);
    write(TIMER_ENTRY, u32::from(TIMER));
    FREQUENCY.store(timer * PIT / u64::from(turns), Ordering::Relaxed);
    tsc * PIT / u64::from(turns)
}
