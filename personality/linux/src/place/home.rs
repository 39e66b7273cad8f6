//! The home tile's side: what stays of a process that runs on another tile, and the files it has taken along.
//!
//! The other tile is not believed further than its processes reach: it names files that it was given and processes that were begun there, and what it asks for is done
//! with those processes' rights.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use janua_abi::linux::signal::{SIGKILL, SigInfo};
use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::tiles::Channel;
use janua_kernel::wait::PollTable;
use janua_object::caller::Itself;
use janua_object::file::offset;
use janua_object::pipe::PipeEnd;
use janua_object::{Cred, Events, OpenFile};
use janua_rt::Mutex;
use janua_rt::waitq::{Notify, Target};
use zerocopy::IntoBytes;

use super::link::{Bell, Kind, Link, Message, TRANSFER_MOST};
use super::wire::{Used, attr_bytes};
use crate::outside::Notice;
use crate::process::{Report, State, Stop};
use crate::signal::calls::Signal;
use crate::signal::{is_signal, kill, send};
use crate::{Kernel, Task, task};

/// Files that processes of one tile may have together.
const FILES_MOST: usize = 4096;

/// Reports to another tile that a file may be ready.
struct Announcer {
    link: Arc<Link>,
    handle: u32,
    /// The other tile wants to know.
    wanted: AtomicBool,
}

impl Notify for Announcer {
    fn notify(&self, _events: u32) {
        if self.wanted.swap(false, Ordering::SeqCst) {
            self.link.post(&Message::new(Kind::Ready, self.handle, 0, 0));
        }
    }
}

/// A file that processes of another tile have.
struct Held {
    file: Arc<OpenFile>,
    /// Of who took it along.
    cred: Arc<Cred>,
    announcer: Arc<Announcer>,
    /// The registration with the file's queues, once it was not ready.
    table: Mutex<Option<PollTable>>,
}

impl Held {
    /// Tries something that may find nothing, for which the other tile is notified when it may be worth another try.
    fn attempt<T>(&self, caller: &Itself, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
        let first = attempt();
        if !matches!(first, Err(Errno::EAGAIN)) {
            return first;
        }
        self.watch(caller);
        // What has come before it was registered.
        let second = attempt();
        if !matches!(second, Err(Errno::EAGAIN)) {
            self.announcer.wanted.store(false, Ordering::SeqCst);
        }
        second
    }

    fn watch(&self, caller: &Itself) {
        self.announcer.wanted.store(true, Ordering::SeqCst);
        let mut table = self.table.lock();
        if table.is_none() {
            let fresh = table.insert(PollTable::new(Target::Notify(self.announcer.clone()), u32::MAX));
            self.file.poll(caller, Some(fresh));
        }
    }

    fn read(&self, caller: &Itself, at: u64, want: usize) -> Result<Vec<u8>> {
        self.file.check_read()?;
        let mut bytes = vec![0; want.min(TRANSFER_MOST)];
        let read = self.attempt(caller, || {
            let file = &self.file;
            let mut buf = ReadBuf::kernel(&mut bytes);
            if at == offset::CURRENT && file.ops.seekable() && !file.ops.keeps_position() {
                let mut pos = file.pos.lock();
                let n = file.ops.read(file, caller, &mut buf, *pos)?;
                *pos += n as u64;
                return Ok(n);
            }
            file.ops.read(file, caller, &mut buf, at)
        })?;
        bytes.truncate(read);
        Ok(bytes)
    }

    fn write(&self, caller: &Itself, at: u64, bytes: &[u8]) -> Result<usize> {
        self.file.check_write()?;
        let mut buf = WriteBuf::kernel(bytes);
        let mut written = 0;
        while buf.left() > 0 {
            match self.attempt(caller, || self.write_some(caller, at, &mut buf)) {
                Ok(0) => break,
                Ok(n) => written += n,
                Err(_) if written > 0 => break,
                Err(errno) => return Err(errno),
            }
            if !self.file.ops.streams() {
                break;
            }
        }
        Ok(written)
    }

    fn write_some(&self, caller: &Itself, at: u64, buf: &mut WriteBuf<'_>) -> Result<usize> {
        let file = &self.file;
        let append = file.appends() || at == offset::END;
        if at == offset::CURRENT && file.ops.seekable() && !file.ops.keeps_position() {
            let mut pos = file.pos.lock();
            let (n, end) = match append {
                true => file.ops.append(file, caller, buf, u64::MAX)?,
                false => {
                    let n = file.ops.write(file, caller, buf, *pos)?;
                    (n, *pos + n as u64)
                }
            };
            *pos = end;
            return Ok(n);
        }
        if append && file.ops.seekable() && !file.ops.keeps_position() {
            let (n, end) = file.ops.append(file, caller, buf, u64::MAX)?;
            *file.pos.lock() = end;
            return Ok(n);
        }
        file.ops.write(file, caller, buf, if append { offset::END } else { at })
    }
}

/// Another tile that programs may be begun on.
pub struct Peer {
    kernel: Arc<Kernel>,
    pub link: Arc<Link>,
    held: Mutex<BTreeMap<u32, Arc<Held>>>,
    last_handle: AtomicU32,
    /// Processes that have been begun there, and who waits for that.
    there: Mutex<BTreeMap<u32, Arc<Notice>>>,
}

impl Peer {
    /// Begins to serve what the other side of the channel asks for.
    pub fn connect(kernel: &Arc<Kernel>, channel: Channel) -> Result<Arc<Peer>> {
        let link = Link::new(kernel.machine, channel);
        let peer = Arc::new(Peer {
            kernel: kernel.clone(),
            link,
            held: Mutex::default(),
            last_handle: AtomicU32::new(0),
            there: Mutex::default(),
        });
        let serving = peer.clone();
        kernel.machine.spawn_kernel("placing", alloc::boxed::Box::new(move || serving.serve()))?;
        Ok(peer)
    }

    fn serve(&self) {
        self.link.serve(true, |message| {
            if self.act(message).is_err() {
                self.link.break_off();
            }
        });
        // Nothing is to be had of the tile any more: what ran there is gone, and its files are closed.
        let there = core::mem::take(&mut *self.there.lock());
        for (pid, notice) in there {
            notice.give(Err(Errno::EHOSTDOWN));
            if let Some(task) = self.kernel.process(pid).filter(|task| super::tile_of(task) == self.link.tile) {
                send::exit_group_locked(&mut task.group.lock(), SIGKILL);
            }
        }
        let held = core::mem::take(&mut *self.held.lock());
        drop(held);
    }

    /// Holds a file for a process that is to begin there: its number. EMFILE.
    pub fn hold(&self, file: &Arc<OpenFile>, cred: &Arc<Cred>) -> Result<u32> {
        let mut held = self.held.lock();
        if held.len() >= FILES_MOST {
            return Err(Errno::EMFILE);
        }
        let handle = loop {
            let next = self.last_handle.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            if next != 0 && !held.contains_key(&next) {
                break next;
            }
        };
        let announcer = Announcer { link: self.link.clone(), handle, wanted: AtomicBool::new(false) };
        let new = Held { file: file.clone(), cred: cred.clone(), announcer: Arc::new(announcer), table: Mutex::new(None) };
        held.insert(handle, Arc::new(new));
        Ok(handle)
    }

    /// Gives such files up.
    pub fn give_up(&self, handles: &[u32]) {
        let mut held = self.held.lock();
        let gone: Vec<_> = handles.iter().filter_map(|handle| held.remove(handle)).collect();
        drop(held);
        drop(gone);
    }

    /// Begins a program there and waits until it has been loaded, or why it has not.
    pub fn begin(&self, pid: u32, start: alloc::vec::Vec<u8>) -> Result<()> {
        const PATIENCE: u64 = 10_000_000_000;
        let machine = self.kernel.machine;
        let notice = Arc::new(Notice::default());
        self.there.lock().insert(pid, notice.clone());
        self.link.post(&Message::new(Kind::Start, pid, 0, 0).with(start));
        let bell = Arc::new(Bell::new(machine));
        let _heard = notice.queue.register(Target::Notify(bell.clone()), u32::MAX);
        let deadline = machine.clock().monotonic() + PATIENCE;
        let broken = || self.link.is_broken().then_some(Err(Errno::EHOSTDOWN));
        let loaded = bell.wait(Some(deadline), || notice.get().or_else(broken));
        let loaded = loaded.unwrap_or_else(|| {
            self.link.break_off();
            Err(Errno::EHOSTDOWN)
        });
        if loaded.is_err() {
            self.there.lock().remove(&pid);
        }
        loaded
    }

    /// A signal for a process that runs there.
    pub fn signal(&self, pid: u32, info: &SigInfo) {
        self.link.post(&Message::new(Kind::Signal, pid, 0, 0).with(info.as_bytes().to_vec()));
    }

    /// A signal for those members of a group whom only the other tile knows.
    pub fn signal_group(&self, pgrp: u32, info: &SigInfo) {
        self.link.post(&Message::new(Kind::Group, pgrp, 0, 0).with(info.as_bytes().to_vec()));
    }

    /// Takes a message for what it is. EPROTO for one that the other side never sends.
    fn act(&self, message: Message) -> Result<()> {
        match message.kind {
            Kind::Started | Kind::Refused | Kind::Ended | Kind::Stopped | Kind::Continued => self.hear_of(&message),
            Kind::Flags | Kind::Close => {
                let held = self.held.lock().get(&message.handle).cloned().ok_or(Errno::EPROTO)?;
                if message.kind == Kind::Flags {
                    held.file.set_flags(message.a as u32);
                } else {
                    self.give_up(&[message.handle]);
                }
                Ok(())
            }
            Kind::Start | Kind::Signal | Kind::Group | Kind::Reply | Kind::Ready => Err(Errno::EPROTO),
            _ => {
                let mut reply = Message::new(Kind::Reply, message.handle, 0, 0);
                match self.answer(&message) {
                    Ok((word, body)) => (reply.a, reply.body) = (word, body),
                    Err(errno) => reply.a = errno.as_result() as u64,
                }
                self.link.post(&Message { id: message.id, ..reply });
                Ok(())
            }
        }
    }

    /// What is asked: a word, and bytes.
    fn answer(&self, message: &Message) -> Result<(u64, Vec<u8>)> {
        let Message { handle, a, b, .. } = *message;
        if message.kind == Kind::Kill {
            return self.kill(handle, a as i32, b as i32).map(|()| (0, Vec::new()));
        }
        let held = self.held.lock().get(&handle).cloned().ok_or(Errno::EBADF)?;
        let caller = Itself::with(self.kernel.machine, (*held.cred).clone());
        let file = &held.file;
        let word = match message.kind {
            Kind::Read => return Ok((0, held.read(&caller, a, b as usize)?)),
            Kind::Attr => return Ok((0, attr_bytes(&file.attr()?))),
            Kind::Write => held.write(&caller, a, &message.body)? as u64,
            Kind::Poll => {
                held.watch(&caller);
                // Everything but what is only a bit for this side.
                u64::from((file.poll(&caller, None) - Events::NVAL).bits())
            }
            Kind::Seek => file.ops.seek(file, a as i64, b as u32)?,
            Kind::Size => file.ops.size()?,
            Kind::Held => file.downcast::<PipeEnd>().map(|end| end.pipe.held() as u64).ok_or(Errno::ENOTTY)?,
            Kind::Sync => file.ops.sync(a != 0).map(|()| 0)?,
            Kind::Truncate => {
                file.check_write().map_err(|_| Errno::EINVAL)?;
                file.ops.truncate(file, a).map(|()| 0)?
            }
            _ => return Err(Errno::ENOSYS),
        };
        Ok((word, Vec::new()))
    }

    /// kill(2) by a process that runs there.
    fn kill(&self, by: u32, target: i32, signal: i32) -> Result<()> {
        let known = self.there.lock().contains_key(&by);
        let seat = self.kernel.thread(by).filter(|_| known).ok_or(Errno::ESRCH)?;
        kill::kill(&seat, target, Signal(signal))
    }

    fn task(&self, pid: u32) -> Option<Arc<Task>> {
        self.kernel.process(pid).filter(|task| super::tile_of(task) == self.link.tile)
    }

    /// What becomes of a process there.
    fn hear_of(&self, message: &Message) -> Result<()> {
        let pid = message.handle;
        let notice = self.there.lock().get(&pid).cloned().ok_or(Errno::EPROTO)?;
        match message.kind {
            Kind::Started => notice.give(Ok(())),
            Kind::Refused => {
                let why = Errno::from_raw(message.a as isize).err().unwrap_or(Errno::EPROTO);
                notice.give(Err(why));
            }
            Kind::Ended => {
                let used = Used::of(&message.body)?;
                self.there.lock().remove(&pid);
                // One may end before its home has noted that it has begun.
                let Some(task) = self.kernel.process(pid) else { return Ok(()) };
                task.usage.threads.add(used.own);
                task.usage.children.add(used.children);
                task.usage.maxrss.fetch_max(used.peaks[0], Ordering::Relaxed);
                task.usage.children_maxrss.fetch_max(used.peaks[1], Ordering::Relaxed);
                send::exit_group_locked(&mut task.group.lock(), message.a as u32 & 0xffff);
            }
            Kind::Stopped | Kind::Continued => {
                let Some(task) = self.task(pid) else { return Ok(()) };
                let signal = message.a as u32;
                let what = if message.kind == Kind::Stopped { Report::Stopped(signal) } else { Report::Continued };
                if !is_signal(signal) && message.kind == Kind::Stopped {
                    return Err(Errno::EPROTO);
                }
                {
                    let mut group = task.group.lock();
                    if !matches!(group.state, State::Running) {
                        return Ok(());
                    }
                    group.stop = matches!(what, Report::Stopped(_)).then_some(Stop { signal, complete: true });
                    group.report = Some(what);
                }
                task::notify_parent(&task, what);
            }
            _ => return Err(Errno::EPROTO),
        }
        Ok(())
    }
}
