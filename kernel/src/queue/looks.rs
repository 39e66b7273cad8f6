//! How long a module looks into a queue in which there is nothing.
//!
//! As long as it looks, a submission costs its program a store; once it has stopped, the program must enter the kernel and a sleeping core be woken, some hundred
//! microseconds. But to look is to burn a processor. So it goes on for as long as a pause between two submissions that was too long last time, and half as long
//! again: a program that goes on in its own time is waited for. A pause beyond [`MOST`] is not worth that, and shortens the looks.

use janua_port::Nanos;

/// At first: more than it takes to wake a program that sleeps for its results.
const FIRST: Nanos = 100_000;
const LEAST: Nanos = 50_000;
const MOST: Nanos = 400_000;

pub(super) struct Looks {
    /// When there was something last.
    last: Nanos,
    /// How long after that it is looked for more.
    patience: Nanos,
    rested: bool,
}

impl Looks {
    pub fn new() -> Looks {
        // As if there had been something: the first look is when the queue has just been opened.
        Looks { last: Nanos::MAX, patience: FIRST, rested: false }
    }

    /// There was something.
    pub fn found(&mut self, now: Nanos) {
        if self.rested {
            let pause = now.saturating_sub(self.last);
            self.patience = if pause <= MOST { (pause + pause / 2).clamp(LEAST, MOST) } else { LEAST };
            self.rested = false;
        }
        self.last = now;
    }

    /// There was nothing: whether to look on. If not, it rests.
    pub fn go_on(&mut self, now: Nanos) -> bool {
        self.last = self.last.min(now);
        self.rested = now - self.last >= self.patience;
        !self.rested
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Submits after each of these pauses: how often the program found nobody looking.
    fn rests(pauses: impl Iterator<Item = Nanos>) -> usize {
        let (mut looks, mut now) = (Looks::new(), 1_000_000);
        let mut rests = 0;
        looks.found(now);
        for pause in pauses {
            let until = now + pause;
            while now < until && looks.go_on(now) {
                now += 1_000;
            }
            rests += usize::from(looks.rested);
            now = now.max(until);
            looks.found(now);
        }
        rests
    }

    #[test]
    fn a_program_that_goes_on_in_its_time_is_waited_for() {
        assert_eq!(rests([90_000; 100].into_iter()), 0);
        assert_eq!(rests([150_000; 100].into_iter()), 1, "it is known after the first");
        assert_eq!(rests([300_000; 100].into_iter()), 1);
    }

    #[test]
    fn long_pauses_are_not_looked_through() {
        assert_eq!(rests([10_000_000; 100].into_iter()), 100);
        let mut looks = Looks::new();
        looks.found(0);
        assert!(looks.go_on(FIRST - 1) && !looks.go_on(FIRST));
        looks.found(10_000_000);
        assert!(!looks.go_on(10_000_000 + LEAST), "it has learnt");
    }

    #[test]
    fn looks_end_though_there_never_was_anything() {
        let mut looks = Looks::new();
        assert!(looks.go_on(5_000_000_000));
        assert!(!looks.go_on(5_000_000_000 + FIRST));
    }
}
