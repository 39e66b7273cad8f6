//! `janua boot`: what it is given, and what that asks for.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueHint;
use janua_platform_bare::Slicing;

use super::beside;
use super::modules::Away;
use super::{
    ADD_PAL, AT_HOME, AWAY_OF_LINUX, MANIFEST_OF_PAL, MODULES_OF_L4, Refusal, TWO_MODULES, cwd, existing, library, refuse, size,
};
use crate::environment::environment;
use crate::options::{BootMachine, BootOptions, BootPlatform, L4System, Library, Picoprocess};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  janua boot -- /bin/sh -c 'uname -a; ls /'
  janua boot --ramfs ./alpine --memory 1024 -- /bin/busybox sh
  janua boot --personality invasive --smp 4 --tiles 2 -- cg S
  janua boot --tiles 2 --cores 1 --on '1 seq 5' -- seq 3
  janua boot --personality l4v2 --module sigma0 --module pingpong
  janua boot --personality pal --manifest hello.manifest -- hello
  janua boot --platform leon3 -- hello

Exit code: the program's; 128+n if signal n ended it; 127: not found; 126: found, but not executable;
125: janua failed or its kernel faulted, and standard error says why.")]
pub struct Boot {
    /// The machine: x86_64 or leon3
    #[arg(long, value_name = "PLATFORM", default_value = "x86_64", value_parser = ["x86_64", "leon3"], hide_possible_values = true)]
    pub(super) platform: String,

    /// Which system calls exist: linux; invasive for one application on Janua's system-call library (OctoPOS), the only one of a
    /// LEON3; l4v2 for a system of L4, Version 2; or pal for programs on libpal (Graphene's Platform Adaptation Layer)
    #[arg(long, value_name = "NAME", value_parser = ["linux", "invasive", "l4v2", "pal"], hide_possible_values = true)]
    pub(super) personality: Option<String>,

    /// l4v2: a program and its arguments, in one word: sigma0 first, the root task last, and between them what the root task is to find in
    /// memory. A name without a slash is one that comes with janua
    #[arg(long = "module", value_name = "PROGRAM [ARGUMENT...]")]
    modules: Vec<OsString>,

    /// pal: what the program may use, and how it begins (docs/pal.md). A program's name without a slash is one that comes with janua
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    manifest: Option<PathBuf>,

    /// The directory, or cpio archive, that becomes the machine's files; without it, this host's busybox and nothing else (pal: empty
    /// directories)
    #[arg(long, value_name = "DIR|FILE", value_hint = ValueHint::AnyPath)]
    ramfs: Option<PathBuf>,

    /// The machine's disk, an image with an ext4 file system: its root, and what is written stays. One that does not exist or is
    /// empty is made and filled with the file tree of --ramfs, or this host's busybox
    #[arg(long, value_name = "IMAGE", value_hint = ValueHint::FilePath)]
    pub(super) disk: Option<PathBuf>,

    /// The size of a disk that is made: a number with K, M, G or T; 1G without it
    #[arg(long, value_name = "SIZE", requires = "disk", value_parser = size)]
    disk_size: Option<u64>,

    /// Processors; 2 without it, or as many as all tiles have, and always 1 on a LEON3
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(super) smp: Option<u32>,

    /// Separate page tables for user code; by default on processors that would let it read the kernel's memory
    #[arg(long, value_name = "on|off", value_parser = ["on", "off"], hide_possible_values = true)]
    kpti: Option<String>,

    /// How the processors' time is cut (x86_64 only). A length, in us, ms or s: programs take turns, and timers are looked at, at the ends of slices of
    /// that length and never between, as in Barrelfish, which has 80ms. tickless, which is the default: a timer when something is due
    #[arg(long, value_name = "LENGTH|tickless")]
    slice: Option<Slicing>,

    #[command(flatten)]
    pub(super) away: Away,

    /// The vsyscall page: emulated (each call a fault), or native (code at fixed addresses)
    #[arg(long, value_name = "HOW", default_value = "emulated", value_parser = ["emulated", "native"], hide_possible_values = true)]
    vsyscall: String,

    /// The machine's memory, MiB
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u32).range(64..=262_144))]
    memory: u32,

    /// Count time by instructions, each of 2^SHIFT nanoseconds: every run is like the other
    #[arg(long, value_name = "SHIFT", value_parser = clap::value_parser!(u8).range(0..=10))]
    icount: Option<u8>,

    /// Load a plugin into QEMU's emulation, as its option -plugin has it (x86_64 only)
    #[arg(long, value_name = "FILE[,ARGUMENT=VALUE...]")]
    plugin: Option<OsString>,

    /// The processor to emulate, as QEMU names it (x86_64 only); without it one that has all there is, and calls itself Intel's.
    /// 32-bit programs enter the kernel by the instruction of its maker: sysenter, or with an AMD model such as EPYC syscall
    #[arg(long, value_name = "MODEL")]
    cpu: Option<String>,

    /// Tiles. For linux and pal, 2 to 16: kernels side by side that share nothing but messages; the program runs on the first (docs/tiles.md). For invasive:
    /// parts of one kernel's machine, which share out the processors among them; always 1 on a LEON3
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(super) tiles: u8,

    /// Processors of each tile (linux, pal); 1 without it, or those of --smp divided by the tiles. invasive, on a LEON3: cores of the tile, which take turns on the one processor; 2
    /// without it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(super) cores: Option<u32>,

    /// On several tiles: a program for another tile than the first, and its arguments, in one word without quotes inside; can be repeated
    #[arg(long, value_name = "TILE PROGRAM [ARGUMENT...]")]
    pub(super) on: Vec<String>,

    /// On several tiles: before programs start, send that many messages of 56 bytes from the first to each other one and back, and print what they cost
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub(super) messages: Option<u32>,

    /// invasive, on x86_64: the instruction that calls the kernel: syscall or int (int 0x30)
    #[arg(long, value_name = "GATE", value_parser = ["syscall", "int"], hide_possible_values = true)]
    gate: Option<String>,

    /// invasive: how the library calls: sys-lib-yes (through the gate), sys-lib-no (the dispatcher, without a gate) or vanilla
    /// (the kernel's functions); with the latter two the application runs in the processor's privileged mode
    #[arg(long, value_name = "CONFIGURATION", default_value = "sys-lib-yes", value_parser = ["sys-lib-yes", "sys-lib-no", "vanilla"], hide_possible_values = true)]
    library: String,

    /// invasive: whether the library answers calls itself that need no privilege: on or off
    #[arg(long, value_name = "on|off", default_value = "on", value_parser = ["on", "off"], hide_possible_values = true)]
    answers: String,

    /// At the end, print the calls made by name, with count, time and gate; on a LEON3, how many register windows were
    /// spilled and filled
    #[arg(long)]
    stats: bool,

    /// Set K to V in the program's environment, which otherwise has PATH, HOME and TERM; can be repeated
    #[arg(long, value_name = "K=V")]
    env: Vec<OsString>,

    /// The directory to start in, a path inside
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// The program and its arguments; a name without a slash is looked up in PATH (invasive, pal: among the programs that come with
    /// janua)
    #[arg(value_name = "PROGRAM", required_unless_present = "modules", num_args = 1.., trailing_var_arg = true)]
    command: Vec<OsString>,
}

impl Boot {
    /// What is asked for, or why it cannot be.
    pub fn options(self) -> Result<BootOptions, Refusal> {
        let platform = if self.platform == "leon3" { BootPlatform::Leon3 } else { BootPlatform::X86_64 };
        let leon3 = platform == BootPlatform::Leon3;
        if leon3 && self.plugin.is_some() {
            return refuse("--plugin: there is none for the LEON3", "leave --plugin out");
        }
        if leon3 && self.slice.is_some() {
            return refuse("--slice: the LEON3 has slices of 10 ms, and no others", "leave --slice out");
        }
        let tiles = beside::booted(&self)?;
        let smp = match &tiles {
            Some(tiles) => tiles.kernels.count * tiles.kernels.cores,
            None => self.smp.unwrap_or(if leon3 { 1 } else { 2 }),
        };
        if leon3 && smp > 1 {
            return refuse("--smp: the LEON3 has one processor", "leave --smp out");
        }
        let l4 = self.l4_system(leon3)?;
        let pal = self.picoprocess(leon3)?;
        let invasive = if l4.is_some() { None } else { self.machine(leon3, smp)? };
        if invasive.is_some() && self.ramfs.is_some() {
            return refuse(
                "--ramfs: the personality `invasive` has no files",
                "leave --ramfs out, and give the application after --",
            );
        }
        if (invasive.is_some() || pal.is_some()) && self.away.is_on() {
            return refuse(AWAY_OF_LINUX, AT_HOME);
        }
        if invasive.is_some() && self.disk.is_some() {
            return refuse("--disk: the personality `invasive` has no files", "leave --disk out");
        }
        let mut command = self.command.into_iter();
        let program = match command.next().filter(|p| !p.is_empty()) {
            Some(program) => program,
            None if l4.is_some() => OsString::new(),
            None => return refuse("the program's name is empty", "give a program after --"),
        };
        let ramfs = self.ramfs.map(|dir| existing(&dir, "--ramfs")).transpose()?;
        if let Some(dir) = ramfs.as_ref().filter(|dir| !dir.is_dir() && !dir.is_file()) {
            return refuse(
                format!("--ramfs {}: neither a directory nor a file", dir.display()),
                "give a directory that holds a file tree, or an archive of one",
            );
        }
        let term = std::env::var_os("TERM").unwrap_or_else(|| "dumb".into());
        let own: [(OsString, OsString); 3] = [
            ("PATH".into(), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into()),
            ("HOME".into(), "/root".into()),
            ("TERM".into(), term),
        ];
        Ok(BootOptions {
            platform,
            icount: self.icount,
            plugin: self.plugin,
            cpu: self.cpu,
            invasive,
            l4,
            pal,
            ramfs,
            disk: self.disk,
            disk_size: self.disk_size,
            kpti: self.kpti.map(|kpti| kpti == "on"),
            slice: self.slice,
            native_vsyscall: self.vsyscall == "native",
            memory: self.memory,
            smp,
            tiles,
            modules: self.away.modules()?,
            stats: self.stats,
            environment: environment(own.to_vec(), &self.env, false)?,
            cwd: cwd(self.cwd)?,
            program,
            args: command.collect(),
        })
    }

    /// The system of L4, if it is to be one.
    fn l4_system(&self, leon3: bool) -> Result<Option<L4System>, Refusal> {
        if self.personality.as_deref() != Some("l4v2") {
            if self.modules.is_empty() {
                return Ok(None);
            }
            return refuse(MODULES_OF_L4, "add --personality l4v2, or give a program after --");
        }
        if leon3 {
            return refuse("the personality `l4v2` is for x86: there are no programs for a LEON3", "leave --platform out");
        }
        let plain = self.tiles == 1 && self.gate.is_none() && self.library == "sys-lib-yes" && self.answers == "on";
        let files = self.ramfs.is_some() || self.disk.is_some() || self.away.is_on() || self.cores.is_some();
        if !plain || files || !self.command.is_empty() || !self.env.is_empty() || self.cwd.is_some() {
            return refuse(
                "the personality `l4v2` has modules, and neither files nor a program with an environment",
                "give --module for each, and of the other options only those of the machine and --stats",
            );
        }
        if self.modules.len() < 2 {
            return refuse(TWO_MODULES, "give --module sigma0, and --module with the root task");
        }
        Ok(Some(L4System { modules: self.modules.clone(), stats: self.stats }))
    }

    /// The picoprocess, if the program is one.
    fn picoprocess(&self, leon3: bool) -> Result<Option<Picoprocess>, Refusal> {
        if self.personality.as_deref() != Some("pal") {
            return if self.manifest.is_none() { Ok(None) } else { refuse(MANIFEST_OF_PAL, ADD_PAL) };
        }
        if leon3 {
            return refuse("the personality `pal` is for x86: there are no programs for a LEON3", "leave --platform out");
        }
        Ok(Some(Picoprocess { manifest: self.manifest.clone() }))
    }

    /// The machine of an invasive application, if it is to run one.
    fn machine(&self, leon3: bool, smp: u32) -> Result<Option<BootMachine>, Refusal> {
        match self.personality.as_deref() {
            Some("linux") if leon3 => {
                return refuse("the personality `linux` is not there on a LEON3", "leave --personality out, or boot x86_64");
            }
            Some("linux" | "pal") | None if !leon3 => {
                if self.gate.is_none() && self.library == "sys-lib-yes" && self.answers == "on" {
                    return Ok(None);
                }
                return refuse(
                    "--gate, --library and --answers are for the personality `invasive`",
                    "add --personality invasive, or leave them out",
                );
            }
            _ => {}
        }
        if leon3 && (self.tiles > 1 || self.gate.is_some()) {
            return refuse("--tiles, --gate: the LEON3 has one tile and one gate", "leave --tiles and --gate out");
        }
        if !leon3 && self.cores.is_some() {
            return refuse("--cores: cores are the machine's processors", "give --smp N, which the tiles share out among them");
        }
        let tiles = u32::from(self.tiles);
        if !smp.is_multiple_of(tiles) {
            return refuse(
                format!("{smp} processors cannot be shared out among {tiles} tiles"),
                format!("give a multiple of {tiles} (--smp {}), or other tiles", smp.next_multiple_of(tiles)),
            );
        }
        let library = library(&self.library);
        if library != Library::Gate && self.gate.is_some() {
            return refuse("--gate: without a gate (--library) there is none to choose", "leave --gate or --library out");
        }
        Ok(Some(BootMachine {
            tiles: self.tiles,
            cores: if leon3 { self.cores.unwrap_or(2) } else { smp / tiles },
            library,
            answers: self.answers == "on",
            interrupts: self.gate.as_deref() == Some("int"),
            stats: self.stats,
        }))
    }
}
