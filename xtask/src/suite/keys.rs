//! The jail `pkey` on every machine: a Linux with protection keys on an emulated processor, and in it the attacks under both gates and
//! a sample of conformance. And cgroups, which this machine may lack or keep from its callers.
//!
//! The Linux is Debian's, fetched once into the target directory; nothing of it is installed. Its initial file system holds busybox,
//! the `janua` command and the programs, linked statically. On an emulated processor everything takes twenty times as long, so
//! attacks make a sixteenth of their tries there (`--long`: all of them).

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::compare::{self, Verdict};
use super::conformance::{self, directive, sorted};
use super::{attacks, keys_linux, keys_scripts};
use crate::tally::Tally;
use crate::{build, workspace};

/// The gates that can keep the jail.
const GATES: &[&str] = &["call", "sud"];
/// What programs are compared under: besides, their calls run away, on a module that reaches no memory of theirs by itself.
const WAYS: &[&str] = &["call", "sud", compare::AWAY];

/// Conformance programs that run here too (with musl, which links them statically); with `--long` all do.
#[rustfmt::skip]
const SAMPLE: &[&str] = &[
    "code/jit_rwx", "code/single_step", "exec/argv_env", "fs/read_write", "futex/pi", "mm/mprotect", "pipe/basics", "poll/epoll", "proc/fork", "proc/used_by_vfork",
    "ptrace/calls", "ptrace/events", "sig/altstack", "sig/handlers", "sig/jump_register", "thread/sync",
];

/// One of how many tries an attack makes.
const PART: u32 = 16;

/// Seconds one test may take inside, and all of them together. With `--long` both are multiplied by [`PART`].
const LIMIT: u64 = 240;
const BUDGET: u64 = 1200;

/// Seconds until the emulated Linux must have begun its first test.
const BOOT: u64 = 120;

/// How often an emulated Linux is started for the same test: now and then one panics under QEMU's emulation by itself.
const STARTS: u32 = 3;

/// One program to run inside.
struct Test {
    name: String,
    program: PathBuf,
    kind: Kind,
}

enum Kind {
    /// An attack under a gate, and the ends it may have.
    Attack { gate: &'static str, ends: String },
    /// A conformance program: natively, then under both gates.
    Same,
    /// A script, given the program.
    Script(&'static keys_scripts::Script),
}

/// What a test printed and its exit code: `None` when it was not done.
type Said = (Vec<String>, Option<i32>);

/// Runs the tests whose name holds the filter.
pub fn run(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    if attacks::has_keys() && !super::named() {
        tally.skip(
            "keys",
            "this processor has protection keys: the suites attacks and walls use them; `./janua test keys` emulates some",
        );
        return Ok(());
    }
    let linux = match keys_linux::fetched() {
        Ok(linux) => linux,
        Err(why) => {
            tally.skip("keys", &why);
            return Ok(());
        }
    };
    let tests = chosen(filter)?;
    let end = Instant::now() + Duration::from_secs(BUDGET * if super::long() { u64::from(PART) } else { 1 });
    let queue = Mutex::new(tests.iter().rev().collect::<Vec<&Test>>());
    let verdicts = Mutex::new(Vec::new());
    // As many machines as processors; each takes a few tests at a time.
    std::thread::scope(|scope| {
        for number in 0..std::thread::available_parallelism().map_or(1, usize::from).min(2) {
            let (queue, verdicts, linux) = (&queue, &verdicts, &linux);
            scope.spawn(move || work(number, linux, queue, verdicts, end));
        }
    });
    for verdict in verdicts.into_inner().unwrap_or_else(|e| e.into_inner()) {
        verdict.count(tally);
    }
    Ok(())
}

/// The tests, their programs built.
fn chosen(filter: Option<&str>) -> Result<Vec<Test>, String> {
    let place = compare::place().join("bin/keys");
    fs::create_dir_all(&place).map_err(|e| format!("{}: {e}", place.display()))?;
    // Position-independent: attacks tell their own addresses, which are high, from the kernel's low ones.
    let mut tests = Vec::new();
    for source in
        sorted(&workspace::root().join("test/attacks"))?.into_iter().filter(|path| path.extension().is_some_and(|e| e == "c"))
    {
        let stem = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&source).map_err(|e| format!("{}: {e}", source.display()))?;
        if directive(&text, "skip pkey").is_some() {
            continue;
        }
        let ends = directive(&text, "pkey").ok_or_else(|| format!("no line /* pkey: END */ in {}", source.display()))?;
        for gate in GATES {
            let name = format!("keys/{stem}/{gate}");
            if super::wanted(filter, &name) {
                let program = place.join(&stem);
                attacks::build(&source, &program, &["-static-pie"])?;
                tests.push(Test { name, program, kind: Kind::Attack { gate, ends: ends.clone() } });
            }
        }
    }
    for test in conformance::find()?
        .iter()
        .filter(|test| test.variant.name == "musl" && (super::long() || SAMPLE.contains(&&*test.test)))
    {
        let name = format!("keys/{}", test.test);
        if super::wanted(filter, &name) {
            tests.push(Test { name, program: conformance::build(test)?, kind: Kind::Same });
        }
    }
    for script in keys_scripts::SCRIPTS.iter().filter(|script| super::wanted(filter, script.name)) {
        let source = workspace::root().join("test").join(script.program);
        let program = place.join(source.file_stem().unwrap_or_default());
        attacks::build(&source, &program, &["-static-pie"])?;
        tests.push(Test { name: script.name.to_owned(), program, kind: Kind::Script(script) });
    }
    Ok(tests)
}

/// Takes tests from the queue until it is empty, in one emulated machine after another.
fn work(number: usize, linux: &Path, queue: &Mutex<Vec<&Test>>, verdicts: &Mutex<Vec<Verdict>>, end: Instant) {
    let give = |verdict| verdicts.lock().unwrap_or_else(|e| e.into_inner()).push(verdict);
    loop {
        let mut batch: Vec<&Test> = Vec::new();
        {
            let mut queue = queue.lock().unwrap_or_else(|e| e.into_inner());
            // Small batches towards the end, so that both machines end together.
            let size = (queue.len() / 4).clamp(1, 16);
            batch.extend((0..size).map_while(|_| queue.pop()));
        }
        if batch.is_empty() {
            return;
        }
        let mut starts = 0;
        while !batch.is_empty() {
            if Instant::now() > end {
                batch.iter().for_each(|test| give(Verdict::Skipped(test.name.clone(), format!("not begun within {BUDGET} s"))));
                break;
            }
            starts += 1;
            let said = match session(number, linux, &batch) {
                Ok(said) => said,
                Err(why) => {
                    give(Verdict::Failed("keys".into(), why));
                    return;
                }
            };
            let before = batch.len();
            batch.retain(|test| {
                let done = judge(test, &said);
                let wait = done.is_none();
                done.into_iter().for_each(&give);
                wait
            });
            if batch.len() < before {
                starts = 0;
            } else if starts == STARTS {
                let test = batch.remove(0);
                give(Verdict::Failed(
                    test.name.clone(),
                    format!("no verdict from {STARTS} emulated machines; the last lines:\n{}", tail(&said)),
                ));
                starts = 0;
            }
        }
    }
}

/// The last lines of what was printed, of any test and of Linux.
fn tail(said: &BTreeMap<String, Said>) -> String {
    let lines = said.get("").map(|(lines, _)| lines.as_slice()).unwrap_or_default();
    lines[lines.len().saturating_sub(25)..].join("\n")
}

/// What came of one test; `None` when the machine ended before it did.
fn judge(test: &Test, said: &BTreeMap<String, Said>) -> Option<Verdict> {
    let name = test.name.clone();
    let of = |part: &str| said.get(&format!("{name}{part}")).and_then(|(lines, code)| code.map(|code| (lines, code)));
    let failed =
        |what: String, lines: &[String]| Some(Verdict::Failed(test.name.clone(), format!("{what}\n{}", lines.join("\n"))));
    match &test.kind {
        Kind::Attack { ends, .. } => {
            let (lines, code) = of("")?;
            if ends == "stopped" {
                let stopped = code == 125 && lines.iter().any(|line| line.contains("second wall"));
                return if stopped { Some(Verdict::Passed(name)) } else { failed(format!("not stopped (exit {code})"), lines) };
            }
            let end = lines.iter().find_map(|line| line.strip_prefix("end: "));
            match end {
                Some(end) if ends.split(" | ").any(|one| one == end) => {
                    let alive =
                        ["kernel: alive", "second guest: alive"].iter().all(|word| lines.iter().any(|line| line == word));
                    if code == 0 && alive {
                        Some(Verdict::Passed(name))
                    } else {
                        failed(format!("the sandbox did not survive (exit {code})"), lines)
                    }
                }
                _ => failed(format!("ended as {end:?}, not as `{ends}` (exit {code})"), lines),
            }
        }
        Kind::Script(script) => {
            let (lines, _) = of("")?;
            match script.judge(lines) {
                Ok(()) => Some(Verdict::Passed(name)),
                Err(what) => failed(what, lines),
            }
        }
        Kind::Same => {
            let native = of("@native")?;
            for gate in WAYS {
                let there = of(&format!("@{gate}"))?;
                if there != native {
                    let (old, new) = (native.0.join("\n"), there.0.join("\n"));
                    let what = format!(
                        "{gate}: exit code {}, native {}\n{}",
                        there.1,
                        native.1,
                        compare::difference(old.as_bytes(), new.as_bytes())
                    );
                    return failed(what, &[]);
                }
            }
            if native.1 == 0 {
                Some(Verdict::Passed(name))
            } else {
                Some(Verdict::Skipped(name, format!("natively exit code {} on the emulated machine", native.1)))
            }
        }
    }
}

/// One start of the emulated machine, which runs these tests in turn: what each run printed.
fn session(number: usize, linux: &Path, tests: &[&Test]) -> Result<BTreeMap<String, Said>, String> {
    let files = initial(number, tests)?;
    let mut child = Command::new("qemu-system-x86_64")
        // No cmpxchg16b: QEMU 7.2 spoils the flags by it, and Linux panics. No SMAP: QEMU reads the stack of iretq as the supervisor.
        // One processor: with two a booting Linux breaks now and then.
        .args([
            "-M",
            "q35",
            "-accel",
            "tcg",
            "-cpu",
            "max,-smap,-smep,-cx16",
            "-smp",
            "1",
            "-m",
            "1500",
            "-display",
            "none",
            "-no-reboot",
        ])
        .args(["-nodefaults", "-serial", "stdio", "-kernel"])
        .arg(linux)
        .arg("-initrd")
        .arg(&files)
        .args(["-append", "console=ttyS0 mitigations=off quiet panic=-1 random.trust_cpu=on"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("qemu-system-x86_64: {e}"))?;
    let (give, take) = mpsc::channel();
    let output = child.stdout.take();
    let reader = std::thread::spawn(move || {
        for line in output.map(BufReader::new).into_iter().flat_map(|reader| reader.split(b'\n').map_while(Result::ok)) {
            if give.send(String::from_utf8_lossy(&line).trim_end_matches('\r').to_string()).is_err() {
                return;
            }
        }
    });
    let said = listen(&take);
    end(&mut child);
    let _ = reader.join();
    let _ = fs::remove_file(files);
    Ok(said)
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// What the machine prints until it ends, is silent for too long, or panics. The key "" holds all lines.
fn listen(lines: &Receiver<String>) -> BTreeMap<String, Said> {
    let long = if super::long() { u64::from(PART) } else { 1 };
    let mut said: BTreeMap<String, Said> = BTreeMap::new();
    let mut now = None::<String>;
    let mut until = Instant::now() + Duration::from_secs(BOOT);
    loop {
        let line = match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return said,
        };
        said.entry(String::new()).or_default().0.push(line.clone());
        if line.contains("Kernel panic") {
            return said;
        }
        if let Some(name) = line.strip_prefix("@@ begin ") {
            until = Instant::now() + Duration::from_secs((LIMIT + 60) * long);
            said.entry(name.into()).or_default();
            now = Some(name.into());
        } else if let Some((text, code)) = line.split_once("@@ end ") {
            if let Some(entry) = now.take().and_then(|name| said.get_mut(&name)) {
                // The program's last line may lack its end.
                entry.0.extend((!text.is_empty()).then(|| text.to_string()));
                entry.1 = code.trim().parse().ok();
            }
        } else if let Some(entry) = now.as_ref().and_then(|name| said.get_mut(name)) {
            entry.0.push(line);
        }
    }
}

/// The initial file system: busybox, the command, the programs, and a script that runs them.
fn initial(number: usize, tests: &[&Test]) -> Result<PathBuf, String> {
    let root = compare::place().join(format!("keys-{number}"));
    compare::fresh(&root)?;
    for dir in ["bin", "proc", "sys", "dev", "tmp", "w", "t", "etc", "root", "dev/shm"] {
        fs::create_dir_all(root.join(dir)).map_err(|e| format!("{dir}: {e}"))?;
    }
    let copy =
        |from: &Path, to: &str| fs::copy(from, root.join(to)).map(|_| ()).map_err(|e| format!("{}: {e}", from.display()));
    super::boot::add_busybox(&root, "bin/busybox")?;
    copy(&build::janua(), "janua")?;
    fs::write(root.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n").map_err(|e| e.to_string())?;
    let script = script(tests, &copy)?;
    fs::write(root.join("init"), script).map_err(|e| e.to_string())?;
    let pack = "chmod 755 init janua bin/busybox && find . | busybox cpio -o -H newc >../$0 2>/dev/null";
    let archive = format!("keys-{number}.cpio");
    let done = Command::new("sh").args(["-c", pack, &archive]).current_dir(&root).status().map_err(|e| format!("sh: {e}"))?;
    let _ = compare::clear(&root);
    if done.success() { Ok(compare::place().join(archive)) } else { Err("busybox cpio failed".into()) }
}

/// The script, and the programs copied.
fn script(tests: &[&Test], copy: &dyn Fn(&Path, &str) -> Result<(), String>) -> Result<String, String> {
    let long = if super::long() { u64::from(PART) } else { 1 };
    let mut script = String::from(
        "#!/bin/busybox sh\n/bin/busybox --install -s /bin\nexport PATH=/bin HOME=/root LC_ALL=C TZ=UTC TERM=dumb\n\
         mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mkdir -p /dev/pts /dev/shm\n\
         mount -t devpts pts /dev/pts; mount -t tmpfs tmp /tmp; mount -t tmpfs shm /dev/shm; mount -t tmpfs w /w; ip link set lo up; ln -s /proc/self/fd /dev/fd\n\
         exec </dev/null 2>&1; dmesg -n 1\n\
         one() { name=$1; shift; rm -rf /w/* 2>/dev/null; cd /w; echo \"@@ begin $name\"; timeout -s KILL $limit \"$@\"; echo \"@@ end $?\"; }\n",
    );
    script += &format!("limit={}\nexport {}={}\n", LIMIT * long, crate::random::VARIABLE, super::seed());
    if !super::long() {
        script += &format!("export ATTACK_PART={PART}\n");
    }
    let image = workspace::target().join("image/janua-linux");
    for (name, places) in attacks::gadgets(&image)? {
        if name == "ATTACK_WRPKRU" {
            // A far return of user code reads its stack with the rights of the system in QEMU, and the emulated Linux stops.
            script += &format!("far={}\n", attacks::far_returns(&image, places.split(',').next().unwrap_or_default())?);
        }
        script += &format!("export {name}={places}\n");
    }
    for (number, test) in tests.iter().enumerate() {
        let (name, program) = (&test.name, format!("/t/{number}"));
        copy(&test.program, &program[1..])?;
        match &test.kind {
            Kind::Attack { gate, .. } if name.contains("kernel_text") => {
                script += &format!("one {name} env ATTACK_FAR=$far /janua run --jail pkey --gate {gate} -- {program}\n");
            }
            Kind::Attack { gate, .. } => script += &format!("one {name} /janua run --jail pkey --gate {gate} -- {program}\n"),
            Kind::Script(what) => script += &format!("{}one {name} sh -c '{}' sh {program}\n", keys_scripts::BEFORE, what.text),
            Kind::Same => {
                script += &format!("one {name}@native {program}\n");
                for gate in WAYS {
                    script += &format!(
                        "one {name}@{gate} /janua run --jail pkey {} -- {program}\n",
                        compare::options(gate).join(" ")
                    );
                }
            }
        }
    }
    Ok(script + "poweroff -f\n")
}
