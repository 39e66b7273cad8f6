//! Control messages, from a program and to it (cmsg(3), unix(7)).

use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::linux::net::{MsgHdr, Ucred, af, msg, scm, so, sol};
use janua_abi::linux::process::rlimit;
use janua_kernel::table::Fd;
use janua_kernel::{Errno, Result, UserPtr};
use janua_object::net::addr::STORAGE;
use janua_object::net::common::cap;
use janua_object::net::control::{self, Control, Words};
use janua_object::net::socket::{Outgoing, Received};
use janua_object::net::unix::rights::{Rights, Sender};
use zerocopy::{FromBytes, IntoBytes};

use super::{Open, read_value};
use crate::Thread;
use crate::fs::fd;
use crate::thread::ThreadExt;

/// Most bytes of control messages in one send (net.core.optmem_max).
const CONTROL_MAX: u64 = 131_072;

/// Takes the control messages of a send. EINVAL, EBADF, EPERM, ESRCH, ENOBUFS, ETOOMANYREFS.
pub(super) fn read_control(thread: &Thread, open: &Open, hdr: &MsgHdr, out: &mut Outgoing, words: Words) -> Result<()> {
    if hdr.control == 0 || hdr.control_len == 0 {
        return Ok(());
    }
    if hdr.control_len > CONTROL_MAX {
        return Err(Errno::ENOBUFS);
    }
    let at = usize::try_from(hdr.control).map_err(|_| Errno::EFAULT)?;
    let bytes = read_value(thread, UserPtr::new(at), hdr.control_len as usize)?;
    let unix = open.socket()?.common().family == af::UNIX;
    let mut files = Vec::new();
    for message in control::parse(&bytes, words)? {
        match (message.level, message.kind) {
            (sol::SOCKET, scm::RIGHTS) if unix => {
                if files.len() + message.data.len() / 4 > scm::MAX_FD {
                    return Err(Errno::EINVAL);
                }
                for number in message.data.chunks_exact(4) {
                    let number = i32::from_ne_bytes([number[0], number[1], number[2], number[3]]);
                    files.push(fd::get(thread, Fd(number))?);
                }
            }
            (sol::SOCKET, scm::CREDENTIALS) if unix => {
                let cred = Ucred::read_from_bytes(&message.data).map_err(|_| Errno::EINVAL)?;
                check_cred(thread, cred)?;
                out.cred = Some(cred);
            }
            (sol::SOCKET, scm::RIGHTS | scm::CREDENTIALS) => {}
            // The time to send at, which is now on the loopback interface.
            (sol::SOCKET, so::TXTIME) if !unix && message.data.len() == 8 && open.socket()?.common().flag(so::TXTIME) => {}
            (sol::SOCKET, _) => return Err(Errno::EINVAL),
            _ if unix => {}
            _ => out.ancillary.push(message),
        }
    }
    // Registered with itself by way of a message nobody takes, a ring would never end.
    if files.iter().any(|file| file.downcast::<crate::uring::Ring>().is_some()) {
        return Err(Errno::EINVAL);
    }
    if !files.is_empty() {
        let own = thread.ext.cred();
        let bounded = !own.capable(cap::SYS_RESOURCE) && !own.capable(cap::SYS_ADMIN);
        let sender = Sender { uid: own.uid, most: bounded.then(|| thread.limit(rlimit::NOFILE)) };
        out.rights = Some(Rights::new(&thread.kernel.net.unix.flight, files, sender)?);
    }
    Ok(())
}

/// A process may name itself, by any of its ids; a privileged one may name anything but a task that is not there. EPERM, ESRCH.
fn check_cred(thread: &Thread, said: Ucred) -> Result<()> {
    let own = thread.ext.cred();
    let pid = said.pid == thread.task.pid || own.capable(cap::SYS_ADMIN);
    let uid = [own.uid, own.euid, own.suid].contains(&said.uid) || own.capable(cap::SETUID);
    let gid = [own.gid, own.egid, own.sgid].contains(&said.gid) || own.capable(cap::SETGID);
    if !(pid && uid && gid) {
        return Err(Errno::EPERM);
    }
    // Even a privileged sender names a task that is there.
    let kernel = &thread.kernel;
    let there = said.pid == thread.task.pid || kernel.thread(said.pid).is_some() || kernel.process(said.pid).is_some();
    if there { Ok(()) } else { Err(Errno::ESRCH) }
}

/// Hands what came with a message to the program: its sender, control messages and flags.
pub(super) fn write_received(
    thread: &Thread,
    open: &Open,
    hdr: &mut MsgHdr,
    received: Received,
    flags: u32,
    words: Words,
) -> Result<()> {
    if hdr.name != 0 {
        hdr.name_len = match &received.from {
            Some(from) => {
                let raw = from.encode();
                let bytes = raw.as_bytes();
                let room = usize::try_from(hdr.name_len).unwrap_or(0).min(STORAGE).min(bytes.len());
                let at = usize::try_from(hdr.name).map_err(|_| Errno::EFAULT)?;
                thread.user().copy_out(at, &bytes[..room]).map_err(|_| Errno::EFAULT)?;
                bytes.len() as i32
            }
            None => 0,
        };
    }
    let room = if hdr.control == 0 { 0 } else { usize::try_from(hdr.control_len).unwrap_or(usize::MAX) };
    let mut control = Control::new(room, words);
    let common = open.socket()?.common();
    if common.is_records() && (common.flag(so::TIMESTAMP) || common.flag(so::TIMESTAMPNS)) {
        // Where the arrival was not looked at, the receipt is not long after it.
        let time = if received.stamp != 0 { received.stamp } else { thread.machine().clock().realtime() };
        add_time(time, &mut control, common.flag(so::TIMESTAMPNS));
    }
    if common.flag(so::TIMESTAMPING) && received.stamp != 0 {
        // Of the three times the second is no longer used, and the third that of hardware.
        let times = [received.stamp / 1_000_000_000, received.stamp % 1_000_000_000, 0, 0, 0, 0];
        match words {
            Words::Wide => control.add(sol::SOCKET, so::TIMESTAMPING, times.as_bytes()),
            Words::Narrow => control.add(sol::SOCKET, so::TIMESTAMPING, times.map(|word| word as u32).as_bytes()),
        }
    }
    if let Some(cred) = &received.cred {
        control.add(sol::SOCKET, scm::CREDENTIALS, cred.as_bytes());
    }
    let numbers = match &received.rights {
        Some(rights) => add_rights(thread, &mut control, rights, flags & msg::CMSG_CLOEXEC != 0),
        None => Vec::new(),
    };
    for message in &received.ancillary {
        control.add(message.level, message.kind, &message.data);
    }
    if let Some(inquiry) = open.socket()?.inquiry() {
        control.add(inquiry.level, inquiry.kind, &inquiry.data);
    }
    let mut reported = control.as_bytes().len();
    let at = usize::try_from(hdr.control).map_err(|_| Errno::EFAULT)?;
    if reported > 0 && thread.user().copy_out(at, control.as_bytes()).is_err() {
        // The message has been taken and counts; descriptors whose numbers cannot be returned are closed.
        let table = thread.files();
        for (&number, file) in numbers.iter().zip(received.rights.iter().flat_map(|rights| rights.files())) {
            table.take_back(Fd(number), file);
        }
        control.truncated |= !numbers.is_empty();
        reported = 0;
    }
    hdr.control_len = reported as u64;
    hdr.flags = received.flags | flags & msg::CMSG_CLOEXEC;
    if control.truncated {
        hdr.flags |= msg::CTRUNC;
    }
    Ok(())
}

/// The time of the message.
fn add_time(now: u64, control: &mut Control, nanos: bool) {
    let (kind, unit) = if nanos { (so::TIMESTAMPNS, 1) } else { (so::TIMESTAMP, 1000) };
    let time = [now / 1_000_000_000, now % 1_000_000_000 / unit];
    match control.words() {
        Words::Wide => control.add(sol::SOCKET, kind, time.as_bytes()),
        Words::Narrow => control.add(sol::SOCKET, kind, time.map(|word| word as u32).as_bytes()),
    }
}

/// Installs descriptors as far as there is room for their numbers and the process may have more: which. The rest is closed.
fn add_rights(thread: &Thread, control: &mut Control, rights: &Arc<Rights>, cloexec: bool) -> Vec<i32> {
    let fits = control.space() / 4;
    let mut numbers: Vec<i32> = Vec::new();
    for file in rights.files().iter().take(fits) {
        match fd::install(thread, file.clone(), cloexec) {
            Ok(fd) => numbers.push(fd.0),
            Err(_) => break,
        }
    }
    if numbers.len() < rights.files().len() {
        control.truncated = true;
    }
    if !numbers.is_empty() {
        control.add(sol::SOCKET, scm::RIGHTS, numbers.as_bytes());
    }
    numbers
}
