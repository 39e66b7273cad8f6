//! Isolates a kernel that is in its guests' own address space, and takes their calls there without a trap.
//!
//! All that exists only because of protection keys and of rewriting is here, behind the traits of [`janua_object::mm::jail`]:
//!
//! - [`guard`] decides what may be executed, where a key locks the kernel's memory: no instruction that loads the key register.
//!   [`found`] remembers what has been found in which file, [`walk`] does the work of instructions that must not run where they are.
//! - [`image`] rewrites the calls of program files, [`placed`] is what of it is mapped in one address space, [`site`] rewrites single
//!   calls where they trap.
//! - [`cell`] joins the two for one address space.
//!
//! What reads and makes machine code, without an address space, is `janua_text`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod cell;
mod found;
mod guard;
#[cfg(test)]
mod guard_tests;
mod image;
mod placed;
#[cfg(test)]
#[path = "../../test/random.rs"]
mod random;
mod site;
mod walk;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;

use janua_object::OpenFile;
use janua_object::mm::jail::{Code, Enclosed, Jail, Known, Loader};
use janua_port::jail::Ground;
use janua_port::{Machine, Space, UserMemory};

use cell::Cell;
use guard::{CodeGuard, Common};
use image::Rewriter;

/// The jail of a kernel.
pub struct KeyJail {
    machine: &'static dyn Machine,
    /// The calling process' memory: the jail reads and changes code of no other.
    user: Arc<dyn UserMemory>,
    /// `Some` where a key locks the kernel's memory.
    ground: Option<&'static dyn Ground>,
    /// `None` where calls are to trap.
    rewriter: Option<Rewriter>,
    common: &'static Common,
}

impl KeyJail {
    /// `user` is the memory of the calling process. With an `entry` calls are rewritten to jump there; with a `ground`, code is
    /// guarded. `None` where there is nothing to do. It is never freed.
    pub fn start(
        machine: &'static dyn Machine,
        user: Arc<dyn UserMemory>,
        entry: Option<usize>,
        ground: Option<&'static dyn Ground>,
    ) -> Option<&'static dyn Jail> {
        if entry.is_none() && ground.is_none() {
            return None;
        }
        let common: &'static Common = Box::leak(Box::default());
        let restore = ground.map(|ground| ground.restore_entry());
        let rewriter = entry.map(|entry| Rewriter::new(machine, entry, restore, &common.found));
        Some(Box::leak(Box::new(KeyJail { machine, user, ground, rewriter, common })))
    }
}

impl Jail for KeyJail {
    fn enclose(&'static self, space: Arc<dyn Space>) -> Enclosed {
        match self.ground {
            Some(ground) => {
                let guard = CodeGuard::new(space, ground, self.user.clone(), Some(self.machine), self.common);
                Cell::new(self).guarded(guard)
            }
            None => Cell::new(self).open(space),
        }
    }

    fn code(&self, file: &Arc<OpenFile>, by: Loader) -> Option<Code> {
        let code = self.rewriter.as_ref()?.code_to_map(file, by)?;
        Some(Code { room: code.room(), known: Arc::new(code) })
    }

    fn image(&self, file: &Arc<OpenFile>) -> Option<Known> {
        let image = self.rewriter.as_ref()?.image(file, false)?;
        Some(image)
    }

    fn write_remote(&self, write: &mut dyn FnMut()) {
        let _nobody_opens = self.common.remote.write();
        write();
    }

    fn report(&self) -> String {
        let mut report = self.rewriter.as_ref().map_or_else(String::new, Rewriter::report);
        report.push_str(&self.common.report());
        report
    }
}
