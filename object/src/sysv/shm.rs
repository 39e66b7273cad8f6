//! Shared memory segments (shmop(2)): files in memory that are mapped by identifier.

use alloc::string::String;
use alloc::sync::{Arc, Weak};
use core::any::Any;

use janua_abi::linux::ipc::{IPC_CREAT, SHM_DEST, SHM_LOCKED, SHM_NORESERVE, SHM_RDONLY, ShmidDs};
use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_port::{Backing, Machine};
use janua_rt::Mutex;

use super::ids::{Ids, Object, Owner};
use super::memory::{Piece, Pool};
use crate::caller::{Caller, Cred};
use crate::file::{Events, File, OpenFile, flags};
use crate::memfd::MemFs;
use crate::vfs::{Attr, Inode, Path, Vfs};

/// The segments of a kernel.
pub struct Segments {
    pub ids: Ids<Segment>,
    /// Where they are files, and where their memory is.
    files: Arc<MemFs>,
    pool: Arc<Pool>,
}

struct State {
    owner: Owner,
    atime: i64,
    dtime: i64,
    ctime: i64,
    last_pid: u32,
    /// Attachments.
    attached: u64,
    /// To be destroyed with the last attachment.
    doomed: bool,
    locked: bool,
}

/// A segment.
pub struct Segment {
    id: i32,
    pub size: u64,
    creator: u32,
    memory: Arc<Piece>,
    path: Path,
    state: Mutex<State>,
    home: Weak<Segments>,
    machine: &'static dyn Machine,
}

impl Segments {
    pub fn new(vfs: &Vfs, files: Arc<MemFs>) -> Segments {
        Segments { ids: Ids::new(), files, pool: Pool::new(vfs) }
    }

    /// shmget(2). EINVAL for a size of zero or beyond the segment's, and as [`Ids::get`].
    pub fn get(self: &Arc<Self>, vfs: &Vfs, caller: &dyn Caller, key: i32, size: usize, flags: u32) -> Result<i32> {
        let cred = caller.cred();
        let fits = |segment: &Segment| if size as u64 > segment.size { Err(Errno::EINVAL) } else { Ok(()) };
        self.ids.get(key, flags, &cred, fits, |id| {
            if size == 0 || size > isize::MAX as usize {
                return Err(if flags & IPC_CREAT != 0 || key == 0 { Errno::EINVAL } else { Errno::ENOENT });
            }
            let label = alloc::format!("/SYSV{key:08x} (deleted)");
            let whole = crate::mm::round_up(size).ok_or(Errno::EINVAL)? as u64;
            let memory = self.pool.piece(whole, flags & 0o777, &cred)?;
            if flags & SHM_NORESERVE == 0 {
                memory.reserve()?;
            }
            let path = self.files.place(vfs, memory.clone(), label.as_bytes());
            let now = vfs.now() / 1_000_000_000;
            Ok(Arc::new(Segment {
                id,
                size: size as u64,
                creator: caller.pid(),
                memory,
                path,
                state: Mutex::new(State {
                    owner: Owner::new(key, flags, &cred),
                    atime: 0,
                    dtime: 0,
                    ctime: now,
                    last_pid: 0,
                    attached: 0,
                    doomed: false,
                    locked: false,
                }),
                home: Arc::downgrade(self),
                machine: vfs.machine,
            }))
        })
    }
}

impl Segment {
    /// A file to be mapped by shmat(2), with the access that its flags ask for. It counts as attached while mappings of it live.
    pub fn open(self: &Arc<Self>, flags: u32) -> Arc<OpenFile> {
        let mode = if flags & SHM_RDONLY != 0 { flags::O_RDONLY } else { flags::O_RDWR };
        OpenFile::new(Arc::new(ShmFile(self.clone())), mode, Some(self.path.clone()))
    }

    /// Notes who has attached or detached.
    pub fn used_by(&self, pid: u32) {
        self.state.lock().last_pid = pid;
    }

    /// IPC_RMID: gone at once when nobody is attached, otherwise with the last one; its key is free from now on.
    pub fn doom(&self) {
        let attached = {
            let mut state = self.state.lock();
            state.doomed = true;
            state.owner.key = 0;
            state.attached
        };
        if let Some(home) = self.home.upgrade() {
            home.ids.forget_key(self.id);
            if attached == 0 {
                home.ids.remove(self.id);
            }
        }
    }

    /// SHM_LOCK and SHM_UNLOCK: noted and shown.
    pub fn set_locked(&self, locked: bool) {
        self.state.lock().locked = locked;
    }

    pub fn set_owner(&self, now: i64, change: impl FnOnce(&mut Owner) -> Result<()>) -> Result<()> {
        let mut state = self.state.lock();
        change(&mut state.owner)?;
        state.ctime = now;
        Ok(())
    }

    /// EACCES unless the caller may attach with these flags.
    pub fn check(&self, cred: &Cred, want: u32) -> Result<()> {
        self.state.lock().owner.check(cred, want)
    }

    pub fn stat(&self) -> ShmidDs {
        let state = self.state.lock();
        let flags = if state.doomed { SHM_DEST } else { 0 } | if state.locked { SHM_LOCKED } else { 0 };
        ShmidDs {
            perm: state.owner.as_perm(self.id, flags),
            segsz: self.size,
            atime: state.atime,
            dtime: state.dtime,
            ctime: state.ctime,
            cpid: self.creator as i32,
            lpid: state.last_pid as i32,
            nattch: state.attached,
            ..ShmidDs::default()
        }
    }

    /// Bytes the host holds for it.
    pub fn resident(&self) -> u64 {
        self.memory.resident()
    }

    fn now(&self) -> i64 {
        crate::vfs::now(self.machine) / 1_000_000_000
    }
}

impl Object for Segment {
    fn owner(&self) -> Owner {
        self.state.lock().owner
    }
    fn removed(&self) {}
}

/// A segment as a file under a mapping.
pub struct ShmFile(Arc<Segment>);

impl ShmFile {
    pub fn segment(&self) -> &Arc<Segment> {
        &self.0
    }
}

impl File for ShmFile {
    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut ReadBuf<'_>, _offset: u64) -> Result<usize> {
        Err(Errno::EINVAL)
    }
    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut WriteBuf<'_>, _offset: u64) -> Result<usize> {
        Err(Errno::EINVAL)
    }
    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, _table: Option<&mut PollTable>) -> Events {
        Events::ALWAYS
    }
    fn backing(&self, _file: &OpenFile, offset: u64, len: usize, shared: bool) -> Result<Backing> {
        self.0.memory.backing(offset, len, shared)
    }
    fn end_of_object(&self, offset: u64) -> u64 {
        self.0.memory.end_of(offset)
    }
    fn counts_mappings(&self) -> bool {
        true
    }
    fn counts_pieces(&self) -> bool {
        true
    }
    fn mapping_made(&self, _writable: bool) -> Result<()> {
        let now = self.0.now();
        let mut state = self.0.state.lock();
        state.attached += 1;
        state.atime = now;
        Ok(())
    }
    fn mapping_gone(&self, _writable: bool) {
        let now = self.0.now();
        let last = {
            let mut state = self.0.state.lock();
            state.attached = state.attached.saturating_sub(1);
            state.dtime = now;
            state.attached == 0 && state.doomed
        };
        if last && let Some(home) = self.0.home.upgrade() {
            home.ids.remove(self.0.id);
        }
    }
    fn attr(&self) -> Result<Attr> {
        self.0.memory.attr()
    }
    fn label(&self) -> String {
        String::from("/SYSV (deleted)")
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
