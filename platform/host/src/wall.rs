//! The third wall: what the first process of a sandbox gives up before the kernel runs in it.
//!
//! The filter of host calls (`wall` in the linux platform) decides *which* calls are left; this, *what they may reach*, should a
//! guest ever take the kernel over: no new rights by exec, no capability the kernel does not use, no core file, and with
//! Landlock (Linux 5.19) no writing outside writable binds, no reading outside what is shown, no hand on processes that are
//! not the sandbox's. All of it is inherited and can never be taken back.
//!
//! Before it come the namespaces of [`crate::namespaces`], which need more rights than the rest.

use alloc::vec::Vec;
use core::ffi::CStr;

use crate::{Probe, answer};
use janua_abi::linux::capability::{
    CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_FSETID, CAP_NET_BIND_SERVICE, CAP_NET_RAW, CAP_SYS_NICE,
};

/// A place of the host shown inside.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// A descriptor of it, of any kind.
    pub fd: i32,
    pub writable: bool,
}

/// What the sandbox needs of the host.
#[derive(Clone, Copy, Debug)]
pub struct Needs<'a> {
    pub shown: &'a [Shown],
    /// The place of `shown` that is the root, if there is one.
    pub root: Option<i32>,
    /// Inherited files, which the program may open anew (/dev/stdout) as they are open.
    pub inherited: &'a [i32],
    /// Where the kernel writes its trace.
    pub trace: Option<i32>,
    /// All files are shown, so that there is nothing to keep from being read.
    pub everything: bool,
    /// Guests use the host's network.
    pub network: bool,
}

impl Needs<'_> {
    /// Whether the sandbox may change any file of the host.
    pub fn writes(&self) -> bool {
        self.shown.iter().any(|place| place.writable)
    }
}

/// The capabilities worth keeping, of those the caller has: root's sandbox reads what root reads.
fn kept(needs: &Needs<'_>) -> u64 {
    let mut kept = 1 << CAP_DAC_READ_SEARCH;
    if needs.writes() {
        kept |= 1 << CAP_CHOWN | 1 << CAP_DAC_OVERRIDE | 1 << CAP_FOWNER | 1 << CAP_FSETID;
    }
    if needs.network {
        kept |= 1 << CAP_NET_BIND_SERVICE | 1 << CAP_NET_RAW;
    }
    kept
}

#[repr(C)]
struct CapHeader {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// The caller's capabilities.
fn capabilities(header: &CapHeader) -> Result<[CapData; 2], crate::Refused> {
    let mut data = [CapData::default(); 2];
    // SAFETY: version 3 of the interface has two data structures.
    answer(unsafe { libc::syscall(libc::SYS_capget, &raw const *header, data.as_mut_ptr()) })?;
    Ok(data)
}

const CAP_HEADER: CapHeader = CapHeader { version: 0x2008_0522, pid: 0 };

fn drop_capabilities(keep: u64) -> Probe {
    let header = CAP_HEADER;
    let mut data = capabilities(&header)?;
    for (half, keep) in data.iter_mut().zip([keep as u32, (keep >> 32) as u32]) {
        half.permitted &= keep;
        half.effective = half.permitted;
        half.inheritable = 0;
    }
    // SAFETY: as above.
    answer(unsafe { libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) })
}

const CREATE_RULESET: i64 = 444;
const ADD_RULE: i64 = 445;
const RESTRICT_SELF: i64 = 446;

/// LANDLOCK_ACCESS_FS_*: what is there to be allowed.
mod access {
    pub const WRITE_FILE: u64 = 1 << 1;
    pub const READ_FILE: u64 = 1 << 2;
    pub const READ_DIR: u64 = 1 << 3;
    /// REMOVE_DIR to MAKE_SYM, then REFER (ABI 2).
    pub const CHANGE_DIR: u64 = 0x3ff << 4;
    pub const TRUNCATE: u64 = 1 << 14;
    pub const IOCTL_DEV: u64 = 1 << 15;
    /// The rights of a file that is no directory.
    pub const OF_FILE: u64 = WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
}

#[repr(C)]
struct Ruleset {
    access_fs: u64,
    access_net: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: i32,
}

/// The version of Landlock the host has.
pub fn landlock_version() -> Result<u32, crate::Refused> {
    const VERSION: usize = 1;
    // SAFETY: asks for a number.
    let version = unsafe { libc::syscall(CREATE_RULESET, 0usize, 0usize, VERSION) };
    answer(version)?;
    Ok(version as u32)
}

/// The lowest version of use: before it no file could be moved between directories of a writable bind.
pub const LANDLOCK_LEAST: u32 = 2;

/// Descriptors of what is in the directory: all but links, and what has this name. `None` when they cannot all be had.
fn entries_but(root: i32, left_out: &CStr) -> Option<Vec<i32>> {
    /// A directory with more at its top than this is no root.
    const MOST: usize = 256;
    const PLACE: i32 = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let mut found = Vec::new();
    // SAFETY: names and descriptors of ours; an entry is looked at before the next is asked for.
    unsafe {
        let fd = libc::openat(root, c".".as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC);
        let dir = if fd < 0 { core::ptr::null_mut() } else { libc::fdopendir(fd) };
        if dir.is_null() {
            return None;
        }
        while found.len() <= MOST
            && let Some(entry) = libc::readdir(dir).as_ref()
        {
            let name = CStr::from_ptr(entry.d_name.as_ptr());
            if entry.d_type == libc::DT_LNK || [c".", c"..", left_out].contains(&name) {
                continue;
            }
            found.push(libc::openat(root, name.as_ptr(), PLACE));
        }
        libc::closedir(dir);
    }
    if found.len() <= MOST { Some(found) } else { None }
}

/// `shut`: nothing of /dev is to be read, where everything else is shown. The kernel has devices of its own.
fn confine_files(needs: &Needs<'_>, proc: i32, shut: bool) -> Probe {
    let version = landlock_version()?;
    if version < LANDLOCK_LEAST {
        return Err(crate::Refused::NoEffect);
    }
    let mut handled = access::WRITE_FILE | access::CHANGE_DIR;
    if version >= 3 {
        handled |= access::TRUNCATE;
    }
    // Version 5 can keep it from the terminals it opens: settings change by a descriptor for reading too.
    if version >= 5 {
        handled |= access::IOCTL_DEV;
    }
    let open = needs.root.filter(|_| shut && needs.everything).and_then(|root| entries_but(root, c"dev"));
    if !needs.everything {
        handled |= access::READ_FILE | access::READ_DIR;
    } else if open.is_some() {
        handled |= access::READ_FILE;
    }
    // Version 6 can keep a process from sockets without a name of others, and from sending them signals. The supervisor's comes from a
    // pipe it has set up itself.
    const SCOPE_ABSTRACT_SOCKETS: u64 = 1;
    const SCOPE_SIGNALS: u64 = 2;
    let scoped = if version >= 6 { SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS } else { 0 };
    let ruleset = Ruleset { access_fs: handled, access_net: 0, scoped };
    let size = match version {
        ..4 => 8usize,
        4..6 => 16,
        _ => size_of::<Ruleset>(),
    };
    // SAFETY: `size` bytes of ours; those an older host does not know are left out.
    let rules = unsafe { libc::syscall(CREATE_RULESET, &raw const ruleset, size, 0usize) };
    answer(rules)?;
    let rules = rules as i32;
    let allow = |fd: i32, allowed: u64| {
        // SAFETY: an all-zero stat is valid, and filled by the host.
        let is_dir = unsafe {
            let mut stat: libc::stat = core::mem::zeroed();
            libc::fstat(fd, &raw mut stat) == 0 && stat.st_mode & libc::S_IFMT == libc::S_IFDIR
        };
        let allowed = allowed & handled & if is_dir { u64::MAX } else { access::OF_FILE };
        if allowed != 0 {
            const RULE_PATH_BENEATH: usize = 1;
            let rule = PathBeneath { allowed, parent: fd };
            // Pipes and sockets are refused, and need no rule.
            // SAFETY: the rule is ours.
            unsafe { libc::syscall(ADD_RULE, rules, RULE_PATH_BENEATH, &raw const rule, 0usize) };
        }
    };
    let reading = access::READ_FILE | access::READ_DIR;
    for place in needs.shown.iter().filter(|place| open.is_none() || needs.root != Some(place.fd)) {
        allow(place.fd, if place.writable { u64::MAX } else { reading });
    }
    for fd in needs.inherited {
        // SAFETY: a question about a descriptor.
        match unsafe { libc::fcntl(*fd, libc::F_GETFL) } & libc::O_ACCMODE {
            libc::O_RDONLY => allow(*fd, reading | access::IOCTL_DEV),
            libc::O_WRONLY => allow(*fd, access::WRITE_FILE | access::TRUNCATE | access::IOCTL_DEV),
            _ => allow(*fd, u64::MAX),
        }
    }
    for fd in open.into_iter().flatten() {
        allow(fd, access::READ_FILE);
        // SAFETY: a descriptor of ours, or none.
        unsafe { libc::close(fd) };
    }
    // SAFETY: plain calls; the descriptors are ours.
    unsafe {
        if !needs.everything {
            // The kernel's own questions: memory, and descriptors by name.
            allow(proc, reading);
        }
        let restricted = libc::syscall(RESTRICT_SELF, rules, 0usize);
        let answer = answer(restricted);
        libc::close(rules);
        answer
    }
}

/// Closes all descriptors but those the sandbox needs and these.
pub fn close_others(needs: &Needs<'_>, also: [i32; 2]) {
    let shown = needs.shown.iter().map(|place| place.fd);
    // The kernel's last words go to standard error.
    close_but(shown.chain(needs.inherited.iter().copied()).chain(needs.trace).chain(also).chain([libc::STDERR_FILENO]));
}

/// Closes all descriptors but these.
pub(crate) fn close_but(kept: impl Iterator<Item = i32>) {
    let mut kept: Vec<u32> = kept.filter_map(|fd| u32::try_from(fd).ok()).collect();
    kept.sort_unstable();
    let mut next = 0;
    for fd in kept.into_iter().chain([u32::MAX]) {
        if next < fd {
            // SAFETY: the process leaves everything behind that uses them.
            unsafe { libc::syscall(libc::SYS_close_range, next, fd - 1, 0u32) };
        }
        next = fd.saturating_add(1);
    }
}

/// Who may lower nice values may do so inside too, by a limit instead of the capability: CAP_SYS_NICE to be kept, or 0. Who may not
/// raise limits has to keep it, and does so only where the sandbox has a number space of its own: elsewhere it would reach others.
fn keep_nice(own_numbers: bool) -> u64 {
    if !capabilities(&CAP_HEADER).is_ok_and(|caps| caps[0].effective & 1 << CAP_SYS_NICE != 0) {
        return 0;
    }
    let all = libc::rlimit { rlim_cur: 40, rlim_max: 40 };
    // SAFETY: a structure of ours.
    let raised = unsafe { libc::setrlimit(libc::RLIMIT_NICE, &raw const all) } == 0;
    if raised || !own_numbers { 0 } else { 1 << CAP_SYS_NICE }
}

/// Raises the wall round the calling process; `proc` is the kernel's /proc, `own_numbers`: no process of others has a number
/// here, `own_tree`: the files shown are a tree of its own. What the host refuses is left out, which `janua doctor` prints.
pub fn raise(needs: &Needs<'_>, proc: i32, own_numbers: bool, own_tree: bool) {
    // SAFETY: plain words and a structure of ours.
    unsafe {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1usize, 0usize, 0usize, 0usize);
    }
    let _ = confine_files(needs, proc, !own_tree);
    let _ = drop_capabilities(kept(needs) | keep_nice(own_numbers));
}

/// Nothing to be written, everything to be read.
const NOTHING: Needs<'static> = Needs { shown: &[], root: None, inherited: &[], trace: None, everything: true, network: false };

/// Whether Landlock really keeps a process from writing.
pub fn landlock() -> Probe {
    crate::in_child(|| {
        // SAFETY: plain words.
        answer(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1usize, 0usize, 0usize, 0usize) }.into())?;
        confine_files(&NOTHING, -1, false)?;
        // SAFETY: a plain call; the descriptor ends with the child.
        let opened = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_WRONLY) };
        if opened < 0 && crate::errno() == libc::EACCES { Ok(()) } else { Err(crate::Refused::NoEffect) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_those_of_the_files_shown() {
        let shown = [Shown { fd: 0, writable: true }];
        assert_eq!(kept(&NOTHING), 1 << CAP_DAC_READ_SEARCH);
        assert_eq!(kept(&Needs { shown: &shown, ..NOTHING }), 0b11111);
        assert_eq!(kept(&Needs { network: true, ..NOTHING }), 1 << CAP_DAC_READ_SEARCH | 1 << 10 | 1 << 13);
    }
}
