//! The side of a tile on which programs of the home tile run: it begins them as it is asked to, and reports what becomes of them.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use crate::signal::SigSet;
use janua_abi::linux::signal::{SIG_IGN, SIGMAX, SigAction, SigInfo};
use janua_abi::linux::{Errno, Result};
use janua_kernel::table::Fd;
use janua_kernel::tiles::{Channel, Offer};
use janua_object::fdtable::FdTable;
use janua_object::file::flags;
use janua_object::{Cred, OpenFile};
use janua_port::outside::Program;
use janua_rt::{Mutex, RwLock};
use zerocopy::FromBytes;

use super::file::{AwayFile, Gone, Heard};
use super::link::{Kind, Link, Message};
use super::wire::{Object, Start, Used, What};
use crate::fs::FsContext;
use crate::limits::Limits;
use crate::outside::Order;
use crate::process::{Process, Report, Session};
use crate::signal::{is_signal, send};
use crate::task::tree::FIRST;
use crate::thread::{ThreadExt, ThreadState};
use crate::{Kernel, Seat, Task, Thread, fs};

/// What the home tile may have begun here.
pub struct Guest {
    kernel: Arc<Kernel>,
    pub link: Arc<Link>,
    /// Files of the home tile that processes have here, by their numbers there.
    files: Mutex<BTreeMap<u32, Arc<Heard>>>,
}

impl Gone for Guest {
    fn gone(&self, handle: u32) {
        self.files.lock().remove(&handle);
    }
}

/// Lets the home tile, and no other, begin programs here.
pub struct HomeOnly(pub Weak<Kernel>);

impl Offer for HomeOnly {
    fn bound(&self, channel: Channel) {
        let Some(kernel) = self.0.upgrade() else { return };
        if channel.peer() != super::HOME {
            return;
        }
        let mut place = kernel.place.guest.write();
        if place.as_ref().is_some_and(|guest| !guest.link.is_broken()) {
            return;
        }
        let link = Link::new(kernel.machine, channel);
        let guest = Arc::new(Guest { kernel: kernel.clone(), link, files: Mutex::default() });
        let serving = guest.clone();
        if kernel.machine.spawn_kernel("placed", Box::new(move || serving.serve())).is_ok() {
            *place = Some(guest);
        }
    }
}

impl Guest {
    fn serve(self: &Arc<Self>) {
        self.link.serve(false, |message| {
            if self.act(message).is_err() {
                self.link.break_off();
            }
        });
        // Without its home no program goes on.
        for task in self.kernel.processes().into_iter().filter(|task| task.home.load(Ordering::SeqCst) != 0) {
            send::exit_group_locked(&mut task.group.lock(), janua_abi::linux::signal::SIGKILL);
        }
        let files = core::mem::take(&mut *self.files.lock());
        files.into_values().for_each(|heard| heard.ready());
    }

    /// EPROTO for what the home tile never sends.
    fn act(self: &Arc<Self>, message: Message) -> Result<()> {
        let info = || SigInfo::read_from_bytes(&message.body).ok().filter(|info| is_signal(info.signal())).ok_or(Errno::EPROTO);
        match message.kind {
            Kind::Start => {
                let start = Start::decode(&message.body)?;
                if start.pid != message.handle {
                    return Err(Errno::EPROTO);
                }
                if let Err(errno) = self.begin(start) {
                    self.report(Kind::Refused, message.handle, errno.as_result() as u64);
                }
                Ok(())
            }
            Kind::Signal => {
                let info = info()?;
                // It may have ended meanwhile.
                if let Some(task) = self.kernel.process(message.handle).filter(|task| is_placed(task)) {
                    let _ = send::send_task(&task, info);
                }
                Ok(())
            }
            Kind::Group => {
                let info = info()?;
                let members: Vec<Arc<Task>> = self.kernel.tree.lock().group(message.handle).cloned().collect();
                for task in members.iter().filter(|task| !is_placed(task)) {
                    let _ = send::send_task(task, info);
                }
                Ok(())
            }
            Kind::Ready => {
                let heard = self.files.lock().get(&message.handle).cloned();
                if let Some(heard) = heard {
                    heard.ready();
                }
                Ok(())
            }
            _ => Err(Errno::EPROTO),
        }
    }

    fn report(&self, kind: Kind, pid: u32, word: u64) {
        self.link.post(&Message::new(kind, pid, word, 0));
    }

    fn open(self: &Arc<Self>, object: &Object) -> Result<Arc<OpenFile>> {
        match &object.what {
            What::Null => {
                let path = fs::setup::place(&self.kernel, b"/dev/null")?;
                let caller = janua_object::caller::Itself::new(self.kernel.machine);
                self.kernel.vfs.open_inode(&caller, path, object.flags & !flags::O_CLOEXEC)
            }
            What::Away(about) => {
                let heard = Arc::new(Heard::default());
                if self.files.lock().insert(about.handle, heard.clone()).is_some() {
                    return Err(Errno::EPROTO);
                }
                let me: Arc<dyn Gone> = self.clone();
                let file = AwayFile::new(&self.link, about.clone(), heard, Arc::downgrade(&me));
                Ok(OpenFile::new(Arc::new(file), object.flags, None))
            }
        }
    }

    /// Begins a program: what becomes of it is reported later.
    fn begin(self: &Arc<Self>, start: Start) -> Result<()> {
        let kernel = &self.kernel;
        let objects: Vec<Arc<OpenFile>> = start.objects.iter().map(|object| self.open(object)).collect::<Result<_>>()?;
        let files = FdTable::new();
        for (fd, object) in &start.files {
            files.install_at(objects[*object as usize].clone(), Fd(*fd as i32), false, super::wire::DESCRIPTORS)?;
        }
        drop(objects);
        let root = kernel.root.root.read().clone();
        let cwd = fs::setup::place(kernel, &start.cwd)?;
        let fs = FsContext { root: RwLock::new(root), cwd: RwLock::new(cwd), umask: (start.umask & 0o777).into() };
        let (task, seat) = process(kernel, &start, Arc::new(fs), Arc::new(files));
        let tasks = &kernel.machine.accounts().tasks;
        if !tasks.take(1) {
            return Err(Errno::EAGAIN);
        }
        {
            let mut tree = kernel.tree.lock();
            let pid = task.pid;
            // The numbers of processes that began here are others.
            let known = tree.process(pid).is_some() || tree.thread(pid).is_some();
            if known || pid <= FIRST || pid >= super::first_pid(1) || kernel.ending.has_begun() {
                drop(tree);
                tasks.give(1);
                return Err(Errno::ESRCH);
            }
            if let Some(other) = tree.processes().find(|other| other.session().id == start.session) {
                *task.session.write() = other.session();
            }
            tree.insert_process(&task);
            tree.insert_thread(pid, &seat);
            kernel.ending.born();
        }
        let program = Program { path: start.path, argv: start.argv, envp: start.envp, ..Program::default() };
        kernel
            .outside
            .begin(kernel, &task, &seat, Order { program: Box::new(program), notice: None })
            .inspect_err(|_| tasks.give(1))
    }
}

/// The process of a program that is to begin, which the tree does not know yet.
fn process(kernel: &Arc<Kernel>, start: &Start, fs: Arc<FsContext>, files: Arc<FdTable>) -> (Arc<Task>, Arc<Seat>) {
    let cred = Arc::new(Cred::from(start.rights.clone()));
    let mut process = Process::new(start.pid, fs.clone(), kernel.machine.clock().monotonic());
    *process.files.write() = files.clone();
    process.limits = Limits::new(&start.limits);
    process.parent.store(start.parent, Ordering::Relaxed);
    process.pgrp.store(start.pgrp, Ordering::Relaxed);
    process.session = RwLock::new(Session::new(start.session));
    process.home.store(start.pid, Ordering::SeqCst);
    let settings = &process.settings;
    settings.nice.store(start.nice.clamp(-20, 19), Ordering::Relaxed);
    settings.personality.store(start.personality, Ordering::Relaxed);
    let [adj, least] = start.oom_score_adj.map(|adj| adj.clamp(-1000, 1000));
    settings.oom_score_adj.store(adj, Ordering::Relaxed);
    settings.oom_score_adj_min.store(least, Ordering::Relaxed);
    settings.coredump_filter.store(start.coredump_filter, Ordering::Relaxed);
    settings.has_execed.store(true, Ordering::Relaxed);
    let task = Arc::new(Task { kernel: kernel.clone(), ext: process });
    for signal in (1..=SIGMAX).filter(|signal| SigSet(start.ignored).has(*signal)) {
        task.actions().set(signal, SigAction { handler: SIG_IGN, ..SigAction::default() });
    }
    let state = ThreadState::new(start.pid, cred.clone(), fs, files, kernel.users.of(cred.uid));
    state.loads.store(true, Ordering::Relaxed);
    state.timer_slack.store(start.timer_slack, Ordering::Relaxed);
    state.default_slack.store(start.timer_slack, Ordering::Relaxed);
    state.signals.store_blocked(SigSet(start.blocked).without(crate::signal::UNBLOCKABLE));
    let seat = Seat::new(Thread::new(task.clone(), state));
    seat.set_seat(&seat);
    task.group.lock().threads.push(seat.clone());
    (task, seat)
}

/// Whether the home tile has begun the process here, and knows it by its number.
fn is_placed(process: &Process) -> bool {
    process.home.load(Ordering::SeqCst) == process.pid
}

fn guest_of(kernel: &Kernel, process: &Process) -> Option<Arc<Guest>> {
    if is_placed(process) { kernel.place.guest.read().clone() } else { None }
}

/// A program that may be of another tile has been loaded here, or has not: then nothing more is reported of it.
pub fn loaded(thread: &Thread, loaded: Result<()>) {
    let process = thread.process();
    let Some(guest) = guest_of(&thread.kernel, process) else { return };
    match loaded {
        Ok(()) => guest.report(Kind::Started, process.pid, 0),
        Err(errno) => {
            process.home.store(0, Ordering::SeqCst);
            guest.report(Kind::Refused, process.pid, errno.as_result() as u64);
        }
    }
}

/// A process has ended that may be of another tile.
pub fn ended(task: &Task, status: u32) {
    let Some(guest) = guest_of(&task.kernel, task) else { return };
    let usage = &task.usage;
    let peaks = [&usage.maxrss, &usage.children_maxrss].map(|peak| peak.load(Ordering::Relaxed));
    let used = Used { own: usage.threads.get(), children: usage.children.get(), peaks };
    guest.link.post(&Message::new(Kind::Ended, task.pid, status.into(), 0).with(used.bytes()));
}

/// It has stopped, or goes on.
pub fn changed(task: &Task, what: Report) {
    let Some(guest) = guest_of(&task.kernel, task) else { return };
    match what {
        Report::Stopped(_) => {
            let signal = task.group.lock().stop.map_or(0, |stop| stop.signal);
            if signal != 0 {
                guest.report(Kind::Stopped, task.pid, signal.into());
            }
        }
        Report::Continued => guest.report(Kind::Continued, task.pid, 0),
    }
}

/// kill(2) for processes of the home tile, by one that runs here. ESRCH for one whose home is here.
pub fn kill(thread: &Thread, target: i32, signal: u32) -> Result<()> {
    let by = thread.process().home.load(Ordering::SeqCst);
    let guest = thread.kernel.place.guest.read().clone().filter(|_| by != 0).ok_or(Errno::ESRCH)?;
    let message = Message::new(Kind::Kill, by, target as u32 as u64, signal.into());
    let answer = guest.link.ask(message);
    // A signal that has come back to the caller is there before the call returns (POSIX).
    guest.link.catch_up();
    match answer {
        Err(Errno::EIO) => Err(Errno::ESRCH),
        answer => answer.map(drop),
    }
}
