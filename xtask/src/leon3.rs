//! Builds the system-call library and the applications for the LEON3: with LLVM's compiler, which knows the processor, and GNU's
//! linker for SPARC. The compiler of Debian's cross toolchain would displace that for i386.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::toolchain::{SPARC_LINKER, SPARC_LINKER_PACKAGE};
use crate::{packages, process, workspace};

const COMPILER: &str = "clang";
const FLAGS: &[&str] = &[
    "--target=sparc-none-elf",
    "-mcpu=leon3",
    "-fintegrated-as",
    "-std=gnu11",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-ffreestanding",
    // The library's own memcpy must not become a call of itself.
    "-fno-builtin",
    "-Iuser/libsyscall/include",
];
const LINK: &[&str] =
    &["-melf32_sparc", "-static", "-T", "user/libsyscall/sparc.ld", "-z", "noexecstack", "-z", "max-page-size=4096", "-u", "octo_start"];

/// Those of the NAS kernels that are for this machine, and what they are linked with.
const NAS: &[&str] = &["ep", "is"];
const NAS_COMMON: &[&str] = &["nas", "numbers"];

/// Builds all of them: the directory of the executables.
pub fn programs() -> Result<PathBuf, String> {
    for (tool, package) in [(COMPILER, "clang"), (SPARC_LINKER, SPARC_LINKER_PACKAGE)] {
        if !process::on_path(tool) {
            packages::install(&[package])?;
        }
    }
    let dir = workspace::target().join("user/leon3");
    let (objects, programs) = (dir.join("obj"), dir.join("bin"));
    for made in [&objects, &programs] {
        fs::create_dir_all(made).map_err(|e| format!("{}: {e}", made.display()))?;
    }
    let compile = |file: &Path| -> Result<PathBuf, String> {
        let object = objects.join(format!("{}.o", stem(file)));
        let mut command = Command::new(COMPILER);
        command.current_dir(workspace::root()).args(FLAGS).arg("-c").arg(file).arg("-o").arg(&object);
        process::step("user-leon3", &format!("compiling {} for the LEON3", file.display()), &mut command)?;
        Ok(object)
    };
    let all = |dir: &str, ending: &str| -> Result<Vec<PathBuf>, String> {
        sources(dir, ending)?.iter().map(|file| compile(file)).collect()
    };
    let mut library = all("user/libsyscall/src", "c")?;
    library.extend(all("user/libsyscall/src/sparc", "c")?);
    library.extend(all("user/libsyscall/src/sparc", "S")?);
    let archive = dir.join("libsyscall.a");
    let _ = fs::remove_file(&archive);
    let mut ar = Command::new("sparc64-linux-gnu-ar");
    process::step("user-leon3", "making the library for the LEON3", ar.arg("rcs").arg(&archive).args(&library))?;

    let link = |name: &str, objects: &[PathBuf]| {
        let mut command = Command::new(SPARC_LINKER);
        command.current_dir(workspace::root()).args(LINK).args(objects).arg(&archive).arg("-o").arg(programs.join(name));
        process::step("user-leon3", &format!("linking {name} for the LEON3"), &mut command)
    };
    for dir in ["user/programs", "test/leon3"] {
        for file in sources(dir, "c")? {
            link(&stem(&file), &[compile(&file)?])?;
        }
    }
    let nas = workspace::root().join("user/nas");
    if nas.is_dir() {
        let common: Vec<PathBuf> =
            NAS_COMMON.iter().map(|name| compile(&nas.join(format!("{name}.c")))).collect::<Result<_, _>>()?;
        for name in NAS {
            let object = compile(&nas.join(format!("{name}.c")))?;
            link(name, &[&[object], &common[..]].concat())?;
        }
    }
    Ok(programs)
}

fn stem(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The sources of a directory with this ending, in order.
fn sources(dir: &str, ending: &str) -> Result<Vec<PathBuf>, String> {
    let path = workspace::root().join(dir);
    let entries = fs::read_dir(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|found| found == ending));
    files.sort();
    Ok(files)
}
