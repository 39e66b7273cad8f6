//! Builds the kernel image, then the `janua` command with the image inside.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io, iter, thread};

use crate::packages::{self, Need};
use crate::toolchain::{TARGET, TARGET_SPARC, Toolchain};
use crate::{process, user, workspace};

/// What the linux image is linked as: a static position-independent executable that its own loader relocates.
const LINUX_FLAGS: &[&str] = &[
    "-Crelocation-model=pic",
    "-Clink-arg=-pie",
    "-Clink-arg=--no-dynamic-linker",
    // Every segment starts a huge page of its own, so that the text can be one.
    "-Clink-arg=-zmax-page-size=2097152",
    "-Clink-arg=-Timage/linux/far.ld",
];

/// Structures up to 128 bytes are copied by loads and stores. Without vector registers the compiler takes a string instruction from
/// 64 bytes on, which needs tens of cycles to start. Left out where the compiler does not know it.
const COPIES: &str = "-Cllvm-args=-max-store-memcpy=16";

/// What the x86_64 image is linked as: a fixed executable at -2 GiB, where its own code model has it.
const X86_64_FLAGS: &[&str] = &[
    "-Crelocation-model=static",
    "-Ccode-model=kernel",
    "-Clink-arg=-Timage/x86_64/link.ld",
    "-Clink-arg=--no-pie",
    "-Clink-arg=-zmax-page-size=4096",
];

/// What the leon3 image is compiled and linked as. The kernel leaves the FPU and the registers %g2 to %g4 to applications; its
/// boot code gives compare-and-swap the right address space (`platform/leon3/src/boot.rs`).
const LEON3_FLAGS: &[&str] = &[
    "-Ctarget-cpu=leon3",
    "-Ctarget-feature=+leoncasa,+soft-float",
    "-Cllvm-args=-sparc-reserve-app-registers",
    "-Clinker-flavor=ld",
    "-Clink-arg=-melf32_sparc",
    "-Clink-arg=-nostdlib",
    "-Clink-arg=-static",
    "-Clink-arg=-Timage/leon3/link.ld",
];

/// The command is a static program at a fixed address: nothing is loaded or relocated at its start, which was a quarter of the
/// time that `janua run -- true` takes.
const COMMAND_FLAGS: &[&str] = &["-Ctarget-feature=+crt-static", "-Crelocation-model=static"];

/// The two files of a built kernel image.
pub struct Image {
    /// As linked: symbols and line tables, for the scan and for debuggers.
    pub full: PathBuf,
    /// Without line tables: the file the `janua` command embeds.
    pub embedded: PathBuf,
}

/// The profile of kernel images: with JANUA_FAST in the environment one that is built in seconds and runs slower.
fn profile() -> &'static str {
    if std::env::var_os("JANUA_FAST").is_some_and(|value| value != "0") { "image-fast" } else { "image" }
}

/// Builds the linux kernel image.
pub fn image() -> Result<Image, String> {
    build("linux", "linux", LINUX_FLAGS)
}

/// A personality of Linux' platform with a kernel image of its own, which a command can be without.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Other {
    L4v2,
    Pal,
}

impl Other {
    const ALL: [Other; 2] = [Other::L4v2, Other::Pal];

    /// Its image's name behind `janua-`.
    fn image(self) -> &'static str {
        match self {
            Other::L4v2 => "linux-l4",
            Other::Pal => "linux-pal",
        }
    }

    /// Whether somebody has asked for its image before.
    fn exists(self) -> bool {
        workspace::target().join("image").join(format!("janua-{}", self.image())).exists()
    }
}

/// Builds the linux kernel image and those of other personalities, at once: while one is linked another can be compiled.
fn images_linux(others: &[Other]) -> Result<Image, String> {
    packages::ensure(Need::Build)?;
    let images: Vec<&str> = iter::once("linux").chain(others.iter().map(|other| other.image())).collect();
    let linked = Linked { platform: "linux", images: &images, flags: LINUX_FLAGS, triple: TARGET, strip: "strip" };
    let dir = workspace::target().join("image");
    build_with(&Toolchain::find()?, &dir, profile(), &linked)?;
    Ok(linked.image(&dir, profile(), "linux"))
}

/// Builds the linux kernel image of the personality `l4v2`.
pub fn image_l4() -> Result<Image, String> {
    build("linux", "linux-l4", LINUX_FLAGS)
}

/// Builds the linux kernel image of the personality `pal`.
pub fn image_pal() -> Result<Image, String> {
    build("linux", "linux-pal", LINUX_FLAGS)
}

/// Builds the kernel image for the bare x86_64 machine.
pub fn image_x86_64() -> Result<Image, String> {
    build("x86_64", "x86_64", X86_64_FLAGS)
}

/// Builds the kernel image for the LEON3.
pub fn image_leon3() -> Result<Image, String> {
    build("leon3", "leon3", LEON3_FLAGS)
}

/// Checks crates that no image for the LEON3 is of: that they compile for its processor, without a warning. What the compiler printed if not.
pub fn check_leon3(crates: &[&str]) -> Result<(), String> {
    packages::ensure(Need::Build)?;
    let flags: Vec<&str> = LEON3_FLAGS.iter().copied().chain(["-Dwarnings"]).collect();
    let mut cargo = Toolchain::find_sparc()?.cargo_check(&flags);
    for name in crates {
        cargo.args(["--package", name]);
    }
    cargo.args(["--quiet", "--color=never", "--target-dir"]).arg(workspace::target().join("image/check-leon3"));
    let output = cargo.stdin(Stdio::null()).output().map_err(|e| format!("cargo check: {e}"))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

fn build(platform: &str, image: &str, flags: &[&str]) -> Result<Image, String> {
    packages::ensure(Need::Build)?;
    let (toolchain, triple, strip) = match platform {
        "leon3" => (Toolchain::find_sparc()?, TARGET_SPARC, "sparc64-linux-gnu-strip"),
        _ => (Toolchain::find()?, TARGET, "strip"),
    };
    let (linked, dir) = (Linked { platform, images: &[image], flags, triple, strip }, workspace::target().join("image"));
    build_with(&toolchain, &dir, profile(), &linked)?;
    Ok(linked.image(&dir, profile(), image))
}

/// The linux image by a compiler of one's choice, in a directory of its own, quick to build.
pub fn image_with(toolchain: &Toolchain, dir: &Path) -> Result<Image, String> {
    let linked = Linked { platform: "linux", images: &["linux"], flags: LINUX_FLAGS, triple: TARGET, strip: "strip" };
    build_with(toolchain, dir, "image-fast", &linked)?;
    Ok(linked.image(dir, "image-fast", "linux"))
}

/// What images of a platform are linked as.
struct Linked<'a> {
    platform: &'a str,
    /// Their names among those of the platform, behind `janua-`.
    images: &'a [&'a str],
    flags: &'a [&'a str],
    triple: &'a str,
    /// The program that takes out line tables.
    strip: &'a str,
}

impl Linked<'_> {
    /// A directory each: the platforms are compiled with different flags, and would displace each other's libraries.
    fn target(&self, dir: &Path) -> PathBuf {
        if self.platform == "linux" { dir.to_path_buf() } else { dir.join(format!("for-{}", self.platform)) }
    }

    /// The files of one of them.
    fn image(&self, dir: &Path, profile: &str, image: &str) -> Image {
        let name = format!("janua-{image}");
        Image { full: self.target(dir).join(self.triple).join(profile).join(&name), embedded: dir.join(&name) }
    }
}

fn build_with(toolchain: &Toolchain, dir: &Path, profile: &str, linked: &Linked<'_>) -> Result<(), String> {
    let Linked { platform, images, flags, strip, .. } = *linked;
    let names = images.join(" and ");
    if images.iter().any(|image| !linked.image(dir, profile, image).full.exists()) {
        eprintln!("janua: building the {names} kernel image with {}", toolchain.describe());
    }
    let mut flags = flags.to_vec();
    if platform == "linux" && toolchain.takes(COPIES) {
        flags.push(COPIES);
    }
    let mut cargo = toolchain.cargo(&flags);
    for image in images {
        cargo.args(["--package", &format!("janua-image-{image}"), "--bin", &format!("janua-{image}")]);
    }
    cargo.args(["--profile", profile, "--target-dir"]).arg(linked.target(dir));
    process::step(&format!("image-{}", images[0]), &format!("building the {names} kernel image"), &mut cargo)?;

    for image in images {
        let Image { full, embedded } = linked.image(dir, profile, image);
        let stripped = dir.join(format!("janua-{image}.new"));
        let mut strip = Command::new(strip);
        strip.arg("--strip-debug").arg("-o").arg(&stripped).arg(&full);
        process::step("strip", "taking the line tables out of the kernel image", &mut strip)?;
        replace(&stripped, &embedded).map_err(|e| format!("{}: {e}", embedded.display()))?;
    }
    Ok(())
}

/// `build` with these arguments.
pub fn command(args: &[String]) -> Result<(), String> {
    // Those that somebody has asked for are kept up to date.
    let mut others: Vec<Other> = Other::ALL.into_iter().filter(|other| other.exists()).collect();
    let mut needed = false;
    // The command embeds the images that are there when it is built.
    for arg in args {
        match arg.as_str() {
            "--needed" => needed = true,
            "--l4v2" => others.push(Other::L4v2),
            "--pal" => others.push(Other::Pal),
            "--boot" => {
                image_x86_64()?;
            }
            "--leon3" => {
                image_leon3()?;
                user::build(&user::LEON3)?;
                image_x86_64()?;
            }
            unknown => {
                return Err(format!(
                    "no such option: {unknown} (there are --boot and --leon3: with the images for bare machines; and --needed: without images of \
                     personalities that nobody has asked for, but with --l4v2 or --pal)"
                ));
            }
        }
    }
    let wanted = Other::ALL.into_iter().filter(|other| !needed || others.contains(other)).collect::<Vec<_>>();
    build_command(&wanted).map(|_| ())
}

/// Builds everything for Linux; the `janua` command is at [`janua`] then.
pub fn all() -> Result<Image, String> {
    build_command(&Other::ALL)
}

/// Builds the command with the images for Linux' programs and for these personalities.
fn build_command(others: &[Other]) -> Result<Image, String> {
    let image = thread::scope(|scope| {
        let beside = (!janua().exists()).then(|| scope.spawn(crates_of_the_command));
        let image = images_linux(others);
        beside.map(|beside| beside.join());
        image
    })?;
    // The command embeds them.
    user::build(&user::X86_64)?;
    user::build_l4()?;
    user::build_pal("user/libpal/programs", "bin")?;
    let mut plugin = workspace::cargo();
    plugin.args(["build", "--release", "--package", "janua-tlb"]);
    process::step("janua-tlb", "building the plugin that models a TLB", &mut plugin)?;
    let mut cargo = workspace::cargo();
    cargo.env("JANUA_TLB_PLUGIN", workspace::target().join("release/libjanua_tlb.so"));
    cargo.args(["rustc", "--release", "--package", "janua", "--bin", "janua"]).env("JANUA_IMAGE_LINUX", &image.embedded);
    for other in others {
        let name = format!("JANUA_IMAGE_{}", other.image().to_uppercase().replace('-', "_"));
        cargo.env(name, workspace::target().join("image").join(format!("janua-{}", other.image())));
    }
    // `janua bench` reports when the image is not the one to measure.
    cargo.env("JANUA_IMAGE_PROFILE", profile());
    cargo.arg("--").args(COMMAND_FLAGS);
    process::step("janua", "building the command", &mut cargo)?;
    Ok(image)
}

/// The first time, builds the crates that the command is made of beside the kernel: one build alone leaves processors idle, which works
/// through its crates one after the other and then links. The command itself waits for the images, so that it fails here for want of one.
fn crates_of_the_command() {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--release", "--keep-going", "--package", "janua", "--bin", "janua"]);
    cargo.env("JANUA_IMAGE_LINUX", "/nonexistent/made-later");
    // What else fails will fail again, with its message.
    let _ = process::step("janua-crates", "building the crates of the command", &mut cargo);
}

/// The built command.
pub fn janua() -> PathBuf {
    workspace::target().join("release/janua")
}

/// Moves `new` over `old` unless they are equal: an unchanged file keeps its time, so nothing that holds it is rebuilt.
fn replace(new: &Path, old: &Path) -> io::Result<()> {
    if fs::read(old).is_ok_and(|bytes| fs::read(new).is_ok_and(|n| n == bytes)) {
        return fs::remove_file(new);
    }
    fs::rename(new, old)
}
