//! Structures of processes: getrusage(2), getrlimit(2), sysinfo(2), set_thread_area(2); and words.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::structs;
use super::time::TimeVal32;
use crate::linux::Result;
use crate::linux::futex::RobustListHead;
use crate::linux::layout::Layout;
use crate::linux::process::{Rlimit, Rusage, SysInfo, TimeVal, rlimit};

structs! {
    /// `struct user_desc`
    UserDesc (16) {
        entry: u32,
        base: u32,
        limit: u32,
        /// Bits of [`user_desc`].
        flags: u32,
    }
    /// `struct compat_rusage`
    Rusage32 (72) {
        utime: TimeVal32,
        stime: TimeVal32,
        /// From `ru_maxrss` to `ru_nivcsw`.
        counts: [i32; 14],
    }
    /// `struct compat_rlimit`
    Rlimit32 (8) { soft: u32, hard: u32, }
    /// The same as the oldest call gives it: what has no limit, or a higher one, shows as 0x7fffffff.
    OldRlimit32 (8) { soft: u32, hard: u32, }
    /// `struct compat_sysinfo`
    SysInfo32 (64) {
        uptime: i32,
        loads: [u32; 3],
        /// Total, free, shared, buffers, total and free swap.
        memory: [u32; 6],
        procs: u16,
        pad: u16,
        high: [u32; 2],
        mem_unit: u32,
        tail: [u8; 8],
    }
    /// `struct compat_robust_list_head`
    RobustListHead32 (12) { next: u32, futex_offset: i32, pending: u32, }
}

/// The first entry of the descriptor table that a thread has for itself (GDT_ENTRY_TLS_MIN of a 64-bit kernel).
pub const FIRST_THREAD_AREA: u32 = 12;

/// [`UserDesc::flags`]
pub mod user_desc {
    pub const SEG_32BIT: u32 = 1;
    pub const CONTENTS: u32 = 6;
    pub const READ_EXEC_ONLY: u32 = 8;
    pub const LIMIT_IN_PAGES: u32 = 16;
    pub const SEG_NOT_PRESENT: u32 = 32;
    pub const USEABLE: u32 = 64;
    /// What an empty descriptor has set.
    pub const EMPTY: u32 = READ_EXEC_ONLY | SEG_NOT_PRESENT;
    /// The bits that count.
    pub const KNOWN: u32 = 127;
}

impl UserDesc {
    /// Whether this takes an entry away rather than setting it.
    pub fn is_empty(&self) -> bool {
        let flags = self.flags & user_desc::KNOWN;
        self.base == 0 && self.limit == 0 && (flags == user_desc::EMPTY || flags == 0)
    }

    /// Whether this is a data segment as thread areas may have them: 32-bit, present.
    pub fn is_data(&self) -> bool {
        let refused = user_desc::SEG_NOT_PRESENT | 4;
        self.flags & user_desc::SEG_32BIT != 0 && self.flags & refused == 0
    }
}

/// A pointer or a size.
impl Layout<usize> for u32 {
    fn load(self) -> usize {
        self as usize
    }
    fn store(value: &usize) -> Result<Self> {
        Ok(*value as u32)
    }
}

impl Layout<u64> for u32 {
    fn load(self) -> u64 {
        self.into()
    }
    fn store(value: &u64) -> Result<Self> {
        Ok(*value as u32)
    }
}

/// `struct compat_iovec`.
impl Layout<[usize; 2]> for [u32; 2] {
    fn load(self) -> [usize; 2] {
        self.map(|word| word as usize)
    }
    fn store(value: &[usize; 2]) -> Result<Self> {
        Ok(value.map(|word| word as u32))
    }
}

impl Layout<Rusage> for Rusage32 {
    fn load(self) -> Rusage {
        let c = self.counts.map(i64::from);
        Rusage {
            utime: self.utime.load(),
            stime: self.stime.load(),
            maxrss: c[0],
            ixrss: c[1],
            idrss: c[2],
            isrss: c[3],
            minflt: c[4],
            majflt: c[5],
            nswap: c[6],
            inblock: c[7],
            oublock: c[8],
            msgsnd: c[9],
            msgrcv: c[10],
            nsignals: c[11],
            nvcsw: c[12],
            nivcsw: c[13],
        }
    }
    fn store(value: &Rusage) -> Result<Self> {
        let counts = [
            value.maxrss,
            value.ixrss,
            value.idrss,
            value.isrss,
            value.minflt,
            value.majflt,
            value.nswap,
            value.inblock,
            value.oublock,
            value.msgsnd,
            value.msgrcv,
            value.nsignals,
            value.nvcsw,
            value.nivcsw,
        ];
        Ok(Rusage32 {
            utime: Layout::<TimeVal>::store(&value.utime)?,
            stime: Layout::<TimeVal>::store(&value.stime)?,
            counts: counts.map(|count| count as i32),
        })
    }
}

impl Layout<Rlimit> for Rlimit32 {
    fn load(self) -> Rlimit {
        let wide = |limit: u32| if limit == u32::MAX { rlimit::INFINITY } else { limit.into() };
        Rlimit { soft: wide(self.soft), hard: wide(self.hard) }
    }
    fn store(value: &Rlimit) -> Result<Self> {
        let cut = |limit: u64| u32::try_from(limit).unwrap_or(u32::MAX);
        Ok(Rlimit32 { soft: cut(value.soft), hard: cut(value.hard) })
    }
}

impl Layout<Rlimit> for OldRlimit32 {
    fn load(self) -> Rlimit {
        Rlimit { soft: self.soft.into(), hard: self.hard.into() }
    }
    fn store(value: &Rlimit) -> Result<Self> {
        let cut = |limit: u64| limit.min(0x7fff_ffff) as u32;
        Ok(OldRlimit32 { soft: cut(value.soft), hard: cut(value.hard) })
    }
}

impl Layout<SysInfo> for SysInfo32 {
    fn load(self) -> SysInfo {
        let [totalram, freeram, sharedram, bufferram, totalswap, freeswap] = self.memory.map(u64::from);
        SysInfo {
            uptime: self.uptime.into(),
            loads: self.loads.map(u64::from),
            totalram,
            freeram,
            sharedram,
            bufferram,
            totalswap,
            freeswap,
            procs: self.procs,
            totalhigh: self.high[0].into(),
            freehigh: self.high[1].into(),
            mem_unit: self.mem_unit,
            ..SysInfo::default()
        }
    }
    fn store(value: &SysInfo) -> Result<Self> {
        let memory = [
            value.totalram,
            value.freeram,
            value.sharedram,
            value.bufferram,
            value.totalswap,
            value.freeswap,
            value.totalhigh,
            value.freehigh,
        ];
        // Counted in pages when bytes do not fit.
        let large = memory[0] >> 32 != 0 || memory[4] >> 32 != 0;
        let shift = if large && value.mem_unit < 4096 { (4096 / value.mem_unit.max(1)).trailing_zeros() } else { 0 };
        let [a, b, c, d, e, f, g, h] = memory.map(|bytes| (bytes >> shift) as u32);
        Ok(SysInfo32 {
            uptime: value.uptime as i32,
            loads: value.loads.map(|load| load as u32),
            memory: [a, b, c, d, e, f],
            procs: value.procs,
            pad: value.pad,
            high: [g, h],
            mem_unit: value.mem_unit << shift,
            tail: [0; 8],
        })
    }
}

impl Layout<RobustListHead> for RobustListHead32 {
    fn load(self) -> RobustListHead {
        RobustListHead { next: self.next.into(), futex_offset: self.futex_offset.into(), pending: self.pending.into() }
    }
    fn store(value: &RobustListHead) -> Result<Self> {
        Ok(RobustListHead32 { next: value.next as u32, futex_offset: value.futex_offset as i32, pending: value.pending as u32 })
    }
}
