//! A gate of a hosted machine.
//!
//! Needed only where a host runs the guest's code and must be asked to hand its calls over. A bare machine enters by its own
//! entry code (trap, `syscall`, call gate), which builds the frame and calls [`Guest::call`](janua_port::Guest::call).

use janua_abi::linux::{Errno, Result};
use janua_port::guest::Abi;
use janua_port::{Frame, GateId, HostSignal, HostedGate, UserMemory};

use crate::missing;

/// A gate no call comes by.
pub struct SkeletonGate;

impl HostedGate for SkeletonGate {
    /// A number and a name of its own among those of [`GateId`], for statistics and `--gate`: a new gate begins with a new line there.
    fn id(&self) -> GateId {
        missing("HostedGate::id")
    }

    /// What is inherited by every later process and thread: a filter of the host's, for example. After an error the sandbox
    /// does not start, with a message that names it.
    fn arm_sandbox(&self) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// What the host forgets at clone, fork or exec. From here on no call of the thread's user code may reach the host.
    fn arm_thread(&self, _selector: *mut u8) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// The contrary, for a thread that ends and whose selector byte is about to become another's.
    fn disarm_thread(&self) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// Written by the exit right before user code goes on. Nothing reads this gate's.
    fn selector_value(&self) -> u8 {
        0
    }

    /// Decides by what the host reports alone whether this was a call, since a guest can send itself any signal; fills in what
    /// the frame lacks. `None`: it was something else.
    fn accept(&self, _signal: &HostSignal, _frame: &mut Frame, _user: &dyn UserMemory) -> Option<Abi> {
        None
    }
}
