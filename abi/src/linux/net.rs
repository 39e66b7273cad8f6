//! Sockets: families, types, options, flags and structures (socket(7), ip(7), ipv6(7), tcp(7), unix(7), netdevice(7)).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Address families.
pub mod af {
    pub const UNSPEC: u16 = 0;
    pub const UNIX: u16 = 1;
    pub const INET: u16 = 2;
    pub const INET6: u16 = 10;
    pub const NETLINK: u16 = 16;
    pub const PACKET: u16 = 17;
}

/// Socket types and the flags that may be or-ed to them.
pub mod sock {
    pub const STREAM: u32 = 1;
    pub const DGRAM: u32 = 2;
    pub const RAW: u32 = 3;
    pub const RDM: u32 = 4;
    pub const SEQPACKET: u32 = 5;
    pub const TYPE_MASK: u32 = 0xf;
    pub const NONBLOCK: u32 = 0o4000;
    pub const CLOEXEC: u32 = 0o2000000;
}

/// Protocols.
pub mod ipproto {
    pub const IP: u32 = 0;
    pub const ICMP: u32 = 1;
    pub const TCP: u32 = 6;
    pub const UDP: u32 = 17;
    pub const IPV6: u32 = 41;
    pub const UDPLITE: u32 = 136;
    pub const RAW: u32 = 255;
}

/// Option levels.
pub mod sol {
    pub const IP: u32 = 0;
    pub const SOCKET: u32 = 1;
    pub const TCP: u32 = 6;
    pub const UDP: u32 = 17;
    pub const IPV6: u32 = 41;
    pub const UDPLITE: u32 = 136;
    pub const NETLINK: u32 = 270;
}

/// Options of datagrams whose checksum covers a part of them (udplite(7)).
pub mod udplite {
    pub const SEND_CSCOV: u32 = 10;
    pub const RECV_CSCOV: u32 = 11;
}

/// Options of level SOL_SOCKET.
pub mod so {
    pub const DEBUG: u32 = 1;
    pub const REUSEADDR: u32 = 2;
    pub const TYPE: u32 = 3;
    pub const ERROR: u32 = 4;
    pub const DONTROUTE: u32 = 5;
    pub const BROADCAST: u32 = 6;
    pub const SNDBUF: u32 = 7;
    pub const RCVBUF: u32 = 8;
    pub const KEEPALIVE: u32 = 9;
    pub const OOBINLINE: u32 = 10;
    pub const NO_CHECK: u32 = 11;
    pub const PRIORITY: u32 = 12;
    pub const LINGER: u32 = 13;
    pub const BSDCOMPAT: u32 = 14;
    pub const REUSEPORT: u32 = 15;
    pub const PASSCRED: u32 = 16;
    pub const PEERCRED: u32 = 17;
    pub const RCVLOWAT: u32 = 18;
    pub const SNDLOWAT: u32 = 19;
    pub const RCVTIMEO: u32 = 20;
    pub const SNDTIMEO: u32 = 21;
    pub const BINDTODEVICE: u32 = 25;
    /// SO_GET_FILTER to getsockopt(2).
    pub const ATTACH_FILTER: u32 = 26;
    pub const DETACH_FILTER: u32 = 27;
    pub const TIMESTAMP: u32 = 29;
    pub const ACCEPTCONN: u32 = 30;
    pub const PEERSEC: u32 = 31;
    pub const SNDBUFFORCE: u32 = 32;
    pub const RCVBUFFORCE: u32 = 33;
    pub const PASSSEC: u32 = 34;
    pub const TIMESTAMPNS: u32 = 35;
    pub const MARK: u32 = 36;
    pub const TIMESTAMPING: u32 = 37;
    pub const PROTOCOL: u32 = 38;
    pub const DOMAIN: u32 = 39;
    pub const RXQ_OVFL: u32 = 40;
    pub const PEEK_OFF: u32 = 42;
    pub const LOCK_FILTER: u32 = 44;
    pub const BUSY_POLL: u32 = 46;
    pub const MAX_PACING_RATE: u32 = 47;
    pub const BPF_EXTENSIONS: u32 = 48;
    pub const INCOMING_CPU: u32 = 49;
    pub const ATTACH_BPF: u32 = 50;
    pub const MEMINFO: u32 = 55;
    pub const COOKIE: u32 = 57;
    pub const PEERGROUPS: u32 = 59;
    pub const ZEROCOPY: u32 = 60;
    pub const TXTIME: u32 = 61;
    pub const RCVTIMEO_NEW: u32 = 66;
    pub const SNDTIMEO_NEW: u32 = 67;
}

/// Flags of SO_TIMESTAMPING (linux/net_tstamp.h): those that have to do with receiving, and with clocks that the loopback interface has not.
pub mod stamping {
    pub const TX_HARDWARE: u32 = 1;
    pub const RX_HARDWARE: u32 = 1 << 2;
    pub const RX_SOFTWARE: u32 = 1 << 3;
    pub const SOFTWARE: u32 = 1 << 4;
    pub const SYS_HARDWARE: u32 = 1 << 5;
    pub const RAW_HARDWARE: u32 = 1 << 6;
}

/// Flags of send and receive calls.
pub mod msg {
    pub const OOB: u32 = 0x1;
    pub const PEEK: u32 = 0x2;
    pub const DONTROUTE: u32 = 0x4;
    pub const CTRUNC: u32 = 0x8;
    pub const TRUNC: u32 = 0x20;
    pub const DONTWAIT: u32 = 0x40;
    pub const EOR: u32 = 0x80;
    pub const WAITALL: u32 = 0x100;
    pub const CONFIRM: u32 = 0x800;
    pub const ERRQUEUE: u32 = 0x2000;
    pub const NOSIGNAL: u32 = 0x4000;
    pub const MORE: u32 = 0x8000;
    pub const WAITFORONE: u32 = 0x10000;
    pub const ZEROCOPY: u32 = 0x4000000;
    pub const FASTOPEN: u32 = 0x2000_0000;
    pub const CMSG_CLOEXEC: u32 = 0x4000_0000;
}

/// Control messages of level SOL_SOCKET.
pub mod scm {
    pub const RIGHTS: u32 = 1;
    pub const CREDENTIALS: u32 = 2;
    /// Most descriptors in one message.
    pub const MAX_FD: usize = 253;
}

/// Options of level IPPROTO_IP.
pub mod ip {
    pub const TOS: u32 = 1;
    pub const TTL: u32 = 2;
    pub const HDRINCL: u32 = 3;
    pub const OPTIONS: u32 = 4;
    pub const RECVOPTS: u32 = 6;
    pub const RETOPTS: u32 = 7;
    pub const PKTINFO: u32 = 8;
    pub const MTU_DISCOVER: u32 = 10;
    pub const RECVERR: u32 = 11;
    pub const RECVTTL: u32 = 12;
    pub const RECVTOS: u32 = 13;
    pub const MTU: u32 = 14;
    pub const FREEBIND: u32 = 15;
    pub const TRANSPARENT: u32 = 19;
    pub const RECVORIGDSTADDR: u32 = 20;
    pub const MINTTL: u32 = 21;
    pub const BIND_ADDRESS_NO_PORT: u32 = 24;
    pub const MULTICAST_IF: u32 = 32;
    pub const MULTICAST_TTL: u32 = 33;
    pub const MULTICAST_LOOP: u32 = 34;
    pub const ADD_MEMBERSHIP: u32 = 35;
    pub const DROP_MEMBERSHIP: u32 = 36;
    pub const UNBLOCK_SOURCE: u32 = 37;
    pub const BLOCK_SOURCE: u32 = 38;
    pub const ADD_SOURCE_MEMBERSHIP: u32 = 39;
    pub const DROP_SOURCE_MEMBERSHIP: u32 = 40;
    pub const MULTICAST_ALL: u32 = 49;
    pub const LOCAL_PORT_RANGE: u32 = 51;
}

/// Options of both IP levels about memberships (RFC 3678).
pub mod mcast {
    pub const JOIN_GROUP: u32 = 42;
    pub const BLOCK_SOURCE: u32 = 43;
    pub const UNBLOCK_SOURCE: u32 = 44;
    pub const LEAVE_GROUP: u32 = 45;
    pub const JOIN_SOURCE_GROUP: u32 = 46;
    pub const LEAVE_SOURCE_GROUP: u32 = 47;
}

/// Who reports an error (`struct sock_extended_err`, linux/errqueue.h).
pub mod origin {
    pub const ICMP: u8 = 2;
    pub const ICMP6: u8 = 3;
}

/// Instructions of classic BPF (linux/bpf_common.h, linux/filter.h).
pub mod bpf {
    /// Most instructions of a program (BPF_MAXINSNS).
    pub const MAX: usize = 4096;

    pub const CLASS: u16 = 0x07;
    pub const LD: u16 = 0x00;
    pub const LDX: u16 = 0x01;
    pub const ST: u16 = 0x02;
    pub const STX: u16 = 0x03;
    pub const ALU: u16 = 0x04;
    pub const JMP: u16 = 0x05;
    pub const RET: u16 = 0x06;

    /// Of loads; what is neither is a word.
    pub const SIZE: u16 = 0x18;
    pub const H: u16 = 0x08;
    pub const B: u16 = 0x10;

    pub const MODE: u16 = 0xe0;
    pub const IMM: u16 = 0x00;
    pub const ABS: u16 = 0x20;
    pub const IND: u16 = 0x40;
    pub const MEM: u16 = 0x60;
    pub const LEN: u16 = 0x80;
    pub const MSH: u16 = 0xa0;

    pub const OP: u16 = 0xf0;
    pub const ADD: u16 = 0x00;
    pub const SUB: u16 = 0x10;
    pub const MUL: u16 = 0x20;
    pub const DIV: u16 = 0x30;
    pub const OR: u16 = 0x40;
    pub const AND: u16 = 0x50;
    pub const LSH: u16 = 0x60;
    pub const RSH: u16 = 0x70;
    pub const NEG: u16 = 0x80;
    pub const MOD: u16 = 0x90;
    pub const XOR: u16 = 0xa0;
    pub const JA: u16 = 0x00;
    pub const JEQ: u16 = 0x10;
    pub const JGT: u16 = 0x20;
    pub const JGE: u16 = 0x30;
    pub const JSET: u16 = 0x40;

    /// The operand is X rather than the constant.
    pub const X: u16 = 0x08;
    /// RET: of the accumulator.
    pub const A: u16 = 0x10;
    /// MISC: X to A rather than A to X.
    pub const TXA: u16 = 0x80;

    /// Offsets (negative) that count from the network's header (SKF_NET_OFF), and those of extensions (SKF_AD_OFF).
    pub const NET_OFF: u32 = -0x10_0000i32 as u32;
    pub const AD_OFF: u32 = -0x1000i32 as u32;
    /// How far extensions may reach (SKF_AD_MAX).
    pub const AD_MAX: u32 = 64;
    pub const AD_PROTOCOL: u32 = 0;
    pub const AD_IFINDEX: u32 = 8;
    pub const AD_HATYPE: u32 = 28;
    pub const AD_CPU: u32 = 36;
    pub const AD_ALU_XOR_X: u32 = 40;
    pub const AD_RANDOM: u32 = 56;
}

/// Options of level IPPROTO_IPV6.
pub mod ipv6 {
    pub const OLD_HOPOPTS: u32 = 3;
    pub const OLD_DSTOPTS: u32 = 4;
    pub const OLD_RTHDR: u32 = 5;
    pub const FLOWINFO: u32 = 11;
    pub const UNICAST_HOPS: u32 = 16;
    pub const MULTICAST_IF: u32 = 17;
    pub const MULTICAST_HOPS: u32 = 18;
    pub const MULTICAST_LOOP: u32 = 19;
    pub const ADD_MEMBERSHIP: u32 = 20;
    pub const DROP_MEMBERSHIP: u32 = 21;
    pub const MTU_DISCOVER: u32 = 23;
    pub const MTU: u32 = 24;
    pub const RECVERR: u32 = 25;
    pub const V6ONLY: u32 = 26;
    pub const FLOWINFO_SEND: u32 = 33;
    pub const RECVPKTINFO: u32 = 49;
    pub const PKTINFO: u32 = 50;
    pub const RECVHOPLIMIT: u32 = 51;
    pub const HOPLIMIT: u32 = 52;
    pub const RECVHOPOPTS: u32 = 53;
    pub const HOPOPTS: u32 = 54;
    pub const RTHDRDSTOPTS: u32 = 55;
    pub const RECVRTHDR: u32 = 56;
    pub const RTHDR: u32 = 57;
    pub const RECVDSTOPTS: u32 = 58;
    pub const DSTOPTS: u32 = 59;
    pub const RECVPATHMTU: u32 = 60;
    pub const DONTFRAG: u32 = 62;
    pub const RECVTCLASS: u32 = 66;
    pub const TCLASS: u32 = 67;
    pub const AUTOFLOWLABEL: u32 = 70;
    pub const MINHOPCOUNT: u32 = 73;
    pub const TRANSPARENT: u32 = 75;
    pub const FREEBIND: u32 = 78;
}

/// Options of level IPPROTO_TCP.
pub mod tcp {
    pub const NODELAY: u32 = 1;
    pub const MAXSEG: u32 = 2;
    pub const CORK: u32 = 3;
    pub const KEEPIDLE: u32 = 4;
    pub const KEEPINTVL: u32 = 5;
    pub const KEEPCNT: u32 = 6;
    pub const SYNCNT: u32 = 7;
    pub const LINGER2: u32 = 8;
    pub const DEFER_ACCEPT: u32 = 9;
    pub const WINDOW_CLAMP: u32 = 10;
    pub const INFO: u32 = 11;
    pub const QUICKACK: u32 = 12;
    pub const CONGESTION: u32 = 13;
    pub const THIN_LINEAR_TIMEOUTS: u32 = 16;
    pub const USER_TIMEOUT: u32 = 18;
    pub const FASTOPEN: u32 = 23;
    pub const TIMESTAMP: u32 = 24;
    pub const NOTSENT_LOWAT: u32 = 25;
    pub const FASTOPEN_CONNECT: u32 = 30;
    pub const ULP: u32 = 31;
    pub const INQ: u32 = 36;

    /// States as /proc/net/tcp and TCP_INFO number them.
    pub mod state {
        pub const ESTABLISHED: u8 = 1;
        pub const FIN_WAIT1: u8 = 4;
        pub const FIN_WAIT2: u8 = 5;
        pub const CLOSE: u8 = 7;
        pub const CLOSE_WAIT: u8 = 8;
        pub const LISTEN: u8 = 10;
    }
}

/// ioctl requests on any socket (sockios.h, ioctls.h, netdevice(7)).
pub mod ioctl {
    pub const FIONREAD: u32 = 0x541b;
    pub const FIONBIO: u32 = 0x5421;
    pub const SIOCOUTQ: u32 = 0x5411;
    pub const SIOCATMARK: u32 = 0x8905;
    pub const SIOCGSTAMP: u32 = 0x8906;
    pub const SIOCGSTAMPNS: u32 = 0x8907;
    /// The same with 64-bit seconds for all programs.
    pub const SIOCGSTAMP_NEW: u32 = 0x8010_8906;
    pub const SIOCGSTAMPNS_NEW: u32 = 0x8010_8907;
    pub const SIOCGIFNAME: u32 = 0x8910;
    pub const SIOCGIFCONF: u32 = 0x8912;
    pub const SIOCGIFFLAGS: u32 = 0x8913;
    pub const SIOCSIFFLAGS: u32 = 0x8914;
    pub const SIOCGIFADDR: u32 = 0x8915;
    pub const SIOCGIFDSTADDR: u32 = 0x8917;
    pub const SIOCGIFBRDADDR: u32 = 0x8919;
    pub const SIOCGIFNETMASK: u32 = 0x891b;
    pub const SIOCGIFMETRIC: u32 = 0x891d;
    pub const SIOCGIFMTU: u32 = 0x8921;
    pub const SIOCGIFHWADDR: u32 = 0x8927;
    pub const SIOCGIFINDEX: u32 = 0x8933;
    pub const SIOCGIFTXQLEN: u32 = 0x8942;
    pub const SIOCETHTOOL: u32 = 0x8946;
    pub const SIOCGIFMAP: u32 = 0x8970;
    /// A command of SIOCETHTOOL: whether there is a link.
    pub const ETHTOOL_GLINK: u32 = 0xa;
}

/// `struct sock_filter`: an instruction of classic BPF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SockFilter {
    pub code: u16,
    /// Instructions to skip when a comparison holds, and when not.
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}

/// `struct sock_fprog`, as the kernel's own calls of the host take it; a guest's has its own word size.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SockProgram {
    pub len: u16,
    pub filter: *const SockFilter,
}

/// `struct sock_extended_err` (ip(7)).
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SockExtendedErr {
    pub errno: u32,
    /// [`origin`].
    pub origin: u8,
    pub kind: u8,
    pub code: u8,
    pub pad: u8,
    pub info: u32,
    pub data: u32,
}

/// `struct linger`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Linger {
    pub onoff: i32,
    /// Seconds.
    pub linger: i32,
}

/// `struct sock_txtime` (linux/net_tstamp.h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SockTxtime {
    pub clock: i32,
    pub flags: u32,
}

/// `struct ucred`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Ucred {
    pub pid: u32,
    pub uid: u32,
    pub gid: u32,
}

/// `struct msghdr` (recvmsg(2)).
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MsgHdr {
    pub name: u64,
    pub name_len: i32,
    pub pad: u32,
    pub iov: u64,
    pub iov_len: u64,
    pub control: u64,
    pub control_len: u64,
    pub flags: u32,
    pub pad2: u32,
}

/// `struct mmsghdr` (sendmmsg(2)).
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MmsgHdr {
    pub hdr: MsgHdr,
    /// Bytes moved by this message.
    pub len: u32,
    pub pad: u32,
}

/// `struct cmsghdr` (cmsg(3)); the data follows, the whole is aligned to 8 bytes.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CmsgHdr {
    /// Bytes of header and data.
    pub len: u64,
    pub level: u32,
    pub kind: u32,
}

/// `struct ifreq` (netdevice(7)).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct IfReq {
    pub name: [u8; 16],
    /// The union: an address, flags, index, ...
    pub value: [u8; 24],
}

/// `struct ifconf`, whose pointer is to an array of [`IfReq`].
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct IfConf {
    pub len: i32,
    pub pad: u32,
    pub buf: u64,
}

/// `struct in_pktinfo`. Addresses in network order.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct InPktinfo {
    pub ifindex: i32,
    pub spec_dst: [u8; 4],
    pub addr: [u8; 4],
}

/// `struct in6_pktinfo`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct In6Pktinfo {
    pub addr: [u8; 16],
    pub ifindex: i32,
}

/// `struct tcp_info` up to `tcpi_total_retrans` (tcp(7)).
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct TcpInfo {
    pub state: u8,
    pub ca_state: u8,
    pub retransmits: u8,
    pub probes: u8,
    pub backoff: u8,
    pub options: u8,
    pub wscale: u8,
    pub flags: u8,
    pub rto: u32,
    pub ato: u32,
    pub snd_mss: u32,
    pub rcv_mss: u32,
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retrans: u32,
    pub fackets: u32,
    pub last_data_sent: u32,
    pub last_ack_sent: u32,
    pub last_data_recv: u32,
    pub last_ack_recv: u32,
    pub pmtu: u32,
    pub rcv_ssthresh: u32,
    pub rtt: u32,
    pub rttvar: u32,
    pub snd_ssthresh: u32,
    pub snd_cwnd: u32,
    pub advmss: u32,
    pub reordering: u32,
    pub rcv_rtt: u32,
    pub rcv_space: u32,
    pub total_retrans: u32,
}

const _: () = assert!(size_of::<MsgHdr>() == 56 && size_of::<MmsgHdr>() == 64 && size_of::<CmsgHdr>() == 16);
const _: () = assert!(size_of::<IfReq>() == 40 && size_of::<IfConf>() == 16 && size_of::<TcpInfo>() == 104);
