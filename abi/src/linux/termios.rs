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

impl Termios {
    /// These settings where those of `old` are locked: each bit that `locks` has set, and each character whose place in it is not 0,
    /// stays (TIOCSLCKTRMIOS).
    #[must_use]
    pub fn but_locked(&self, locks: &Termios, old: &Termios) -> Termios {
        let flags = |new: u32, locked: u32, old: u32| new & !locked | old & locked;
        let mut cc = self.cc;
        for ((new, locked), old) in cc.iter_mut().zip(locks.cc).zip(old.cc) {
            *new = if locked != 0 { old } else { *new };
        }
        Termios {
            iflag: flags(self.iflag, locks.iflag, old.iflag),
            oflag: flags(self.oflag, locks.oflag, old.oflag),
            cflag: flags(self.cflag, locks.cflag, old.cflag),
            lflag: flags(self.lflag, locks.lflag, old.lflag),
            line: if locks.line != 0 { old.line } else { self.line },
            cc,
        }
    }
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

/// `struct termios2`: the settings with the speeds in bits per second (TCGETS2).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Termios2 {
    pub termios: Termios,
    pub input_speed: u32,
    pub output_speed: u32,
}

const _: () = assert!(size_of::<Termios2>() == 44);

impl Default for Termios2 {
    fn default() -> Termios2 {
        Termios2 { termios: Termios::default(), input_speed: 0, output_speed: 0 }.with_speeds()
    }
}

impl Termios2 {
    /// The settings with the speeds their control flags name; those of [`cflag::BOTHER`] are the given ones.
    #[must_use]
    pub fn with_speeds(self) -> Termios2 {
        let speed = |code: u32, given: u32| match code {
            cflag::BOTHER => given,
            _ if code & cflag::BOTHER != 0 => SPEEDS[(code & 0xf) as usize + 15],
            _ => SPEEDS[code as usize],
        };
        let output_speed = speed(self.termios.cflag & cflag::CBAUD, self.output_speed);
        let input_speed = match self.termios.cflag >> cflag::IBSHIFT & cflag::CBAUD {
            0 => output_speed,
            code => speed(code, self.input_speed),
        };
        Termios2 { input_speed, output_speed, ..self }
    }
}

/// Bits per second, by the code in the control flags; those above 15 have [`cflag::BOTHER`] for their fifth bit.
const SPEEDS: [u32; 31] = [
    0, 50, 75, 110, 134, 150, 200, 300, 600, 1200, 1800, 2400, 4800, 9600, 19200, 38400, 57600, 115_200, 230_400, 460_800,
    500_000, 576_000, 921_600, 1_000_000, 1_152_000, 1_500_000, 2_000_000, 2_500_000, 3_000_000, 3_500_000, 4_000_000,
];

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

/// Control flags.
pub mod cflag {
    /// The code of the output's speed.
    pub const CBAUD: u32 = 0o10017;
    /// The code of a speed that is given as a number.
    pub const BOTHER: u32 = 0o10000;
    pub const CSIZE: u32 = 0o60;
    pub const CS8: u32 = 0o60;
    pub const CREAD: u32 = 0o200;
    pub const PARENB: u32 = 0o400;
    pub const CLOCAL: u32 = 0o4000;
    /// Where the code of the input's speed begins; 0 there stands for the output's.
    pub const IBSHIFT: u32 = 16;
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
            cflag: 0o17 | cflag::CS8 | cflag::CREAD,
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
    pub const TIOCGSOFTCAR: u32 = 0x5419;
    pub const TIOCSSOFTCAR: u32 = 0x541a;
    pub const FIONREAD: u32 = 0x541b;
    pub const TIOCPKT: u32 = 0x5420;
    pub const TIOCNOTTY: u32 = 0x5422;
    pub const TIOCSETD: u32 = 0x5423;
    pub const TIOCGETD: u32 = 0x5424;
    pub const TCSBRKP: u32 = 0x5425;
    pub const TIOCSBRK: u32 = 0x5427;
    pub const TIOCCBRK: u32 = 0x5428;
    pub const TIOCGSID: u32 = 0x5429;
    pub const TIOCGPTN: u32 = 0x8004_5430;
    pub const TIOCSPTLCK: u32 = 0x4004_5431;
    pub const TIOCGPKT: u32 = 0x8004_5438;
    pub const TIOCGPTLCK: u32 = 0x8004_5439;
    pub const TIOCGPTPEER: u32 = 0x5441;
    pub const TCGETS2: u32 = 0x802c_542a;
    pub const TCSETS2: u32 = 0x402c_542b;
    pub const TCSETSW2: u32 = 0x402c_542c;
    pub const TCSETSF2: u32 = 0x402c_542d;
    pub const TIOCGDEV: u32 = 0x8004_5432;
    pub const TIOCSIG: u32 = 0x4004_5436;
    pub const TIOCGEXCL: u32 = 0x8004_5440;
    pub const TIOCGLCKTRMIOS: u32 = 0x5456;
    pub const TIOCSLCKTRMIOS: u32 = 0x5457;
}
