//! `--gdb`: a real gdb outside debugs the program inside, and what is no gdb does no harm.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{Sandbox, Test, clean, expect, kill, text};
use crate::guard::{Outcome, Running};
use crate::{build, workspace};

/// By each gate.
pub const TESTS: &[Test] = &[
    ("sandbox/gdb_steps", steps),
    ("sandbox/gdb_follows", follows),
    ("sandbox/gdb_i386", compat),
    ("sandbox/gdb_ends", ends),
    ("sandbox/gdb_noise", noise),
    ("sandbox/gdb_closed", closed),
    ("sandbox/gdb_relay", relay),
];

/// The same by the gate `ptrace`.
pub const APART: &[Test] = &[
    ("sandbox/apart_gdb_steps", steps),
    ("sandbox/apart_gdb_follows", follows),
    ("sandbox/apart_gdb_i386", compat),
    ("sandbox/apart_gdb_ends", ends),
    ("sandbox/apart_gdb_noise", noise),
    ("sandbox/apart_gdb_closed", closed),
];

/// Seconds a gdb may take.
const LIMIT: &str = "60";

/// The debugged program, built with these options.
fn debugged(s: &Sandbox, options: &[&str]) -> Result<String, String> {
    let program = s.dir.join("debugged");
    let source = workspace::root().join("test/gdb/debugged.c");
    let built = Command::new("gcc").args(["-g", "-O0", "-pthread"]).args(options).arg("-o").arg(&program).arg(source).output();
    match built {
        Ok(output) if output.status.success() => Ok(program.display().to_string()),
        Ok(output) => Err(format!("gcc: {}", String::from_utf8_lossy(&output.stderr))),
        Err(error) => Err(format!("gcc: {error}")),
    }
}

/// A sandbox that waits for gdb at a socket.
fn waiting(s: &Sandbox, program: &[&str]) -> Result<(Running, PathBuf), String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Short, as names of sockets have to be.
    let name = format!("janua-gdb-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let socket = std::env::temp_dir().join(name);
    let running = s.start(s.line(&["--gdb", &socket.display().to_string()], program))?;
    let end = Instant::now() + Duration::from_secs(40);
    while !listens(&socket) && Instant::now() < end {
        thread::sleep(Duration::from_millis(10));
    }
    if listens(&socket) { Ok((running, socket)) } else { Err(format!("nobody waits for gdb: {:?}", text(&running.wait()?))) }
}

/// Whether somebody listens at a socket, which has its name a moment before (SO_ACCEPTCON in /proc/net/unix).
fn listens(socket: &Path) -> bool {
    let all = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let name = socket.display().to_string();
    all.lines().any(|line| line.ends_with(&name) && line.split_ascii_whitespace().nth(3) == Some("00010000"))
}

/// What gdb prints for these commands, and what became of the sandbox.
fn gdb(s: &Sandbox, program: &[&str], commands: &[&str]) -> Result<(String, Outcome), String> {
    let (running, socket) = waiting(s, program)?;
    let said = talk(&format!("target remote {}", socket.display()), commands)?;
    Ok((said, clean(running.wait()?)?))
}

fn talk(target: &str, commands: &[&str]) -> Result<String, String> {
    let mut command = Command::new("timeout");
    // Its child ends with it, and files are where the sandbox has them.
    command.args(["-k", "1", LIMIT, "gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off"]);
    for line in ["set confirm off", "set width 0", "set remotetimeout 60", "set sysroot /", target].iter().chain(commands) {
        command.args(["-ex", line]);
    }
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("gdb: {e}"))?;
    Ok(format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}

/// Checks that gdb has printed each of these, in this order.
fn heard(said: &str, words: &[&str]) -> Result<(), String> {
    let mut rest = said;
    for word in words {
        match rest.find(word) {
            Some(at) => rest = &rest[at + word.len()..],
            None => return Err(format!("gdb has not said {word:?} (in this order: {words:?})\n{said}")),
        }
    }
    Ok(())
}

/// Breakpoints, steps, registers, memory, threads, watchpoints, signals, a program's end; its pid, parent and children's numbers are what they
/// are without gdb.
pub fn steps(s: &Sandbox) -> Result<(), String> {
    for options in [&[][..], &["-static"]] {
        let program = debugged(s, options)?;
        let without = text(&s.run(&[], &[&program])?);
        let commands = [
            "break add",
            "continue",
            "print $rip == (long)&add || a == 1",
            "bt",
            "set var a = 40",
            "stepi",
            "finish",
            "continue",
            "info threads",
            "print half * 3",
            "print $xmm0.uint128",
            "delete",
            "watch watched",
            "continue",
            "continue",
            "continue",
        ];
        let (said, outcome) = gdb(s, &[&program], &commands)?;
        #[rustfmt::skip]
        heard(&said, &[
            "Breakpoint 1, add (a=1, b=2)", "$1 = 1", "in main (", "Value returned is $2 = 42", "hit Breakpoint 1, add (a=0, b=5)",
            "\"debugged\"", "\"debugged\"", "$3 = 1.5", "$4 = ", "Old value = 0", "New value = 5", "received signal SIGUSR1",
            "exited with code 052",
        ])?;
        expect("the program", &outcome, 42, &["first 42, parent ", "signal 10", "child adds 7", "exited 7"])?;
        // But for the line that mentions gdb, and the number that gdb has set.
        let with: String =
            text(&outcome).lines().filter(|line| !line.starts_with("janua: ")).map(|line| format!("{line}\n")).collect();
        if with.replace("first 42", "first 3") != without {
            return Err(format!("with gdb it is another program:\n{with}\nwithout:\n{without}"));
        }
    }
    Ok(())
}

/// Children and programs, whichever gdb wants to see.
pub fn follows(s: &Sandbox) -> Result<(), String> {
    let program = debugged(s, &[])?;
    let pass = "handle SIGUSR1 nostop noprint pass";
    let (said, outcome) =
        gdb(s, &[&program], &["set follow-fork-mode child", pass, "break child_work", "continue", "bt", "continue"])?;
    heard(&said, &["Attaching after", "child_work ()", "in main (", "exited with code 07"])?;
    expect("a child", &outcome, 42, &["child adds 7", "exited 7"])?;
    let both =
        ["set detach-on-fork off", "set schedule-multiple on", pass, "catch fork", "continue", "continue", "info inferiors"];
    let (said, outcome) = gdb(s, &[&program], &[&both[..], &["inferior 1", "continue"]].concat())?;
    heard(&said, &["forked process", "exited with code 07", "process 2 ", "exited with code 052"])?;
    expect("both", &outcome, 42, &["child adds 7", "exited 7"])?;
    let (said, outcome) = gdb(s, &[&program, "x"], &["catch exec", pass, "continue", "info proc", "continue"])?;
    heard(&said, &["is executing new program: ", "echo", "process 2", "exe = '", "echo'", "exited normally"])?;
    expect("another program", &outcome, 0, &["exited 7", "another program"])?;
    let script = ["/bin/sh", "-c", "ls / | wc -l > /dev/null; exit 3"];
    let (said, outcome) = gdb(s, &script, &["set follow-fork-mode parent", "continue"])?;
    heard(&said, &["Detaching after", "exited with code 03"])?;
    expect("a shell", &outcome, 3, &[])?;
    let script = "import threading\nt = threading.Thread(target=print, args=['in a thread'])\nt.start(); t.join()";
    let commands = ["set breakpoint pending on", "break pthread_create", "continue", "info threads", "delete", "continue"];
    let (said, outcome) = gdb(s, &["/usr/bin/python3", "-c", script], &commands)?;
    heard(&said, &["Breakpoint 1, ", "pthread_create", "\"python3\"", "exited normally"])?;
    expect("python", &outcome, 0, &["in a thread"])
}

/// The program does not get at the connection to gdb, which writes files of the host's for what is at its other end: not by a copy of the descriptor,
/// nor by the memory of who has it.
pub fn closed(s: &Sandbox) -> Result<(), String> {
    let script = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n\
        server = max(int(pid) for pid in os.listdir('/proc') if pid.isdigit())\n\
        pidfd = libc.syscall(434, server, 0)\n\
        for fd in range(8): print('taken', libc.syscall(438, pidfd, fd, 0), ctypes.get_errno(), flush=True)\n\
        try: print('memory', open(f'/proc/{server}/mem', 'r+b'))\n\
        except OSError as e: print('memory', e.errno)\n\
        print('signals', [(libc.kill(server, signal), ctypes.get_errno()) for signal in (0, 9, 19)])";
    let (_, outcome) = gdb(s, &["/usr/bin/python3", "-c", script], &["continue"])?;
    expect("the connection", &outcome, 0, &["taken -1 1", "memory ", "signals [(-1, 1), (-1, 1), (-1, 1)]"])?;
    let said = text(&outcome);
    let kept = said.lines().filter(|line| line.starts_with("taken ")).all(|line| line == "taken -1 1");
    if kept && !said.contains("BufferedRandom") { Ok(()) } else { Err(said) }
}

/// What passes packets between gdb and the sandbox: they go both ways, and a request of File-I/O, in pieces, ends the connection.
pub fn relay(_: &Sandbox) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let (mut gdb, its) = UnixStream::pair().map_err(failed)?;
    let (mut sandbox, outer) = UnixStream::pair().map_err(failed)?;
    sandbox.set_read_timeout(Some(Duration::from_secs(20))).map_err(failed)?;
    let started = Command::new(build::janua())
        .arg("relay-gdb")
        .stdin(OwnedFd::from(its))
        .stdout(OwnedFd::from(outer))
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    gdb.write_all(&packet(b"?")).map_err(failed)?;
    let asked = hear(&mut sandbox)?;
    sandbox.write_all(&packet(b"F-1,2")).map_err(failed)?;
    let answered = hear(&mut gdb)?;
    for byte in packet(b"Fopen,1000/5,601,1a4") {
        // Nobody reads behind the end.
        let _ = sandbox.write_all(&[byte]);
    }
    // It is heard by its end of standard error, and then gdb has heard no more.
    let output = started.wait_with_output().map_err(failed)?;
    let mut rest = Vec::new();
    gdb.set_read_timeout(Some(Duration::from_secs(20))).map_err(failed)?;
    // An acknowledgement that nobody has read makes an error of the end.
    let _ = gdb.read_to_end(&mut rest);
    let said = String::from_utf8_lossy(&output.stderr);
    let good = asked == "?" && answered == "F-1,2" && !rest.contains(&b'F') && said.contains("File-I/O");
    if good { Ok(()) } else { Err(format!("asked {asked:?}, answered {answered:?}, then {rest:?}, said {said:?}")) }
}

/// A program for i386.
pub fn compat(s: &Sandbox) -> Result<(), String> {
    let program = debugged(s, &["-m32"])?;
    let commands =
        ["break add", "continue", "print $eip == (int)$pc", "bt", "set var a = 40", "finish", "delete", "continue", "continue"];
    let (said, outcome) = gdb(s, &[&program], &commands)?;
    heard(&said, &["add (a=1, b=2)", "$1 = 1", "in main (", "Value returned is $2 = 42", "SIGUSR1", "exited with code 052"])?;
    expect("the program", &outcome, 42, &["first 42", "child adds 7", "exited 7"])
}

/// Detached, killed, interrupted, or left by a gdb that was killed; a program that ends at once.
pub fn ends(s: &Sandbox) -> Result<(), String> {
    let program = debugged(s, &[])?;
    let (said, outcome) = gdb(s, &[&program], &["break add", "continue", "detach"])?;
    heard(&said, &["add (a=1, b=2)", "detached"])?;
    expect("detached", &outcome, 42, &["first 3", "exited 7"])?;
    let (said, outcome) = gdb(s, &[&program], &["break add", "continue", "kill"])?;
    heard(&said, &["killed"])?;
    expect("killed", &outcome, 137, &[])?;
    // A gdb that ends without a word ends what it was given.
    expect("left", &gdb(s, &[&program], &["break add", "continue"])?.1, 137, &[])?;
    expect("at once", &gdb(s, &["/bin/true"], &["continue"])?.1, 0, &[])?;
    interrupted(s, &program)
}

/// Ctrl-C while the program runs; then the connection is gone, with a breakpoint in the program's way.
fn interrupted(s: &Sandbox, program: &str) -> Result<(), String> {
    let (running, socket) = waiting(s, &[program, "s"])?;
    let mut line = UnixStream::connect(&socket).map_err(|e| e.to_string())?;
    ask(&mut line, "qSupported:multiprocess+")?;
    ask(&mut line, "?")?;
    line.write_all(&packet(b"vCont;c:p2.-1")).map_err(|e| e.to_string())?;
    thread::sleep(Duration::from_millis(300));
    line.write_all(&[3]).map_err(|e| e.to_string())?;
    let said = hear(&mut line)?;
    if !said.starts_with("T02thread:p2.2;") {
        return Err(format!("Ctrl-C: {said:?}"));
    }
    line.write_all(&packet(b"vCont;c:p2.-1")).map_err(|e| e.to_string())?;
    drop(line);
    thread::sleep(Duration::from_millis(300));
    kill(running.processes().first(), Signal::USR1)?;
    thread::sleep(Duration::from_millis(300));
    kill(running.processes().first(), Signal::TERM)?;
    expect("lost", &clean(running.wait()?)?, 143, &["connection to gdb is lost", "first 3", "signal 10"])
}

fn packet(said: &[u8]) -> Vec<u8> {
    let sum = said.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    [b"$", said, format!("#{sum:02x}").as_bytes()].concat()
}

/// The next packet.
fn hear(line: &mut UnixStream) -> Result<String, String> {
    line.set_read_timeout(Some(Duration::from_secs(20))).map_err(|e| e.to_string())?;
    let mut said = Vec::new();
    let mut byte = [0];
    loop {
        match line.read(&mut byte) {
            Ok(1) => said.push(byte[0]),
            Ok(_) => return Err("the connection is closed".to_owned()),
            Err(error) => return Err(format!("no answer: {error}")),
        }
        if let [.., b'#', _, _] = said[..]
            && let Some(start) = said.iter().position(|byte| *byte == b'$')
        {
            line.write_all(b"+").map_err(|e| e.to_string())?;
            return Ok(String::from_utf8_lossy(&said[start + 1..said.len() - 3]).into_owned());
        }
    }
}

fn ask(line: &mut UnixStream, said: &str) -> Result<String, String> {
    line.write_all(&packet(said.as_bytes())).map_err(|e| e.to_string())?;
    hear(line).map_err(|error| format!("{said}: {error}"))
}

/// What makes no sense is an error, and the next packet is answered; what is no protocol at all leaves the program alone. A port and a
/// socket that are taken are refused, and nobody listens for a second gdb.
pub fn noise(s: &Sandbox) -> Result<(), String> {
    let program = debugged(s, &["-static"])?;
    let (running, socket) = waiting(s, &[&program])?;
    let mut line = UnixStream::connect(&socket).map_err(|e| e.to_string())?;
    line.write_all(b"\0\xff$g#00$zz").map_err(|e| e.to_string())?;
    line.write_all(b"#xx").map_err(|e| e.to_string())?;
    #[rustfmt::skip]
    let senseless = [
        "m", "mzz,1", "m0,ffffffffffffffff", "mffffffffffffffff,10", "m0,10", "M0,2:0", "X0,5:abc", "G00", "P0=00", "P999=00",
        "pffffffffffffffff", "Z", "Zx", "Z0,0,1", "z0,0,1", "Z2,1,8", "vCont;x", "vCont;c:p9.zz", "Hgzz", "Hg99", "T99", "D;99", "vKill;99",
        "vKill;zz", "qXfer:features:read:none:0,10", "qXfer:threads:read::0", "qXfer:threads:read::x,y", "vFile:pread:9,10,0",
        "vFile:close:77", "vFile:open:2f6e6f6e65,0,0", "vAttach;2", "vRun;2f62696e2f7368", "Ctt", "",
    ];
    ask(&mut line, "qSupported:multiprocess+;fork-events+")?;
    for packet in senseless {
        let said = ask(&mut line, packet)?;
        if !(said.is_empty() || said.starts_with('E') || said.starts_with("F-1")) {
            return Err(format!("{packet:?}: {said:?}"));
        }
        if !ask(&mut line, "?")?.starts_with("T05thread:p2.2;") {
            return Err(format!("{packet:?} has changed what has stopped"));
        }
    }
    if UnixStream::connect(&socket).is_ok() {
        return Err("a second gdb found somebody".to_owned());
    }
    // Half a packet, and gone.
    line.write_all(b"$m40").map_err(|e| e.to_string())?;
    drop(line);
    expect("half a packet", &clean(running.wait()?)?, 42, &["connection to gdb is lost", "exited 7"])?;
    let (running, socket) = waiting(s, &[&program])?;
    let mut line = UnixStream::connect(&socket).map_err(|e| e.to_string())?;
    // Until it is refused.
    while line.write_all(&[b'x'; 4096]).is_ok() {}
    expect("no protocol", &clean(running.wait()?)?, 42, &["not its protocol", "exited 7"])?;
    taken(s)
}

fn taken(s: &Sandbox) -> Result<(), String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    let port = listener.local_addr().map_err(|e| e.to_string())?.port().to_string();
    expect("a taken port", &s.run(&["--gdb", &port], &["/bin/true"])?, 125, &[&port, "the port is taken"])?;
    let file = s.file("file", b"", 0o644)?;
    expect("a taken name", &s.run(&["--gdb", &file], &["/bin/true"])?, 125, &["file", "already"])?;
    if !Path::new(&file).exists() || fs::metadata(&file).is_err() {
        return Err("a file that was in the way is gone".to_owned());
    }
    expect("nowhere", &s.run(&["--gdb", "/no/such/dir/socket"], &["/bin/true"])?, 125, &["/no/such/dir/socket"])
}
