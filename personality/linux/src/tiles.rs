//! The kernel as one tile of several: its monitor, what it reports of the others, and its farewell.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::linux::{Errno, Result};
use janua_kernel::tiles::Known;
pub use janua_kernel::tiles::Monitor;
use janua_port::Nanos;
pub use janua_port::Tiles;
use janua_port::outside::{TileInfo, TileState};

use crate::Kernel;

/// How long other tiles are waited for when the outside asks about them.
const PATIENCE: Nanos = 500_000_000;

/// Begins to listen to the other tiles, and asks each whether it listens.
pub fn start(kernel: &Arc<Kernel>, tiles: &dyn Tiles) -> Result<()> {
    let monitor = Monitor::new(kernel.machine, tiles);
    crate::place::prepare(kernel, &monitor)?;
    monitor.start()?;
    for tile in monitor.others() {
        // Nobody waits for the answer: it is counted.
        let _ = monitor.ping(tile);
    }
    *kernel.monitor.write() = Some(monitor);
    Ok(())
}

/// The supervisor reports that a tile has ended.
pub fn ended(kernel: &Kernel, tile: u32) {
    if let Some(monitor) = kernel.monitor.read().as_ref() {
        monitor.tile_ended(tile);
    }
}

/// This kernel is about to be over.
pub fn farewell(kernel: &Kernel) {
    if let Some(monitor) = kernel.monitor.read().as_ref() {
        monitor.farewell();
    }
}

/// Asks all other tiles whether they listen, on a thread of the kernel's own that waits for their answers and hands them on; `then` gets none where there are no
/// others. An error when there is no thread to be had.
pub fn look(kernel: &Arc<Kernel>, then: impl FnOnce(Vec<TileInfo>) + Send + 'static) -> Result<()> {
    let Some(monitor) = kernel.monitor.read().clone() else {
        then(Vec::new());
        return Ok(());
    };
    let machine = kernel.machine;
    machine.spawn_kernel("tiles", Box::new(move || then(ask(machine, &monitor))))
}

fn ask(machine: &'static dyn janua_port::Machine, monitor: &Monitor) -> Vec<TileInfo> {
    let clock = machine.clock();
    let deadline = clock.monotonic() + PATIENCE;
    // One after the other: what the other answers take would count for the later ones.
    let state = |tile: u32| {
        let asked = clock.monotonic();
        match monitor.ping(tile).map(|answer| answer.wait(machine, deadline)) {
            Ok(Some(Ok(()))) => TileState::Listens(clock.monotonic() - asked),
            Ok(Some(Err(Errno::EHOSTDOWN))) | Err(Errno::EHOSTDOWN) => TileState::Ended,
            Ok(Some(Err(_))) | Err(Errno::EPROTO) => TileState::Broken,
            Ok(None) | Err(_) => TileState::Silent,
        }
    };
    let info = |tile: u32| {
        let state = state(tile);
        let Known { heard, said, .. } = monitor.known(tile).unwrap_or_default();
        TileInfo { tile, state, heard, said }
    };
    monitor.others().map(info).collect()
}

/// What there is to be said of the other tiles at the end; empty where there are none.
pub fn report(kernel: &Kernel) -> String {
    let Some(monitor) = kernel.monitor.read().clone() else { return String::new() };
    let mut text = format!("tile {}, beside:\n", monitor.own());
    for tile in monitor.others() {
        let Known { ended, heard, said } = monitor.known(tile).unwrap_or_default();
        let state = match ended {
            None => "there",
            Some(Errno::EHOSTDOWN) => "ended",
            Some(_) => "broken",
        };
        text.push_str(&format!("tile {tile}: {state}, {heard} messages heard, {said} said\n"));
    }
    text
}
