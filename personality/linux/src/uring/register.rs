//! io_uring_register(2).

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use janua_abi::linux::process::rlimit;
use janua_abi::linux::uring::{
    BufRegister, BufStatus, FileRange, FilesUpdate, Probe, ProbeOp, Restriction, RsrcRegister, RsrcUpdate, SyncCancel, flag,
    op, register, setup,
};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::table::Fd;
use janua_object::eventfd::EventFd;
use janua_port::PAGE;

use super::issuer::{self, Issuer, RING_FDS};
use super::ops::{self, Match};
use super::resources::{Buffers, Entry, Files, Group, MOST_BUFFERS, MOST_FILES, Range, Restrictions};
use super::ring::{Completion, Ring};
use super::turn::post;
use crate::Thread;
use crate::fs::fd;
use crate::thread::ThreadExt;

/// Most bytes of one registered buffer.
const MOST_BYTES: u64 = 1 << 30;

/// Most entries of a ring of buffers.
const MOST_RINGED: u32 = 32768;

/// io_uring_register(2)
pub fn io_uring_register(thread: &Thread, number: u32, opcode: u32, arg: usize, count: u32) -> Result<usize> {
    let registered = opcode & register::USE_REGISTERED_RING != 0;
    let opcode = opcode & !register::USE_REGISTERED_RING;
    if opcode > register::PBUF_STATUS {
        return Err(Errno::EINVAL);
    }
    let (_file, ring) = super::find(thread, number, registered)?;
    let issuer = issuer::of(thread)?;
    if ring.shape.has(setup::SINGLE_ISSUER) && !ring.disabled.load(Ordering::SeqCst) {
        super::setup::check_issuer(&ring, &issuer)?;
    }
    if ring.is_limited() {
        let resources = ring.resources.lock();
        if resources.restrictions.as_ref().is_some_and(|only| !only.allows_register(opcode)) {
            return Err(Errno::EACCES);
        }
    }
    let call = Call { thread, issuer: &issuer, ring: &ring, arg, count };
    call.make(opcode)
}

struct Call<'a> {
    thread: &'a Thread,
    issuer: &'a Arc<Issuer>,
    ring: &'a Arc<Ring>,
    arg: usize,
    count: u32,
}

impl Call<'_> {
    fn make(&self, opcode: u32) -> Result<usize> {
        use register::*;
        match opcode {
            BUFFERS => self.buffers(self.arg as u64, self.count, 0),
            UNREGISTER_BUFFERS => self.nothing().and_then(|()| self.unregister_buffers()),
            FILES => self.files(self.arg as u64, self.count, 0),
            UNREGISTER_FILES => self.nothing().and_then(|()| self.unregister_files()),
            EVENTFD | EVENTFD_ASYNC => self.eventfd(opcode == EVENTFD_ASYNC),
            UNREGISTER_EVENTFD => self.nothing().and_then(|()| self.unregister_eventfd()),
            FILES_UPDATE => self.files_update(),
            PROBE => self.probe(),
            PERSONALITY => self.nothing().and_then(|()| self.identity()),
            UNREGISTER_PERSONALITY => self.unregister_identity(),
            RESTRICTIONS => self.restrict(),
            ENABLE_RINGS => self.nothing().and_then(|()| self.enable()),
            FILES2 | BUFFERS2 => self.register_tagged(opcode == FILES2),
            FILES_UPDATE2 | BUFFERS_UPDATE => self.update_tagged(opcode == FILES_UPDATE2),
            RING_FDS => self.ring_fds(),
            UNREGISTER_RING_FDS => self.unregister_ring_fds(),
            PBUF_RING => self.buffer_ring(),
            UNREGISTER_PBUF_RING => self.unregister_buffer_ring(),
            SYNC_CANCEL => self.cancel(),
            FILE_ALLOC_RANGE => self.range(),
            PBUF_STATUS => self.buffer_status(),
            _ => Err(Errno::EINVAL),
        }
    }

    /// For what has no argument.
    fn nothing(&self) -> Result<()> {
        if self.arg != 0 || self.count != 0 { Err(Errno::EINVAL) } else { Ok(()) }
    }

    /// The one argument.
    fn one<T: zerocopy::FromBytes + zerocopy::IntoBytes>(&self) -> Result<T> {
        if self.arg == 0 || self.count != 1 {
            return Err(Errno::EINVAL);
        }
        UserPtr::<T>::new(self.arg).read(self.thread.user())
    }

    fn tag(&self, tags: u64, at: usize) -> Result<u64> {
        if tags == 0 { Ok(0) } else { UserPtr::<u64>::new(tags as usize).at(at).read(self.thread.user()) }
    }

    /// What was registered with these tags is gone: who wanted to know is notified.
    fn gone(&self, tags: impl IntoIterator<Item = u64>) {
        let access = self.ring.access(self.thread);
        for user_data in tags.into_iter().filter(|tag| *tag != 0) {
            post(self.ring, &access, &Completion { user_data, ..Completion::default() });
        }
        self.ring.notify(&access, true);
    }

    fn range_at(&self, list: u64, at: usize) -> Result<Range> {
        let (addr, len) = if self.ring.shape.narrow {
            let [addr, len] = UserPtr::<[u32; 2]>::new(list as usize).at(at).read(self.thread.user())?;
            (u64::from(addr), u64::from(len))
        } else {
            let [addr, len] = UserPtr::<[u64; 2]>::new(list as usize).at(at).read(self.thread.user())?;
            (addr, len)
        };
        Ok(Range { addr, len })
    }

    /// A buffer as it may be registered; `None` for an empty place. EFAULT where there is no such memory.
    fn buffer(&self, list: u64, at: usize, tag: u64) -> Result<Option<Entry<Range>>> {
        let Range { addr, len } = self.range_at(list, at)?;
        if addr == 0 {
            return if len == 0 && tag == 0 { Ok(None) } else { Err(Errno::EFAULT) };
        }
        let end = addr.checked_add(len).ok_or(Errno::EOVERFLOW)?;
        if len == 0 || len > MOST_BYTES {
            return Err(Errno::EFAULT);
        }
        let pages = (addr..end).step_by(PAGE).chain([end - 1]);
        for page in pages {
            UserPtr::<u8>::new(page as usize).read(self.thread.user())?;
            if !self.thread.goes_on() {
                return Err(Errno::EINTR);
            }
        }
        Ok(Some(Entry { what: Range { addr, len }, tag }))
    }

    fn buffers(&self, list: u64, count: u32, tags: u64) -> Result<usize> {
        if self.ring.resources.lock().buffers.is_some() {
            return Err(Errno::EBUSY);
        }
        if count == 0 || count as usize > MOST_BUFFERS {
            return Err(Errno::EINVAL);
        }
        let mut buffers: Buffers = Vec::new();
        for at in 0..count as usize {
            let tag = self.tag(tags, at)?;
            buffers.push(if list == 0 { None } else { self.buffer(list, at, tag)? });
        }
        self.ring.resources.lock().buffers = Some(buffers);
        Ok(0)
    }

    fn unregister_buffers(&self) -> Result<usize> {
        let old = self.ring.resources.lock().buffers.take().ok_or(Errno::ENXIO)?;
        self.gone(old.into_iter().flatten().map(|entry| entry.tag));
        Ok(0)
    }

    fn files(&self, list: u64, count: u32, tags: u64) -> Result<usize> {
        if self.ring.resources.lock().files.is_some() {
            return Err(Errno::EBUSY);
        }
        if count == 0 {
            return Err(Errno::EINVAL);
        }
        if count as usize > MOST_FILES || u64::from(count) > self.thread.limit(rlimit::NOFILE) {
            return Err(Errno::EMFILE);
        }
        let mut files: Files = Vec::new();
        for at in 0..count as usize {
            let tag = self.tag(tags, at)?;
            let number = if list == 0 { -1 } else { UserPtr::<i32>::new(list as usize).at(at).read(self.thread.user())? };
            if number == -1 {
                if tag != 0 {
                    return Err(Errno::EINVAL);
                }
                files.push(None);
                continue;
            }
            let file = fd::get(self.thread, Fd(number))?;
            super::resources::check(&file)?;
            files.push(Some(Entry { what: file, tag }));
        }
        let mut resources = self.ring.resources.lock();
        resources.files = Some(files);
        resources.range = None;
        Ok(0)
    }

    fn unregister_files(&self) -> Result<usize> {
        let old = self.ring.resources.lock().files.take().ok_or(Errno::ENXIO)?;
        let tags: Vec<u64> = old.iter().flatten().map(|entry| entry.tag).collect();
        drop(old);
        self.gone(tags);
        Ok(0)
    }

    fn update(&self, offset: u32, count: u32, list: u64, tags: u64) -> Result<usize> {
        let (list, tag_list) = (UserPtr::new(list as usize), UserPtr::new(tags as usize));
        let (done, old) = ops::update_files(self.ring, self.thread, (offset, count), list, tag_list)?;
        self.gone(old);
        Ok(done)
    }

    fn files_update(&self) -> Result<usize> {
        let FilesUpdate { offset, reserved, data } = UserPtr::new(self.arg).read(self.thread.user())?;
        if reserved != 0 || self.count == 0 {
            return Err(Errno::EINVAL);
        }
        self.update(offset, self.count, data, 0)
    }

    fn register_tagged(&self, files: bool) -> Result<usize> {
        if self.count as usize != size_of::<RsrcRegister>() {
            return Err(Errno::EINVAL);
        }
        let given: RsrcRegister = UserPtr::new(self.arg).read(self.thread.user())?;
        let sparse = given.flags & flag::RSRC_SPARSE != 0;
        if given.count == 0 || given.reserved != 0 || given.flags & !flag::RSRC_SPARSE != 0 || sparse && given.data != 0 {
            return Err(Errno::EINVAL);
        }
        match files {
            true => self.files(given.data, given.count, given.tags),
            false => self.buffers(given.data, given.count, given.tags),
        }
    }

    fn update_tagged(&self, files: bool) -> Result<usize> {
        if self.count as usize != size_of::<RsrcUpdate>() {
            return Err(Errno::EINVAL);
        }
        let given: RsrcUpdate = UserPtr::new(self.arg).read(self.thread.user())?;
        if given.count == 0 || given.reserved != 0 || given.reserved2 != 0 {
            return Err(Errno::EINVAL);
        }
        if files {
            return self.update(given.offset, given.count, given.data, given.tags);
        }
        let len = self.ring.resources.lock().buffers.as_ref().ok_or(Errno::ENXIO)?.len();
        if (given.offset as usize).checked_add(given.count as usize).ok_or(Errno::EOVERFLOW)? > len {
            return Err(Errno::EINVAL);
        }
        for at in 0..given.count as usize {
            let changed = self.tag(given.tags, at).and_then(|tag| self.buffer(given.data, at, tag)).and_then(|new| {
                let mut resources = self.ring.resources.lock();
                let buffers = resources.buffers.as_mut().ok_or(Errno::ENXIO)?;
                let place = buffers.get_mut(given.offset as usize + at).ok_or(Errno::EINVAL)?;
                Ok(core::mem::replace(place, new))
            });
            match changed {
                Ok(old) => self.gone(old.map(|entry| entry.tag)),
                Err(errno) if at == 0 => return Err(errno),
                Err(_) => return Ok(at),
            }
        }
        Ok(given.count as usize)
    }

    fn eventfd(&self, only_async: bool) -> Result<usize> {
        let number: i32 = self.one()?;
        let file = fd::get(self.thread, Fd(number))?;
        if file.downcast::<EventFd>().is_none() {
            return Err(Errno::EINVAL);
        }
        let mut resources = self.ring.resources.lock();
        if resources.event.is_some() {
            return Err(Errno::EBUSY);
        }
        resources.event = Some((file, only_async));
        self.ring.has_event.store(true, Ordering::Relaxed);
        Ok(0)
    }

    fn unregister_eventfd(&self) -> Result<usize> {
        let old = self.ring.resources.lock().event.take();
        self.ring.has_event.store(false, Ordering::Relaxed);
        old.map(|_| 0).ok_or(Errno::ENXIO)
    }

    fn probe(&self) -> Result<usize> {
        if self.arg == 0 || self.count > 256 {
            return Err(Errno::EINVAL);
        }
        let user = self.thread.user();
        let (head, list) = (UserPtr::<Probe>::new(self.arg), UserPtr::<ProbeOp>::new(self.arg + size_of::<Probe>()));
        let mut given = alloc::vec![0; size_of::<Probe>() + self.count as usize * size_of::<ProbeOp>()];
        user.copy_in(&mut given, self.arg).map_err(|_| Errno::EFAULT)?;
        if given.iter().any(|byte| *byte != 0) {
            return Err(Errno::EINVAL);
        }
        let count = (self.count as u8).min(op::END);
        let count = if self.count > u32::from(op::END) { op::END } else { count };
        for at in 0..count {
            let flags = if ops::is_known(at) { janua_abi::linux::uring::PROBE_SUPPORTED } else { 0 };
            list.at(usize::from(at)).write(user, &ProbeOp { op: at, flags, ..ProbeOp::default() })?;
        }
        head.write(user, &Probe { last_op: op::END - 1, ops_len: count, ..Probe::default() })?;
        Ok(0)
    }

    fn identity(&self) -> Result<usize> {
        let cred = self.thread.cred();
        self.ring.resources.lock().add_identity(cred).map(usize::from)
    }

    fn unregister_identity(&self) -> Result<usize> {
        if self.arg != 0 {
            return Err(Errno::EINVAL);
        }
        let id = u16::try_from(self.count).map_err(|_| Errno::EINVAL)?;
        let old = self.ring.resources.lock().identities.remove(&id);
        old.map(|_| 0).ok_or(Errno::EINVAL)
    }

    fn restrict(&self) -> Result<usize> {
        if !self.ring.disabled.load(Ordering::SeqCst) {
            return Err(Errno::EBADFD);
        }
        if self.ring.resources.lock().restrictions.is_some() {
            return Err(Errno::EBUSY);
        }
        // No more than there are operations and register opcodes can mean anything.
        if self.arg == 0 || self.count > 256 {
            return Err(Errno::EINVAL);
        }
        let mut restrictions = Restrictions::default();
        for at in 0..self.count as usize {
            let Restriction { opcode, value, .. } = UserPtr::new(self.arg).at(at).read(self.thread.user())?;
            restrictions.add(opcode, value)?;
        }
        self.ring.resources.lock().restrictions = Some(restrictions);
        Ok(0)
    }

    fn enable(&self) -> Result<usize> {
        if !self.ring.disabled.load(Ordering::SeqCst) {
            return Err(Errno::EBADFD);
        }
        if self.ring.shape.has(setup::SINGLE_ISSUER) && !self.ring.shape.has(setup::SQPOLL) {
            *self.ring.issuer.lock() = Some(Arc::downgrade(self.issuer));
        }
        let limited = self.ring.resources.lock().restrictions.is_some();
        self.ring.limited.store(limited, Ordering::SeqCst);
        self.ring.disabled.store(false, Ordering::SeqCst);
        if self.ring.shape.has(setup::SQPOLL) {
            super::poller::wake(self.thread, self.ring);
        }
        Ok(0)
    }

    fn ring_fds(&self) -> Result<usize> {
        if self.count == 0 || self.count as usize > RING_FDS {
            return Err(Errno::EINVAL);
        }
        let list = UserPtr::<FilesUpdate>::new(self.arg);
        let one = |at: usize| {
            let mut given: FilesUpdate = list.at(at).read(self.thread.user())?;
            if given.reserved != 0 {
                return Err(Errno::EINVAL);
            }
            let file = fd::get(self.thread, Fd(given.data as i32))?;
            Ring::of(&file)?;
            let mut rings = self.issuer.rings.lock();
            let place = match given.offset {
                u32::MAX => rings.iter().position(Option::is_none).ok_or(Errno::EBUSY)?,
                offset => offset as usize,
            };
            let slot = rings.get_mut(place).ok_or(Errno::EINVAL)?;
            if slot.is_some() {
                return Err(Errno::EBUSY);
            }
            given.offset = place as u32;
            list.at(at).write(self.thread.user(), &given)?;
            *slot = Some(file);
            Ok(())
        };
        self.as_many_as_can(one)
    }

    fn unregister_ring_fds(&self) -> Result<usize> {
        if self.count == 0 || self.count as usize > RING_FDS {
            return Err(Errno::EINVAL);
        }
        let one = |at: usize| {
            let given: FilesUpdate = UserPtr::new(self.arg).at(at).read(self.thread.user())?;
            if given.reserved != 0 || given.data != 0 {
                return Err(Errno::EINVAL);
            }
            let old = self.issuer.rings.lock().get_mut(given.offset as usize).ok_or(Errno::EINVAL)?.take();
            drop(old);
            Ok(())
        };
        self.as_many_as_can(one)
    }

    /// How many of the arguments could be seen to before one failed; its error if that was the first.
    fn as_many_as_can(&self, one: impl Fn(usize) -> Result<()>) -> Result<usize> {
        for at in 0..self.count as usize {
            match one(at) {
                Ok(()) => {}
                Err(errno) if at == 0 => return Err(errno),
                Err(_) => return Ok(at),
            }
        }
        Ok(self.count as usize)
    }

    fn buffer_ring(&self) -> Result<usize> {
        let given: BufRegister = self.one()?;
        let BufRegister { addr, entries, group, flags, reserved } = given;
        if reserved != [0; 3] || flags != 0 || addr == 0 {
            return Err(Errno::EINVAL);
        }
        if !(addr as usize).is_multiple_of(PAGE) || !entries.is_power_of_two() || entries > MOST_RINGED {
            return Err(Errno::EINVAL);
        }
        UserPtr::<u64>::new(addr as usize).read(self.thread.user())?;
        self.ring.resources.lock().add_ring(group, addr as usize, entries)?;
        Ok(0)
    }

    fn unregister_buffer_ring(&self) -> Result<usize> {
        let given: BufRegister = self.one()?;
        if given.reserved != [0; 3] || given.flags != 0 {
            return Err(Errno::EINVAL);
        }
        let mut resources = self.ring.resources.lock();
        match resources.groups.get(&given.group) {
            None => Err(Errno::ENOENT),
            Some(Group::Provided(_)) => Err(Errno::EINVAL),
            Some(Group::Ring { .. }) => {
                resources.groups.remove(&given.group);
                Ok(0)
            }
        }
    }

    fn buffer_status(&self) -> Result<usize> {
        let mut given: BufStatus = self.one()?;
        let group = u16::try_from(given.group).map_err(|_| Errno::EINVAL)?;
        given.head = match self.ring.resources.lock().groups.get(&group) {
            None => return Err(Errno::ENOENT),
            Some(Group::Provided(_)) => return Err(Errno::EINVAL),
            Some(Group::Ring { head, .. }) => u32::from(*head),
        };
        UserPtr::new(self.arg).write(self.thread.user(), &given)?;
        Ok(0)
    }

    /// Cancels, and sees to it that what was this thread's own is over.
    fn cancel(&self) -> Result<usize> {
        let given: SyncCancel = self.one()?;
        if given.pad != [0; 7] || given.pad2 != [0; 3] {
            return Err(Errno::EINVAL);
        }
        let which = Match::new(self.ring, self.thread, given.flags, given.addr, given.fd, given.opcode)?;
        let count = ops::cancel_now(self.ring, &which)?;
        self.issuer.work(self.thread);
        if self.ring.shape.has(setup::DEFER_TASKRUN) {
            self.issuer.work_later(self.thread, self.ring);
        }
        Ok(count)
    }

    fn range(&self) -> Result<usize> {
        if self.arg == 0 || self.count != 0 {
            return Err(Errno::EINVAL);
        }
        let FileRange { offset, len, reserved } = UserPtr::new(self.arg).read(self.thread.user())?;
        let end = offset.checked_add(len).ok_or(Errno::EOVERFLOW)?;
        let mut resources = self.ring.resources.lock();
        let files = resources.files.as_ref().map_or(0, Vec::len);
        if reserved != 0 || end as usize > files {
            return Err(Errno::EINVAL);
        }
        resources.range = Some((offset, end));
        Ok(0)
    }
}
