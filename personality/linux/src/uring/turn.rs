//! A thread's turn at a ring: operations begin, go on and end in it.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;
use core::task::{Poll, Waker};

use janua_abi::linux::Errno;
use janua_abi::linux::uring::{Sqe, op as opcode, sqe};
use janua_kernel::thread::work;
use janua_object::Cred;
use janua_object::fdtable::FdTable;

use super::held::Held;
use super::issuer::{self, Issuer, Job};
use super::memory::Access;
use super::op::{Limit, Op, Reply, Running};
use super::ops::{self, Prepared};
use super::resources;
use super::ring::{Completion, Ring};
use super::submit::{Chain, Member};
use crate::Thread;
use crate::linux::is_restart_code;

/// A thread at a ring, its memory at hand. The thread's double has what the thread has from the first operation that needs it to the turn's end.
pub struct Turn<'a> {
    pub issuer: &'a Arc<Issuer>,
    pub owner: &'a Thread,
    pub ring: &'a Arc<Ring>,
    pub access: Access<'a>,
    /// The thread submits: what ends now ends at once.
    inline: bool,
    dressed: Cell<bool>,
    pub held: Held,
}

/// Posts a completion. Nothing is posted into a ring that nobody has any more.
pub fn post(ring: &Ring, access: &Access<'_>, completion: &Completion) -> bool {
    ring.is_closed() || ring.post(access, completion)
}

impl<'a> Turn<'a> {
    pub fn new(issuer: &'a Arc<Issuer>, owner: &'a Thread, ring: &'a Arc<Ring>, inline: bool) -> Turn<'a> {
        Turn { issuer, owner, ring, access: ring.access(owner), inline, dressed: Cell::new(false), held: Held::default() }
    }

    /// Notifies of what has ended.
    pub fn end(self) {
        self.bring();
        self.leave_bytes();
        if self.dressed.get() {
            self.issuer.undress();
        }
        if !self.ring.is_closed() {
            self.ring.notify(&self.access, self.inline);
        }
    }

    /// Begins a chain's first operation, and those behind it as far as they end at once.
    pub fn begin(&self, chain: Chain) {
        let mut next = Some(chain);
        while let Some(chain) = next {
            next = self.begin_first(chain);
        }
    }

    fn begin_first(&self, mut chain: Chain) -> Option<Chain> {
        if self.issuer.is_away() && chain.members.front().is_some_and(|first| ops::is_made_at_home(first.sqe.opcode)) {
            self.send_home(chain);
            return None;
        }
        let Member { sqe, iocb, event, .. } = chain.members.pop_front()?;
        let limited = chain.members.front().is_some_and(|next| next.sqe.opcode == opcode::LINK_TIMEOUT && chain.is_ring());
        let limit = if limited { chain.members.pop_front().map(|next| self.limit(&next)) } else { None };
        let rest = Some(chain).filter(|chain| !chain.members.is_empty());
        if self.ring.is_closed() || self.issuer.is_over() {
            return self.settle(&sqe, sqe.user_data, iocb, event.as_deref(), Reply::error(Errno::ECANCELED), rest, limit);
        }
        self.dress();
        let made = ops::prepare(self, sqe);
        let (sqe, table, cred, file) = match made {
            Ok(Prepared { sqe, table, cred, file }) => (sqe, table, cred, file),
            Err(errno) => return self.settle(&sqe, sqe.user_data, iocb, event.as_deref(), Reply::error(errno), rest, limit),
        };
        let alone = rest.is_none() && limit.is_none() && iocb == 0 && event.is_none() && cred.is_none();
        if alone && file.as_ref().is_some_and(|file| self.hold(&sqe, file)) {
            return None;
        }
        self.bring();
        if let Some(reply) = self.with(table.as_ref(), cred.as_ref(), || ops::at_once(self, &sqe)) {
            return self.settle(&sqe, sqe.user_data, iocb, event.as_deref(), reply, rest, limit);
        }
        let known_by = file.as_ref().map_or(0, |file| Arc::as_ptr(file).addr());
        let running = Running { doing: None, table, cred, rest, limit, timed: None };
        let op = Op::new(self.ring, self.issuer, (sqe, known_by), (iocb, event), running);
        op.running.lock().doing = Some(ops::doing(&op, file));
        self.ring.ops.lock().insert(op.number, op.clone());
        self.issuer.keep(&op);
        if self.ring.is_closed() {
            op.cancel();
        }
        self.poll(&op)
    }

    /// Has the thread itself begin a chain, of which it alone can make the first; nobody, where it has ended.
    fn send_home(&self, chain: Chain) {
        let home = self.issuer.owner().and_then(|owner| issuer::of(&owner).ok());
        let left = match home {
            Some(home) => self.hand(&home, chain),
            None => vec![chain],
        };
        for chain in left {
            chain.members.iter().for_each(|member| self.post_error(&member.sqe, Errno::ECANCELED));
            self.finish(chain.members.len());
        }
    }

    fn limit(&self, member: &Member) -> Limit {
        let now = self.owner.machine().clock().monotonic();
        Limit { sqe: member.sqe, at: member.time.map_or(0, |time| time.from(now)), passed: false }
    }

    /// The end of an operation that nothing is linked to.
    pub fn over_at_once(&self, sqe: &Sqe, reply: Reply) {
        self.settle(sqe, sqe.user_data, 0, None, reply, None, None);
    }

    /// Polls an operation that has been woken.
    pub fn step(&self, op: &Arc<Op>) {
        self.bring();
        op.take_up();
        if let Some(next) = self.poll(op) {
            self.begin(next);
        }
    }

    fn dress(&self) {
        if self.dressed.replace(true) {
            return;
        }
        if !self.issuer.is_away() {
            return self.issuer.dress(self.owner);
        }
        // Away its double stands in for the thread, and has what that has now.
        if let Some(owner) = self.issuer.owner() {
            self.issuer.dress(&owner);
        }
    }

    /// Runs `what` with the double having these descriptors and this identity.
    fn with<T>(&self, table: Option<&Arc<FdTable>>, cred: Option<&Arc<Cred>>, what: impl FnOnce() -> T) -> T {
        let double = &self.issuer.double;
        let files = table.map(|table| core::mem::replace(&mut *double.files.write(), table.clone()));
        let was = cred.map(|cred| core::mem::replace(&mut *double.cred.write(), cred.clone()));
        let result = what();
        if let Some(files) = files {
            *double.files.write() = files;
        }
        if let Some(was) = was {
            *double.cred.write() = was;
        }
        result
    }

    fn poll(&self, op: &Arc<Op>) -> Option<Chain> {
        let (mut doing, table, cred, limit) = {
            let mut running = op.running.lock();
            // It may have ended before this wake-up was seen to.
            let doing = running.doing.take()?;
            let mut limit_at = None;
            if let Some(limit) = running.limit.as_mut().filter(|limit| !limit.passed) {
                if self.owner.machine().clock().monotonic() >= limit.at {
                    limit.passed = true;
                    op.cancel();
                } else {
                    limit_at = Some(limit.at);
                }
            }
            (doing, running.table.clone(), running.cred.clone(), limit_at)
        };
        self.dress();
        let double = &self.issuer.double;
        let cancelled = op.is_cancelled();
        if cancelled {
            double.set_work(work::KILL);
        }
        let waker = Waker::from(op.clone());
        let (polled, deadline) = self.with(table.as_ref(), cred.as_ref(), || double.poll_for(doing.as_mut(), &waker));
        double.clear_work(u32::MAX);
        let reply = match polled {
            Poll::Ready(reply) => reply,
            // It does not let itself be interrupted, but can be dropped.
            Poll::Pending if cancelled => Reply::error(Errno::ECANCELED),
            Poll::Pending => {
                let at = match (deadline, limit) {
                    (Some(one), Some(other)) => Some(one.min(other)),
                    (one, other) => one.or(other),
                };
                let before = {
                    let mut running = op.running.lock();
                    running.doing = Some(doing);
                    core::mem::replace(&mut running.timed, at)
                };
                if before != at {
                    self.issuer.time(op, before, at);
                }
                return None;
            }
        };
        drop(doing);
        self.over(op, cancelled, reply)
    }

    fn over(&self, op: &Arc<Op>, cancelled: bool, mut reply: Reply) -> Option<Chain> {
        let (rest, limit, timed) = {
            let mut running = op.running.lock();
            (running.rest.take(), running.limit.take(), running.timed.take())
        };
        if timed.is_some() {
            self.issuer.time(op, timed, None);
        }
        self.ring.ops.lock().remove(&op.number);
        self.issuer.forget(op);
        let interrupted = is_restart_code(reply.result as isize) || reply.result == Errno::EINTR.as_result() as i64;
        if cancelled && interrupted {
            reply.result = Errno::ECANCELED.as_result() as i64;
            reply.failed = true;
        }
        if cancelled && self.ring.shape.aio && op.sqe.opcode == opcode::POLL_ADD {
            // Its event has what is ready, and nothing is.
            reply.result = reply.result.max(0);
        }
        self.settle(&op.sqe, op.user_data(), op.iocb, op.event.as_deref(), reply, rest, limit)
    }

    /// An operation is over: its completion, that of its limit, and what becomes of those linked to it. Returns the chain that goes on.
    #[allow(clippy::too_many_arguments, reason = "what is left of an operation, whether it was made one or not")]
    fn settle(
        &self,
        sqe: &Sqe,
        user_data: u64,
        iocb: u64,
        event: Option<&janua_object::OpenFile>,
        reply: Reply,
        rest: Option<Chain>,
        limit: Option<Limit>,
    ) -> Option<Chain> {
        self.bring();
        let skips = sqe.flags & sqe::CQE_SKIP_SUCCESS != 0;
        let mut over = 1;
        if !skips || reply.failed {
            let more = if self.ring.shape.aio { [iocb, 0] } else { reply.more };
            let completion = Completion { user_data, result: reply.result, flags: reply.flags, more };
            post(self.ring, &self.access, &completion);
            if let Some(event) = event {
                self.ring.notify(&self.access, false);
                resources::signal(event);
            }
        }
        // Where the operation that failed was to have no completion, those linked to it have none.
        let silent = skips && reply.failed;
        if let Some(limit) = limit {
            over += 1;
            let result = if limit.passed { Errno::ETIME } else { Errno::ECANCELED };
            // One that was not needed counts as a success.
            let skipped = limit.sqe.flags & sqe::CQE_SKIP_SUCCESS != 0 && !limit.passed;
            if !silent && !skipped {
                self.post_error(&limit.sqe, result);
            }
        }
        let goes_on = !reply.failed || sqe.flags & sqe::IO_HARDLINK != 0;
        let (next, given_up) = if goes_on { (rest, None) } else { (None, rest) };
        for member in given_up.into_iter().flat_map(|chain| chain.members) {
            over += 1;
            if !silent {
                self.post_error(&member.sqe, Errno::ECANCELED);
            }
        }
        self.finish(over);
        next
    }

    /// Posts the end of a submission that is never made.
    pub fn post_error(&self, sqe: &Sqe, errno: Errno) {
        self.bring();
        let result = errno.as_result() as i64;
        post(self.ring, &self.access, &Completion { user_data: sqe.user_data, result, ..Completion::default() });
    }

    /// So many submissions are over. What waited for all before it may begin now, by who submitted it; if that one is over it is cancelled.
    pub fn finish(&self, over: usize) {
        let mut left = Vec::new();
        {
            let mut unfinished = self.ring.unfinished.lock();
            unfinished.count = unfinished.count.saturating_sub(over);
            while let Some(first) = unfinished.deferred.front() {
                if first.drains && unfinished.count != 0 {
                    break;
                }
                let Some(chain) = unfinished.deferred.pop_front() else { break };
                unfinished.waiting = unfinished.waiting.saturating_sub(chain.members.len());
                let Some(issuer) = chain.issuer.upgrade() else {
                    left.push(chain);
                    continue;
                };
                unfinished.count += chain.members.len();
                for back in self.hand(&issuer, chain) {
                    unfinished.count = unfinished.count.saturating_sub(back.members.len());
                    left.push(back);
                }
            }
        }
        for member in left.iter().flat_map(|chain| &chain.members) {
            self.post_error(&member.sqe, Errno::ECANCELED);
        }
    }

    /// Has an issuer begin a chain. What it would never begin, of this ring's, comes back: it is over. The turn's own does what it is sent at its end.
    fn hand(&self, issuer: &Arc<Issuer>, chain: Chain) -> Vec<Chain> {
        issuer.send(self.ring, Job::Begin(chain));
        if Arc::ptr_eq(self.issuer, issuer) { Vec::new() } else { issuer.take_back(self.ring) }
    }
}
