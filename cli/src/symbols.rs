//! `janua symbols`: where functions and data of the kernel are, for tools of the host that look into a sandbox's processes.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueHint;
use janua_platform_host::image;

use crate::{exit, run};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  janua symbols > /tmp/perf-PID.map; perf report    names for perf in the samples of host process PID
  janua symbols --elf kernel.elf; gdb -p PID -ex 'add-symbol-file kernel.elf -o 0x552000000000'")]
pub struct Symbols {
    /// Write the kernel image with its symbols to FILE instead, as debuggers want it: an ELF file whose addresses count from
    /// 0x552000000000
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    elf: Option<PathBuf>,
}

/// Prints each function of the kernel: address, size (both hexadecimal) and name, the form of a perf map (Linux,
/// tools/perf/Documentation/jit-interface.txt). They are the same in every sandbox of this command.
pub fn print(which: &Symbols) -> ExitCode {
    let other = match run::other_image() {
        Ok(other) => other,
        Err(why) => return exit::fail(&why),
    };
    let image = other.as_deref().unwrap_or(run::IMAGE);
    if let Some(path) = &which.elf {
        return match std::fs::write(path, image) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => exit::fail(&format!("cannot write {}: {why}", path.display())),
        };
    }
    let functions = match image::functions(image) {
        Ok(functions) => functions,
        Err(why) => return exit::fail(&format!("the kernel image is broken: {why}")),
    };
    let mut text = String::new();
    for function in &functions {
        // A string takes it all.
        let _ = writeln!(text, "{:x} {:x} {}", function.address, function.size, readable(function.name));
    }
    exit::print(text.as_bytes())
}

/// The name as one would write it, without the compiler's hash.
fn readable(name: &str) -> Cow<'_, str> {
    match rustc_demangle::try_demangle(name) {
        Ok(demangled) => format!("{demangled:#}").into(),
        Err(_) => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without either, each start would copy the text.
    #[test]
    fn text_is_mapped_from_the_commands_file() {
        let (file, place) = image::file_of(run::IMAGE).expect("the image is a part of this file");
        janua_platform_host::sandbox::close([file]);
        let segments = image::segments(run::IMAGE).expect("the embedded image");
        let text = segments.iter().find(|segment| segment.is_text()).expect("it has text");
        assert!(text.place(place).is_some(), "its pages are pages of the file");
        assert!(image::room_behind(&segments) >= text.huge().len(), "there is room for its huge pages");
    }

    #[test]
    fn functions_are_in_order_and_apart() {
        let functions = image::functions(run::IMAGE).expect("the embedded image");
        assert!(functions.len() > 1000);
        assert!(functions.windows(2).all(|pair| pair[0].address < pair[1].address));
        let entry = functions.iter().find(|function| function.name == "hosted_call_entry").expect("the entry");
        assert!(entry.size > 16 && entry.address >= 0x5520_0000_0000);
        assert_eq!(readable("_RNvCs1_1a1b"), "a::b");
        assert_eq!(readable("hosted_call_entry"), "hosted_call_entry");
    }
}
