//! `janua bench messages`: what a message between two tiles costs, beside what two processors need to hand each other a line at all.
//!
//! Both sides look for what comes without a pause, each on a processor of its own: threads of this process, over the channel's own code and memory
//! of its own shape. What a bell costs, when one sleeps, is not in it.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use janua_port::tiles::{Lane, Line};
use janua_rt::channel::{Endpoint, WHOLE, WORDS};

use crate::model::{Cell, Configuration, Kind, Measurement, Method, NATIVE, RowResult, SCHEMA, Unit};
use crate::stats::Summary;
use crate::{Failure, Plan, machine};

/// The configuration that is Janua's.
const CHANNEL: &str = "channel";

/// The one row; natively a word takes the place of the message.
const ROW: (&str, &str) = ("message-56", "a message of 56 bytes there, and one back");

/// Round trips before those that are timed, and those.
const WARM: u64 = 500;
const TRIPS: u64 = 2000;

/// The most that a message may cost, in bare round trips.
const AIM: f64 = 2.5;

/// Names and titles of the rows.
pub fn rows() -> Vec<(&'static str, &'static str)> {
    vec![ROW]
}

/// One end of something that goes to and fro.
trait Side: Send {
    /// Hands over what has this number.
    fn give(&mut self, number: u64);
    /// Looks until it comes from the other side.
    fn take(&mut self, number: u64);
}

/// A line each way, of which only one word is used.
struct Bare {
    own: &'static Line,
    other: &'static Line,
}

impl Side for Bare {
    #[inline]
    fn give(&mut self, number: u64) {
        self.own.0[0].store(number, Ordering::Release);
    }
    #[inline]
    fn take(&mut self, number: u64) {
        while self.other.0[0].load(Ordering::Acquire) != number {
            spin_loop();
        }
    }
}

struct End(Endpoint);

/// The words of a message: all of them differ, and from those of the next.
fn words(number: u64) -> [u64; WORDS] {
    std::array::from_fn(|at| number.wrapping_add((at as u64) << 32))
}

impl Side for End {
    #[inline]
    fn give(&mut self, number: u64) {
        self.0.send(&words(number), WHOLE).expect("there is room: each message is answered");
    }
    #[inline]
    fn take(&mut self, number: u64) {
        let mut found = [0; WORDS];
        while self.0.receive(&mut found).expect("both sides keep to the protocol").is_none() {
            spin_loop();
        }
        // All have been read; to look at each is no part of the channel's work.
        let sent = words(number);
        assert_eq!([found[0], found[WORDS - 1]], [sent[0], sent[WORDS - 1]], "another message");
    }
}

/// Memory for the two sides, which is never given back: a few kilobytes a sample.
fn bare() -> [Bare; 2] {
    let [one, other]: &'static [Line; 2] = Box::leak(Box::default());
    [Bare { own: one, other }, Bare { own: other, other: one }]
}

fn channel() -> [End; 2] {
    let lanes: &'static [Lane; 2] = Box::leak(Box::default());
    [0, 1].map(|side| End(Endpoint::new(lanes, side)))
}

/// Nanoseconds of a round trip between two processors: the mean of one sample.
fn sample<S: Side>([mut near, mut far]: [S; 2], processors: [usize; 2]) -> f64 {
    let ready = AtomicBool::new(false);
    let nanos = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _pinned = machine::Pinned::to(Some(processors[1]));
            ready.store(true, Ordering::Release);
            for number in 1..=WARM + TRIPS {
                far.take(number);
                far.give(number);
            }
        });
        let _pinned = machine::Pinned::to(Some(processors[0]));
        while !ready.load(Ordering::Acquire) {
            thread::yield_now();
        }
        let mut begun = Instant::now();
        for number in 1..=WARM + TRIPS {
            if number == WARM + 1 {
                begun = Instant::now();
            }
            near.give(number);
            near.take(number);
        }
        nanos.store(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
    });
    nanos.load(Ordering::Relaxed) as f64 / TRIPS as f64
}

/// Samples of both, in turns: whatever disturbs the machine disturbs them alike.
fn samples(plan: &Plan, processors: [usize; 2]) -> [Vec<f64>; 2] {
    let mut all = [Vec::new(), Vec::new()];
    for round in 1..=plan.runs {
        eprintln!("janua: round {round} of {}", plan.runs);
        for _ in 0..plan.samples {
            all[0].push(sample(bare(), processors));
            all[1].push(sample(channel(), processors));
        }
    }
    all
}

/// Measures.
pub fn measure(plan: &Plan) -> Result<Measurement, Failure> {
    let Some(processors) = machine::two_processors() else {
        return Failure::new("two tiles that both look for messages need two processors, and this process may use one");
    };
    if let Some(unknown) = plan.only.iter().find(|name| **name != ROW.0) {
        return Failure::new(format!("`bench messages` has no row called `{unknown}`\n       its rows: {}", ROW.0));
    }
    let mut machine = machine::describe();
    machine.load[0] = machine::load();
    let [native, own] = samples(plan, processors);
    machine.load[1] = machine::load();
    let cell = |configuration: &str, samples: &[f64]| Cell {
        configuration: configuration.into(),
        result: Summary::of(samples),
        skipped: None,
        fast_share: None,
    };
    let row = RowResult {
        name: ROW.0.into(),
        title: ROW.1.into(),
        group: "messages between tiles".into(),
        unit: Unit::Nanoseconds,
        cells: vec![cell(NATIVE, &native), cell(CHANNEL, &own)],
    };
    Ok(Measurement {
        schema: SCHEMA,
        kind: Kind::Messages,
        date: machine::now(),
        tool: machine::tool("JANUA_IMAGE", plan.image),
        machine,
        method: Method { runs: plan.runs, samples: plan.samples, pinned: None },
        configurations: vec![Configuration::native(), Configuration { name: CHANNEL.into(), gate: None, jail: None }],
        refused: Vec::new(),
        notes: notes(&row, processors),
        rows: vec![row],
    })
}

fn notes(row: &RowResult, processors: [usize; 2]) -> Vec<String> {
    let between = format!(
        "native is a word in a line each way, with nothing else done; both between processors {} and {}",
        processors[0], processors[1]
    );
    let aim = row.ratio(CHANNEL).map(|ratio| format!("a message, in bare round trips: {ratio:.2} (the aim: at most {AIM})"));
    std::iter::once(between).chain(aim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is measured does what it is measured for, more often than a window is long.
    #[test]
    fn both_go_there_and_back() {
        let Some(processors) = machine::two_processors() else {
            eprintln!("not tried: this process may use one processor, on which two that only look never meet");
            return;
        };
        assert!(sample(bare(), processors) > 0.0);
        assert!(sample(channel(), processors) > 0.0);
    }

    #[test]
    fn the_aim_is_beside_the_figure() {
        let cell = |configuration: &str, value: f64| Cell {
            configuration: configuration.into(),
            result: Summary::of(&[value]),
            skipped: None,
            fast_share: None,
        };
        let row = RowResult {
            name: ROW.0.into(),
            title: ROW.1.into(),
            group: String::new(),
            unit: Unit::Nanoseconds,
            cells: vec![cell(NATIVE, 100.0), cell(CHANNEL, 150.0)],
        };
        assert_eq!(notes(&row, [0, 1])[1], "a message, in bare round trips: 1.50 (the aim: at most 2.5)");
    }
}
