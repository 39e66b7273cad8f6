//! Debug registers, as a tracer sets them by PTRACE_POKEUSER for hardware breakpoints and watchpoints.
//!
//! The processor's own would also stop the kernel, which is in the same process. So a thread whose tracer has enabled one goes on
//! instruction by instruction, and is stopped when one has changed what it watches, or has led to a breakpoint. A store that changes
//! nothing goes unnoticed, and reads cannot be watched.

use janua_abi::linux::{Errno, Result};

use crate::Thread;

/// Bits of the status register that read as set: the others are kept with this polarity.
const RESERVED: u64 = 0xffff_0ff0;
/// In the status register: a single step has ended.
const STEP: u64 = 1 << 14;
/// Behind the last address a program can have.
const ADDRESSES: u64 = 1 << 47;
const COUNT: usize = 4;

/// The registers of a tracee.
#[derive(Clone, Copy, Debug, Default)]
pub struct DebugRegisters {
    places: [u64; COUNT],
    status: u64,
    control: u64,
}

/// What one of them asks for.
#[derive(Clone, Copy, Debug)]
enum Point {
    Execute,
    /// A change of so many bytes.
    Write(usize),
}

impl DebugRegisters {
    pub fn get(&self, number: usize) -> u64 {
        match number {
            0..COUNT => self.places[number],
            6 => self.status ^ RESERVED,
            7 => self.control,
            _ => 0,
        }
    }

    /// EIO for a register there is not, EINVAL for an address or a kind that cannot be.
    pub fn set(&mut self, number: usize, value: u64) -> Result<()> {
        let mut new = *self;
        match number {
            0..COUNT => new.places[number] = value,
            6 => new.status = value ^ RESERVED,
            7 => new.control = value,
            _ => return Err(Errno::EIO),
        }
        for (place, point) in new.places.iter().zip(new.points()) {
            let len = match point? {
                Some(Point::Write(len)) => len as u64,
                _ => 1,
            };
            if *place >= ADDRESSES || place & (len - 1) != 0 {
                return Err(Errno::EINVAL);
            }
        }
        *self = new;
        Ok(())
    }

    /// What each asks for; `None` if it is not enabled, EINVAL for what there is not.
    fn points(self) -> impl Iterator<Item = Result<Option<Point>>> {
        const WRITE: u64 = 1;
        (0..COUNT).map(move |at| {
            let enabled = self.control >> (2 * at) & 3 != 0;
            let (kind, len) = (self.control >> (16 + 4 * at) & 3, self.control >> (18 + 4 * at) & 3);
            match (enabled, kind, len) {
                (false, ..) => Ok(None),
                (true, 0, 0) => Ok(Some(Point::Execute)),
                (true, WRITE, len) => Ok(Some(Point::Write([1, 2, 8, 4][len as usize]))),
                _ => Err(Errno::EINVAL),
            }
        })
    }

    /// Notes why the thread has trapped: the watched places in `hits`, one bit each, and whether it was to make a single step.
    pub fn trapped(&mut self, hits: u64, step: bool) {
        self.status = hits | if step { STEP } else { 0 };
    }

    /// What the calling thread is to look at after each instruction, if any is enabled.
    pub fn watch(&self, thread: &Thread) -> Option<Watch> {
        let mut points = [None; COUNT];
        for (point, found) in points.iter_mut().zip(self.points()) {
            *point = found.ok().flatten();
        }
        if points.iter().all(Option::is_none) {
            return None;
        }
        let mut watch = Watch { places: self.places, points, values: [0; COUNT] };
        watch.look(thread, 0);
        Some(watch)
    }
}

/// What a thread watches in its own memory.
pub struct Watch {
    places: [u64; COUNT],
    points: [Option<Point>; COUNT],
    /// What was there at the last look.
    values: [u64; COUNT],
}

impl Watch {
    /// Looks again: a bit for each place that has changed, or that `pc` is.
    pub fn look(&mut self, thread: &Thread, pc: u64) -> u64 {
        let mut hits = 0;
        for at in 0..COUNT {
            let hit = match self.points[at] {
                None => false,
                Some(Point::Execute) => pc == self.places[at],
                Some(Point::Write(len)) => {
                    let mut bytes = [0; 8];
                    // What is not mapped counts as zeros.
                    let _ = thread.user().copy_in_partial(&mut bytes[..len], self.places[at] as usize);
                    let value = u64::from_ne_bytes(bytes);
                    core::mem::replace(&mut self.values[at], value) != value
                }
            };
            hits |= u64::from(hit) << at;
        }
        hits
    }
}
