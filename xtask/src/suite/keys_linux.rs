//! A Linux that knows protection keys and signals on locked stacks (6.12 or newer), from Debian's backports, for the suite `keys`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::compare;
use crate::process;

/// Where the package comes from, whatever this machine's own lists contain.
const SOURCE: &str =
    "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm-backports main\n";

/// Names of the packages: the smallest of Debian's Linux images.
const PACKAGES: &str = "^linux-image-6.*-cloud-amd64$";

/// The file of the kernel, fetched once into the target directory. The error is why it cannot be had.
pub fn fetched() -> Result<PathBuf, String> {
    let place = compare::place().join("linux");
    let kernel = place.join("vmlinuz");
    if kernel.exists() {
        return Ok(kernel);
    }
    if !process::on_path("apt-get") || !process::on_path("dpkg-deb") {
        return Err("no Linux for the emulated machine: it comes as a package of Debian's".into());
    }
    fetch(&place, &kernel)
        .map_err(|why| format!("no Linux for the emulated machine (Debian's backports did not bring it): {why}"))?;
    Ok(kernel)
}

fn fetch(place: &Path, kernel: &Path) -> Result<(), String> {
    compare::fresh(place)?;
    for dir in ["lists/partial", "cache/archives/partial", "tree"] {
        fs::create_dir_all(place.join(dir)).map_err(|e| format!("{dir}: {e}"))?;
    }
    fs::write(place.join("sources.list"), SOURCE).map_err(|e| e.to_string())?;
    run(apt(place, "apt-get").args(["-qq", "update"]))?;
    let found = run(apt(place, "apt-cache").args(["search", "--names-only", PACKAGES]))?;
    let newest = found
        .lines()
        .filter_map(|line| line.split(' ').next())
        .max_by_key(|name| numbers(name))
        .ok_or("there is no such package")?;
    eprintln!("janua: fetching {newest} for the emulated machine (it is not installed)");
    run(apt(place, "apt-get").args(["-qq", "download", newest]).current_dir(place))?;
    run(Command::new("sh").args(["-c", "dpkg-deb -x ./linux-image-*.deb tree"]).current_dir(place))?;
    let boot = fs::read_dir(place.join("tree/boot")).map_err(|e| format!("the package: {e}"))?;
    let file = boot
        .flatten()
        .find(|entry| entry.file_name().to_string_lossy().starts_with("vmlinuz"))
        .ok_or("no kernel in the package")?;
    fs::rename(file.path(), kernel).map_err(|e| e.to_string())?;
    run(Command::new("sh").args(["-c", "rm -rf tree lists cache linux-image-*.deb"]).current_dir(place)).map(|_| ())
}

/// An apt of its own, which changes nothing on this machine.
fn apt(place: &Path, tool: &str) -> Command {
    let mut command = Command::new(tool);
    for (key, value) in [("Dir::Etc::sourcelist", "sources.list"), ("Dir::State::lists", "lists"), ("Dir::Cache", "cache")] {
        command.arg("-o").arg(format!("{key}={}", place.join(value).display()));
    }
    command
        .args(["-o", "Dir::Etc::sourceparts=-", "-o", "APT::Sandbox::User=", "-o", "Acquire::Retries=3"])
        .stdin(Stdio::null());
    command
}

/// Its output, or what went wrong.
fn run(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| format!("{name}: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("failed")))
}

/// The numbers of a version, to be compared.
fn numbers(name: &str) -> Vec<u32> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn versions_in_order() {
        assert!(
            super::numbers("linux-image-6.12.9+deb12-cloud-amd64") < super::numbers("linux-image-6.12.90+deb12.1-cloud-amd64")
        );
    }
}
