//! What tests on the model machine share.
#![allow(dead_code, reason = "each test uses its part")]

use std::sync::Arc;

use janua_abi::linux::Errno;
use janua_personality_linux::boot::{BootConfig, BootFile, BootMount, BootMountKind};
use janua_personality_linux::{Kernel, start};
use janua_platform_model::program::{Program, tree};
use janua_platform_model::{Model, Settings};
use janua_port::HostFd;

#[path = "../../../../test/random.rs"]
pub mod random;

/// A kernel with these programs, the first of which runs.
pub fn boot(settings: Settings, programs: &[(&str, Program)]) -> &'static Model {
    let files: Vec<(&str, Vec<u8>)> = programs.iter().map(|(name, program)| (*name, program.clone().executable())).collect();
    boot_files(settings, &files)
}

/// A kernel with these files, the first of which is the program that runs.
pub fn boot_files(settings: Settings, files: &[(&str, Vec<u8>)]) -> &'static Model {
    let model = Model::new(settings);
    start_on(model, files);
    model
}

/// One more kernel on a machine, with these files, the first of which is the program that runs.
pub fn start_on(model: &'static Model, files: &[(&str, Vec<u8>)]) {
    start_from(model, tree(files), files[0].0).expect("the kernel starts");
}

/// The same, with a file tree as it is in the archive.
pub fn start_from(model: &'static Model, tree: Vec<u8>, program: &str) -> Result<Arc<Kernel>, Errno> {
    let archive = model.set_tree(tree);
    let mount = |kind, target: &str| BootMount { kind, target: target.into(), read_only: false };
    let name = format!("/{program}").into_bytes();
    let config = BootConfig {
        program: name.clone(),
        argv: vec![name],
        cwd: b"/".to_vec(),
        files: (0..3).map(|fd| BootFile { fd, host: HostFd(fd as i32), name: Vec::new() }).collect(),
        mounts: vec![mount(BootMountKind::Archive { archive }, "/"), mount(BootMountKind::Proc, "/proc")],
        ..BootConfig::default()
    };
    let kernel = start::start(model, None, &config.encode(), None, None)?;
    let served = kernel.clone();
    model.serve(move || start::serve(&served, 0, Vec::new()));
    Ok(kernel)
}
