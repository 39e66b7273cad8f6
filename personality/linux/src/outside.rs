//! What the outside asks for while the kernel runs ([`janua_port::outside`]): programs beside the first, signals to them, lists and
//! figures of the guests.
//!
//! A program run so has no parent inside: its parent's number is 0, it leads a session of its own, and nobody but the outside waits
//! for it. It begins as the first program began, with that one's user, limits, directory and environment, and ends with the sandbox.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use janua_abi::linux::signal::si;
use janua_abi::linux::termios::Winsize;
use janua_abi::linux::{Errno, Result};
use janua_kernel::table::Fd;
use janua_object::anon;
use janua_object::fdtable::FdTable;
use janua_object::file::{OpenFile, flags};
use janua_object::hostfile::HostFile;
use janua_object::tty::Terminal;
use janua_object::tty::line::Line;
use janua_object::vfs::Attr;
use janua_port::machine::Outside;
use janua_port::outside::{GuestInfo, Metrics, Program, WindowSize};
use janua_port::{Answer, Asked, Host, HostFd, Request};
use janua_rt::{Mutex, RwLock, WaitQueue};

use crate::dev::terminal;
use crate::fs::{self, FsContext};
use crate::process::{Extension, State};
use crate::signal::{SigInfo, send};
use crate::task::tree::INIT;
use crate::time::cpu;
use crate::{Kernel, Seat, Task, boot, procfs, tiles};

/// What runs because the outside has asked for it.
#[derive(Default)]
pub struct Running {
    /// Programs that have not been loaded yet, by their process.
    programs: Mutex<BTreeMap<u32, Order>>,
    /// Processes by the outside's number.
    pids: Mutex<BTreeMap<u32, u32>>,
    /// Terminals of such programs, by the outside's number.
    lines: Mutex<BTreeMap<u32, Arc<Attached>>>,
}

impl Running {
    /// Lets a process that the tree knows already load its program; one that cannot be begun is taken out.
    pub(crate) fn begin(&self, kernel: &Kernel, task: &Arc<Task>, seat: &Arc<Seat>, order: Order) -> Result<()> {
        let pid = task.pid;
        self.programs.lock().insert(pid, order);
        boot::begin(kernel, task, seat).inspect_err(|_| {
            self.programs.lock().remove(&pid);
            let mut tree = kernel.tree.lock();
            tree.remove_thread(pid);
            task.group.lock().threads.clear();
            task.group.lock().state = State::Dead(0);
            tree.remove_process(task);
            kernel.ending.unborn();
        })
    }

    /// What a process is to load, if that is not the first program.
    pub fn take_program(&self, pid: u32) -> Option<Order> {
        self.programs.lock().remove(&pid)
    }
}

/// A program that is to be loaded.
pub struct Order {
    pub program: Box<Program>,
    /// Who wants to know whether it has been.
    pub notice: Option<Arc<Notice>>,
}

/// How the loading of a program ended, for who waits for that.
#[derive(Default)]
pub struct Notice {
    loaded: Mutex<Option<Result<()>>>,
    pub queue: WaitQueue,
}

impl Notice {
    /// Reports it.
    pub fn give(&self, loaded: Result<()>) {
        *self.loaded.lock() = Some(loaded);
        self.queue.wake_all();
    }

    /// Whether it has been loaded, once that is known.
    pub fn get(&self) -> Option<Result<()>> {
        *self.loaded.lock()
    }
}

/// A process that a guest wants, with a program that begins as the first one did.
pub struct Wanted {
    pub order: Order,
    pub fs: Arc<FsContext>,
    pub files: Arc<FdTable>,
    pub extension: Option<Extension>,
}

/// Makes such a process; its number. For the service: the memory of the calling process may be what it begins with. EAGAIN, ESRCH.
pub fn start_wanted(kernel: &Arc<Kernel>, wanted: Wanted) -> Result<u32> {
    let tasks = &kernel.machine.accounts().tasks;
    if !tasks.take(1) {
        return Err(Errno::EAGAIN);
    }
    let Wanted { order, fs, files, extension } = wanted;
    enter(kernel, 0, order, fs, files, None, extension).inspect_err(|_| tasks.give(1))
}

/// A program's terminal, whose keyboard and screen are outside.
struct Attached {
    line: Line,
    /// Something happened at the other end, or here.
    busy: Arc<AtomicBool>,
    /// Its program has ended: what it wrote is shown, then the line is closed.
    ending: AtomicBool,
}

/// Reports to the outside on a program it has asked for; `outer` is its number, 0 for others.
pub fn report(kernel: &Kernel, outer: u32, answer: impl FnOnce(u32) -> Answer) {
    if outer != 0 {
        kernel.machine.notify_outside(Outside::Answer(answer(outer)));
    }
}

/// A process has ended that the outside has asked for.
pub fn program_ended(kernel: &Kernel, outer: u32, status: u32) {
    if outer == 0 {
        return;
    }
    kernel.outside.pids.lock().remove(&outer);
    if let Some(attached) = kernel.outside.lines.lock().get(&outer) {
        attached.ending.store(true, Ordering::SeqCst);
        attached.busy.store(true, Ordering::SeqCst);
        kernel.machine.wake_service();
    }
    report(kernel, outer, |id| Answer::Ended { id, status });
}

/// Does what has been asked for, and hands on what has come by the terminals' lines.
pub fn serve(kernel: &Arc<Kernel>, requests: Vec<Asked>) {
    for Asked { request, handed } in requests {
        match request {
            Request::Guests { id } => report_guests(kernel, id),
            Request::Metrics { id } => {
                let asked = kernel.clone();
                let answer = move |tiles| {
                    let metrics = Metrics { tiles, ..metrics(&asked) };
                    report(&asked, id, |id| Answer::Metrics { id, metrics });
                };
                if let Err(errno) = tiles::look(kernel, answer) {
                    let why = format!("the kernel cannot ask the other tiles: {errno:?}");
                    report(kernel, id, |id| Answer::Refused { id, why });
                }
            }
            Request::Move { id, module, core } => {
                let placed = kernel.modules.place(&module, core.map(|core| core as usize));
                report(kernel, id, |id| match placed {
                    Ok(()) => Answer::Moved { id },
                    Err(why) => Answer::Refused { id, why },
                });
            }
            Request::TileEnded { tile } => tiles::ended(kernel, tile),
            Request::Run { id, program } => {
                if let Err(why) = run(kernel, id, program, handed) {
                    report(kernel, id, |id| Answer::Refused { id, why });
                }
            }
            Request::Signal { id, signal } => {
                let pid = kernel.outside.pids.lock().get(&id).copied();
                if let Some(pid) = pid.filter(|_| crate::signal::is_signal(signal)) {
                    send::send_process(kernel, pid, SigInfo::by_process(signal, si::USER, 0, 0));
                }
            }
            Request::Resize { id, size } => {
                let attached = kernel.outside.lines.lock().get(&id).cloned();
                if let Some(attached) = attached {
                    attached.line.terminal.set_size(window(size));
                }
            }
        }
    }
    pump(kernel);
}

fn window(size: WindowSize) -> Winsize {
    Winsize { rows: size.rows, cols: size.columns, ..Winsize::default() }
}

fn pump(kernel: &Kernel) {
    let busy = |attached: &&Arc<Attached>| attached.busy.swap(false, Ordering::SeqCst);
    let lines: Vec<(u32, Arc<Attached>)> = {
        let lines = kernel.outside.lines.lock();
        lines.iter().filter(|(_, attached)| busy(attached)).map(|(id, attached)| (*id, attached.clone())).collect()
    };
    for (id, attached) in lines {
        let goes_on = attached.line.pump();
        attached.line.terminal.screen_ready();
        let over = attached.ending.load(Ordering::SeqCst) && attached.line.terminal.is_shown();
        if !goes_on || over {
            kernel.outside.lines.lock().remove(&id);
            if let Some(pairs) = kernel.pairs.read().as_ref() {
                attached.line.close(pairs);
            }
        }
    }
}

/// Descriptors of the host's that are closed unless they are taken.
struct Handed {
    host: &'static dyn Host,
    fds: Vec<HostFd>,
}

impl Handed {
    fn take(&mut self) -> Option<HostFd> {
        if self.fds.is_empty() { None } else { Some(self.fds.remove(0)) }
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        self.fds.iter().for_each(|fd| self.host.close(*fd));
    }
}

/// Starts a program. An error is for a person to read.
fn run(kernel: &Arc<Kernel>, id: u32, program: Box<Program>, handed: Vec<HostFd>) -> core::result::Result<(), String> {
    let host = kernel.machine.host().ok_or("there is no host")?;
    let mut handed = Handed { host, fds: handed };
    if handed.fds.len() != program.files.len() + usize::from(program.terminal.is_some()) {
        return Err("the sandbox has no room for more descriptors".into());
    }
    let fs = context(kernel, program.cwd.as_deref())?;
    start(kernel, id, program, fs, &mut handed).map_err(|errno| match errno {
        Errno::EAGAIN => "the sandbox may have no more processes (--pids)".into(),
        Errno::ESRCH => "the sandbox is ending".into(),
        errno => format!("the program cannot be started: {errno:?}"),
    })
}

/// Root, directory and umask of a program.
fn context(kernel: &Kernel, cwd: Option<&[u8]>) -> core::result::Result<Arc<FsContext>, String> {
    let first = &kernel.root;
    let cwd = match cwd {
        Some(cwd) => fs::setup::directory(kernel, cwd)
            .map_err(|why| format!("cannot start in {}: {why}", String::from_utf8_lossy(cwd)))?,
        None => fs::setup::directory(kernel, &kernel.config.cwd).unwrap_or_else(|_| first.root.read().clone()),
    };
    let umask = AtomicU32::new(kernel.config.umask & 0o777);
    Ok(Arc::new(FsContext { root: RwLock::new(first.root.read().clone()), cwd: RwLock::new(cwd), umask }))
}

fn start(kernel: &Arc<Kernel>, id: u32, mut program: Box<Program>, fs: Arc<FsContext>, handed: &mut Handed) -> Result<()> {
    let files = FdTable::new();
    for number in &program.files {
        let fd = handed.take().ok_or(Errno::EBADF)?;
        files.install_at(HostFile::open(handed.host, fd, b"")?, Fd(*number as i32), false, u64::MAX)?;
    }
    let attached = match program.terminal.zip(handed.take()) {
        Some((size, line)) => Some(attach(kernel, line, size, &files, handed.host)?),
        None => None,
    };
    program.envp = environment(&kernel.config.envp, core::mem::take(&mut program.envp));
    let tasks = &kernel.machine.accounts().tasks;
    if !tasks.take(1) {
        give_up(kernel, attached);
        return Err(Errno::EAGAIN);
    }
    let order = Order { program, notice: None };
    let begun = enter(kernel, id, order, fs, Arc::new(files), attached.as_ref(), None).map(drop);
    if begun.is_err() {
        tasks.give(1);
        kernel.outside.lines.lock().remove(&id);
        give_up(kernel, attached);
    }
    begun
}

fn give_up(kernel: &Kernel, attached: Option<Arc<Attached>>) {
    if let (Some(attached), Some(pairs)) = (attached, kernel.pairs.read().as_ref()) {
        attached.line.close(pairs);
    }
}

/// Makes the process known and lets it run: its number. `id` is the outside's for it, 0 where a guest wants it.
fn enter(
    kernel: &Arc<Kernel>,
    id: u32,
    order: Order,
    fs: Arc<FsContext>,
    files: Arc<FdTable>,
    attached: Option<&Arc<Attached>>,
    extension: Option<Extension>,
) -> Result<u32> {
    let (task, seat) = {
        let mut tree = kernel.tree.lock();
        if kernel.ending.has_begun() {
            return Err(Errno::ESRCH);
        }
        let pid = tree.allocate_pid()?;
        let (task, seat) = boot::program_process(kernel, pid, fs, files);
        task.outer.store(id, Ordering::Relaxed);
        *task.extension.write() = extension;
        tree.insert_process(&task);
        tree.new_session(&task);
        tree.insert_thread(pid, &seat);
        kernel.ending.born();
        (task, seat)
    };
    let pid = task.pid;
    if id != 0 {
        kernel.outside.pids.lock().insert(id, pid);
    }
    if let Some(attached) = attached {
        let terminal: Arc<dyn Terminal> = attached.line.terminal.clone();
        terminal::give(&terminal, &task);
        kernel.outside.lines.lock().insert(id, attached.clone());
    }
    kernel.outside.begin(kernel, &task, &seat, order).inspect_err(|_| {
        kernel.outside.pids.lock().remove(&id);
    })?;
    Ok(pid)
}

/// The terminal at a line, opened at those of the standard descriptors that have nothing else.
fn attach(
    kernel: &Arc<Kernel>,
    line: HostFd,
    size: WindowSize,
    files: &FdTable,
    host: &'static dyn Host,
) -> Result<Arc<Attached>> {
    let Some(pairs) = kernel.pairs.read().clone() else {
        host.close(line);
        return Err(Errno::ENODEV);
    };
    let busy = Arc::new(AtomicBool::new(true));
    let (machine, mark) = (kernel.machine, busy.clone());
    let something = move || {
        mark.store(true, Ordering::SeqCst);
        machine.wake_service();
    };
    let attr = Attr { uid: kernel.config.uid, ..anon::attr(machine.clock()) };
    let line = Line::among(&pairs, host, line, attr, Arc::new(something))?;
    line.terminal.set_size(window(size));
    let open = || -> Result<()> {
        for number in 0..3 {
            if files.get(Fd(number)).is_err() {
                let file = OpenFile::new(line.terminal.open_slave(true)?, flags::O_RDWR | flags::O_LARGEFILE, None);
                files.install_at(file, Fd(number), false, u64::MAX)?;
            }
        }
        Ok(())
    };
    match open() {
        Ok(()) => Ok(Arc::new(Attached { line, busy, ending: AtomicBool::new(false) })),
        Err(errno) => {
            line.close(&pairs);
            Err(errno)
        }
    }
}

/// The first program's environment with other settings.
fn environment(first: &[Vec<u8>], settings: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let key = |entry: &[u8]| entry.iter().position(|byte| *byte == b'=').unwrap_or(entry.len());
    let mut all = first.to_vec();
    for setting in settings {
        let name = &setting[..key(&setting)];
        match all.iter_mut().find(|entry| &entry[..key(entry)] == name) {
            Some(entry) => *entry = setting,
            None => all.push(setting),
        }
    }
    all
}

/// Bytes of guests that go into one answer.
const PIECE: usize = 16 << 10;

fn report_guests(kernel: &Kernel, id: u32) {
    let mut piece = Vec::new();
    let mut bytes = 0;
    for task in guests(kernel) {
        let guest = guest(&task);
        // The numbers take no more than 50.
        bytes += guest.command.len() + 64;
        piece.push(guest);
        if bytes > PIECE {
            bytes = 0;
            report(kernel, id, |id| Answer::Guests { id, guests: core::mem::take(&mut piece), more: true });
        }
    }
    report(kernel, id, |id| Answer::Guests { id, guests: piece, more: false });
}

/// All processes but the kernel's own.
fn guests(kernel: &Kernel) -> impl Iterator<Item = Arc<Task>> {
    kernel.processes().into_iter().filter(|task| task.pid != INIT)
}

fn metrics(kernel: &Kernel) -> Metrics {
    let tables = guests(kernel).flat_map(|task| task.threads()).map(|seat| seat.files());
    let tables: BTreeMap<*const FdTable, Arc<FdTable>> = tables.map(|table| (Arc::as_ptr(&table), table)).collect();
    Metrics {
        processes: guests(kernel).count() as u32,
        files: tables.values().map(|table| table.count() as u64).sum(),
        calls: kernel.stats.totals(),
        modules: kernel.modules.list(),
        tiles: Vec::new(),
    }
}

fn guest(task: &Arc<Task>) -> GuestInfo {
    let (state, mut command) = procfs::shown(task);
    command.truncate(GuestInfo::COMMAND_MOST);
    let threads = task.threads();
    let first = threads.first().and_then(|seat| seat.context());
    let used = cpu::usage_of_task(task, None);
    GuestInfo {
        pid: task.pid,
        parent: task.parent(),
        host: first.and_then(|context| context.outer_number()).unwrap_or(0),
        state,
        threads: threads.len() as u32,
        uid: threads.first().map_or(0, |seat| seat.cred().uid),
        time: used.user + used.system,
        memory: first.and_then(|context| context.resident_own()).unwrap_or(0) as u64,
        command,
    }
}
