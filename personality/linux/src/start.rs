//! From the outside's bytes to a running kernel: file systems, standard files, the first program, the service routine.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::linux::{Errno, Result};
use janua_kernel::module::{Division, Handover, Plan};
use janua_kernel::table::Fd;
use janua_kernel::{Place, Places, Row};
use janua_object::fdtable::FdTable;
use janua_object::mm::jail::Jail;
use janua_port::outside::over;
use janua_port::{Asked, Host, Machine, Nanos, RingGate};
use janua_rt::executor::Policy;

use crate::boot::{self, BootConfig, BootPolicy};
use crate::dev::terminal::Outer;
use crate::dev::{self, terminal};
use crate::fs::setup::MountDisk;
use crate::process::Extension;
use crate::{Kernel, Linux, fs, outside, processor, procfs, tiles};

/// Which calls there are.
pub struct Interface {
    /// By the number of a 64-bit program's call, and of a 32-bit one's.
    pub rows: &'static [Row<Linux>],
    pub compat: &'static [Row<Linux>],
    /// What the first program's process has besides ([`crate::process::Process::extension`]).
    pub extension: Option<Extension>,
    /// The kernels beside this one, where there are some.
    pub tiles: Option<Box<dyn tiles::Tiles>>,
}

impl Interface {
    /// That of Linux.
    pub fn linux() -> Interface {
        Interface { rows: processor::ROWS, compat: processor::ROWS_32, extension: None, tiles: None }
    }
}

/// Starts a kernel and its first program from [`BootConfig::encode`]'s bytes. A configuration that cannot be made true is
/// refused with a message on the console and exit code 125. `jail` keeps guests from the kernel where the machine alone does not; `disk`
/// mounts the machine's disk, in images for machines that may have one.
pub fn start(
    machine: &'static dyn Machine,
    jail: Option<&'static dyn Jail>,
    config: &[u8],
    disk: Option<MountDisk>,
    ring: Option<&'static dyn RingGate>,
) -> Result<Arc<Kernel>> {
    start_with(machine, jail, BootConfig::decode(config)?, disk, ring, Interface::linux())
}

/// The same with other calls than Linux'.
pub fn start_with(
    machine: &'static dyn Machine,
    jail: Option<&'static dyn Jail>,
    config: BootConfig,
    disk: Option<MountDisk>,
    ring: Option<&'static dyn RingGate>,
    interface: Interface,
) -> Result<Arc<Kernel>> {
    let root = config.mounts.first().ok_or(Errno::EINVAL)?;
    let (vfs, context) = match fs::setup::root(machine, root, config.umask, disk) {
        Ok(made) => made,
        Err(why) => refuse(machine, &why),
    };
    vfs.register_type("devtmpfs", Arc::new(dev::mount));
    let kernel = boot::boot_on(machine, jail, config, vfs, context, &interface)?;
    *kernel.ring_gate.write() = ring;
    procfs::register(&kernel);
    if let Err(why) = fs::setup::mount_all(&kernel) {
        refuse(machine, &why);
    }
    crate::place::freeze(&kernel);
    trace(&kernel);
    start_modules(&kernel, jail.is_none())?;
    let console = terminal::console(&kernel)?.map(Arc::new);
    *kernel.outer.write() = console.clone();
    terminal::register(&kernel, console.as_deref())?;
    if let Some(others) = &interface.tiles {
        tiles::start(&kernel, &**others)?;
    }
    if kernel.config.idle {
        boot::reserve_first(&kernel)?;
    } else {
        boot::spawn_first(&kernel, standard_files(&kernel, console.as_deref())?, console.as_deref(), interface.extension)?;
    }
    Ok(kernel)
}

/// Reports why, and that the kernel is over.
fn refuse(machine: &dyn Machine, why: &str) -> ! {
    machine.console().write(alloc::format!("janua: {why}\n").as_bytes());
    over(machine, 125)
}

/// Starts the modules that are asked for. `direct`: they may reach guests' memory from where they run.
fn start_modules(kernel: &Kernel, direct: bool) -> Result<()> {
    let wanted = &kernel.config.modules;
    if wanted.cores == 0 {
        return Ok(());
    }
    // Where mappings are a host's, one is changed by the process that has it.
    let places =
        if kernel.machine.host().and_then(Host::files).is_some() { Places::AWAY.without(Place::Mm) } else { Places::AWAY };
    let plan = Plan {
        cores: wanted.cores,
        division: if wanted.by_kind { Division::Kind } else { Division::One },
        policies: wanted.policies.iter().map(policy).collect(),
        handover: if wanted.always { Handover::Always } else { Handover::Adaptive },
        places,
        direct,
        full: Plan::FULL,
        pinned: wanted.pinned,
    };
    kernel.modules.start(kernel.machine, &plan)
}

fn policy(wanted: &BootPolicy) -> Policy {
    match wanted {
        BootPolicy::Fifo => Policy::Fifo,
        BootPolicy::Cohort => Policy::Cohort,
        BootPolicy::Priority => Policy::Priority,
    }
}

fn trace(kernel: &Kernel) {
    if let Some(fd) = kernel.config.trace {
        kernel.tracer.write_to(kernel.machine, fd, kernel.config.trace_whole);
    }
}

/// The descriptors the first program starts with.
fn standard_files(kernel: &Kernel, console: Option<&Outer>) -> Result<Arc<FdTable>> {
    let table = FdTable::new();
    for file in &kernel.config.files {
        let open = terminal::standard_file(kernel, console, file)?;
        table.install_at(open, Fd(file.fd as i32), false, u64::MAX)?;
    }
    Ok(Arc::new(table))
}

/// What the platform's service thread does: passes the outside's signals on, does what it asks for and fires what is due. Returns when it wants to be
/// called again.
pub fn serve(kernel: &Arc<Kernel>, signals: u64, requests: Vec<Asked>) -> Option<Nanos> {
    boot::pass_signals(kernel, signals);
    kernel.modules.offload.serve(kernel.machine);
    terminal::pump(kernel);
    outside::serve(kernel, requests);
    let look = crate::mm::watch::run(kernel);
    kernel.timers.run(kernel).into_iter().chain(look).min()
}
