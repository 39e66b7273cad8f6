//! Load averages (/proc/loadavg, sysinfo(2)): how many threads ran, over the last minute, five and fifteen, decaying.
//!
//! There is no tick that counts them. A reader has the processor time of all processes since the last question taken for that time, so what
//! is averaged are threads that ran; those that waited for a processor are not in it.

use janua_port::Nanos;
use janua_port::machine::Usage;
use janua_rt::Mutex;

use crate::Kernel;
use crate::process::Spent;
use crate::sampled::Sampled;
use crate::time::cpu;

/// Time between two steps of the decay.
const STEP: Nanos = 100_000_000;

/// One, as the averages are kept; and what a step leaves of each: e^(-0.1 s/60 s), e^(-0.1 s/300 s), e^(-0.1 s/900 s).
const ONE: u64 = 1 << 32;
const KEPT: [u64; 3] = [4_287_814_979, 4_293_535_879, 4_294_490_104];

/// What is known since the last question.
#[derive(Default)]
struct Known {
    at: Nanos,
    used: Nanos,
    averages: [u64; 3],
}

/// The averages of one kernel, and the figures of all its processes together.
#[derive(Default)]
pub struct Load {
    known: Mutex<Known>,
    used: Sampled<Usage>,
    resident: Sampled<Option<usize>>,
}

/// What all processes have used, those that were waited for among them, and when: a moment ago ([`crate::sampled`]).
pub fn used(kernel: &Kernel) -> (Nanos, Usage) {
    kernel.load.used.get(kernel.machine, || {
        let sum = Spent::default();
        for task in kernel.processes() {
            sum.add(cpu::usage_of_task(&task, None));
            sum.add(task.usage.children.get());
        }
        sum.get()
    })
}

/// Bytes of memory of their own that all processes have touched, a moment ago; `None` where that is not known.
pub fn resident(kernel: &Kernel) -> Option<usize> {
    kernel.load.resident.get(kernel.machine, || kernel.machine.resident_guests(None)).1
}

/// The three averages, in units of 1/65536.
pub fn averages(kernel: &Kernel) -> [u64; 3] {
    let (at, used) = used(kernel);
    let mut known = kernel.load.known.lock();
    known.look(at.saturating_sub(kernel.booted), used.user + used.system);
    known.averages.map(|average| average >> 16)
}

impl Known {
    /// Takes in what has been used up to `now`, both counted from the start.
    fn look(&mut self, now: Nanos, used: Nanos) {
        let elapsed = now.saturating_sub(self.at);
        let steps = elapsed / STEP;
        if steps == 0 {
            return;
        }
        let ran = u128::from(used.saturating_sub(self.used)) * u128::from(ONE) / u128::from(elapsed);
        let ran = u64::try_from(ran).unwrap_or(u64::MAX);
        for (average, kept) in self.averages.iter_mut().zip(KEPT) {
            let kept = power(kept, steps);
            *average = times(*average, kept).saturating_add(times(ran, ONE - kept));
        }
        (self.at, self.used) = (now, used);
    }
}

/// A product of numbers in units of 1/[`ONE`].
fn times(a: u64, b: u64) -> u64 {
    u64::try_from(u128::from(a) * u128::from(b) / u128::from(ONE)).unwrap_or(u64::MAX)
}

fn power(mut base: u64, mut exponent: u64) -> u64 {
    let mut result = ONE;
    while exponent > 0 {
        if exponent & 1 != 0 {
            result = times(result, base);
        }
        base = times(base, base);
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In hundredths.
    fn shown(known: &Known) -> [u64; 3] {
        known.averages.map(|average| average * 100 / ONE)
    }

    #[test]
    fn averages_rise_and_fall_as_those_of_a_kernel_that_counts() {
        let minute = 60_000_000_000;
        let mut known = Known::default();
        // Two threads that run for a minute: 2 (1 - 1/e), however often one looks.
        for turn in 1..=600 {
            known.look(turn * STEP, 2 * turn * STEP);
        }
        assert_eq!(shown(&known), [126, 36, 12]);
        let mut seldom = Known::default();
        seldom.look(minute, 2 * minute);
        assert_eq!(shown(&seldom), [126, 36, 12]);
        // Then nothing for an hour.
        known.look(61 * minute, 2 * minute);
        assert_eq!(shown(&known), [0, 0, 0]);
    }

    #[test]
    fn nothing_overflows() {
        let mut known = Known::default();
        known.look(STEP, u64::MAX);
        known.look(u64::MAX, u64::MAX);
        known.look(0, 0);
        assert_eq!(power(KEPT[0], u64::MAX), 0);
    }
}
