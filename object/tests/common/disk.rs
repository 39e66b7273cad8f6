//! A disk in memory for the tests of file systems: cut off, broken, or slow.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use janua_abi::linux::{Errno, Result};
use janua_port::BlockDevice;
use janua_port::block::SECTOR;

// What `janua boot` makes disks with.
#[path = "../../../cli/src/boot/format.rs"]
mod format;

/// Bytes of the pieces a disk's contents are kept in.
pub const PIECE: usize = 4096;

/// What is on a disk: pieces that are not zero. Copies share them.
#[derive(Clone)]
pub struct Contents {
    pub size: usize,
    pub pieces: BTreeMap<usize, Arc<[u8]>>,
}

impl Contents {
    pub fn empty(size: usize) -> Contents {
        Contents { size, pieces: BTreeMap::new() }
    }

    pub fn of(bytes: &[u8]) -> Contents {
        let mut contents = Contents::empty(bytes.len());
        contents.write(0, bytes);
        contents
    }

    fn read(&self, at: usize, out: &mut [u8]) {
        for (turn, out) in out.chunks_mut(SECTOR).enumerate() {
            let at = at + turn * SECTOR;
            match self.pieces.get(&(at / PIECE)) {
                Some(piece) => out.copy_from_slice(&piece[at % PIECE..][..out.len()]),
                None => out.fill(0),
            }
        }
    }

    /// Writes anywhere, in any length.
    fn write(&mut self, at: usize, data: &[u8]) {
        let mut done = 0;
        while done < data.len() {
            let (number, inside) = ((at + done) / PIECE, (at + done) % PIECE);
            let len = (PIECE - inside).min(data.len() - done);
            let part = &data[done..done + len];
            if self.pieces.contains_key(&number) || part.iter().any(|byte| *byte != 0) {
                let piece = self.pieces.entry(number).or_insert_with(|| Arc::from([0; PIECE]));
                Arc::make_mut(piece)[inside..inside + len].copy_from_slice(part);
            }
            done += len;
        }
    }

    /// Flips bits of a byte.
    pub fn spoil(&mut self, at: usize, bits: u8) {
        let mut sector = [0; SECTOR];
        self.read(at / SECTOR * SECTOR, &mut sector);
        sector[at % SECTOR] ^= bits;
        self.write(at / SECTOR * SECTOR, &sector);
    }

    pub fn cut_off(mut self, size: usize) -> Contents {
        self.size = size;
        self
    }
}

/// A disk in memory. What is written is on stable storage after a flush.
pub struct Disk {
    now: Mutex<Contents>,
    /// What a power cut leaves for sure, and the writes since.
    stable: Mutex<Contents>,
    pub log: Mutex<Vec<(usize, Vec<u8>)>>,
    pub broken: AtomicBool,
    pub flushes: AtomicUsize,
    /// Bytes written.
    pub written: AtomicUsize,
    slow: Mutex<Slow>,
    changed: Condvar,
}

/// A place the disk takes long to read, or to write.
#[derive(Default)]
struct Slow {
    /// Bytes of the disk; none.
    place: std::ops::Range<usize>,
    /// Whether it is writes of it that take long, not reads.
    writes: bool,
    /// Those wait until this is over, and then fail.
    closed: bool,
    fails: bool,
    /// Those that have begun.
    asked: usize,
}

impl Disk {
    /// From now on reads of a piece wait.
    pub fn close(&self, piece: usize) {
        *self.slow.lock().unwrap() = Slow { place: piece * PIECE..(piece + 1) * PIECE, closed: true, ..Slow::default() };
    }

    /// From now on writes of a piece wait.
    pub fn close_to_writes(&self, piece: usize) {
        self.close(piece);
        self.slow.lock().unwrap().writes = true;
    }

    /// Who waits goes on, and fails if it is so.
    pub fn release(&self, fails: bool) {
        let mut slow = self.slow.lock().unwrap();
        (slow.closed, slow.fails) = (false, fails);
        self.changed.notify_all();
    }

    /// Accesses to the slow place that have begun, once there are `least`.
    pub fn asked(&self, least: usize) -> usize {
        let slow = self.changed.wait_while(self.slow.lock().unwrap(), |slow| slow.asked < least).unwrap();
        slow.asked
    }

    fn be_slow(&self, at: usize, len: usize, writes: bool) -> Result<()> {
        let mut slow = self.slow.lock().unwrap();
        if at >= slow.place.end || at + len <= slow.place.start || slow.writes != writes {
            return Ok(());
        }
        slow.asked += 1;
        self.changed.notify_all();
        let slow = self.changed.wait_while(slow, |slow| slow.closed).unwrap();
        if slow.fails { Err(Errno::EIO) } else { Ok(()) }
    }

    pub fn of(contents: Contents) -> &'static Disk {
        Box::leak(Box::new(Disk {
            stable: Mutex::new(contents.clone()),
            now: Mutex::new(contents),
            log: Mutex::default(),
            broken: AtomicBool::new(false),
            flushes: AtomicUsize::new(0),
            written: AtomicUsize::new(0),
            slow: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    /// A formatted one.
    pub fn new(size: usize) -> &'static Disk {
        struct Fixed;
        impl rsext4::Clock for Fixed {
            fn now(&self) -> rsext4::Ext4Result<rsext4::Ext4Timestamp> {
                Ok(rsext4::Ext4Timestamp::new(1_700_000_000, 0))
            }
        }
        struct Raw(Contents);
        impl rsext4::BlockIo for Raw {
            fn write(&mut self, buffer: &[u8], sector: rsext4::SectorId, count: u32) -> rsext4::Ext4Result<()> {
                self.0.write(sector.raw() as usize * SECTOR, &buffer[..count as usize * SECTOR]);
                Ok(())
            }
            fn read(&mut self, buffer: &mut [u8], sector: rsext4::SectorId, count: u32) -> rsext4::Ext4Result<()> {
                self.0.read(sector.raw() as usize * SECTOR, &mut buffer[..count as usize * SECTOR]);
                Ok(())
            }
            fn geometry(&self) -> rsext4::DeviceGeometry {
                rsext4::DeviceGeometry::new(SECTOR as u32, (self.0.size / SECTOR) as u64)
            }
            fn capabilities(&self) -> rsext4::DeviceCapabilities {
                rsext4::DeviceCapabilities { flush: true, ..Default::default() }
            }
            fn flush(&mut self) -> rsext4::Ext4Result<()> {
                Ok(())
            }
        }
        let raw = format::format(Raw(Contents::empty(size)), Fixed).expect("a new file system");
        Disk::of(raw.0)
    }

    pub fn image(&self) -> Contents {
        self.now.lock().unwrap().clone()
    }

    /// What a power cut may leave: of the writes since the last flush those that `keep` selects.
    pub fn cut(&self, keep: impl Fn(usize) -> bool) -> Contents {
        let mut contents = self.stable.lock().unwrap().clone();
        for (turn, (at, data)) in self.log.lock().unwrap().iter().enumerate() {
            if keep(turn) {
                contents.write(*at, data);
            }
        }
        contents
    }

    /// Where a range begins. EIO when the device is broken, EINVAL beyond its end.
    fn check(&self, sector: u64, len: usize) -> Result<usize> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(Errno::EIO);
        }
        let at = sector as usize * SECTOR;
        if at + len > self.now.lock().unwrap().size { Err(Errno::EINVAL) } else { Ok(at) }
    }
}

impl BlockDevice for Disk {
    fn name(&self) -> &str {
        "test"
    }
    fn sectors(&self) -> u64 {
        (self.now.lock().unwrap().size / SECTOR) as u64
    }
    fn read_only(&self) -> bool {
        false
    }
    fn read(&self, sector: u64, out: &mut [u8]) -> Result<()> {
        let at = self.check(sector, out.len())?;
        self.be_slow(at, out.len(), false)?;
        self.now.lock().unwrap().read(at, out);
        Ok(())
    }
    fn write(&self, sector: u64, data: &[u8]) -> Result<()> {
        let at = self.check(sector, data.len())?;
        self.be_slow(at, data.len(), true)?;
        self.now.lock().unwrap().write(at, data);
        self.written.fetch_add(data.len(), Ordering::Relaxed);
        self.log.lock().unwrap().push((at, data.to_vec()));
        Ok(())
    }
    fn flush(&self) -> Result<()> {
        self.check(0, 0)?;
        let mut stable = self.stable.lock().unwrap();
        for (at, data) in self.log.lock().unwrap().drain(..) {
            stable.write(at, &data);
        }
        self.flushes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
