//! `int3`: what a program asks the kernel's debugger for, by the instruction behind it.
//!
//! | bytes | meaning |
//! |---|---|
//! | `cc eb LEN text` | show the thread's state, with a text |
//! | `cc 90 eb LEN text` | show the text alone |
//! | `cc 3c NUMBER` | a service, or the character NUMBER where there is none of this number |
//! | `cc` | show the thread's state |

use alloc::string::{String, ToString};
use alloc::vec;
use core::fmt::Write;

use janua_abi::l4v2::debug as service;
use janua_port::Frame;

use crate::Thread;
use crate::personality::name;
use crate::registers::Registers;
use crate::system::{end, say};

/// The longest text that is written at a time, bytes.
const TEXT_MOST: usize = 4096;
/// The text that ends the system: the debugger's command for a new start of the machine.
const REBOOT: &[u8] = b"*#^";
/// The same with an exit code, in al: Janua's own.
const EXIT: &[u8] = b"janua-exit";

/// Writes for programs.
fn write(thread: &Thread, text: &[u8]) {
    let written = thread.kernel.config.output.and_then(|fd| Some(thread.machine().host()?.write(fd, text, None)));
    if !matches!(written, Some(Ok(_))) {
        thread.machine().console().write(text);
    }
}

/// A thread's registers.
pub fn show(thread: &Thread, registers: &Registers) {
    let machine = thread.machine();
    let Registers { eax, ebx, ecx, edx, esi, edi, ebp, esp, eip, eflags } = *registers;
    say(machine, format_args!("  eip {eip:08x} esp {esp:08x} ebp {ebp:08x} eflags {eflags:08x}"));
    say(machine, format_args!("  eax {eax:08x} ebx {ebx:08x} ecx {ecx:08x} edx {edx:08x} esi {esi:08x} edi {edi:08x}"));
}

/// Memory of the thread's, up to where it ends.
fn memory(thread: &Thread, addr: u32, len: usize) -> vec::Vec<u8> {
    let mut bytes = vec![0; len.min(TEXT_MOST)];
    let got = thread.user().copy_in_partial(&mut bytes, addr as usize);
    bytes.truncate(got);
    bytes
}

/// An `int3`; the thread goes on behind it.
pub fn breakpoint(thread: &Thread, frame: &mut Frame) {
    let registers = Registers::of(frame);
    match *memory(thread, registers.eip, 3) {
        [0x3c, number, ..] => serve(thread, frame, number, &registers),
        [0xeb, len, ..] => entered(thread, &registers, &memory(thread, registers.eip.wrapping_add(2), len.into())),
        [0x90, 0xeb, len] => write(thread, &memory(thread, registers.eip.wrapping_add(3), len.into())),
        _ => entered(thread, &registers, b""),
    }
}

fn entered(thread: &Thread, registers: &Registers, text: &[u8]) {
    match text {
        REBOOT => end(&thread.kernel, 0),
        EXIT => end(&thread.kernel, (registers.eax & 0xff) as u8),
        _ => {}
    }
    let text = String::from_utf8_lossy(text);
    let colon = if text.is_empty() { "" } else { ": " };
    say(thread.machine(), format_args!("thread {} at a breakpoint{colon}{text}", name(thread)));
    show(thread, registers);
}

/// A service of the debugger.
fn serve(thread: &Thread, frame: &mut Frame, number: u8, registers: &Registers) {
    let mut text = String::new();
    match number {
        service::CHARACTER => return write(thread, &[(registers.eax & 0xff) as u8]),
        service::CHARACTERS => return write(thread, &memory(thread, registers.eax, registers.ebx as usize)),
        service::STRING => {
            let bytes = memory(thread, registers.eax, TEXT_MOST);
            return write(thread, bytes.split(|byte| *byte == 0).next().unwrap_or_default());
        }
        service::DECIMAL => text += &registers.eax.cast_signed().to_string(),
        // Nobody types.
        service::READ => return frame.rax = 0xff,
        character @ 0x20..=0x7f => text.push(character.into()),
        _ => match service::HEX.iter().find(|(known, _)| *known == number) {
            Some((_, digits)) => {
                let mask = u32::MAX >> (32 - 4 * digits);
                // Writing to a string cannot fail.
                let _ = write!(text, "{:0digits$x}", registers.eax & mask);
            }
            None => return entered(thread, registers, b""),
        },
    }
    write(thread, text.as_bytes());
}
