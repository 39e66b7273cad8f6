//! User memory, as far as the machine is concerned: copies that survive a fault.
//!
//! These act on the address space of the thread that runs on this core. Addresses are a guest's word: an implementation
//! checks that the whole range is user memory before it touches a byte, and a fault on the way is an answer, not a crash.

/// A user address could not be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault;

/// Access to the current thread's user memory.
pub trait UserMemory: Send + Sync {
    /// Whether `addr..addr+len` lies in the part of the address space that belongs to guests. Says nothing about mappings.
    fn is_user(&self, addr: usize, len: usize) -> bool;
    /// Whether user code can run at an address, where something is mapped: in user memory, or in pages the machine shows to
    /// all programs beside it (a vDSO).
    fn is_code(&self, addr: usize) -> bool {
        self.is_user(addr, 1)
    }
    /// Whether the range lies where user memory could be as far as programs know: what a call refuses with EFAULT before it
    /// knows whether it will touch the memory. A machine that keeps a part for itself answers true for it as well, like for any
    /// range without a mapping; every access asks [`UserMemory::is_user`].
    fn in_range(&self, addr: usize, len: usize) -> bool {
        self.is_user(addr, len)
    }
    /// Copies `dst.len()` bytes from user address `src`.
    fn copy_in(&self, dst: &mut [u8], src: usize) -> Result<(), Fault>;
    /// Copies `src` to user address `dst`. Bytes before the faulting page may have been written.
    fn copy_out(&self, dst: usize, src: &[u8]) -> Result<(), Fault>;
    /// Like [`UserMemory::copy_in`] but returns how many bytes were copied before a fault.
    fn copy_in_partial(&self, dst: &mut [u8], src: usize) -> usize;
    /// Like [`UserMemory::copy_out`] but returns how many bytes were copied before a fault.
    fn copy_out_partial(&self, dst: usize, src: &[u8]) -> usize;
    /// Fills `len` bytes at `dst` with zero.
    fn zero(&self, dst: usize, len: usize) -> Result<(), Fault>;
    /// Copies up to `dst.len()` bytes up to and without a NUL; `Ok(None)` when there is no NUL in that many bytes.
    fn copy_str(&self, dst: &mut [u8], src: usize) -> Result<Option<usize>, Fault>;
    /// Atomically reads the aligned 32-bit word at `addr`.
    fn load_u32(&self, addr: usize) -> Result<u32, Fault>;
    /// Atomic compare-and-exchange on the aligned 32-bit word at `addr`: the value found (equal to `old` when it was stored).
    fn cmpxchg_u32(&self, addr: usize, old: u32, new: u32) -> Result<u32, Fault>;
}
