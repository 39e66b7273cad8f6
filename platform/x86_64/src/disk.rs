//! The disk: a virtio block device behind virtio-mmio, where QEMU's microvm has it.
//!
//! A request goes through one of a few slots of memory the device may touch; callers' buffers are copied, so the device never
//! sees any other memory. The caller sleeps on its slot's word. No completion is lost: the word is set, under the queue's
//! lock, before the sleeper is woken, and a sleeper that missed everything looks again by itself after `PATIENCE`.
//!
//! Lock order: `Disk::queue`, then the scheduler's.

use alloc::boxed::Box;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use bitflags::bitflags;
use janua_abi::linux::{Errno, Result};
use janua_paging::PAGE;
use janua_port::Nanos;
use janua_port::block::{BlockDevice, SECTOR};
use virtio_drivers::queue::VirtQueue;
use virtio_drivers::transport::mmio::{MmioTransport, VirtIOHeader};
use virtio_drivers::transport::{DeviceType, Transport};
use virtio_drivers::{BufferDirection, Hal, PhysAddr};

use crate::boot::DIRECT;
use crate::frames::FRAMES;
use crate::lock::Mutex;
use crate::{apic, clock, sched};

/// Where microvm has its virtio devices, bytes from one to the next, and how many there may be.
const BASE: usize = 0xfeb0_0000;
const STRIDE: usize = 0x200;
const MOST: usize = 24;
/// The word a virtio-mmio device begins with, "virt".
const MAGIC: u32 = 0x7472_6976;
/// The interrupt line of the first of them, on a microvm with two I/O APICs (that has all of [`MOST`]).
const FIRST_LINE: u32 = 24;

/// Requests under way at a time.
const SLOTS: usize = 4;
/// Bytes one request moves at most.
const MOVE: usize = 128 * 1024;
/// What a slot's memory holds: the request's header, its status, and from the next page on the data.
const STATUS: usize = 16;
const DATA: usize = PAGE;
const SLOT: usize = DATA + MOVE;
/// Descriptors of the queue: a request takes at most three.
const DESCRIPTORS: usize = 16;

/// A sleeper looks by itself after this time.
const PATIENCE: Nanos = 10_000_000;

/// Request types and the status of one that was done (virtio 1.2, 5.2.6).
const READ: u32 = 0;
const WRITE: u32 = 1;
const FLUSH: u32 = 4;
const DONE: u8 = 0;

bitflags! {
    /// Feature bits that are used (virtio 1.2, 5.2.3 and 6).
    #[derive(Clone, Copy, Debug)]
    struct Features: u64 {
        const READ_ONLY = 1 << 5;
        const FLUSH = 1 << 9;
        const VERSION_1 = 1 << 32;
    }
}

/// Memory for devices: page frames, seen through the direct map.
struct Direct;

// SAFETY: `dma_alloc` gives out fresh page frames, zeroed and mapped for good; they are never given out again. What is shared is
// in such frames or in the heap, both parts of the direct map, where addresses differ from the physical ones by a constant.
unsafe impl Hal for Direct {
    fn dma_alloc(pages: usize, _direction: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        match FRAMES.take_run(pages).and_then(|at| Some((at, NonNull::new((DIRECT + at) as *mut u8)?))) {
            Some((at, pointer)) => {
                // SAFETY: frames nobody else uses, mapped in a row.
                unsafe { pointer.write_bytes(0, pages * PAGE) };
                (at as PhysAddr, pointer)
            }
            // The crate's word for "no memory".
            None => (0, NonNull::dangling()),
        }
    }

    unsafe fn dma_dealloc(_paddr: PhysAddr, _vaddr: NonNull<u8>, _pages: usize) -> i32 {
        // Only a queue that could not be set up is dropped. The device may have heard of its memory: it is not used again.
        0
    }

    unsafe fn mmio_phys_to_virt(paddr: PhysAddr, _size: usize) -> NonNull<u8> {
        NonNull::new((DIRECT + paddr as usize) as *mut u8).expect("the direct map does not begin at 0")
    }

    unsafe fn share(buffer: NonNull<[u8]>, _direction: BufferDirection) -> PhysAddr {
        (buffer.cast::<u8>().as_ptr() as usize - DIRECT) as PhysAddr
    }

    unsafe fn unshare(_paddr: PhysAddr, _buffer: NonNull<[u8]>, _direction: BufferDirection) {}
}

/// A request the device has.
#[derive(Clone, Copy)]
struct Under {
    token: u16,
    kind: u32,
    len: usize,
}

#[derive(Clone, Copy)]
enum Slot {
    Free,
    /// Taken by a caller that fills or empties it.
    Taken,
    /// The device's, until it has completed it.
    Away(Under),
}

struct Queue {
    transport: MmioTransport<'static>,
    ring: VirtQueue<Direct, DESCRIPTORS>,
    slots: [Slot; SLOTS],
}

/// The disk.
pub struct Disk {
    queue: Mutex<Queue>,
    /// The slots' memory, one after the other.
    memory: NonNull<u8>,
    /// For each slot: 1 when the device has completed it. The caller sleeps on it.
    answered: [AtomicU32; SLOTS],
    /// Changes when a slot becomes free.
    freed: AtomicU32,
    sectors: u64,
    features: Features,
}

// SAFETY: the memory is the disk's alone; who holds a slot as `Taken` is the only one to touch it, and the device is while it is
// `Away`. Everything else is locked or atomic.
unsafe impl Send for Disk {}
// SAFETY: as above.
unsafe impl Sync for Disk {}

static DISK: AtomicPtr<Disk> = AtomicPtr::new(core::ptr::null_mut());

/// The machine's disk.
pub fn disk() -> Option<&'static Disk> {
    // SAFETY: null, or a leaked box.
    unsafe { DISK.load(Ordering::Acquire).as_ref() }
}

/// Looks for a disk. Comes after the interrupt controllers and before the first request.
pub fn init() {
    let mut devices = 0;
    let mut found = None;
    for index in 0..MOST {
        let header = (DIRECT + BASE + index * STRIDE) as *mut VirtIOHeader;
        // SAFETY: device memory, mapped uncached; where there is no device a PC returns all bits set.
        if unsafe { header.cast::<u32>().read_volatile() } != MAGIC {
            continue;
        }
        devices += 1;
        let Some(header) = NonNull::new(header) else { continue };
        // SAFETY: a virtio-mmio device begins there, and nothing else uses it. An empty one has a type the crate refuses.
        if let Ok(transport) = unsafe { MmioTransport::new(header, STRIDE) }
            && transport.device_type() == DeviceType::Block
        {
            found = Some((index as u32, transport));
        }
    }
    let Some((index, transport)) = found else { return };
    let Some(disk) = Disk::new(transport) else { return };
    DISK.store(Box::into_raw(Box::new(disk)), Ordering::Release);
    if devices == MOST {
        apic::route(FIRST_LINE + index, apic::DISK);
    }
}

/// The device has completed something.
pub fn on_interrupt() {
    if let Some(disk) = disk() {
        let mut queue = disk.queue.lock();
        queue.transport.ack_interrupt();
        disk.collect(&mut queue);
    }
}

impl Disk {
    /// `None` when the device does not do what its specification says, or without memory.
    fn new(mut transport: MmioTransport<'static>) -> Option<Disk> {
        let features = transport.begin_init(Features::all());
        let half = |offset| transport.read_config_space::<u32>(offset).map(u64::from);
        let sectors = transport.read_consistent(|| Ok(half(0)? | half(4)? << 32)).ok()?;
        let ring = VirtQueue::new(&mut transport, 0, false, false).ok()?;
        transport.finish_init();
        let memory = FRAMES.take_run(SLOTS * SLOT / PAGE)?;
        Some(Disk {
            queue: Mutex::new(Queue { transport, ring, slots: [Slot::Free; SLOTS] }),
            memory: NonNull::new((DIRECT + memory) as *mut u8)?,
            answered: [const { AtomicU32::new(0) }; SLOTS],
            freed: AtomicU32::new(0),
            sectors,
            features,
        })
    }

    /// Where a part of a slot's memory is.
    fn at(&self, slot: usize, offset: usize) -> *mut u8 {
        assert!(slot < SLOTS && offset < SLOT);
        // SAFETY: within the slots' memory.
        unsafe { self.memory.add(slot * SLOT + offset).as_ptr() }
    }

    /// What a request is made of: what the device reads, and what it writes.
    ///
    /// # Safety
    /// The slot is the caller's as `Taken`, or the device has just completed it; the slices are dropped before anyone else's turn.
    unsafe fn parts<'a>(&self, slot: usize, kind: u32, len: usize) -> ([&'a [u8]; 2], [&'a mut [u8]; 2]) {
        assert!(len <= MOVE);
        // SAFETY: three parts of the slot's memory that do not overlap; the caller's promise.
        unsafe {
            let header = core::slice::from_raw_parts(self.at(slot, 0), STATUS);
            let status = core::slice::from_raw_parts_mut(self.at(slot, STATUS), 1);
            let (sent, received) = if kind == WRITE { (len, 0) } else { (0, len) };
            let sent = core::slice::from_raw_parts(self.at(slot, DATA), sent);
            let received = core::slice::from_raw_parts_mut(self.at(slot, DATA), received);
            ([header, sent], [received, status])
        }
    }

    /// Takes a slot; sleeps until there is one.
    fn take(&self) -> usize {
        loop {
            let freed = self.freed.load(Ordering::SeqCst);
            {
                let mut queue = self.queue.lock();
                if let Some(slot) = queue.slots.iter().position(|slot| matches!(slot, Slot::Free)) {
                    queue.slots[slot] = Slot::Taken;
                    return slot;
                }
            }
            sched::park(&self.freed, freed, Some(clock::now() + PATIENCE));
        }
    }

    fn give_back(&self, slot: usize) {
        self.queue.lock().slots[slot] = Slot::Free;
        self.freed.fetch_add(1, Ordering::SeqCst);
        sched::unpark(&self.freed, 1);
    }

    /// Takes what the device has completed off the ring and wakes those who wait for it.
    fn collect(&self, queue: &mut Queue) {
        while let Some(token) = queue.ring.peek_used() {
            let away = queue.slots.iter().enumerate().find_map(|(slot, state)| match state {
                Slot::Away(under) if under.token == token => Some((slot, *under)),
                _ => None,
            });
            // A token nobody gave it: the device is broken, and what waits goes on waiting.
            let Some((slot, under)) = away else { return };
            // SAFETY: the device has completed this request; these are the buffers it was made of.
            let popped = unsafe {
                let (inputs, mut outputs) = self.parts(slot, under.kind, under.len);
                let (inputs, outputs) = trim(&inputs, &mut outputs);
                queue.ring.pop_used(token, inputs, outputs)
            };
            if popped.is_err() {
                return;
            }
            queue.slots[slot] = Slot::Taken;
            self.answered[slot].store(1, Ordering::SeqCst);
            sched::unpark(&self.answered[slot], 1);
        }
    }

    /// Does one request with the slot's data: its header states what, and where.
    fn request(&self, slot: usize, kind: u32, sector: u64, len: usize) -> Result<()> {
        self.answered[slot].store(0, Ordering::SeqCst);
        let mut header = [0; STATUS];
        header[..4].copy_from_slice(&kind.to_le_bytes());
        header[8..].copy_from_slice(&sector.to_le_bytes());
        // SAFETY: the slot is ours.
        unsafe {
            core::ptr::copy_nonoverlapping(header.as_ptr(), self.at(slot, 0), STATUS);
            self.at(slot, STATUS).write(!DONE);
        }
        {
            let mut queue = self.queue.lock();
            // SAFETY: the slot is ours, and from here on the device's, until `collect` has taken the request off the ring.
            let token = unsafe {
                let (inputs, mut outputs) = self.parts(slot, kind, len);
                let (inputs, outputs) = trim(&inputs, &mut outputs);
                queue.ring.add(inputs, outputs)
            };
            let token = token.map_err(|_| Errno::EIO)?;
            queue.slots[slot] = Slot::Away(Under { token, kind, len });
            if queue.ring.should_notify() {
                queue.transport.notify(0);
            }
        }
        while self.answered[slot].load(Ordering::SeqCst) == 0 {
            sched::park(&self.answered[slot], 0, Some(clock::now() + PATIENCE));
            if self.answered[slot].load(Ordering::SeqCst) == 0 {
                self.collect(&mut self.queue.lock());
            }
        }
        // SAFETY: the device has completed it, the slot is ours again.
        match unsafe { self.at(slot, STATUS).read_volatile() } {
            DONE => Ok(()),
            _ => Err(Errno::EIO),
        }
    }

    /// EINVAL unless the range is whole sectors of the disk.
    fn check(&self, sector: u64, len: usize) -> Result<()> {
        let end = sector.checked_add((len / SECTOR) as u64);
        if len.is_multiple_of(SECTOR) && end.is_some_and(|end| end <= self.sectors) { Ok(()) } else { Err(Errno::EINVAL) }
    }
}

/// Without the empty parts.
fn trim<'a, 'b>(inputs: &'a [&'b [u8]; 2], outputs: &'a mut [&'b mut [u8]; 2]) -> (&'a [&'b [u8]], &'a mut [&'b mut [u8]]) {
    let inputs = if inputs[1].is_empty() { &inputs[..1] } else { &inputs[..] };
    let skip = usize::from(outputs[0].is_empty());
    (inputs, &mut outputs[skip..])
}

impl BlockDevice for Disk {
    fn name(&self) -> &str {
        "vda"
    }

    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn read_only(&self) -> bool {
        self.features.contains(Features::READ_ONLY)
    }

    fn read(&self, sector: u64, out: &mut [u8]) -> Result<()> {
        self.check(sector, out.len())?;
        for (part, out) in out.chunks_mut(MOVE).enumerate() {
            let slot = self.take();
            let result = self.request(slot, READ, sector + (part * (MOVE / SECTOR)) as u64, out.len());
            if result.is_ok() {
                // SAFETY: the slot is ours, and its data at least as long as the part.
                unsafe { core::ptr::copy_nonoverlapping(self.at(slot, DATA), out.as_mut_ptr(), out.len()) };
            }
            self.give_back(slot);
            result?;
        }
        Ok(())
    }

    fn write(&self, sector: u64, data: &[u8]) -> Result<()> {
        self.check(sector, data.len())?;
        if self.read_only() {
            return Err(Errno::EROFS);
        }
        for (part, data) in data.chunks(MOVE).enumerate() {
            let slot = self.take();
            // SAFETY: the slot is ours, and its data at least as long as the part.
            unsafe { core::ptr::copy_nonoverlapping(data.as_ptr(), self.at(slot, DATA), data.len()) };
            let result = self.request(slot, WRITE, sector + (part * (MOVE / SECTOR)) as u64, data.len());
            self.give_back(slot);
            result?;
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        // A device without the feature has no cache that could lose anything.
        if !self.features.contains(Features::FLUSH) {
            return Ok(());
        }
        let slot = self.take();
        let result = self.request(slot, FLUSH, 0, 0);
        self.give_back(slot);
        result
    }
}
