//! The third wall's namespaces, for callers with CAP_SYS_ADMIN: a file tree and a number space of the sandbox's own.
//!
//! *Files.* The first process clones what it is shown (open_tree(2)): a detached tree is in an anonymous mount namespace of
//! its own, where nothing propagates to or from. The clones are read-only throughout but for writable binds, and take the places
//! of the descriptors they were made from; the clone of the root becomes the root of the process. What the clones do not hold has
//! no name any more, and what they hold cannot be changed, times and modes included, which Landlock does not look at. It is the
//! mount namespace of unshare(2) without a second copy of all mounts.
//!
//! *Processes.* The parent of all processes of the sandbox is the supervisor, by CLONE_PARENT, which the first process of a pid
//! namespace may not use. So the first is one that only waits ([`Processes::begin`]): it shares the supervisor's memory and
//! descriptors, and when it ends, the host ends all the others. The kernel's process is the second. What it asks /proc goes to a
//! proc file system of that namespace.
//!
//! Nothing of this can be had by a user namespace of an ordinary caller: it would show every file of others as owned by the overflow user (nobody).

use core::arch::asm;
use core::ffi::{CStr, c_int};

use crate::wall::Needs;
use crate::{Probe, Refused, answer, on_this_processor};

const OPEN_TREE_CLONE: u32 = 1;
const OPEN_TREE_CLOEXEC: u32 = libc::O_CLOEXEC as u32;
const AT_RECURSIVE: u32 = 0x8000;
const MOUNT_ATTR_RDONLY: u64 = 1;
const MOUNT_ATTR_NOSUID: u64 = 2;
const MOUNT_ATTR_NODEV: u64 = 4;
const MS_PRIVATE: u64 = 1 << 18;
const FSOPEN_CLOEXEC: u32 = 1;
const FSMOUNT_CLOEXEC: u32 = 1;
const FSCONFIG_CMD_CREATE: u32 = 6;
const MOVE_MOUNT_F_EMPTY_PATH: u32 = 4;

/// `struct mount_attr` (linux/mount.h).
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns_fd: u64,
}

/// A descriptor from a raw result.
fn descriptor(answered: i64) -> Result<i32, Refused> {
    answer(answered)?;
    Ok(answered as i32)
}

fn close(fd: i32) {
    // SAFETY: the caller's descriptor, used no more.
    unsafe { libc::close(fd) };
}

/// A detached clone of what the descriptor shows, with all that is mounted below it. `devices`: its device files can be opened.
fn clone_tree(fd: i32, writable: bool, devices: bool) -> Result<i32, Refused> {
    let flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | libc::AT_EMPTY_PATH as u32;
    // SAFETY: the path is a constant.
    let tree = descriptor(unsafe { libc::syscall(libc::SYS_open_tree, fd, c"".as_ptr(), flags) })?;
    let read_only = if writable { 0 } else { MOUNT_ATTR_RDONLY };
    let no_devices = if devices { 0 } else { MOUNT_ATTR_NODEV };
    let attr = MountAttr { set: MOUNT_ATTR_NOSUID | read_only | no_devices, clear: 0, propagation: MS_PRIVATE, userns_fd: 0 };
    let flags = libc::AT_EMPTY_PATH as u32 | AT_RECURSIVE;
    // SAFETY: as above; the structure has the size given.
    let set =
        unsafe { libc::syscall(libc::SYS_mount_setattr, tree, c"".as_ptr(), flags, &raw const attr, size_of::<MountAttr>()) };
    answer(set).inspect_err(|_| close(tree))?;
    Ok(tree)
}

/// Puts `new` in the place of `old`.
fn replace(old: i32, new: i32) -> Probe {
    // SAFETY: plain words; both descriptors are ours.
    let answered = answer(unsafe { libc::dup3(new, old, libc::O_CLOEXEC) }.into());
    close(new);
    answered
}

fn is_directory(fd: i32) -> bool {
    // SAFETY: an all-zero stat is valid, and filled by the host.
    unsafe {
        let mut stat: libc::stat = core::mem::zeroed();
        libc::fstat(fd, &raw mut stat) == 0 && stat.st_mode & libc::S_IFMT == libc::S_IFDIR
    }
}

/// Opens a proc file system of the caller's pid namespace that nothing can be changed in.
fn mount_proc() -> Result<i32, Refused> {
    mount_new(c"proc")
}

/// Opens a new file system of the type, in which nothing can be changed.
fn mount_new(kind: &CStr) -> Result<i32, Refused> {
    // SAFETY: the caller's name and plain words.
    unsafe {
        let fs = descriptor(libc::syscall(libc::SYS_fsopen, kind.as_ptr(), FSOPEN_CLOEXEC))?;
        let made = answer(libc::syscall(libc::SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, 0, 0, 0));
        let attr = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
        let mount = made.and_then(|()| descriptor(libc::syscall(libc::SYS_fsmount, fs, FSMOUNT_CLOEXEC, attr)));
        close(fs);
        mount
    }
}

/// Puts a tree of its own in the place of everything the first process is shown, and moves the process into it. `own_proc`: a proc file
/// system that takes the place of the host's there.
fn enter_tree(needs: &Needs<'_>, own_proc: Option<i32>) -> Probe {
    // A sandbox that is shown no files has none.
    let root = needs.root.or(own_proc).ok_or(Refused::NoEffect)?;
    for place in needs.shown {
        // Pipes and the like are mounted nowhere, and stay as they are.
        if let Ok(tree) = clone_tree(place.fd, place.writable, place.fd != root) {
            replace(place.fd, tree)?;
        } else if place.fd == root {
            return Err(Refused::NoEffect);
        }
    }
    for fd in needs.inherited.iter().copied().chain([libc::STDERR_FILENO]).filter(|fd| is_directory(*fd)) {
        // By ".." it would lead out of the tree.
        let tree = clone_tree(fd, false, true)?;
        // SAFETY: a constant path.
        let opened = descriptor(unsafe { libc::openat(tree, c".".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) }.into());
        close(tree);
        replace(fd, opened?)?;
    }
    // SAFETY: constant paths and plain words.
    unsafe {
        // The kernel has devices, terminals and shared memory of its own; the caller's other terminals and FIFOs need no names.
        if needs.everything
            && let Ok(empty) = mount_new(c"tmpfs")
        {
            libc::syscall(libc::SYS_move_mount, empty, c"".as_ptr(), root, c"dev".as_ptr(), MOVE_MOUNT_F_EMPTY_PATH);
            close(empty);
        }
        if let Some(proc) = own_proc.filter(|_| needs.everything) {
            // Hosts before Linux 6.15 mount nothing on a detached tree; /proc shows the host's processes then.
            libc::syscall(libc::SYS_move_mount, proc, c"".as_ptr(), root, c"proc".as_ptr(), MOVE_MOUNT_F_EMPTY_PATH);
        }
        answer(libc::fchdir(root).into())?;
        answer(libc::chroot(c".".as_ptr()).into())
    }
}

/// The number space of a sandbox's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processes {
    Own,
    Hosts,
}

/// What the process that only waits runs on; no signal handler ever does.
static mut STACK: [u128; 32] = [0; 32];

/// The first process of the pid namespace, given a pidfd of the supervisor. It shares the supervisor's memory, the C library's errno
/// too: no function of that is called.
extern "C" fn wait_for_the_end(supervisor: *mut libc::c_void) -> c_int {
    let call = |number: i64, words: [i64; 3]| -> i64 {
        let answer;
        // SAFETY: prctl, poll of a local, pause and exit.
        unsafe {
            asm!("syscall", inout("rax") number => answer, in("rdi") words[0], in("rsi") words[1], in("rdx") words[2],
                out("rcx") _, out("r11") _)
        }
        answer
    };
    call(libc::SYS_prctl, [libc::PR_SET_PDEATHSIG.into(), libc::SIGKILL.into(), 0]);
    // It may have ended before it was waited for; its number is not reported to a process of another namespace.
    let mut poll = libc::pollfd { fd: supervisor as c_int, events: libc::POLLIN, revents: 0 };
    while call(libc::SYS_poll, [(&raw mut poll) as i64, 1, 0]) == 0 {
        call(libc::SYS_pause, [0; 3]);
    }
    0
}

impl Processes {
    /// Called by the supervisor: what it forks next is in a namespace of its own, if the host permits. It must not make threads any
    /// more. Also the number of the namespace's first process, whose end is that of all in it. An error when the host began and
    /// did not go on.
    pub fn begin() -> Result<(Processes, Option<i32>), Refused> {
        // SAFETY: constant names, plain words, a stack nothing else uses; the new process keeps to the code above.
        unsafe {
            // Without a /proc of its own the namespace would be of no use.
            match descriptor(libc::syscall(libc::SYS_fsopen, c"proc".as_ptr(), FSOPEN_CLOEXEC)) {
                Ok(fs) => close(fs),
                Err(_) => return Ok((Processes::Hosts, None)),
            }
            if libc::unshare(libc::CLONE_NEWPID) != 0 {
                return Ok((Processes::Hosts, None));
            }
            let own = descriptor(libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0))?;
            let flags = libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_FS | libc::SIGCHLD;
            let top = (&raw mut STACK).add(1).cast();
            let started = on_this_processor(|| libc::clone(wait_for_the_end, top, flags, own as *mut libc::c_void));
            answer(started.into())?;
            Ok((Processes::Own, Some(started)))
        }
    }
}

/// Where the kernel asks the host about processes, and what its files are.
#[derive(Clone, Copy, Debug)]
pub struct Proc {
    /// A descriptor of /proc.
    pub fd: i32,
    /// Whether its numbers are those the sandbox's processes see.
    pub same_numbers: bool,
    /// Whether the files shown are a tree of the sandbox's own.
    pub own_tree: bool,
}

/// Moves the first process into its namespaces. What the host refuses is left out.
pub fn enter(needs: &Needs<'_>, processes: Processes) -> Proc {
    let own_proc = if processes == Processes::Own { mount_proc().ok() } else { None };
    let fd = own_proc.unwrap_or_else(|| {
        // SAFETY: a constant path.
        unsafe { libc::open(c"/proc".as_ptr(), libc::O_PATH | libc::O_CLOEXEC) }
    });
    let own_tree = enter_tree(needs, own_proc).is_ok();
    // SAFETY: plain words.
    unsafe { libc::unshare(libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | libc::CLONE_NEWCGROUP) };
    Proc { fd, same_numbers: own_proc.is_some() || processes == Processes::Hosts, own_tree }
}

/// Whether a tree of the sandbox's own keeps files as they are.
pub fn files() -> Probe {
    crate::in_child(|| {
        // SAFETY: constant paths and a descriptor of ours, which ends with the child.
        unsafe {
            let root = descriptor(libc::open(c"/".as_ptr(), libc::O_PATH).into())?;
            let tree = clone_tree(root, false, false)?;
            answer(libc::fchdir(tree).into())?;
            answer(libc::chroot(c".".as_ptr()).into())?;
            let changed = libc::utimensat(libc::AT_FDCWD, c"/".as_ptr(), core::ptr::null(), 0);
            if changed < 0 && crate::errno() == libc::EROFS { Ok(()) } else { Err(Refused::NoEffect) }
        }
    })
}

/// Whether a sandbox can have a number space of its own.
pub fn processes() -> Probe {
    crate::in_child(|| match Processes::begin()?.0 {
        Processes::Own => crate::in_child(|| mount_proc().map(close)),
        Processes::Hosts => Err(Refused::Errno(crate::errno())),
    })
}
