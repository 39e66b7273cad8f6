//! Taking times: many short samples with the time stamp counter, its own cost taken off.

use std::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};
use std::time::{Duration, Instant};

use crate::{Samples, Skip};

/// How long one sample should last, in ticks of about a nanosecond or less: long enough that the timer's error does not matter,
/// short enough that most samples see no interrupt.
const SAMPLE: u64 = 200_000;

/// What all samples of one row may take together, in the same ticks: slow operations are sampled less often.
const BUDGET: u64 = 80_000_000;

/// The fewest samples of a row.
const FEWEST: usize = 4;

/// How a row is measured.
pub struct Meter {
    samples: usize,
    overhead: u64,
}

/// The counter before what is measured: nothing later starts before it was read (Intel's white paper 324264).
#[inline(always)]
pub fn start() -> u64 {
    // SAFETY: every x86-64 processor has both instructions.
    unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

/// The counter after what is measured: everything earlier has ended.
#[inline(always)]
fn stop() -> u64 {
    let mut processor = 0;
    // SAFETY: `rdtscp` exists on every processor with Syscall User Dispatch's kernel in reach; the pointer is to a local.
    unsafe {
        let ticks = __rdtscp(&mut processor);
        _mm_lfence();
        ticks
    }
}

fn back_to_back() -> u64 {
    let begin = start();
    stop() - begin
}

/// The time stamp counter's rate, in ticks per second, against the host's monotonic clock.
pub fn ticks_per_second() -> f64 {
    let rate = || {
        let (clock, ticks) = (Instant::now(), start());
        std::thread::sleep(Duration::from_millis(40));
        let (passed, elapsed) = (stop() - ticks, clock.elapsed());
        passed as f64 / elapsed.as_secs_f64()
    };
    // The least disturbed of three: being interrupted between the two readings changes the rate either way, so the middle one.
    let mut rates = [rate(), rate(), rate()];
    rates.sort_by(f64::total_cmp);
    rates[1]
}

impl Meter {
    /// A meter that takes at most `samples` samples of a row.
    pub fn new(samples: usize) -> Meter {
        let overhead = (0..2000).map(|_| back_to_back()).min().unwrap_or(0);
        Meter { samples, overhead }
    }

    /// Samples `body`, which does as many operations as it is asked for, at most `most` at a time.
    pub fn many(&self, most: u64, mut body: impl FnMut(u64) -> Result<(), Skip>) -> Samples {
        let mut count = 1;
        let mut took;
        loop {
            took = self.once(count, &mut body)?;
            if took >= SAMPLE / 2 {
                // What is done for the first time may take long once (a page is fetched, calls are rewritten).
                took = took.min(self.once(count, &mut body)?);
            }
            if took >= SAMPLE / 2 || count >= most {
                break;
            }
            count = (count * 2).min(most);
        }
        let affordable = BUDGET.checked_div(took).unwrap_or(u64::MAX).min(1 << 20) as usize;
        let samples = self.samples.min(affordable.max(FEWEST));
        let mut taken = Vec::with_capacity(samples);
        for _ in 0..samples {
            taken.push(self.once(count, &mut body)? as f64 / count as f64);
        }
        Ok(taken)
    }

    /// Samples an operation.
    pub fn each(&self, mut operation: impl FnMut() -> Result<(), Skip>) -> Samples {
        self.many(u64::MAX, |count| (0..count).try_for_each(|_| operation()))
    }

    /// Samples `body` once, which does `operations` operations and cannot be repeated.
    pub fn whole(&self, operations: usize, body: impl FnOnce() -> Result<(), Skip>) -> Samples {
        let mut body = Some(body);
        let took = self.once(1, &mut |_| body.take().map_or(Ok(()), |body| body()))?;
        Ok(vec![took as f64 / operations as f64])
    }

    fn once(&self, count: u64, body: &mut impl FnMut(u64) -> Result<(), Skip>) -> Result<u64, Skip> {
        let begin = start();
        body(count)?;
        Ok((stop() - begin).saturating_sub(self.overhead))
    }
}

/// Row `timer`: what an empty measurement shows before anything is taken off.
pub fn timer(meter: &Meter) -> Samples {
    Ok((0..meter.samples).map(|_| back_to_back() as f64).collect())
}
