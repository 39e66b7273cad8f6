//! The kernel's own voice.

use janua_port::Console;

use crate::missing;

/// A console without a wire.
pub struct SkeletonConsole;

impl Console for SkeletonConsole {
    /// Puts the bytes out where a person sees them: a serial port (busy-waiting for room), the host's standard error. Called
    /// with locks held and from fault reports: takes no lock of the kernel's, allocates nothing, gives up rather than hangs.
    fn write(&self, _bytes: &[u8]) {
        missing("Console::write")
    }
}
