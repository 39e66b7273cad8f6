//! A guest thread's life between two stays in user code: the same on every machine.

use core::sync::atomic::{AtomicU32, Ordering};

use janua_arch::Frame;

use crate::clock::Nanos;
use crate::guest::{Flow, Guest};
use crate::trap::Trap;

/// What a machine does for [`drive()`], on the thread that is driven.
pub trait Carrier {
    /// The thread is as good as in user code: from here on a thread that gives it work must get it out of there ([`crate::Context::kick`]). Work that was
    /// flagged before is seen after this.
    fn enter_user(&mut self);
    /// It is not, after all.
    fn stay(&mut self);
    /// Sleeps while the word is [`PARKED`], until the deadline (monotonic), or shorter.
    fn sleep(&mut self, word: &AtomicU32, deadline: Option<Nanos>);
    /// Waits until the word is no longer [`QUIET`], until the deadline, or shorter. A machine may look on for a while before it sleeps.
    fn wait(&mut self, word: &AtomicU32, deadline: Option<Nanos>) {
        park(self, word, deadline);
    }
}

/// States of a wake word ([`Guest::wake_word`]): nothing has happened since the thread last was polled; it sleeps. Any other: it has been
/// woken.
pub const QUIET: u32 = 0;
pub const PARKED: u32 = 2;

/// Sleeps on a wake word unless the thread has been woken.
pub fn park<C: Carrier + ?Sized>(carrier: &mut C, word: &AtomicU32, deadline: Option<Nanos>) {
    if word.compare_exchange(QUIET, PARKED, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
        carrier.sleep(word, deadline);
    }
}

/// What is next for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// User code, with the frame as it is.
    User,
    /// Nothing: the guest is never to be touched again.
    End,
}

/// Does what a guest asks for until its thread goes to user code or ends. No kick is lost: either the work is seen here, or who gave it sees
/// that the thread is in user code.
#[inline]
pub fn drive(carrier: &mut impl Carrier, guest: &dyn Guest, frame: &mut Frame, mut flow: Flow) -> Next {
    loop {
        flow = match flow {
            Flow::Resume => {
                carrier.enter_user();
                if !guest.has_work() {
                    return Next::User;
                }
                carrier.stay();
                guest.trap(frame, Trap::Kick)
            }
            Flow::Wait(deadline) => {
                carrier.wait(guest.wake_word(), deadline);
                guest.poll(frame)
            }
            Flow::Exit => return Next::End,
        };
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use alloc::sync::Arc;
    use std::sync::Mutex;
    use std::vec::Vec;

    use super::*;
    use crate::{Context, GateId};

    /// A guest that returns flows from a script, and notes what it is asked.
    struct Script {
        word: AtomicU32,
        work: AtomicU32,
        flows: Mutex<Vec<Flow>>,
        asked: Mutex<Vec<&'static str>>,
    }

    impl Script {
        fn new(flows: &[Flow]) -> Script {
            let flows = Mutex::new(flows.iter().rev().copied().collect());
            Script { word: AtomicU32::new(0), work: AtomicU32::new(0), flows, asked: Mutex::default() }
        }
        fn note(&self, what: &'static str) {
            self.asked.lock().unwrap().push(what);
        }
        fn next(&self, what: &'static str) -> Flow {
            self.note(what);
            self.flows.lock().unwrap().pop().expect("the script is over")
        }
    }

    impl Guest for Script {
        fn attach(&self, _context: Arc<dyn Context>) {}
        fn call(&self, _frame: &mut Frame, _abi: crate::guest::Abi) -> Flow {
            self.next("call")
        }
        fn trap(&self, _frame: &mut Frame, trap: Trap) -> Flow {
            assert!(matches!(trap, Trap::Kick));
            self.work.store(0, Ordering::SeqCst);
            self.next("kick")
        }
        fn store_fault(&self, _addr: usize) -> bool {
            false
        }
        fn poll(&self, _frame: &mut Frame) -> Flow {
            self.word.store(QUIET, Ordering::SeqCst);
            self.next("poll")
        }
        fn start(&self, _frame: &mut Frame) -> Flow {
            self.next("start")
        }
        fn wake_word(&self) -> &AtomicU32 {
            &self.word
        }
        fn has_work(&self) -> bool {
            self.work.load(Ordering::SeqCst) != 0
        }
        fn set_gate(&self, _gate: GateId) {}
    }

    /// Flags work for the guest when it goes to user code so many times, and wakes it when it sleeps.
    struct Busy<'a> {
        guest: &'a Script,
        kicks: u32,
    }

    impl Carrier for Busy<'_> {
        fn enter_user(&mut self) {
            self.guest.note("enter");
            if self.kicks > 0 {
                self.kicks -= 1;
                self.guest.work.store(1, Ordering::SeqCst);
            }
        }
        fn stay(&mut self) {
            self.guest.note("stay");
        }
        fn sleep(&mut self, word: &AtomicU32, _deadline: Option<Nanos>) {
            assert_eq!(word.load(Ordering::SeqCst), PARKED);
            self.guest.note("sleep");
        }
    }

    fn driven(flows: &[Flow], first: Flow, kicks: u32, woken: bool) -> (Next, Vec<&'static str>) {
        let guest = Script::new(flows);
        guest.word.store(u32::from(woken), Ordering::SeqCst);
        let next = drive(&mut Busy { guest: &guest, kicks }, &guest, &mut Frame::default(), first);
        (next, guest.asked.into_inner().unwrap())
    }

    #[test]
    fn work_flagged_on_the_way_to_user_code_is_seen_there() {
        assert_eq!(driven(&[], Flow::Resume, 0, false), (Next::User, std::vec!["enter"]));
        let flows = [Flow::Resume, Flow::Resume];
        let steps = ["enter", "stay", "kick", "enter", "stay", "kick", "enter"];
        assert_eq!(driven(&flows, Flow::Resume, 2, false), (Next::User, steps.to_vec()));
    }

    #[test]
    fn who_has_been_woken_does_not_sleep() {
        assert_eq!(driven(&[Flow::Resume], Flow::Wait(None), 0, true), (Next::User, std::vec!["poll", "enter"]));
        let flows = [Flow::Wait(Some(7)), Flow::Exit];
        assert_eq!(driven(&flows, Flow::Wait(None), 0, false), (Next::End, std::vec!["sleep", "poll", "sleep", "poll"]));
    }

    #[test]
    fn a_kick_may_wait_or_end() {
        let steps = ["enter", "stay", "kick", "sleep", "poll"];
        assert_eq!(driven(&[Flow::Wait(None), Flow::Exit], Flow::Resume, 1, false), (Next::End, steps.to_vec()));
    }
}
