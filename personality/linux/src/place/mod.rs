//! Programs on other tiles than the one that starts them (`--place spread`, `janua exec --tile`).
//!
//! A program is placed when it is executed. Its process stays on the *home* tile, the first, with its number, parent, group and session, and waits there for its
//! own end; memory, threads and everything the program does are on the other tile, under the same number, and so are the processes it makes. What it has
//! open stays open at home, and is used by messages ([`mod@file`]). Signals for it are sent on; its end, and its stops, come back ([`home`], [`guest`]).
//!
//! What cannot be carried is not placed: it runs at home, as ever. So nothing a program can ask for depends on this, but what it asks about its tile, and
//! what docs/tiles.md lists.

mod file;
pub mod guest;
pub mod home;
pub mod link;
pub mod wire;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::Poll;

use crate::signal::SigSet;
use janua_abi::linux::process::rlimit;
use janua_abi::linux::signal::{SIGCHLD, SIGKILL, SIGMAX, SigInfo};
use janua_abi::linux::{Errno, Result};
use janua_kernel::table::Fd;
use janua_kernel::thread::work;
use janua_kernel::tiles::Monitor;
use janua_object::file::flags;
use janua_object::hostfile::HostFile;
use janua_object::pipe::PipeEnd;
use janua_object::vfs::{FileKind, MountFlags};
use janua_object::{Cred, OpenFile};
use janua_port::Nanos;
use janua_rt::{Mutex, RwLock};

use crate::process::Process;
use crate::signal::{dequeue, send};
use crate::task::tree::FIRST;
use crate::thread::ThreadExt;
use crate::{Kernel, Task, Thread, task, time};
use guest::{Guest, HomeOnly};
use home::Peer;
use wire::{Description, Object, Rights, Start, What};

/// The tile where processes of the sandbox begin.
pub const HOME: u32 = 0;
/// By what number other tiles offer to begin programs.
const INTERFACE: u32 = 1;
/// How long the first connection to a tile may take.
const CONNECTS: Nanos = 5_000_000_000;

/// The first process number that a tile gives out itself: each has a range of its own, so a number means one process everywhere.
pub const fn first_pid(tile: u32) -> u32 {
    tile << 18
}

/// What a kernel has to do with programs on other tiles.
#[derive(Default)]
pub struct Placing {
    /// At home: the other tiles it is connected to.
    peers: Mutex<BTreeMap<u32, Arc<Peer>>>,
    /// Elsewhere: the connection to the home tile.
    pub guest: RwLock<Option<Arc<Guest>>>,
    /// Programs that might have been placed, for taking turns.
    turn: AtomicU32,
}

/// A program, as it was asked for.
pub struct Wanted {
    pub path: Vec<u8>,
    pub argv: Vec<Vec<u8>>,
    pub envp: Vec<Vec<u8>>,
}

/// Why a program is not placed, for a person.
pub type Why = &'static str;

/// Prepares for programs on other tiles: their numbers, and who may begin them here. Before the monitor listens.
pub fn prepare(kernel: &Arc<Kernel>, monitor: &Arc<Monitor>) -> Result<()> {
    if !kernel.config.spread {
        return Ok(());
    }
    let own = monitor.own();
    kernel.tree.lock().give_out(first_pid(own), first_pid(own + 1));
    if own == HOME { Ok(()) } else { monitor.offer(INTERFACE, Arc::new(HomeOnly(Arc::downgrade(kernel)))) }
}

/// Has what is kept in a kernel's memory of files stay as it is, so that all tiles have the same: what is to be written is the host's.
pub fn freeze(kernel: &Kernel) {
    if !kernel.config.spread {
        return;
    }
    for mount in kernel.vfs.mounts() {
        if matches!(mount.fs.name(), "overlay" | "tmpfs" | "devtmpfs") {
            kernel.vfs.set_mount_flags(&mount, mount.flags() | MountFlags::RDONLY);
        }
    }
}

/// The tile that a process runs on, as its home has it; 0 for its home, and on all other tiles.
pub fn tile_of(process: &Process) -> u32 {
    process.tile.load(Ordering::SeqCst)
}

/// The tile that a process runs on, where that is to be shown.
pub fn shown(kernel: &Kernel, process: &Process) -> Option<u32> {
    let own = kernel.monitor.read().as_ref().map(|monitor| monitor.own());
    own.filter(|_| kernel.config.spread).map(|own| if own == HOME { tile_of(process) } else { own })
}

/// Whether the thread is that of a process which runs on another tile, until its end.
pub fn is_elsewhere(thread: &Thread) -> bool {
    tile_of(thread.process()) != HOME && thread.work() & work::KILL == 0
}

/// Waits for the end of a process that runs on another tile: it is made to end here then.
pub async fn until_ended(thread: &Thread) {
    poll_fn(|_| if is_elsewhere(thread) { Poll::Pending } else { Poll::Ready(()) }).await;
}

/// Whether the program that the thread is about to execute may be placed at all: what costs nothing to find out.
pub fn may_place(thread: &Thread) -> bool {
    let kernel = &thread.kernel;
    let home = || kernel.monitor.read().as_ref().is_some_and(|monitor| monitor.own() == HOME);
    kernel.config.spread && thread.process().pid != FIRST && home()
}

/// Places a member of a pipeline, if it is its turn: whether it runs elsewhere now. Then the thread has nothing left to do but wait.
pub fn spread(thread: &Thread, wanted: Wanted) -> bool {
    let kernel = &thread.kernel;
    let files = thread.files();
    let pipe = |fd| files.get(Fd(fd)).is_ok_and(|file| file.downcast::<PipeEnd>().is_some());
    if !wanted.path.contains(&b'/') || !pipe(0) && !pipe(1) {
        return false;
    }
    let Some(count) = kernel.monitor.read().as_ref().map(|monitor| monitor.others().count() as u32 + 1) else { return false };
    let tile = kernel.place.turn.fetch_add(1, Ordering::Relaxed) % count;
    tile != HOME && place(thread, tile, wanted).is_ok()
}

/// Begins a program on another tile in place of the one the thread's process has. On an error nothing has happened.
pub fn place(thread: &Thread, tile: u32, wanted: Wanted) -> core::result::Result<(), Why> {
    let kernel = &thread.kernel;
    may_leave(thread)?;
    let peer = peer(kernel, tile)?;
    let name = wanted.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_vec();
    let cred = thread.cred();
    let mut handles = Vec::new();
    let begun = pack(thread, &peer, &cred, wanted, &mut handles)
        .and_then(|start| start.encode().map_err(|_| "its arguments and environment are too long"))
        .and_then(|bytes| peer.begin(thread.process().pid, bytes).map_err(why_not));
    if begun.is_err() {
        peer.give_up(&handles);
        return begun;
    }
    settle(thread, &peer, &name);
    Ok(())
}

/// What a person should read for the errors with which another tile refuses a program.
fn why_not(errno: Errno) -> Why {
    match errno {
        Errno::ENOENT | Errno::ENOTDIR => "no such file or directory (or its interpreter is missing) inside the sandbox",
        Errno::EACCES => "permission denied: not an executable file",
        Errno::ENOEXEC => "not a program this kernel can run",
        Errno::EAGAIN => "the tile may have no more processes (--pids)",
        Errno::EHOSTDOWN => "the tile has ended, or does not answer",
        _ => "the tile cannot begin it",
    }
}

/// The connection to a tile, made when it is first wanted.
fn peer(kernel: &Arc<Kernel>, tile: u32) -> core::result::Result<Arc<Peer>, Why> {
    let mut peers = kernel.place.peers.lock();
    if let Some(peer) = peers.get(&tile) {
        return if peer.link.is_broken() { Err("the tile has ended") } else { Ok(peer.clone()) };
    }
    let monitor = kernel.monitor.read().clone().ok_or("there are no other tiles")?;
    let answer = monitor.bind(tile, INTERFACE).map_err(|errno| match errno {
        Errno::ENXIO => "there is no such tile",
        _ => "the tile has ended",
    })?;
    let deadline = kernel.machine.clock().monotonic() + CONNECTS;
    let channel = answer.wait(kernel.machine, deadline).and_then(Result::ok).ok_or("the tile does not answer")?;
    let peer = Peer::connect(kernel, channel).map_err(|_| "the kernel has no thread left")?;
    peers.insert(tile, peer.clone());
    Ok(peer)
}

/// Whether everything the process has can go with it.
fn may_leave(thread: &Thread) -> core::result::Result<(), Why> {
    let (kernel, process) = (&thread.kernel, thread.process());
    let no = |why: Why, is_so: bool| if is_so { Err(why) } else { Ok(()) };
    no("the sandbox was not started with --place spread", !kernel.config.spread)?;
    no("it is traced", kernel.tracer.is_on() || thread.trace.is_on())?;
    no("it has calls of its own", process.extension.read().is_some())?;
    no("its process has other threads", process.group.lock().threads.len() != 1 || thread.tid() != process.pid)?;
    {
        let tree = kernel.tree.lock();
        no("its process has children", tree.children(process.pid, None).next().is_some())?;
        no("its process traces others", tree.tracees(process.pid).next().is_some() || tree.tracee(process.pid).is_some())?;
    }
    let waits = !thread.signals.pending().union(process.pending()).is_empty() || process.group.lock().stop.is_some();
    no("signals wait for it", waits)?;
    no("it has timers", time::interval::is_armed(&thread.task))?;
    no("its end signals", thread.death_signal.load(Ordering::Relaxed) != 0)?;
    no("it adopts orphans", process.settings.subreaper.load(Ordering::Relaxed))?;
    no("its files are limited (ulimit -f)", thread.limit(rlimit::FSIZE) != rlimit::INFINITY)?;
    no("it has a policy of its own", thread.sched.policy.load(Ordering::Relaxed) != 0)?;
    no("its end undoes something", !process.undoes.lock().is_empty())?;
    no("it shares its directory", crate::exec::shares_fs(thread))?;
    no("its root is another", *thread.fs().root.read() != *kernel.root.root.read())?;
    Ok(())
}

/// Packs what goes along. Files that are held for it are noted.
fn pack(
    thread: &Thread,
    peer: &Arc<Peer>,
    cred: &Arc<Cred>,
    wanted: Wanted,
    handles: &mut Vec<u32>,
) -> core::result::Result<Start, Why> {
    let process = thread.process();
    let fs = thread.fs();
    let cwd = fs.cwd.read().write(&fs.root.read());
    if cwd.deleted || !cwd.reachable {
        return Err("its directory has no name");
    }
    let (objects, files) = pack_files(thread, peer, cred, handles)?;
    let settings = &process.settings;
    let limits = core::array::from_fn(|resource| Some(process.limits.get(resource as u32)));
    let Wanted { path, argv, envp } = wanted;
    Ok(Start {
        pid: process.pid,
        parent: process.parent(),
        pgrp: process.pgrp(),
        session: process.session().id,
        path,
        argv,
        envp,
        cwd: cwd.name,
        umask: fs.umask.load(Ordering::Relaxed),
        nice: settings.nice.load(Ordering::Relaxed),
        personality: settings.personality.load(Ordering::Relaxed),
        oom_score_adj: [&settings.oom_score_adj, &settings.oom_score_adj_min].map(|adj| adj.load(Ordering::Relaxed)),
        coredump_filter: settings.coredump_filter.load(Ordering::Relaxed),
        timer_slack: thread.timer_slack.load(Ordering::Relaxed),
        ignored: process.actions().summary().0.0,
        blocked: thread.signals.saved.lock().unwrap_or(thread.signals.blocked()).0,
        limits,
        rights: Rights::from(&**cred),
        objects,
        files,
    })
}

type Packed = (Vec<Object>, Vec<(u32, u32)>);

fn pack_files(
    thread: &Thread,
    peer: &Arc<Peer>,
    cred: &Arc<Cred>,
    handles: &mut Vec<u32>,
) -> core::result::Result<Packed, Why> {
    let table = thread.files();
    let mut packed: Vec<(Arc<OpenFile>, Object)> = Vec::new();
    let mut files = Vec::new();
    for fd in 0..table.end().min(i32::MAX as usize) as i32 {
        let Ok(file) = table.get(Fd(fd)) else { continue };
        if table.cloexec(Fd(fd)).unwrap_or(true) {
            continue;
        }
        if files.len() >= wire::FILES_MOST {
            return Err("it has too many files open");
        }
        let known = packed.iter().position(|(other, _)| Arc::ptr_eq(other, &file));
        let at = match known {
            Some(at) => at,
            None => {
                let what = what_of(&thread.kernel, &file, peer, cred, handles)?;
                packed.push((file.clone(), Object { flags: file.flags(), what }));
                packed.len() - 1
            }
        };
        files.push((fd as u32, at as u32));
    }
    Ok((packed.into_iter().map(|(_, object)| object).collect(), files))
}

/// What a file is on the other tile.
fn what_of(
    kernel: &Kernel,
    file: &Arc<OpenFile>,
    peer: &Arc<Peer>,
    cred: &Arc<Cred>,
    handles: &mut Vec<u32>,
) -> core::result::Result<What, Why> {
    const WHY: Why = "it has a file that stays here: not a pipe, /dev/null, or one that is only written";
    let mode = file.flags();
    if mode & (flags::O_PATH | flags::O_ASYNC | flags::O_DIRECT) != 0 || file.is_leased() || file.locks.lock().is_some() {
        return Err(WHY);
    }
    let attr = file.attr().map_err(|_| WHY)?;
    const NULL: u64 = 0x103;
    if attr.kind() == Some(FileKind::CharDevice) && attr.rdev == NULL {
        return Ok(What::Null);
    }
    let written = mode & flags::O_ACCMODE == flags::O_WRONLY;
    let carried = match attr.kind() {
        // Nobody maps a file that cannot be read.
        Some(FileKind::Regular) => written,
        Some(FileKind::Fifo) => file.downcast::<PipeEnd>().is_some() || file.downcast::<HostFile>().is_some(),
        _ => false,
    };
    if !carried {
        return Err(WHY);
    }
    let handle = peer.hold(file, cred).map_err(|_| "too many files are open on other tiles")?;
    handles.push(handle);
    let streams = file.ops.streams();
    let label: String = match &file.path {
        Some(path) => String::from_utf8_lossy(&path.write(&kernel.root.root.read()).display()).into_owned(),
        None => file.ops.label(),
    };
    Ok(What::Away(Description {
        handle,
        seekable: file.ops.seekable(),
        streams,
        announces: file.ops.announces(),
        one_way: streams && mode & flags::O_ACCMODE != flags::O_RDWR,
        label: label.into_bytes(),
    }))
}

/// The program runs elsewhere: what its process had here goes, and what comes for it is sent on.
fn settle(thread: &Thread, peer: &Arc<Peer>, name: &[u8]) {
    let (task, process) = (&thread.task, thread.process());
    crate::ring::leave(thread);
    thread.close_queues();
    crate::uring::leave(thread);
    crate::uring::aio::forget(thread);
    task::exit::leave_memory(thread);
    time::posix::delete_all(task);
    {
        let _nobody_looks = process.still.write();
        process.program.store(task::access::new_program(), Ordering::Relaxed);
        process.exit_signal.store(SIGCHLD, Ordering::Relaxed);
        if let Some(mm) = process.mm.write().take() {
            mm.leave();
        }
    }
    task::release_vfork(thread);
    process.settings.has_execed.store(true, Ordering::Relaxed);
    let leaders = core::mem::take(&mut *process.files.write());
    task::put_files(thread, leaders);
    let files = core::mem::take(&mut *thread.files.write());
    task::put_files(thread, files);
    thread.set_comm(name);
    if let Some(context) = thread.context() {
        context.set_name(name);
    }
    {
        // Under the lock: a signal is either queued until now, or sent on.
        let _group = process.group.lock();
        process.tile.store(peer.link.tile, Ordering::SeqCst);
    }
    while let Some(info) = dequeue(thread, SigSet::FULL) {
        peer.signal(process.pid, &info);
    }
    if peer.link.is_broken() {
        send::exit_group_locked(&mut process.group.lock(), SIGKILL);
    }
    // To get to where it waits.
    thread.set_work(work::STOP);
}

/// Sends a signal on to a process that runs on another tile: whether it does.
pub fn forward(task: &Task, info: &SigInfo) -> bool {
    let tile = tile_of(task);
    if tile == HOME {
        return false;
    }
    let peer = task.kernel.place.peers.lock().get(&tile).cloned();
    if let Some(peer) = peer {
        peer.signal(task.pid, info);
    }
    true
}

/// A signal is sent to a group: those members learn of it whom other tiles alone know.
pub fn forward_group(kernel: &Kernel, pgrp: u32, info: &SigInfo) {
    if kernel.config.spread && info.signal() <= SIGMAX {
        for peer in kernel.place.peers.lock().values() {
            peer.signal_group(pgrp, info);
        }
    }
}

/// mount(2) and the like: EPERM where all tiles are to have the same files.
pub fn may_mount(kernel: &Kernel) -> Result<()> {
    if kernel.config.spread { Err(Errno::EPERM) } else { Ok(()) }
}
