//! What the first tasks find, and modules that are none.

mod common;

use common::*;
use janua_abi::linux::Errno;
use janua_personality_l4v2::config::{Config, Module};
use janua_personality_l4v2::system;
use janua_platform_model::program::{CODE, Program, Reg};
use janua_platform_model::{Model, Settings};
use janua_port::Machine;

#[test]
fn registers_and_stack_lead_to_the_kernel_info_page() {
    // ebx is the loader's structure, ecx the page, as is what is behind the return address on the stack. Loads are of 64 bits.
    let root = Program::new().copy(Reg::R10, Reg::Rbx).copy(Reg::R11, Reg::Rcx).copy(Reg::R9, Reg::Rsp);
    let root = root.must(Reg::R10, 0x1_1000, 1).must(Reg::R11, 0x1_0000, 2).load(Reg::Rax, Reg::R11).must(Reg::R9, 0x1_6ff8, 3);
    // The magic word: the lower half of the first 64 bits.
    let root = root.add_to_rax(-0x4be6_344c).copy(Reg::Rdx, Reg::Rax).set(Reg::R8, DATA).store(Reg::R8, Reg::Rdx);
    ends_with(&root.store_at(DATA + 4, 0).load_at(DATA).must(Reg::Rax, 0, 4).exit(42), 42);
}

/// Starts a system that cannot be: what is written.
fn refused(config: &Config) -> String {
    let model = Model::new(Settings::default());
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| system::start(model, &config.encode()).map(|_| ())));
    assert!(ended.is_err(), "it was started");
    let code = model.notified();
    assert!(format!("{code:?}").contains("Over(126)"), "{code:?}");
    model.written()
}

#[test]
fn modules_that_are_none_are_reported() {
    let right = config(Program::new().exit(0));
    let with = |change: &dyn Fn(&mut Config)| {
        let mut config = right.clone();
        change(&mut config);
        refused(&config)
    };
    let says = |said: String, what: &str| assert!(said.contains(what), "{said}");
    says(with(&|config| drop(config.modules.pop())), "needs two modules");
    says(with(&|config| config.memory = 4096), "too few");
    says(with(&|config| config.modules[0].bytes.clear()), "sigma0: not a static 32-bit executable");
    says(with(&|config| config.modules[1].bytes.truncate(80)), "root: not a static 32-bit executable");
    says(with(&|config| config.modules[0].bytes[18] = 62), "sigma0: not a static");
    says(with(&|config| config.modules[0].bytes = config.modules[1].bytes.clone()), "are linked to the same memory");
    // Where the kernel's own pages are, and behind the end of memory.
    let at = |addr| executable(Program::new(), addr, 0x1000);
    says(with(&|config| config.modules[0].bytes = at(0x1_0000)), "memory for programs is");
    says(with(&|config| config.modules[0].bytes = at(MEMORY)), "memory for programs is");
    // A size that is beyond all addresses, and one that is less than what is in the file.
    says(with(&|config| config.modules[0].bytes[52 + 20..52 + 24].fill(0xff)), "not a static");
    says(with(&|config| config.modules[0].bytes[52 + 20..52 + 24].fill(0)), "not a static");
    // More of the file than there is, and a table of segments outside of it.
    says(with(&|config| config.modules[0].bytes[52 + 16..52 + 20].fill(0x7f)), "not a static");
    says(with(&|config| config.modules[0].bytes[28..32].fill(0xff)), "not a static");
    let long = |len: usize| Module { command: vec![b'x'; len], bytes: vec![0; 16] };
    says(with(&|config| config.modules.insert(1, long(20_000))), "arguments are too long");
    let large = || Module { command: b"data".to_vec(), bytes: vec![0; MEMORY as usize - CODE as usize] };
    says(with(&|config| config.modules.insert(1, large())), "data: there is no memory left for it");
}

#[test]
fn threads_are_among_those_that_the_outside_allows() {
    let model = Model::new(Settings::default());
    // Room for one more: for sigma0.
    model.accounts().tasks.force(usize::MAX - 1);
    let started = system::start(model, &config(Program::new().exit(0)).encode());
    assert_eq!(started.map(|_| ()), Err(Errno::EAGAIN), "the root task is one too many");
}
