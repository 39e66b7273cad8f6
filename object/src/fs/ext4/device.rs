//! What the ext4 crate runs on: the disk, seen through a cache of single blocks; the clock; and who is notified of what a mount found.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use core::sync::atomic::{AtomicU32, Ordering};

use janua_port::block::SECTOR;
use janua_port::{BlockDevice, Machine};
use janua_rt::{AtomicI64, Mutex};
use rsext4::crc32c::{crc32c_append, crc32c_init};
use rsext4::{
    Clock, DeviceCapabilities, DeviceGeometry, EntropySource, Event, Ext4Error, Ext4Result, Ext4Timestamp, InodeInfo, Observer,
    SectorId,
};

use super::BLOCK;

/// Blocks kept. The crate keeps a few dozen of its own and reads metadata again and again.
const KEPT: usize = 2048;
/// A read or write of more blocks than this is file data, which is kept elsewhere.
const SINGLE: usize = 4;
/// Nanoseconds of a second.
const SECOND: i64 = 1_000_000_000;

/// The disk with its cache, which is locked for a moment only, never while the disk is asked. Writes go through, one at a time: they are
/// the crate's, of which there is one user at a time. A clone is the same device.
#[derive(Clone)]
pub struct Device {
    disk: &'static dyn BlockDevice,
    cache: Arc<Mutex<Cache>>,
}

#[derive(Default)]
struct Cache {
    /// Blocks by number, with the turn they were last used in.
    blocks: BTreeMap<u64, (u64, Box<[u8]>)>,
    turn: u64,
    /// Counts the beginnings and the ends of writes.
    writes: u64,
}

impl Device {
    pub fn new(disk: &'static dyn BlockDevice) -> Device {
        Device { disk, cache: Arc::default() }
    }
}

impl Cache {
    /// Copies a block that is kept; otherwise returns how many writes there have been.
    fn find(&mut self, number: u64, out: &mut [u8]) -> Option<u64> {
        self.turn += 1;
        match self.blocks.get_mut(&number) {
            Some((used, bytes)) => {
                *used = self.turn;
                out.copy_from_slice(bytes);
                None
            }
            None => Some(self.writes),
        }
    }

    fn keep(&mut self, number: u64, bytes: &[u8]) {
        self.turn += 1;
        if let Some((used, kept)) = self.blocks.get_mut(&number) {
            *used = self.turn;
            kept.copy_from_slice(bytes);
            return;
        }
        if self.blocks.len() >= KEPT {
            // The older half goes: seldom, and cheaper than an order kept at every use.
            let middle = self.turn.saturating_sub(KEPT as u64 / 2);
            self.blocks.retain(|_, (used, _)| *used > middle);
            if self.blocks.len() >= KEPT {
                self.blocks.clear();
            }
        }
        self.blocks.insert(number, (self.turn, bytes.into()));
    }
}

/// What the disk refuses or loses is an I/O error, whatever it calls it.
fn failed(_: janua_abi::linux::Errno) -> Ext4Error {
    Ext4Error::io()
}

/// The blocks a range of sectors consists of, when it is a few whole blocks.
fn whole_blocks(sector: u64, len: usize) -> Option<core::ops::Range<u64>> {
    const SECTORS: u64 = (BLOCK / SECTOR) as u64;
    let count = len / BLOCK;
    let fits = sector.is_multiple_of(SECTORS) && len.is_multiple_of(BLOCK) && (1..=SINGLE).contains(&count);
    fits.then(|| sector / SECTORS..sector / SECTORS + count as u64)
}

impl rsext4::BlockIo for Device {
    fn write(&mut self, buffer: &[u8], sector: SectorId, count: u32) -> Ext4Result<()> {
        let data = buffer.get(..count as usize * SECTOR).ok_or_else(Ext4Error::invalid_input)?;
        self.cache.lock().writes += 1;
        let written = self.disk.write(sector.raw(), data).map_err(failed);
        let mut cache = self.cache.lock();
        cache.writes += 1;
        // After a failure nobody knows what is there.
        let first = sector.raw() * SECTOR as u64 / BLOCK as u64;
        let end = (sector.raw() * SECTOR as u64 + data.len() as u64).div_ceil(BLOCK as u64);
        match whole_blocks(sector.raw(), data.len()).filter(|_| written.is_ok()) {
            Some(blocks) => {
                for (number, bytes) in blocks.zip(data.chunks_exact(BLOCK)) {
                    cache.keep(number, bytes);
                }
            }
            None => {
                while let Some((&number, _)) = cache.blocks.range(first..end).next() {
                    cache.blocks.remove(&number);
                }
            }
        }
        written
    }

    fn read(&mut self, buffer: &mut [u8], sector: SectorId, count: u32) -> Ext4Result<()> {
        let out = buffer.get_mut(..count as usize * SECTOR).ok_or_else(Ext4Error::invalid_input)?;
        let Some(blocks) = whole_blocks(sector.raw(), out.len()) else {
            return self.disk.read(sector.raw(), out).map_err(failed);
        };
        for (number, out) in blocks.zip(out.chunks_exact_mut(BLOCK)) {
            let Some(writes) = self.cache.lock().find(number, out) else { continue };
            self.disk.read(number * (BLOCK / SECTOR) as u64, out).map_err(failed)?;
            let mut cache = self.cache.lock();
            // What was read while a write was under way may be older than what that has left here.
            if cache.writes == writes {
                cache.keep(number, out);
            }
        }
        Ok(())
    }

    fn geometry(&self) -> DeviceGeometry {
        DeviceGeometry::new(SECTOR as u32, self.disk.sectors())
    }

    fn capabilities(&self) -> DeviceCapabilities {
        DeviceCapabilities { read_only: self.disk.read_only(), flush: true, ..DeviceCapabilities::default() }
    }

    fn flush(&mut self) -> Ext4Result<()> {
        self.disk.flush().map_err(failed)
    }
}

/// The time the crate stamps what it changes with: set before each change, so that the inodes in memory carry the same.
#[derive(Clone, Default)]
pub struct Stamp(Arc<AtomicI64>);

impl Stamp {
    /// Nanoseconds since 1970.
    pub fn set(&self, now: i64) {
        self.0.store(now, Ordering::Relaxed);
    }
}

/// A time as it is on the disk.
pub fn timestamp(nanos: i64) -> Ext4Timestamp {
    Ext4Timestamp::new(nanos.div_euclid(SECOND), nanos.rem_euclid(SECOND) as u32)
}

impl Clock for Stamp {
    fn now(&self) -> Ext4Result<Ext4Timestamp> {
        Ok(timestamp(self.0.load(Ordering::Relaxed)))
    }
}

/// The machine's random numbers.
pub struct Entropy(pub &'static dyn Machine);

impl EntropySource for Entropy {
    fn fill_bytes(&mut self, output: &mut [u8]) -> Ext4Result<()> {
        self.0.random(output);
        Ok(())
    }
}

/// Remembers whether a mount had something to recover.
#[derive(Clone, Default)]
pub struct Witness(Arc<AtomicU32>);

impl Witness {
    pub fn recovered(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

impl Observer for Witness {
    fn event(&mut self, event: Event) {
        if matches!(event, Event::Recovery(_)) {
            self.0.store(1, Ordering::Relaxed);
        }
    }
}

/// Where the crate's information on an inode lacks the parts of a second, the inode's own bytes have them.
pub struct Table {
    block_size: u64,
    inode_size: u64,
    inodes_per_group: u64,
    descriptor_size: u64,
    descriptors: u64,
    wide: bool,
    /// What checksums of inodes begin with, where they have some.
    seed: Option<u32>,
}

/// Four times in nanoseconds since 1970: of the last access, change of data, change of the inode, and of its birth.
pub type Times = [i64; 4];

impl Table {
    /// From the superblock. `None` where the inodes have no room for parts of a second, or the layout of the groups is unusual.
    pub fn read(device: &Device) -> Option<Table> {
        const SUPERBLOCK: u64 = 1024;
        const META_GROUPS: u64 = 0x10;
        const WIDE: u64 = 0x80;
        const OWN_SEED: u64 = 0x2000;
        /// Of the features that do not hinder reading.
        const CHECKSUMS: u64 = 0x400;
        let mut bytes = vec![0; 1024];
        device.disk.read(SUPERBLOCK / SECTOR as u64, &mut bytes).ok()?;
        let block_size = 1024u64.checked_shl(number(&bytes, 0x18, 4)? as u32)?;
        let features = number(&bytes, 0x60, 4)?;
        let wide = features & WIDE != 0;
        let seed = match features & OWN_SEED {
            0 => crc32c_append(crc32c_init(), bytes.get(0x68..0x78)?),
            _ => number(&bytes, 0x270, 4)? as u32,
        };
        let table = Table {
            block_size,
            inode_size: number(&bytes, 0x58, 2)?,
            inodes_per_group: number(&bytes, 0x28, 4)?,
            descriptor_size: if wide { number(&bytes, 0xfe, 2)?.max(32) } else { 32 },
            descriptors: (number(&bytes, 0x14, 4)? + 1) * block_size,
            wide,
            seed: (number(&bytes, 0x64, 4)? & CHECKSUMS != 0).then_some(seed),
        };
        let usable = features & META_GROUPS == 0 && table.inode_size >= 160 && table.inodes_per_group > 0;
        usable.then_some(table)
    }

    /// An inode as it is on the disk, perhaps older than what the journal knows.
    fn inode(&self, device: &Device, inode: u32) -> Option<Box<[u8]>> {
        let index = u64::from(inode.checked_sub(1)?);
        let (group, index) = (index / self.inodes_per_group, index % self.inodes_per_group);
        let descriptor = self.bytes(device, self.descriptors + group * self.descriptor_size, self.descriptor_size)?;
        let mut table = number(&descriptor, 0x8, 4)?;
        if self.wide && self.descriptor_size >= 64 {
            table |= number(&descriptor, 0x28, 4)? << 32;
        }
        self.bytes(device, table.checked_mul(self.block_size)? + index * self.inode_size, self.inode_size)
    }

    /// The times of an inode as they are on the disk, perhaps older than what the journal knows. `None` where they are not known.
    pub fn times(&self, device: &Device, inode: u32) -> Option<Times> {
        let inode = self.inode(device, inode)?;
        let extra = number(&inode, 0x80, 2)?;
        let time = |seconds: usize, more: usize| {
            let low = i64::from(number(&inode, seconds, 4)? as u32 as i32);
            // Only where the inode states that the field is there.
            let more = if extra + 0x80 >= more as u64 + 4 { number(&inode, more, 4)? } else { 0 };
            let seconds = low + ((more as i64 & 3) << 32);
            Some(seconds * SECOND + (more >> 2) as i64)
        };
        Some([time(0x8, 0x8c)?, time(0x10, 0x88)?, time(0xc, 0x84)?, time(0x90, 0x94)?])
    }

    /// Whether an inode was read from the disk although its checksum is wrong: the crate does not look at it. One that the journal knows
    /// better may be there as anything.
    pub fn is_damaged(&self, device: &Device, info: &InodeInfo) -> bool {
        let Some(seed) = self.seed else { return false };
        let Some(mut inode) = self.inode(device, info.number.raw()) else { return false };
        let fields = [(0x0, 2), (0x4, 4), (0x10, 4), (0x1a, 2)].map(|(at, len)| number(&inode, at, len));
        let known = [u64::from(info.mode), info.size & 0xffff_ffff, info.mtime.into(), info.links.into()];
        if fields != known.map(Some) {
            return false;
        }
        // Two halves, of which older inodes have the first only (linux/fs/ext4/ext4.h).
        const LOW: usize = 0x7c;
        const HIGH: usize = 0x82;
        let both = number(&inode, 0x80, 2).is_some_and(|extra| extra >= 4);
        let half = |at| number(&inode, at, 2).unwrap_or_default() as u32;
        let stored = half(LOW) | if both { half(HIGH) << 16 } else { 0 };
        let generation = number(&inode, 0x64, 4).unwrap_or_default() as u32;
        inode[LOW..LOW + 2].fill(0);
        if both {
            inode[HIGH..HIGH + 2].fill(0);
        }
        let begins = crc32c_append(crc32c_append(seed, &info.number.raw().to_le_bytes()), &generation.to_le_bytes());
        let sum = crc32c_append(begins, &inode);
        stored != if both { sum } else { sum & 0xffff }
    }

    /// Bytes of the disk, through the cache.
    fn bytes(&self, device: &Device, at: u64, len: u64) -> Option<Box<[u8]>> {
        let inside = (at % BLOCK as u64) as usize;
        let mut block = vec![0; BLOCK];
        let sector = SectorId::new((at - inside as u64) / SECTOR as u64);
        rsext4::BlockIo::read(&mut device.clone(), &mut block, sector, (BLOCK / SECTOR) as u32).ok()?;
        Some(block.get(inside..inside + usize::try_from(len).ok()?)?.into())
    }
}

/// A number of `len` bytes, little-endian.
pub fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    Some(bytes.get(at..at + len)?.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}
