//! The bare x86_64 machine as one more configuration of `bench calls`: the measured program, its libraries and nothing else, booted by
//! `janua boot` in QEMU. Its figures are emulated time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Failure, private};

/// The configuration's name in tables and files.
pub const NAME: &str = "x86_64 (emulated time)";
/// What a reader must know.
pub const NOTE: &str = "x86_64 is the bare machine in QEMU: its figures are emulated time, what QEMU takes on this host to stand for the \
                        processor, and compare with one another only";

/// The machine's file tree; removed in the end.
pub struct Tree(PathBuf);

impl Tree {
    /// Makes one for the janua command, which is the measured program.
    pub fn new(command: &Path) -> Result<Tree, Failure> {
        let dir = private::directory(&std::env::temp_dir(), "janua-calls")?;
        let tree = Tree(dir.clone());
        tree.fill(command).map_err(|error| Failure(format!("{}: {error}", dir.display())))?;
        Ok(tree)
    }

    fn fill(&self, command: &Path) -> std::io::Result<()> {
        for dir in ["dev", "etc", "proc", "tmp"] {
            fs::create_dir_all(self.0.join(dir))?;
        }
        // Some rows look at it, as on the host.
        fs::copy("/etc/passwd", self.0.join("etc/passwd"))?;
        fs::copy(command, self.0.join("janua"))?;
        // The dynamic loader's own list: nothing for a static program.
        let list = Command::new("ldd").arg(command).output()?;
        for library in libraries(&String::from_utf8_lossy(&list.stdout)) {
            let place = self.0.join(library.trim_start_matches('/'));
            fs::create_dir_all(place.parent().unwrap_or(&self.0))?;
            fs::copy(library, place)?;
        }
        Ok(())
    }

    /// The janua command in it.
    pub const PROGRAM: &str = "/janua";

    pub fn root(&self) -> &Path {
        &self.0
    }

    /// The arguments that make janua run a program there, with that many processors.
    pub fn boot_arguments(&self, processors: u8) -> Vec<String> {
        let tree = self.0.display().to_string();
        ["boot", "--smp", &processors.to_string(), "--ramfs", &tree, "--", Tree::PROGRAM].map(String::from).to_vec()
    }
}

/// The files that ldd(1) lists.
fn libraries(list: &str) -> Vec<&str> {
    list.split_ascii_whitespace().filter(|word| word.starts_with('/')).collect()
}

impl Drop for Tree {
    fn drop(&mut self) {
        // It is in a directory for such things.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_in_ldds_list() {
        let list = "\tlinux-vdso.so.1 (0x7ff)\n\tlibc.so.6 => /lib/libc.so.6 (0x7f5)\n\t/lib64/ld.so.2 (0x7f7)\n";
        assert_eq!(libraries(list), ["/lib/libc.so.6", "/lib64/ld.so.2"]);
        assert!(libraries("\tstatically linked\n").is_empty());
    }
}
