//! /proc/net/snmp, snmp6 and netstat: the counters of the protocols, by the names of their management tables (RFC 4293 and others).
//!
//! No packets are made here, neither of IP nor of ICMP nor segments, so there are none to count; nothing is lost, and nothing sent again. What
//! is counted are connections and datagrams ([`Counts`](crate::net::inet::counts::Counts)).

use alloc::string::String;
use core::fmt::Write;
use core::sync::atomic::Ordering;

use janua_abi::linux::net::tcp::state::{CLOSE_WAIT, ESTABLISHED};
use janua_rt::AtomicU64;

use crate::net::NetSystem;
use crate::net::inet::counts::Datagrams;

const IP: &str = "\
Forwarding DefaultTTL InReceives InHdrErrors InAddrErrors ForwDatagrams InUnknownProtos InDiscards InDelivers \
OutRequests OutDiscards OutNoRoutes ReasmTimeout ReasmReqds ReasmOKs ReasmFails FragOKs FragFails FragCreates \
OutTransmits";
const ICMP: &str = "\
InMsgs InErrors InCsumErrors InDestUnreachs InTimeExcds InParmProbs InSrcQuenchs InRedirects InEchos InEchoReps \
InTimestamps InTimestampReps InAddrMasks InAddrMaskReps OutMsgs OutErrors OutRateLimitGlobal OutRateLimitHost \
OutDestUnreachs OutTimeExcds OutParmProbs OutSrcQuenchs OutRedirects OutEchos OutEchoReps OutTimestamps \
OutTimestampReps OutAddrMasks OutAddrMaskReps";
const TCP: &str = "\
RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs \
RetransSegs InErrs OutRsts InCsumErrors";
const DATAGRAMS: &str = "\
InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors";

/// What can happen to streams on a network, and does not here.
pub const NETSTAT: &str = "\
TcpExt: SyncookiesSent SyncookiesRecv SyncookiesFailed ListenOverflows ListenDrops TCPLostRetransmit TCPTimeouts TCPLossProbes TCPSynRetrans \
TCPRetransFail TCPRcvQDrop TCPBacklogDrop TCPOFOQueue TCPReqQFullDrop TCPAbortOnMemory\n\
TcpExt: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
IpExt: InNoRoutes InTruncatedPkts InMcastPkts OutMcastPkts InBcastPkts OutBcastPkts InOctets OutOctets InMcastOctets OutMcastOctets \
InBcastOctets OutBcastOctets InCsumErrors InNoECTPkts InECT1Pkts InECT0Pkts InCEPkts ReasmOverlaps\n\
IpExt: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

fn value(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

/// The values of [`DATAGRAMS`].
fn datagrams(counts: &Datagrams) -> [u64; 9] {
    let [sent, received, unreached, lost] = [&counts.sent, &counts.received, &counts.unreached, &counts.lost].map(value);
    [received, unreached, lost, sent, lost, 0, 0, 0, 0]
}

/// A line of zeros for so many names, behind `text`.
fn zeros(text: &mut String, names: &str, known: &[u64]) {
    for at in 0..names.split(' ').count() {
        let _ = write!(text, " {}", known.get(at).copied().unwrap_or(0));
    }
    text.push('\n');
}

/// /proc/net/snmp.
pub fn snmp(net: &NetSystem) -> String {
    /// It does not forward, and what it would send begins with a time to live of 64.
    const IP_KNOWN: [u64; 2] = [2, 64];
    let mut text = String::new();
    for (name, names, known) in [("Ip", IP, &IP_KNOWN[..]), ("Icmp", ICMP, &[])] {
        let _ = write!(text, "{name}: {names}\n{name}:");
        zeros(&mut text, names, known);
    }
    let stands = |state| state == ESTABLISHED || state == CLOSE_WAIT;
    let current = net.inet.tcp_sockets().iter().filter(|socket| stands(socket.status().state)).count();
    let streams = &net.inet.counts.streams;
    let [opened, accepted, failed] = [&streams.opened, &streams.accepted, &streams.failed].map(value);
    let _ = writeln!(text, "Tcp: {TCP}\nTcp: 1 200 120000 -1 {opened} {accepted} {failed} 0 {current} 0 0 0 0 0 0");
    for (name, lite) in [("Udp", false), ("UdpLite", true)] {
        let _ = write!(text, "{name}: {DATAGRAMS}\n{name}:");
        zeros(&mut text, DATAGRAMS, &datagrams(net.inet.counts.datagrams(lite, false)));
    }
    text
}

/// Names of /proc/net/snmp6 before those of datagrams.
const IP6: &str = "\
Ip6InReceives Ip6InHdrErrors Ip6InTooBigErrors Ip6InNoRoutes Ip6InAddrErrors Ip6InUnknownProtos Ip6InTruncatedPkts \
Ip6InDiscards Ip6InDelivers Ip6OutForwDatagrams Ip6OutRequests Ip6OutDiscards Ip6OutNoRoutes Ip6ReasmTimeout \
Ip6ReasmReqds Ip6ReasmOKs Ip6ReasmFails Ip6FragOKs Ip6FragFails Ip6FragCreates Ip6InMcastPkts Ip6OutMcastPkts \
Ip6InOctets Ip6OutOctets Ip6InMcastOctets Ip6OutMcastOctets Ip6InBcastOctets Ip6OutBcastOctets Ip6InNoECTPkts \
Ip6InECT1Pkts Ip6InECT0Pkts Ip6InCEPkts Ip6OutTransmits Icmp6InMsgs Icmp6InErrors Icmp6OutMsgs Icmp6OutErrors \
Icmp6InCsumErrors Icmp6OutRateLimitHost Icmp6InDestUnreachs Icmp6InPktTooBigs Icmp6InTimeExcds Icmp6InParmProblems \
Icmp6InEchos Icmp6InEchoReplies Icmp6InGroupMembQueries Icmp6InGroupMembResponses Icmp6InGroupMembReductions \
Icmp6InRouterSolicits Icmp6InRouterAdvertisements Icmp6InNeighborSolicits Icmp6InNeighborAdvertisements \
Icmp6InRedirects Icmp6InMLDv2Reports Icmp6OutDestUnreachs Icmp6OutPktTooBigs Icmp6OutTimeExcds Icmp6OutParmProblems \
Icmp6OutEchos Icmp6OutEchoReplies Icmp6OutGroupMembQueries Icmp6OutGroupMembResponses Icmp6OutGroupMembReductions \
Icmp6OutRouterSolicits Icmp6OutRouterAdvertisements Icmp6OutNeighborSolicits Icmp6OutNeighborAdvertisements \
Icmp6OutRedirects Icmp6OutMLDv2Reports";

/// /proc/net/snmp6.
pub fn snmp6(net: &NetSystem) -> String {
    let mut text = String::new();
    for name in IP6.split(' ') {
        let _ = writeln!(text, "{name:32}\t0");
    }
    for (prefix, lite) in [("Udp6", false), ("UdpLite6", true)] {
        let values = datagrams(net.inet.counts.datagrams(lite, true));
        for (name, value) in DATAGRAMS.split(' ').zip(values) {
            // Linux has no such line.
            if !(lite && name == "IgnoredMulti") {
                let _ = writeln!(text, "{:32}\t{value}", alloc::format!("{prefix}{name}"));
            }
        }
    }
    text
}
