//! The LEON3 kernel image.
#![no_std]
#![no_main]
#![deny(unsafe_code)]
#![cfg(target_arch = "sparc")]

extern crate alloc;

use janua_gate::ta::Ta;
use janua_platform_leon3::heap::Heap;
use janua_platform_leon3::machine::Leon3;
use janua_platform_leon3::report;
use janua_port::{Machine, TrapGate};

#[global_allocator]
static HEAP: Heap = Heap::new();

static GATES: [&dyn TrapGate; 1] = [&Ta];

#[expect(unsafe_code, reason = "the platform's start code calls it by this name")]
#[unsafe(no_mangle)]
extern "C" fn janua_start() -> ! {
    let machine = Leon3::start(&GATES);
    machine.console().write(b"hello\n");
    machine.power_off(3)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    report::stop(format_args!("kernel fault: {info}"))
}
