//! Flexpages, pagers and long messages, on the model machine.

mod common;

use common::*;
use janua_platform_model::program::{Program, Reg};
use janua_platform_model::{Outcome, program};

/// Addresses of the child's that nothing is mapped at before its pager maps something.
const HERE: u64 = 0x3000_0000;
/// Pages of the root task's.
const ONE: u64 = DATA + 0x1_0000;
const TWO: u64 = DATA + 0x1_1000;

/// The root task starts a child at a label whose pager it is, and gives it the page of its code and one of data where they are. Faults of
/// the code arrive first.
fn with_child() -> Program {
    Program::new().store_at(ONE, 17).store_at(TWO, 18).task(5, ROOT, "child", DATA + 0x9000)
}

/// Replies to the next fault, of the child's code, with all of the program's memory (256 KiB from its start on, for reading).
fn give_code(root: Program) -> Program {
    let root = root.wait().must(Reg::Rsi, id(5, 0) as i32, 10);
    reply(root, program::CODE, program::CODE | 18 << 2, NONE)
}

/// Replies with a flexpage, and receives as `receive` specifies.
fn reply(root: Program, base: u64, page: u64, receive: u64) -> Program {
    root.ipc(Ipc { send: MAP, receive, words: Some([base, page]), ..CALL })
}

#[test]
fn a_pager_brings_the_page_that_is_missing() {
    let root = give_code(with_child()).wait();
    // A read of HERE + 8, by the child.
    let root = root.must(Reg::Rdx, (HERE + 8) as i32, 1).must(Reg::Rsi, id(5, 0) as i32, 2);
    let root = reply(root, HERE, page(ONE, true, false), OPEN);
    // Then a write, which it may.
    let root = root.must(Reg::Rdx, 99, 3).load_at(ONE + 16).must(Reg::Rax, 99, 4).exit(42);
    let child = root.label("child").load_at(HERE + 8).must(Reg::Rax, 0, 5).load_at(HERE).must(Reg::Rax, 17, 6);
    ends_with(&child.store_at(HERE + 16, 99).send(ROOT, [99, 0]).stop(), 42);
}

#[test]
fn a_page_for_reading_is_no_page_for_writing() {
    let root = give_code(with_child()).wait();
    let root = reply(root, HERE, page(ONE, false, false), OPEN);
    // The write comes as a fault of its own, with bit 1.
    let root = root.must(Reg::Rdx, (HERE + 16 + 2) as i32, 1).load_at(ONE + 16).must(Reg::Rax, 0, 2);
    let root = root.set(Reg::Rsi, id(5, 0)).set(Reg::Rdi, 0);
    let root = reply(root, HERE, page(ONE, true, false), OPEN).must(Reg::Rdx, 99, 3);
    let root = root.load_at(ONE + 16).must(Reg::Rax, 99, 4).exit(42);
    let child = root.label("child").load_at(HERE).must(Reg::Rax, 17, 6).store_at(HERE + 16, 99);
    ends_with(&child.send(ROOT, [99, 0]).stop(), 42);
}

/// `fpage_unmap` of a page.
fn unmap(root: Program, page: u64, mask: u64) -> Program {
    root.set(Reg::Rax, page).set(Reg::Rcx, mask).interrupt(0x32)
}

#[test]
fn what_is_taken_back_is_gone_from_all_who_had_it() {
    for (mask, fault) in [(2, HERE as i32), (0, (HERE + 2) as i32)] {
        let root = give_code(with_child()).wait();
        let root = reply(root, HERE, page(ONE, true, false), OPEN).must(Reg::Rdx, 1, 1);
        let root = unmap(root, page(ONE, false, false), mask).load_at(ONE).must(Reg::Rax, 17, 2);
        let root = root.store_at(ONE, 20).set(Reg::Rsi, id(5, 0)).set(Reg::Rdi, 0);
        // The child reads, or only when it writes it is stopped.
        let root = root.ipc(Ipc { receive: OPEN, words: Some([0, 0]), ..CALL }).must(Reg::Rdx, fault, 3);
        let root = reply(root, HERE, page(TWO, true, false), OPEN).must(Reg::Rdx, 2, 4).exit(42);
        let child = root.label("child").store_at(HERE + 8, 5);
        let child = child.ipc(Ipc { partner: Some(ROOT), words: Some([1, 0]), ..CALL });
        let child =
            if mask == 2 { child.load_at(HERE).must(Reg::Rax, 18, 5) } else { child.load_at(HERE).must(Reg::Rax, 20, 5) };
        ends_with(&child.store_at(HERE, 6).send(ROOT, [2, 0]).stop(), 42);
    }
}

#[test]
fn what_is_granted_is_gone() {
    let root = give_code(with_child()).wait();
    let root = reply(root, HERE, page(ONE, true, true), OPEN).must(Reg::Rdx, 1, 1);
    // Now it is sigma0 that brings it again, of which it came; the child has lost it by that.
    let root = root.load_at(ONE).must(Reg::Rax, 55, 2).exit(42);
    let child = root.label("child").load_at(HERE).must(Reg::Rax, 17, 5).store_at(HERE, 55);
    ends_with(&child.send(ROOT, [1, 0]).stop(), 42);
}

#[test]
fn a_page_that_comes_back_has_the_rights_it_was_given() {
    // The child sends what it has for reading to another place of its own, with the right to write, which it has not.
    let root = give_code(with_child()).wait();
    let root = reply(root, HERE, page(ONE, false, false), OPEN);
    let root = root.must(Reg::Rdx, (HERE + 0x1000 + 2) as i32, 1).exit(42);
    let child = root.label("child").load_at(HERE).must(Reg::Rax, 17, 5);
    let child = child.thread(1, "taker", DATA + 0xa000);
    let send = Ipc {
        send: MAP,
        receive: NONE,
        partner: Some(id(5, 1)),
        words: Some([HERE + 0x1000, page(HERE, true, false)]),
        ..CALL
    };
    let child =
        child.ipc(send).must(Reg::Rax, 0, 6).load_at(HERE + 0x1000).must(Reg::Rax, 17, 7).store_at(HERE + 0x1000, 1).exit(8);
    let taker = child.label("taker").ipc(Ipc { send: NONE, receive: WINDOW | OPEN, ..CALL });
    ends_with(&taker.stop(), 42);
}

#[test]
fn who_takes_no_flexpages_gets_none() {
    let root = Program::new().thread(1, "other", DATA + 0x8000);
    let send = Ipc { send: MAP, receive: NONE, partner: Some(id(4, 1)), words: Some([HERE, page(ONE, true, false)]), ..CALL };
    let root = root.ipc(send).must(Reg::Rax, 0xf0, 1).exit(42);
    let other = root.label("other").wait().must(Reg::Rax, 0x40e0, 2).must(Reg::Rdx, HERE as i32, 3).stop();
    ends_with(&other, 42);
}

#[test]
fn what_cannot_be_mapped_is_reported_to_both() {
    // Below what user memory there is, and above.
    for target in [0x1000, 0xc000_0000] {
        let root = Program::new().store_at(ONE, 1).thread(1, "other", DATA + 0x8000);
        let send =
            Ipc { send: MAP, receive: NONE, partner: Some(id(4, 1)), words: Some([target, page(ONE, true, false)]), ..CALL };
        let root = root.ipc(send).must(Reg::Rax, 0x70, 1).exit(42);
        let other =
            root.label("other").ipc(Ipc { send: NONE, receive: WINDOW | OPEN, ..CALL }).must(Reg::Rax, 0x4062, 2).stop();
        ends_with(&other, 42);
    }
}

#[test]
fn a_task_that_ends_gives_back_all_it_had() {
    for seed in SEEDS {
        let root = give_code(with_child()).wait();
        let root = reply(root, HERE, page(ONE, true, false), OPEN).must(Reg::Rdx, 1, 1);
        // Nobody is to be there any more.
        let root = root.task(5, 0, "child", 0).ipc(Ipc { partner: Some(id(5, 0)), ..CALL }).must(Reg::Rax, 0x10, 2).exit(42);
        let child = root.label("child").load_at(HERE).send(ROOT, [1, 0]).stop();
        let (model, kernel) = boot(seed, &config(child));
        assert_eq!(model.run_for(2_000_000), Outcome::Off(42), "{}", model.written());
        // All that is left is sigma0's, and the root task's, which has all of it once more.
        let pages = (MEMORY / 4096 - 16) as usize;
        assert_eq!((kernel.memory.mappings(), model.threads()), (2 * pages, 0));
    }
}

/// A long message's buffer at an address: room and amount of words and strings, then words and items.
fn buffer(program: Program, at: u64, size: [u64; 2], send: [u64; 2], rest: &[u64]) -> Program {
    let dope = |[words, strings]: [u64; 2]| words << 13 | strings << 8;
    // Stores are of 64 bits.
    let mut program = program.store_at(at, dope(size) << 32).store_at(at + 8, dope(send));
    for (index, word) in rest.iter().enumerate() {
        program = program.store_at(at + 12 + 4 * index as u64, *word);
    }
    program
}

const FROM: u64 = DATA + 0x1_4000;
const INTO: u64 = DATA + 0x1_8000;
const TEXT: u64 = DATA + 0x1_c000;

/// Two threads: one sends from [`FROM`], and the other receives to [`INTO`], with these errors and the word dope.
fn long(root: Program, sender: i32, receiver: i32, check: impl Fn(Program) -> Program) -> Program {
    let root = root.thread(1, "receiver", DATA + 0x8000);
    let send = Ipc { send: FROM, receive: NONE, partner: Some(id(4, 1)), words: Some([7, 9]), ..CALL };
    let root = root.ipc(send).must(Reg::Rax, sender, 1).stop().label("receiver");
    let root = root.ipc(Ipc { send: NONE, receive: INTO | OPEN, ..CALL }).must(Reg::Rax, receiver, 2);
    check(root.must(Reg::Rdx, 7, 3).must(Reg::Rbx, 9, 4)).exit(42)
}

#[test]
fn long_messages_bring_words_and_strings() {
    let root = buffer(Program::new(), FROM, [4, 1], [3, 1], &[0, 0, 33, 0, 16, TEXT, 0, 0]);
    let root = buffer(root, INTO, [6, 2], [0, 0], &[0, 0, 0, 0, 0, 0, 0, 0, 64, TEXT + 0x100, 0, 0, 64, TEXT + 0x200]);
    let root = root.store_at(TEXT, 0x1111).store_at(TEXT + 8, 0x2222);
    let root = long(root, 0, 3 << 13 | 1 << 8, |root| {
        let root = root.load_at(TEXT + 0x100).must(Reg::Rax, 0x1111, 5).load_at(TEXT + 0x108).must(Reg::Rax, 0x2222, 6);
        root.load_at(INTO + 12 + 8).must(Reg::Rax, 33, 7)
    });
    ends_with(&root, 42);
}

#[test]
fn what_has_no_room_is_cut() {
    // Words.
    let root = buffer(Program::new(), FROM, [4, 0], [4, 0], &[0, 0, 33, 44]);
    let root = buffer(root, INTO, [3, 0], [0, 0], &[]);
    let root = long(root, 0xf0, 3 << 13 | 0xe0, |root| root.load_at(INTO + 12 + 8).must(Reg::Rax, 33, 5));
    ends_with(&root, 42);
    // A string that is longer than its place.
    let root = buffer(Program::new(), FROM, [2, 1], [2, 1], &[0, 0, 16, TEXT, 0, 0]).store_at(TEXT, 5).store_at(TEXT + 8, 6);
    let root = buffer(root, INTO, [2, 1], [0, 0], &[0, 0, 0, 0, 8, TEXT + 0x100]);
    let check = |root: Program| root.load_at(TEXT + 0x100).must(Reg::Rax, 5, 5).load_at(TEXT + 0x108).must(Reg::Rax, 0, 6);
    ends_with(&long(root, 0xf0, 2 << 13 | 1 << 8 | 0xe0, check), 42);
    // A string too many.
    let root = buffer(Program::new(), FROM, [2, 1], [2, 1], &[0, 0, 16, TEXT, 0, 0]);
    let root = buffer(root, INTO, [2, 0], [0, 0], &[]);
    ends_with(&long(root, 0xf0, 2 << 13 | 0xe0, |root| root), 42);
    // Memory that is not mapped: of the string, and of the buffer itself.
    let root = buffer(Program::new(), FROM, [2, 1], [2, 1], &[0, 0, 16, 0xc000_0000, 0, 0]);
    let root = buffer(root, INTO, [2, 1], [0, 0], &[0, 0, 0, 0, 64, TEXT]);
    ends_with(&long(root, 0xf0, 2 << 13 | 0xe0, |root| root), 42);
}

#[test]
fn pages_that_a_message_needs_are_brought_on_the_way() {
    // The child's buffers lie in pages that its pager has not given yet.
    let root = give_code(with_child()).wait();
    let root = reply(root, HERE, page(ONE, true, false), OPEN).must(Reg::Rdx, 1, 1);
    // Thread 1 of the root task is the pager from here on; this one sends a string that the child has no page for.
    let root = root.thread(1, "pager", DATA + 0xb000).schedule(id(4, 1), 20);
    let root = buffer(root, FROM, [2, 1], [2, 1], &[0, 0, 8, TEXT, 0, 0]).store_at(TEXT, 0x1234);
    let send = Ipc { send: FROM, receive: 0, partner: Some(id(5, 0)), words: Some([7, 9]), ..CALL };
    let root = root.ipc(send).must(Reg::Rax, 0x4000, 2).must(Reg::Rdx, 0x1234, 3).exit(42);
    let pager = root.label("pager").wait().must(Reg::Rdx, (HERE + 0x2000 + 2) as i32, 4);
    let pager = reply(pager, HERE + 0x2000, page(TWO, true, false), NONE).stop();
    let child = pager.label("child").load_at(HERE).must(Reg::Rax, 17, 5);
    let child = buffer(child, HERE, [2, 1], [0, 0], &[0, 0, 0, 0, 8, HERE + 0x2000]);
    // Its pager is another from now on.
    let child = child.set(Reg::Rax, 0).set(Reg::Rcx, NONE).set(Reg::Rdx, NONE).set(Reg::Rbx, NONE).set(Reg::Rbp, NONE);
    let child = child.set(Reg::Rsi, id(4, 1)).set(Reg::Rdi, 0).interrupt(0x35).send(ROOT, [1, 0]);
    let child = child.ipc(Ipc { send: NONE, receive: HERE | OPEN, ..CALL }).must(Reg::Rax, 2 << 13 | 1 << 8, 6);
    let child = child.load_at(HERE + 0x2000).copy(Reg::Rdx, Reg::Rax).set(Reg::Rbx, 0);
    let child = child.ipc(Ipc { receive: NONE, partner: Some(ROOT), ..CALL }).stop();
    ends_with(&child, 42);
}

#[test]
fn nobody_waits_for_pages_longer_than_it_wants() {
    // The pager of the receiver never replies.
    let root = give_code(with_child()).wait();
    let root = reply(root, HERE, page(ONE, true, false), OPEN).must(Reg::Rdx, 1, 1);
    let root = buffer(root, FROM, [2, 1], [2, 1], &[0, 0, 8, TEXT, 0, 0]);
    for timeouts in [15 << 12, 11 << 12] {
        let send = Ipc { send: FROM, receive: NONE, partner: Some(id(5, 0)), words: Some([7, 9]), timeouts };
        let root = root.clone().ipc(send).must(Reg::Rax, 0x90, 2).ipc(Ipc { send: NONE, partner: Some(id(5, 0)), ..CALL });
        let child = root.must(Reg::Rdx, 2, 3).exit(42).label("child").load_at(HERE);
        let child = buffer(child, HERE, [2, 1], [0, 0], &[0, 0, 0, 0, 8, HERE + 0x2000]).send(ROOT, [1, 0]);
        let child = child.ipc(Ipc { send: NONE, receive: HERE | OPEN, ..CALL }).must(Reg::Rax, 2 << 13 | 0x80, 6);
        ends_with(&child.send(ROOT, [2, 0]).stop(), 42);
    }
}

#[test]
fn a_thread_without_a_pager_stops_and_says_so() {
    let root = Program::new().task(5, id(9, 0), "child", DATA + 0x9000).stop();
    let (model, _) = boot(1, &config(root.label("child").stop()));
    assert_eq!(model.run_for(2_000_000), Outcome::Off(128 + 11));
    let written = model.written();
    assert!(written.contains("thread 5.0 stops: exception 14 at 0x40"), "{written}");
    assert!(written.contains("it has no pager") && written.contains("eip 004"), "{written}");
}

#[test]
fn a_stopped_thread_can_be_started_again() {
    let root = Program::new().thread(1, "wrong", DATA + 0x8000).schedule(id(4, 1), 30);
    let root = root.thread(1, "right", DATA + 0x8000).stop().label("wrong").invalid();
    ends_with(&root.label("right").exit(42), 42);
}
