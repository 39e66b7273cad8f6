//! Signals have numbers of gdb's own in its protocol (gdb/include/gdb/signals.def).

/// gdb's numbers of the signals 1 to 31 (x86).
const GDB: [u8; 32] = [
    0, 1, 2, 3, 4, 5, 6, 10, 8, 9, 30, 11, 31, 13, 14, 15, UNKNOWN, 20, 19, 17, 18, 21, 22, 16, 24, 25, 26, 27, 28, 23, 32, 12,
];
/// One that gdb has no number for.
const UNKNOWN: u8 = 143;

pub fn to_gdb(signal: u32) -> u8 {
    match signal {
        0..32 => GDB[signal as usize],
        32 => 77,
        33..64 => (signal - 33 + 45) as u8,
        64 => 78,
        _ => UNKNOWN,
    }
}

/// `None` for one that there is not.
pub fn from_gdb(number: u8) -> Option<u32> {
    match number {
        45..=75 => Some(u32::from(number) - 45 + 33),
        77 => Some(32),
        78 => Some(64),
        UNKNOWN => None,
        number => GDB.iter().position(|known| *known == number).map(|signal| signal as u32),
    }
}

/// Some signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Set(u64);

impl Set {
    pub fn has(self, signal: u32) -> bool {
        (1..=64).contains(&signal) && self.0 >> (signal - 1) & 1 != 0
    }
}

impl FromIterator<u32> for Set {
    fn from_iter<I: IntoIterator<Item = u32>>(signals: I) -> Set {
        Set(signals.into_iter().filter(|signal| (1..=64).contains(signal)).fold(0, |set, signal| set | 1 << (signal - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_both_ways() {
        for signal in (0..=64).filter(|signal| *signal != 16) {
            assert_eq!(from_gdb(to_gdb(signal)), Some(signal), "{signal}");
        }
        assert_eq!([7, 10, 17, 19, 23, 34, 64].map(to_gdb), [10, 30, 20, 17, 16, 46, 78]);
        assert_eq!([7, 143, 255].map(from_gdb), [None; 3]);
    }
}
