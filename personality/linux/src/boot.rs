//! The start of a kernel and of its first program.

pub use janua_personality_outside::archive;
pub use janua_personality_outside::linux::{
    BootConfig, BootDebugger, BootFile, BootMount, BootMountKind, BootNet, BootPolicy, BootText,
};

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use janua_abi::linux::signal::{SIG_IGN, SIGINT, SIGMAX, SIGQUIT, SIGTSTP, SIGWINCH, SigAction};
use janua_abi::linux::{Errno, Result};
use janua_kernel::module::Modules;
use janua_kernel::stats::Stats;
use janua_kernel::table::{Fd, Table};
use janua_kernel::trace::Tracer;
use janua_object::Cred;
use janua_object::fdtable::FdTable;
use janua_object::hostfile::HostFile;
use janua_object::mm::jail::Jail;
use janua_object::vfs::Vfs;
use janua_port::outside::over;
use janua_port::{Answer, Frame, Machine, Space};

use crate::dev::terminal::Outer;
use crate::fs::FsContext;
use crate::outside;
use crate::process::{Extension, Process};
use crate::signal::SigSet;
use crate::start::Interface;
use crate::system::System;
use crate::task::exit;
use crate::task::tree::{DEBUGGER, FIRST, INIT, Tree};
use crate::thread::ThreadState;
use crate::{Kernel, Seat, Task, Thread, exec, place, ptrace};

/// Makes a kernel with its init process (pid 1), which has no code and no threads: it adopts orphans and reaps them.
pub fn boot_on(
    machine: &'static dyn Machine,
    jail: Option<&'static dyn Jail>,
    config: BootConfig,
    vfs: Vfs,
    root: Arc<FsContext>,
    interface: &Interface,
) -> Result<Arc<Kernel>> {
    let rows = interface.rows;
    let table = Table::new(rows);
    table.register_all();
    let compat = Table::new(interface.compat);
    compat.register_all();
    let stats = Stats::new(rows.len(), compat.rows().len());
    if config.stats {
        stats.turn_on();
    }
    let system = System::new(machine, jail, config, vfs, root);
    let kernel =
        Arc::new(Kernel { machine, table, compat, tracer: Tracer::default(), stats, modules: Modules::default(), system });
    {
        let mut tree = kernel.tree.lock();
        tree.job_control_outside = kernel.config.job_control;
        let pid = tree.allocate_pid()?;
        debug_assert_eq!(pid, INIT);
        let init = Process::new(pid, kernel.root.clone(), machine.clock().monotonic());
        *init.last_comm.lock() = b"init".to_vec();
        *init.last_cred.write() = Some(Arc::new(Cred::of_user(0, 0, Vec::new())));
        let init = Arc::new(Task { kernel: kernel.clone(), ext: init });
        tree.insert_process(&init);
        tree.new_session(&init);
    }
    Ok(kernel)
}

/// Makes the first program's process (pid 2) and starts its thread, which loads the program. Its session has the outside's terminal
/// as its controlling terminal; `files` are its descriptors.
pub fn spawn_first(
    kernel: &Arc<Kernel>,
    files: Arc<FdTable>,
    console: Option<&Outer>,
    extension: Option<Extension>,
) -> Result<Arc<Seat>> {
    let config = &kernel.config;
    let debugger = config.debugger.as_ref().map(|debugger| debugger_files(kernel, debugger)).transpose()?;
    let (task, seat, debugger) = {
        let mut tree = kernel.tree.lock();
        let pid = tree.allocate_pid()?;
        debug_assert_eq!(pid, FIRST);
        let (task, seat) = program_process(kernel, pid, kernel.root.clone(), files);
        task.parent.store(INIT, Ordering::Relaxed);
        *task.extension.write() = extension;
        task.outer.store(if config.notify_first { janua_port::outside::FIRST } else { 0 }, Ordering::Relaxed);
        let outer = tree.process(INIT).filter(|_| config.in_session).map(|init| init.session());
        if let Some(session) = &outer {
            *task.session.write() = session.clone();
            task.pgrp.store(if config.in_group { INIT } else { pid }, Ordering::Relaxed);
        }
        tree.insert_process(&task);
        if outer.is_none() {
            tree.new_session(&task);
        }
        if let Some(console) = console {
            crate::dev::terminal::give(&console.terminal(), &task);
        }
        tree.insert_thread(pid, &seat);
        let debugger = debugger.map(|files| insert_debugger(kernel, &mut tree, &seat, files)).transpose()?;
        (task, seat, debugger)
    };
    for signal in 1..=SIGMAX {
        if SigSet(config.ignored_signals).has(signal) {
            task.actions().set(signal, SigAction { handler: SIG_IGN, ..SigAction::default() });
        }
    }
    kernel.ending.born();
    kernel.machine.accounts().tasks.force(1);
    begin(kernel, &task, &seat)?;
    if let Some((task, seat)) = debugger {
        kernel.ending.born();
        kernel.machine.accounts().tasks.force(1);
        begin(kernel, &task, &seat)?;
    }
    Ok(seat)
}

/// In a kernel without a first program: no other process gets its number, with whose end the kernel's begins.
pub fn reserve_first(kernel: &Kernel) -> Result<()> {
    let pid = kernel.tree.lock().allocate_pid()?;
    debug_assert_eq!(pid, FIRST);
    Ok(())
}

fn debugger_files(kernel: &Kernel, debugger: &BootDebugger) -> Result<Arc<FdTable>> {
    let host = kernel.machine.host().ok_or(Errno::ENODEV)?;
    let table = FdTable::new();
    for file in &debugger.files {
        table.install_at(HostFile::open(host, file.host, &file.name)?, Fd(file.fd as i32), false, u64::MAX)?;
    }
    Ok(Arc::new(table))
}

/// The debugger's process, which traces the first program's thread: it stops before its first instruction. It leads a session of its own,
/// has no parent, and takes no number that the program's children would have without it.
fn insert_debugger(
    kernel: &Arc<Kernel>,
    tree: &mut Tree,
    first: &Arc<Seat>,
    files: Arc<FdTable>,
) -> Result<(Arc<Task>, Arc<Seat>)> {
    let (task, seat) = program_process(kernel, DEBUGGER, kernel.root.clone(), files);
    tree.insert_process(&task);
    tree.new_session(&task);
    tree.insert_thread(DEBUGGER, &seat);
    ptrace::held(tree, first, &seat)?;
    Ok((task, seat))
}

/// A process of the configured user with one thread, which will load its program. The tree does not know it yet.
pub(crate) fn program_process(
    kernel: &Arc<Kernel>,
    pid: u32,
    fs: Arc<FsContext>,
    files: Arc<FdTable>,
) -> (Arc<Task>, Arc<Seat>) {
    let config = &kernel.config;
    let cred = Arc::new(Cred::of_user(config.uid, config.gid, config.groups.clone()));
    let mut process = Process::new(pid, fs.clone(), kernel.machine.clock().monotonic());
    *process.files.write() = files.clone();
    process.limits = crate::limits::Limits::new(&config.limits);
    process.settings.nice.store(config.nice, Ordering::Relaxed);
    let task = Arc::new(Task { kernel: kernel.clone(), ext: process });
    let state = ThreadState::new(pid, cred, fs, files, kernel.users.of(config.uid));
    state.loads.store(true, Ordering::Relaxed);
    let seat = Seat::new(Thread::new(task.clone(), state));
    seat.set_seat(&seat);
    task.group.lock().threads.push(seat.clone());
    (task, seat)
}

/// Lets the thread of such a process run, in a new address space.
pub(crate) fn begin(kernel: &Kernel, task: &Task, seat: &Arc<Seat>) -> Result<()> {
    // Held while the thread is made: it takes its space from here, and may run before this function goes on.
    let mut spaces = kernel.new_spaces.lock();
    let (_, space) = kernel.machine.spawn_first(seat.clone())?;
    spaces.insert(task.pid, space);
    Ok(())
}

/// Runs first on such a thread: finds the program and loads it. When that fails a message states why, and the exit code is the
/// shell's: 127 for a program that is not there, 126 for one that cannot be run.
pub fn load(thread: &Thread, frame: &mut Frame) {
    let kernel = &thread.kernel;
    let (pid, outer) = (thread.task.pid, thread.task.outer.load(Ordering::Relaxed));
    let space = kernel.new_spaces.lock().remove(&pid);
    let config = &kernel.config;
    if let Some(debugger) = kernel.config.debugger.as_ref().filter(|_| pid == DEBUGGER) {
        return load_debugger(thread, frame, space, debugger);
    }
    let (asked, notice) = kernel.outside.take_program(pid).map_or((None, None), |order| (Some(order.program), order.notice));
    let (path, argv, envp) = match &asked {
        Some(program) => (&program.path, &program.argv, &program.envp),
        None => (&config.program, &config.argv, &config.envp),
    };
    if let Some(tile) = asked.as_ref().and_then(|program| program.tile).filter(|tile| *tile != place::HOME) {
        return load_elsewhere(thread, tile, place::Wanted { path: path.clone(), argv: argv.clone(), envp: envp.clone() });
    }
    let loaded = match space {
        Some(space) => find_and_load(thread, space, path, argv, envp),
        None => Err(Errno::ENOMEM),
    };
    if let Some(notice) = notice {
        notice.give(loaded.as_ref().map(drop).map_err(|errno| *errno));
    }
    place::guest::loaded(thread, loaded.as_ref().map(drop).map_err(|errno| *errno));
    match loaded {
        Ok(Some(first)) => {
            *frame = first;
            outside::report(kernel, outer, |id| Answer::Started { id, pid });
        }
        // Past the point of no return the process has been made to end already.
        Ok(None) => {}
        Err(errno) => {
            let name = String::from_utf8_lossy(path);
            let text = format!("janua: {name}: {}\n", reason(errno));
            if asked.is_none() {
                thread.machine().console().write(text.as_bytes());
            }
            outside::report(kernel, outer, |id| Answer::Says { id, text });
            let missing = matches!(errno, Errno::ENOENT | Errno::ENOTDIR);
            exit::exit_group(thread, if missing { 127 } else { 126 });
        }
    }
}

/// The same for a program that is wanted on another tile, or nowhere.
fn load_elsewhere(thread: &Thread, tile: u32, wanted: place::Wanted) {
    let (pid, outer) = (thread.task.pid, thread.task.outer.load(Ordering::Relaxed));
    let name = String::from_utf8_lossy(&wanted.path).into_owned();
    match place::place(thread, tile, wanted) {
        Ok(()) => outside::report(&thread.kernel, outer, |id| Answer::Started { id, pid }),
        Err(why) => {
            let text = format!("janua: {name}: not on tile {tile}: {why}\n");
            outside::report(&thread.kernel, outer, |id| Answer::Says { id, text });
            exit::exit_group(thread, 126);
        }
    }
}

/// The same for the debugger: without it the sandbox would not be what was asked for.
fn load_debugger(thread: &Thread, frame: &mut Frame, space: Option<Arc<dyn Space>>, debugger: &BootDebugger) {
    let program = Fd(debugger.program as i32);
    let loaded = space.ok_or(Errno::ENOMEM).and_then(|space| exec::first(thread, space, (program, b""), &debugger.argv, &[]));
    match loaded {
        Ok(Some(first)) => *frame = first,
        Ok(None) => {}
        Err(errno) => {
            thread.machine().console().write(format!("janua: the debugger cannot be loaded: {}\n", reason(errno)).as_bytes());
            over(thread.machine(), 125)
        }
    }
}

/// What a person should read for the errors a program's start can end with.
fn reason(errno: Errno) -> String {
    let text = match errno {
        Errno::ENOENT => "no such file or directory (or its interpreter is missing) inside the sandbox",
        Errno::ENOTDIR => "part of its path is not a directory",
        Errno::EACCES => "permission denied: not an executable file, or on a file system mounted noexec",
        Errno::ENOEXEC => "not a program this kernel can run: it takes x86-64 ELF files and #! scripts",
        Errno::ELOOP => "too many symbolic links, or scripts that run scripts",
        Errno::E2BIG => "argument list and environment are too long",
        Errno::EISDIR => "is a directory",
        Errno::ENOMEM => "not enough memory to load it",
        _ => return format!("cannot be run: {errno:?}"),
    };
    String::from(text)
}

/// As a shell does: a name without a slash is looked up along PATH.
fn find_and_load(
    thread: &Thread,
    space: Arc<dyn Space>,
    name: &[u8],
    argv: &[Vec<u8>],
    envp: &[Vec<u8>],
) -> Result<Option<Frame>> {
    let load = |path: &[u8]| exec::first(thread, space.clone(), (exec::AT_FDCWD, path), argv, envp);
    if name.contains(&b'/') {
        return load(name);
    }
    let path = envp.iter().find_map(|entry| entry.strip_prefix(b"PATH=".as_slice()));
    let mut worst = Errno::ENOENT;
    for dir in path.unwrap_or(b"/usr/local/bin:/usr/bin:/bin").split(|byte| *byte == b':') {
        let dir = if dir.is_empty() { b".".as_slice() } else { dir };
        match load(&[dir, b"/", name].concat()) {
            Err(Errno::ENOENT | Errno::ENOTDIR) => {}
            Err(Errno::EACCES) => worst = Errno::EACCES,
            other => return other,
        }
    }
    Err(worst)
}

/// Passes on the signals the outside has sent the sandbox, bit n-1 for signal n: those a terminal makes to the group in its
/// foreground, others to the first program.
pub fn pass_signals(kernel: &Kernel, signals: u64) {
    if signals == 0 {
        return;
    }
    let foreground = kernel.process(FIRST).and_then(|first| crate::dev::terminal::foreground(&first));
    for number in 1..=SIGMAX {
        if !SigSet(signals).has(number) {
            continue;
        }
        match (number, foreground) {
            (SIGINT | SIGQUIT | SIGTSTP | SIGWINCH, Some(group)) => {
                let info = crate::signal::SigInfo::new(number, janua_abi::linux::signal::si::KERNEL);
                crate::signal::send_group(kernel, group, info);
            }
            _ => crate::signal::send::from_outside(kernel, number),
        }
    }
}
