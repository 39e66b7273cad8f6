//! Running programs: execve(2), execveat(2), and the first program of a sandbox.
//!
//! Two halves. [`prepare`] does everything that can fail while the old program still runs: finding and judging the files,
//! following `#!` lines, copying the strings. [`commit`] is past the point of no return: it empties the address space and
//! fills it anew; an error there (a segment where none can be) ends the process with SIGSEGV, as on Linux. Between them the
//! other threads of the process are made to end.

mod alone;
mod args;
mod cred;
pub mod elf;
mod layout;
mod load;
mod script;
mod stack;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use janua_abi::linux::i386;
use janua_abi::linux::layout::Layout as Words;
use janua_abi::linux::mman::{MAP_ANONYMOUS, MAP_FIXED, MAP_NORESERVE, MAP_PRIVATE};
use janua_abi::linux::process::rlimit;
use janua_abi::linux::signal::{SIGCHLD, SIGSEGV};
use janua_abi::linux::stat::at;
use janua_abi::linux::{Errno, Result};
use janua_kernel::table::Fd;
use janua_kernel::{ReadBuf, UserPtr, UserStr};
use janua_object::file::flags;
use janua_object::mm::{Image, MapRequest, Mm, Running};
use janua_object::vfs::watch::event;
use janua_object::vfs::{MountFlags, Path, Perm, Resolve, Start, Walk, access, may_execute};
use janua_object::{Caller, OpenFile};
use janua_port::{Frame, PAGE, Prot, Space};

use crate::Thread;
use crate::processor::{thread_area, vdso};
use crate::thread::ThreadExt;
use crate::{place, processor, ptrace, signal, task};
use args::Strings;
use cred::Rights;
use elf::Elf;
use layout::Layout;
pub use stack::auxiliary_vector;

pub const AT_FDCWD: Fd = Fd(-100);
/// personality(2): no randomisation; reading means executing.
const ADDR_NO_RANDOMIZE: u32 = 0x004_0000;
/// Of personality(2), what a program with set-ID bits does not take from its caller: the above, READ_IMPLIES_EXEC,
/// ADDR_COMPAT_LAYOUT, MMAP_PAGE_ZERO.
const CLEARED_ON_SET_ID: u32 = ADDR_NO_RANDOMIZE | 0x040_0000 | 0x020_0000 | 0x010_0000;
/// `#!` lines that lead to files with `#!` lines.
const MOST_SCRIPTS: usize = 5;

/// A file to be run, as the caller named it.
struct Target {
    file: Arc<OpenFile>,
    /// What AT_EXECFN shows and a script's interpreter is given.
    name: Vec<u8>,
    /// Nobody can open `name` once exec has closed what it closes.
    unreachable: bool,
}

/// All that a new program needs, judged and copied.
struct Prepared {
    file: Arc<Running>,
    elf: Elf,
    interpreter: Option<(Arc<OpenFile>, Elf)>,
    args: Strings,
    env: Strings,
    execfn: Vec<u8>,
    /// Of the program's file.
    perm: Perm,
    /// Its mount allows set-ID bits to count.
    set_id: bool,
    /// The caller may not read the program or its ELF interpreter.
    unreadable: bool,
    /// PR_SET_MDWE's bits that the caller leaves to the program.
    refused: u32,
}

/// execve(2).
pub async fn execve<W: Words<usize>>(thread: &Thread, path: UserStr, argv: UserPtr<W>, envp: UserPtr<W>) -> Result<()> {
    let (prepared, elsewhere) = from_user(thread, AT_FDCWD, path, argv, envp, 0)?;
    if elsewhere.is_some_and(|wanted| place::spread(thread, wanted)) {
        return Ok(());
    }
    replace(thread, prepared).await
}

/// execveat(2).
pub async fn execveat<W: Words<usize>>(
    thread: &Thread,
    dir: Fd,
    path: UserStr,
    argv: UserPtr<W>,
    envp: UserPtr<W>,
    flags: u32,
) -> Result<()> {
    let (prepared, _) = from_user(thread, dir, path, argv, envp, flags)?;
    replace(thread, prepared).await
}

/// The first program of a process that nobody inside has made, in the space the machine gave its thread: by its path, or with an empty one the
/// open file. The error is for a person to see: nothing runs then. `Ok(None)` when the program could not be loaded after all and the process
/// has been killed.
pub fn first(
    thread: &Thread,
    space: Arc<dyn Space>,
    (dir, path): (Fd, &[u8]),
    argv: &[Vec<u8>],
    envp: &[Vec<u8>],
) -> Result<Option<Frame>> {
    let mut budget = args::budget(thread.limit(rlimit::STACK));
    let mut strings = [Strings::default(), Strings::default()];
    for (strings, given) in strings.iter_mut().zip([argv, envp]) {
        for string in given {
            args::spend(&mut budget, string.len())?;
            strings.push(string);
        }
    }
    let [args, env] = strings;
    let target = open_target(thread, dir, path, if path.is_empty() { at::EMPTY_PATH } else { 0 })?;
    let prepared = prepare(thread, target, args, env, budget)?;
    let space = space.reset(false)?;
    let rights = rights(thread, &prepared);
    let mm = take_over(thread, space, &prepared, &rights);
    Ok(commit(thread, &mm, prepared, rights))
}

fn from_user<W: Words<usize>>(
    thread: &Thread,
    dir: Fd,
    path: UserStr,
    argv: UserPtr<W>,
    envp: UserPtr<W>,
    flags: u32,
) -> Result<(Box<Prepared>, Option<place::Wanted>)> {
    let path = path.path(thread.user())?;
    let target = open_target(thread, dir, &path, flags)?;
    let mut budget = args::budget(thread.limit(rlimit::STACK));
    args::spend(&mut budget, target.name.len())?;
    let args = Strings::read(thread.user(), argv, &mut budget)?;
    let env = Strings::read(thread.user(), envp, &mut budget)?;
    let strings = |strings: &Strings| strings.iter().map(<[u8]>::to_vec).collect();
    let wanted = || place::Wanted { path, argv: strings(&args), envp: strings(&env) };
    let elsewhere = place::may_place(thread).then(wanted);
    Ok((prepare(thread, target, args, env, budget)?, elsewhere))
}

async fn replace(thread: &Thread, prepared: Box<Prepared>) -> Result<()> {
    let tid = thread.tid();
    alone::de_thread(thread).await?;
    let old = thread.process().mm().ok_or(Errno::ESRCH)?;
    let space = old.space().clone();
    crate::ring::leave(thread);
    thread.close_queues();
    crate::uring::leave(thread);
    crate::uring::aio::forget(thread);
    task::exit::leave_memory(thread);
    crate::time::posix::delete_all(&thread.task);
    // From here on there is no old program to return to.
    let (mm, rights) = {
        // A thread that looks into the process finds the old program with its rights or the new one with its own, and nobody begins to trace it.
        let _nobody_looks = thread.process().still.write();
        let rights = rights(thread, &prepared);
        let space = {
            // While it is moved out of a space it shares, nobody else may copy that.
            let shared = old.is_shared();
            let _still = shared.then(|| old.still(tid));
            space.reset(shared)
        };
        (space.map(|space| take_over(thread, space, &prepared, &rights)), rights)
    };
    match mm {
        Ok(mm) => {
            old.leave();
            if let Some(frame) = commit(thread, &mm, prepared, rights) {
                crate::uring::begin(thread);
                thread.replace_frame(frame);
                ptrace::program_begins(thread, tid);
            }
        }
        Err(_) => die(thread),
    }
    Ok(())
}

/// The rights of the new program: none that the caller lacks while it is traced by somebody who may not trace all, or shares its root
/// and directory. Asked when the caller is its process's only thread: then nobody can begin to share them any more.
fn rights(thread: &Thread, prepared: &Prepared) -> Rights {
    let cred = thread.cred();
    let rights = cred::for_program(&cred, &prepared.perm, prepared.set_id, false);
    let traced = thread.trace.tracee().is_some_and(|tracee| !tracee.privileged);
    if rights.differs && (traced || shares_fs(thread)) {
        return cred::for_program(&cred, &prepared.perm, prepared.set_id, true);
    }
    rights
}

/// Whether another process shares root, directory and umask with the caller's (CLONE_FS).
pub(crate) fn shares_fs(thread: &Thread) -> bool {
    let own = thread.fs();
    let is_other = |seat: &Arc<crate::Seat>| seat.task.pid != thread.process().pid && seat.task.ended().is_none();
    thread.kernel.tree.lock().threads().any(|seat| is_other(&seat) && Arc::ptr_eq(&seat.fs(), &own))
}

/// Puts memory and rights of the new program in place of the old one's.
fn take_over(thread: &Thread, space: Arc<dyn Space>, prepared: &Prepared, rights: &Rights) -> Arc<Mm> {
    let process = thread.process();
    let mm = if prepared.elf.is_32 { Mm::below(space, i386::HIGHEST) } else { Mm::new(space) };
    let mm = Arc::new(mm.accounted(thread.machine()).jailed(thread.kernel.jail));
    if thread.trace.is_on() {
        // Nothing is mapped yet that could be rewritten.
        let _ = mm.use_own_code();
    }
    *process.mm.write() = Some(mm.clone());
    process.program.store(task::access::new_program(), Ordering::Relaxed);
    process.exit_signal.store(SIGCHLD, Ordering::Relaxed);
    let old = thread.cred();
    let hidden = rights.differs || prepared.unreadable || old.euid != old.uid || old.egid != old.gid;
    process.settings.dumpable.store(u32::from(!hidden), Ordering::Relaxed);
    if rights.secure || rights.differs {
        thread.death_signal.store(0, Ordering::Relaxed);
    }
    if rights.set_id {
        process.settings.personality.fetch_and(!CLEARED_ON_SET_ID, Ordering::Relaxed);
    }
    *thread.cred.write() = Arc::new(rights.cred.clone());
    mm
}

/// Finds the file to be run and checks that the caller may.
fn open_target(thread: &Thread, dir: Fd, path: &[u8], at_flags: u32) -> Result<Target> {
    if at_flags & !(at::EMPTY_PATH | at::SYMLINK_NOFOLLOW) != 0 {
        return Err(Errno::EINVAL);
    }
    let files = thread.files();
    if path.is_empty() && at_flags & at::EMPTY_PATH != 0 && dir != AT_FDCWD {
        let file = files.get(dir)?;
        let file = match &file.path {
            Some(path) => open_place(thread, path.clone())?,
            None => file,
        };
        let name = alloc::format!("/dev/fd/{}", dir.0).into_bytes();
        return Ok(Target { file, name, unreachable: files.cloexec(dir)? });
    }
    let fs = thread.fs();
    let root = fs.root.read().clone();
    let relative = path.first() != Some(&b'/');
    let base = match dir {
        AT_FDCWD => fs.cwd.read().clone(),
        _ if !relative => root.clone(),
        _ => files.get(dir)?.path.clone().ok_or(Errno::ENOTDIR)?,
    };
    let follow = at_flags & at::SYMLINK_NOFOLLOW == 0;
    let caller = thread.caller();
    let found = Walk::new(&thread.kernel.vfs, &caller, &Start { root, base }, Resolve::empty()).whole(path, follow)?;
    if !follow && found.dentry.kind() == janua_object::vfs::FileKind::Symlink {
        return Err(Errno::ELOOP);
    }
    let file = open_place(thread, found)?;
    if dir == AT_FDCWD || !relative {
        return Ok(Target { file, name: path.to_vec(), unreachable: false });
    }
    let mut name = alloc::format!("/dev/fd/{}/", dir.0).into_bytes();
    name.extend_from_slice(path);
    Ok(Target { file, name, unreachable: files.cloexec(dir)? })
}

/// Opens a file for running. EACCES.
fn open_place(thread: &Thread, path: Path) -> Result<Arc<OpenFile>> {
    let caller = thread.caller();
    may_execute(&path, &caller.cred())?;
    let file = thread.kernel.vfs.open_inode(&caller, path, flags::O_RDONLY)?;
    // Not while somebody writes it; the program itself is held so for as long as it runs.
    Running::new(file.clone())?;
    Ok(file)
}

/// Opens an interpreter by the name a program or script gives.
fn open_interpreter(thread: &Thread, name: &[u8]) -> Result<Arc<OpenFile>> {
    let fs = thread.fs();
    let start = Start { root: fs.root.read().clone(), base: fs.cwd.read().clone() };
    let caller = thread.caller();
    let found = Walk::new(&thread.kernel.vfs, &caller, &start, Resolve::empty()).whole(name, true)?;
    open_place(thread, found)
}

/// Reads the start of a file: how many bytes there are.
fn read_start(start: &mut [u8], read: elf::Source<'_>) -> Result<usize> {
    let mut known = 0;
    while known < start.len() {
        match read(known as u64, &mut start[known..])? {
            0 => break,
            n => known += n,
        }
    }
    Ok(known)
}

/// The interpreter that a program file names. ELIBBAD.
fn elf_interpreter(thread: &Thread, path: &[u8], is_32: bool) -> Result<(Arc<OpenFile>, Elf)> {
    let file = open_interpreter(thread, path)?;
    let read = |offset: u64, out: &mut [u8]| file.ops.read(&file, &thread.caller(), &mut ReadBuf::kernel(out), offset);
    let interpreter = Elf::interpreter(&read)?;
    if interpreter.is_32 != is_32 {
        return Err(Errno::ELIBBAD);
    }
    Ok((file, interpreter))
}

/// Judges the file, its scripts' interpreters and its ELF interpreter.
fn prepare(thread: &Thread, target: Target, mut args: Strings, env: Strings, mut budget: u64) -> Result<Box<Prepared>> {
    if args.count() == 0 {
        // There is always an argv[0], if only an empty one.
        args.push(b"");
    }
    let mut file = target.file;
    let mut name = target.name.clone();
    let mut scripts = 0;
    let elf = loop {
        let mut start = [0; script::LOOK];
        let read = |offset: u64, out: &mut [u8]| file.ops.read(&file, &thread.caller(), &mut ReadBuf::kernel(out), offset);
        let known = read_start(&mut start, &read)?;
        let Some(script) = script::parse(&start[..known])? else {
            // The headers mostly lie in what has been read.
            let place = |offset: u64, len: usize| {
                let from = usize::try_from(offset).ok()?;
                start[..known].get(from..from.checked_add(len)?)
            };
            let read = |offset: u64, out: &mut [u8]| match place(offset, out.len()) {
                Some(bytes) => {
                    out.copy_from_slice(bytes);
                    Ok(bytes.len())
                }
                None => read(offset, out),
            };
            break Elf::program(&start[..known], &read)?;
        };
        if target.unreachable && scripts == 0 {
            return Err(Errno::ENOENT);
        }
        scripts += 1;
        if scripts > MOST_SCRIPTS {
            return Err(Errno::ELOOP);
        }
        let mut front: Vec<&[u8]> = alloc::vec![&script.interpreter];
        front.extend(script.argument.as_deref());
        front.push(&name);
        for string in &front {
            args::spend(&mut budget, string.len())?;
        }
        args.replace_first(&front);
        let next = open_interpreter(thread, &script.interpreter)?;
        name = script.interpreter;
        file = next;
    };

    let read = |offset: u64, out: &mut [u8]| file.ops.read(&file, &thread.caller(), &mut ReadBuf::kernel(out), offset);
    file.notify(event::ACCESS);
    let interpreter = match elf.interpreter_path(&read)? {
        None => None,
        Some(path) => Some(elf_interpreter(thread, &path, elf.is_32)?),
    };
    if elf.is_32 && thread.machine().compat().is_none() {
        return Err(Errno::ENOEXEC);
    }
    // A file that cannot be mapped cannot be run.
    file.ops.backing(&file, 0, PAGE, false).map_err(|_| Errno::ENOEXEC)?;

    let file = Arc::new(Running::new(file)?);
    let perm = perm_of(&file.file)?;
    let set_id = file.file.path.as_ref().is_some_and(|path| !path.mount.flags().contains(MountFlags::NOSUID));
    let cred = thread.caller().cred();
    let mut unreadable = access::check(&perm, &cred, access::READ).is_err();
    if let Some((file, _)) = &interpreter {
        unreadable |= access::check(&perm_of(file)?, &cred, access::READ).is_err();
    }
    let refused = thread.process().mm().map_or(0, |mm| mm.inherited_exec_gain());
    Ok(Box::new(Prepared { file, elf, interpreter, args, env, execfn: target.name, perm, set_id, unreadable, refused }))
}

/// Mode and owners of an open file.
fn perm_of(file: &OpenFile) -> Result<Perm> {
    match file.inode() {
        Some(inode) => inode.perm(),
        None => Ok(Perm::from(&file.attr()?)),
    }
}

/// Makes the calling thread the only thread of the new program: its first registers, or `None` when it had to be killed.
fn commit(thread: &Thread, mm: &Arc<Mm>, prepared: Box<Prepared>, rights: Rights) -> Option<Frame> {
    let process = thread.process();
    let is_32 = prepared.elf.is_32;
    // A vfork parent has its memory back.
    task::release_vfork(thread);
    // Before the files are closed: that is how a parent may notice.
    process.settings.has_execed.store(true, Ordering::Relaxed);
    if unshare_files(thread).is_err() {
        die(thread);
        return None;
    }
    alone::reset_signals(thread);
    let (Some(context), Ok(registers)) = (thread.context(), thread.registers()) else {
        die(thread);
        return None;
    };
    registers.fpu_reset();
    registers.set_tls(0);
    registers.set_gs(0);
    thread_area::reset(thread, is_32);

    let name = prepared.execfn.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    thread.set_comm(name);
    context.set_name(name);

    match fill(thread, mm, &prepared, &rights) {
        Ok(frame) => Some(frame),
        Err(_) => {
            die(thread);
            None
        }
    }
}

/// The end of a process whose old program is gone and whose new one could not be put together.
fn die(thread: &Thread) {
    task::exit::end_group(thread, signal::send::death_status(SIGSEGV));
}

/// Closes what is to be closed; a table shared by CLONE_FILES is not touched, the program gets a copy. ENOMEM.
fn unshare_files(thread: &Thread) -> Result<()> {
    let process = thread.process();
    let mut files = thread.files();
    let leaders = core::mem::replace(&mut *process.files.write(), files.clone());
    task::put_files(thread, leaders);
    // The thread's, its process' and this one.
    if Arc::strong_count(&files) > 3 {
        files = Arc::new(files.duplicate()?);
        *thread.files.write() = files.clone();
        *process.files.write() = files.clone();
    }
    for file in files.take_cloexec() {
        crate::fs::fd::closed(thread, &file);
    }
    Ok(())
}

/// Fills the empty address space.
fn fill(thread: &Thread, mm: &Arc<Mm>, prepared: &Prepared, rights: &Rights) -> Result<Frame> {
    let (machine, mem) = (thread.machine(), thread.user());
    let limits = crate::mm::limits(thread);
    let random = thread.process().settings.personality.load(Ordering::Relaxed) & ADDR_NO_RANDOMIZE == 0;
    let strings = prepared.args.text().len() + prepared.env.text().len() + prepared.execfn.len();
    let strings = strings + (prepared.args.count() + prepared.env.count()) * 8;
    let layout = Layout::choose(mm, machine, limits.stack, strings, random);
    let is_32 = prepared.elf.is_32;
    if !is_32 && let Some([data, code]) = machine.vdso() {
        let prot = |exec| Prot { read: true, write: false, exec };
        mm.note_special(data.0, data.1 - data.0, prot(false), "[vvar]");
        mm.note_special(code.0, code.1 - code.0, prot(true), "[vdso]");
    }
    mm.map(
        MapRequest {
            addr: layout.stack.0,
            len: layout.stack.1 - layout.stack.0,
            prot: Prot { read: true, write: true, exec: prepared.elf.wants_exec_stack() },
            flags: MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
            file: None,
            offset: 0,
        },
        &limits,
    )?;
    if prepared.refused != 0 {
        // A set that has been accepted once. The stack has what its program wants, as on Linux.
        let _ = mm.set_exec_gain(prepared.refused);
    }
    mm.set_mmap_base(layout.mmap_base);

    let program = load::load(mm, mem, &prepared.elf, &prepared.file.file, Some(layout.program), &limits)?;
    let interpreter = match &prepared.interpreter {
        Some((file, elf)) => Some(load::load(mm, mem, elf, file, None, &limits)?),
        None => None,
    };
    let entry = interpreter.map_or(program.entry, |interpreter| interpreter.entry);
    if !mem.is_user(entry, 1) {
        return Err(Errno::EINVAL);
    }
    let brk = (program.end + layout.brk_offset).checked_next_multiple_of(PAGE).ok_or(Errno::ENOMEM)?;
    mm.set_brk_start(brk);

    let mut image = Image {
        exe: Some(prepared.file.clone()),
        start_code: program.code.0,
        end_code: program.code.1,
        start_data: program.data.0,
        end_data: program.data.1,
        ..Image::default()
    };
    let vdso = match machine.compat().filter(|_| is_32) {
        Some(compat) => {
            let vdso = vdso::map(mm, mem, compat, &limits)?;
            thread.registers()?.set_landing(vdso.landing);
            Some(vdso)
        }
        None => None,
    };
    let handed = stack::Handed {
        vdso32: vdso,
        headers: (program.headers, usize::from(prepared.elf.header.phentsize), usize::from(prepared.elf.header.phnum)),
        base: interpreter.map_or(0, |interpreter| interpreter.bias),
        entry: program.entry,
        cred: &rights.cred,
        secure: rights.secure,
        execfn: &prepared.execfn,
        args: &prepared.args,
        env: &prepared.env,
    };
    let sp = stack::write(machine, mem, layout.stack.1, &handed, &mut image)?;
    mm.set_image(image);
    Ok(processor::start(entry, sp, is_32))
}
