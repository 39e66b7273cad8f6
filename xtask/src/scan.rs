//! Disassembles the kernel image and refuses instructions it must not hold.
//!
//! The guest's vector state is not saved on the way into the kernel, so the kernel may not touch it; host calls and
//! changes of the protection key are made in a few audited functions and nowhere else.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use iced_x86::{
    CpuidFeature, Decoder, DecoderOptions, Formatter, Instruction, InstructionInfoFactory, IntelFormatter, Mnemonic,
    Register,
};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};

use crate::build;

/// The names of the checks, as in `docs/rules.md`.
pub const RULES: &[&str] = &["no-vector-registers", "audited-host-calls", "audited-key-switch"];

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
    audited(
        "audited-host-calls",
        "hosted_clone",
        "the child starts on another stack, so nothing may be on the old one",
    ),
    audited("audited-host-calls", "hosted_hop", "clone and exit on one shared stack, with no push between"),
    audited("audited-host-calls", "hosted_end", "exit after the stack has been given back"),
    audited("audited-key-switch", "hosted_call_entry_pkey", "opens the kernel's key; everything is derived anew behind it"),
    audited("audited-key-switch", "hosted_signal_entry_pkey", "opens the kernel's key; everything is derived anew behind it"),
    audited("audited-key-switch", "hosted_signal_entry", "loads the guest's vector state from the host's frame; never PKRU"),
    audited("audited-key-switch", "hosted_exit", "closes the kernel's key; checked behind it"),
    audited(
        "audited-key-switch",
        "hosted_fpu_load",
        "loads the guest's vector state; never PKRU, which is checked after",
    ),
    audited("audited-key-switch", "hosted_fpu_store", "stores the guest's vector state"),
];

/// What the scan of one image found.
pub struct Findings {
    pub instructions: usize,
    /// Rule, and a line that tells where and what.
    pub breaches: Vec<(&'static str, String)>,
}

/// Scans the image at `path`.
pub fn scan(path: &Path) -> Result<Findings, String> {
    let bytes = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let file = object::File::parse(&*bytes).map_err(|e| format!("{}: {e}", path.display()))?;
    let functions = Functions::of(&file);
    let mut findings = Findings { instructions: 0, breaches: Vec::new() };
    let mut factory = InstructionInfoFactory::new();
    let mut needed = vec![false; AUDITED.len()];
    for section in file.sections().filter(|s| s.kind() == SectionKind::Text) {
        let data = section.data().map_err(|e| format!("{}: {e}", path.display()))?;
        let mut decoder = Decoder::with_ip(64, data, section.address(), DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            findings.instructions += 1;
            let Some(rule) = refused(&instruction, &mut factory) else {
                continue;
            };
            let function = functions.at(instruction.ip());
            match AUDITED.iter().position(|a| a.rule == rule && matches(function, a.symbol)) {
                Some(exception) => needed[exception] = true,
                None => {
                    let line = format!("{:#x} in {function}: {}", instruction.ip(), text(&instruction));
                    findings.breaches.push((rule, line));
                }
            }
        }
    }
    for exception in AUDITED.iter().zip(needed).filter(|(_, needed)| !needed).map(|(a, _)| a) {
        let line = format!("{} needs no exception any more ({})", exception.symbol, exception.reason);
        findings.breaches.push((exception.rule, line));
    }
    Ok(findings)
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

/// The functions of an image: first address, size, name. Labels inside assembly are none.
struct Functions(Vec<(u64, u64, String)>);

impl Functions {
    fn of(file: &object::File) -> Functions {
        let mut list: Vec<(u64, u64, String)> = file
            .symbols()
            .filter(|s| s.kind() == SymbolKind::Text)
            .filter_map(|s| Some((s.address(), s.size(), format!("{:#}", rustc_demangle::demangle(s.name().ok()?)))))
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

/// `cargo xtask scan`.
pub fn command() -> Result<ExitCode, String> {
    let image = build::image()?;
    let findings = scan(&image.full)?;
    for (rule, line) in &findings.breaches {
        println!("{rule}: {line}");
    }
    println!("{} instructions, {} refused", findings.instructions, findings.breaches.len());
    Ok(if findings.breaches.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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
    fn symbols_match_by_path() {
        assert!(matches("janua_platform_linux::host::raw", "host::raw"));
        assert!(!matches("janua_platform_linux::host::draw", "raw"));
    }
}
