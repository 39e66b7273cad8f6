//! User memory: copies that survive a fault.

use janua_port::{Fault, UserMemory};

/// An address space that holds no user memory at all: no address is a guest's, every access is a fault.
pub struct SkeletonUser;

impl UserMemory for SkeletonUser {
    /// A comparison with the bounds of the user part: no page table is looked at, no overflow of `addr + len` is believed, and
    /// nothing that is the kernel's is ever inside. This is the line that keeps a guest's pointers out of the kernel.
    fn is_user(&self, _addr: usize, _len: usize) -> bool {
        false
    }

    /// Checks with [`UserMemory::is_user`], then copies with instructions whose fault the machine's fault handler knows (a
    /// table of addresses and where to go on): the result is [`Fault`], never a crash.
    fn copy_in(&self, _dst: &mut [u8], _src: usize) -> Result<(), Fault> {
        Err(Fault)
    }

    /// As [`UserMemory::copy_in`], outward. On paged spaces a page that is copied on write is copied first.
    fn copy_out(&self, _dst: usize, _src: &[u8]) -> Result<(), Fault> {
        Err(Fault)
    }

    /// How far it got: read(2) and its variants return a short count where part of the buffer is bad.
    fn copy_in_partial(&self, _dst: &mut [u8], _src: usize) -> usize {
        0
    }

    /// As [`UserMemory::copy_in_partial`], outward.
    fn copy_out_partial(&self, _dst: usize, _src: &[u8]) -> usize {
        0
    }

    /// As [`UserMemory::copy_out`] of zeroes, without a buffer of them.
    fn zero(&self, _dst: usize, _len: usize) -> Result<(), Fault> {
        Err(Fault)
    }

    /// Reads no byte behind the NUL that could be on an unmapped page: a string may end right before one.
    fn copy_str(&self, _dst: &mut [u8], _src: usize) -> Result<Option<usize>, Fault> {
        Err(Fault)
    }

    /// One load that other processors' stores cannot tear: futexes compare by it.
    fn load_u32(&self, _addr: usize) -> Result<u32, Fault> {
        Err(Fault)
    }

    /// One atomic instruction of the machine's on the guest's word, with a fault as a result.
    fn cmpxchg_u32(&self, _addr: usize, _old: u32, _new: u32) -> Result<u32, Fault> {
        Err(Fault)
    }
}
