//! An open text file of /proc.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::Ordering;

use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_object::Caller;
use janua_object::file::{Events, File, OpenFile, whence};
use janua_object::vfs::Inode;
use janua_rt::{AtomicU64, Mutex};

use super::{Entry, Kind, Node, Text, User, What, query};
use crate::task::access;

/// Most bytes of one write.
const MOST: usize = 4096;

/// The text as it was when it was last read from the start.
pub struct TextFile {
    node: Arc<Node>,
    opener: User,
    /// The number of the program that ran when the file was opened.
    program: u64,
    text: Mutex<Option<Arc<Vec<u8>>>>,
    /// For a text of the mounts: as of which change its reader knows them.
    mounts: Option<AtomicU64>,
}

impl TextFile {
    pub fn new(node: Arc<Node>, opener: User, program: u64) -> TextFile {
        let mounts = match node.what {
            What::Entry(Entry { mounts: true, .. }) => {
                let known = node.fs.kernel.upgrade().map_or(0, |kernel| kernel.vfs.mount_changes().count());
                Some(AtomicU64::new(known))
            }
            _ => None,
        };
        TextFile { node, opener, program, text: Mutex::new(None), mounts }
    }
}

impl File for TextFile {
    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut ReadBuf<'_>, offset: u64) -> Result<usize> {
        let kept = if offset == 0 { None } else { self.text.lock().clone() };
        let text = match kept {
            Some(text) => text,
            None => {
                let mut text = Text::default();
                self.node.make(&self.opener, self.program, &mut text)?;
                let text = Arc::new(text.whole()?);
                *self.text.lock() = Some(text.clone());
                text
            }
        };
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
        buf.put(&text[from..])
    }

    fn write(&self, _file: &OpenFile, caller: &dyn Caller, buf: &mut WriteBuf<'_>, _at: u64) -> Result<usize> {
        let What::Entry(Entry { kind: Kind::Settable(_, take), .. }) = self.node.what else {
            return Err(Errno::EIO);
        };
        let mut bytes = vec![0; buf.left().min(MOST)];
        let len = buf.get(&mut bytes)?;
        let mut subject = self.node.subject()?;
        subject.user = Some(User::of(caller));
        take(&subject, &bytes[..len])?;
        Ok(len)
    }

    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, table: Option<&mut PollTable>) -> Events {
        let (Some(seen), Some(kernel)) = (&self.mounts, self.node.fs.kernel.upgrade()) else { return Events::ALWAYS };
        let changes = kernel.vfs.mount_changes();
        // A change is reported once; who only registers asks again before it reports.
        let known = match table {
            Some(table) => {
                table.add(changes.queue());
                seen.load(Ordering::Relaxed) == changes.count()
            }
            None => {
                let count = changes.count();
                seen.swap(count, Ordering::Relaxed) == count
            }
        };
        let readable = Events::IN | Events::RDNORM;
        if known { readable } else { readable | Events::ERR | Events::PRI }
    }

    fn may_wait(&self) -> bool {
        self.mounts.is_some()
    }

    fn seekable(&self) -> bool {
        true
    }

    fn size(&self) -> Result<u64> {
        Ok(0)
    }

    fn seek(&self, file: &OpenFile, offset: i64, from: u32) -> Result<u64> {
        // Only those that know how long they are, in a way, have an end to count from.
        let counts = self.node.is_setting() || matches!(from, whence::SEEK_SET | whence::SEEK_CUR);
        if !counts || from > whence::SEEK_END {
            return Err(Errno::EINVAL);
        }
        let mut pos = file.pos.lock();
        let start = if from == whence::SEEK_CUR { *pos } else { 0 };
        *pos = start.checked_add_signed(offset).filter(|new| i64::try_from(*new).is_ok()).ok_or(Errno::EINVAL)?;
        Ok(*pos)
    }

    fn ioctl(&self, _file: &OpenFile, caller: &dyn Caller, request: u32, arg: usize) -> Result<usize> {
        match self.node.what {
            What::Entry(entry) if request == query::REQUEST && query::is_asked(entry) => {
                let task = self.node.subject()?.task().cloned()?;
                let _held = access::hold(&task);
                if task.program() != self.program {
                    return Err(Errno::ESRCH);
                }
                query::answer(&self.node.subject()?, caller, arg)
            }
            _ => Err(Errno::ENOTTY),
        }
    }

    fn truncate(&self, _file: &OpenFile, _len: u64) -> Result<()> {
        // What is written does not lie in the file; programs empty it before they write all the same.
        Ok(())
    }

    fn attr(&self) -> Result<janua_object::vfs::Attr> {
        self.node.attr()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
