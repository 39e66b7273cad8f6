//! Who makes a call, as far as objects need to know.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;

use janua_abi::linux::capability::CAP_ALL;
use janua_port::user::NoMemory;
use janua_port::{Machine, UserMemory};

/// The credentials of a thread (credentials(7)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cred {
    pub uid: u32,
    pub gid: u32,
    pub euid: u32,
    pub egid: u32,
    pub suid: u32,
    pub sgid: u32,
    pub fsuid: u32,
    pub fsgid: u32,
    pub groups: Vec<u32>,
    /// Capability sets, one bit each (capabilities(7)).
    pub cap_effective: u64,
    pub cap_permitted: u64,
    pub cap_inheritable: u64,
    pub cap_bounding: u64,
    pub cap_ambient: u64,
    pub securebits: u32,
    pub no_new_privs: bool,
}

impl Cred {
    /// The user's own ids; all capabilities when that is root.
    pub fn of_user(uid: u32, gid: u32, groups: Vec<u32>) -> Cred {
        let caps = if uid == 0 { CAP_ALL } else { 0 };
        Cred {
            uid,
            gid,
            euid: uid,
            egid: gid,
            suid: uid,
            sgid: gid,
            fsuid: uid,
            fsgid: gid,
            groups,
            cap_effective: caps,
            cap_permitted: caps,
            cap_inheritable: 0,
            cap_bounding: CAP_ALL,
            cap_ambient: 0,
            securebits: 0,
            no_new_privs: false,
        }
    }

    /// Whether a capability (its number) is effective.
    pub fn capable(&self, capability: u32) -> bool {
        self.cap_effective & (1 << capability) != 0
    }

    /// Whether the file-system group or a supplementary one is `gid`.
    pub fn in_group(&self, gid: u32) -> bool {
        self.fsgid == gid || self.groups.contains(&gid)
    }
}

/// The calling thread, for operations whose outcome depends on it.
pub trait Caller: Sync {
    fn machine(&self) -> &'static dyn Machine;
    /// The thread as the personality has it, for the personality's own files; `None` for the kernel acting for itself.
    fn thread(&self) -> Option<&dyn Any> {
        None
    }
    fn user(&self) -> &dyn UserMemory;
    /// Whether the call it makes is one of the i386 ABI, to which structures with pointers in them have another layout.
    fn is_32(&self) -> bool {
        false
    }
    fn cred(&self) -> Arc<Cred>;
    /// Process (thread group) id.
    fn pid(&self) -> u32;
    fn tid(&self) -> u32;
    /// Process group and session ids.
    fn pgrp(&self) -> u32;
    fn session(&self) -> u32;
    /// Sends a signal to every process of a group; false when the group is empty.
    fn signal_group(&self, pgrp: u32, signal: u32) -> bool;
    /// Whether terminal job control does not stop the caller since it ignores or blocks `signal`.
    fn job_signal_ignored(&self, signal: u32) -> bool;
    /// Whether nobody would continue the caller's group if it stopped.
    fn is_group_orphaned(&self) -> bool {
        false
    }
    /// The session of a live process group, for TIOCSPGRP.
    fn session_of_group(&self, pgrp: u32) -> Option<u32>;
    /// The caller's controlling terminal, and its change for the whole session (session leaders only; the caller checks).
    fn terminal(&self) -> Option<Arc<dyn Any + Send + Sync>>;
    fn set_terminal(&self, terminal: Option<Arc<dyn Any + Send + Sync>>);
    /// Whether the caller leads its session.
    fn is_session_leader(&self) -> bool;
    /// Whether the calling thread is to end as soon as it can: what takes long gives up.
    fn is_killed(&self) -> bool {
        false
    }
    /// RLIMIT_* soft limit by number.
    fn limit(&self, resource: u32) -> u64;
}

/// The part of a [`Caller`] that is about its process, for one without.
macro_rules! no_process {
    () => {
        fn pid(&self) -> u32 {
            0
        }
        fn tid(&self) -> u32 {
            0
        }
        fn pgrp(&self) -> u32 {
            0
        }
        fn session(&self) -> u32 {
            0
        }
        fn signal_group(&self, _pgrp: u32, _signal: u32) -> bool {
            false
        }
        fn job_signal_ignored(&self, _signal: u32) -> bool {
            true
        }
        fn session_of_group(&self, _pgrp: u32) -> Option<u32> {
            None
        }
        fn terminal(&self) -> Option<Arc<dyn Any + Send + Sync>> {
            None
        }
        fn set_terminal(&self, _terminal: Option<Arc<dyn Any + Send + Sync>>) {}
        fn is_session_leader(&self) -> bool {
            false
        }
        fn limit(&self, _resource: u32) -> u64 {
            u64::MAX
        }
    };
}

/// The kernel acting for itself: it has no thread, and no memory of its own to be copied to.
pub struct Itself {
    machine: &'static dyn Machine,
    pub cred: Arc<Cred>,
}

impl Itself {
    /// As root with every capability.
    pub fn new(machine: &'static dyn Machine) -> Itself {
        Itself::with(machine, Cred::of_user(0, 0, Vec::new()))
    }

    /// With these rights.
    pub fn with(machine: &'static dyn Machine, cred: Cred) -> Itself {
        Itself { machine, cred: Arc::new(cred) }
    }
}

impl Caller for Itself {
    fn machine(&self) -> &'static dyn Machine {
        self.machine
    }
    fn user(&self) -> &dyn UserMemory {
        &NoMemory
    }
    fn cred(&self) -> Arc<Cred> {
        self.cred.clone()
    }
    no_process!();
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A caller on no machine, for files that ask nothing of it.
    pub struct Nobody;

    impl Caller for Nobody {
        fn machine(&self) -> &'static dyn Machine {
            unreachable!("there is none")
        }
        fn user(&self) -> &dyn UserMemory {
            &NoMemory
        }
        fn cred(&self) -> Arc<Cred> {
            Arc::new(Cred::of_user(65534, 65534, Vec::new()))
        }
        no_process!();
    }
}
