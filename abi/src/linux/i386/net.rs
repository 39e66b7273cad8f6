//! Messages of sockets; what select(2) and mq_open(3) pass in memory.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::structs;
use crate::linux::Result;
use crate::linux::layout::Layout;
use crate::linux::net::{MmsgHdr, MsgHdr};
use crate::linux::poll::SigSetArg;

structs! {
    /// `struct compat_msghdr`
    MsgHdr32 (28) {
        name: u32,
        name_len: i32,
        iov: u32,
        iov_len: u32,
        control: u32,
        control_len: u32,
        flags: u32,
    }
    /// `struct compat_mmsghdr`
    MmsgHdr32 (32) { hdr: MsgHdr32, len: u32, }
    /// `struct compat_cmsghdr`; the data follows, the whole is aligned to 4 bytes.
    CmsgHdr32 (12) { len: u32, level: u32, kind: u32, }
    /// `struct compat_sigset_argpack`
    SigSetArg32 (8) { addr: u32, size: u32, }
}

impl Layout<MsgHdr> for MsgHdr32 {
    fn load(self) -> MsgHdr {
        MsgHdr {
            name: self.name.into(),
            name_len: self.name_len,
            iov: self.iov.into(),
            iov_len: self.iov_len.into(),
            control: self.control.into(),
            control_len: self.control_len.into(),
            flags: self.flags,
            ..MsgHdr::default()
        }
    }
    fn store(value: &MsgHdr) -> Result<Self> {
        Ok(MsgHdr32 {
            name: value.name as u32,
            name_len: value.name_len,
            iov: value.iov as u32,
            iov_len: value.iov_len as u32,
            control: value.control as u32,
            control_len: value.control_len as u32,
            flags: value.flags,
        })
    }
}

impl Layout<MmsgHdr> for MmsgHdr32 {
    fn load(self) -> MmsgHdr {
        MmsgHdr { hdr: self.hdr.load(), len: self.len, pad: 0 }
    }
    fn store(value: &MmsgHdr) -> Result<Self> {
        Ok(MmsgHdr32 { hdr: Layout::store(&value.hdr)?, len: value.len })
    }
}

impl Layout<SigSetArg> for SigSetArg32 {
    fn load(self) -> SigSetArg {
        SigSetArg { addr: self.addr.into(), size: self.size.into() }
    }
    fn store(value: &SigSetArg) -> Result<Self> {
        Ok(SigSetArg32 { addr: value.addr as u32, size: value.size as u32 })
    }
}

/// `struct compat_mq_attr`.
impl Layout<[i64; 8]> for [i32; 8] {
    fn load(self) -> [i64; 8] {
        self.map(i64::from)
    }
    fn store(value: &[i64; 8]) -> Result<Self> {
        Ok(value.map(|word| word as i32))
    }
}
