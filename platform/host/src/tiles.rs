//! Several kernels side by side: the memory that each pair of them shares, and the processors and the supervisor that each has.
//!
//! A tile is a sandbox like any other, with a supervisor of its own, since a supervisor has the kernel's memory mapped where the kernel has it. The
//! supervisors are no children of each other: each takes its children for processes of its sandbox.

use alloc::vec::Vec;
use core::ffi::CStr;

use janua_entry::hosted::{self, LINK_SIZE};
use janua_port::tiles::TILES_MOST;

use crate::sandbox::{StartError, failed};

/// Which tile a sandbox is.
#[derive(Clone, Debug)]
pub struct Tile {
    pub number: u32,
    /// How many there are.
    pub count: u32,
    /// Its processors: how many, and which of those that may be used is the first. It begins again at the lowest where they are not enough.
    pub cores: usize,
    pub first: usize,
    /// Descriptors of what it shares with the others, each with the other's number.
    pub links: Vec<(u32, i32)>,
}

/// What is shared by so many tiles, by the lower number and the higher: descriptors.
pub struct Links(Vec<([u32; 2], i32)>);

impl Links {
    /// Makes them. None can be made shorter, which would end those at the other side.
    pub fn make(count: u32) -> Result<Links, StartError> {
        const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        const NAME: &CStr = c"janua-link";
        let mut links = Links(Vec::new());
        for pair in (0..count).flat_map(|lower| (lower + 1..count).map(move |higher| [lower, higher])) {
            // SAFETY: a constant name, then plain words.
            unsafe {
                let fd = libc::memfd_create(NAME.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
                if fd < 0 {
                    return Err(failed("cannot make what tiles share (memfd_create)"));
                }
                links.0.push((pair, fd));
                if libc::ftruncate(fd, LINK_SIZE as i64) != 0 || libc::fcntl(fd, libc::F_ADD_SEALS, SEALS) != 0 {
                    return Err(failed("cannot size what tiles share (ftruncate)"));
                }
            }
        }
        Ok(links)
    }

    /// Those of one tile.
    pub fn of(&self, tile: u32) -> Vec<(u32, i32)> {
        let other = |pair: &[u32; 2]| match pair {
            [lower, higher] if *lower == tile => Some(*higher),
            [lower, higher] if *higher == tile => Some(*lower),
            _ => None,
        };
        self.0.iter().filter_map(|(pair, fd)| Some((other(pair)?, *fd))).collect()
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        crate::sandbox::close(self.0.iter().map(|(_, fd)| *fd));
    }
}

/// Maps what a tile shares with the others into the kernel's range.
pub(crate) fn map(tile: &Tile) -> Result<(), StartError> {
    for (other, fd) in &tile.links {
        if *other >= TILES_MOST {
            return Err(StartError { what: "there are too many tiles", errno: libc::EINVAL });
        }
        let place = hosted::link(*other as usize);
        let both = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address nothing else uses (NOREPLACE makes sure).
        let map = unsafe { libc::mmap(place as *mut _, LINK_SIZE, both, libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE, *fd, 0) };
        if map as usize != place {
            return Err(failed("cannot map what tiles share (mmap)"));
        }
    }
    Ok(())
}

/// Goes on as the supervisor of another tile: `body` runs in a process that has no parent here, leads a session of its own, has nothing at standard input and output and
/// no descriptors but standard error and those of `kept`. The error is the host's. While the process has one thread.
pub fn apart(kept: &[i32], body: impl FnOnce() -> i32) -> Result<(), i32> {
    // SAFETY: one thread, so that a child may go on with everything it inherits; what ends does so without running what was registered for the
    // caller's exit, and the status is ours.
    unsafe {
        let between = libc::fork();
        match between {
            -1 => return Err(crate::errno()),
            0 => {
                libc::setsid();
                match libc::fork() {
                    -1 => libc::_exit(crate::errno()),
                    0 => {
                        let nothing = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
                        libc::dup2(nothing, 0);
                        libc::dup2(nothing, 1);
                        let standard = [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO];
                        crate::wall::close_but(standard.into_iter().chain(kept.iter().copied()));
                        libc::_exit(body())
                    }
                    _ => libc::_exit(0),
                }
            }
            _ => {}
        }
        let mut status = 0;
        while libc::waitpid(between, &raw mut status, 0) < 0 {
            if crate::errno() != libc::EINTR {
                return Err(crate::errno());
            }
        }
        match status {
            0 => Ok(()),
            _ if libc::WIFEXITED(status) => Err(libc::WEXITSTATUS(status)),
            _ => Err(libc::ECHILD),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_tiles_have_each_link_and_nobody_can_cut_it_short() {
        let links = Links::make(4).unwrap();
        let all: Vec<Vec<(u32, i32)>> = (0..4).map(|tile| links.of(tile)).collect();
        for (number, own) in all.iter().enumerate() {
            assert_eq!(own.len(), 3);
            for (other, fd) in own {
                assert_ne!(*other as usize, number);
                assert!(all[*other as usize].contains(&(number as u32, *fd)));
                // SAFETY: plain words.
                assert_eq!(unsafe { libc::ftruncate(*fd, 0) }, -1);
            }
        }
        assert!(links.of(4).is_empty());
    }
}
