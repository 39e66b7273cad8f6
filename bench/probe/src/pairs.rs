//! Two that wait for one another in turn: one operation is there and back.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::apart::{apart, other_side, this_side};
use crate::calls::Fd;
use crate::isolate::wait;
use crate::meter::Meter;
use crate::{Samples, Skip, sys};

/// Moves one byte; `false` at the end of the stream or on an error.
fn byte<const NR: i64>(fd: i32) -> bool {
    let mut byte = 1_u8;
    // SAFETY: one byte of a local.
    unsafe { sys::call::<NR>([fd as usize, (&raw mut byte) as usize, 1, 0, 0, 0]) == 1 }
}

const READ: i64 = libc::SYS_read;
const WRITE: i64 = libc::SYS_write;

/// Measures round trips with a child process that echoes until its input ends. `ours` and `theirs` are (in, out).
fn echo(meter: &Meter, ours: (Fd, Fd), theirs: (Fd, Fd)) -> Samples {
    // SAFETY: one thread; the child makes raw calls only.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(Skip::last("fork"));
    }
    if child == 0 {
        drop(ours);
        other_side();
        while byte::<READ>(theirs.0.0) && byte::<WRITE>(theirs.1.0) {}
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    drop(theirs);
    let samples = this_side().and_then(|()| {
        meter.each(|| {
            let there_and_back = byte::<WRITE>(ours.1.0) && byte::<READ>(ours.0.0);
            there_and_back.then_some(()).ok_or_else(|| Skip("the other side went away".into()))
        })
    });
    drop(ours);
    wait(child)?;
    samples
}

/// Row `pipe`.
pub fn pipe(meter: &Meter) -> Samples {
    let pair = || {
        let mut ends = [0; 2];
        // SAFETY: room for two descriptors.
        if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
            return Err(Skip::last("pipe"));
        }
        Ok((Fd(ends[0]), Fd(ends[1])))
    };
    let (there, back) = (pair()?, pair()?);
    echo(meter, (back.0, there.1), (there.0, back.1))
}

/// Row `unix`.
pub fn unix(meter: &Meter) -> Samples {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors; duplicates of our own.
    unsafe {
        if libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, ends.as_mut_ptr()) != 0 {
            return Err(Skip::last("socketpair"));
        }
        let both = |fd| Ok::<_, Skip>((Fd(fd), Fd::new("dup", libc::dup(fd))?));
        echo(meter, both(ends[0])?, both(ends[1])?)
    }
}

/// Row `tcp`: the server is the child; Nagle's algorithm is off at both ends.
pub fn tcp(meter: &Meter) -> Samples {
    let described = |error: std::io::Error| Skip(format!("loopback: {error}"));
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(described)?;
    let address = listener.local_addr().map_err(described)?;
    // SAFETY: one thread; the child uses nothing its parent locked.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(Skip::last("fork"));
    }
    if child == 0 {
        other_side();
        let serve = || -> std::io::Result<()> {
            let (mut stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            let mut byte = [0];
            while stream.read(&mut byte)? == 1 {
                stream.write_all(&byte)?;
            }
            Ok(())
        };
        // An error closes the connection, which the other side reports.
        let _ = serve();
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    drop(listener);
    let connect = || -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    let samples = connect().map_err(described).and_then(|mut stream| {
        let mut byte = [1];
        this_side()?;
        meter.each(|| stream.write_all(&byte).and_then(|()| stream.read_exact(&mut byte)).map_err(described))
    });
    if samples.is_err() {
        // SAFETY: the child may still wait for a connection.
        unsafe { libc::kill(child, libc::SIGKILL) };
    }
    wait(child)?;
    samples
}

/// Whose turn it is: `OURS`, `THEIRS`, or `END`.
const OURS: u32 = 0;
const THEIRS: u32 = 1;
const END: u32 = 2;

/// Hands the turn over and wakes who waits for it.
fn hand(turn: &AtomicU32, to: u32, private: usize) {
    turn.store(to, Ordering::SeqCst);
    // SAFETY: the word lives as long as both sides.
    unsafe { sys::call::<{ libc::SYS_futex }>([turn.as_ptr() as usize, libc::FUTEX_WAKE as usize | private, 1, 0, 0, 0]) };
}

/// Waits, in the kernel, until the turn is not `other` any more.
fn while_turn(turn: &AtomicU32, other: u32, private: usize) -> u32 {
    loop {
        let now = turn.load(Ordering::SeqCst);
        if now != other {
            return now;
        }
        let operation = libc::FUTEX_WAIT as usize | private;
        // SAFETY: the word lives as long as both sides; no timeout.
        unsafe { sys::call::<{ libc::SYS_futex }>([turn.as_ptr() as usize, operation, other as usize, 0, 0, 0]) };
    }
}

fn answer(turn: &AtomicU32, private: usize) {
    while while_turn(turn, OURS, private) == THEIRS {
        hand(turn, OURS, private);
    }
}

fn ask(meter: &Meter, turn: &AtomicU32, private: usize) -> Samples {
    let samples = this_side().and_then(|()| {
        meter.each(|| {
            hand(turn, THEIRS, private);
            while_turn(turn, THEIRS, private);
            Ok(())
        })
    });
    hand(turn, END, private);
    samples
}

/// Row `futex-thr`.
pub fn futex_threads(meter: &Meter) -> Samples {
    let turn = AtomicU32::new(OURS);
    let private = libc::FUTEX_PRIVATE_FLAG as usize;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            other_side();
            answer(&turn, private);
        });
        ask(meter, &turn, private)
    })
}

/// A word of memory that is shared with children: `OURS`.
fn shared_turn() -> Result<&'static AtomicU32, Skip> {
    // SAFETY: a new mapping, shared with the child, zeroed.
    let word = unsafe {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        libc::mmap(ptr::null_mut(), 4096, protection, flags, -1, 0)
    };
    if word == libc::MAP_FAILED {
        return Err(Skip::last("mmap"));
    }
    // SAFETY: mapped above, aligned, and never unmapped: one page a row.
    Ok(unsafe { &*word.cast::<AtomicU32>() })
}

/// Looks at the turn until it is no longer `other`.
fn look_while_turn(turn: &AtomicU32, other: u32) -> u32 {
    loop {
        let now = turn.load(Ordering::Acquire);
        if now != other {
            return now;
        }
        std::hint::spin_loop();
    }
}

/// Row `handover`: two processes on two processors that look at one word.
pub fn handover(meter: &Meter) -> Samples {
    let turn = shared_turn()?;
    let ask = || {
        // SAFETY: one thread; the child touches nothing but the word.
        let child = unsafe { libc::fork() };
        if child < 0 {
            return Err(Skip::last("fork"));
        }
        if child == 0 {
            other_side();
            while look_while_turn(turn, OURS) == THEIRS {
                turn.store(OURS, Ordering::Release);
            }
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) };
        }
        let samples = this_side().and_then(|()| {
            meter.each(|| {
                turn.store(THEIRS, Ordering::Release);
                look_while_turn(turn, THEIRS);
                Ok(())
            })
        });
        turn.store(END, Ordering::Release);
        wait(child)?;
        samples
    };
    apart(ask)
}

/// Row `futex-proc`.
pub fn futex_processes(meter: &Meter) -> Samples {
    let turn = shared_turn()?;
    // SAFETY: one thread; the child makes raw calls only.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(Skip::last("fork"));
    }
    if child == 0 {
        other_side();
        answer(turn, 0);
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    let samples = ask(meter, turn, 0);
    wait(child)?;
    samples
}

/// Row `pipe-2`.
pub fn pipe_apart(meter: &Meter) -> Samples {
    apart(|| pipe(meter))
}

/// Row `tcp-2`.
pub fn tcp_apart(meter: &Meter) -> Samples {
    apart(|| tcp(meter))
}

/// Row `futex-thr-2`.
pub fn futex_threads_apart(meter: &Meter) -> Samples {
    apart(|| futex_threads(meter))
}

/// Row `futex-proc-2`.
pub fn futex_processes_apart(meter: &Meter) -> Samples {
    apart(|| futex_processes(meter))
}
