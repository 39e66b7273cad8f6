//! What memory holds where an argument points: what the trace writes for buffers, lists and structures.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use janua_abi::linux::i386::stat::{Stat32, Stat64};
use janua_abi::linux::i386::time::TimeSpec32;
use janua_abi::linux::layout::Layout;
use janua_abi::linux::poll::PollFd;
use janua_abi::linux::stat::Stat;
use janua_abi::linux::time::TimeSpec;
use janua_kernel::table::Words;
use janua_kernel::trace::quoted;
use janua_kernel::{UserPtr, UserStr};
use janua_port::UserMemory;
use zerocopy::{FromBytes, IntoBytes};

/// How much of a buffer is shown, in bytes.
const SHOWN: usize = 32;

/// How many items of a list are shown.
const ITEMS: usize = 8;

/// What is at argument `at` of the call `name`: before it (no result) what it reads, after it what it wrote. `None` leaves
/// the word as it is.
/// `narrow` is a call of the i386 ABI, whose structures are laid out as 32-bit programs have them.
pub fn shown(
    memory: &dyn UserMemory,
    narrow: bool,
    name: &str,
    at: usize,
    words: Words,
    result: Option<isize>,
) -> Option<String> {
    let word = words[at];
    if word == 0 {
        return None;
    }
    match result {
        None => read(memory, narrow, name, at, words),
        Some(result) => written(memory, narrow, name, at, words, usize::try_from(result).ok()?),
    }
}

fn read(memory: &dyn UserMemory, narrow: bool, name: &str, at: usize, words: Words) -> Option<String> {
    let word = words[at];
    match (name, at) {
        ("write" | "pwrite64" | "sendto", 1) => bytes(memory, word, words[2]),
        ("execve", 1) | ("execveat", 2) => strings(memory, narrow, word),
        ("execve", 2) | ("execveat", 3) => Some(format!("{word:#x} /* {} variables */", pointers(memory, narrow, word)?.len())),
        ("nanosleep", 0) | ("clock_nanosleep" | "ppoll", 2) => time(memory, narrow, word),
        ("clock_nanosleep_time64" | "ppoll_time64", 2) => time(memory, false, word),
        ("poll" | "ppoll" | "ppoll_time64", 0) => {
            polled(memory, word, words[1], |file| format!("{{fd={}, events={:#x}}}", file.fd, file.events))
        }
        ("connect" | "bind", 1) => address(memory, word, words[2]),
        _ => None,
    }
}

fn written(memory: &dyn UserMemory, narrow: bool, name: &str, at: usize, words: Words, result: usize) -> Option<String> {
    let word = words[at];
    match (name, at) {
        ("read" | "pread64" | "recvfrom", 1) | ("readlinkat", 2) | ("readlink", 1) | ("getrandom", 0) => {
            bytes(memory, word, result)
        }
        ("getcwd", 0) => bytes(memory, word, result.checked_sub(1)?),
        ("pipe" | "pipe2", 0) | ("socketpair", 3) => {
            let [a, b] = value::<[i32; 2]>(memory, word)?;
            Some(format!("[{a}, {b}]"))
        }
        ("wait4", 1) if result > 0 => Some(status(value::<u32>(memory, word)?)),
        ("stat" | "lstat" | "fstat", 1) if narrow => Some(attributes(&value::<Stat32>(memory, word)?.load())),
        ("stat64" | "lstat64" | "fstat64", 1) | ("fstatat64", 2) => Some(attributes(&value::<Stat64>(memory, word)?.load())),
        ("stat" | "lstat" | "fstat", 1) | ("newfstatat", 2) => {
            let stat = value::<Stat>(memory, word)?;
            Some(attributes(&stat))
        }
        ("clock_gettime", 1) => time(memory, narrow, word),
        ("clock_gettime64", 1) => time(memory, false, word),
        _ => None,
    }
}

fn value<T: FromBytes + IntoBytes>(memory: &dyn UserMemory, at: usize) -> Option<T> {
    UserPtr::<T>::new(at).read(memory).ok()
}

/// `len` bytes, of which the first [`SHOWN`] are written.
fn bytes(memory: &dyn UserMemory, at: usize, len: usize) -> Option<String> {
    let mut start = [0; SHOWN];
    let start = &mut start[..len.min(SHOWN)];
    memory.copy_in(start, at).ok()?;
    let dots = if len > SHOWN { "..." } else { "" };
    Some(format!("{}{dots}", quoted(start, SHOWN)))
}

/// The words of a list that a null pointer ends, 1000 at most.
fn pointers(memory: &dyn UserMemory, narrow: bool, at: usize) -> Option<Vec<usize>> {
    let word = |index: usize| -> Option<usize> {
        if narrow {
            UserPtr::<u32>::new(at).at(index).load(memory).ok()
        } else {
            UserPtr::<usize>::new(at).at(index).read(memory).ok()
        }
    };
    let mut all = Vec::new();
    while all.len() < 1000 {
        match word(all.len())? {
            0 => break,
            pointer => all.push(pointer),
        }
    }
    Some(all)
}

fn strings(memory: &dyn UserMemory, narrow: bool, at: usize) -> Option<String> {
    let all = pointers(memory, narrow, at)?;
    let texts = all.iter().map(|&pointer| match UserStr(pointer).path(memory) {
        Ok(text) => quoted(&text, SHOWN),
        Err(_) => format!("{pointer:#x}"),
    });
    Some(list(texts.take(ITEMS).collect(), all.len()))
}

fn list(items: Vec<String>, all: usize) -> String {
    let dots = if items.len() < all { ", ..." } else { "" };
    format!("[{}{dots}]", items.join(", "))
}

fn attributes(stat: &Stat) -> String {
    format!("{{{}|{:#o}, size={}}}", kind(stat.mode), stat.mode & 0o7777, stat.size)
}

fn time(memory: &dyn UserMemory, narrow: bool, at: usize) -> Option<String> {
    let time = if narrow { value::<TimeSpec32>(memory, at)?.load() } else { value::<TimeSpec>(memory, at)? };
    Some(format!("{{{}.{:09} s}}", time.sec, time.nsec))
}

fn polled(memory: &dyn UserMemory, at: usize, count: usize, item: impl Fn(&PollFd) -> String) -> Option<String> {
    let files = UserPtr::<PollFd>::new(at).slice(count.min(ITEMS)).read_vec(memory, ITEMS).ok()?;
    Some(list(files.iter().map(item).collect(), count))
}

/// A `struct sockaddr_*` of the families there are.
fn address(memory: &dyn UserMemory, at: usize, len: usize) -> Option<String> {
    let mut bytes = [0; 110];
    let bytes = &mut bytes[..len.min(110)];
    memory.copy_in(bytes, at).ok()?;
    let (family, rest) = bytes.split_at_checked(2)?;
    match u16::from_ne_bytes([family[0], family[1]]) {
        1 => {
            let path = if rest.first() == Some(&0) { rest } else { rest.split(|&byte| byte == 0).next()? };
            Some(format!("{{AF_UNIX, {}}}", quoted(path, 108)))
        }
        2 => {
            let [p, q, a, b, c, d] = *rest.first_chunk()?;
            Some(format!("{{AF_INET, {a}.{b}.{c}.{d}:{}}}", u16::from_be_bytes([p, q])))
        }
        10 => {
            let port = u16::from_be_bytes(*rest.first_chunk()?);
            let host = core::net::Ipv6Addr::from(*rest.get(6..)?.first_chunk::<16>()?);
            Some(format!("{{AF_INET6, [{host}]:{port}}}"))
        }
        _ => None,
    }
}

/// The word `wait4` stores.
fn status(word: u32) -> String {
    match (word & 0x7f, word >> 8 & 0xff) {
        (0, code) => format!("[exited {code}]"),
        (0x7f, 0xff) => String::from("[continued]"),
        (0x7f, signal) => format!("[stopped by signal {signal}]"),
        (signal, _) => format!("[ended by signal {signal}]"),
    }
}

/// The file type of a mode.
fn kind(mode: u32) -> &'static str {
    match mode & 0o170_000 {
        0o010_000 => "S_IFIFO",
        0o020_000 => "S_IFCHR",
        0o040_000 => "S_IFDIR",
        0o060_000 => "S_IFBLK",
        0o100_000 => "S_IFREG",
        0o120_000 => "S_IFLNK",
        0o140_000 => "S_IFSOCK",
        _ => "0",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_as_wait_tells_them() {
        assert_eq!(status(0x0700), "[exited 7]");
        assert_eq!(status(15), "[ended by signal 15]");
        assert_eq!(status(0x8b), "[ended by signal 11]");
        assert_eq!(status(0x137f), "[stopped by signal 19]");
    }
}
