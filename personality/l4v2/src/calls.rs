//! The calls that do not wait.

use janua_abi::l4v2::KEEP;
use janua_abi::l4v2::fpage::Fpage;
use janua_abi::l4v2::id::{Id, ROOT_TASK, SIGMA0_TASK, TASKS, THREADS};
use janua_abi::l4v2::{PAGE, USER_END};
use janua_kernel::thread::work;
use janua_port::{Frame, Nanos};

use crate::Thread;
use crate::memory::{Progress, Unmap};
use crate::registers::{Registers, set_partner, set_second};
use crate::state::{Key, Phase, State, Tcb};
use crate::system::ThreadExt;
use crate::tasks::{First, end_task, make_task, make_thread};

/// What calls return that refuse.
const REFUSED: isize = u32::MAX as isize;

/// Goes back to user code only with the turn.
fn look(thread: &Thread, state: &State) {
    if !state.has_turn(thread.key) {
        thread.set_work(work::LOOK);
    }
}

/// `id_nearest`: the thread's own name, its chief's, or whom a message to a thread would go to: that thread, as no chief is between two threads here.
pub fn id_nearest(thread: &Thread, frame: &mut Frame) -> isize {
    const SAME_CLAN: isize = 0;
    const OUTER: isize = 0x04;
    const INNER: isize = 0x0c;
    let wanted = Registers::of(frame).partner();
    let state = thread.state();
    let Some(own) = state.get(thread.key).map(|tcb| tcb.id) else { return 0 };
    let (id, answer) = if wanted.is_nil() {
        (own, SAME_CLAN)
    } else if wanted.is_invalid() {
        (state.tasks.get(&own.chief()).map_or(Id::NIL, |chief| chief.id), SAME_CLAN)
    } else {
        let (task, chief) = (wanted.task(), state.chief(wanted.task()));
        let same = task == own.task() || chief == own.chief() || task == own.chief();
        (
            wanted,
            if same {
                SAME_CLAN
            } else if chief == own.task() {
                INNER
            } else {
                OUTER
            },
        )
    };
    set_partner(frame, id);
    answer
}

/// `fpage_unmap`.
pub async fn fpage_unmap(thread: &Thread) -> isize {
    const FLUSH: u32 = 2;
    const OWN: u32 = 1 << 31;
    let registers = Registers::of(&thread.frame());
    if let Some(range) = Fpage(registers.eax).range() {
        let page = |addr: u64| u32::try_from(addr.min(u64::from(USER_END)) / u64::from(PAGE)).unwrap_or(u32::MAX);
        let pages = page(range.start)..page(range.end);
        let how = Unmap { flush: registers.ecx & FLUSH != 0, own: registers.ecx & OWN != 0 };
        let mut next = pages.start;
        while let Progress::Next(page) = thread.kernel.memory.unmap(thread.key.task(), &pages, next, how) {
            next = page;
            if !thread.goes_on() {
                break;
            }
        }
    }
    0
}

/// `thread_switch`: to one thread, or to any of the same priority.
pub fn thread_switch(thread: &Thread, frame: &mut Frame) -> isize {
    let to = Id { low: Registers::of(frame).esi, high: 0 };
    let mut state = thread.state();
    let to = if to.is_nil() { None } else { state.find(to) };
    state.give_way(to);
    look(thread, &state);
    0
}

/// A slice as the word of parameters has it, and the other way round; `None`: no end.
mod slice {
    use super::Nanos;

    const EXPONENT_SHIFT: u32 = 20;
    const MANTISSA_SHIFT: u32 = 24;

    pub fn of(word: u32) -> Option<Nanos> {
        let (exponent, mantissa) = (word >> EXPONENT_SHIFT & 0xf, u64::from(word >> MANTISSA_SHIFT));
        (exponent != 0).then(|| (mantissa << (2 * (15 - exponent))) * 1000)
    }

    /// The greatest exponent that holds it, so that least is lost.
    pub fn word(slice: Option<Nanos>) -> u32 {
        let Some(slice) = slice else { return 0 };
        let micros = slice / 1000;
        for exponent in (1..=15).rev() {
            let mantissa = micros >> (2 * (15 - exponent));
            if mantissa < 256 {
                return exponent << EXPONENT_SHIFT | (mantissa as u32) << MANTISSA_SHIFT;
            }
        }
        1 << EXPONENT_SHIFT | 255 << MANTISSA_SHIFT
    }
}

/// A thread's state in the word of parameters.
fn phase(tcb: &Tcb) -> u32 {
    const PAGER: u32 = 1;
    let waits = match tcb.phase {
        Phase::Ready => 0,
        Phase::Sending(_) => 0xd,
        Phase::Receiving if tcb.request.receive.is_some_and(|receive| receive.open) => 0xc,
        Phase::Receiving => 8,
        Phase::Moving if tcb.moves => 4,
        Phase::Moving => 8,
        Phase::Stopped => 0xf,
    };
    if tcb.asks && tcb.phase == Phase::Receiving { waits | PAGER } else { waits }
}

/// `thread_schedule`: priority and slice of a thread, and what it does.
pub fn thread_schedule(thread: &Thread, frame: &mut Frame) -> isize {
    let registers = Registers::of(frame);
    let mut state = thread.state();
    let found = state.find(registers.partner());
    let (Some(key), Some(own)) = (found, state.get(thread.key)) else { return REFUSED };
    let mcp = own.mcp;
    let Some(target) = state.get(key) else { return REFUSED };
    let query = registers.eax == u32::MAX;
    let priority = (registers.eax & 0xff) as u8;
    if target.priority > mcp || !query && priority > mcp {
        return REFUSED;
    }
    let old = u32::from(target.priority) | phase(target) << 16 | slice::word(target.slice);
    let partner = match target.phase {
        Phase::Sending(to) => state.get(to).map_or(Id::NIL, |partner| partner.id),
        Phase::Receiving => target.request.partner,
        Phase::Moving => target.bond.and_then(|bond| state.get(bond)).map_or(Id::NIL, |partner| partner.id),
        Phase::Ready | Phase::Stopped => Id::NIL,
    };
    let external = target.external;
    let spent = target.seat.context().and_then(|context| context.cpu(false)).unwrap_or_default() / 1000;
    if !registers.second().is_invalid()
        && let Some(target) = state.get_mut(key)
    {
        target.external = registers.second();
    }
    if !query {
        state.set_slice(key, slice::of(registers.eax));
        state.set_priority(key, priority);
    }
    look(thread, &state);
    drop(state);
    set_partner(frame, partner);
    set_second(frame, external);
    (frame.rcx, frame.rdx) = (spent & 0xffff_ffff, spent >> 32 & 0xffff);
    old as isize
}

/// `lthread_ex_regs`: where a thread of the task goes on, and who its pager and preempter are; makes it if there is none.
pub fn lthread_ex_regs(thread: &Thread, frame: &mut Frame) -> isize {
    /// In the number of the thread: it is to run in virtual 8086 mode.
    const VIRTUAL: u32 = 1 << 31;
    let registers = Registers::of(frame);
    if registers.eax & VIRTUAL != 0 {
        return REFUSED;
    }
    let number = (registers.eax & u32::from(THREADS - 1)) as u8;
    let key = Key::new(thread.key.task(), number);
    let given = |word: u32| (word != KEEP).then_some(word);
    let (eip, esp) = (given(registers.edx), given(registers.ecx));
    let (pager, preempter) = (registers.partner(), registers.second());
    let old = {
        let mut state = thread.state();
        let own = key == thread.key;
        if own {
            // Its place is in its own registers.
            (frame.rip, frame.rsp) = (eip.map_or(frame.rip, u64::from), esp.map_or(frame.rsp, u64::from));
        }
        match state.get_mut(key) {
            None => None,
            Some(tcb) => {
                let at = if own {
                    crate::state::Place { eip: registers.eip, esp: registers.esp, eflags: registers.eflags }
                } else {
                    tcb.at
                };
                let before = (at, tcb.pager, tcb.preempter);
                if !pager.is_invalid() {
                    tcb.pager = pager;
                }
                if !preempter.is_invalid() {
                    tcb.preempter = preempter;
                }
                if !own {
                    tcb.entry = [eip.or(tcb.entry[0]), esp.or(tcb.entry[1])];
                    let stopped = tcb.phase == Phase::Stopped;
                    state.cancel(key);
                    if stopped && eip.is_some() {
                        state.make_ready(key);
                    }
                }
                look(thread, &state);
                Some(before)
            }
        }
    };
    if let Some((at, pager, preempter)) = old {
        (frame.rcx, frame.rdx) = (at.esp.into(), at.eip.into());
        set_partner(frame, pager);
        set_second(frame, preempter);
        return at.eflags as isize;
    }
    let (Some(eip), Some(esp)) = (eip, esp) else { return REFUSED };
    let pager = if pager.is_invalid() { Id::NIL } else { pager };
    let Ok(key) = make_thread(thread, number, pager, [eip, esp]) else { return REFUSED };
    let mut state = thread.state();
    if let Some(tcb) = state.get_mut(key) {
        tcb.preempter = preempter;
    }
    state.make_ready(key);
    look(thread, &state);
    0
}

/// `task_new`: a task with a thread, or who may make one by that number from now on. What had the number ends.
pub fn task_new(thread: &Thread, frame: &mut Frame) -> isize {
    let registers = Registers::of(frame);
    let result = new_task(thread, &registers).unwrap_or(Id::NIL);
    look(thread, &thread.state());
    set_partner(frame, result);
    registers.eax as isize
}

fn new_task(thread: &Thread, registers: &Registers) -> Option<Id> {
    let (wanted, pager, own) = (registers.partner(), registers.second(), thread.key.task());
    let number = wanted.task();
    if number <= SIGMA0_TASK || number >= TASKS || number == own {
        return None;
    }
    let (priority, mcp, nest) = {
        let state = thread.state();
        if state.chief(number) != own {
            return None;
        }
        let tcb = state.get(thread.key)?;
        (tcb.priority, tcb.mcp, tcb.id.nest())
    };
    end_task(&thread.kernel, number, own);
    // Version as it was given; where the task is among the clans the kernel knows better.
    let place = Id::new(number, 0, own, if own == ROOT_TASK { 0 } else { (nest + 1).min(15) });
    let id = Id { low: wanted.sibling(0).low, high: place.high };
    if pager.is_nil() {
        // Its number belongs to another from now on, whose thread's name the register has.
        let chief = Id { low: registers.eax, high: 0 }.task();
        let mut state = thread.state();
        state.set_chief(number, chief);
        return Some(id);
    }
    let first = First {
        id,
        priority,
        mcp: mcp.min((registers.eax & 0xff) as u8),
        pager,
        entry: [registers.edx, registers.ecx],
        initial: [0; 3],
    };
    let key = make_task(&thread.kernel, first).ok()?;
    thread.state().make_ready(key);
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::slice;

    #[test]
    fn slices_have_a_mantissa_and_a_power() {
        assert_eq!(slice::of(0), None);
        assert_eq!(slice::of(15 << 20 | 100 << 24), Some(100_000));
        assert_eq!(slice::of(11 << 20 | 4 << 24), Some(1_024_000));
        for word in [15 << 20 | 100 << 24, 10 << 20 | 255 << 24, 1 << 20 | 200 << 24] {
            assert_eq!(slice::of(slice::word(slice::of(word))), slice::of(word));
        }
        assert_eq!(slice::word(None), 0);
        // 100 ms is no multiple of a power of four: what is lost is less than one of the units.
        let near = slice::of(slice::word(Some(100_000_000))).unwrap();
        assert!(near <= 100_000_000 && near > 99_000_000);
    }
}
