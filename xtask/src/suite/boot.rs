//! Programs on the bare x86_64 machine: each test is one run of QEMU.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{boot_conformance, boot_disk, boot_fault, boot_terminal, boot_tiles, compare};
use crate::guard::Run;
use crate::tally::Tally;
use crate::{build, process, workspace};

/// Seconds one run may take; the longest takes a few.
pub(super) const LIMIT: u64 = 180;

/// A run: the program and its arguments, what it writes, its exit code.
struct Case {
    name: &'static str,
    /// Without the built tree: with what `janua boot` packs by itself.
    own_tree: bool,
    /// Further options of `janua boot`.
    options: &'static [&'static str],
    command: &'static [&'static str],
    output: &'static str,
    code: i32,
}

const fn case(name: &'static str, command: &'static [&'static str], output: &'static str, code: i32) -> Case {
    Case { name, own_tree: false, options: &[], command, output, code }
}

const fn with(
    name: &'static str,
    options: &'static [&'static str],
    command: &'static [&'static str],
    output: &'static str,
    code: i32,
) -> Case {
    Case { name, own_tree: false, options, command, output, code }
}

const TICKLESS: &str = "sleeps end when they are due: yes\nwake-ups wait for nothing: yes\n";
const SLICES: &str = "sleeps end with a slice: yes\nevents after a delay: with a slice\nwake-ups wait for nothing: yes\n";

const DEADLINES: &str = "\
more than there is is refused: yes
what makes no sense is refused: yes
each processor has room for one: yes
another demand in its place: yes
what was refused changes nothing: yes
what has ended leaves its time: yes
so does what is ordinary again: yes
among others: yes
what was promised is kept: yes
and not exceeded: yes
it may run everywhere: yes
a turn ends with its period: yes
sleeps end when they are due: yes
";

/// With page-table isolation.
const ISOLATED: &[&str] = &["--kpti", "on"];

const GATES: &str = "\
syscall ok
int 0x30 ok
lock nop ok
sysenter ok
call gate ok
int 0x30 writes
lock nop writes
sysenter writes
call gate writes
int 0x30 restarts: yes
lock nop restarts: yes
sysenter restarts: yes
call gate restarts: yes
single steps: harmless
vsyscall time ok
vsyscall gettimeofday ok
no such call: -38 -38
";

const FAULTS: &str = "\
null_read 11
kernel_read 11
kernel_write 11
kernel_jump 11
non_canonical_jump 11
non_canonical_read 11
halts 11
masks 11
ports 11
page_table 11
msr 11
invalid 4
divides 8
breakpoint 5
gate_of_kernel 11
stack_in_kernel 11
null_stack 11
data_is_no_code 11
text_is_read_only 11
returns_from_no_signal 11
all_memory 9
janua: out of memory: process N (faults) is killed, which has N MiB
";

const HARDENING: &str = "\
returns_to_kernel 11
returns_to_non_canonical 11
returns_to_hole 11
returns_to_null 11
vsyscall_on_kernel_stack 11
vsyscall_at_the_end 11
vsyscall_on_null 11
vsyscall_on_non_canonical 11
vsyscall_middle 11
vsyscall_read 11
loads_gdt 11
stores_gdt 11
stores_machine_word 11
swaps_gs 11
opens_user_memory 4
cr0 11
cr4 11
returns_by_sysret 11
leaves_by_sysexit 11
far_to_kernel_code 11
far_to_task 11
kernel_stack_segment 11
raises_nmi 11
raises_double_fault 11
raises_page_fault 11
raises_interrupt 11
raises_spurious 11
syscall keeps: yes yes yes
sysenter keeps: yes yes yes
int 0x30 keeps: yes yes yes
lock nop keeps: yes yes yes
call gate keeps: yes yes yes
GS base is kept: yes
stack in the kernel: harmless
single step into the call gate: harmless
the vDSO stays: 13 refused, there
";

const CONTENDED: &str = "syscall: kept\nint 0x30: kept\nlock nop: kept\ncall gate: kept\n";

const I386: &str = "\
pointers of 4 bytes
int 0x80: ok
signal: ok
threads: 4000, their own: ok, mine: 7
child: 8
32-bit syscall: 4
clock: ok
";

/// What `gates32` writes with the instruction that its calls are by.
macro_rules! gates32 {
    ($instruction:literal) => {
        concat!(
            "calls by ",
            $instruction,
            "\nanswers: yes\nkeeps: yes yes yes\nsix arguments: yes\nrestarts: yes yes\n",
            "with a signal: yes\nstepped: yes\nclocks of the vDSO: yes\nno such clock: -22 -22 -22\n",
            "gettimeofday, time: yes\ngetcpu: yes\n64-bit code: yes yes\nint 0x30: yes\n"
        )
    };
}

const SYSENTER32: &str = gates32!("sysenter");
const SYSCALL32: &str = gates32!("syscall");
const INT32: &str = gates32!("int 0x80");

/// Makers of the emulated processor: by which instruction 32-bit programs make their calls.
const ON_INTEL: &[&str] = &["--cpu", "max,vendor=GenuineIntel"];
const ON_AMD: &[&str] = &["--cpu", "max,vendor=AuthenticAMD"];
const ON_OTHER: &[&str] = &["--cpu", "max,vendor=CentaurHauls"];
const ISOLATED_INTEL: &[&str] = &["--kpti", "on", "--cpu", "max,vendor=GenuineIntel"];
const ISOLATED_AMD: &[&str] = &["--kpti", "on", "--cpu", "max,vendor=AuthenticAMD"];

/// Processors whose vector registers the kernel has by FXSAVE: one whose XSAVE QEMU does not let it switch on, and one without.
const ON_OPTERON: &[&str] = &["--cpu", "Opteron_G5", "--env", "CORES=2"];
const ON_PLAIN: &[&str] = &["--cpu", "qemu64", "--env", "CORES=2"];

const HARDENING32: &str = "\
null_stack 11
kernel_stack 11
stack_at_the_end 11
odd_null_stack 11
unmapped_stack 11
unreadable_stack 11
fresh_odd_stack 11
no_landing 11
written_landing 11
step_in 5
huge_number -7
far_to_kernel_code 11
far_to_kernel_code_rpl3 11
far_to_kernel_data 11
far_to_task 11
far_to_null 11
far_to_nothing 11
far_beyond 11
kernel_stack_segment 11
leaves_by_sysexit 11
wide_sysenter 11
wide_jump_to_kernel 11
wide_bad_stack 11
wide_sysret 11
";

/// As [`I386`], on a processor that has the instruction: it ends by its stack.
const I386_AMD: &str = "\
pointers of 4 bytes
int 0x80: ok
signal: ok
threads: 4000, their own: ok, mine: 7
child: 8
32-bit syscall: 11
clock: ok
";

const MEMORY: &str = "\
private after fork ok
shared after fork ok
shared write reaches the file ok
private write does not ok
file write reaches the mapping ok
behind the end of a cut file ok
write without the right ok
no right at all ok
a right to write is one to read ok
what was there is there again ok
dropped pages are zero ok
moved and grown ok
gone ok
a call with a bad pointer ok
memory comes back ok
";

const THREADS: &str = "registers kept: yes\nslept while others loop: yes\nsum: 40000\n";

const SMP: &str = "\
cores as told: yes
runs where it is asked to: yes
the clock goes on: yes
registers move along: yes
threads race well: yes
forks at once: yes
unmapped under use: yes
protected under use: yes
copies stand still: yes
ping-pong: yes
moved by others: yes
loops share: yes
a loop is killed: yes
";

const OOM: &str = "\
eater: signal 9
other: exit code 7
eater: signal 9
other: exit code 7
janua: out of memory: process N (oom) is killed, which has N MiB
janua: out of memory: process N (oom) is killed, which has N MiB
";

const OOM_ALONE: &str = "janua: out of memory: process N (oom) is killed, which has N MiB\n";

const CASES: &[Case] = &[
    Case {
        name: "boot/shell",
        own_tree: true,
        options: &[],
        command: &["/bin/sh", "-c", "echo $((6*7)); ls -d /bin /proc/self | sort; echo a b | wc -w; exit 7"],
        output: "42\n/bin\n/proc/self\n2\n",
        code: 7,
    },
    Case {
        name: "boot/path",
        own_tree: true,
        options: &[],
        command: &["sh", "-c", "uname -sm; kill -15 $$"],
        output: "Linux x86_64\n",
        code: 128 + 15,
    },
    Case {
        name: "boot/missing",
        own_tree: true,
        options: &[],
        command: &["/bin/nosuch"],
        output: "janua: /bin/nosuch: no such file or directory (or its interpreter is missing) inside the sandbox\n",
        code: 127,
    },
    Case {
        name: "boot/end_of_input",
        own_tree: true,
        options: &[],
        command: &["/bin/sh", "-c", "cat; echo end; tty; head -c 4 /dev/zero | od -t x1"],
        output: "end\nnot a tty\n0000000 00 00 00 00\n0000004\n",
        code: 0,
    },
    with("boot/smp/1", &["--smp", "1", "--env", "CORES=1"], &["/bin/smp"], SMP, 0),
    with("boot/smp/2", &["--smp", "2", "--env", "CORES=2"], &["/bin/smp"], SMP, 0),
    with("boot/smp/4", &["--smp", "4", "--env", "CORES=4"], &["/bin/smp"], SMP, 0),
    with(
        "boot/smp/shell",
        &["--smp", "4"],
        &["/bin/sh", "-c", "nproc; for i in 1 2 3 4 5 6 7 8; do (sh -c \"echo $i | cat\") & done | sort -n; wait"],
        "4\n1\n2\n3\n4\n5\n6\n7\n8\n",
        0,
    ),
    with("boot/oom", &["--memory", "96"], &["/bin/oom"], OOM, 0),
    with("boot/oom/alone", &["--memory", "96"], &["/bin/oom", "alone"], OOM_ALONE, 128 + 9),
    with("boot/large", &["--memory", "5120"], &["/bin/large"], "more than 4 GiB: yes\nkept: yes\n", 0),
    case("boot/gates", &["/bin/gates"], GATES, 0),
    case("boot/faults", &["/bin/faults"], FAULTS, 0),
    case("boot/hardening", &["/bin/hardening"], HARDENING, 0),
    with("boot/contended", &["--smp", "2"], &["/bin/contended"], CONTENDED, 0),
    with("boot/isolated/contended", &["--kpti", "on", "--smp", "2"], &["/bin/contended"], CONTENDED, 0),
    with("boot/isolated/contended/one-core", &["--kpti", "on", "--smp", "1"], &["/bin/contended"], CONTENDED, 0),
    case("boot/i386/static", &["/bin/program32-static"], I386, 3),
    case("boot/i386/dynamic", &["/bin/program32"], I386, 3),
    with("boot/i386/sysenter", ON_INTEL, &["/bin/gates32"], SYSENTER32, 0),
    with("boot/i386/syscall", ON_AMD, &["/bin/gates32"], SYSCALL32, 0),
    with("boot/i386/int80", ON_OTHER, &["/bin/gates32"], INT32, 0),
    with("boot/i386/amd", ON_AMD, &["/bin/program32"], I386_AMD, 3),
    with("boot/i386/hardening", ON_INTEL, &["/bin/hardening32"], HARDENING32, 0),
    with("boot/i386/hardening/amd", ON_AMD, &["/bin/hardening32"], HARDENING32, 0),
    with("boot/old/opteron/threads", ON_OPTERON, &["/bin/threads-glibc"], THREADS, 42),
    with("boot/old/opteron/smp", ON_OPTERON, &["/bin/smp"], SMP, 0),
    with("boot/old/plain/threads", ON_PLAIN, &["/bin/threads-glibc"], THREADS, 42),
    with("boot/old/plain/faults", ON_PLAIN, &["/bin/faults"], FAULTS, 0),
    with("boot/old/plain/i386", ON_PLAIN, &["/bin/program32"], I386_AMD, 3),
    case("boot/memory", &["/bin/memory"], MEMORY, 0),
    with("boot/isolated/gates", ISOLATED, &["/bin/gates"], GATES, 0),
    with("boot/isolated/faults", ISOLATED, &["/bin/faults"], FAULTS, 0),
    with("boot/isolated/hardening", ISOLATED, &["/bin/hardening"], HARDENING, 0),
    with("boot/isolated/memory", ISOLATED, &["/bin/memory"], MEMORY, 0),
    with("boot/isolated/preempt", ISOLATED, &["/bin/preempt"], "timer\nthread\nprocess\n", 0),
    with("boot/isolated/threads", ISOLATED, &["/bin/threads-glibc"], THREADS, 42),
    with("boot/isolated/smp", &["--kpti", "on", "--smp", "2", "--env", "CORES=2"], &["/bin/smp"], SMP, 0),
    with("boot/isolated/i386", ISOLATED, &["/bin/program32"], I386, 3),
    with("boot/isolated/i386/sysenter", ISOLATED_INTEL, &["/bin/gates32"], SYSENTER32, 0),
    with("boot/isolated/i386/syscall", ISOLATED_AMD, &["/bin/gates32"], SYSCALL32, 0),
    with("boot/isolated/i386/hardening", ISOLATED_INTEL, &["/bin/hardening32"], HARDENING32, 0),
    with("boot/isolated/i386/hardening/amd", ISOLATED_AMD, &["/bin/hardening32"], HARDENING32, 0),
    case("boot/preempt", &["/bin/preempt"], "timer\nthread\nprocess\n", 0),
    case("boot/threads/musl", &["/bin/threads"], THREADS, 42),
    with("boot/threads/one-core", &["--smp", "1"], &["/bin/threads"], THREADS, 42),
    with("boot/preempt/one-core", &["--smp", "1"], &["/bin/preempt"], "timer\nthread\nprocess\n", 0),
    with("boot/deadline", &["--smp", "2"], &["/bin/deadline", "2"], DEADLINES, 0),
    with("boot/deadline/one-core", &["--smp", "1"], &["/bin/deadline", "1"], DEADLINES, 0),
    with("boot/deadline/1ms", &["--smp", "1", "--slice", "1ms"], &["/bin/deadline", "1"], DEADLINES, 0),
    case("boot/slice/default", &["/bin/slice"], TICKLESS, 0),
    with("boot/slice/tickless", &["--slice", "tickless", "--smp", "1"], &["/bin/slice"], TICKLESS, 0),
    with("boot/slice/80ms", &["--slice", "80ms"], &["/bin/slice", "80"], SLICES, 0),
    with("boot/slice/80ms/one-core", &["--slice", "80ms", "--smp", "1"], &["/bin/slice", "80"], SLICES, 0),
    with("boot/slice/300ms", &["--slice", "300ms"], &["/bin/slice", "300"], SLICES, 0),
    with("boot/slice/preempt", &["--slice", "80ms", "--smp", "1"], &["/bin/preempt"], "timer\nthread\nprocess\n", 0),
    with("boot/slice/preempt/1ms", &["--slice", "1ms", "--smp", "1"], &["/bin/preempt"], "timer\nthread\nprocess\n", 0),
    with("boot/slice/threads", &["--slice", "80ms"], &["/bin/threads"], THREADS, 42),
    with("boot/slice/threads/1ms", &["--slice", "1ms"], &["/bin/threads-glibc"], THREADS, 42),
    case("boot/threads/glibc", &["/bin/threads-glibc"], THREADS, 42),
    case("boot/threads/glibc-static", &["/bin/threads-glibc-static"], THREADS, 42),
    case(
        "boot/pipes",
        &["/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; done | sort -n | tail -1; (sleep 1; echo late) & wait"],
        "10\nlate\n",
        0,
    ),
];

/// Runs the tests whose name holds the filter, one after the other: QEMU wants a processor for itself.
pub fn run(filter: Option<&str>, tally: &mut Tally) -> Result<(), String> {
    let chosen: Vec<&Case> = CASES.iter().filter(|case| super::wanted(filter, case.name)).collect();
    if super::native() {
        return Ok(());
    }
    let image = build::image_x86_64()?.embedded;
    let dir = compare::place().join("boot");
    compare::fresh(&dir)?;
    if !chosen.is_empty() {
        let tree = dir.join("tree");
        make_tree(&tree)?;
        for case in chosen {
            tally.check(case.name, check(case, &image, &dir, &tree));
        }
    }
    boot_disk::run(filter, &image, &dir, tally);
    boot_fault::run(filter, &image, &dir, tally);
    boot_tiles::run(filter, &image, &dir, tally);
    if super::wanted(filter, "boot/refusals") {
        tally.check("boot/refusals", refusals(&image, &dir));
    }
    if super::wanted(filter, "boot/stream") {
        tally.check("boot/stream", stream(&image, &dir));
    }
    if super::wanted(filter, "boot/lines") {
        tally.check("boot/lines", lines(&image, &dir));
    }
    boot_terminal::run(filter, &image, &dir, tally)?;
    boot_conformance::run(filter, &image, &dir, tally)?;
    let _ = compare::clear(&dir);
    Ok(())
}

fn check(case: &Case, image: &Path, dir: &Path, tree: &Path) -> Result<(), String> {
    let mut command = vec![build::janua().display().to_string(), "boot".into()];
    if !case.own_tree {
        command.extend(["--ramfs".into(), tree.display().to_string()]);
    }
    command.extend(case.options.iter().map(ToString::to_string));
    command.push("--".into());
    command.extend(case.command.iter().map(ToString::to_string));
    let env = vec![("JANUA_IMAGE_X86_64".to_string(), image.display().to_string())];
    let outcome = Run { command, dir, env, limit: LIMIT, terminal: None }.outcome(&dir.join("report"))?;
    let output = sorted_out(&String::from_utf8_lossy(&outcome.output));
    if outcome.code != case.code {
        return Err(format!("exit code {} instead of {}; it wrote:\n{output}", outcome.code, case.code));
    }
    if output != case.output {
        return Err(compare::difference(case.output.as_bytes(), output.as_bytes()));
    }
    Ok(())
}

/// The kernel's words on who was killed come by a way of their own, at any place among what programs write: at the end, and without
/// their numbers.
fn sorted_out(output: &str) -> String {
    let (kernel, programs): (Vec<&str>, Vec<&str>) =
        output.split_inclusive('\n').partition(|line| line.starts_with("janua: out of memory"));
    let mut text = programs.concat();
    for line in kernel {
        let mut number = false;
        for letter in line.chars() {
            if !letter.is_ascii_digit() {
                text.push(letter);
            } else if !number {
                text.push('N');
            }
            number = letter.is_ascii_digit();
        }
    }
    text
}

/// What comes by standard input goes through the machine unchanged, on one core and on more: several runs, since what goes wrong between
/// cores does not go wrong each time.
fn stream(image: &Path, dir: &Path) -> Result<(), String> {
    let input = dir.join("input");
    // More than the kernel holds for readers, with runs of the bytes that mean something on the line.
    let bytes: Vec<u8> = (0..200_000u32).map(|n| if n % 1000 < 10 { 255 } else { (n.wrapping_mul(n) >> 8) as u8 }).collect();
    fs::write(&input, &bytes).map_err(|e| format!("{}: {e}", input.display()))?;
    for cores in ["1", "2", "2", "2", "4"] {
        let line = format!("exec {} boot --smp {cores} -- /bin/busybox cat <{}", build::janua().display(), input.display());
        let command = ["/bin/sh", "-c", &line].map(String::from).to_vec();
        let env = vec![("JANUA_IMAGE_X86_64".to_string(), image.display().to_string())];
        let outcome = Run { command, dir, env, limit: LIMIT, terminal: None }.outcome(&dir.join("report"))?;
        if outcome.code != 0 || outcome.output != bytes {
            let same = outcome.output.iter().zip(&bytes).take_while(|(a, b)| a == b).count();
            return Err(format!(
                "{cores} cores: exit code {}, {} bytes, {same} of them right",
                outcome.code,
                outcome.output.len()
            ));
        }
    }
    Ok(())
}

/// What programs on several cores write at once comes out write by write.
fn lines(image: &Path, dir: &Path) -> Result<(), String> {
    const WRITERS: [&str; 4] = ["a", "b", "c", "d"];
    const EACH: usize = 100;
    let script = format!(
        "for i in {}; do (l=$i; while [ ${{#l}} -lt 64 ]; do l=$l$l; done; n=0; while [ $n -lt {EACH} ]; do echo $l; n=$((n+1)); done) & done; wait",
        WRITERS.join(" ")
    );
    let command = [&build::janua().display().to_string(), "boot", "--smp", "4", "--", "/bin/sh", "-c", &script]
        .map(String::from)
        .to_vec();
    let env = vec![("JANUA_IMAGE_X86_64".to_string(), image.display().to_string())];
    let outcome = Run { command, dir, env, limit: LIMIT, terminal: None }.outcome(&dir.join("report"))?;
    let text = String::from_utf8_lossy(&outcome.output);
    for writer in WRITERS {
        let whole = text.lines().filter(|line| *line == writer.repeat(64)).count();
        if whole != EACH {
            return Err(format!("exit code {}, {whole} of {EACH} lines of {writer} are whole", outcome.code));
        }
    }
    if text.lines().count() == WRITERS.len() * EACH { Ok(()) } else { Err(format!("{} lines", text.lines().count())) }
}

/// What `janua boot` prints for file trees that cannot be, and for a machine that is not installed: the reason and the remedy.
fn refusals(image: &Path, dir: &Path) -> Result<(), String> {
    let described = |e: std::io::Error| format!("{}: {e}", dir.display());
    fs::write(dir.join("text.cpio"), "no archive").map_err(described)?;
    fs::write(dir.join("packed.cpio"), b"\x1f\x8b\x08").map_err(described)?;
    let header = |name: &str, size: u32| {
        let fields = [1, 0o100_644, 0, 0, 1, 0, size, 0, 0, 0, 0, name.len() as u32 + 1, 0];
        let fields: String = fields.iter().map(|field| format!("{field:08x}")).collect();
        format!("070701{fields}{name}\0")
    };
    // One whole entry of 112 bytes; then one that is longer than the archive.
    fs::write(dir.join("cut.cpio"), format!("{}{}abc", header("a", 0), header("b", 100))).map_err(described)?;
    fs::create_dir_all(dir.join("large")).map_err(described)?;
    File::create(dir.join("large/file")).and_then(|file| file.set_len(300 << 20)).map_err(described)?;
    let path = |name: &str| dir.join(name).display().to_string();
    for (tree, path_variable, message) in [
        (path("text.cpio"), None, "text.cpio: not a cpio archive\n"),
        (path("packed.cpio"), None, "packed.cpio: a compressed archive\n       unpack it first: zcat"),
        (path("cut.cpio"), None, "cut.cpio: broken or cut off: no whole entry at byte 112 of "),
        (
            path("large"),
            None,
            "does not fit into a machine of 512 MiB: it is there packed and unpacked\n       give the machine more (--memory ",
        ),
        (path("nosuch"), None, "--ramfs "),
        (path("tree-of-none"), Some("/nonexistent"), "qemu-system-x86_64 is not installed"),
    ] {
        if path_variable.is_some() {
            fs::create_dir_all(&tree).map_err(described)?;
        }
        let command = ["boot", "--ramfs", &tree, "--", "/bin/x"].map(String::from);
        let command = std::iter::once(build::janua().display().to_string()).chain(command).collect();
        let env = vec![("JANUA_IMAGE_X86_64".to_string(), image.display().to_string())];
        // The test's own path stays: what starts the program is found there.
        let command: Vec<String> = match path_variable {
            None => command,
            Some(value) => [vec!["/usr/bin/env".into(), format!("PATH={value}")], command].concat(),
        };
        let outcome = Run { command, dir, env, limit: LIMIT, terminal: None }.outcome(&dir.join("report"))?;
        let output = String::from_utf8_lossy(&outcome.output);
        if outcome.code != 125 || !output.contains(message) {
            return Err(format!("exit code {} and not {message:?} but:\n{output}", outcome.code));
        }
    }
    Ok(())
}

/// The tests' file tree: busybox with the names used here, the programs of `test/boot`, and a C library for the dynamic one.
fn make_tree(tree: &Path) -> Result<(), String> {
    let described = |e: std::io::Error| format!("{}: {e}", tree.display());
    let bin = tree.join("bin");
    for dir in ["bin", "dev", "proc", "tmp", "lib64", "lib/x86_64-linux-gnu"] {
        fs::create_dir_all(tree.join(dir)).map_err(described)?;
    }
    add_busybox(tree, "bin/busybox")?;
    for name in ["cat", "nproc", "sh", "sort", "tail", "sleep"] {
        symlink("busybox", bin.join(name)).map_err(described)?;
    }
    let sources = workspace::root().join("test/boot");
    for (compiler, source, name) in [
        (&["musl-gcc", "-static"][..], "gates", "gates"),
        (&["musl-gcc", "-static"], "faults", "faults"),
        (&["musl-gcc", "-static"], "hardening", "hardening"),
        (&["musl-gcc", "-static"], "contended", "contended"),
        (&["gcc", "-m32", "-static"], "program32", "program32-static"),
        (&["gcc", "-m32"], "program32", "program32"),
        (&["gcc", "-m32", "-static"], "gates32", "gates32"),
        (&["gcc", "-m32", "-static"], "hardening32", "hardening32"),
        (&["musl-gcc", "-static"], "memory", "memory"),
        (&["musl-gcc", "-static"], "preempt", "preempt"),
        (&["musl-gcc", "-static"], "slice", "slice"),
        (&["musl-gcc", "-static"], "deadline", "deadline"),
        (&["musl-gcc", "-static"], "smp", "smp"),
        (&["musl-gcc", "-static"], "oom", "oom"),
        (&["musl-gcc", "-static"], "large", "large"),
        (&["musl-gcc", "-static"], "threads", "threads"),
        (&["gcc"], "threads", "threads-glibc"),
        (&["gcc", "-static"], "threads", "threads-glibc-static"),
    ] {
        let mut command = Command::new(compiler[0]);
        command.args(&compiler[1..]).args(["-D_GNU_SOURCE", "-O1", "-w", "-pthread", "-o"]).arg(bin.join(name));
        command.arg(sources.join(source).with_extension("c"));
        process::step(&format!("boot-{name}"), &format!("compiling test/boot/{source}.c"), &mut command)?;
    }
    add_libraries(&bin.join("program32"), tree)?;
    add_libraries(&bin.join("threads-glibc"), tree)
}

/// Copies this machine's busybox into a file tree, by the name `to`, with its libraries where it is not static. Its directory must exist.
pub fn add_busybox(tree: &Path, to: &str) -> Result<(), String> {
    let places = ["/bin/busybox", "/usr/bin/busybox"].map(Path::new);
    let busybox = places.into_iter().find(|path| path.is_file()).ok_or("busybox is not installed")?;
    fs::copy(busybox, tree.join(to)).map_err(|e| format!("{}: {e}", tree.display()))?;
    // ldd fails for a static program.
    let dynamic = process::output(Command::new("ldd").arg(busybox)).is_some_and(|list| list.contains("=>"));
    if dynamic { add_libraries(busybox, tree) } else { Ok(()) }
}

/// Puts a dynamic program's loader and libraries into a tree, as the host's own loader names them.
pub fn add_libraries(program: &Path, tree: &Path) -> Result<(), String> {
    let described = |e: std::io::Error| format!("{}: {e}", tree.display());
    let list = process::output(Command::new("ldd").arg(program)).ok_or("ldd failed")?;
    for word in list.split_ascii_whitespace().filter(|word| word.starts_with('/')) {
        let inside: PathBuf = Path::new(word).strip_prefix("/").unwrap_or(Path::new(word)).into();
        let place = tree.join(inside);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(described)?;
        }
        if !place.exists() {
            fs::copy(word, &place).map_err(described)?;
        }
    }
    Ok(())
}
