//! Birth: clone(2), clone3(2), fork(2), vfork(2).

use alloc::sync::Arc;
use core::future::poll_fn;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Poll;

use janua_abi::linux::i386::UserDesc;
use janua_abi::linux::process::{CLONE_ARGS_SIZE_VER0, CloneArgs, clone, rlimit};
use janua_abi::linux::ptrace::event::VFORK_DONE;
use janua_abi::linux::signal::SIGCHLD;
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::table::{Arg, Fd, Kind};
use janua_kernel::thread::work;
use janua_object::OpenFile;
use janua_object::fdtable::FdTable;
use janua_object::file::flags::O_RDWR;
use janua_object::mm::{Mm, Still};
use janua_port::{Account, Context, Frame, NewSpace, PAGE, Space, Spawn, SpawnKind};
use janua_rt::{RwLock, Target, WaitQueue};
use zerocopy::{FromZeros, IntoBytes};

use super::pidfd::PidFd;
use crate::fs::FsContext;
use crate::process::{Process, State};
use crate::thread::{ThreadExt, ThreadState};
use crate::{Seat, Task, Thread, ptrace};

/// CLONE_* flags as an argument.
#[derive(Clone, Copy, Debug)]
pub struct CloneFlags(pub u64);

impl Arg for CloneFlags {
    const KIND: Kind = Kind::Named("clone");
    fn decode(word: usize) -> Result<Self> {
        Ok(CloneFlags(word as u64))
    }
}

/// What a vfork parent waits for: its child no longer uses the parent's memory.
#[derive(Default)]
pub struct VforkDone {
    done: AtomicBool,
    queue: WaitQueue,
}

/// Lets a vfork parent go on: the thread has got memory of its own (exec) or ends.
pub fn release_vfork(thread: &Thread) {
    let done = thread.vfork.lock().take();
    if let Some(done) = done {
        done.done.store(true, Ordering::SeqCst);
        done.queue.wake_all();
    }
}

/// What is to be born. Addresses are the caller's claims.
#[derive(Clone, Copy, Debug, Default)]
struct Request {
    flags: u64,
    exit_signal: u32,
    /// The child's stack pointer, 0 for the parent's.
    stack: u64,
    tls: u64,
    /// What CLONE_SETTLS of 32-bit code asks for in place of `tls`.
    area: Option<UserDesc>,
    parent_tid: usize,
    child_tid: usize,
    pidfd: usize,
}

/// fork(2).
pub async fn fork(thread: &Thread) -> Result<u32> {
    start(thread, Request { exit_signal: SIGCHLD, ..Request::default() }).await
}

/// vfork(2).
pub async fn vfork(thread: &Thread) -> Result<u32> {
    let flags = clone::VFORK | clone::VM;
    start(thread, Request { flags, exit_signal: SIGCHLD, ..Request::default() }).await
}

/// clone(2) with x86-64's order of arguments.
pub async fn clone(
    thread: &Thread,
    flags: CloneFlags,
    stack: usize,
    parent_tid: UserPtr<u32>,
    child_tid: UserPtr<u32>,
    tls: usize,
) -> Result<u32> {
    // The call takes 32 bits of flags; the lowest eight are the exit signal.
    let flags = flags.0 & 0xffff_ffff;
    if flags & clone::PIDFD != 0 && flags & clone::PARENT_SETTID != 0 {
        // Both return through the same pointer.
        return Err(Errno::EINVAL);
    }
    let request = Request {
        flags: flags & !clone::CSIGNAL,
        exit_signal: (flags & clone::CSIGNAL) as u32,
        stack: stack as u64,
        tls: tls as u64,
        area: None,
        parent_tid: parent_tid.addr(),
        child_tid: child_tid.addr(),
        pidfd: parent_tid.addr(),
    };
    start(thread, request).await
}

/// clone3(2).
pub async fn clone3(thread: &Thread, args: UserPtr<u8>, size: usize) -> Result<u32> {
    let args = read_args(thread, args, size)?;
    let known = 0xffff_ffff & !clone::CSIGNAL & !clone::DETACHED | clone::CLEAR_SIGHAND | clone::NEWTIME;
    if args.flags & clone::INTO_CGROUP != 0 || args.flags & !known != 0 || args.exit_signal & !clone::CSIGNAL != 0 {
        return Err(Errno::EINVAL);
    }
    if args.set_tid != 0 || args.set_tid_size != 0 {
        // Choosing the number takes CAP_CHECKPOINT_RESTORE, which nobody has here.
        return Err(if args.set_tid == 0 || args.set_tid_size == 0 { Errno::EINVAL } else { Errno::EPERM });
    }
    let of_parent = clone::THREAD | clone::PARENT;
    if args.exit_signal > 64 || args.flags & of_parent != 0 && args.exit_signal != 0 {
        return Err(Errno::EINVAL);
    }
    if (args.stack == 0) != (args.stack_size == 0) {
        return Err(Errno::EINVAL);
    }
    let stack = args.stack.checked_add(args.stack_size).ok_or(Errno::EINVAL)?;
    if stack != 0 && !thread.user().is_user(args.stack as usize, args.stack_size as usize) {
        return Err(Errno::EINVAL);
    }
    let request = Request {
        flags: args.flags,
        exit_signal: args.exit_signal as u32,
        stack,
        tls: args.tls,
        area: None,
        parent_tid: args.parent_tid as usize,
        child_tid: args.child_tid as usize,
        pidfd: args.pidfd as usize,
    };
    start(thread, request).await
}

/// Reads the extensible structure: what this kernel does not know must be zero.
fn read_args(thread: &Thread, from: UserPtr<u8>, size: usize) -> Result<CloneArgs> {
    if size > PAGE {
        return Err(Errno::E2BIG);
    }
    if size < CLONE_ARGS_SIZE_VER0 {
        return Err(Errno::EINVAL);
    }
    let mut args = CloneArgs::new_zeroed();
    let known = size.min(size_of::<CloneArgs>());
    let user = thread.user();
    user.copy_in(&mut args.as_mut_bytes()[..known], from.addr()).map_err(|_| Errno::EFAULT)?;
    let rest = from.at(known).slice(size - known).read_vec(user, PAGE)?;
    if rest.iter().any(|byte| *byte != 0) { Err(Errno::E2BIG) } else { Ok(args) }
}

/// The combinations that make no sense (clone(2), ERRORS).
fn check(thread: &Thread, request: &Request) -> Result<()> {
    let flags = request.flags;
    let has = |flag: u64| flags & flag != 0;
    if has(clone::THREAD) && !has(clone::SIGHAND)
        || has(clone::SIGHAND) && !has(clone::VM)
        || has(clone::SIGHAND) && has(clone::CLEAR_SIGHAND)
        || has(clone::PIDFD) && has(clone::DETACHED)
        || has(clone::FS) && has(clone::NEWNS | clone::NEWUSER)
        || has(clone::NEWIPC) && has(clone::SYSVSEM)
        || has(clone::THREAD) && has(clone::NEWUSER | clone::NEWPID)
    {
        return Err(Errno::EINVAL);
    }
    if has(clone::NAMESPACES | clone::NEWTIME) {
        // There are no namespaces: who might not make one gets EPERM, everybody else EINVAL.
        let allowed = has(clone::NEWUSER) || thread.cred().capable(super::CAP_SYS_ADMIN);
        return Err(if allowed { Errno::EINVAL } else { Errno::EPERM });
    }
    Ok(())
}

/// Makes and starts a thread, and waits for it when it borrows the caller's memory (CLONE_VFORK).
async fn start(thread: &Thread, mut request: Request) -> Result<u32> {
    // A signal that is being delivered to the whole process reaches either this process alone or both: take it first.
    if thread.interrupted() {
        return Err(Errno::ERESTARTNOINTR);
    }
    check(thread, &request)?;
    if request.flags & clone::SETTLS != 0 && thread.frame().is_compat_call() {
        request.area = Some(crate::processor::thread_area::for_clone(thread, request.tls as usize)?);
    } else if request.flags & clone::SETTLS != 0 {
        crate::mm::check_base(thread, request.tls as usize)?;
    }
    let birth = ptrace::birth(thread, request.flags, request.exit_signal);
    let (tid, vfork) = spawn(thread, &request, birth)?;
    if let Some(event) = birth.event {
        ptrace::event(thread, event, tid.into()).await;
    }
    if let Some(done) = vfork {
        wait_for_vfork(thread, &done).await;
        ptrace::event(thread, VFORK_DONE, tid.into()).await;
    }
    Ok(tid)
}

/// Waits until the child lets go; only a kill ends the wait before.
async fn wait_for_vfork(thread: &Thread, done: &VforkDone) {
    let mut registration = None;
    poll_fn(|cx| {
        if registration.is_none() {
            registration = Some(done.queue.register(Target::Task(cx.waker().clone()), u32::MAX));
        }
        if done.done.load(Ordering::SeqCst) || thread.work() & work::KILL != 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Room for a thread among those the sandbox may have (`--pids`), given back when it is not kept.
pub struct Place(&'static Account);

impl Place {
    /// The one a running thread has kept.
    pub fn of(thread: &Thread) -> Place {
        Place(&thread.machine().accounts().tasks)
    }

    /// EAGAIN.
    fn take(thread: &Thread) -> Result<Place> {
        let threads = &thread.machine().accounts().tasks;
        if threads.take(1) { Ok(Place(threads)) } else { Err(Errno::EAGAIN) }
    }

    /// The thread runs, and gives it back at its end.
    fn keep(self) {
        core::mem::forget(self);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.give(1);
    }
}

/// The memory of a process that is to be born, until that has it. Without any it is the creator's.
#[derive(Default)]
struct Memory {
    /// A copy. It is made before the tree of processes is locked, since that takes as long as there is memory.
    copied: Option<Arc<Mm>>,
    /// Where the machine will copy it to when it starts the thread.
    handle: Option<Arc<dyn Space>>,
}

impl Memory {
    /// ENOMEM.
    fn of_child(thread: &Thread, mm: &Mm, kind: SpawnKind) -> Result<Memory> {
        if kind != SpawnKind::Fork {
            return Ok(Memory::default());
        }
        let still = mm.still(thread.tid());
        Ok(match thread.machine().space_for(kind, mm.space())? {
            NewSpace::Whole(space) => Memory { copied: Some(Arc::new(mm.fork_copy(&still, space))), handle: None },
            NewSpace::Handle(space) => Memory { copied: None, handle: Some(space) },
        })
    }

    /// Gives it to the process. What the machine is yet to copy from `mm` is in `still`.
    fn take<'a>(&mut self, mm: &'a Arc<Mm>, still: &mut Option<Still<'a>>, thread: &Thread) -> Arc<Mm> {
        if let Some(copy) = self.copied.take() {
            return copy;
        }
        match self.handle.take() {
            Some(space) => Arc::new(mm.fork_copy(still.insert(mm.still(thread.tid())), space)),
            None => {
                mm.join();
                mm.clone()
            }
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(copy) = self.copied.take() {
            copy.leave();
        }
    }
}

fn spawn(thread: &Thread, request: &Request, birth: ptrace::Birth) -> Result<(u32, Option<Arc<VforkDone>>)> {
    let has = |flag: u64| request.flags & flag != 0;
    let kernel = &thread.kernel;
    let user_count = kernel.users.of(thread.cred().uid);
    let cred = thread.cred();
    let may_exceed = cred.uid == 0 || cred.capable(super::CAP_SYS_RESOURCE) || cred.capable(super::CAP_SYS_ADMIN);
    if user_count.threads() >= thread.limit(rlimit::NPROC) && !may_exceed {
        return Err(Errno::EAGAIN);
    }

    thread.sched.check_fork()?;
    let place = Place::take(thread)?;
    let kind = match () {
        () if has(clone::THREAD) => SpawnKind::Thread,
        () if has(clone::VM) => SpawnKind::SharedSpace,
        () => SpawnKind::Fork,
    };
    if kind == SpawnKind::Fork && has(clone::PIDFD) {
        // A stack that has to grow for it cannot while the mappings are copied.
        let _ = UserPtr::<i32>::new(request.pidfd).read(thread.user());
    }
    // Declared in this order, so that nothing changes the mappings from their copy in the list to the machine's, where that is still to come.
    let mm = thread.process().mm().ok_or(Errno::ENOMEM)?;
    let mut still = None;
    let mut memory = Memory::of_child(thread, &mm, kind)?;
    // What is not kept goes when the tree is not locked any more: with a table of descriptors go files, whose ends are announced to processes.
    let files = files_for_child(thread, request)?;
    let (task, seat);
    {
        let mut tree = kernel.tree.lock();
        if kernel.ending.has_begun() {
            return Err(Errno::EAGAIN);
        }
        let tid = tree.allocate_pid()?;
        task = match kind {
            SpawnKind::Thread => thread.task.clone(),
            _ => Arc::new(Task {
                kernel: kernel.clone(),
                ext: new_process(thread, request, tid, memory.take(&mm, &mut still, thread), files.clone()),
            }),
        };
        seat = new_thread(thread, request, &task, (tid, files), user_count);
        {
            let mut group = task.group.lock();
            if !matches!(group.state, State::Running) || group.exec.is_some() {
                return Err(Errno::ERESTARTNOINTR);
            }
            group.threads.push(seat.clone());
            if group.stop.is_some() {
                seat.set_work(work::STOP);
            }
        }
        tree.insert_thread(tid, &seat);
        if kind != SpawnKind::Thread {
            tree.insert_process(&task);
            kernel.ending.born();
        }
        ptrace::born(thread, &mut tree, &seat, birth);
    }

    let vfork = has(clone::VFORK).then(Arc::<VforkDone>::default);
    *seat.vfork.lock() = vfork.clone();
    let tid = seat.tid();
    let started = run(thread, request, &seat, kind);
    drop(still);
    match started {
        Ok(()) => {
            place.keep();
            if kind == SpawnKind::Fork {
                // Only now, so that the child's copy of the memory does not have it.
                write_parent_tid(thread, request, tid);
            }
            Ok((tid, vfork))
        }
        Err(errno) => {
            undo(thread, &seat, kind);
            Err(errno)
        }
    }
}

/// CLONE_PARENT_SETTID. That it cannot be written is no error, as on Linux.
fn write_parent_tid(thread: &Thread, request: &Request, tid: u32) {
    if request.flags & clone::PARENT_SETTID != 0 {
        let _ = UserPtr::<u32>::new(request.parent_tid).write(thread.user(), &tid);
    }
}

/// Writes the results that go through pointers and starts the thread.
fn run(thread: &Thread, request: &Request, seat: &Arc<Seat>, kind: SpawnKind) -> Result<()> {
    let has = |flag: u64| request.flags & flag != 0;
    let files = thread.files();
    let mut pidfd = None;
    if has(clone::PIDFD) {
        let file = OpenFile::new(Arc::new(PidFd::new(&seat.task, has(clone::THREAD).then_some(seat))), O_RDWR, None);
        let fd = files.install(file.clone(), 0, true, thread.limit(rlimit::NOFILE))?;
        pidfd = Some((fd, file));
    }
    let started = (|| {
        if let Some((Fd(fd), _)) = &pidfd {
            UserPtr::<i32>::new(request.pidfd).write(thread.user(), fd)?;
        }
        if kind != SpawnKind::Fork {
            // A thread may look for its own number there.
            write_parent_tid(thread, request, seat.tid());
        }
        let mut frame: Frame = thread.frame();
        frame.set_result(0);
        frame.forget_call();
        ptrace::clean(thread, &mut frame);
        if request.stack != 0 {
            frame.set_stack_pointer(request.stack as usize);
        }
        let tls = (has(clone::SETTLS) && request.area.is_none()).then_some(request.tls as usize);
        let space = seat.task.mm().map(|mm| mm.space().clone());
        let context = thread.context().ok_or(Errno::ESRCH)?;
        let child = context.spawn(Spawn { kind, frame, tls, guest: seat.clone(), space })?;
        keep_nice(thread, seat, &*child);
        Ok(())
    })();
    if started.is_err()
        && let Some((fd, file)) = &pidfd
    {
        files.take_back(*fd, file);
    }
    started
}

/// A new process begins with its maker's nice value on the machine. Where its own is another, since that was reset, it gets that, or has what the
/// machine leaves it.
fn keep_nice(thread: &Thread, seat: &Seat, child: &dyn Context) {
    let (own, new) = (&thread.process().settings.nice, &seat.task.settings.nice);
    let (before, reset) = (own.load(Ordering::Relaxed), new.load(Ordering::Relaxed));
    if before != reset && matches!(child.set_nice(reset), Err(Errno::EACCES | Errno::EPERM)) {
        new.store(before, Ordering::Relaxed);
    }
}

/// Takes back a thread that could not be started.
fn undo(thread: &Thread, seat: &Arc<Seat>, kind: SpawnKind) {
    let kernel = &thread.kernel;
    let task = &seat.task;
    let mut tree = kernel.tree.lock();
    tree.remove_thread(seat.tid());
    ptrace::unborn(&mut tree, seat);
    task.group.lock().threads.retain(|other| !Arc::ptr_eq(other, seat));
    if kind != SpawnKind::Thread {
        tree.remove_process(task);
        let parent = tree.process(task.parent()).cloned();
        drop(tree);
        if let Some(parent) = parent {
            // Another thread may have seen the child, and wait for it.
            parent.children.wake_all();
        }
        kernel.ending.unborn();
        if let Some(mm) = task.mm.write().take() {
            mm.leave();
        }
    }
}

fn new_process(thread: &Thread, request: &Request, pid: u32, mm: Arc<Mm>, files: Arc<FdTable>) -> Process {
    let has = |flag: u64| request.flags & flag != 0;
    let parent = thread.process();
    let fs = fs_for_child(thread, request);
    let actions = match () {
        () if has(clone::SIGHAND) => parent.actions(),
        () if has(clone::CLEAR_SIGHAND) => Arc::new(parent.actions().without_handlers()),
        () => Arc::new(parent.actions().duplicate()),
    };
    let mut child = Process::new(pid, fs, thread.machine().clock().monotonic());
    child.files = RwLock::new(files);
    child.actions = RwLock::new(actions);
    child.mm = RwLock::new(Some(mm));
    child.limits = parent.limits.duplicate();
    child.settings = parent.settings.inherit();
    let nice = &child.settings.nice;
    nice.store(thread.sched.inherited_nice(nice.load(Ordering::Relaxed)), Ordering::Relaxed);
    child.pgrp.store(parent.pgrp(), Ordering::Relaxed);
    child.session = RwLock::new(parent.session());
    child.maker.store(thread.tid(), Ordering::Relaxed);
    child.home.store(parent.home.load(Ordering::Relaxed), Ordering::Relaxed);
    if has(clone::PARENT) {
        child.maker.store(parent.maker.load(Ordering::Relaxed), Ordering::Relaxed);
        child.parent.store(parent.parent(), Ordering::Relaxed);
        child.exit_signal.store(parent.exit_signal.load(Ordering::Relaxed), Ordering::Relaxed);
        child.parent_program.store(parent.parent_program.load(Ordering::Relaxed), Ordering::Relaxed);
    } else {
        child.parent.store(parent.pid, Ordering::Relaxed);
        child.exit_signal.store(request.exit_signal, Ordering::Relaxed);
        child.parent_program.store(parent.program(), Ordering::Relaxed);
    }
    child
}

/// A copy of root, directory and umask, no longer shared.
pub fn copy_fs(fs: &FsContext) -> FsContext {
    FsContext {
        root: RwLock::new(fs.root.read().clone()),
        cwd: RwLock::new(fs.cwd.read().clone()),
        umask: fs.umask.load(Ordering::Relaxed).into(),
    }
}

fn fs_for_child(thread: &Thread, request: &Request) -> Arc<FsContext> {
    if request.flags & clone::FS != 0 { thread.fs() } else { Arc::new(copy_fs(&thread.fs())) }
}

fn files_for_child(thread: &Thread, request: &Request) -> Result<Arc<FdTable>> {
    let files = thread.files();
    Ok(if request.flags & clone::FILES != 0 { files } else { Arc::new(files.duplicate()?) })
}

fn new_thread(
    thread: &Thread,
    request: &Request,
    task: &Arc<Task>,
    (tid, files): (u32, Arc<FdTable>),
    user: Arc<crate::user::UserCount>,
) -> Arc<Seat> {
    let has = |flag: u64| request.flags & flag != 0;
    let fs = if has(clone::THREAD) { fs_for_child(thread, request) } else { task.fs() };
    let state = ThreadState::new(tid, thread.cred(), fs, files, user);
    state.signals.store_blocked(thread.signals.saved.lock().unwrap_or(thread.signals.blocked()));
    if !has(clone::VM) || has(clone::VFORK) {
        *state.signals.altstack.lock() = *thread.signals.altstack.lock();
    }
    *state.comm.lock() = *thread.comm.lock();
    let slack = thread.timer_slack.load(Ordering::Relaxed);
    state.timer_slack.store(slack, Ordering::Relaxed);
    state.memory_errors.store(thread.memory_errors.load(Ordering::Relaxed), Ordering::Relaxed);
    state.io_flusher.store(thread.io_flusher.load(Ordering::Relaxed), Ordering::Relaxed);
    state.default_slack.store(slack, Ordering::Relaxed);
    state.sched.copy_from(&thread.sched, has(clone::IO));
    if has(clone::SYSVSEM) {
        thread.task.has_undoes.store(true, Ordering::Relaxed);
    }
    *state.areas.lock() = *thread.areas.lock();
    *state.new_area.lock() = request.area;
    if has(clone::CHILD_CLEARTID) {
        state.clear_child_tid.store(request.child_tid, Ordering::Relaxed);
    }
    if has(clone::CHILD_SETTID) {
        state.set_child_tid.store(request.child_tid, Ordering::Relaxed);
    }
    let seat = Seat::new(Thread::new(task.clone(), state));
    seat.set_seat(&seat);
    seat
}

/// First words of a thread: what must be written in its own memory, and the watch over what its process may use.
pub fn begin(thread: &Thread) {
    crate::processor::thread_area::begin(thread);
    if thread.tid() == thread.task.pid {
        crate::time::interval::watch_limit(&thread.task);
    }
    let address = thread.set_child_tid.swap(0, Ordering::Relaxed);
    if address != 0 {
        // As on Linux a bad address is the child's own affair.
        let _ = UserPtr::<u32>::new(address).write(thread.user(), &thread.tid());
    }
}
