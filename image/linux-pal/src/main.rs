//! The kernel image for picoprocesses on Linux: the linux image with the personality `pal` in place of Linux' calls.
//!
//! An image of its own, so that programs of Linux do not pay for it where they start.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

#[allow(dead_code, reason = "what refuses requests is for kernels without processes")]
#[path = "../../linux/src/common.rs"]
mod common;

use alloc::sync::Arc;

use janua_gate::{call::Call, call::Mailbox, ptrace::Ptrace, seccomp::Seccomp, sud::Sud};
use janua_jail::KeyJail;
use janua_object::mm::jail::Jail;
use janua_personality_linux::start::serve as serve_linux;
use janua_personality_pal::start::{serve, start};
use janua_platform_linux::user::HostedUser;
use janua_platform_linux::{LinuxMachine, boot, channel};
use janua_platform_process::ProcessMachine;
use janua_platform_process::context::CallerMemory;
use janua_port::{GateId, HostedGate, Machine, Nanos};

use common::{begin, refuse, refuse_with, signals};

/// The gates of this image.
static GATES: [&dyn HostedGate; 4] = [&Sud, &Seccomp, &Call, &Ptrace];

/// The entry point.
#[expect(unsafe_code, reason = "the linker must find the entry by this name")]
#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    let info = begin();
    let Some(gate) = GATES.iter().find(|gate| u32::from(gate.id().number()) == info.gate) else {
        refuse("the kernel image has no gate of this number")
    };
    if boot::jail() == boot::Jail::Process {
        let gate: &dyn HostedGate = if gate.id() == GateId::Call { &Mailbox } else { *gate };
        let machine = started(ProcessMachine::start(gate));
        let jail = KeyJail::start(machine, Arc::new(CallerMemory), machine.call_entry(), None);
        machine.serve(service(machine, jail))
    }
    let machine = started(LinuxMachine::start(*gate, |_| Ok(())));
    let jail = KeyJail::start(machine, Arc::new(HostedUser), machine.call_entry(), machine.ground());
    machine.serve(service(machine, jail))
}

fn started<M>(made: janua_abi::linux::Result<M>) -> M {
    made.unwrap_or_else(|errno| refuse_with("the host refuses what the kernel needs to start", errno))
}

/// Starts the kernel; its service routine.
fn service(machine: &'static dyn Machine, jail: Option<&'static dyn Jail>) -> impl FnMut() -> Option<Nanos> {
    let (kernel, system) = match start(machine, jail, boot::config(), None, None) {
        Ok(made) => made,
        Err(errno) => refuse_with("the kernel cannot start", errno),
    };
    move || {
        serve(&kernel, &system);
        serve_linux(&kernel, signals(), channel::requests())
    }
}
