//! What a machine does for a jail that locks the kernel's memory by a protection key.

use janua_abi::linux::Result;

/// Offered by a machine that locks the kernel's memory by a key while user code runs. Then no code of a guest's may load the key
/// register, and something is between the lists of mappings and the machine's spaces that sees to it.
pub trait Ground: Send + Sync {
    /// Makes a wholly mapped range of the *calling* guest process private anonymous memory with the same contents and with the right
    /// to be read only, in one step as seen by other threads. From the first page that cannot be read on, every access is a SIGBUS
    /// for good.
    fn own(&self, addr: usize, len: usize) -> Result<()>;
    /// Where code that is rewritten goes in place of an instruction that loads the vector registers from memory, and could load the
    /// key register with them.
    fn restore_entry(&self) -> usize;
}
