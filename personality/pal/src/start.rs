//! The start of a kernel with this personality, and what its service does.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::linux::{Errno, Result};
use janua_object::mm::jail::Jail;
use janua_personality_linux::Kernel;
use janua_personality_linux::boot::BootConfig;
use janua_personality_linux::fs::setup::MountDisk;
use janua_personality_linux::outside::start_wanted;
use janua_personality_linux::start::{Interface, start_with};
use janua_personality_outside::pal::Config;
use janua_personality_outside::pal::manifest::Manifest;
use janua_port::outside::over;
use janua_port::{Machine, Tiles};

use crate::state::{Rules, State, System, random};
use crate::table::ROWS;

/// Starts a kernel and its first picoprocess from [`Config::encode`]'s bytes, beside the tiles there may be. A manifest that is none is refused with a message on the console.
pub fn start(
    machine: &'static dyn Machine,
    jail: Option<&'static dyn Jail>,
    config: &[u8],
    disk: Option<MountDisk>,
    tiles: Option<Box<dyn Tiles>>,
) -> Result<(Arc<Kernel>, Arc<System>)> {
    let Config { boot, manifest } = Config::decode(config)?;
    let boot = BootConfig::decode(&boot)?;
    let system = System::new(machine);
    let rules: Vec<_> = match manifest.as_deref().map(Manifest::parse).transpose() {
        Ok(parsed) => parsed.into_iter().map(Arc::new).collect(),
        Err(why) => refuse(machine, &why),
    };
    let mut state = State::new(system.clone(), boot.program.clone(), Rules::from(rules), random(machine));
    state.manifest = manifest.map(Arc::from);
    let interface = Interface { rows: ROWS, compat: &[], extension: Some(Arc::new(state)), tiles };
    Ok((start_with(machine, jail, boot, disk, None, interface)?, system))
}

fn refuse(machine: &dyn Machine, why: &str) -> ! {
    let line: String = alloc::format!("janua: the manifest: {why}\n");
    machine.console().write(line.as_bytes());
    over(machine, 125)
}

/// Makes the picoprocesses that are wanted. For the service routine: where the host has processes, what the first process has mapped is what they begin
/// with, and that is nothing.
pub fn serve(kernel: &Arc<Kernel>, system: &System) {
    let wanted = core::mem::take(&mut *system.wanted.lock());
    for one in wanted {
        let notice = one.order.notice.clone();
        if let (Err(errno), Some(notice)) = (start_wanted(kernel, one), notice) {
            notice.give(Err(if errno == Errno::EAGAIN { Errno::ENOMEM } else { errno }));
        }
    }
}
