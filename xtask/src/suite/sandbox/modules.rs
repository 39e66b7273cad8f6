//! Modules: moved by request while they have calls, and what serves a ring that a program need not announce.

use super::running::script;
use super::{Sandbox, clean, expect, text};
use crate::suite::conformance;

/// What is moved while conformance programs run, and what is refused, with its reason.
pub fn moves(s: &Sandbox) -> Result<(), String> {
    let body = r#"
run -d --name m --syscall-cores 2 --modules kind --policy cohort,ipc=priority --handover always -- sleep 1000 >/dev/null
run -d --name h -- sleep 1000 >/dev/null
where() { $J stats --json m | python3 -c '
import json, sys
print(*["%s=%d,%s,%d" % (m["name"], m["core"], m["kept"], m["moved"]) for m in json.load(sys.stdin)[0]["modules"] if m["name"] in sys.argv])' "$@"; }
$J move m fs 1; $J move m ipc 0; echo $?; where fs ipc
$J move m fs 1; echo $?; $J move m fs 0; $J move m fs auto; echo $?; where fs
for bad in 'm fs 2' 'm fs 4294967295' 'm disk 0' 'm FS 0' 'm home 0' 'h all 0' 'nosuch fs 0'; do $J move $bad 2>&1; echo $?; done
$J pause m; $J move m fs 1 2>&1; echo $?; $J resume m
for bad in 'm fs -1' 'm fs one' 'm fs' 'm fs 4294967296'; do $J move $bad >/dev/null 2>&1; echo -n "$? "; done; echo
touch go; (n=0; while test -e go; do
    for module in fs ipc task time net mm; do $J move m $module $((n % 2)) || echo failed; n=$((n + 1)); done; n=$((n + 1))
done) >moved 2>&1 & mover=$!
for program in PROGRAMS; do
    mkdir outside; (cd outside; $program >../native 2>&1; echo $? >>../native)
    $J exec m -- sh -c "rm -rf inside; mkdir inside; cd inside; exec $program" >there 2>&1; echo $? >>there
    rm -r outside; cmp -s native there || { echo "$program differs"; diff native there; }
done
rm go; wait $mover; cat moved; where fs | python3 -c 'import sys; print(int(sys.stdin.read().split(",")[2]) > 5)'
$J kill m h
"#;
    let mut programs = Vec::new();
    let wanted = [
        "pipe/basics",
        "futex/basics",
        "poll/epoll",
        "time/sleeps",
        "fs/read_write",
        "fs/locks",
        "sock/unix_stream",
        "ring/files",
    ];
    for test in conformance::find()? {
        if test.variant.name == "glibc" && wanted.contains(&test.test.as_str()) {
            programs.push(conformance::build(&test)?.display().to_string());
        }
    }
    if programs.len() < 5 {
        return Err(format!("too few programs are there: {programs:?}"));
    }
    let outcome = clean(s.start(script(s, &body.replace("PROGRAMS", &programs.join(" "))))?.wait()?)?;
    let refused =
        |module: &str, name: &str, why: &str| format!("janua: the module {module} of {name} has not been moved: {why}\n125\n");
    let cores = "it has no syscall core 2: its cores are 0 to 1";
    let names = "it has no module of this name: its modules are fs, mm, ipc, task, time, net";
    let want = [
        "0\nfs=1,True,1 ipc=0,True,0\n0\n0\nfs=0,False,2\n",
        &refused("fs", "m", cores),
        &refused("fs", "m", &cores.replace("core 2", "core 4294967295")),
        &refused("disk", "m", names),
        &refused("FS", "m", names),
        &refused("home", "m", names),
        &refused("all", "h", "its calls are made at home: it has no modules (janua run --syscall-cores)"),
        "janua: there is no sandbox named nosuch\n       janua list shows those that run\n125\n",
        &refused("fs", "m", "the sandbox m is paused\n       let it go on with: janua resume m"),
        "2 2 2 2 \nTrue\n",
    ];
    let said = text(&outcome);
    if said == want.concat() { Ok(()) } else { Err(format!("it says\n{said}instead of\n{}", want.concat())) }
}

/// A ring that a program need not announce is looked into by a module, where there is one, and served as it is natively and without.
pub fn served(s: &Sandbox) -> Result<(), String> {
    for name in ["ring/sqpoll/glibc", "ring/sqpoll_more/glibc"] {
        let found = conformance::find()?.into_iter().find(|test| test.name == name);
        let test = found.ok_or_else(|| format!("{name} is not there"))?;
        let program = conformance::build(&test)?.display().to_string();
        // Where the host has no rings, what was not as it should be is seen in the output alone.
        let native = match test.too_new() {
            None => clean(s.start(vec![program.clone()])?.wait()?)?.output,
            Some(_) => Vec::new(),
        };
        serves(s, &program, &String::from_utf8_lossy(&native))?;
    }
    Ok(())
}

fn serves(s: &Sandbox, program: &str, native: &str) -> Result<(), String> {
    let fine = |said: &str| said.starts_with(native) && !said.lines().any(|line| line.starts_with("NO: "));
    let at_home = s.run(&["--stats"], &[program])?;
    if at_home.code != 0 || !fine(&text(&at_home)) || text(&at_home).contains("chores") {
        return Err(format!("without modules:\n{}instead of\n{native}", text(&at_home)));
    }
    for options in [&["--modules", "one"][..], &["--modules", "kind", "--policy", "priority"], &["--handover", "always"]] {
        let served = s.run(&[&["--syscall-cores", "1", "--stats"], options].concat(), &[program])?;
        expect(program, &served, 0, &["syscall core 0"])?;
        let said = text(&served);
        let chores = |line: &str| line.split_whitespace().last().and_then(|word| word.parse::<u64>().ok());
        let mut modules = said.lines().skip_while(|line| !line.starts_with("module policy"));
        let looked = modules.find(|line| line.starts_with("fs ") || line.starts_with("all ")).and_then(chores);
        // It has submissions, and is looked into in vain for a while.
        if looked.is_none_or(|looked| looked < 20) || !fine(&said) {
            return Err(format!("{options:?}: {looked:?} looks\n{said}instead of\n{native}"));
        }
    }
    Ok(())
}

/// Files on a disk are written back by workers where others wait: for a ring, and for a module; what the program sees is the same. At home they are not.
pub fn written_back(s: &Sandbox) -> Result<(), String> {
    let found = conformance::find()?.into_iter().find(|test| test.name == "ring/sync/glibc");
    let test = found.ok_or("ring/sync is not there")?;
    let program = conformance::build(&test)?.display().to_string();
    let at = s.dir.join("written-back");
    std::fs::create_dir_all(&at).map_err(|e| format!("{}: {e}", at.display()))?;
    let bind = format!("{}:/tmp/written-back:rw", at.display());
    let here = ["--bind", &bind, "--cwd", "/tmp/written-back", "--stats"];
    let handed = |said: &str| {
        let count = said.lines().find_map(|line| line.strip_prefix("workers: ")?.split_once(' ')?.0.parse::<u64>().ok());
        count.unwrap_or(0)
    };
    // Where the host has no rings, what was not as it should be is seen in the output alone.
    let native = match test.too_new() {
        None => text(&clean(s.start(vec![program.clone()])?.wait()?)?),
        Some(_) => String::new(),
    };
    // More than the calls that are no ring's.
    for (options, least) in [(&[][..], 48), (&["--syscall-cores", "1", "--handover", "always"][..], 52)] {
        let outcome = s.run(&[&here[..], options].concat(), &[program.as_str()])?;
        let said = text(&outcome);
        let fine = outcome.code == 0 && said.starts_with(&native) && !said.lines().any(|line| line.starts_with("NO: "));
        if !fine || handed(&said) < least {
            return Err(format!("{options:?}: code {}\n{said}instead of\n{native}", outcome.code));
        }
    }
    let own = s.run(
        &here,
        &[
            "/bin/busybox",
            "sh",
            "-c",
            "sync && busybox dd if=/dev/zero of=file bs=1 count=1 conv=fsync 2>/dev/null && echo synced",
        ],
    )?;
    expect("at home", &own, 0, &["synced"])?;
    if handed(&text(&own)) != 0 {
        return Err(format!("a worker has done what the thread could do itself:\n{}", text(&own)));
    }
    Ok(())
}
