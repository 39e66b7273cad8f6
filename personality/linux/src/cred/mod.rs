//! Credentials (credentials(7), capabilities(7)): who a thread is inside the sandbox. They decide over the sandbox's own
//! processes and files and never reach the host.
//!
//! Credentials are the thread's own, as in Linux; a change replaces them whole, so that others read one consistent value.

pub mod capability;
pub mod ids;

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

pub use janua_abi::linux::capability::{CAP_ALL, CAP_LAST, CAP_SETGID, CAP_SETPCAP, CAP_SETUID};
use janua_object::Cred;

use crate::Thread;
use crate::thread::ThreadExt;
use crate::user::ThreadCharge;

/// `securebits` (capabilities(7)); each has a lock one bit higher.
pub const SECBIT_NO_SETUID_FIXUP: u32 = 1 << 2;
pub const SECBIT_KEEP_CAPS: u32 = 1 << 4;
pub const SECBIT_NO_CAP_AMBIENT_RAISE: u32 = 1 << 6;

/// Puts new credentials in force for the calling thread.
pub fn commit(thread: &Thread, new: Cred) {
    let old = thread.cred();
    let raised = new.cap_permitted & !old.cap_permitted != 0;
    if old.euid != new.euid || old.egid != new.egid || old.fsuid != new.fsuid || old.fsgid != new.fsgid || raised {
        // What the process has seen under its old identity is not the new one's to read.
        thread.process().settings.dumpable.store(0, Ordering::Relaxed);
        thread.death_signal.store(0, Ordering::Relaxed);
    }
    if old.uid != new.uid {
        let charge = ThreadCharge::new(thread.kernel.users.of(new.uid));
        *thread.charge.lock() = charge;
    }
    *thread.cred.write() = Arc::new(new);
}

/// CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_FSETID, CAP_LINUX_IMMUTABLE, CAP_MKNOD, CAP_MAC_OVERRIDE:
/// what follows the file-system user id.
const FS_CAPS: u64 = 0x1f | 1 << 9 | 1 << 27 | 1 << 32;

/// What a change of user ids does to capabilities (capabilities(7), "Effect of user ID changes on capabilities").
pub fn fix_capabilities(old: &Cred, new: &mut Cred) {
    if new.securebits & SECBIT_NO_SETUID_FIXUP != 0 {
        return;
    }
    let had_root = old.uid == 0 || old.euid == 0 || old.suid == 0;
    let has_root = new.uid == 0 || new.euid == 0 || new.suid == 0;
    if had_root && !has_root {
        if new.securebits & SECBIT_KEEP_CAPS == 0 {
            new.cap_permitted = 0;
            new.cap_effective = 0;
        }
        new.cap_ambient = 0;
    }
    if old.euid == 0 && new.euid != 0 {
        new.cap_effective = 0;
    }
    if old.euid != 0 && new.euid == 0 {
        new.cap_effective = new.cap_permitted;
    }
    if old.fsuid == 0 && new.fsuid != 0 {
        new.cap_effective &= !FS_CAPS;
    }
    if old.fsuid != 0 && new.fsuid == 0 {
        new.cap_effective |= new.cap_permitted & FS_CAPS;
    }
}
