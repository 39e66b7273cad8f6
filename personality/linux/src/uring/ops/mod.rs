//! Operations. Each is the handler of a system call, with the words that the submission has for it; what has no call is in [`own`].

mod cancel;
mod files;
mod net;
mod own;
mod rw;
mod time;

use alloc::boxed::Box;
use alloc::sync::Arc;

use janua_abi::linux::uring::{Sqe, flag, op, sqe};
use janua_abi::linux::{Errno, Result};
use janua_kernel::table::{Arg, Fd};
use janua_object::fdtable::FdTable;
use janua_object::{Cred, OpenFile};

use super::op::{Doing, Op, Reply};
use super::turn::Turn;
use crate::Thread;
use crate::fs::fd;
use crate::net::Open;

pub use cancel::{Match, cancel_now};
pub use own::update_files;
pub use rw::read_apart;

/// Whether there is an operation of this number.
pub fn is_known(opcode: u8) -> bool {
    opcode < op::END
}

/// Operations that take a buffer of a group.
pub fn selects_buffers(opcode: u8) -> bool {
    matches!(opcode, op::READ | op::RECV | op::RECVMSG | op::READ_MULTISHOT)
}

/// Operations that a ring for polled i/o (IORING_SETUP_IOPOLL) takes.
pub fn may_be_polled(opcode: u8) -> bool {
    use op::*;
    matches!(opcode, NOP | READV | WRITEV | READ_FIXED | WRITE_FIXED | READ | WRITE)
        || matches!(opcode, FILES_UPDATE | PROVIDE_BUFFERS | REMOVE_BUFFERS | MSG_RING)
}

/// Operations whose descriptor may be a registered file.
fn takes_file(opcode: u8) -> bool {
    use op::*;
    matches!(opcode, READV | WRITEV | FSYNC | READ_FIXED | WRITE_FIXED | POLL_ADD | SYNC_FILE_RANGE | SENDMSG | RECVMSG)
        || matches!(opcode, ACCEPT | CONNECT | FALLOCATE | READ | WRITE | FADVISE | SEND | RECV | SPLICE | TEE | SHUTDOWN)
        || matches!(opcode, MSG_RING | FSETXATTR | FGETXATTR | READ_MULTISHOT | FIXED_FD_INSTALL | FTRUNCATE | BIND | LISTEN)
        || matches!(opcode, SEND_ZC | SENDMSG_ZC | URING_CMD)
}

/// Operations on a file that may wait, and have it from their submission to their end.
fn waits_on_file(opcode: u8) -> bool {
    use op::*;
    matches!(opcode, READ | READV | READ_FIXED | READ_MULTISHOT | WRITE | WRITEV | WRITE_FIXED | POLL_ADD | SPLICE | TEE)
        || matches!(opcode, ACCEPT | CONNECT | RECV | SEND | SEND_ZC)
        || takes_message(opcode)
}

/// Operations that pass descriptors: those are the thread's, whatever file they work on.
fn takes_message(opcode: u8) -> bool {
    matches!(opcode, op::SENDMSG | op::SENDMSG_ZC | op::RECVMSG)
}

/// Operations that make a file, which may be given a slot of the registered ones.
fn makes_file(opcode: u8) -> bool {
    matches!(opcode, op::OPENAT | op::OPENAT2 | op::ACCEPT | op::SOCKET)
}

/// Operations of which `ioprio` means something.
fn has_priority(opcode: u8) -> bool {
    use op::*;
    matches!(opcode, READV | WRITEV | READ_FIXED | WRITE_FIXED | READ | WRITE | SEND | RECV | SENDMSG | RECVMSG | ACCEPT)
        || matches!(opcode, NOP | READ_MULTISHOT | SEND_ZC | SENDMSG_ZC)
}

/// Operations that only the thread itself makes, though a module takes its submissions: they change its mappings.
pub fn is_made_at_home(opcode: u8) -> bool {
    opcode == op::MADVISE
}

/// Whether a word is a priority of ioprio_set(2)'s: a class, and a level unless the class is none.
fn is_priority(word: u16) -> bool {
    let (class, level) = (word >> 13, word & 0x1fff);
    class <= 3 && (class != 0 || level == 0)
}

/// What can be checked of a submission before it is made. EINVAL.
pub fn check(sqe: &Sqe) -> Result<()> {
    if sqe.ioprio != 0 && !has_priority(sqe.opcode) {
        return Err(Errno::EINVAL);
    }
    let bad = match sqe.opcode {
        op::READV | op::WRITEV | op::READ_FIXED | op::WRITE_FIXED | op::READ | op::WRITE => !is_priority(sqe.ioprio),
        op::FSYNC => sqe.addr != 0 || sqe.buf_index != 0 || sqe.op_flags & !flag::FSYNC_DATASYNC != 0,
        op::TIMEOUT => {
            let known = flag::TIMEOUT_ABS | flag::TIMEOUT_BOOTTIME | flag::TIMEOUT_REALTIME | flag::TIMEOUT_ETIME_SUCCESS;
            sqe.buf_index != 0 || sqe.len != 1 || sqe.op_flags & !(known | flag::TIMEOUT_MULTISHOT) != 0
        }
        op::POLL_ADD => {
            sqe.buf_index != 0
                || sqe.off != 0
                || sqe.addr != 0
                || sqe.len & !(flag::POLL_ADD_MULTI | flag::POLL_ADD_LEVEL) != 0
                || sqe.len & flag::POLL_ADD_MULTI != 0 && sqe.flags & sqe::CQE_SKIP_SUCCESS != 0
        }
        op::CLOSE => sqe.off != 0 || sqe.addr != 0 || sqe.len != 0 || sqe.op_flags != 0 || sqe.file_index != 0 && sqe.fd != 0,
        op::NOP => sqe.op_flags & !flag::NOP_INJECT_RESULT != 0,
        // Their second completion would have no use.
        op::SEND_ZC | op::SENDMSG_ZC => {
            let known = flag::RECVSEND_POLL_FIRST | flag::RECVSEND_FIXED_BUF | flag::SEND_ZC_REPORT_USAGE;
            let fixed = sqe.ioprio & flag::RECVSEND_FIXED_BUF != 0;
            sqe.flags & sqe::CQE_SKIP_SUCCESS != 0
                || sqe.addr3 != 0
                || sqe.ioprio & !known != 0
                || fixed && sqe.opcode == op::SENDMSG_ZC
        }
        op::FIXED_FD_INSTALL if sqe.flags & sqe::FIXED_FILE == 0 => return Err(Errno::EBADF),
        op::URING_CMD => sqe.off >> 32 != 0 || sqe.op_flags & !flag::URING_CMD_FLAGS != 0,
        _ => false,
    };
    if bad { Err(Errno::EINVAL) } else { Ok(()) }
}

/// A submission with what it is made with.
pub struct Prepared {
    pub sqe: Sqe,
    /// The descriptors, where those are not the thread's.
    pub table: Option<Arc<FdTable>>,
    /// The identity, where that is not the thread's.
    pub cred: Option<Arc<Cred>>,
    /// The file that it works on, whatever becomes of the descriptor. `None` without one.
    pub file: Option<Arc<OpenFile>>,
}

/// Finds what a submission names. EINVAL for an identity, EBADF for a file that is not registered.
pub fn prepare(turn: &Turn<'_>, mut sqe: Sqe) -> Result<Prepared> {
    let cred = match sqe.personality {
        0 => turn.ring.identity.share(),
        id => Some(turn.ring.resources.lock().identities.get(&id).cloned().ok_or(Errno::EINVAL)?),
    };
    if takes_message(sqe.opcode) && sqe.flags & sqe::FIXED_FILE != 0 {
        let file = turn.ring.resources.lock().file(sqe.fd as u32)?;
        return Ok(Prepared { sqe, table: None, cred, file: Some(file) });
    }
    let table = table(turn, &mut sqe)?;
    let files = || table.clone().unwrap_or_else(|| turn.owner.files());
    let file = if waits_on_file(sqe.opcode) { files().get(Fd(sqe.fd)).ok() } else { None };
    Ok(Prepared { sqe, table, cred, file })
}

/// The descriptors for a submission that names registered files or makes one: a table of its own, whose first are what it names.
fn table(turn: &Turn<'_>, sqe: &mut Sqe) -> Result<Option<Arc<FdTable>>> {
    let fixed = sqe.flags & sqe::FIXED_FILE != 0;
    let find = |fixed: bool, number: i32| match fixed {
        true => turn.ring.resources.lock().file(number as u32),
        false => turn.owner.files.read().get(Fd(number)),
    };
    let put = |table: &FdTable, file: Arc<OpenFile>| table.install(file, 0, false, u64::MAX).map(|fd| fd.0);
    if matches!(sqe.opcode, op::SPLICE | op::TEE) {
        let from = sqe.op_flags & flag::SPLICE_FD_IN_FIXED != 0;
        sqe.op_flags &= !flag::SPLICE_FD_IN_FIXED;
        if !fixed && !from {
            return Ok(None);
        }
        let files = FdTable::new();
        sqe.file_index = put(&files, find(from, sqe.file_index as i32)?)? as u32;
        sqe.fd = put(&files, find(fixed, sqe.fd)?)?;
        return Ok(Some(Arc::new(files)));
    }
    let direct = makes_file(sqe.opcode) && sqe.file_index != 0;
    if !fixed && !direct {
        return Ok(None);
    }
    if fixed && !takes_file(sqe.opcode) {
        return Err(Errno::EBADF);
    }
    let files = FdTable::new();
    let names_directory = matches!(sqe.opcode, op::OPENAT | op::OPENAT2) && sqe.fd >= 0;
    if takes_file(sqe.opcode) || names_directory {
        sqe.fd = put(&files, find(fixed, sqe.fd)?)?;
    }
    Ok(Some(Arc::new(files)))
}

/// An argument of a handler's.
fn arg<A: Arg>(word: u64) -> Result<A> {
    A::decode(usize::try_from(word).map_err(|_| Errno::EFAULT)?)
}

/// A descriptor as an argument.
fn fd<A: Arg>(number: i32) -> Result<A> {
    A::decode(number as isize as usize)
}

/// What needs not wait: done now. `None` for what may.
pub fn at_once(turn: &Turn<'_>, sqe: &Sqe) -> Option<Reply> {
    use op::*;
    let thread = &turn.issuer.double;
    Some(match sqe.opcode {
        NOP if sqe.op_flags & flag::NOP_INJECT_RESULT != 0 => {
            let result = i64::from(sqe.len as i32);
            Reply { result, failed: result < 0, ..Reply::default() }
        }
        NOP => Reply::default(),
        FALLOCATE | FADVISE | MADVISE | STATX | FTRUNCATE | EPOLL_CTL | SHUTDOWN | RENAMEAT | UNLINKAT | MKDIRAT
        | SYMLINKAT | LINKAT | FSETXATTR | SETXATTR | FGETXATTR | GETXATTR | BIND | LISTEN | FUTEX_WAKE => {
            files::call(thread, sqe).into()
        }
        CLOSE => own::close(turn, thread, sqe).into(),
        SOCKET => files::socket(thread, sqe).and_then(|made| place(turn, thread, sqe, made)).into(),
        URING_CMD => net::command(thread, sqe).into(),
        FIXED_FD_INSTALL => own::install(turn, thread, sqe).into(),
        FILES_UPDATE => own::files_update(turn, thread, sqe).into(),
        PROVIDE_BUFFERS => own::provide(turn, sqe).into(),
        REMOVE_BUFFERS => own::remove(turn, sqe).into(),
        MSG_RING => own::message(turn, thread, sqe).into(),
        ASYNC_CANCEL => cancel::cancel(turn, sqe).into(),
        TIMEOUT_REMOVE => time::remove(turn, thread, sqe).into(),
        POLL_REMOVE => rw::poll_remove(turn, sqe).into(),
        _ => return None,
    })
}

/// What may wait, from its begin to its end.
pub fn doing(op: &Arc<Op>, file: Option<Arc<OpenFile>>) -> Doing {
    let op = op.clone();
    Box::pin(async move {
        match file {
            Some(file) => perform_on(&op, &op.issuer.double, file).await,
            None if waits_on_file(op.sqe.opcode) => without_socket(&op, Errno::EBADF),
            None => perform(&op, &op.issuer.double).await,
        }
    })
}

/// What is done to a file.
async fn perform_on(op: &Op, thread: &Thread, file: Arc<OpenFile>) -> Reply {
    use op::*;
    let sqe = &op.sqe;
    match sqe.opcode {
        READ | READV | READ_FIXED if sqe.flags & sqe::BUFFER_SELECT == 0 => rw::read(op, thread, &file).await,
        READ | READ_MULTISHOT => rw::read_selected(op, thread, &file).await,
        WRITE | WRITEV | WRITE_FIXED => rw::write(op, thread, &file).await,
        POLL_ADD => rw::poll(op, thread, file).await,
        SPLICE | TEE => files::splice(thread, sqe).await,
        _ => match Open::of_operation(file) {
            Ok(open) => net::perform(op, thread, &open).await,
            Err(errno) => without_socket(op, errno),
        },
    }
}

/// The end of what was to be done to a file that is none, or no socket: a send that reports on its memory does so all the same.
fn without_socket(op: &Op, errno: Errno) -> Reply {
    let reply = Reply::error(errno);
    if matches!(op.sqe.opcode, op::SEND_ZC | op::SENDMSG_ZC) { net::notified(op, reply) } else { reply }
}

async fn perform(op: &Op, thread: &Thread) -> Reply {
    use op::*;
    let sqe = &op.sqe;
    match sqe.opcode {
        OPENAT | OPENAT2 => {
            let made = files::open(thread, sqe).await;
            made.and_then(|made| place_later(op, made)).into()
        }
        TIMEOUT => time::timeout(op, thread).await,
        WAITID => files::waitid(op, thread).await.into(),
        FSYNC | SYNC_FILE_RANGE => files::sync(thread, sqe).await,
        FUTEX_WAIT | FUTEX_WAITV => files::futex_wait(thread, sqe).await.into(),
        _ => Reply::error(Errno::EINVAL),
    }
}

/// What an operation that made a file returns: its number, where it is to have one.
fn place(turn: &Turn<'_>, double: &Thread, sqe: &Sqe, made: Fd) -> Result<usize> {
    let owner = turn.issuer.owner().ok_or(Errno::ESRCH)?;
    put_away(&turn.ring.resources, &owner, double, sqe, made)
}

fn place_later(op: &Op, made: Fd) -> Result<usize> {
    let owner = op.issuer.owner().ok_or(Errno::ESRCH)?;
    put_away(&op.ring.resources, &owner, &op.issuer.double, &op.sqe, made)
}

fn put_away(
    resources: &janua_rt::Mutex<super::resources::Resources>,
    owner: &Thread,
    double: &Thread,
    sqe: &Sqe,
    made: Fd,
) -> Result<usize> {
    let direct = sqe.file_index != 0;
    if !direct && sqe.flags & sqe::FIXED_FILE == 0 {
        return Ok(made.0 as usize);
    }
    // It is in the table that was made for this submission.
    let files = double.files();
    let cloexec = files.cloexec(made)?;
    let file = files.remove(made)?;
    if !direct {
        return fd::install(owner, file, cloexec).map(|fd| fd.0 as usize);
    }
    let any = sqe.file_index == flag::FILE_INDEX_ALLOC;
    let slot = if any { flag::FILE_INDEX_ALLOC } else { sqe.file_index - 1 };
    let (at, old) = resources.lock().put(slot, file)?;
    drop(old);
    Ok(if any { at as usize } else { 0 })
}
