//! What the command found when it was started, noted before the runtime of the language changes it: that one opens /dev/null for
//! standard descriptors that are closed, and ignores SIGPIPE; and before this command ignores SIGXFSZ.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};

/// Bits 0 to 2 for standard descriptors that were closed, and this.
static FOUND: AtomicU32 = AtomicU32::new(0);
const PIPE_IGNORED: u32 = 1 << 3;
const FILE_SIZE_IGNORED: u32 = 1 << 4;

extern "C" fn look() {
    let mut found = 0;
    for fd in 0..3 {
        // SAFETY: a question about a descriptor.
        if unsafe { libc::fcntl(fd as c_int, libc::F_GETFD) } < 0 {
            found |= 1 << fd;
        }
    }
    for (signal, ignored) in [(libc::SIGPIPE, PIPE_IGNORED), (libc::SIGXFSZ, FILE_SIZE_IGNORED)] {
        // SAFETY: an all-zero structure is valid, and filled by the host.
        let handler = unsafe {
            let mut action: libc::sigaction = core::mem::zeroed();
            libc::sigaction(signal, core::ptr::null(), &raw mut action);
            action.sa_sigaction
        };
        if handler == libc::SIG_IGN {
            found |= ignored;
        }
    }
    FOUND.store(found, Ordering::Relaxed);
}

// SAFETY: the C library calls what is listed here before `main`, with its own memory in order; the function needs nothing else.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Whether a standard descriptor (0, 1 or 2) was open.
pub fn was_open(fd: u32) -> bool {
    FOUND.load(Ordering::Relaxed) & 1 << fd == 0
}

/// All three are open now.
pub fn opened() {
    FOUND.fetch_and(PIPE_IGNORED | FILE_SIZE_IGNORED, Ordering::Relaxed);
}

/// Whether SIGPIPE was ignored.
pub fn pipe_signal_was_ignored() -> bool {
    FOUND.load(Ordering::Relaxed) & PIPE_IGNORED != 0
}

/// Whether SIGXFSZ was ignored.
pub fn file_size_signal_was_ignored() -> bool {
    FOUND.load(Ordering::Relaxed) & FILE_SIZE_IGNORED != 0
}

/// From here on a file that would grow beyond the caller's limit is an error (EFBIG), which has a message, instead of an end by SIGXFSZ. A program
/// inside has signals of its own.
pub fn ignore_file_size_signal() {
    // SAFETY: plain words.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
