//! What a compromised kernel can still reach of its host: `test/walls/taken_over.c`, which makes host calls from kernel text
//! as such a kernel would, under `--jail none`. Its rows list how each call ends; besides, every number that the kernel's list of
//! host calls (`platform/linux/src/wall.rs`) lacks is tried.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use object::{Object, ObjectSection, SectionKind};

use super::compare::{self, Verdict};
use crate::guard::Run;
use crate::tally::Tally;
use crate::{build, workspace};

/// Seconds one run may take.
const LIMIT: u64 = 20;

/// The highest number tried, above all that Linux has.
const NUMBERS: u32 = 500;

/// uretprobe(2) and uprobe(2), which Linux lets pass every filter: they are SIGILL or ENXIO but in trampolines the host itself has made.
const EXEMPT: &[u32] = &[335, 336];

/// Numbers of the kernel's list that pass only with an option the sweep does not give, or never with arguments of 0.
const CONDITIONAL: &[&str] = &["Network", "Writing", "OneOf(1, IOCTLS)", "OneOf(1, &[F_GETFL])", "OneOf(2, &[KICK])"];

/// Runs the tests whose name holds the filter.
pub fn run(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    let place = Place::new()?;
    let rows = place.rows()?;
    let mut chosen: Vec<Test> = Vec::new();
    for gate in compare::gates() {
        chosen.extend(rows.iter().map(|row| Test { gate, try_: Try::Row(row) }));
        chosen.push(Test { gate, try_: Try::Status });
    }
    // The same filter whatever the gate.
    let listed = listed(&workspace::root().join("platform/linux/src/wall.rs"))?;
    let forbidden = (0..NUMBERS)
        .filter(|n| !EXEMPT.contains(n))
        .filter(|n| listed.get(n).is_none_or(|when| CONDITIONAL.iter().any(|c| when.starts_with(c))));
    if let Some(gate) = compare::gates().first() {
        chosen.extend(forbidden.map(|number| Test { gate, try_: Try::Number(number) }));
    }
    chosen.retain(|test| super::wanted(filter, &test.name()));
    compare::parallel(
        &chosen,
        |test| match place.judge(test) {
            _ if place.lacks(test).is_some() => {
                Verdict::Skipped(test.name(), format!("here is no {}", place.lacks(test).unwrap_or_default()))
            }
            Ok(()) => Verdict::Passed(test.name()),
            Err(why) => Verdict::Failed(test.name(), why),
        },
        |verdict| verdict.count(tally),
    );
    Ok(())
}

/// A row of the program's: options of `janua run`, what of the host the end needs, the end it must have, its name.
struct Row {
    options: String,
    needs: String,
    end: String,
    name: String,
}

enum Try<'a> {
    Row(&'a Row),
    /// A call that is not in the kernel's list.
    Number(u32),
    /// What the host reports of the process.
    Status,
}

struct Test<'a> {
    gate: &'static str,
    try_: Try<'a>,
}

impl Test<'_> {
    fn name(&self) -> String {
        match &self.try_ {
            Try::Row(row) => format!("walls/{}/{}", row.name, self.gate),
            Try::Number(number) => format!("walls/call_{number}/{}", self.gate),
            Try::Status => format!("walls/status/{}", self.gate),
        }
    }
}

/// What the tests share: the program, a directory that is shown and one that is not, a process outside.
struct Place {
    dir: PathBuf,
    program: PathBuf,
    gadget: String,
    victim: Child,
    stack: String,
    is_root: bool,
    /// What of the third wall is here, in the words of the rows.
    walls: Vec<&'static str>,
}

impl Place {
    fn new() -> Result<Place, String> {
        let what = |e: std::io::Error| format!("the place of the tests: {e}");
        let dir = compare::place().join("run/walls");
        compare::fresh(&dir)?;
        let program = dir.join("taken_over");
        let output = Command::new("gcc")
            .args(["-O1", "-g", "-std=gnu11", "-w", "-static", "-mno-red-zone", "-o"])
            .arg(&program)
            .arg(workspace::root().join("test/walls/taken_over.c"))
            .output()
            .map_err(|e| format!("gcc: {e}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let victim = Command::new("sleep").arg("600").stdin(Stdio::null()).stdout(Stdio::null()).spawn().map_err(what)?;
        let maps = fs::read_to_string(format!("/proc/{}/maps", victim.id())).map_err(what)?;
        let stack = maps.lines().find(|line| line.ends_with("[stack]")).and_then(|line| line.split('-').next());
        let doctor = Command::new(build::janua()).arg("doctor").output().map_err(|e| format!("janua doctor: {e}"))?;
        let reported = String::from_utf8_lossy(&doctor.stdout);
        let stands = |name: &str| reported.lines().any(|line| line.trim_start().starts_with("yes") && line.contains(name));
        let walls = [("landlock", "third: Landlock"), ("mounts", "third: mount namespace"), ("pids", "third: pid namespace")];
        Ok(Place {
            gadget: gadget(&workspace::target().join("image/janua-linux"))?,
            stack: stack.ok_or("no stack in /proc/PID/maps")?.to_owned(),
            walls: walls.into_iter().filter(|(_, name)| stands(name)).map(|(word, _)| word).collect(),
            is_root: fs::metadata("/proc/self").map_err(what)?.uid() == 0,
            dir,
            program,
            victim,
        })
    }

    fn rows(&self) -> Result<Vec<Row>, String> {
        let output = Command::new(&self.program).arg("list").output().map_err(|e| format!("taken_over: {e}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let rows = text.lines().map(|line| {
            let mut parts = line.split('\t').map(str::to_owned);
            let (Some(options), Some(needs), Some(end), Some(name)) = (parts.next(), parts.next(), parts.next(), parts.next())
            else {
                return Err(format!("not a row: {line}"));
            };
            Ok(Row { options, needs, end, name })
        });
        rows.collect()
    }

    /// What the row needs and the host has not.
    fn lacks<'a>(&self, test: &Test<'a>) -> Option<&'a str> {
        let Try::Row(row) = test.try_ else { return None };
        row.needs.split_whitespace().find(|need| match need.chars().next() {
            Some('-') => false,
            Some('0'..='9') => !super::conformance::host_has(need),
            _ => !self.walls.contains(need),
        })
    }

    fn judge(&self, test: &Test<'_>) -> Result<(), String> {
        let own = self.dir.join(test.name().replace('/', "-"));
        let (outside, inside) = (own.join("outside"), own.join("inside"));
        for dir in [&outside, &inside] {
            fs::create_dir_all(dir).map_err(|e| e.to_string())?;
            fs::write(dir.join("file"), "kept\n").map_err(|e| e.to_string())?;
        }
        let mut options = vec!["run", "--gate", test.gate, "--jail", "none"];
        let mut program = self.program.clone();
        let text = |path: &Path| path.display().to_string();
        let (shown, bind) = (text(&inside), format!("{0}:{0}:rw", text(&inside)));
        let arguments = match &test.try_ {
            Try::Row(row) => {
                match &*row.options {
                    "-" | "plain" => {}
                    "root" | "root of directory" => {
                        // As a kernel sees it: the host's own paths, whatever the program is shown.
                        fs::copy(&self.program, inside.join("taken_over")).map_err(|e| e.to_string())?;
                        program = PathBuf::from("/taken_over");
                        options.extend(["--root", &shown]);
                        // A foreign tree gets a clean environment.
                        options.extend(
                            ["GADGET", "OUTSIDE", "INSIDE_INODE", "VICTIM", "VICTIM_STACK"]
                                .iter()
                                .flat_map(|key| ["--env", key]),
                        );
                    }
                    "bind" => options.extend(["--bind", &bind]),
                    "net" => options.extend(["--net", "host"]),
                    other => return Err(format!("no such options: {other}")),
                }
                vec!["row".to_owned(), row.name.clone()]
            }
            Try::Number(number) => vec!["call".to_owned(), number.to_string()],
            Try::Status => vec!["status".to_owned()],
        };
        // With a directory for standard input.
        let is_of_directory = matches!(&test.try_, Try::Row(row) if row.options.ends_with("of directory"));
        let shell = ["sh", "-c", "exec \"$@\" <.", "sh"].map(ToOwned::to_owned);
        // A caller that is not root has no such capability to lose.
        let is_plain = matches!(&test.try_, Try::Row(row) if row.options == "plain") && self.is_root;
        let without = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"].map(ToOwned::to_owned);
        let command = shell
            .into_iter()
            .filter(|_| is_of_directory)
            .chain(without.into_iter().filter(|_| is_plain))
            .chain([build::janua().display().to_string()])
            .chain(options.iter().map(ToString::to_string))
            .chain(["--".to_owned(), text(&program)])
            .chain(arguments)
            .collect();
        let env = [
            ("GADGET", self.gadget.clone()),
            ("OUTSIDE", text(&outside)),
            ("INSIDE_INODE", fs::metadata(&inside).map_err(|e| e.to_string())?.ino().to_string()),
            ("VICTIM", self.victim.id().to_string()),
            ("VICTIM_STACK", self.stack.clone()),
        ];
        let env = env.map(|(key, value)| (key.to_owned(), value)).to_vec();
        let run = Run { command, dir: &own, env, limit: LIMIT, terminal: None };
        let outcome = run.start(&own.with_extension("report"))?.wait()?;
        let said = String::from_utf8_lossy(&outcome.output).into_owned();
        let result = self.verdict(test, outcome.code, &said, &outside);
        if outcome.timeout || !outcome.left.is_empty() {
            return Err(format!("did not end, or left processes behind\n{said}"));
        }
        let _ = compare::clear(&own);
        result.map_err(|why| format!("{why} (exit {}), and it said:\n{said}", outcome.code))
    }

    fn verdict(&self, test: &Test<'_>, code: i32, said: &str, outside: &Path) -> Result<(), String> {
        let stopped = code == 125 && said.contains("second wall");
        let end = said.lines().find_map(|line| line.strip_prefix("end: "));
        let wanted = match &test.try_ {
            Try::Row(row) => &*row.end,
            Try::Number(_) => "stopped",
            Try::Status => return status(said),
        };
        let as_wanted = match wanted {
            "stopped" => stopped,
            "lost" => code == 125 && said.contains("ended by itself"),
            ends => code == 0 && ends.split(" | ").any(|one| Some(one) == end),
        };
        if !as_wanted {
            return Err(format!("not `{wanted}`"));
        }
        // Whatever was returned: nothing outside has changed.
        let names = super::conformance::sorted(outside)?.len();
        let file = outside.join("file");
        let kept = fs::read(&file).is_ok_and(|text| text == b"kept\n");
        let mode = fs::metadata(&file).map(|m| m.permissions().mode() & 0o7777).unwrap_or(0);
        if names == 1 && kept && mode & 0o111 == 0 { Ok(()) } else { Err("the directory outside has changed".into()) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        let _ = compare::clear(&self.dir);
    }
}

/// What the host must report of a process behind the walls.
fn status(said: &str) -> Result<(), String> {
    let field = |name: &str| {
        let line = said.lines().find(|line| line.starts_with(name));
        line.map(|line| line[name.len()..].trim()).ok_or_else(|| format!("no {name}"))
    };
    let bits = |name: &str| u64::from_str_radix(field(name)?, 16).map_err(|e| format!("{name} {e}"));
    const CAP_DAC_READ_SEARCH: u64 = 1 << 2;
    if field("NoNewPrivs:")? != "1" || field("Seccomp:")? != "2" {
        return Err("no_new_privs and the filter are not both set".into());
    }
    if bits("CapInh:")? != 0 || bits("CapAmb:")? != 0 {
        return Err("capabilities would survive an exec".into());
    }
    // Without the right to raise limits, and in a number space of its own (`platform/host/src/wall.rs:keep_nice`).
    const CAP_SYS_NICE: u64 = 1 << 23;
    if (bits("CapPrm:")? | bits("CapEff:")?) & !(CAP_DAC_READ_SEARCH | CAP_SYS_NICE) != 0 {
        return Err("capabilities beyond reading and nice values are left".into());
    }
    if field("Max core file size")?.split_whitespace().take(2).any(|limit| limit != "0") {
        return Err("core files may be written".into());
    }
    Ok(())
}

/// Where the kernel's text holds `syscall; ret`.
fn gadget(image: &Path) -> Result<String, String> {
    /// Where the kernel is in every process.
    const KERNEL_BASE: u64 = 0x5520_0000_0000;
    let failed = |what: &str| format!("{}: {what}", image.display());
    let bytes = fs::read(image).map_err(|e| failed(&e.to_string()))?;
    let file = object::File::parse(&*bytes).map_err(|e| failed(&e.to_string()))?;
    for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
        let data = section.data().map_err(|e| failed(&e.to_string()))?;
        if let Some(at) = data.windows(3).position(|bytes| bytes == [0x0f, 0x05, 0xc3]) {
            return Ok(format!("{:x}", KERNEL_BASE + section.address() + at as u64));
        }
    }
    Err(failed("no `syscall; ret` in its text"))
}

/// The kernel's list of host calls: number and condition, as its source writes them.
fn listed(source: &Path) -> Result<BTreeMap<u32, String>, String> {
    let text = fs::read_to_string(source).map_err(|e| format!("{}: {e}", source.display()))?;
    let rows = text.lines().skip_while(|line| !line.starts_with("host_calls! {")).skip(1).take_while(|line| *line != "}");
    let list: BTreeMap<u32, String> = rows
        .filter_map(|line| {
            let mut words = line.trim().splitn(3, ' ');
            Some((words.next()?.parse().ok()?, words.nth(1)?.to_owned()))
        })
        .collect();
    if list.len() < 20 { Err(format!("{}: no list of host calls", source.display())) } else { Ok(list) }
}
