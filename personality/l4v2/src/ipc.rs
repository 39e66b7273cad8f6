//! `ipc`, and page faults as calls to pagers.

use janua_abi::l4v2::fpage::Fpage;
use janua_abi::l4v2::message::{Amount, ERROR, Into, REGISTER_WORDS, Receive, Send};
use janua_abi::l4v2::timeout::{Timeout, Timeouts};
use janua_port::Frame;

use crate::registers::{Registers, set_partner};
use crate::state::{Next, Outcome, Phase, Request, Wanted};
use crate::system::{Gone, ThreadExt, turn};
use crate::{Thread, transfer};

/// The dope of a message that is words in registers and nothing else.
pub const WORDS_ALONE: u32 = Amount { words: REGISTER_WORDS, strings: 0 }.dope();

/// What the call asks for.
fn request(registers: &Registers) -> Request {
    Request {
        send: Send::of(registers.eax).map(|send| (send, [registers.edx, registers.ebx])),
        partner: registers.partner(),
        receive: Receive::of(registers.ebp),
        timeouts: Timeouts::of(registers.ecx),
    }
}

/// Sets the registers that a call ends with.
fn answer(frame: &mut Frame, outcome: &Outcome) {
    frame.rax = outcome.dope.into();
    (frame.rdx, frame.rbx) = (outcome.words[0].into(), outcome.words[1].into());
    set_partner(frame, outcome.from);
}

/// The call.
pub async fn ipc(thread: &Thread) -> isize {
    let mut frame = thread.frame();
    let registers = Registers::of(&frame);
    let request = request(&registers);
    thread.note(&registers);
    let Ok(mut outcome) = exchange(thread, request).await else { return 0 };
    if request.receive.is_none() || outcome.dope & ERROR != 0 && outcome.from.is_nil() {
        // Nothing came: the registers are what they were.
        (outcome.from, outcome.words) = (registers.partner(), [registers.edx, registers.ebx]);
    }
    answer(&mut frame, &outcome);
    thread.replace_frame(frame);
    outcome.dope as isize
}

/// Sends and receives.
async fn exchange(thread: &Thread, request: Request) -> Result<Outcome, Gone> {
    thread.state().begin(thread.key, request);
    loop {
        turn(thread).await?;
        let next = thread.state().next(thread.key);
        match next {
            Next::Done(outcome) => return Ok(outcome),
            Next::Move(to) => transfer::run(thread, to).await?,
            Next::Bring(wanted) => bring(thread, wanted).await?,
            Next::Nothing => return Err(Gone),
        }
    }
}

/// Asks the thread's own pager for the page at an address: how the pager's answer came. `eip` is the instruction that wants it, -1 for the kernel.
pub async fn ask_pager(thread: &Thread, addr: u32, write: bool, eip: u32, within: Timeout) -> Result<Outcome, Gone> {
    let saved = {
        let mut state = thread.state();
        let tcb = state.get_mut(thread.key).ok_or(Gone)?;
        let saved = tcb.request;
        (tcb.asks, tcb.outer) = (true, tcb.bond.take());
        let pager = tcb.pager;
        let words = [addr & !3 | u32::from(write) << 1, eip];
        let request = Request {
            send: Some((Send { map: false, buffer: None }, words)),
            partner: pager,
            receive: Some(Receive { open: false, into: Into::Window(Fpage::WHOLE) }),
            timeouts: Timeouts { send: within, receive: within, ..Timeouts::NEVER },
        };
        state.begin(thread.key, request);
        saved
    };
    loop {
        turn(thread).await?;
        let mut state = thread.state();
        let tcb = state.get_mut(thread.key).ok_or(Gone)?;
        if let Some(outcome) = tcb.outcome.take() {
            (tcb.request, tcb.asks) = (saved, false);
            tcb.bond = tcb.outer.take();
            return Ok(outcome);
        }
    }
}

/// Brings a page for the sender of a message that is on its way to this thread, and waits for the message again.
async fn bring(thread: &Thread, wanted: Wanted) -> Result<(), Gone> {
    let outcome = ask_pager(thread, wanted.addr, wanted.write, u32::MAX, wanted.within).await?;
    let mut state = thread.state();
    let tcb = state.get_mut(thread.key).ok_or(Gone)?;
    if let Some(later) = tcb.later.take() {
        tcb.outcome = Some(later);
        return Ok(());
    }
    let Some(sender) = tcb.bond else { return Ok(()) };
    if let Some(tcb) = state.get_mut(sender) {
        tcb.brought = Some(outcome);
    }
    state.make_ready(sender);
    state.block(thread.key, Phase::Moving, None, Some(sender));
    Ok(())
}
