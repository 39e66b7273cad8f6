//! The two directions of data: [`ReadBuf`] is what a read fills, [`WriteBuf`] is what a write empties.
//!
//! Both hide whether the far side is guest memory (one range or a vector of them) or kernel memory, so that a file is written
//! once and serves all calls that move bytes alike.

use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use janua_abi::linux::layout::Layout;
use janua_abi::linux::{Errno, Result};
use janua_port::{PAGE, UserMemory};
use zerocopy::IntoBytes;

use crate::user::UserPtr;

/// One range of a scatter list: address and bytes.
pub type Range = (usize, usize);

/// Most ranges of one scatter list (limits.h: IOV_MAX).
pub const IOV_MAX: usize = 1024;

/// Ranges kept without an allocation.
const FEW: usize = 8;

/// A scatter list, copied from the guest once and checked: every range is user memory, the sum is at most [`MOST`].
pub struct IoVec {
    few: [Range; FEW],
    /// Used instead of `few` when there are more.
    many: Vec<Range>,
    count: usize,
    total: usize,
}

impl IoVec {
    /// Copies an array of `count` `struct iovec` (readv(2)), which lie in memory as `L`. EINVAL for more than [`IOV_MAX`] or a
    /// negative length, EFAULT.
    pub fn read<L: Layout<[usize; 2]>>(mem: &dyn UserMemory, from: UserPtr<L>, count: usize) -> Result<IoVec> {
        let addr = from.addr();
        if count > IOV_MAX {
            return Err(Errno::EINVAL);
        }
        let mut list = IoVec { few: [(0, 0); FEW], many: Vec::new(), count: 0, total: 0 };
        if count <= FEW {
            let mut raw = [L::new_zeroed(); FEW];
            mem.copy_in(raw[..count].as_mut_bytes(), addr).map_err(|_| Errno::EFAULT)?;
            list.take(mem, &raw[..count])?;
        } else {
            let mut raw = vec![L::new_zeroed(); count];
            mem.copy_in(raw.as_mut_slice().as_mut_bytes(), addr).map_err(|_| Errno::EFAULT)?;
            list.many.reserve_exact(count);
            list.take(mem, &raw)?;
        }
        Ok(list)
    }

    fn take<L: Layout<[usize; 2]>>(&mut self, mem: &dyn UserMemory, raw: &[L]) -> Result<()> {
        // A length that is negative as the program's own word.
        let most = isize::MAX as usize >> (usize::BITS as usize - size_of::<L>() * 4);
        for entry in raw {
            let [addr, len] = entry.load();
            if len > most {
                return Err(Errno::EINVAL);
            }
            if !mem.in_range(addr, len) {
                return Err(Errno::EFAULT);
            }
            let len = len.min(MOST - self.total);
            self.total += len;
            if raw.len() <= FEW {
                self.few[self.count] = (addr, len);
            } else {
                self.many.push((addr, len));
            }
            self.count += 1;
        }
        Ok(())
    }

    /// The ranges in order; some may be empty.
    pub fn ranges(&self) -> &[Range] {
        if self.many.is_empty() { &self.few[..self.count] } else { &self.many }
    }

    /// Bytes in all.
    pub fn total(&self) -> usize {
        self.total
    }
}

#[derive(Clone)]
enum Place<'a, S> {
    User { mem: &'a dyn UserMemory, first: Range, rest: &'a [Range] },
    Kernel(S),
}

/// Where a read puts its bytes.
pub struct ReadBuf<'a> {
    place: Place<'a, &'a mut [u8]>,
    done: usize,
    left: usize,
    stop: Option<(&'a AtomicU32, u32)>,
}

/// Where a write takes its bytes from.
#[derive(Clone)]
pub struct WriteBuf<'a> {
    place: Place<'a, &'a [u8]>,
    done: usize,
    left: usize,
    stop: Option<(&'a AtomicU32, u32)>,
}

/// Most bytes one call moves.
pub const MOST: usize = 0x7fff_f000;

macro_rules! common {
    ($name:ident) => {
        impl<'a> $name<'a> {
            /// One range of guest memory. The length is cut to what one call may move.
            pub fn user(mem: &'a dyn UserMemory, addr: usize, len: usize) -> Result<Self> {
                if !mem.in_range(addr, len) {
                    return Err(Errno::EFAULT);
                }
                let len = len.min(MOST);
                Ok($name { place: Place::User { mem, first: (addr, len), rest: &[] }, done: 0, left: len, stop: None })
            }

            /// Several ranges of guest memory, in order.
            pub fn user_vec(mem: &'a dyn UserMemory, list: &'a IoVec) -> Self {
                $name { place: Place::User { mem, first: (0, 0), rest: list.ranges() }, done: 0, left: list.total, stop: None }
            }

            /// Moving many bytes is to end early once one of these bits of the word is set ([`Self::is_stopped`]).
            pub fn until(mut self, word: &'a AtomicU32, bits: u32) -> Self {
                self.stop = Some((word, bits));
                self
            }

            /// Whether what takes long is to be content with what has been moved. To be asked between parts.
            pub fn is_stopped(&self) -> bool {
                self.stop.is_some_and(|(word, bits)| word.load(Ordering::Relaxed) & bits != 0)
            }

            /// Bytes still to be moved.
            pub fn left(&self) -> usize {
                self.left
            }

            /// Bytes moved so far.
            pub fn done(&self) -> usize {
                self.done
            }

            /// Cuts what is left to at most `most` bytes.
            pub fn limit(&mut self, most: usize) {
                self.left = self.left.min(most);
            }

            /// Acts as if at most `most` bytes were left.
            pub fn within<R>(&mut self, most: usize, act: impl FnOnce(&mut Self) -> R) -> R {
                let beyond = self.left.saturating_sub(most);
                self.left -= beyond;
                let result = act(self);
                self.left += beyond;
                result
            }

            /// The next contiguous range of guest memory, for moving bytes without a copy; `None` for kernel memory. After
            /// moving `n` of them call [`Self::advance`].
            pub fn user_range(&mut self) -> Option<Range> {
                let left = self.left;
                match &mut self.place {
                    Place::User { first, rest, .. } => {
                        while first.1 == 0
                            && let Some((next, after)) = rest.split_first()
                        {
                            *first = *next;
                            *rest = after;
                        }
                        Some((first.0, first.1.min(left)))
                    }
                    Place::Kernel(_) => None,
                }
            }

            /// [`Self::user_range`], and whether its addresses may be given to the host: the memory is in use where the caller runs.
            pub fn host_range(&mut self) -> Option<(Range, bool)> {
                let here = matches!(&self.place, Place::User { mem, .. } if mem.in_place());
                Some((self.user_range()?, here))
            }

            /// Notes that `n` bytes of [`Self::user_range`], or of the kernel's memory, have been moved.
            pub fn advance(&mut self, n: usize) {
                let n = match &mut self.place {
                    Place::User { first, .. } => {
                        let n = n.min(first.1).min(self.left);
                        first.0 += n;
                        first.1 -= n;
                        n
                    }
                    Place::Kernel(_) => n.min(self.left),
                };
                self.done += n;
                self.left -= n;
            }
        }
    };
}

common!(ReadBuf);
common!(WriteBuf);

impl<'a> ReadBuf<'a> {
    /// Kernel memory.
    pub fn kernel(bytes: &'a mut [u8]) -> ReadBuf<'a> {
        let left = bytes.len();
        ReadBuf { place: Place::Kernel(bytes), done: 0, left, stop: None }
    }

    /// What is still to be filled, when it is kernel memory. After filling `n` bytes of it call [`Self::advance`].
    pub fn kernel_range(&mut self) -> Option<&mut [u8]> {
        match &mut self.place {
            Place::Kernel(to) => Some(&mut to[self.done..self.done + self.left]),
            Place::User { .. } => None,
        }
    }

    /// How many of the first `most` bytes of [`Self::user_range`] can be stored to, tried page by page without changing any.
    pub fn storable(&mut self, most: usize) -> usize {
        let Some((start, len)) = self.user_range() else { return 0 };
        let Place::User { mem, .. } = &self.place else { return 0 };
        storable_at(*mem, start, len.min(most))
    }

    /// The same for the first `most` bytes of all that is left.
    pub fn storable_together(&self, most: usize) -> usize {
        let most = most.min(self.left);
        let Place::User { mem, first, rest } = &self.place else { return most };
        let mut done = 0;
        for &(start, len) in core::iter::once(first).chain(*rest) {
            let len = len.min(most - done);
            let fits = storable_at(*mem, start, len);
            done += fits;
            if fits < len || done == most {
                break;
            }
        }
        done
    }

    /// Takes as many of `bytes` as there is room for: how many. EFAULT only when none could be stored.
    pub fn put(&mut self, bytes: &[u8]) -> Result<usize> {
        let want = bytes.len().min(self.left);
        if let Place::Kernel(to) = &mut self.place {
            to[self.done..self.done + want].copy_from_slice(&bytes[..want]);
            self.done += want;
            self.left -= want;
            return Ok(want);
        }
        let mut moved = 0;
        while moved < want {
            let Some((addr, len)) = self.user_range() else { break };
            let len = len.min(want - moved);
            if len == 0 {
                break;
            }
            let Place::User { mem, .. } = &self.place else { break };
            let n = mem.copy_out_partial(addr, &bytes[moved..moved + len]);
            self.advance(n);
            moved += n;
            if n < len {
                return if moved > 0 { Ok(moved) } else { Err(Errno::EFAULT) };
            }
        }
        Ok(moved)
    }

    /// [`Self::put`] for a message, of which a part is none: EFAULT unless all there is room for could be stored.
    pub fn put_whole(&mut self, bytes: &[u8]) -> Result<usize> {
        let want = bytes.len().min(self.left);
        if self.put(bytes)? == want { Ok(want) } else { Err(Errno::EFAULT) }
    }

    /// Stores `count` zero bytes, as far as there is room: how many.
    pub fn put_zeros(&mut self, count: usize) -> Result<usize> {
        let want = count.min(self.left);
        let mut moved = 0;
        while moved < want {
            let n = match self.user_range() {
                None => {
                    let Place::Kernel(to) = &mut self.place else { break };
                    to[self.done..self.done + want].fill(0);
                    self.done += want;
                    self.left -= want;
                    want
                }
                Some((_, 0)) => break,
                Some((addr, len)) => {
                    let len = len.min(want - moved);
                    let Place::User { mem, .. } = &self.place else { break };
                    if mem.zero(addr, len).is_err() {
                        return if moved > 0 { Ok(moved) } else { Err(Errno::EFAULT) };
                    }
                    self.advance(len);
                    len
                }
            };
            moved += n;
        }
        Ok(moved)
    }
}

impl<'a> WriteBuf<'a> {
    /// Kernel memory.
    pub fn kernel(bytes: &'a [u8]) -> WriteBuf<'a> {
        WriteBuf { place: Place::Kernel(bytes), done: 0, left: bytes.len(), stop: None }
    }

    /// What is still to be taken, when it is kernel memory. After taking `n` bytes of it call [`Self::advance`].
    pub fn kernel_range(&self) -> Option<&[u8]> {
        match &self.place {
            Place::Kernel(from) => Some(&from[self.done..self.done + self.left]),
            Place::User { .. } => None,
        }
    }

    /// Leaves `n` bytes behind as moved, whatever ranges they lie in.
    pub fn skip(&mut self, n: usize) {
        let mut left = n.min(self.left);
        while left > 0 {
            // Steps over ranges that are used up.
            self.user_range();
            let before = self.left;
            self.advance(left);
            if self.left == before {
                break;
            }
            left -= before - self.left;
        }
    }

    /// Fills `out` without taking the bytes. EFAULT, EINVAL when there are fewer.
    pub fn peek(&self, out: &mut [u8]) -> Result<()> {
        if self.left < out.len() {
            return Err(Errno::EINVAL);
        }
        if self.clone().get(out)? == out.len() { Ok(()) } else { Err(Errno::EFAULT) }
    }

    /// Fills `out` as far as there are bytes: how many. EFAULT only when none could be read.
    pub fn get(&mut self, out: &mut [u8]) -> Result<usize> {
        let want = out.len().min(self.left);
        if let Place::Kernel(from) = &self.place {
            out[..want].copy_from_slice(&from[self.done..self.done + want]);
            self.done += want;
            self.left -= want;
            return Ok(want);
        }
        let mut moved = 0;
        while moved < want {
            let Some((addr, len)) = self.user_range() else { break };
            let len = len.min(want - moved);
            if len == 0 {
                break;
            }
            let Place::User { mem, .. } = &self.place else { break };
            let n = mem.copy_in_partial(&mut out[moved..moved + len], addr);
            self.advance(n);
            moved += n;
            if n < len {
                return if moved > 0 { Ok(moved) } else { Err(Errno::EFAULT) };
            }
        }
        Ok(moved)
    }
}

/// How many of the bytes from `start` on can be stored to.
fn storable_at(mem: &dyn UserMemory, start: usize, len: usize) -> usize {
    let end = start + len;
    let mut at = start;
    while at < end {
        let word = at & !3;
        if mem.load_u32(word).and_then(|value| mem.cmpxchg_u32(word, value, value)).is_err() {
            break;
        }
        at = (at / PAGE + 1) * PAGE;
    }
    at.min(end) - start
}
