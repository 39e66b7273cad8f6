//! Places and names: where a program starts, what its files and processes are called, what a foreign tree is given.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::{Sandbox, clean, expect, shell, text, up};

/// A directory that is asked for is one the user may go to; what is wrong with it is reported in words.
pub fn working_directory(s: &Sandbox) -> Result<(), String> {
    let closed = s.dir.join("closed");
    fs::create_dir(&closed).map_err(|e| e.to_string())?;
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o600)).map_err(|e| e.to_string())?;
    let closed = closed.display().to_string();
    let file = s.file("file", b"", 0o644)?;
    let line = |cwd: &str| s.line(&["--cwd", cwd], &["/bin/pwd"]).join("' '");
    // Root may go everywhere, so somebody else tries.
    let other = if rustix::process::getuid().is_root() { "setpriv --reuid 65534 --regid 65534 --clear-groups" } else { "" };
    for (by, cwd, words) in [
        (other, closed.as_str(), "permission denied"),
        ("", file.as_str(), "not a directory"),
        ("", "/no/such/place", "there is no such"),
    ] {
        let script = format!("cd /; {by} '{}'", line(cwd));
        let outcome = clean(s.start(vec!["/bin/sh".into(), "-c".into(), script])?.wait()?)?;
        expect(cwd, &outcome, 125, &[cwd, words])?;
    }
    // One that was inherited needs no leave.
    let here = s.line(&[], &["/bin/pwd"]).join("' '");
    let said = shell(s, format!("cd {closed}/. 2>/dev/null; '{here}'"))?;
    if said.trim_end().starts_with('/') { Ok(()) } else { Err(said) }
}

/// Standard files are called what they are called outside, where that means the same; pipes are pipes.
pub fn file_names(s: &Sandbox) -> Result<(), String> {
    let inside = s.line(&[], &["/bin/sh", "-c", "readlink /proc/$$/fd/0 /proc/$$/fd/1; true"]).join("' '");
    let named = shell(s, format!("'{inside}' </dev/null >names; cat names"))?;
    let want = format!("/dev/null\n{}\n", s.dir.join("names").display());
    if named != want {
        return Err(format!("{named:?}, not {want:?}"));
    }
    let piped = shell(s, format!("true | '{inside}' | cat"))?;
    if piped.lines().count() == 2 && piped.lines().all(|line| line.starts_with("pipe:[")) { Ok(()) } else { Err(piped) }
}

/// A foreign tree gets the names of the machine where it has none, and keeps what it has; nothing is left in it.
pub fn generated_files(s: &Sandbox) -> Result<(), String> {
    let root = s.dir.join("root");
    fs::create_dir_all(root.join("bin")).map_err(|e| e.to_string())?;
    crate::suite::boot::add_busybox(&root, "bin/busybox")?;
    let at = root.display().to_string();
    let show = ["/bin/busybox", "sh", "-c", "/bin/busybox cat /etc/hosts /etc/hostname; /bin/busybox hostname"];
    let outcome = s.run(&["--root", &at], &show)?;
    expect("what was made", &outcome, 0, &["127.0.0.1\tlocalhost"])?;
    let said = text(&outcome);
    let last: Vec<&str> = said.lines().rev().take(2).collect();
    if last[0] != last[1] || root.join("etc").exists() {
        return Err(format!("the names differ, or are left in the tree:\n{said}"));
    }
    fs::create_dir(root.join("etc")).map_err(|e| e.to_string())?;
    fs::write(root.join("etc/hosts"), "10.0.0.1 mine\n").map_err(|e| e.to_string())?;
    let outcome = s.run(&["--root", &at], &show)?;
    expect("what is kept", &outcome, 0, &["10.0.0.1 mine"])?;
    if text(&outcome).contains("localhost") { Err(text(&outcome)) } else { Ok(()) }
}

/// Who looks from outside can tell the programs apart.
pub fn process_names(s: &Sandbox) -> Result<(), String> {
    let running = up(s, "sleep 1000 & touch ready; exec tail -f /dev/null")?;
    let processes = running.processes();
    let name = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let names: Vec<String> = processes.iter().map(|pid| name(pid).trim_end().to_owned()).collect();
    super::kill(processes.first(), rustix::process::Signal::TERM)?;
    clean(running.wait()?)?;
    match ["janua:sleep", "janua:tail"].into_iter().find(|wanted| !names.iter().any(|name| name == wanted)) {
        Some(missing) => Err(format!("no process is called {missing}: {names:?}")),
        None => Ok(()),
    }
}

/// /sys describes this kernel's network and processors: in a foreign tree, and over the host's own.
pub fn sys(s: &Sandbox) -> Result<(), String> {
    let root = s.dir.join("root");
    fs::create_dir_all(root.join("bin")).map_err(|e| e.to_string())?;
    crate::suite::boot::add_busybox(&root, "bin/busybox")?;
    let script = "cd /sys/class/net; b=/bin/busybox; [ -x $b ] || b=/usr/bin/busybox; $b ls; $b cat lo/mtu lo/type; $b ls /sys/1 2>/dev/null; $b grep -c . /sys/devices/system/cpu/online";
    let at = root.display().to_string();
    let shells: [(&[&str], &[&str]); 2] =
        [(&["--root", &at, "--cwd", "/"], &["/bin/busybox", "sh", "-c", script]), (&[], &["/bin/sh", "-c", script])];
    for (options, program) in shells {
        let outcome = s.run(options, program)?;
        if text(&outcome) != "lo\n65536\n772\n1\n" {
            return Err(format!("{options:?}: {}", text(&outcome)));
        }
    }
    // Nothing there takes a setting, and nothing pretends to.
    let script = "for b in /bin/busybox /usr/bin/busybox; do [ -x $b ] && break; done
        for d in /sys /sys/devices; do $b mkdir $d/made 2>/dev/null && echo made $d; $b mkdir $d/made 2>&1; done | $b grep -c -e 'Read-only file system' -e 'Operation not permitted'
        [ -d /sys/made ] || [ -d /sys/devices/made ] && echo there; [ -r /sys/class/net/lo/mtu ] && echo read";
    let shells: [(&[&str], &[&str]); 2] =
        [(&["--root", &at, "--cwd", "/"], &["/bin/busybox", "sh", "-c", script]), (&[], &["/bin/sh", "-c", script])];
    for (options, program) in shells {
        let outcome = s.run(options, program)?;
        // The words of the refusal in a tree without the host's /sys are the file system's own.
        let wanted = if options.is_empty() { text(&outcome) == "2\nread\n" } else { !text(&outcome).contains("there") };
        if !wanted || !text(&outcome).ends_with("read\n") {
            return Err(format!("written, {options:?}: {}", text(&outcome)));
        }
    }
    Ok(())
}

/// A bind at / is the root; a writable one keeps what is written.
pub fn writable_root(s: &Sandbox) -> Result<(), String> {
    let root = s.dir.join("root");
    for dir in ["bin", "proc", "dev/shm"] {
        fs::create_dir_all(root.join(dir)).map_err(|e| e.to_string())?;
    }
    crate::suite::boot::add_busybox(&root, "bin/busybox")?;
    let bind = |rights: &str| format!("{}:/:{rights}", root.display());
    let program = ["/bin/busybox", "sh", "-c", "echo kept >/made; busybox=/bin/busybox; $busybox cat /made"];
    expect("writable", &s.run(&["--bind", &bind("rw"), "--cwd", "/"], &program)?, 0, &["kept"])?;
    if fs::read_to_string(root.join("made")).ok().as_deref() != Some("kept\n") {
        return Err("what was written below a writable root is lost".into());
    }
    fs::remove_file(root.join("made")).map_err(|e| e.to_string())?;
    expect("read-only", &s.run(&["--bind", &bind("ro"), "--cwd", "/"], &program)?, 0, &["kept"])?;
    if root.join("made").exists() {
        return Err("a read-only root was written to".into());
    }
    let root = root.display().to_string();
    expect("two roots", &s.run(&["--root", &root, "--bind", &bind("rw")], &["/bin/busybox"])?, 125, &["another root"])?;
    expect("the host's", &s.run(&["--bind", "/:/:rw"], &["/bin/true"])?, 125, &["cannot be made writable"])
}

/// Files of a writable bind: writers that append lose nothing of one another's, inside and outside, and who writes to a program takes
/// its set-ID bits, whichever user runs the sandbox.
pub fn shared_files(s: &Sandbox) -> Result<(), String> {
    const LINES: usize = 3000;
    let dir = s.dir.join("shared");
    fs::create_dir(&dir).map_err(|e| e.to_string())?;
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).map_err(|e| e.to_string())?;
    let at = dir.display().to_string();
    let append = format!("i=0; while [ $i -lt {LINES} ]; do echo 0123456789abcde; i=$((i+1)); done >>{at}/log");
    let inside =
        s.line(&["--bind", &format!("{at}:{at}:rw")], &["/bin/sh", "-c", &format!("({append})& ({append})& wait")]).join("' '");
    shell(s, format!("({append})& '{inside}'; wait"))?;
    let size = fs::metadata(dir.join("log")).map_err(|e| e.to_string())?.len();
    if size != 3 * 16 * LINES as u64 {
        return Err(format!("{size} bytes of {}", 3 * 16 * LINES));
    }
    // One file, wherever it is shown: numbers, and locks.
    let twice = ["--bind", &format!("{at}:/tmp/one:rw"), "--bind", &format!("{at}:/tmp/two")];
    let script =
        "cd /tmp; [ one/log -ef two/log ] && [ \"$(stat -c %d:%i one/log)\" = \"$(stat -c %d:%i two/log)\" ] && echo same;
        exec 8>>one/log; flock -n 8 && ! flock -n two/log true && echo locked";
    expect("two binds", &s.run(&twice, &["/bin/sh", "-c", script])?, 0, &["same", "locked"])?;
    if !rustix::process::getuid().is_root() {
        return Ok(());
    }
    let set = format!("cd {at}; echo >prog; chmod 6777 prog");
    let write = "setpriv --reuid 65534 --regid 65534 --clear-groups sh -c";
    for change in ["echo more >>prog", "echo new >prog", "dd if=/dev/zero of=prog bs=1 count=1 conv=notrunc 2>/dev/null"] {
        let script = format!("{set}; {write} '{change}'; stat -c %a prog");
        let outcome = s.run(&["--bind", &format!("{at}:{at}:rw")], &["/bin/sh", "-c", &script])?;
        expect(change, &outcome, 0, &["777"])?;
        if text(&outcome).trim_end() != "777" {
            return Err(format!("{change}: {}", text(&outcome)));
        }
    }
    Ok(())
}

/// Names of one file of a bind that come and go: what is left can be read, linked, moved and followed, as it can natively.
pub fn hard_links(s: &Sandbox) -> Result<(), String> {
    let script = "mkdir -p x/sub; cd x; ln -s nowhere one; ln -P one two; readlink one two; rm two; readlink one; ln -P one two
        rm one; readlink two; stat -c %h two; echo text >sub/f; ln -s sub/f s1; ln -P s1 sub/s2; rm s1; readlink sub/s2
        ln sub/f a; ln a sub/b; cat a; rm a; cat sub/b; ln sub/b c; mv c sub/d; cat sub/f sub/d; rm sub/b; ln sub/d e; rm sub/d
        stat -c %h e; chmod 600 e; touch e; stat -c %a sub/f; mv sub other; ln other/f g; cat e g; rm e; ln g h; stat -c %h h
        echo more >i; ln i j; rm i; cat j; ln j k; mv k l; rm j; cat l; stat -c %h l";
    let run = |line: &dyn Fn(String) -> Result<String, String>, name: &str| {
        let dir = s.dir.join(name);
        fs::create_dir(&dir).map_err(|e| e.to_string())?;
        line(dir.display().to_string())
    };
    let native = run(&|at| shell(s, format!("cd {at}; {{ {script}; }} 2>&1")), "native")?;
    let bind =
        |at: String| Ok(text(&s.run(&["--bind", &format!("{at}:/mnt:rw"), "--cwd", "/mnt"], &["/bin/sh", "-c", script])?));
    let inside = run(&bind, "bind")?;
    if native == inside && native.lines().count() == 18 { Ok(()) } else { Err(format!("natively:\n{native}inside:\n{inside}")) }
}

/// A file of a bind whose name somebody outside gives to a directory, and takes away: what is below is found, then not there.
pub fn replaced_outside(s: &Sandbox) -> Result<(), String> {
    let dir = s.dir.join("replaced");
    fs::create_dir(&dir).map_err(|e| e.to_string())?;
    let at = dir.display().to_string();
    // Each side waits for the other's mark.
    let inside = "cd /mnt; echo >f; until cat f/x 2>/dev/null; do [ -e one ] || cat f/x f/; echo >one; sleep 0.01; done
        until [ -e three ]; do echo >two; sleep 0.01; done; cat f/x; true";
    let inside = s.line(&["--bind", &format!("{at}:/mnt:rw")], &["/bin/sh", "-c", inside]).join("' '");
    let outside = "until [ -e one ]; do sleep 0.01; done; mkdir g; echo found >g/x; rm f; mv g f
        until [ -e two ]; do sleep 0.01; done; rm -r f; echo >three";
    let said = shell(s, format!("cd {at}; ({outside})& timeout 20 '{inside}' 2>&1; wait"))?;
    let want = "cat: f/x: Not a directory\ncat: f/: Not a directory\nfound\ncat: f/x: No such file or directory\n";
    if said == want { Ok(()) } else { Err(said) }
}

/// A working directory that another tree does not hold is /, and that is reported; one that a bind shows is kept.
pub fn foreign_directory(s: &Sandbox) -> Result<(), String> {
    let root = s.dir.join("root");
    fs::create_dir_all(root.join("bin")).map_err(|e| e.to_string())?;
    crate::suite::boot::add_busybox(&root, "bin/busybox")?;
    let (root, here) = (root.display().to_string(), s.dir.display().to_string());
    let bind = format!("{here}:{here}");
    let pwd = ["/bin/busybox", "pwd"];
    for (options, wanted) in [
        (
            &["--root", &root][..],
            format!(
                "janua: {here} is not inside {root}; the program starts in / (--cwd DIR starts elsewhere, and --cwd / without this line)\n/\n"
            ),
        ),
        (&["--root", &root, "--cwd", "/"], "/\n".into()),
        (&["--root", &root, "--cwd", "/bin"], "/bin\n".into()),
        (&["--root", &root, "--bind", &bind], format!("{here}\n")),
    ] {
        let outcome = s.run(options, &pwd)?;
        if text(&outcome) != wanted {
            return Err(format!("{options:?}: {:?}, not {wanted:?}", text(&outcome)));
        }
    }
    Ok(())
}

/// Programs of another tree do not see the caller's environment, but for what is passed on.
pub fn foreign_environment(s: &Sandbox) -> Result<(), String> {
    let root = s.dir.join("root");
    fs::create_dir_all(root.join("bin")).map_err(|e| e.to_string())?;
    crate::suite::boot::add_busybox(&root, "bin/busybox")?;
    let root = root.display().to_string();
    let janua = s.line(&["--root", &root, "--env", "PASSED", "--env", "SET=here"], &["/bin/busybox", "env"]).join("' '");
    let (own, other) = if rustix::process::geteuid().is_root() {
        ("HOME=/root\n", "setpriv --reuid 65534 --regid 65534 --clear-groups")
    } else {
        ("HOME=/\n", "")
    };
    for (by, home) in [("", own), (other, "HOME=/\n")] {
        let script = format!("export SECRET=x PASSED=on; exec {by} '{janua}'");
        let outcome = clean(s.start(vec!["/bin/sh".into(), "-c".into(), script])?.wait()?)?;
        expect("an environment", &outcome, 0, &["PASSED=on\n", "SET=here\n", home, "PATH=/usr/local/sbin"])?;
        let said = text(&outcome);
        if said.contains("SECRET") {
            return Err(format!("the secret is seen:\n{said}"));
        }
    }
    Ok(())
}
