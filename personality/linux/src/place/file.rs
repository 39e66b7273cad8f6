//! A file of the home tile, as a process on another tile has it: each operation is asked of that tile, by one message and its answer.
//!
//! Nothing is fetched before it is asked for, so what a process does not read stays for who shares the description. A read that finds nothing makes the home
//! tile report when that may have changed.

use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec;
use core::any::Any;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_object::file::{File, request};
use janua_object::vfs::Attr;
use janua_object::{Caller, Events, OpenFile};
use janua_rt::WaitQueue;

use super::link::{Kind, Link, Message, TRANSFER_MOST};
use super::wire::{Description, attr_of};

/// What has been heard of a file, for the thread that hears it.
#[derive(Default)]
pub struct Heard {
    queue: WaitQueue,
    /// Reports that the file may be ready.
    reports: AtomicU32,
}

impl Heard {
    /// The home tile reports that the file may be ready.
    pub fn ready(&self) {
        self.reports.fetch_add(1, Ordering::SeqCst);
        self.queue.wake_all();
    }
}

/// A file of the home tile.
pub struct AwayFile {
    link: Arc<Link>,
    about: Description,
    heard: Arc<Heard>,
    /// How many reports there had been when the file was last asked and not ready, and 1 << 32 with it; 0: it has not been asked.
    idle: AtomicU64,
    /// What is notified that it is gone.
    gone: Weak<dyn Gone>,
}

/// Who keeps a list of such files.
pub trait Gone: Send + Sync {
    fn gone(&self, handle: u32);
}

impl AwayFile {
    pub fn new(link: &Arc<Link>, about: Description, heard: Arc<Heard>, gone: Weak<dyn Gone>) -> AwayFile {
        AwayFile { link: link.clone(), about, heard, idle: AtomicU64::new(0), gone }
    }

    fn ask(&self, kind: Kind, a: u64, b: u64) -> Result<Message> {
        self.link.ask(Message::new(kind, self.about.handle, a, b))
    }

    /// Asks for a transfer; one that finds nothing, or no room, is noted.
    fn transfer(&self, message: Message) -> Result<Message> {
        let reports = self.heard.reports.load(Ordering::SeqCst);
        if self.is_idle() {
            return Err(Errno::EAGAIN);
        }
        let answer = self.link.ask(message);
        if matches!(answer, Err(Errno::EAGAIN)) {
            self.idle.store(1 << 32 | u64::from(reports), Ordering::SeqCst);
        }
        answer
    }

    /// Whether it was not ready when it was asked last, and nothing has been reported since.
    fn is_idle(&self) -> bool {
        let now = u64::from(self.heard.reports.load(Ordering::SeqCst)) | 1 << 32;
        self.about.one_way && self.idle.load(Ordering::SeqCst) == now
    }
}

impl File for AwayFile {
    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut ReadBuf<'_>, offset: u64) -> Result<usize> {
        if buf.left() == 0 {
            return Ok(0);
        }
        if self.is_idle() {
            return Err(Errno::EAGAIN);
        }
        // What a stream has given it does not give again.
        let want = buf.storable_together(TRANSFER_MOST);
        if want == 0 {
            return Err(Errno::EFAULT);
        }
        let answer = self.transfer(Message::new(Kind::Read, self.about.handle, offset, want as u64))?;
        if answer.body.len() > want {
            return Err(Errno::EIO);
        }
        buf.put_whole(&answer.body)
    }

    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut WriteBuf<'_>, offset: u64) -> Result<usize> {
        let want = buf.left().min(TRANSFER_MOST);
        if want == 0 {
            return Ok(0);
        }
        if self.is_idle() {
            return Err(Errno::EAGAIN);
        }
        let mut bytes = vec![0; want];
        let had = buf.clone().get(&mut bytes)?;
        bytes.truncate(had);
        let answer = self.transfer(Message::new(Kind::Write, self.about.handle, offset, 0).with(bytes))?;
        let written = usize::try_from(answer.a).ok().filter(|written| *written <= had).ok_or(Errno::EIO)?;
        buf.skip(written);
        Ok(written)
    }

    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, table: Option<&mut PollTable>) -> Events {
        if let Some(table) = table {
            table.add(&self.heard.queue);
        }
        if self.is_idle() {
            return Events::empty();
        }
        match self.ask(Kind::Poll, 0, 0) {
            Ok(answer) => Events::from_bits_truncate(answer.a as u32),
            Err(_) => Events::ERR | Events::HUP,
        }
    }

    fn seekable(&self) -> bool {
        self.about.seekable
    }

    fn keeps_position(&self) -> bool {
        self.about.seekable
    }

    fn size(&self) -> Result<u64> {
        Ok(self.ask(Kind::Size, 0, 0)?.a)
    }

    fn seek(&self, _file: &OpenFile, offset: i64, whence: u32) -> Result<u64> {
        Ok(self.ask(Kind::Seek, offset as u64, whence.into())?.a)
    }

    fn streams(&self) -> bool {
        self.about.streams
    }

    fn announces(&self) -> bool {
        self.about.announces
    }

    fn splices(&self, _write: bool) -> bool {
        false
    }

    fn attr(&self) -> Result<Attr> {
        attr_of(&self.ask(Kind::Attr, 0, 0)?.body)
    }

    fn truncate(&self, _file: &OpenFile, len: u64) -> Result<()> {
        self.ask(Kind::Truncate, len, 0).map(drop)
    }

    fn sync(&self, data_only: bool) -> Result<()> {
        self.ask(Kind::Sync, data_only.into(), 0).map(drop)
    }

    fn sync_blocks(&self) -> bool {
        self.about.seekable
    }

    fn flags_changed(&self, _file: &OpenFile, flags: u32) {
        self.link.post(&Message::new(Kind::Flags, self.about.handle, flags.into(), 0));
    }

    fn ioctl(&self, _file: &OpenFile, caller: &dyn Caller, request: u32, arg: usize) -> Result<usize> {
        match request {
            request::FIONREAD if self.about.streams => {
                let held = i32::try_from(self.ask(Kind::Held, 0, 0)?.a).unwrap_or(i32::MAX);
                UserPtr::<i32>::new(arg).write(caller.user(), &held)?;
                Ok(0)
            }
            _ => Err(Errno::ENOTTY),
        }
    }

    fn label(&self) -> String {
        String::from_utf8_lossy(&self.about.label).into_owned()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for AwayFile {
    fn drop(&mut self) {
        self.link.post(&Message::new(Kind::Close, self.about.handle, 0, 0));
        if let Some(list) = self.gone.upgrade() {
            list.gone(self.about.handle);
        }
    }
}
