//! The compiler for the kernel images: `x86_64-unknown-none` (soft float, no red zone).
//!
//! In order of preference:
//! 1. the compiler on `PATH`, when it has the target's `core` and `alloc` built;
//! 2. any compiler here whose library source is installed: it builds `core` and `alloc` itself;
//! 3. rustup, asked for the target (it needs the network);
//! 4. Debian's or Ubuntu's packages of a compiler with its library source.
//!
//! JANUA_TOOLCHAIN=target, source or packages takes only that way (1 and 3; 2; 4).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{packages, process};

/// The target of the kernel images but the LEON3's.
pub const TARGET: &str = "x86_64-unknown-none";
/// The target of the LEON3's, for which no compiler brings a library.
pub const TARGET_SPARC: &str = "sparc-unknown-none-elf";

/// The oldest compiler the workspace builds with, as in its `rust-version` (the minor number of 1.x).
const OLDEST: u32 = 88;

/// GNU's linker for SPARC. LLVM's has no 32-bit SPARC; the package of the compiler would displace that for i386.
pub const SPARC_LINKER: &str = "sparc64-linux-gnu-ld";
pub const SPARC_LINKER_PACKAGE: &str = "binutils-sparc64-linux-gnu";

/// How long rustup may take to bring a target, in seconds.
const RUSTUP_TIMEOUT: &str = "60";

/// The environment variable that takes one way only.
const CHOSEN: &str = "JANUA_TOOLCHAIN";

/// Where a compiler for the images comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The compiler on `PATH` with the target's libraries ready-made, as rustup brings them.
    Target,
    /// The compiler on `PATH` with its library source.
    Source,
    /// The distribution's packages.
    Packages,
}

impl Way {
    pub const ALL: [Way; 3] = [Way::Target, Way::Source, Way::Packages];

    pub fn name(self) -> &'static str {
        match self {
            Way::Target => "target",
            Way::Source => "source",
            Way::Packages => "packages",
        }
    }
}

/// A way to compile for [`TARGET`].
pub struct Toolchain {
    cargo: PathBuf,
    /// Set when it is not the compiler on `PATH`, or must build the library itself.
    rustc: Option<PathBuf>,
    build_std: bool,
    /// The linker, when it is not the one the compiler brings.
    linker: Option<PathBuf>,
    target: &'static str,
}

impl Toolchain {
    /// Finds a compiler; installs one when there is none.
    pub fn find() -> Result<Toolchain, String> {
        match std::env::var(CHOSEN) {
            Ok(name) if !name.is_empty() => match Way::ALL.iter().find(|way| way.name() == name) {
                Some(way) => Self::by(*way),
                None => Err(format!("{CHOSEN}={name}: there are target, source and packages")),
            },
            _ => Self::best(),
        }
    }

    /// The compiler by one way; it is installed when it can be.
    pub fn by(way: Way) -> Result<Toolchain, String> {
        let found = match way {
            Way::Target => Self::with_target()
                .or_else(Self::added_target)
                .ok_or_else(|| format!("the compiler on PATH has no {TARGET}, and rustup cannot bring it")),
            Way::Source => Self::with_source_of("rustc".into())
                .or_else(Self::added_source)
                .ok_or_else(|| "the compiler on PATH has no library source (rust-src), and rustup cannot bring it".to_owned()),
            Way::Packages => {
                packages::install(&Self::packages()?.iter().map(String::as_str).collect::<Vec<_>>())?;
                Self::compilers()
                    .into_iter()
                    .skip(1)
                    .find_map(Self::with_source_of)
                    .ok_or_else(|| "the packages brought no library source".to_owned())
            }
        };
        found?.linked()
    }

    /// The library source of rustup's toolchain, fetched.
    fn added_source() -> Option<Toolchain> {
        if !process::on_path("rustup") {
            return None;
        }
        eprintln!("janua: rustup component add rust-src");
        process::output(Command::new("timeout").args([RUSTUP_TIMEOUT, "rustup", "component", "add", "rust-src"]))?;
        Self::with_source_of("rustc".into())
    }

    /// The target of rustup's toolchain, fetched.
    fn added_target() -> Option<Toolchain> {
        if !process::on_path("rustup") {
            return None;
        }
        eprintln!("janua: rustup target add {TARGET}");
        process::output(Command::new("timeout").args([RUSTUP_TIMEOUT, "rustup", "target", "add", TARGET]))?;
        Self::with_target()
    }

    fn best() -> Result<Toolchain, String> {
        if let Some(found) = Self::with_target().or_else(Self::with_source) {
            return found.linked();
        }
        if process::on_path("rustup") {
            if let Some(found) = Self::added_target() {
                return found.linked();
            }
            eprintln!("janua: rustup could not bring {TARGET} (no network to its server?); trying the distribution's compiler");
        }
        packages::install(&Self::packages()?.iter().map(String::as_str).collect::<Vec<_>>())?;
        let found = Self::with_source().ok_or(
            "the distribution's Rust compiler was installed, but its library source is not where it should be \
             (SYSROOT/lib/rustlib/src/rust/library)\nTry instead: rustup target add x86_64-unknown-none",
        )?;
        found.linked()
    }

    /// Finds what builds for the LEON3: a compiler with its library source, and GNU's linker for SPARC.
    pub fn find_sparc() -> Result<Toolchain, String> {
        if !process::on_path(SPARC_LINKER) {
            packages::install(&[SPARC_LINKER_PACKAGE])?;
        }
        let found = Self::with_source().or_else(|| {
            let list = Self::packages().ok()?;
            packages::install(&list.iter().map(String::as_str).collect::<Vec<_>>()).ok()?;
            Self::with_source()
        });
        let found =
            found.ok_or("the LEON3's image needs a compiler with its library source (rustc-web, cargo-web, rust-web-src)")?;
        Ok(Toolchain { linker: Some(SPARC_LINKER.into()), target: TARGET_SPARC, ..found })
    }

    /// The compiler on `PATH`, when it has the target.
    fn with_target() -> Option<Toolchain> {
        let sysroot = sysroot(Path::new("rustc"))?;
        let there = sysroot.join("lib/rustlib").join(TARGET).join("lib").is_dir();
        there.then(|| Toolchain { cargo: "cargo".into(), rustc: None, build_std: false, linker: None, target: TARGET })
    }

    /// A compiler whose library source is installed, with the cargo beside it.
    fn with_source() -> Option<Toolchain> {
        Self::compilers().into_iter().find_map(Self::with_source_of)
    }

    /// The compiler on `PATH`, then the distribution's.
    fn compilers() -> Vec<PathBuf> {
        let mut compilers = vec![PathBuf::from("rustc"), PathBuf::from("/usr/bin/rustc")];
        // Ubuntu's versioned packages: /usr/bin/rustc-1.85 and so on, the newest first.
        let mut versioned: Vec<PathBuf> = std::fs::read_dir("/usr/bin")
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("rustc-1.")))
            .collect();
        versioned.sort_by_key(|path| std::cmp::Reverse(minor(path)));
        compilers.append(&mut versioned);
        compilers
    }

    /// This compiler, if it has its library source and a cargo beside it.
    fn with_source_of(rustc: PathBuf) -> Option<Toolchain> {
        let library = sysroot(&rustc)?.join("lib/rustlib/src/rust/library/core/src/lib.rs");
        let new_enough = minor(&rustc)? >= OLDEST;
        let cargo = PathBuf::from(rustc.to_str()?.replace("rustc", "cargo"));
        let runs = process::output(plain(&mut Command::new(&cargo)).arg("--version")).is_some();
        (library.is_file() && new_enough && runs).then_some(Toolchain {
            cargo,
            rustc: Some(rustc),
            build_std: true,
            linker: None,
            target: TARGET,
        })
    }

    /// Adds the linker: the compiler's own `rust-lld` where it has one, otherwise `ld.lld`.
    fn linked(mut self) -> Result<Toolchain, String> {
        let rustc = self.rustc.clone().unwrap_or_else(|| "rustc".into());
        let own = |rustc: &Path| {
            sysroot(rustc).is_some_and(|s| s.join("lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld").is_file())
        };
        if own(&rustc) {
            return Ok(self);
        }
        if !process::on_path("ld.lld") {
            packages::install(&["lld"])?;
        }
        self.linker = Some("ld.lld".into());
        Ok(self)
    }

    /// The distribution's packages of a compiler new enough, with its library source.
    fn packages() -> Result<Vec<String>, String> {
        if !process::on_path("apt-get") {
            return Err(format!(
                "no compiler for {TARGET}: neither its library nor the library source is installed\n\
                 With rustup, type: rustup target add {TARGET}\nand run the same command again."
            ));
        }
        let known = || {
            let web = ["rustc-web", "cargo-web", "rust-web-src"].map(String::from);
            if packages::candidate(&web[0]).is_some_and(|v| version_minor(&v).is_some_and(|m| m >= OLDEST)) {
                return Some(web.to_vec());
            }
            let plain = ["rustc", "cargo", "rust-src"].map(String::from);
            if packages::candidate(&plain[0]).is_some_and(|v| version_minor(&v).is_some_and(|m| m >= OLDEST)) {
                return Some(plain.to_vec());
            }
            (OLDEST..OLDEST + 40)
                .rev()
                .find(|m| packages::candidate(&format!("rustc-1.{m}")).is_some())
                .map(|m| vec![format!("rustc-1.{m}"), format!("cargo-1.{m}"), format!("rust-1.{m}-src")])
        };
        let mut list = known()
            .or_else(|| {
                packages::update();
                known()
            })
            .ok_or_else(|| {
                format!(
                    "no compiler for {TARGET}: rustup cannot bring it and the distribution has no Rust 1.{OLDEST} or newer\n\
                 On a machine with network access to rustup's server, type: rustup target add {TARGET}"
                )
            })?;
        list.push("lld".into());
        Ok(list)
    }

    /// A cargo command for the images: compiler, target, linker and flags are set.
    ///
    /// `rustflags` are added to what the target itself needs.
    pub fn cargo(&self, rustflags: &[&str]) -> Command {
        self.cargo_to("build", rustflags)
    }

    /// The same that only checks.
    pub fn cargo_check(&self, rustflags: &[&str]) -> Command {
        self.cargo_to("check", rustflags)
    }

    fn cargo_to(&self, what: &str, rustflags: &[&str]) -> Command {
        let mut command = Command::new(&self.cargo);
        if self.rustc.is_some() || self.build_std {
            plain(&mut command);
        }
        if let Some(rustc) = &self.rustc {
            command.env("RUSTC", rustc);
        }
        command.current_dir(crate::workspace::root());
        command.arg(what).args(["--target", self.target]);
        if self.build_std {
            command.env("RUSTC_BOOTSTRAP", "1").arg("-Zbuild-std=core,alloc");
        }
        let mut flags: Vec<String> = rustflags.iter().map(ToString::to_string).collect();
        if let Some(linker) = &self.linker {
            flags.push(format!("-Clinker={}", linker.display()));
        }
        command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
        command
    }

    /// Whether the compiler knows a flag.
    pub fn takes(&self, flag: &str) -> bool {
        let rustc = self.rustc.as_deref().unwrap_or(Path::new("rustc"));
        process::output(plain(&mut Command::new(rustc)).args(["--print", "cfg", flag])).is_some()
    }

    /// One line for the person who waits.
    pub fn describe(&self) -> String {
        let rustc = self.rustc.as_deref().unwrap_or(Path::new("rustc"));
        let version = process::output(plain(&mut Command::new(rustc)).arg("--version")).unwrap_or_default();
        let how = if self.build_std { ", building core and alloc" } else { "" };
        format!("{}{how}", version.split(" (").next().unwrap_or("rustc").trim())
    }
}

/// Takes out what rustup and an outer cargo put in the environment for *their* compiler.
fn plain(command: &mut Command) -> &mut Command {
    for (key, _) in std::env::vars_os() {
        let name = key.to_string_lossy();
        let outer = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_CFG_", "CARGO_PRIMARY_"];
        if matches!(&*name, "CARGO" | "RUSTC" | "RUSTDOC" | "RUST_RECURSION_COUNT" | "LD_LIBRARY_PATH")
            || outer.iter().any(|prefix| name.starts_with(prefix))
        {
            command.env_remove(&key);
        }
    }
    command
}

/// The directory a compiler keeps its libraries in.
fn sysroot(rustc: &Path) -> Option<PathBuf> {
    let path = process::output(plain(&mut Command::new(rustc)).args(["--print", "sysroot"]))?;
    Some(PathBuf::from(path.trim()))
}

/// The `85` of `rustc 1.85.0`.
fn minor(rustc: &Path) -> Option<u32> {
    version_minor(process::output(plain(&mut Command::new(rustc)).arg("--version"))?.strip_prefix("rustc ")?)
}

/// The `85` of a version that begins `1.85`, a package epoch left out.
fn version_minor(version: &str) -> Option<u32> {
    let version = version.split_once(':').map_or(version, |(_, rest)| rest);
    let (major, rest) = version.split_once('.')?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    if major == "1" { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::version_minor;

    #[test]
    fn minor_of_versions() {
        assert_eq!(version_minor("1.96.0 (ac68faa20 2026-05-25)"), Some(96));
        assert_eq!(version_minor("1.85.0+dfsg3-1"), Some(85));
        assert_eq!(version_minor("1:1.75.0"), Some(75));
        assert_eq!(version_minor("2.0"), None);
        assert_eq!(version_minor("none"), None);
    }
}
