//! The state of one kernel, and its start.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_kernel::module::Modules;
use janua_kernel::stats::Stats;
use janua_kernel::table::Table;
use janua_kernel::trace::Tracer;
use janua_port::outside as outer;
use janua_port::{Machine, Nanos, Space};
use janua_rt::Mutex;

use crate::config::Config;
use crate::memory::Layout;
use crate::tile::Tile;
use crate::{Kernel, Seat, Task, Thread, load, table};

/// Exit code of an application that the kernel ends for a call it does not have: as if by SIGSYS.
pub const BAD_CALL: u8 = 128 + 31;
/// Exit code of an application that is ended for a memory access that cannot be, its own or one it asked for: as if by SIGSEGV.
pub const BAD_ACCESS: u8 = 128 + 11;
/// Exit code when the kernel lacks what the application needs.
pub const NO_ROOM: u8 = 125;

/// One per kernel.
pub struct System {
    pub config: Config,
    pub layout: Layout,
    pub tiles: Box<[Tile]>,
    pub started: Nanos,
    /// Where user code starts each i-let.
    pub entry: usize,
    /// How programs call the kernel's functions, where they may.
    pub direct: Option<Direct>,
    /// Whether user code may not have these bytes.
    pub refuses: fn(&[u8]) -> bool,
    /// Somebody ends the application. Who comes second is too late.
    over: AtomicBool,
}

/// How programs call functions of the kernel by address, on a machine that lets them.
pub struct Direct {
    /// By number, as [`table::functions`].
    pub functions: Vec<usize>,
    /// Where a jump enters the kernel.
    pub entry: usize,
}

/// What a task has of its own: its tile.
pub struct TileTask {
    pub tile: u8,
    /// The address space; there from before the first core runs.
    pub space: Mutex<Option<Arc<dyn Space>>>,
}

/// What a thread has of its own: which core it is.
pub struct Core {
    pub tile: u8,
    pub index: usize,
}

/// What handlers need of the calling core.
pub trait ThreadExt {
    fn tile(&self) -> &Tile;
    /// Ends the application with a message.
    fn fatal(&self, code: u8, what: fmt::Arguments<'_>) -> !;
}

impl ThreadExt for Thread {
    fn tile(&self) -> &Tile {
        &self.kernel.tiles[usize::from(self.ext.tile)]
    }

    fn fatal(&self, code: u8, what: fmt::Arguments<'_>) -> ! {
        first_to_end(&self.kernel);
        let mut line = String::new();
        let _ = writeln!(line, "janua: tile {} core {}: {what}: the application is ended", self.ext.tile, self.ext.index);
        self.machine().console().write(line.as_bytes());
        over(&self.kernel, code)
    }
}

/// Returns to who comes first, so that there is one message and one exit code.
fn first_to_end(kernel: &Kernel) {
    if kernel.over.swap(true, Ordering::AcqRel) {
        outer::forever(kernel.machine)
    }
}

/// Ends the application, and reports to the outside that the kernel is over.
pub fn end(kernel: &Kernel, code: u8) -> ! {
    first_to_end(kernel);
    over(kernel, code)
}

fn over(kernel: &Kernel, code: u8) -> ! {
    if kernel.stats.is_on() {
        let report = kernel.stats.report(kernel.table.rows(), kernel.compat.rows());
        kernel.machine.console().write(report.as_bytes());
    }
    outer::over(kernel.machine, code)
}

/// The outside asks for something by signals (bit n-1 is signal n). What would end a program ends the application: there are no
/// signals inside.
pub fn outside(kernel: &Kernel, signals: u64) {
    /// SIGHUP, SIGINT, SIGQUIT, SIGTERM.
    const ENDING: [u8; 4] = [1, 2, 3, 15];
    if let Some(signal) = ENDING.into_iter().find(|signal| signals & 1 << (signal - 1) != 0) {
        end(kernel, 128 + signal);
    }
}

/// Starts a kernel with its tiles and their cores, and the application on core 0 of tile 0. `layout` shows where a tile's memory has
/// what; `direct` is for a machine that lets programs call the kernel by address, and `refuses` is true of code that would let a program past what
/// keeps it out of the kernel.
pub fn start(
    machine: &'static dyn Machine,
    config: &[u8],
    layout: Layout,
    direct: Option<Direct>,
    refuses: fn(&[u8]) -> bool,
) -> Result<Arc<Kernel>> {
    let config = Config::decode(config)?;
    let rows = table::ROWS;
    let table = Table::new(rows);
    table.register_all();
    for number in &config.without {
        table.invalidate(*number as usize);
    }
    let compat = Table::new(&[]);
    let stats = Stats::new(rows.len(), 0);
    if config.stats {
        stats.turn_on();
    }
    let tracer = Tracer::default();
    if let Some(fd) = config.trace {
        tracer.write_to(machine, fd, config.trace_whole);
    }
    let tiles = (0..config.tiles).map(|id| Tile::new(id, &layout)).collect();
    let started = machine.clock().monotonic();
    let system = System {
        entry: load::entry(&config.program),
        config,
        layout,
        tiles,
        started,
        direct,
        refuses,
        over: AtomicBool::new(false),
    };
    let kernel = Arc::new(Kernel { machine, table, compat, tracer, stats, modules: Modules::default(), system });
    for tile in kernel.tiles.iter() {
        spawn_tile(&kernel, tile)?;
    }
    Ok(kernel)
}

/// Makes a tile's cores and starts the first, which starts the others once it has loaded the program.
fn spawn_tile(kernel: &Arc<Kernel>, tile: &Tile) -> Result<()> {
    let ext = TileTask { tile: tile.id, space: Mutex::new(None) };
    let task = Arc::new(Task { kernel: kernel.clone(), ext });
    let seats: Vec<Arc<Seat>> = (0..kernel.config.cores as usize)
        .map(|index| Seat::new(Thread::new(task.clone(), Core { tile: tile.id, index })))
        .collect();
    let first = seats.first().ok_or(Errno::EINVAL)?.clone();
    tile.set_cores(seats);
    // Held while the thread is made: it takes its space from here, and may run before this function goes on.
    let mut slot = task.ext.space.lock();
    let (_, space) = kernel.machine.spawn_first(first)?;
    *slot = Some(space);
    Ok(())
}
