//! What traps mean: those of user code, and the few of the kernel's own.

use core::sync::atomic::{AtomicU32, Ordering};

use janua_arch::sparc::switch::janua_flush_windows;
use janua_arch::sparc::window::BAD_STACK;
use janua_arch::sparc::{cpu, usercopy};
use janua_entry::leon3::{BAD_SEVENTH, SEVENTH, SUPERVISOR, VERDICT, WORK};
use janua_port::drive::PARKED;
use janua_port::gate::Way;
use janua_port::guest::{Abi, Verdict};
use janua_port::space::Access;
use janua_port::trap::{Arithmetic, Cause, Exception, Refusal};
use janua_port::{Carrier, Entry, Flow, Frame, Guest, Nanos, Next, Trap, UserMemory, drive};

use crate::thread::Thread;
use crate::user::Memory;
use crate::{clock, machine, report, sched};

/// Trap types (SPARC architecture manual, version 8, table 7-1).
mod kind {
    pub const INSTRUCTION_ACCESS: u32 = 0x01;
    pub const PRIVILEGED: u32 = 0x03;
    pub const NOT_ALIGNED: u32 = 0x07;
    pub const FP_EXCEPTION: u32 = 0x08;
    pub const DATA_ACCESS: u32 = 0x09;
    pub const TAG_OVERFLOW: u32 = 0x0a;
    pub const INTERRUPT: u32 = 0x10;
    pub const INTERRUPT_LAST: u32 = 0x1f;
    pub const DIVISION: u32 = 0x2a;
    pub const SOFTWARE: u32 = 0x80;
    pub const BREAKPOINT: u32 = 0x81;
    pub const DIVISION_SOFTWARE: u32 = 0x82;
    pub const FLUSH_WINDOWS: u32 = 0x83;
}

/// MMU registers: fault status and address.
const STATUS: u32 = 0x300;
const ADDRESS: u32 = 0x400;
/// In the fault status, the upper bit of the access type: a store.
const STATUS_STORE: u32 = 1 << 7;

/// A trap from user code. Returns when user code goes on, with the registers in the frame.
#[unsafe(no_mangle)]
extern "C" fn janua_trapped(frame: &mut Frame, kind: u32) {
    let thread = machine::running();
    let Some(guest) = thread.guest.as_deref() else {
        report::stop(format_args!("kernel fault: user code of a thread without any"))
    };
    let flow = trapped(guest, frame, kind);
    go_on(thread, guest, frame, flow);
}

/// The processor, as [`drive()`] has it.
struct Processor;

impl Carrier for Processor {
    fn enter_user(&mut self) {
        // A kick is a flag, set while this thread does not run: it is seen on entry to user code.
    }
    fn stay(&mut self) {}
    fn sleep(&mut self, word: &AtomicU32, deadline: Option<Nanos>) {
        sched::park(word, PARKED, deadline);
    }
}

/// Does what the flow demands until user code is to go on.
pub fn go_on(thread: &Thread, guest: &dyn Guest, frame: &mut Frame, flow: Flow) {
    if drive(&mut Processor, guest, frame, flow) == Next::End {
        sched::end();
    }
    frame.psr &= !SUPERVISOR;
    if !machine::is_protected() {
        frame.psr |= SUPERVISOR;
    }
    frame.g[7] = thread.tls.load(Ordering::Relaxed) as u32;
}

fn trapped(guest: &dyn Guest, frame: &mut Frame, kind: u32) -> Flow {
    match kind {
        kind::INTERRUPT..=kind::INTERRUPT_LAST => {
            interrupt(kind - kind::INTERRUPT);
            sched::preempt();
            return Flow::Resume;
        }
        kind::FLUSH_WINDOWS => {
            // SAFETY: changes no register of this window.
            unsafe { janua_flush_windows() };
            frame.skip();
            return Flow::Resume;
        }
        _ if kind & !VERDICT == WORK => return guest.returned(frame, Abi::Native, Verdict::from_register(kind)),
        _ => {}
    }
    if let Ok(number @ 0x80..) = u8::try_from(kind) {
        let user: &dyn UserMemory = &Memory;
        let entry = Entry::Vector { number, error: 0, addr: 0 };
        for gate in machine::gates() {
            if let Some(abi) = gate.accept(&entry, frame, user) {
                guest.set_gate(gate.id());
                return guest.call(frame, abi);
            }
        }
        if gates_take(number) {
            // A gate's own, and yet no call: its words cannot be read.
            return exception(guest, frame, BAD_SEVENTH);
        }
    }
    exception(guest, frame, kind)
}

fn gates_take(number: u8) -> bool {
    machine::gates().iter().any(|gate| gate.ways().contains(&Way::Interrupt(number)))
}

/// An exception of user code.
fn exception(guest: &dyn Guest, frame: &mut Frame, kind: u32) -> Flow {
    let here = frame.program_counter();
    // SAFETY: the kernel is the supervisor. Reading the status makes room for the next.
    let (address, status) = unsafe { (cpu::mmu_read(ADDRESS), cpu::mmu_read(STATUS)) };
    // The fault type: 1 is an entry that is not valid, others are rights.
    let refusal = if status >> 2 & 7 == 1 { Refusal::Unmapped } else { Refusal::Rights };
    let stored = if status & STATUS_STORE != 0 { Access::Store } else { Access::Load };
    let page = |access, refusal| Cause::Page { access, refusal };
    let (cause, addr) = match kind {
        kind::INSTRUCTION_ACCESS => (page(Access::Fetch, refusal), here),
        kind::DATA_ACCESS => (page(stored, refusal), address as usize),
        kind::PRIVILEGED => (Cause::Privileged, here),
        kind::NOT_ALIGNED => (Cause::Alignment, here),
        kind::FP_EXCEPTION => (Cause::Arithmetic(Arithmetic::FloatInvalid), here),
        kind::TAG_OVERFLOW => (Cause::Arithmetic(Arithmetic::Overflow), here),
        kind::DIVISION | kind::DIVISION_SOFTWARE => (Cause::Arithmetic(Arithmetic::Division), here),
        kind::BREAKPOINT => (Cause::Breakpoint, here),
        BAD_STACK => (page(Access::Store, Refusal::Rights), frame.stack_pointer()),
        BAD_SEVENTH => (page(Access::Load, Refusal::Rights), frame.stack_pointer().wrapping_add(SEVENTH)),
        kind::SOFTWARE.. => (Cause::Software, here),
        // A coprocessor there is none of among them, and an FPU that is off.
        _ => (Cause::Illegal, here),
    };
    guest.trap(frame, Trap::Exception(Exception { cause, addr, number: kind, detail: status.into() }))
}

fn interrupt(level: u32) {
    if level == clock::LEVEL {
        clock::heard();
    } else {
        report::stop(format_args!("kernel fault: unexpected interrupt {level}"));
    }
}

/// A trap from the kernel itself: an interrupt of the idle loop, or a copy of user memory that faulted. Anything else is the end.
#[unsafe(no_mangle)]
extern "C" fn janua_kernel_trap(frame: &mut Frame, kind: u32) {
    match kind {
        kind::INTERRUPT..=kind::INTERRUPT_LAST => interrupt(kind - kind::INTERRUPT),
        kind::DATA_ACCESS | kind::NOT_ALIGNED => {
            let pc = frame.program_counter();
            let Some(fixup) = usercopy::fixup(pc).or_else(|| machine::gates().iter().find_map(|gate| gate.fixup(pc))) else {
                report::kernel_fault(frame, kind)
            };
            // SAFETY: the kernel is the supervisor. Reading the status makes room for the next.
            unsafe { cpu::mmu_read(STATUS) };
            frame.pc = fixup as u32;
            frame.npc = frame.pc + 4;
        }
        _ => report::kernel_fault(frame, kind),
    }
}
