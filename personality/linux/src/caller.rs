//! The calling thread as objects see it.

use alloc::sync::Arc;
use core::any::Any;

use janua_abi::linux::signal::si;
use janua_kernel::thread::work;
use janua_object::{Caller, Cred};
use janua_port::{Machine, UserMemory};

use crate::signal::{self, SigInfo, SigSet};
use crate::thread::ThreadExt;
use crate::{Thread, task};

/// A thread in the role of [`Caller`], and whether its call is of the i386 ABI (set where that matters).
pub struct ThisThread<'a>(pub &'a Thread, pub bool);

/// The thread that calls; `None` for the kernel acting for itself.
pub fn thread_of(caller: &dyn Caller) -> Option<&Thread> {
    caller.thread()?.downcast_ref()
}

impl Caller for ThisThread<'_> {
    fn machine(&self) -> &'static dyn Machine {
        self.0.machine()
    }

    fn thread(&self) -> Option<&dyn Any> {
        Some(self.0)
    }

    fn user(&self) -> &dyn UserMemory {
        self.0.user()
    }

    fn is_32(&self) -> bool {
        self.1
    }

    fn cred(&self) -> Arc<Cred> {
        self.0.ext.cred()
    }

    fn pid(&self) -> u32 {
        self.0.process().pid
    }

    fn tid(&self) -> u32 {
        self.0.ext.tid()
    }

    fn is_killed(&self) -> bool {
        self.0.work() & work::KILL != 0
    }

    fn pgrp(&self) -> u32 {
        self.0.process().pgrp()
    }

    fn session(&self) -> u32 {
        self.0.process().session().id
    }

    fn signal_group(&self, pgrp: u32, number: u32) -> bool {
        signal::send_group(&self.0.kernel, pgrp, SigInfo::new(number, si::KERNEL))
    }

    fn job_signal_ignored(&self, number: u32) -> bool {
        let set = SigSet::of(number);
        let ignored = self.0.process().actions().get(number).handler == janua_abi::linux::signal::SIG_IGN;
        ignored || !self.0.signals.blocked().and(set).is_empty()
    }

    fn is_group_orphaned(&self) -> bool {
        self.0.kernel.tree.lock().is_orphaned(self.pgrp())
    }

    fn session_of_group(&self, pgrp: u32) -> Option<u32> {
        self.0.kernel.tree.lock().group(pgrp).next().map(|member| member.session().id)
    }

    fn terminal(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        let session = self.0.process().session();
        crate::dev::terminal::of_session(&session)?;
        session.terminal.lock().clone()
    }

    fn set_terminal(&self, terminal: Option<Arc<dyn Any + Send + Sync>>) {
        let session = self.0.process().session();
        let old = core::mem::replace(&mut *session.terminal.lock(), terminal);
        drop(old);
    }

    fn is_session_leader(&self) -> bool {
        task::is_session_leader(self.0.process())
    }

    fn limit(&self, resource: u32) -> u64 {
        self.0.limit(resource)
    }
}
