//! Systems of L4, Version 2: each on Linux, under the jail `process`, and on bare x86_64, each test there one run of QEMU. Both print the same.

use std::path::Path;

use super::compare;
use crate::guard::Run;
use crate::tally::Tally;
use crate::{build, user};

/// Seconds one run may take; each takes a few.
const LIMIT: u64 = 120;

const PINGPONG: &str = "\
one address space: 2000 times there and back
two address spaces: 2000 times there and back
";

/// What a system's modules are, further options for the bare machine (without any it runs on Linux too), what programs write and what the kernel prints, its
/// exit code.
struct Case {
    name: &'static str,
    options: &'static [&'static str],
    modules: &'static [&'static str],
    output: &'static str,
    kernel: &'static str,
    code: i32,
}

const fn case(
    name: &'static str,
    options: &'static [&'static str],
    modules: &'static [&'static str],
    output: &'static str,
) -> Case {
    Case { name, options, modules, output, kernel: "", code: 0 }
}

const CASES: &[Case] = &[
    Case {
        kernel: "janua: thread 4.0 at a breakpoint: a look\n",
        ..case("hello", &[], &["sigma0", "bad", "hello one two"], include_str!("../../../test/l4/hello.expected"))
    },
    case("pingpong", &[], &["sigma0", "pingpong"], PINGPONG),
    case("pingpong/kpti", &["--kpti", "on"], &["sigma0", "pingpong"], PINGPONG),
    case("pingpong/one processor", &["--smp", "1"], &["sigma0", "pingpong"], PINGPONG),
    case("pager", &[], &["sigma0", "pager"], include_str!("../../../test/l4/pager.expected")),
    case("producer", &[], &["sigma0", "producer"], "40 strings with 325540 bytes arrived\n"),
    case("preempt", &[], &["sigma0", "preempt"], include_str!("../../../test/l4/preempt.expected")),
    case("philosophers", &[], &["sigma0", "philosophers"], include_str!("../../../test/l4/philosophers.expected")),
    Case {
        kernel: include_str!("../../../test/l4/bad.kernel"),
        ..case("bad", &[], &["sigma0", "bad"], include_str!("../../../test/l4/bad.expected"))
    },
];

/// What carries the system.
#[derive(Clone, Copy)]
enum Machine<'a> {
    Linux,
    /// With this kernel image.
    Bare(&'a Path),
}

impl Machine<'_> {
    fn name(self) -> &'static str {
        match self {
            Machine::Linux => "linux",
            Machine::Bare(_) => "x86_64",
        }
    }

    /// What the kernel prints there, and what it may print too. Processors have the number of a vector in the error code as an entry of eight bytes, the
    /// emulated one of sixteen; and to AMD's there is no instruction `sysenter`, where to Intel's it is one that is not allowed.
    fn says(self, kernel: &str) -> [String; 2] {
        const SYSENTER: usize = 10;
        if let Machine::Bare(_) = self {
            return [kernel.to_owned(), kernel.to_owned()];
        }
        let own = kernel.replace("code 0x372", "code 0x1ba").replace("code 0x802", "code 0x402");
        let line = |(at, line): (usize, &str)| {
            if at == SYSENTER { line.replace("exception 13", "exception 6") + "\n" } else { format!("{line}\n") }
        };
        let other = own.lines().enumerate().map(line).collect();
        [own, other]
    }
}

/// Runs a system: its exit code, what programs have written, and what the kernel has printed, without registers.
fn system(machine: Machine, options: &[&str], modules: &[String]) -> Result<(i32, String, String), String> {
    let dir = compare::place().join("l4");
    let errors = dir.join("errors");
    // The two come by different lines of the machine, in no order.
    let shell = ["sh".into(), "-c".into(), "errors=$1; shift; exec \"$@\" 2> \"$errors\"".into(), "sh".into()];
    let mut command = Vec::from(shell);
    command.extend([errors.display().to_string(), build::janua().display().to_string()]);
    let (verb, env) = match machine {
        Machine::Linux => ("run", Vec::new()),
        Machine::Bare(image) => ("boot", vec![("JANUA_IMAGE_X86_64".to_owned(), image.display().to_string())]),
    };
    command.extend([verb, "--personality", "l4v2"].map(String::from));
    command.extend(options.iter().map(ToString::to_string));
    command.extend(modules.iter().flat_map(|module| ["--module".to_owned(), module.clone()]));
    let run = Run { command, dir: &dir, env, limit: LIMIT, terminal: None };
    let outcome = run.outcome(&dir.join("report"))?;
    let said = std::fs::read_to_string(&errors).map_err(|e| format!("{}: {e}", errors.display()))?;
    let kernel = said.lines().filter(|line| !line.starts_with("janua:   e")).map(|line| format!("{line}\n")).collect();
    Ok((outcome.code, String::from_utf8_lossy(&outcome.output).into_owned(), kernel))
}

fn expect((code, output, kernel): (i32, String, String), case: &Case, machine: Machine) -> Result<(), String> {
    let [says, or] = machine.says(case.kernel);
    if (code, &*output) == (case.code, case.output) && [&says, &or].contains(&&kernel) {
        return Ok(());
    }
    Err(format!(
        "exit code {code} instead of {}; programs wrote\n{output}instead of\n{}and the kernel\n{kernel}instead of\n{says}",
        case.code, case.output
    ))
}

/// Modules that are none: a text, an executable of the host's, two that are in the same place, one cut off.
fn malformed(machine: Machine, programs: &Path) -> Result<(), String> {
    let dir = compare::place().join("l4");
    let put = |name: &str, bytes: &[u8]| -> Result<String, String> {
        let path = dir.join(name);
        std::fs::write(&path, bytes).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(path.display().to_string())
    };
    let hello = std::fs::read(programs.join("hello")).map_err(|e| format!("hello: {e}"))?;
    let host = std::fs::read(build::janua()).map_err(|e| format!("janua: {e}"))?;
    let text = put("text", b"no program\n")?;
    let wide = put("wide", &host[..1 << 20])?;
    let cut = put("cut", &hello[..hello.len() / 2])?;
    let not = "not a static 32-bit executable";
    for (modules, says) in [
        ([&*text, "hello"], not),
        (["sigma0", &text], not),
        (["sigma0", &wide], not),
        (["sigma0", &cut], not),
        (["hello", "pingpong"], "are linked to the same memory"),
    ] {
        let (code, output, kernel) = system(machine, &[], &modules.map(ToOwned::to_owned))?;
        if code != 126 || !kernel.contains(says) || !output.is_empty() {
            return Err(format!(
                "{modules:?}: exit code {code} instead of 126, and it wrote\n{output}{kernel}instead of `{says}`"
            ));
        }
    }
    Ok(())
}

/// The suite.
pub fn run(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    compare::fresh(&compare::place().join("l4"))?;
    let image = build::image_x86_64()?.embedded;
    let programs = user::build_l4()?;
    build::all()?;
    for machine in [Machine::Linux, Machine::Bare(&image)] {
        for case in CASES {
            let name = format!("l4/{}/{}", case.name, machine.name());
            let fits = case.options.is_empty() || matches!(machine, Machine::Bare(_));
            if fits && super::wanted(filter, &name) {
                let modules: Vec<String> = case.modules.iter().map(ToString::to_string).collect();
                let ran = system(machine, case.options, &modules);
                tally.check(&name, ran.and_then(|outcome| expect(outcome, case, machine)));
            }
        }
        let name = format!("l4/malformed modules/{}", machine.name());
        if super::wanted(filter, &name) {
            tally.check(&name, malformed(machine, &programs));
        }
    }
    Ok(())
}
