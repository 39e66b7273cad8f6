//! Interrupts as messages, and those that a thread keeps off, on the model machine.

mod common;

use common::*;
use janua_platform_model::program::{Program, Reg};

/// The clock's line as a partner, and another.
const CLOCK: u64 = 1;
const OTHER_LINE: u64 = 5;

/// Receives from a line in no time: is associated with it, or has what has come.
fn associate(program: Program, line: u64) -> Program {
    program.ipc(Ipc { send: NONE, partner: Some(line), timeouts: 1, ..CALL })
}

fn receive(program: Program, line: u64) -> Program {
    program.ipc(Ipc { send: NONE, partner: Some(line), ..CALL })
}

#[test]
fn the_clock_ticks_for_who_is_associated_with_it() {
    let root = receive(Program::new(), CLOCK).must(Reg::Rax, 0x10, 1);
    let root = associate(associate(root, OTHER_LINE).must(Reg::Rax, 0x10, 2), CLOCK).must(Reg::Rax, 0x20, 3);
    let root = receive(receive(root, CLOCK), CLOCK).must(Reg::Rax, 0, 4).must(Reg::Rsi, CLOCK as i32, 5).must(Reg::Rdi, 0, 6);
    // In an open wait too.
    let root = root.wait().must(Reg::Rax, 0, 7).must(Reg::Rsi, CLOCK as i32, 8);
    // Given back: nothing from nobody in no time.
    let root = root.ipc(Ipc { send: NONE, partner: Some(0), timeouts: 1, ..CALL }).must(Reg::Rax, 0x20, 9);
    ends_with(&receive(root, CLOCK).must(Reg::Rax, 0x10, 10).exit(42), 42);
}

#[test]
fn a_line_is_one_threads() {
    let root = associate(Program::new(), CLOCK).must(Reg::Rax, 0x20, 1).thread(1, "other", DATA + 0x8000);
    let root = root.schedule(id(4, 1), 20).load_at(DATA).must(Reg::Rax, 1, 2).exit(42);
    let other = associate(root.label("other"), CLOCK).must(Reg::Rax, 0x10, 3);
    ends_with(&receive(other, CLOCK).must(Reg::Rax, 0x10, 4).store_at(DATA, 1).stop(), 42);
}

#[test]
fn a_tick_that_nobody_waits_for_is_kept() {
    // As long as some ticks take, without a wait.
    let root = associate(Program::new(), CLOCK).must(Reg::Rax, 0x20, 1).turns(2000);
    let root = associate(root, CLOCK).must(Reg::Rax, 0, 2).must(Reg::Rsi, CLOCK as i32, 3);
    // One of them.
    ends_with(&associate(root, CLOCK).must(Reg::Rax, 0x20, 4).exit(42), 42);
}

#[test]
fn a_tick_stops_a_task_of_lower_priority() {
    let root = associate(Program::new(), CLOCK).thread(1, "spin", DATA + 0x8000).schedule(id(4, 1), 5);
    let root = receive(receive(root, CLOCK), CLOCK).must(Reg::Rax, 0, 1).must(Reg::Rsi, CLOCK as i32, 2).exit(42);
    ends_with(&root.label("spin").jump("spin"), 42);
}

#[test]
fn a_line_is_free_when_its_thread_is_no_more() {
    let root = Program::new().task(5, SIGMA0, "child", DATA + 0x8000).wait().must(Reg::Rdx, 7, 1);
    // The child's task ends, by the number's being handed to another.
    let root = root.set(Reg::Rax, id(4, 0)).set(Reg::Rbx, 0).set(Reg::Rbp, 0).set(Reg::Rsi, id(5, 0)).set(Reg::Rdi, 0);
    let root = associate(root.interrupt(0x36), CLOCK).must(Reg::Rax, 0x20, 2).exit(42);
    let child = associate(root.label("child"), CLOCK).must(Reg::Rax, 0x20, 3);
    ends_with(&child.send(ROOT, [7, 0]).stop(), 42);
}

/// A slice of one tick for the root task.
fn short_slice(program: Program) -> Program {
    program.schedule(ROOT, 16 | 12 << 20 | 156 << 24)
}

#[test]
fn a_thread_that_keeps_interrupts_off_is_not_stopped() {
    let root = short_slice(Program::new().thread(1, "other", DATA + 0x8000)).cli().store_at(DATA, 0);
    // Some slices.
    let root = root.turns(1500).load_at(DATA).must(Reg::Rax, 0, 1).sti();
    let root = root.label("spin").load_at(DATA).jump_unless(1, "spin").exit(42);
    ends_with(&root.label("other").store_at(DATA, 1).jump("other"), 42);
}

#[test]
fn who_is_higher_waits_for_the_end_of_it_and_no_longer() {
    let sleep = Ipc { send: NONE, partner: Some(0), timeouts: 20 << 24 | 10, ..CALL };
    let root = Program::new().thread(1, "high", DATA + 0x8000).schedule(id(4, 1), 30).cli().store_at(DATA, 0).turns(2500);
    let root = root.load_at(DATA).must(Reg::Rax, 0, 1).sti().load_at(DATA).must(Reg::Rax, 1, 2).exit(42);
    ends_with(&root.label("high").ipc(sleep).must(Reg::Rax, 0x20, 3).store_at(DATA, 1).stop(), 42);
}

#[test]
fn nobody_keeps_them_off_for_good() {
    let other = |root: Program| root.label("other").store_at(DATA, 1).jump("other");
    let begun = || short_slice(Program::new().thread(1, "other", DATA + 0x8000)).cli().store_at(DATA, 0);
    ends_with(&other(begun().label("spin").load_at(DATA).jump_unless(1, "spin").exit(42)), 42);
    // Nor by switching them off again and again.
    ends_with(&other(begun().label("spin").cli().load_at(DATA).jump_unless(1, "spin").exit(42)), 42);
}

#[test]
fn what_else_is_the_kernels_stops_a_thread() {
    ends_with(&Program::new().invalid(), 139);
}
