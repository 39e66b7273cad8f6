//! The bare machine's disk: each test is a few runs of QEMU on one image, and the host's own checker has the last word on it.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use super::boot::LIMIT;
use super::compare;
use crate::guard::Run;
use crate::tally::Tally;
use crate::{build, process};

type Test = fn(&Bench<'_>) -> Result<(), String>;

const TESTS: &[(&str, Test)] = &[
    ("boot/disk/keeps", keeps),
    ("boot/disk/work", work),
    ("boot/disk/large", large),
    ("boot/disk/full", full),
    ("boot/disk/mapped", mapped),
    ("boot/disk/cores", cores),
    ("boot/disk/power-cut", power_cut),
    ("boot/disk/corrupt", corrupt),
    ("boot/disk/damage", damage),
    ("boot/disk/foreign", foreign),
];

/// What a run prints when the one before was cut off.
const RECOVERED: &str = "janua: ext4: vda was not left properly: its journal has been replayed\n";

pub fn run(filter: Option<&str>, image: &Path, dir: &Path, tally: &mut Tally) {
    for (name, test) in TESTS.iter().filter(|(name, _)| super::wanted(filter, name)) {
        let bench = Bench { image, dir, disk: dir.join("disk.img").display().to_string() };
        let _ = fs::remove_file(&bench.disk);
        tally.check(name, test(&bench));
    }
}

/// A program of e2fsprogs, which not everybody's PATH leads to.
fn tool(name: &str) -> Command {
    let place = ["/usr/sbin", "/sbin"].iter().map(|dir| Path::new(dir).join(name)).find(|path| path.is_file());
    place.map_or_else(|| Command::new(name), Command::new)
}

/// A kernel and a place for a disk.
struct Bench<'a> {
    image: &'a Path,
    dir: &'a Path,
    disk: String,
}

impl Bench<'_> {
    fn outcome(&self, command: Vec<String>) -> Result<(String, i32), String> {
        let env = vec![("JANUA_IMAGE_X86_64".to_string(), self.image.display().to_string())];
        let outcome = Run { command, dir: self.dir, env, limit: LIMIT, terminal: None }.outcome(&self.dir.join("report"))?;
        let output = String::from_utf8_lossy(&outcome.output).into_owned();
        if outcome.timeout {
            return Err(format!("not done after {LIMIT} s; it wrote:\n{output}"));
        }
        Ok((output, outcome.code))
    }

    /// Boots with the disk and options, and runs a shell script: output and exit code.
    fn boot(&self, options: &[&str], script: &str) -> Result<(String, i32), String> {
        let janua = build::janua().display().to_string();
        let mut command = vec![janua, "boot".into(), "--disk".into(), self.disk.clone()];
        command.extend(options.iter().map(ToString::to_string));
        command.extend(["--".into(), "/bin/sh".into(), "-c".into(), script.into()]);
        self.outcome(command)
    }

    /// The same, on a disk that exists or is made first, with what it must write; exit code 0.
    fn expect(&self, script: &str, output: &str) -> Result<(), String> {
        let (said, code) = self.boot(&["--disk-size", "128M"], script)?;
        let said = match said.split_once('\n') {
            Some((line, rest)) if line.starts_with("janua: made ") => rest.to_string(),
            _ => said,
        };
        if said != output {
            return Err(compare::difference(output.as_bytes(), said.as_bytes()));
        }
        if code == 0 { Ok(()) } else { Err(format!("exit code {code}; it wrote:\n{said}")) }
    }

    /// The host's checker finds nothing to complain of.
    fn check(&self) -> Result<(), String> {
        let mut command = tool("e2fsck");
        let said = command.args(["-f", "-n", &self.disk]).output().map_err(|error| format!("e2fsck (e2fsprogs): {error}"))?;
        match said.status.code() {
            Some(0) => Ok(()),
            _ => Err(format!("e2fsck finds:\n{}", String::from_utf8_lossy(&said.stdout))),
        }
    }

    /// Overwrites bytes of the image.
    fn spoil(&self, at: u64, bytes: &[u8]) -> Result<(), String> {
        let described = |error: std::io::Error| format!("{}: {error}", self.disk);
        OpenOptions::new().write(true).open(&self.disk).and_then(|file| file.write_all_at(bytes, at)).map_err(described)
    }
}

fn keeps(bench: &Bench<'_>) -> Result<(), String> {
    bench.expect("echo hi > /f; sync; grep ' / ' /proc/mounts", "/dev/vda / ext4 rw,relatime 0 0\n")?;
    bench.check()?;
    // Without sync: the end of the machine is one.
    bench.expect("cat /f; echo more >> /f; chmod 4711 /f; ln /f /g; ln -s f /s; mkdir -p /d/e; mknod /p p", "hi\n")?;
    bench.check()?;
    bench.expect(
        "cat /s; stat -c '%a %h %s %F' /g; readlink /s; stat -c %F /p; ls /d; rm -r /f /g /s /d /p; ls -d /f; true",
        "hi\nmore\n4711 2 8 regular file\nf\nfifo\ne\nls: /f: No such file or directory\n",
    )?;
    bench.check()
}

fn work(bench: &Bench<'_>) -> Result<(), String> {
    bench.expect(
        "cp -r /bin /copy && tar cf /t.tar copy && mkdir /out && tar xf /t.tar -C /out && cmp /bin/busybox /out/copy/busybox \
         && /out/copy/sh -c 'echo runs from the disk' && mv /out/copy /moved && rm -r /copy /out && rm /t.tar && ls /moved | wc -l > /n \
         && [ $(cat /n) = $(ls /bin | wc -l) ] && find /moved -type l | xargs rm && ls /moved",
        "runs from the disk\nbusybox\n",
    )?;
    bench.check()?;
    bench.expect("cmp /bin/busybox /moved/busybox && echo same", "same\n")?;
    bench.check()
}

fn large(bench: &Bench<'_>) -> Result<(), String> {
    bench.expect(
        "echo far | dd of=/sparse bs=1M seek=5000 conv=notrunc 2>/dev/null; stat -c '%s' /sparse; [ $(du -k /sparse | cut -f1) -lt 100 ] && echo sparse; \
         d=/; for i in $(seq 1 50); do d=$d/d$i; mkdir $d; done; echo deep > $d/leaf; \
         mkdir /many; for i in $(seq 1 300); do echo $i > /many/$i; done",
        "5242880004\nsparse\n",
    )?;
    bench.check()?;
    bench.expect(
        "dd if=/sparse bs=1M skip=5000 2>/dev/null; dd if=/sparse bs=1 skip=5242879990 count=10 2>/dev/null | tr '\\0' z; echo; \
         find /d1 -name leaf | xargs cat; cat /many/* | sort -n | tail -1; cat /many/* | wc -l",
        "far\nzzzzzzzzzz\ndeep\n300\n300\n",
    )?;
    bench.check()
}

fn full(bench: &Bench<'_>) -> Result<(), String> {
    bench.expect(
        "echo kept > /kept; dd if=/dev/zero of=/big bs=64k 2>&1 | grep -o 'No space left on device'; sync; rm /big; \
         dd if=/dev/zero of=/again bs=1M count=8 2>/dev/null && echo room; cat /kept",
        "No space left on device\nroom\nkept\n",
    )?;
    bench.check()?;
    bench.expect("cat /kept; stat -c %s /again", "kept\n8388608\n")
}

/// A file larger than the memory is mapped: its pages come when they are touched, and go for others; what is stored lasts.
fn mapped(bench: &Bench<'_>) -> Result<(), String> {
    let tree = bench.dir.join("mapped");
    compare::fresh(&tree)?;
    fs::create_dir_all(tree.join("bin")).map_err(|error| format!("{}: {error}", tree.display()))?;
    let mut command = Command::new("musl-gcc");
    command.args(["-static", "-O1", "-o"]).arg(tree.join("bin/mapped"));
    command.arg(crate::workspace::root().join("test/boot/mapped.c"));
    process::step("boot-mapped", "compiling test/boot/mapped.c", &mut command)?;
    let run = |what: &str| {
        let janua = build::janua().display().to_string();
        let tree = tree.display().to_string();
        let words = [&janua, "boot", "--disk", &bench.disk, "--disk-size", "192M", "--ramfs", &tree, "--memory", "64", "--"];
        let (said, code) =
            bench.outcome([&words[..], &["/bin/mapped", what]].concat().iter().map(ToString::to_string).collect())?;
        if code == 0 { Ok(said) } else { Err(format!("{what}: exit code {code}; it wrote:\n{said}")) }
    };
    run("make")?;
    let said = run("map")?;
    let expected = "before: 0\ntouched: 1\na few: 1\nwrong: 0\nwrong: 0\nleft some: 1\n";
    if said != expected {
        return Err(compare::difference(expected.as_bytes(), said.as_bytes()));
    }
    run("store")?;
    bench.check()?;
    let said = run("stored")?;
    if said.is_empty() { bench.check() } else { Err(said) }
}

/// Four cores work on the disk at once.
fn cores(bench: &Bench<'_>) -> Result<(), String> {
    const SCRIPT: &str = "for j in 1 2 3 4; do (mkdir /d$j; cd /d$j; for n in 1 2 3 4; do \
         dd if=/dev/urandom of=a$n bs=64k count=8 2>/dev/null; cp a$n b$n; mkdir -p t$n/u; for k in 1 2 3 4; do echo $k > t$n/u/$k; done; \
         tar cf x$n.tar t$n; rm -r t$n; tar xf x$n.tar; cmp a$n b$n; [ $n = 2 ] && sync; mv b$n c$n; ln c$n l$n; rm a$n; cat t$n/u/* | tail -1; \
         md5sum c$n >> sums; done) & done; wait";
    let (said, code) = bench.boot(&["--disk-size", "128M", "--smp", "4"], SCRIPT)?;
    let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("janua: made ")).collect();
    if code != 0 || lines != ["4"; 16] {
        return Err(format!("exit code {code}; it wrote:\n{said}"));
    }
    bench.check()?;
    bench.expect("for j in 1 2 3 4; do cd /d$j; md5sum -c sums | grep -c OK; ls | wc -l; done", "4\n17\n4\n17\n4\n17\n4\n17\n")
}

/// QEMU is killed while the machine writes.
fn power_cut(bench: &Bench<'_>) -> Result<(), String> {
    bench.expect("echo ready", "ready\n")?;
    const GUEST: &str = "for i in 1 2 3; do seq 1 20000 > /synced$i; mv /synced$i /kept$i; sync; done; echo cut; \
                         i=0; while :; do i=$((i+1)); seq 1 2000 > /loose$i; mkdir /dir$i; rm -r /dir$i; done";
    // The group dies at the word: the shell, `janua` and QEMU, and nobody else.
    const HOST: &str = "\"$0\" boot --disk \"$1\" -- /bin/sh -c \"$2\" </dev/null | \
                        while read -r line; do if [ \"$line\" = cut ]; then sleep 1; kill -9 0; fi; done";
    let janua = build::janua().display().to_string();
    let words = ["setsid", "-w", "sh", "-c", HOST, &janua, &bench.disk, GUEST];
    let (said, _) = bench.outcome(words.iter().map(ToString::to_string).collect())?;
    // `setsid` itself remarks that its child was killed.
    if said.lines().any(|line| !line.starts_with("setsid: ")) {
        return Err(format!("the run that was to be cut off said:\n{said}"));
    }
    bench.expect(
        "for i in 1 2 3; do seq 1 20000 | cmp - /kept$i && echo kept; done; echo goes on > /after",
        &format!("{RECOVERED}kept\nkept\nkept\n"),
    )?;
    bench.check()?;
    bench.expect("cat /after", "goes on\n")
}

fn corrupt(bench: &Bench<'_>) -> Result<(), String> {
    let refused = |what: &str, why: &str| {
        let (said, code) = bench.boot(&[], "echo started")?;
        if code != 125 || !said.starts_with("janua: cannot mount the disk: ") || !said.contains(why) || said.contains("started")
        {
            return Err(format!("{what}: exit code {code}; it wrote:\n{said}"));
        }
        Ok(())
    };
    bench.expect("echo ready", "ready\n")?;
    let whole = fs::read(&bench.disk).map_err(|error| format!("{}: {error}", bench.disk))?;
    bench.spoil(1024 + 0x38, &[0, 0])?;
    refused("no magic number", "there is no ext4 file system on it")?;
    fs::write(&bench.disk, &whole).map_err(|error| error.to_string())?;
    bench.spoil(1024 + 0x18, &[77])?;
    refused("an impossible block size", "its superblock describes no possible file system")?;
    fs::write(&bench.disk, &whole[..1 << 20]).map_err(|error| error.to_string())?;
    refused("cut off", "the image is cut off")?;
    fs::write(&bench.disk, &whole).map_err(|error| error.to_string())?;
    // The table of groups: its checksums show it.
    bench.spoil(4096, &[0x5a; 64])?;
    refused("no table of groups", "its file system is damaged")
}

/// A damaged inode is refused, and the rest of the disk goes on.
fn damage(bench: &Bench<'_>) -> Result<(), String> {
    bench.expect("echo well > /well; ln -s well /link; echo long > /file", "")?;
    for name in ["link", "file"] {
        let mut command = tool("debugfs");
        let said = command.args(["-R", &format!("imap /{name}"), &bench.disk]).output();
        let said = said.map_err(|error| format!("debugfs (e2fsprogs): {error}"))?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        // "located at block 4, offset 0x0b00"
        let place = said.split_once("located at block ").and_then(|(_, place)| place.trim().split_once(", offset 0x"));
        let place = place.and_then(|(block, offset)| Some((block.parse::<u64>().ok()?, u64::from_str_radix(offset, 16).ok()?)));
        let (block, offset) = place.ok_or_else(|| format!("debugfs said:\n{said}"))?;
        bench.spoil(block * 4096 + offset + SIZE_HIGH, &[0x5a])?;
    }
    bench.expect(
        "cat /link 2>&1; cat /file 2>&1; cat /well; echo more >> /well; sync; cat /well",
        "cat: can't open '/link': Structure needs cleaning\ncat: can't open '/file': Structure needs cleaning\nwell\nwell\nmore\n",
    )
}

/// Where in an inode the upper half of its size is.
const SIZE_HIGH: u64 = 0x6c;

/// A file system of the host's own making.
fn foreign(bench: &Bench<'_>) -> Result<(), String> {
    let dir = bench.dir.join("foreign");
    compare::fresh(&dir)?;
    let described = |error: std::io::Error| format!("{}: {error}", dir.display());
    for part in ["bin", "proc", "dev"] {
        fs::create_dir_all(dir.join(part)).map_err(described)?;
    }
    super::boot::add_busybox(&dir, "bin/sh")?;
    let mut command = tool("mkfs.ext4");
    command.args(["-q", "-F", "-d"]).arg(&dir).args([&bench.disk, "64M"]);
    process::step("mkfs", "mkfs.ext4", &mut command)?;
    bench.expect("echo written > /f; /bin/sh -c 'echo a shell'", "a shell\n")?;
    bench.check()?;
    bench.expect("read line < /f; echo $line", "written\n")
}
