//! What a wait finds among those that the caller's process traces.

use alloc::sync::Arc;

use janua_abi::linux::process::wait;
use janua_abi::linux::signal::si;

use super::tracee::{Tracee, unlink};
use crate::Thread;
use crate::process::State;
use crate::task::Tree;
use crate::task::exit::{self, Letters};
use crate::task::wait::{Found, Which, found};
use crate::thread::ThreadExt;

/// Looks for a tracee with an event, a stop or an end; `any` becomes true when there is one to wait for. The letters are to be sent once
/// the tree's lock is gone.
pub fn look(thread: &Thread, tree: &mut Tree, which: &Which, options: u32, any: &mut bool) -> Option<(Letters, Found)> {
    let mut ended: Option<(Arc<Tracee>, u32)> = None;
    for tracee in tree.tracees(thread.process().pid) {
        let meant = match which {
            Which::Any => true,
            Which::Pid(pid) => tracee.tid() == *pid,
            Which::Group(pgrp) => tracee.task.pgrp() == *pgrp,
            Which::Task(task) => tracee.tid() == task.pid && Arc::ptr_eq(&tracee.task, task),
        };
        if !meant || options & wait::NOTHREAD != 0 && tracee.tracer_tid() != thread.tid() {
            continue;
        }
        let mut state = tracee.state.lock();
        *any |= options & wait::EXITED != 0 || state.ended.is_none();
        if let Some(status) = state.ended {
            if options & wait::EXITED != 0 {
                drop(state);
                // A process that has ended since has one status for all.
                let status = match tracee.task.group.lock().state {
                    State::Running => status,
                    State::Exiting(whole) | State::Dead(whole) => whole,
                };
                ended = Some((tracee.clone(), status));
                break;
            }
        } else if let Some(code) = state.report {
            if options & wait::NOWAIT == 0 {
                state.report = None;
            }
            drop(state);
            let found = found(&tracee.task, si::CLD_TRAPPED, code as i32, code << 8 | 0x7f).of(tracee.tid());
            return Some((Letters::default(), found));
        }
    }
    let (tracee, status) = ended?;
    let (code, short) = exit::cause(status);
    let found = found(&tracee.task, code, short, status).of(tracee.tid());
    let mut letters = Letters::default();
    if options & wait::NOWAIT == 0 {
        unlink(tree, &tracee);
        if tracee.tid() == tracee.task.pid && tracee.task.ended().is_some() {
            // Now its parent may know.
            exit::reap(tree, &tracee.task, &mut letters);
        }
    }
    Some((letters, found))
}
