//! The serial line (GRLIB's APBUART): programs' output and the kernel's own voice.

const DATA: usize = 0x8000_0100;
const STATUS: usize = DATA + 4;
const CONTROL: usize = DATA + 8;
/// The transmitter has room.
const READY: u32 = 1 << 2;
/// Receiver and transmitter on.
const ON: u32 = 3;

pub fn init() {
    // SAFETY: the device's register.
    unsafe { core::ptr::write_volatile(CONTROL as *mut u32, ON) };
}

/// Writes the bytes as they are.
pub fn write(bytes: &[u8]) {
    for &byte in bytes {
        // SAFETY: the device's registers.
        unsafe {
            while core::ptr::read_volatile(STATUS as *const u32) & READY == 0 {}
            core::ptr::write_volatile(DATA as *mut u32, byte.into());
        }
    }
}
