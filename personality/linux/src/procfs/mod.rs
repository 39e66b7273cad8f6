//! /proc: processes and the system as files (proc(5)).
//!
//! The files are listed in tables of [`Entry`]: [`process::ENTRIES`] for each process and thread, [`system::ENTRIES`] for
//! the rest. A file's text is made when it is read from its start, so that what is kept open and read again is new each time.
//! An inode is made for every look-up and holds numbers, not processes: a process that is gone returns ESRCH or ENOENT.

mod counters;
mod fd;
mod file;
mod locks;
mod map_files;
mod memory;
mod memstat;
mod mounts;
mod net;
mod ns;
mod pagemap;
mod process;
mod query;
mod stat;
mod sys;
mod sysfs;
mod system;

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

use janua_abi::linux::{Errno, Result};
use janua_kernel::user::PATH_MAX;
use janua_object::fdtable::FdTable;
use janua_object::file::flags::{O_ACCMODE, O_RDONLY};
use janua_object::file::{DirEntry, File};
use janua_object::vfs::directory::Directory;
use janua_object::vfs::{Attr, FileKind, FileSystem, FsStat, Inode, Path, SetAttr, Vfs};
use janua_object::{Caller, Cred, OpenFile};
use janua_port::Nanos;

use crate::caller::thread_of;
use crate::fs::FsContext;
use crate::task::tree::INIT;
use crate::task::{CAP_CHECKPOINT_RESTORE, CAP_SYS_ADMIN, CAP_SYS_PTRACE, access};
use crate::{Kernel, Seat, Task};

/// A file system made of tables.
struct Tables {
    name: &'static str,
    magic: u64,
    root: &'static [Entry],
    /// Its root has the processes besides.
    processes: bool,
}

static PROC: Tables = Tables { name: "proc", magic: 0x9fa0, root: system::ENTRIES, processes: true };
static SYS: Tables = Tables { name: "sysfs", magic: 0x6265_6572, root: sysfs::ENTRIES, processes: false };
static SYS_NET: Tables = Tables { root: sysfs::CLASS_NET, ..SYS };

/// The text of a file being made. Names are bytes, so this is no string. How long it becomes a program decides (mappings, descriptors,
/// mounts): what there is no memory for is left out, and noted.
#[derive(Default)]
pub struct Text(pub Vec<u8>, bool);

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes(text.as_bytes());
        if self.1 { Err(fmt::Error) } else { Ok(()) }
    }
}

impl Text {
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.1 |= self.0.try_reserve(bytes.len()).is_err();
        if !self.1 {
            self.0.extend_from_slice(bytes);
        }
    }

    /// ENOMEM if there was no memory for all of it.
    pub fn whole(self) -> Result<Vec<u8>> {
        if self.1 { Err(Errno::ENOMEM) } else { Ok(self.0) }
    }

    /// Bytes with those in `special` and the backslash as octal escapes, as /proc/self/mounts and maps write names.
    pub fn escaped(&mut self, bytes: &[u8], special: &[u8]) {
        for &byte in bytes {
            if byte == b'\\' || special.contains(&byte) {
                self.bytes(&[b'\\', b'0' + (byte >> 6), b'0' + (byte >> 3 & 7), b'0' + (byte & 7)]);
            } else {
                self.bytes(&[byte]);
            }
        }
    }
}

/// Whom an entry is about, and for whom. There is a thread only below a thread's directory or while the process has one.
pub struct Subject {
    pub kernel: Arc<Kernel>,
    pub task: Option<Arc<Task>>,
    pub seat: Option<Arc<Seat>>,
    /// The directory is a thread's (/proc/PID/task/TID, /proc/thread-self).
    pub is_thread: bool,
    /// Who opened the file that is read, or writes to it.
    pub user: Option<User>,
}

/// Who uses a file: a process and its credentials.
#[derive(Clone)]
pub struct User {
    pub pid: u32,
    pub cred: Arc<Cred>,
}

impl User {
    fn of(caller: &dyn Caller) -> User {
        User { pid: caller.pid(), cred: caller.cred() }
    }
}

/// The letter of a process's state and its arguments, with a zero behind each, for the outside; its name where it has none.
pub fn shown(task: &Arc<Task>) -> (u8, Vec<u8>) {
    let seat = task.threads().into_iter().next();
    let subject = Subject { kernel: task.kernel.clone(), task: Some(task.clone()), seat, is_thread: false, user: None };
    let mut text = Text::default();
    let reported = memory::cmdline(&subject, &mut text).and_then(|()| text.whole());
    let command = reported.ok().filter(|command| !command.is_empty()).unwrap_or_else(|| subject.comm());
    (stat::state(&subject).0 as u8, command)
}

impl Subject {
    /// Whether who uses the file is of the process it is about.
    pub fn is_own(&self) -> bool {
        self.user.as_ref().zip(self.task.as_ref()).is_some_and(|(user, task)| user.pid == task.pid)
    }

    /// Whether who uses the file has a capability.
    pub fn is_for_capable(&self, capability: u32) -> bool {
        self.user.as_ref().is_some_and(|user| user.cred.capable(capability))
    }

    /// Whether who uses the file may look into the process it is about.
    pub fn is_for_tracer(&self) -> bool {
        let (Some(user), Some(seat)) = (&self.user, &self.seat) else { return false };
        access::check(user.pid, &user.cred, access::Ids::File, seat).is_ok()
    }

    /// Root, working directory and umask: of the thread, or of its process' leader.
    pub fn fs(&self) -> Result<Arc<FsContext>> {
        match &self.seat {
            Some(seat) if self.is_thread => Ok(seat.fs()),
            _ => Ok(self.task()?.fs()),
        }
    }

    /// Descriptors: of the thread, or of its process' leader.
    pub fn files(&self) -> Result<Arc<FdTable>> {
        match &self.seat {
            Some(seat) if self.is_thread => Ok(seat.files()),
            _ => Ok(self.task()?.files()),
        }
    }

    /// The root: the kernel's where it is about no process.
    pub fn root(&self) -> Path {
        let fs = self.fs().unwrap_or_else(|_| self.kernel.root.clone());
        fs.root.read().clone()
    }

    pub fn task(&self) -> Result<&Arc<Task>> {
        self.task.as_ref().ok_or(Errno::ESRCH)
    }

    /// The name: of the thread, or that a process without threads had.
    pub fn comm(&self) -> Vec<u8> {
        match (&self.seat, &self.task) {
            (Some(seat), _) => seat.comm(),
            (None, Some(task)) => task.last_comm.lock().clone(),
            (None, None) => Vec::new(),
        }
    }

    pub fn seat(&self) -> Result<&Arc<Seat>> {
        self.seat.as_ref().ok_or(Errno::ESRCH)
    }
}

/// A file, link or directory of a table.
pub struct Entry {
    pub name: &'static str,
    /// Permission bits.
    pub mode: u32,
    pub kind: Kind,
    pub look: Look,
    /// It is one of /proc/sys.
    pub setting: bool,
    /// It is a text of the mounts, whose changes can be waited for.
    pub mounts: bool,
}

/// What a text asks of who reads it, beyond its permission bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    Free,
    /// The right to look into the process whenever it is read.
    Guarded,
    /// That right when it is opened. It shows the program that runs then and nothing of its successors.
    Program,
}

type Make = fn(&Subject, &mut Text) -> Result<()>;
type Take = fn(&Subject, &[u8]) -> Result<()>;

/// What an entry is.
pub enum Kind {
    Text(Make),
    /// A text that can be written: the bytes of one write.
    Settable(Make, Take),
    /// A link that leads to a place.
    Place(fn(&Subject) -> Result<Path>),
    /// A link that is a name, by who looks.
    Name(fn(&dyn Caller) -> Vec<u8>),
    Dir(&'static [Entry]),
    /// The process's memory.
    Memory,
    /// What its pages are.
    PageMap,
    Tasks,
    Fds,
    FdInfos,
    MapFiles,
}

impl Entry {
    pub const fn new(name: &'static str, mode: u32, kind: Kind) -> Entry {
        Entry { name, mode, kind, look: Look::Free, setting: false, mounts: false }
    }
    pub const fn text(name: &'static str, make: Make) -> Entry {
        Entry::new(name, 0o444, Kind::Text(make))
    }
    /// A text of the mounts.
    pub const fn mounts(name: &'static str, mode: u32, make: Make) -> Entry {
        Entry { mounts: true, ..Entry::new(name, mode, Kind::Text(make)) }
    }
    /// A text for who may look into the process, at each reading.
    pub const fn guarded(name: &'static str, make: Make) -> Entry {
        Entry { look: Look::Guarded, ..Entry::new(name, 0o400, Kind::Text(make)) }
    }
    /// A text about the program that runs when the file is opened.
    pub const fn program(name: &'static str, mode: u32, make: Make) -> Entry {
        Entry { look: Look::Program, ..Entry::new(name, mode, Kind::Text(make)) }
    }
    pub const fn settable(name: &'static str, make: Make, take: Take) -> Entry {
        Entry::new(name, 0o644, Kind::Settable(make, take))
    }
    pub const fn dir(name: &'static str, entries: &'static [Entry]) -> Entry {
        Entry::new(name, 0o555, Kind::Dir(entries))
    }

    fn file_kind(&self) -> FileKind {
        match self.kind {
            Kind::Text(_) | Kind::Settable(..) | Kind::Memory | Kind::PageMap => FileKind::Regular,
            Kind::Place(_) | Kind::Name(_) => FileKind::Symlink,
            Kind::Dir(_) | Kind::Tasks | Kind::Fds | Kind::FdInfos | Kind::MapFiles => FileKind::Directory,
        }
    }
}

/// Whose an inode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Id {
    System,
    /// A process by its number and when it started: another may get the number.
    Process(u32, Nanos),
    Thread(u32, u32),
}

impl Id {
    fn of(task: &Task) -> Id {
        Id::Process(task.pid, task.started)
    }
}

/// The file system.
pub struct ProcFs {
    me: Weak<ProcFs>,
    kernel: Weak<Kernel>,
    dev: u64,
    kind: &'static Tables,
}

impl ProcFs {
    fn new(kernel: &Arc<Kernel>, kind: &'static Tables) -> Arc<ProcFs> {
        let dev = kernel.vfs.new_dev();
        Arc::new_cyclic(|me| ProcFs { me: me.clone(), kernel: Arc::downgrade(kernel), dev, kind })
    }

    fn kernel(&self) -> Result<Arc<Kernel>> {
        self.kernel.upgrade().ok_or(Errno::ENODEV)
    }

    fn subject(&self, id: Id) -> Result<Subject> {
        let kernel = self.kernel()?;
        let (task, seat) = match id {
            Id::System => (None, None),
            Id::Process(pid, started) => {
                let task = kernel.process(pid).filter(|task| task.started == started).ok_or(Errno::ESRCH)?;
                let seat = task.threads().into_iter().next();
                (Some(task), seat)
            }
            Id::Thread(pid, tid) => {
                let seat = kernel.thread(tid).filter(|seat| seat.task.pid == pid).ok_or(Errno::ESRCH)?;
                (Some(seat.task.clone()), Some(seat))
            }
        };
        Ok(Subject { kernel, task, seat, is_thread: matches!(id, Id::Thread(..)), user: None })
    }

    fn node(&self, id: Id, what: What) -> Result<Arc<Node>> {
        Ok(Arc::new(Node { fs: self.me.upgrade().ok_or(Errno::ENODEV)?, id, what }))
    }
}

/// Makes /proc and /sys known to mount(2) as "proc" and "sysfs".
pub fn register(kernel: &Arc<Kernel>) {
    for kind in [&PROC, &SYS] {
        let fs = ProcFs::new(kernel, kind);
        kernel.vfs.register_type(
            kind.name,
            Arc::new(move |_: &Vfs, _: &dyn Caller, _: &[u8], _: &[u8]| -> Result<Arc<dyn FileSystem>> { Ok(fs.clone()) }),
        );
    }
}

/// What /sys/class/net holds, for a /sys that is another machine's.
pub fn interfaces(kernel: &Arc<Kernel>) -> Arc<dyn FileSystem> {
    ProcFs::new(kernel, &SYS_NET)
}

impl FileSystem for ProcFs {
    fn name(&self) -> &'static str {
        self.kind.name
    }
    fn root(&self) -> Arc<dyn Inode> {
        // The file system is alive: somebody calls it through an `Arc`.
        match self.node(Id::System, What::Root) {
            Ok(node) => node,
            Err(_) => unreachable!("a file system without a holder"),
        }
    }
    fn stat(&self) -> Result<FsStat> {
        Ok(FsStat { magic: self.kind.magic, block_size: 4096, name_max: 255, ..FsStat::default() })
    }
    fn dev(&self) -> u64 {
        self.dev
    }
}

/// Which file of its owner an inode is.
#[derive(Clone, Copy)]
enum What {
    Root,
    /// The directory of a process or thread.
    Home,
    Entry(&'static Entry),
    /// A descriptor: its link, or what fdinfo shows of it.
    Fd(i32),
    FdInfo(i32),
    /// The link of a mapping of a file.
    Map(map_files::Range),
}

/// An inode.
pub struct Node {
    fs: Arc<ProcFs>,
    id: Id,
    what: What,
}

/// Positions in the root's listing: entries first, then processes by number.
const FIRST_PROCESS: u64 = 1 << 16;

impl Node {
    fn subject(&self) -> Result<Subject> {
        self.fs.subject(self.id)
    }

    /// The inode number: the owner's number, then which of its files.
    fn ino(&self) -> u64 {
        let owner = match self.id {
            Id::System => 0,
            // The next process with the number mostly has other inodes.
            Id::Process(pid, started) => u64::from(pid) ^ (started & 0x7ff) << 25,
            Id::Thread(_, tid) => u64::from(tid) | 1 << 24,
        };
        let which = match self.what {
            Root => 1,
            What::Home => 2,
            What::Entry(entry) => (core::ptr::from_ref(entry) as u64 / 8) & 0x7f_ffff | 1 << 24,
            What::Fd(fd) => 1 << 25 | fd.unsigned_abs() as u64,
            What::FdInfo(fd) => 1 << 26 | fd.unsigned_abs() as u64,
            What::Map((start, _)) => 1 << 27 | (start as u64 >> 12) & 0x7ff_ffff,
        };
        owner << 28 | which
    }

    fn entries(&self) -> Option<&'static [Entry]> {
        match self.what {
            Root => Some(self.fs.kind.root),
            What::Home if matches!(self.id, Id::Thread(..)) => Some(process::THREAD_ENTRIES),
            What::Home => Some(process::ENTRIES),
            What::Entry(Entry { kind: Kind::Dir(entries), .. }) => Some(entries),
            _ => None,
        }
    }

    /// A directory has one for each directory in it besides its own two: programs count threads and processes by that, and need not look
    /// for directories where there are none. Those of /proc/sys have one, which shows that it means nothing.
    fn links(&self, subject: &Subject) -> u32 {
        let kinds = |entries: &[Entry]| entries.iter().filter(|entry| entry.file_kind() == FileKind::Directory).count();
        let within = match self.what {
            _ if self.kind() != FileKind::Directory => return 1,
            What::Entry(Entry { setting: true, .. }) => return 1,
            What::Entry(Entry { kind: Kind::Tasks, .. }) => subject.task.as_ref().map_or(0, |task| task.threads().len()),
            Root if self.fs.kind.processes => kinds(self.fs.kind.root) + subject.kernel.processes().len(),
            _ => kinds(self.entries().unwrap_or_default()),
        };
        2 + within as u32
    }

    /// Whether it is a file of /proc/sys, or one whose text is the process's own memory.
    fn is_setting(&self) -> bool {
        let What::Entry(entry) = self.what else { return false };
        let own = matches!(entry.name, "cmdline" | "environ" | "auxv") && self.id != Id::System;
        own || entry.setting
    }

    /// Whether it is a file of /proc/sys that cannot be written.
    fn is_fixed(&self) -> bool {
        matches!(self.what, What::Entry(Entry { kind: Kind::Text(_), setting: true, .. }))
    }

    /// What reading the file asks for.
    fn look(&self) -> Look {
        match self.what {
            What::Entry(entry) => entry.look,
            _ => Look::Free,
        }
    }

    /// What the caller finds in the process, if it may look there: both of one program. EACCES; ENOENT when it has ended.
    fn looked<T>(&self, caller: &dyn Caller, find: impl FnOnce(&Subject) -> Result<T>) -> Result<T> {
        loop {
            let subject = self.subject()?;
            let _held = match &subject.seat {
                Some(seat) => match access::hold_thread(seat) {
                    Ok(held) => Some(held),
                    Err(_) if subject.is_thread => return Err(Errno::ENOENT),
                    // The process may go on with others.
                    Err(_) => continue,
                },
                None => subject.task.as_ref().map(|task| access::hold(task)),
            };
            may_look(caller, &subject)?;
            return find(&subject);
        }
    }

    /// What the caller finds of the process' mappings, at each look: the program may have become another. EACCES.
    fn mapped<T>(&self, caller: &dyn Caller, find: impl FnOnce(&Subject) -> Result<T>) -> Result<T> {
        let subject = self.subject()?;
        let _held = subject.task.as_ref().map(|task| access::hold(task));
        let seat = subject.seat().map_err(|_| Errno::ENOENT)?;
        access::check(caller.pid(), &caller.cred(), access::Ids::File, seat).map_err(|_| Errno::EACCES)?;
        find(&subject)
    }

    /// Makes the text for who has opened the file, when the process ran the program of that number. It is that of another program only
    /// where the file is not about the program. EPERM, ESRCH.
    fn make(&self, opener: &User, program: u64, text: &mut Text) -> Result<()> {
        let task = self.subject()?.task;
        // Neither is the program replaced while its text is made, nor is the thread's place in the machine another's.
        let _held = task.as_ref().map(|task| access::hold(task));
        let subject = Subject { user: Some(opener.clone()), ..self.subject()? };
        match self.look() {
            Look::Program if task.as_ref().is_none_or(|task| task.program() != program) => return Ok(()),
            Look::Guarded if !subject.is_for_tracer() => return Err(Errno::EPERM),
            _ => {}
        }
        match self.what {
            What::Entry(Entry { kind: Kind::Text(make) | Kind::Settable(make, _), .. }) => make(&subject, text),
            What::FdInfo(fd) => fd::info(&subject, fd, text),
            _ => Err(Errno::EINVAL),
        }
    }
}

use What::Root;

/// The process whose directory (/proc/PID) a file is: it can name the process where a pidfd does. EBADF for another file,
/// ESRCH when the process is gone.
pub fn process_of(file: &OpenFile) -> Result<Arc<Task>> {
    let inode: &dyn Any = &**file.inode().ok_or(Errno::EBADF)?;
    match inode.downcast_ref::<Node>() {
        Some(node @ Node { id: Id::Process(..), what: What::Home, .. }) => {
            node.subject().and_then(|subject| subject.task().cloned()).map_err(|_| Errno::ESRCH)
        }
        _ => Err(Errno::EBADF),
    }
}

fn number(name: &[u8]) -> Option<u32> {
    if name.is_empty() || name.len() > 9 || name[0] == b'0' && name.len() > 1 {
        return None;
    }
    core::str::from_utf8(name).ok()?.parse().ok()
}

impl Inode for Node {
    fn kind(&self) -> FileKind {
        match self.what {
            Root | What::Home => FileKind::Directory,
            What::Entry(entry) => entry.file_kind(),
            What::Fd(_) | What::Map(_) => FileKind::Symlink,
            What::FdInfo(_) => FileKind::Regular,
        }
    }

    fn attr(&self) -> Result<Attr> {
        let subject = self.subject()?;
        let mode = match self.what {
            Root | What::Home => 0o555,
            What::Entry(entry) if entry.file_kind() == FileKind::Symlink => 0o777,
            What::Entry(entry) => entry.mode,
            What::Fd(fd) => fd::mode(&subject, fd)?,
            What::FdInfo(_) => 0o400,
            What::Map(range) => map_files::mode(&subject, range)?,
        };
        // What is in the directories everybody may read is root's, where the process hides from its own user, or has ended.
        let open = mode == 0o555 && self.kind() == FileKind::Directory;
        let cred = match (&subject.seat, &subject.task) {
            _ if self.id == Id::System => None,
            (Some(seat), _) => (open || access::is_dumpable(&seat.task)).then(|| seat.cred()),
            (None, Some(task)) if open => task.last_cred.read().clone(),
            (None, _) => None,
        };
        let (uid, gid) = cred.map_or((0, 0), |cred| (cred.euid, cred.egid));
        let started = subject.task.as_ref().map_or(0, |task| task.started.saturating_sub(subject.kernel.booted));
        let time = (subject.kernel.booted_real + started) as i64;
        let size = match self.what {
            What::Entry(Entry { kind: Kind::Fds, .. }) => subject.files().map_or(0, |files| files.count() as u64),
            _ => 0,
        };
        Ok(Attr {
            dev: self.fs.dev,
            ino: self.ino(),
            mode: self.kind() as u32 | mode,
            nlink: self.links(&subject),
            size,
            uid,
            gid,
            blksize: 1024,
            atime: time,
            mtime: time,
            ctime: time,
            btime: time,
            ..Attr::default()
        })
    }

    fn grants(&self, caller: &dyn Caller) -> bool {
        // A process reaches its own descriptors and mappings, whosesoever they are shown to be.
        let of_process = matches!(self.what, What::Entry(Entry { kind: Kind::Fds | Kind::MapFiles, .. }));
        let own = |task: Arc<Task>| thread_of(caller).is_some_and(|thread| Arc::ptr_eq(&thread.task, &task));
        of_process && self.subject().ok().and_then(|subject| subject.task).is_some_and(own)
    }

    fn set_attr(&self, change: &SetAttr) -> Result<()> {
        // O_TRUNC on what can be written changes nothing.
        let only_size = change.mode.is_none() && change.uid.is_none() && change.gid.is_none();
        if only_size { Ok(()) } else { Err(Errno::EPERM) }
    }

    fn lookup(&self, caller: &dyn Caller, name: &[u8]) -> Result<Arc<dyn Inode>> {
        if self.id != Id::System {
            // Nothing is left below the directory of a process that is gone.
            self.subject().map_err(|_| Errno::ENOENT)?;
        }
        if let Some(entry) = self.entries().and_then(|all| all.iter().find(|entry| entry.name.as_bytes() == name)) {
            return Ok(self.fs.node(self.id, What::Entry(entry))?);
        }
        if let What::Entry(Entry { kind: Kind::MapFiles, .. }) = self.what {
            let range = map_files::range(name).ok_or(Errno::ENOENT)?;
            self.mapped(caller, |subject| map_files::file(subject, range).map(drop))?;
            return Ok(self.fs.node(self.id, What::Map(range))?);
        }
        let number = number(name).ok_or(Errno::ENOENT)?;
        let subject = self.subject().map_err(|_| Errno::ENOENT)?;
        let (id, what) = match self.what {
            Root if self.fs.kind.processes => {
                let found = subject.kernel.process(number);
                // A thread's number leads to its process, though it is not listed.
                let found = found.or_else(|| subject.kernel.thread(number).map(|seat| seat.task.clone()));
                (Id::of(&*found.ok_or(Errno::ENOENT)?), What::Home)
            }
            What::Entry(Entry { kind: Kind::Tasks, .. }) => {
                let task = subject.task()?;
                let lives = task.threads().iter().any(|seat| seat.tid() == number);
                if !lives {
                    return Err(Errno::ENOENT);
                }
                (Id::Thread(task.pid, number), What::Home)
            }
            What::Entry(Entry { kind: kind @ (Kind::Fds | Kind::FdInfos), .. }) => {
                let number = i32::try_from(number).map_err(|_| Errno::ENOENT)?;
                fd::file(&subject, number)?;
                (self.id, if matches!(kind, Kind::Fds) { What::Fd(number) } else { What::FdInfo(number) })
            }
            _ => return Err(Errno::ENOENT),
        };
        Ok(self.fs.node(id, what)?)
    }

    fn fixed_names(&self) -> bool {
        true
    }

    fn readdir(&self, caller: &dyn Caller, from: u64, emit: &mut dyn FnMut(&DirEntry<'_>) -> bool) -> Result<()> {
        let subject = self.subject()?;
        let entries = self.entries().unwrap_or_default();
        for (at, entry) in entries.iter().enumerate().skip(usize::try_from(from).unwrap_or(usize::MAX)) {
            let ino = self.fs.node(self.id, What::Entry(entry))?.ino();
            let kind = entry.file_kind().dirent();
            if !emit(&DirEntry { ino, next: at as u64 + 1, kind, name: entry.name.as_bytes() }) {
                return Ok(());
            }
        }
        if let What::Entry(Entry { kind: Kind::MapFiles, .. }) = self.what {
            for range in self.mapped(caller, |subject| Ok(map_files::ranges(subject)))? {
                let at = range.0 as u64;
                let (name, kind) = (map_files::name(range), FileKind::Symlink.dirent());
                let seen = at < from || emit(&DirEntry { ino: at, next: at + 1, kind, name: name.as_bytes() });
                if !seen {
                    break;
                }
            }
            return Ok(());
        }
        let (numbers, kind): (Vec<u32>, FileKind) = match self.what {
            Root if self.fs.kind.processes => {
                (subject.kernel.processes().iter().map(|task| task.pid).collect(), FileKind::Directory)
            }
            What::Entry(Entry { kind: Kind::Tasks, .. }) => {
                let mut tids: Vec<u32> = subject.task()?.threads().iter().map(|seat| seat.tid()).collect();
                tids.sort_unstable();
                (tids, FileKind::Directory)
            }
            What::Entry(Entry { kind: Kind::Fds, .. }) => (fd::numbers(&subject)?, FileKind::Symlink),
            What::Entry(Entry { kind: Kind::FdInfos, .. }) => (fd::numbers(&subject)?, FileKind::Regular),
            _ => return Ok(()),
        };
        for number in numbers {
            let at = FIRST_PROCESS + u64::from(number);
            if at < from {
                continue;
            }
            let name = alloc::format!("{number}");
            let entry = DirEntry { ino: at, next: at + 1, kind: kind.dirent(), name: name.as_bytes() };
            if !emit(&entry) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn readlink(&self, caller: &dyn Caller) -> Result<Vec<u8>> {
        let text = match self.what {
            What::Entry(Entry { kind: Kind::Name(name), .. }) => name(caller),
            What::Entry(Entry { kind: Kind::Place(place), .. }) => {
                self.looked(caller, |subject| Ok(written(subject, &place(subject)?)))?
            }
            What::Fd(fd) => self.looked(caller, |subject| Ok(name_of(subject, &*fd::file(subject, fd)?)))?,
            What::Map(range) => self.looked(caller, |subject| Ok(name_of(subject, &*map_files::file(subject, range)?)))?,
            _ => return Err(Errno::EINVAL),
        };
        // As for a page with the text and its NUL.
        if text.len() < PATH_MAX { Ok(text) } else { Err(Errno::ENAMETOOLONG) }
    }

    fn jump(&self, caller: &dyn Caller) -> Option<Result<Path>> {
        let to = |place: &dyn Fn(&Subject) -> Result<Path>| self.looked(caller, place);
        match self.what {
            What::Entry(Entry { kind: Kind::Place(place), .. }) => Some(to(place)),
            What::Fd(fd) => Some(to(&|subject| subject.kernel.vfs.place_of(&fd::file(subject, fd)?))),
            // A mapping outlives the descriptor that could be passed on: following it takes a right of its own.
            What::Map(_) if !may_follow(&caller.cred()) => Some(Err(Errno::EPERM)),
            What::Map(range) => Some(to(&|subject| subject.kernel.vfs.place_of(&map_files::file(subject, range)?))),
            _ => None,
        }
    }

    fn open(self: Arc<Self>, caller: &dyn Caller, flags: u32) -> Result<Arc<dyn File>> {
        let subject = self.subject()?;
        let about_descriptors = matches!(self.what, What::FdInfo(_) | What::Entry(Entry { kind: Kind::FdInfos, .. }));
        let user = User::of(caller);
        // From the question to what is noted of the process it is one program.
        let _held = subject.task.as_ref().map(|task| access::hold(task));
        if subject.seat.is_some() && (about_descriptors || self.look() == Look::Program) {
            may_look(caller, &subject)?;
        }
        if self.kind() == FileKind::Directory {
            return Ok(Arc::new(Directory::new(self)));
        }
        if flags & O_ACCMODE != O_RDONLY && self.is_fixed() {
            // A setting that cannot be changed is so for root too.
            return Err(Errno::EACCES);
        }
        if let What::Entry(Entry { kind: Kind::Memory, .. }) = self.what {
            may_look(caller, &subject)?;
            return Ok(Arc::new(memory::MemoryFile::new(&subject)?));
        }
        if let What::Entry(Entry { kind: Kind::PageMap, .. }) = self.what {
            may_look(caller, &subject)?;
            return Ok(Arc::new(pagemap::PageMap::new(&subject)?));
        }
        let program = subject.task.as_ref().map_or(0, |task| task.program());
        Ok(Arc::new(file::TextFile::new(self, user, program)))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Who may see what a process works with. EACCES; ENOENT when it has ended.
fn may_look(caller: &dyn Caller, subject: &Subject) -> Result<()> {
    let Some(task) = &subject.task else { return Ok(()) };
    let Ok(seat) = subject.seat() else {
        // Init is the kernel's own: it has no threads, and places nevertheless.
        return match task.pid == INIT {
            true if caller.cred().capable(CAP_SYS_PTRACE) => Ok(()),
            true => Err(Errno::EACCES),
            false => Err(Errno::ENOENT),
        };
    };
    access::check(caller.pid(), &caller.cred(), access::Ids::File, seat).map_err(|_| Errno::EACCES)
}

/// Whether somebody may follow the links of map_files.
fn may_follow(cred: &Cred) -> bool {
    cred.capable(CAP_SYS_ADMIN) || cred.capable(CAP_CHECKPOINT_RESTORE)
}

/// A place as the subject would name it.
fn written(subject: &Subject, path: &Path) -> Vec<u8> {
    path.write(&subject.root()).display()
}

/// What names an open file: its path, or its label.
fn name_of(subject: &Subject, file: &OpenFile) -> Vec<u8> {
    match &file.path {
        Some(path) => written(subject, path),
        None => file.ops.label().into_bytes(),
    }
}
