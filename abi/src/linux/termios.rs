//! Terminals (ioctl_tty(2), termios(3)).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct termios` as the kernel has it (TCGETS).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Termios {
    pub iflag: u32,
    pub oflag: u32,
    pub cflag: u32,
    pub lflag: u32,
    pub line: u8,
    pub cc: [u8; 19],
}

const _: () = assert!(size_of::<Termios>() == 36);

/// `struct termio`: what System V had (TCGETA).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Termio {
    pub iflag: u16,
    pub oflag: u16,
    pub cflag: u16,
    pub lflag: u16,
    pub line: u8,
    pub cc: [u8; 8],
    pub pad: u8,
}

impl Termio {
    /// The part of settings it has room for.
    pub fn of(termios: &Termios) -> Termio {
        let mut cc = [0; 8];
        cc.copy_from_slice(&termios.cc[..8]);
        Termio {
            iflag: termios.iflag as u16,
            oflag: termios.oflag as u16,
            cflag: termios.cflag as u16,
            lflag: termios.lflag as u16,
            line: termios.line,
            cc,
            pad: 0,
        }
    }

    /// Settings with that part changed.
    pub fn apply(&self, old: &Termios) -> Termios {
        let low = |old: u32, new: u16| old & !0xffff | u32::from(new);
        let mut new = Termios {
            iflag: low(old.iflag, self.iflag),
            oflag: low(old.oflag, self.oflag),
            cflag: low(old.cflag, self.cflag),
            lflag: low(old.lflag, self.lflag),
            line: self.line,
            ..*old
        };
        new.cc[..8].copy_from_slice(&self.cc);
        new
    }
}

/// `struct winsize`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Winsize {
    pub rows: u16,
    pub cols: u16,
    pub xpixel: u16,
    pub ypixel: u16,
}

/// Input flags.
pub mod iflag {
    pub const ISTRIP: u32 = 0o40;
    pub const INLCR: u32 = 0o100;
    pub const IGNCR: u32 = 0o200;
    pub const ICRNL: u32 = 0o400;
    pub const IXON: u32 = 0o2000;
    pub const IXANY: u32 = 0o4000;
    pub const IMAXBEL: u32 = 0o20000;
    pub const IUTF8: u32 = 0o40000;
}

/// Output flags.
pub mod oflag {
    pub const OPOST: u32 = 0o1;
    pub const OLCUC: u32 = 0o2;
    pub const ONLCR: u32 = 0o4;
    pub const OCRNL: u32 = 0o10;
    pub const ONOCR: u32 = 0o20;
    pub const ONLRET: u32 = 0o40;
    pub const TABDLY: u32 = 0o14000;
    pub const XTABS: u32 = 0o14000;
}

/// Local flags.
pub mod lflag {
    pub const ISIG: u32 = 0o1;
    pub const ICANON: u32 = 0o2;
    pub const ECHO: u32 = 0o10;
    pub const ECHOE: u32 = 0o20;
    pub const ECHOK: u32 = 0o40;
    pub const ECHONL: u32 = 0o100;
    pub const NOFLSH: u32 = 0o200;
    pub const TOSTOP: u32 = 0o400;
    pub const ECHOCTL: u32 = 0o1000;
    pub const ECHOKE: u32 = 0o4000;
    pub const IEXTEN: u32 = 0o100000;
}

/// Indices of control characters.
pub mod cc {
    pub const VINTR: usize = 0;
    pub const VQUIT: usize = 1;
    pub const VERASE: usize = 2;
    pub const VKILL: usize = 3;
    pub const VEOF: usize = 4;
    pub const VTIME: usize = 5;
    pub const VMIN: usize = 6;
    pub const VSTART: usize = 8;
    pub const VSTOP: usize = 9;
    pub const VSUSP: usize = 10;
    pub const VEOL: usize = 11;
    pub const VREPRINT: usize = 12;
    pub const VWERASE: usize = 14;
    pub const VLNEXT: usize = 15;
    pub const VEOL2: usize = 16;
}

impl Default for Termios {
    /// What a terminal starts with (stty sane).
    fn default() -> Termios {
        Termios {
            iflag: iflag::ICRNL | iflag::IXON,
            oflag: oflag::OPOST | oflag::ONLCR,
            // B38400, CS8, CREAD.
            cflag: 0o277,
            lflag: lflag::ISIG
                | lflag::ICANON
                | lflag::ECHO
                | lflag::ECHOE
                | lflag::ECHOK
                | lflag::ECHOCTL
                | lflag::ECHOKE
                | lflag::IEXTEN,
            line: 0,
            cc: [3, 28, 127, 21, 4, 0, 1, 0, 17, 19, 26, 0, 18, 15, 23, 22, 0, 0, 0],
        }
    }
}

/// Requests of ioctl(2).
pub mod request {
    pub const TCGETS: u32 = 0x5401;
    pub const TCSETS: u32 = 0x5402;
    pub const TCSETSW: u32 = 0x5403;
    pub const TCSETSF: u32 = 0x5404;
    pub const TCGETA: u32 = 0x5405;
    pub const TCSETA: u32 = 0x5406;
    pub const TCSETAW: u32 = 0x5407;
    pub const TCSETAF: u32 = 0x5408;
    pub const TCSBRK: u32 = 0x5409;
    pub const TCXONC: u32 = 0x540a;
    pub const TCFLSH: u32 = 0x540b;
    pub const TIOCEXCL: u32 = 0x540c;
    pub const TIOCNXCL: u32 = 0x540d;
    pub const TIOCSCTTY: u32 = 0x540e;
    pub const TIOCGPGRP: u32 = 0x540f;
    pub const TIOCSPGRP: u32 = 0x5410;
    pub const TIOCOUTQ: u32 = 0x5411;
    pub const TIOCSTI: u32 = 0x5412;
    pub const TIOCGWINSZ: u32 = 0x5413;
    pub const TIOCSWINSZ: u32 = 0x5414;
    pub const FIONREAD: u32 = 0x541b;
    pub const TIOCPKT: u32 = 0x5420;
    pub const TIOCNOTTY: u32 = 0x5422;
    pub const TIOCGETD: u32 = 0x5424;
    pub const TCSBRKP: u32 = 0x5425;
    pub const TIOCGSID: u32 = 0x5429;
    pub const TIOCGPTN: u32 = 0x8004_5430;
    pub const TIOCSPTLCK: u32 = 0x4004_5431;
    pub const TIOCGPKT: u32 = 0x8004_5438;
    pub const TIOCGPTLCK: u32 = 0x8004_5439;
    pub const TIOCGPTPEER: u32 = 0x5441;
}
