//! Argument and environment strings.

use alloc::vec::Vec;

use janua_abi::linux::layout::Layout;
use janua_abi::linux::{Errno, Result};
use janua_kernel::{UserPtr, UserStr};
use janua_port::{PAGE, UserMemory};

/// Longest single string, with its NUL (MAX_ARG_STRLEN).
const MAX_ARG_STRLEN: usize = 32 * PAGE;
/// However small the stack, this much is allowed (ARG_MAX).
const ARG_MAX: u64 = 128 * 1024;
/// However large the stack, no more than three quarters of the usual 8 MiB.
const MOST: u64 = 6 * 1024 * 1024;

/// Strings one after the other, each with its NUL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strings {
    text: Vec<u8>,
    count: usize,
}

impl Strings {
    pub fn push(&mut self, string: &[u8]) {
        self.text.extend_from_slice(string);
        self.text.push(0);
        self.count += 1;
    }

    /// The strings with their NULs.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// The strings without their NULs.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.text.split(|&byte| byte == 0).take(self.count)
    }

    /// Puts `front` in the place of the first string.
    pub fn replace_first(&mut self, front: &[&[u8]]) {
        let mut new = Strings::default();
        for string in front {
            new.push(string);
        }
        for string in self.iter().skip(1) {
            new.push(string);
        }
        *self = new;
    }

    /// Copies a NULL-terminated array of strings in. `budget` is what may still be used, pointers included. E2BIG, EFAULT.
    pub fn read<W: Layout<usize>>(mem: &dyn UserMemory, array: UserPtr<W>, budget: &mut u64) -> Result<Strings> {
        let mut strings = Strings::default();
        if array.is_null() {
            return Ok(strings);
        }
        for at in 0.. {
            let pointer: usize = array.at(at).load(mem)?;
            if pointer == 0 {
                break;
            }
            let string = UserStr(pointer).read(mem, MAX_ARG_STRLEN, Errno::E2BIG)?;
            spend(budget, string.len())?;
            strings.push(&string);
        }
        Ok(strings)
    }
}

/// Takes a string and its pointer out of the budget. E2BIG.
pub fn spend(budget: &mut u64, len: usize) -> Result<()> {
    *budget = budget.checked_sub(len as u64 + 1 + 8).ok_or(Errno::E2BIG)?;
    Ok(())
}

/// Bytes that strings and their pointers may take, by RLIMIT_STACK.
pub fn budget(stack_limit: u64) -> u64 {
    (stack_limit / 4).clamp(ARG_MAX, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings() {
        let mut strings = Strings::default();
        for string in [&b"sh"[..], b"", b"x y"] {
            strings.push(string);
        }
        strings.replace_first(&[b"/bin/env", b"-S"]);
        let all: Vec<&[u8]> = strings.iter().collect();
        assert_eq!(all, [&b"/bin/env"[..], b"-S", b"", b"x y"]);
        assert_eq!((strings.count(), strings.text()), (4, &b"/bin/env\0-S\0\0x y\0"[..]));
        let mut left = 12;
        assert_eq!((spend(&mut left, 3), spend(&mut left, 0)), (Ok(()), Err(Errno::E2BIG)));
    }
}
