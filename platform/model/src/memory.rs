//! Frames, address spaces, and user memory of the thread whose turn it is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use janua_abi::linux::Result;
use janua_paging::table::NoMemory;
use janua_paging::{Entry, Frames, PAGE, PageFrame, Platform, Table, UserSpace};
use janua_port::space::Bounds;
use janua_port::{Fault, Space, UserMemory};

use crate::machine::Model;

/// The lowest address a guest may map: null pointers fault.
const LOW: usize = 0x1_0000;
/// Where user memory ends, as on Linux.
pub const END: usize = 0x7fff_ffff_f000;

/// A lock whose holder panicked is as good as any: the test is over then.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The machine's frames.
pub struct Memory {
    pages: Mutex<Pages>,
    most: usize,
}

#[derive(Default)]
struct Pages {
    /// Bytes and users of each frame; one without users is free.
    all: Vec<(Box<[u8]>, usize)>,
    free: Vec<usize>,
}

impl Memory {
    pub fn new(most: usize) -> Memory {
        Memory { pages: Mutex::default(), most }
    }

    /// Frames with users.
    pub fn used(&self) -> usize {
        let pages = lock(&self.pages);
        pages.all.len() - pages.free.len()
    }

    /// Frames there are.
    pub fn most(&self) -> usize {
        self.most
    }
}

impl Frames for Memory {
    fn take(&self) -> Option<PageFrame> {
        let mut pages = lock(&self.pages);
        let zeroes = vec![0; PAGE].into_boxed_slice();
        if let Some(index) = pages.free.pop() {
            pages.all[index] = (zeroes, 1);
            return Some(PageFrame(index));
        }
        if pages.all.len() == self.most {
            return None;
        }
        pages.all.push((zeroes, 1));
        Some(PageFrame(pages.all.len() - 1))
    }
    fn share(&self, frame: PageFrame) {
        lock(&self.pages).all[frame.0].1 += 1;
    }
    fn release(&self, frame: PageFrame) {
        let mut pages = lock(&self.pages);
        let users = &mut pages.all[frame.0].1;
        assert!(*users > 0, "a frame is released that nobody uses");
        *users -= 1;
        if *users == 0 {
            pages.free.push(frame.0);
        }
    }
    fn users(&self, frame: PageFrame) -> usize {
        lock(&self.pages).all[frame.0].1
    }
    fn copy(&self, from: PageFrame, to: PageFrame) {
        let mut pages = lock(&self.pages);
        let bytes = pages.all[from.0].0.clone();
        pages.all[to.0].0 = bytes;
    }
    fn read(&self, frame: PageFrame, offset: usize, out: &mut [u8]) {
        out.copy_from_slice(&lock(&self.pages).all[frame.0].0[offset..offset + out.len()]);
    }
    fn write(&self, frame: PageFrame, offset: usize, data: &[u8]) {
        lock(&self.pages).all[frame.0].0[offset..offset + data.len()].copy_from_slice(data);
    }
    fn load_u32(&self, frame: PageFrame, offset: usize) -> u32 {
        let mut word = [0; 4];
        self.read(frame, offset, &mut word);
        u32::from_ne_bytes(word)
    }
    fn cmpxchg_u32(&self, frame: PageFrame, offset: usize, old: u32, new: u32) -> u32 {
        let mut pages = lock(&self.pages);
        let word = &mut pages.all[frame.0].0[offset..offset + 4];
        let found = u32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
        if found == old {
            word.copy_from_slice(&new.to_ne_bytes());
        }
        found
    }
}

/// A page table: a map, which no processor remembers anything of.
#[derive(Default)]
pub struct Map(BTreeMap<usize, Entry>);

impl Table for Map {
    fn get(&self, addr: usize) -> Option<Entry> {
        self.0.get(&addr).copied()
    }
    fn set(&mut self, addr: usize, entry: Entry) -> std::result::Result<(), NoMemory> {
        self.0.insert(addr, entry);
        Ok(())
    }
    fn next(&self, from: usize, end: usize) -> Option<(usize, Entry)> {
        self.0.range(from..end.max(from)).next().map(|(addr, entry)| (*addr, *entry))
    }
    fn take(&mut self, from: usize, end: usize) -> Option<(usize, Entry)> {
        let (addr, entry) = self.next(from, end)?;
        self.0.remove(&addr);
        Some((addr, entry))
    }
    fn flush(&mut self, _start: usize, _end: usize) {}
}

/// Whether a range is the guests'.
pub fn is_user(addr: usize, len: usize) -> bool {
    addr.checked_add(len).is_some_and(|end| end <= END)
}

/// A guest's address space.
pub type ModelSpace = UserSpace<Own>;

/// What this machine keeps of a space: whose it is.
pub struct Own(&'static Model);

/// An empty space.
pub fn empty(model: &'static Model) -> Arc<ModelSpace> {
    UserSpace::new(model.memory, Map::default(), Own(model))
}

/// A copy for a fork.
pub fn copy(space: &ModelSpace) -> Result<Arc<ModelSpace>> {
    let model = space.own.0;
    if let Some(call) = model.copying.get() {
        call();
    }
    space.fork(Map::default(), Own(model))
}

impl Platform for Own {
    type Frames = Memory;
    type Table = Map;

    fn bounds(&self) -> Bounds {
        Bounds { low: LOW, high: END, holes: [(0, 0); 2] }
    }

    fn leave(space: &ModelSpace) -> Result<Arc<dyn Space>> {
        let model = space.own.0;
        let fresh: Arc<dyn Space> = empty(model);
        model.change_space(fresh.clone());
        Ok(fresh)
    }
}

// The memory of the thread whose turn it is. Outside of every turn (a service routine) there is none, and each access faults.
impl Model {
    /// Copies by `copy(space, done)` until `len` bytes are done or the guest has nothing to add to the faulting place.
    fn whole(&self, addr: usize, len: usize, store: bool, mut copy: impl FnMut(&ModelSpace, usize) -> usize) -> usize {
        let Some((guest, space)) = self.here() else { return 0 };
        if !is_user(addr, len) {
            return 0;
        }
        let mut done = 0;
        loop {
            done += copy(ModelSpace::of(&space), done);
            let at = addr + done;
            if done >= len || !(guest.hole_fault(at) || store && guest.store_fault(at)) {
                return done;
            }
        }
    }
}

impl UserMemory for Model {
    fn is_user(&self, addr: usize, len: usize) -> bool {
        is_user(addr, len)
    }
    fn copy_in_partial(&self, dst: &mut [u8], src: usize) -> usize {
        self.whole(src, dst.len(), false, |space, done| space.read(src + done, &mut dst[done..]))
    }
    fn copy_out_partial(&self, dst: usize, src: &[u8]) -> usize {
        self.whole(dst, src.len(), true, |space, done| space.write(dst + done, &src[done..]))
    }
    fn load_u32(&self, addr: usize) -> std::result::Result<u32, Fault> {
        let mut word = [0; 4];
        if !addr.is_multiple_of(4) {
            return Err(Fault);
        }
        self.copy_in(&mut word, addr)?;
        Ok(u32::from_le_bytes(word))
    }
    fn cmpxchg_u32(&self, addr: usize, old: u32, new: u32) -> std::result::Result<u32, Fault> {
        // Nobody else runs meanwhile.
        let found = self.load_u32(addr)?;
        if found == old {
            self.copy_out(addr, &new.to_le_bytes())?;
        }
        Ok(found)
    }
}
