//! The jail `process`: what its host processes have, and what ends when one of them does.

use std::fs;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::{Sandbox, Test, clean, expect, kill, up};
use crate::suite::{attacks, compare};
use crate::workspace;

/// By its gate alone.
pub const TESTS: &[Test] = &[
    ("sandbox/apart", bare),
    ("sandbox/apart_guest_killed", guest_killed),
    ("sandbox/apart_waiting_guest_killed", waiting_guest_killed),
    ("sandbox/apart_maker_killed", maker_killed),
    ("sandbox/apart_spares_killed", spares_killed),
    ("sandbox/apart_list", super::running::list),
    ("sandbox/apart_mapped_files", mapped_files),
    ("sandbox/apart_memory", memory),
    ("sandbox/apart_moved_ranges", moved_ranges),
    ("sandbox/apart_memory_used_up", memory_used_up),
    ("sandbox/apart_no_exec", super::hostfiles::no_exec),
    ("sandbox/apart_pause", super::running::pause),
    ("sandbox/apart_stats", super::running::stats),
    ("sandbox/apart_supervisor_killed", super::supervisor_killed),
    ("sandbox/apart_supervisor_killed_early", super::supervisor_killed_early),
    ("sandbox/apart_supervisor_killed_at_once", super::supervisor_killed_at_once),
    ("sandbox/apart_terminated", super::terminated),
    ("sandbox/apart_exit_codes", super::exit_codes),
    ("sandbox/apart_streams", super::streams),
    ("sandbox/apart_ring", super::ring::ring),
];

/// The host processes of a sandbox that have no command line: the kernel's, the one that guests' are made from, and guests' in the order of their making.
fn parts(running: &crate::guard::Running) -> Result<Vec<i32>, String> {
    let processes = running.processes();
    let named = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.is_empty());
    let mut found: Vec<i32> = processes.into_iter().filter(named).collect();
    found.sort_unstable();
    if found.len() < 3 { Err(format!("only {} processes", found.len())) } else { Ok(found) }
}

/// Those of them that the host calls so.
fn called(running: &crate::guard::Running, name: &str) -> Result<Vec<i32>, String> {
    let is_called = |pid: &i32| status(*pid, "Name").is_ok_and(|found| found == name);
    Ok(parts(running)?.into_iter().filter(is_called).collect())
}

/// What the host calls a process whose guest has ended and that waits for the next.
const SPARE: &str = "janua: spare";

/// The line of /proc/PID/status that begins with a word.
fn status(pid: i32, word: &str) -> Result<String, String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).map_err(|e| format!("{pid}: {e}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(':'));
    line.map(|line| line.trim().to_string()).ok_or(format!("{pid}: no {word}"))
}

/// The processes that guests run in, and the one they are made from, have one descriptor, no handler of the kernel's, a filter, nothing of
/// the kernel's memory, and nobody runs in them untraced: one whose guest has ended waits, with nothing of that one's memory.
pub fn bare(s: &Sandbox) -> Result<(), String> {
    let running = up(
        s,
        "/bin/true; sleep 100 & python3 -c 'import threading, time\nthreading.Thread(target=time.sleep, args=[100]).start()\nopen(\"ready\", \"w\")' & wait",
    )?;
    let parts = parts(&running)?;
    for (at, pid) in parts.iter().enumerate().skip(1) {
        let held = fs::read_dir(format!("/proc/{pid}/fd")).map_err(|e| e.to_string())?.flatten();
        let held: Vec<_> = held.filter_map(|entry| fs::read_link(entry.path()).ok()).collect();
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).map_err(|e| e.to_string())?;
        let threads = fs::read_dir(format!("/proc/{pid}/task")).map_err(|e| e.to_string())?.flatten();
        let untraced = threads.filter(|thread| {
            let text = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            text.contains("TracerPid:\t0\n")
        });
        let untraced = untraced.count();
        if held.len() != 1 || !held[0].to_string_lossy().contains("janua-guests") {
            return Err(format!("process {at} has {held:?}"));
        }
        if maps.contains("janua-kernel") || maps.lines().any(|line| line.contains("[stack]") || line.contains("[heap]")) {
            return Err(format!("process {at} has\n{maps}"));
        }
        if status(*pid, "SigCgt")? != "0000000000000000" || status(*pid, "Seccomp")? != "2" {
            return Err(format!("process {at} has handlers {}, filter {}", status(*pid, "SigCgt")?, status(*pid, "Seccomp")?));
        }
        let is_spare = status(*pid, "Name")? == SPARE;
        if is_spare {
            let waits = fs::read_to_string(format!("/proc/{pid}/syscall")).map_err(|e| e.to_string())?;
            // pause(2); the stub's code, its page of requests, a mailbox, and what the host maps for the vDSO.
            if !waits.starts_with("34 ") || maps.lines().count() > 6 {
                return Err(format!("a spare process is in {waits} and has\n{maps}"));
            }
        }
        if untraced != usize::from(at == 1 || is_spare) {
            return Err(format!("process {at} has {untraced} threads that nobody traces"));
        }
    }
    kill(running.processes().first(), Signal::TERM)?;
    clean(running.wait()?).map(|_| ())
}

/// A guest whose host process is killed ends as by SIGKILL, with all its threads; the kernel and the others go on.
pub fn guest_killed(s: &Sandbox) -> Result<(), String> {
    let spins = "exec awk 'BEGIN { while (1); }'";
    let threads = r#"python3 -c '
import threading, time
for target in [lambda: [0 for _ in iter(int, 1)], lambda: time.sleep(100)]:
    threading.Thread(target=target).start()
open("ready", "w")
for _ in iter(int, 1): pass'"#;
    for (what, child, ready, name) in
        [("one thread", spins, "touch ready;", "janua:awk"), ("more threads", threads, "", "janua:python3")]
    {
        let _ = fs::remove_file(s.dir.join("ready"));
        let script = format!("({child}) & p=$!; {ready} wait $p; echo child $?; (exit 5); echo other $?; /bin/echo alive");
        let script = script.replace("(python3", "(exec python3");
        let running = up(s, &script)?;
        kill(begun(&running, name)?.last(), Signal::KILL)?;
        expect(what, &clean(running.wait()?)?, 0, &["child 137", "other 5", "alive"])?;
    }
    Ok(())
}

/// One that waits in a call ends when that is over.
pub fn waiting_guest_killed(s: &Sandbox) -> Result<(), String> {
    let running = up(s, "sleep 3 & p=$!; touch ready; wait $p; echo child $?; /bin/echo alive")?;
    kill(begun(&running, "janua:sleep")?.last(), Signal::KILL)?;
    expect("a sleeping child", &clean(running.wait()?)?, 0, &["child 137", "alive"])
}

/// Those that the host calls so, as soon as there is one: a name comes with the first trip that its thread makes.
fn begun(running: &crate::guard::Running, name: &str) -> Result<Vec<i32>, String> {
    for _ in 0..500 {
        let found = called(running, name)?;
        if !found.is_empty() {
            return Ok(found);
        }
        thread::sleep(Duration::from_millis(10));
    }
    Err(format!("no process is called {name}"))
}

/// Without processes that wait for a guest new ones are made.
pub fn spares_killed(s: &Sandbox) -> Result<(), String> {
    let script = "/bin/true; (:); touch ready; while [ ! -e gone ]; do :; done; /bin/echo begun; (exit 4); echo $?; exit 3";
    let running = up(s, script)?;
    for pid in begun(&running, SPARE)? {
        kill(Some(&pid), Signal::KILL)?;
    }
    fs::write(s.dir.join("gone"), "").map_err(|e| e.to_string())?;
    expect("the rest", &clean(running.wait()?)?, 3, &["begun\n4"])
}

/// Without the process that others are made from, and those that wait for a guest, no program is begun any more: what runs goes on, and nothing waits for it.
pub fn maker_killed(s: &Sandbox) -> Result<(), String> {
    let running = up(s, "touch ready; while [ ! -e gone ]; do :; done; /bin/true; echo begun $?; echo alive; exit 3")?;
    kill(parts(&running)?.get(1), Signal::KILL)?;
    for pid in called(&running, SPARE)? {
        kill(Some(&pid), Signal::KILL)?;
    }
    thread::sleep(Duration::from_millis(50));
    fs::write(s.dir.join("gone"), "").map_err(|e| e.to_string())?;
    let outcome = clean(running.wait()?)?;
    if super::text(&outcome).contains("begun 0") {
        return Err(format!("a program was begun: {}", super::text(&outcome)));
    }
    expect("the rest", &outcome, 3, &["alive"])
}

/// A file of the host's that is mapped and written to is one file: what either way has stored the other finds, whatever its length becomes.
pub fn mapped_files(s: &Sandbox) -> Result<(), String> {
    const SCRIPT: &str = r#"
import mmap, os
f = os.open("grows", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
os.ftruncate(f, 32768)
a = mmap.mmap(f, 32768)
a[5] = 65
os.pwrite(f, b"x", 65535)
b = mmap.mmap(f, 65536)
b[40000] = 66
print(b[5], b[65535], os.pread(f, 1, 5), os.pread(f, 1, 40000))
os.pwrite(f, b"yz", 40001)
print(b[40000:40003])
os.posix_fallocate(f, 65536, 4096)
c = mmap.mmap(f, 69632)
c[69000] = 67
end = os.open("grows", os.O_WRONLY | os.O_APPEND)
os.write(end, b"end")
d = mmap.mmap(f, 69635)
print(os.fstat(f).st_size, d[69000], d[69632:69635], os.pread(f, 3, 68999))
os.ftruncate(f, 40001)
os.ftruncate(f, 69635)
print(d[5], d[40000:40003], d[69000], os.pread(f, 3, 39999))
d[6] = 68
d.flush()
print(os.pread(f, 2, 5))
"#;
    let outcome = s.run(&["--bind", ".::rw"], &["python3", "-c", SCRIPT])?;
    let lines = ["65 120 b'A' b'B'", "b'Byz'", "69635 67 b'end' b'\\x00C\\x00'", "65 b'B\\x00\\x00' 0 b'\\x00B\\x00'", "b'AD'"];
    expect("files", &outcome, 0, &lines)?;
    let file = fs::read(s.dir.join("grows")).map_err(|e| e.to_string())?;
    let held = (file.len(), &file[5..7], &file[40000..40002]);
    if held == (69635, b"AD", b"B\0") { Ok(()) } else { Err(format!("outside the file has {held:?}")) }
}

/// What moves in a file of the host's (fallocate(2)) has moved in what is mapped of it.
pub fn moved_ranges(s: &Sandbox) -> Result<(), String> {
    let program = compare::place().join("bin/sandbox/move_ranges");
    let sources = workspace::root().join("test/conformance");
    attacks::build(&sources.join("fs/move_ranges.c"), &program, &[&format!("-I{}", sources.display())])?;
    let outcome = s.run(&["--bind", ".::rw"], &[&program.display().to_string()])?;
    expect("ranges", &outcome, 0, &["yes: size_of(fd) == size"])
}

/// Files of the host's that are mapped take nothing of what guests may have, and a file in memory is counted once.
pub fn memory(s: &Sandbox) -> Result<(), String> {
    const SCRIPT: &str = r#"
import mmap, os
MIB = 1 << 20
with open("large", "wb") as f:
    for n in range(120):
        f.write(bytes([n]) * MIB)
own = bytearray(30 * MIB)
kept = open("/tmp/kept", "w+b")
kept.truncate(30 * MIB)
inside = mmap.mmap(kept.fileno(), 30 * MIB)
for at in range(0, 30 * MIB, 4096):
    own[at] = inside[at] = 1
for turn in range(2):
    with open("large", "r+b") as f, mmap.mmap(f.fileno(), 120 * MIB) as file:
        print(sum(file[at] == at // MIB for at in range(0, 120 * MIB, 4096)))
        file[7 * MIB + turn] = 200
print(sum(own[::4096]), sum(inside[::4096]))
"#;
    let outcome = s.run(&["--memory", "128M", "--bind", ".::rw"], &["python3", "-c", SCRIPT])?;
    expect("files and memory", &outcome, 0, &["30720\n30719\n7680 7680"])?;
    let file = fs::read(s.dir.join("large")).map_err(|e| e.to_string())?;
    let stored = &file[7 << 20..][..3];
    if stored == [200, 200, 7] { Ok(()) } else { Err(format!("outside the file has {stored:?}")) }
}

/// When memory is used up who has most is ended, not the one that asks for more.
pub fn memory_used_up(s: &Sandbox) -> Result<(), String> {
    const SCRIPT: &str = r#"
cat >/tmp/touch.py <<'END'
import mmap, os, sys, time
name, size = sys.argv[1], int(sys.argv[2]) << 20
m = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
open(name + ".mapped", "w")
while not os.path.exists(name + ".go"):
    time.sleep(0.01)
for at in range(0, size, 4096):
    m[at] = 1
open(name + ".done", "w")
while not os.path.exists(name + ".end"):
    time.sleep(0.01)
END
cd /tmp
python3 touch.py big 80 & big=$!
python3 touch.py small 60 & small=$!
until [ -e big.mapped ] && [ -e small.mapped ]; do sleep 0.05; done
touch big.go small.end
until [ -e big.done ]; do sleep 0.05; done
touch small.go
wait $small; echo small $?
touch big.end
wait $big; echo big $?
"#;
    let outcome = s.run(&["--memory", "128M"], &["sh", "-c", SCRIPT])?;
    expect("memory", &outcome, 0, &["small 0", "big 137"])
}
