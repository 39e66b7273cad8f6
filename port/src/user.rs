//! User memory, as far as the machine is concerned: copies that survive a fault.
//!
//! It is the memory of one guest thread ([`crate::Context::memory`]), whichever thread asks. Addresses are a guest's word: an implementation
//! checks that the whole range is user memory before it touches a byte, and a fault on the way is a result, not a crash.

use crate::PAGE;

/// A user address could not be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault;

/// Access to a thread's user memory.
pub trait UserMemory: Send + Sync {
    /// Whether `addr..addr+len` is in the part of the address space that belongs to guests, mapped or not.
    fn is_user(&self, addr: usize, len: usize) -> bool;
    /// Whether it is in use where the caller runs, so that the host, where there is one, may be given its addresses.
    fn in_place(&self) -> bool {
        true
    }
    /// Whether the range is user memory that code of the kernel's which survives a fault can use at its addresses, where the caller runs and as it is.
    fn is_direct(&self, _addr: usize, _len: usize) -> bool {
        false
    }
    /// Whether user code can run at an address, where something is mapped: in user memory, or in pages the machine shows to
    /// all programs beside it (a vDSO).
    fn is_code(&self, addr: usize) -> bool {
        self.is_user(addr, 1)
    }
    /// Whether the range is where user memory could be as far as programs know: what a call refuses with EFAULT before it
    /// knows whether it will touch the memory. A machine that keeps a part for itself returns true for it as well, like for any
    /// range without a mapping; every access asks [`UserMemory::is_user`].
    fn in_range(&self, addr: usize, len: usize) -> bool {
        self.is_user(addr, len)
    }
    /// Copies `dst.len()` bytes from user address `src`.
    fn copy_in(&self, dst: &mut [u8], src: usize) -> Result<(), Fault> {
        if self.copy_in_partial(dst, src) == dst.len() { Ok(()) } else { Err(Fault) }
    }
    /// Copies `src` to user address `dst`. Bytes before the faulting page may have been written.
    fn copy_out(&self, dst: usize, src: &[u8]) -> Result<(), Fault> {
        if self.copy_out_partial(dst, src) == src.len() { Ok(()) } else { Err(Fault) }
    }
    /// Like [`UserMemory::copy_in`] but returns how many bytes were copied before a fault.
    fn copy_in_partial(&self, dst: &mut [u8], src: usize) -> usize;
    /// Like [`UserMemory::copy_out`] but returns how many bytes were copied before a fault.
    fn copy_out_partial(&self, dst: usize, src: &[u8]) -> usize;
    /// Copies each to its user address, one after the other and in one step where that is sooner: bytes copied before the first that could not be.
    fn copy_out_some(&self, parts: &[(usize, &[u8])]) -> usize {
        copy_out_one_by_one(self, parts)
    }
    /// Fills `len` bytes at `dst` with zero.
    fn zero(&self, dst: usize, len: usize) -> Result<(), Fault> {
        zero_by_pages(self, dst, len)
    }
    /// Copies up to `dst.len()` bytes up to and without a NUL; `Ok(None)` when there is no NUL in that many bytes.
    fn copy_str(&self, dst: &mut [u8], src: usize) -> Result<Option<usize>, Fault> {
        copy_str_by_pages(self, dst, src)
    }
    /// Atomically reads the aligned 32-bit word at `addr`.
    fn load_u32(&self, addr: usize) -> Result<u32, Fault>;
    /// Atomic compare-and-exchange on the aligned 32-bit word at `addr`: the value found (equal to `old` when it was stored). A fault
    /// too where the memory can only be copied from where the caller runs, as another process' is on a host: calls that need it are
    /// made at home.
    fn cmpxchg_u32(&self, addr: usize, old: u32, new: u32) -> Result<u32, Fault>;
}

/// A range of memory that the kernel shares with programs, wherever those have it ([`crate::MemoryObject::window`]).
pub trait Window: Send + Sync {
    /// It, at addresses from 0 on, if it can be reached where the caller runs. What is written there programs read whenever they like, and the other way round: as with
    /// all user memory nothing that is read twice need be the same.
    fn here(&self) -> Option<&dyn UserMemory>;
}

/// The memory of a thread that has none: all of it faults.
pub struct NoMemory;

impl UserMemory for NoMemory {
    fn is_user(&self, _addr: usize, _len: usize) -> bool {
        false
    }
    fn copy_in_partial(&self, _dst: &mut [u8], _src: usize) -> usize {
        0
    }
    fn copy_out_partial(&self, _dst: usize, _src: &[u8]) -> usize {
        0
    }
    fn load_u32(&self, _addr: usize) -> Result<u32, Fault> {
        Err(Fault)
    }
    fn cmpxchg_u32(&self, _addr: usize, _old: u32, _new: u32) -> Result<u32, Fault> {
        Err(Fault)
    }
}

/// Memory of one thread's, which may be in use where the caller runs or not: then it is there by copies alone. What implements this is a
/// [`UserMemory`].
pub trait Reach: Send + Sync {
    /// Memory in place.
    type Near: UserMemory;
    /// The memory in use where the caller runs.
    fn near(&self) -> &Self::Near;
    /// Whether the caller is the thread itself, for which copies take the shortest path: [`Reach::is_near`] then.
    fn is_caller(&self) -> bool;
    /// Whether this memory is in use where the caller runs.
    fn is_near(&self) -> bool;
    /// Copies from it, whichever thread runs: bytes before the first that cannot be read. The range is in user memory.
    fn read(&self, addr: usize, out: &mut [u8]) -> usize;
    /// Copies to it, as [`Reach::read`].
    fn write(&self, addr: usize, data: &[u8]) -> usize;
    /// Copies each part to it, as [`Reach::write`]: bytes before the first that cannot be written.
    fn write_some(&self, parts: &[(usize, &[u8])]) -> usize {
        let mut done = 0;
        for (addr, data) in parts {
            let written = self.write(*addr, data);
            done += written;
            if written < data.len() {
                break;
            }
        }
        done
    }
    /// Reads the aligned 32-bit word at `addr`, in user memory, whichever thread runs: atomically where the machine can.
    fn load(&self, addr: usize) -> Result<u32, Fault> {
        let mut word = [0; 4];
        if self.read(addr, &mut word) == word.len() { Ok(u32::from_ne_bytes(word)) } else { Err(Fault) }
    }
    /// Atomic compare-and-exchange on such a word: the value found. A fault where there is none but in place.
    fn exchange(&self, _addr: usize, _old: u32, _new: u32) -> Result<u32, Fault> {
        Err(Fault)
    }
}

/// [`UserMemory::zero`] by copies of zeroes.
fn zero_by_pages(memory: &(impl UserMemory + ?Sized), dst: usize, len: usize) -> Result<(), Fault> {
    if !memory.is_user(dst, len) {
        return Err(Fault);
    }
    (0..len).step_by(PAGE).try_for_each(|at| memory.copy_out(dst + at, &[0; PAGE][..PAGE.min(len - at)]))
}

/// [`UserMemory::copy_out_some`] by as many copies.
fn copy_out_one_by_one(memory: &(impl UserMemory + ?Sized), parts: &[(usize, &[u8])]) -> usize {
    let mut done = 0;
    for (dst, src) in parts {
        let copied = memory.copy_out_partial(*dst, src);
        done += copied;
        if copied < src.len() {
            break;
        }
    }
    done
}

/// [`UserMemory::copy_str`] by copies of parts of pages, which are there or not as a whole, since what is behind the string's end need not be there.
pub fn copy_str_by_pages(memory: &(impl UserMemory + ?Sized), dst: &mut [u8], src: usize) -> Result<Option<usize>, Fault> {
    let mut done = 0;
    while done < dst.len() {
        let addr = src.checked_add(done).ok_or(Fault)?;
        let len = (dst.len() - done).min(PAGE - addr % PAGE);
        let piece = &mut dst[done..done + len];
        memory.copy_in(piece, addr)?;
        if let Some(end) = piece.iter().position(|byte| *byte == 0) {
            return Ok(Some(done + end));
        }
        done += len;
    }
    Ok(None)
}

/// Copies in where the caller is not the thread.
#[cold]
#[inline(never)]
fn copy_in_for_another(memory: &impl Reach, dst: &mut [u8], src: usize) -> usize {
    match memory.is_near() {
        true => memory.near().copy_in_partial(dst, src),
        false if memory.is_user(src, dst.len()) => memory.read(src, dst),
        false => 0,
    }
}

/// Copies out where the caller is not the thread.
#[cold]
#[inline(never)]
fn copy_out_for_another(memory: &impl Reach, dst: usize, src: &[u8]) -> usize {
    match memory.is_near() {
        true => memory.near().copy_out_partial(dst, src),
        false if memory.is_user(dst, src.len()) => memory.write(dst, src),
        false => 0,
    }
}

impl<T: Reach> UserMemory for T {
    fn in_place(&self) -> bool {
        self.is_near()
    }

    fn is_direct(&self, addr: usize, len: usize) -> bool {
        self.is_near() && self.near().is_direct(addr, len)
    }

    fn is_user(&self, addr: usize, len: usize) -> bool {
        self.near().is_user(addr, len)
    }

    fn is_code(&self, addr: usize) -> bool {
        self.near().is_code(addr)
    }

    fn in_range(&self, addr: usize, len: usize) -> bool {
        self.near().in_range(addr, len)
    }

    fn copy_in_partial(&self, dst: &mut [u8], src: usize) -> usize {
        if self.is_caller() { self.near().copy_in_partial(dst, src) } else { copy_in_for_another(self, dst, src) }
    }

    fn copy_out_partial(&self, dst: usize, src: &[u8]) -> usize {
        if self.is_caller() { self.near().copy_out_partial(dst, src) } else { copy_out_for_another(self, dst, src) }
    }

    fn copy_out_some(&self, parts: &[(usize, &[u8])]) -> usize {
        if self.is_near() || !parts.iter().all(|(dst, src)| self.is_user(*dst, src.len())) {
            return copy_out_one_by_one(self, parts);
        }
        self.write_some(parts)
    }

    fn zero(&self, dst: usize, len: usize) -> Result<(), Fault> {
        if self.is_near() { self.near().zero(dst, len) } else { zero_by_pages(self, dst, len) }
    }

    fn copy_str(&self, dst: &mut [u8], src: usize) -> Result<Option<usize>, Fault> {
        if self.is_near() {
            return self.near().copy_str(dst, src);
        }
        copy_str_by_pages(self, dst, src)
    }

    fn load_u32(&self, addr: usize) -> Result<u32, Fault> {
        if self.is_near() {
            return self.near().load_u32(addr);
        }
        if addr.is_multiple_of(4) && self.is_user(addr, 4) { self.load(addr) } else { Err(Fault) }
    }

    fn cmpxchg_u32(&self, addr: usize, old: u32, new: u32) -> Result<u32, Fault> {
        match self.is_near() {
            true => self.near().cmpxchg_u32(addr, old, new),
            false if addr.is_multiple_of(4) && self.is_user(addr, 4) => self.exchange(addr, old, new),
            false => Err(Fault),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::sync::Mutex;
    use std::vec::Vec;

    use super::*;

    /// Two pages from [`BASE`] on, of which the caller has the second alone in use when it is near.
    struct Remote(Mutex<Vec<u8>>);
    const BASE: usize = 0x1_0000;

    impl Remote {
        fn part(&self, addr: usize, len: usize) -> core::ops::Range<usize> {
            let start = (addr - BASE).min(2 * PAGE);
            start..(start + len).min(2 * PAGE)
        }
    }

    struct Everything;
    impl UserMemory for Everything {
        fn is_user(&self, addr: usize, len: usize) -> bool {
            addr >= BASE && addr.checked_add(len).is_some_and(|end| end <= BASE + 4 * PAGE)
        }
        fn copy_in_partial(&self, _dst: &mut [u8], _src: usize) -> usize {
            panic!("not in place")
        }
        fn copy_out_partial(&self, _dst: usize, _src: &[u8]) -> usize {
            panic!("not in place")
        }
        fn zero(&self, _dst: usize, _len: usize) -> Result<(), Fault> {
            panic!("not in place")
        }
        fn copy_str(&self, _dst: &mut [u8], _src: usize) -> Result<Option<usize>, Fault> {
            panic!("not in place")
        }
        fn load_u32(&self, _addr: usize) -> Result<u32, Fault> {
            panic!("not in place")
        }
        fn cmpxchg_u32(&self, _addr: usize, _old: u32, _new: u32) -> Result<u32, Fault> {
            panic!("not in place")
        }
    }

    impl Reach for Remote {
        type Near = Everything;
        fn near(&self) -> &Everything {
            &Everything
        }
        fn is_caller(&self) -> bool {
            self.is_near()
        }
        fn is_near(&self) -> bool {
            false
        }
        fn read(&self, addr: usize, out: &mut [u8]) -> usize {
            let range = self.part(addr, out.len());
            out[..range.len()].copy_from_slice(&self.0.lock().unwrap()[range.clone()]);
            range.len()
        }
        fn write(&self, addr: usize, data: &[u8]) -> usize {
            let range = self.part(addr, data.len());
            self.0.lock().unwrap()[range.clone()].copy_from_slice(&data[..range.len()]);
            range.len()
        }
    }

    fn remote() -> Remote {
        Remote(Mutex::new(std::vec![b'x'; 2 * PAGE]))
    }

    #[test]
    fn copies_from_afar_end_where_the_memory_does() {
        let memory = remote();
        let mut out = [0; 32];
        assert_eq!(memory.copy_in_partial(&mut out, BASE + 2 * PAGE - 8), 8);
        assert_eq!(memory.copy_in(&mut out, BASE + 2 * PAGE - 8), Err(Fault));
        assert_eq!(memory.copy_in_partial(&mut out, BASE + 4 * PAGE - 8), 0, "the range leaves user memory");
        assert_eq!(memory.copy_out_partial(BASE + 2 * PAGE - 4, &[1; 8]), 4);
        assert_eq!(memory.zero(BASE + 8, 2 * PAGE - 8), Ok(()));
        assert_eq!(memory.zero(BASE + 8, 2 * PAGE), Err(Fault));
        assert_eq!(memory.zero(usize::MAX, 2), Err(Fault));
        assert_eq!(memory.0.lock().unwrap()[..9], *b"xxxxxxxx\0");
    }

    #[test]
    fn of_several_copies_the_first_that_cannot_be_is_the_last() {
        let memory = remote();
        assert_eq!(memory.copy_out_some(&[]), 0);
        assert_eq!(memory.copy_out_some(&[(BASE, b"ab"), (BASE + PAGE, b""), (BASE + 2, b"c")]), 3);
        assert_eq!(memory.copy_out_some(&[(BASE, b"x"), (BASE + 2 * PAGE - 2, b"defg"), (BASE + 1, b"y")]), 3);
        assert_eq!(
            memory.copy_out_some(&[(BASE, b"z"), (BASE + 4 * PAGE - 1, b"de"), (BASE + 1, b"y")]),
            1,
            "it leaves user memory"
        );
        let bytes = memory.0.lock().unwrap();
        assert_eq!((&bytes[..4], &bytes[2 * PAGE - 2..]), (&b"zbcx"[..], &b"de"[..]));
    }

    #[test]
    fn strings_from_afar_run_over_pages_but_not_beyond_the_last() {
        let memory = remote();
        let mut out = [0; PAGE + 64];
        assert_eq!(memory.copy_str(&mut out, BASE + PAGE - 4), Err(Fault), "no end in what there is");
        assert_eq!(memory.copy_out(BASE + PAGE + 3, b"\0"), Ok(()));
        assert_eq!(memory.copy_str(&mut out, BASE + PAGE - 4), Ok(Some(7)));
        assert_eq!(out[..8], *b"xxxxxxx\0");
        assert_eq!(memory.copy_str(&mut out[..7], BASE + PAGE - 4), Ok(None));
        assert_eq!(memory.copy_out(BASE + 2 * PAGE - 1, b"\0"), Ok(()));
        assert_eq!(memory.copy_str(&mut out, BASE + 2 * PAGE - 3), Ok(Some(2)), "the end is the last byte there is");
        assert_eq!(memory.copy_str(&mut out, usize::MAX - 2), Err(Fault));
    }

    #[test]
    fn words_from_afar_are_read_but_not_exchanged() {
        let memory = remote();
        assert_eq!(memory.copy_out(BASE + 8, &7u32.to_ne_bytes()), Ok(()));
        assert_eq!(memory.load_u32(BASE + 8), Ok(7));
        assert_eq!(memory.load_u32(BASE + 9), Err(Fault));
        assert_eq!(memory.cmpxchg_u32(BASE + 8, 7, 8), Err(Fault));
        assert_eq!(memory.load_u32(BASE + 8), Ok(7));
    }
}
