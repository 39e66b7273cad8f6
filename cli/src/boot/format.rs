//! New file systems.

use rsext4::checksum::ext4_update_superblock_checksum;
use rsext4::endian::DiskFormat;
use rsext4::superblock::Ext4Superblock;
use rsext4::{BlockIo, Clock, Ext4Error, Ext4Result, MkfsOptions, SUPERBLOCK_OFFSET, SUPERBLOCK_SIZE, SectorId};

/// Makes a file system that fills the device, with a journal and nothing in it; files may be larger than 2 GiB. Gives the device
/// back.
pub fn format<D: BlockIo>(device: D, clock: impl Clock + Send + 'static) -> Ext4Result<D> {
    let mut device = rsext4::format(device, clock, MkfsOptions::default())?;
    // The crate neither allows large files from the start nor when the first one comes.
    let sector = u64::from(device.geometry().logical_block_size);
    let (first, count) = (SUPERBLOCK_OFFSET / sector, (SUPERBLOCK_SIZE as u64).div_ceil(sector));
    if !SUPERBLOCK_OFFSET.is_multiple_of(sector) {
        return Err(Ext4Error::unsupported().with_operation("format:sector_size"));
    }
    let mut bytes = vec![0; (count * sector) as usize];
    device.read(&mut bytes, SectorId::new(first), count as u32)?;
    let mut superblock = Ext4Superblock::from_disk_bytes(&bytes[..SUPERBLOCK_SIZE]);
    superblock.s_feature_ro_compat |= Ext4Superblock::EXT4_FEATURE_RO_COMPAT_LARGE_FILE;
    ext4_update_superblock_checksum(&mut superblock);
    superblock.to_disk_bytes(&mut bytes[..SUPERBLOCK_SIZE]);
    device.write(&bytes, SectorId::new(first), count as u32)?;
    device.flush()?;
    Ok(device)
}
