//! Builds the system-call library (`user/libsyscall`) and the applications on it (`user/programs`, `user/nas`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::{process, workspace};

/// A machine applications are built for.
pub struct Machine {
    /// As the directories are called: `user/libsyscall/src/NAME`, `target/user/NAME`.
    pub name: &'static str,
    pub compiler: &'static str,
    pub archiver: &'static str,
    /// Besides [`FLAGS`].
    pub flags: &'static [&'static str],
    /// Besides [`LINK`].
    pub link: &'static [&'static str],
    /// Whether the NAS kernels are built, which need floating point.
    pub nas: bool,
}

/// The Linux guest layer and the bare x86_64 machine: one form of executable for both.
pub const X86_64: Machine = Machine {
    name: "x86_64",
    compiler: "cc",
    archiver: "ar",
    flags: &["-fcf-protection=none"],
    link: &["-no-pie"],
    nas: true,
};

/// What every source is compiled with: no C library and nothing of the host's.
const FLAGS: &[&str] = &[
    "-std=gnu11",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-ffreestanding",
    "-fno-pic",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-fno-math-errno",
    // The library's own memcpy must not become a call of itself.
    "-fno-tree-loop-distribute-patterns",
    "-Iuser/libsyscall/include",
];

/// What every application is linked with: it starts where the kernel starts i-lets, and no page is writable and executable.
const LINK: &[&str] =
    &["-static", "-nostdlib", "-Wl,-e,octo_start", "-Wl,-z,noexecstack", "-Wl,-z,separate-code", "-Wl,--build-id=none"];

/// The NAS kernels; each is linked with [`NAS_COMMON`].
const NAS: &[&str] = &["ep", "is", "cg", "mg", "ft"];
const NAS_COMMON: &[&str] = &["nas", "numbers"];

/// What was built.
pub struct Built {
    pub library: PathBuf,
    /// The directory of the executables.
    pub programs: PathBuf,
}

fn failed(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// The sources of a directory with this ending, in order.
fn sources(dir: &str, ending: &str) -> Result<Vec<PathBuf>, String> {
    let path = workspace::root().join(dir);
    let entries = fs::read_dir(&path).map_err(|e| failed(&path, &e))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|found| found == ending));
    files.sort();
    Ok(files)
}

fn stem(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Builds library and applications for a machine.
pub fn build(machine: &Machine) -> Result<Built, String> {
    let dir = workspace::target().join("user").join(machine.name);
    let (objects, programs) = (dir.join("obj"), dir.join("bin"));
    for made in [&objects, &programs] {
        fs::create_dir_all(made).map_err(|e| failed(made, &e))?;
    }
    let run = |name: &str, command: &mut Command| {
        process::step("user", &format!("building {name} for {}", machine.name), command.current_dir(workspace::root()))
    };
    let compiler = || {
        let mut command = Command::new(machine.compiler);
        command.args(FLAGS).args(machine.flags);
        command
    };
    let compile = |file: &Path, extra: &[&str]| -> Result<PathBuf, String> {
        let object = objects.join(format!("{}.o", stem(file)));
        run(&stem(file), compiler().args(extra).arg("-c").arg(file).arg("-o").arg(&object))?;
        Ok(object)
    };
    let mut library = Vec::new();
    for file in sources("user/libsyscall/src", "c")? {
        library.push(compile(&file, &[])?);
    }
    for file in sources(&format!("user/libsyscall/src/{}", machine.name), "S")? {
        library.push(compile(&file, &[])?);
    }
    let archive = dir.join("libsyscall.a");
    let _ = fs::remove_file(&archive);
    run("the library", Command::new(machine.archiver).arg("rcs").arg(&archive).args(&library))?;

    let link = |name: &str, objects: &[PathBuf]| {
        let mut command = compiler();
        command.args(LINK).args(machine.link).args(objects).arg(&archive).arg("-lgcc").arg("-o").arg(programs.join(name));
        run(name, &mut command)
    };
    for file in sources("user/programs", "c")? {
        link(&stem(&file), &[compile(&file, &[])?])?;
    }
    if machine.nas {
        let nas = workspace::root().join("user/nas");
        let common: Result<Vec<_>, _> =
            NAS_COMMON.iter().map(|name| compile(&nas.join(format!("{name}.c")), &["-O3"])).collect();
        let common = common?;
        for name in NAS.iter().filter(|name| nas.join(format!("{name}.c")).is_file()) {
            let mut objects = vec![compile(&nas.join(format!("{name}.c")), &["-O3"])?];
            objects.extend(common.iter().cloned());
            link(name, &objects)?;
        }
    }
    Ok(Built { library: archive, programs })
}
