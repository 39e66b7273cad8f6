//! Disassembles the kernel images for x86-64 and refuses instructions they must not hold.
//!
//! The guest's vector state is not saved on the way into the kernel, so the kernel may not touch it; host calls and
//! changes of the protection key are made in a few audited functions and nowhere else. On the bare machine the ways to user code are
//! in the pages that its tables map with page-table isolation, and nothing is both written and executed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use iced_x86::{
    CpuidFeature, Decoder, DecoderOptions, Formatter, Instruction, InstructionInfoFactory, IntelFormatter, Mnemonic, Register,
};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SectionKind, SegmentFlags, SymbolKind, elf};

use crate::build;

/// The names of the checks, as in `docs/rules.md`.
pub const RULES: &[&str] =
    &["no-vector-registers", "audited-host-calls", "audited-key-switch", "entries-only", "write-or-execute"];

/// A function that may hold an instruction which is refused elsewhere.
struct Audited {
    rule: &'static str,
    /// The function's path, or the end of it after `::`; for assembly the symbol.
    symbol: &'static str,
    reason: &'static str,
}

const fn audited(rule: &'static str, symbol: &'static str, reason: &'static str) -> Audited {
    Audited { rule, symbol, reason }
}

/// Every exception. One that the image does not need is an error, so that none outlives its function.
const AUDITED: &[Audited] = &[
    audited("audited-host-calls", "hostcall", "the one way of the kernel to its host"),
    audited("audited-host-calls", "hostcall32", "the thread's descriptor, which only the 32-bit interface sets"),
    audited("audited-host-calls", "hosted_signal_entry", "rt_sigreturn into interrupted kernel code"),
    audited("audited-host-calls", "hosted_clone", "the child starts on another stack, so nothing may be on the old one"),
    audited(
        "audited-host-calls",
        "hosted_hop",
        "clone, and in the parent madvise, futex and exit on one shared stack, with no push between",
    ),
    audited("audited-host-calls", "janua_make_zygote", "the child goes on in the stub's code and has no stack"),
    audited("audited-host-calls", "hosted_hand_over", "futex and exit: the stack is another process' from the word on"),
    audited("audited-host-calls", "hosted_end", "exit after the stack has been given back"),
    audited("audited-key-switch", "hosted_call_entry_pkey", "opens the kernel's key; everything is derived anew behind it"),
    audited("audited-key-switch", "hosted_signal_entry_pkey", "opens the kernel's key; everything is derived anew behind it"),
    audited("audited-key-switch", "hosted_queued_entry_pkey", "opens the kernel's key; everything is derived anew behind it"),
    audited("audited-key-switch", "hosted_signal_entry", "loads the guest's vector state from the host's frame; never PKRU"),
    audited("audited-key-switch", "hosted_exit", "closes the kernel's key; checked behind it"),
    audited("audited-key-switch", "hosted_fpu_load", "loads the guest's vector state; never PKRU, which is checked after"),
    audited("audited-key-switch", "hosted_restore", "run by the guest; whether it has loaded PKRU is checked behind it"),
    audited("audited-key-switch", "hosted_fpu_store", "stores the guest's vector state"),
    audited("no-vector-registers", "search_escaped", "puts the registers that it uses aside"),
    audited("no-vector-registers", "search_branches", "puts the registers that it uses aside"),
];

/// The exceptions of the image for the bare machine, which makes no host calls and has no key.
const AUDITED_BARE: &[Audited] = &[
    audited("audited-key-switch", "fpu::Area::store", "stores the vector state of the thread that leaves the core"),
    audited("audited-key-switch", "fpu::Area::load", "loads that of the thread that comes"),
    audited("no-vector-registers", "fpu::x87", "tells which exception the guest's x87 unit raised; changes nothing"),
];

/// Symbols round the bare image's entries (`image/x86_64/link.ld`).
const ENTRIES: [&str; 2] = ["kernel_text_start", "kernel_entry_end"];
/// The bare image is linked from here on; what is below runs before there are page tables.
const KERNEL: u64 = 0xffff_ffff_8000_0000;

/// What the scan of one image found.
pub struct Findings {
    pub instructions: usize,
    /// Rule, and a line that reports where and what.
    pub breaches: Vec<(&'static str, String)>,
}

/// Scans the image at `path`.
pub fn scan(path: &Path) -> Result<Findings, String> {
    let bytes = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let file = object::File::parse(&*bytes).map_err(|e| format!("{}: {e}", path.display()))?;
    let functions = Functions::of(&file);
    let mut findings = Findings { instructions: 0, breaches: Vec::new() };
    let mut factory = InstructionInfoFactory::new();
    let [first, last] = ENTRIES.map(|name| file.symbols().find(|s| s.name() == Ok(name)).map(|s| s.address()));
    let entries = first.zip(last).map(|(first, last)| first..last);
    let (audited, start) = if entries.is_some() { (AUDITED_BARE, KERNEL) } else { (AUDITED, 0) };
    let mut needed = vec![false; audited.len()];
    if entries.is_some() {
        findings.breaches.extend(written_and_executed(&file));
    }
    for section in file.sections().filter(|s| s.kind() == SectionKind::Text && s.address() >= start) {
        let data = section.data().map_err(|e| format!("{}: {e}", path.display()))?;
        let mut decoder = Decoder::with_ip(64, data, section.address(), DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            findings.instructions += 1;
            let strays = entries.as_ref().is_some_and(|entries| is_exit(&instruction) && !entries.contains(&instruction.ip()));
            let Some(rule) = strays.then_some("entries-only").or_else(|| refused(&instruction, &mut factory)) else {
                continue;
            };
            let function = functions.at(instruction.ip());
            match audited.iter().position(|a| a.rule == rule && matches(function, a.symbol)) {
                Some(exception) => needed[exception] = true,
                None => {
                    let line = format!("{:#x} in {function}: {}", instruction.ip(), text(&instruction));
                    findings.breaches.push((rule, line));
                }
            }
        }
    }
    // Those of the personalities `l4v2` and `pal` have part of what the other for Linux has.
    let is_part = path.file_name().is_some_and(|name| name == "janua-linux-l4" || name == "janua-linux-pal");
    for exception in audited.iter().zip(needed).filter(|(_, needed)| !needed && !is_part).map(|(a, _)| a) {
        let line = format!("{} needs no exception any more ({})", exception.symbol, exception.reason);
        findings.breaches.push((exception.rule, line));
    }
    Ok(findings)
}

/// Whether an instruction is part of a way to user code.
fn is_exit(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Iretq | Mnemonic::Iretd | Mnemonic::Sysretq | Mnemonic::Sysret | Mnemonic::Sysexit | Mnemonic::Sysexitq
    )
}

/// Segments of the kernel that can be written and executed.
fn written_and_executed(file: &object::File) -> Vec<(&'static str, String)> {
    let wx = elf::PF_W | elf::PF_X;
    let both = |flags: SegmentFlags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags & wx == wx);
    let segments = file.segments().filter(|segment| segment.address() >= KERNEL && both(segment.flags()));
    segments.map(|segment| ("write-or-execute", format!("the segment at {:#x}", segment.address()))).collect()
}

/// The rule an instruction breaks outside audited functions.
fn refused(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Option<&'static str> {
    match instruction.mnemonic() {
        Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Int => {
            return Some("audited-host-calls");
        }
        Mnemonic::Wrpkru
        | Mnemonic::Xrstor
        | Mnemonic::Xrstor64
        | Mnemonic::Xsave
        | Mnemonic::Xsave64
        | Mnemonic::Xsavec
        | Mnemonic::Xsavec64
        | Mnemonic::Xsaveopt
        | Mnemonic::Xsaveopt64
        | Mnemonic::Fxrstor
        | Mnemonic::Fxrstor64
        | Mnemonic::Fxsave
        | Mnemonic::Fxsave64
        | Mnemonic::Ldmxcsr
        | Mnemonic::Fldcw
        | Mnemonic::Fninit => return Some("audited-key-switch"),
        _ => {}
    }
    let vector = |r: Register| r.is_vector_register() || r.is_mm() || r.is_st() || r.is_k();
    // The implicit top of the x87 stack is no "used register".
    if instruction.cpuid_features().contains(&CpuidFeature::FPU) {
        return Some("no-vector-registers");
    }
    let used = factory.info(instruction).used_registers();
    used.iter().any(|u| vector(u.register())).then_some("no-vector-registers")
}

fn text(instruction: &Instruction) -> String {
    let mut text = String::new();
    IntelFormatter::new().format(instruction, &mut text);
    text
}

/// Whether `function` is `symbol` or ends in `::symbol`.
fn matches(function: &str, symbol: &str) -> bool {
    function.strip_suffix(symbol).is_some_and(|head| head.is_empty() || head.ends_with("::"))
}

/// A symbol's name without the angle brackets round types, which only one of the compilers' two ways of mangling has.
fn plain(symbol: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(symbol)).replace(['<', '>'], "")
}

/// The functions of an image: first address, size, name. Labels inside assembly are none.
struct Functions(Vec<(u64, u64, String)>);

impl Functions {
    fn of(file: &object::File) -> Functions {
        let mut list: Vec<(u64, u64, String)> = file
            .symbols()
            .filter(|s| s.kind() == SymbolKind::Text)
            .filter_map(|s| Some((s.address(), s.size(), plain(s.name().ok()?))))
            .collect();
        list.sort();
        Functions(list)
    }

    fn at(&self, address: u64) -> &str {
        let after = self.0.partition_point(|(start, ..)| *start <= address);
        match after.checked_sub(1).map(|i| &self.0[i]) {
            Some((start, size, name)) if address - start < *size => name,
            _ => "(no function)",
        }
    }
}

/// `cargo xtask scan [FILE]`.
pub fn command(file: Option<&str>) -> Result<ExitCode, String> {
    let images = match file {
        Some(file) => vec![PathBuf::from(file)],
        None => vec![build::image()?.full, build::image_l4()?.full, build::image_pal()?.full, build::image_x86_64()?.full],
    };
    let mut clean = true;
    for image in images {
        let findings = scan(&image)?;
        for (rule, line) in &findings.breaches {
            println!("{rule}: {line}");
        }
        println!("{}: {} instructions, {} refused", image.display(), findings.instructions, findings.breaches.len());
        clean &= findings.breaches.is_empty();
    }
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(bytes: &[u8]) -> Option<&'static str> {
        let instruction = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode();
        refused(&instruction, &mut InstructionInfoFactory::new())
    }

    #[test]
    fn refuses_what_it_should() {
        assert_eq!(rule(&[0x0f, 0x05]), Some("audited-host-calls"));
        assert_eq!(rule(&[0xcd, 0x80]), Some("audited-host-calls"));
        assert_eq!(rule(&[0x0f, 0x01, 0xef]), Some("audited-key-switch"));
        assert_eq!(rule(&[0x0f, 0xae, 0x28]), Some("audited-key-switch"));
        assert_eq!(rule(&[0x66, 0x0f, 0xef, 0xc0]), Some("no-vector-registers"));
        assert_eq!(rule(&[0xd9, 0xe8]), Some("no-vector-registers"));
        assert_eq!(rule(&[0x48, 0x89, 0xc3]), None);
    }

    #[test]
    fn ways_to_user_code_are_known() {
        let is_exit = |bytes: &[u8]| is_exit(&Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode());
        for bytes in [&[0x48, 0xcf][..], &[0x48, 0x0f, 0x07], &[0x0f, 0x35]] {
            assert!(is_exit(bytes), "{bytes:x?}");
        }
        assert!(!is_exit(&[0xc3]));
    }

    #[test]
    fn names_are_alike_however_they_are_mangled() {
        assert_eq!(plain("_ZN1a3fpu4Area4load17h0123456789abcdefE"), "a::fpu::Area::load");
        assert_eq!(plain("_RNvMNtC1a3fpuNtB2_4Area4load"), "a::fpu::Area::load");
    }

    #[test]
    fn symbols_match_by_path() {
        assert!(matches("janua_platform_linux::host::raw", "host::raw"));
        assert!(!matches("janua_platform_linux::host::draw", "raw"));
    }
}
