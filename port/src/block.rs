//! Disks.

use janua_abi::linux::Result;

/// Bytes of a sector: the unit of addresses and lengths.
pub const SECTOR: usize = 512;

/// A disk. Every method may put the calling thread to sleep until the device has responded; several threads may call at once.
///
/// A write that has returned is seen by every later read, and is on stable storage only after a [`BlockDevice::flush`] that
/// began later. What the device refuses or loses is EIO.
pub trait BlockDevice: Send + Sync {
    /// What the disk is called in /dev: "vda".
    fn name(&self) -> &str;
    /// Its size in sectors.
    fn sectors(&self) -> u64;
    /// Whether it refuses to be written (EROFS).
    fn read_only(&self) -> bool;
    /// Fills `out` from `sector` on. EINVAL unless that is whole sectors of the disk.
    fn read(&self, sector: u64, out: &mut [u8]) -> Result<()>;
    /// Writes `data` at `sector`. EINVAL unless that is whole sectors of the disk.
    fn write(&self, sector: u64, data: &[u8]) -> Result<()>;
    /// Everything written so far is on stable storage when this returns.
    fn flush(&self) -> Result<()>;
}
