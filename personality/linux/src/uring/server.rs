//! Rings that a module looks into (IORING_SETUP_SQPOLL): it takes what is there and makes it, and the program's threads do what they were about.
//!
//! What is under way is an issuer's of its own, whose double is a stand-in of the thread that made the ring: it has that one's memory, which the module
//! reaches from where it runs, and what the thread has at the time a submission is made. Its jobs are done in the module's turns alone. Where the module
//! reaches no user memory (under a jail), and once the thread that made the ring has ended, the module looks and a thread of the program's is reminded, as
//! by [`super::poller`].

use alloc::boxed::Box;
use alloc::sync::Arc;

use janua_abi::linux::Result;
use janua_kernel::chore::{Chore, Next};
use janua_port::Nanos;
use janua_rt::Mutex;

use super::issuer::{self, Issuer};
use super::poller::{Found, INTERVAL, Poller, Watched};
use super::ring::Ring;
use super::submit;
use crate::Thread;

/// How long after it has found something a module looks again at once, nanoseconds.
const LIVELY: Nanos = 50_000;

/// A ring with a module that looks into it.
pub struct Server {
    watched: Watched,
    /// There is a processor for the module and one for the program.
    several: bool,
    poller: Arc<Poller>,
    /// What it has under way; held during a turn.
    issuer: Mutex<Option<Arc<Issuer>>>,
}

/// Has a module look into a ring of this thread's from now on. False where there are none. ESRCH for a thread that has not begun to run.
pub fn add(thread: &Thread, ring: &Arc<Ring>) -> Result<bool> {
    let machine = thread.machine();
    let server = Arc::new(Server {
        watched: Watched::new(thread, ring),
        several: machine.cpus() > 1,
        poller: thread.kernel.rings.poller.clone(),
        issuer: Mutex::new(None),
    });
    let turns = server.clone();
    let body = Box::new(move || turns.turn(machine.clock().monotonic()));
    let Some(chore) = Chore::new(thread, body) else { return Ok(false) };
    let away = if chore.reaches_memory() { Some(issuer::away(thread, &chore)?) } else { None };
    server.poller.one_more()?;
    if away.is_some() {
        *server.issuer.lock() = away;
        let mut servers = thread.ring_servers.lock();
        servers.retain(|server| server.issuer.lock().is_some());
        servers.push(server);
    }
    let _ = ring.served.set(chore.clone());
    chore.begin();
    Ok(true)
}

impl Server {
    /// In a turn of the module's: looks, takes what is there, and goes on with what is under way.
    fn turn(&self, now: Nanos) -> Next {
        let mut place = self.issuer.lock();
        let found = self.watched.find(now);
        // While it finds something, or has a moment ago, it is back at once, if that takes no processor from the program.
        let lively = match found {
            Found::Submissions(_) => true,
            Found::Nothing { quiet } => quiet < LIVELY,
            Found::Asleep | Found::Closed => false,
        };
        let next = Next::At(if lively && self.several { now } else { now + INTERVAL });
        let Some(issuer) = &*place else {
            return match self.watched.remind(found, now) {
                Some(true) => next,
                Some(false) => Next::Woken,
                None => self.over(),
            };
        };
        let double = &issuer.double;
        double.away_for(|| {
            issuer.work(double);
            if let Found::Submissions(ring) = &found {
                submit::take_all(issuer, double, ring);
            }
        });
        match found {
            Found::Closed if issuer.is_idle() => {
                *place = None;
                self.over()
            }
            Found::Closed | Found::Asleep => {
                drop(issuer.lend_bytes());
                Next::Woken
            }
            Found::Submissions(_) | Found::Nothing { .. } => next,
        }
    }

    fn over(&self) -> Next {
        self.poller.gone();
        Next::Over
    }

    /// By the thread that made the ring, which is about to end or to run another program.
    pub fn leave(&self, thread: &Thread) {
        // With the lock a turn under way is over, and none after it finds an issuer.
        let issuer = self.issuer.lock().take();
        if let Some(issuer) = issuer {
            issuer.end(thread);
        }
    }
}
