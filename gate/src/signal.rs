//! Gate `signal`: user code queues a signal to itself (rt_tgsigqueueinfo(2)), as OctoPOS' guest layer on Linux has it.
//!
//! The signal's value points at a record of seven words, the number and six arguments. The thread's host ids wait in its core's
//! record, so a call costs one host call; the way back is the kernel's own, without rt_sigreturn.
//!
//! The host's filter lets user code make this host call (and getpid(2) and gettid(2), for comparison with a guest layer that asks
//! each time) and traps every other. A signal could end any process of the same user, so each process of the sandbox adds a filter
//! of its own that lets it aim at itself only. A jump to one of the kernel's own `syscall` instructions is caught by Syscall User
//! Dispatch, which lets calls pass from where user code can lie.

use janua_abi::invasive::record::door;
use janua_abi::linux::Result;
use janua_arch::x86_64::hosted::{KERNEL_BASE, QUEUED, SELECTOR_BLOCK};
use janua_port::gate::Outside;
use janua_port::guest::Abi;
use janua_port::{Frame, HostSignal, HostedGate, UserMemory};

use crate::call::Call;
use crate::sud::{self, Sud};

/// `si_code` of rt_tgsigqueueinfo(2) as the library calls it.
const SI_QUEUE: i32 = -1;
/// Words of a record.
const WORDS: usize = 7;
/// The number of a call whose record cannot be read: no table has it.
const UNREADABLE: u64 = u64::MAX - 1;

/// The gate.
pub struct Signal;

impl HostedGate for Signal {
    fn id(&self) -> u8 {
        4
    }

    fn name(&self) -> &'static str {
        "signal"
    }

    fn queued(&self) -> Option<u32> {
        Some(QUEUED)
    }

    fn arm_sandbox(&self) -> Result<()> {
        Ok(())
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

    fn door(&self, _keyed: bool, pid: u32, tid: u32) -> (usize, [usize; 3]) {
        (door::SIGNAL, [pid as usize, tid as usize, QUEUED as usize])
    }

    fn selector_value(&self) -> u8 {
        SELECTOR_BLOCK
    }

    fn accept(&self, signal: &HostSignal, frame: &mut Frame, user: &dyn UserMemory) -> Option<Abi> {
        if signal.signal != QUEUED || signal.code != SI_QUEUE {
            return None;
        }
        let mut record = [0u8; WORDS * 8];
        match user.copy_in(&mut record, signal.value()) {
            Ok(()) => {
                let word = |at: usize| u64::from_ne_bytes(record[at * 8..at * 8 + 8].try_into().unwrap_or_default());
                frame.orig_rax = word(0);
                (frame.rdi, frame.rsi, frame.rdx) = (word(1), word(2), word(3));
                (frame.r10, frame.r8, frame.r9) = (word(4), word(5), word(6));
            }
            Err(_) => frame.orig_rax = UNREADABLE,
        }
        frame.call_leaves_flags();
        Some(Abi::Native)
    }
}

/// One instruction of a classic BPF program.
#[repr(C)]
#[derive(Clone, Copy)]
struct Filter {
    code: u16,
    jt: u8,
    jf: u8,
    k: u32,
}

/// `struct sock_fprog`.
#[repr(C)]
struct Program {
    len: u16,
    filter: *const Filter,
}

/// Lets rt_tgsigqueueinfo(2) aim at the process `pid` only, for the calling process and threads it will start.
fn own_signals_only(pid: u32) -> Result<()> {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const TRAP: u32 = 0x0003_0000;
    const RT_TGSIGQUEUEINFO: u32 = 297;
    const SECCOMP: usize = 317;
    const SET_MODE_FILTER: usize = 1;
    /// Offsets in `struct seccomp_data`: the number, the lower half of the first argument.
    const NUMBER: u32 = 0;
    const FIRST: u32 = 16;
    let op = |code, jt, jf, k| Filter { code, jt, jf, k };
    let filter = [
        op(LOAD_WORD, 0, 0, NUMBER),
        op(JUMP_EQUAL, 0, 2, RT_TGSIGQUEUEINFO),
        op(LOAD_WORD, 0, 0, FIRST),
        op(JUMP_EQUAL, 0, 1, pid),
        op(RETURN, 0, 0, ALLOW),
        op(RETURN, 0, 0, TRAP),
    ];
    let program = Program { len: filter.len() as u16, filter: filter.as_ptr() };
    crate::host(SECCOMP, SET_MODE_FILTER, 0, &raw const program as usize, 0, 0).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use janua_port::Fault;

    struct Memory([u8; 56]);

    impl UserMemory for Memory {
        fn is_user(&self, _: usize, _: usize) -> bool {
            true
        }
        fn copy_in(&self, dst: &mut [u8], src: usize) -> core::result::Result<(), Fault> {
            if src != 0x1_2345_6780 {
                return Err(Fault);
            }
            dst.copy_from_slice(&self.0[..dst.len()]);
            Ok(())
        }
        fn copy_out(&self, _: usize, _: &[u8]) -> core::result::Result<(), Fault> {
            Err(Fault)
        }
        fn copy_in_partial(&self, _: &mut [u8], _: usize) -> usize {
            0
        }
        fn copy_out_partial(&self, _: usize, _: &[u8]) -> usize {
            0
        }
        fn zero(&self, _: usize, _: usize) -> core::result::Result<(), Fault> {
            Err(Fault)
        }
        fn copy_str(&self, _: &mut [u8], _: usize) -> core::result::Result<Option<usize>, Fault> {
            Err(Fault)
        }
        fn load_u32(&self, _: usize) -> core::result::Result<u32, Fault> {
            Err(Fault)
        }
        fn cmpxchg_u32(&self, _: usize, _: u32, _: u32) -> core::result::Result<u32, Fault> {
            Err(Fault)
        }
    }

    #[test]
    fn a_record_becomes_a_frame() {
        let mut bytes = [0; 56];
        for (at, word) in bytes.chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&(at as u64 + 5).to_ne_bytes());
        }
        let signal = |code, value: u64| HostSignal { signal: QUEUED, code, number: value as i32, arch: (value >> 32) as u32 };
        let memory = Memory(bytes);
        let mut frame = Frame::default();
        assert_eq!(Signal.accept(&signal(SI_QUEUE, 0x1_2345_6780), &mut frame, &memory), Some(Abi::Native));
        assert_eq!((frame.number(), frame.args()), (5, [6, 7, 8, 9, 10, 11]));
        assert!(Signal.accept(&signal(0, 0x1_2345_6780), &mut frame, &memory).is_none());
        assert!(Signal.accept(&signal(SI_QUEUE, 8), &mut frame, &memory).is_some());
        assert_eq!(frame.number(), UNREADABLE as usize);
    }
}
