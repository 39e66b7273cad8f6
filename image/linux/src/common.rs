//! What all kernel images for Linux have: their heap, how they begin, and how they end when nothing else is left to be done.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::sync::atomic::{AtomicU32, Ordering};

use janua_abi::linux::Errno;
use janua_platform_linux::heap::Heap;
use janua_platform_linux::host::LinuxHost;
use janua_platform_linux::machine::{self, LockSleep};
use janua_platform_linux::{boot, channel, sys};
use janua_port::machine::Outside;
use janua_port::{Answer, Host, Machine, Request};
use janua_rt::Sleep;

#[global_allocator]
static HEAP: Heap = Heap::new();

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

/// First of all: memory and locks, and what the supervisor has left.
pub fn begin() -> &'static boot::BootInfo {
    HEAP.claim();
    janua_rt::sync::set_sleep(&LOCKS);
    let info = boot::info();
    if info.magic != boot::MAGIC {
        // Nothing else in there can be relied on, so the supervisor is notified by the end of this process alone.
        let _ = writeln!(Line, "janua: the kernel image and the command have not been built together");
        sys::exit_group(125);
    }
    info
}

/// The outside's signals, taken: bit n - 1 is signal n.
pub fn signals() -> u64 {
    boot::info().control.signals.swap(0, Ordering::SeqCst)
}

/// Replies to requests to a kernel that has no processes.
pub fn refuse_requests(machine: &dyn Machine, why: &str) {
    for asked in channel::requests() {
        asked.handed.into_iter().for_each(|fd| LinuxHost.close(fd));
        let answer = match asked.request {
            Request::Guests { id } => Answer::Guests { id, guests: Vec::new(), more: false },
            Request::Run { id, .. } | Request::Metrics { id } | Request::Move { id, .. } => {
                Answer::Refused { id, why: String::from(why) }
            }
            Request::Signal { .. } | Request::Resize { .. } | Request::TileEnded { .. } => continue,
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

/// Ends the sandbox, and reports why.
pub fn refuse(why: &str) -> ! {
    let _ = writeln!(Line, "janua: {why}");
    machine::stop_sandbox(125)
}

/// The same for what the host has refused.
pub fn refuse_with(why: &str, errno: Errno) -> ! {
    let _ = writeln!(Line, "janua: {why}: {}", boot::refusal(errno));
    machine::stop_sandbox(125)
}

// A check of the whole workspace, for the host, finds the standard library's own.
#[cfg(target_os = "none")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    if Start::is(info.message(), "memory allocation of ") {
        // The supervisor reports it.
        boot::accounts().note_exhausted();
        machine::stop_sandbox(OUT_OF_MEMORY)
    }
    let _ = writeln!(Line, "janua: kernel fault: {info}");
    machine::stop_sandbox(125)
}
