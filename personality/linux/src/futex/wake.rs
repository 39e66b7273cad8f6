//! Waking and moving waiters: FUTEX_WAKE, FUTEX_WAKE_BITSET, FUTEX_REQUEUE, FUTEX_CMP_REQUEUE, FUTEX_WAKE_OP.

use janua_abi::linux::futex::{BITSET_MATCH_ANY, FutexWaitv};
use janua_kernel::{Errno, Result, UserPtr};

use super::table::{Purpose, Wakers, bucket_of};
use super::wait::futex2_private;
use crate::Thread;

/// Wakes up to `most` waiters (at least one, as Linux has it): how many.
pub fn wake(thread: &Thread, addr: usize, most: u32, bitset: u32, private: bool) -> Result<usize> {
    if bitset == 0 {
        return Err(Errno::EINVAL);
    }
    let key = super::key(thread, addr, private)?;
    thread.kernel.futexes.wake(&key, (most as i32).max(1) as usize, bitset)
}

/// Wakes one waiter of a word that the kernel itself has changed (set_tid_address(2), robust lists). Errors mean nobody.
pub fn futex_wake_addr(thread: &Thread, addr: usize) {
    if let Ok(key) = super::key(thread, addr, false) {
        let _ = thread.kernel.futexes.wake(&key, 1, BITSET_MATCH_ANY);
    }
}

/// futex_wake of futex2: wakes exactly as many as asked, even none.
pub fn futex_wake(thread: &Thread, addr: usize, bitset: u64, most: i32, flags: u32) -> Result<usize> {
    let private = futex2_private(flags)?;
    let bitset = u32::try_from(bitset).ok().filter(|&bitset| bitset != 0).ok_or(Errno::EINVAL)?;
    let key = super::key(thread, addr, private)?;
    thread.kernel.futexes.wake(&key, usize::try_from(most).unwrap_or(0), bitset)
}

/// Whence and whither waiters are moved.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    pub from: usize,
    pub from_private: bool,
    pub to: usize,
    pub to_private: bool,
}

/// Wakes up to `wake` waiters and moves up to `most` others: how many both. EAGAIN when the word is not as expected.
pub fn requeue(thread: &Thread, places: Places, wake: usize, most: usize, expected: Option<u32>) -> Result<usize> {
    let from = super::key(thread, places.from, places.from_private)?;
    let to = super::key(thread, places.to, places.to_private)?;
    let table = &thread.kernel.futexes;
    let mut wakers = Wakers::new();
    let count = {
        let mut both = match expected {
            Some(expected) => table.lock_both_if(&from, &to, || super::is(thread, places.from, expected))?,
            None => table.lock_both(&from, &to),
        };
        let mut count = table.take(both.from(), &from, wake, BITSET_MATCH_ANY, &mut wakers)?;
        let (mut at, mut moved) = (0, 0);
        while at < both.from().entries.len() && moved < most {
            let entry = &mut both.from().entries[at];
            if entry.key != from || entry.purpose != Purpose::Wake {
                at += 1;
                continue;
            }
            moved += 1;
            if bucket_of(&from) == bucket_of(&to) {
                entry.key = to;
                at += 1;
            } else if let Some(entry) = both.from().entries.remove(at) {
                table.move_entry(&mut both, entry, &to);
            }
        }
        count += moved;
        count
    };
    for waker in wakers {
        waker.wake();
    }
    Ok(count)
}

/// futex_requeue of futex2: two words in an array, the first compared.
pub fn futex_requeue(thread: &Thread, words: UserPtr<FutexWaitv>, flags: u32, wake: i32, most: i32) -> Result<usize> {
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    let (from, to) = (words.read(thread.user())?, words.at(1).read(thread.user())?);
    let expected = u32::try_from(from.val).map_err(|_| Errno::EINVAL)?;
    if from.reserved != 0 || to.reserved != 0 {
        return Err(Errno::EINVAL);
    }
    let places = Places {
        from: from.uaddr as usize,
        from_private: futex2_private(from.flags)?,
        to: to.uaddr as usize,
        to_private: futex2_private(to.flags)?,
    };
    let (Ok(wake), Ok(most)) = (usize::try_from(wake), usize::try_from(most)) else { return Err(Errno::EINVAL) };
    requeue(thread, places, wake, most, Some(expected))
}

/// What FUTEX_WAKE_OP does to the second word, and what it then compares the old value with.
struct WordOp {
    op: u32,
    operand: i32,
    cmp: u32,
    than: i32,
}

impl WordOp {
    /// ENOSYS for an operation or comparison that does not exist.
    fn decode(word: u32) -> Result<WordOp> {
        let twelve = |word: u32| (word << 20) as i32 >> 20;
        let (op, cmp) = (word >> 28, word >> 24 & 0xf);
        let mut operand = twelve(word >> 12);
        if op & 8 != 0 {
            // A shift of more than the word has wraps, as on the machine.
            operand = 1i32.wrapping_shl(operand as u32);
        }
        if op & 7 > 4 || cmp > 5 {
            return Err(Errno::ENOSYS);
        }
        Ok(WordOp { op: op & 7, operand, cmp, than: twelve(word) })
    }

    fn apply(&self, old: u32) -> u32 {
        let operand = self.operand as u32;
        match self.op {
            0 => operand,
            1 => old.wrapping_add(operand),
            2 => old | operand,
            3 => old & !operand,
            _ => old ^ operand,
        }
    }

    fn holds(&self, old: u32) -> bool {
        let (old, than) = (old as i32, self.than);
        match self.cmp {
            0 => old == than,
            1 => old != than,
            2 => old < than,
            3 => old <= than,
            4 => old > than,
            _ => old >= than,
        }
    }
}

/// Changes the second word in one step, wakes up to `most[0]` waiters of the first and, if the old value compares, up to `most[1]`
/// of the second: how many.
pub fn wake_op(thread: &Thread, addr: [usize; 2], most: [u32; 2], word: u32, private: bool) -> Result<usize> {
    let first = super::key(thread, addr[0], private)?;
    let second = super::key(thread, addr[1], private)?;
    let op = WordOp::decode(word)?;
    let table = &thread.kernel.futexes;
    let mut wakers = Wakers::new();
    // Before the queues are locked, as a program changes a word before it wakes by another call.
    let mut old = super::load(thread, addr[1])?;
    loop {
        let found = super::exchange(thread, addr[1], old, op.apply(old))?;
        if found == old {
            break;
        }
        old = found;
    }
    let count = {
        let mut both = table.lock_both(&first, &second);
        let most = most.map(|most| (most as i32).max(1) as usize);
        match table.take(both.from(), &first, most[0], BITSET_MATCH_ANY, &mut wakers) {
            Ok(count) if op.holds(old) => {
                table.take(both.to(), &second, most[1], BITSET_MATCH_ANY, &mut wakers).map(|more| count + more)
            }
            other => other,
        }
    };
    // Also when it ends with an error: those that were taken out wait for nobody else.
    for waker in wakers {
        waker.wake();
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FUTEX_OP of linux/futex.h.
    fn word(op: u32, operand: i32, cmp: u32, than: i32) -> u32 {
        op << 28 | cmp << 24 | (operand as u32 & 0xfff) << 12 | than as u32 & 0xfff
    }

    #[test]
    fn word_operations_decode_signed_operands_and_shifts() {
        let op = WordOp::decode(word(1, -1, 4, -2)).unwrap();
        assert_eq!(op.apply(0), u32::MAX);
        assert!(op.holds(0) && op.holds(u32::MAX) && !op.holds(-2i32 as u32));
        let op = WordOp::decode(word(2 | 8, 31, 0, 0)).unwrap();
        assert_eq!(op.apply(1), 1 << 31 | 1);
        assert_eq!(WordOp::decode(word(5, 0, 0, 0)).err(), Some(Errno::ENOSYS));
        assert_eq!(WordOp::decode(word(0, 0, 6, 0)).err(), Some(Errno::ENOSYS));
    }
}
