//! What a space is charged for its private memory, and for the page tables of all its mappings.

use janua_abi::linux::Result;
use janua_port::Machine;

/// A difference in page tables that is not worth a change of the account, which all processes share: what most programs may need at all.
const TABLES: usize = 512 << 10;

/// An amount of private memory that goes back when this goes.
pub(super) struct Paid {
    /// `None`: nothing is counted.
    pub(super) machine: Option<&'static dyn Machine>,
    amount: usize,
    tables: usize,
}

impl Paid {
    pub(super) fn new(machine: Option<&'static dyn Machine>) -> Paid {
        Paid { machine, amount: 0, tables: 0 }
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

    /// Pays for page tables of so many bytes, up to a small difference.
    #[inline]
    pub(super) fn settle_tables(&mut self, due: usize) {
        if self.tables.abs_diff(due) >= TABLES {
            self.change_tables(due);
        }
    }

    #[cold]
    fn change_tables(&mut self, due: usize) {
        let Some(machine) = self.machine else { return };
        match due.checked_sub(self.tables) {
            Some(more) => machine.accounts().add_tables(machine, more),
            None => machine.accounts().give_tables(self.tables - due),
        }
        self.tables = due;
    }
}

impl Drop for Paid {
    fn drop(&mut self) {
        self.settle(0);
        if self.tables > 0 {
            self.change_tables(0);
        }
    }
}
