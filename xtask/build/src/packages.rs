//! The Debian packages that the build and the tests install: the one list.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::process;

/// What a package is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Without it nothing is built.
    Build,
    /// The tests run it or build with it.
    Test,
}

/// One tool the project uses, and the package that brings it.
pub struct Tool {
    /// When any of these exists (a path, or a name on `PATH`) the tool is there.
    pub present: &'static [&'static str],
    pub package: &'static str,
    pub need: Need,
    pub why: &'static str,
}

const fn test(present: &'static [&'static str], package: &'static str, why: &'static str) -> Tool {
    Tool { present, package, need: Need::Test, why }
}

/// Every package but the compiler for the kernel image, which `toolchain` chooses.
pub const TOOLS: &[Tool] = &[
    Tool { present: &["cc"], package: "gcc", need: Need::Build, why: "links everything that runs on the host" },
    Tool {
        present: &["/usr/include/stdio.h"],
        package: "libc6-dev",
        need: Need::Build,
        why: "links everything that runs on the host",
    },
    test(&["gcc"], "gcc", "builds the conformance programs; a guest that compiles"),
    test(
        &["/usr/lib32/libc.so", "/usr/lib/i386-linux-gnu/libc.so"],
        "gcc-multilib",
        "builds the conformance programs for i386",
    ),
    test(&["musl-gcc"], "musl-tools", "builds the conformance programs a second time, static"),
    test(&["g++"], "g++", "guest: compiles C++ with exceptions"),
    test(&["bzip2"], "bzip2", "guest"),
    test(&["xz"], "xz-utils", "guest"),
    test(&["ps"], "procps", "guest: reads /proc"),
    test(&["busybox"], "busybox-static", "guest: sh and applets"),
    test(&["dash"], "dash", "guest: scripts"),
    test(&["bash"], "bash", "guest: scripts, job control"),
    test(&["find"], "findutils", "guest"),
    test(&["awk"], "mawk", "guest"),
    test(&["tar"], "tar", "guest"),
    test(&["gzip"], "gzip", "guest"),
    test(&["perl"], "perl", "guest"),
    test(&["/usr/bin/python3"], "python3", "guest: threads, subprocess, multiprocessing, asyncio"),
    test(&["make"], "make", "guest: parallel jobs"),
    test(&["strace"], "strace", "guest: traces other guests' calls"),
    test(&["gdb"], "gdb", "guest: a debugger of other guests"),
    test(&["git"], "git", "guest: init, add, commit, clone"),
    test(&["sqlite3"], "sqlite3", "guest: file locks, shared memory"),
    test(&["go", "/usr/local/go/bin/go"], "golang-go", "builds a static guest with its own scheduler"),
    test(&["node"], "nodejs", "guest: a just-in-time compiler"),
    test(&["luajit"], "luajit", "guest: a just-in-time compiler with its memory at places of its own"),
    test(&["sbcl"], "sbcl", "guest: a runtime with its heap at a place of its own"),
    test(&["valgrind"], "valgrind", "guest: runs other guests on a processor of its own"),
    test(&["redis-server"], "redis-server", "guest: server and client on loopback"),
    test(&["redis-cli"], "redis-tools", "guest: server and client on loopback"),
    test(&["less"], "less", "guest on a terminal"),
    test(&["vi", "vim.tiny"], "vim-tiny", "guest on a terminal"),
    test(&["qemu-system-x86_64"], "qemu-system-x86", "the machine the x86_64 kernel boots on"),
    test(&["qemu-system-sparc"], "qemu-system-sparc", "the machine the LEON3 kernel boots on"),
    test(&["clang"], "clang", "builds applications for the LEON3"),
    test(&["sparc64-linux-gnu-ld"], "binutils-sparc64-linux-gnu", "links for the LEON3"),
    test(&["script"], "bsdutils", "gives a test a terminal"),
    test(&["ip"], "iproute2", "guest: netlink queries"),
];

/// Installs the tools of `need` that this machine lacks, or returns how to.
pub fn ensure(need: Need) -> Result<(), String> {
    let missing: BTreeSet<&str> =
        TOOLS.iter().filter(|t| t.need == need && !t.present.iter().any(|p| present(p))).map(|t| t.package).collect();
    let missing: Vec<&str> = missing.into_iter().collect();
    if missing.is_empty() {
        return Ok(());
    }
    install(&missing)
}

fn present(what: &str) -> bool {
    if what.starts_with('/') { Path::new(what).exists() } else { process::on_path(what) }
}

/// Installs Debian packages when that is possible here; otherwise the error is the command to type.
pub fn install(packages: &[&str]) -> Result<(), String> {
    let list = packages.join(" ");
    if !process::on_path("apt-get") {
        return Err(format!(
            "missing: {list} (names of Debian packages)\n\
             This machine has no apt-get: install what corresponds to them, then run the same command again."
        ));
    }
    let root = process::output(Command::new("id").arg("-u")).is_some_and(|id| id.trim() == "0");
    let known = packages.iter().all(|p| candidate(p).is_some());
    if !root {
        return Err(to_type(&list, known));
    }
    eprintln!("janua: installing {list}");
    if !known {
        update();
    }
    if get(&["install", "-y", "--no-install-recommends"], packages) {
        return Ok(());
    }
    // The lists may be older than the archive.
    update();
    if get(&["install", "-y", "--no-install-recommends"], packages) {
        return Ok(());
    }
    Err(format!("apt-get install {list} failed; its messages are above"))
}

/// What somebody who may not install packages is to type; where apt does not know them its lists are to be fetched first.
fn to_type(list: &str, known: bool) -> String {
    let update = if known { "" } else { "sudo apt-get update && " };
    format!("missing: {list}\nType this, then run the same command again:\n\n    {update}sudo apt-get install {list}\n")
}

/// Brings the package lists up to date.
pub fn update() {
    eprintln!("janua: apt-get update");
    get(&["update", "-qq"], &[]);
}

/// The version apt would install of `package`, if it knows it.
pub fn candidate(package: &str) -> Option<String> {
    let policy = process::output(Command::new("apt-cache").args(["policy", package]).env("LC_ALL", "C"))?;
    let version = policy.lines().find_map(|line| line.trim().strip_prefix("Candidate: "))?;
    (version != "(none)").then(|| version.to_string())
}

fn get(action: &[&str], packages: &[&str]) -> bool {
    // Standard output belongs to the program that will run, so apt's goes to standard error.
    let log = process::output_to_stderr();
    Command::new("apt-get")
        .arg("-qq")
        .args(["-o", "Dpkg::Use-Pty=0", "-o", "DPkg::Lock::Timeout=300"])
        .args(action)
        .args(packages)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(log)
        .status()
        .is_ok_and(|status| status.success())
}

/// Prints the list.
pub fn print() {
    for (need, title) in [(Need::Build, "to build"), (Need::Test, "to test")] {
        println!("{title}:");
        for tool in TOOLS.iter().filter(|t| t.need == need) {
            println!("  {:16} {}", tool.package, tool.why);
        }
        if need == Need::Build {
            println!("  a compiler       for x86_64-unknown-none: rustup's, else rustc-web cargo-web rust-web-src lld");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::to_type;

    #[test]
    fn what_to_type_fetches_the_lists_where_they_lack() {
        assert!(to_type("gcc lld", true).contains("\n    sudo apt-get install gcc lld\n"));
        assert!(to_type("gcc", false).contains("\n    sudo apt-get update && sudo apt-get install gcc\n"));
    }
}
