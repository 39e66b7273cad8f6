//! The x86_64 kernel image: joins the bare machine, its gates and the Linux personality.
//!
//! The loader brings one module besides the kernel: the configuration and the file tree, as [`archive`] has them.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use core::sync::atomic::AtomicU32;

use janua_gate::{
    callgate::CallGate, int::Int, syscall::Syscall, sysenter::Sysenter, ud::Ud, vsyscall::Vsyscall,
};
use janua_object::fs::ext4;
use janua_personality_linux::boot::archive;
use janua_platform_x86_64::heap::Heap;
use janua_platform_x86_64::machine::{BareMachine, LockSleep};
use janua_platform_x86_64::report;
use janua_port::TrapGate;
use janua_rt::Sleep;

#[global_allocator]
static HEAP: Heap = Heap::new();

/// The gates of this image; the one that is used most comes first.
static GATES: [&dyn TrapGate; 6] = [&Syscall, &Sysenter, &CallGate, &Int, &Vsyscall, &Ud];

struct Locks;

impl Sleep for Locks {
    fn sleep(&self, word: &AtomicU32, expected: u32) {
        LockSleep::sleep(word, expected);
    }
    fn wake_one(&self, word: &AtomicU32) {
        LockSleep::wake(word);
    }
    fn give_way(&self) {
        LockSleep::give_way();
    }
}

static LOCKS: &dyn Sleep = &Locks;

/// Where the platform's start code goes.
#[expect(unsafe_code, reason = "the platform's start code calls it by this name")]
#[unsafe(no_mangle)]
extern "C" fn janua_start() -> ! {
    let machine = BareMachine::start(&GATES);
    janua_rt::sync::set_sleep(&LOCKS);
    let (config, root) = match archive::split(machine.initrd()) {
        Some(parts) => parts,
        None => report::stop(format_args!(
            "the initial file tree is missing or does not begin with a configuration (start it by `janua boot`)"
        )),
    };
    machine.set_root(root);
    let kernel = match janua_personality_linux::start::start(machine, config, Some(ext4::mount)) {
        Ok(kernel) => kernel,
        Err(errno) => report::stop(format_args!("the kernel cannot start: {errno:?}")),
    };
    machine.serve(move || janua_personality_linux::start::serve(&kernel, 0))
}

// A check of the whole workspace, for the host, finds the standard library's own.
#[cfg(target_os = "none")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    report::stop(format_args!("kernel fault: {info}"))
}
