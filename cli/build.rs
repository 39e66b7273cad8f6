//! Finds the kernel images that the command embeds.

use std::path::PathBuf;

fn main() {
    optional("x86_64");
    optional("leon3");
    optional("linux-l4");
    optional("linux-pal");
    programs("x86_64");
    programs("leon3");
    programs("l4");
    programs("pal");
    plugin();
    println!("cargo::rerun-if-env-changed=JANUA_IMAGE_LINUX");
    println!("cargo::rerun-if-env-changed=JANUA_IMAGE_PROFILE");
    let image = match std::env::var_os("JANUA_IMAGE_LINUX") {
        Some(path) => PathBuf::from(path),
        None => {
            let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "../target".into(), PathBuf::from);
            let last = here().join(target).join("image/janua-linux");
            if last.is_file() {
                println!("cargo::warning=embedding the kernel image that was built last; `./janua build` builds it anew");
            }
            last
        }
    };
    let Ok(image) = image.canonicalize() else {
        println!(
            "cargo::error=there is no kernel image to embed ({}): run `./janua build` or `cargo xtask build`",
            image.display()
        );
        return;
    };
    println!("cargo::rerun-if-changed={}", image.display());
    println!("cargo::rustc-env=JANUA_IMAGE_LINUX={}", image.display());
}

/// This directory, now: cargo runs a build script that it built before the tree was moved or copied.
fn here() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default()
}

/// The invasive applications for a machine, as built by `cargo xtask user` and `cargo xtask image leon3`, the programs of L4, or those on libpal: a list of names and bytes.
/// Without them there are none.
fn programs(machine: &str) {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "../target".into(), PathBuf::from);
    let dir = here().join(target).join("user").join(machine).join("bin");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&dir).map(|dir| dir.flatten().map(|entry| entry.path()).collect()).unwrap_or_default();
    files.sort();
    let rows: String = files
        .iter()
        .filter_map(|file| file.canonicalize().ok())
        .map(|file| format!("    ({:?}, include_bytes!({file:?})),\n", file.file_name().unwrap_or_default()))
        .collect();
    let list = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join(format!("programs-{machine}.rs"));
    if let Err(error) = std::fs::write(&list, format!("&[\n{rows}]\n")) {
        println!("cargo::error=cannot write {}: {error}", list.display());
    }
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    println!("cargo::rerun-if-changed={}", dir.parent().unwrap_or(&dir).display());
}

/// QEMU's plugin that models a TLB, as built by `cargo xtask build`. Without it `janua bench` reports that.
fn plugin() {
    println!("cargo::rerun-if-env-changed=JANUA_TLB_PLUGIN");
    let named = std::env::var_os("JANUA_TLB_PLUGIN").map(PathBuf::from);
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "../target".into(), PathBuf::from);
    let last = here().join(target).join("release/libjanua_tlb.so");
    embed("JANUA_TLB_PLUGIN", named.unwrap_or(last));
}

/// The image for a bare machine, or of the personality `l4v2` or `pal` for Linux. A command without it reports that when asked for it.
fn optional(image: &str) {
    let name = format!("JANUA_IMAGE_{}", image.to_uppercase().replace('-', "_"));
    println!("cargo::rerun-if-env-changed={name}");
    let named = std::env::var_os(&name).map(PathBuf::from);
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "../target".into(), PathBuf::from);
    let last = here().join(target).join(format!("image/janua-{image}"));
    embed(&name, named.unwrap_or(last));
}

/// Names a file for the command to embed; an empty one when it does not exist.
fn embed(name: &str, file: PathBuf) {
    let file = file.canonicalize().or_else(|_| {
        let none = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("none");
        std::fs::write(&none, b"").map(|()| none)
    });
    match file {
        Ok(file) => {
            println!("cargo::rerun-if-changed={}", file.display());
            println!("cargo::rustc-env={name}={}", file.display());
        }
        Err(error) => println!("cargo::error=cannot write to the build directory: {error}"),
    }
}
