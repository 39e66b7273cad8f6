//! What the linux platform's supervisor leaves for the kernel, and the words they share afterwards: all that the supervisor needs of
//! the kernel's side.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod channel;

use core::sync::atomic::{AtomicU32, AtomicU64};

use janua_arch::x86_64::vdso;
use janua_entry::hosted::{CONFIG_BASE, CONTROL_BASE, CONTROL_SIZE, INFO_SIZE};
use janua_port::Accounts;

/// Proof that supervisor and image belong together: changes with the size of [`BootInfo`], and by hand where that stays.
pub const MAGIC: u64 = 0x4a61_6e75_6100_0008 | (size_of::<BootInfo>() as u64) << 8;

/// What is said when the host refuses to start a process or thread (EAGAIN), on either side.
pub const NO_PROCESSES: &str = "the host lets you have no more processes and threads (ulimit -u): end some, or raise the limit; a sandbox has some of its own";

/// What keeps guests out of the kernel's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jail {
    /// Nothing.
    None = 0,
    /// Protection keys: kernel memory has a key that is closed while user code runs.
    Pkey = 1,
    /// The kernel has a process of its own, and traces those of guests.
    Process = 2,
}

/// At [`CONTROL_BASE`], written by the supervisor before the kernel starts.
#[repr(C)]
pub struct BootInfo {
    pub magic: u64,
    /// Which gate (its number).
    pub gate: u32,
    /// Which jail: the number of a [`Jail`].
    pub jail: u32,
    /// 1 when guests use the host's network, otherwise the second wall leaves no socket call.
    pub host_network: u32,
    /// 1 when guests may change files of the host, otherwise the second wall leaves no call that changes a directory or attributes.
    pub host_writes: u32,
    /// A descriptor: the kernel's end of the channel to the supervisor ([`channel`]).
    pub channel: i32,
    /// A descriptor of the host's /proc.
    pub proc: i32,
    /// 1 when the numbers of processes there are those the sandbox's see.
    pub proc_same_numbers: u32,
    /// The errno that one host call returns on purpose (0: none does), and which of those that could: see `janua_platform_linux::faults`.
    pub fault: u32,
    pub fault_at: u64,
    /// The host's AT_HWCAP and AT_HWCAP2. From the host, not from `cpuid`, which is an exit under a hypervisor and does not know
    /// what the host has switched on.
    pub hwcap: [u64; 2],
    /// The host's vDSO with its data pages, kept mapped in every guest: start and end; 0 when there is none.
    pub vdso_start: u64,
    pub vdso_end: u64,
    /// The functions of the host's vDSO.
    pub vdso: vdso::Data,
    /// Bytes of the kernel's image that each process of the sandbox has resident from its start: the host counts them as the guest's.
    pub image_resident: u64,
    /// Start and end of the huge pages that each process may put in place of the kernel's text, which is pages of the command's file at
    /// first; zeroes where there is nothing to be replaced.
    pub text: [u64; 2],
    /// Start and end of those pages of the file, and the bytes that are in memory of them from the start.
    pub text_mapped: [u64; 2],
    pub text_resident: u64,
    /// How many tiles there are, and which this is. Those beyond one share links ([`janua_entry::hosted::link`]).
    pub tiles: u32,
    pub tile: u32,
    /// The configuration of the personality, encoded: bytes that follow this structure.
    pub config_len: u64,
    pub control: Control,
}

/// Words both sides read and write while the sandbox runs.
#[repr(C)]
pub struct Control {
    /// Set by the kernel, last thing: 0 running, 1 ended with `exit_code`.
    pub ended: AtomicU32,
    pub exit_code: AtomicU32,
    /// Set by the kernel when the first program stopped: the signal; the supervisor puts 0 back.
    pub stopped: AtomicU32,
    /// Set by the supervisor: bit n-1 is host signal n, for the foreground group of the terminal.
    pub signals: AtomicU64,
    /// Woken by the supervisor when it has set `signals`, and by timers: the service thread parks on it.
    pub service: AtomicU32,
    /// How many calls have been made that could return `fault`.
    pub faults: AtomicU64,
    /// Set by the kernel when the first program has ended: its wait status; [`NO_STATUS`] before.
    pub status: AtomicU32,
    /// What guests may have and what they have. The supervisor sets the limits, the kernel counts.
    pub accounts: Accounts,
}

/// [`Control::status`] of a sandbox whose first program has not ended.
pub const NO_STATUS: u32 = u32::MAX;

/// The host's table of descriptors has at most so many, whatever its own limit.
pub const DESCRIPTORS_MOST: usize = 1 << 20;

/// The encoded configuration may be this long.
pub const CONFIG_MOST: usize = CONTROL_BASE + CONTROL_SIZE - CONFIG_BASE;
const _: () = assert!(size_of::<BootInfo>() <= INFO_SIZE);
