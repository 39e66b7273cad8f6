//! Hosted address spaces: the guest's mappings are mappings of its host process.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use janua_abi::linux::mman::{
    MADV_DOFORK, MADV_DONTFORK, MAP_ANONYMOUS, MAP_FIXED, MAP_NORESERVE, MAP_PRIVATE, MAP_SHARED, MREMAP_DONTUNMAP,
    MREMAP_FIXED, MREMAP_MAYMOVE,
};
use janua_abi::linux::{Errno, Result};
use janua_arch::x86_64::usercopy;
use janua_entry::hosted::entry;
use janua_entry::hosted::{self, KERNEL_BASE, KERNEL_END, LOW_PAGE, LOW_SIZE, USER_END};
use janua_port::PAGE;
use janua_port::jail::Ground;
use janua_port::space::Bounds;
use janua_port::{Backing, OwnedFd, Prot, Space};

use crate::area;
use crate::host::LinuxHost;
use crate::lock::Mutex;
use crate::signal;
use crate::sys::{self, Call, nr};
use crate::threads;
use crate::vdso;
use crate::{boot, descriptors, host};
use crate::{kept, spare, spawn};

/// Guests' memory starts behind the kernel's low page, which is the first that the host lets anybody map (vm.mmap_min_addr).
const LOWEST: usize = LOW_PAGE + LOW_SIZE;

const READ_ONLY: Prot = Prot { read: true, write: false, exec: false };
const READ_WRITE: Prot = Prot { read: true, write: true, exec: false };

/// The mappings of the calling thread's host process.
pub struct HostedSpace;

fn bounds() -> Bounds {
    // The kernel's vDSO and the host's are above everything a guest maps.
    // The page below the kernel stays empty, so that an access that starts in guest memory never ends in the kernel's.
    Bounds { low: LOWEST, high: vdso::ranges()[0].0, holes: [(KERNEL_BASE - PAGE, KERNEL_END), (0, 0)] }
}

/// The second wall behind the kernel's own checks: page aligned, not empty, the guest's.
fn check(addr: usize, len: usize) -> Result<()> {
    let fine = len > 0 && (addr | len) & (PAGE - 1) == 0 && bounds().contains(addr, len);
    if fine { Ok(()) } else { Err(Errno::EINVAL) }
}

fn bits(prot: Prot) -> usize {
    usize::from(prot.read) | usize::from(prot.write) << 1 | usize::from(prot.exec) << 2
}

/// A file of the kernel's without contents: every access to what is mapped of it raises SIGBUS.
fn nothing() -> Result<Arc<OwnedFd>> {
    static FILE: Mutex<Option<Arc<OwnedFd>>> = Mutex::new(None);
    let mut file = FILE.lock();
    match &*file {
        Some(made) => Ok(made.clone()),
        None => {
            let fd = descriptors::own(|| host::memfd("nothing"))?;
            Ok(file.insert(OwnedFd::new(&LinuxHost, fd)).clone())
        }
    }
}

fn call(call: Call, args: [usize; 6]) -> Result<usize> {
    // SAFETY: every caller has checked that the range is the guest's, which holds no Rust object.
    unsafe { sys::raw(call, args) }
}

/// Copies guest memory, which cannot be written to, up to the first page that cannot be read: it is beyond the file's end, or the host
/// could not fetch it. Returns the address of the copy, a mapping of just that length at a free place, and the length in bytes; no
/// mapping for none.
fn copy_readable(addr: usize, len: usize) -> Result<(usize, usize)> {
    /// It starts with so many bytes and is doubled as long as there is more: a short file may be mapped at any length.
    const FIRST: usize = 16 << 20;
    let mut size = len.min(FIRST);
    let flags = (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE) as usize;
    let mut copy = call(nr::MMAP, [0, size, bits(READ_WRITE), flags, usize::MAX, 0])?;
    let mut readable = 0;
    while readable < len {
        if readable == size {
            let larger = len.min(size * 2);
            match call(nr::MREMAP, [copy, size, larger, MREMAP_MAYMOVE as usize, 0, 0]) {
                Ok(moved) => (copy, size) = (moved, larger),
                Err(errno) => {
                    let _ = call(nr::MUNMAP, [copy, size, 0, 0, 0, 0]);
                    return Err(errno);
                }
            }
        }
        // SAFETY: the destination is a fresh mapping; the source is guest memory, and a fault there ends the copy.
        let left = unsafe { usercopy::usercopy_bytes((copy + readable) as *mut u8, (addr + readable) as *const u8, PAGE) };
        if left != 0 {
            break;
        }
        readable += PAGE;
    }
    if readable < size {
        call(nr::MUNMAP, [copy + readable, size - readable, 0, 0, 0, 0])?;
    }
    Ok((copy, readable))
}

impl Space for HostedSpace {
    fn map(&self, addr: usize, len: usize, prot: Prot, backing: &Backing) -> Result<()> {
        check(addr, len)?;
        let (flags, fd, offset) = match backing {
            Backing::Anon => (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, usize::MAX, 0),
            Backing::AnonShared => (MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, usize::MAX, 0),
            Backing::Object { object, offset, shared, .. } => {
                let fd = object.host_file().ok_or(Errno::ENODEV)?.fd();
                (if *shared { MAP_SHARED } else { MAP_PRIVATE | MAP_NORESERVE }, fd.0 as usize, *offset as usize)
            }
        };
        call(nr::MMAP, [addr, len, bits(prot), (flags | MAP_FIXED) as usize, fd, offset]).map(|_| ())
    }

    fn unmap(&self, addr: usize, len: usize) -> Result<()> {
        check(addr, len)?;
        call(nr::MUNMAP, [addr, len, 0, 0, 0, 0]).map(|_| ())
    }

    fn protect(&self, addr: usize, len: usize, prot: Prot) -> Result<()> {
        check(addr, len)?;
        call(nr::MPROTECT, [addr, len, bits(prot), 0, 0, 0]).map(|_| ())
    }

    fn remap(&self, old: usize, old_len: usize, new: usize, new_len: usize) -> Result<()> {
        check(new, new_len)?;
        check(old, if old_len > 0 { old_len } else { PAGE })?;
        let flags = if old == new { 0 } else { MREMAP_MAYMOVE | MREMAP_FIXED };
        call(nr::MREMAP, [old, old_len, new_len, flags as usize, new, 0]).map(|_| ())
    }

    fn remap_keep(&self, old: usize, len: usize, new: usize) -> Result<()> {
        check(old, len)?;
        check(new, len)?;
        call(nr::MREMAP, [old, len, len, (MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP) as usize, new, 0]).map(|_| ())
    }

    fn advise(&self, addr: usize, len: usize, advice: u32) -> Result<()> {
        check(addr, len)?;
        if advice == MADV_DONTFORK {
            ADVISED.store(true, Ordering::Relaxed);
        }
        call(nr::MADVISE, [addr, len, advice as usize, 0, 0, 0]).map(|_| ())
    }

    fn sync(&self, addr: usize, len: usize, flags: u32) -> Result<()> {
        check(addr, len)?;
        call(nr::MSYNC, [addr, len, flags as usize, 0, 0, 0]).map(|_| ())
    }

    fn resident(&self, addr: usize, len: usize, out: &mut [u8]) -> Result<()> {
        check(addr, len)?;
        if out.len() < len / PAGE {
            return Err(Errno::EINVAL);
        }
        call(nr::MINCORE, [addr, len, out.as_mut_ptr() as usize, 0, 0, 0]).map(|_| ())
    }

    fn reset(self: Arc<Self>, shared: bool) -> Result<Arc<dyn Space>> {
        if shared {
            hop()?;
        }
        drop_guest_memory()?;
        if shared { Ok(Arc::new(HostedSpace)) } else { Ok(self) }
    }

    fn bounds(&self) -> Bounds {
        bounds()
    }
}

impl Ground for HostedSpace {
    fn own(&self, addr: usize, len: usize) -> Result<()> {
        check(addr, len)?;
        // From here on the contents stay as they are, as far as this mapping goes.
        self.protect(addr, len, READ_ONLY)?;
        let (copy, readable) = copy_readable(addr, len)?;
        if readable > 0 {
            let moved = call(nr::MPROTECT, [copy, readable, bits(READ_ONLY), 0, 0, 0])
                .and_then(|_| call(nr::MREMAP, [copy, readable, readable, (MREMAP_MAYMOVE | MREMAP_FIXED) as usize, addr, 0]));
            if moved.is_err() {
                let _ = call(nr::MUNMAP, [copy, readable, 0, 0, 0, 0]);
            }
            moved?;
        }
        if readable < len {
            let backing = Backing::Object { object: nothing()?, offset: 0, shared: false, frozen: true };
            self.map(addr + readable, len - readable, READ_ONLY, &backing)?;
        }
        Ok(())
    }

    fn restore_entry(&self) -> usize {
        entry::hosted_restore as *const () as usize
    }
}

/// Unmaps all that the calling process' guests have mapped.
pub fn drop_guest_memory() -> Result<()> {
    let bounds = bounds();
    let above = boot::info().vdso_end as usize;
    let above = if above == 0 { vdso::ranges()[1].1 } else { above };
    for (start, end) in bounds.parts(bounds.low, bounds.high).into_iter().chain([(above, USER_END)]) {
        if end > start {
            call(nr::MUNMAP, [start, end - start, 0, 0, 0, 0])?;
        }
    }
    Ok(())
}

/// A guest has marked some memory as not for its children, so that nobody else may use that mark.
static ADVISED: AtomicBool = AtomicBool::new(false);

/// Keeps ranges of guest memory from the next process that is made, whose exec would only drop them, or gives them to it again: the
/// host copies no mappings and no page tables of theirs. Whether all could be marked.
fn mark(ranges: &[[usize; 2]], advice: u32) -> bool {
    // Where nothing is mapped there is nothing to mark (ENOMEM).
    ranges
        .iter()
        .all(|&[start, len]| matches!(call(nr::MADVISE, [start, len, advice as usize, 0, 0, 0]), Ok(_) | Err(Errno::ENOMEM)))
}

/// The ranges that are kept from the process about to be made; none when one of their mappings could not be given back.
fn keep_back() -> Vec<[usize; 2]> {
    let bounds = bounds();
    let parts = bounds.parts(bounds.low, bounds.high).into_iter().filter(|(start, end)| start < end);
    let ranges: Vec<[usize; 2]> = parts.map(|(start, end)| [start, end - start]).collect();
    if ADVISED.load(Ordering::Relaxed) || !mark(&ranges, MADV_DOFORK) {
        return Vec::new();
    }
    if !mark(&ranges, MADV_DONTFORK) {
        mark(&ranges, MADV_DOFORK);
        return Vec::new();
    }
    ranges
}

/// Moves the calling thread to a host process of its own, leaving the address space to those who share it. Nobody may fork it
/// meanwhile.
///
/// The child inherits the kernel's mappings and, where they cannot be kept back, the guest's, which exec drops at once. It goes on
/// on the same kernel stack: that is shared memory, and the old thread ends without touching it.
fn hop() -> Result<()> {
    let here = 0u8;
    let index = hosted::index_of(&raw const here as usize);
    let this = area::of(index);
    let old_pid = this.host_pid.swap(0, Ordering::Relaxed);
    // A signal to the old thread would be delivered on the stack the new one runs on.
    signal::set_mask(u64::MAX).inspect_err(|_| this.host_pid.store(old_pid, Ordering::Relaxed))?;
    hosted::leave(index);
    // The old thread's last call must not look at the selector, which is the new one's already.
    let disarmed = spawn::disarm();
    let kept = disarmed.is_ok() && kept::move_to_one(index);
    let hopped = if kept { Ok(()) } else { disarmed.and_then(|()| clone_process(this)) };
    match hopped {
        Ok(()) if kept => kept::arrived(index),
        Ok(()) => {
            area::set_space(index, None);
            spare::nothing_counted(this);
        }
        Err(_) => {
            this.host_pid.store(old_pid, Ordering::Relaxed);
            hosted::join(index);
        }
    }
    signal::set_mask(0)?;
    spawn::arm_again(index)?;
    hopped
}

/// The host call of [`hop`]: the child returns. The parent does only if there is none.
fn clone_process(this: &hosted::Shared) -> Result<()> {
    let kept = keep_back();
    let given = AtomicU32::new(0);
    let tid = (&raw const this.host_tid).cast_mut().cast();
    // SAFETY: the child goes on here with everything as it was; the parent does not come back, and is done with the list when it
    // sets the word.
    let hopped =
        Errno::from_raw(unsafe { threads::hosted_hop(spawn::HOP_FLAGS, tid, kept.as_ptr(), kept.len(), &raw const given) });
    if hopped.is_err() {
        mark(&kept, MADV_DOFORK);
    } else {
        while given.load(Ordering::Acquire) != 1 {
            let _ = given.compare_exchange(0, 2, Ordering::Relaxed, Ordering::Relaxed);
            spawn::park(&given, 2, None);
        }
    }
    hopped.map(|_| ())
}
