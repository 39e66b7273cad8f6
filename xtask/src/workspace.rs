//! Where things are, and the members of the workspace.

use std::path::Path;

pub use janua_build::workspace::{cargo, relative, root, target};

/// One package of the workspace.
pub struct Member {
    /// Package name, for example `janua-kernel`.
    pub name: String,
    /// Directory relative to the workspace root, for example `platform/linux`.
    pub dir: String,
    /// Crate root files relative to the workspace root, build scripts left out.
    pub roots: Vec<String>,
    /// Names of the workspace packages it depends on (dependencies for tests and build scripts left out).
    pub depends: Vec<String>,
    /// Names of the packages from elsewhere that it depends on, likewise.
    pub foreign: Vec<String>,
    /// Cargo features it declares.
    pub features: Vec<String>,
}

/// The packages of the workspace, from `cargo metadata`.
pub fn members() -> Result<Vec<Member>, String> {
    let output = cargo()
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .output()
        .map_err(|e| format!("cargo metadata: {e}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata: no packages")?;
    let names: Vec<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    packages.iter().map(|package| member(package, &names)).collect()
}

fn member(package: &serde_json::Value, names: &[&str]) -> Result<Member, String> {
    let name = package["name"].as_str().ok_or("cargo metadata: a package without a name")?;
    let manifest = package["manifest_path"].as_str().ok_or("cargo metadata: no manifest path")?;
    let dir = Path::new(manifest).parent().map(relative).unwrap_or_default();
    let list = |key: &str| package[key].as_array().cloned().unwrap_or_default();
    let roots = list("targets")
        .iter()
        .filter(|t| ["lib", "bin", "rlib", "staticlib", "cdylib"].iter().any(|k| has(&t["kind"], k)))
        .filter_map(|t| t["src_path"].as_str())
        .map(|path| relative(Path::new(path)))
        .collect();
    let (depends, foreign) = list("dependencies")
        .iter()
        .filter(|d| d["kind"].is_null())
        .filter_map(|d| d["name"].as_str())
        .map(String::from)
        .partition(|d| names.contains(&d.as_str()));
    let features = package["features"].as_object().map(|f| f.keys().cloned().collect()).unwrap_or_default();
    Ok(Member { name: name.into(), dir, roots, depends, foreign, features })
}

fn has(list: &serde_json::Value, item: &str) -> bool {
    list.as_array().is_some_and(|l| l.iter().any(|v| v.as_str() == Some(item)))
}
