//! The caller's resource limits are the program's: the kernel keeps them inside. The sandbox itself needs more than a small limit
//! leaves, and takes what the host allows.

use std::sync::OnceLock;
use std::time::Duration;

use janua_abi::linux::process::Rlimit as Limit;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The exit code of a program that SIGKILL ended.
pub const KILLED: u8 = 137;

/// What the host counts for a process of the sandbox although it is the kernel's: its name for a shell, and what the kernel needs of
/// it in bytes (asked for and hardly used).
const NEEDS: [(Resource, &str, u64); 3] = [
    (Resource::Fsize, "the size of a file (ulimit -f)", 80 << 30),
    (Resource::As, "address space (ulimit -v)", 160 << 30),
    (Resource::Data, "data (ulimit -d)", 64 << 20),
];

/// Resource limits by Linux' number.
const LIMITS: [(usize, Resource); 16] = [
    (0, Resource::Cpu),
    (1, Resource::Fsize),
    (2, Resource::Data),
    (3, Resource::Stack),
    (4, Resource::Core),
    (5, Resource::Rss),
    (6, Resource::Nproc),
    (7, Resource::Nofile),
    (8, Resource::Memlock),
    (9, Resource::As),
    (10, Resource::Locks),
    (11, Resource::Sigpending),
    (12, Resource::Msgqueue),
    (13, Resource::Nice),
    (14, Resource::Rtprio),
    (15, Resource::Rttime),
];

/// The caller's limits as they were before [`raise`], by Linux' number.
pub fn own() -> [Option<Limit>; 16] {
    static OWN: OnceLock<[Option<Limit>; 16]> = OnceLock::new();
    *OWN.get_or_init(|| {
        let mut all = [None; 16];
        for (number, resource) in LIMITS {
            let limit = getrlimit(resource);
            all[number] = Some(Limit { soft: limit.current.unwrap_or(u64::MAX), hard: limit.maximum.unwrap_or(u64::MAX) });
        }
        all
    })
}

/// Takes what the host allows.
pub fn raise() {
    own();
    for resource in NEEDS.map(|(resource, ..)| resource).into_iter().chain([Resource::Cpu, Resource::Nofile]) {
        let old = getrlimit(resource);
        let all = Rlimit { current: None, maximum: None };
        // Descriptors have a limit of the host's own; without the right to raise a hard limit, what it leaves is taken.
        if resource == Resource::Nofile || setrlimit(resource, all).is_err() {
            let _ = setrlimit(resource, Rlimit { current: old.maximum, maximum: old.maximum });
        }
    }
}

/// Which limit is below what the kernel needs, in words.
pub fn too_low() -> Option<String> {
    let low = NEEDS.iter().find(|(resource, _, need)| getrlimit(*resource).current.is_some_and(|limit| limit < *need));
    low.map(|(_, name, need)| {
        format!(
            "your hard limit on {name} is too low for the kernel's own memory, which needs {} MiB of it, nearly all of it never touched\n       \
             set a soft limit (ulimit -S): that is the program's alone",
            need >> 20
        )
    })
}

/// Whether a host process that this signal ended has met the host's limit of processor time; `used` is what all of them have used.
pub fn is_time(signal: i32, used: Duration) -> bool {
    const SIGKILL: i32 = 9;
    const SIGXCPU: i32 = 24;
    let limit = getrlimit(Resource::Cpu).current;
    matches!(signal, SIGKILL | SIGXCPU) && limit.is_some_and(|limit| used >= Duration::from_secs(limit))
}
