//! The contents of /proc/net (proc(5)).

use alloc::format;
use alloc::string::String;
use core::fmt::Write;
use core::net::{IpAddr, SocketAddr};

use janua_abi::linux::net::{af, ipproto, sock};

use crate::net::NetSystem;
use crate::net::addr::UnixName;
use crate::net::iface;
use crate::net::inet::tcp::Status;
use crate::net::snmp;
use crate::net::socket::Socket;

/// The file of that name under /proc/net, if there is one. Host sockets (`--net host`) are not listed.
pub fn proc_net(net: &NetSystem, name: &str) -> Option<String> {
    let tcp =
        |family| net.inet.tcp_sockets().iter().map(|socket| socket.status()).filter(move |s| s.family == family).collect();
    let udp = |family, protocol| bound(net, family, protocol).collect();
    Some(match name {
        "tcp" => table(false, "tx_queue rx_queue tr tm->when retrnsmt", tcp(af::INET)),
        "tcp6" => table(true, "tx_queue rx_queue tr tm->when retrnsmt", tcp(af::INET6)),
        "udp" => table(false, "tx_queue rx_queue tr tm->when retrnsmt", udp(af::INET, ipproto::UDP)),
        "udp6" => table(true, "tx_queue rx_queue tr tm->when retrnsmt", udp(af::INET6, ipproto::UDP)),
        "udplite" => table(false, "tx_queue rx_queue tr tm->when retrnsmt", udp(af::INET, ipproto::UDPLITE)),
        "udplite6" => table(true, "tx_queue rx_queue tr tm->when retrnsmt", udp(af::INET6, ipproto::UDPLITE)),
        "unix" => unix(net),
        "dev" => dev(),
        "if_inet6" => format!("{:032x} {:02x} 80 10 80 {:>8}\n", 1, iface::INDEX, iface::NAME),
        "route" => String::from("Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"),
        "ipv6_route" => {
            format!("{:032x} 80 {:032x} 00 {:032x} 00000100 00000001 00000000 00000001 {:>8}\n", 1, 0, 0, iface::NAME)
        }
        "netlink" => String::from("sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode\n"),
        "packet" => String::from("sk       RefCnt Type Proto  Iface R Rmem   User   Inode\n"),
        "raw" | "raw6" => table(name == "raw6", "tx_queue rx_queue tr tm->when retrnsmt", alloc::vec::Vec::new()),
        "protocols" => String::from(
            "protocol  size sockets  memory press maxhdr  slab module     cl co di ac io in de sh ss gs se re bi br ha uh gp em\n",
        ),
        "snmp" => snmp::snmp(net),
        "snmp6" => snmp::snmp6(net),
        "netstat" => String::from(snmp::NETSTAT),
        "icmp" | "icmp6" => table(name == "icmp6", "tx_queue rx_queue tr tm->when retrnsmt", alloc::vec::Vec::new()),
        "sockstat" => sockstat(net),
        "sockstat6" => sockstat6(net),
        "arp" => String::from("IP address       HW type     Flags       HW address            Mask     Device\n"),
        _ => return None,
    })
}

/// Datagram sockets that are bound.
fn bound(net: &NetSystem, family: u16, protocol: u32) -> impl Iterator<Item = Status> {
    let sockets = net.inet.udp_sockets(protocol).into_iter();
    sockets.filter_map(|socket| socket.status()).filter(move |socket| socket.family == family)
}

/// Sockets by protocol; memory is counted for the whole kernel, not by protocol, and left out.
fn sockstat(net: &NetSystem) -> String {
    let count = |family| net.inet.tcp_sockets().iter().filter(|socket| socket.status().family == family).count();
    let tcp = count(af::INET);
    let [udp, lite] = [ipproto::UDP, ipproto::UDPLITE].map(|protocol| bound(net, af::INET, protocol).count());
    let datagram = net.inet.udp_sockets(ipproto::UDP).len() + net.inet.udp_sockets(ipproto::UDPLITE).len();
    let used = net.unix.names.sockets().len() + net.inet.tcp_sockets().len() + datagram;
    format!(
        "sockets: used {used}\nTCP: inuse {tcp} orphan 0 tw 0 alloc {tcp} mem 0\nUDP: inuse {udp} mem 0\nUDPLITE: inuse {lite}\nRAW: inuse 0\nFRAG: inuse 0 memory 0\n"
    )
}

fn sockstat6(net: &NetSystem) -> String {
    let tcp = net.inet.tcp_sockets().iter().filter(|socket| socket.status().family == af::INET6).count();
    let [udp, lite] = [ipproto::UDP, ipproto::UDPLITE].map(|protocol| bound(net, af::INET6, protocol).count());
    format!("TCP6: inuse {tcp}\nUDP6: inuse {udp}\nUDPLITE6: inuse {lite}\nRAW6: inuse 0\nFRAG6: inuse 0 memory 0\n")
}

/// An address as these files write it: words in the processor's byte order.
fn address(addr: SocketAddr, v6: bool) -> String {
    let mut text = String::new();
    let octets: &[u8] = &match (addr.ip(), v6) {
        (IpAddr::V6(ip), _) => ip.octets().to_vec(),
        (IpAddr::V4(ip), true) if ip.is_unspecified() && addr.port() == 0 => alloc::vec![0; 16],
        (IpAddr::V4(ip), true) => ip.to_ipv6_mapped().octets().to_vec(),
        (IpAddr::V4(ip), false) => ip.octets().to_vec(),
    };
    for word in octets.chunks_exact(4) {
        let word = u32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
        let _ = write!(text, "{word:08X}");
    }
    let _ = write!(text, ":{:04X}", addr.port());
    text
}

fn table(v6: bool, columns: &str, sockets: alloc::vec::Vec<Status>) -> String {
    let gap = if v6 { "                         " } else { " " };
    let remote = if v6 { "remote_address                        " } else { "rem_address   " };
    let mut text = format!("  sl  local_address{gap}{remote}st {columns}   uid  timeout inode\n");
    for (at, socket) in sockets.iter().enumerate() {
        let _ = writeln!(
            text,
            "{at:4}: {} {} {:02X} {:08X}:{:08X} 00:00000000 00000000 {:5} {:8} {} 1 0000000000000000 100 0 0 10 0",
            address(socket.local, v6),
            address(socket.remote, v6),
            socket.state,
            0,
            socket.queued,
            socket.uid,
            0,
            socket.ino,
        );
    }
    text
}

fn unix(net: &NetSystem) -> String {
    /// __SO_ACCEPTCON, and socket states of net.h.
    const ACCEPTS: u32 = 0x1_0000;
    const UNCONNECTED: u32 = 1;
    const CONNECTED: u32 = 3;
    let mut text = String::from("Num       RefCount Protocol Flags    Type St Inode Path\n");
    for socket in net.unix.names.sockets() {
        let (listening, connected) = socket.status();
        let kind = socket.common().kind;
        let state = if connected && kind != sock::DGRAM { CONNECTED } else { UNCONNECTED };
        let flags = if listening { ACCEPTS } else { 0 };
        let ino = socket.common().ino();
        let _ = write!(text, "{:016x}: {:08X} {:08X} {:08X} {:04X} {:02X} {:5}", 0, 2, 0, flags, kind, state, ino);
        match socket.unix_name() {
            UnixName::Unnamed => {}
            UnixName::Path(path) => {
                let _ = write!(text, " {}", String::from_utf8_lossy(&path));
            }
            UnixName::Abstract(name) => {
                let shown: alloc::vec::Vec<u8> = name.iter().map(|&byte| if byte == 0 { b'@' } else { byte }).collect();
                let _ = write!(text, " @{}", String::from_utf8_lossy(&shown));
            }
        }
        text.push('\n');
    }
    text
}

fn dev() -> String {
    let zeros = "       0       0    0    0    0     0          0         0";
    format!(
        "Inter-|   Receive                                                |  Transmit\n \
         face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n\
         {:>6}: {zeros}        0       0    0    0    0     0       0          0\n",
        iface::NAME
    )
}
