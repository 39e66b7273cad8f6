//! System V IPC: the structures of IPC_64.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::stat::{halves, whole};
use super::structs;
use crate::linux::Result;
use crate::linux::ipc::{IpcPerm, MsqidDs, SemidDs, ShmInfo, ShmInfo64, ShmidDs};
use crate::linux::layout::Layout;

structs! {
    /// `struct compat_ipc64_perm`
    IpcPerm32 (36) {
        key: i32,
        uid: u32,
        gid: u32,
        cuid: u32,
        cgid: u32,
        mode: u32,
        seq: u16,
        pad2: u16,
        unused: [u32; 2],
    }
    /// `struct compat_shmid64_ds`; times are low and high words.
    ShmidDs32 (84) {
        perm: IpcPerm32,
        segsz: u32,
        atime: [u32; 2],
        dtime: [u32; 2],
        ctime: [u32; 2],
        cpid: i32,
        lpid: i32,
        nattch: u32,
        unused: [u32; 2],
    }
    /// `struct compat_semid64_ds`
    SemidDs32 (64) {
        perm: IpcPerm32,
        otime: [u32; 2],
        ctime: [u32; 2],
        nsems: u32,
        unused: [u32; 2],
    }
    /// `struct compat_msqid64_ds`
    MsqidDs32 (88) {
        perm: IpcPerm32,
        stime: [u32; 2],
        rtime: [u32; 2],
        ctime: [u32; 2],
        cbytes: u32,
        qnum: u32,
        qbytes: u32,
        lspid: i32,
        lrpid: i32,
        unused: [u32; 2],
    }
    /// `struct compat_shminfo64`
    ShmInfo6432 (36) { limits: [u32; 5], unused: [u32; 4], }
    /// `struct compat_shm_info`
    ShmInfo32 (24) { used_ids: i32, counts: [u32; 5], }
}

fn capped(value: u64) -> u32 {
    value.min(0x7fff_ffff) as u32
}

impl Layout<IpcPerm> for IpcPerm32 {
    fn load(self) -> IpcPerm {
        IpcPerm {
            key: self.key,
            uid: self.uid,
            gid: self.gid,
            cuid: self.cuid,
            cgid: self.cgid,
            mode: self.mode & 0xffff,
            seq: self.seq,
            ..IpcPerm::default()
        }
    }
    fn store(value: &IpcPerm) -> Result<Self> {
        Ok(IpcPerm32 {
            key: value.key,
            uid: value.uid,
            gid: value.gid,
            cuid: value.cuid,
            cgid: value.cgid,
            mode: value.mode,
            seq: value.seq,
            pad2: 0,
            unused: [0; 2],
        })
    }
}

impl Layout<ShmidDs> for ShmidDs32 {
    fn load(self) -> ShmidDs {
        ShmidDs {
            perm: self.perm.load(),
            segsz: self.segsz.into(),
            atime: whole(self.atime) as i64,
            dtime: whole(self.dtime) as i64,
            ctime: whole(self.ctime) as i64,
            cpid: self.cpid,
            lpid: self.lpid,
            nattch: self.nattch.into(),
            ..ShmidDs::default()
        }
    }
    fn store(value: &ShmidDs) -> Result<Self> {
        Ok(ShmidDs32 {
            perm: Layout::store(&value.perm)?,
            segsz: u32::try_from(value.segsz).unwrap_or(u32::MAX),
            atime: halves(value.atime as u64),
            dtime: halves(value.dtime as u64),
            ctime: halves(value.ctime as u64),
            cpid: value.cpid,
            lpid: value.lpid,
            nattch: value.nattch as u32,
            unused: [0; 2],
        })
    }
}

impl Layout<SemidDs> for SemidDs32 {
    fn load(self) -> SemidDs {
        SemidDs {
            perm: self.perm.load(),
            otime: whole(self.otime) as i64,
            ctime: whole(self.ctime) as i64,
            nsems: self.nsems.into(),
            ..SemidDs::default()
        }
    }
    fn store(value: &SemidDs) -> Result<Self> {
        Ok(SemidDs32 {
            perm: Layout::store(&value.perm)?,
            otime: halves(value.otime as u64),
            ctime: halves(value.ctime as u64),
            nsems: value.nsems as u32,
            unused: [0; 2],
        })
    }
}

impl Layout<MsqidDs> for MsqidDs32 {
    fn load(self) -> MsqidDs {
        MsqidDs {
            perm: self.perm.load(),
            stime: whole(self.stime) as i64,
            rtime: whole(self.rtime) as i64,
            ctime: whole(self.ctime) as i64,
            cbytes: self.cbytes.into(),
            qnum: self.qnum.into(),
            qbytes: self.qbytes.into(),
            lspid: self.lspid,
            lrpid: self.lrpid,
            ..MsqidDs::default()
        }
    }
    fn store(value: &MsqidDs) -> Result<Self> {
        Ok(MsqidDs32 {
            perm: Layout::store(&value.perm)?,
            stime: halves(value.stime as u64),
            rtime: halves(value.rtime as u64),
            ctime: halves(value.ctime as u64),
            cbytes: value.cbytes as u32,
            qnum: value.qnum as u32,
            qbytes: value.qbytes as u32,
            lspid: value.lspid,
            lrpid: value.lrpid,
            unused: [0; 2],
        })
    }
}

impl Layout<ShmInfo64> for ShmInfo6432 {
    fn load(self) -> ShmInfo64 {
        let [shmmax, shmmin, shmmni, shmseg, shmall] = self.limits.map(u64::from);
        ShmInfo64 { shmmax, shmmin, shmmni, shmseg, shmall, unused: [0; 4] }
    }
    fn store(value: &ShmInfo64) -> Result<Self> {
        let limits = [value.shmmax, value.shmmin, value.shmmni, value.shmseg, value.shmall];
        Ok(ShmInfo6432 { limits: limits.map(capped), unused: [0; 4] })
    }
}

impl Layout<ShmInfo> for ShmInfo32 {
    fn load(self) -> ShmInfo {
        let [shm_tot, shm_rss, shm_swp, swap_attempts, swap_successes] = self.counts.map(u64::from);
        ShmInfo { used_ids: self.used_ids, pad: 0, shm_tot, shm_rss, shm_swp, swap_attempts, swap_successes }
    }
    fn store(value: &ShmInfo) -> Result<Self> {
        let counts = [value.shm_tot, value.shm_rss, value.shm_swp, value.swap_attempts, value.swap_successes];
        Ok(ShmInfo32 { used_ids: value.used_ids, counts: counts.map(|count| count as u32) })
    }
}
