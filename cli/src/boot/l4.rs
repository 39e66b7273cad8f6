//! Systems of L4, Version 2, on the bare machine.

use std::process::ExitCode;

use janua_personality_outside::l4v2::Config;
use janua_platform_bare::outside::SERIAL;

use super::{image, qemu};
use crate::exit;
use crate::options::{BootOptions, L4System};
use crate::run::l4::{modules, physical};

/// Boots a system.
pub fn boot(options: &BootOptions, system: &L4System) -> ExitCode {
    let modules = match modules(&system.modules) {
        Ok(modules) => modules,
        Err((code, why)) => {
            crate::exit::say(&format_args!("janua: {why}\n"));
            return ExitCode::from(code);
        }
    };
    let config = Config {
        modules,
        memory: physical(u64::from(options.memory) << 20),
        output: Some(SERIAL[1]),
        stats: system.stats,
        ..Config::default()
    };
    match image().and_then(|image| qemu::run(&image, &config.encode(), None, options)) {
        Ok(code) => ExitCode::from(code),
        Err(why) => exit::fail(&why),
    }
}
