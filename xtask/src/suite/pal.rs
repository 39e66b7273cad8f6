//! Programs on libpal (`test/pal`): what they write, with a manifest and without, by each gate on Linux and on bare x86_64, each test there one run of
//! QEMU; and manifests that are none.

use std::fs;
use std::path::{Path, PathBuf};

use super::compare;
use crate::guard::Run;
use crate::tally::Tally;
use crate::{build, user};

/// Seconds one run may take; each takes less than one, and some with a machine that boots.
const LIMIT: u64 = 120;

/// A program, and its exit code.
struct Case {
    name: &'static str,
    expected: &'static str,
    manifest: Option<&'static str>,
    code: i32,
}

const fn case(name: &'static str, expected: &'static str) -> Case {
    Case { name, expected, manifest: None, code: 0 }
}

const CASES: &[Case] = &[
    case("mapping", include_str!("../../../test/pal/mapping.expected")),
    case("threads", include_str!("../../../test/pal/threads.expected")),
    case("sync", include_str!("../../../test/pal/sync.expected")),
    case("streams", include_str!("../../../test/pal/streams.expected")),
    case("sockets", include_str!("../../../test/pal/sockets.expected")),
    case("events", include_str!("../../../test/pal/events.expected")),
    case("console", include_str!("../../../test/pal/console.expected")),
    case("early", include_str!("../../../test/pal/early.expected")),
    case("bad", include_str!("../../../test/pal/bad.expected")),
    Case { code: 7, ..case("processes", include_str!("../../../test/pal/processes.expected")) },
    Case {
        manifest: Some(include_str!("../../../test/pal/sandbox.manifest")),
        ..case("sandbox", include_str!("../../../test/pal/sandbox.expected"))
    },
];

/// What is wrong with a manifest, and what is said of it.
const MALFORMED: &[(&str, &str)] = &[
    ("loader.exec file:hello\n", "line 1: `loader.exec file:hello` is not key = value"),
    ("fs.mount.root.type = chroot\nfs.mount.root.url = file:/\n", "line 2: there is no key `fs.mount.root.url`"),
    ("fs.mount.root.type = ext4\n", "line 1: `fs.mount.root.type`: `ext4` is none of chroot, proc, dev"),
    ("net.rules.1 = 127.0.0.1:80\n", "line 1: net.rules.1: "),
    ("loader.preload = file:libLinux.so\n", "line 1: `loader.preload`: programs are linked with their library here"),
    ("\u{fffd}=\n", "line 1: there is no key"),
];

/// What carries a program.
#[derive(Clone, Copy)]
enum Machine<'a> {
    /// By a gate, under a jail.
    Linux(&'a str, &'a str),
    /// With options of `janua boot`, and this kernel image.
    Bare(&'a Way, &'a Path),
}

/// How the bare machine is, and which programs run there.
struct Way {
    name: &'static str,
    options: &'static [&'static str],
    /// Its files are on a disk.
    disk: bool,
    /// None: all.
    programs: &'static [&'static str],
}

const WAYS: &[Way] = &[
    Way { name: "x86_64", options: &[], disk: false, programs: &[] },
    Way { name: "x86_64/kpti", options: &["--kpti", "on"], disk: false, programs: &["events", "processes"] },
    Way { name: "x86_64/one processor", options: &["--smp", "1"], disk: false, programs: &["threads", "sync", "processes"] },
    Way { name: "x86_64/disk", options: &["--disk-size", "64M"], disk: true, programs: &["streams", "mapping", "processes"] },
];

/// Where the directory of a program's own is on the bare machine.
const OWN: &str = "own";

impl Machine<'_> {
    fn name(self) -> String {
        match self {
            Machine::Linux(gate, jail) => format!("{gate}/{jail}"),
            Machine::Bare(way, _) => way.name.to_owned(),
        }
    }

    fn takes(self, case: &Case) -> bool {
        match self {
            Machine::Linux(..) => true,
            Machine::Bare(way, _) => way.programs.is_empty() || way.programs.contains(&case.name),
        }
    }

    /// The command up to the options: `dir` becomes the machine's files, or is bound.
    fn command(self, dir: &Path) -> Vec<String> {
        let place = dir.display().to_string();
        let bind = format!("{place}::rw");
        let disk = dir.with_extension("img").display().to_string();
        let words = match self {
            Machine::Linux(gate, jail) => vec!["run", "--bind", &bind, "--gate", gate, "--jail", jail],
            Machine::Bare(way, _) => {
                let disk = if way.disk { vec!["--disk", &disk] } else { Vec::new() };
                [&["boot", "--ramfs", &place, "--cwd", "/own"], &disk[..], way.options].concat()
            }
        };
        words.into_iter().chain(["--personality", "pal"]).map(String::from).collect()
    }
}

/// Runs a program in a directory of its own: its exit code, and all it and the command have written.
fn run(machine: Machine, options: &[&str], program: &[&str], dir: &Path) -> Result<(i32, String), String> {
    let mut command = vec![build::janua().display().to_string()];
    command.extend(machine.command(dir));
    command.extend(options.iter().chain(&["--"]).chain(program).map(ToString::to_string));
    let env = match machine {
        Machine::Linux(..) => Vec::new(),
        Machine::Bare(_, image) => vec![("JANUA_IMAGE_X86_64".to_owned(), image.display().to_string())],
    };
    let shell = ["sh", "-c", "exec \"$@\" 2>&1 < /dev/null", "sh"].map(String::from);
    let run = Run { command: shell.into_iter().chain(command).collect(), dir, env, limit: LIMIT, terminal: None };
    let outcome = run.outcome(&dir.with_extension("report"))?;
    let output = String::from_utf8_lossy(&outcome.output).into_owned();
    // A disk that is made is reported.
    let made = output.split_once('\n').filter(|(line, _)| line.starts_with("janua: made ") && line.contains(": ext4, "));
    Ok((outcome.code, made.map_or(output.clone(), |(_, rest)| rest.to_owned())))
}

/// A directory for a run; on the bare machine one in it is the program's own.
fn place(machine: Machine, name: &str) -> Result<PathBuf, String> {
    let dir = compare::place().join("pal").join(format!("{name}-{}", machine.name().replace(['/', ' '], "-")));
    let own = if let Machine::Bare(..) = machine { dir.join(OWN) } else { dir.clone() };
    fs::create_dir_all(own.join("open")).map_err(|e| format!("{}: {e}", own.display()))?;
    // Where a link leads out.
    std::os::unix::fs::symlink("/etc", own.join("open/link")).map_err(|e| format!("{}: {e}", own.display()))?;
    if let Machine::Bare(..) = machine {
        // And what is there.
        let there = dir.join("etc");
        fs::create_dir(&there)
            .and_then(|()| fs::write(there.join("passwd"), "root:x:0:0:root:/root:/bin/sh\n"))
            .map_err(|e| format!("{}: {e}", there.display()))?;
    }
    Ok(dir)
}

/// A manifest outside: its name.
fn manifest(dir: &Path, text: &str) -> Result<String, String> {
    let named = dir.with_extension("manifest").display().to_string();
    fs::write(&named, text).map_err(|e| format!("{named}: {e}"))?;
    Ok(named)
}

fn one(case: &Case, machine: Machine, programs: &Path) -> Result<(), String> {
    let dir = place(machine, case.name)?;
    let mut program = programs.join(case.name).display().to_string();
    if let Machine::Bare(..) = machine {
        let there = dir.join(case.name);
        fs::copy(&program, &there).map_err(|e| format!("{}: {e}", there.display()))?;
        program = format!("/{}", case.name);
    }
    let named = case.manifest.map(|text| manifest(&dir, text)).transpose()?;
    let options: Vec<&str> = named.iter().flat_map(|named| ["--manifest", named]).collect();
    let (code, output) = run(machine, &options, &[&program], &dir)?;
    if (code, &*output) == (case.code, case.expected) {
        return Ok(());
    }
    Err(format!("exit code {code} instead of {}, and it wrote\n{output}instead of\n{}", case.code, case.expected))
}

fn malformed(machine: Machine) -> Result<(), String> {
    let dir = place(machine, "malformed")?;
    for (text, said) in MALFORMED {
        let (code, output) = run(machine, &["--manifest", &manifest(&dir, text)?], &["hello"], &dir)?;
        if code != 125 || !output.contains(said) {
            return Err(format!("exit code {code} instead of 125, and it wrote\n{output}instead of `{said}`"));
        }
    }
    Ok(())
}

/// The program that comes with the command; and one of Linux', which finds no call.
fn others(machine: Machine) -> Result<(), String> {
    let dir = place(machine, "others")?;
    let named = manifest(&dir, "loader.execname = greeter\n")?;
    let (code, output) = run(machine, &["--manifest", &named], &["hello"], &dir)?;
    let says = "Hello from greeter\npages of 4096 bytes, allocated by 4096\nwith a manifest, and the first\n";
    if (code, &*output) != (0, says) {
        return Err(format!("hello: exit code {code}, and it wrote\n{output}instead of\n{says}"));
    }
    let foreign = if let Machine::Bare(..) = machine {
        let there = dir.join("busybox");
        fs::copy("/bin/busybox", &there).map_err(|e| format!("{}: {e}", there.display()))?;
        "/busybox"
    } else {
        "/bin/true"
    };
    let (code, output) = run(machine, &[], &[foreign], &dir)?;
    if code < 128 || output.contains("kernel fault") || !output.contains("is it linked with libpal?") {
        return Err(format!(
            "{foreign}: exit code {code} instead of one of a signal's, or no word why, and it wrote\n{output}"
        ));
    }
    costs(machine, &dir)?;
    let (code, output) = run(machine, &[], &["nowhere"], &dir)?;
    if code != 127 || !output.contains("no program on libpal of this name") {
        return Err(format!("nowhere: exit code {code} instead of 127, and it wrote\n{output}"));
    }
    Ok(())
}

/// What `janua bench events` reads: a rate, so many numbers a row, and an error for a row that is none.
fn costs(machine: Machine, dir: &Path) -> Result<(), String> {
    let (code, output) = run(machine, &[], &["costs", "delay-1000", "2", "wake-1", "3", "wake-64", "65", "wake-65", "1"], dir)?;
    let shape = |line: &str| {
        let mut words = line.split(' ').filter(|word| word.parse::<u64>().is_err());
        let name: Vec<&str> = words.by_ref().take(3).collect();
        (name.join(" "), line.split(' ').count())
    };
    let shapes: Vec<(String, usize)> = output.lines().map(shape).collect();
    let expected = [("rate", 2), ("row delay-1000", 4), ("row wake-1", 5), ("row wake-64", 67), ("cannot measure wake-65", 6)];
    let same = shapes.len() == expected.len() && shapes.iter().zip(expected).all(|(a, b)| (&*a.0, a.1) == b);
    if code == 1 && same { Ok(()) } else { Err(format!("costs: exit code {code} instead of 1, and it wrote\n{output}")) }
}

/// The suite.
pub fn suite(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    compare::fresh(&compare::place().join("pal"))?;
    let image = build::image_x86_64()?.embedded;
    build::all()?;
    let programs = user::build_pal("test/pal", "test")?;
    let hosted = [("call", "none"), ("sud", "none"), ("seccomp", "none"), ("call", "process")];
    let hosted = hosted.map(|(gate, jail)| Machine::Linux(gate, jail));
    for machine in hosted.into_iter().chain(WAYS.iter().map(|way| Machine::Bare(way, &image))) {
        for case in CASES.iter().filter(|case| machine.takes(case)) {
            let name = format!("pal/{}/{}", case.name, machine.name());
            if super::wanted(filter, &name) {
                tally.check(&name, one(case, machine, &programs));
            }
        }
    }
    for machine in [Machine::Linux("call", "none"), Machine::Bare(&WAYS[0], &image)] {
        for (name, check) in [("malformed manifests", malformed as fn(Machine) -> _), ("other programs", others)] {
            let name = format!("pal/{name}/{}", machine.name());
            if super::wanted(filter, &name) {
                tally.check(&name, check(machine));
            }
        }
    }
    Ok(())
}
