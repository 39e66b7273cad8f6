//! Builds the system-call library (`user/libsyscall`) and the applications on it (`user/programs`, `user/nas`), the programs of L4 (`user/l4`), and libpal
//! (`user/libpal`) with programs on it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::toolchain::{SPARC_LINKER, SPARC_LINKER_PACKAGE};
use crate::{packages, process, workspace};

/// A machine applications are built for.
pub struct Machine {
    /// As its directory below `target/user` is called.
    pub name: &'static str,
    /// As the library's own sources for it are: `user/libsyscall/src/PROCESSOR`.
    pub processor: &'static str,
    pub compiler: &'static str,
    pub archiver: &'static str,
    /// Besides [`FLAGS`].
    pub flags: &'static [&'static str],
    /// What links; the compiler does with [`LINK`] when it is `None`.
    pub linker: Option<&'static str>,
    pub link: &'static [&'static str],
    /// Directories of applications besides `user/programs`.
    pub more: &'static [&'static str],
    /// The NAS kernels that are built; each is linked with [`NAS_COMMON`].
    pub nas: &'static [&'static str],
    /// Packages by the tool they bring.
    pub tools: &'static [(&'static str, &'static str)],
}

/// The Linux guest layer and the bare x86_64 machine: one form of executable for both.
pub const X86_64: Machine = Machine {
    name: "x86_64",
    processor: "x86_64",
    compiler: "cc",
    archiver: "ar",
    // The library's own memcpy must not become a call of itself. In the configurations without a gate interrupts of the bare machine
    // overwrite what is below the stack pointer.
    flags: &["-fcf-protection=none", "-fno-tree-loop-distribute-patterns", "-mno-red-zone"],
    linker: None,
    link: &["-no-pie"],
    more: &[],
    nas: &["ep", "is", "cg", "mg", "ft"],
    tools: &[],
};

/// The LEON3: by LLVM's compiler, which knows the processor, and GNU's linker for SPARC. The compiler of Debian's cross toolchain
/// would displace that for i386.
pub const LEON3: Machine = Machine {
    name: "leon3",
    processor: "sparc",
    compiler: "clang",
    archiver: "sparc64-linux-gnu-ar",
    // As above.
    flags: &["--target=sparc-none-elf", "-mcpu=leon3", "-fintegrated-as", "-fno-builtin"],
    linker: Some(SPARC_LINKER),
    link: &[
        "-melf32_sparc",
        "-static",
        "-T",
        "user/libsyscall/sparc.ld",
        "-z",
        "noexecstack",
        "-z",
        "max-page-size=4096",
        "-u",
        "octo_start",
    ],
    more: &["test/leon3"],
    nas: &["ep", "is"],
    tools: &[("clang", "clang"), (SPARC_LINKER, SPARC_LINKER_PACKAGE)],
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
    "-Iuser/libsyscall/include",
];

/// What every application is linked with: it starts where the kernel starts i-lets, and no page is writable and executable.
const LINK: &[&str] =
    &["-static", "-nostdlib", "-Wl,-e,octo_start", "-Wl,-z,noexecstack", "-Wl,-z,separate-code", "-Wl,--build-id=none"];

/// What the NAS kernels share.
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

/// What code without a C library is compiled with, that of L4 and of libpal.
const FREE_FLAGS: &[&str] = &[
    "-std=gnu11",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-ffreestanding",
    "-fno-pic",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-fcf-protection=none",
    "-fno-tree-loop-distribute-patterns",
];

/// And programs of L4, 32-bit code.
const L4_FLAGS: &[&str] = &["-m32", "-mno-sse", "-mno-mmx", "-Iuser/l4/include"];

/// What they are linked with. Sigma0 is below all root tasks.
const L4_LINK: &[&str] = &[
    "-m32",
    "-static",
    "-nostdlib",
    "-no-pie",
    "-Wl,-e,l4_start",
    "-Wl,-z,noexecstack",
    "-Wl,-z,max-page-size=4096",
    "-Wl,--build-id=none",
];

/// Builds the programs of L4: the directory they are in.
pub fn build_l4() -> Result<PathBuf, String> {
    let dir = workspace::target().join("user/l4");
    let (objects, programs) = (dir.join("obj"), dir.join("bin"));
    for made in [&objects, &programs] {
        fs::create_dir_all(made).map_err(|e| failed(made, &e))?;
    }
    let run = |name: &str, command: &mut Command| {
        process::step("user", &format!("building {name} for L4"), command.current_dir(workspace::root()))
    };
    let compile = |file: &Path| -> Result<PathBuf, String> {
        let object = objects.join(format!("{}.o", stem(file)));
        run(&stem(file), Command::new("cc").args(FREE_FLAGS).args(L4_FLAGS).arg("-c").arg(file).arg("-o").arg(&object))?;
        Ok(object)
    };
    let mut library = Vec::new();
    for ending in ["S", "c"] {
        for file in sources("user/l4/lib", ending)? {
            library.push(compile(&file)?);
        }
    }
    for file in sources("user/l4/programs", "c")? {
        let name = stem(&file);
        let place = if name == "sigma0" { "0x20000" } else { "0x200000" };
        let mut command = Command::new("cc");
        command.args(L4_LINK).arg(format!("-Wl,-Ttext-segment={place}")).arg(compile(&file)?).args(&library);
        run(&name, command.arg("-o").arg(programs.join(&name)))?;
    }
    Ok(programs)
}

/// And libpal and programs on it: everything of the library in one piece.
const PAL_FLAGS: &[&str] = &["-fno-reorder-functions", "-mgeneral-regs-only", "-Iuser/libpal/include"];

/// What programs on it are linked with.
const PAL_LINK: &[&str] = &[
    "-static",
    "-nostdlib",
    "-no-pie",
    "-Wl,-z,noexecstack",
    "-Wl,-z,separate-code",
    "-Wl,-z,max-page-size=4096",
    "-Wl,--build-id=none",
];

/// Builds libpal and the programs of a directory on it: the directory below `target/user/pal` they are in.
pub fn build_pal(sources_in: &str, place: &str) -> Result<PathBuf, String> {
    let dir = workspace::target().join("user/pal");
    let (objects, programs) = (dir.join("obj"), dir.join(place));
    // Programs may be called as parts of the library are.
    let own = objects.join(place);
    for made in [&own, &programs] {
        fs::create_dir_all(made).map_err(|e| failed(made, &e))?;
    }
    let run = |name: &str, command: &mut Command| {
        process::step("user", &format!("building {name} on libpal"), command.current_dir(workspace::root()))
    };
    let compile = |file: &Path, objects: &Path| -> Result<PathBuf, String> {
        let object = objects.join(format!("{}.o", stem(file)));
        run(&stem(file), Command::new("cc").args(FREE_FLAGS).args(PAL_FLAGS).arg("-c").arg(file).arg("-o").arg(&object))?;
        Ok(object)
    };
    // One object, between two marks: the library's code, which programs may not unmap, is in one place.
    let mut parts = vec![compile(&workspace::root().join("user/libpal/mark/begin.S"), &objects)?];
    for ending in ["S", "c"] {
        for file in sources("user/libpal/src", ending)? {
            parts.push(compile(&file, &objects)?);
        }
    }
    parts.push(compile(&workspace::root().join("user/libpal/mark/end.S"), &objects)?);
    let whole = objects.join("libpal.o");
    run("the library", Command::new("cc").args(["-r", "-nostdlib", "-o"]).arg(&whole).args(&parts))?;
    let archive = dir.join("libpal.a");
    let _ = fs::remove_file(&archive);
    run("the library", Command::new("ar").arg("rcs").arg(&archive).arg(&whole))?;
    for file in sources(sources_in, "c")? {
        let name = stem(&file);
        let mut command = Command::new("cc");
        command.args(PAL_LINK).arg(compile(&file, &own)?).arg(&archive).arg("-o").arg(programs.join(&name));
        run(&name, &mut command)?;
    }
    Ok(programs)
}

/// Builds library and applications for a machine.
pub fn build(machine: &Machine) -> Result<Built, String> {
    for (tool, package) in machine.tools {
        if !process::on_path(tool) {
            packages::install(&[package])?;
        }
    }
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
    for ending in ["c", "S"] {
        for file in sources(&format!("user/libsyscall/src/{}", machine.processor), ending)? {
            library.push(compile(&file, &[])?);
        }
    }
    let archive = dir.join("libsyscall.a");
    let _ = fs::remove_file(&archive);
    run("the library", Command::new(machine.archiver).arg("rcs").arg(&archive).args(&library))?;

    let link = |name: &str, objects: &[PathBuf]| {
        let mut command = match machine.linker {
            Some(linker) => Command::new(linker),
            None => compiler(),
        };
        command.args(if machine.linker.is_some() { &[] } else { LINK }).args(machine.link).args(objects).arg(&archive);
        // What the compiler calls for lack of an instruction; where it does not link, the library has it.
        command.args(machine.linker.is_none().then_some("-lgcc")).arg("-o").arg(programs.join(name));
        run(name, &mut command)
    };
    for dir in ["user/programs"].iter().chain(machine.more) {
        for file in sources(dir, "c")? {
            link(&stem(&file), &[compile(&file, &[])?])?;
        }
    }
    if !machine.nas.is_empty() {
        let nas = workspace::root().join("user/nas");
        let common: Result<Vec<_>, _> =
            NAS_COMMON.iter().map(|name| compile(&nas.join(format!("{name}.c")), &["-O3"])).collect();
        let common = common?;
        for name in machine.nas {
            let mut objects = vec![compile(&nas.join(format!("{name}.c")), &["-O3"])?];
            objects.extend(common.iter().cloned());
            link(name, &objects)?;
        }
    }
    Ok(Built { library: archive, programs })
}
