//! Byte streams: of pipes, and to other picoprocesses. Two pipes, one for each direction, and handles on their way beside them.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_abi::pal::{Error, Kind};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_object::file::flags::O_RDWR;
use janua_object::pipe::{Pipe, PipeEnd};
use janua_object::vfs::Attr;
use janua_object::{Caller, Events, File, OpenFile};
use janua_personality_linux::Thread;
use janua_rt::{Mutex, RwLock, WaitQueue};

/// Most handles that wait in one direction of a stream.
const MOST_HANDLES: usize = 64;

/// What both ends of a stream share.
#[derive(Default)]
struct Link {
    /// Handles on their way to each end.
    cargo: [Mutex<VecDeque<Flying>>; 2],
    arrivals: [WaitQueue; 2],
    /// Which ends are gone.
    gone: [AtomicBool; 2],
    /// How many of its ends have been sent and not been received.
    flying: AtomicUsize,
}

/// A handle on its way.
struct Flying(Arc<OpenFile>);

impl Flying {
    fn new(file: Arc<OpenFile>) -> Flying {
        if let Some(stream) = file.downcast::<Stream>() {
            stream.link.flying.fetch_add(1, Ordering::Relaxed);
        }
        Flying(file)
    }
}

impl Drop for Flying {
    fn drop(&mut self) {
        if let Some(stream) = self.0.downcast::<Stream>() {
            stream.link.flying.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// One end.
pub struct Stream {
    pub kind: Kind,
    /// Its URI.
    pub name: Vec<u8>,
    /// Directions that have not been shut down.
    rx: RwLock<Option<PipeEnd>>,
    tx: RwLock<Option<PipeEnd>>,
    link: Arc<Link>,
    /// Which end it is.
    side: usize,
}

/// A kind of end, and its name.
pub type Named = (Kind, Vec<u8>);

/// The two ends of a pipe of the personality `linux`, for the calling thread.
fn pair(thread: &Thread) -> (PipeEnd, PipeEnd) {
    let cred = thread.cred();
    let now = i64::try_from(thread.machine().clock().realtime()).unwrap_or(i64::MAX);
    Pipe::pair(thread.kernel.files.next_ino(), cred.fsuid, cred.fsgid, now)
}

impl Stream {
    fn end((kind, name): Named, rx: PipeEnd, tx: PipeEnd, link: &Arc<Link>, side: usize) -> Arc<Stream> {
        Arc::new(Stream { kind, name, rx: RwLock::new(Some(rx)), tx: RwLock::new(Some(tx)), link: link.clone(), side })
    }

    /// The two ends of a new one.
    pub fn two(thread: &Thread, first: Named, second: Named) -> [Arc<Stream>; 2] {
        let (there, back) = (pair(thread), pair(thread));
        let link = Arc::new(Link::default());
        [Stream::end(first, back.0, there.1, &link, 0), Stream::end(second, there.0, back.1, &link, 1)]
    }

    /// One that leads to its own holder.
    pub fn private(thread: &Thread) -> Arc<Stream> {
        let (rx, tx) = pair(thread);
        let link = Arc::new(Link::default());
        // What is sent arrives at the end that sends.
        link.gone[1].store(true, Ordering::Relaxed);
        Stream::end((Kind::PipePrivate, b"pipe:".to_vec()), rx, tx, &link, 0)
    }

    /// The same as an open file.
    pub fn open(self: Arc<Stream>, nonblocking: u32) -> Arc<OpenFile> {
        OpenFile::new(self, O_RDWR | nonblocking, None)
    }

    /// Shuts a direction down.
    pub fn shut(&self, read: bool, write: bool) {
        if read {
            drop(self.rx.write().take());
        }
        if write {
            drop(self.tx.write().take());
        }
    }

    /// Where what this end sends arrives.
    fn peer(&self) -> usize {
        if self.kind == Kind::PipePrivate { self.side } else { 1 - self.side }
    }

    /// Puts a handle on its way. ENDOFSTREAM when nobody is at the other end, TRYAGAIN when too many are under way, or an end of this stream is.
    pub fn send(&self, cargo: Arc<OpenFile>) -> Result<()> {
        let to = self.peer();
        if self.link.gone[to].load(Ordering::SeqCst) {
            return Err(Error::EndOfStream.errno());
        }
        if self.link.flying.load(Ordering::Relaxed) > 0 {
            return Err(Errno::EAGAIN);
        }
        let mut queue = self.link.cargo[to].lock();
        if queue.len() == MOST_HANDLES {
            return Err(Errno::EAGAIN);
        }
        queue.push_back(Flying::new(cargo));
        drop(queue);
        self.link.arrivals[to].wake_all();
        Ok(())
    }

    /// The next handle that has come; an error when none will.
    pub fn receive(&self) -> Option<Result<Arc<OpenFile>>> {
        if let Some(flying) = self.link.cargo[self.side].lock().pop_front() {
            return Some(Ok(flying.0.clone()));
        }
        let over = self.kind != Kind::PipePrivate && self.link.gone[1 - self.side].load(Ordering::SeqCst);
        over.then(|| Err(Error::EndOfStream.errno()))
    }

    /// Announces handles.
    pub fn arrivals(&self) -> &WaitQueue {
        &self.link.arrivals[self.side]
    }

    /// Whether it is an end of the same stream.
    pub fn shares(&self, other: &Stream) -> bool {
        Arc::ptr_eq(&self.link, &other.link)
    }

    /// Whether no handle waits in it.
    pub fn is_empty(&self) -> bool {
        self.link.cargo.iter().all(|queue| queue.lock().is_empty())
    }

    /// Bytes that can be read now, and whether the other end is gone.
    pub fn state(&self) -> (usize, bool) {
        let held = self.rx.read().as_ref().map_or(0, |rx| rx.pipe.held());
        (held, self.link.gone[self.peer()].load(Ordering::SeqCst))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.link.gone[self.side].store(true, Ordering::SeqCst);
        let left: VecDeque<Flying> = core::mem::take(&mut *self.link.cargo[self.side].lock());
        self.link.arrivals[1 - self.side].wake_all();
        drop(left);
    }
}

impl File for Stream {
    fn read(&self, file: &OpenFile, caller: &dyn Caller, buf: &mut ReadBuf<'_>, offset: u64) -> Result<usize> {
        match &*self.rx.read() {
            Some(rx) => rx.read(file, caller, buf, offset),
            None => Ok(0),
        }
    }

    fn write(&self, file: &OpenFile, caller: &dyn Caller, buf: &mut WriteBuf<'_>, offset: u64) -> Result<usize> {
        match &*self.tx.read() {
            Some(tx) => tx.write(file, caller, buf, offset),
            None => Err(Errno::EPIPE),
        }
    }

    fn poll(&self, file: &OpenFile, caller: &dyn Caller, mut table: Option<&mut PollTable>) -> Events {
        let mut events = match &*self.rx.read() {
            Some(rx) => rx.poll(file, caller, table.as_deref_mut()),
            None => Events::IN | Events::HUP,
        };
        // What a writer meets is no reader's event.
        if let Some(tx) = &*self.tx.read() {
            events |= tx.poll(file, caller, table) & (Events::OUT | Events::WRNORM);
        }
        events
    }

    fn streams(&self) -> bool {
        true
    }

    fn attr(&self) -> Result<Attr> {
        match (&*self.rx.read(), &*self.tx.read()) {
            (Some(end), _) | (None, Some(end)) => end.attr(),
            (None, None) => Err(Errno::EBADF),
        }
    }

    fn label(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
