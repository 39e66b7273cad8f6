//! What exec does to credentials (execve(2), capabilities(7)).
//!
//! Set-user-ID and set-group-ID bits work inside the sandbox: what they give are the sandbox's own privileges, over its own
//! files and processes, never any of the host's. There are no file capabilities.

use janua_object::Cred;
use janua_object::vfs::Perm;
use janua_object::vfs::access::{S_ISGID, S_ISUID, S_IXGRP};

const SECBIT_NOROOT: u32 = 1;
const SECBIT_KEEP_CAPS: u32 = 1 << 4;

/// The credentials a program runs with, and whether it gained by them (AT_SECURE). `set_id` says whether the file's mount and
/// the caller allow its set-ID bits to count.
pub fn for_program(old: &Cred, file: &Perm, set_id: bool) -> (Cred, bool) {
    let mut new = old.clone();
    if set_id && !old.no_new_privs {
        if file.mode & S_ISUID != 0 {
            new.euid = file.uid;
        }
        if file.mode & (S_ISGID | S_IXGRP) == S_ISGID | S_IXGRP {
            new.egid = file.gid;
        }
    }
    new.suid = new.euid;
    new.fsuid = new.euid;
    new.sgid = new.egid;
    new.fsgid = new.egid;

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
    new.securebits &= !SECBIT_KEEP_CAPS;
    let secure = gained || old.uid != 0 && new.cap_effective & !new.cap_ambient != 0;
    (new, secure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn set_user_id() {
        let user = Cred::of_user(1000, 1000, Vec::new());
        let file = Perm { mode: 0o104755, uid: 0, gid: 0 };
        let (cred, secure) = for_program(&user, &file, true);
        assert!((cred.uid, cred.euid, cred.suid, secure) == (1000, 0, 0, true) && cred.capable(0));
        let (cred, secure) = for_program(&user, &file, false);
        assert!((cred.euid, secure, cred.cap_effective) == (1000, false, 0));
        let (cred, secure) = for_program(&Cred { no_new_privs: true, ..user }, &file, true);
        assert!((cred.euid, secure) == (1000, false));
    }

    #[test]
    fn root_stays_root() {
        let root = Cred::of_user(0, 0, Vec::new());
        let (cred, secure) = for_program(&root, &Perm { mode: 0o100755, uid: 0, gid: 0 }, true);
        assert!(!secure && cred == root);
        let dropped = Cred { euid: 5, ..root };
        let (cred, _) = for_program(&dropped, &Perm { mode: 0o100755, uid: 0, gid: 0 }, true);
        assert!((cred.suid, cred.cap_effective) == (5, 0) && cred.cap_permitted != 0);
    }
}
