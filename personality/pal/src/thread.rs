//! Calls on threads.

use janua_abi::linux::process::clone as flags;
use janua_abi::linux::signal::{SIGCONT, si};
use janua_abi::linux::{Errno, signal as numbers};
use janua_abi::pal::{Error, segment};
use janua_kernel::UserPtr;
use janua_kernel::table::Fd;
use janua_kernel::wait::Cut;
use janua_personality_linux::mm::check_base;
use janua_personality_linux::signal::send::send_thread;
use janua_personality_linux::task::clone::{CloneFlags, clone};
use janua_personality_linux::task::exit;
use janua_personality_linux::task::pidfd::PidFd;
use janua_personality_linux::thread::ThreadExt;
use janua_personality_linux::{Thread, sched};

use crate::answer::{Reply, reply};
use crate::{handle, state};

/// What threads of a picoprocess share.
const SHARED: u64 = flags::VM | flags::FS | flags::FILES | flags::SIGHAND | flags::THREAD | flags::SYSVSEM;

/// DkThreadCreate: a thread that goes on behind the call, on another stack and with 0 as the result. Its number is returned, its handle stored at `out`,
/// and at its end the word at `alive` becomes 0, when nothing is on its stack any more.
pub async fn create(thread: &Thread, stack: usize, out: UserPtr<u32>, alive: UserPtr<u32>) -> Reply {
    Reply::of(
        async {
            state::of(thread)?;
            let how = SHARED | flags::PIDFD | flags::CHILD_CLEARTID;
            Ok(clone(thread, CloneFlags(how), stack, out, alive, 0).await? as usize)
        }
        .await,
    )
}

/// DkThreadDelayExecution: the microseconds that have passed.
pub async fn delay(thread: &Thread, micros: u64) -> Reply {
    Reply::of(
        async {
            state::of(thread)?;
            let clock = thread.machine().clock();
            let began = clock.monotonic();
            let until = began.saturating_add(micros.saturating_mul(1000));
            let (Ok(()) | Err(Cut::Interrupted | Cut::TimedOut)) = thread.sleep_until(until).await;
            Ok(((clock.monotonic() - began) / 1000) as usize)
        }
        .await,
    )
}

/// DkThreadYieldExecution.
pub fn yields(thread: &Thread) -> Reply {
    reply(|| {
        state::of(thread)?;
        sched::sched_yield(thread);
        Ok(0)
    })
}

/// DkThreadExit.
pub fn exit(thread: &Thread) -> Reply {
    reply(|| {
        state::of(thread)?;
        exit::exit(thread, 0);
        Ok(0)
    })
}

/// DkThreadResume: the thread's wait or sleep ends, and it gets the event.
pub fn resume(thread: &Thread, fd: Fd) -> Reply {
    reply(|| {
        state::of(thread)?;
        let target = handle::with(thread, fd, PidFd::target)?.map_err(|_| Error::Denied)?.ok_or(Error::Denied)?;
        let info = numbers::SigInfo::by_process(SIGCONT, si::TKILL, thread.process().pid, thread.cred().uid);
        send_thread(&target, info).map_err(|_| Errno::EAGAIN)?;
        Ok(0)
    })
}

/// DkSegmentRegister, and 2014's DkThreadPrivate: sets a base, or with 0 returns it.
pub fn segment_register(thread: &Thread, register: u32, addr: usize) -> Reply {
    reply(|| {
        state::of(thread)?;
        let registers = thread.registers()?;
        match (register, addr) {
            (segment::FS, 0) => return Ok(registers.tls()),
            (segment::GS, 0) => return Ok(registers.gs()),
            (segment::FS, addr) => registers.set_tls(check_base(thread, addr)?),
            (segment::GS, addr) => registers.set_gs(check_base(thread, addr)?),
            _ => return Err(Error::Invalid.into()),
        }
        Ok(addr)
    })
}
