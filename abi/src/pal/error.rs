//! Error numbers.

use core::num::NonZeroU16;

use crate::linux::Errno;

/// An error of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Error {
    NotImplemented = 1,
    NotSupported = 3,
    Invalid = 4,
    TooLong = 5,
    Denied = 6,
    BadHandle = 7,
    StreamExists = 8,
    StreamNotThere = 9,
    StreamIsFile = 10,
    StreamIsDir = 11,
    StreamIsDevice = 12,
    Interrupted = 13,
    Overflow = 14,
    BadAddress = 15,
    NoMemory = 16,
    TryAgain = 19,
    EndOfStream = 20,
    NotServer = 21,
    NotConnection = 22,
    ZeroSize = 23,
    ConnectionFailed = 24,
    AddressNotThere = 25,
}

/// What the interface's numbers are in the kernel's results: beyond all of Linux', whose own results the library translates too (a call cut short, a
/// number without a row).
const BASE: u16 = 2000;

const fn coded(number: u16) -> Errno {
    match NonZeroU16::new(number) {
        Some(number) => Errno(number),
        None => Errno::EINVAL,
    }
}

impl Error {
    /// The same as it goes into a result.
    pub const fn errno(self) -> Errno {
        coded(BASE + self as u16)
    }
}

/// An error of the kernel's objects as the interface's. Those that never reach a program, and what has been translated, stay.
pub fn errno(errno: Errno) -> Errno {
    const INTERNAL: u16 = 512;
    let error = match errno {
        Errno(number) if number.get() >= INTERNAL => return errno,
        Errno::EINTR => Error::Interrupted,
        Errno::ENOENT => Error::StreamNotThere,
        Errno::EBADF => Error::BadHandle,
        Errno::EAGAIN | Errno::ETIMEDOUT => Error::TryAgain,
        Errno::ENOMEM | Errno::ENOSPC | Errno::EMFILE | Errno::ENFILE => Error::NoMemory,
        Errno::EFAULT => Error::BadAddress,
        Errno::EEXIST | Errno::EADDRINUSE => Error::StreamExists,
        Errno::ENOTDIR => Error::StreamIsFile,
        Errno::EISDIR => Error::StreamIsDir,
        Errno::EINVAL => Error::Invalid,
        Errno::ENAMETOOLONG | Errno::E2BIG | Errno::EMSGSIZE => Error::TooLong,
        Errno::EPIPE => Error::EndOfStream,
        Errno::ENOTCONN | Errno::EDESTADDRREQ => Error::NotConnection,
        Errno::ECONNREFUSED | Errno::ECONNRESET | Errno::ECONNABORTED | Errno::ENETUNREACH | Errno::EHOSTUNREACH => {
            Error::ConnectionFailed
        }
        Errno::EADDRNOTAVAIL => Error::AddressNotThere,
        Errno::ENOSYS | Errno::EOPNOTSUPP | Errno::ENODEV => Error::NotSupported,
        _ => Error::Denied,
    };
    error.errno()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_translated_once() {
        let bad = errno(Errno::EBADF);
        assert_eq!(bad.as_result(), -2007);
        assert_eq!(errno(bad), bad);
        assert_eq!(errno(Errno::ERESTARTSYS), Errno::ERESTARTSYS);
        assert_eq!(errno(Errno::EXDEV), Error::Denied.errno());
    }
}
