//! Devices by number: what opening a device node leads to.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

pub use janua_abi::linux::stat::device::{major, minor, number};
use janua_abi::linux::{Errno, Result};
use janua_rt::RwLock;

use crate::caller::Caller;
use crate::file::File;
use crate::vfs::inode::FileKind;
use crate::vfs::path::Path;

/// A driver.
pub trait Device: Send + Sync {
    /// Opens minor `minor` through the node at `path`; `flags` as open(2).
    fn open(&self, caller: &dyn Caller, path: &Path, minor: u32, flags: u32) -> Result<Arc<dyn File>>;
}

/// Drivers by kind and number.
#[derive(Default)]
pub struct DeviceTable {
    /// By (block, major, minor); a driver of a whole major has minor `None`.
    drivers: RwLock<BTreeMap<(bool, u32, Option<u32>), Arc<dyn Device>>>,
}

impl DeviceTable {
    /// Enters a driver for one minor number, or for all of a major that have none of their own.
    pub fn register(&self, kind: FileKind, major: u32, minor: Option<u32>, device: Arc<dyn Device>) {
        self.drivers.write().insert((kind == FileKind::BlockDevice, major, minor), device);
    }

    /// Opens the device a node stands for. ENXIO without a driver.
    pub fn open(&self, caller: &dyn Caller, path: &Path, rdev: u64, flags: u32) -> Result<Arc<dyn File>> {
        let block = path.inode().kind() == FileKind::BlockDevice;
        let (major, minor) = (major(rdev), minor(rdev));
        let driver = {
            let drivers = self.drivers.read();
            drivers.get(&(block, major, Some(minor))).or_else(|| drivers.get(&(block, major, None))).cloned()
        };
        driver.ok_or(Errno::ENXIO)?.open(caller, path, minor, flags)
    }
}
