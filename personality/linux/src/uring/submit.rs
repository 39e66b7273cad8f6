//! Taking submissions out of a ring. Each entry is copied once; which it is, and what it holds, is up to the program.

use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::Ordering;

use janua_abi::linux::uring::{Sqe, flag, op, setup, sq_ring, sqe};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_object::OpenFile;
use janua_port::{Clock, Nanos};
use zerocopy::FromZeros;
use zerocopy::IntoBytes;

use super::issuer::{self, Issuer};
use super::memory::Region;
use super::ops;
use super::ring::{Ring, at};
use super::turn::Turn;
use crate::Thread;

/// A time as a submission gives it.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    nanos: u64,
    absolute: bool,
    /// Counted from now by the clock of 1970, converted when it was read.
    at: Nanos,
}

impl Time {
    /// Reads the `struct __kernel_timespec` at `addr`, with IORING_TIMEOUT_* flags. EINVAL for a time or flags that make no sense; EFAULT.
    pub fn read(thread: &Thread, addr: u64, flags: u32) -> Result<Time> {
        let clocks = flags & (flag::TIMEOUT_BOOTTIME | flag::TIMEOUT_REALTIME);
        if clocks.count_ones() > 1 {
            return Err(Errno::EINVAL);
        }
        let [seconds, nanos] = UserPtr::<[i64; 2]>::new(addr as usize).read(thread.user())?;
        if seconds < 0 || nanos < 0 {
            return Err(Errno::EINVAL);
        }
        let nanos = (seconds as u64).saturating_mul(1_000_000_000).saturating_add(nanos as u64);
        let absolute = flags & flag::TIMEOUT_ABS != 0;
        let clock = thread.machine().clock();
        let at = match absolute && clocks == flag::TIMEOUT_REALTIME {
            true => from_realtime(clock, nanos),
            false => nanos,
        };
        Ok(Time { nanos, absolute, at })
    }

    /// When it is over, if it begins now.
    pub fn from(&self, now: Nanos) -> Nanos {
        // 0 would mean at once to who waits, and it does.
        if self.absolute { self.at.max(1) } else { now.saturating_add(self.nanos) }
    }

    /// When it is over next after `last`.
    pub fn next(&self, last: Nanos, now: Nanos) -> Nanos {
        if self.absolute { now } else { last.saturating_add(self.nanos.max(1)).max(now) }
    }
}

fn from_realtime(clock: &dyn Clock, nanos: u64) -> Nanos {
    clock.monotonic().saturating_add(nanos.saturating_sub(clock.realtime()))
}

/// A submission.
pub struct Member {
    pub sqe: Sqe,
    /// Why it cannot be made.
    pub wrong: Option<Errno>,
    /// Of a limit: the time.
    pub time: Option<Time>,
    /// Of io_submit(2): the address of its iocb, and the eventfd it signals.
    pub iocb: u64,
    pub event: Option<Arc<OpenFile>>,
}

/// Submissions that are linked; or one by itself.
pub struct Chain {
    pub ring: Arc<Ring>,
    pub members: VecDeque<Member>,
    /// It begins when all before it is over.
    pub drains: bool,
    /// Who submitted it: in whose memory it is made, with whose descriptors and by whose rights, no matter which of those that have the ring ends what was before it.
    pub issuer: Weak<Issuer>,
}

impl Chain {
    pub fn is_ring(&self) -> bool {
        !self.ring.shape.aio
    }
}

/// Takes at most `most` submissions: how many. EAGAIN when there are too many under way to take one.
pub fn take(issuer: &Arc<Issuer>, thread: &Thread, ring: &Arc<Ring>, most: u32) -> Result<usize> {
    let submitting = ring.submitting.lock();
    let turn = Turn::new(issuer, thread, ring, true);
    let count = ring.unsubmitted(&turn.access).min(most);
    let mut taker = Taker { turn: &turn, open: None, taken: 0 };
    let result = if count == 0 { Ok(()) } else { taker.take(count) };
    let taken = taker.taken;
    taker.finish();
    turn.end();
    drop(submitting);
    match result {
        Err(errno) if taken == 0 => Err(errno),
        _ => Ok(taken),
    }
}

/// By who looks into the ring for the program: takes all there is.
pub fn take_all(issuer: &Arc<Issuer>, thread: &Thread, ring: &Arc<Ring>) {
    // What cannot be taken now is still there when the ring is looked into next.
    let _ = take(issuer, thread, ring, u32::MAX);
}

struct Taker<'a> {
    turn: &'a Turn<'a>,
    /// The chain that the next submission is linked to.
    open: Option<Chain>,
    taken: usize,
}

impl Taker<'_> {
    fn take(&mut self, count: u32) -> Result<()> {
        let ring = self.turn.ring;
        let access = &self.turn.access;
        let mut head = ring.head.load(Ordering::SeqCst);
        let size = if ring.shape.has(setup::SQE128) { 128 } else { 64 };
        let mask = ring.shape.submissions - 1;
        let mut result = Ok(());
        for _ in 0..count {
            if !self.has_room() {
                result = Err(Errno::EAGAIN);
                break;
            }
            let index = match ring.shape.has(setup::NO_SQARRAY) {
                true => head & mask,
                false => access.load(ring.shape.array + (head & mask) as usize * 4),
            };
            head = head.wrapping_add(1);
            if index > mask {
                let dropped = ring.dropped.fetch_add(1, Ordering::SeqCst) + 1;
                access.store(at::SQ_DROPPED, dropped);
                break;
            }
            let mut sqe = Sqe::new_zeroed();
            access.read(Region::Submissions, index as usize * size, sqe.as_mut_bytes());
            self.taken += 1;
            if is_plain_nop(&sqe) && self.open.is_none() && self.may_pass() {
                self.turn.end_nop(&sqe);
            } else if !self.add(sqe) && !ring.shape.has(setup::SUBMIT_ALL) {
                break;
            }
        }
        ring.head.store(head, Ordering::SeqCst);
        access.store(at::SQ_HEAD, head);
        result
    }

    fn has_room(&self) -> bool {
        self.turn.issuer.has_room() && self.turn.ring.unfinished.lock().waiting < issuer::MOST
    }

    fn may_pass(&self) -> bool {
        let unfinished = self.turn.ring.unfinished.lock();
        unfinished.deferred.is_empty() && !unfinished.next_drains && !self.turn.ring.is_limited()
    }

    /// Adds a submission to the chain it belongs to, and begins that when it is complete. False for one that cannot be made.
    fn add(&mut self, sqe: Sqe) -> bool {
        let ring = self.turn.ring;
        let last = self.open.as_ref().and_then(|chain| chain.members.back()).map(|last| last.sqe.opcode);
        let mut time = None;
        let wrong = self.check(&sqe).and_then(|()| {
            if sqe.opcode == op::LINK_TIMEOUT {
                // It limits what is in front of it.
                if last.is_none_or(|last| last == op::LINK_TIMEOUT) || sqe.len != 1 {
                    return Err(Errno::EINVAL);
                }
                time = Some(Time::read(self.turn.owner, sqe.addr, sqe.op_flags)?);
            }
            Ok(())
        });
        let wrong = wrong.err();
        let links = sqe.flags & (sqe::IO_LINK | sqe::IO_HARDLINK) != 0;
        let drains = sqe.flags & sqe::IO_DRAIN != 0;
        let mut chain = match self.open.take() {
            Some(mut chain) => {
                if drains {
                    chain.drains = true;
                    ring.unfinished.lock().next_drains = true;
                }
                chain
            }
            None => {
                let after = core::mem::take(&mut ring.unfinished.lock().next_drains);
                let issuer = Arc::downgrade(self.turn.issuer);
                Chain { ring: ring.clone(), members: VecDeque::with_capacity(1), drains: drains || after, issuer }
            }
        };
        chain.members.push_back(Member { sqe, wrong, time, iocb: 0, event: None });
        if links {
            self.open = Some(chain);
        } else {
            self.turn.enqueue(chain);
        }
        // One that is linked to more does not stop the rest of its chain from being taken.
        wrong.is_none() || links
    }

    fn check(&self, sqe: &Sqe) -> Result<()> {
        let ring = self.turn.ring;
        if !ops::is_known(sqe.opcode) || sqe.flags & !sqe::ALL != 0 {
            return Err(Errno::EINVAL);
        }
        if ring.shape.has(setup::IOPOLL) && !ops::may_be_polled(sqe.opcode) {
            return Err(Errno::EINVAL);
        }
        if ring.is_limited() && !ring.resources.lock().allows(sqe.opcode, sqe.flags) {
            return Err(Errno::EACCES);
        }
        if sqe.flags & sqe::BUFFER_SELECT != 0 && !ops::selects_buffers(sqe.opcode) {
            return Err(Errno::EOPNOTSUPP);
        }
        if sqe.flags & (sqe::CQE_SKIP_SUCCESS | sqe::IO_DRAIN) != 0 {
            let mut unfinished = ring.unfinished.lock();
            unfinished.skips |= sqe.flags & sqe::CQE_SKIP_SUCCESS != 0;
            if sqe.flags & sqe::IO_DRAIN != 0 && unfinished.skips {
                return Err(Errno::EOPNOTSUPP);
            }
        }
        ops::check(sqe)
    }

    /// There are no more: a chain that is open ends here.
    fn finish(mut self) {
        if let Some(chain) = self.open.take() {
            self.turn.enqueue(chain);
        }
    }
}

/// Does nothing, and nothing waits for it.
fn is_plain_nop(sqe: &Sqe) -> bool {
    sqe.opcode == op::NOP && sqe.flags == 0 && sqe.op_flags == 0 && sqe.personality == 0 && sqe.ioprio == 0
}

impl Turn<'_> {
    fn end_nop(&self, sqe: &Sqe) {
        self.bring();
        let completion = super::ring::Completion { user_data: sqe.user_data, ..Default::default() };
        super::turn::post(self.ring, &self.access, &completion);
    }

    /// Begins a chain, or lets it wait for what is before it.
    pub fn enqueue(&self, chain: Chain) {
        if chain.members.iter().any(|member| member.wrong.is_some()) {
            for member in &chain.members {
                self.post_error(&member.sqe, member.wrong.unwrap_or(Errno::ECANCELED));
            }
            return;
        }
        if chain.drains {
            self.bring();
        }
        {
            let mut unfinished = self.ring.unfinished.lock();
            if !unfinished.deferred.is_empty() || chain.drains && unfinished.count != 0 {
                unfinished.waiting += chain.members.len();
                unfinished.deferred.push_back(chain);
                return;
            }
            unfinished.count += chain.members.len();
        }
        self.begin(chain);
    }
}

/// Shows the program whether the ring must be announced.
pub fn need_wakeup(ring: &Ring, on: bool) {
    ring.flag(&ring.shared.from_anywhere(), sq_ring::NEED_WAKEUP, on);
}
