//! Programs on other tiles than the one that starts them: `janua run --place spread`, `janua exec --tile`.

use super::running::script;
use super::{Sandbox, clean, text};

/// What all gates and jails must do.
pub const TESTS: &[super::Test] = &[
    ("sandbox/tiles_spread", pipelines),
    ("sandbox/tiles_spread_exec", exec),
    ("sandbox/tiles_spread_signals", signals),
    ("sandbox/tiles_spread_files", files),
    ("sandbox/tiles_spread_killed", killed),
    ("sandbox/tiles_spread_forged", forged),
];

/// `up N` starts a sandbox of so many tiles; `on N` runs a program on a tile; `pid N` prints the number of a tile's supervisor.
const TOOLS: &str = r#"
export J
up() { run -d --tiles $1 --cores 1 --place spread --name t -- sleep 1000 >/dev/null; }
on() { tile=$1; shift; $J exec --tile $tile t -- "$@"; }
pid() { $J list --json | python3 -c 'import json, sys; print([s for s in json.load(sys.stdin) if s["name"] == "t"][0]["tiles"][int(sys.argv[1])]["pid"])' $1; }
"#;

fn says(s: &Sandbox, body: &str, want: &str) -> Result<(), String> {
    let outcome = clean(s.start(script(s, &format!("{TOOLS}{body}")))?.wait()?)?;
    let said = text(&outcome);
    if said == want { Ok(()) } else { Err(format!("it says {said:?}, not {want:?}")) }
}

/// Members of pipelines are on all tiles, and nothing else about them is other than on one.
fn pipelines(s: &Sandbox) -> Result<(), String> {
    let body = r#"
run --tiles 2 --cores 1 --place spread -- bash -c 'seq 1000 | sort -n | tail -1'
run --tiles 3 --cores 1 --place spread -- sh -c 'said=$(for i in 1 2 3 4 5 6; do : | grep ^Tile /proc/self/status; done); echo "$said" | sort | uniq -c | tr -s " \t" " "'
run --tiles 2 --cores 1 --place spread -- bash -c '
  seq 300000 | cat | cat | cat | cksum; head -c 1000000 /dev/zero | cat | cat | wc -c
  yes | cat | head -2; echo ${PIPESTATUS[@]}
  seq 5 | sh -c "exit 3" | cat | sh -c "exit 4"; echo ${PIPESTATUS[@]:1}
  : | cat | sh -c "kill -TERM \$\$" | cat | sh -c "kill -KILL \$\$"; echo ${PIPESTATUS[@]:2}
  echo "a b" | (read x; echo $x; exec cat) | cat; printf "1\n2\n3\n" | (read x; cat | cat) | cat
  for i in $(seq 20); do echo $i | cat | cat; done | cksum; wait; echo end' 2>/dev/null
seq 300000 | cksum; seq 20 | cksum
"#;
    let outcome = clean(s.start(script(s, &format!("{TOOLS}{body}")))?.wait()?)?;
    let said = text(&outcome);
    let mut lines: Vec<&str> = said.lines().collect();
    // What the host computes stands last.
    let host = lines.split_off(lines.len().saturating_sub(2));
    let [long, short] = host[..] else { return Err(format!("it says {said:?}")) };
    #[rustfmt::skip]
    let want = ["1000", "2 Tile: 0", "2 Tile: 1", "2 Tile: 2", long, "1000000", "y", "y", "141 141 0", "3 0 4", "143 0 137", "a b", "2", "3", short, "end"];
    let same = lines.len() == want.len() && lines.iter().zip(want).all(|(line, want)| line.trim() == want);
    if same { Ok(()) } else { Err(format!("it says {said:?}, not {want:?}")) }
}

/// A program on a tile that is asked for: with its directory, environment, streams and status; or the reason why not.
fn exec(s: &Sandbox) -> Result<(), String> {
    let body = r#"
exec 2>&1; up 3
for tile in 0 1 2; do on $tile grep ^Tile /proc/self/status </dev/null | tr -s '\t' ' '; done
echo in | on 1 cat; on 2 sh -c 'echo err >&2; exit 7' 2>&1 </dev/null; echo $?
$J exec --tile 1 --cwd /usr --env A=5 t -- sh -c 'echo $PWD $A; ulimit -c 0; kill -SEGV $$' </dev/null; echo $?
on 1 bash -c 'seq 1000 | sort -n | tail -1; (exit 4); echo $?; for i in 1 2 3; do (sleep 0.1; exit $i) & done; wait; echo all' </dev/null
on 1 python3 -c 'import threading; l = []; t = [threading.Thread(target=l.append, args=(i,)) for i in range(8)]; [x.start() for x in t]; [x.join() for x in t]; print(sum(l))' </dev/null
on 1 nosuch </dev/null; echo $?
on 7 true </dev/null; echo $?
$J kill t
run -d --tiles 2 --cores 1 --name t -- sleep 1000 >/dev/null; on 1 true </dev/null; echo $?; $J kill t
"#;
    let want = "Tile: 0\nTile: 1\nTile: 2\nin\nerr\n7\n/usr 5\n139\n1000\n4\nall\n28\n\
                janua: nosuch: not on tile 1: no such file or directory (or its interpreter is missing) inside the sandbox\n126\n\
                janua: true: not on tile 7: there is no such tile\n126\n\
                janua: true: not on tile 1: the sandbox was not started with --place spread\n126\n";
    says(s, body, want)
}

/// Signals reach a process by its number and its group wherever it is, from wherever; stops and continuations are reported.
fn signals(s: &Sandbox) -> Result<(), String> {
    let program = r#"
import os, signal, subprocess, sys
SHOW = "while read key value; do test $key = Tile: && echo $key $value; done </proc/$$/status; "
def start(program):
    for turn in range(50):  # Each second program is placed.
        child = subprocess.Popen(["/bin/sh", "-c", SHOW + program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        if child.stdout.readline().split()[1] == b"1": return child
        child.kill(); child.communicate()
    sys.exit("not on tile 1")
def line(child): return child.stdout.readline().decode().strip()
signal.signal(signal.SIGUSR1, lambda *_: print("usr1"))
child = start("trap 'echo term' TERM; echo set; while :; do sleep 0.05; done")
print(line(child)); os.kill(child.pid, signal.SIGTERM); print(line(child))
os.kill(child.pid, signal.SIGSTOP); print(os.WIFSTOPPED(os.waitpid(child.pid, os.WUNTRACED)[1]))
os.kill(child.pid, signal.SIGCONT); print(os.WIFCONTINUED(os.waitpid(child.pid, os.WCONTINUED)[1]))
os.killpg(child.pid, signal.SIGKILL); print(child.wait())
child = start("echo $$ $PPID; read word; kill -USR1 $PPID; echo sent; kill -0 1 && echo init; kill -0 99999 || echo none; kill -TERM 0")
print(line(child) == "%d %d" % (child.pid, os.getpid())); child.stdin.write(b"go\n"); child.stdin.flush(); print(line(child)); print(line(child)); print(line(child), child.wait())
"#;
    std::fs::write(s.dir.join("signals.py"), program).map_err(|error| error.to_string())?;
    let body = "run --tiles 2 --cores 1 --place spread --bind .:/srv -- python3 -u /srv/signals.py 2>/dev/null\n";
    says(s, body, "set\nterm\nTrue\nTrue\n-9\nTrue\nusr1\nsent\ninit\nnone -15\n")
}

/// All tiles have the same files: those of the host, and nothing is changed that one kernel has for itself.
fn files(s: &Sandbox) -> Result<(), String> {
    let body = r#"
mkdir host; echo one >host/a
run -d --tiles 2 --cores 1 --place spread --name t --bind host:/srv:rw -- sleep 1000 >/dev/null
on 0 sh -c 'echo two >>/srv/a' </dev/null; on 1 sh -c 'cat /srv/a; echo three >>/srv/a; mkdir /srv/d' </dev/null; on 0 sh -c 'cat /srv/a; ls /srv' </dev/null
for tile in 0 1; do for at in / /tmp /dev /dev/shm; do on $tile sh -c "echo >$at/x" </dev/null 2>&1 | grep -c -i 'read-only'; done; done
on 1 sh -c 'echo hidden >/dev/null; seq 3 >/srv/seq; tail -1 /srv/seq >>/srv/seq; wc -l </srv/seq' </dev/null
on 1 sh -c 'cd /srv; rm -r d a; ls' </dev/null >>host/out; cat host/out
on 1 mount -t tmpfs none /mnt </dev/null 2>/dev/null || echo not
$J kill t
"#;
    says(s, body, "one\ntwo\none\ntwo\nthree\na\nd\n1\n1\n1\n1\n1\n1\n1\n1\n4\nout\nseq\nnot\n")
}

/// What runs on a tile that ends is killed, as its home has it; what runs elsewhere goes on.
fn killed(s: &Sandbox) -> Result<(), String> {
    let body = r#"
up 3; mkfifo fifo; exec 3<>fifo
on 1 sh -c 'echo up; exec sleep 1000' </dev/null >one 3>&- & first=$!
on 2 sh -c 'echo up; read word; echo $word' <fifo >two 3>&- & second=$!
for file in one two; do for i in $(seq 200); do grep -q up $file && break; sleep 0.1; done; done
kill -KILL $(pid 1); wait $first; echo $?
on 1 true </dev/null 2>/dev/null; echo $?; on 2 echo on </dev/null
echo over >&3; wait $second; echo $?; cat two
$J exec --tile 2 t -- sh -c 'echo up; exec sleep 1000' </dev/null >three 3>&- & third=$!
for i in $(seq 200); do grep -q up three && break; sleep 0.1; done; kill -TERM $third; wait $third; echo $?
$J kill t
"#;
    says(s, body, "137\n126\non\n0\nup\nover\n143\n")
}

/// A tile that writes what it likes into its channels with the home tile loses what runs there, and no more.
fn forged(s: &Sandbox) -> Result<(), String> {
    // Where a kernel has its link with tile 0, and in it the lanes that tile 1 writes, but the monitors' (gate/entry/src/hosted/mod.rs, port/src/tiles.rs).
    let body = r#"
up 3
on 1 sh -c 'echo up; exec sleep 1000' </dev/null >one & first=$!
for i in $(seq 200); do grep -q up one && break; sleep 0.1; done
python3 -c '
import os, sys
link = 0x553100000000
memory = os.open("/proc/%s/mem" % sys.argv[1], os.O_RDWR)
for channel in range(1, 15): os.pwrite(memory, b"\xff" * 2048, link + 128 + channel * 2 * 2112 + 2112)' $(pid 1)
for i in $(seq 100); do on 1 true </dev/null 2>/dev/null; kill -0 $first 2>/dev/null || break; sleep 0.1; done
wait $first; echo $?; on 2 echo on </dev/null; on 0 echo on </dev/null; $J kill t
"#;
    says(s, body, "137\non\non\n")
}
