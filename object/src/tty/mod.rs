//! Terminals: the line discipline, pseudoterminals, the outside's terminal, a terminal at a line, job control.

pub mod discipline;
pub mod host;
pub mod job;
pub mod line;
pub mod pts;
pub mod pty;

use alloc::sync::Arc;
use core::any::Any;

use janua_abi::linux::Result;

use crate::file::File;

/// Sends signals to process groups on a terminal's behalf.
pub trait GroupSignals: Send + Sync {
    /// Sends a signal to every process of a group.
    fn send(&self, pgrp: u32, signal: u32);
}

/// What can be a session's controlling terminal.
pub trait Terminal: Any + Send + Sync {
    /// Opens it anew (through /dev/tty).
    fn open(self: Arc<Self>) -> Result<Arc<dyn File>>;
    /// Its device number.
    fn device(&self) -> u64;
    fn job(&self) -> &job::Job;
}

/// A controlling terminal as sessions keep it.
#[derive(Clone)]
pub struct Controlling(pub Arc<dyn Terminal>);
