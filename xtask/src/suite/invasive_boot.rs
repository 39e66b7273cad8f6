//! Invasive applications on bare x86_64: the files that run on Linux, each test one run of QEMU. What they write there is compared with
//! what they write on Linux.

use std::path::Path;

use super::compare;
use crate::guard::Run;
use crate::tally::Tally;
use crate::user::Built;
use crate::{build, workspace};

/// Seconds one run may take; the NAS kernels take tens on a busy machine.
const LIMIT: u64 = 240;

/// Gates and configurations: options of `janua boot`.
const WAYS: &[&[&str]] = &[
    &["--gate", "syscall"],
    &["--gate", "int", "--answers", "off"],
    &["--kpti", "on"],
    &["--library", "sys-lib-no"],
    &["--library", "vanilla", "--answers", "off"],
];

/// Tiles and cores of each.
const MACHINES: &[(u32, u32)] = &[(1, 1), (1, 4), (2, 2)];

/// Applications whose every line is the same on every machine of a shape.
const RIGHT: &[&str] = &["hello", "words", "signals", "forkjoin", "remote", "dma", "spin", "agents", "locals"];

/// The NAS kernels, whose lines have times in them.
const NAS: &[&str] = &["ep", "is", "cg", "mg", "ft"];

const MEMORY: &str = "which it may not: the application is ended\n";
const PRIVILEGED: &str = "what only the kernel may use: the application is ended\n";
const KERNEL: &str = "0xffffffff80200000, which it may not: the application is ended\n";
/// What `bad` does, what the kernel prints, and the exit code.
const WRONG: &[(&str, &str, i32)] = &[
    ("range", "system call 0x186a0 is out of range", 159),
    ("negative", "system call 0xffffffffffffffff is out of range", 159),
    ("unregistered", "system call 0x51 (eth_open) is not registered", 159),
    ("i386", "a system call of another ABI (0x1)", 159),
    ("pointer", "the address 0x10, which is not the application's memory", 139),
    ("kernel-half", KERNEL, 139),
    ("kernel-half-read", MEMORY, 139),
    ("kernel-half-by-call", "0xffffffff80200000, which is not the application's memory", 139),
    ("kernel-half-jump", KERNEL, 139),
    ("not-canonical", PRIVILEGED, 139),
    ("code", MEMORY, 139),
    ("data-as-code", MEMORY, 139),
    ("privileged", PRIVILEGED, 139),
    ("control-register", PRIVILEGED, 139),
    ("interrupts", PRIVILEGED, 139),
    ("port", PRIVILEGED, 139),
    ("undefined", "is no instruction it may execute", 132),
    ("divide", "divided by zero", 136),
    ("null", "the address 0x8, which it may not", 139),
    ("stack", MEMORY, 139),
    ("stack-pointer", "the address 0xffffffff801ffff8, which it may not", 139),
];

/// What ran: its exit code, and what was written.
type Outcome = (i32, String);

/// Runs janua with these arguments and an application.
fn janua(arguments: &[&str], application: &Path, rest: &[&str], image: Option<&Path>) -> Result<Outcome, String> {
    let dir = compare::place().join("invasive-boot");
    let mut command = vec![build::janua().display().to_string()];
    command.extend(arguments.iter().map(ToString::to_string));
    command.extend(["--".into(), application.display().to_string()]);
    command.extend(rest.iter().map(ToString::to_string));
    let env = image.map(|image| ("JANUA_IMAGE_X86_64".to_owned(), image.display().to_string()));
    let run = Run { command, dir: &dir, env: env.into_iter().collect(), limit: LIMIT, terminal: None };
    let outcome = run.outcome(&dir.join("report"))?;
    Ok((outcome.code, String::from_utf8_lossy(&outcome.output).into_owned()))
}

/// Boots an application on that many tiles and cores of each.
fn boot(
    image: &Path,
    (tiles, cores): (u32, u32),
    options: &[&str],
    application: &Path,
    rest: &[&str],
) -> Result<Outcome, String> {
    let (smp, tiles) = ((tiles * cores).to_string(), tiles.to_string());
    let machine = ["boot", "--personality", "invasive", "--smp", &smp, "--tiles", &tiles];
    janua(&[&machine, options].concat(), application, rest, Some(image))
}

/// The application prints and does the same as on Linux.
fn same(image: &Path, shape: (u32, u32), options: &[&str], application: &Path) -> Result<(), String> {
    let (tiles, cores) = (shape.0.to_string(), shape.1.to_string());
    let run = ["run", "--personality", "invasive", "--tiles", &tiles, "--cores", &cores];
    let there = janua(&[&run, compare::jail("signal")].concat(), application, &[], None)?;
    let here = boot(image, shape, options, application, &[])?;
    if here == there && here.0 == 0 {
        return Ok(());
    }
    Err(format!("exit code {} and\n{}\non Linux exit code {} and\n{}", here.0, here.1, there.0, there.1))
}

fn expect((code, output): Outcome, says: &str, wanted: i32) -> Result<(), String> {
    if code == wanted && output.contains(says) {
        return Ok(());
    }
    Err(format!("exit code {code} instead of {wanted}, and instead of `{}` it wrote:\n{output}", says.trim_end()))
}

/// Runs the tests whose name holds the filter, one after the other: QEMU wants the processors for itself.
pub fn run(filter: Option<&str>, built: &Built, tally: &mut Tally) -> Result<(), String> {
    let wanted = |name: &str| super::wanted(filter, name);
    let programs = |name: &str| built.programs.join(name);
    let mut image = None;
    let mut test = |name: &str, body: &dyn Fn(&Path) -> Result<(), String>| -> Result<(), String> {
        if !wanted(name) {
            return Ok(());
        }
        if image.is_none() {
            compare::fresh(&compare::place().join("invasive-boot"))?;
            image = Some(build::image_x86_64()?.embedded);
        }
        if let Some(image) = &image {
            tally.check(name, body(image));
        }
        Ok(())
    };
    for (index, way) in WAYS.iter().enumerate() {
        let label = way.join(" ");
        for &shape in MACHINES.iter().filter(|shape| index == 0 || shape.0 > 1) {
            for name in RIGHT.iter().filter(|_| index == 0 || !super::quick()) {
                let test_name = format!("invasive/x86_64/{name}/{}x{}/{label}", shape.0, shape.1);
                test(&test_name, &|image| same(image, shape, way, &programs(name)))?;
            }
        }
        test(&format!("invasive/x86_64/kicks/{label}"), &|image| {
            expect(boot(image, (2, 1), way, &programs("kicks"), &[])?, "3000 messages interrupted some calls\n", 0)
        })?;
    }
    for gate in ["syscall", "int"] {
        test(&format!("invasive/x86_64/stats/{gate}"), &|image| {
            let options = ["--gate", gate, "--stats"];
            expect(boot(image, (1, 1), &options, &programs(RIGHT[0]), &[])?, &format!(" calls by the gate {gate}\n"), 0)
        })?;
    }
    for name in NAS {
        test(&format!("invasive/x86_64/{name}/2x2"), &|image| {
            expect(boot(image, (2, 2), &[], &programs(name), &["S"])?, "verification successful\n", 0)
        })?;
    }
    for (what, says, code) in WRONG {
        test(&format!("invasive/x86_64/bad/{what}"), &|image| {
            expect(boot(image, (1, 2), &[], &programs("bad"), &[what])?, says, *code)
        })?;
    }
    test("invasive/x86_64/bad/memory", &|image| {
        expect(boot(image, (1, 1), &["--memory", "64"], &programs("bad"), &["memory"])?, "no memory is left", 125)
    })?;
    test("invasive/x86_64/system's compiler", &|image| foreign(image, built))
}

/// An application that only the system's compiler, the public headers and the library have made.
fn foreign(image: &Path, built: &Built) -> Result<(), String> {
    let dir = compare::place().join("invasive-boot");
    let (source, application) = (dir.join("foreign.c"), dir.join("foreign"));
    let text = "#include <octo.h>\nvoid main_ilet(claim_t claim)\n{\n    octo_printf(\"%u cores\\n\", get_tile_core_count());\n    \
                shutdown(claim == get_claim() ? 5 : 6);\n}\n";
    std::fs::write(&source, text).map_err(|e| e.to_string())?;
    let mut compiler = std::process::Command::new("cc");
    compiler
        .args([
            "-O2",
            "-ffreestanding",
            "-fno-stack-protector",
            "-fno-pic",
            "-no-pie",
            "-static",
            "-nostdlib",
            "-Wl,-e,octo_start",
        ])
        .arg(format!("-I{}", workspace::root().join("user/libsyscall/include").display()))
        .args([source.as_path(), &built.library])
        .args(["-Wl,-z,separate-code", "-Wl,-z,noexecstack", "-o"])
        .arg(&application);
    let made = compiler.output().map_err(|e| format!("cc: {e}"))?;
    if !made.status.success() {
        return Err(String::from_utf8_lossy(&made.stderr).into_owned());
    }
    for options in [&[][..], &["--gate", "int"]] {
        expect(boot(image, (1, 2), options, &application, &[])?, "2 cores\n", 5)?;
    }
    Ok(())
}
