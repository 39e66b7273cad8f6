//! What exec does to credentials (execve(2), capabilities(7)).
//!
//! Set-user-ID and set-group-ID bits work inside the sandbox: what they give are the sandbox's own privileges, over its own
//! files and processes, never any of the host's. There are no file capabilities.

use janua_abi::linux::capability::CAP_SETUID;
use janua_object::Cred;
use janua_object::vfs::Perm;
use janua_object::vfs::access::{S_ISGID, S_ISUID, S_IXGRP};

use crate::cred::SECBIT_KEEP_CAPS;

const SECBIT_NOROOT: u32 = 1;

/// What a program runs with.
#[derive(Debug)]
pub struct Rights {
    pub cred: Cred,
    /// It has gained by running (AT_SECURE).
    pub secure: bool,
    /// The set-ID bits of its file counted, whether they changed anything or not.
    pub set_id: bool,
    /// Those who may look into the caller, and what the caller has arranged for itself, may not reach the program: its ids are
    /// others than the caller's, or it has more capabilities.
    pub differs: bool,
}

/// The rights of a program. `set_id` is whether the file's mount allows its set-ID bits to count, `shared` whether another process
/// shares the caller's root, directory and umask (CLONE_FS): without CAP_SETUID, nothing is gained then.
pub fn for_program(old: &Cred, file: &Perm, set_id: bool, shared: bool) -> Rights {
    let mut new = old.clone();
    let mut counted = false;
    if set_id && !old.no_new_privs {
        if file.mode & S_ISUID != 0 {
            new.euid = file.uid;
            counted = true;
        }
        if file.mode & (S_ISGID | S_IXGRP) == S_ISGID | S_IXGRP {
            new.egid = file.gid;
            counted = true;
        }
    }

    let gained = new.euid != old.uid || new.egid != old.gid;
    if gained {
        new.cap_ambient = 0;
    }
    let root_counts = new.securebits & SECBIT_NOROOT == 0;
    new.cap_permitted = new.cap_ambient;
    new.cap_effective = new.cap_ambient;
    if root_counts && (new.euid == 0 || new.uid == 0) {
        new.cap_permitted = new.cap_inheritable | new.cap_bounding;
        if new.euid == 0 {
            new.cap_effective = new.cap_permitted;
        }
    }
    let changed = new.euid != old.euid || new.egid != old.egid;
    let grown = new.cap_permitted & !old.cap_permitted != 0;
    if shared && (changed || grown) {
        if !old.capable(CAP_SETUID) {
            new.euid = old.euid;
            new.egid = old.egid;
        }
        new.cap_permitted &= old.cap_permitted;
        new.cap_effective &= new.cap_permitted;
    }
    new.suid = new.euid;
    new.fsuid = new.euid;
    new.sgid = new.egid;
    new.fsgid = new.egid;
    new.securebits &= !SECBIT_KEEP_CAPS;
    let secure = gained || old.uid != 0 && new.cap_effective & !new.cap_ambient != 0;
    let ids = |cred: &Cred| [cred.euid, cred.egid, cred.fsuid, cred.fsgid];
    let differs = ids(&new) != ids(old) || new.cap_permitted & !old.cap_permitted != 0;
    Rights { cred: new, secure, set_id: counted, differs }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use janua_object::vfs::FileFlags;

    const SET_UID: Perm = Perm { mode: 0o104755, uid: 0, gid: 0, flags: FileFlags::empty() };
    const PLAIN: Perm = Perm { mode: 0o100755, uid: 0, gid: 0, flags: FileFlags::empty() };

    #[test]
    fn set_user_id() {
        let user = Cred::of_user(1000, 1000, Vec::new());
        let Rights { cred, secure, set_id, differs } = for_program(&user, &SET_UID, true, false);
        assert!((cred.uid, cred.euid, cred.suid, secure) == (1000, 0, 0, true) && cred.capable(0));
        assert!(set_id && differs);
        let Rights { cred, secure, set_id, differs } = for_program(&user, &SET_UID, false, false);
        assert!((cred.euid, secure, cred.cap_effective, set_id, differs) == (1000, false, 0, false, false));
        let Rights { cred, secure, .. } = for_program(&Cred { no_new_privs: true, ..user }, &SET_UID, true, false);
        assert!((cred.euid, secure) == (1000, false));
    }

    #[test]
    fn shared_root_and_directory() {
        let user = Cred::of_user(1000, 1000, Vec::new());
        let Rights { cred, secure, .. } = for_program(&user, &SET_UID, true, true);
        assert!(
            (cred.euid, cred.suid, cred.fsuid, cred.cap_permitted, cred.cap_effective) == (1000, 1000, 1000, 0, 0) && secure
        );
        let root = Cred::of_user(0, 0, Vec::new());
        let Rights { cred, .. } = for_program(&root, &Perm { uid: 5, ..SET_UID }, true, true);
        assert!((cred.euid, cred.cap_effective) == (5, 0));
    }

    #[test]
    fn root_stays_root() {
        let root = Cred::of_user(0, 0, Vec::new());
        let Rights { cred, secure, differs, .. } = for_program(&root, &PLAIN, true, false);
        assert!(!secure && !differs && cred == root);
        let dropped = Cred { euid: 5, ..root };
        let Rights { cred, .. } = for_program(&dropped, &PLAIN, true, false);
        assert!((cred.suid, cred.cap_effective) == (5, 0) && cred.cap_permitted != 0);
    }
}
