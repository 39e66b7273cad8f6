//! Rows of `janua bench scale`: what an operation costs while many things exist beside it. Each curve has a row a point; the row's
//! name ends with the number of things ([`crate::Row::point`]).

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::mpsc::channel;

use crate::calls::{Fd, PAGE, map, touch, unmap};
use crate::files::Scratch;
use crate::isolate::wait;
use crate::meter::Meter;
use crate::process::fork_end;
use crate::{Group, Row, Samples, Skip};

/// One curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    /// A process among sleeping ones.
    Alive,
    /// Making many processes, each.
    Made,
    /// Ending many processes, each.
    Ended,
    /// A process when many are gone.
    Gone,
    Threads,
    Mappings,
    /// A fork of many mappings.
    Copied,
    Descriptors,
    /// A set of many descriptors that are waited for.
    Watched,
    Files,
    Sockets,
}

impl Curve {
    /// What is measured; N is the number of things.
    pub fn title(self) -> &'static str {
        match self {
            Curve::Alive => "fork, exit, wait with N processes asleep",
            Curve::Made => "making N processes that sleep, each",
            Curve::Ended => "killing and reaping N processes, each",
            Curve::Gone => "fork, exit, wait after N processes have gone",
            Curve::Threads => "create and join a thread with N threads asleep",
            Curve::Mappings => "mmap, touch and munmap of a page with N mappings",
            Curve::Copied => "fork, exit, wait of a process with N mappings",
            Curve::Descriptors => "open and close /dev/null with N descriptors open",
            Curve::Watched => "epoll_wait of N eventfds, one of them ready",
            Curve::Files => "create and unlink a file in a directory of N",
            Curve::Sockets => "connect, accept and close with N loopback connections",
        }
    }
}

const fn row(name: &'static str, title: &'static str, curve: Curve, run: fn(&Meter) -> Samples) -> Row {
    Row { name, title, group: Group::Scale(curve), cores: 1, host_only: false, run }
}

/// The rows of one curve: a literal for each point, because names are.
macro_rules! curve {
    ($curve:ident, $run:ident, $name:literal, $($point:literal)*) => {
        [$(row(concat!($name, "-", $point), concat!("N = ", $point), Curve::$curve, $run::<$point>)),*]
    };
}

/// Every row, curve by curve, points rising.
pub const ROWS: &[&[Row]] = &[
    &curve!(Alive, alive, "alive", 10 100 1000 4000 10000),
    &curve!(Made, made, "made", 10 100 1000 4000 10000),
    &curve!(Ended, ended, "ended", 10 100 1000 4000 10000),
    &curve!(Gone, gone, "gone", 10 100 1000 4000 10000),
    &curve!(Threads, threads, "threads", 10 100 1000 4000),
    &curve!(Mappings, mappings, "mappings", 10 100 1000 10000),
    &curve!(Copied, copied, "copied", 10 100 1000 10000),
    &curve!(Descriptors, descriptors, "descriptors", 10 100 1000 10000),
    &curve!(Watched, watched, "watched", 10 100 1000 10000),
    &curve!(Files, files, "files", 10 100 1000 10000),
    &curve!(Sockets, sockets, "sockets", 10 100 1000 4000),
];

/// Children that sleep; they end with it.
struct Crowd(Vec<libc::pid_t>);

impl Crowd {
    fn of(number: usize) -> Result<Crowd, Skip> {
        let mut crowd = Crowd(Vec::with_capacity(number));
        for _ in 0..number {
            // SAFETY: one thread; the child makes raw calls only.
            match unsafe { libc::fork() } {
                -1 => return Err(Skip::last("fork")),
                // SAFETY: calls without pointers; the first sees to it that nobody is left when the parent is killed.
                0 => unsafe {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    loop {
                        libc::pause();
                    }
                },
                child => crowd.0.push(child),
            }
        }
        Ok(crowd)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &self.0 {
            // SAFETY: a child of ours that nobody has waited for.
            unsafe { libc::kill(*child, libc::SIGKILL) };
        }
        for child in self.0.drain(..) {
            // A child that cannot be waited for is not there.
            let _ = wait(child);
        }
    }
}

fn alive<const N: usize>(meter: &Meter) -> Samples {
    let crowd = Crowd::of(N)?;
    let samples = meter.each(fork_end);
    drop(crowd);
    samples
}

fn made<const N: usize>(meter: &Meter) -> Samples {
    let mut crowd = None;
    meter.whole(N, || Crowd::of(N).map(|made| crowd = Some(made)))
}

fn ended<const N: usize>(meter: &Meter) -> Samples {
    let crowd = Crowd::of(N)?;
    meter.whole(N, || {
        drop(crowd);
        Ok(())
    })
}

fn gone<const N: usize>(meter: &Meter) -> Samples {
    drop(Crowd::of(N)?);
    meter.each(fork_end)
}

fn threads<const N: usize>(meter: &Meter) -> Samples {
    let spawn = |body: Box<dyn FnOnce() + Send>| {
        let started = std::thread::Builder::new().stack_size(64 * 1024).spawn(body);
        started.map_err(|error| Skip(format!("starting a thread: {error}")))
    };
    let mut asleep = Vec::with_capacity(N);
    for _ in 0..N {
        let (wake, sleep) = channel::<()>();
        // Wakes, and ends, when the sender is dropped.
        let sleeper: Box<dyn FnOnce() + Send> = Box::new(move || sleep.recv().unwrap_or_default());
        asleep.push((wake, spawn(sleeper)?));
    }
    let samples = meter.each(|| spawn(Box::new(|| ()))?.join().map_err(|_| Skip("the thread failed".into())));
    for (wake, thread) in asleep {
        drop(wake);
        thread.join().map_err(|_| Skip("a thread failed".into()))?;
    }
    samples
}

/// Mappings that cannot be merged, because neighbours' protections differ.
struct Striped(usize, usize);

impl Striped {
    fn of(number: usize) -> Result<Striped, Skip> {
        let striped = Striped(map(number * PAGE)?, number);
        for page in (0..number).step_by(2) {
            // SAFETY: a page of that mapping, which nothing points into.
            if unsafe { libc::mprotect((striped.0 + page * PAGE) as *mut _, PAGE, libc::PROT_READ) } != 0 {
                return Err(Skip::last("mprotect"));
            }
        }
        Ok(striped)
    }
}

impl Drop for Striped {
    fn drop(&mut self) {
        // What cannot be unmapped goes with the process.
        let _ = unmap(self.0, self.1 * PAGE);
    }
}

fn mappings<const N: usize>(meter: &Meter) -> Samples {
    let _others = Striped::of(N)?;
    meter.each(|| {
        let page = map(PAGE)?;
        touch(page);
        unmap(page, PAGE)
    })
}

fn copied<const N: usize>(meter: &Meter) -> Samples {
    let _copied = Striped::of(N)?;
    meter.each(fork_end)
}

/// Lets this process have `number` descriptors besides a few.
fn allow_descriptors(number: usize) -> Result<(), Skip> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let wanted = number as libc::rlim_t + 64;
    // SAFETY: the limit is a local.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        if limit.rlim_cur >= wanted {
            return Ok(());
        }
        limit.rlim_cur = wanted;
        limit.rlim_max = limit.rlim_max.max(wanted);
        if libc::setrlimit(libc::RLIMIT_NOFILE, &limit) != 0 {
            return Err(Skip(format!("{number} descriptors are more than the limit allows: {}", io::Error::last_os_error())));
        }
    }
    Ok(())
}

fn null() -> Result<File, Skip> {
    File::open("/dev/null").map_err(|error| Skip(format!("/dev/null: {error}")))
}

fn descriptors<const N: usize>(meter: &Meter) -> Samples {
    allow_descriptors(N)?;
    let _others = (0..N).map(|_| null()).collect::<Result<Vec<File>, Skip>>()?;
    meter.each(|| null().map(drop))
}

fn watched<const N: usize>(meter: &Meter) -> Samples {
    allow_descriptors(N)?;
    // SAFETY: calls without pointers.
    let set = Fd::new("epoll_create1", unsafe { libc::epoll_create1(0) })?;
    let mut watched = Vec::with_capacity(N);
    for number in 0..N {
        // SAFETY: the event is a local; the last one is ready.
        unsafe {
            let event = Fd::new("eventfd", libc::eventfd(u32::from(number == N - 1), 0))?;
            let mut asked = libc::epoll_event { events: libc::EPOLLIN as u32, u64: number as u64 };
            if libc::epoll_ctl(set.0, libc::EPOLL_CTL_ADD, event.0, &mut asked) != 0 {
                return Err(Skip::last("epoll_ctl"));
            }
            watched.push(event);
        }
    }
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; 8];
    meter.each(|| {
        // SAFETY: room for eight.
        let ready = unsafe { libc::epoll_wait(set.0, events.as_mut_ptr(), 8, -1) };
        if ready == 1 { Ok(()) } else { Err(Skip::last("epoll_wait")) }
    })
}

fn files<const N: usize>(meter: &Meter) -> Samples {
    let scratch = Scratch::new()?;
    let create = |name: String| {
        let path = scratch.path.join(name);
        File::create_new(&path).map_err(|error| Skip(format!("{}: {error}", path.display()))).map(|_| path)
    };
    for number in 0..N {
        create(format!("file{number}"))?;
    }
    meter.each(|| {
        let path = create("one-more".into())?;
        std::fs::remove_file(&path).map_err(|error| Skip(format!("{}: {error}", path.display())))
    })
}

/// A connection that leaves nothing behind when it is closed: its end is a reset, so its port is free at once.
fn connect(to: SocketAddr, listener: &TcpListener) -> io::Result<(TcpStream, TcpStream)> {
    let ours = TcpStream::connect(to)?;
    let (theirs, _) = listener.accept()?;
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: the option is a local of that size.
    let set = unsafe {
        let (value, length) = ((&raw const linger).cast(), size_of_val(&linger) as libc::socklen_t);
        libc::setsockopt(ours.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, value, length)
    };
    if set == 0 { Ok((ours, theirs)) } else { Err(io::Error::last_os_error()) }
}

fn sockets<const N: usize>(meter: &Meter) -> Samples {
    allow_descriptors(2 * N)?;
    let skip = |error: io::Error| Skip(format!("a connection on the loopback: {error}"));
    let listener = TcpListener::bind("127.0.0.1:0").map_err(skip)?;
    let to = listener.local_addr().map_err(skip)?;
    let _others = (0..N).map(|_| connect(to, &listener).map_err(skip)).collect::<Result<Vec<_>, Skip>>()?;
    meter.each(|| connect(to, &listener).map(drop).map_err(skip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_rise_within_a_curve() {
        for rows in ROWS {
            assert!(rows.iter().all(|row| row.group == rows[0].group));
            let points: Vec<usize> = rows.iter().map(|row| row.point().unwrap()).collect();
            assert!(points.is_sorted_by(|a, b| a < b), "{points:?}");
        }
    }

    #[test]
    fn few_of_each_are_measured() {
        let meter = Meter::new(2);
        let rows = [mappings::<8>, descriptors::<8>, watched::<8>, files::<8>, sockets::<8>, threads::<8>];
        for (number, row) in rows.iter().enumerate() {
            let samples = row(&meter).unwrap_or_else(|Skip(why)| panic!("{number}: {why}"));
            assert!(samples.iter().all(|ticks| *ticks > 0.0), "{number}: {samples:?}");
        }
    }
}
