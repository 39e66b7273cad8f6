//! The caller's resource limits are the program's: the kernel keeps them inside. The sandbox itself needs more than a small limit
//! leaves, and takes what the host allows.

use std::sync::OnceLock;
use std::time::Duration;

use janua_abi::linux::process::Rlimit as Limit;
use janua_abi::linux::signal;
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

/// Descriptors with which a shell and what it starts can run.
const DESCRIPTORS: u64 = 64;

/// Bytes of stack that this command needs, and those it takes where the host allows them. No more: with a stack without limit the
/// host would lay out the kernel's processes another way.
const STACK: (u64, u64) = (256 << 10, 8 << 20);

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

/// Takes the stack that this command needs, at its start. An error means that the host does not allow it.
pub fn stack() -> Result<(), String> {
    let (need, enough) = STACK;
    own();
    let old = getrlimit(Resource::Stack);
    let lowest = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
    if lowest(old.current) < enough {
        let most = Some(enough.max(lowest(old.maximum))).filter(|most| *most != u64::MAX);
        if setrlimit(Resource::Stack, Rlimit { current: Some(enough), maximum: most }).is_err() {
            let _ = setrlimit(Resource::Stack, Rlimit { current: old.maximum, maximum: old.maximum });
        }
    }
    if getrlimit(Resource::Stack).current.is_some_and(|limit| limit < need) {
        return Err(format!(
            "your hard limit on the stack (ulimit -s) is too low for this command, which needs {} KiB\n       \
             set a soft limit (ulimit -S): that is the program's alone",
            need >> 10
        ));
    }
    Ok(())
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
    if let Some(limit) = getrlimit(Resource::Nofile).current.filter(|limit| *limit < DESCRIPTORS) {
        return Some(format!(
            "your hard limit on open files (ulimit -n) is {limit}: the kernel needs at least {DESCRIPTORS}\n       \
             set a soft limit (ulimit -S): that is the program's alone"
        ));
    }
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
    const SIGKILL: i32 = signal::SIGKILL as i32;
    const SIGXCPU: i32 = signal::SIGXCPU as i32;
    let limit = getrlimit(Resource::Cpu).current;
    // The host holds a limit against whole ticks, and reports afterwards what was really used: on a busy machine a good deal less.
    matches!(signal, SIGKILL | SIGXCPU) && limit.is_some_and(|limit| used * 2 >= Duration::from_secs(limit))
}
