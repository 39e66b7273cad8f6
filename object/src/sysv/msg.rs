//! Message queues (msgop(2)).

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::linux::ipc::{MSG_COPY, MSG_EXCEPT, MSG_NOERROR, MsqidDs};
use janua_abi::linux::{Errno, Result};
use janua_rt::{Mutex, WaitQueue};

use super::ids::{Object, Owner};

/// Largest message, bytes.
pub const MSGMAX: usize = 8192;
/// Bytes a queue takes at first.
pub const MSGMNB: u64 = 16384;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// At least 1.
    pub kind: i64,
    pub text: Vec<u8>,
}

struct State {
    owner: Owner,
    messages: VecDeque<Message>,
    bytes: u64,
    /// Bytes the queue may hold.
    most: u64,
    stime: i64,
    rtime: i64,
    ctime: i64,
    last_sender: u32,
    last_receiver: u32,
    removed: bool,
}

/// A message queue.
pub struct Queue {
    state: Mutex<State>,
    /// Woken when a message has come or gone.
    pub waiters: WaitQueue,
}

impl Queue {
    pub fn new(owner: Owner, now: i64) -> Arc<Queue> {
        Arc::new(Queue {
            state: Mutex::new(State {
                owner,
                messages: VecDeque::new(),
                bytes: 0,
                most: MSGMNB,
                stime: 0,
                rtime: 0,
                ctime: now,
                last_sender: 0,
                last_receiver: 0,
                removed: false,
            }),
            waiters: WaitQueue::new(),
        })
    }

    /// Puts a message at the end. EAGAIN, with the message left in place, when the queue is full; EIDRM.
    pub fn send(&self, message: &mut Option<Message>, pid: u32, now: i64) -> Result<()> {
        let mut state = self.state.lock();
        if state.removed {
            return Err(Errno::EIDRM);
        }
        let Some(text) = message.as_ref().map(|message| message.text.len() as u64) else { return Ok(()) };
        if state.bytes + text > state.most || state.messages.len() as u64 >= state.most {
            return Err(Errno::EAGAIN);
        }
        state.messages.extend(message.take());
        state.bytes += text;
        state.last_sender = pid;
        state.stime = now;
        drop(state);
        self.waiters.wake_all();
        Ok(())
    }

    /// Takes the message `kind` and `flags` ask for (msgrcv(2)). EAGAIN when there is none, E2BIG when it is longer than `room`
    /// and may not be cut, EIDRM.
    pub fn receive(&self, kind: i64, room: usize, flags: u32, pid: u32, now: i64) -> Result<Message> {
        let mut state = self.state.lock();
        if state.removed {
            return Err(Errno::EIDRM);
        }
        let at = if flags & MSG_COPY != 0 {
            let at = usize::try_from(kind).map_err(|_| Errno::EINVAL)?;
            (at < state.messages.len()).then_some(at).ok_or(Errno::ENOMSG)?
        } else {
            choose(&state.messages, kind, flags).ok_or(Errno::EAGAIN)?
        };
        if state.messages[at].text.len() > room && flags & MSG_NOERROR == 0 {
            return Err(Errno::E2BIG);
        }
        if flags & MSG_COPY != 0 {
            return Ok(state.messages[at].clone());
        }
        let message = state.messages.remove(at).ok_or(Errno::EAGAIN)?;
        state.bytes -= message.text.len() as u64;
        state.last_receiver = pid;
        state.rtime = now;
        drop(state);
        self.waiters.wake_all();
        Ok(message)
    }

    /// IPC_SET: owner and capacity. `grows` is whether the caller may go beyond [`MSGMNB`] (CAP_SYS_RESOURCE); EPERM.
    pub fn set(&self, most: u64, grows: bool, now: i64, change: impl FnOnce(&mut Owner) -> Result<()>) -> Result<()> {
        let mut state = self.state.lock();
        change(&mut state.owner)?;
        if most > MSGMNB && !grows {
            return Err(Errno::EPERM);
        }
        state.most = most;
        state.ctime = now;
        drop(state);
        self.waiters.wake_all();
        Ok(())
    }

    pub fn stat(&self, id: i32) -> MsqidDs {
        let state = self.state.lock();
        MsqidDs {
            perm: state.owner.as_perm(id, 0),
            stime: state.stime,
            rtime: state.rtime,
            ctime: state.ctime,
            cbytes: state.bytes,
            qnum: state.messages.len() as u64,
            qbytes: state.most,
            lspid: state.last_sender as i32,
            lrpid: state.last_receiver as i32,
            ..MsqidDs::default()
        }
    }
}

/// Which message is meant: the first; the first of a kind, or of any other; the first of the lowest kind up to a bound.
fn choose(messages: &VecDeque<Message>, kind: i64, flags: u32) -> Option<usize> {
    if kind == 0 {
        return (!messages.is_empty()).then_some(0);
    }
    if kind > 0 {
        let other = flags & MSG_EXCEPT != 0;
        return messages.iter().position(|message| (message.kind == kind) != other);
    }
    let bound = kind.checked_neg().unwrap_or(i64::MAX);
    let (at, _) = messages.iter().enumerate().filter(|(_, m)| m.kind <= bound).min_by_key(|(_, m)| m.kind)?;
    Some(at)
}

impl Object for Queue {
    fn owner(&self) -> Owner {
        self.state.lock().owner
    }
    fn removed(&self) {
        self.state.lock().removed = true;
        self.waiters.wake_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Cred;

    #[test]
    fn order_and_kinds() {
        let queue = Queue::new(Owner::new(1, 0o600, &Cred::of_user(0, 0, Vec::new())), 0);
        for kind in [3, 1, 2, 1] {
            queue.send(&mut Some(Message { kind, text: alloc::vec![kind as u8; kind as usize] }), 1, 0).unwrap();
        }
        let take = |kind, flags| queue.receive(kind, 2, flags, 1, 0).map(|message| message.kind);
        assert_eq!(take(0, 0), Err(Errno::E2BIG));
        assert_eq!(take(0, MSG_NOERROR), Ok(3));
        assert_eq!(take(-2, 0), Ok(1));
        assert_eq!(take(1, MSG_EXCEPT), Ok(2));
        assert_eq!(take(2, 0), Err(Errno::EAGAIN));
        assert_eq!(take(0, 0), Ok(1));
        assert_eq!(queue.stat(0).cbytes, 0);
    }

    #[test]
    fn full() {
        let queue = Queue::new(Owner::new(1, 0o600, &Cred::of_user(0, 0, Vec::new())), 0);
        let mut message = Some(Message { kind: 1, text: alloc::vec![0; MSGMAX] });
        queue.send(&mut message.clone(), 1, 0).unwrap();
        queue.send(&mut message.clone(), 1, 0).unwrap();
        assert_eq!(queue.send(&mut message, 1, 0), Err(Errno::EAGAIN));
        assert!(message.is_some());
    }
}
