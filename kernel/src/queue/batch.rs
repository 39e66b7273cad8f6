//! Entries that are taken at a time, and those calls of theirs that return at once.
//!
//! A call that returns at once needs no slot: its row's function is called from a loop, one after the other, and its end is kept until the batch is over. Which rows
//! are like that is found out when the queue is opened, and again when rows have come into force or gone out of it, so that the loop looks into one table only.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use janua_abi::ring::{Completion, Submission as Entry};
use janua_port::gate::{QueueGate, QueuedCalls};
use janua_port::guest::{PLAIN_CALLS, PlainCalls};
use janua_port::words;

use crate::place::Place;
use crate::table::{CallFn, Row, Run, SeatOf, Table};
use crate::task::Personality;

/// Entries that are copied at a time.
pub(super) const BATCH: usize = 32;

/// Calls that are made in one go where their entries are.
const IN_PLACE: usize = 128;

pub(super) struct Batch<P: Personality> {
    /// By number, whether calls of a row may be queued; and the functions of those in force whose calls return at once, and of which changes of the table they are.
    may: Box<[bool]>,
    plain: Box<[Option<CallFn<P>>]>,
    changes: u32,
    /// The same functions for gates that make calls where their entries are.
    functions: Box<PlainCalls>,
    /// Copied out of the program's memory.
    entries: Box<[Entry; BATCH]>,
    /// Ends that have not been posted yet, oldest first.
    pub done: Vec<Completion>,
}

impl<P: Personality> Batch<P> {
    /// For calls of a table whose row `may` be queued.
    pub fn new(table: &Table<P>, may: impl Fn(&'static Row<P>) -> bool) -> Batch<P> {
        let may = |row: &'static Row<P>| {
            matches!(row.run, Run::Plain(_) | Run::Wait(_)) && row.place != Place::Home && P::may_queue(row) && may(row)
        };
        let mut batch = Batch {
            may: table.rows().iter().map(may).collect(),
            plain: Box::default(),
            changes: 0,
            functions: Box::new([const { AtomicPtr::new(null_mut()) }; PLAIN_CALLS]),
            entries: Box::new([Entry::default(); BATCH]),
            done: Vec::with_capacity(BATCH),
        };
        batch.learn_anew(table);
        batch
    }

    /// Whether calls of a row may be queued.
    pub fn may(&self, row: &Row<P>) -> bool {
        self.may.get(row.number) == Some(&true)
    }

    /// Finds out which rows are called from the loop, unless that is known.
    #[inline]
    pub fn learn(&mut self, table: &Table<P>) {
        if table.changes() != self.changes {
            self.learn_anew(table);
        }
    }

    #[cold]
    fn learn_anew(&mut self, table: &Table<P>) {
        // Before the rows are looked at: what changes meanwhile is another change.
        self.changes = table.changes();
        let plain = |row: &'static Row<P>| match row.run {
            Run::Plain(run) if self.may(row) && table.get(row.number).is_some() => Some(run),
            _ => None,
        };
        self.plain = table.rows().iter().map(plain).collect();
        for (word, run) in self.functions.iter().zip(&self.plain) {
            word.store(run.map_or(null_mut(), |run| run as *mut ()), Ordering::Relaxed);
        }
    }

    /// Has the gate make calls as this thread where their entries are, as long as they are such that return at once: how many.
    #[inline]
    pub fn make_in_place(&self, gate: &dyn QueueGate, seat: SeatOf<'_, P>) -> usize {
        let thread = core::ptr::from_ref(seat.get_ref()).cast();
        gate.make_some(&QueuedCalls { functions: &self.functions, thread }, IN_PLACE)
    }

    /// Copies what has been submitted, as far as there is room: how much.
    #[inline]
    pub fn take(&mut self, gate: &dyn QueueGate, room: usize) -> usize {
        gate.take_some(&mut self.entries[..room.min(BATCH)])
    }

    /// An entry of those that were copied.
    pub fn entry(&self, at: usize) -> &Entry {
        &self.entries[at]
    }

    /// Whether an entry's call is one for [`Batch::make`].
    pub fn is_plain(&self, at: usize) -> bool {
        let Entry { number, flags, .. } = self.entries[at];
        flags == 0 && matches!(self.plain.get(P::number(number as usize)), Some(Some(_)))
    }

    /// Makes the calls of the entries from `first` on, as this thread, up to the first that may wait or is linked: where that is.
    #[inline]
    pub fn make(&mut self, seat: SeatOf<'_, P>, first: usize, count: usize) -> usize {
        for (at, entry) in self.entries.iter().enumerate().take(count).skip(first) {
            let Some(Some(run)) = self.plain.get(P::number(entry.number as usize)) else { return at };
            if entry.flags != 0 {
                return at;
            }
            // There always is a result.
            let outcome = words::call(*run, entry.words.map(|word| word as usize), seat);
            self.done.push(Completion { tag: entry.tag, result: outcome.result() as i64 });
        }
        count
    }

    /// A call has ended elsewhere.
    pub fn end(&mut self, tag: u64, result: isize) {
        self.done.push(Completion { tag, result: result as i64 });
    }
}
