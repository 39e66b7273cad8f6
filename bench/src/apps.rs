//! Real programs, natively and on Janua: the same files, the same work, wall time.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use crate::model::{Configuration, NATIVE, Unit};
use crate::programs::{self, on_path};
use crate::{Failure, Plan, private};

/// One program's work.
pub struct App {
    pub name: &'static str,
    pub title: &'static str,
    /// Programs it needs.
    needs: &'static [&'static str],
    /// A shell script run in the work directory, which is on the host under every configuration.
    script: &'static str,
    /// Rows other than the wall time: the word that begins the line of output with the figure, the row's name and title.
    rates: &'static [(&'static str, &'static str, &'static str)],
}

/// Every program.
pub const APPS: &[App] = &[
    App {
        name: "compile",
        title: "gcc -O0 -c of a C file of 2,000 lines, 3 times",
        needs: &["gcc"],
        script: "for i in 1 2 3; do gcc -O0 -c big.c -o big.o || exit 1; done",
        rates: &[],
    },
    App {
        name: "find",
        title: "find /usr/share with a stat of every file",
        needs: &["find"],
        script: "find /usr/share -printf '%s %m %t\\n' >found.txt",
        rates: &[],
    },
    App {
        name: "python-sqlite",
        title: "Python: 20,000 sqlite inserts",
        needs: &["python3"],
        script: "rm -f data.db; exec \"$(cat python.path)\" insert.py",
        rates: &[],
    },
    App {
        name: "git-status",
        title: "git status of a repository of 2,000 files, 5 times",
        needs: &["git"],
        script: "for i in 1 2 3 4 5; do git -C repository status --porcelain || exit 1; done",
        rates: &[],
    },
    App {
        name: "tar",
        title: "tar of that tree and out again",
        needs: &["tar"],
        // Into a new directory: what was just removed is made again at a snail's pace by some file systems, which would be measured
        // on whichever side comes second.
        script: "tar cf tree.tar repository && out=$(mktemp -d out.XXXXXX) && tar xf tree.tar -C $out",
        rates: &[],
    },
    App { name: "ls", title: "ls -lR /usr/share", needs: &["ls"], script: "ls -lR /usr/share >listed.txt", rates: &[] },
    App {
        name: "redis",
        title: "redis-server and redis-benchmark on the loopback: wall time",
        needs: &["redis-server", "redis-benchmark", "redis-cli"],
        script: "redis-server --port 7391 --save '' --appendonly no --daemonize no >redis.log 2>&1 & server=$!
            tries=0; until redis-cli -p 7391 ping >/dev/null 2>&1; do
                tries=$((tries + 1)); [ $tries -lt 200 ] || { kill $server; echo 'redis-server did not answer' >&2; exit 1; }; sleep 0.02; done
            redis-benchmark -p 7391 -t set,get -n 40000 -q --csv; code=$?
            kill $server; wait $server; exit $code",
        rates: &[
            ("\"SET\"", "redis-set", "redis SET on the loopback"),
            ("\"GET\"", "redis-get", "redis GET on the loopback"),
        ],
    },
];

/// Rows of an app: name, title, unit.
pub fn rows(app: &App) -> Vec<(&'static str, &'static str, Unit)> {
    let wall = [(app.name, app.title, Unit::Nanoseconds)];
    wall.into_iter().chain(app.rates.iter().map(|(_, name, title)| (*name, *title, Unit::PerSecond))).collect()
}

/// The directory the programs work in, removed in the end.
pub struct Work {
    path: PathBuf,
}

impl Drop for Work {
    fn drop(&mut self) {
        // A leftover in the temporary directory does no harm.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

impl Work {
    /// Makes the files the programs work on.
    pub fn new() -> Result<Work, Failure> {
        let work = Work { path: private::directory(&std::env::temp_dir(), "janua-bench")? };
        work.fill().map_err(|error| Failure(format!("{}: {error}", work.path.display())))?;
        Ok(work)
    }

    fn fill(&self) -> std::io::Result<()> {
        std::fs::write(self.path.join("big.c"), c_source())?;
        std::fs::write(self.path.join("insert.py"), PYTHON)?;
        let repository = self.path.join("repository");
        for number in 0..2000 {
            let dir = repository.join(format!("part{:02}/sub{}", number / 40, number % 4));
            std::fs::create_dir_all(&dir)?;
            std::fs::write(dir.join(format!("file{number}.txt")), format!("line {number}\n").repeat(1 + number % 97))?;
        }
        if on_path("git") {
            let git = |arguments: &[&str]| {
                let settings = ["-c", "user.name=bench", "-c", "user.email=bench@example.invalid", "-c", "gc.auto=0"];
                Command::new("git").arg("-C").arg(&repository).args(settings).args(arguments).output()
            };
            git(&["init", "-q"])?;
            git(&["add", "-A"])?;
            git(&["commit", "-q", "-m", "files"])?;
        }
        if on_path("python3") {
            // The interpreter itself: on some machines `python3` is a script that looks for it.
            let asked = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output()?;
            std::fs::write(self.path.join("python.path"), asked.stdout)?;
        }
        Ok(())
    }

    /// Runs an app once: the figures of its rows in order.
    pub fn run(&self, plan: &Plan, configuration: &Configuration, app: &App) -> Result<Vec<f64>, String> {
        let run = self.call(plan, configuration, app, &[])?;
        let mut figures = vec![run.took.as_nanos() as f64];
        for (word, name, _) in app.rates {
            let line = run.stdout.lines().rev().find_map(|line| line.strip_prefix(word));
            let rate = line.and_then(|rest| rest.split('"').find_map(|part| part.parse::<f64>().ok()));
            figures.push(rate.ok_or_else(|| format!("the output holds no figure for {name}"))?);
        }
        Ok(figures)
    }

    /// The share of the app's calls that went by a gate without a trap; `None` natively.
    pub fn fast_share(&self, plan: &Plan, configuration: &Configuration, app: &App) -> Option<f64> {
        if configuration.name == NATIVE {
            return None;
        }
        programs::fast_share(&self.call(plan, configuration, app, &["--stats"]).ok()?.stderr)
    }

    fn call(&self, plan: &Plan, under: &Configuration, app: &App, options: &[&str]) -> Result<programs::Run, String> {
        if let Some(lacking) = app.needs.iter().find(|name| !on_path(name)) {
            return Err(format!("{lacking} is not installed"));
        }
        let bind = format!("{}::rw", self.path.display());
        let options: Vec<&str> = options.iter().copied().chain(["--bind", &bind]).collect();
        let script = format!("cd '{}' || exit 1\n{}", self.path.display(), app.script);
        programs::run(plan, under, &options, &["/bin/sh", "-c", &script])
    }
}

/// A C file of 2,000 lines.
fn c_source() -> String {
    let mut text = String::from("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n");
    for number in 0..249 {
        let _ = write!(
            text,
            "static int function_{number}(int a, int b, char *text)\n{{\n    int sum = {number};\n    for (int i = 0; i < a; i++)\n        \
             sum += i * b + (int)strlen(text);\n    return sum % 4099;\n}}\n\n"
        );
    }
    text.push_str("int main(void)\n{\n    return function_7(3, 4, \"text\");\n}\n");
    text
}

const PYTHON: &str = "\
import sqlite3
data = sqlite3.connect('data.db')
data.execute('create table t (id integer primary key, name text, value real)')
for n in range(20000):
    data.execute('insert into t (name, value) values (?, ?)', ('name %d' % n, n * 0.5))
data.commit()
names = {row[1]: row[0] for row in data.execute('select * from t')}
assert len(names) == 20000
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_file_has_its_length() {
        assert_eq!(c_source().lines().count(), 4 + 249 * 8 + 4);
    }

    #[test]
    fn names_are_unique() {
        let names: Vec<&str> = APPS.iter().flat_map(rows).map(|(name, ..)| name).collect();
        assert!((1..names.len()).all(|at| !names[..at].contains(&names[at])));
    }
}
