//! The system as a whole: uname(2), sysinfo(2), random numbers.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use janua_abi::linux::capability::CAP_SYSLOG;
use janua_abi::linux::layout::Layout;
use janua_abi::linux::process::{SysInfo, UtsName};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::table::Fd;
use janua_object::epoll::Epoll;

use crate::boot::BootConfig;
use crate::task::{CAP_SYS_ADMIN, access};
use crate::thread::ThreadExt;
use crate::{Seat, Task, Thread, processor};

/// The Linux release whose interface this is.
pub const RELEASE: &str = "6.18.0-janua";
/// What uname(2) calls the version.
pub const VERSION: &str = concat!("#1 SMP Janua ", env!("CARGO_PKG_VERSION"));

fn field(text: &[u8]) -> [u8; 65] {
    let mut field = [0; 65];
    let len = text.len().min(64);
    field[..len].copy_from_slice(&text[..len]);
    field
}

/// The names of a new kernel.
pub fn uts_name(config: &BootConfig) -> UtsName {
    let or = |name: &[u8], other: &'static [u8]| if name.is_empty() { field(other) } else { field(name) };
    UtsName {
        sysname: field(b"Linux"),
        nodename: or(&config.hostname, b"janua"),
        release: field(RELEASE.as_bytes()),
        version: field(VERSION.as_bytes()),
        machine: field(processor::NAME.as_bytes()),
        domainname: or(&config.domainname, b"(none)"),
    }
}

/// uname(2).
pub fn uname(thread: &Thread, place: UserPtr<UtsName>) -> Result<()> {
    place.write(thread.user(), &names(thread))
}

/// The names as the calling process gets them: PER_LINUX32 has another machine (personality(2)).
pub fn names(thread: &Thread) -> UtsName {
    const PER_MASK: u32 = 0xff;
    const PER_LINUX32: u32 = 8;
    let uts = *thread.kernel.uts.read();
    if thread.process().settings.personality.load(Ordering::Relaxed) & PER_MASK == PER_LINUX32 {
        return UtsName { machine: field(processor::NAME_32.as_bytes()), ..uts };
    }
    uts
}

fn new_name(thread: &Thread, name: UserPtr<u8>, len: usize) -> Result<[u8; 65]> {
    if !thread.cred().capable(CAP_SYS_ADMIN) {
        return Err(Errno::EPERM);
    }
    if len > 64 {
        return Err(Errno::EINVAL);
    }
    Ok(field(&name.slice(len).read_vec(thread.user(), 64)?))
}

/// sethostname(2).
pub fn sethostname(thread: &Thread, name: UserPtr<u8>, len: usize) -> Result<()> {
    let name = new_name(thread, name, len)?;
    thread.kernel.uts.write().nodename = name;
    Ok(())
}

/// setdomainname(2).
pub fn setdomainname(thread: &Thread, name: UserPtr<u8>, len: usize) -> Result<()> {
    let name = new_name(thread, name, len)?;
    thread.kernel.uts.write().domainname = name;
    Ok(())
}

/// sysinfo(2).
pub fn sysinfo(thread: &Thread, info: UserPtr<impl Layout<SysInfo>>) -> Result<()> {
    let machine = thread.machine();
    let memory = machine.memory();
    let up = machine.clock().monotonic().saturating_sub(thread.kernel.booted);
    let answer = SysInfo {
        // Rounded up, as Linux does.
        uptime: up.div_ceil(1_000_000_000) as i64,
        loads: crate::load::averages(&thread.kernel),
        totalram: memory.total,
        freeram: memory.free,
        procs: thread.kernel.tree.lock().thread_count().min(usize::from(u16::MAX)) as u16,
        mem_unit: 1,
        ..SysInfo::default()
    };
    info.store(thread.user(), &answer)
}

/// getrandom(2). The machine's generator is always ready, so nothing waits.
pub fn getrandom(thread: &Thread, buf: UserPtr<u8>, len: usize, flags: u32) -> Result<usize> {
    const NONBLOCK: u32 = 1;
    const RANDOM: u32 = 2;
    const INSECURE: u32 = 4;
    const CHUNK: usize = 256;
    /// Between looks for a signal, of which the first lets any request of a chunk be whole.
    const PART: usize = 4096;
    if flags & !(NONBLOCK | RANDOM | INSECURE) != 0 || flags & (RANDOM | INSECURE) == RANDOM | INSECURE {
        return Err(Errno::EINVAL);
    }
    let len = len.min(janua_kernel::iobuf::MOST);
    let mut chunk = [0; CHUNK];
    let mut done = 0;
    while done < len {
        let n = (len - done).min(CHUNK);
        thread.machine().random(&mut chunk[..n]);
        let copied = thread.user().copy_out_partial(buf.addr().wrapping_add(done), &chunk[..n]);
        done += copied;
        if copied < n {
            return if done > 0 { Ok(done) } else { Err(Errno::EFAULT) };
        }
        // A large request must not keep a kill waiting.
        if done.is_multiple_of(PART) && !thread.goes_on() {
            break;
        }
    }
    Ok(done)
}

/// syslog(2): the kernel keeps no log of its own for programs; what there is to read is empty.
pub fn syslog(thread: &Thread, action: i32, buf: UserPtr<u8>, len: i32) -> Result<usize> {
    const READ_ALL: i32 = 3;
    const SIZE_UNREAD: i32 = 9;
    const SIZE_BUFFER: i32 = 10;
    let cred = thread.cred();
    let may = cred.capable(CAP_SYSLOG) || cred.capable(CAP_SYS_ADMIN);
    match action {
        SIZE_BUFFER => Ok(0),
        READ_ALL if buf.is_null() || len < 0 => Err(Errno::EINVAL),
        READ_ALL => Ok(0),
        0..=9 if !may => Err(Errno::EPERM),
        0 | 1 => Ok(0),
        SIZE_UNREAD => Ok(0),
        _ => Err(Errno::EINVAL),
    }
}

/// Where a shared value is: the same for the same one.
fn place<T: ?Sized>(shared: &Arc<T>) -> usize {
    Arc::as_ptr(shared).cast::<()>().addr()
}

/// What kcmp(2) compares.
mod kind {
    pub const FILE: i32 = 0;
    pub const VM: i32 = 1;
    pub const FILES: i32 = 2;
    pub const FS: i32 = 3;
    pub const SIGHAND: i32 = 4;
    pub const IO: i32 = 5;
    pub const SYSVSEM: i32 = 6;
    pub const EPOLL_TFD: i32 = 7;
}

/// A file that an epoll of the second process watches (`struct kcmp_epoll_slot`): the `offset`-th that it was given as descriptor `fd`.
struct Slot {
    epoll: i32,
    fd: i32,
    offset: usize,
}

impl Slot {
    fn read(thread: &Thread, at: usize) -> Result<Slot> {
        let [epoll, fd, offset] = UserPtr::<[u32; 3]>::new(at).read(thread.user())?;
        Ok(Slot { epoll: epoll as i32, fd: fd as i32, offset: offset as usize })
    }

    /// EBADF, EINVAL for what is no epoll, ENOENT.
    fn place(&self, seat: &Seat) -> Result<usize> {
        let file = seat.files().get(Fd(self.epoll))?;
        let epoll = file.downcast::<Epoll>().ok_or(Errno::EINVAL)?;
        let watched = epoll.watched();
        watched.iter().filter(|item| item.fd == self.fd).nth(self.offset).map(|item| place(&item.file)).ok_or(Errno::ENOENT)
    }
}

/// What a thread has of a kind, the same for the same; 0 for nothing.
fn shared_word(seat: &Seat, task: &Task, kind: i32) -> Result<usize> {
    Ok(match kind {
        kind::VM => task.mm().as_ref().map_or(0, place),
        kind::FILES => place(&seat.files()),
        kind::FS => place(&seat.fs()),
        kind::SIGHAND => place(&task.actions()),
        kind::IO => seat.sched.io_context().as_ref().map_or(0, place),
        // All threads of a process have one, once somebody needs it.
        kind::SYSVSEM if task.has_undoes.load(Ordering::Relaxed) => core::ptr::from_ref(task).addr(),
        kind::SYSVSEM => 0,
        _ => return Err(Errno::EINVAL),
    })
}

/// kcmp(2): whether two processes share something, and an order between what they do not share.
pub fn kcmp(thread: &Thread, pid1: i32, pid2: i32, kind: i32, index1: usize, index2: usize) -> Result<i32> {
    let find = |id: i32| {
        let seat = u32::try_from(id).ok().and_then(|id| thread.kernel.tree.lock().thread(id));
        seat.map(|seat| (seat.task.clone(), seat)).ok_or(Errno::ESRCH)
    };
    let ((one, first), (two, second)) = (find(pid1)?, find(pid2)?);
    let words = {
        // Not twice the same, as exec may be waiting between; and in one order, since exec lets no later one in while it waits.
        let mut held = [&one, &two];
        held.sort_unstable_by_key(|task| place(*task));
        let _lower = access::hold(held[0]);
        let _upper = (!Arc::ptr_eq(&one, &two)).then(|| access::hold(held[1]));
        access::check_process(thread, &one)?;
        access::check_process(thread, &two)?;
        let file = |seat: &Seat, index: usize| -> Result<usize> { Ok(place(&seat.files().get(Fd(index as i32))?)) };
        match kind {
            kind::FILE => [file(&first, index1)?, file(&second, index2)?],
            kind::EPOLL_TFD => {
                let slot = Slot::read(thread, index2)?;
                [file(&first, index1)?, slot.place(&second)?]
            }
            kind => [shared_word(&first, &one, kind)?, shared_word(&second, &two, kind)?],
        }
    };
    // Addresses are mixed, so that a program learns their order and nothing else of the kernel's layout.
    let [one, two] = words.map(|word| (word as u64).rotate_left(19) ^ 0x5bd1_e995_97f4_a7c5);
    Ok(match one.cmp(&two) {
        core::cmp::Ordering::Equal => 0,
        core::cmp::Ordering::Less => 1,
        core::cmp::Ordering::Greater => 2,
    })
}

/// personality(2): the word is kept. ADDR_NO_RANDOMIZE has its effect in exec, READ_IMPLIES_EXEC in mmap, PER_LINUX32 in [`uname`].
pub fn personality(thread: &Thread, word: u32) -> u32 {
    let slot = &thread.process().settings.personality;
    let old = slot.load(Ordering::Relaxed);
    if word != u32::MAX {
        slot.store(word, Ordering::Relaxed);
    }
    old
}
