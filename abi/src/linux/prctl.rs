//! Options of prctl(2): PR_*, and codes of arch_prctl(2). Source: linux/prctl.h, asm/prctl.h.

pub const SET_PDEATHSIG: u32 = 1;
pub const GET_PDEATHSIG: u32 = 2;
pub const GET_DUMPABLE: u32 = 3;
pub const SET_DUMPABLE: u32 = 4;
pub const GET_KEEPCAPS: u32 = 7;
pub const SET_KEEPCAPS: u32 = 8;
pub const GET_TIMING: u32 = 13;
pub const SET_TIMING: u32 = 14;
pub const SET_NAME: u32 = 15;
pub const GET_NAME: u32 = 16;
pub const GET_SECCOMP: u32 = 21;
pub const SET_SECCOMP: u32 = 22;
pub const CAPBSET_READ: u32 = 23;
pub const CAPBSET_DROP: u32 = 24;
pub const GET_TSC: u32 = 25;
pub const SET_TSC: u32 = 26;
pub const GET_SECUREBITS: u32 = 27;
pub const SET_SECUREBITS: u32 = 28;
pub const SET_TIMERSLACK: u32 = 29;
pub const GET_TIMERSLACK: u32 = 30;
pub const TASK_PERF_EVENTS_DISABLE: u32 = 31;
pub const TASK_PERF_EVENTS_ENABLE: u32 = 32;
pub const MCE_KILL: u32 = 33;
pub const MCE_KILL_GET: u32 = 34;
pub const SET_MM: u32 = 35;
pub const SET_CHILD_SUBREAPER: u32 = 36;
pub const GET_CHILD_SUBREAPER: u32 = 37;
pub const SET_NO_NEW_PRIVS: u32 = 38;
pub const GET_NO_NEW_PRIVS: u32 = 39;
pub const GET_TID_ADDRESS: u32 = 40;
pub const SET_THP_DISABLE: u32 = 41;
pub const GET_THP_DISABLE: u32 = 42;
pub const CAP_AMBIENT: u32 = 47;
pub const GET_SPECULATION_CTRL: u32 = 52;
pub const SET_SPECULATION_CTRL: u32 = 53;
pub const SET_IO_FLUSHER: u32 = 57;
pub const GET_IO_FLUSHER: u32 = 58;
pub const SET_SYSCALL_USER_DISPATCH: u32 = 59;
pub const SET_MDWE: u32 = 65;
pub const GET_MDWE: u32 = 66;
pub const SET_MEMORY_MERGE: u32 = 67;
pub const GET_MEMORY_MERGE: u32 = 68;
pub const GET_AUXV: u32 = 0x4155_5856;
pub const SET_VMA: u32 = 0x5356_4d41;

/// What SET_SYSCALL_USER_DISPATCH switches to.
pub const SYS_DISPATCH_OFF: usize = 0;
pub const SYS_DISPATCH_ON: usize = 1;

/// PR_MCE_KILL: what is done, and the policies there are.
pub mod mce {
    pub const CLEAR: usize = 0;
    pub const SET: usize = 1;
    pub const LATE: u32 = 0;
    pub const EARLY: u32 = 1;
    pub const DEFAULT: u32 = 2;
}

/// What SET_MDWE sets: no memory becomes executable that was not, and no child or later program inherits that.
pub const MDWE_REFUSE_EXEC_GAIN: u32 = 1;
pub const MDWE_NO_INHERIT: u32 = 2;

/// Kinds of speculation and what holds for one (linux/prctl.h, PR_SPEC_*).
pub mod spec {
    pub const STORE_BYPASS: usize = 0;
    pub const INDIRECT_BRANCH: usize = 1;
    pub const L1D_FLUSH: usize = 2;
    pub const ENABLE: usize = 1 << 1;
    pub const DISABLE: usize = 1 << 2;
    pub const FORCE_DISABLE: usize = 1 << 3;
}

/// arch_prctl(2): ARCH_*.
pub mod arch {
    pub const SET_GS: u32 = 0x1001;
    pub const SET_FS: u32 = 0x1002;
    pub const GET_FS: u32 = 0x1003;
    pub const GET_GS: u32 = 0x1004;
    pub const GET_CPUID: u32 = 0x1011;
    pub const SET_CPUID: u32 = 0x1012;
}
