//! The supervisor's end of the channel to a kernel, and what else it is notified of by the same signal.
//!
//! What comes by the channel was written by a kernel that a guest may have compromised. So nothing but bytes is taken from it, at most as
//! many as an answer has, and what is no answer ends the sandbox.

use alloc::vec;
use core::ptr;

use janua_abi::linux::fcntl::F_SETSIG;
use janua_platform_boot::channel::{ANSWER_MOST, HANDED_MOST, decode_answer, encode_request};
use janua_port::{Answer, Request};

use crate::sandbox::StartError;

/// What the host sends the supervisor when something has come by a descriptor it watches. It is queued, so that no other is lost.
pub const READY: i32 = 63;

/// Makes the host send this process [`READY`] whenever the descriptor becomes ready, which never blocks from then on. After
/// [`crate::sandbox::Sandbox::start`], which takes the signal.
pub fn announce(fd: i32) -> bool {
    // SAFETY: plain words.
    unsafe {
        libc::fcntl(fd, F_SETSIG as i32, READY) == 0
            && libc::fcntl(fd, libc::F_SETOWN, libc::getpid()) == 0
            && libc::fcntl(fd, libc::F_SETFL, libc::O_ASYNC | libc::O_NONBLOCK) == 0
    }
}

/// Has this process receive [`READY`]: for what came by a descriptor before it was announced.
pub fn look_again() {
    // SAFETY: plain words; the signal is one that this process takes.
    unsafe { libc::kill(libc::getpid(), READY) };
}

/// What was read was no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Garbage;

/// The supervisor's end.
#[derive(Debug)]
pub struct Channel {
    fd: i32,
}

impl Channel {
    /// A channel, and the kernel's end of it. What the kernel writes makes the host send [`READY`] here: a signal of the kernel's own
    /// could not leave its namespace, and would need a kill(2) that reaches others.
    pub(crate) fn pair() -> Result<(Channel, i32), StartError> {
        let mut ends = [0; 2];
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: the array is ours.
        let made = unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } == 0;
        if made && announce(ends[0]) {
            Ok((Channel { fd: ends[0] }, ends[1]))
        } else {
            Err(StartError { what: "cannot make a channel to the kernel (socketpair)", errno: crate::errno() })
        }
    }

    /// Sends a request with descriptors, which stay open here. E2BIG for one that is too long, EAGAIN when the kernel does not listen.
    pub(crate) fn send(&self, request: &Request, handed: &[i32]) -> Result<(), i32> {
        let bytes = encode_request(request).map_err(|_| libc::E2BIG)?;
        if handed.len() > HANDED_MOST {
            return Err(libc::E2BIG);
        }
        let mut iov = libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: bytes.len() };
        let mut rights = [0u64; 2 + HANDED_MOST];
        // SAFETY: an all-zero header is valid; the buffers are ours, and the control buffer is aligned and has room for what is stored.
        unsafe {
            let mut head: libc::msghdr = core::mem::zeroed();
            head.msg_iov = &raw mut iov;
            head.msg_iovlen = 1;
            if !handed.is_empty() {
                let len = size_of_val(handed) as u32;
                head.msg_control = rights.as_mut_ptr().cast();
                head.msg_controllen = libc::CMSG_SPACE(len) as _;
                let first = libc::CMSG_FIRSTHDR(&raw const head);
                (*first).cmsg_level = libc::SOL_SOCKET;
                (*first).cmsg_type = libc::SCM_RIGHTS;
                (*first).cmsg_len = libc::CMSG_LEN(len) as _;
                ptr::copy_nonoverlapping(handed.as_ptr(), libc::CMSG_DATA(first).cast(), handed.len());
            }
            match libc::sendmsg(self.fd, &raw const head, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) {
                0.. => Ok(()),
                _ => Err(crate::errno()),
            }
        }
    }

    /// The next answer, if there is one. A descriptor that came with it would find no room, and is gone.
    pub(crate) fn receive(&self) -> Option<Result<Answer, Garbage>> {
        // One byte more than the longest.
        let mut room = vec![0u8; ANSWER_MOST + 1];
        loop {
            // SAFETY: a buffer of ours; the descriptor never waits.
            let got = unsafe { libc::read(self.fd, room.as_mut_ptr().cast(), room.len()) };
            return match usize::try_from(got) {
                // The kernel is gone, which its processes' ends show.
                Ok(0) => None,
                Ok(len) if len > ANSWER_MOST => Some(Err(Garbage)),
                Ok(len) => Some(decode_answer(&room[..len]).map_err(|_| Garbage)),
                Err(_) if crate::errno() == libc::EINTR => continue,
                Err(_) => None,
            };
        }
    }
}

/// Signals that arrive at a descriptor instead of ending the process.
pub struct Caught {
    fd: i32,
}

impl Caught {
    /// Takes these signals from now on. `None` where the host refuses.
    pub fn take(signals: &[i32]) -> Option<Caught> {
        // SAFETY: signal sets are plain data.
        let fd = unsafe {
            let mut set: libc::sigset_t = core::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in signals {
                libc::sigaddset(&raw mut set, *signal);
            }
            libc::sigprocmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut());
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if fd >= 0 { Some(Caught { fd }) } else { None }
    }

    /// The next one that has come.
    pub fn next(&self) -> Option<i32> {
        // SAFETY: an all-zero structure is valid, and of the size given.
        unsafe {
            let mut info: libc::signalfd_siginfo = core::mem::zeroed();
            let size = size_of::<libc::signalfd_siginfo>();
            let got = libc::read(self.fd, (&raw mut info).cast(), size);
            (got == size as isize).then_some(info.ssi_signo as i32)
        }
    }

    /// Waits until a signal has come or one of the descriptors is ready: bit n of the result is the n-th. `writing`: to be written to.
    /// A limit in milliseconds, or none.
    pub fn wait(&self, reading: &[i32], writing: &[i32], limit: Option<i32>) -> u32 {
        let entry = |fd: &i32, events| libc::pollfd { fd: *fd, events, revents: 0 };
        let mut all: alloc::vec::Vec<libc::pollfd> = reading.iter().map(|fd| entry(fd, libc::POLLIN)).collect();
        all.extend(writing.iter().map(|fd| entry(fd, libc::POLLOUT)));
        all.push(entry(&self.fd, libc::POLLIN));
        // SAFETY: an array of ours.
        unsafe { libc::poll(all.as_mut_ptr(), all.len() as libc::nfds_t, limit.unwrap_or(-1)) };
        let ready = all.iter().enumerate().filter(|(_, entry)| entry.revents != 0);
        ready.fold(0, |bits, (at, _)| bits | 1 << at)
    }
}

/// Goes on in a new process that leads a session of its own; `false` in the one that made it. While the process has one thread.
pub fn detach() -> Result<bool, i32> {
    // SAFETY: one thread, so that the child may go on with everything it inherits.
    unsafe {
        match libc::fork() {
            -1 => Err(crate::errno()),
            0 => {
                libc::setsid();
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_answer_is_garbage() {
        let mut ends = [0; 2];
        // SAFETY: the array is ours.
        assert_eq!(
            unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK, 0, ends.as_mut_ptr()) },
            0
        );
        let channel = Channel { fd: ends[0] };
        let write = |bytes: &[u8]| crate::sandbox::write_to(ends[1], bytes).unwrap();
        assert_eq!(channel.receive(), None);
        write(&[0]);
        assert_eq!(channel.receive(), Some(Ok(Answer::Look)));
        for garbage in [&[0xff; 40][..], &[0, 0], &[1, 7], &vec![0; ANSWER_MOST + 100]] {
            write(garbage);
            assert_eq!(channel.receive(), Some(Err(Garbage)), "{} bytes", garbage.len());
        }
        assert_eq!(channel.receive(), None);
    }
}
