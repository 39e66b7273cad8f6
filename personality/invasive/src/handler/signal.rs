//! octo_signal.h. A signal is a structure of the application's: its counter changes under the tile's lock, by which a core that
//! begins to wait and one that signals see each other.

use janua_abi::invasive::types::SIGNAL_MOST;
use janua_abi::invasive::{Ilet, InfectSignal, Signal};
use janua_kernel::UserPtr;
use janua_port::Frame;

use super::{FAILED, ilet, write};
use crate::Thread;
use crate::handler::claim::own_dispatch;
use crate::switch::{self, set_user_u32, user_u32};
use crate::system::ThreadExt;

pub fn simple_init(thread: &Thread, signal: UserPtr<Signal>, count: u32) -> isize {
    if count > SIGNAL_MOST {
        return FAILED;
    }
    write(thread, signal, &Signal { left: count, spare: 0 });
    0
}

pub fn binary_init(thread: &Thread, signal: UserPtr<Signal>) -> isize {
    simple_init(thread, signal, 1)
}

pub fn max_count(_thread: &Thread) -> u32 {
    SIGNAL_MOST
}

pub fn add_signalers(thread: &Thread, signal: UserPtr<Signal>, more: u32) -> isize {
    let _state = thread.tile().lock();
    let left = user_u32(thread, signal.addr());
    match left.checked_add(more).filter(|&sum| sum <= SIGNAL_MOST) {
        Some(sum) => {
            set_user_u32(thread, signal.addr(), sum);
            0
        }
        None => FAILED,
    }
}

pub fn get_counter(thread: &Thread, signal: UserPtr<Signal>) -> u32 {
    user_u32(thread, signal.addr())
}

/// Waits until all have signalled; -1 when another i-let waits already.
pub fn wait(thread: &Thread, _: &mut Frame, signal: UserPtr<Signal>) -> isize {
    if user_u32(thread, signal.addr()) == 0 { 0 } else { switch::wait(thread, signal.addr(), None) }
}

/// Counts down: whether this was the last. A signal that nobody expects changes nothing.
fn count_down(thread: &Thread, signal: usize) -> bool {
    let mut state = thread.tile().lock();
    let left = user_u32(thread, signal);
    if left == 0 {
        return false;
    }
    set_user_u32(thread, signal, left - 1);
    if left == 1 {
        state.finished(signal, |_| 0);
    }
    left == 1
}

pub fn signal(thread: &Thread, signal: UserPtr<Signal>) -> isize {
    count_down(thread, signal.addr());
    0
}

/// The i-let is over before the signal is seen, so that who waited for it finds the core free.
pub fn signal_and_exit(thread: &Thread, _: &mut Frame, signal: UserPtr<Signal>) -> isize {
    let ended = switch::end(thread);
    count_down(thread, signal.addr());
    ended
}

pub fn infect_init(thread: &Thread, signal: UserPtr<InfectSignal>, count: u32, start: UserPtr<Ilet>) -> isize {
    if count > SIGNAL_MOST {
        return FAILED;
    }
    let ilet = ilet(thread, start);
    write(thread, signal, &InfectSignal { signal: Signal { left: count, spare: 0 }, ilet });
    0
}

/// The last one starts the i-let on the claim it signals from.
pub fn infect_signal(thread: &Thread, signal: UserPtr<InfectSignal>) -> isize {
    if count_down(thread, signal.addr()) {
        let own = own_dispatch(thread);
        let start = ilet(thread, UserPtr::new(signal.addr() + size_of::<Signal>()));
        thread.tile().lock().infect(own.claim, &[start], Some(own));
    }
    0
}

pub fn infect_signal_and_exit(thread: &Thread, _: &mut Frame, signal: UserPtr<InfectSignal>) -> isize {
    let ended = switch::end(thread);
    infect_signal(thread, signal);
    ended
}
