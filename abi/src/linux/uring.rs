//! io_uring(7): rings of submissions and completions (linux/io_uring.h as of 6.18).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct io_uring_sqe`: one submission. Names are those of what most operations have there.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Sqe {
    pub opcode: u8,
    /// [`sqe`].
    pub flags: u8,
    pub ioprio: u16,
    pub fd: i32,
    /// An offset, a second address, or what the operation defines.
    pub off: u64,
    pub addr: u64,
    pub len: u32,
    /// The operation's own flags.
    pub op_flags: u32,
    pub user_data: u64,
    /// A registered buffer, or the group one is to be taken from.
    pub buf_index: u16,
    /// A registered identity, 0 for none.
    pub personality: u16,
    /// A slot of the registered files, or splice(2)'s input.
    pub file_index: u32,
    pub addr3: u64,
    pub pad: u64,
}

/// `struct io_uring_cqe`: one completion.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Cqe {
    pub user_data: u64,
    pub result: i32,
    /// [`cqe`].
    pub flags: u32,
}

/// `struct io_sqring_offsets`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct SqOffsets {
    pub head: u32,
    pub tail: u32,
    pub ring_mask: u32,
    pub ring_entries: u32,
    pub flags: u32,
    pub dropped: u32,
    pub array: u32,
    pub reserved: u32,
    pub user_addr: u64,
}

/// `struct io_cqring_offsets`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct CqOffsets {
    pub head: u32,
    pub tail: u32,
    pub ring_mask: u32,
    pub ring_entries: u32,
    pub overflow: u32,
    pub cqes: u32,
    pub flags: u32,
    pub reserved: u32,
    pub user_addr: u64,
}

/// `struct io_uring_params`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Params {
    pub sq_entries: u32,
    pub cq_entries: u32,
    /// [`setup`].
    pub flags: u32,
    pub sq_thread_cpu: u32,
    /// Milliseconds.
    pub sq_thread_idle: u32,
    /// [`feat`].
    pub features: u32,
    pub wq_fd: u32,
    pub reserved: [u32; 3],
    pub sq_off: SqOffsets,
    pub cq_off: CqOffsets,
}

/// `struct io_uring_getevents_arg`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct GetEvents {
    pub mask: u64,
    pub mask_size: u32,
    /// How long to wait for as many as were asked for; after that one is enough. Microseconds.
    pub min_wait: u32,
    pub timeout: u64,
}

/// `struct io_uring_rsrc_register`, and `struct io_uring_rsrc_update2` with `reserved` as the offset.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct RsrcRegister {
    pub count: u32,
    pub flags: u32,
    pub reserved: u64,
    pub data: u64,
    pub tags: u64,
}

/// `struct io_uring_rsrc_update2`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct RsrcUpdate {
    pub offset: u32,
    pub reserved: u32,
    pub data: u64,
    pub tags: u64,
    pub count: u32,
    pub reserved2: u32,
}

/// `struct io_uring_files_update` (also `struct io_uring_rsrc_update`): of registered ring descriptors `data` is the descriptor.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct FilesUpdate {
    pub offset: u32,
    pub reserved: u32,
    pub data: u64,
}

/// `struct io_uring_probe_op`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ProbeOp {
    pub op: u8,
    pub reserved: u8,
    /// [`PROBE_SUPPORTED`].
    pub flags: u16,
    pub reserved2: u32,
}

/// The head of `struct io_uring_probe`, before its [`ProbeOp`]s.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Probe {
    pub last_op: u8,
    pub ops_len: u8,
    pub reserved: u16,
    pub reserved2: [u32; 3],
}

pub const PROBE_SUPPORTED: u16 = 1;

/// `struct io_uring_restriction`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Restriction {
    pub opcode: u16,
    /// A register opcode, an operation, or flags of a submission.
    pub value: u8,
    pub reserved: u8,
    pub reserved2: [u32; 3],
}

/// Kinds of [`Restriction`].
pub mod restriction {
    pub const REGISTER_OP: u16 = 0;
    pub const SQE_OP: u16 = 1;
    pub const SQE_FLAGS_ALLOWED: u16 = 2;
    pub const SQE_FLAGS_REQUIRED: u16 = 3;
}

/// `struct io_uring_buf`: a buffer in a ring of buffers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Buf {
    pub addr: u64,
    pub len: u32,
    pub id: u16,
    /// In the first of a ring: the tail.
    pub reserved: u16,
}

/// `struct io_uring_buf_reg`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct BufRegister {
    pub addr: u64,
    pub entries: u32,
    pub group: u16,
    pub flags: u16,
    pub reserved: [u64; 3],
}

/// `struct io_uring_buf_status`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct BufStatus {
    pub group: u32,
    pub head: u32,
    pub reserved: [u32; 8],
}

/// `struct io_uring_sync_cancel_reg`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct SyncCancel {
    pub addr: u64,
    pub fd: i32,
    pub flags: u32,
    pub timeout: [i64; 2],
    pub opcode: u8,
    pub pad: [u8; 7],
    pub pad2: [u64; 3],
}

/// `struct io_uring_file_index_range`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct FileRange {
    pub offset: u32,
    pub len: u32,
    pub reserved: u64,
}

/// `struct io_uring_recvmsg_out`: what a multishot receive puts before name, control messages and payload.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct RecvMsgOut {
    pub name_len: u32,
    pub control_len: u32,
    pub payload_len: u32,
    pub flags: u32,
}

const _: () = assert!(size_of::<Sqe>() == 64 && size_of::<Cqe>() == 16 && size_of::<Params>() == 120);
const _: () = assert!(size_of::<GetEvents>() == 24 && size_of::<RsrcRegister>() == 32 && size_of::<RsrcUpdate>() == 32);
const _: () = assert!(size_of::<BufRegister>() == 40 && size_of::<SyncCancel>() == 64 && size_of::<Restriction>() == 16);

/// Most entries of a submission ring, and of a completion ring.
pub const MOST_ENTRIES: u32 = 32768;
pub const MOST_COMPLETIONS: u32 = 2 * MOST_ENTRIES;

/// What is mapped at which offset of a ring's descriptor.
pub mod mmap {
    pub const SQ_RING: u64 = 0;
    pub const CQ_RING: u64 = 0x800_0000;
    pub const SQES: u64 = 0x1000_0000;
}

/// Flags of io_uring_setup(2).
pub mod setup {
    pub const IOPOLL: u32 = 1;
    pub const SQPOLL: u32 = 1 << 1;
    pub const SQ_AFF: u32 = 1 << 2;
    pub const CQSIZE: u32 = 1 << 3;
    pub const CLAMP: u32 = 1 << 4;
    pub const ATTACH_WQ: u32 = 1 << 5;
    pub const R_DISABLED: u32 = 1 << 6;
    pub const SUBMIT_ALL: u32 = 1 << 7;
    pub const COOP_TASKRUN: u32 = 1 << 8;
    pub const TASKRUN_FLAG: u32 = 1 << 9;
    pub const SQE128: u32 = 1 << 10;
    pub const CQE32: u32 = 1 << 11;
    pub const SINGLE_ISSUER: u32 = 1 << 12;
    pub const DEFER_TASKRUN: u32 = 1 << 13;
    pub const NO_SQARRAY: u32 = 1 << 16;
}

/// The features that io_uring_setup(2) reports.
pub mod feat {
    pub const SINGLE_MMAP: u32 = 1;
    pub const NODROP: u32 = 1 << 1;
    pub const RW_CUR_POS: u32 = 1 << 3;
    pub const CUR_PERSONALITY: u32 = 1 << 4;
    pub const FAST_POLL: u32 = 1 << 5;
    pub const POLL_32BITS: u32 = 1 << 6;
    pub const SQPOLL_NONFIXED: u32 = 1 << 7;
    pub const EXT_ARG: u32 = 1 << 8;
    pub const NATIVE_WORKERS: u32 = 1 << 9;
    pub const RSRC_TAGS: u32 = 1 << 10;
    pub const CQE_SKIP: u32 = 1 << 11;
    pub const LINKED_FILE: u32 = 1 << 12;
    pub const REG_REG_RING: u32 = 1 << 13;
    pub const MIN_TIMEOUT: u32 = 1 << 15;
}

/// Flags of io_uring_enter(2).
pub mod enter {
    pub const GETEVENTS: u32 = 1;
    pub const SQ_WAKEUP: u32 = 1 << 1;
    pub const SQ_WAIT: u32 = 1 << 2;
    pub const EXT_ARG: u32 = 1 << 3;
    pub const REGISTERED_RING: u32 = 1 << 4;
    pub const ABS_TIMER: u32 = 1 << 5;
}

/// Flags of a submission.
pub mod sqe {
    pub const FIXED_FILE: u8 = 1;
    pub const IO_DRAIN: u8 = 1 << 1;
    pub const IO_LINK: u8 = 1 << 2;
    pub const IO_HARDLINK: u8 = 1 << 3;
    pub const ASYNC: u8 = 1 << 4;
    pub const BUFFER_SELECT: u8 = 1 << 5;
    pub const CQE_SKIP_SUCCESS: u8 = 1 << 6;
    pub const ALL: u8 = 0x7f;
}

/// Flags of a completion.
pub mod cqe {
    pub const BUFFER: u32 = 1;
    pub const MORE: u32 = 1 << 1;
    pub const SOCK_NONEMPTY: u32 = 1 << 2;
    /// The memory of a transfer without a copy is the program's again.
    pub const NOTIF: u32 = 1 << 3;
    /// Where the number of the buffer is.
    pub const BUFFER_SHIFT: u32 = 16;
}

/// Flags in the submission ring, for the program.
pub mod sq_ring {
    pub const NEED_WAKEUP: u32 = 1;
    pub const CQ_OVERFLOW: u32 = 1 << 1;
    pub const TASKRUN: u32 = 1 << 2;
}

/// Flags in the completion ring, by the program.
pub mod cq_ring {
    pub const EVENTFD_DISABLED: u32 = 1;
}

/// Operations.
pub mod op {
    pub const NOP: u8 = 0;
    pub const READV: u8 = 1;
    pub const WRITEV: u8 = 2;
    pub const FSYNC: u8 = 3;
    pub const READ_FIXED: u8 = 4;
    pub const WRITE_FIXED: u8 = 5;
    pub const POLL_ADD: u8 = 6;
    pub const POLL_REMOVE: u8 = 7;
    pub const SYNC_FILE_RANGE: u8 = 8;
    pub const SENDMSG: u8 = 9;
    pub const RECVMSG: u8 = 10;
    pub const TIMEOUT: u8 = 11;
    pub const TIMEOUT_REMOVE: u8 = 12;
    pub const ACCEPT: u8 = 13;
    pub const ASYNC_CANCEL: u8 = 14;
    pub const LINK_TIMEOUT: u8 = 15;
    pub const CONNECT: u8 = 16;
    pub const FALLOCATE: u8 = 17;
    pub const OPENAT: u8 = 18;
    pub const CLOSE: u8 = 19;
    pub const FILES_UPDATE: u8 = 20;
    pub const STATX: u8 = 21;
    pub const READ: u8 = 22;
    pub const WRITE: u8 = 23;
    pub const FADVISE: u8 = 24;
    pub const MADVISE: u8 = 25;
    pub const SEND: u8 = 26;
    pub const RECV: u8 = 27;
    pub const OPENAT2: u8 = 28;
    pub const EPOLL_CTL: u8 = 29;
    pub const SPLICE: u8 = 30;
    pub const PROVIDE_BUFFERS: u8 = 31;
    pub const REMOVE_BUFFERS: u8 = 32;
    pub const TEE: u8 = 33;
    pub const SHUTDOWN: u8 = 34;
    pub const RENAMEAT: u8 = 35;
    pub const UNLINKAT: u8 = 36;
    pub const MKDIRAT: u8 = 37;
    pub const SYMLINKAT: u8 = 38;
    pub const LINKAT: u8 = 39;
    pub const MSG_RING: u8 = 40;
    pub const FSETXATTR: u8 = 41;
    pub const SETXATTR: u8 = 42;
    pub const FGETXATTR: u8 = 43;
    pub const GETXATTR: u8 = 44;
    pub const SOCKET: u8 = 45;
    pub const URING_CMD: u8 = 46;
    pub const SEND_ZC: u8 = 47;
    pub const SENDMSG_ZC: u8 = 48;
    pub const READ_MULTISHOT: u8 = 49;
    pub const WAITID: u8 = 50;
    pub const FUTEX_WAIT: u8 = 51;
    pub const FUTEX_WAKE: u8 = 52;
    pub const FUTEX_WAITV: u8 = 53;
    pub const FIXED_FD_INSTALL: u8 = 54;
    pub const FTRUNCATE: u8 = 55;
    pub const BIND: u8 = 56;
    pub const LISTEN: u8 = 57;
    /// Behind the last that this kernel has.
    pub const END: u8 = 58;
}

/// In the result of a notification: the bytes were copied.
pub const NOTIF_USAGE_ZC_COPIED: u32 = 1 << 31;

/// Flags of single operations.
pub mod flag {
    pub const FSYNC_DATASYNC: u32 = 1;
    pub const TIMEOUT_ABS: u32 = 1;
    pub const TIMEOUT_UPDATE: u32 = 1 << 1;
    pub const TIMEOUT_BOOTTIME: u32 = 1 << 2;
    pub const TIMEOUT_REALTIME: u32 = 1 << 3;
    pub const LINK_TIMEOUT_UPDATE: u32 = 1 << 4;
    pub const TIMEOUT_ETIME_SUCCESS: u32 = 1 << 5;
    pub const TIMEOUT_MULTISHOT: u32 = 1 << 6;
    pub const POLL_ADD_MULTI: u32 = 1;
    pub const POLL_UPDATE_EVENTS: u32 = 1 << 1;
    pub const POLL_UPDATE_USER_DATA: u32 = 1 << 2;
    pub const POLL_ADD_LEVEL: u32 = 1 << 3;
    pub const CANCEL_ALL: u32 = 1;
    pub const CANCEL_FD: u32 = 1 << 1;
    pub const CANCEL_ANY: u32 = 1 << 2;
    pub const CANCEL_FD_FIXED: u32 = 1 << 3;
    pub const CANCEL_USERDATA: u32 = 1 << 4;
    pub const CANCEL_OP: u32 = 1 << 5;
    pub const RECVSEND_POLL_FIRST: u16 = 1;
    pub const RECV_MULTISHOT: u16 = 1 << 1;
    pub const RECVSEND_FIXED_BUF: u16 = 1 << 2;
    pub const SEND_ZC_REPORT_USAGE: u16 = 1 << 3;
    pub const ACCEPT_MULTISHOT: u16 = 1;
    pub const ACCEPT_DONTWAIT: u16 = 1 << 1;
    pub const ACCEPT_POLL_FIRST: u16 = 1 << 2;
    pub const MSG_DATA: u64 = 0;
    pub const MSG_SEND_FD: u64 = 1;
    /// Flags of IORING_OP_URING_CMD: a registered buffer, and several completions.
    pub const URING_CMD_FLAGS: u32 = 3;
    /// Its commands of sockets (SOCKET_URING_OP_*).
    pub const SOCKET_SIOCINQ: u32 = 0;
    pub const SOCKET_SIOCOUTQ: u32 = 1;
    pub const SOCKET_GETSOCKOPT: u32 = 2;
    pub const SOCKET_SETSOCKOPT: u32 = 3;
    pub const MSG_CQE_SKIP: u32 = 1;
    pub const MSG_FLAGS_PASS: u32 = 1 << 1;
    pub const SPLICE_FD_IN_FIXED: u32 = 1 << 31;
    pub const NOP_INJECT_RESULT: u32 = 1;
    pub const INSTALL_NO_CLOEXEC: u32 = 1;
    /// A slot of the registered files, whichever is free.
    pub const FILE_INDEX_ALLOC: u32 = u32::MAX;
    /// Of a list of descriptors: this slot stays as it is.
    pub const FILES_SKIP: i32 = -2;
    /// Registered files that are none yet.
    pub const RSRC_SPARSE: u32 = 1;
}

/// Opcodes of io_uring_register(2).
pub mod register {
    pub const BUFFERS: u32 = 0;
    pub const UNREGISTER_BUFFERS: u32 = 1;
    pub const FILES: u32 = 2;
    pub const UNREGISTER_FILES: u32 = 3;
    pub const EVENTFD: u32 = 4;
    pub const UNREGISTER_EVENTFD: u32 = 5;
    pub const FILES_UPDATE: u32 = 6;
    pub const EVENTFD_ASYNC: u32 = 7;
    pub const PROBE: u32 = 8;
    pub const PERSONALITY: u32 = 9;
    pub const UNREGISTER_PERSONALITY: u32 = 10;
    pub const RESTRICTIONS: u32 = 11;
    pub const ENABLE_RINGS: u32 = 12;
    pub const FILES2: u32 = 13;
    pub const FILES_UPDATE2: u32 = 14;
    pub const BUFFERS2: u32 = 15;
    pub const BUFFERS_UPDATE: u32 = 16;
    pub const IOWQ_AFF: u32 = 17;
    pub const UNREGISTER_IOWQ_AFF: u32 = 18;
    pub const IOWQ_MAX_WORKERS: u32 = 19;
    pub const RING_FDS: u32 = 20;
    pub const UNREGISTER_RING_FDS: u32 = 21;
    pub const PBUF_RING: u32 = 22;
    pub const UNREGISTER_PBUF_RING: u32 = 23;
    pub const SYNC_CANCEL: u32 = 24;
    pub const FILE_ALLOC_RANGE: u32 = 25;
    pub const PBUF_STATUS: u32 = 26;
    /// The descriptor is an index of [`RING_FDS`].
    pub const USE_REGISTERED_RING: u32 = 1 << 31;
}
