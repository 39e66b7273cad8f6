//! Rings in memory that a program writes whatever it likes to.

extern crate std;

use std::sync::Mutex;
use std::vec::Vec;

use janua_port::machine::{Spawn, ThreadId};
use janua_port::{Nanos, Registers};

use super::*;

const AT: usize = 0x1000;

/// A thread with some memory.
struct Caller(Mutex<Vec<u8>>);

impl Caller {
    fn new(len: usize) -> Arc<Caller> {
        Arc::new(Caller(Mutex::new(std::vec![0; len])))
    }
    fn store(&self, offset: usize, data: &[u8]) {
        self.0.lock().unwrap()[offset..offset + data.len()].copy_from_slice(data);
    }
    fn count(&self, offset: usize, value: u32) {
        self.store(offset, &value.to_ne_bytes());
    }
    fn word(&self, offset: usize) -> u64 {
        u64::from_ne_bytes(self.0.lock().unwrap()[offset..offset + 8].try_into().unwrap())
    }
    fn submit(&self, n: u32, size: u32, entry: ring::Submission) {
        self.store(at::ENTRIES + (n % size) as usize * 64, entry.as_bytes());
    }
}

impl UserMemory for Caller {
    fn is_user(&self, addr: usize, len: usize) -> bool {
        addr >= AT && addr.checked_add(len).is_some_and(|end| end <= AT + self.0.lock().unwrap().len())
    }
    fn copy_in_partial(&self, dst: &mut [u8], src: usize) -> usize {
        if !self.is_user(src, dst.len()) {
            return 0;
        }
        dst.copy_from_slice(&self.0.lock().unwrap()[src - AT..][..dst.len()]);
        dst.len()
    }
    fn copy_out_partial(&self, dst: usize, src: &[u8]) -> usize {
        if !self.is_user(dst, src.len()) {
            return 0;
        }
        self.store(dst - AT, src);
        src.len()
    }
    fn load_u32(&self, addr: usize) -> core::result::Result<u32, Fault> {
        let mut word = [0; 4];
        self.copy_in(&mut word, addr)?;
        Ok(u32::from_ne_bytes(word))
    }
    fn cmpxchg_u32(&self, _addr: usize, _old: u32, _new: u32) -> core::result::Result<u32, Fault> {
        Err(Fault)
    }
}

impl Context for Caller {
    fn id(&self) -> ThreadId {
        ThreadId::default()
    }
    fn memory(&self) -> &dyn UserMemory {
        self
    }
    fn registers(&self) -> Result<&dyn Registers> {
        Err(Errno::EXDEV)
    }
    fn spawn(&self, _spawn: Spawn) -> Result<Arc<dyn Context>> {
        Err(Errno::EXDEV)
    }
    fn kick(&self) {}
    fn restrict(&self, _cpus: &[u64]) -> Result<()> {
        Ok(())
    }
    fn cpu(&self, _whole_task: bool) -> Option<Nanos> {
        None
    }
    fn peak_resident(&self) -> u64 {
        0
    }
}

fn entry(number: u32) -> ring::Submission {
    ring::Submission { number, tag: number.into(), ..Default::default() }
}

fn open(caller: &Arc<Caller>, entries: (u32, u32), watched: bool) -> Arc<dyn QueueGate> {
    Rings.open(caller.clone(), AT, entries, watched, None).unwrap()
}

#[test]
fn sizes_and_places_are_checked() {
    let caller = Caller::new(4096);
    let refused = |at, entries| Rings.open(caller.clone(), at, entries, false, None).err();
    assert_eq!(refused(AT, (3, 8)), Some(Errno::EINVAL));
    assert_eq!(refused(AT, (8, 0)), Some(Errno::EINVAL));
    assert_eq!(refused(AT, (2 * ring::MOST, 8)), Some(Errno::EINVAL));
    assert_eq!(refused(AT + 8, (8, 8)), Some(Errno::EINVAL));
    assert_eq!(refused(usize::MAX - 63, (8, 8)), Some(Errno::EFAULT));
    assert_eq!(refused(0, (8, 8)), Some(Errno::EFAULT));
    assert_eq!(refused(AT, (8, 8)), None);
    assert_eq!(caller.word(at::FLAGS), ANNOUNCE);
}

#[test]
fn counts_go_round_and_their_end() {
    let caller = Caller::new(4096);
    let gate = open(&caller, (8, 8), false);
    let mut into = [ring::Submission::default(); 32];
    for n in 0..1000_u32 {
        let count = n % 8 + 1;
        let first = caller.word(at::TAKEN) as u32;
        (0..count).for_each(|k| caller.submit(first + k, 8, entry(first + k)));
        caller.count(at::SUBMITTED, first + count);
        assert_eq!(gate.look(), count as usize);
        let mut taken = 0;
        while taken < count {
            // Those behind the ring's end are a part of their own.
            let some = gate.take_some(&mut into) as u32;
            assert!(some > 0);
            assert!((0..some).all(|k| into[k as usize] == entry(first + taken + k)));
            let ends: Vec<_> = (0..some).map(|k| ring::Completion { tag: u64::from(first + taken + k), result: -1 }).collect();
            assert_eq!(gate.complete_some(&ends), ends.len());
            taken += some;
        }
        assert_eq!(gate.take_some(&mut into), 0);
        assert_eq!(caller.word(at::TAKEN) as u32, first, "the program learns of it when all is there");
        assert_eq!(gate.settle(), count as usize);
        assert_eq!((caller.word(at::TAKEN), caller.word(at::POSTED)), ((first + count).into(), (first + count).into()));
        assert_eq!(gate.unreaped(), count as usize);
        for k in 0..count {
            let place = ring::bytes(8, 0) + ((first + k) % 8) as usize * 16;
            assert_eq!((caller.word(place), caller.word(place + 8)), ((first + k).into(), u64::MAX));
        }
        caller.count(at::REAPED, first + count);
    }
}

#[test]
fn a_count_that_cannot_be_is_nothing() {
    let caller = Caller::new(4096);
    let gate = open(&caller, (8, 8), false);
    for forged in [9, 1000, 1 << 31, u32::MAX] {
        caller.count(at::SUBMITTED, forged);
        assert_eq!(gate.take(), None);
    }
    caller.submit(0, 8, entry(5));
    caller.count(at::SUBMITTED, 1);
    assert!(matches!(gate.take(), Some(Submission::Call { number: 5, .. })), "a better count is found");
    let complete = || gate.complete(Completion { tag: 1, result: 0 });
    assert!((0..8).all(|_| complete()));
    caller.count(at::REAPED, 1 << 31);
    assert!(!complete(), "more taken than there have been is no room");
    caller.count(at::REAPED, 8);
    assert!(complete());
    caller.store(at::POSTED, &[0xff; 24]);
    assert!(complete());
    assert_eq!(caller.word(at::POSTED), 10, "the kernel's counts are its own");
}

#[test]
fn there_is_no_more_than_there_is_room_for() {
    let caller = Caller::new(4096);
    let gate = open(&caller, (8, 4), false);
    let ends = [ring::Completion::default(); 6];
    assert_eq!(gate.complete_some(&ends), 4);
    assert_eq!(gate.complete_some(&ends), 0);
    caller.count(at::REAPED, 3);
    assert_eq!(gate.complete_some(&ends), 0, "nobody has looked");
    gate.look();
    assert_eq!(gate.complete_some(&ends), 3);
    assert_eq!(gate.unreaped(), 4);
}

#[test]
fn counts_are_read_once_for_a_batch() {
    let caller = Caller::new(4096);
    let gate = open(&caller, (8, 8), false);
    (0..4).for_each(|n| caller.submit(n, 8, entry(n)));
    caller.count(at::SUBMITTED, 4);
    assert_eq!(gate.look(), 4);
    caller.count(at::SUBMITTED, 8);
    assert_eq!(gate.take_some(&mut [ring::Submission::default(); 32]), 4, "what was seen is taken");
}

#[test]
fn who_looks_says_when_it_no_longer_does() {
    let caller = Caller::new(4096);
    let gate = open(&caller, (8, 8), true);
    assert_eq!(caller.word(at::FLAGS), 0);
    assert!(gate.is_watched());
    gate.rest();
    assert_eq!(caller.word(at::FLAGS), ANNOUNCE);
    caller.submit(0, 8, entry(5));
    caller.count(at::SUBMITTED, 1);
    assert!(gate.take().is_some());
    assert_eq!(caller.word(at::FLAGS), 0, "and that it does again");
}

#[test]
fn memory_that_goes_is_nothing_submitted() {
    let caller = Caller::new(4096);
    let gate = open(&caller, (8, 8), false);
    caller.count(at::SUBMITTED, 8);
    caller.0.lock().unwrap().truncate(256);
    assert_eq!(gate.look(), 8);
    assert_eq!(gate.take_some(&mut [ring::Submission::default(); 32]), 0);
    caller.0.lock().unwrap().clear();
    assert_eq!(gate.unreaped(), 0);
    assert!(gate.complete(Completion { tag: 1, result: 0 }), "it is lost");
}

/// The same memory from elsewhere, at addresses from 0 on, while the caller is where it can be had.
struct Elsewhere(Arc<Caller>, AtomicBool);

impl UserMemory for Elsewhere {
    fn is_user(&self, addr: usize, len: usize) -> bool {
        self.0.is_user(AT + addr, len)
    }
    fn copy_in_partial(&self, dst: &mut [u8], src: usize) -> usize {
        self.0.copy_in_partial(dst, AT + src)
    }
    fn copy_out_partial(&self, dst: usize, src: &[u8]) -> usize {
        self.0.copy_out_partial(AT + dst, src)
    }
    fn load_u32(&self, addr: usize) -> core::result::Result<u32, Fault> {
        self.0.load_u32(AT + addr)
    }
    fn cmpxchg_u32(&self, _addr: usize, _old: u32, _new: u32) -> core::result::Result<u32, Fault> {
        Err(Fault)
    }
}

impl Window for Elsewhere {
    fn here(&self) -> Option<&dyn UserMemory> {
        if self.1.load(Ordering::Relaxed) { Some(self) } else { None }
    }
}

#[test]
fn a_window_is_used_where_there_is_one() {
    let (programs, shared) = (Caller::new(4096), Caller::new(4096));
    let window = Arc::new(Elsewhere(shared.clone(), AtomicBool::new(true)));
    let gate = Rings.open(programs.clone(), AT, (8, 8), true, Some(window.clone())).unwrap();
    shared.submit(0, 8, entry(5));
    shared.count(at::SUBMITTED, 1);
    assert_eq!(gate.take(), Some(Submission::of(&entry(5))));
    assert!(gate.complete(Completion { tag: 5, result: 9 }));
    assert_eq!((shared.word(at::TAKEN), shared.word(at::POSTED), shared.word(ring::bytes(8, 0) + 8)), (1, 1, 9));
    assert_eq!((programs.word(at::TAKEN), programs.word(at::POSTED)), (0, 0));
    // By a thread that does not have it.
    window.1.store(false, Ordering::Relaxed);
    programs.submit(1, 8, entry(6));
    programs.count(at::SUBMITTED, 2);
    assert_eq!(gate.take(), Some(Submission::of(&entry(6))));
    // One of another size than the ring's memory ends the access, not the kernel.
    window.1.store(true, Ordering::Relaxed);
    shared.0.lock().unwrap().clear();
    assert_eq!(gate.take(), None);
}

/// A thread whose memory is the test's own, at its addresses.
#[cfg(target_arch = "x86_64")]
mod in_place {
    use core::cell::UnsafeCell;
    use core::ptr::null_mut;
    use core::sync::atomic::AtomicPtr;

    use janua_port::guest::{PLAIN_CALLS, PlainCalls};

    use super::*;

    const WORDS: usize = 512;

    #[repr(align(4096))]
    struct Page(UnsafeCell<[u64; WORDS]>);

    // SAFETY: each test has one of its own, and uses it in one thread.
    unsafe impl Sync for Page {}

    struct Direct(Page, AtomicBool);

    impl Direct {
        fn new() -> Arc<Direct> {
            Arc::new(Direct(Page(UnsafeCell::new([0; WORDS])), AtomicBool::new(true)))
        }
        fn at(&self) -> usize {
            self.0.0.get().addr()
        }
        fn bytes(&self) -> *mut u8 {
            self.0.0.get().cast()
        }
        fn word(&self, offset: usize) -> u64 {
            let mut word = 0_u64;
            assert_eq!(self.copy_in(word.as_mut_bytes(), self.at() + offset), Ok(()));
            word
        }
        fn count(&self, offset: usize, value: u32) {
            assert_eq!(self.copy_out(self.at() + offset, value.as_bytes()), Ok(()));
        }
        fn submit(&self, n: u32, size: u32, number: u32, flags: u32) {
            let entry = ring::Submission { number, flags, words: [5, 0, 0, 0, 0, 9], tag: n.into() };
            assert_eq!(self.copy_out(self.at() + at::ENTRIES + (n % size) as usize * 64, entry.as_bytes()), Ok(()));
        }
    }

    impl UserMemory for Direct {
        fn is_user(&self, addr: usize, len: usize) -> bool {
            addr >= self.at() && addr.checked_add(len).is_some_and(|end| end <= self.at() + WORDS * 8)
        }
        fn is_direct(&self, addr: usize, len: usize) -> bool {
            self.1.load(Ordering::Relaxed) && self.is_user(addr, len)
        }
        fn copy_in_partial(&self, dst: &mut [u8], src: usize) -> usize {
            if !self.is_user(src, dst.len()) {
                return 0;
            }
            // SAFETY: in the page, of which there is no reference.
            unsafe { self.bytes().add(src - self.at()).copy_to_nonoverlapping(dst.as_mut_ptr(), dst.len()) };
            dst.len()
        }
        fn copy_out_partial(&self, dst: usize, src: &[u8]) -> usize {
            if !self.is_user(dst, src.len()) {
                return 0;
            }
            // SAFETY: as above.
            unsafe { self.bytes().add(dst - self.at()).copy_from_nonoverlapping(src.as_ptr(), src.len()) };
            src.len()
        }
        fn load_u32(&self, _addr: usize) -> core::result::Result<u32, Fault> {
            Err(Fault)
        }
        fn cmpxchg_u32(&self, _addr: usize, _old: u32, _new: u32) -> core::result::Result<u32, Fault> {
            Err(Fault)
        }
    }

    impl Context for Direct {
        fn id(&self) -> ThreadId {
            ThreadId::default()
        }
        fn memory(&self) -> &dyn UserMemory {
            self
        }
        fn registers(&self) -> Result<&dyn Registers> {
            Err(Errno::EXDEV)
        }
        fn spawn(&self, _spawn: Spawn) -> Result<Arc<dyn Context>> {
            Err(Errno::EXDEV)
        }
        fn kick(&self) {}
        fn restrict(&self, _cpus: &[u64]) -> Result<()> {
            Ok(())
        }
        fn cpu(&self, _whole_task: bool) -> Option<Nanos> {
            None
        }
        fn peak_resident(&self) -> u64 {
            0
        }
    }

    extern "C" fn adds(a: usize, _b: usize, _c: usize, _d: usize, _e: usize, f: usize, thread: *const AtomicU32) -> usize {
        // SAFETY: the test's.
        a + f + unsafe { &*thread }.fetch_add(1, Ordering::Relaxed) as usize
    }

    fn functions() -> PlainCalls {
        let functions = [const { AtomicPtr::new(null_mut()) }; PLAIN_CALLS];
        functions[3].store(adds as *mut (), Ordering::Relaxed);
        functions
    }

    fn make(gate: &dyn QueueGate, made: &AtomicU32, most: usize) -> usize {
        gate.make_some(&QueuedCalls { functions: &functions(), thread: core::ptr::from_ref(made).cast() }, most)
    }

    #[test]
    fn calls_are_made_where_they_are() {
        let caller = Direct::new();
        let gate = Rings.open(caller.clone(), caller.at(), (8, 16), false, None).unwrap();
        let made = AtomicU32::new(0);
        let mut total = 0;
        for n in 0..100_u32 {
            let count = n % 8 + 1;
            (0..count).for_each(|k| caller.submit(total + k, 8, 3, 0));
            caller.count(at::SUBMITTED, total + count);
            assert_eq!(gate.look(), count as usize);
            let mut left = count as usize;
            while left > 0 {
                let some = make(&*gate, &made, 100);
                assert!(some > 0, "at most two parts");
                left -= some;
            }
            assert_eq!(make(&*gate, &made, 100), 0);
            assert_eq!(caller.word(at::POSTED) as u32, total, "the program learns of it when all is there");
            assert_eq!(gate.settle(), count as usize);
            for k in total..total + count {
                let place = ring::bytes(8, 0) + (k % 16) as usize * 16;
                assert_eq!((caller.word(place), caller.word(place + 8)), (k.into(), u64::from(k) + 14));
            }
            total += count;
            assert_eq!((caller.word(at::TAKEN), caller.word(at::POSTED)), (total.into(), total.into()));
            caller.count(at::REAPED, total);
        }
        assert_eq!(made.load(Ordering::Relaxed), total);
    }

    #[test]
    fn other_calls_are_left_where_they_are() {
        let caller = Direct::new();
        let gate = Rings.open(caller.clone(), caller.at(), (8, 8), false, None).unwrap();
        let made = AtomicU32::new(0);
        caller.submit(0, 8, 3, 0);
        caller.submit(1, 8, 4, 0);
        caller.submit(2, 8, 3, ring::flags::LINK);
        caller.count(at::SUBMITTED, 3);
        gate.look();
        assert_eq!(make(&*gate, &made, 8), 1);
        assert_eq!(make(&*gate, &made, 8), 0);
        let mut into = [ring::Submission::default(); 1];
        assert_eq!((gate.take_some(&mut into), into[0].number), (1, 4));
        assert_eq!(make(&*gate, &made, 8), 0, "one that is linked");
        assert_eq!((gate.take_some(&mut into), into[0].flags), (1, ring::flags::LINK));
        assert_eq!(gate.settle(), 1);
    }

    #[test]
    fn there_are_no_more_than_there_are_or_is_room_for() {
        let caller = Direct::new();
        let gate = Rings.open(caller.clone(), caller.at(), (8, 4), false, None).unwrap();
        let made = AtomicU32::new(0);
        (0..8).for_each(|n| caller.submit(n, 8, 3, 0));
        caller.count(at::SUBMITTED, 9);
        gate.look();
        assert_eq!(make(&*gate, &made, 8), 0, "a count that cannot be");
        caller.count(at::SUBMITTED, 8);
        assert_eq!(make(&*gate, &made, 8), 0, "nobody has looked");
        gate.look();
        assert_eq!(make(&*gate, &made, 3), 3);
        assert_eq!(make(&*gate, &made, 8), 1);
        assert_eq!(make(&*gate, &made, 8), 0, "no room");
        caller.count(at::REAPED, 3);
        gate.look();
        caller.1.store(false, Ordering::Relaxed);
        assert_eq!(make(&*gate, &made, 8), 0, "not where the caller runs");
        caller.1.store(true, Ordering::Relaxed);
        assert_eq!(make(&*gate, &made, 8), 3);
        assert_eq!(made.load(Ordering::Relaxed), 7);
    }
}
