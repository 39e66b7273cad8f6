//! What is sent of a process that begins on another tile, and of files' attributes.

use alloc::vec::Vec;

use janua_abi::linux::process::{Rlimit, rlimit};
use janua_abi::linux::{Errno, Result};
use janua_object::Cred;
use janua_object::vfs::Attr;
use janua_port::machine::Usage;
use serde::{Deserialize, Serialize};

/// Descriptors a program may take along, and where their numbers end.
pub const FILES_MOST: usize = 256;
pub const DESCRIPTORS: u64 = 1 << 20;

/// A program that is to begin, and what its process has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    pub pid: u32,
    pub parent: u32,
    pub pgrp: u32,
    pub session: u32,
    /// Looked up in the environment's PATH when it has no slash.
    pub path: Vec<u8>,
    pub argv: Vec<Vec<u8>>,
    pub envp: Vec<Vec<u8>>,
    /// Absolute.
    pub cwd: Vec<u8>,
    pub umask: u32,
    pub nice: i32,
    /// personality(2).
    pub personality: u32,
    pub oom_score_adj: [i32; 2],
    pub coredump_filter: u32,
    pub timer_slack: u64,
    /// Signals, bit n-1 for signal n.
    pub ignored: u64,
    pub blocked: u64,
    pub limits: [Option<Rlimit>; rlimit::COUNT],
    pub rights: Rights,
    pub objects: Vec<Object>,
    /// Descriptors, each with its place among the objects.
    pub files: Vec<(u32, u32)>,
}

/// [`Cred`] in the order of its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights {
    ids: [u32; 8],
    groups: Vec<u32>,
    capabilities: [u64; 5],
    securebits: u32,
    no_new_privs: bool,
}

impl From<&Cred> for Rights {
    fn from(cred: &Cred) -> Rights {
        Rights {
            ids: [cred.uid, cred.gid, cred.euid, cred.egid, cred.suid, cred.sgid, cred.fsuid, cred.fsgid],
            groups: cred.groups.clone(),
            capabilities: [cred.cap_effective, cred.cap_permitted, cred.cap_inheritable, cred.cap_bounding, cred.cap_ambient],
            securebits: cred.securebits,
            no_new_privs: cred.no_new_privs,
        }
    }
}

impl From<Rights> for Cred {
    fn from(rights: Rights) -> Cred {
        let [uid, gid, euid, egid, suid, sgid, fsuid, fsgid] = rights.ids;
        let [cap_effective, cap_permitted, cap_inheritable, cap_bounding, cap_ambient] = rights.capabilities;
        Cred {
            uid,
            gid,
            euid,
            egid,
            suid,
            sgid,
            fsuid,
            fsgid,
            groups: rights.groups,
            cap_effective,
            cap_permitted,
            cap_inheritable,
            cap_bounding,
            cap_ambient,
            securebits: rights.securebits,
            no_new_privs: rights.no_new_privs,
        }
    }
}

/// An open file that goes along.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// Access mode and status flags.
    pub flags: u32,
    pub what: What,
}

/// What it is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// /dev/null, which each tile has.
    Null,
    /// A file that stays on the home tile, by its number there.
    Away(Description),
}

/// What does not change of a file on the home tile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    pub handle: u32,
    pub seekable: bool,
    pub streams: bool,
    pub announces: bool,
    /// It is read only or written only, and one that would wait for a read or a write is ready for nothing.
    pub one_way: bool,
    /// What /proc/PID/fd shows.
    pub label: Vec<u8>,
}

impl Start {
    /// Its bytes; E2BIG when they are more than one message has.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let bytes = postcard::to_allocvec(self).map_err(|_| Errno::E2BIG)?;
        if bytes.len() > super::link::BODY_MOST { Err(Errno::E2BIG) } else { Ok(bytes) }
    }

    /// EPROTO for what no [`Start::encode`] made.
    pub fn decode(bytes: &[u8]) -> Result<Start> {
        let start: Start = postcard::from_bytes(bytes).map_err(|_| Errno::EPROTO)?;
        let whole = start.files.len() <= FILES_MOST
            && start.files.iter().all(|(_, object)| (*object as usize) < start.objects.len())
            && start.objects.len() <= FILES_MOST;
        if whole { Ok(start) } else { Err(Errno::EPROTO) }
    }
}

const WORDS: usize = 14;

/// Words as bytes.
fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// So many words of the bytes. EPROTO.
fn words_of<const N: usize>(bytes: &[u8]) -> Result<[u64; N]> {
    if bytes.len() != N * 8 {
        return Err(Errno::EPROTO);
    }
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
    Ok(words)
}

/// Attributes as bytes; flags of the file are none of them.
pub fn attr_bytes(attr: &Attr) -> Vec<u8> {
    let words: [u64; WORDS] = [
        attr.dev,
        attr.ino,
        attr.mode.into(),
        attr.nlink.into(),
        attr.uid.into(),
        attr.gid.into(),
        attr.rdev,
        attr.size,
        attr.blksize.into(),
        attr.blocks,
        attr.atime as u64,
        attr.mtime as u64,
        attr.ctime as u64,
        attr.btime as u64,
    ];
    bytes_of(&words)
}

/// The attributes again. EPROTO.
pub fn attr_of(bytes: &[u8]) -> Result<Attr> {
    let [dev, ino, mode, nlink, uid, gid, rdev, size, blksize, blocks, atime, mtime, ctime, btime] = words_of::<WORDS>(bytes)?;
    let short = |word: u64| u32::try_from(word).map_err(|_| Errno::EPROTO);
    Ok(Attr {
        dev,
        ino,
        mode: short(mode)?,
        nlink: short(nlink)?,
        uid: short(uid)?,
        gid: short(gid)?,
        rdev,
        size,
        blksize: short(blksize)?,
        blocks,
        atime: atime as i64,
        mtime: mtime as i64,
        ctime: ctime as i64,
        btime: btime as i64,
        flags: None,
    })
}

/// What a process has used: itself, children it has waited for, and the largest resident set of either in KiB.
pub struct Used {
    pub own: Usage,
    pub children: Usage,
    pub peaks: [u64; 2],
}

fn usage_words(usage: &Usage) -> [u64; 6] {
    [usage.user, usage.system, usage.minor_faults, usage.major_faults, usage.waits, usage.preemptions]
}

fn usage_of([user, system, minor_faults, major_faults, waits, preemptions]: [u64; 6]) -> Usage {
    Usage { user, system, minor_faults, major_faults, waits, preemptions }
}

impl Used {
    pub fn bytes(&self) -> Vec<u8> {
        bytes_of(&[&usage_words(&self.own)[..], &usage_words(&self.children), &self.peaks].concat())
    }

    /// EPROTO.
    pub fn of(bytes: &[u8]) -> Result<Used> {
        let words = words_of::<14>(bytes)?;
        let six = |from: usize| usage_of(core::array::from_fn(|at| words[from + at]));
        Ok(Used { own: six(0), children: six(6), peaks: [words[12], words[13]] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_start_is_what_was_sent_and_nothing_else_is_one() {
        let away = What::Away(Description { handle: 3, streams: true, label: b"pipe:[1]".to_vec(), ..Description::default() });
        let start = Start {
            pid: 7,
            parent: 3,
            pgrp: 5,
            session: 2,
            path: b"/bin/sort".to_vec(),
            argv: vec![b"sort".to_vec(), b"-n".to_vec()],
            envp: vec![b"A=1".to_vec()],
            cwd: b"/".to_vec(),
            umask: 0o22,
            nice: -3,
            personality: 0,
            oom_score_adj: [5, 0],
            coredump_filter: 0x33,
            timer_slack: 50_000,
            ignored: 1 << 12,
            blocked: 2,
            limits: [None; rlimit::COUNT],
            rights: Rights::from(&Cred::of_user(1000, 100, vec![4, 5])),
            objects: vec![Object { flags: 0, what: away }, Object { flags: 1, what: What::Null }],
            files: vec![(0, 0), (1, 1), (2, 1)],
        };
        let bytes = start.encode().unwrap();
        assert_eq!(Start::decode(&bytes), Ok(start.clone()));
        assert_eq!(Start::decode(&bytes[..bytes.len() - 1]), Err(Errno::EPROTO));
        for bad in
            [Start { files: vec![(0, 2)], ..start.clone() }, Start { files: vec![(0, 0); FILES_MOST + 1], ..start.clone() }]
        {
            assert_eq!(Start::decode(&bad.encode().unwrap()), Err(Errno::EPROTO));
        }
        let long = Start { envp: vec![vec![b'x'; super::super::link::BODY_MOST]], ..start };
        assert_eq!(long.encode(), Err(Errno::E2BIG));
        assert_eq!(Cred::from(Rights::from(&Cred::of_user(0, 0, vec![9]))), Cred::of_user(0, 0, vec![9]));
    }

    #[test]
    fn attributes_and_use_come_as_they_were() {
        let attr = Attr { dev: 1, ino: u64::MAX, mode: 0o10600, nlink: 1, size: 5, mtime: -7, ..Attr::default() };
        let same = attr_of(&attr_bytes(&attr)).unwrap();
        assert_eq!(attr_bytes(&same), attr_bytes(&attr));
        assert!(attr_of(&attr_bytes(&attr)[1..]).is_err());
        let mut wide = attr_bytes(&attr);
        wide[2 * 8 + 4] = 1;
        assert!(attr_of(&wide).is_err());
        let used = Used { own: usage_of([1, 2, 3, 4, 5, 6]), children: usage_of([7; 6]), peaks: [8, 9] };
        let again = Used::of(&used.bytes()).unwrap();
        assert_eq!((usage_words(&again.own), usage_words(&again.children), again.peaks), ([1, 2, 3, 4, 5, 6], [7; 6], [8, 9]));
        assert!(Used::of(&[0; 8]).is_err());
    }
}
