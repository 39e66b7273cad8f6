//! Finds the kernel image that the command embeds.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-env-changed=JANUA_IMAGE_LINUX");
    println!("cargo::rerun-if-env-changed=JANUA_IMAGE_PROFILE");
    let image = match std::env::var_os("JANUA_IMAGE_LINUX") {
        Some(path) => PathBuf::from(path),
        None => {
            let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "../target".into(), PathBuf::from);
            let last = Path::new(env!("CARGO_MANIFEST_DIR")).join(target).join("image/janua-linux");
            if last.is_file() {
                println!(
                    "cargo::warning=embedding the kernel image that was built last; `./janua build` builds it anew"
                );
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
