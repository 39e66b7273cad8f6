//! Gate `signal`: user code sends a signal to itself, as OctoPOS' guest layer on Linux has it.
//!
//! The thread's host ids wait in its core's record, so a call costs one host call (tgkill(2)). The host leaves the registers as
//! they were for a handler: the number and six arguments are in those that tgkill does not use
//! (`gate/src/signal/entry.rs:hosted_queued_entry`). The return is the kernel's own, without rt_sigreturn.
//!
//! The signal carries nothing, so the host need not queue it: without room in the queue it marks the signal as pending and that
//! is all. Faults, which carry an address, get their place whatever the limit is.
//!
//! The host's filter lets user code make this host call (and getpid(2) and gettid(2), for comparison with a guest layer that asks
//! each time) and traps every other. A signal could end any process of the same user, so each process of the sandbox adds a filter
//! of its own that lets it aim at itself only. A jump to one of the kernel's own `syscall` instructions is caught by Syscall User
//! Dispatch, which lets calls pass from where user code can be.

use janua_abi::invasive::record;
use janua_abi::linux::Result;
use janua_abi::linux::net::{SockFilter, SockProgram, bpf};
use janua_abi::linux::seccomp::{data, verdict};
use janua_entry::hosted::{KERNEL_BASE, QUEUED, SELECTOR_BLOCK};
use janua_port::gate::Outside;
use janua_port::guest::Abi;
use janua_port::{Frame, GateId, HostSignal, HostedGate, UserMemory};

use crate::call::Call;
use crate::sud::{self, Sud};

mod entry;

/// The gate.
pub struct Signal;

impl HostedGate for Signal {
    fn id(&self) -> GateId {
        GateId::Signal
    }

    fn queued(&self) -> Option<u32> {
        Some(QUEUED)
    }

    fn queued_entry(&self, keyed: bool) -> Option<usize> {
        Some(entry::address(keyed))
    }

    fn arm_sandbox(&self) -> Result<()> {
        const SETRLIMIT: usize = 160;
        const RLIMIT_SIGPENDING: usize = 11;
        let none = [0u64; 2];
        crate::host(SETRLIMIT, RLIMIT_SIGPENDING, none.as_ptr() as usize, 0, 0, 0).map(|_| ())
    }

    fn arm_process(&self, pid: u32) -> Result<()> {
        own_signals_only(pid)
    }

    fn outside(&self) -> Outside {
        Outside::Trap
    }

    fn arm_thread(&self, selector: *mut u8) -> Result<()> {
        sud::arm(selector, 0..KERNEL_BASE)
    }

    fn disarm_thread(&self) -> Result<()> {
        Sud.disarm_thread()
    }

    /// For configurations without a gate, which need a kernel without a jail.
    fn call_entry(&self, keyed: bool) -> Option<usize> {
        if keyed { None } else { Call.call_entry(false) }
    }

    fn is_call_store(&self, pc: usize) -> bool {
        Call.is_call_store(pc)
    }

    fn entry_descriptor(&self, _keyed: bool, pid: u32, tid: u32) -> (usize, [usize; 3]) {
        (record::entry::SIGNAL, [pid as usize, tid as usize, QUEUED as usize])
    }

    fn selector_value(&self) -> u8 {
        SELECTOR_BLOCK
    }

    /// None: its signal has an entry of its own.
    fn accept(&self, _signal: &HostSignal, _frame: &mut Frame, _user: &dyn UserMemory) -> Option<Abi> {
        None
    }
}

/// Lets tgkill(2) aim the gate's signal at the process `pid` only, for the calling process and threads it will start. The kernel
/// sends other processes another one, and the platform's filter sees to it that user code does not.
fn own_signals_only(pid: u32) -> Result<()> {
    const LOAD_WORD: u16 = bpf::LD | bpf::ABS;
    const JUMP_EQUAL: u16 = bpf::JMP | bpf::JEQ;
    const TGKILL: u32 = 234;
    const SECCOMP: usize = 317;
    const SET_MODE_FILTER: usize = 1;
    /// tgkill's first and third argument.
    const PROCESS: u32 = data::ARGS;
    const SIGNAL: u32 = data::ARGS + 2 * 8;
    let op = |code, jt, jf, k| SockFilter { code, jt, jf, k };
    let filter = [
        op(LOAD_WORD, 0, 0, data::NUMBER),
        op(JUMP_EQUAL, 0, 4, TGKILL),
        op(LOAD_WORD, 0, 0, SIGNAL),
        op(JUMP_EQUAL, 0, 2, QUEUED),
        op(LOAD_WORD, 0, 0, PROCESS),
        op(JUMP_EQUAL, 0, 1, pid),
        op(bpf::RET, 0, 0, verdict::ALLOW),
        op(bpf::RET, 0, 0, verdict::TRAP),
    ];
    let program = SockProgram { len: filter.len() as u16, filter: filter.as_ptr() };
    crate::host(SECCOMP, SET_MODE_FILTER, 0, &raw const program as usize, 0, 0).map(|_| ())
}
