//! Programs on libpal (`test/pal`): what they write, with a manifest and without, by each gate; and manifests that are none.

use std::fs;
use std::path::{Path, PathBuf};

use super::compare;
use crate::guard::Run;
use crate::tally::Tally;
use crate::{build, user};

/// Seconds one run may take; each takes less than one.
const LIMIT: u64 = 60;

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

/// Runs a program in a directory of its own: its exit code, and all it and the command have written.
fn run(options: &[&str], program: &str, dir: &Path) -> Result<(i32, String), String> {
    let bind = format!("{}::rw", dir.display());
    let mut command = vec![build::janua().display().to_string()];
    command.extend(["run", "--bind", &bind, "--personality", "pal"].map(String::from));
    command.extend(options.iter().map(ToString::to_string));
    command.extend(["--".to_owned(), program.to_owned()]);
    let shell = ["sh", "-c", "exec \"$@\" 2>&1 < /dev/null", "sh"].map(String::from);
    let run = Run { command: shell.into_iter().chain(command).collect(), dir, env: Vec::new(), limit: LIMIT, terminal: None };
    let outcome = run.outcome(&dir.with_extension("report"))?;
    Ok((outcome.code, String::from_utf8_lossy(&outcome.output).into_owned()))
}

fn place(name: &str) -> Result<PathBuf, String> {
    let dir = compare::place().join("pal").join(name);
    fs::create_dir_all(dir.join("open")).map_err(|e| format!("{}: {e}", dir.display()))?;
    // Where a link leads out.
    std::os::unix::fs::symlink("/etc", dir.join("open/link")).map_err(|e| format!("{}: {e}", dir.display()))?;
    Ok(dir)
}

fn one(case: &Case, (gate, jail): (&str, &str), programs: &Path) -> Result<(), String> {
    let dir = place(&format!("{}-{gate}-{jail}", case.name))?;
    let manifest = dir.join("manifest");
    let mut options = vec!["--gate", gate, "--jail", jail];
    let named = manifest.display().to_string();
    if let Some(text) = case.manifest {
        fs::write(&manifest, text).map_err(|e| format!("{named}: {e}"))?;
        options.extend(["--manifest", &named]);
    }
    let (code, output) = run(&options, &programs.join(case.name).display().to_string(), &dir)?;
    if (code, &*output) == (case.code, case.expected) {
        return Ok(());
    }
    Err(format!("exit code {code} instead of {}, and it wrote\n{output}instead of\n{}", case.code, case.expected))
}

fn malformed() -> Result<(), String> {
    let dir = place("malformed")?;
    let manifest = dir.join("manifest").display().to_string();
    for (text, said) in MALFORMED {
        fs::write(&manifest, text).map_err(|e| format!("{manifest}: {e}"))?;
        let (code, output) = run(&["--jail", "none", "--manifest", &manifest], "hello", &dir)?;
        if code != 125 || !output.contains(said) {
            return Err(format!("exit code {code} instead of 125, and it wrote\n{output}instead of `{said}`"));
        }
    }
    Ok(())
}

/// The program that comes with the command; and one of Linux', which finds no call.
fn others() -> Result<(), String> {
    let dir = place("others")?;
    let manifest = dir.join("manifest").display().to_string();
    fs::write(&manifest, "loader.execname = greeter\n").map_err(|e| format!("{manifest}: {e}"))?;
    let (code, output) = run(&["--jail", "none", "--manifest", &manifest], "hello", &dir)?;
    let says = "Hello from greeter\npages of 4096 bytes, allocated by 4096\nwith a manifest, and the first\n";
    if (code, &*output) != (0, says) {
        return Err(format!("hello: exit code {code}, and it wrote\n{output}instead of\n{says}"));
    }
    let (code, output) = run(&["--jail", "none"], "/bin/true", &dir)?;
    if code < 128 || output.contains("kernel fault") {
        return Err(format!("/bin/true: exit code {code} instead of one of a signal's, and it wrote\n{output}"));
    }
    let (code, output) = run(&["--jail", "none"], "nowhere", &dir)?;
    if code != 127 || !output.contains("no program on libpal of this name") {
        return Err(format!("nowhere: exit code {code} instead of 127, and it wrote\n{output}"));
    }
    Ok(())
}

/// The suite.
pub fn suite(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    compare::fresh(&compare::place().join("pal"))?;
    build::all()?;
    let programs = user::build_pal("test/pal", "test")?;
    for (gate, jail) in [("call", "none"), ("sud", "none"), ("seccomp", "none"), ("call", "process")] {
        for case in CASES {
            let name = format!("pal/{}/{gate}/{jail}", case.name);
            if super::wanted(filter, &name) {
                tally.check(&name, one(case, (gate, jail), &programs));
            }
        }
    }
    for (name, check) in [("pal/malformed manifests", malformed as fn() -> _), ("pal/other programs", others)] {
        if super::wanted(filter, name) {
            tally.check(name, check());
        }
    }
    Ok(())
}
