//! Sessions and process groups (setsid(2), setpgid(2), credentials(7)).

use alloc::sync::Arc;

use crate::{Kernel, Task};

/// A session leader ends: the session loses its terminal.
pub fn leader_ends(_kernel: &Kernel, task: &Arc<Task>) {
    let terminal = task.session().terminal.lock().take();
    drop(terminal);
}
