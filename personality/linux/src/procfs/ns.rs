//! /proc/PID/ns: the namespaces of a process. There is one of each kind, and everybody is in it.

use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;

use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_object::file::{Events, File};
use janua_object::vfs::{Attr, FileKind, Path};
use janua_object::{Caller, OpenFile};

use super::{Entry, Kind, Subject};

/// The namespaces of one kind.
struct Namespace {
    kind: &'static str,
    /// The CLONE_NEW* bit.
    flag: usize,
    /// Its inode number, as Linux gives the first of the kind.
    ino: u64,
}

macro_rules! links {
    ($($name:literal: $kind:literal $flag:literal $ino:literal,)*) => {
        &[$(Entry::new(
            $name,
            0o777,
            Kind::Place(|subject| place(subject, Namespace { kind: $kind, flag: $flag, ino: $ino })),
        )),*]
    };
}

pub static ENTRIES: &[Entry] = links! {
    "cgroup": "cgroup" 0x0200_0000 4_026_531_835,
    "ipc": "ipc" 0x0800_0000 4_026_531_839,
    "mnt": "mnt" 0x0002_0000 4_026_531_841,
    "net": "net" 0x4000_0000 4_026_531_840,
    "pid": "pid" 0x2000_0000 4_026_531_836,
    "pid_for_children": "pid" 0x2000_0000 4_026_531_836,
    "time": "time" 0x80 4_026_531_834,
    "time_for_children": "time" 0x80 4_026_531_834,
    "user": "user" 0x1000_0000 4_026_531_837,
    "uts": "uts" 0x0400_0000 4_026_531_838,
};

/// Where the link leads: a file without a name, labelled `net:[4026531840]`.
fn place(subject: &Subject, namespace: Namespace) -> Result<Path> {
    subject.seat()?;
    subject.kernel.vfs.place_of(&OpenFile::new(Arc::new(namespace), 0, None))
}

impl File for Namespace {
    fn splices(&self, _write: bool) -> bool {
        false
    }

    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut ReadBuf<'_>, _offset: u64) -> Result<usize> {
        Err(Errno::EINVAL)
    }

    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut WriteBuf<'_>, _offset: u64) -> Result<usize> {
        Err(Errno::EINVAL)
    }

    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, _table: Option<&mut PollTable>) -> Events {
        Events::ALWAYS
    }

    /// ioctl_ns(2). The first namespaces have no parents, and belong to the first user.
    fn ioctl(&self, _file: &OpenFile, caller: &dyn Caller, request: u32, arg: usize) -> Result<usize> {
        const NS_GET_USERNS: u32 = 0xb701;
        const NS_GET_PARENT: u32 = 0xb702;
        const NS_GET_NSTYPE: u32 = 0xb703;
        const NS_GET_OWNER_UID: u32 = 0xb704;
        const HIERARCHICAL: [&str; 2] = ["pid", "user"];
        match request {
            NS_GET_USERNS => Err(Errno::EPERM),
            NS_GET_PARENT if HIERARCHICAL.contains(&self.kind) => Err(Errno::EPERM),
            NS_GET_PARENT => Err(Errno::EINVAL),
            NS_GET_NSTYPE => Ok(self.flag),
            NS_GET_OWNER_UID if self.kind == "user" => {
                janua_kernel::UserPtr::<u32>::new(arg).write(caller.user(), &0).map(|()| 0)
            }
            NS_GET_OWNER_UID => Err(Errno::EINVAL),
            _ => Err(Errno::ENOTTY),
        }
    }

    fn attr(&self) -> Result<Attr> {
        /// The device of the pseudo file system namespaces live on.
        const DEV: u64 = 4;
        Ok(Attr { dev: DEV, ino: self.ino, mode: FileKind::Regular as u32 | 0o444, nlink: 1, blksize: 4096, ..Attr::default() })
    }

    fn reopen(&self, _file: &OpenFile, _caller: &dyn Caller, _flags: u32) -> Result<Arc<dyn File>> {
        Ok(Arc::new(Namespace { ..*self }))
    }

    fn label(&self) -> String {
        alloc::format!("{}:[{}]", self.kind, self.ino)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
