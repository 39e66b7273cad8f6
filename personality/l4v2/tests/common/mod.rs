//! A system of L4 on the model machine: a sigma0 that gives everything, and a root task that is the test.

#![allow(dead_code, reason = "no test uses all of it")]

use std::sync::Arc;

use janua_personality_l4v2::config::{Config, Module};
use janua_personality_l4v2::{Kernel, system};
use janua_platform_model::program::{CODE, Program, Reg};
use janua_platform_model::{Model, Outcome, Settings};

/// Physical memory, bytes, and as a flexpage.
pub const MEMORY: u64 = 8 << 20;
const ALL: u64 = 23 << 2 | 2;
/// Where sigma0 is.
const SIGMA0_CODE: u64 = 0x20_0000;
/// Memory behind the root task's code that programs use as they like, and its size.
pub const DATA: u64 = CODE + 0x1_0000;
const DATA_SIZE: u64 = 0x4_0000;

pub const SIGMA0: u64 = 2 << 17;
pub const ROOT: u64 = 4 << 17;
pub const NONE: u64 = 0xffff_ffff;
pub const OPEN: u64 = 1;
/// A window that is the whole space, as a receive descriptor.
pub const WINDOW: u64 = 32 << 2 | 2;
pub const MAP: u64 = 2;

/// Orders of events.
pub const SEEDS: std::ops::Range<u64> = 1..13;

/// A thread's name.
pub const fn id(task: u64, thread: u64) -> u64 {
    task << 17 | thread << 10
}

/// A page as a flexpage: with the right to write, and granted.
pub const fn page(addr: u64, write: bool, grant: bool) -> u64 {
    addr | 12 << 2 | (write as u64) << 1 | grant as u64
}

/// A call of `ipc`.
#[derive(Clone, Copy)]
pub struct Ipc {
    pub send: u64,
    pub receive: u64,
    pub timeouts: u64,
    pub partner: Option<u64>,
    pub words: Option<[u64; 2]>,
}

/// Sends words and receives words, from the same partner, however long it takes.
pub const CALL: Ipc = Ipc { send: 0, receive: 0, timeouts: 0, partner: None, words: None };

/// What programs of L4 do, for the model's assembler.
pub trait L4 {
    fn ipc(self, call: Ipc) -> Self;
    /// Waits for anybody.
    fn wait(self) -> Self;
    fn send(self, to: u64, words: [u64; 2]) -> Self;
    /// The system ends with this code unless the register has the value.
    fn must(self, reg: Reg, value: i32, code: u64) -> Self;
    /// The system ends.
    fn exit(self, code: u64) -> Self;
    /// Starts a thread of the own task at a label, with sigma0 as its pager.
    fn thread(self, number: u64, label: &str, stack: u64) -> Self;
    /// Starts a task at a label.
    fn task(self, number: u64, pager: u64, label: &str, stack: u64) -> Self;
    /// `thread_schedule` of a thread with its priority and slice.
    fn schedule(self, thread: u64, word: u64) -> Self;
    /// Waits for good.
    fn stop(self) -> Self;
}

impl L4 for Program {
    fn ipc(self, call: Ipc) -> Program {
        let mut program = self.set(Reg::Rax, call.send).set(Reg::Rbp, call.receive).set(Reg::Rcx, call.timeouts);
        if let Some(partner) = call.partner {
            program = program.set(Reg::Rsi, partner).set(Reg::Rdi, 0);
        }
        if let Some([first, second]) = call.words {
            program = program.set(Reg::Rdx, first).set(Reg::Rbx, second);
        }
        program.interrupt(0x30)
    }

    fn wait(self) -> Program {
        self.ipc(Ipc { send: NONE, receive: OPEN, ..CALL })
    }

    fn send(self, to: u64, words: [u64; 2]) -> Program {
        self.ipc(Ipc { receive: NONE, partner: Some(to), words: Some(words), ..CALL })
    }

    fn must(self, reg: Reg, value: i32, code: u64) -> Program {
        let right = format!("right {code} {}", self.size());
        self.copy(Reg::R8, Reg::Rax).copy(Reg::Rax, reg).jump_if(value, &right).exit(code).label(&right).copy(Reg::Rax, Reg::R8)
    }

    fn exit(self, code: u64) -> Program {
        self.set(Reg::Rax, code).breakpoint(b"\xeb\x0ajanua-exit")
    }

    fn thread(self, number: u64, label: &str, stack: u64) -> Program {
        let regs = self.set(Reg::Rax, number).set(Reg::Rcx, stack).set_label(Reg::Rdx, label);
        let pager = regs.set(Reg::Rbx, NONE).set(Reg::Rbp, NONE).set(Reg::Rsi, SIGMA0).set(Reg::Rdi, 4 << 17);
        pager.interrupt(0x35)
    }

    fn task(self, number: u64, pager: u64, label: &str, stack: u64) -> Program {
        let regs = self.set(Reg::Rax, 255).set(Reg::Rcx, stack).set_label(Reg::Rdx, label);
        let pager = regs.set(Reg::Rbx, pager).set(Reg::Rbp, 0).set(Reg::Rsi, id(number, 0)).set(Reg::Rdi, 0);
        pager.interrupt(0x36)
    }

    fn schedule(self, thread: u64, word: u64) -> Program {
        let regs = self.set(Reg::Rax, word).set(Reg::Rsi, thread).set(Reg::Rdi, 0);
        regs.set(Reg::Rbx, NONE).set(Reg::Rbp, NONE).interrupt(0x34)
    }

    fn stop(self) -> Program {
        self.ipc(Ipc { send: NONE, partner: Some(0), ..CALL })
    }
}

/// Replies to every message with all of memory, where it is.
fn sigma0() -> Program {
    let reply = Ipc { send: MAP, receive: OPEN, words: Some([0, ALL]), ..CALL };
    Program::new().wait().label("next").ipc(reply).jump("next")
}

/// A static i386 executable of one segment, whose first instruction is behind [`Program::HEADERS`].
pub fn executable(program: Program, at: u64, size: u64) -> Vec<u8> {
    let image = program.executable();
    let mut file = vec![0x7f, b'E', b'L', b'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 3, 0, 1, 0, 0, 0];
    let entry = at as u32 + Program::HEADERS as u32;
    for word in [entry, 52, 0, 0] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for half in [52u16, 32, 1, 0, 0, 0] {
        file.extend_from_slice(&half.to_le_bytes());
    }
    for word in [1, 84, at as u32, at as u32, image.len() as u32, size as u32, 7, 4096] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    file.extend_from_slice(&image);
    file
}

/// A system with this root task.
pub fn config(root: Program) -> Config {
    let module = |name: &str, bytes| Module { command: name.as_bytes().to_vec(), bytes };
    let size = DATA + DATA_SIZE - CODE;
    let modules = vec![
        module("sigma0", executable(sigma0(), SIGMA0_CODE, 0x1000)),
        module("root and arguments", executable(root, CODE, size)),
    ];
    Config { modules, memory: MEMORY, ..Config::default() }
}

/// Starts it.
pub fn boot(seed: u64, config: &Config) -> (&'static Model, Arc<Kernel>) {
    // A slice is some ten thousand instructions long.
    let model = Model::new(Settings { seed, tick: 10_000, ..Settings::default() });
    let kernel = system::start(model, &config.encode()).expect("a system of L4");
    let served = kernel.clone();
    model.serve(move || system::serve(&served));
    (model, kernel)
}

/// Runs it in many orders of events: each time it must end with this exit code.
pub fn ends_with(root: &Program, code: u8) {
    for seed in SEEDS {
        let (model, _) = boot(seed, &config(root.clone()));
        let outcome = model.run_for(2_000_000);
        assert_eq!(outcome, Outcome::Off(code), "seed {seed}\n{}", model.written());
    }
}
