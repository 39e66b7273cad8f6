//! Which of an executor's jobs is next.

use alloc::collections::VecDeque;

use crate::executor::Job;

/// How a module chooses among the calls in its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// First in, first out.
    #[default]
    Fifo,
    /// Calls of the kind that was made last come first, at most [`COHORT`] in a row.
    Cohort,
    /// Calls of threads with a lower nice value come first. A call that others have been preferred to [`PASSED`] times is next.
    Priority,
}

impl Policy {
    pub const ALL: [Policy; 3] = [Policy::Fifo, Policy::Cohort, Policy::Priority];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Policy::Fifo => "fifo",
            Policy::Cohort => "cohort",
            Policy::Priority => "priority",
        }
    }
}

/// Most calls of one kind in a row.
pub const COHORT: u32 = 32;
/// How often the oldest call lets another go first.
pub const PASSED: u32 = 16;
/// How many calls, from the oldest on, are looked at for the next.
const LOOKED_AT: usize = 64;

/// The jobs to be polled.
pub struct Queue<J> {
    policy: Policy,
    jobs: VecDeque<J>,
    /// The kind that was chosen last.
    kind: usize,
    /// How often in a row: the same kind, or another than the oldest.
    row: u32,
}

impl<J: Job> Queue<J> {
    pub const fn new(policy: Policy) -> Queue<J> {
        Queue { policy, jobs: VecDeque::new(), kind: 0, row: 0 }
    }

    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub fn push(&mut self, job: J) {
        self.jobs.push_back(job);
    }

    pub fn remove(&mut self, id: usize) {
        self.jobs.retain(|job| job.id() != id);
    }

    pub fn pop(&mut self) -> Option<J> {
        let at = match self.policy {
            Policy::Fifo => 0,
            Policy::Cohort => self.cohort()?,
            Policy::Priority => self.priority(),
        };
        self.jobs.remove(at)
    }

    fn cohort(&mut self) -> Option<usize> {
        let same = self.jobs.iter().take(LOOKED_AT).position(|job| job.kind() == self.kind);
        if let Some(at) = same.filter(|_| self.row < COHORT) {
            self.row += 1;
            return Some(at);
        }
        self.kind = self.jobs.front()?.kind();
        self.row = 1;
        Some(0)
    }

    fn priority(&mut self) -> usize {
        let least = self.jobs.iter().take(LOOKED_AT).enumerate().min_by_key(|(at, job)| (job.nice(), *at));
        let at = least.map_or(0, |(at, _)| at);
        if at == 0 || self.row == PASSED {
            self.row = 0;
            return 0;
        }
        self.row += 1;
        at
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;
    use crate::atomic::AtomicU32;
    use crate::executor::Ran;

    #[derive(Clone)]
    struct Call {
        id: usize,
        kind: usize,
        nice: i8,
    }

    static WORD: AtomicU32 = AtomicU32::new(0);

    impl Job for Call {
        fn id(&self) -> usize {
            self.id
        }
        fn word(&self) -> &AtomicU32 {
            &WORD
        }
        fn run(&self) -> Ran {
            Ran::Done
        }
        fn kind(&self) -> usize {
            self.kind
        }
        fn nice(&self) -> i8 {
            self.nice
        }
    }

    fn order(policy: Policy, calls: &[(usize, i8)]) -> Vec<usize> {
        let mut queue = Queue::new(policy);
        calls.iter().enumerate().for_each(|(id, &(kind, nice))| queue.push(Call { id, kind, nice }));
        core::iter::from_fn(|| queue.pop()).map(|call| call.id).collect()
    }

    #[test]
    fn first_in_first_out() {
        assert_eq!(order(Policy::Fifo, &[(1, 0), (2, -5), (1, 0)]), [0, 1, 2]);
    }

    #[test]
    fn a_cohort_is_made_together_and_ends() {
        assert_eq!(order(Policy::Cohort, &[(1, 0), (2, 0), (1, 0), (2, 0), (1, 0)]), [0, 2, 4, 1, 3]);
        let mut many = std::vec![(1, 0); 40];
        many.insert(1, (2, 0));
        let made = order(Policy::Cohort, &many);
        assert_eq!(made.iter().position(|id| *id == 1), Some(COHORT as usize), "the other kind has its turn");
        assert_eq!(made.len(), 41);
    }

    #[test]
    fn who_is_nicer_waits_but_not_for_ever() {
        assert_eq!(order(Policy::Priority, &[(1, 5), (1, 0), (1, -5), (1, 0)]), [2, 1, 3, 0]);
        let mut many = std::vec![(1, 0); 40];
        many.insert(0, (1, 19));
        assert_eq!(order(Policy::Priority, &many).iter().position(|id| *id == 0), Some(PASSED as usize));
    }

    #[test]
    fn what_is_taken_out_is_gone() {
        let mut queue = Queue::new(Policy::Fifo);
        (0..3).for_each(|id| queue.push(Call { id, kind: 0, nice: 0 }));
        queue.remove(1);
        assert_eq!((queue.len(), queue.pop().map(|call| call.id), queue.pop().map(|call| call.id)), (2, Some(0), Some(2)));
        assert!(queue.is_empty());
    }
}
