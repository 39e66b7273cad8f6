//! The linux kernel image: joins the linux platform, its gates and the Linux personality.
//!
//! Loaded by the `janua` command at its fixed address; the first process of a sandbox enters `_start` on kernel stack 0.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod common;

use alloc::boxed::Box;
use alloc::sync::Arc;

use janua_gate::{call::Call, call::Mailbox, ptrace::Ptrace, ring::Rings, seccomp::Seccomp, signal::Signal, sud::Sud};
use janua_jail::KeyJail;
use janua_personality_invasive::config::Config;
use janua_personality_invasive::memory::Layout;
use janua_personality_linux::boot::BootConfig;
use janua_personality_linux::start::{Interface, start_with};
use janua_platform_linux::machine;
use janua_platform_linux::user::HostedUser;
use janua_platform_linux::{LinuxMachine, boot, channel, tiles};
use janua_platform_process::ProcessMachine;
use janua_platform_process::context::CallerMemory;
use janua_port::{GateId, HostedGate, Tiles};

use common::{begin, refuse, refuse_requests, refuse_with, signals};

/// The gates of this image.
static GATES: [&dyn HostedGate; 5] = [&Sud, &Seccomp, &Call, &Signal, &Ptrace];

/// A tile's memory when the personality is `invasive`; programs are below.
const TILE: Layout = Layout {
    records: 0x1000_0000_0000,
    stacks: 0x1100_0000_0000,
    stack_size: 256 << 10,
    stack_count: 16384,
    heap: 0x1200_0000_0000,
    heap_end: 0x1200_0000_0000 + (16 << 30),
};

/// The entry point.
#[expect(unsafe_code, reason = "the linker must find the entry by this name")]
#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    let info = begin();
    let Some(gate) = GATES.iter().find(|gate| u32::from(gate.id().number()) == info.gate) else {
        refuse("the kernel image has no gate of this number")
    };
    if boot::jail() == boot::Jail::Process {
        apart(*gate);
    }
    let machine = match LinuxMachine::start(*gate, |_| Ok(())) {
        Ok(machine) => machine,
        Err(errno) => refuse_with("the host refuses what the kernel needs to start", errno),
    };
    if Config::is_one(boot::config()) {
        invasive(machine);
    }
    let jail = KeyJail::start(machine, Arc::new(HostedUser), machine.call_entry(), machine.ground());
    let kernel = match start_with(machine, jail, config(), None, Some(&Rings), interface()) {
        Ok(kernel) => kernel,
        Err(errno) => refuse_with("the kernel cannot start", errno),
    };
    machine.serve(move || janua_personality_linux::start::serve(&kernel, signals(), channel::requests()))
}

/// What the personality `linux` is given.
fn config() -> BootConfig {
    match BootConfig::decode(boot::config()) {
        Ok(config) => config,
        Err(errno) => refuse_with("the kernel cannot read what it is given", errno),
    }
}

/// Its calls, and the kernels beside this one.
fn interface() -> Interface {
    Interface { tiles: tiles::others().map(|tiles| Box::new(tiles) as Box<dyn Tiles>), ..Interface::linux() }
}

/// Goes on with guests in processes of their own.
fn apart(gate: &'static dyn HostedGate) -> ! {
    let gate: &dyn HostedGate = if gate.id() == GateId::Call { &Mailbox } else { gate };
    let machine = match ProcessMachine::start(gate) {
        Ok(machine) => machine,
        Err(errno) => refuse_with("the host refuses what the kernel needs to start", errno),
    };
    if Config::is_one(boot::config()) {
        refuse("the personality `invasive` does not run under the jail `process`");
    }
    let jail = KeyJail::start(machine, Arc::new(CallerMemory), machine.call_entry(), None);
    let kernel = match start_with(machine, jail, config(), None, Some(&Rings), interface()) {
        Ok(kernel) => kernel,
        Err(errno) => refuse_with("the kernel cannot start", errno),
    };
    machine.serve(move || janua_personality_linux::start::serve(&kernel, signals(), channel::requests()))
}

/// Goes on with the invasive personality. Its kernel has nothing to do at a time: the first process only waits for the outside.
fn invasive(machine: &'static LinuxMachine) -> ! {
    use janua_personality_invasive::system::Direct;
    use janua_personality_invasive::{system, table};
    let entry = machine.call_entry().filter(|_| machine.allow_direct_calls().is_ok());
    let direct = entry.map(|entry| Direct { functions: table::functions(), entry });
    match system::start(machine, boot::config(), TILE, direct, machine::forbids_code) {
        Ok(kernel) => machine.serve(move || {
            refuse_requests(machine, "this personality runs one application, and no other program");
            system::outside(&kernel, signals());
            None
        }),
        Err(errno) => refuse_with("the kernel cannot start", errno),
    }
}
