//! /proc/net: one network for all processes.

use alloc::vec::Vec;
use core::fmt::Write;
use janua_abi::linux::{Errno, Result};
use janua_object::net::{NetMode, proc_net};

use janua_port::machine::processors;
use janua_port::{Host, HostFd, HostFiles};

use super::{Entry, Subject, Text};

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(Entry::text($name, |subject, text| file($name, subject, text))),*]
    };
}

/// The names [`proc_net`] knows.
#[rustfmt::skip]
pub static ENTRIES: &[Entry] = files![
    "arp", "dev", "icmp", "icmp6", "if_inet6", "ipv6_route", "netlink", "netstat", "packet", "protocols", "raw", "raw6", "route", "snmp", "snmp6",
    "sockstat", "sockstat6", "softnet_stat", "tcp", "tcp6", "udp", "udp6", "udplite", "udplite6", "unix",
];

/// With `--net host` interfaces, routes and inet sockets are the host's: its file is shown. The rest is the kernel's own.
fn file(name: &str, subject: &Subject, text: &mut Text) -> Result<()> {
    let net = &subject.kernel.net;
    let own = matches!(name, "unix" | "netlink" | "protocols");
    if net.mode == NetMode::Host && !own {
        let host = subject.kernel.machine.host().and_then(Host::files).ok_or(Errno::ENOENT)?;
        return copy(host, alloc::format!("/proc/self/net/{name}").as_bytes(), &mut text.0);
    }
    if name == "softnet_stat" {
        return softnet(subject, text);
    }
    text.bytes(proc_net(net, name).ok_or(Errno::ENOENT)?.as_bytes());
    Ok(())
}

/// Packets by processor, of which there are none: a line for each, with its number in the place for that.
fn softnet(subject: &Subject, text: &mut Text) -> Result<()> {
    const COLUMNS: usize = 15;
    const PROCESSOR: usize = 12;
    for cpu in processors(subject.kernel.machine) {
        for column in 0..COLUMNS {
            let value = if column == PROCESSOR { cpu } else { 0 };
            let _ = write!(text, "{}{value:08x}", if column == 0 { "" } else { " " });
        }
        text.bytes(b"\n");
    }
    Ok(())
}

fn copy(host: &dyn HostFiles, path: &[u8], out: &mut Vec<u8>) -> Result<()> {
    const CURRENT_DIRECTORY: HostFd = HostFd(-100);
    const STEP: usize = 16 * 1024;
    let fd = host.open(CURRENT_DIRECTORY, path, 0, 0, 0)?;
    let result = loop {
        let len = out.len();
        out.resize(len + STEP, 0);
        let read = host.read(fd, &mut out[len..], None);
        out.truncate(len + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => break Ok(()),
            Ok(_) => {}
            Err(errno) => break Err(errno),
        }
    };
    host.close(fd);
    result
}
