//! Sandboxes that run: their names, `janua list`, `exec`, `pause`, `resume`, `stats`, `kill`, `logs` and `wait`.

use rustix::fd::AsFd;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::super::terminal::Step::{Resize, Type, Until};
use super::super::terminal::on_terminal;
use super::{Sandbox, clean, text};
use crate::build;

/// A script that has `$J`, the command, `$run`, the beginning of a `janua run`, and a place of its own for names.
pub fn script(s: &Sandbox, body: &str) -> Vec<String> {
    let run = s.line(&[], &[]).join("' '");
    // The last word is the one before the program.
    let run = run.trim_end_matches("' '--");
    let head = format!(
        "export XDG_RUNTIME_DIR='{}/rt'; mkdir -m 700 -p \"$XDG_RUNTIME_DIR\"; J='{}'; run() {{ '{run}' \"$@\"; }}\n",
        s.dir.display(),
        build::janua().display()
    );
    vec!["/bin/sh".into(), "-c".into(), head + body]
}

/// What a script prints must be this.
fn says(s: &Sandbox, body: &str, want: &str) -> Result<(), String> {
    let outcome = clean(s.start(script(s, body))?.wait()?)?;
    let said = text(&outcome);
    if said == want { Ok(()) } else { Err(format!("it says {said:?}, not {want:?}")) }
}

/// A name is one sandbox's as long as that runs, and free afterwards; without one the supervisor's number is it.
pub fn names(s: &Sandbox) -> Result<(), String> {
    let body = r#"
run --name a --detach -- sleep 100
run --name a -- true; echo taken $?
run --name a --detach -- true; echo taken $?
for bad in 12 .x a/b ''; do run --name "$bad" -- true 2>/dev/null; echo bad $?; done
$J list -q
$J kill a; echo killed $?
run --name a -- $J list -q 2>/dev/null; echo free $?
run --name b -- sh -c 'exit 3'; echo code $?
id=$(run -d -- sleep 100)
test "$(readlink /proc/$id/exe)" = "$(readlink -f $J)" && echo number
$J kill $id; $J list -q; ls "$XDG_RUNTIME_DIR/janua"
"#;
    let taken = "janua: a sandbox named a runs already\n       give another --name, or end it: janua kill a\n";
    let want = format!("a\n{taken}taken 125\n{taken}taken 125\n{}a\nkilled 0\nfree 0\ncode 3\nnumber\n", "bad 125\n".repeat(4));
    // Inside there is no list of the host's sandboxes.
    says(s, body, &want)
}

/// The list has what runs, with its processes, for a person and for a program; attached ones without a name too.
pub fn list(s: &Sandbox) -> Result<(), String> {
    let body = r#"
run -d --name web -- sh -c 'sleep 100 & sleep 101; true' >/dev/null
run -- sleep 102 & attached=$!
for i in $(seq 100); do test $($J list | grep -c 'sleep 10[012]$') = 4 && break; sleep 0.1; done
for i in $(seq 100); do $J list --json | grep -q '"state": *"R"' || break; sleep 0.1; done
$J list --json | python3 -c '
import json, sys, os
all = {s["name"]: s for s in json.load(sys.stdin)}
web, = [s for s in all.values() if s["name"] == "web"]
other, = [s for s in all.values() if s["name"] != "web"]
print(web["detached"], web["command"][:2], [g["command"] for g in web["guests"]][1:], [g["pid"] for g in web["guests"]])
print(other["detached"], other["name"] == str(other["pid"]), other["command"])
for s in all.values():
    for g in s["guests"]:
        print(open("/proc/%d/comm" % g["host"]).read().strip(), g["parent"], g["state"])
'
$J kill web $($J list -q | grep -v web); wait $attached; echo code $?; $J list -q
"#;
    let want = "True ['sh', '-c'] [['sleep', '100'], ['sleep', '101']] [2, 3, 4]\nFalse True ['sleep', '102']\n";
    let outcome = clean(s.start(script(s, body))?.wait()?)?;
    let said = text(&outcome);
    let guests = ["janua:sh 1 S", "janua:sleep 2 S", "janua:sleep 2 S", "janua:sleep 1 S"];
    let fine = said.starts_with(want) && guests.iter().all(|guest| said.contains(guest)) && said.ends_with("code 137\n");
    if fine { Ok(()) } else { Err(said) }
}

/// A program beside the others: exit codes, streams, environment, directory, its place among the processes.
pub fn exec(s: &Sandbox) -> Result<(), String> {
    let body = r#"
run -d --name x --env A=first --cwd /usr -- sleep 100 >/dev/null
for code in 0 7 255; do $J exec x -- sh -c "exit $code"; echo $?; done
for signal in TERM KILL SEGV; do $J exec x -- sh -c "ulimit -c 0; kill -$signal \$\$"; echo $?; done
$J exec x -- nosuch; echo $?
$J exec x -- /etc/passwd 2>/dev/null; echo $?
$J exec nosuch -- true 2>/dev/null; echo $?
printf 'one\ntwo\n' | $J exec x -- tr a-z A-Z | tail -n 1
$J exec x -- sh -c 'echo out; echo err >&2' 2>err; cat err
$J exec x -- sh -c 'echo $A $PPID; pwd; ps -o sess= -p $$ | tr -d " " | grep -qx $$ && echo leads'
B=host $J exec --env A=other --env B --cwd /etc x -- sh -c 'echo $A $B; pwd'
$J exec --cwd /nosuch x -- true 2>/dev/null; echo $?
seq 100000 | $J exec x -- cat | md5sum; seq 100000 | md5sum
$J exec x -- sh -c 'exec 3</etc/passwd; ls /proc/$$/fd' | tr '\n' ' '; echo
$J exec x -- sh -c 'trap "echo told; exit 4" TERM; sleep 100 & wait' >said & client=$!
sleep 1; kill -TERM $client; wait $client; echo $?; cat said
for i in $(seq 20); do $J exec x -- sh -c "sleep 0.2; exit $i" & pids="$pids $!"; done
sum=0; for pid in $pids; do wait $pid; sum=$((sum + $?)); done; echo $sum
$J exec x -- sleep 50 & client=$!; sleep 1; kill -KILL $client
for i in $(seq 50); do $J list | grep -q 'sleep 50' || break; sleep 0.1; done; $J list | grep -c 'sleep 50'
$J exec x -- sleep 60 & client=$!; sleep 1; $J kill x; wait $client; echo $?
"#;
    let sum: u32 = (1..=20).sum();
    let outcome = clean(s.start(script(s, body))?.wait()?)?;
    let said = text(&outcome);
    let mut lines = said.lines();
    let mut expect = |wanted: &str| match lines.next() {
        Some(line) if line == wanted => Ok(()),
        line => Err(format!("{line:?}, not {wanted:?}\n{said}")),
    };
    for wanted in ["0", "7", "255", "143", "137", "139"] {
        expect(wanted)?;
    }
    expect("janua: nosuch: no such file or directory (or its interpreter is missing) inside the sandbox")?;
    for wanted in ["127", "126", "125", "TWO", "out", "err", "first 0", "/usr", "leads", "other host", "/etc", "125"] {
        expect(wanted)?;
    }
    let sums: Vec<&str> = lines.by_ref().take(2).collect();
    if sums[0] != sums[1] {
        return Err(format!("bytes are lost: {sums:?}"));
    }
    let mut expect = |wanted: &str| match lines.next() {
        Some(line) if line.trim_end() == wanted => Ok(()),
        line => Err(format!("{line:?}, not {wanted:?}\n{said}")),
    };
    for wanted in ["0 1 2 3", "4", "told", &sum.to_string(), "0", "137"] {
        expect(wanted)?;
    }
    Ok(())
}

/// What is used and what has been done: more of it when there is more, the accounts' part while the kernel is paused, and an error for what does not run.
pub fn stats(s: &Sandbox) -> Result<(), String> {
    let body = r#"
run -d --name s --stats --pids 40 -- sh -c 'exec 5</etc/passwd 6</etc/passwd; sleep 100; true' >/dev/null
run -d --name q -- sleep 100 >/dev/null
for i in $(seq 100); do test $($J list | grep -c 'sleep 100$') = 3 && break; sleep 0.1; done
look() { $J stats --json s >"$1"; }
look 1; $J exec s -- sh -c 'for i in $(seq 30); do cat /nosuch; done 2>/dev/null'
$J exec s -- sh -c 'exec 7</etc/passwd; sleep 50; true' & for i in $(seq 100); do $J list | grep -q 'sleep 50$' && break; sleep 0.1; done
look 2; $J pause s; look 3; $J resume s; $J stats --json s q >4
python3 -c '
import json
before, after, paused = (json.load(open(name))[0] for name in "123")
again, quiet = json.load(open("4"))
print(before["name"], before["processes"], after["processes"], after["files"] > before["files"] + 3)
print(after["calls"]["made"] > before["calls"]["made"] + 100, after["calls"]["failed"] >= before["calls"]["failed"] + 30)
print(after["time"] > before["time"], after["tasks"]["limit"], before["tasks"]["used"] >= 2, after["memory"]["used"] > 100000)
print(after["host_descriptors"]["used"] > 2, after["memory"]["peak"] >= after["memory"]["used"], after["disk"]["refused"])
print(paused["paused"], paused["processes"], paused["calls"], paused["memory"]["used"] > 100000)
print(again["paused"], again["processes"], quiet["name"], quiet["processes"], quiet["calls"])
'
$J stats s | grep -c '^s  '; $J stats q | grep -o 'not counted'
$J stats nosuch q >5 2>/dev/null; echo $?; grep -c '^q' 5
$J kill s q
"#;
    let figures = "s 2 4 True\nTrue True\nTrue 40 True True\nTrue True 0\nTrue None None True\nFalse 4 q 1 None\n";
    says(s, body, &format!("{figures}11\nnot counted\n125\n9\n"))
}

/// A paused sandbox does nothing, whatever it was doing, and goes on as if nothing had been.
pub fn pause(s: &Sandbox) -> Result<(), String> {
    let body = r#"
run -d --name p --bind "$PWD:/host:rw" -- sh -c 'trap "echo told >>/host/signals" USR1
    for n in 1 2 3; do (while :; do echo . >>/host/ticks.$n; : | cat; done) & done
    while :; do sleep 0.02; echo . >>/host/slept; done' >/dev/null
size() { cat ticks.* slept 2>/dev/null | wc -l; }
grows() { before=$(size); for i in $(seq 100); do test $(size) -gt $((before + 20)) && echo grows && return; sleep 0.1; done; echo stands; }
still() { before=$(size); sleep 0.5; test $(size) = $before && echo still || echo runs; }
grows
for round in 1 2 3 4 5; do $J pause p; echo $?; still; $J resume p; echo $?; grows; done
$J pause p; $J pause p; echo $?; still
$J list | grep -o 'paused'; $J list --json | grep -o '"state":"paused"'
$J exec p -- true; echo $?
$J kill --signal USR1 p; echo $?; sleep 0.3; test -e signals || echo waits
$J resume p; $J resume p; echo $?; grows
for i in $(seq 100); do test -e signals && break; sleep 0.1; done; cat signals
$J exec p -- echo in; echo $?
$J pause p; $J kill p; echo $?; $J list -q; $J pause p 2>/dev/null; echo $?
run -d --name q --bind "$PWD:/host:rw" -- sh -c 'while :; do sleep 0.02; echo . >>/host/slept; done' >/dev/null
supervisor=$($J list --json | grep -o '"name":"q","pid":[0-9]*' | grep -o '[0-9]*$')
kill -STOP $supervisor; $J pause q 2>/dev/null; echo $?; kill -CONT $supervisor; sleep 0.3; grows; $J list | grep -c paused; $J kill q
"#;
    let rounds = "0\nstill\n0\ngrows\n".repeat(5);
    let refused = "janua: the sandbox p is paused\n       let it go on with: janua resume p\n125\n";
    let want = format!(
        "grows\n{rounds}0\nstill\npaused\n\"state\":\"paused\"\n{refused}0\nwaits\n0\ngrows\ntold\nin\n0\n0\n125\n125\ngrows\n0\n"
    );
    says(s, body, &want)
}

/// A program on a terminal of its own inside: size, names, job control, signals; the terminal outside is left as it was.
pub fn exec_terminal(s: &Sandbox) -> Result<(), String> {
    let body = r#"
run -d --name t -- sleep 100 >/dev/null
$J exec t -- sh -c 'tty; stty size; echo x >/dev/tty; ps -o tty= -p $$'
$J exec --env 'PS1=ok> ' t -- bash --norc --noprofile --noediting -i; echo code $?
$J exec t -- sh -c 'trap "" INT; printf ready; sleep 100; echo not reached'; echo code $?
$J exec t -- sh -c 'echo out; seq 20000 | tail -n 1' | cat
$J exec t -- sh -c 'for i in 0 1 2; do readlink /proc/$$/fd/$i | sed -n "s|/dev/|handed over: |p" >&2; done; echo asks; read line; echo "read $line"; echo plain >&2' | cat
$J kill t
"#;
    let steps = [
        Until("ok> "),
        Type("sleep 100\n"),
        Until("sleep 100"),
        Type("\x1a"),
        Until("Stopped"),
        Type("jobs; fg\n"),
        Until("sleep 100\r\n"),
        Type("\x03"),
        Until("ok> "),
        Resize(41, 101),
        Type("stty size\n"),
        Until("41 101"),
        Type("exit 9\n"),
        Until("ready"),
        Type("\x03"),
        Until("^C"),
        Type("\x1c"),
        Until("asks"),
        Type("a line\n"),
    ];
    let outcome = clean(on_terminal(script(s, body), &s.dir, &steps, true)?)?;
    let said = text(&outcome);
    // Who has its descriptor would read what is typed there when the program is over.
    if said.contains("handed over") {
        return Err(format!("a terminal of the host's is in the sandbox: {said:?}"));
    }
    let wanted = [
        "/dev/pts/0\r\n",
        "x\r\npts/0",
        "41 101\r\n",
        "exit\r\ncode 9\r\n",
        "code 131\r\n",
        "out\r\n20000\r\n",
        "read a line\r\n",
        "plain\r\n",
    ];
    match wanted.iter().find(|wanted| !said.contains(**wanted)) {
        Some(wanted) => Err(format!("no {wanted:?} in {said:?}")),
        None => Ok(()),
    }
}

/// A sandbox in the background: its log, bounded; its end, for a command that waits; signals for its program.
pub fn background(s: &Sandbox) -> Result<(), String> {
    let body = r#"
run -d --name a -- sh -c 'echo out; echo err >&2; cat; trap "echo told; exit 5" TERM; echo ready; while :; do sleep 0.1; done'
for i in $(seq 100); do $J logs a | grep -q ready && break; sleep 0.1; done
$J wait a & first=$!; $J wait a & second=$!; $J logs --follow a >followed & third=$!
sleep 1; $J kill --signal TERM a; wait $first; echo $?; wait $second; echo $?; wait $third; echo $?
cat followed; $J wait a; echo $?; $J logs a | tail -n 1; $J list -q
$J exec a -- true; echo $?
run -d -- nosuch-program; echo $?
run -d --name b -- sh -c 'yes 0123456789abcdef | head -c 20000000; echo; echo end; exit 6' >/dev/null; $J wait b; echo $?
test $($J logs b | wc -c) -lt 9000000 && $J logs b | tail -n 1
run -d --name b -- true >/dev/null; $J wait b; echo $?; $J logs b | wc -c
run --name c -- sleep 100 & sleep 1; $J logs c 2>&1 | cut -d' ' -f1-8; $J kill c; wait $!; echo $?
$J wait c 2>/dev/null; echo $?
"#;
    let want = "a\n5\n5\n0\nout\nerr\nready\ntold\n5\ntold\njanua: the sandbox a has ended, with exit code 5\n125\n\
                janua: nosuch-program: no such file or directory (or its interpreter is missing) inside the sandbox\n127\n\
                6\nend\n0\n0\njanua: the sandbox c has no log: it\n137\n125\n";
    says(s, body, want)
}

/// A server in the background, as docs/running.md begins: it is in the list, and programs beside it see it and talk to it.
pub fn server(s: &Sandbox) -> Result<(), String> {
    let body = r#"
run --name web --detach -- redis-server
for i in $(seq 200); do test "$($J exec web -- redis-cli ping 2>/dev/null)" = PONG && break; sleep 0.1; done
$J exec web -- redis-cli set color green
$J list | grep -o '^web\|redis-server' | sort -u
$J exec web -- ps aux | grep -o 'redis-server [^ ]*$\|ps aux$'
$J exec web -- redis-cli get color
$J kill web; echo $?; $J list -q; $J exec web -- ps aux 2>/dev/null; echo $?
"#;
    says(s, body, "web\nOK\nredis-server\nweb\nredis-server *:6379\nps aux\ngreen\n0\n125\n")
}

/// A program asked of a supervisor that is stopped has not begun: the command ends by its signals, and nothing is run later.
pub fn exec_silent(s: &Sandbox) -> Result<(), String> {
    let body = r#"
run -d --name a -- sleep 100 >/dev/null
pid=$($J list --json | python3 -c 'import json, sys; print([s["pid"] for s in json.load(sys.stdin) if s["name"] == "a"][0])')
kill -STOP $pid; $J exec a -- touch /tmp/later & sleep 0.5; kill -TERM $!; wait $!; echo $?
kill -CONT $pid; $J exec a -- echo now; sleep 0.3; $J exec a -- ls /tmp/later 2>/dev/null; $J kill a
"#;
    says(s, body, "143\nnow\n")
}

/// Janua in Janua reports that, whatever gate and jail would be looked for.
pub fn nested(s: &Sandbox) -> Result<(), String> {
    let body = "run -- $J run -- echo x 2>&1; echo $?; run -- $J run --jail none -- echo x 2>/dev/null; echo $?";
    let want = "janua: this is a program on Janua's kernel already, and Janua does not run inside itself yet\n       \
                run the program as it is: it is in the sandbox\n125\n125\n";
    says(s, body, want)
}

/// A killed supervisor leaves nothing that confuses anybody.
pub fn supervisor_killed(s: &Sandbox) -> Result<(), String> {
    let body = r#"
run -d --name a -- sleep 100 >/dev/null
id=$(run -d -- sleep 100)
$J wait a 2>said & waiter=$!; sleep 0.5
kill -KILL $id $($J list --json | python3 -c 'import json, sys; print([s["pid"] for s in json.load(sys.stdin) if s["name"] == "a"][0])')
wait $waiter; echo $?; cat said
sleep 0.5; $J list -q; ls -A "$XDG_RUNTIME_DIR/janua"; $J exec a -- true 2>/dev/null; echo $?
run -d --name a -- sleep 100; $J kill a; ls "$XDG_RUNTIME_DIR/janua"
"#;
    says(s, body, "125\njanua: the sandbox's supervisor has been killed\n125\na\n")
}

/// Somebody else finds nothing, and a place that is not the user's alone is not used.
pub fn other_user(s: &Sandbox) -> Result<(), String> {
    let body = r#"
run -d --name a -- sleep 100 >/dev/null
chmod 777 "$XDG_RUNTIME_DIR/janua"; $J list 2>&1 | grep -c 'not yours alone'; run --name b -- true 2>&1 | grep -c 'not yours alone'
chmod 700 "$XDG_RUNTIME_DIR/janua"
run -- sh -c "ls $XDG_RUNTIME_DIR/janua/a >/dev/null && python3 -c '
import socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
try: s.connect(\"$XDG_RUNTIME_DIR/janua/a\"); print(\"reached\")
except OSError as e: print(\"no way\")'"
if [ $(id -u) = 0 ]; then
  other="setpriv --reuid 65534 --regid 65534 --clear-groups"
  chmod 711 . "$XDG_RUNTIME_DIR" 2>/dev/null
  $other $J list >/dev/null 2>&1; echo list $?
  $other $J exec a -- true >/dev/null 2>&1; echo exec $?; $other $J kill a >/dev/null 2>&1; echo kill $?
else
  printf 'list 125\nexec 125\nkill 125\n'
fi
$J list -q; $J kill a
"#;
    let outcome = clean(s.start(script(s, body))?.wait()?)?;
    let said = text(&outcome);
    // As another user the list is empty or refused, by whose directory it is.
    let fine = said.starts_with("1\n1\nno way\nlist ") && said.ends_with("exec 125\nkill 125\na\n");
    if fine { Ok(()) } else { Err(said) }
}

/// A compromised kernel writes what it likes: the sandbox ends with a message, and nobody else notices.
pub fn garbage(s: &Sandbox) -> Result<(), String> {
    // Numbers without a meaning, half a message, and replies to requests that were never made.
    let words: [&[u8]; 6] = [&[0xff; 64], &[1], &[1, 200, 1, 0, 0], &[0, 0, 0], &[3, 1, 1, b'x'], &[6, 200, 1, 0, 0, 0]];
    for garbage in words {
        let running = s.start(script(s, "run -- sh -c 'touch ready; sleep 100'; echo code $?"))?;
        let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
        let channel = loop {
            // The kernel has one socket: its end of the channel.
            let found = running.processes().into_iter().filter_map(channel_of).next();
            match found {
                Some(channel) => break channel,
                None if std::time::Instant::now() > end => return Err("no kernel's channel is found".into()),
                None => std::thread::sleep(std::time::Duration::from_millis(50)),
            }
        };
        rustix::io::write(&channel, garbage).map_err(|error| error.to_string())?;
        let outcome = clean(running.wait()?)?;
        let said = text(&outcome);
        if !said.ends_with("code 125\n") || !said.contains("janua: the sandbox's kernel says what it never would") {
            return Err(format!("after {garbage:?}: {said}"));
        }
    }
    Ok(())
}

/// The channel's end of a process of a kernel's.
fn channel_of(pid: i32) -> Option<rustix::fd::OwnedFd> {
    let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    if !comm.starts_with("janua:sleep") {
        return None;
    }
    let process = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    let is_socket =
        |entry: &std::fs::DirEntry| entry.path().read_link().is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
    let number = fds.filter(is_socket).find_map(|entry| entry.file_name().to_str()?.parse().ok())?;
    pidfd_getfd(process.as_fd(), number, PidfdGetfdFlags::empty()).ok()
}
