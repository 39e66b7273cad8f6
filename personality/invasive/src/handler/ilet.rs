//! octo_ilet.h.

use janua_abi::invasive::Ilet;
use janua_kernel::UserPtr;
use janua_port::Frame;

use super::write;
use crate::Thread;
use crate::switch;
use crate::system::ThreadExt;

pub fn simple_init(thread: &Thread, to: UserPtr<Ilet>, code: usize, first: usize) -> isize {
    write(thread, to, &Ilet { code, first, ..Ilet::default() });
    0
}

pub fn dual_init(thread: &Thread, to: UserPtr<Ilet>, code: usize, first: usize, second: usize) -> isize {
    write(thread, to, &Ilet { code, first, second, ..Ilet::default() });
    0
}

/// The end of the calling i-let: its function has returned.
pub fn exit(thread: &Thread, _: &mut Frame) -> isize {
    switch::end(thread)
}

pub fn get_domain(thread: &Thread) -> usize {
    thread.tile().lock().cores[thread.index].current.map_or(0, |running| running.domain)
}

pub fn set_domain(thread: &Thread, domain: usize) -> isize {
    if let Some(running) = &mut thread.tile().lock().cores[thread.index].current {
        running.domain = domain & 0xffff;
    }
    0
}
