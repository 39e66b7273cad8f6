//! Kernels side by side: `janua run --tiles`.

use super::running::script;
use super::{Sandbox, clean, text};

/// What all gates and jails must do.
pub const TESTS: &[super::Test] = &[
    ("sandbox/tiles_run", run),
    ("sandbox/tiles_supervisor_killed", supervisor_killed),
    ("sandbox/tiles_kernel_killed", kernel_killed),
    ("sandbox/tiles_first_killed", first_killed),
    ("sandbox/tiles_forged", forged),
    ("sandbox/tiles_paused", paused),
    ("sandbox/tiles_most", most),
    ("sandbox/tiles_other_user", other_user),
    ("sandbox/tiles_refused", refused),
];

/// `tiles` prints what the first tile's monitor knows of the others, `pid N` the number of a tile's supervisor, `kernel N` that of the process of an idle tile's kernel, the
/// last one its supervisor has made; `listen N` waits until so many other tiles answer, `gone N` until a tile is listed as ended. What is ended is ended by its number.
const TOOLS: &str = r#"
export J
tiles() { $J stats t --json | python3 -c 'import json, sys; print(*["%d %s" % (t["tile"], t["state"]) for t in json.load(sys.stdin)[0]["tiles"]], sep=", ")'; }
pid() { $J list --json | python3 -c 'import json, sys; print([s for s in json.load(sys.stdin) if s["name"] == "t"][0]["tiles"][int(sys.argv[1])]["pid"])' $1; }
kernel() { at=$(pid $1); tr ' ' '\n' </proc/$at/task/$at/children | grep . | tail -n 1; }
listen() { for i in $(seq 200); do test $(tiles | tr , '\n' | grep -c listens) = $1 && return; sleep 0.1; done; echo not all listen: $(tiles); }
gone() { for i in $(seq 200); do $J list --json | grep -q "\"tile\":$1,[^}]*\"ended\":\"" && return; sleep 0.1; done; echo tile $1 is not gone; }
"#;

fn says(s: &Sandbox, body: &str, want: &str) -> Result<(), String> {
    let outcome = clean(s.start(script(s, &format!("{TOOLS}{body}")))?.wait()?)?;
    let said = text(&outcome);
    if said == want { Ok(()) } else { Err(format!("it says {said:?}, not {want:?}")) }
}

/// The program runs as ever: streams, exit codes, signals; the others are reported on at the end.
fn run(s: &Sandbox) -> Result<(), String> {
    let body = r#"
run --tiles 2 --cores 1 -- sh -c 'seq 1000 | sort -n | tail -1; exit 3'; echo $?
echo in | run --tiles 2 --cores 1 --place local -- cat
run --tiles 2 -- sh -c 'ulimit -c 0; kill -SEGV $$'; echo $?
run --tiles 2 -- nosuch 2>/dev/null; echo $?
run --tiles 3 --stats -- true 2>&1 | grep -c '^tile [12]: there, [0-9]* messages heard, [0-9]* said$'
run --tiles 2 --time 1s -- sleep 100 2>/dev/null; echo $?
"#;
    says(s, body, "1000\n3\nin\n139\n127\n2\n124\n")
}

/// A tile whose supervisor is killed is reported by its number; the program and the third tile go on.
fn supervisor_killed(s: &Sandbox) -> Result<(), String> {
    let body = r#"
mkfifo fifo; exec 3<>fifo
run --tiles 3 --cores 1 --name t -- sh -c 'read word; echo $word' 2>said <fifo 3>&- & first=$!
for i in $(seq 200); do $J list -q | grep -qx t && break; sleep 0.1; done
listen 2; tiles; kill -KILL $(pid 1); gone 1; tiles; $J exec t -- echo on
echo over >&3; wait $first; echo $?; cat said
"#;
    let want = "1 listens, 2 listens\n1 ended, 2 listens\non\nover\n0\n\
                janua: tile 1 has ended: its supervisor was killed; the others go on\n";
    says(s, body, want)
}

/// So is one that loses its kernel.
fn kernel_killed(s: &Sandbox) -> Result<(), String> {
    let body = r#"
run -d --tiles 3 --cores 1 --name t -- sleep 100; listen 2
kill -KILL $(kernel 2); gone 2; tiles; $J exec t -- echo on
$J logs t | sed 's/process [0-9]*/process N/'; $J kill t
"#;
    let want = "t\n1 listens, 2 ended\non\n\
                janua: tile 2 has ended: host process N of it was killed by signal 9; the others go on\n";
    says(s, body, want)
}

/// When the first supervisor is killed nothing is left of the others.
fn first_killed(s: &Sandbox) -> Result<(), String> {
    let body = r#"
run -d --tiles 3 --cores 1 --name t -- sleep 100; listen 2
first=$(pid 0); second=$(pid 1); third=$(kernel 2); kill -KILL $first
for i in $(seq 200); do test -e /proc/$second/exe || test -e /proc/$third/exe || break; sleep 0.1; done
for pid in $second $third; do test -e /proc/$pid/exe && echo $pid is left; done; echo over
"#;
    says(s, body, "t\nover\n")
}

/// A tile that writes what it likes into the memory it shares is not heard any more, by the tile it did it to; nobody else notices.
fn forged(s: &Sandbox) -> Result<(), String> {
    // Where a kernel has its link with tile 0, and in it the lane that tile 1 writes (gate/entry/src/hosted/mod.rs, port/src/tiles.rs).
    let body = r#"
run -d --tiles 3 --cores 1 --name t -- sleep 100; listen 2
python3 -c '
import os, sys
link = 0x553100000000
memory = os.open("/proc/%s/mem" % sys.argv[1], os.O_RDWR)
os.pwrite(memory, b"\xff" * 2048, link + 128 + 2112)' $(kernel 1)
for i in $(seq 200); do tiles | grep -q '1 broken' && break; sleep 0.1; done
tiles; $J exec t -- echo on; $J list --json | grep -o '"ended":[^}]*'; $J kill t
"#;
    says(s, body, "t\n1 broken, 2 listens\non\n\"ended\":null\n\"ended\":null\n\"ended\":null\n")
}

/// A sandbox is paused with all its tiles.
fn paused(s: &Sandbox) -> Result<(), String> {
    let body = r#"
run -d --tiles 2 --cores 1 --name t -- sleep 100; listen 1; kernel=$(kernel 1)
$J pause t; cut -d' ' -f3 /proc/$kernel/stat; $J resume t; listen 1; tiles
kill -STOP $(pid 1); tiles; kill -CONT $(pid 1); $J kill t
"#;
    // A tile's kernel goes on without its supervisor.
    says(s, body, "t\nT\n1 listens\n1 listens\n")
}

/// As many tiles as there may be, more than there are processors.
fn most(s: &Sandbox) -> Result<(), String> {
    let body = r#"
run -d --tiles 16 --cores 1 --name t -- sleep 100; listen 15
$J list --json | grep -o '"ended":null' | wc -l; $J kill t; $J list -q
"#;
    says(s, body, "t\n16\n")
}

/// Nothing of it needs root.
fn other_user(s: &Sandbox) -> Result<(), String> {
    let body = r#"
other=; test $(id -u) = 0 && other="setpriv --reuid 65534 --regid 65534 --clear-groups"
(cd /; run_as() { $other env -u XDG_RUNTIME_DIR HOME=/ "$@"; }; run_as $LINE --tiles 3 --cores 1 -- sh -c 'id -u; seq 10 | tail -1' | sed s/^$(id -u)\$/65534/)
"#;
    let line = s.line(&[], &[]);
    let line = line[..line.len() - 1].join(" ");
    says(s, &format!("LINE='{line}'\n{body}"), "65534\n10\n")
}

/// What cannot be had is refused with the reason.
fn refused(s: &Sandbox) -> Result<(), String> {
    let body = r#"
for bad in '--tiles 17' '--tiles 2 --cores 64' '--cores 1' '--tiles 2 --syscall-cores 1' '--tiles 0'; do
  run $bad -- true 2>/dev/null; echo $?
done
"#;
    says(s, body, &"125\n".repeat(5))
}
