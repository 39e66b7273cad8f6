//! How the time of a machine's cores is cut: what the command that boots it and its scheduler have agreed on.

use core::fmt;
use core::ops::RangeInclusive;

use janua_port::Nanos;

/// How the cores' time is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Slicing {
    /// The timer comes at the end of a budget or when a sleeper is due, whichever is earlier.
    #[default]
    Tickless,
    /// It comes every so many nanoseconds, and nothing is looked at in between: neither sleepers nor, among best-effort threads, whose turn it is. So
    /// have it multikernels whose scheduler is driven by a periodic tick.
    Ticks(Nanos),
}

impl Slicing {
    /// The word of the kernel's command line that chooses it.
    pub const WORD: &'static str = "slice=";
    /// How long a slice can be set to be.
    pub const LENGTHS: RangeInclusive<Nanos> = 100_000..=10_000_000_000;

    /// Slices of a length, or why there are none.
    pub fn of(length: Nanos) -> Result<Slicing, &'static str> {
        if Slicing::LENGTHS.contains(&length) { Ok(Slicing::Ticks(length)) } else { Err("slices are of 100us to 10s") }
    }

    /// What [`Slicing::WORD`] is followed by.
    pub fn from_word(word: &[u8]) -> Option<Slicing> {
        if word == b"tickless" {
            return Some(Slicing::Tickless);
        }
        let length = core::str::from_utf8(word).ok()?.parse().ok()?;
        Slicing::of(length).ok()
    }
}

impl fmt::Display for Slicing {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slicing::Tickless => to.write_str("tickless"),
            Slicing::Ticks(length) => write!(to, "{length}"),
        }
    }
}

/// As it is typed: `tickless`, or a length in us, ms or s.
impl core::str::FromStr for Slicing {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Slicing, &'static str> {
        if text == "tickless" {
            return Ok(Slicing::Tickless);
        }
        let digits = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
        let unit: Nanos = match &text[digits.len()..] {
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            _ => return Err("neither `tickless` nor a length in us, ms or s, as 80ms"),
        };
        let number: Nanos = digits.parse().map_err(|_| "neither `tickless` nor a whole number of us, ms or s, as 80ms")?;
        Slicing::of(number.saturating_mul(unit))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString;

    use super::*;

    #[test]
    fn what_is_typed_arrives() {
        for (typed, means) in
            [("tickless", Slicing::Tickless), ("80ms", Slicing::Ticks(80_000_000)), ("100us", Slicing::Ticks(100_000))]
        {
            assert_eq!(typed.parse(), Ok(means));
            assert_eq!(Slicing::from_word(means.to_string().as_bytes()), Some(means));
        }
        for wrong in [
            "",
            "80",
            "ms",
            "-1ms",
            "0ms",
            "99us",
            "11s",
            "1.5ms",
            "99999999999999999999s",
            "20000000000s",
            "tick",
            "1 ms",
            "1min",
        ] {
            assert!(wrong.parse::<Slicing>().is_err(), "{wrong}");
        }
        for wrong in [&b""[..], b"1", b"80ms", b"99999", b"\xff", b"99999999999999999999999"] {
            assert_eq!(Slicing::from_word(wrong), None);
        }
    }
}
