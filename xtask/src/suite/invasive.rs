//! The invasive personality: the applications of `user/` on machines of several shapes, in each configuration and by each gate, and
//! the library by itself; then the same applications on bare x86_64 ([`invasive_boot`]).

use std::process::Command;

use super::compare::{self, Verdict};
use super::invasive_boot;
use crate::guard::Run;
use crate::tally::Tally;
use crate::{build, process, user, workspace};

/// Seconds one run may take.
const LIMIT: u64 = 120;

/// Configurations and gates: options of `janua run`.
const WAYS: &[&[&str]] = &[
    &["--gate", "signal"],
    &["--gate", "signal", "--jail", "none", "--ask-ids", "--answers", "off"],
    &["--gate", "call"],
    &["--gate", "sud"],
    &["--gate", "seccomp", "--jail", "none"],
    &["--library", "sys-lib-no"],
    &["--library", "vanilla", "--answers", "off"],
];

/// Tiles and cores.
const MACHINES: &[(&str, &str)] = &[("1", "1"), ("1", "4"), ("2", "2"), ("4", "1")];

/// A run: the application, the options, what it must print and its exit code.
struct Case {
    name: String,
    options: Vec<String>,
    command: Vec<String>,
    says: String,
    code: i32,
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for way in WAYS {
        let label = way.iter().filter(|word| !word.starts_with("--gate")).cloned().collect::<Vec<_>>().join(" ");
        for (tiles, cores) in MACHINES {
            let programs = [
                ("hello", format!("hello from core 0 of {cores} on tile 0 of {tiles}\n")),
                ("words", "every word arrived".to_owned()),
                ("signals", "in order".to_owned()),
                ("forkjoin", "sum 1279999200000\n".to_owned()),
                ("remote", String::new()),
                ("agents", "agents invaded, reinvaded, retreated\n".to_owned()),
                ("locals", "6 i-lets had their own, 13 keys were left\n".to_owned()),
                ("dma", if (*tiles, *cores) == ("1", "1") { "within the tile" } else { "and back" }.to_owned()),
            ];
            for (program, says) in programs {
                cases.push(Case {
                    name: format!("invasive/{program}/{tiles}x{cores}/{label}"),
                    options: [words(way), words(&["--tiles", tiles, "--cores", cores])].concat(),
                    command: words(&[program]),
                    says,
                    code: 0,
                });
            }
        }
        cases.push(Case {
            name: format!("invasive/kicks/{label}"),
            options: [words(way), words(&["--tiles", "2", "--cores", "1"])].concat(),
            command: words(&["kicks"]),
            says: "3000 messages interrupted some calls".into(),
            code: 0,
        });
        cases.push(Case {
            name: format!("invasive/spin/{label}"),
            options: [words(way), words(&["--tiles", "2", "--cores", "2"])].concat(),
            command: words(&["spin"]),
            says: "4 cores of 2 tiles spun at once\n".into(),
            code: 0,
        });
        cases.push(Case {
            name: format!("invasive/invade/{label}"),
            options: words(way),
            command: words(&["invade"]),
            says: "invaded, infected, signalled, retreated\n".into(),
            code: 0,
        });
    }
    for (kernel, tiles, cores) in [
        ("ep", "2", "2"),
        ("is", "1", "1"),
        ("is", "2", "2"),
        ("cg", "1", "2"),
        ("cg", "2", "2"),
        ("mg", "2", "2"),
        ("ft", "2", "2"),
    ] {
        cases.push(Case {
            name: format!("invasive/{kernel}/{tiles}x{cores}"),
            options: words(&["--tiles", tiles, "--cores", cores]),
            command: words(&[kernel, "S"]),
            says: "verification successful\n".into(),
            code: 0,
        });
    }
    cases.extend(bad());
    cases
}

/// Applications that misbehave: how each ends, by the gate that is named, under the jail.
fn bad() -> Vec<Case> {
    let rows = [
        ("range", "signal", "system call 0x186a0 is out of range", 159),
        ("range", "call", "system call 0x186a0 is out of range", 159),
        ("negative", "signal", "system call 0xffffffffffffffff is out of range", 159),
        ("unregistered", "signal", "system call 0x51 (eth_open) is not registered", 159),
        ("pointer", "signal", "the address 0x10, which is not the application's memory", 139),
        ("kernel", "signal", "the address 0x600000001000, which it may not", 139),
        ("kernel", "call", "the address 0x600000001000, which it may not", 139),
        ("kernel-by-call", "signal", "the address 0x600000001000, which is not the application's memory", 139),
        ("privileged", "signal", "what only the kernel may use", 139),
        ("host", "signal", "made a system call of the host's", 159),
        ("signal-others", "signal", "made a system call of the host's", 159),
        ("stray-signal", "signal", "system call 0x186a1 is out of range", 159),
        ("kernel-stack", "signal", "every call was answered", 0),
        ("kernel-stack-full", "signal", "was killed by signal 11", 125),
        ("null", "signal", "the address 0x8, which it may not", 139),
        ("stack", "signal", "which it may not", 139),
    ];
    let case = |(what, gate, says, code): (&str, &str, &str, i32)| Case {
        name: format!("invasive/bad/{what}/{gate}"),
        options: words(&["--jail", "pkey", "--gate", gate]),
        command: words(&["bad", what]),
        says: says.into(),
        code,
    };
    rows.into_iter().map(case).collect()
}

/// Why the jail `pkey` cannot be tried here, in the command's own words.
fn lacking() -> Option<String> {
    let output = Command::new(build::janua()).args(["run", "--jail", "pkey", "--", "/bin/true"]).output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr);
    (output.status.code() == Some(125) && said.contains("jail `pkey`")).then(|| said.lines().next().unwrap_or("").into())
}

/// Runs the tests whose name holds the filter.
pub fn run(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    let built = user::build(&user::X86_64)?;
    if super::wanted(filter, "invasive/library stands alone") {
        tally.check("invasive/library stands alone", stands_alone(&built));
    }
    if super::wanted(filter, "invasive/numbers") {
        tally.check("invasive/numbers", numbers());
    }
    if super::wanted(filter, "invasive/ended from outside") {
        tally.check("invasive/ended from outside", ended_from_outside(&built));
    }
    let lacking = lacking();
    let quick = |case: &Case| !super::quick() || case.name.ends_with("signal") || case.name.contains("/bad/");
    let chosen: Vec<Case> = cases().into_iter().filter(|case| super::wanted(filter, &case.name) && quick(case)).collect();
    let programs = built.programs.display().to_string();
    compare::parallel(
        &chosen,
        |case| {
            if let (Some(why), true) = (&lacking, case.options.iter().any(|word| word == "pkey")) {
                return Verdict::Skipped(case.name.clone(), why.clone());
            }
            match judge(case, &programs) {
                Ok(()) => Verdict::Passed(case.name.clone()),
                Err(why) => Verdict::Failed(case.name.clone(), why),
            }
        },
        |verdict| verdict.count(tally),
    );
    invasive_boot::run(filter, &built, tally)
}

/// An application that waits for ever is ended by a signal to the command, with the exit code a shell gives for it.
fn ended_from_outside(built: &user::Built) -> Result<(), String> {
    use std::os::unix::process::ExitStatusExt;
    let mut child = Command::new(build::janua())
        .args(["run", "--personality", "invasive", "--", "bad", "wait"])
        .env("JANUA_USER", &built.programs)
        .stdout(std::process::Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    std::thread::sleep(std::time::Duration::from_millis(500));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).map_err(|e| e.to_string())?;
    for _ in 0..100 {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            return match (status.code(), status.signal()) {
                (Some(143), _) => Ok(()),
                other => Err(format!("it ended with {other:?}, not with exit code 143")),
            };
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let _ = child.kill();
    Err("it did not end within 10 s".into())
}

fn judge(case: &Case, programs: &str) -> Result<(), String> {
    let dir = compare::place().join("run").join(case.name.replace(' ', "_"));
    compare::fresh(&dir)?;
    let janua = build::janua().display().to_string();
    let mut command = vec![janua, "run".into(), "--personality".into(), "invasive".into()];
    command.extend(case.options.iter().cloned());
    if !case.options.iter().any(|word| word == "--jail") {
        command.extend(compare::jail("signal").iter().map(ToString::to_string));
    }
    command.push("--".into());
    command.extend(case.command.iter().cloned());
    let env = vec![("JANUA_USER".to_owned(), programs.to_owned())];
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
    if outcome.code != case.code {
        return failed(&format!("did not end with {}", case.code));
    }
    if !said.contains(&case.says) {
        return failed(&format!("did not say `{}`", case.says.trim_end()));
    }
    Ok(())
}

/// The library needs nothing but the application's `main_ilet` and the compiler's own helpers, and an application linked with it
/// nothing at all: no symbol of a kernel.
fn stands_alone(built: &user::Built) -> Result<(), String> {
    let undefined = |file: &std::path::Path| {
        process::output(Command::new("nm").arg("-u").arg(file)).ok_or_else(|| format!("nm fails on {}", file.display()))
    };
    let defined = process::output(Command::new("nm").arg("--defined-only").arg(&built.library)).unwrap_or_default();
    let defined: Vec<&str> = defined.lines().filter_map(|line| line.split_ascii_whitespace().nth(2)).collect();
    for line in undefined(&built.library)?.lines().filter_map(|line| line.trim().strip_prefix("U ")) {
        if line != "main_ilet" && !defined.contains(&line) {
            return Err(format!("libsyscall.a needs `{line}`"));
        }
    }
    for function in ["claim_construct", "proxy_push_dma", "simple_signal_wait", "octo_call"] {
        if !defined.contains(&function) {
            return Err(format!("libsyscall.a lacks `{function}`"));
        }
    }
    let left = undefined(&built.programs.join("hello"))?;
    if left.trim().is_empty() { Ok(()) } else { Err(format!("hello needs\n{left}")) }
}

/// The header's numbers are those of the interface (`abi/src/invasive/call.rs`), which the kernel's table is compared with.
fn numbers() -> Result<(), String> {
    let read = |name: &str| {
        let path = workspace::root().join(name);
        std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    };
    let header = read("user/libsyscall/src/numbers.h")?;
    let found: Vec<(String, String)> = header
        .lines()
        .filter_map(|line| line.trim().strip_prefix("CALL_")?.trim_end_matches(',').split_once(" = "))
        .map(|(name, number)| (name.to_lowercase(), number.to_owned()))
        .collect();
    // Rows: number, constant, name in quotes, words.
    let interface = read("abi/src/invasive/call.rs")?;
    let wanted: Vec<(String, String)> = interface
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.trim().strip_suffix(';')?.split_ascii_whitespace().collect();
            let [number, _, name, _] = words[..] else { return None };
            Some((name.strip_prefix('"')?.strip_suffix('"')?.to_owned(), number.parse::<usize>().ok()?.to_string()))
        })
        .collect();
    if found == wanted && !wanted.is_empty() {
        return Ok(());
    }
    let differs = found.iter().zip(&wanted).find(|(found, wanted)| found != wanted);
    Err(format!("numbers.h has {} calls, the interface {}; first difference: {differs:?}", found.len(), wanted.len()))
}
