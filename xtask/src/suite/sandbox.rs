//! What `janua run` owes its caller: exit codes and messages for what cannot run, an end without remains whatever dies, an
//! untouched host, and a trace one can read.

mod apart;
mod ends;
mod gdb;
mod hostfiles;
mod modules;
mod places;
mod ring;
mod running;
mod speed;
mod spread;
mod tiles;
mod traced;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::compare::{self, Verdict};
use super::skips::Skips;
use crate::guard::{Outcome, Run};
use crate::tally::Tally;
use crate::workspace;
use crate::{build, random};

use ends::{
    daemon_ends, guest_killed, kill, stopped_and_continued, supervisor_killed, supervisor_killed_at_once,
    supervisor_killed_early, terminated, unanswered, up,
};

/// Seconds one run may take.
const LIMIT: u64 = 90;

/// A test: its name and what it does under the gate it is given, in the empty directory it is given.
type Test = (&'static str, fn(&Sandbox) -> Result<(), String>);

const TESTS: &[Test] = &[
    ("sandbox/missing", missing),
    ("sandbox/not_executable", not_executable),
    ("sandbox/wrong_machine", wrong_machine),
    ("sandbox/corrupt_elf", corrupt_elf),
    ("sandbox/exit_codes", exit_codes),
    ("sandbox/streams", streams),
    ("sandbox/named_streams", named_streams),
    ("sandbox/inherited", inherited),
    ("sandbox/ignored_signals", ignored_signals),
    ("sandbox/closed_files", closed_files),
    ("sandbox/session", session),
    ("sandbox/options", options),
    ("sandbox/not_pid_1", not_pid_1),
    ("sandbox/host_unchanged", host_unchanged),
    ("sandbox/binds", binds),
    ("sandbox/mounts", mounts),
    ("sandbox/terminated", terminated),
    ("sandbox/guest_killed", guest_killed),
    ("sandbox/supervisor_killed", supervisor_killed),
    ("sandbox/supervisor_killed_early", supervisor_killed_early),
    ("sandbox/supervisor_killed_at_once", supervisor_killed_at_once),
    ("sandbox/stopped_and_continued", stopped_and_continued),
    ("sandbox/unanswered", unanswered),
    ("sandbox/background_job", ends::background_job),
    ("sandbox/daemon_ends", daemon_ends),
    ("sandbox/trace", traced::trace),
    ("sandbox/trace_lost", traced::trace_lost),
    ("sandbox/trace_of_forks", traced::trace_of_forks),
    ("sandbox/stats", stats),
    ("sandbox/cancellation_points", speed::cancellation_points),
    ("sandbox/first_linker", speed::first_linker),
    ("sandbox/calls_made_at_run_time", speed::calls_made_at_run_time),
    ("sandbox/many_processes", speed::many_processes),
    ("sandbox/host_network", host_network),
    ("sandbox/settings", settings),
    ("sandbox/ring", ring::ring),
    ("sandbox/ring_memory", ring::memory),
    ("sandbox/modules_move", modules::moves),
    ("sandbox/modules_serve_rings", modules::served),
    ("sandbox/workers_write_back", modules::written_back),
    ("sandbox/libraries_come_and_go", libraries_come_and_go),
    ("sandbox/bad_usage", bad_usage),
    ("sandbox/without_proc", without_proc),
    ("sandbox/host_limits", host_limits),
    ("sandbox/few_processes", few_processes),
    ("sandbox/writable_root", places::writable_root),
    ("sandbox/shared_files", places::shared_files),
    ("sandbox/hard_links", places::hard_links),
    ("sandbox/replaced_outside", places::replaced_outside),
    ("sandbox/foreign_environment", places::foreign_environment),
    ("sandbox/working_directory", places::working_directory),
    ("sandbox/foreign_directory", places::foreign_directory),
    ("sandbox/file_names", places::file_names),
    ("sandbox/generated_files", places::generated_files),
    ("sandbox/process_names", places::process_names),
    ("sandbox/sys", places::sys),
    ("sandbox/names", running::names),
    ("sandbox/list", running::list),
    ("sandbox/exec", running::exec),
    ("sandbox/exec_terminal", running::exec_terminal),
    ("sandbox/pause", running::pause),
    ("sandbox/stats", running::stats),
    ("sandbox/background", running::background),
    ("sandbox/server", running::server),
    ("sandbox/exec_silent", running::exec_silent),
    ("sandbox/nested", running::nested),
    ("sandbox/running_supervisor_killed", running::supervisor_killed),
    ("sandbox/other_user", running::other_user),
    ("sandbox/garbage_in_the_channel", running::garbage),
    ("sandbox/no_exec", hostfiles::no_exec),
    ("sandbox/unreadable_files", hostfiles::unreadable),
    ("sandbox/attributes", hostfiles::attributes),
    ("sandbox/room_for_files", hostfiles::room),
    ("sandbox/planted_links", hostfiles::planted),
    ("sandbox/link_owner", hostfiles::link_owner),
    ("sandbox/full_stderr", ends::full_stderr),
];

/// The names of all tests, as the skip list writes them.
pub fn names() -> impl Iterator<Item = String> {
    TESTS
        .iter()
        .chain(gdb::TESTS)
        .chain(tiles::TESTS)
        .chain(spread::TESTS)
        .chain(apart::TESTS)
        .chain(gdb::APART)
        .map(|(name, _)| (*name).to_string())
}

/// Runs the tests whose name holds the filter, under each gate.
pub fn run(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    let skips = Skips::read()?;
    let apart = || {
        apart::TESTS
            .iter()
            .chain(gdb::APART)
            .chain(tiles::TESTS)
            .chain(spread::TESTS)
            .filter(|(name, _)| super::wanted(filter, name) && !super::native())
    };
    let chosen: Vec<(&Test, &str)> = TESTS
        .iter()
        .chain(gdb::TESTS)
        .chain(tiles::TESTS)
        .chain(spread::TESTS)
        .filter(|(name, _)| super::wanted(filter, name))
        .flat_map(|test| compare::gates().iter().map(move |gate| (test, *gate)))
        .chain(apart().map(|test| (test, compare::PTRACE)))
        .chain(apart().map(|test| (test, compare::MAILBOX)))
        .collect();
    compare::parallel(
        &chosen,
        |((name, test), gate)| {
            let full = format!("{name}/{gate}");
            if let Some(reason) = skips.reason(name, gate) {
                return Verdict::Skipped(full, reason);
            }
            let sandbox = Sandbox { gate, dir: compare::place().join("run").join(&full) };
            let result = compare::fresh(&sandbox.dir).and_then(|()| test(&sandbox));
            let _ = compare::clear(&sandbox.dir);
            match result {
                Ok(()) => Verdict::Passed(full),
                Err(why) => Verdict::Failed(full, why),
            }
        },
        |verdict| verdict.count(tally),
    );
    Ok(())
}

/// One test's surroundings.
struct Sandbox<'a> {
    gate: &'a str,
    dir: PathBuf,
}

impl Sandbox<'_> {
    /// The command line of `janua run` with these options and this program.
    fn line(&self, options: &[&str], program: &[&str]) -> Vec<String> {
        let janua = build::janua().display().to_string();
        let head = [janua.as_str(), "run"];
        let gate = compare::options(self.gate);
        let jail = if options.contains(&"--jail") { &[] } else { compare::jail(self.gate) };
        head.iter().chain(&gate).chain(jail).chain(options).chain(&["--"]).chain(program).map(ToString::to_string).collect()
    }

    fn start(&self, command: Vec<String>) -> Result<crate::guard::Running, String> {
        let run = Run { command, dir: &self.dir, env: Vec::new(), limit: LIMIT, terminal: None };
        run.start(&self.dir.with_extension("report"))
    }

    fn run(&self, options: &[&str], program: &[&str]) -> Result<Outcome, String> {
        clean(self.start(self.line(options, program))?.wait()?)
    }

    /// Runs a shell script; the exit code and what it printed.
    fn sh(&self, options: &[&str], script: &str) -> Result<(i32, String), String> {
        let outcome = self.run(options, &["/bin/sh", "-c", script])?;
        Ok((outcome.code, text(&outcome)))
    }

    fn file(&self, name: &str, content: &[u8], mode: u32) -> Result<String, String> {
        let path = self.dir.join(name);
        fs::write(&path, content).map_err(|e| e.to_string())?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).map_err(|e| e.to_string())?;
        Ok(path.display().to_string())
    }
}

fn text(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&outcome.output).into_owned()
}

/// An outcome without a timeout and without remains.
fn clean(outcome: Outcome) -> Result<Outcome, String> {
    if outcome.timeout {
        return Err(format!("did not end within {LIMIT} s\n{}", text(&outcome)));
    }
    if !outcome.left.is_empty() {
        return Err(format!("left behind: {}", outcome.left.join(", ")));
    }
    Ok(outcome)
}

fn expect(what: &str, outcome: &Outcome, code: i32, words: &[&str]) -> Result<(), String> {
    let said = text(outcome);
    if outcome.code != code {
        return Err(format!("{what}: exit code {}, not {code}\n{said}", outcome.code));
    }
    match words.iter().find(|w| !said.to_lowercase().contains(&w.to_lowercase())) {
        Some(word) => Err(format!("{what}: the message does not say {word:?}\n{said}")),
        None => Ok(()),
    }
}

fn missing(s: &Sandbox) -> Result<(), String> {
    expect("a path", &s.run(&[], &["/no/such/program"])?, 127, &["/no/such/program", "no such file"])?;
    expect("a name", &s.run(&[], &["no-such-program"])?, 127, &["no-such-program"])?;
    let script = s.file("script", b"#!/no/such/interpreter\n", 0o755)?;
    expect("an interpreter", &s.run(&[], &[&script])?, 127, &["no such file"])
}

fn not_executable(s: &Sandbox) -> Result<(), String> {
    let plain = s.file("plain", b"#!/bin/sh\n", 0o644)?;
    expect("no right to", &s.run(&[], &[&plain])?, 126, &["plain", "permission denied"])?;
    expect("a directory", &s.run(&[], &["/etc"])?, 126, &["/etc"])?;
    let garbage = s.file("garbage", b"\x01\x02\x03\x04 not a program", 0o755)?;
    expect("no format", &s.run(&[], &[&garbage])?, 126, &["garbage", "not a program"])?;
    let empty = s.file("empty", b"", 0o755)?;
    expect("nothing in it", &s.run(&[], &[&empty])?, 126, &["not a program"])
}

fn wrong_machine(s: &Sandbox) -> Result<(), String> {
    let mut elf = fs::read("/bin/true").map_err(|e| e.to_string())?;
    elf[18] = 183; // EM_AARCH64
    let other = s.file("aarch64", &elf, 0o755)?;
    expect("another machine", &s.run(&[], &[&other])?, 126, &["not a program"])?;
    elf[4] = 1; // ELFCLASS32
    let narrow = s.file("class32", &elf, 0o755)?;
    expect("32 bits", &s.run(&[], &[&narrow])?, 126, &["not a program"])
}

/// Random mutations of the headers of a real program: it runs, or is refused, or dies of a signal; Janua does not fail.
fn corrupt_elf(s: &Sandbox) -> Result<(), String> {
    let elf = fs::read("/bin/true").map_err(|e| e.to_string())?;
    let mut random = random::numbers(super::seed(), 0);
    for round in 0..60 {
        let mut bad = elf.clone();
        for _ in 0..1 + random(4) {
            let at = random(800) as usize;
            bad[at] = [0, 0xff, 0x7f, 0x80, random(256) as u8][random(5) as usize];
        }
        if round % 10 == 0 {
            bad.truncate(random(800) as usize);
        }
        let path = s.file(&format!("bad{round}"), &bad, 0o755)?;
        // The alarm ends a program whose entry leads into a loop.
        let outcome = s.run(&[], &["/usr/bin/timeout", "-s", "KILL", "3", &path])?;
        if outcome.code == 125 && !text(&outcome).contains("timeout:") {
            return Err(format!("mutation {round} stopped the sandbox\n{}", text(&outcome)));
        }
        let direct = s.run(&[], &[&path])?;
        if direct.code == 125 {
            return Err(format!("mutation {round}, run directly, stopped the sandbox\n{}", text(&direct)));
        }
        let _ = fs::remove_file(&path);
    }
    Ok(())
}

fn exit_codes(s: &Sandbox) -> Result<(), String> {
    for code in [0, 1, 42, 125, 126, 127, 255] {
        expect("exit", &s.run(&[], &["/bin/sh", "-c", &format!("exit {code}")])?, code, &[])?;
    }
    for (signal, number) in [("TERM", 15), ("KILL", 9), ("SEGV", 11), ("ABRT", 6), ("HUP", 1), ("PIPE", 13), ("USR1", 10)] {
        let script = format!("ulimit -c 0; kill -{signal} $$");
        expect(signal, &s.run(&[], &["/bin/sh", "-c", &script])?, 128 + number, &[])?;
    }
    Ok(())
}

fn streams(s: &Sandbox) -> Result<(), String> {
    let janua = s.line(&[], &["/bin/sh", "-c", "cat; echo error >&2; exit 5"]).join("' '");
    let script = format!(
        "printf 'one\\ntwo\\n' | '{janua}' >out 2>err; echo code $?; cat out; echo --; cat err; echo --; '{}' <&- >&-; echo closed $?; seq 100000 | '{}' | head -n 1",
        s.line(&[], &["/bin/true"]).join("' '"),
        s.line(&[], &["/bin/cat"]).join("' '")
    );
    let outcome = clean(s.start(vec!["/bin/sh".into(), "-c".into(), script])?.wait()?)?;
    let wanted = "code 5\none\ntwo\n--\nerror\n--\nclosed 0\n1\n";
    if text(&outcome) == wanted { Ok(()) } else { Err(compare::difference(wanted.as_bytes(), &outcome.output)) }
}

/// Standard streams opened once more by name: as natively, except that what was handed in for reading is not written to.
fn named_streams(s: &Sandbox) -> Result<(), String> {
    let run = |script: &str| s.line(&[], &["/bin/sh", "-c", script]).join("' '");
    let script = [
        format!("'{}' >out; cat out", run("echo lost >/dev/stdout; echo kept >/dev/stdout; echo more >>/proc/self/fd/1")),
        format!("'{}' 2>err; cat err", run("echo error >/dev/stderr")),
        format!(
            "echo given >in; '{}' <in 2>/dev/null; cat in",
            run("cat /dev/stdin; echo evil >>/dev/stdin; echo evil >/dev/stdin")
        ),
        format!("'{}' <>in; cat in", run("cat /dev/fd/0; echo written >/dev/stdin")),
        format!("echo piped | '{}' | cat", run("cat /dev/stdin | tee /dev/stdout")),
    ];
    let outcome = clean(s.start(vec!["/bin/sh".into(), "-c".into(), script.join("\n")])?.wait()?)?;
    let wanted = "kept\nmore\nerror\ngiven\ngiven\ngiven\nwritten\npiped\npiped\n";
    if text(&outcome) == wanted { Ok(()) } else { Err(compare::difference(wanted.as_bytes(), &outcome.output)) }
}

/// What the caller ignores the program ignores, as after nohup(1).
fn ignored_signals(s: &Sandbox) -> Result<(), String> {
    let inside = s
        .line(&[], &["/bin/sh", "-c", "kill -INT $$; kill -HUP $$; kill -PIPE $$; echo alive; kill -USR1 $$; echo dead"])
        .join("' '");
    let script = format!("trap '' INT HUP PIPE; '{inside}'; echo $?; trap - PIPE; '{inside}'; echo $?");
    let said = shell(s, script)?;
    if said == "alive\n138\n141\n" { Ok(()) } else { Err(said) }
}

/// What a script prints that a shell outside runs, which leads its session.
fn shell(s: &Sandbox, script: String) -> Result<String, String> {
    Ok(text(&clean(s.start(vec!["/bin/sh".into(), "-c".into(), script])?.wait()?)?))
}

/// Standard files that are closed stay closed.
fn closed_files(s: &Sandbox) -> Result<(), String> {
    let script = "for fd in 0 1 2; do [ -e /proc/$$/fd/$fd ] && echo $fd; done; true";
    let inside = s.line(&[], &["/bin/sh", "-c", script]).join("' '");
    let native = format!("/bin/sh -c '{script}'");
    for closed in ["<&-", "2>&-", "<&- 2>&-", ""] {
        let (want, said) = (shell(s, format!("{native} {closed}"))?, shell(s, format!("'{inside}' {closed}"))?);
        if want != said {
            return Err(format!("with {closed:?} open are {said:?}, natively {want:?}"));
        }
    }
    Ok(())
}

/// The program leads a session and a process group where the command does, and nowhere else.
fn session(s: &Sandbox) -> Result<(), String> {
    let script = "read -r _ _ _ _ group session _ </proc/self/stat; [ $group = $$ ]; echo $?; [ $session = $$ ]; echo $?";
    let inside = s.line(&[], &["/bin/sh", "-c", script]).join("' '");
    for (how, want) in [(format!("exec '{inside}'"), "0\n0\n"), (format!("'{inside}'; true"), "1\n1\n")] {
        let said = shell(s, how)?;
        if said != want {
            return Err(format!("{said:?}, not {want:?}"));
        }
    }
    Ok(())
}

fn options(s: &Sandbox) -> Result<(), String> {
    let (code, said) =
        s.sh(&["--env", "GREETING=hello world", "--cwd", "/usr"], "echo $GREETING; pwd; echo $HOME | grep -c /")?;
    if (code, said.as_str()) != (0, "hello world\n/usr\n1\n") {
        return Err(format!("code {code}\n{said}"));
    }
    let here = s.dir.display().to_string();
    let (_, said) = s.sh(&[], "pwd")?;
    if said.trim() != here { Err(format!("the working directory is {said}, not {here}")) } else { Ok(()) }
}

fn not_pid_1(s: &Sandbox) -> Result<(), String> {
    // Nobody but root may signal the first process.
    let init = if root() { "0\n" } else { "1\n" };
    let (code, said) = s.sh(&[], "echo $$; cat /proc/1/comm; (sleep 0.1 & ); sleep 0.3; kill -0 1 2>/dev/null; echo $?")?;
    let pid = said.lines().next().unwrap_or_default();
    if code != 0 || pid == "1" || !said.ends_with(&format!("init\n{init}")) {
        return Err(format!("code {code}\n{said}"));
    }
    Ok(())
}

/// Whether the tests, and so the programs inside, run as root.
fn root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whatever the program does to files, the host keeps its own.
fn host_unchanged(s: &Sandbox) -> Result<(), String> {
    s.file("keep", b"original", 0o644)?;
    let probe = format!("/tmp/janua-test-{}-{}", std::process::id(), s.gate);
    let before = state(&s.dir)?;
    let passwd = fs::read("/etc/passwd").map_err(|e| e.to_string())?;
    let script = format!(
        "echo changed >keep; mkdir -p d/e; echo new >d/e/f; ln keep hard; mv keep moved; chmod 777 d; echo x >{probe}; \
         touch -d 2001-01-01 moved; cat moved d/e/f {probe}"
    );
    expect("one's own files", &s.run(&[], &["/bin/sh", "-c", &script])?, 0, &["changed\nnew\nx\n"])?;
    // What is root's only root can change, inside as outside.
    let script = "{ rm -f /etc/passwd; echo gone >/etc/hosts; mkdir /newdir; rm -rf /usr/share/doc/[a-c]*; truncate -s 0 /usr/bin/env; } 2>/dev/null
        test -e /etc/passwd || echo removed; grep -x gone /etc/hosts; ls -d /newdir 2>&1; test -s /usr/bin/env && echo whole";
    let wanted =
        if root() { "removed\ngone\n/newdir\n" } else { "ls: cannot access '/newdir': No such file or directory\nwhole\n" };
    let (_, said) = s.sh(&[], script)?;
    if said != wanted {
        return Err(format!("root's files: {said:?}, not {wanted:?}"));
    }
    let unharmed = fs::read("/etc/passwd").is_ok_and(|p| p == passwd)
        && !Path::new(&probe).exists()
        && !Path::new("/newdir").exists()
        && fs::read("/etc/hosts").is_ok_and(|h| h != b"gone\n");
    if !unharmed || state(&s.dir)? != before {
        return Err("the host's files changed".into());
    }
    Ok(())
}

/// Names, contents and modes of a directory's files.
fn state(dir: &Path) -> Result<Vec<(PathBuf, Vec<u8>, u32)>, String> {
    super::conformance::sorted(dir)?
        .into_iter()
        .map(|path| {
            let mode = fs::metadata(&path).map_err(|e| e.to_string())?.permissions().mode();
            Ok((path.clone(), fs::read(&path).unwrap_or_default(), mode))
        })
        .collect()
}

fn binds(s: &Sandbox) -> Result<(), String> {
    for dir in ["write", "read"] {
        fs::create_dir(s.dir.join(dir)).map_err(|e| e.to_string())?;
        s.file(&format!("{dir}/old"), b"old\n", 0o644)?;
    }
    let write = format!("{}:/mnt:rw", s.dir.join("write").display());
    let read = format!("{}:/srv:ro", s.dir.join("read").display());
    let script = "cat /mnt/old /srv/old; echo new >/mnt/new; mkdir /mnt/d; mv /mnt/old /mnt/d/moved; ln -s new /mnt/link; chmod 600 /mnt/new; \
                  { echo no >/srv/new; } 2>/dev/null || echo refused; rm /srv/old 2>/dev/null || echo kept; ls /mnt; cat /mnt/link";
    let (code, said) = s.sh(&["--bind", &write, "--bind", &read], script)?;
    if code != 0 || said != "old\nold\nrefused\nkept\nd\nlink\nnew\nnew\n" {
        return Err(format!("inside: code {code}\n{said}"));
    }
    let at = |name: &str| fs::read_to_string(s.dir.join(name)).unwrap_or_default();
    let mode = fs::metadata(s.dir.join("write/new")).map(|m| m.permissions().mode() & 0o777).unwrap_or(0);
    if at("write/new") != "new\n"
        || at("write/d/moved") != "old\n"
        || at("read/old") != "old\n"
        || s.dir.join("read/new").exists()
        || mode != 0o600
    {
        return Err("the host's side of the binds is not what the program made".into());
    }
    Ok(())
}

/// What others mount and unmount is seen by a process that asks for the same path again and again.
fn mounts(s: &Sandbox) -> Result<(), String> {
    let script = "mkdir -p d/sub && echo >d/sub/f && mkdir -p other/sub || exit 1
        seen() { for i in 1 2 3; do if [ -e d/sub/f ]; then echo yes; else echo no; fi; done; }
        seen; mount -t tmpfs none d || exit 1
        seen; umount d || exit 1
        seen; mount --bind other d || exit 1
        seen; echo >other/sub/f; seen; umount d || exit 1
        rm d/sub/f; seen";
    let (code, said) = s.sh(&[], script)?;
    if !root() {
        let refused = code == 1 && said.starts_with("yes\nyes\nyes\nmount: ") && said.contains("must be superuser");
        return if refused { Ok(()) } else { Err(format!("code {code}\n{said}")) };
    }
    let expected = ["yes\n", "no\n", "yes\n", "no\n", "yes\n", "no\n"].map(|word| word.repeat(3)).concat();
    if (code, said.as_str()) != (0, expected.as_str()) {
        return Err(format!("code {code}\n{said}"));
    }
    expect("a move that fails", &s.run(&[], &["python3", "-c", FAILING_MOVE])?, 0, &["ENOENT True"])
}

/// Moves a mount to a directory that has been removed: it stays where it is.
const FAILING_MOVE: &str = r#"
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
os.mkdir("moved")
os.mkdir("gone")
if libc.mount(b"none", b"moved", b"tmpfs", 0, None):
    os._exit(1)
open("moved/file", "w").close()
gone = os.open("gone", os.O_PATH)
os.rmdir("gone")
libc.mount(b"moved", b"/proc/self/fd/%d" % gone, None, 8192, None)
print(errno.errorcode[ctypes.get_errno()], os.path.exists("moved/file"))
"#;

fn stats(s: &Sandbox) -> Result<(), String> {
    expect("statistics", &s.run(&["--stats"], &["/bin/cat", "/etc/hostname"])?, 0, &["openat", "read", "calls"])
}

/// Inputs that the host does not read by copying yield the same as on Linux.
fn inherited(s: &Sandbox) -> Result<(), String> {
    let program = compare::place().join("bin/sandbox/inherited");
    super::attacks::build(&workspace::root().join("test/sandbox/inherited.c"), &program, &[])?;
    let program = program.display().to_string();
    for kind in ["stream", "datagram", "direct", "append"] {
        let give = [program.as_str(), "give", kind].map(str::to_string);
        let take = [program.as_str(), "take", kind];
        let run = |line: Vec<String>| clean(s.start(give.iter().cloned().chain(line).collect())?.wait()?);
        let native = run(take.map(str::to_string).to_vec())?;
        if native.code != 0 {
            return Err(format!("{kind}, without Janua: exit code {}\n{}", native.code, text(&native)));
        }
        let native = text(&native);
        let lines: Vec<&str> = native.lines().collect();
        expect(kind, &run(s.line(&[], &take))?, 0, &lines)?;
    }
    Ok(())
}

/// Sockets of the host carry what was sent and nothing else; what would give the host memory of the kernel's is refused.
fn host_network(s: &Sandbox) -> Result<(), String> {
    let program = compare::place().join("bin/sandbox/host_network");
    super::attacks::build(&workspace::root().join("test/sandbox/host_network.c"), &program, &[])?;
    let program = program.display().to_string();
    let native = clean(s.start(vec![program.clone()])?.wait()?)?;
    let there = s.run(&["--net", "host"], &[&program])?;
    expect("natively", &native, 0, &["524288 received, the same bytes"])?;
    if there.code != 0 || there.output != native.output {
        return Err(compare::difference(&native.output, &there.output));
    }
    let refused = s.run(&["--net", "host"], &[&program, "refused"])?;
    expect("options", &refused, 0, &["1 60: set EOPNOTSUPP, get EOPNOTSUPP", "6 35: set ENOPROTOOPT, get ENOPROTOOPT"])?;
    match text(&refused).lines().find(|line| line.contains("errno 0") || line.contains("EINVAL") || line.contains("ENODATA")) {
        Some(line) => Err(format!("reached the host: {line}")),
        None => Ok(()),
    }
}

/// What root of the sandbox sets below /proc/sys has its effect, and changes of the mounts can be waited for.
fn settings(s: &Sandbox) -> Result<(), String> {
    let program = compare::place().join("bin/sandbox/settings");
    super::attacks::build(&workspace::root().join("test/sandbox/settings.c"), &program, &[])?;
    let there =
        s.run(&[], &["/bin/sh", "-c", &format!("mkdir -p /tmp/settings; cd /tmp/settings; exec {}", program.display())])?;
    let lines = [
        "mounts: each change is reported",
        "pipes: bounded",
        "watches: bounded",
        "leases: broken in time",
        "numbers: another inode",
        "timers: those at hand have expired",
    ];
    expect("settings", &there, 0, &lines)
}

/// Opens a library of the system and copies of one, closes them, and stops twice on the way.
const LIBRARIES: &str = r#"
import _ctypes, os, shutil, time
path = next(line.split()[-1] for line in open("/proc/self/maps") if "/libm.so" in line or "/libm-" in line)
def system(times):
    for _ in range(times):
        _ctypes.dlclose(_ctypes.dlopen("libresolv.so.2", 2))
def copies(number):
    for n in range(number):
        copy = "./copy%d.so" % n
        shutil.copyfile(path, copy)
        for _ in range(2):
            _ctypes.dlclose(_ctypes.dlopen(copy, 2))
        os.unlink(copy)
def stop(name):
    open(name, "w").close()
    while os.path.exists(name):
        time.sleep(0.01)
system(50)
copies(10)
stop("ready")
system(300)
copies(200)
stop("again")
"#;

/// What a process of the host's has: mappings, KiB of shared memory it has touched, KiB of files of code that it could map.
fn holdings(pid: i32) -> Result<[u64; 3], String> {
    use std::os::unix::fs::MetadataExt;
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).map_err(|e| format!("{name}: {e}"));
    let touched = read("status")?;
    let touched = touched.lines().find_map(|line| line.strip_prefix("RssShmem:")?.split_whitespace().next()?.parse().ok());
    let mut code = 0;
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).map_err(|e| e.to_string())?.flatten() {
        let is_code = |name: PathBuf| name.to_string_lossy().starts_with("/memfd:janua-code");
        if fs::read_link(entry.path()).is_ok_and(is_code) {
            code += fs::metadata(entry.path()).map_or(0, |file| file.blocks() / 2);
        }
    }
    Ok([read("maps")?.lines().count() as u64, touched.ok_or("no RssShmem")?, code])
}

/// Libraries that are opened and closed leave nothing behind, in the host process or in the kernel.
fn libraries_come_and_go(s: &Sandbox) -> Result<(), String> {
    s.file("libraries.py", LIBRARIES.as_bytes(), 0o644)?;
    let running = up(s, "exec python3 libraries.py")?;
    // The first is the supervisor, the second the kernel's own.
    let pid = *running.processes().last().ok_or("no process")?;
    let before = holdings(pid)?;
    fs::remove_file(s.dir.join("ready")).map_err(|e| e.to_string())?;
    let end = Instant::now() + Duration::from_secs(LIMIT);
    while !s.dir.join("again").exists() && Instant::now() < end {
        thread::sleep(Duration::from_millis(10));
    }
    let after = holdings(pid)?;
    let _ = fs::remove_file(s.dir.join("again"));
    expect("libraries", &clean(running.wait()?)?, 0, &[])?;
    let most = [before[0] + 8, before[1] + 4096, 72 << 10];
    if after.iter().zip(most).any(|(after, most)| *after > most) {
        return Err(format!("mappings, shared memory and code were {before:?} and are {after:?}"));
    }
    Ok(())
}

/// The caller's soft limits are the program's alone; a hard one below what the kernel needs is named.
fn host_limits(s: &Sandbox) -> Result<(), String> {
    let shell = |limit: &str, program: &str| -> Result<Outcome, String> {
        let janua = s.line(&[], &["/bin/sh", "-c", program]).join("' '");
        clean(s.start(vec!["/bin/bash".into(), "-c".into(), format!("ulimit {limit}; exec '{janua}'")])?.wait()?)
    };
    // Blocks of 1 KiB in bash, which sets it; in sh they have 512 bytes.
    expect("files", &shell("-S -f 8", "(head -c 100000 /dev/zero >big) 2>/dev/null; wc -c <big")?, 0, &["8192\n"])?;
    expect("data", &shell("-S -d 10000", "ulimit -d; echo fine")?, 0, &["10000\n", "fine"])?;
    expect("address space", &shell("-S -v 200000", "ulimit -v; echo fine")?, 0, &["200000\n", "fine"])?;
    expect("stack", &shell("-S -s 64", "ulimit -s; echo fine")?, 0, &["64\n", "fine"])?;
    expect("descriptors", &shell("-S -n 10", "ulimit -n; echo fine")?, 0, &["10\n", "fine"])?;
    expect("time", &shell("-S -t 1", "while :; do :; done")?, 152, &[])?;
    expect("time at most", &shell("-t 1", "while :; do :; done")?, 137, &[])?;
    // A caller that may raise a hard limit gets no message.
    let hard = [
        ("-f 1000", "ulimit -f"),
        ("-d 10000", "ulimit -d"),
        ("-v 1000000", "ulimit -v"),
        ("-s 64", "ulimit -s"),
        ("-n 20", "ulimit -n"),
    ];
    for (limit, name) in hard {
        let outcome = shell(limit, "exit 3")?;
        if outcome.code != 3 {
            expect(limit, &outcome, 125, &[name])?;
        }
    }
    Ok(())
}

/// Where the host lets a user have hardly any process there is a sandbox or a line that names the limit.
fn few_processes(s: &Sandbox) -> Result<(), String> {
    let janua = s.line(&[], &["/bin/true"]).join("' '");
    // Root has no such limit.
    let other = if root() { "setpriv --reuid 65534 --regid 65534 --clear-groups " } else { "" };
    for most in 1..16 {
        let script = format!("cd /; exec {other}bash -c \"ulimit -u {most}; exec '{janua}'\"");
        let outcome = clean(s.start(vec!["/bin/bash".into(), "-c".into(), script])?.wait()?)?;
        match outcome.code {
            0 => {}
            _ => expect(&format!("with {most} processes"), &outcome, 125, &["ulimit -u"])?,
        }
    }
    Ok(())
}

/// Where the host shows no /proc, as in build roots, a sandbox ends as everywhere, with what it left running.
fn without_proc(s: &Sandbox) -> Result<(), String> {
    let janua = s.line(&[], &["/bin/sh", "-c", "sleep 100 & sleep 101 & echo in; exit 3"]).join("' '");
    // An ordinary caller needs a user namespace for it, in which /proc can be covered, not taken away.
    let script = format!(
        "for how in -m -rm; do unshare $how true 2>/dev/null || continue; exec unshare $how sh -c \"{{ umount -l /proc 2>/dev/null || mount -t tmpfs none /proc; }} && exec \\\"\\$@\\\"\" sh '{janua}'; done; exit 90"
    );
    expect("the end", &clean(s.start(vec!["/bin/sh".into(), "-c".into(), script])?.wait()?)?, 3, &["in"])
}

fn bad_usage(s: &Sandbox) -> Result<(), String> {
    let janua = build::janua().display().to_string();
    for (args, word) in [
        (&["run", "--gate", "nonsense", "--", "true"][..], "nonsense"),
        (&["run"][..], "usage"),
        (&["run", "--bind", "/no/such/dir:/x", "--", "true"][..], "/no/such/dir"),
        (&["nonsense"][..], "nonsense"),
    ] {
        let command = std::iter::once(janua.clone()).chain(args.iter().map(ToString::to_string)).collect();
        let outcome = clean(s.start(command)?.wait()?)?;
        if !matches!(outcome.code, 2 | 125) || !text(&outcome).to_lowercase().contains(word) {
            return Err(format!("{args:?}: code {}\n{}", outcome.code, text(&outcome)));
        }
    }
    Ok(())
}
