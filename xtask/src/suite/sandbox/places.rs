//! Places and names: where a program starts, what its files and processes are called, what a foreign tree is given.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{Sandbox, clean, expect, shell, text, up};

/// A directory that is asked for is one the user may go to; what is wrong with it is said in words.
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
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| Path::new(path).exists()).ok_or("no busybox")?;
    fs::copy(busybox, root.join("bin/busybox")).map_err(|e| e.to_string())?;
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
    super::kill(processes.first(), super::Signal::TERM)?;
    clean(running.wait()?)?;
    match ["janua:sleep", "janua:tail"].into_iter().find(|wanted| !names.iter().any(|name| name == wanted)) {
        Some(missing) => Err(format!("no process is called {missing}: {names:?}")),
        None => Ok(()),
    }
}
