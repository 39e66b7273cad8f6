//! pipe(2), and the waiting part of opening a FIFO.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use janua_abi::linux::capability::CAP_SYS_RESOURCE;
use janua_kernel::table::{Arg, Kind};
use janua_kernel::{Errno, Result, UserPtr};
use janua_object::OpenFile;
use janua_object::file::flags::{O_CLOEXEC, O_DIRECT, O_NONBLOCK, O_RDONLY, O_WRONLY};
use janua_object::pipe::{DEFAULT_CAPACITY, Pipe, PipeEnd};

use crate::Thread;
use crate::fs::fd;

/// Flags of pipe2(2).
#[derive(Clone, Copy, Debug)]
pub struct PipeFlags(pub u32);

impl Arg for PipeFlags {
    const KIND: Kind = Kind::Named("open");
    fn decode(word: usize) -> Result<Self> {
        // Notification pipes (O_EXCL) have no other use here than to be refused.
        if word as u32 & !(O_CLOEXEC | O_NONBLOCK | O_DIRECT) != 0 {
            return Err(Errno::EINVAL);
        }
        Ok(PipeFlags(word as u32))
    }
}

/// pipe(2)
pub fn pipe(thread: &Thread, out: UserPtr<[i32; 2]>) -> Result<()> {
    pipe2(thread, out, PipeFlags(0))
}

/// pipe2(2)
pub fn pipe2(thread: &Thread, out: UserPtr<[i32; 2]>, flags: PipeFlags) -> Result<()> {
    let cred = thread.cred();
    let now = thread.machine().clock().realtime();
    let ino = thread.kernel.files.next_ino();
    let (reader, writer) = Pipe::pair(ino, cred.fsuid, cred.fsgid, i64::try_from(now).unwrap_or(i64::MAX));
    let most = thread.kernel.files.pipe_most.load(Ordering::Relaxed);
    if most < DEFAULT_CAPACITY && !cred.capable(CAP_SYS_RESOURCE) {
        reader.pipe.set_capacity(most, most, false)?;
    }
    let status = flags.0 & (O_NONBLOCK | O_DIRECT);
    let cloexec = flags.0 & O_CLOEXEC != 0;
    let reader = OpenFile::new(Arc::new(reader), O_RDONLY | status, None);
    let writer = OpenFile::new(Arc::new(writer), O_WRONLY | status, None);
    fd::install_pair(thread, [reader, writer], cloexec, out)
}

/// Whether a file is a FIFO whose other side has not been opened yet, which its own opening waits for.
pub fn waits(file: &OpenFile) -> bool {
    file.downcast::<PipeEnd>().is_some_and(|end| !file.nonblocking() && !end.peer_arrived())
}

/// The rest of opening a FIFO: waits for the other side unless the open is non-blocking (fifo(7)). Files of other kinds pass.
pub async fn opened(thread: &Thread, file: &OpenFile) -> Result<()> {
    let Some(end) = file.downcast::<PipeEnd>() else { return Ok(()) };
    if file.nonblocking() || end.peer_arrived() {
        return Ok(());
    }
    thread.wait_on(end.arrivals(), None, || end.peer_arrived().then_some(())).await.map_err(|cut| cut.errno(Errno::EAGAIN))
}
