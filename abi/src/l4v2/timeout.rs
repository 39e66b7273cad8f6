//! The word of timeouts: four of them, each as 4 to the power of something.

/// How long somebody is willing to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// For good.
    Never,
    /// Not at all, or so many microseconds.
    Micros(u64),
}

impl Timeout {
    /// `mantissa * 4^(15 - exponent)` microseconds; for good with an exponent of 0.
    pub const fn of(exponent: u32, mantissa: u32) -> Timeout {
        if exponent == 0 { Timeout::Never } else { Timeout::Micros((mantissa as u64) << (2 * (15 - exponent))) }
    }

    /// Of page faults: no mantissa, and 15 is not at all.
    const fn of_faults(exponent: u32) -> Timeout {
        if exponent == 15 { Timeout::Micros(0) } else { Timeout::of(exponent, 1) }
    }

    pub const fn is_zero(self) -> bool {
        matches!(self, Timeout::Micros(0))
    }
}

/// A call's timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the partner receives, and until somebody sends.
    pub send: Timeout,
    pub receive: Timeout,
    /// For page faults on the way of a message: of the receiver while this thread sends, of the sender while it receives.
    pub send_faults: Timeout,
    pub receive_faults: Timeout,
}

impl Timeouts {
    /// No time is too long.
    pub const NEVER: Timeouts = Timeouts::of(0);

    /// Those of the word in ecx.
    pub const fn of(word: u32) -> Timeouts {
        Timeouts {
            receive: Timeout::of(word & 0xf, word >> 24),
            send: Timeout::of(word >> 4 & 0xf, word >> 16 & 0xff),
            receive_faults: Timeout::of_faults(word >> 8 & 0xf),
            send_faults: Timeout::of_faults(word >> 12 & 0xf),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_mantissas_and_powers_of_four() {
        assert_eq!(Timeouts::of(0), Timeouts { send: Timeout::Never, ..Timeouts::NEVER });
        assert_eq!(Timeouts::of(122 << 24 | 9).receive, Timeout::Micros(499_712));
        assert_eq!(Timeouts::of(122 << 16 | 9 << 4).send, Timeout::Micros(499_712));
        assert_eq!(Timeouts::of(255 << 24 | 1).receive, Timeout::Micros(255 << 28));
        assert_eq!(Timeouts::of(7 << 24 | 15).receive, Timeout::Micros(7));
    }

    #[test]
    fn without_a_mantissa_there_is_no_wait() {
        let both = Timeouts::of(0x11);
        assert!(both.send.is_zero() && both.receive.is_zero());
        assert_eq!(Timeouts::of(0xff00_0000).receive, Timeout::Never);
    }

    #[test]
    fn faults_have_powers_alone() {
        assert_eq!(Timeouts::of(14 << 8).receive_faults, Timeout::Micros(4));
        assert!(Timeouts::of(15 << 12).send_faults.is_zero());
        assert_eq!(Timeouts::of(0).send_faults, Timeout::Never);
    }
}
