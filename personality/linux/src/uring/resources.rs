//! What is registered with a ring: files, buffers, identities, who is notified; and what it may be used for.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::linux::uring::{Buf, flag, op, register, restriction, sqe};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_object::eventfd::EventFd;
use janua_object::{Cred, OpenFile};

use super::ring::Ring;
use crate::Thread;

/// Most files and buffers that are registered at a time, and most buffers of a group.
pub const MOST_FILES: usize = 1 << 15;
pub const MOST_BUFFERS: usize = 1 << 14;
pub const MOST_GROUP: usize = 1 << 16;
/// Most buffers that are provided at a time.
const MOST_PROVIDED: usize = 1 << 17;
/// Most groups of buffers, and most identities.
const MOST_GROUPS: usize = 4096;
const MOST_IDENTITIES: usize = 1024;

/// A registered file or buffer, and what its end is reported with (0: it is not).
#[derive(Clone)]
pub struct Entry<T> {
    pub what: T,
    pub tag: u64,
}

/// Memory of the program's that is registered: where it begins, and its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub addr: u64,
    pub len: u64,
}

/// Files by slot.
pub type Files = Vec<Option<Entry<Arc<OpenFile>>>>;
/// Buffers by slot.
pub type Buffers = Vec<Option<Entry<Range>>>;

/// Buffers of which an operation takes one when it has something for it.
pub enum Group {
    /// Those that were provided one by one.
    Provided(VecDeque<Buf>),
    /// A ring of them in the program's memory: its address, how many it holds, how many have been taken.
    Ring { addr: usize, entries: u32, head: u16 },
}

/// What a ring may be used for: what is named, and nothing else.
#[derive(Clone, Default)]
pub struct Restrictions {
    registers: u64,
    ops: [u64; 4],
    flags_allowed: u8,
    flags_required: u8,
}

impl Restrictions {
    /// EINVAL for what restricts nothing known.
    pub fn add(&mut self, kind: u16, value: u8) -> Result<()> {
        match kind {
            restriction::REGISTER_OP if u32::from(value) <= register::PBUF_STATUS => self.registers |= 1 << value,
            restriction::SQE_OP if value < op::END => self.ops[usize::from(value / 64)] |= 1 << (value % 64),
            restriction::SQE_FLAGS_ALLOWED => self.flags_allowed = value,
            restriction::SQE_FLAGS_REQUIRED => self.flags_required = value,
            _ => return Err(Errno::EINVAL),
        }
        Ok(())
    }

    pub fn allows_register(&self, opcode: u32) -> bool {
        opcode < 64 && self.registers >> opcode & 1 != 0
    }

    pub fn allows(&self, opcode: u8, flags: u8) -> bool {
        let named = self.ops[usize::from(opcode / 64)] >> (opcode % 64) & 1 != 0;
        let free = flags & !(self.flags_allowed | self.flags_required) == 0;
        named && free && flags & self.flags_required == self.flags_required
    }
}

/// All of it.
#[derive(Default)]
pub struct Resources {
    pub files: Option<Files>,
    /// The slots that are given out by themselves: first, and behind the last; all without one.
    pub range: Option<(u32, u32)>,
    pub buffers: Option<Buffers>,
    pub groups: BTreeMap<u16, Group>,
    /// Buffers in all groups that are no rings.
    provided: usize,
    /// The eventfd that is notified, and whether only of what did not end at once.
    pub event: Option<(Arc<OpenFile>, bool)>,
    pub identities: BTreeMap<u16, Arc<Cred>>,
    pub restrictions: Option<Restrictions>,
}

/// Whether a file may be registered: EBADF for a ring. One that has itself would never end, and a row of them, each with the next, ends at once: on as
/// much stack as the row is long.
pub fn check(file: &OpenFile) -> Result<()> {
    if file.downcast::<Ring>().is_some() { Err(Errno::EBADF) } else { Ok(()) }
}

/// Signals an eventfd.
pub fn signal(event: &OpenFile) {
    if let Some(event) = event.downcast::<EventFd>() {
        event.signal(1);
    }
}

/// A buffer of a group that an operation has taken.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    pub addr: usize,
    pub len: usize,
    /// Its bytes as it was provided.
    whole: u32,
    pub id: u16,
    group: u16,
    ringed: bool,
}

impl Resources {
    /// A registered file. EBADF.
    pub fn file(&self, slot: u32) -> Result<Arc<OpenFile>> {
        let entry = self.files.as_ref().and_then(|files| files.get(slot as usize));
        entry.and_then(Option::as_ref).map(|entry| entry.what.clone()).ok_or(Errno::EBADF)
    }

    /// Puts a file into a slot, or into a free one for [`flag::FILE_INDEX_ALLOC`]: the slot's number, and what was there. EBADF for what may not be
    /// registered, ENXIO without registered files, EINVAL for a slot that is not there, ENFILE when all are taken.
    pub fn put(&mut self, slot: u32, file: Arc<OpenFile>) -> Result<(u32, Option<Entry<Arc<OpenFile>>>)> {
        check(&file)?;
        let range = self.range;
        let files = self.files.as_mut().ok_or(Errno::ENXIO)?;
        let at = match slot {
            flag::FILE_INDEX_ALLOC => {
                let (start, end) = range.unwrap_or((0, files.len() as u32));
                let mut free = (start as usize..(end as usize).min(files.len())).filter(|at| files[*at].is_none());
                free.next().ok_or(Errno::ENFILE)?
            }
            slot => slot as usize,
        };
        let place = files.get_mut(at).ok_or(Errno::EINVAL)?;
        Ok((at as u32, place.replace(Entry { what: file, tag: 0 })))
    }

    /// Takes a file out of its slot. ENXIO without registered files, EINVAL for a slot that is not there, EBADF for an empty one.
    pub fn take(&mut self, slot: u32) -> Result<Entry<Arc<OpenFile>>> {
        let files = self.files.as_mut().ok_or(Errno::ENXIO)?;
        files.get_mut(slot as usize).ok_or(Errno::EINVAL)?.take().ok_or(Errno::EBADF)
    }

    /// Checks that a range is within a registered buffer. EFAULT.
    pub fn within(&self, slot: u16, addr: u64, len: u32) -> Result<()> {
        let entry = self.buffers.as_ref().and_then(|buffers| buffers.get(usize::from(slot))).and_then(Option::as_ref);
        let Range { addr: start, len: size } = entry.ok_or(Errno::EFAULT)?.what;
        let end = addr.checked_add(u64::from(len)).ok_or(Errno::EFAULT)?;
        if addr < start || end > start.saturating_add(size) { Err(Errno::EFAULT) } else { Ok(()) }
    }

    /// Remembers an identity: its number. EBUSY when there are too many.
    pub fn add_identity(&mut self, cred: Arc<Cred>) -> Result<u16> {
        if self.identities.len() >= MOST_IDENTITIES {
            return Err(Errno::EBUSY);
        }
        let id = (1..).find(|id| !self.identities.contains_key(id)).ok_or(Errno::EBUSY)?;
        self.identities.insert(id, cred);
        Ok(id)
    }

    /// Adds provided buffers to a group. ENOMEM when there are too many, EINVAL for a group that is a ring, EOVERFLOW beyond the last number.
    pub fn provide(&mut self, group: u16, buffers: impl Iterator<Item = Buf>) -> Result<()> {
        if !self.groups.contains_key(&group) && self.groups.len() >= MOST_GROUPS {
            return Err(Errno::ENOMEM);
        }
        let group = self.groups.entry(group).or_insert_with(|| Group::Provided(VecDeque::new()));
        let Group::Provided(list) = group else { return Err(Errno::EINVAL) };
        for buffer in buffers {
            if list.len() >= MOST_GROUP || self.provided >= MOST_PROVIDED {
                return Err(Errno::ENOMEM);
            }
            list.push_back(buffer);
            self.provided += 1;
        }
        Ok(())
    }

    /// Takes provided buffers away: how many. ENOENT without the group, EINVAL for a ring.
    pub fn remove(&mut self, group: u16, most: usize) -> Result<usize> {
        let Group::Provided(list) = self.groups.get_mut(&group).ok_or(Errno::ENOENT)? else { return Err(Errno::EINVAL) };
        let count = most.min(list.len());
        list.drain(..count);
        self.provided = self.provided.saturating_sub(count);
        Ok(count)
    }

    /// Adds a ring of buffers. EEXIST when the group has buffers, ENOMEM when there are too many groups.
    pub fn add_ring(&mut self, group: u16, addr: usize, entries: u32) -> Result<()> {
        match self.groups.get(&group) {
            Some(Group::Provided(list)) if list.is_empty() => {}
            Some(_) => return Err(Errno::EEXIST),
            None if self.groups.len() >= MOST_GROUPS => return Err(Errno::ENOMEM),
            None => {}
        }
        self.groups.insert(group, Group::Ring { addr, entries, head: 0 });
        Ok(())
    }

    /// Whether submissions with these are allowed.
    pub fn allows(&self, opcode: u8, flags: u8) -> bool {
        // Which bits there are is another question.
        self.restrictions.as_ref().is_none_or(|only| only.allows(opcode, flags & sqe::ALL))
    }
}

/// Takes a buffer of a group for `want` bytes (0: as many as it has). ENOBUFS.
pub fn take(resources: &janua_rt::Mutex<Resources>, thread: &Thread, group: u16, want: usize) -> Result<Taken> {
    let cut = |len: u32| if want == 0 { len as usize } else { (len as usize).min(want) };
    let (at, entries, head) = {
        let resources = &mut *resources.lock();
        match resources.groups.get_mut(&group).ok_or(Errno::ENOBUFS)? {
            Group::Provided(list) => {
                let Buf { addr, len, id, .. } = list.pop_front().ok_or(Errno::ENOBUFS)?;
                resources.provided = resources.provided.saturating_sub(1);
                return Ok(Taken { addr: addr as usize, len: cut(len), whole: len, id, group, ringed: false });
            }
            Group::Ring { addr, entries, head } => (*addr, *entries, *head),
        }
    };
    // The tail is in the first entry, where others have nothing.
    const TAIL: usize = 14;
    let tail: u16 = UserPtr::<u16>::new(at + TAIL).read(thread.user()).map_err(|_| Errno::ENOBUFS)?;
    if tail == head {
        return Err(Errno::ENOBUFS);
    }
    let place = UserPtr::<Buf>::new(at).at((u32::from(head) & (entries - 1)) as usize);
    let Buf { addr, len, id, .. } = place.read(thread.user()).map_err(|_| Errno::ENOBUFS)?;
    match resources.lock().groups.get_mut(&group) {
        Some(Group::Ring { head: now, .. }) if *now == head => *now = head.wrapping_add(1),
        // Another has taken it meanwhile, or the group is gone.
        _ => return Err(Errno::ENOBUFS),
    }
    Ok(Taken { addr: addr as usize, len: cut(len), whole: len, id, group, ringed: true })
}

/// Gives a buffer back that was not used, as it was provided.
pub fn give_back(resources: &janua_rt::Mutex<Resources>, taken: &Taken) {
    let resources = &mut *resources.lock();
    match resources.groups.get_mut(&taken.group) {
        Some(Group::Ring { head, .. }) if taken.ringed => *head = head.wrapping_sub(1),
        Some(Group::Provided(list)) if !taken.ringed => {
            resources.provided += 1;
            list.push_front(Buf { addr: taken.addr as u64, len: taken.whole, id: taken.id, reserved: 0 });
        }
        _ => {}
    }
}
