//! Numbers and structures of ptrace(2).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Requests.
pub mod request {
    pub const TRACEME: u32 = 0;
    pub const PEEKTEXT: u32 = 1;
    pub const PEEKDATA: u32 = 2;
    pub const PEEKUSER: u32 = 3;
    pub const POKETEXT: u32 = 4;
    pub const POKEDATA: u32 = 5;
    pub const POKEUSER: u32 = 6;
    pub const CONT: u32 = 7;
    pub const KILL: u32 = 8;
    pub const SINGLESTEP: u32 = 9;
    pub const SET_THREAD_AREA: u32 = 26;
    pub const SYSEMU: u32 = 31;
    pub const SYSEMU_SINGLESTEP: u32 = 32;
    pub const GETREGS: u32 = 12;
    pub const SETREGS: u32 = 13;
    pub const GETFPREGS: u32 = 14;
    pub const SETFPREGS: u32 = 15;
    pub const ATTACH: u32 = 16;
    pub const DETACH: u32 = 17;
    pub const OLDSETOPTIONS: u32 = 21;
    pub const SYSCALL: u32 = 24;
    pub const SETOPTIONS: u32 = 0x4200;
    pub const GETEVENTMSG: u32 = 0x4201;
    pub const GETSIGINFO: u32 = 0x4202;
    pub const SETSIGINFO: u32 = 0x4203;
    pub const GETREGSET: u32 = 0x4204;
    pub const SETREGSET: u32 = 0x4205;
    pub const SEIZE: u32 = 0x4206;
    pub const INTERRUPT: u32 = 0x4207;
    pub const LISTEN: u32 = 0x4208;
    pub const PEEKSIGINFO: u32 = 0x4209;
    pub const GETSIGMASK: u32 = 0x420a;
    pub const SETSIGMASK: u32 = 0x420b;
    pub const GET_SYSCALL_INFO: u32 = 0x420e;
}

/// PTRACE_O_* options.
pub mod option {
    pub const TRACESYSGOOD: u32 = 1;
    pub const TRACEEXIT: u32 = 1 << super::event::EXIT;
    pub const EXITKILL: u32 = 1 << 20;
    /// All but those for filters of calls, which guests have none of.
    pub const KNOWN: u32 = 0x7f | EXITKILL;
}

/// PTRACE_EVENT_* numbers; the option that asks for one has the bit of this number.
pub mod event {
    pub const FORK: u32 = 1;
    pub const VFORK: u32 = 2;
    pub const CLONE: u32 = 3;
    pub const EXEC: u32 = 4;
    pub const VFORK_DONE: u32 = 5;
    pub const EXIT: u32 = 6;
    pub const STOP: u32 = 128;
}

/// What PTRACE_GETEVENTMSG returns at a stop before a call, and after one.
pub const EVENTMSG_SYSCALL_ENTRY: u64 = 1;
pub const EVENTMSG_SYSCALL_EXIT: u64 = 2;

/// Register sets (elf.h).
pub const NT_PRSTATUS: usize = 1;
pub const NT_PRFPREG: usize = 2;
pub const NT_X86_XSTATE: usize = 0x202;

/// AUDIT_ARCH_* of the two ABIs.
pub const ARCH_X86_64: u32 = 0xc000_003e;
pub const ARCH_I386: u32 = 0x4000_0003;

/// Words in `struct user_regs_struct`, which `struct user` starts with.
pub const USER_REGS: usize = 27;
/// Bytes of `struct user` as the kernel has it, and where in it the debug registers are.
pub const USER_SIZE: usize = 928;
pub const USER_DEBUG: core::ops::Range<usize> = 848..912;

/// `struct ptrace_syscall_info`; how much of `words` counts depends on `op`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct SyscallInfo {
    /// 0 none, 1 before a call, 2 after one.
    pub op: u8,
    pub pad: [u8; 3],
    pub arch: u32,
    pub instruction_pointer: u64,
    pub stack_pointer: u64,
    /// Before a call its number and arguments; after one the result, and in the next byte whether it is an error.
    pub words: [u64; 7],
}

/// Bytes of [`SyscallInfo`] that count, by `op`.
pub const SYSCALL_INFO_SIZES: [usize; 3] = [24, 80, 33];

/// `struct ptrace_peeksiginfo_args`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct PeekSigInfoArgs {
    pub off: u64,
    pub flags: u32,
    pub nr: i32,
}
