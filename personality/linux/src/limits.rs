//! Resource limits (getrlimit(2)): the numbers, and who may change them.

use janua_abi::linux::process::{Rlimit, rlimit};
use janua_rt::Mutex;

/// Limits a program started from a shell usually finds.
const DEFAULTS: [Rlimit; rlimit::COUNT] = {
    const ALL: Rlimit = Rlimit { soft: rlimit::INFINITY, hard: rlimit::INFINITY };
    let mut limits = [ALL; rlimit::COUNT];
    limits[rlimit::STACK as usize] = Rlimit { soft: 8 << 20, hard: rlimit::INFINITY };
    limits[rlimit::CORE as usize] = Rlimit { soft: 0, hard: rlimit::INFINITY };
    limits[rlimit::NPROC as usize] = Rlimit { soft: 32768, hard: 32768 };
    limits[rlimit::NOFILE as usize] = Rlimit { soft: 1024, hard: 1 << 20 };
    limits[rlimit::MEMLOCK as usize] = Rlimit { soft: 8 << 20, hard: 8 << 20 };
    limits[rlimit::SIGPENDING as usize] = Rlimit { soft: 32768, hard: 32768 };
    limits[rlimit::MSGQUEUE as usize] = Rlimit { soft: 819_200, hard: 819_200 };
    limits[rlimit::NICE as usize] = Rlimit { soft: 0, hard: 0 };
    limits[rlimit::RTPRIO as usize] = Rlimit { soft: 0, hard: 0 };
    limits
};

/// The limits of a process.
pub struct Limits(Mutex<[Rlimit; rlimit::COUNT]>);

impl Default for Limits {
    fn default() -> Limits {
        Limits(Mutex::new(DEFAULTS))
    }
}

impl Limits {
    /// The given limits; the usual ones for those that are `None`.
    pub fn new(given: &[Option<Rlimit>; rlimit::COUNT]) -> Limits {
        let mut limits = DEFAULTS;
        for (limit, given) in limits.iter_mut().zip(given) {
            *limit = given.unwrap_or(*limit);
        }
        Limits(Mutex::new(limits))
    }

    /// A copy for fork.
    pub fn duplicate(&self) -> Limits {
        Limits(Mutex::new(*self.0.lock()))
    }

    /// Both limits of a resource; no limit for a number that is none.
    pub fn get(&self, resource: u32) -> Rlimit {
        const NONE: Rlimit = Rlimit { soft: rlimit::INFINITY, hard: rlimit::INFINITY };
        self.0.lock().get(resource as usize).copied().unwrap_or(NONE)
    }

    /// The limit in force.
    pub fn soft(&self, resource: u32) -> u64 {
        self.get(resource).soft
    }

    pub fn set(&self, resource: u32, limit: Rlimit) {
        if let Some(slot) = self.0.lock().get_mut(resource as usize) {
            *slot = limit;
        }
    }
}
