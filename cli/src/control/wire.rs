//! What the commands and a supervisor send each other: one datagram a message, of a type that either side decodes whole or not at all.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

use janua_port::outside::{GuestInfo, Metrics, Program, WindowSize};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Bytes of a message.
pub const MOST: usize = 144 << 10;
/// Descriptors that come with one.
const HANDED_MOST: usize = 4;

/// What is asked of a supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub enum Ask {
    /// Who are you: [`Reply::About`], then [`Reply::Guests`].
    Report,
    /// A signal to the first program: [`Reply::Done`]. 9: the end of it all, and [`Reply::Ended`] comes after it.
    Kill(u32),
    /// [`Reply::Ended`] when it has.
    Wait,
    /// Pause all that is inside, or let it go on: [`Reply::Done`] when that is so.
    Pause(bool),
    /// Run a program; the descriptors have come along.
    Run(Box<Program>),
    /// To the program this connection has run.
    Signal(u32),
    Resize(WindowSize),
    /// How much of everything is used: [`Reply::Usage`].
    Usage,
    /// Have a module stay on a core, or with `None` go where there is less to do: [`Reply::Done`].
    Move(String, Option<u32>),
}

/// What a supervisor replies.
#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    About(About),
    Guests {
        guests: Vec<Guest>,
        more: bool,
    },
    Done,
    /// The sandbox has ended with this exit code.
    Ended(u8),
    /// The program runs.
    Started {
        pid: u32,
    },
    /// Why it does not.
    Says(String),
    /// It has ended with this wait status.
    Exited(u32),
    /// It cannot be done.
    Refused(String),
    Usage(Box<(About, Usage)>),
}

/// A sandbox.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct About {
    /// Of the supervisor.
    pub pid: u32,
    pub detached: bool,
    /// It is paused; then nothing is known of its guests.
    pub paused: bool,
    /// Milliseconds since its start.
    pub age: u64,
    /// Milliseconds of processor time.
    pub time: u64,
    /// Bytes, and the limit.
    pub memory: u64,
    pub memory_limit: u64,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The tiles, where there are several.
    pub tiles: Vec<TileAbout>,
}

/// A tile of a sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TileAbout {
    pub number: u32,
    /// Of its supervisor.
    pub pid: u32,
    /// Processors it may use.
    pub cores: u32,
    /// Why it is over.
    pub ended: Option<String>,
}

impl TileAbout {
    pub fn new(number: u32, pid: u32, cores: u32) -> TileAbout {
        TileAbout { number, pid, cores, ended: None }
    }
}

/// An amount in use, the most that was at a time, the limit where there is one, and how often somebody was refused for it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Figure {
    pub used: u64,
    pub peak: u64,
    pub limit: Option<u64>,
    pub refused: u64,
}

/// What a sandbox uses ([`janua_port::Accounts`]): bytes of memory and of files in memory, threads, descriptors of the host.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Usage {
    pub memory: Figure,
    pub disk: Figure,
    pub tasks: Figure,
    pub descriptors: Figure,
    /// What its kernel reports. `None` while that is paused, and from one without processes.
    pub inside: Option<Metrics>,
}

/// A guest process: what the kernel reports of it, and the supervisor its number on the host.
#[derive(Debug, Serialize, Deserialize)]
pub struct Guest {
    pub info: GuestInfo,
    pub host: u32,
}

/// Sends a message. With EAGAIN the other side does not read.
pub fn send(socket: impl AsFd, message: &impl Serialize, handed: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let bytes = postcard::to_allocvec(message).map_err(|_| Errno::INVAL)?;
    if bytes.len() > MOST {
        return Err(Errno::TOOBIG);
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(HANDED_MOST))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !handed.is_empty() && !control.push(SendAncillaryMessage::ScmRights(handed)) {
        return Err(Errno::TOOBIG);
    }
    sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL).map(drop)
}

/// A message that has been received.
pub enum Received<M> {
    Message(M, Vec<OwnedFd>),
    /// Nothing yet.
    Nothing,
    /// The other side is gone.
    End,
    /// It is no message.
    Garbage,
}

/// Receives a message.
pub fn receive<M: DeserializeOwned>(socket: impl AsFd) -> Received<M> {
    let mut bytes = vec![0; MOST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(HANDED_MOST))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        match recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Received::Nothing,
            Err(_) => return Received::End,
            Ok(got) => break got,
        }
    };
    if got.bytes == 0 {
        return Received::End;
    }
    let handed = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    let handed: Vec<OwnedFd> = handed.flatten().collect();
    if got.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Received::Garbage;
    }
    match postcard::take_from_bytes(&bytes[..got.bytes]) {
        Ok((message, [])) => Received::Message(message, handed),
        _ => Received::Garbage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None).unwrap()
    }

    #[test]
    fn messages_are_whole_or_garbage() {
        let (here, there) = pair();
        assert!(matches!(receive::<Ask>(&there), Received::Nothing));
        send(&here, &Ask::Signal(15), &[here.as_fd()]).unwrap();
        assert!(matches!(receive::<Ask>(&there), Received::Message(Ask::Signal(15), fds) if fds.len() == 1));
        for garbage in [&[0xffu8; 20][..], &[0, 0], &[1]] {
            rustix::io::write(&here, garbage).unwrap();
            assert!(matches!(receive::<Ask>(&there), Received::Garbage));
        }
        drop(here);
        assert!(matches!(receive::<Ask>(&there), Received::End));
    }
}
