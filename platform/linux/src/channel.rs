//! The channel to the supervisor: a socket whose messages are requests one way and answers the other.
//!
//! A message is one datagram, bounded in length, of a type that either side decodes whole or not at all. Descriptors come in with
//! requests; none can go out: the second wall leaves no call that sends one, and the supervisor makes no room for any. What the
//! supervisor reads here is a guest's word, should one have taken the kernel over.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_platform_boot::channel::{HANDED_MOST, REQUEST_MOST, decode_request};
use janua_port::host::HostReady;
use janua_port::{Answer, Asked, Host, HostFd};

use crate::host::{IoVec, LinuxHost, MsgHdr};
use crate::lock::Mutex;
use crate::reactor::Reactor;
use crate::sys::{self, nr};
use crate::{boot, descriptors, machine};

/// Something has come and not been looked at.
static COME: AtomicBool = AtomicBool::new(false);

struct Arrival;

impl HostReady for Arrival {
    fn ready(&self, _events: u32) {
        COME.store(true, Ordering::SeqCst);
        machine::wake_service();
    }
}

/// Begins to listen.
pub(crate) fn listen(reactor: &Reactor) -> Result<()> {
    reactor.watch(boot::info().channel, Arc::new(Arrival))
}

/// What the supervisor has asked for since the last time.
pub fn requests() -> Vec<Asked> {
    let mut all = Vec::new();
    if COME.swap(false, Ordering::SeqCst) {
        flush(&mut LEFT.lock());
        let mut room = vec![0; REQUEST_MOST];
        while let Some(asked) = receive(&mut room) {
            all.extend(asked);
        }
    }
    all
}

/// `struct cmsghdr` with the descriptors behind it.
#[repr(C, align(8))]
struct Rights {
    len: usize,
    level: i32,
    kind: i32,
    fds: [i32; HANDED_MOST],
}

const HEAD: usize = 16;
const SOL_SOCKET: i32 = 1;
const SCM_RIGHTS: i32 = 1;
const MSG_TRUNC: u32 = 0x20;
const MSG_DONTWAIT: usize = 0x40;
const MSG_CMSG_CLOEXEC: usize = 0x4000_0000;

/// The next message: `None` when there is none, `Some(None)` for one that is no request.
fn receive(room: &mut [u8]) -> Option<Option<Asked>> {
    let mut rights = Rights { len: 0, level: 0, kind: 0, fds: [-1; HANDED_MOST] };
    let iov = IoVec { base: room.as_mut_ptr() as usize, len: room.len() };
    let mut head = MsgHdr {
        name: 0,
        name_len: 0,
        iov: &raw const iov as usize,
        iov_len: 1,
        control: &raw mut rights as usize,
        control_len: size_of::<Rights>(),
        flags: 0,
    };
    let channel = boot::info().channel as usize;
    // SAFETY: the structures and the buffers they name are ours and outlive the call.
    let got =
        unsafe { sys::raw_retry(nr::RECVMSG, [channel, &raw mut head as usize, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, 0, 0, 0]) };
    // No bytes: the supervisor is gone, and so is the sandbox in a moment.
    let len = got.ok().filter(|len| *len > 0)?;
    let count = match rights {
        Rights { len, level: SOL_SOCKET, kind: SCM_RIGHTS, .. } if head.control_len >= HEAD => len.saturating_sub(HEAD) / 4,
        _ => 0,
    };
    let handed: Vec<HostFd> = rights.fds[..count.min(HANDED_MOST)].iter().filter_map(|fd| own(*fd)).collect();
    let request = if head.flags & MSG_TRUNC == 0 { decode_request(&room[..len]).ok() } else { None };
    match request {
        Some(request) => Some(Some(Asked { request, handed })),
        None => {
            handed.into_iter().for_each(|fd| LinuxHost.close(fd));
            Some(None)
        }
    }
}

/// A descriptor that came in, on the kernel's account.
fn own(fd: i32) -> Option<HostFd> {
    let taken = descriptors::own(|| Ok(fd as usize));
    if taken.is_err() {
        let _ = sys::words(nr::CLOSE, [fd as usize, 0, 0, 0, 0, 0]);
    }
    taken.ok()
}

/// Answers that the channel had no room for. The supervisor always reads, unless it is paused itself.
static LEFT: Mutex<VecDeque<Vec<u8>>> = Mutex::new(VecDeque::new());
/// A supervisor that has left so many unread gets no more figures. What became of programs it still gets to know, of which it has started each.
const LEFT_MOST: usize = 1024;

/// Sends an answer, later where there is no room: nobody waits, since the caller is the service thread, whose work all timers are.
pub fn answer(answer: &Answer) {
    let Ok(bytes) = postcard::to_allocvec(answer) else { return };
    let figures = matches!(answer, Answer::Look | Answer::Guests { .. } | Answer::Metrics { .. });
    let mut left = LEFT.lock();
    if !figures || left.len() < LEFT_MOST {
        left.push_back(bytes);
    }
    flush(&mut left);
}

/// Sends what was left. The channel's readiness to take more is one of the events that make it [come](COME).
fn flush(left: &mut VecDeque<Vec<u8>>) {
    while let Some(bytes) = left.front() {
        if LinuxHost.write(HostFd(boot::info().channel), bytes, None) == Err(Errno::EAGAIN) {
            return;
        }
        left.pop_front();
    }
}

/// Makes the supervisor look at the words both share, from wherever the caller is: nothing is allocated. A channel that is full makes
/// it look anyway.
pub(crate) fn look() {
    const LOOK: [u8; 1] = [0];
    let _ = LinuxHost.write(HostFd(boot::info().channel), &LOOK, None);
}
