//! The linux kernel image: joins the linux platform, its gates and the Linux personality.
//!
//! Loaded by the `janua` command at its fixed address; the first process of a sandbox enters `_start` on kernel stack 0.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::sync::atomic::AtomicU32;

use janua_gate::{call::Call, call::Mailbox, ptrace::Ptrace, ring::Rings, seccomp::Seccomp, signal::Signal, sud::Sud};
use janua_jail::KeyJail;
use janua_personality_invasive::config::Config;
use janua_personality_invasive::memory::Layout;
use janua_platform_linux::heap::Heap;
use janua_platform_linux::host::LinuxHost;
use janua_platform_linux::machine::{self, LockSleep};
use janua_platform_linux::user::HostedUser;
use janua_platform_linux::{LinuxMachine, boot, channel, sys};
use janua_platform_process::ProcessMachine;
use janua_platform_process::context::CallerMemory;
use janua_port::machine::Outside;
use janua_port::{Answer, GateId, Host, HostedGate, Machine, Request};
use janua_rt::Sleep;

#[global_allocator]
static HEAP: Heap = Heap::new();

/// The gates of this image.
static GATES: [&dyn HostedGate; 5] = [&Sud, &Seccomp, &Call, &Signal, &Ptrace];

/// A tile's memory when the personality is `invasive`; programs lie below.
const TILE: Layout = Layout {
    records: 0x1000_0000_0000,
    stacks: 0x1100_0000_0000,
    stack_size: 256 << 10,
    stack_count: 16384,
    heap: 0x1200_0000_0000,
    heap_end: 0x1200_0000_0000 + (16 << 30),
};

struct Locks;

impl Sleep for Locks {
    fn sleep(&self, word: &AtomicU32, expected: u32) {
        LockSleep::sleep(word, expected);
    }
    fn wake_one(&self, word: &AtomicU32) {
        LockSleep::wake(word);
    }
}

static LOCKS: &dyn Sleep = &Locks;

/// The entry point.
#[expect(unsafe_code, reason = "the linker must find the entry by this name")]
#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    HEAP.claim();
    janua_rt::sync::set_sleep(&LOCKS);
    let info = boot::info();
    if info.magic != boot::MAGIC {
        // Nothing else in there can be relied on, so the supervisor is notified by the end of this process alone.
        let _ = writeln!(Line, "janua: the kernel image and the command have not been built together");
        sys::exit_group(125);
    }
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
    let jail = KeyJail::start(machine, &HostedUser, machine.call_entry(), machine.ground());
    let kernel = match janua_personality_linux::start::start(machine, jail, boot::config(), None, Some(&Rings)) {
        Ok(kernel) => kernel,
        Err(errno) => refuse_with("the kernel cannot start", errno),
    };
    machine.serve(move || {
        let signals = boot::info().control.signals.swap(0, core::sync::atomic::Ordering::SeqCst);
        janua_personality_linux::start::serve(&kernel, signals, channel::requests())
    })
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
    let jail = KeyJail::start(machine, &CallerMemory, machine.call_entry(), None);
    let kernel = match janua_personality_linux::start::start(machine, jail, boot::config(), None, Some(&Rings)) {
        Ok(kernel) => kernel,
        Err(errno) => refuse_with("the kernel cannot start", errno),
    };
    machine.serve(move || {
        let signals = boot::info().control.signals.swap(0, core::sync::atomic::Ordering::SeqCst);
        janua_personality_linux::start::serve(&kernel, signals, channel::requests())
    })
}

/// Goes on with the invasive personality. Its kernel has nothing to do at a time: the first process only waits for the outside.
fn invasive(machine: &'static LinuxMachine) -> ! {
    use janua_personality_invasive::system::Direct;
    use janua_personality_invasive::{system, table};
    let entry = machine.call_entry().filter(|_| machine.allow_direct_calls().is_ok());
    let direct = entry.map(|entry| Direct { functions: table::functions(), entry });
    match system::start(machine, boot::config(), TILE, direct, machine::forbids_code) {
        Ok(kernel) => machine.serve(move || {
            refuse_requests(machine);
            system::outside(&kernel, boot::info().control.signals.swap(0, core::sync::atomic::Ordering::SeqCst));
            None
        }),
        Err(errno) => refuse_with("the kernel cannot start", errno),
    }
}

/// Answers requests to a kernel that has no processes.
fn refuse_requests(machine: &LinuxMachine) {
    for asked in channel::requests() {
        asked.handed.into_iter().for_each(|fd| LinuxHost.close(fd));
        let answer = match asked.request {
            Request::Guests { id } => Answer::Guests { id, guests: Vec::new(), more: false },
            Request::Run { id, .. } => {
                Answer::Refused { id, why: String::from("this personality runs one application, and no other program") }
            }
            Request::Signal { .. } | Request::Resize { .. } => continue,
        };
        machine.notify_outside(Outside::Answer(answer));
    }
}

/// A text of bounded length on its way to standard error.
struct Line;

impl Write for Line {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        sys::write_all(2, text.as_bytes());
        Ok(())
    }
}

/// What is left to be compared of a text's start; `None` once it was another.
#[cfg(target_os = "none")]
struct Start<'a>(Option<&'a str>);

#[cfg(target_os = "none")]
impl Start<'_> {
    /// Whether a text begins so: the only sign by which `alloc` reports that there was no memory.
    fn is(text: impl core::fmt::Display, wanted: &str) -> bool {
        let mut start = Start(Some(wanted));
        let _ = write!(start, "{text}");
        start.0 == Some("")
    }
}

#[cfg(target_os = "none")]
impl Write for Start<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.0 = self.0.and_then(|wanted| {
            if text.len() < wanted.len() { wanted.strip_prefix(text) } else { text.starts_with(wanted).then_some("") }
        });
        Ok(())
    }
}

/// The exit code of a sandbox that ends because its kernel's heap is full: that of a program the host's kernel ends for memory.
#[cfg(target_os = "none")]
const OUT_OF_MEMORY: u8 = 137;

fn refuse(why: &str) -> ! {
    let _ = writeln!(Line, "janua: {why}");
    machine::stop_sandbox(125)
}

fn refuse_with(why: &str, errno: janua_abi::linux::Errno) -> ! {
    let _ = writeln!(Line, "janua: {why}: {errno:?}");
    machine::stop_sandbox(125)
}

// A check of the whole workspace, for the host, finds the standard library's own.
#[cfg(target_os = "none")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    if Start::is(info.message(), "memory allocation of ") {
        // The supervisor says so.
        boot::accounts().note_exhausted();
        machine::stop_sandbox(OUT_OF_MEMORY)
    }
    let _ = writeln!(Line, "janua: kernel fault: {info}");
    machine::stop_sandbox(125)
}
