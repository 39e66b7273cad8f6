//! The x86_64 kernel image: joins the bare machine, its gates and the personalities.
//!
//! The loader brings one module besides the kernel, which shows by how it begins whose it is: the configuration of the personality
//! `invasive`, with the application; that of `l4v2`, with its modules; or that of `linux` or `pal` and the file tree, as [`archive`] has them.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use core::sync::atomic::AtomicU32;

use janua_gate::{
    callgate::CallGate, int::Int, l4::L4, ring::Rings, syscall::Syscall, sysenter::Sysenter, ud::Ud, vsyscall::Vsyscall,
};
use janua_kernel::{Row, Run};
use janua_object::fs::ext4;
use janua_personality_invasive::config::Config;
use janua_personality_invasive::memory::Layout;
use janua_personality_invasive::system::Direct;
use janua_personality_invasive::{Invasive, system, table};
use janua_personality_l4v2::config as l4;
use janua_personality_linux::boot::{BootConfig, archive};
use janua_personality_linux::start as linux;
use janua_personality_pal::config as pal;
use janua_platform_x86_64::heap::{self, Heap};
use janua_platform_x86_64::machine::{BareMachine, LockSleep};
use janua_platform_x86_64::{report, tiles};
use janua_port::{Machine, TrapGate};
use janua_rt::Sleep;

#[global_allocator]
static HEAP: Heap = heap::new();

/// The gates of this image; the one that is used most comes first.
static GATES: [&dyn TrapGate; 6] = [&Syscall, &Sysenter, &CallGate, &Int, &Vsyscall, &Ud];
/// That of the personality `l4v2`, which has vectors of the others.
static L4_GATES: [&dyn TrapGate; 1] = [&L4];

/// The gates for what the loader has brought.
fn gates(initrd: &[u8]) -> &'static [&'static dyn TrapGate] {
    if l4::Config::is_one(initrd) { &L4_GATES } else { &GATES }
}

/// Where a tile has the records of its cores, its stacks and its pages; programs are below.
const RECORDS: usize = 0x1000_0000_0000;
const STACKS: usize = 0x1100_0000_0000;
const HEAP_START: usize = 0x1200_0000_0000;

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
    let machine = BareMachine::start(gates);
    janua_rt::sync::set_sleep(&LOCKS);
    if Config::is_one(machine.initrd()) {
        invasive(machine);
    }
    if l4::Config::is_one(machine.initrd()) {
        l4v2(machine);
    }
    let (config, root) = match archive::split_for(machine.initrd(), tiles::own() as usize) {
        Some(parts) => parts,
        None => report::stop(format_args!(
            "the initial file tree is missing or does not begin with a configuration (start it by `janua boot`)"
        )),
    };
    machine.set_root(root);
    if pal::Config::is_one(config) {
        picoprocesses(machine, config);
    }
    let start = |config| {
        let interface = linux::Interface { tiles: tiles::beside(), ..linux::Interface::linux() };
        linux::start_with(machine, None, config, Some(ext4::mount), Some(&Rings), interface)
    };
    let kernel = match BootConfig::decode(config).and_then(start) {
        Ok(kernel) => kernel,
        Err(errno) => report::stop(format_args!("the kernel cannot start: {errno:?}")),
    };
    machine.begun(!kernel.config.idle);
    machine.serve(move || linux::serve(&kernel, 0, tiles::requests()))
}

/// Goes on with the personality `pal`, which is that of `linux` with other calls.
fn picoprocesses(machine: &'static BareMachine, config: &[u8]) -> ! {
    use janua_personality_pal::start::{serve, start};
    let (kernel, system) = match start(machine, None, config, Some(ext4::mount), tiles::beside()) {
        Ok(made) => made,
        Err(errno) => report::stop(format_args!("the kernel cannot start: {errno:?}")),
    };
    machine.begun(!kernel.config.idle);
    machine.serve(move || {
        serve(&kernel, &system);
        linux::serve(&kernel, 0, tiles::requests())
    })
}

/// What programs call by address, by number: functions of calls that return at once; for others, and where all are to be counted,
/// the number.
fn functions(counted: bool) -> Vec<usize> {
    let word = |row: &Row<Invasive>| match row.run {
        Run::Plain(function) if !counted => function as usize,
        _ => row.number,
    };
    table::ROWS.iter().map(word).collect()
}

/// Goes on with the invasive personality, whose kernel has nothing to do at a time.
fn invasive(machine: &'static BareMachine) -> ! {
    let layout = Layout {
        records: RECORDS,
        stacks: STACKS,
        stack_size: 256 << 10,
        stack_count: 16384,
        heap: HEAP_START,
        // A tile may ask for all the memory there is.
        heap_end: HEAP_START + machine.memory().total as usize,
    };
    // Programs may call the kernel by address only where nothing keeps them from it.
    let counted = Config::decode(machine.initrd()).is_ok_and(|config| config.stats);
    let direct = machine.call_entry().map(|entry| Direct { functions: functions(counted), entry });
    let kernel = match system::start(machine, machine.initrd(), layout, direct, |_| false) {
        Ok(kernel) => kernel,
        Err(errno) => report::stop(format_args!("the kernel cannot start: {errno:?}")),
    };
    machine.serve(move || {
        let _ = &kernel;
        None
    })
}

/// Goes on with the personality `l4v2`.
fn l4v2(machine: &'static BareMachine) -> ! {
    use janua_personality_l4v2::system;
    let kernel = match system::start(machine, machine.initrd()) {
        Ok(kernel) => kernel,
        Err(errno) => report::stop(format_args!("the kernel cannot start: {errno:?}")),
    };
    machine.serve(move || system::serve(&kernel))
}

// A check of the whole workspace, for the host, finds the standard library's own.
#[cfg(target_os = "none")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    report::stop(format_args!("kernel fault: {info}"))
}
