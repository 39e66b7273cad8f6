//! System V IPC: the structures of shmctl(2), semctl(2), msgctl(2) on x86-64, and their words.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub const IPC_CREAT: u32 = 0o1000;
pub const IPC_EXCL: u32 = 0o2000;
pub const IPC_NOWAIT: u32 = 0o4000;
pub const IPC_PRIVATE: i32 = 0;

pub const IPC_RMID: u32 = 0;
pub const IPC_SET: u32 = 1;
pub const IPC_STAT: u32 = 2;
pub const IPC_INFO: u32 = 3;
/// A bit of old C libraries that changes nothing on this machine.
pub const IPC_64: u32 = 0x100;

pub const SHM_RDONLY: u32 = 0o10000;
pub const SHM_RND: u32 = 0o20000;
pub const SHM_REMAP: u32 = 0o40000;
pub const SHM_EXEC: u32 = 0o100000;
/// shmget(2): huge pages.
pub const SHM_HUGETLB: u32 = 0o4000;
pub const SHM_NORESERVE: u32 = 0o10000;
/// In `mode` of [`ShmidDs`].
pub const SHM_DEST: u32 = 0o1000;
pub const SHM_LOCKED: u32 = 0o2000;
pub const SHM_LOCK: u32 = 11;
pub const SHM_UNLOCK: u32 = 12;
pub const SHM_STAT: u32 = 13;
pub const SHM_INFO: u32 = 14;
pub const SHM_STAT_ANY: u32 = 15;

pub const GETPID: u32 = 11;
pub const GETVAL: u32 = 12;
pub const GETALL: u32 = 13;
pub const GETNCNT: u32 = 14;
pub const GETZCNT: u32 = 15;
pub const SETVAL: u32 = 16;
pub const SETALL: u32 = 17;
pub const SEM_STAT: u32 = 18;
pub const SEM_INFO: u32 = 19;
pub const SEM_STAT_ANY: u32 = 20;
pub const SEM_UNDO: u16 = 0x1000;

pub const MSG_STAT: u32 = 11;
pub const MSG_INFO: u32 = 12;
pub const MSG_STAT_ANY: u32 = 13;
pub const MSG_NOERROR: u32 = 0o10000;
pub const MSG_EXCEPT: u32 = 0o20000;
pub const MSG_COPY: u32 = 0o40000;

macro_rules! structs {
    ($($(#[$meta:meta])* $name:ident ($size:literal) { $($field:ident: $t:ty,)* })*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
            #[repr(C)]
            pub struct $name { $(pub $field: $t,)* }
            const _: () = assert!(size_of::<$name>() == $size);
        )*
    };
}

structs! {
    /// `struct ipc64_perm`
    IpcPerm (48) {
        key: i32,
        uid: u32,
        gid: u32,
        cuid: u32,
        cgid: u32,
        mode: u32,
        seq: u16,
        pad2: u16,
        pad3: u32,
        unused: [u64; 2],
    }
    /// `struct shmid64_ds`; times in seconds.
    ShmidDs (112) {
        perm: IpcPerm,
        segsz: u64,
        atime: i64,
        dtime: i64,
        ctime: i64,
        cpid: i32,
        lpid: i32,
        nattch: u64,
        unused: [u64; 2],
    }
    /// `struct shminfo64`
    ShmInfo64 (72) {
        shmmax: u64,
        shmmin: u64,
        shmmni: u64,
        shmseg: u64,
        shmall: u64,
        unused: [u64; 4],
    }
    /// `struct shm_info`
    ShmInfo (48) {
        used_ids: i32,
        pad: u32,
        shm_tot: u64,
        shm_rss: u64,
        shm_swp: u64,
        swap_attempts: u64,
        swap_successes: u64,
    }
    /// `struct semid64_ds`
    SemidDs (104) {
        perm: IpcPerm,
        otime: i64,
        unused1: u64,
        ctime: i64,
        unused2: u64,
        nsems: u64,
        unused3: [u64; 2],
    }
    /// `struct seminfo`
    SemInfo (40) {
        semmap: i32,
        semmni: i32,
        semmns: i32,
        semmnu: i32,
        semmsl: i32,
        semopm: i32,
        semume: i32,
        semusz: i32,
        semvmx: i32,
        semaem: i32,
    }
    /// `struct sembuf`
    Sembuf (6) {
        num: u16,
        op: i16,
        flags: u16,
    }
    /// `struct msqid64_ds`
    MsqidDs (120) {
        perm: IpcPerm,
        stime: i64,
        rtime: i64,
        ctime: i64,
        cbytes: u64,
        qnum: u64,
        qbytes: u64,
        lspid: i32,
        lrpid: i32,
        unused: [u64; 2],
    }
    /// `struct msginfo`
    MsgInfo (32) {
        msgpool: i32,
        msgmap: i32,
        msgmax: i32,
        msgmnb: i32,
        msgmni: i32,
        msgssz: i32,
        msgtql: i32,
        msgseg: u16,
        pad: u16,
    }
}
