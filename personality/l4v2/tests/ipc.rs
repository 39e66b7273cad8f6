//! Messages of words between threads, priorities and slices, on the model machine.

mod common;

use common::*;
use janua_platform_model::program::{Program, Reg};

/// Microseconds, as a receive timeout.
const fn receive_within(micros: u64) -> u64 {
    micros << 24 | 15
}

#[test]
fn a_thread_knows_its_name() {
    let root = Program::new().set(Reg::Rsi, 0).set(Reg::Rdi, 0).interrupt(0x31).must(Reg::Rsi, ROOT as i32, 1);
    ends_with(&root.must(Reg::Rdi, 0, 2).must(Reg::Rax, 0, 3).exit(42), 42);
}

#[test]
fn words_go_from_one_thread_to_another_and_back() {
    // Thread 1 adds nothing, but swaps the words.
    let root = Program::new().thread(1, "echo", DATA + 0x8000);
    let root = root.must(Reg::Rax, 0, 1);
    let root = root.ipc(Ipc { partner: Some(id(4, 1)), words: Some([7, 9]), ..CALL });
    let root = root.must(Reg::Rdx, 9, 2).must(Reg::Rbx, 7, 3).must(Reg::Rsi, id(4, 1) as i32, 4).must(Reg::Rax, 0x4000, 5);
    let echo = root.exit(42).label("echo").wait().must(Reg::Rsi, ROOT as i32, 6);
    let echo = echo.label("again").copy(Reg::R9, Reg::Rdx).copy(Reg::Rdx, Reg::Rbx).copy(Reg::Rbx, Reg::R9);
    ends_with(&echo.ipc(Ipc { receive: OPEN, ..CALL }).jump("again"), 42);
}

#[test]
fn who_is_not_there_is_reported() {
    let root = Program::new().ipc(Ipc { partner: Some(id(9, 0)), ..CALL }).must(Reg::Rax, 0x10, 1);
    // Of another version.
    let root = root.ipc(Ipc { partner: Some(SIGMA0 | 1), ..CALL }).must(Reg::Rax, 0x10, 2);
    // Oneself.
    let root = root.ipc(Ipc { partner: Some(ROOT), ..CALL }).must(Reg::Rax, 0x10, 3);
    let root = root.ipc(Ipc { send: NONE, partner: Some(id(9, 0)), ..CALL }).must(Reg::Rax, 0x10, 4);
    // The line of an interrupt.
    let root = root.ipc(Ipc { send: NONE, partner: Some(3), timeouts: 1, ..CALL }).must(Reg::Rax, 0x10, 5);
    ends_with(&root.exit(42), 42);
}

#[test]
fn nobody_waits_longer_than_it_wants() {
    let root = Program::new().ipc(Ipc { send: NONE, partner: Some(0), timeouts: 1, ..CALL }).must(Reg::Rax, 0x20, 1);
    let root = root.ipc(Ipc { send: NONE, partner: Some(0), timeouts: receive_within(20), ..CALL }).must(Reg::Rax, 0x20, 2);
    let root = root.ipc(Ipc { send: NONE, receive: OPEN, timeouts: receive_within(9), ..CALL }).must(Reg::Rax, 0x20, 3);
    // A thread that never receives.
    let root = root.thread(1, "busy", DATA + 0x8000);
    let root = root.ipc(Ipc { partner: Some(id(4, 1)), timeouts: 0x10, ..CALL }).must(Reg::Rax, 0x30, 4);
    let root = root.ipc(Ipc { partner: Some(id(4, 1)), timeouts: 50 << 16 | 15 << 4, ..CALL }).must(Reg::Rax, 0x30, 5);
    // What was to be sent is where it was.
    let root = root.ipc(Ipc { partner: Some(id(4, 1)), timeouts: 0x10, words: Some([5, 6]), ..CALL });
    let root = root.must(Reg::Rdx, 5, 6).must(Reg::Rbx, 6, 7).must(Reg::Rsi, id(4, 1) as i32, 8).exit(42);
    ends_with(&root.label("busy").nop().jump("busy"), 42);
}

#[test]
fn a_wait_is_canceled_by_new_registers() {
    for (waits, error) in [
        (Ipc { send: NONE, receive: OPEN, ..CALL }, 0x40),
        (Ipc { send: NONE, partner: Some(0), ..CALL }, 0x40),
        (Ipc { partner: Some(ROOT), ..CALL }, 0x50),
    ] {
        // A priority above the root task's, so that it is where it waits.
        let root = Program::new().thread(1, "waits", DATA + 0x8000).schedule(id(4, 1), 30);
        let root = root.set(Reg::Rax, 1).set(Reg::Rcx, NONE).set(Reg::Rdx, NONE);
        let root = root.set(Reg::Rsi, NONE).set(Reg::Rdi, NONE).set(Reg::Rbx, NONE).set(Reg::Rbp, NONE).interrupt(0x35);
        // Its stack, and its pager.
        let root = root.must(Reg::Rcx, (DATA + 0x8000) as i32, 1).must(Reg::Rsi, SIGMA0 as i32, 2).stop();
        let waits = root.label("waits").ipc(waits).must(Reg::Rax, error, 3).exit(42);
        ends_with(&waits, 42);
    }
}

#[test]
fn a_thread_goes_on_where_it_is_sent() {
    let root = Program::new().thread(1, "first", DATA + 0x8000).schedule(id(4, 1), 30);
    let root = root.thread(1, "second", DATA + 0x9000).must(Reg::Rcx, (DATA + 0x8000) as i32, 1).stop();
    let threads = root.label("first").stop().exit(2);
    ends_with(&threads.label("second").must(Reg::Rsp, (DATA + 0x9000) as i32, 3).exit(42), 42);
}

#[test]
fn the_higher_priority_runs_first() {
    // Thread 1 is lower: it must not run before the root task waits.
    let root = Program::new().thread(1, "low", DATA + 0x8000).schedule(id(4, 1), 5);
    let mut root = root.store_at(DATA, 1);
    for _ in 0..200 {
        root = root.nop();
    }
    let root = root.load_at(DATA).must(Reg::Rax, 1, 1).store_at(DATA, 2).stop();
    ends_with(&root.label("low").load_at(DATA).must(Reg::Rax, 2, 2).exit(42), 42);
}

#[test]
fn who_gets_a_higher_priority_runs_at_once() {
    let root = Program::new().thread(1, "high", DATA + 0x8000).store_at(DATA, 1).schedule(id(4, 1), 17);
    let root = root.load_at(DATA).must(Reg::Rax, 2, 1).exit(42);
    ends_with(&root.label("high").load_at(DATA).must(Reg::Rax, 1, 2).store_at(DATA, 2).stop(), 42);
}

#[test]
fn priorities_have_an_upper_end() {
    // A task whose most is 20, and which begins with the root task's priority.
    let root = Program::new().set(Reg::Rax, 20).set(Reg::Rcx, DATA + 0x8000).set_label(Reg::Rdx, "child");
    let root = root.set(Reg::Rbx, SIGMA0).set(Reg::Rbp, 4 << 17).set(Reg::Rsi, id(5, 0)).set(Reg::Rdi, 0).interrupt(0x36);
    let root = root.must(Reg::Rsi, id(5, 0) as i32, 1).stop();
    // What is refused is all ones, which with one more has only the bit above.
    let child =
        root.label("child").schedule(id(5, 0), 21).add_to_rax(-0x7fff_ffff).add_to_rax(-0x7fff_ffff).must(Reg::Rax, 1, 2);
    let child = child.schedule(id(5, 0), 19).schedule(id(5, 0), NONE).add_to_rax(-19).must(Reg::Rax, 0, 3);
    ends_with(&child.exit(42), 42);
}

#[test]
fn slices_come_to_an_end() {
    // Both spin; each waits for what the other does.
    let root = Program::new().thread(1, "other", DATA + 0x8000).store_at(DATA, 1);
    let root = root.label("spin").load_at(DATA).jump_unless(2, "spin").exit(42);
    let other = root.label("other").label("wait").load_at(DATA).jump_unless(1, "wait").store_at(DATA, 2);
    ends_with(&other.label("end").jump("end"), 42);
}

#[test]
fn a_thread_gives_way_to_others_and_to_one() {
    let root = Program::new().thread(1, "other", DATA + 0x8000);
    let root = root.set(Reg::Rax, 0).set(Reg::Rsi, 0).interrupt(0x33);
    let root = root.load_at(DATA).must(Reg::Rax, 1, 1);
    let root = root.set(Reg::Rax, 0).set(Reg::Rsi, id(4, 1)).interrupt(0x33);
    let root = root.load_at(DATA).must(Reg::Rax, 2, 2).exit(42);
    let other = root.label("other").store_at(DATA, 1).set(Reg::Rax, 0).set(Reg::Rsi, id(4, 0)).interrupt(0x33);
    ends_with(&other.store_at(DATA, 2).set(Reg::Rsi, id(4, 0)).interrupt(0x33).stop(), 42);
}

#[test]
fn senders_wait_in_a_row() {
    // Three threads send to the root task, which is not there yet; the last wakes it.
    let mut root = Program::new();
    for thread in 1..4 {
        root = root.thread(thread, &format!("sender {thread}"), DATA + 0x8000 + thread * 0x1000).schedule(id(4, thread), 20);
    }
    for thread in 1..4 {
        root = root.wait().must(Reg::Rdx, thread, 10).must(Reg::Rsi, id(4, thread as u64) as i32, 11);
    }
    root = root.exit(42);
    for thread in 1..4 {
        root = root.label(&format!("sender {thread}")).send(ROOT, [thread, 0]).must(Reg::Rax, 0, 20 + thread).stop();
    }
    ends_with(&root, 42);
}

#[test]
fn a_closed_wait_takes_one_sender_and_leaves_the_other() {
    let root = Program::new().thread(1, "one", DATA + 0x8000).schedule(id(4, 1), 20);
    let root = root.thread(2, "two", DATA + 0x9000).schedule(id(4, 2), 20);
    let root = root.ipc(Ipc { send: NONE, partner: Some(id(4, 2)), ..CALL }).must(Reg::Rdx, 2, 1);
    let root = root.ipc(Ipc { send: NONE, partner: Some(id(4, 1)), ..CALL }).must(Reg::Rdx, 1, 2);
    let root = root.exit(42).label("one").send(ROOT, [1, 0]).stop();
    ends_with(&root.label("two").send(ROOT, [2, 0]).stop(), 42);
}

#[test]
fn a_long_row_of_threads_that_wait_for_each_other_comes_apart() {
    // Each calls the one before it and has the answer to give to the one behind it: the end of one wait is that of the next.
    const THREADS: u64 = 40;
    let mut root = Program::new();
    for thread in 1..THREADS {
        root = root.thread(thread, "link", DATA + 0x8000 + thread * 0x200).schedule(id(4, thread), 20);
        // Its number.
        root = root.send(id(4, thread), [thread, 0]).must(Reg::Rax, 0, 1);
    }
    let root = root.wait().must(Reg::Rdx, 1, 2).exit(42);
    let mut link = root.label("link").wait().copy(Reg::R10, Reg::Rdx).copy(Reg::Rax, Reg::R10);
    for thread in 1..THREADS {
        link = link.jump_if(thread as i32, &format!("link {thread}"));
    }
    for thread in 1..THREADS {
        let before = id(4, thread - 1);
        link = link.label(&format!("link {thread}"));
        if thread + 1 < THREADS {
            link = link.ipc(Ipc { send: NONE, partner: Some(id(4, thread + 1)), ..CALL });
        }
        link = link.send(before, [thread, 0]).stop();
    }
    ends_with(&link, 42);
}

#[test]
fn programs_write_by_the_debugger() {
    let root = Program::new().set(Reg::Rax, 0x41).breakpoint(b"\x3c\x00").breakpoint(b"\x90\xeb\x05 text");
    let root = root.set(Reg::Rax, 0xfff0_beef).breakpoint(b"\x3c\x05").breakpoint(b"\x3c\x07").breakpoint(b"\x3c\x21");
    let root = root.set(Reg::Rax, 0xffff_fffe).breakpoint(b"\x3c\x0b").store_at(DATA, 0x0079_6568);
    // A string up to its end, characters by their number, and memory that is not mapped.
    let root = root.set(Reg::Rax, DATA).breakpoint(b"\x3c\x02").set(Reg::Rbx, 2).breakpoint(b"\x3c\x01");
    let root = root.set(Reg::Rax, 0xc000_0000).breakpoint(b"\x3c\x02").set(Reg::Rbx, 0xffff_ffff).breakpoint(b"\x3c\x01");
    let (model, _) = boot(1, &config(root.breakpoint(b"\xeb\x05hello").set(Reg::Rax, 3).breakpoint(b"\xeb\x03*#^")));
    assert_eq!(model.run_for(2_000_000), janua_platform_model::Outcome::Off(0));
    let written = model.written();
    assert!(written.starts_with("A textfff0beefbeef!-2heyhejanua: thread 4.0 at a breakpoint: hello\n"), "{written}");
    assert!(written.contains("eax c0000000 ebx ffffffff"), "{written}");
}

#[test]
fn a_system_is_at_its_end_when_nothing_can_happen() {
    ends_with(&Program::new().stop(), 0);
    // Somebody who waits for a time may go on.
    let sleeps = Ipc { send: NONE, partner: Some(0), timeouts: 200 << 24 | 9, ..CALL };
    ends_with(&Program::new().ipc(sleeps).must(Reg::Rax, 0x20, 1).exit(42), 42);
}

#[test]
fn the_virtual_mode_of_older_programs_is_refused() {
    let root = Program::new().thread(1 | 1 << 31, "other", DATA + 0x8000).add_to_rax(-0x7fff_ffff).add_to_rax(-0x7fff_ffff);
    ends_with(&root.must(Reg::Rax, 1, 1).exit(42).label("other").exit(2), 42);
}
