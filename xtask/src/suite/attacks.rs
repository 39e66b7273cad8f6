//! The programs of `test/attacks`: each tries one way round the jail, as a guest, while a second guest watches.
//!
//! A program's head states how each try must end: `/* none: END */` under `--jail none`, `/* pkey: END */` under `--jail pkey`,
//! `/* process: END */` under `--jail process`,
//! several ends with ` | ` between them. There the kernel is elsewhere: what is where it would be is the guest's own, and so are keys, whose
//! instructions gain nothing where there are any. `succeeded` under `none` shows that the attack is real; `/* no keys: END */` is its end
//! there on a processor without protection keys, where the attack's own instruction is none. `/* skip JAIL: REASON */`
//! leaves one out, and is counted. `stopped` means that the second wall ended the sandbox. `docs/security.md` names the answer
//! to each attack.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic, OpKind};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};

use super::compare::{self, Verdict};
use super::conformance::{directive, sorted};
use crate::guard::Run;
use crate::tally::Tally;
use crate::{build as built, workspace};

/// Seconds one attack may take.
const LIMIT: u64 = 120;

/// Jail and gate of each run.
const COMBINATIONS: &[(&str, &str)] =
    &[("none", "sud"), ("process", compare::PTRACE), ("process", "call"), ("pkey", "sud"), ("pkey", "call")];

/// Where the kernel is in every process.
const KERNEL_BASE: u64 = 0x5520_0000_0000;

/// Runs the attacks whose name holds the filter.
pub fn run(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    let dir = workspace::root().join("test/attacks");
    let gadgets = gadgets(&workspace::target().join("image/janua-linux"))?;
    let lacking = lacking();
    let sources = sorted(&dir)?.into_iter().filter(|source| source.extension().is_some_and(|e| e == "c"));
    let chosen: Vec<(PathBuf, String, &str, &str)> = sources
        .flat_map(|source| {
            let stem = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            COMBINATIONS.iter().map(move |(jail, gate)| (source.clone(), stem.clone(), *jail, *gate))
        })
        .filter(|(_, stem, ..)| super::wanted(filter, &format!("attacks/{stem}")))
        .collect();
    compare::parallel(
        &chosen,
        |(source, stem, jail, gate)| {
            let name = format!("attacks/{stem}/{jail}/{gate}");
            if let (&"pkey", Some(why)) = (jail, &lacking) {
                return Verdict::Skipped(name, why.clone());
            }
            match judge(source, stem, jail, gate, &gadgets) {
                Ok(None) => Verdict::Passed(name),
                Ok(Some(reason)) => Verdict::Skipped(name, reason),
                Err(why) => Verdict::Failed(name, why),
            }
        },
        |verdict| verdict.count(tally),
    );
    Ok(())
}

/// Why the jail `pkey` cannot be tried here, in the command's own words.
fn lacking() -> Option<String> {
    let output = Command::new(built::janua()).args(["run", "--jail", "pkey", "--", "/bin/true"]).output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr);
    (output.status.code() == Some(125) && said.contains("jail `pkey`")).then(|| said.lines().next().unwrap_or("").into())
}

/// Whether the host's processor and Linux have protection keys.
pub fn has_keys() -> bool {
    fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| {
        text.lines()
            .find(|line| line.starts_with("flags"))
            .is_some_and(|line| line.split_whitespace().any(|flag| flag == "ospke"))
    })
}

/// Where the kernel's text holds an instruction worth jumping to, at whatever alignment, as environment for the programs.
pub fn gadgets(image: &Path) -> Result<Vec<(String, String)>, String> {
    let bytes = fs::read(image).map_err(|e| format!("{}: {e}", image.display()))?;
    let file = object::File::parse(&*bytes).map_err(|e| format!("{}: {e}", image.display()))?;
    let mut found = [("WRPKRU", Vec::new()), ("XRSTOR", Vec::new()), ("SYSCALL", Vec::new()), ("RESTORE", Vec::new())];
    for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
        let data = section.data().map_err(|e| format!("{}: {e}", image.display()))?;
        for (at, window) in data.windows(3).enumerate() {
            let which = match window {
                [0x0f, 0x01, 0xef] => 0,
                // XRSTOR is 0F AE /5 with a memory operand.
                [0x0f, 0xae, mode] if mode >> 3 & 7 == 5 && mode >> 6 != 3 => 1,
                [0x0f, 0x05, _] => 2,
                _ => continue,
            };
            let place = format!("{:x}", KERNEL_BASE + section.address() + at as u64);
            // The one user code is meant to jump to: xrstor 0x40(%rsp).
            if data[at..].starts_with(&[0x0f, 0xae, 0x6c, 0x24, 0x40]) {
                found[3].1.push(place.clone());
            }
            found[which].1.push(place);
        }
    }
    if found.iter().any(|(_, places)| places.is_empty()) {
        return Err(format!("{} has no key switch or host call at all", image.display()));
    }
    let (entries, instructions) = entries(&file).map_err(|e| format!("{}: {e}", image.display()))?;
    let found = found.into_iter().chain([("ENTRIES", entries), ("INSTRUCTIONS", instructions)]);
    Ok(found.map(|(name, places)| (format!("ATTACK_{name}"), places.join(","))).collect())
}

/// From where in the kernel's text, between so far below and behind the first place of [`gadgets`], code soon comes to a far return: the
/// distances from one such place to the next, in hexadecimal, the first from [`FAR_BELOW`] bytes below that.
pub fn far_returns(image: &Path, first: &str) -> Result<String, String> {
    const BEHIND: u64 = 4096;
    let first = u64::from_str_radix(first, 16).map_err(|e| format!("{first}: {e}"))?;
    let bytes = fs::read(image).map_err(|e| format!("{}: {e}", image.display()))?;
    let file = object::File::parse(&*bytes).map_err(|e| format!("{}: {e}", image.display()))?;
    let mut found = BTreeSet::new();
    for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
        let data = section.data().map_err(|e| format!("{}: {e}", image.display()))?;
        let address = KERNEL_BASE + section.address();
        // retf and iret, with or without an operand.
        for at in (0..data.len()).filter(|at| matches!(data[*at], 0xca | 0xcb | 0xcf)) {
            let before = (at.saturating_sub(24)..=at).filter(|from| comes_to(&data[*from..], at - from));
            found.extend(before.map(|from| address + from as u64));
        }
    }
    let mut last = first - FAR_BELOW;
    let near = found.range(last..first + BEHIND);
    Ok(near.map(|place| format!("{:x}", place - std::mem::replace(&mut last, *place))).collect::<Vec<_>>().join(","))
}

/// Bytes below the first place of [`gadgets`] from which [`far_returns`] counts.
const FAR_BELOW: u64 = (2 << 20) + 4096;

/// Whether code that begins here may come to the far return whose opcode is `at` bytes on, by a few instructions that read no memory but
/// the stack.
fn comes_to(code: &[u8], at: usize) -> bool {
    let mut decoder = Decoder::new(64, &code[..code.len().min(at + 8)], DecoderOptions::NONE);
    for _ in 0..4 {
        let start = decoder.position();
        let instruction = decoder.decode();
        if decoder.position() > at {
            let far = matches!(instruction.mnemonic(), Mnemonic::Retf | Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq);
            // The opcode is the byte behind the prefixes.
            return far && start <= at;
        }
        let touches = (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
        if instruction.is_invalid() || touches || instruction.flow_control() != FlowControl::Next {
            return false;
        }
    }
    false
}

/// The kernel's entries and exits: where they start and end, and the entry of rewritten calls without and with a jail. Then the addresses of
/// their instructions.
fn entries(file: &object::File<'_>) -> Result<(Vec<String>, Vec<String>), String> {
    let address = |name: &str| {
        let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name));
        symbol.map(|symbol| symbol.address()).ok_or_else(|| format!("no {name}"))
    };
    let section = |name: &str| file.section_by_name(name).ok_or_else(|| format!("no section {name}"));
    let (entries, exits) = (section("hosted_entries")?, section("hosted_exits")?);
    let (start, end) = (entries.address(), address("hosted_exit_end")?);
    if !(start..end).contains(&exits.address()) {
        return Err("the exits are not behind the entries".into());
    }
    let places = [start, end, address("hosted_call_entry")?, address("hosted_call_entry_pkey")?];
    let shown = |address: u64| format!("{:x}", KERNEL_BASE + address);
    let mut instructions = Vec::new();
    for part in [entries, exits] {
        let size = part.size().min(end - part.address());
        let code = part.data_range(part.address(), size).ok().flatten().ok_or("the entries have no code")?;
        let decoder = Decoder::with_ip(64, code, part.address(), DecoderOptions::NONE);
        instructions.extend(decoder.into_iter().map(|instruction| shown(instruction.ip())));
    }
    Ok((places.map(shown).to_vec(), instructions))
}

/// One run. `Some` is the reason for not doing it.
fn judge(source: &Path, stem: &str, jail: &str, gate: &str, gadgets: &[(String, String)]) -> Result<Option<String>, String> {
    let text = fs::read_to_string(source).map_err(|e| format!("{}: {e}", source.display()))?;
    if let Some(reason) = directive(&text, &format!("skip {jail}")) {
        return Ok(Some(reason));
    }
    let without = (jail == "none" && !has_keys()).then(|| directive(&text, "no keys")).flatten();
    let wanted = without
        .or_else(|| directive(&text, jail))
        .ok_or_else(|| format!("no line /* {jail}: END */ in {}", source.display()))?;
    let program = compiled(source, stem)?;
    let dir = compare::place().join(format!("run/attacks/{stem}/{jail}/{gate}"));
    compare::fresh(&dir)?;
    let janua = built::janua().display().to_string();
    let program = program.display().to_string();
    let command = [&janua, "run", "--gate", gate, "--jail", jail, "--", &program].map(str::to_string).to_vec();
    let mut env = gadgets.to_vec();
    env.push(("ATTACK_GATE".into(), gate.into()));
    let run = Run { command, dir: &dir, env, limit: LIMIT, terminal: None };
    let outcome = run.start(&dir.with_extension("report"))?.wait()?;
    let _ = compare::clear(&dir);
    let said = String::from_utf8_lossy(&outcome.output).into_owned();
    let failed = |what: &str| Err(format!("{what} (exit {}), and it said:\n{said}", outcome.code));
    if outcome.timeout {
        return failed("did not end");
    }
    if !outcome.left.is_empty() {
        return failed("left processes behind");
    }
    if wanted == "stopped" {
        return if outcome.code == 125 && said.contains("second wall") { Ok(None) } else { failed("not stopped") };
    }
    let Some(end) = said.lines().find_map(|line| line.strip_prefix("end: ")) else { return failed("no end") };
    if !wanted.split(" | ").any(|one| one == end) {
        return failed(&format!("ended as `{end}`, not as `{wanted}`"));
    }
    if outcome.code != 0 || !said.contains("kernel: alive\nsecond guest: alive\n") {
        return failed("the sandbox did not survive");
    }
    Ok(None)
}

/// Builds a program unless what is there is newer than its sources.
fn compiled(source: &Path, stem: &str) -> Result<PathBuf, String> {
    let program = compare::place().join("bin/attacks").join(stem);
    build(source, &program, &[])?;
    Ok(program)
}

/// Builds a program with these options of the compiler unless what is there is newer than its sources.
pub fn build(source: &Path, program: &Path, options: &[&str]) -> Result<(), String> {
    /// Two runs may want the same program now.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(|e| e.into_inner());
    let header = source.with_file_name("attack.h");
    let time = |path: &Path| fs::metadata(path).and_then(|m| m.modified()).ok();
    if time(program) > time(source).max(time(&header)) {
        return Ok(());
    }
    if let Some(dir) = program.parent() {
        fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    }
    let output = Command::new("gcc")
        .args(["-O1", "-g", "-std=gnu11", "-w", "-pthread", "-mno-red-zone"])
        .args(options)
        .arg("-o")
        .arg(program)
        .arg(source)
        .output()
        .map_err(|e| format!("gcc: {e}"))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}
