//! The kernel image for systems of L4, Version 2, on Linux: joins the linux platform with guests in processes of their own, the gate of the interface and the
//! personality `l4v2`.
//!
//! An image of its own, so that programs of Linux do not pay for it where they start.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

#[path = "../../linux/src/common.rs"]
mod common;

use janua_gate::l4::Traced;
use janua_personality_l4v2::system;
use janua_platform_linux::boot;
use janua_platform_process::ProcessMachine;
use janua_platform_process::mirror::eager;
use janua_port::GateId;

use common::{begin, refuse, refuse_requests, refuse_with, signals};

/// The entry point.
#[expect(unsafe_code, reason = "the linker must find the entry by this name")]
#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    let info = begin();
    if boot::jail() != boot::Jail::Process || info.gate != u32::from(GateId::Ptrace.number()) {
        refuse("tasks of L4 are host processes of their own, which the kernel traces")
    }
    let machine = match ProcessMachine::start(&Traced) {
        Ok(machine) => machine,
        Err(errno) => refuse_with("the host refuses what the kernel needs to start", errno),
    };
    eager::turn_on();
    let kernel = match system::start(machine, boot::config()) {
        Ok(kernel) => kernel,
        Err(errno) => refuse_with("the kernel cannot start", errno),
    };
    machine.serve(move || {
        refuse_requests(machine, "a system of L4 has modules, and runs no other program");
        system::outside(&kernel, signals());
        system::serve(&kernel)
    })
}
