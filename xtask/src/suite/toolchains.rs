//! The ways to a compiler for the images (`toolchain::Way`): by each that this machine can offer a kernel image is built, which must run
//! a shell; by name (`./janua test toolchains`) a fresh clone of the last commit also goes the launcher's whole way.

use std::path::Path;
use std::process::{Command, Stdio};

use super::compare;
use crate::tally::Tally;
use crate::toolchain::{Toolchain, Way};
use crate::{build, workspace};

/// What is run, and what it must print.
const SCRIPT: &str = "echo $((6*7))";
const ANSWER: &str = "42\n";

/// Runs the tests whose name holds the filter.
pub fn run(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    for way in Way::ALL {
        let name = format!("toolchains/image/{}", way.name());
        if super::wanted(filter, &name) {
            match Toolchain::by(way) {
                Ok(toolchain) => tally.check(&name, image(&toolchain, way)),
                Err(why) => tally.skip(&name, why.lines().next().unwrap_or_default()),
            }
        }
        let name = format!("toolchains/clone/{}", way.name());
        if super::wanted(filter, &name) {
            match Toolchain::by(way) {
                _ if !super::named() => tally.skip(&name, "takes minutes: ./janua test toolchains"),
                Ok(_) => tally.check(&name, clone(way)),
                Err(why) => tally.skip(&name, why.lines().next().unwrap_or_default()),
            }
        }
    }
    Ok(())
}

/// An image by this compiler runs a shell.
fn image(toolchain: &Toolchain, way: Way) -> Result<(), String> {
    let image = build::image_with(toolchain, &workspace::target().join("toolchains").join(way.name()))?;
    let mut command = Command::new(build::janua());
    command.args(["run", "--jail", "none", "--", "/bin/sh", "-c", SCRIPT]).env("JANUA_IMAGE", &image.embedded);
    prints_right(&mut command)
}

/// A fresh clone of the last commit builds and runs by the README's command, and builds again where it was moved to.
fn clone(way: Way) -> Result<(), String> {
    let dir = compare::place().join("clone");
    compare::clear(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let cloned = Command::new("git")
        .args(["clone", "--quiet", "--depth", "1"])
        .arg(format!("file://{}", workspace::root().display()))
        .arg(&dir)
        .status();
    if !cloned.map_err(|e| format!("git: {e}"))?.success() {
        return Err("git clone failed".into());
    }
    let moved = compare::place().join("moved");
    compare::clear(&moved).map_err(|e| format!("{}: {e}", moved.display()))?;
    let result = launch(&dir, way).and_then(|()| {
        std::fs::rename(&dir, &moved).map_err(|e| format!("{}: {e}", moved.display()))?;
        let source = moved.join("cli/src/main.rs");
        let file = std::fs::File::options().append(true).open(&source).map_err(|e| format!("{}: {e}", source.display()))?;
        file.set_modified(std::time::SystemTime::now()).map_err(|e| format!("{}: {e}", source.display()))?;
        launch(&moved, way).map_err(|why| format!("after the tree was moved: {why}"))
    });
    let _ = compare::clear(&dir);
    let _ = compare::clear(&moved);
    result
}

/// Runs a shell by a tree's launcher, which builds what is out of date.
fn launch(dir: &Path, way: Way) -> Result<(), String> {
    let mut command = Command::new(dir.join("janua"));
    command.args(["run", "--jail", "none", "--", "/bin/sh", "-c", SCRIPT]).current_dir(dir).env("JANUA_TOOLCHAIN", way.name());
    command.env_remove("JANUA_ROOT").env_remove("CARGO_TARGET_DIR").env_remove("JANUA_FAST");
    prints_right(&mut command)
}

fn prints_right(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("{:?}: {e}", command.get_program()))?;
    if output.status.success() && output.stdout == ANSWER.as_bytes() {
        return Ok(());
    }
    Err(format!("{}\n{}{}", output.status, String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}
