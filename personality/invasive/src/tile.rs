//! A tile: its cores, claims, stacks and waiting i-lets, and its mailbox.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::invasive::types::CLAIM_LIMIT;
use janua_abi::invasive::{DispatchClaim, Ilet};
use janua_kernel::thread::work;
use janua_port::Frame;
use janua_rt::{Mutex, MutexGuard};

use crate::Seat;
use crate::memory::{Heap, Layout, Stacks};
use crate::message::{Message, Start};

pub use janua_abi::invasive::types::ClaimId;

/// The claim the application starts with, on tile 0.
pub const FIRST_CLAIM: ClaimId = 1;
/// Messages a mailbox holds at most: who sends more is refused.
const MAILBOX_MOST: usize = 1 << 16;
/// I-lets that wait for futures of a tile at most.
const COMPLETIONS_MOST: usize = 1 << 12;

/// An i-let on its way, with the claim to which its replies go.
#[derive(Clone, Copy, Debug)]
pub struct Queued {
    pub ilet: Ilet,
    pub parent: Option<DispatchClaim>,
}

/// An i-let that has begun: what it is besides its registers.
#[derive(Clone, Copy, Debug)]
pub struct Running {
    /// Its stack's number in the pool.
    pub stack: usize,
    pub parent: Option<DispatchClaim>,
    pub domain: usize,
}

/// A begun i-let that is not on a core just now.
pub struct Context {
    pub running: Running,
    pub frame: Frame,
    /// What the call it waits in returns.
    pub result: usize,
}

/// Why the i-let on a core gives it up, decided by the call under way.
#[derive(Clone, Copy, Debug)]
pub enum Block {
    /// It is over.
    End,
    /// It waits for the 32-bit word at `addr` to be 0; then the word at `answer`, if there is one, is the call's result.
    Wait { addr: usize, answer: Option<usize> },
    /// The application is over, with this exit code.
    Shutdown(u8),
}

/// A core.
pub struct CoreSlot {
    pub seat: Arc<Seat>,
    /// Who holds it; 0 is nobody.
    pub claim: ClaimId,
    /// The claim has given it back: what has begun on it ends, nothing else begins, then nobody holds it.
    pub leaving: bool,
    /// The i-let in user code (or in a call).
    pub current: Option<Running>,
    pub block: Option<Block>,
    /// Begun i-lets of this core whose wait is over.
    pub ready: VecDeque<Context>,
    /// Begun i-lets of this core that wait.
    pub waiting: usize,
}

impl CoreSlot {
    /// Nothing on it has begun and not ended. An i-let whose last call is under way has ended as far as others can tell: its signal
    /// may be what they waited for.
    pub fn is_free_of_work(&self) -> bool {
        let over = self.current.is_none() || matches!(self.block, Some(Block::End));
        over && self.ready.is_empty() && self.waiting == 0
    }

    /// Whether the claim's i-lets may begin on it.
    fn serves(&self, claim: ClaimId) -> bool {
        self.claim == claim && !self.leaving
    }

    /// Nobody holds it from now on, if it was only to end what had begun.
    pub fn leave_claim(&mut self) {
        if self.leaving && self.is_free_of_work() {
            (self.claim, self.leaving) = (0, false);
        }
    }
}

/// A claim. One without cores, i-lets or data has no entry: it is as good as new.
#[derive(Default)]
pub struct Claim {
    pub id: ClaimId,
    pub cores: u32,
    pub queue: VecDeque<Queued>,
    pub data: usize,
}

/// An i-let that waits, by what it waits for.
pub struct Waiter {
    pub addr: usize,
    pub answer: Option<usize>,
    pub core: usize,
    pub context: Context,
}

/// What a tile's lock guards.
pub struct TileState {
    pub cores: Vec<CoreSlot>,
    claims: Vec<Claim>,
    /// The next claim number to be given.
    next_claim: ClaimId,
    pub waiters: Vec<Waiter>,
    /// I-lets to be started when a future is complete, by its address.
    completions: Vec<(usize, Start)>,
    pub stacks: Stacks,
    pub heap: Heap,
}

impl TileState {
    /// A claim number that has no entry.
    pub fn new_claim(&mut self) -> ClaimId {
        loop {
            let id = self.next_claim;
            self.next_claim = if id + 1 == CLAIM_LIMIT { FIRST_CLAIM + 1 } else { id + 1 };
            if self.claim(id).is_none() {
                return id;
            }
        }
    }

    pub fn claim(&self, id: ClaimId) -> Option<&Claim> {
        self.claims.iter().find(|claim| claim.id == id)
    }

    pub fn claim_mut(&mut self, id: ClaimId) -> Option<&mut Claim> {
        self.claims.iter_mut().find(|claim| claim.id == id)
    }

    /// The claim's entry, made if it has none.
    pub fn claim_entry(&mut self, id: ClaimId) -> &mut Claim {
        let at = self.claims.iter().position(|claim| claim.id == id).unwrap_or_else(|| {
            self.claims.push(Claim { id, ..Claim::default() });
            self.claims.len() - 1
        });
        &mut self.claims[at]
    }

    /// Drops the entry if it holds nothing.
    fn tidy(&mut self, id: ClaimId) {
        self.claims.retain(|claim| claim.id != id || claim.cores > 0 || !claim.queue.is_empty() || claim.data != 0);
    }

    /// Gives a claim that many more cores, all or none.
    pub fn invade(&mut self, id: ClaimId, quantity: u32) -> bool {
        let free = self.cores.iter().filter(|core| core.claim == 0).count();
        if free < quantity as usize {
            return false;
        }
        for core in self.cores.iter_mut().filter(|core| core.claim == 0).take(quantity as usize) {
            core.claim = id;
        }
        if quantity > 0 {
            self.claim_entry(id).cores += quantity;
        }
        true
    }

    /// Takes cores away, all or none, idle ones first, and not while i-lets are queued. A core on which an i-let has begun ends it
    /// before it is free. `but` is a core that stays, the caller's own.
    pub fn retreat(&mut self, id: ClaimId, quantity: u32, but: Option<usize>) -> bool {
        let Some(claim) = self.claim(id) else { return quantity == 0 };
        let mut chosen: Vec<usize> =
            (0..self.cores.len()).filter(|&core| self.cores[core].serves(id) && but != Some(core)).collect();
        if !claim.queue.is_empty() || chosen.len() < quantity as usize {
            return false;
        }
        chosen.sort_by_key(|&core| !self.cores[core].is_free_of_work());
        for core in chosen.into_iter().take(quantity as usize) {
            self.cores[core].leaving = true;
            self.cores[core].leave_claim();
        }
        self.claim_entry(id).cores -= quantity;
        self.tidy(id);
        true
    }

    /// Queues i-lets and wakes as many idle cores. False when the claim has no core to run them.
    pub fn infect(&mut self, id: ClaimId, team: &[Ilet], parent: Option<DispatchClaim>) -> bool {
        let Some(claim) = self.claim_mut(id).filter(|claim| claim.cores > 0) else { return false };
        claim.queue.extend(team.iter().map(|&ilet| Queued { ilet, parent }));
        let idle = self.cores.iter().filter(|core| core.serves(id) && core.current.is_none());
        for core in idle.take(team.len()) {
            core.seat.waker().wake_by_ref();
        }
        true
    }

    /// The word at `addr` has become 0: who waits for it may go on. `answer` reads a word of the tile's memory.
    pub fn finished(&mut self, addr: usize, answer: impl FnOnce(usize) -> usize) {
        let Some(at) = self.waiters.iter().position(|waiter| waiter.addr == addr) else { return };
        let Waiter { answer: place, core, mut context, .. } = self.waiters.swap_remove(at);
        context.result = place.map_or(0, answer);
        let slot = &mut self.cores[core];
        slot.waiting -= 1;
        slot.ready.push_back(context);
        if slot.current.is_none() {
            slot.seat.waker().wake_by_ref();
        }
    }

    /// The i-let is to be started when the future at `addr` is complete. False when too many wait so.
    pub fn on_completion(&mut self, addr: usize, start: Start) -> bool {
        let room = self.completions.len() < COMPLETIONS_MOST;
        if room {
            self.completions.push((addr, start));
        }
        room
    }

    /// The future at `addr` is complete: what is to be started, in the order it was asked for.
    pub fn completed(&mut self, addr: usize) -> Vec<Start> {
        let due = self.completions.iter().filter(|(future, _)| *future == addr).map(|(_, start)| *start).collect();
        self.completions.retain(|(future, _)| *future != addr);
        due
    }

    /// Whether a core without an i-let has one to run.
    pub fn has_work(&self, core: usize) -> bool {
        let slot = &self.cores[core];
        !slot.ready.is_empty()
            || slot.claim != 0 && !slot.leaving && self.claim(slot.claim).is_some_and(|claim| !claim.queue.is_empty())
    }
}

/// A tile.
pub struct Tile {
    pub id: u8,
    state: Mutex<TileState>,
    mailbox: Mutex<VecDeque<Message>>,
}

impl Tile {
    pub fn new(id: u8, layout: &Layout) -> Tile {
        let state = TileState {
            cores: Vec::new(),
            claims: Vec::new(),
            next_claim: FIRST_CLAIM + 1,
            waiters: Vec::new(),
            completions: Vec::new(),
            stacks: Stacks::new(layout),
            heap: Heap::new(layout),
        };
        Tile { id, state: Mutex::new(state), mailbox: Mutex::new(VecDeque::new()) }
    }

    pub fn set_cores(&self, seats: Vec<Arc<Seat>>) {
        let slot =
            |seat| CoreSlot { seat, claim: 0, leaving: false, current: None, block: None, ready: VecDeque::new(), waiting: 0 };
        self.state.lock().cores = seats.into_iter().map(slot).collect();
    }

    /// The tile's state, for its own cores.
    pub fn lock(&self) -> MutexGuard<'_, TileState> {
        self.state.lock()
    }

    /// Puts a message in the tile's mailbox and gets one of its cores to look. False when the mailbox is full.
    ///
    /// The message is there before a core is chosen, and a core looks into the mailbox under the tile's lock before it turns to an
    /// i-let: so either the core that is idle now finds it, or it was found before.
    #[must_use]
    pub fn post(&self, message: Message) -> bool {
        {
            let mut mailbox = self.mailbox.lock();
            if mailbox.len() >= MAILBOX_MOST {
                return false;
            }
            mailbox.push_back(message);
        }
        let state = self.state.lock();
        match state.cores.iter().find(|core| core.current.is_none()) {
            Some(idle) => idle.seat.waker().wake_by_ref(),
            None => {
                if let Some(first) = state.cores.first().map(|core| core.seat.clone()) {
                    drop(state);
                    first.interrupt(work::INTERRUPT);
                }
            }
        }
        true
    }

    pub fn has_mail(&self) -> bool {
        !self.mailbox.lock().is_empty()
    }

    pub fn next_message(&self) -> Option<Message> {
        self.mailbox.lock().pop_front()
    }
}
