//! What the bare machines and the command that boots them have agreed on.

use janua_port::HostFd;

/// How the kernel's last line begins on the console; the exit code follows.
pub const EXIT_MARK: &str = "janua-exit ";

/// Descriptors that the bare x86_64 machine's kernel has from the start: the serial line three times, and the initial file tree.
pub const SERIAL: [HostFd; 3] = [HostFd(0), HostFd(1), HostFd(2)];
pub const INITRD: HostFd = HostFd(3);

/// Where the LEON3's loader puts the module: its header comes first, which begins with the mark.
pub const MODULE: usize = 0x4200_0000;
pub const MODULE_MARK: u32 = 0x4a4c_334d;
/// Begins a line of the LEON3's that is the kernel's own, wherever the output before it ended: a record separator, which text does not have.
pub const OWN: &str = "\x1e";
/// The line before the LEON3's last: windows spilled and filled, and switches between threads.
pub const WINDOWS_MARK: &str = "janua-windows ";

/// Commands of the telnet protocol, by which the serial line reports the window's size and the input's end (RFC 854, 1073, 1184).
pub mod telnet {
    pub const EOF: u8 = 236;
    pub const SE: u8 = 240;
    pub const SB: u8 = 250;
    pub const WILL: u8 = 251;
    pub const DONT: u8 = 254;
    pub const IAC: u8 = 255;
    pub const NAWS: u8 = 31;
}
