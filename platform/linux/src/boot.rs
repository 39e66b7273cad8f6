//! What the supervisor has left for the kernel, and the words they share afterwards.

use alloc::format;
use alloc::string::String;

use janua_abi::linux::Errno;
use janua_entry::hosted::{CONFIG_BASE, CONTROL_BASE};
use janua_platform_boot::NO_PROCESSES;
pub use janua_platform_boot::{BootInfo, CONFIG_MOST, Control, Jail, MAGIC, NO_STATUS};
use janua_port::Accounts;

/// The jail of this sandbox.
pub fn jail() -> Jail {
    let known = [Jail::Pkey, Jail::Process].into_iter().find(|jail| info().jail == *jail as u32);
    known.unwrap_or(Jail::None)
}

/// The boot information of this sandbox.
pub fn info() -> &'static BootInfo {
    // SAFETY: the supervisor has mapped the control region for reading and writing and filled it before any kernel code runs;
    // it stays for the sandbox's life, and what changes in it is atomic.
    unsafe { &*(CONTROL_BASE as *const BootInfo) }
}

/// What guests may have and what they have.
pub fn accounts() -> &'static Accounts {
    &info().control.accounts
}

/// The encoded configuration.
pub fn config() -> &'static [u8] {
    let len = (info().config_len as usize).min(CONFIG_MOST);
    // SAFETY: within the control region (bounded on the line before), written before any kernel code runs.
    unsafe { core::slice::from_raw_parts(CONFIG_BASE as *const u8, len) }
}

/// What an error of the host's at the start means, for a person: the kernel has some processes and threads of its own.
pub fn refusal(errno: Errno) -> String {
    match errno {
        Errno::EAGAIN => NO_PROCESSES.into(),
        errno => format!("{errno:?}"),
    }
}
