//! Kernels side by side on the bare machine: `janua boot --tiles`. Several write at once, so their lines are compared in order of the alphabet.

use std::fs;
use std::io::Write;
use std::path::Path;

use super::boot::LIMIT;
use super::boot_fault::{RIP, debugged, environment, reaches, spoil};
use crate::build;
use crate::guard::{Outcome, Run};
use crate::tally::Tally;

type Test = fn(&Path, &Path) -> Result<(), String>;

const TESTS: &[(&str, Test)] = &[
    ("boot/tiles/run", run_beside),
    ("boot/tiles/own-machine", own_machine),
    ("boot/tiles/isolated", isolated),
    ("boot/tiles/slices", slices),
    ("boot/tiles/waits-for-all", waits_for_all),
    ("boot/tiles/lines", lines),
    ("boot/tiles/exit-codes", exit_codes),
    ("boot/tiles/memory-is-its-own", memory),
    ("boot/tiles/most", most),
    ("boot/tiles/pal", pal),
    ("boot/tiles/apart", apart),
    ("boot/tiles/fault", fault),
    ("boot/tiles/fault-of-all-others", fault_of_all_others),
    ("boot/tiles/fault-of-the-first", fault_of_the_first),
    ("boot/tiles/refused", refused),
];

pub fn run(filter: Option<&str>, image: &Path, dir: &Path, tally: &mut Tally) {
    for (name, test) in TESTS.iter().filter(|(name, _)| super::wanted(filter, name)) {
        tally.check(name, test(image, dir));
    }
}

/// A machine by the shell's words behind `janua boot`; its standard input is empty.
fn boot(image: &Path, dir: &Path, words: &str) -> Result<Outcome, String> {
    let line = format!("exec {} boot {words} </dev/null", build::janua().display());
    let command = ["/bin/sh", "-c", &line].map(String::from).to_vec();
    let env = vec![("JANUA_IMAGE_X86_64".to_string(), image.display().to_string())];
    Run { command, dir, env, limit: LIMIT, terminal: None }.outcome(&dir.join("report"))
}

fn sorted(output: &[u8]) -> Vec<String> {
    let mut lines: Vec<String> = String::from_utf8_lossy(output).lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

fn expect(outcome: &Outcome, lines: &[&str], code: i32) -> Result<(), String> {
    let found = sorted(&outcome.output);
    if found == lines && outcome.code == code {
        return Ok(());
    }
    Err(format!(
        "exit code {} instead of {code}, and instead of\n{}\nit wrote:\n{}",
        outcome.code,
        lines.join("\n"),
        found.join("\n")
    ))
}

/// The first tile's program, one on another, and what the monitors know in the end.
fn run_beside(image: &Path, dir: &Path) -> Result<(), String> {
    let simple = boot(image, dir, "--tiles 2 --cores 1 -- sh -c 'seq 1000 | sort -n | tail -1; exit 3'")?;
    expect(&simple, &["1000"], 3)?;
    let both = boot(image, dir, "--tiles 2 --cores 1 --on '1 echo one' -- echo zero")?;
    expect(&both, &["one", "zero"], 0)?;
    let report = boot(image, dir, "--tiles 3 --cores 1 --stats -- sleep 1")?;
    let is_there =
        |line: &String| line.ends_with(" said") && [1, 2].iter().any(|tile| line.starts_with(&format!("tile {tile}: there, ")));
    let there = sorted(&report.output).iter().filter(|line| is_there(line)).count();
    // Nobody hears another's answers without messages both ways.
    let silent = String::from_utf8_lossy(&report.output).contains(": there, 0 messages heard");
    if there == 2 && !silent { Ok(()) } else { Err(String::from_utf8_lossy(&report.output).into_owned()) }
}

/// A tile has the processors that are its own, its own processes, and one clock with the others.
fn own_machine(image: &Path, dir: &Path) -> Result<(), String> {
    expect(&boot(image, dir, "--tiles 2 --cores 2 --on '1 nproc' -- nproc")?, &["2", "2"], 0)?;
    expect(&boot(image, dir, "--tiles 2 --on '1 readlink /proc/self' -- readlink /proc/self")?, &["2", "2"], 0)?;
    let date = boot(image, dir, "--tiles 2 --on '1 date +%s' -- date +%s")?;
    let seconds: Vec<u64> = sorted(&date.output).iter().filter_map(|line| line.parse().ok()).collect();
    match seconds[..] {
        [a, b] if a > 1_600_000_000 && b - a < LIMIT => Ok(()),
        _ => Err(format!("{seconds:?}")),
    }
}

/// With page-table isolation, which changes each tile's code and tables.
fn isolated(image: &Path, dir: &Path) -> Result<(), String> {
    let outcome = boot(image, dir, "--kpti on --tiles 2 --cores 2 --on '1 seq 3' -- sh -c 'seq 1000 | sort -n | tail -1'")?;
    expect(&outcome, &["1", "1000", "2", "3"], 0)
}

/// Timers are each tile's own.
fn slices(image: &Path, dir: &Path) -> Result<(), String> {
    let outcome = boot(image, dir, "--slice 80ms --tiles 2 --on '1 sleep 0.3' -- sh -c 'sleep 0.1; echo slept'")?;
    expect(&outcome, &["slept"], 0)
}

/// The machine goes on until the programs of all tiles have ended, and all that one has written comes in its order, though the window is full again and again.
fn waits_for_all(image: &Path, dir: &Path) -> Result<(), String> {
    let outcome = boot(image, dir, "--tiles 3 --on '1 seq 30000' -- true")?;
    let wanted: String = (1..=30_000).map(|number| format!("{number}\n")).collect();
    if outcome.code == 0 && outcome.output == wanted.as_bytes() {
        return Ok(());
    }
    Err(format!("exit code {}, {} bytes instead of {}", outcome.code, outcome.output.len(), wanted.len()))
}

/// What tiles write at once comes out write by write.
fn lines(image: &Path, dir: &Path) -> Result<(), String> {
    let (long, most) = ("b".repeat(300), 500);
    let words = format!("--tiles 2 --on '1 sh /lines {long} {most}' -- sh /lines {} {most}", long.replace('b', "a"));
    let tree = dir.join("tiles");
    let described = |error: std::io::Error| format!("{}: {error}", tree.display());
    fs::create_dir_all(tree.join("bin")).map_err(described)?;
    fs::write(tree.join("lines"), "n=0; while [ $n -lt $2 ]; do echo $1; n=$((n+1)); done").map_err(described)?;
    fs::copy("/bin/busybox", tree.join("bin/sh")).map_err(described)?;
    let outcome = boot(image, dir, &format!("--ramfs {} {words}", tree.display()))?;
    let found = sorted(&outcome.output);
    let count = |line: &str| found.iter().filter(|found| *found == line).count();
    let [a, b] = [long.replace('b', "a"), long].map(|line| count(&line));
    if a == most && b == most && found.len() == 2 * most {
        Ok(())
    } else {
        Err(format!("{a} and {b} of {most} lines are whole, of {}", found.len()))
    }
}

/// A program that ends with an error on another tile is reported; the machine's exit code is that of the first tile's.
fn exit_codes(image: &Path, dir: &Path) -> Result<(), String> {
    let outcome = boot(image, dir, "--tiles 3 --on '1 false' --on '2 nosuch' -- sh -c 'exit 5'")?;
    let missing = "janua: nosuch: no such file or directory (or its interpreter is missing) inside the sandbox";
    expect(&outcome, &[missing, "janua: tile 1 has ended with exit code 1", "janua: tile 2 has ended with exit code 127"], 5)
}

/// A tile has a share of the memory, and one that uses all of its own takes nothing of another's.
fn memory(image: &Path, dir: &Path) -> Result<(), String> {
    const USED: &str = "1 dd if=/dev/zero of=/all bs=1M count=1000";
    let words = "--memory 512 --tiles 2";
    let free = "awk \"/MemTotal/ { print (\\$2 < 300000), (\\$2 > 150000) }\" /proc/meminfo";
    let outcome = boot(
        image,
        dir,
        &format!("{words} --on '{USED}' -- sh -c '{free}; dd if=/dev/zero of=/some bs=1M count=100 2>/dev/null; wc -c </some'"),
    )?;
    let found = sorted(&outcome.output);
    let full = found.iter().any(|line| line.contains("No space left") || line.contains("out of memory"));
    if outcome.code == 0 && full && found.contains(&"1 1".to_string()) && found.contains(&"104857600".to_string()) {
        return Ok(());
    }
    Err(format!("exit code {}; it wrote:\n{}", outcome.code, found.join("\n")))
}

/// As many tiles as there may be.
fn most(image: &Path, dir: &Path) -> Result<(), String> {
    let outcome = boot(image, dir, "--memory 1536 --tiles 16 --cores 1 --on '15 echo last' -- echo first")?;
    expect(&outcome, &["first", "last"], 0)
}

/// A picoprocess' kernel, as it is alone.
fn pal(image: &Path, dir: &Path) -> Result<(), String> {
    let alone = boot(image, dir, "--personality pal -- hello")?;
    let tiles = boot(image, dir, "--personality pal --tiles 2 --cores 1 -- hello")?;
    if alone != tiles || alone.code != 0 || alone.output.is_empty() {
        return Err(format!(
            "{}\nand on two tiles\n{}",
            String::from_utf8_lossy(&alone.output),
            String::from_utf8_lossy(&tiles.output)
        ));
    }
    let both = boot(image, dir, "--personality pal --tiles 2 --cores 1 --on '1 hello' -- hello")?;
    let twice = sorted(&[&alone.output[..], &alone.output].concat());
    if sorted(&both.output) == twice { Ok(()) } else { Err(String::from_utf8_lossy(&both.output).into_owned()) }
}

/// Boots a machine whose first tile reads a line, spoils a register of some cores in turn, while they are in the kernel, and then lets the first go on.
fn spoiled(image: &Path, dir: &Path, words: &str, cores: &[usize]) -> Result<Outcome, String> {
    meanwhile(image, dir, words, |socket| cores.iter().try_for_each(|core| spoil(socket, *core, RIP)))
}

/// Boots a machine whose first tile reads a line, which comes when something has been done by a debugger's socket.
fn meanwhile(image: &Path, dir: &Path, words: &str, act: impl FnOnce(&Path) -> Result<(), String>) -> Result<Outcome, String> {
    let (tools, socket) = debugged(dir)?;
    let fifo = dir.join("line");
    let _ = fs::remove_file(&fifo);
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    if !made.is_ok_and(|status| status.success()) {
        return Err("no FIFO can be made".into());
    }
    let line = format!("exec {} boot {words} <{}", build::janua().display(), fifo.display());
    let command = ["/bin/sh", "-c", &line].map(String::from).to_vec();
    let running =
        Run { command, dir, env: environment(image, &tools), limit: LIMIT, terminal: None }.start(&dir.join("report"))?;
    // Both ways, so that neither this nor the shell waits for the other to open it.
    let opened = fs::File::options().read(true).write(true).open(&fifo);
    let done = act(&socket);
    let written = opened.and_then(|mut line| {
        line.write_all(b"go\n")?;
        Ok(line)
    });
    let outcome = running.wait()?;
    done?;
    written.map_err(|error| format!("{}: {error}", fifo.display()))?;
    Ok(outcome)
}

/// Of the memory that all have mapped on a machine with one kernel each tile has its own share and no other's: the second half of the machine is the second tile's.
fn apart(image: &Path, dir: &Path) -> Result<(), String> {
    // Where physical memory is mapped (`platform/x86_64/src/boot.rs:DIRECT`).
    const DIRECT: u64 = 0xffff_8000_0000_0000;
    let [first, second] = [100, 400].map(|mebibytes: u64| DIRECT + (mebibytes << 20));
    let wanted = [(0, first, true), (0, second, false), (1, first, false), (1, second, true)];
    let outcome = meanwhile(image, dir, &format!("--memory 512 --kpti off --tiles 2 --cores 1 -- {GOES_ON}"), |socket| {
        reaches(socket, &wanted)
    })?;
    has(&outcome, 4, &["go on\n1000\n"])
}

/// A program that is in the kernel and out of it by turns.
const BUSY: &str = "dd if=/dev/zero of=/dev/null bs=1";
/// One that goes on when it is allowed to.
const GOES_ON: &str = "sh -c 'read line; echo $line on; seq 1000 | sort -n | tail -1; exit 4'";

fn has(outcome: &Outcome, code: i32, wanted: &[&str]) -> Result<(), String> {
    let output = String::from_utf8_lossy(&outcome.output);
    if outcome.code == code && wanted.iter().all(|line| output.contains(line)) {
        return Ok(());
    }
    Err(format!("exit code {} instead of {code}; it wrote:\n{output}", outcome.code))
}

/// A tile whose kernel fails is reported, with its core's frame, and the others go on.
fn fault(image: &Path, dir: &Path) -> Result<(), String> {
    let outcome =
        spoiled(image, dir, &format!("--tiles 3 --cores 1 --on '1 {BUSY}' --on '2 seq 3' --stats -- {GOES_ON}"), &[1])?;
    let fault = "janua: tile 1 has ended: kernel fault: core 0 vector 14 ";
    has(&outcome, 4, &[fault, "address 0xffffffffffff0000\njanua: rax ", "\ngo on\n1000\n", "\ntile 1: ended, "])
}

/// So are two, and one of them has another core, which stops.
fn fault_of_all_others(image: &Path, dir: &Path) -> Result<(), String> {
    // On the second core of each.
    let words = format!("--tiles 3 --cores 2 --on '1 taskset 2 {BUSY}' --on '2 taskset 2 {BUSY}' -- {GOES_ON}");
    let outcome = spoiled(image, dir, &words, &[3, 5])?;
    let faults = ["janua: tile 1 has ended: kernel fault: core ", "janua: tile 2 has ended: kernel fault: core "];
    has(&outcome, 4, &[faults[0], faults[1], "\ngo on\n1000\n"])
}

/// With the first tile the machine ends.
fn fault_of_the_first(image: &Path, dir: &Path) -> Result<(), String> {
    let outcome = spoiled(image, dir, &format!("--tiles 2 --cores 1 --on '1 {BUSY}' -- {BUSY}"), &[0])?;
    has(&outcome, 125, &["janua: kernel fault: core 0 vector 14 "])
}

/// What cannot be is refused before anything runs.
fn refused(image: &Path, dir: &Path) -> Result<(), String> {
    for (words, why) in [
        ("--tiles 17 -- true", "at most 16"),
        ("--tiles 2 --on '2 true' -- true", "--on '2 true'"),
        ("--tiles 16 --memory 256 -- true", ", for each tile\n"),
        ("--tiles 2 --disk x.img -- true", "--disk"),
        ("--cores 2 -- true", "there is one"),
    ] {
        has(&boot(image, dir, words)?, 125, &[why]).map_err(|found| format!("{words}: {found}"))?;
    }
    Ok(())
}
