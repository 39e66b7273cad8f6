//! The `janua` command as a person or a script meets it: answers, refusals, exit codes, streams.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::{compare, wanted};
use crate::tally::Tally;
use crate::{build, workspace};

/// One way to call the command, and what must come of it.
struct Case {
    name: &'static str,
    args: &'static [&'static str],
    stdin: &'static str,
    code: i32,
    /// Standard output: equal to, or beginning with, these.
    stdout: Text,
    /// Texts that standard error must hold; none: it must be empty.
    stderr: &'static [&'static str],
}

enum Text {
    Is(&'static str),
    Holds(&'static [&'static str]),
}

const fn case(
    name: &'static str,
    args: &'static [&'static str],
    code: i32,
    stdout: Text,
    stderr: &'static [&'static str],
) -> Case {
    Case { name, args, stdin: "", code, stdout, stderr }
}

use Text::{Holds, Is};

const CASES: &[Case] = &[
    case("no-command", &[], 2, Is(""), &["Usage: janua"]),
    case("help", &["--help"], 0, Holds(&["Examples:", "janua run", "125"]), &[]),
    case("version", &["--version"], 0, Holds(&["janua "]), &[]),
    case("run-help", &["run", "--help"], 0, Holds(&["--gate", "--bind", "--trace", "Examples:"]), &[]),
    case("unknown-option", &["run", "--gaet", "sud", "--", "true"], 125, Is(""), &["--gaet"]),
    case("unknown-gate", &["run", "--gate", "gateway", "--", "true"], 125, Is(""), &["gateway"]),
    case("gate-not-built", &["run", "--gate", "kvm", "--", "true"], 125, Is(""), &["kvm", "not built", "sud"]),
    case("modules", &["run", "--syscall-cores", "2", "--", "/bin/sh", "-c", "echo a | cat; exit 3"], 3, Is("a\n"), &[]),
    case(
        "modules-by-kind",
        &[
            "run",
            "--syscall-cores",
            "2",
            "--modules",
            "kind",
            "--policy",
            "cohort,time=priority,net=fifo",
            "--handover",
            "always",
            "--stats",
            "--",
            "/bin/sh",
            "-c",
            "echo a | cat; exit 3",
        ],
        3,
        Is("a\n"),
        &["fs     cohort", "task   cohort", "time   priority", "net    fifo", "syscall core 0", "syscall core 1"],
    ),
    case(
        "modules-adaptive",
        &["run", "--syscall-cores", "1", "--policy", "priority", "--stats", "--", "/bin/sh", "-c", "echo a | cat"],
        0,
        Is("a\n"),
        &["all    priority", "syscall core 0"],
    ),
    case(
        "modules-policy-of-none",
        &["run", "--syscall-cores", "1", "--policy", "fs=cohort", "--", "true"],
        125,
        Is(""),
        &["no module `fs`", "--modules kind"],
    ),
    case(
        "modules-policy-unknown",
        &["run", "--syscall-cores", "1", "--modules", "kind", "--policy", "fs=lifo", "--", "true"],
        125,
        Is(""),
        &["no policy `lifo`", "fifo, cohort and priority"],
    ),
    case(
        "modules-policy-to-boot",
        &["boot", "--syscall-cores", "1", "--modules", "kind", "--policy", "disk=fifo", "--", "true"],
        125,
        Is(""),
        &["no module `disk`", "fs, mm, ipc, task, time, net"],
    ),
    case(
        "modules-pinned-too-many",
        &["run", "--syscall-cores", "64", "--pin", "--stats", "--", "/bin/true"],
        0,
        Is(""),
        &["--pin", "none is kept on one", "syscall core 63"],
    ),
    case("modules-without-a-core", &["run", "--modules", "kind", "--", "true"], 125, Is(""), &["--syscall-cores"]),
    case("modules-of-no-kind", &["run", "--syscall-cores", "1", "--modules", "two", "--", "true"], 125, Is(""), &["two"]),
    case(
        "modules-in-the-trace",
        &["run", "--syscall-cores", "1", "--handover", "always", "--trace", "--", "/bin/true"],
        0,
        Is(""),
        &["openat(", "<fs>", "exit_group("],
    ),
    case(
        "modules-of-invasive",
        &["run", "--personality", "invasive", "--syscall-cores", "1", "--", "cg"],
        125,
        Is(""),
        &["--syscall-cores", "leave"],
    ),
    case("too-many-modules", &["run", "--syscall-cores", "65", "--", "true"], 125, Is(""), &["65", "64"]),
    case("jail-unknown", &["run", "--jail", "cage", "--", "true"], 125, Is(""), &["cage", "process"]),
    case(
        "jail-process",
        &["run", "--jail", "process", "--", "/bin/sh", "-c", "echo $((6*7)); ls / | grep -c bin"],
        0,
        Holds(&["42\n"]),
        &[],
    ),
    case(
        "jail-process-by-mailbox",
        &[
            "run",
            "--jail",
            "process",
            "--gate",
            "call",
            "--stats",
            "--",
            "/bin/sh",
            "-c",
            "n=0; while [ $n -lt 30 ]; do (:); n=$((n+1)); done; echo $n",
        ],
        0,
        Is("30\n"),
        &["calls by the gate call", "calls by the gate ptrace", "rewritten"],
    ),
    case("gate-ptrace", &["run", "--gate", "ptrace", "--", "/bin/sh", "-c", "(exit 3) | cat; exit 5"], 5, Is(""), &[]),
    case(
        "jail-process-by-another-gate",
        &["run", "--jail", "process", "--gate", "sud", "--", "true"],
        125,
        Is(""),
        &["process", "sud"],
    ),
    case("personality-unknown", &["run", "--personality", "plan9", "--", "true"], 125, Is(""), &["plan9", "pal"]),
    case("bind-of-nothing", &["run", "--bind", "/no/such", "--", "true"], 125, Is(""), &["--bind /no/such"]),
    case("bind-of-a-colon", &["run", "--bind", "/co:lon", "--", "true"], 125, Is(""), &["--bind /co", "written \\:"]),
    case("gdb-of-nothing", &["run", "--gdb", "0", "--", "./no-such-program"], 127, Is(""), &["./no-such-program"]),
    case("gdb-of-no-name", &["run", "--gdb", "0", "--", "no-such-program"], 127, Is(""), &["no-such-program"]),
    case("root-of-nothing", &["run", "--root", "/no/such", "--", "true"], 125, Is(""), &["--root /no/such"]),
    case("root-no-directory", &["run", "--root", "/etc/passwd", "--", "true"], 125, Is(""), &["not a directory"]),
    case("no-program", &["run", "--"], 125, Is(""), &["PROGRAM"]),
    case("not-found-path", &["run", "--", "/no/such/program"], 127, Is(""), &["/no/such/program"]),
    case("not-found-name", &["run", "--", "no-such-program"], 127, Is(""), &["no-such-program"]),
    case("not-executable", &["run", "--", "/etc/passwd"], 126, Is(""), &["/etc/passwd"]),
    case("a-directory", &["run", "--", "/etc"], 126, Is(""), &["/etc"]),
    case("exit-code", &["run", "--", "/bin/sh", "-c", "exit 7"], 7, Is(""), &[]),
    case("exit-code-of-a-signal", &["run", "--", "/bin/sh", "-c", "kill -TERM $$"], 143, Is(""), &[]),
    case("two-streams", &["run", "--", "/bin/sh", "-c", "echo out; echo err >&2"], 0, Is("out\n"), &["err\n"]),
    case("name-in-path", &["run", "--", "echo", "a b", "--gate"], 0, Is("a b --gate\n"), &[]),
    case("environment", &["run", "--env", "X=y z", "--", "/bin/sh", "-c", "echo \"$X\""], 0, Is("y z\n"), &[]),
    case("working-directory", &["run", "--cwd", "/usr", "--", "pwd"], 0, Is("/usr\n"), &[]),
    case("trace-on-stderr", &["run", "--trace", "--", "echo", "x"], 0, Is("x\n"), &["write(1, \"x\\n\""]),
    case("stats-on-stderr", &["run", "--stats", "--", "echo", "x"], 0, Is("x\n"), &["write"]),
    Case {
        name: "standard-input",
        args: &["run", "--", "cat"],
        stdin: "one\ntwo\n",
        code: 0,
        stdout: Is("one\ntwo\n"),
        stderr: &[],
    },
    case("support", &["support", "openat"], 0, Holds(&[" 257 ", "openat"]), &[]),
    case("support-of-nothing", &["support", "nosuchcall"], 125, Is(""), &["nosuchcall"]),
    case("symbols", &["symbols"], 0, Holds(&[" hosted_call_entry\n", "janua_kernel::"]), &[]),
    case("symbols-unwritable", &["symbols", "--elf", "/no/such/x"], 125, Is(""), &["cannot write /no/such/x"]),
    case("unknown-command", &["rnu", "--", "true"], 2, Is(""), &["rnu"]),
    case("unknown-option-of-support", &["support", "--al"], 2, Is(""), &["--al"]),
    case(
        "doctor",
        &["doctor"],
        0,
        Holds(&["call", "sud", "seccomp", "jail", "--personality invasive", "--personality l4v2"]),
        &[],
    ),
    case("bench-help", &["bench", "--help"], 0, Holds(&["gates", "calls", "apps", "tasks", "scale", "Examples:"]), &[]),
    case("bench-list", &["bench", "calls", "--list"], 0, Holds(&["fork-exec-wait", "memory-100"]), &[]),
    case("bench-tasks-list", &["bench", "tasks", "--list"], 0, Holds(&["task0-memory", "task5-disk"]), &[]),
    case("bench-events-list", &["bench", "events", "--list"], 0, Holds(&["delay-100000", "wake-64"]), &[]),
    case("bench-events-unknown-row", &["bench", "events", "--only", "wake-3"], 125, Is(""), &["wake-3", "--list"]),
    case("bench-no-such-task", &["bench", "tasks", "--only", "10"], 2, Is(""), &["10"]),
    case("bench-unknown-option", &["bench", "gates", "--rounds", "2"], 2, Is(""), &["--rounds"]),
    case("bench-unknown-gate", &["bench", "gates", "--gate", "gateway"], 125, Is(""), &["gateway", "sud"]),
    case("bench-unknown-row", &["bench", "gates", "--only", "fork-wait"], 125, Is(""), &["fork-wait", "null-0"]),
    case("bench-no-gate-works", &["bench", "gates", "--gate", "kvm"], 125, Is(""), &["kvm", "doctor"]),
    case("bench-no-runs", &["bench", "gates", "--runs", "0"], 2, Is(""), &["--runs"]),
    case(
        "bench-json-unwritable",
        &["bench", "gates", "--json", "/no/such/directory/x.json"],
        125,
        Is(""),
        &["cannot write /no/such/directory/x.json"],
    ),
    case("report-help", &["report", "--help"], 0, Holds(&["--output", "Examples:"]), &[]),
    case("report-of-nothing", &["report", "/no/such.json"], 125, Is(""), &["cannot read /no/such.json"]),
    case("report-of-another-file", &["report", "/etc/passwd"], 125, Is(""), &["/etc/passwd", "not JSON", "--json"]),
    case("report-unwritable", &["report", "-o", "/no/such/x.html"], 125, Is(""), &["cannot write /no/such/x.html"]),
    case("completions-bash", &["completions", "bash"], 0, Holds(&["complete -F _janua"]), &[]),
    case("completions-zsh", &["completions", "zsh"], 0, Holds(&["#compdef janua"]), &[]),
    case("completions-fish", &["completions", "fish"], 0, Holds(&["complete -c janua"]), &[]),
];

/// The suite.
pub fn suite(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    for case in CASES.iter().filter(|case| wanted(filter, case.name)) {
        tally.check(case.name, verify(case));
    }
    for (name, test) in [
        ("completion-script-parses", completion_script_parses as fn() -> Result<(), String>),
        ("closed-output", closed_output),
        ("full-output", full_output),
        ("status-descriptor", status_descriptor),
        ("launcher-refusals", launcher_refusals),
        ("launcher-images", launcher_images),
        ("launcher-alone", launcher_alone),
        ("line-ends", line_ends),
        ("no-jail-is-said", no_jail_is_said),
        ("a-jail-is-chosen", a_jail_is_chosen),
        ("launcher", launcher),
        ("bench-gates", bench_gates),
        ("bench-calls", bench_calls),
        ("bench-scale", bench_scale),
    ] {
        if wanted(filter, name) {
            tally.check(name, test());
        }
    }
    Ok(())
}

/// How the line begins that reports that there is no jail.
const NO_JAIL: &str = "janua: no jail (";

fn verify(case: &Case) -> Result<(), String> {
    let output = call(Command::new(build::janua()).args(case.args), case.stdin)?;
    let (out, mut err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr).into_owned());
    if !super::attacks::has_keys() && !case.args.contains(&"--jail") {
        err = err.split_inclusive('\n').filter(|line| !line.starts_with(NO_JAIL)).collect();
    }
    let described = || format!("\n{:?}\nstandard output:\n{out}\nstandard error:\n{err}", case.args);
    if output.status.code() != Some(case.code) {
        return Err(format!("{} instead of code {}{}", output.status, case.code, described()));
    }
    let right = match case.stdout {
        Is(text) => out == text,
        Holds(texts) => texts.iter().all(|text| out.contains(text)),
    };
    if !right {
        return Err(format!("wrong standard output{}", described()));
    }
    if !case.stderr.iter().all(|text| err.contains(text)) || (case.stderr.is_empty() && !err.is_empty()) {
        return Err(format!("wrong standard error{}", described()));
    }
    Ok(())
}

/// Runs a command, which gets `stdin` and at most a minute.
fn call(command: &mut Command, stdin: &str) -> Result<Output, String> {
    let mut limited = Command::new("timeout");
    limited.args(["--kill-after=5", "60"]).arg(command.get_program()).args(command.get_args());
    if let Some(dir) = command.get_current_dir() {
        limited.current_dir(dir);
    }
    let mut child = limited
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("timeout: {e}"))?;
    if let Some(mut pipe) = child.stdin.take() {
        // The command may end without reading.
        let _ = pipe.write_all(stdin.as_bytes());
    }
    child.wait_with_output().map_err(|e| format!("{:?}: {e}", command.get_program()))
}

/// A run without a jail reports it in one line, unless that was asked for. (The gate `seccomp` has none on any machine.)
fn no_jail_is_said() -> Result<(), String> {
    let said = |options: &[&str]| -> Result<String, String> {
        let output = call(Command::new(build::janua()).arg("run").args(options).args(["--", "/bin/true"]), "")?;
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(err) } else { Err(format!("{options:?}: {}\n{err}", output.status)) }
    };
    let line = said(&["--gate", "seccomp"])?;
    if line.lines().count() != 1 || !line.starts_with(NO_JAIL) || !line.contains("--jail none") {
        return Err(format!("it says:\n{line}"));
    }
    let silent = said(&["--gate", "seccomp", "--jail", "none"])?;
    if silent.is_empty() { Ok(()) } else { Err(format!("with --jail none it says:\n{silent}")) }
}

/// Where the host offers what a jail needs, nobody has to ask for one.
fn a_jail_is_chosen() -> Result<(), String> {
    let output = call(Command::new(build::janua()).arg("doctor"), "")?;
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let offers = |what: &str| report.lines().any(|line| line.starts_with(&format!("  yes  {what}")));
    let chosen = report.lines().find_map(|line| line.strip_prefix("  jail ")?.split_whitespace().next()).unwrap_or_default();
    let due = match (offers("protection keys") && offers("protected signal stacks"), offers("traced calls")) {
        (true, _) => "pkey",
        (false, true) => "process",
        (false, false) => "none",
    };
    let output = call(Command::new(build::janua()).args(["run", "--", "/bin/true"]), "")?;
    let is_silent = output.stderr.is_empty();
    if chosen == due && is_silent == (due != "none") {
        return Ok(());
    }
    Err(format!("it chooses `{chosen}` instead of `{due}`, and says:\n{}\n{report}", String::from_utf8_lossy(&output.stderr)))
}

/// bash accepts the completion script.
fn completion_script_parses() -> Result<(), String> {
    let script = call(Command::new(build::janua()).args(["completions", "bash"]), "")?;
    let checked = call(Command::new("bash").arg("-n"), &String::from_utf8_lossy(&script.stdout))?;
    checked.status.success().then_some(()).ok_or_else(|| String::from_utf8_lossy(&checked.stderr).into_owned())
}

/// A short measurement: its file.
fn measured(arguments: &[&str]) -> Result<serde_json::Value, String> {
    let file = workspace::target().join(format!("bench-{}.json", arguments[0]));
    let mut command = Command::new(build::janua());
    command
        .arg("bench")
        .args(arguments)
        .args(["--runs", "2", "--samples", "2", "--gate", "sud", "--jail", "none", "--json"])
        .arg(&file);
    let output = call(&mut command, "")?;
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    serde_json::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))
}

/// Every row that `--list` names is in the file, with a result or a reason under each configuration.
fn complete(kind: &str, measurement: &serde_json::Value, names: &[String]) -> Result<(), String> {
    let schema = measurement["schema"].as_u64();
    if schema != Some(1) || measurement["kind"].as_str() != Some(kind) {
        return Err(format!("schema {schema:?}, kind {}", measurement["kind"]));
    }
    let rows = measurement["rows"].as_array().ok_or("no rows")?;
    for name in names {
        let row = rows.iter().find(|row| row["name"].as_str() == Some(name)).ok_or(format!("no row {name}"))?;
        let cells = row["cells"].as_array().ok_or("no cells")?;
        if cells.len() != 2 {
            return Err(format!("{name}: {} configurations", cells.len()));
        }
        for cell in cells {
            let result = cell["result"]["min"].as_f64().is_some_and(|least| least >= 0.0);
            if !result && cell["skipped"].as_str().is_none_or(str::is_empty) {
                return Err(format!("{name}: neither result nor reason: {cell}"));
            }
        }
    }
    let native = rows.iter().filter(|row| row["cells"][0]["result"].is_object()).count();
    if native * 4 < rows.len() * 3 { Err(format!("only {native} of {} rows natively", rows.len())) } else { Ok(()) }
}

/// The rows a kind has.
fn row_names(kind: &str) -> Result<Vec<String>, String> {
    let output = call(Command::new(build::janua()).args(["bench", kind, "--list"]), "")?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
}

fn bench_gates() -> Result<(), String> {
    complete("gates", &measured(&["gates"])?, &row_names("gates")?)?;
    let (file, page) = (workspace::target().join("bench-gates.json"), workspace::target().join("bench-gates.html"));
    let output = call(Command::new(build::janua()).arg("report").arg("-o").arg(&page).arg(&file), "")?;
    if !output.status.success() {
        return Err(format!("report: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    let text = std::fs::read_to_string(&page).map_err(|e| format!("{}: {e}", page.display()))?;
    let whole = text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>\n") && text.contains("<svg");
    if !whole {
        return Err("the page of the report is not whole".into());
    }
    // A file that is missing is reported, and the page is made from the others.
    std::fs::remove_file(&page).map_err(|e| e.to_string())?;
    let output =
        call(Command::new(build::janua()).arg("report").arg("-o").arg(&page).args([&file, Path::new("/no/such.json")]), "")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let reported = output.status.code() == Some(125) && said.contains("cannot read /no/such.json") && page.exists();
    reported.then_some(()).ok_or_else(|| format!("report with a file missing: {}: {said}", output.status))
}

/// All but the hundred idle processes.
fn bench_calls() -> Result<(), String> {
    let names: Vec<String> = row_names("calls")?.into_iter().filter(|name| name != "memory-100").collect();
    complete("calls", &measured(&["calls", "--only", &names.join(",")])?, &names)
}

/// The points of curves that take no time.
fn bench_scale() -> Result<(), String> {
    let small = |name: &String| {
        name.rsplit_once('-').and_then(|(_, point)| point.parse::<u32>().ok()).is_some_and(|point| point <= 100)
    };
    let names: Vec<String> = row_names("scale")?.into_iter().filter(|name| small(name) && name != "sandboxes-100").collect();
    complete("scale", &measured(&["scale", "--only", &names.join(",")])?, &names)
}

/// A reader that goes away early is no reason to panic.
fn closed_output() -> Result<(), String> {
    for command in ["support", "doctor", "completions bash", "--help"] {
        let line = format!("'{}' {command} | head -n 1", build::janua().display());
        let output = call(Command::new("sh").args(["-c", &line]), "")?;
        if !output.stderr.is_empty() {
            return Err(format!("{line}\n{}", String::from_utf8_lossy(&output.stderr)));
        }
    }
    Ok(())
}

/// Runs a shell script with `$J`, the command: its output, which must be this.
fn script_says(script: &str, want: &str) -> Result<(), String> {
    let line = format!("J='{}'\n{script}", build::janua().display());
    let output = call(Command::new("bash").args(["-c", &line]), "")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if said == want { Ok(()) } else { Err(format!("{script}\nit says:\n{said}\nnot:\n{want}")) }
}

/// What cannot be written is noticed, whatever should have been; a message that cannot be written changes no exit code.
fn full_output() -> Result<(), String> {
    let commands = [
        "support",
        "doctor",
        "list",
        "completions bash",
        "--help",
        "--version",
        "symbols",
        "bench calls --list",
        "bench tasks --list",
    ];
    for command in commands {
        script_says(
            &format!("$J {command} 2>&1 >/dev/full; echo $?"),
            "janua: cannot write to standard output: No space left on device (os error 28)\n125\n",
        )?;
    }
    script_says("$J run --bind /no/such -- true 2>/dev/full; echo $?", "125\n")?;
    // Its message is beyond the limit of the file it goes to.
    let script = "f=$(mktemp); head -c 4096 /dev/zero >$f; (ulimit -f 1; $J run --bind /no/such -- true 2>>$f); echo $?; rm $f";
    script_says(script, "125\n")
}

/// A descriptor that cannot be written to is refused before the program runs.
fn status_descriptor() -> Result<(), String> {
    let run = "$J run --jail none --status-fd 3 -- sh -c 'echo ran'";
    let refused =
        "janua: --status-fd 3: this descriptor cannot be written to\n       for example --status-fd 3 3>status.json\n125\n";
    script_says(&format!("{run} 2>&1 3</dev/null; echo $?"), refused)?;
    let lost = "ran\njanua: --status-fd 3: cannot write how it ended: No space left on device (os error 28)\n0\n";
    script_says(&format!("{run} 2>&1 3>/dev/full; echo $?"), lost)
}

/// What the launcher cannot do it reports, with what to do about it and exit code 125.
fn launcher_refusals() -> Result<(), String> {
    let root = workspace::root().display();
    let reports = |script: &str, words: &[&str]| {
        let output = call(Command::new("bash").args(["-c", script]), "")?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let fine = output.status.code() == Some(125) && words.iter().all(|word| said.contains(word));
        if fine { Ok(()) } else { Err(format!("{script}\n{}\n{said}", output.status)) }
    };
    reports(
        &format!("env -i PATH=/nonexistent CARGO_TARGET_DIR=/nonexistent/x {root}/janua run -- true"),
        &["cargo", "rustup.rs"],
    )?;
    reports(
        &format!("CARGO_TARGET_DIR=/proc/nothing {root}/janua build"),
        &["cannot write to /proc/nothing", "CARGO_TARGET_DIR="],
    )
}

/// A tree with the launcher alone, and a compiler and build tool that only write down what they are asked for: the images a build would make are
/// made. `./janua WORDS` prints with what it builds, if it does.
const LAUNCHER_ALONE: &str = r#"set -e; d=$(mktemp -d); trap 'rm -rf "$d"' EXIT; cd "$d"
cp "$ROOT/janua" .; mkdir -p bin target/debug target/release target/image; t=target
printf '#!/bin/sh\necho cargo 1.99.0\n' >bin/cargo
cat >$t/debug/janua-build <<'END'
#!/bin/sh
echo "build $*" >&2
cd "$JANUA_ROOT/target"
for word in "$@"; do
    case $word in
        --l4v2) : >image/janua-linux-l4 ;;
        --pal) : >image/janua-linux-pal ;;
        --boot) : >image/janua-x86_64 ;;
        --leon3) : >image/janua-leon3; : >image/janua-x86_64 ;;
    esac
done
printf '#!/bin/sh\n' >release/janua
END
chmod +x bin/cargo $t/debug/janua-build; cp bin/cargo bin/cc; : >$t/release/janua; chmod +x $t/release/janua
export PATH="$d/bin:/usr/bin:/bin"; unset RUSTUP_TOOLCHAIN CARGO_TARGET_DIR
j() { ./janua "$@"; sleep 0.02; }
edit() { sleep 0.02; : >source; }
"#;

/// The launcher builds what is out of date and what is asked for, and nothing else: kernels of other personalities and of bare machines
/// when they are first wanted, and those of bare machines again when they are older than the sources, or newer than the command, which lacks them then
/// (the tests make images, too).
fn launcher_images() -> Result<(), String> {
    let script = r"
j run -- true; j run -- true --personality pal
j run --personality pal -- x; j run --personality=pal -- x; j run --personality l4v2 --module a
j bench pingpong
j boot -- x; j boot -- x; j boot --platform leon3 -- x; j boot -- x; j run -- true
edit; j run -- true; j boot -- x; j boot --platform leon3 -- x; j run -- true
edit; j boot --platform=leon3 -- x; j boot -- x; j run --personality pal -- x
edit; j build; j boot --help; j run -- true
j boot -- x; sleep 0.02; : >$t/image/janua-x86_64; j run -- true; j boot -- x; j boot -- x
";
    let want = "build --needed\nbuild --needed --pal\nbuild --needed --l4v2\n\
                build --needed --boot\nbuild --needed --leon3\n\
                build --needed\nbuild --needed --boot\nbuild --needed --leon3\n\
                build --needed --leon3\n\
                build \n\
                build --needed --boot\nbuild --needed --boot\n";
    let line = format!("ROOT='{}'\n{LAUNCHER_ALONE}{script}", workspace::root().display());
    let output = call(Command::new("bash").args(["-c", &line]), "")?;
    let said = String::from_utf8_lossy(&output.stderr);
    // How many minutes a first build takes is not the question.
    let built: String = said.lines().filter(|line| !line.starts_with("janua: ")).map(|line| format!("{line}\n")).collect();
    if output.status.success() && built == want { Ok(()) } else { Err(format!("it builds:\n{said}\nnot:\n{want}")) }
}

/// Two builds in one tree follow one another.
fn launcher_alone() -> Result<(), String> {
    let script = r#"
printf '#!/bin/sh\necho begin >>"$JANUA_ROOT/target/log"; sleep 0.2; echo end >>"$JANUA_ROOT/target/log"\n' >$t/debug/janua-build
./janua build 2>/dev/null & ./janua build 2>/dev/null & wait; j run -- true; cat target/log
"#;
    script_says(&format!("ROOT='{}'\n{LAUNCHER_ALONE}{script}", workspace::root().display()), "begin\nend\nbegin\nend\n")
}

/// Scripts run in a clone by somebody whose git changes the ends of lines.
fn line_ends() -> Result<(), String> {
    let root = workspace::root().display();
    let script = format!(
        "set -e; d=$(mktemp -d); cd $d; git init -q .; cp {root}/.gitattributes {root}/janua .; git config core.autocrlf true; git add .; rm janua\n\
         git checkout -q -- janua; if grep -q $'\\r' janua; then echo changed; else echo whole; fi; rm -rf $d"
    );
    script_says(&script, "whole\n")
}

/// The launcher works from any directory and through a symbolic link, and adds nothing of its own.
fn launcher() -> Result<(), String> {
    let direct = call(Command::new(build::janua()).arg("--version"), "")?;
    let place = compare::place();
    std::fs::create_dir_all(&place).map_err(|e| format!("{}: {e}", place.display()))?;
    let link = place.join("launcher");
    // Left over from a run that was ended.
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(workspace::root().join("janua"), &link).map_err(|e| format!("{}: {e}", link.display()))?;
    let name = Path::new(".").join(link.file_name().unwrap_or_default());
    let calls = [
        call(Command::new(workspace::root().join("janua")).arg("--version").current_dir("/"), ""),
        call(Command::new(&link).arg("--version").current_dir("/"), ""),
        call(Command::new(name).arg("--version").current_dir(&place), ""),
    ];
    let removed = std::fs::remove_file(&link).map_err(|e| format!("{}: {e}", link.display()));
    for output in calls {
        let output = output?;
        if output.stdout != direct.stdout || !output.status.success() {
            return Err(format!(
                "{}\n{}{}",
                output.status,
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            ));
        }
    }
    removed
}
