//! What every socket has: its identity, wait queue, pending error, shut directions, and the options of level SOL_SOCKET.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering};

use janua_abi::linux::net::{Linger, SockTxtime, af, bpf, so, sock, stamping};
use janua_abi::linux::time::COARSE;
use janua_abi::linux::time::clock::MONOTONIC;
use janua_abi::linux::{Errno, Result};
use janua_port::Nanos;
use janua_rt::{AtomicU64, Mutex, WaitQueue};
use zerocopy::{FromBytes, IntoBytes};

use crate::caller::Cred;
use crate::file::Events;
use crate::net::filter::FilterPlace;
use crate::net::peek::PeekOffset;

/// Directions of a socket, as shutdown(2) closes them.
pub mod shut {
    pub const RECEIVE: u32 = 1;
    pub const SEND: u32 = 2;
    pub const BOTH: u32 = 3;
}

/// net.core.{r,w}mem_{default,max}, and the least a program can set.
pub const BUFFER_DEFAULT: usize = 212_992;
pub const BUFFER_MAX: usize = 212_992;
const SNDBUF_LEAST: usize = 4608;
const RCVBUF_LEAST: usize = 2304;

/// net.core.somaxconn.
pub const SOMAXCONN: u32 = 4096;

/// net.core.somaxconn as it is set: most connections that wait at a listener.
pub struct MostWaiting(AtomicU32);

impl Default for MostWaiting {
    fn default() -> MostWaiting {
        MostWaiting(AtomicU32::new(SOMAXCONN))
    }
}

impl MostWaiting {
    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    pub fn set(&self, most: u32) {
        self.0.store(most, Ordering::Relaxed);
    }
}

/// Capabilities that matter here (capabilities(7)).
pub mod cap {
    pub const SETGID: u32 = 6;
    pub const SETUID: u32 = 7;
    pub const NET_BIND_SERVICE: u32 = 10;
    pub const NET_ADMIN: u32 = 12;
    pub const NET_RAW: u32 = 13;
    pub const SYS_ADMIN: u32 = 21;
    pub const SYS_RESOURCE: u32 = 24;
}

/// No limit of a wait.
const FOREVER: u64 = u64::MAX;

/// SO_TIMESTAMPING: what is accepted. Times of sending are not reported, and no clock is in hardware.
const STAMPING: u32 = stamping::RX_SOFTWARE
    | stamping::SOFTWARE
    | stamping::TX_HARDWARE
    | stamping::RX_HARDWARE
    | stamping::SYS_HARDWARE
    | stamping::RAW_HARDWARE;
/// Those with which times of arrival are taken and reported.
const STAMPED: u32 = stamping::RX_SOFTWARE | stamping::SOFTWARE;

/// SO_TXTIME: flags there are.
const TXTIME_FLAGS: u32 = 3;

/// On/off options that are kept and given back; those that change something are asked for by [`Common::flag`].
const FLAGS: u64 = 1 << so::DEBUG
    | 1 << so::REUSEADDR
    | 1 << so::DONTROUTE
    | 1 << so::BROADCAST
    | 1 << so::KEEPALIVE
    | 1 << so::OOBINLINE
    | 1 << so::NO_CHECK
    | 1 << so::REUSEPORT
    | 1 << so::PASSCRED
    | 1 << so::TIMESTAMP
    | 1 << so::TIMESTAMPNS
    | 1 << so::RXQ_OVFL;

/// The common part of a socket.
pub struct Common {
    pub family: u16,
    pub kind: u32,
    pub protocol: u32,
    /// Everybody who waits for this socket, for whatever event.
    pub wait: WaitQueue,
    /// The pending error, 0 for none: reported once, by SO_ERROR or the next call.
    error: AtomicU32,
    shut: AtomicU32,
    flags: AtomicU64,
    pub sndbuf: AtomicUsize,
    pub rcvbuf: AtomicUsize,
    /// Whether a program chose the buffer sizes.
    pub sized: AtomicU32,
    rcvtimeo: AtomicU64,
    sndtimeo: AtomicU64,
    pub rcvlowat: AtomicUsize,
    /// Permissions (fchmod(2)): what a name gets by bind(2), less the umask.
    pub mode: AtomicU32,
    /// SO_PRIORITY, SO_MARK, SO_BUSY_POLL.
    words: [AtomicU32; 3],
    /// It is bound to the one interface there is (SO_BINDTODEVICE).
    pub on_device: AtomicBool,
    linger: Mutex<Linger>,
    /// SO_INCOMING_CPU: the processor whose connections and datagrams this one of a group is for, -1 for any.
    pub incoming_cpu: AtomicI32,
    /// SO_MAX_PACING_RATE, bytes a second.
    pacing: AtomicU64,
    stamping: AtomicU32,
    txtime: Mutex<SockTxtime>,
    /// What decides about datagrams before they are queued here.
    pub filter: FilterPlace,
    /// SO_PEEK_OFF.
    pub peek: PeekOffset,
    /// The inode number programs see; 0 for a socket that is no file yet.
    ino: AtomicU64,
}

impl Common {
    pub fn new(family: u16, kind: u32, protocol: u32) -> Common {
        Common {
            family,
            kind,
            protocol,
            wait: WaitQueue::new(),
            error: AtomicU32::new(0),
            shut: AtomicU32::new(0),
            flags: AtomicU64::new(0),
            sndbuf: AtomicUsize::new(BUFFER_DEFAULT),
            rcvbuf: AtomicUsize::new(BUFFER_DEFAULT),
            sized: AtomicU32::new(0),
            rcvtimeo: AtomicU64::new(FOREVER),
            sndtimeo: AtomicU64::new(FOREVER),
            rcvlowat: AtomicUsize::new(1),
            mode: AtomicU32::new(0o777),
            words: [const { AtomicU32::new(0) }; 3],
            on_device: AtomicBool::new(false),
            linger: Mutex::new(Linger::default()),
            incoming_cpu: AtomicI32::new(-1),
            pacing: AtomicU64::new(u64::MAX),
            stamping: AtomicU32::new(0),
            txtime: Mutex::new(SockTxtime::default()),
            filter: FilterPlace::default(),
            peek: PeekOffset::default(),
            ino: AtomicU64::new(0),
        }
    }

    /// Takes over what an accepted socket inherits from its listener.
    pub fn inherit(&self, from: &Common) {
        self.flags.store(from.flags.load(Ordering::Relaxed), Ordering::Relaxed);
        for (to, from) in [(&self.sndbuf, &from.sndbuf), (&self.rcvbuf, &from.rcvbuf), (&self.rcvlowat, &from.rcvlowat)] {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        for (to, from) in [(&self.rcvtimeo, &from.rcvtimeo), (&self.sndtimeo, &from.sndtimeo)] {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        for (to, from) in self.words.iter().zip(&from.words) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.sized.store(from.sized.load(Ordering::Relaxed), Ordering::Relaxed);
        self.incoming_cpu.store(from.incoming_cpu.load(Ordering::Relaxed), Ordering::Relaxed);
        self.peek.set(from.peek.get());
        *self.linger.lock() = *from.linger.lock();
    }

    pub fn ino(&self) -> u64 {
        self.ino.load(Ordering::Relaxed)
    }

    pub fn set_ino(&self, ino: u64) {
        self.ino.store(ino, Ordering::Relaxed);
    }

    /// Whether messages are records: datagrams and sequenced packets.
    pub fn is_records(&self) -> bool {
        self.kind != sock::STREAM
    }

    pub fn set_error(&self, errno: Errno) {
        self.error.store(u32::from(errno.0.get()), Ordering::SeqCst);
    }

    pub fn has_error(&self) -> bool {
        self.error.load(Ordering::SeqCst) != 0
    }

    /// The pending error, which is then no longer pending.
    pub fn take_error(&self) -> Result<()> {
        if !self.has_error() {
            return Ok(());
        }
        match u16::try_from(self.error.swap(0, Ordering::SeqCst)).ok().and_then(core::num::NonZeroU16::new) {
            Some(number) => Err(Errno(number)),
            None => Ok(()),
        }
    }

    /// The directions that are shut ([`shut`]).
    pub fn shut(&self) -> u32 {
        self.shut.load(Ordering::SeqCst)
    }

    /// Shuts directions: what was shut before.
    pub fn add_shut(&self, directions: u32) -> u32 {
        self.shut.fetch_or(directions, Ordering::SeqCst)
    }

    /// Opens both directions again (a stream that was disconnected).
    pub fn clear_shut(&self) {
        self.shut.store(0, Ordering::SeqCst);
    }

    /// Whether an on/off option is on.
    pub fn flag(&self, option: u32) -> bool {
        self.flags.load(Ordering::Relaxed) & (1 << option) != 0
    }

    /// Turns an on/off option on.
    pub fn set_flag(&self, option: u32) {
        self.flags.fetch_or(1 << option, Ordering::Relaxed);
    }

    /// Turns an on/off option off.
    fn clear_flag(&self, option: u32) {
        self.flags.fetch_and(!(1 << option), Ordering::Relaxed);
    }

    pub fn linger(&self) -> Linger {
        *self.linger.lock()
    }

    /// Longest a call may wait; `None` is for ever.
    pub fn wait_limit(&self, send: bool) -> Option<Nanos> {
        let limit = if send { &self.sndtimeo } else { &self.rcvtimeo }.load(Ordering::Relaxed);
        (limit != FOREVER).then_some(limit)
    }

    /// How much better than others of its group this socket is for what the processor `cpu` brings (SO_INCOMING_CPU).
    pub fn suits_cpu(&self, cpu: impl FnOnce() -> usize) -> u32 {
        match usize::try_from(self.incoming_cpu.load(Ordering::Relaxed)) {
            Ok(wanted) => u32::from(wanted == cpu()),
            Err(_) => 0,
        }
    }

    /// Notifies waiters that something can be read.
    pub fn wake_readers(&self) {
        self.wait.wake((Events::IN | Events::PRI | Events::RDNORM | Events::RDBAND).bits());
    }

    /// Notifies waiters that there is room to write.
    pub fn wake_writers(&self) {
        self.wait.wake((Events::OUT | Events::WRNORM | Events::WRBAND).bits());
    }

    /// setsockopt(2), level SOL_SOCKET.
    pub fn set_option(&self, cred: &Cred, name: u32, value: &[u8]) -> Result<()> {
        match name {
            so::LINGER => {
                let (linger, _) = Linger::read_from_prefix(value).map_err(|_| Errno::EINVAL)?;
                *self.linger.lock() = Linger { onoff: i32::from(linger.onoff != 0), ..linger };
                return Ok(());
            }
            so::RCVTIMEO | so::RCVTIMEO_NEW => return set_timeout(&self.rcvtimeo, value),
            so::SNDTIMEO | so::SNDTIMEO_NEW => return set_timeout(&self.sndtimeo, value),
            so::BINDTODEVICE => {
                return match value.split(|&byte| byte == 0).next() {
                    None | Some(b"") => {
                        self.on_device.store(false, Ordering::Relaxed);
                        Ok(())
                    }
                    Some(b"lo") => {
                        self.on_device.store(true, Ordering::Relaxed);
                        Ok(())
                    }
                    Some(_) => Err(Errno::ENODEV),
                };
            }
            _ => {}
        }
        let number = int(value)?;
        if self.lacks(name) || name == so::REUSEPORT && number != 0 && !self.is_inet() {
            return Err(Errno::EOPNOTSUPP);
        }
        match name {
            so::DEBUG if number != 0 && !cred.capable(cap::NET_ADMIN) => Err(Errno::EACCES),
            _ if name < 64 && FLAGS & (1 << name) != 0 => {
                if number != 0 {
                    self.set_flag(name);
                } else {
                    self.clear_flag(name);
                }
                Ok(())
            }
            so::SNDBUF | so::RCVBUF => {
                self.set_buffer(name == so::SNDBUF, (number as u32 as usize).min(BUFFER_MAX));
                Ok(())
            }
            so::SNDBUFFORCE | so::RCVBUFFORCE => {
                if !cred.capable(cap::NET_ADMIN) {
                    return Err(Errno::EPERM);
                }
                self.set_buffer(name == so::SNDBUFFORCE, (number.max(0) as usize).min(i32::MAX as usize / 2));
                Ok(())
            }
            so::RCVLOWAT => {
                let least = if number < 0 { i32::MAX as usize } else { (number as usize).max(1) };
                self.rcvlowat.store(least, Ordering::Relaxed);
                Ok(())
            }
            so::PRIORITY if (0..=6).contains(&number) || cred.capable(cap::NET_ADMIN) => self.set_word(0, number),
            so::MARK if cred.capable(cap::NET_ADMIN) || cred.capable(cap::NET_RAW) => self.set_word(1, number),
            so::BUSY_POLL if number >= 0 => self.set_word(2, number),
            so::PRIORITY | so::MARK => Err(Errno::EPERM),
            so::BUSY_POLL => Err(Errno::EINVAL),
            so::INCOMING_CPU => {
                self.incoming_cpu.store(number, Ordering::Relaxed);
                Ok(())
            }
            so::MAX_PACING_RATE => self.set_pacing(number, value),
            so::TIMESTAMPING if self.kind == sock::DGRAM && self.family != af::UNIX => self.set_stamping(number as u32),
            so::TXTIME => self.set_txtime(cred, value),
            so::BSDCOMPAT => Ok(()),
            so::DETACH_FILTER => self.filter.set(None),
            so::LOCK_FILTER => self.filter.lock(number != 0),
            so::PEEK_OFF if self.family != af::NETLINK => {
                self.peek.set(number);
                Ok(())
            }
            so::PEEK_OFF | so::ZEROCOPY => Err(Errno::EOPNOTSUPP),
            _ => Err(Errno::ENOPROTOOPT),
        }
    }

    fn is_inet(&self) -> bool {
        matches!(self.family, af::INET | af::INET6)
    }

    /// Whether the option is one of other families.
    fn lacks(&self, name: u32) -> bool {
        name == so::PASSCRED && self.is_inet()
    }

    /// Nothing that leaves by the loopback interface is paced, but the protocol of streams itself would do it on Linux, and does not here.
    fn set_pacing(&self, number: i32, value: &[u8]) -> Result<()> {
        let rate = match value.get(..8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_ne_bytes) {
            Some(rate) => rate,
            None if number == -1 => u64::MAX,
            None => u64::from(number as u32),
        };
        if self.family != af::UNIX && self.kind == sock::STREAM && rate != u64::MAX {
            return Err(Errno::ENOPROTOOPT);
        }
        self.pacing.store(rate, Ordering::Relaxed);
        Ok(())
    }

    fn set_stamping(&self, flags: u32) -> Result<()> {
        if flags & !STAMPING != 0 {
            return Err(Errno::EINVAL);
        }
        self.stamping.store(flags, Ordering::Relaxed);
        if flags & STAMPED == STAMPED {
            self.set_flag(so::TIMESTAMPING);
        } else {
            self.clear_flag(so::TIMESTAMPING);
        }
        Ok(())
    }

    /// The clock of times to send at. They are for the queue of an interface, and the loopback interface has none: it sends at once.
    fn set_txtime(&self, cred: &Cred, value: &[u8]) -> Result<()> {
        let txtime = SockTxtime::read_from_bytes(value).map_err(|_| Errno::EINVAL)?;
        if txtime.flags & !TXTIME_FLAGS != 0 {
            return Err(Errno::EINVAL);
        }
        if txtime.clock != MONOTONIC && !cred.capable(cap::NET_ADMIN) {
            return Err(Errno::EPERM);
        }
        *self.txtime.lock() = txtime;
        self.set_flag(so::TXTIME);
        Ok(())
    }

    fn set_word(&self, at: usize, value: i32) -> Result<()> {
        self.words[at].store(value as u32, Ordering::Relaxed);
        Ok(())
    }

    fn set_buffer(&self, send: bool, size: usize) {
        // Doubled, as Linux does, where half is for bookkeeping.
        if send {
            self.sndbuf.store((size * 2).max(SNDBUF_LEAST), Ordering::Relaxed);
        } else {
            self.rcvbuf.store((size * 2).max(RCVBUF_LEAST), Ordering::Relaxed);
        }
        self.sized.store(1, Ordering::Relaxed);
        self.wake_writers();
    }

    /// getsockopt(2), level SOL_SOCKET, for a program with room for `room` bytes. `listening` is the value of SO_ACCEPTCONN.
    pub fn get_option(&self, name: u32, listening: bool, room: usize) -> Result<Vec<u8>> {
        let number = match name {
            so::LINGER => return Ok(self.linger.lock().as_bytes().to_vec()),
            so::RCVTIMEO | so::RCVTIMEO_NEW => return Ok(get_timeout(&self.rcvtimeo)),
            so::SNDTIMEO | so::SNDTIMEO_NEW => return Ok(get_timeout(&self.sndtimeo)),
            so::BINDTODEVICE if self.on_device.load(Ordering::Relaxed) => return Ok(b"lo\0".to_vec()),
            so::BINDTODEVICE => return Ok(Vec::new()),
            so::TYPE => self.kind,
            so::DOMAIN => u32::from(self.family),
            so::PROTOCOL => self.protocol,
            so::ERROR => self.take_error().map_or_else(|errno| u32::from(errno.0.get()), |()| 0),
            so::ACCEPTCONN => u32::from(listening),
            so::SNDBUF => self.sndbuf.load(Ordering::Relaxed) as u32,
            so::RCVBUF => self.rcvbuf.load(Ordering::Relaxed) as u32,
            so::RCVLOWAT => self.rcvlowat.load(Ordering::Relaxed) as u32,
            so::SNDLOWAT => 1,
            so::PRIORITY => self.words[0].load(Ordering::Relaxed),
            so::MARK => self.words[1].load(Ordering::Relaxed),
            so::BUSY_POLL => self.words[2].load(Ordering::Relaxed),
            so::BSDCOMPAT | so::ZEROCOPY => 0,
            so::LOCK_FILTER => u32::from(self.filter.is_locked()),
            so::PEEK_OFF if self.family == af::NETLINK => return Err(Errno::EOPNOTSUPP),
            so::PEEK_OFF => self.peek.get() as u32,
            so::INCOMING_CPU => self.incoming_cpu.load(Ordering::Relaxed) as u32,
            so::COOKIE if room < 8 => return Err(Errno::EINVAL),
            so::COOKIE => return Ok(self.ino().to_ne_bytes().to_vec()),
            so::PEERGROUPS => return Err(Errno::ENODATA),
            so::MAX_PACING_RATE if room >= 8 => return Ok(self.pacing.load(Ordering::Relaxed).to_ne_bytes().to_vec()),
            so::MAX_PACING_RATE => self.pacing.load(Ordering::Relaxed).min(u32::MAX.into()) as u32,
            so::TIMESTAMPING => return Ok([self.stamping.load(Ordering::Relaxed), 0].as_bytes().to_vec()),
            so::TXTIME => return Ok(self.txtime.lock().as_bytes().to_vec()),
            so::BPF_EXTENSIONS => bpf::AD_MAX,
            _ if self.lacks(name) => return Err(Errno::EOPNOTSUPP),
            _ if name < 64 && FLAGS & (1 << name) != 0 => u32::from(self.flag(name)),
            _ => return Err(Errno::ENOPROTOOPT),
        };
        Ok(number.to_ne_bytes().to_vec())
    }
}

/// The integer most options are. EINVAL when the value is shorter.
pub fn int(value: &[u8]) -> Result<i32> {
    value.get(..4).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes).ok_or(Errno::EINVAL)
}

/// Stores a `struct timeval`, rounded up to whole ticks: zero is no limit, EDOM for microseconds out of range.
fn set_timeout(to: &AtomicU64, value: &[u8]) -> Result<()> {
    let (time, _) = <[i64; 2]>::read_from_prefix(value).map_err(|_| Errno::EINVAL)?;
    let [seconds, micros] = time;
    if !(0..1_000_000).contains(&micros) {
        return Err(Errno::EDOM);
    }
    let nanos = match seconds {
        ..0 => 0,
        0 if micros == 0 => FOREVER,
        _ => (seconds as u64).saturating_mul(1_000_000_000).saturating_add((micros as u64 * 1000).next_multiple_of(COARSE)),
    };
    to.store(nanos, Ordering::Relaxed);
    Ok(())
}

fn get_timeout(from: &AtomicU64) -> Vec<u8> {
    let nanos = from.load(Ordering::Relaxed);
    let time = if nanos == FOREVER { [0, 0] } else { [nanos / 1_000_000_000, nanos % 1_000_000_000 / 1000] };
    time.as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user() -> Cred {
        Cred::of_user(1000, 1000, Vec::new())
    }

    #[test]
    fn options_are_kept_checked_and_given_back() {
        let socket = Common::new(af::INET, sock::STREAM, 6);
        let get = |name| socket.get_option(name, false, 4).and_then(|value| int(&value));
        assert_eq!(get(so::TYPE), Ok(1));
        assert_eq!(get(so::KEEPALIVE), Ok(0));
        socket.set_option(&user(), so::KEEPALIVE, &5i32.to_ne_bytes()).unwrap();
        assert_eq!(get(so::KEEPALIVE), Ok(1));
        socket.set_option(&user(), so::SNDBUF, &10_000i32.to_ne_bytes()).unwrap();
        assert_eq!(get(so::SNDBUF), Ok(20_000));
        socket.set_option(&user(), so::RCVBUF, &1i32.to_ne_bytes()).unwrap();
        assert_eq!(get(so::RCVBUF), Ok(2304));
        assert_eq!(socket.set_option(&user(), so::RCVBUFFORCE, &1i32.to_ne_bytes()), Err(Errno::EPERM));
        assert_eq!(socket.set_option(&user(), so::TYPE, &1i32.to_ne_bytes()), Err(Errno::ENOPROTOOPT));
        assert_eq!(socket.set_option(&user(), so::KEEPALIVE, &[1, 0]), Err(Errno::EINVAL));
    }

    #[test]
    fn timeouts_are_timevals() {
        let socket = Common::new(af::INET, sock::STREAM, 6);
        assert_eq!(socket.wait_limit(false), None);
        let set = |seconds: i64, micros: i64| socket.set_option(&user(), so::RCVTIMEO, [seconds, micros].as_bytes());
        set(1, 500_000).unwrap();
        assert_eq!(socket.wait_limit(false), Some(1_500_000_000));
        assert_eq!(socket.get_option(so::RCVTIMEO, false, 16).unwrap(), [1i64, 500_000].as_bytes());
        set(0, 4001).unwrap();
        assert_eq!(socket.wait_limit(false), Some(8_000_000));
        assert_eq!(set(0, 1_000_000), Err(Errno::EDOM));
        set(0, 0).unwrap();
        assert_eq!(socket.wait_limit(false), None);
    }

    #[test]
    fn an_error_is_reported_once() {
        let socket = Common::new(af::INET, sock::STREAM, 6);
        socket.set_error(Errno::ECONNREFUSED);
        assert_eq!(socket.take_error(), Err(Errno::ECONNREFUSED));
        assert_eq!(socket.take_error(), Ok(()));
    }
}
