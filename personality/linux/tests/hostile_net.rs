//! Messages, addresses, options and filters that lie, on the sockets of a kernel on the model machine: whatever comes of them, it is a
//! result.

use janua_platform_model::program::{DATA, Program};
use janua_platform_model::{Outcome, Settings};

mod common;
use common::random;

type Numbers<'a> = &'a mut dyn FnMut(u64) -> u64;

mod nr {
    pub const RT_SIGACTION: usize = 13;
    pub const SOCKET: usize = 41;
    pub const CONNECT: usize = 42;
    pub const SENDTO: usize = 44;
    pub const RECVFROM: usize = 45;
    pub const SENDMSG: usize = 46;
    pub const RECVMSG: usize = 47;
    pub const SHUTDOWN: usize = 48;
    pub const BIND: usize = 49;
    pub const LISTEN: usize = 50;
    pub const GETSOCKNAME: usize = 51;
    pub const GETPEERNAME: usize = 52;
    pub const SOCKETPAIR: usize = 53;
    pub const SETSOCKOPT: usize = 54;
    pub const GETSOCKOPT: usize = 55;
    pub const EXIT_GROUP: usize = 231;
    pub const ACCEPT4: usize = 288;
    pub const RECVMMSG: usize = 299;
    pub const SENDMMSG: usize = 307;
}

/// Where a program keeps its messages: bytes, a header, its parts, its control messages, an address.
const BYTES: u64 = DATA;
const HEADER: u64 = DATA + 0x4000;
const PARTS: u64 = DATA + 0x5000;
const CONTROL: u64 = DATA + 0x6000;
const ADDRESS: u64 = DATA + 0x7000;
const LEN: u64 = DATA + 0x7800;
/// The last bytes there are.
const EDGE: u64 = DATA + (1 << 20);

const NONBLOCK: u64 = 0x800;
const DONTWAIT: u64 = 0x40;

/// Family, kind and protocol of the sockets from descriptor 5 on; 3 and 4 are a pair.
const SOCKETS: [[u64; 3]; 10] =
    [[16, 3, 0], [16, 3, 4], [16, 2, 15], [2, 2, 0], [10, 2, 0], [2, 1, 0], [10, 1, 0], [1, 1, 0], [1, 2, 0], [1, 5, 0]];

fn put(mut program: Program, at: u64, bytes: &[u8]) -> Program {
    for (index, part) in bytes.chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        program = program.store_at(at + 8 * index as u64, u64::from_le_bytes(word));
    }
    program
}

/// A length that may be true of `size` bytes, or not.
fn length(next: Numbers<'_>, size: u64) -> u64 {
    match next(8) {
        0..=3 => size,
        4 => size.wrapping_add(next(9)).wrapping_sub(4),
        5 => next(2 * size + 2),
        6 => [0, 1, 15, 16, 17, 0x7fff_ffff, 0xffff_ffff, u64::MAX][next(8) as usize],
        _ => 1 << next(64),
    }
}

fn descriptor(next: Numbers<'_>) -> u64 {
    if next(20) == 0 { next(40) } else { 3 + next(2 + SOCKETS.len() as u64 + 2) }
}

fn noise(next: Numbers<'_>, most: u64) -> Vec<u8> {
    (0..next(most + 1)).map(|_| if next(2) == 0 { next(4) as u8 } else { next(256) as u8 }).collect()
}

/// A `struct sockaddr` and its length.
fn address(next: Numbers<'_>) -> (Vec<u8>, u64) {
    let family = [0u16, 1, 1, 2, 2, 10, 10, 16, 17, 99][next(10) as usize];
    let mut bytes = family.to_le_bytes().to_vec();
    match family {
        1 => match next(4) {
            0 => bytes.extend(b"/tmp/s\0rest"),
            1 => bytes.extend(b"\0abstract"),
            2 => bytes.extend(vec![b'a'; next(110) as usize]),
            _ => {}
        },
        2 => {
            bytes.extend([0x01, next(3) as u8]);
            bytes.extend([[127, 0, 0, 1], [0; 4], [255; 4], [224, 0, 0, 1], [10, 0, 0, 1]][next(5) as usize]);
            bytes.extend([0; 8]);
        }
        10 => {
            bytes.extend([0x01, next(3) as u8, 0, 0, 0, 0]);
            let mut ip = [0u8; 16];
            match next(5) {
                0 => ip[15] = 1,
                1 => ip[..2].copy_from_slice(&[0xff, next(256) as u8]),
                2 => ip[10..].copy_from_slice(&[0xff, 0xff, 127, 0, 0, 1]),
                3 => ip[..2].copy_from_slice(&[0xfe, 0x80]),
                _ => {}
            }
            bytes.extend(ip);
            bytes.extend((next(3) as u32).to_le_bytes());
        }
        16 => {
            bytes.extend([0, 0]);
            bytes.extend((next(4) as u32).to_le_bytes());
            bytes.extend((1u32 << next(32)).to_le_bytes());
        }
        _ => bytes.extend(noise(next, 30)),
    }
    let len = length(next, bytes.len() as u64);
    (bytes, len)
}

/// A netlink request, its attributes nested or cut short.
fn netlink(next: Numbers<'_>) -> Vec<u8> {
    let mut all = Vec::new();
    for _ in 0..1 + next(3) {
        // Of the routes' protocol, of the sockets', of control.
        let kind = [16 + next(110), 18, 20, 22, 26, next(16)][next(6) as usize] as u16;
        let mut message = vec![0; 4];
        message.extend(kind.to_le_bytes());
        message.extend(([0x301u16, 1, 5, 0x305, 0xffff][next(5) as usize]).to_le_bytes());
        message.extend([next(256) as u8; 8]);
        let fixed = [0, 1, 4, 8, 12, 16, 20, 56, 72][next(9) as usize];
        message.extend((0..fixed).map(|_| [0, 0, 0, 1, 2, 10, 6, 255][next(8) as usize]));
        for _ in 0..next(5) {
            let value = noise(next, 40);
            let len = length(next, value.len() as u64 + 4) as u16;
            message.extend(len.to_le_bytes());
            message.extend((next(64) as u16 | [0, 0x8000, 0x4000][next(3) as usize]).to_le_bytes());
            message.extend(value);
            if next(8) > 0 {
                message.resize(message.len().next_multiple_of(4), 0);
            }
        }
        let len = length(next, message.len() as u64) as u32;
        message[..4].copy_from_slice(&len.to_le_bytes());
        all.extend(message);
    }
    all
}

/// Control messages: of levels and kinds there are, with lengths that may lie.
fn control(next: Numbers<'_>) -> Vec<u8> {
    let mut all = Vec::new();
    for _ in 0..next(4) {
        let data = match next(4) {
            // Descriptors; who one is; an interface and an address; anything.
            0 => (0..next(5)).flat_map(|_| (next(20) as u32).to_le_bytes()).collect(),
            1 => [2u32, 0, 0].iter().flat_map(|word| word.to_le_bytes()).collect(),
            2 => [next(3) as u32, 0x0100_007f, 0x0100_007f].iter().flat_map(|word| word.to_le_bytes()).collect(),
            _ => noise(next, 40),
        };
        all.extend(length(next, data.len() as u64 + 16).to_le_bytes());
        let (level, kind) =
            [(1, 1), (1, 2), (0, 8), (0, next(40)), (41, 50), (41, next(80)), (17, 103), (1, next(80))][next(8) as usize];
        all.extend((level as u32).to_le_bytes());
        all.extend((kind as u32).to_le_bytes());
        all.extend(data);
        all.resize(all.len().next_multiple_of(8), 0);
    }
    all
}

/// A classic BPF program.
fn filter(next: Numbers<'_>) -> Vec<u8> {
    const CODES: [u16; 24] = [
        0x00, 0x01, 0x02, 0x03, 0x04, 0x06, 0x07, 0x15, 0x16, 0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0x60, 0x61, 0x80, 0x87, 0xb1,
        0x05, 0x25, 0x34, 0x94,
    ];
    const WORDS: [u32; 11] = [0, 1, 4, 15, 16, 31, 32, 0xffff_ffff, 0xffff_f000, 0xfff0_0000, 0x7fff_ffff];
    let count = 1 + next(12);
    let mut all = Vec::new();
    for index in 0..count {
        let last = index + 1 == count && next(8) > 0;
        let code = if last {
            [0x06, 0x16][next(2) as usize]
        } else {
            CODES[next(24) as usize] | ((next(10) == 0) as u16 * next(256) as u16)
        };
        all.extend(code.to_le_bytes());
        all.extend([next(count) as u8, next(count) as u8]);
        let word = if next(2) == 0 { WORDS[next(11) as usize].wrapping_add(next(64) as u32) } else { next(count) as u32 };
        all.extend(word.to_le_bytes());
    }
    all
}

/// Lays a `struct msghdr` down with all that belongs to it.
fn message(mut program: Program, next: Numbers<'_>, kernels: bool) -> Program {
    let (name, name_len) = address(next);
    let (control, bytes) = (control(next), if kernels { netlink(next) } else { noise(next, 80) });
    program = put(put(put(program, ADDRESS, &name), CONTROL, &control), BYTES, &bytes);
    let count = next(4);
    for part in 0..count {
        let at = [BYTES, BYTES + next(40), EDGE - next(20), 0, u64::MAX][[0, 0, 1, 2, next(5)][next(5) as usize] as usize];
        let len = length(next, bytes.len() as u64);
        program = program.store_at(PARTS + 16 * part, at).store_at(PARTS + 16 * part + 8, len);
    }
    let pick = |next: Numbers<'_>, at: u64| if next(6) == 0 { [0, EDGE - 4, EDGE, u64::MAX][next(4) as usize] } else { at };
    let words = [
        if next(2) == 0 { 0 } else { pick(next, ADDRESS) },
        name_len & 0xffff_ffff,
        pick(next, PARTS),
        if next(10) == 0 { length(next, count) } else { count },
        if next(3) == 0 { 0 } else { pick(next, CONTROL) },
        length(next, control.len() as u64),
        next(3),
    ];
    for (index, word) in words.into_iter().enumerate() {
        // A second one behind it, for those who send several.
        program = program.store_at(HEADER + 8 * index as u64, word).store_at(HEADER + 64 + 8 * index as u64, word);
    }
    program
}

fn step(program: Program, next: Numbers<'_>) -> Program {
    let fd = descriptor(next);
    let flags = DONTWAIT | if next(4) == 0 { 1 << next(32) } else { 0 };
    match next(13) {
        0..=2 => {
            let kernels = fd < 8 && next(4) > 0;
            message(program, next, kernels).call(nr::SENDMSG, &[fd, HEADER, flags])
        }
        3 => message(program, next, false).call(nr::RECVMSG, &[fd, HEADER, flags]),
        4 => message(program, next, false).call(nr::SENDMMSG, &[fd, HEADER, 1 + next(3), flags]),
        5 => message(program, next, false).call(nr::RECVMMSG, &[fd, HEADER, 1 + next(3), flags, 0]),
        6 => {
            let (fd, bytes) = (5 + next(3), netlink(next));
            let len = length(next, bytes.len() as u64).min(0x3000);
            let program = put(program, BYTES, &bytes).call(nr::SENDTO, &[fd, BYTES, len, flags, 0, 0]);
            program.call(nr::RECVFROM, &[fd, BYTES, next(0x3000), flags, 0, 0])
        }
        7 => {
            let (name, len) = address(next);
            let call = [nr::BIND, nr::CONNECT][next(2) as usize];
            put(program, ADDRESS, &name).call(call, &[fd, ADDRESS, len])
        }
        8 => {
            let (name, len) = address(next);
            let size = length(next, 64);
            put(program, ADDRESS, &name).call(nr::SENDTO, &[fd, BYTES, size, flags, ADDRESS, len])
        }
        9 => {
            let call = [nr::GETSOCKNAME, nr::GETPEERNAME, nr::ACCEPT4][next(3) as usize];
            program.store_at(LEN, length(next, 128)).call(call, &[fd, [ADDRESS, EDGE - 8][next(2) as usize], LEN, NONBLOCK])
        }
        10 => {
            let code = filter(next);
            let count = length(next, code.len() as u64 / 8) & 0xffff;
            let program = put(program, BYTES, &code).store_at(ADDRESS, count).store_at(ADDRESS + 8, BYTES);
            let size = if next(8) == 0 { length(next, 16) } else { 16 };
            program.call(nr::SETSOCKOPT, &[[3, 4, fd][next(3) as usize], 1, 26, ADDRESS, size])
        }
        11 => {
            let level = [0, 1, 6, 17, 41, 270, next(300)][next(7) as usize];
            let (name, value) = (next(80), noise(next, 48));
            let program = put(program, BYTES, &value);
            let size = length(next, value.len() as u64);
            if next(2) == 0 {
                program.call(nr::SETSOCKOPT, &[fd, level, name, BYTES, size])
            } else {
                program.store_at(LEN, size).call(nr::GETSOCKOPT, &[fd, level, name, BYTES, LEN])
            }
        }
        _ if next(2) == 0 => program.call(nr::LISTEN, &[fd, next(4)]),
        _ if next(8) == 0 => program.call(nr::SHUTDOWN, &[fd, next(3)]),
        _ => program.call(nr::RECVFROM, &[fd, BYTES, length(next, 100), flags, 0, 0]),
    }
}

/// The sockets, then random steps.
fn program(next: Numbers<'_>, steps: usize) -> Program {
    // Nobody ends by SIGPIPE.
    let mut program = Program::new().store_at(ADDRESS, 1).call(nr::RT_SIGACTION, &[13, ADDRESS, 0, 8]);
    program = program.call(nr::SOCKETPAIR, &[1, [2, 5, 1][next(3) as usize] | NONBLOCK, 0, LEN]);
    for [family, kind, protocol] in SOCKETS {
        program = program.call(nr::SOCKET, &[family, kind | NONBLOCK, protocol]);
    }
    // UDP to oneself.
    let to_self = [2u8, 0, 0x01, 1, 127, 0, 0, 1];
    program = put(program, ADDRESS, &to_self).call(nr::BIND, &[8, ADDRESS, 16]).call(nr::CONNECT, &[8, ADDRESS, 16]);
    for _ in 0..steps {
        program = step(program, next);
    }
    program.call(nr::EXIT_GROUP, &[0])
}

#[test]
fn sockets_return_whatever_they_are_asked() {
    for stream in 0..random::rounds(250) {
        let mut numbers = random::numbers(random::given().unwrap_or(0), stream);
        let program = program(&mut numbers, 40);
        let model = common::boot(Settings { seed: stream + 1, frames: 4096, ..Settings::default() }, &[("program", program)]);
        let outcome = model.run_for(40_000);
        assert_eq!(outcome, Outcome::Off(0), "stream {stream}: {}", model.written());
    }
}

/// What the test above is worth: the sockets are there, messages come through.
#[test]
fn sockets_do_what_they_should() {
    let pair = put(Program::new(), BYTES, b"message").call(nr::SOCKETPAIR, &[1, 2 | NONBLOCK, 0, LEN]);
    let sent = pair.call(nr::SENDTO, &[3, BYTES, 7, 0, 0, 0]).expect(7, 1);
    let mut all = sent.call(nr::RECVFROM, &[4, BYTES, 100, 0, 0, 0]).expect(7, 2);
    for (index, [family, kind, protocol]) in SOCKETS.into_iter().enumerate() {
        all = all.call(nr::SOCKET, &[family, kind | NONBLOCK, protocol]).expect(5 + index as i32, 10 + index as u64);
    }
    // All links there are: RTM_GETLINK with NLM_F_REQUEST and NLM_F_DUMP.
    let mut links = vec![20, 0, 0, 0, 18, 0, 1, 3];
    links.resize(20, 0);
    all = put(all, BYTES, &links).call(nr::SENDTO, &[5, BYTES, 20, 0, 0, 0]).expect(20, 30);
    all = all.call(nr::RECVFROM, &[5, BYTES, 4096, 0, 0, 0]).jump_if(-11, "nothing");
    let all = all.call(nr::EXIT_GROUP, &[0]).label("nothing").call(nr::EXIT_GROUP, &[31]);
    let model = common::boot(Settings::default(), &[("program", all)]);
    assert_eq!(model.run(), Outcome::Off(0), "{}", model.written());
}
