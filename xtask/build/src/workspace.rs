//! Where things are: the workspace root, the target directory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The root of the workspace: what the launcher or `cargo xtask` sets, or where this was built. Cargo takes a tool that was built
/// before the tree was moved or copied for up to date, so that the place of the build may be another tree's.
pub fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| match std::env::var_os("JANUA_ROOT") {
        Some(root) => root.into(),
        None => {
            Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("xtask/build is below the workspace root").into()
        }
    })
}

/// The directory cargo builds into.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// The cargo on the caller's `PATH`: it builds everything that runs on the host.
pub fn cargo() -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root());
    command
}

/// `path` relative to the workspace root, as text.
pub fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
