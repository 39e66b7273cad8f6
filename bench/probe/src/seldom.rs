//! Rows about calls that few programs make often, and some make very often: attributes, locks, semaphores, processors, /proc.

use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::calls::Fd;
use crate::files::Scratch;
use crate::isolate::wait;
use crate::meter::Meter;
use crate::{Samples, Skip, sys};

fn skip(error: std::io::Error) -> Skip {
    Skip(error.to_string())
}

/// Row `xattr`.
pub fn xattr(meter: &Meter) -> Samples {
    let scratch = Scratch::new()?;
    let path = scratch.path.join("file");
    File::create(&path).map_err(skip)?;
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|error| Skip(error.to_string()))?;
    let (name, value, mut back) = (c"user.row", [7_u8; 32], [0_u8; 64]);
    meter.each(|| {
        // SAFETY: strings that live, a value and a buffer of those lengths.
        unsafe {
            if libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0) != 0 {
                return Err(Skip::last("setxattr"));
            }
            match libc::getxattr(path.as_ptr(), name.as_ptr(), back.as_mut_ptr().cast(), back.len()) {
                32 => Ok(()),
                _ => Err(Skip::last("getxattr")),
            }
        }
    })
}

/// Row `affinity`.
pub fn affinity(meter: &Meter) -> Samples {
    // SAFETY: a set of processors is plain bits, and a local.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of_val(&set), &mut set) != 0 {
            return Err(Skip::last("sched_getaffinity"));
        }
        meter.each(|| match libc::sched_setaffinity(0, size_of_val(&set), &set) {
            0 => Ok(()),
            _ => Err(Skip::last("sched_setaffinity")),
        })
    }
}

/// Row `lockf`.
pub fn lockf(meter: &Meter) -> Samples {
    let scratch = Scratch::new()?;
    let file = File::create(scratch.path.join("locked")).map_err(skip)?;
    meter.each(|| {
        for kind in [libc::F_WRLCK, libc::F_UNLCK] {
            let lock = libc::flock { l_type: kind as i16, l_whence: 0, l_start: 0, l_len: 100, l_pid: 0 };
            // SAFETY: the lock is a local.
            if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const lock) } != 0 {
                return Err(Skip::last("fcntl(F_SETLK)"));
            }
        }
        Ok(())
    })
}

/// Row `semop`.
pub fn semop(meter: &Meter) -> Samples {
    // SAFETY: no pointers.
    let set = unsafe { libc::semget(libc::IPC_PRIVATE, 1, 0o600) };
    if set < 0 {
        return Err(Skip::last("semget"));
    }
    let samples = meter.each(|| {
        for change in [1, -1] {
            let mut operation = libc::sembuf { sem_num: 0, sem_op: change, sem_flg: 0 };
            // SAFETY: one operation, a local.
            if unsafe { libc::semop(set, &mut operation, 1) } != 0 {
                return Err(Skip::last("semop"));
            }
        }
        Ok(())
    });
    // SAFETY: our own set.
    unsafe { libc::semctl(set, 0, libc::IPC_RMID) };
    samples
}

/// Row `sendfile-1`.
pub fn sendfile(meter: &Meter) -> Samples {
    let scratch = Scratch::new()?;
    let (from, to) = (scratch.path.join("from"), scratch.path.join("to"));
    std::fs::write(&from, [7; 4096]).map_err(skip)?;
    let (from, to) = (File::open(&from).map_err(skip)?, File::create(&to).map_err(skip)?);
    meter.each(|| {
        let mut offset = 0;
        // SAFETY: descriptors of our own, the offset a local.
        unsafe {
            libc::lseek(to.as_raw_fd(), 0, libc::SEEK_SET);
            match libc::sendfile(to.as_raw_fd(), from.as_raw_fd(), &mut offset, 1) {
                1 => Ok(()),
                _ => Err(Skip::last("sendfile")),
            }
        }
    })
}

/// Threads that wait at a futex.
const WAITERS: usize = 64;

/// Row `requeue`: all waiters of one futex are moved to another; none wakes.
pub fn requeue(meter: &Meter) -> Samples {
    let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let asleep: Vec<_> = (0..WAITERS)
        .map(|_| {
            let words = words.clone();
            std::thread::Builder::new().stack_size(64 * 1024).spawn(move || {
                let at = (&raw const words[0]) as usize;
                while words[0].load(Ordering::Relaxed) == 0 {
                    // SAFETY: the word lives; no time limit.
                    unsafe {
                        sys::call::<{ libc::SYS_futex }>([
                            at,
                            (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize,
                            0,
                            0,
                            0,
                            0,
                        ])
                    };
                }
            })
        })
        .collect::<Result<_, _>>()
        .map_err(|error| Skip(format!("starting a thread: {error}")))?;
    let moved = |from: usize, to: usize| {
        let (at, target) = ((&raw const words[from]) as usize, (&raw const words[to]) as usize);
        let operation = (libc::FUTEX_CMP_REQUEUE | libc::FUTEX_PRIVATE_FLAG) as usize;
        // SAFETY: both words live.
        unsafe { sys::call::<{ libc::SYS_futex }>([at, operation, 0, WAITERS, target, 0]) }
    };
    // They are all there when as many are moved.
    let mut there = 0;
    while there < WAITERS as i64 {
        there += moved(0, 1).max(0);
        std::thread::yield_now();
    }
    let (mut from, mut to) = (1, 0);
    let samples = meter.each(|| {
        let count = moved(from, to);
        (from, to) = (to, from);
        if count == WAITERS as i64 { Ok(()) } else { Err(Skip(format!("{count} waiters were moved"))) }
    });
    words[0].store(1, Ordering::Relaxed);
    for word in words.iter() {
        let at = ptr::from_ref(word) as usize;
        // SAFETY: the word lives.
        unsafe {
            sys::call::<{ libc::SYS_futex }>([at, (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize, WAITERS, 0, 0, 0])
        };
    }
    for thread in asleep {
        thread.join().map_err(|_| Skip("a thread failed".into()))?;
    }
    samples
}

/// Row `smaps`.
pub fn smaps(meter: &Meter) -> Samples {
    let mut text = Vec::with_capacity(1 << 20);
    meter.each(|| {
        text.clear();
        File::open("/proc/self/smaps").and_then(|mut file| file.read_to_end(&mut text)).map(drop).map_err(skip)
    })
}

/// Row `daemon`: two forks, the first child a session's leader that ends at once; the second reports that it is there by a pipe.
pub fn daemon(meter: &Meter) -> Samples {
    meter.each(|| {
        let mut ends = [0; 2];
        // SAFETY: room for two descriptors; one thread; the children make raw calls only.
        unsafe {
            if libc::pipe(ends.as_mut_ptr()) != 0 {
                return Err(Skip::last("pipe"));
            }
            let (from, to) = (Fd(ends[0]), Fd(ends[1]));
            let child = libc::fork();
            if child == 0 {
                libc::setsid();
                if libc::fork() == 0 {
                    libc::write(to.0, [1_u8].as_ptr().cast(), 1);
                }
                libc::_exit(0);
            }
            drop(to);
            if child < 0 {
                return Err(Skip::last("fork"));
            }
            wait(child)?;
            let mut byte = 0_u8;
            if libc::read(from.0, (&raw mut byte).cast(), 1) == 1 { Ok(()) } else { Err(Skip::last("read")) }
        }
    })
}
