//! What a space is charged for its private memory.

use janua_abi::linux::Result;
use janua_port::Machine;

/// An amount of private memory that goes back when this goes.
pub(super) struct Paid {
    /// `None`: nothing is counted.
    pub(super) machine: Option<&'static dyn Machine>,
    amount: usize,
}

impl Paid {
    pub(super) fn new(machine: Option<&'static dyn Machine>) -> Paid {
        Paid { machine, amount: 0 }
    }

    /// Takes bytes more; `spare` as [`janua_port::Accounts::take_private`]. ENOMEM.
    pub(super) fn pay(&mut self, bytes: usize, spare: bool) -> Result<()> {
        if let Some(machine) = self.machine {
            machine.accounts().take_private(machine, bytes, spare)?;
            self.amount += bytes;
        }
        Ok(())
    }

    /// Gives back what is more than `due`.
    #[inline]
    pub(super) fn settle(&mut self, due: usize) {
        if self.amount > due
            && let Some(machine) = self.machine
        {
            machine.accounts().give_private(self.amount - due);
            self.amount = due;
        }
    }
}

impl Drop for Paid {
    fn drop(&mut self) {
        self.settle(0);
    }
}
