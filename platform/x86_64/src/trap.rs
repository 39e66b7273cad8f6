//! What an entry means: a call by one of the gates, a page to be brought, an interrupt, a guest's fault, or a fault of the kernel.

use core::sync::atomic::Ordering;

use janua_arch::x86_64::exception::{ERROR_FETCH, ERROR_STORE, PROTECTION};
use janua_arch::x86_64::frame::USER_SS;
use janua_arch::x86_64::usercopy;
use janua_entry::bare::{CALL_GATE, RETURNED, RETURNED_COMPAT, SYSCALL, SYSCALL_COMPAT, SYSENTER, SYSENTER_COMPAT};
use janua_paging::{Access, Refused};
use janua_port::guest::{Abi, Verdict};
use janua_port::trap::{Arithmetic, Cause, Exception, Refusal};
use janua_port::{Entry, Flow, Frame, Guest, Trap, UserMemory, space};

use crate::entry::{self, FIRST_INTERRUPT, PAGE_FAULT};
use crate::space::BareSpace;
use crate::thread::Thread;
use crate::user::{self, BareUser};
use crate::{apic, cpu, disk, fpu, machine, oom, report, sched, serial, shoot, tiles, unprotected, vdso};

/// How often a user copy waits for memory before it fails.
const MEMORY_LOOKS: u32 = 250;

/// The thread's life in user code: goes there with its frame, and does what the next entry asks for.
pub fn run_user(thread: &Thread, guest: &dyn Guest) -> Flow {
    let own = thread.own.get();
    // SAFETY: the running thread's own part; nothing else touches it while it runs.
    let save = unsafe { &mut (*own).save };
    if save.frame.rip as usize >= user::END + 4096 && !vdso::contains(save.frame.rip as usize) {
        // Ring 3 could not be reached with it: `iretq` would fault in ring 0. The address is canonical or not; user code
        // jumping there would have got the same.
        let canonical = save.frame.rip as i64 >> 47 == -1;
        let unmapped = Cause::Page { access: space::Access::Fetch, refusal: Refusal::Unmapped };
        let (cause, addr, vector) =
            if canonical { (unmapped, save.frame.rip as usize, PAGE_FAULT) } else { (Cause::Protection, 0, PROTECTION) };
        let exception = Exception { cause, addr, number: vector.into(), detail: 0 };
        return guest.trap(&mut save.frame, Trap::Exception(exception));
    }
    // An entry of the descriptor table that SS named may be gone: `iretq` would fault in ring 0. So it is the usual one for everybody, as
    // after a call by `sysretq`; and 32-bit code has a counter of 32 bits.
    save.frame.ss = USER_SS;
    if save.frame.is_compat_mode() {
        save.frame.rip &= u64::from(u32::MAX);
    }
    // SAFETY: the frame end of this thread is set, interrupts are off, and the frame holds user selectors and flags: entries
    // store them so, and the kernel changes flags by `Frame`'s methods only.
    let reason = unsafe { if unprotected::is_on() { unprotected::enter(save) } else { entry::enter_user(&raw mut *save) } };
    let frame = &mut save.frame;
    let verdict = Verdict::from_register(reason as u32);
    let entry = match reason & !(Verdict::BITS as usize) {
        RETURNED => return guest.returned(frame, Abi::Native, verdict),
        RETURNED_COMPAT => return guest.returned(frame, Abi::Compat, verdict),
        SYSCALL => Some(Entry::Syscall),
        SYSENTER => Some(Entry::Sysenter),
        SYSENTER_COMPAT => Some(Entry::SysenterCompat),
        SYSCALL_COMPAT => Some(Entry::SyscallCompat),
        CALL_GATE => Some(Entry::CallGate),
        _ => None,
    };
    if let Some(entry) = entry {
        // An image without the gate has no such call.
        return call(guest, &entry, frame).unwrap_or(Flow::Resume);
    }
    let number = reason as u8;
    let error = core::mem::replace(&mut frame.orig_rax, u64::MAX);
    match number {
        apic::TIMER => {
            apic::end();
            sched::preempt();
            Flow::Resume
        }
        apic::SERIAL | apic::DISK | apic::TILE => {
            serve(number);
            sched::preempt();
            Flow::Resume
        }
        apic::RESCHEDULE => {
            apic::end();
            sched::attend();
            Flow::Resume
        }
        apic::FORGET => {
            shoot::answer();
            apic::end();
            Flow::Resume
        }
        apic::SPURIOUS => Flow::Resume,
        PAGE_FAULT => page_fault(thread, guest, frame, error),
        _ => {
            let entry = Entry::Vector { number, error, addr: 0 };
            call(guest, &entry, frame).unwrap_or_else(|| exception(guest, frame, number, error))
        }
    }
}

/// An interrupt of a device, or of another tile.
fn serve(vector: u8) {
    match vector {
        apic::SERIAL => serial::on_interrupt(),
        apic::DISK => disk::on_interrupt(),
        _ => tiles::on_interrupt(),
    }
    apic::end();
}

/// Offers the entry to the gates.
fn call(guest: &dyn Guest, entry: &Entry, frame: &mut Frame) -> Option<Flow> {
    let user: &dyn UserMemory = &BareUser;
    for gate in machine::gates() {
        if let Some(abi) = gate.accept(entry, frame, user) {
            guest.set_gate(gate.id());
            return Some(guest.call(frame, abi));
        }
    }
    None
}

fn access(error: u64) -> Access {
    if error & ERROR_STORE != 0 {
        Access::Write
    } else if error & ERROR_FETCH != 0 {
        Access::Execute
    } else {
        Access::Read
    }
}

fn resolve(thread: &Thread, addr: usize, error: u64) -> Result<(), Refused> {
    let space = thread.space.lock().clone().ok_or(Refused::Unmapped)?;
    BareSpace::of(&space).fault(addr, access(error))
}

fn page_fault(thread: &Thread, guest: &dyn Guest, frame: &mut Frame, error: u64) -> Flow {
    let addr = cpu::fault_address();
    let refused = match resolve(thread, addr, error) {
        Ok(()) => {
            thread.faults.fetch_add(1, Ordering::Relaxed);
            return Flow::Resume;
        }
        Err(Refused::NoMemory) => {
            // The access is tried again, unless this is the one that has to go.
            oom::wait();
            return Flow::Resume;
        }
        Err(refused) => refused,
    };
    if let Some(flow) = call(guest, &Entry::Vector { number: PAGE_FAULT, error, addr }, frame) {
        return flow;
    }
    let refusal = match refused {
        Refused::Unmapped => Refusal::Unmapped,
        Refused::Denied => Refusal::Rights,
        Refused::BeyondEnd | Refused::NoMemory | Refused::Failed => Refusal::BeyondEnd,
    };
    let access = match access(error) {
        Access::Read => space::Access::Load,
        Access::Write => space::Access::Store,
        Access::Execute => space::Access::Fetch,
    };
    let cause = Cause::Page { access, refusal };
    guest.trap(frame, Trap::Exception(Exception { cause, addr, number: PAGE_FAULT.into(), detail: error }))
}

/// A guest's exception other than a page fault.
fn exception(guest: &dyn Guest, frame: &mut Frame, number: u8, error: u64) -> Flow {
    let here = frame.program_counter();
    let (cause, addr) = match number {
        0 => (Cause::Arithmetic(Arithmetic::Division), here),
        1 if cpu::take_debug_status() == 0 => (Cause::DebugTrap, here),
        1 => (Cause::Step, here),
        3 => (Cause::Breakpoint, 0),
        6 => (Cause::Illegal, here),
        11 | 12 => (Cause::Segment, 0),
        16 => {
            let (status, control) = fpu::x87();
            (Cause::Arithmetic(float(u32::from(status & !control))), here)
        }
        17 => (Cause::Alignment, 0),
        19 => {
            let mxcsr = fpu::mxcsr();
            (Cause::Arithmetic(float(mxcsr & !(mxcsr >> 7))), here)
        }
        _ => (Cause::Protection, 0),
    };
    guest.trap(frame, Trap::Exception(Exception { cause, addr, number: number.into(), detail: error }))
}

/// The lowest exception that is set and not masked; both units number them alike.
fn float(flags: u32) -> Arithmetic {
    match flags & 0x3f {
        flags if flags & 1 != 0 => Arithmetic::FloatInvalid,
        flags if flags & 4 != 0 => Arithmetic::FloatDivision,
        flags if flags & 8 != 0 => Arithmetic::FloatOverflow,
        flags if flags & 0x12 != 0 => Arithmetic::FloatUnderflow,
        _ => Arithmetic::FloatInexact,
    }
}

/// An entry from the kernel itself: an interrupt of the idle loop, or a user copy that faulted. Anything else is the end.
pub extern "C" fn kernel_trap(frame: &mut Frame, vector: u32) {
    match vector as u8 {
        apic::TIMER | apic::RESCHEDULE => {
            apic::end();
            // It may have come during an entry, where nothing else would set it again; the idle loop sets it as it needs it.
            apic::arm(Some(sched::slice().min(sched::SLICE)));
        }
        vector @ (apic::SERIAL | apic::DISK | apic::TILE) => serve(vector),
        apic::FORGET => {
            shoot::answer();
            apic::end();
        }
        apic::SPURIOUS => {}
        PAGE_FAULT if user_copy(frame) => {}
        vector if vector < FIRST_INTERRUPT => report::kernel_fault(frame, vector),
        vector => report::stop(format_args!("kernel fault: unexpected interrupt {vector:#x}")),
    }
}

/// Brings the page a user copy wants, or makes the copy end there. `false` when the fault is no user copy's.
fn user_copy(frame: &mut Frame) -> bool {
    let addr = cpu::fault_address();
    let place = frame.program_counter();
    // Copies have checked their range; an entry that looks at user memory only that it is in the lower half.
    let copy = usercopy::fixup(place);
    let Some(fixup) = copy.or_else(|| machine::gates().iter().find_map(|gate| gate.fixup(place))) else { return false };
    let checked = copy.is_some();
    if checked && !user::is_user(addr, 1) {
        return false;
    }
    let thread = sched::current();
    let mut refused = resolve(&thread, addr, frame.orig_rax);
    // The kernel may hold what somebody who is killed needs to end, so there is an end to the waiting.
    let mut looks = 0;
    while refused == Err(Refused::NoMemory)
        && looks < MEMORY_LOOKS
        && !thread.guest.as_ref().is_some_and(|guest| guest.has_work())
    {
        oom::wait();
        looks += 1;
        refused = resolve(&thread, addr, frame.orig_rax);
    }
    let grown = refused == Err(Refused::Unmapped) && thread.guest.as_ref().is_some_and(|guest| guest.hole_fault(addr));
    if refused.is_err() && !grown {
        frame.rip = fixup as u64;
    }
    true
}
