//! A supervisor's side: what it replies to those who ask about its sandbox, or want something of it.

use std::collections::BTreeMap;
use std::time::Instant;

use janua_platform_host::channel::{self, Garbage};
use janua_platform_host::processes::HostProcess;
use janua_platform_host::sandbox::{self, Sandbox};
use janua_port::outside::{FIRST, GuestInfo, Program};
use janua_port::{Answer, Request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{SocketFlags, accept_with};
use rustix::process::{geteuid, getpid};

use super::detach::printable;
use super::place::{Name, Place, Taken};
use super::stats::figure;
use super::wire::{self, About, Ask, Guest, Received, Reply, Usage};
use crate::run::tiles::Tiles;

/// SIGKILL.
const KILL: u32 = 9;
const MOST_SIGNALS: u32 = 64;
/// Bytes of a module's name, and more.
const MOST_OF_A_NAME: usize = 64;

/// Where a sandbox is found, and who has come.
pub struct Server {
    /// `None` for one that cannot be found (yet).
    found: Option<Found>,
    /// The number at which it is to be found once its kernel starts: that waits for nothing.
    later: Option<Name>,
    clients: Vec<Client>,
    /// The number of the next request to the kernel.
    next: u32,
    about: About,
    began: Instant,
}

struct Found {
    place: Place,
    name: Name,
    listener: OwnedFd,
    detached: bool,
}

struct Client {
    socket: OwnedFd,
    wants: Wants,
}

/// What a client waits for.
enum Wants {
    Nothing,
    /// The guests, by a request of this number; and the processes on the host by the numbers the kernel knows.
    Guests(u32, BTreeMap<u32, u32>),
    /// The figures, by a request of this number; and what is known without the kernel.
    Usage(u32, Box<(About, Usage)>),
    /// That a module is where it is to be, by a request of this number.
    Move(u32),
    /// The end of the sandbox.
    End,
    /// The end of a program.
    Program {
        id: u32,
        terminal: bool,
    },
}

impl Wants {
    fn id(&self) -> Option<u32> {
        match self {
            Wants::Guests(id, _) | Wants::Usage(id, _) | Wants::Move(id) | Wants::Program { id, .. } => Some(*id),
            Wants::Nothing | Wants::End => None,
        }
    }
}

/// What clients and the kernel request of the supervisor.
#[derive(Default)]
pub struct Requests {
    /// Ends the sandbox.
    pub kill: bool,
    /// Passes this signal on.
    pub signals: Vec<i32>,
    /// What the kernel reports of the first program.
    pub first: Vec<Answer>,
}

/// Makes a sandbox one that can be found, unless that has time.
fn claim(name: &Name, detached: bool, later: bool) -> Result<Option<Found>, Taken> {
    if later {
        return Ok(None);
    }
    let place = Place::make().map_err(Taken::Failed)?;
    Ok(Some(Found { listener: place.claim(name)?, name: name.clone(), place, detached }))
}

/// Whether the other side has closed its socket; what it has sent before may still be there.
fn is_gone(socket: &OwnedFd) -> bool {
    let mut looked = [PollFd::new(socket, PollFlags::RDHUP)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut looked, Some(&now)).is_ok() && looked[0].revents().intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR)
}

impl Server {
    /// A server at the name, or for a sandbox that was given none at its number.
    pub fn new(given: Option<Name>, detached: bool, command: Vec<String>) -> Result<Server, String> {
        let later = given.is_none() && !detached;
        let name = given.unwrap_or_else(Name::own);
        let found = match claim(&name, detached, later) {
            Ok(found) => found,
            Err(Taken::Running) => {
                return Err(format!(
                    "a sandbox named {name} runs already\n       give another --name, or end it: janua kill {name}"
                ));
            }
            Err(Taken::Failed(why)) => return Err(format!("the sandbox cannot be given a name: {why}")),
        };
        let about = About { pid: getpid().as_raw_nonzero().get() as u32, detached, command, ..About::default() };
        Ok(Server { found, later: later.then_some(name), clients: Vec::new(), next: FIRST + 1, about, began: Instant::now() })
    }

    /// The place and name where it is found.
    pub fn found(&self) -> Option<(&Place, &Name)> {
        self.found.as_ref().map(|found| (&found.place, &found.name))
    }

    /// Begins to listen, once the sandbox has been started.
    pub fn listen(&mut self, tiles: &Tiles) {
        self.about.tiles = tiles.shown().to_vec();
        if let Some(name) = self.later.take() {
            // It goes on without when it cannot be had.
            self.found = claim(&name, false, false).ok().flatten();
        }
        if let Some(found) = &self.found
            && channel::announce(found.listener.as_raw_fd())
        {
            // Who has found the name already may have asked for something.
            channel::look_again();
        }
    }

    /// Takes in what has come: answers of the kernel, clients, what they ask.
    pub fn events(&mut self, sandbox: &Sandbox, tiles: &mut Tiles) -> Result<Requests, Garbage> {
        tiles.hear(sandbox);
        self.about.tiles = tiles.shown().to_vec();
        let mut requests = Requests::default();
        while let Some(answer) = sandbox.answer() {
            self.pass_on(answer?, &mut requests)?;
        }
        self.accept();
        let mut at = 0;
        while at < self.clients.len() {
            if self.hear(at, sandbox, tiles, &mut requests) {
                at += 1;
            } else {
                self.leave(at, sandbox);
            }
        }
        Ok(requests)
    }

    fn accept(&mut self) {
        let Some(found) = &self.found else { return };
        while let Ok(socket) = accept_with(&found.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            let user = socket_peercred(&socket).map(|peer| peer.uid);
            let may = user.is_ok_and(|user| user == geteuid());
            if may && channel::announce(socket.as_raw_fd()) {
                self.clients.push(Client { socket, wants: Wants::Nothing });
            }
        }
    }

    /// Hears a client out. False when it is gone, or makes no sense.
    fn hear(&mut self, at: usize, sandbox: &Sandbox, tiles: &mut Tiles, requests: &mut Requests) -> bool {
        loop {
            let (ask, handed) = match wire::receive(&self.clients[at].socket) {
                Received::Message(ask, handed) => (ask, handed),
                Received::Nothing => return true,
                Received::End | Received::Garbage => return false,
            };
            let going_on = match ask {
                Ask::Report => self.report(at, sandbox),
                Ask::Usage => self.usage(at, sandbox),
                Ask::Kill(KILL) => {
                    requests.kill = true;
                    self.clients[at].wants = Wants::End;
                    true
                }
                Ask::Kill(signal @ 1..=MOST_SIGNALS) => {
                    requests.signals.push(signal as i32);
                    self.reply(at, &Reply::Done)
                }
                Ask::Kill(_) => self.reply(at, &Reply::Refused("there is no such signal".to_owned())),
                Ask::Wait => {
                    self.clients[at].wants = Wants::End;
                    true
                }
                Ask::Pause(paused) => self.hold(at, sandbox, tiles, paused),
                Ask::Move(..) | Ask::Run(_) if self.about.paused => self.reply(at, &Reply::Refused(self.stands_still())),
                Ask::Run(program) => self.run(at, sandbox, program, &handed),
                Ask::Move(module, core) => self.move_module(at, sandbox, module, core),
                Ask::Signal(signal) => self.pass_to_program(at, sandbox, |id| Request::Signal { id, signal }),
                Ask::Resize(size) => self.pass_to_program(at, sandbox, |id| Request::Resize { id, size }),
            };
            if !going_on {
                return false;
            }
        }
    }

    /// A client has gone: so does the program it has run. One with a terminal learns of it by that.
    fn leave(&mut self, at: usize, sandbox: &Sandbox) {
        if let Wants::Program { id, terminal: false } = self.clients.remove(at).wants {
            let _ = sandbox.ask(&Request::Signal { id, signal: KILL }, &[]);
        }
    }

    /// Pauses the sandbox, or lets it go on, for a client that still waits for it: one that gave up has reported that it did not happen.
    fn hold(&mut self, at: usize, sandbox: &Sandbox, tiles: &mut Tiles, paused: bool) -> bool {
        if is_gone(&self.clients[at].socket) {
            return false;
        }
        let own = || if paused { sandbox.pause(!self.about.paused) } else { sandbox.resume() };
        let done = tiles.hold(paused).and_then(|()| own().map_err(str::to_owned));
        if paused && !self.about.paused && done.is_err() {
            // Those that could be paused go on with the rest.
            let _ = tiles.hold(false);
        }
        let reply = match done {
            Ok(()) => {
                self.about.paused = paused;
                Reply::Done
            }
            Err(why) => Reply::Refused(why),
        };
        self.reply(at, &reply)
    }

    /// Why nothing can be run in it.
    fn stands_still(&self) -> String {
        match self.found() {
            Some((_, name)) => format!("the sandbox {name} is paused\n       let it go on with: janua resume {name}"),
            None => "the sandbox is paused".to_owned(),
        }
    }

    /// False when the client does not take it.
    fn reply(&self, at: usize, reply: &Reply) -> bool {
        wire::send(&self.clients[at].socket, reply, &[]).is_ok()
    }

    fn number(&mut self) -> u32 {
        let id = self.next;
        self.next = self.next.wrapping_add(1).max(FIRST + 1);
        id
    }

    /// What is known of the sandbox whose processes these are.
    fn about(&self, sandbox: &Sandbox, processes: &[HostProcess]) -> About {
        let used = sandbox::used_by_children();
        let time = processes.iter().map(|process| process.time).sum::<std::time::Duration>() + used.user + used.system;
        let memory = &sandbox.accounts().memory;
        About {
            age: self.began.elapsed().as_millis() as u64,
            time: time.as_millis() as u64,
            memory: memory.used() as u64,
            memory_limit: memory.limit() as u64,
            command: self.about.command.clone(),
            tiles: self.about.tiles.clone(),
            ..self.about
        }
    }

    fn report(&mut self, at: usize, sandbox: &Sandbox) -> bool {
        if self.clients[at].wants.id().is_some() {
            return false;
        }
        let processes = sandbox.processes();
        let about = self.about(sandbox, &processes);
        if self.about.paused {
            // Its kernel is paused, too.
            return self.reply(at, &Reply::About(about)) && self.reply(at, &Reply::Guests { guests: Vec::new(), more: false });
        }
        let id = self.number();
        let numbers = processes.iter().map(|process| (process.inner, process.pid)).collect();
        self.clients[at].wants = Wants::Guests(id, numbers);
        self.reply(at, &Reply::About(about)) && self.ask(at, sandbox, &Request::Guests { id }, &[])
    }

    fn usage(&mut self, at: usize, sandbox: &Sandbox) -> bool {
        if self.clients[at].wants.id().is_some() {
            return false;
        }
        let about = self.about(sandbox, &sandbox.processes());
        let accounts = sandbox.accounts();
        let usage = Usage {
            memory: figure(&accounts.memory),
            disk: figure(&accounts.disk),
            tasks: figure(&accounts.tasks),
            descriptors: figure(&accounts.descriptors.all),
            inside: None,
        };
        if self.about.paused {
            return self.reply(at, &Reply::Usage(Box::new((about, usage))));
        }
        let id = self.number();
        self.clients[at].wants = Wants::Usage(id, Box::new((about, usage)));
        self.ask(at, sandbox, &Request::Metrics { id }, &[])
    }

    fn move_module(&mut self, at: usize, sandbox: &Sandbox, module: String, core: Option<u32>) -> bool {
        if self.clients[at].wants.id().is_some() {
            return false;
        }
        if module.len() > MOST_OF_A_NAME {
            return self.reply(at, &Reply::Refused("no module has so long a name".to_owned()));
        }
        let id = self.number();
        self.clients[at].wants = Wants::Move(id);
        self.ask(at, sandbox, &Request::Move { id, module, core }, &[])
    }

    fn run(&mut self, at: usize, sandbox: &Sandbox, program: Box<Program>, handed: &[OwnedFd]) -> bool {
        let awaited = program.files.len() + usize::from(program.terminal.is_some());
        if awaited != handed.len() || self.clients[at].wants.id().is_some() {
            return false;
        }
        let (id, terminal) = (self.number(), program.terminal.is_some());
        self.clients[at].wants = Wants::Program { id, terminal };
        let numbers: Vec<i32> = handed.iter().map(AsRawFd::as_raw_fd).collect();
        self.ask(at, sandbox, &Request::Run { id, program }, &numbers)
    }

    fn pass_to_program(&mut self, at: usize, sandbox: &Sandbox, request: impl FnOnce(u32) -> Request) -> bool {
        let Wants::Program { id, .. } = self.clients[at].wants else { return true };
        let request = request(id);
        match sandbox.ask(&request, &[]) {
            Ok(()) => true,
            // A kernel that does not listen, because it is paused, is no reason to end the program; the next size may reach it.
            Err(errno) if errno == rustix::io::Errno::AGAIN.raw_os_error() && matches!(request, Request::Resize { .. }) => true,
            // The program stays the client's, and goes with it.
            Err(errno) => self.refuse(at, errno),
        }
    }

    /// Asks the kernel for a client.
    fn ask(&mut self, at: usize, sandbox: &Sandbox, request: &Request, handed: &[i32]) -> bool {
        let Err(errno) = sandbox.ask(request, handed) else { return true };
        self.clients[at].wants = Wants::Nothing;
        self.refuse(at, errno)
    }

    /// Replies that the kernel has not taken it.
    fn refuse(&self, at: usize, errno: i32) -> bool {
        let error = std::io::Error::from_raw_os_error(errno);
        self.reply(at, &Reply::Refused(format!("the sandbox's kernel does not take it: {error}")))
    }

    /// An answer of the kernel's, to whom it belongs. One to what was never asked is garbage; who asked may have gone.
    fn pass_on(&mut self, answer: Answer, requests: &mut Requests) -> Result<(), Garbage> {
        let id = match &answer {
            Answer::Look => return Ok(()),
            Answer::Guests { id, .. }
            | Answer::Started { id, .. }
            | Answer::Says { id, .. }
            | Answer::Ended { id, .. }
            | Answer::Metrics { id, .. }
            | Answer::Moved { id }
            | Answer::Refused { id, .. } => *id,
        };
        if id == FIRST && self.about.detached {
            requests.first.push(answer);
            return Ok(());
        }
        if !(FIRST + 1..self.next).contains(&id) {
            return Err(Garbage);
        }
        let Some(at) = self.clients.iter().position(|client| client.wants.id() == Some(id)) else { return Ok(()) };
        let over = match &answer {
            Answer::Guests { more, .. } => !more,
            Answer::Ended { .. } | Answer::Refused { .. } | Answer::Metrics { .. } | Answer::Moved { .. } => true,
            _ => false,
        };
        let reply = match (answer, &mut self.clients[at].wants) {
            (Answer::Metrics { metrics, .. }, Wants::Usage(_, known)) => {
                known.1.inside = Some(metrics);
                Reply::Usage(core::mem::take(known))
            }
            // A kernel without processes.
            (Answer::Refused { .. }, Wants::Usage(_, known)) => Reply::Usage(core::mem::take(known)),
            (Answer::Guests { guests, more, .. }, Wants::Guests(_, numbers)) => {
                let host = |info: &GuestInfo| numbers.get(&info.host).copied().unwrap_or(0);
                Reply::Guests { guests: guests.into_iter().map(|info| Guest { host: host(&info), info }).collect(), more }
            }
            (Answer::Moved { .. }, Wants::Move(_)) => Reply::Done,
            (Answer::Started { pid, .. }, Wants::Program { .. }) => Reply::Started { pid },
            (Answer::Says { text, .. }, Wants::Program { .. }) => Reply::Says(text),
            (Answer::Ended { status, .. }, Wants::Program { .. }) => Reply::Exited(status),
            (Answer::Refused { why, .. }, _) => Reply::Refused(printable(&why).trim_end().to_owned()),
            _ => return Err(Garbage),
        };
        if over {
            self.clients[at].wants = Wants::Nothing;
        }
        // The list of a large sandbox may have to wait for its reader.
        let socket = &self.clients[at].socket;
        if matches!(wire::send(socket, &reply, &[]), Err(rustix::io::Errno::AGAIN)) {
            let _ = set_socket_timeout(socket, Timeout::Send, Some(std::time::Duration::from_secs(1)));
            let blocking = rustix::fs::fcntl_getfl(socket)
                .and_then(|flags| rustix::fs::fcntl_setfl(socket, flags - rustix::fs::OFlags::NONBLOCK));
            let _ = blocking.and_then(|()| wire::send(socket, &reply, &[]));
            channel::announce(socket.as_raw_fd());
        }
        Ok(())
    }

    /// The sandbox has ended: its name is free, and who waited is notified. `ran`: there was a program.
    pub fn end(&mut self, code: u8, ran: bool) {
        let Some(found) = self.found.take() else { return };
        match (found.detached, ran) {
            (true, true) => found.place.note_end(&found.name, code),
            (true, false) => found.place.forget_end(&found.name),
            (false, _) => {}
        }
        found.place.forget(&found.name);
        for client in self.clients.drain(..) {
            let reply = match client.wants {
                Wants::End => Reply::Ended(code),
                Wants::Program { .. } => Reply::Exited(KILL),
                Wants::Guests(..) | Wants::Usage(..) | Wants::Move(_) | Wants::Nothing => continue,
            };
            let _ = wire::send(&client.socket, &reply, &[]);
        }
    }
}
