//! User memory as checked allegations.
//!
//! A guest's pointer is a claim that there is memory of a type; nothing is believed until a read or write through
//! [`UserMemory`] has succeeded, and every read copies once, so that a second thread changing the bytes changes nothing the
//! kernel has already judged.

use alloc::vec;
use alloc::vec::Vec;
use core::marker::PhantomData;

use janua_abi::linux::layout::Layout;
use janua_abi::linux::{Errno, Result};
use janua_port::UserMemory;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

/// An alleged pointer to one `T` (or to the first of several).
pub struct UserPtr<T> {
    addr: usize,
    what: PhantomData<fn() -> T>,
}

impl<T> Clone for UserPtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for UserPtr<T> {}

impl<T> UserPtr<T> {
    pub const fn new(addr: usize) -> UserPtr<T> {
        UserPtr { addr, what: PhantomData }
    }

    pub fn addr(self) -> usize {
        self.addr
    }

    pub fn is_null(self) -> bool {
        self.addr == 0
    }

    /// `None` for the null pointer, which many calls take as "not wanted".
    pub fn non_null(self) -> Option<UserPtr<T>> {
        (self.addr != 0).then_some(self)
    }

    /// The pointer `count` elements on; wraps, since it is only a claim.
    pub fn at(self, count: usize) -> UserPtr<T> {
        UserPtr::new(self.addr.wrapping_add(count.wrapping_mul(size_of::<T>())))
    }

    pub fn cast<U>(self) -> UserPtr<U> {
        UserPtr::new(self.addr)
    }

    /// `len` elements from here.
    pub fn slice(self, len: usize) -> UserSlice<T> {
        UserSlice { ptr: self, len }
    }
}

impl<T: FromBytes + IntoBytes> UserPtr<T> {
    /// Copies the value in. EFAULT when the memory is not there or not the guest's.
    pub fn read(self, mem: &dyn UserMemory) -> Result<T> {
        let mut value = T::new_zeroed();
        mem.copy_in(value.as_mut_bytes(), self.addr).map_err(|_| Errno::EFAULT)?;
        Ok(value)
    }
}

impl<T: IntoBytes + Immutable> UserPtr<T> {
    /// Copies the value out. EFAULT when the memory is not there, not writable or not the guest's.
    pub fn write(self, mem: &dyn UserMemory, value: &T) -> Result<()> {
        mem.copy_out(self.addr, value.as_bytes()).map_err(|_| Errno::EFAULT)
    }
}

impl<L> UserPtr<L> {
    /// Copies a value in that may lie there in another layout than the kernel's.
    pub fn load<T>(self, mem: &dyn UserMemory) -> Result<T>
    where
        L: Layout<T>,
    {
        Ok(self.read(mem)?.load())
    }

    /// Copies a value out in the program's layout.
    pub fn store<T>(self, mem: &dyn UserMemory, value: &T) -> Result<()>
    where
        L: Layout<T>,
    {
        self.write(mem, &L::store(value)?)
    }
}

/// An alleged array.
pub struct UserSlice<T> {
    ptr: UserPtr<T>,
    len: usize,
}

impl<T> Clone for UserSlice<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for UserSlice<T> {}

impl<T> UserSlice<T> {
    pub fn addr(self) -> usize {
        self.ptr.addr
    }

    /// Number of elements.
    pub fn len(self) -> usize {
        self.len
    }

    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

impl<T: FromBytes + IntoBytes + Immutable + FromZeros + Clone> UserSlice<T> {
    /// Copies the array in. `most` bounds the kernel memory a guest can ask for: more elements are EINVAL.
    pub fn read_vec(self, mem: &dyn UserMemory, most: usize) -> Result<Vec<T>> {
        if self.len > most {
            return Err(Errno::EINVAL);
        }
        let mut values = vec![T::new_zeroed(); self.len];
        mem.copy_in(values.as_mut_slice().as_mut_bytes(), self.ptr.addr).map_err(|_| Errno::EFAULT)?;
        Ok(values)
    }
}

impl<T: IntoBytes + Immutable> UserSlice<T> {
    /// Copies out as many values as both sides have.
    pub fn write_slice(self, mem: &dyn UserMemory, values: &[T]) -> Result<()> {
        let count = values.len().min(self.len);
        mem.copy_out(self.ptr.addr, values[..count].as_bytes()).map_err(|_| Errno::EFAULT)
    }
}

/// An alleged NUL-terminated string.
#[derive(Clone, Copy)]
pub struct UserStr(pub usize);

pub use janua_abi::linux::fcntl::PATH_MAX;

/// Bytes of a path that needs no allocation, its NUL included.
const SHORT: usize = 128;

/// Room for a path that is copied in.
pub struct PathRoom {
    short: [u8; SHORT],
    long: Vec<u8>,
}

impl PathRoom {
    #[inline]
    pub const fn new() -> PathRoom {
        PathRoom { short: [0; SHORT], long: Vec::new() }
    }
}

impl Default for PathRoom {
    fn default() -> PathRoom {
        PathRoom::new()
    }
}

impl UserStr {
    pub fn is_null(self) -> bool {
        self.0 == 0
    }

    /// Copies a path in, without its NUL. ENAMETOOLONG at 4096 bytes, EFAULT.
    pub fn path(self, mem: &dyn UserMemory) -> Result<Vec<u8>> {
        self.read(mem, PATH_MAX, Errno::ENAMETOOLONG)
    }

    /// The same without an allocation for a short one: into the room.
    #[inline]
    pub fn path_in<'r>(self, mem: &dyn UserMemory, room: &'r mut PathRoom) -> Result<&'r [u8]> {
        match mem.copy_str(&mut room.short, self.0).map_err(|_| Errno::EFAULT)? {
            Some(len) => Ok(&room.short[..len]),
            None => {
                room.long = self.path(mem)?;
                Ok(&room.long)
            }
        }
    }

    /// Copies a string of fewer than `most` bytes in, without its NUL; `too_long` when there is no NUL in that many.
    pub fn read(self, mem: &dyn UserMemory, most: usize, too_long: Errno) -> Result<Vec<u8>> {
        // Most strings are short: try a little first, so that short ones cost one small copy.
        let mut size = most.min(SHORT);
        loop {
            let mut bytes = vec![0; size];
            match mem.copy_str(&mut bytes, self.0).map_err(|_| Errno::EFAULT)? {
                Some(len) => {
                    bytes.truncate(len);
                    return Ok(bytes);
                }
                None if size == most => return Err(too_long),
                None => size = (size * 8).min(most),
            }
        }
    }
}
