//! Breakpoints and watchpoints: what is in a process' memory, and in the debug registers of its threads.

use std::collections::BTreeMap;

use crate::host;

/// `int3`.
const BREAK: u8 = 0xcc;
/// Addresses a processor compares at a time.
const DEBUG_REGISTERS: usize = 4;
const STATUS: usize = 6;
const CONTROL: usize = 7;
/// As gdb may choose how many to have.
const MOST: usize = 16 << 10;

/// What one address space has in its memory: the byte below each breakpoint.
#[derive(Clone, Default)]
pub struct Breakpoints(BTreeMap<u64, u8>);

impl Breakpoints {
    pub fn has(&self, address: u64) -> bool {
        self.0.contains_key(&address)
    }

    /// Inserts one by way of a process that has the space. False when it cannot be there.
    pub fn insert(&mut self, pid: u32, address: u64) -> bool {
        if self.has(address) {
            return true;
        }
        let mut below = [0];
        let room = self.0.len() < MOST && host::read_memory(pid, address, &mut below).is_ok_and(|count| count == 1);
        if !room || host::write_memory(pid, address, &[BREAK]).is_err() {
            return false;
        }
        self.0.insert(address, below[0]);
        true
    }

    /// Takes one out. True as well where the memory is gone, or holds something else by now.
    pub fn remove(&mut self, pid: u32, address: u64) -> bool {
        let Some(below) = self.0.remove(&address) else { return false };
        let mut now = [0];
        if host::read_memory(pid, address, &mut now).is_ok_and(|count| count == 1) && now[0] == BREAK {
            let _ = host::write_memory(pid, address, &[below]);
        }
        true
    }

    pub fn remove_all(&mut self, pid: u32) {
        for address in self.0.keys().copied().collect::<Vec<_>>() {
            self.remove(pid, address);
        }
    }

    /// Memory that has been read from `start` on, as it is without them.
    pub fn hide(&self, start: u64, bytes: &mut [u8]) {
        for (address, below) in self.0.range(start..start.saturating_add(bytes.len() as u64)) {
            bytes[(address - start) as usize] = *below;
        }
    }

    /// What is to be written from `start` on goes below them: the bytes for the memory itself.
    pub fn keep(&mut self, start: u64, bytes: &[u8]) -> Vec<u8> {
        let mut all = bytes.to_vec();
        for (address, below) in self.0.range_mut(start..start.saturating_add(bytes.len() as u64)) {
            let byte = &mut all[(address - start) as usize];
            *below = core::mem::replace(byte, BREAK);
        }
        all
    }
}

/// An address that debug registers watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hardware {
    /// Its instruction.
    Execute(u64),
    /// Changes of so many bytes.
    Write(u64, usize),
}

impl Hardware {
    pub fn address(self) -> u64 {
        match self {
            Hardware::Execute(address) | Hardware::Write(address, _) => address,
        }
    }

    /// Its four bits in the control register: what for, and how long (Intel SDM 3B, 17.2.4).
    fn bits(self) -> u64 {
        match self {
            Hardware::Execute(_) => 0,
            Hardware::Write(_, 8) => 0b1001,
            Hardware::Write(_, len) => (len as u64 - 1) << 2 | 1,
        }
    }
}

/// What the debug registers of a process' threads hold.
#[derive(Clone, Default)]
pub struct Watched(Vec<Hardware>);

impl Watched {
    /// Adds one. False where it cannot be watched, or where there is no register left.
    pub fn add(&mut self, point: Hardware) -> bool {
        let fits = match point {
            Hardware::Execute(_) => true,
            Hardware::Write(address, len) => matches!(len, 1 | 2 | 4 | 8) && address.is_multiple_of(len as u64),
        };
        if fits && !self.0.contains(&point) && self.0.len() < DEBUG_REGISTERS {
            self.0.push(point);
        }
        self.0.contains(&point)
    }

    pub fn remove(&mut self, point: Hardware) -> bool {
        let before = self.0.len();
        self.0.retain(|other| *other != point);
        self.0.len() < before
    }

    /// Sets the registers of a stopped thread.
    pub fn set(&self, tid: u32) -> bool {
        let mut control = 0;
        // An address may only change while it is not watched.
        let mut done = host::set_debug_register(tid, CONTROL, 0).is_ok();
        for (at, point) in self.0.iter().enumerate() {
            done &= host::set_debug_register(tid, at, point.address()).is_ok();
            control |= 1 << (2 * at) | point.bits() << (16 + 4 * at);
        }
        done && (control == 0 || host::set_debug_register(tid, CONTROL, control).is_ok())
    }

    /// What a thread has stopped for, and takes note of it.
    pub fn hit(&self, tid: u32) -> Option<Hardware> {
        let status = host::debug_register(tid, STATUS).ok()?;
        let at = (0..self.0.len()).find(|at| status >> at & 1 != 0)?;
        let _ = host::set_debug_register(tid, STATUS, 0);
        Some(self.0[at])
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_looks_as_without_breakpoints() {
        let mut points = Breakpoints(BTreeMap::from([(0x1001, 0x90)]));
        let mut bytes = [0x55, BREAK, 0xc3];
        points.hide(0x1000, &mut bytes);
        assert_eq!(bytes, [0x55, 0x90, 0xc3]);
        assert_eq!(points.keep(0x1001, &[0x91, 0x92]), [BREAK, 0x92]);
        points.hide(0x1000, &mut bytes);
        assert_eq!(bytes, [0x55, 0x91, 0xc3]);
    }

    #[test]
    fn four_places_are_watched() {
        let mut watched = Watched::default();
        assert!(!watched.add(Hardware::Write(1, 2)) && !watched.add(Hardware::Write(0, 3)));
        for address in 0..4 {
            assert!(watched.add(Hardware::Execute(address)) && watched.add(Hardware::Execute(address)));
        }
        assert!(!watched.add(Hardware::Execute(4)));
        assert!(watched.remove(Hardware::Execute(0)) && !watched.remove(Hardware::Execute(0)));
        assert!(watched.add(Hardware::Write(8, 8)));
        assert_eq!((Hardware::Write(0, 1).bits(), Hardware::Write(0, 4).bits(), Hardware::Write(0, 8).bits()), (1, 13, 9));
    }
}
