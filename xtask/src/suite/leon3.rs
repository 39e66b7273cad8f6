//! Applications on the LEON3: each test is one run of QEMU.

use std::path::Path;

use super::compare;
use crate::guard::Run;
use crate::tally::Tally;
use crate::{build, user};

/// Seconds one run may take; all but one take a few at most.
const LIMIT: u64 = 120;
/// The one that takes long, and its limit: QEMU does 500 million operations on numbers of double precision.
const LONG: (&str, u64) = ("leon3/ep-S", 300);

/// A run: options of `janua boot`, the application and its arguments, what its output must hold, its exit code.
struct Case {
    name: String,
    options: &'static [&'static str],
    command: Vec<&'static str>,
    says: &'static str,
    code: i32,
}

/// The configurations: with protection and the gate, and the two without.
const WAYS: &[&[&str]] = &[&[], &["--answers", "off"], &["--library", "sys-lib-no"], &["--library", "vanilla"]];

/// Applications that do as they should.
const RIGHT: &[(&str, &str)] = &[
    ("hello", "hello from core 0 of 2 on tile 0 of 1\n"),
    // Every number of words at every depth of the register file, with and without a switch of i-lets inside the call.
    ("words", "every word arrived (0 lost)\n"),
    ("invade", "invaded, infected, signalled, retreated\n"),
    ("turns", "turns 12000000 12000000, sums 100000 100000\neach saw the other at work\n"),
    ("float", "500000 1000000\n"),
    ("signals", "in order\n"),
    ("forkjoin", "sum 1279999200000\n"),
    ("dma", "bytes to tile 0 and back\n"),
    ("remote", "tile 0 answered 42\n"),
    ("agents", "agents invaded, reinvaded, retreated\n"),
    ("locals", "6 i-lets had their own, 13 keys were left\n"),
    ("is S", "verification successful\n"),
];

const MEMORY: &str = "which it may not: the application is ended\n";
const INSTRUCTION: &str = "is no instruction it may execute: the application is ended\n";
/// What applications may not do, what the kernel prints, and the exit code.
const WRONG: &[(&str, &str, &str, i32)] = &[
    ("wrong", "read", MEMORY, 139),
    ("wrong", "write", MEMORY, 139),
    ("wrong", "core-page", MEMORY, 139),
    ("wrong", "device", MEMORY, 139),
    ("wrong", "stopwatch", MEMORY, 139),
    ("wrong", "jump", MEMORY, 139),
    ("wrong", "write-by-call", "0x40020000, which is not the application's memory", 139),
    ("wrong", "code", MEMORY, 139),
    ("wrong", "data-as-code", MEMORY, 139),
    ("wrong", "misaligned", MEMORY, 135),
    ("wrong", "unmapped", MEMORY, 139),
    ("wrong", "read-psr", INSTRUCTION, 132),
    ("wrong", "alternate", INSTRUCTION, 132),
    ("wrong", "illegal", INSTRUCTION, 132),
    ("wrong", "divide", "divided by zero", 136),
    ("wrong", "trap", INSTRUCTION, 132),
    ("wrong", "stack-kernel", "the address 0x4001ff40, which it may not", 139),
    ("wrong", "stack-odd", MEMORY, 139),
    ("wrong", "stack-unmapped", MEMORY, 139),
    ("wrong", "stack-code", MEMORY, 139),
    ("wrong", "call-kernel-stack", "the address 0x4002005c, which it may not", 139),
    ("wrong", "call-odd-stack", MEMORY, 139),
    ("wrong", "call-no-stack", MEMORY, 139),
    ("wrong", "flush-code-stack", MEMORY, 139),
    ("wrong", "exit-kernel-stack", MEMORY, 139),
    ("wrong", "flush-kernel-stack", MEMORY, 139),
    ("bad", "range", "system call 0x186a0 is out of range", 159),
    ("bad", "negative", "system call 0xffffffff is out of range", 159),
    ("bad", "unregistered", "system call 0x51 (eth_open) is not registered", 159),
    ("bad", "pointer", "the address 0x10, which is not the application's memory", 139),
    ("bad", "privileged", INSTRUCTION, 132),
    ("bad", "null", "used the address 0", 139),
    ("bad", "stack", MEMORY, 139),
];

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for way in WAYS {
        for (program, says) in RIGHT {
            let name = format!("leon3/{}{}{}", program.replace(' ', "-"), if way.is_empty() { "" } else { "/" }, way.join(" "));
            cases.push(Case { name, options: way, command: program.split(' ').collect(), says, code: 0 });
        }
    }
    cases.push(Case {
        name: LONG.0.into(),
        options: &[],
        command: vec!["ep", "S"],
        says: "EP class S: verification successful\n",
        code: 0,
    });
    for (program, what, says, code) in WRONG {
        cases.push(Case {
            name: format!("leon3/{program}/{what}"),
            options: &[],
            command: vec![*program, *what],
            says,
            code: *code,
        });
    }
    cases
}

/// Runs the tests whose name holds the filter, one after the other, since QEMU wants a processor for itself; only the long one
/// runs beside the others.
pub fn run(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    let chosen: Vec<Case> = cases().into_iter().filter(|case| super::wanted(filter, &case.name)).collect();
    let costs = super::wanted(filter, COSTS);
    if super::native() {
        return Ok(());
    }
    if super::wanted(filter, CRATES) {
        tally.check(CRATES, build::check_leon3(&["janua-object", "janua-personality-linux"]));
    }
    if chosen.is_empty() && !costs {
        return Ok(());
    }
    let image = build::image_leon3()?.embedded;
    let programs = user::build(&user::LEON3)?.programs;
    let dir = compare::place().join("leon3");
    compare::fresh(&dir)?;
    let judge = |case: &Case, report: &str| {
        let limit = if case.name == LONG.0 { LONG.1 } else { LIMIT };
        let outcome = boot(case.options, &case.command, limit, (&programs, &image), &dir.join(report));
        outcome.and_then(|(code, output)| expect(case, code, &output))
    };
    std::thread::scope(|scope| {
        let (long, short): (Vec<&Case>, Vec<&Case>) = chosen.iter().partition(|case| case.name == LONG.0);
        let beside = long.first().map(|case| (&case.name, scope.spawn(|| judge(case, "long"))));
        for case in short {
            tally.check(&case.name, judge(case, "report"));
        }
        if costs {
            tally.check(COSTS, cost((&programs, &image), &dir.join("report")));
        }
        if let Some((name, run)) = beside {
            tally.check(name, run.join().unwrap_or_else(|_| Err("the test itself failed".into())));
        }
    });
    let _ = compare::clear(&dir);
    Ok(())
}

/// Boots an application: its exit code, and what it and the kernel wrote. `built`: the applications' directory and the image.
fn boot(options: &[&str], command: &[&str], limit: u64, built: (&Path, &Path), report: &Path) -> Result<(i32, String), String> {
    let (programs, image) = built;
    let (program, arguments) = command.split_first().ok_or("no application")?;
    // Time by instructions: the interrupts of one run are those of the next.
    let fixed = [build::janua().display().to_string(), "boot".into(), "--platform".into(), "leon3".into(), "--icount=0".into()];
    let mut line: Vec<String> = fixed.into();
    line.extend(options.iter().map(ToString::to_string));
    line.extend(["--".into(), programs.join(program).display().to_string()]);
    line.extend(arguments.iter().map(ToString::to_string));
    let env = vec![("JANUA_IMAGE_LEON3".to_string(), image.display().to_string())];
    let dir = report.parent().unwrap_or(report);
    let outcome = Run { command: line, dir, env, limit, terminal: None }.outcome(report)?;
    Ok((outcome.code, String::from_utf8_lossy(&outcome.output).into_owned()))
}

fn expect(case: &Case, code: i32, output: &str) -> Result<(), String> {
    if code != case.code {
        return Err(format!("exit code {code} instead of {}; it wrote:\n{output}", case.code));
    }
    if !output.contains(case.says) {
        return Err(format!("it did not write\n{}\nbut\n{output}", case.says));
    }
    Ok(())
}

/// The kernel's objects and the personality `linux` know no processor, nor the jail and its decoder of instructions: they compile for one that has
/// 32 bits, the other byte order, and no atomics of 64 bits.
const CRATES: &str = "leon3/crates";

const COSTS: &str = "leon3/instructions";
/// Most instructions the gate may add to a call (`sys-lib-yes` less `vanilla`), and a further argument word to that.
const ADDED_MOST: u64 = 75;
const WORD_MOST: u64 = 1;

/// Counts the instructions of empty calls with 0 to 6 words. They are counted, not timed: every run has the same.
fn cost(built: (&Path, &Path), report: &Path) -> Result<(), String> {
    let count = |library: &str| -> Result<Vec<u64>, String> {
        let (code, output) = boot(&["--library", library], &["count"], LIMIT, built, report)?;
        let counts: Vec<u64> = output.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
        if code != 0 || counts.len() != 7 {
            return Err(format!("exit code {code}; it wrote:\n{output}"));
        }
        Ok(counts)
    };
    let (vanilla, gate) = (count("vanilla")?, count("sys-lib-yes")?);
    let added: Vec<u64> = gate.iter().zip(&vanilla).map(|(gate, vanilla)| gate.saturating_sub(*vanilla)).collect();
    for (words, &more) in added.iter().enumerate() {
        let most = added[0] + WORD_MOST * words as u64;
        if !(1..=ADDED_MOST).contains(&added[0]) || more > most {
            return Err(format!("sys-lib-yes {gate:?}, vanilla {vanilla:?}: the gate adds {added:?} instructions"));
        }
    }
    Ok(())
}
