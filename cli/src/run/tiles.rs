//! `--tiles T --cores C`: several kernels side by side. Tile 0 runs the program under the supervisor that was called; each other one has a supervisor in a process
//! of its own, which is no child of that one ([`janua_platform_host::tiles`]). They are connected by a socket for each, and end with it: so also when one is killed.
//!
//! What the other supervisors send is not believed further than what is shown of them: they have a kernel's memory mapped.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use janua_platform_host::channel::announce;
use janua_platform_host::sandbox::{Event, Limits, Sandbox, Setup};
use janua_platform_host::tiles::{self, Links, Tile};
use janua_port::Request;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::control::wire::{self, Received, TileAbout};
use crate::options::Tiles as Wanted;

/// How long a tile may take to start, to pause, and to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// Letters of a reason that are shown.
const WHY_MOST: usize = 200;

/// What the first supervisor sends another.
#[derive(Debug, Serialize, Deserialize)]
enum Order {
    /// A third tile has ended.
    Ended(u32),
    /// Pause all processes of the tile, or let them go on: [`Notice::Held`].
    Hold(bool),
}

/// What another supervisor sends the first.
#[derive(Debug, Serialize, Deserialize)]
enum Notice {
    /// Its kernel has begun; a descriptor of its process comes along.
    Runs,
    Held(Result<(), String>),
    /// Its tile is over, and why.
    Over(String),
}

/// Another tile, as the first supervisor sees it.
struct Peer {
    number: u32,
    socket: OwnedFd,
    process: Option<OwnedFd>,
    /// Why it is over.
    ended: Option<String>,
    /// Its end is to be reported to the kernel.
    unreported: bool,
}

/// The other tiles. None where one was not asked for.
#[derive(Default)]
pub struct Tiles {
    peers: Vec<Peer>,
    /// How all are shown.
    shown: Vec<TileAbout>,
}

/// The tiles that are made, and the first's own part.
pub struct Made {
    pub tiles: Tiles,
    pub own: Option<Tile>,
    /// Descriptors of `own`, to be kept until its kernel has been started.
    pub links: Option<Links>,
}

/// Starts the other tiles, each with what `setup` has and this configuration, and waits until their kernels have begun. While the process has one thread.
pub fn start(wanted: Option<Wanted>, setup: &Setup<'_>, config: &[u8]) -> Result<Made, String> {
    let Some(Wanted { count, cores, .. }) = wanted else { return Ok(Made { tiles: Tiles::default(), own: None, links: None }) };
    let links = Links::make(count).map_err(|error| failed(0, error.what, error.errno))?;
    // Which processors the first tile has is left to chance; the others follow.
    let first = std::process::id() as usize % janua_platform_host::processors();
    let tile = |number: u32| Tile {
        number,
        count,
        cores: cores as usize,
        first: first + number as usize * cores as usize,
        links: links.of(number),
    };
    let mut made = Tiles { peers: Vec::new(), shown: vec![TileAbout::new(0, std::process::id(), cores)] };
    for number in 1..count {
        let peer = start_one(tile(number), setup, config)?;
        made.peers.push(peer);
    }
    for peer in &mut made.peers {
        let pid = peer.begin()?;
        made.shown.push(TileAbout::new(peer.number, pid, cores));
    }
    let own = tile(0);
    Ok(Made { tiles: made, own: Some(own), links: Some(links) })
}

fn failed(number: u32, what: &str, errno: i32) -> String {
    match errno {
        0 => format!("tile {number}: {what}"),
        errno => format!("tile {number}: {what}: {}", std::io::Error::from_raw_os_error(errno)),
    }
}

fn start_one(tile: Tile, setup: &Setup<'_>, config: &[u8]) -> Result<Peer, String> {
    let number = tile.number;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
    let (socket, theirs) = pair.map_err(|error| failed(number, "cannot make a socket for it", error.raw_os_error()))?;
    let kept: Vec<i32> = tile
        .links
        .iter()
        .map(|(_, fd)| *fd)
        .chain(setup.needs.shown.iter().map(|place| place.fd))
        .chain(setup.group)
        .chain([theirs.as_raw_fd()])
        .collect();
    let setup = Setup {
        config,
        tile: Some(tile),
        // It has neither a program nor what one inherits; the first ends the others when its time is over.
        needs: janua_platform_host::wall::Needs { inherited: &[], trace: None, ..setup.needs },
        limits: Limits { time: None, ..setup.limits },
        fault: (0, 0),
        ..*setup
    };
    tiles::apart(&kept, || supervise(&setup, &theirs))
        .map_err(|errno| failed(number, "cannot make a process for it (fork)", errno))?;
    Ok(Peer { number, socket, process: None, ended: None, unreported: false })
}

/// What the supervisor of another tile does until that is over: its exit code.
fn supervise(setup: &Setup<'_>, first: &OwnedFd) -> i32 {
    let sandbox = match Sandbox::start(setup) {
        Ok(sandbox) => sandbox,
        Err(error) => {
            let why = match error.errno {
                0 => error.what.to_owned(),
                errno => format!("{}: {}", error.what, crate::choice::host_error(errno)),
            };
            let _ = wire::send(first, &Notice::Over(why), &[]);
            return 1;
        }
    };
    let why = serve(sandbox, first);
    // The first may be gone.
    let _ = wire::send(first, &Notice::Over(why), &[]);
    0
}

/// The same once its kernel has begun: why it ended.
fn serve(mut sandbox: Sandbox, first: &OwnedFd) -> String {
    let begun = pidfd_open(rustix::process::getpid(), PidfdFlags::empty())
        .and_then(|process| wire::send(first, &Notice::Runs, &[process.as_fd()]));
    let why = match begun {
        Ok(()) if announce(first.as_raw_fd()) => hear(&sandbox, first),
        _ => Some("its supervisor cannot be reached".to_owned()),
    };
    let why = why.unwrap_or_else(|| {
        loop {
            let why = match sandbox.wait() {
                Event::Ended(code) => Some(format!("its kernel has ended, with exit code {code}")),
                Event::Lost { pid, signal: 0 } => Some(format!("host process {pid} of it ended by itself")),
                Event::Lost { pid, signal } => Some(format!("host process {pid} of it was killed by signal {signal}")),
                Event::Signal(signal) if [Signal::TERM, Signal::INT].iter().any(|end| end.as_raw() == signal) => {
                    Some(format!("its supervisor was sent signal {signal}"))
                }
                Event::Channel => hear(&sandbox, first),
                Event::Stopped(_) | Event::Signal(_) | Event::Timeout => None,
            };
            if let Some(why) = why {
                break why;
            }
        }
    });
    sandbox.destroy();
    why
}

/// Hears its kernel and the first supervisor out. A reason when the tile is over.
fn hear(sandbox: &Sandbox, first: &OwnedFd) -> Option<String> {
    while let Some(answer) = sandbox.answer() {
        if answer.is_err() {
            return Some("its kernel says what it never would".to_owned());
        }
    }
    loop {
        match wire::receive(first) {
            Received::Message(Order::Ended(tile), _) => {
                // A kernel that does not listen is no reason to end it: what it sends there is not taken out, and no more.
                let _ = sandbox.ask(&Request::TileEnded { tile }, &[]);
            }
            Received::Message(Order::Hold(paused), _) => {
                let done = if paused { sandbox.pause(true) } else { sandbox.resume() };
                let _ = wire::send(first, &Notice::Held(done.map_err(str::to_owned)), &[]);
            }
            Received::Nothing => return None,
            Received::End | Received::Garbage => return Some("the first tile's supervisor has gone".to_owned()),
        }
    }
}

/// Whether the descriptor becomes readable, or its other side is gone, before this time.
fn becomes_ready(fd: &OwnedFd, end: Instant) -> bool {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let limit = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&limit)) {
            Err(rustix::io::Errno::INTR) => {}
            found => return found.is_ok_and(|count| count > 0),
        }
    }
}

impl Peer {
    /// Waits until its kernel has begun: the number of its supervisor's process.
    fn begin(&mut self) -> Result<u32, String> {
        if !becomes_ready(&self.socket, Instant::now() + PATIENCE) {
            return Err(failed(self.number, "it does not start", 0));
        }
        match wire::receive(&self.socket) {
            Received::Message(Notice::Runs, mut handed) if handed.len() == 1 => {
                self.process = handed.pop();
                self.pid().ok_or_else(|| failed(self.number, "its process is not known", 0))
            }
            Received::Message(Notice::Over(why), _) => Err(failed(self.number, &printable(&why), 0)),
            _ => Err(failed(self.number, "its supervisor was killed", 0)),
        }
    }

    /// The number of its supervisor's process.
    fn pid(&self) -> Option<u32> {
        let process = self.process.as_ref()?;
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", process.as_raw_fd())).ok()?;
        info.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()
    }

    /// The next message, if there is one; an end is noted.
    fn next(&mut self) -> Option<Notice> {
        if self.ended.is_some() {
            return None;
        }
        match wire::receive(&self.socket) {
            Received::Message(Notice::Over(why), _) => self.over(&why),
            Received::Message(notice, _) => return Some(notice),
            Received::Nothing => {}
            Received::End => self.over("its supervisor was killed"),
            Received::Garbage => self.over("its supervisor says what it never would"),
        }
        None
    }

    fn over(&mut self, why: &str) {
        self.ended = Some(printable(why));
        self.unreported = true;
        // Whatever is left of it.
        self.kill();
    }

    fn kill(&self) {
        if let Some(process) = &self.process {
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
    }
}

/// A reason as a terminal may show it.
fn printable(why: &str) -> String {
    why.chars().take(WHY_MOST).map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

impl Tiles {
    /// Begins to be notified, once the first tile's kernel has been started.
    pub fn listen(&mut self, sandbox: &Sandbox) {
        for peer in &mut self.peers {
            if !announce(peer.socket.as_raw_fd()) {
                peer.over("its supervisor cannot be heard");
            }
        }
        self.hear(sandbox);
    }

    /// How all tiles are shown.
    pub fn shown(&self) -> &[TileAbout] {
        &self.shown
    }

    /// Hears the others out, and reports each that has ended: to the user, to the kernel, to those that go on.
    pub fn hear(&mut self, sandbox: &Sandbox) {
        for peer in &mut self.peers {
            while peer.next().is_some() {}
        }
        self.report(sandbox);
    }

    fn report(&mut self, sandbox: &Sandbox) {
        for at in 0..self.peers.len() {
            let (number, Some(why)) = (self.peers[at].number, self.peers[at].ended.clone()) else { continue };
            let Some(shown) = self.shown.get_mut(number as usize) else { continue };
            if shown.ended.is_none() {
                shown.ended = Some(why.clone());
                crate::exit::say(&format_args!("janua: tile {number} has ended: {why}; the others go on\n"));
                for other in self.peers.iter().filter(|other| other.ended.is_none()) {
                    let _ = wire::send(&other.socket, &Order::Ended(number), &[]);
                }
            }
            // A kernel that does not listen now gets it with the next event.
            if self.peers[at].unreported && sandbox.ask(&Request::TileEnded { tile: number }, &[]).is_ok() {
                self.peers[at].unreported = false;
            }
        }
    }

    /// Pauses the other tiles, or lets them go on; who cannot be paused leaves all as they were.
    pub fn hold(&mut self, paused: bool) -> Result<(), String> {
        for at in 0..self.peers.len() {
            if let Err(why) = self.peers[at].hold(paused) {
                if paused {
                    for before in &mut self.peers[..at] {
                        let _ = before.hold(false);
                    }
                }
                return Err(why);
            }
        }
        Ok(())
    }
}

impl Drop for Tiles {
    /// Ends them all and waits until they are gone.
    fn drop(&mut self) {
        for peer in &self.peers {
            let _ = shutdown(&peer.socket, Shutdown::Write);
        }
        let end = Instant::now() + PATIENCE;
        for peer in &self.peers {
            let Some(process) = &peer.process else { continue };
            if !becomes_ready(process, end) {
                // Stopped, most likely. Its processes go with it.
                peer.kill();
                becomes_ready(process, Instant::now() + PATIENCE);
            }
        }
    }
}

impl Peer {
    fn hold(&mut self, paused: bool) -> Result<(), String> {
        let asked = self.ended.is_none() && wire::send(&self.socket, &Order::Hold(paused), &[]).is_ok();
        let end = Instant::now() + PATIENCE;
        while asked && self.ended.is_none() {
            if !becomes_ready(&self.socket, end) {
                return Err(failed(self.number, "its supervisor does not answer: is it stopped?", 0));
            }
            if let Some(Notice::Held(done)) = self.next() {
                return done.map_err(|why| failed(self.number, &printable(&why), 0));
            }
        }
        // There is nothing to be paused of one that has ended.
        Ok(())
    }
}
