//! select(2) and pselect6(2).

use janua_abi::linux::layout::Layout;
use janua_abi::linux::poll::SigSetArg;
use janua_abi::linux::process::TimeVal;
use janua_abi::linux::time::TimeSpec;
use janua_kernel::table::Fd;
use janua_kernel::wait::Cut;
use janua_kernel::{Errno, Result, UserPtr};
use janua_object::Events;
use janua_port::Nanos;
use smallvec::SmallVec;
use zerocopy::IntoBytes;

use super::{WatchList, Watched};
use crate::Thread;

/// One of the three sets, in words of 64 descriptors. A set of FD_SETSIZE needs no allocation.
type Set = SmallVec<[u64; 16]>;

/// Descriptors in the C library's `fd_set`.
const FD_SETSIZE: usize = 1024;

/// What makes a descriptor count in each of the three sets.
const WANTED: [u32; 3] = {
    let read = Events::IN.bits() | Events::RDNORM.bits() | Events::RDBAND.bits() | super::ALWAYS;
    let write = Events::OUT.bits() | Events::WRNORM.bits() | Events::WRBAND.bits() | Events::ERR.bits();
    [read, write, Events::PRI.bits()]
};

/// The three sets' addresses, null for a set that is not wanted; and the words a set consists of.
type Sets<W> = [UserPtr<W>; 3];

/// select(2): what is left of the time is written back.
pub async fn select<W: Layout<u64>>(
    thread: &Thread,
    count: i32,
    read: UserPtr<W>,
    write: UserPtr<W>,
    except: UserPtr<W>,
    timeout: UserPtr<impl Layout<TimeVal>>,
) -> Result<usize> {
    let deadline = match timeout.non_null() {
        Some(timeout) => Some(super::deadline(thread, timeout.load(thread.user())?.nanos_carrying()?)),
        None => None,
    };
    let result = wait(thread, count, [read, write, except], deadline).await;
    let lost = super::report_rest(thread, deadline, |left| timeout.store(thread.user(), &TimeVal::from_nanos(left)));
    answer(result?, lost)
}

/// pselect6(2).
pub async fn pselect6<W: Layout<u64>>(
    thread: &Thread,
    count: i32,
    read: UserPtr<W>,
    write: UserPtr<W>,
    except: UserPtr<W>,
    timeout: UserPtr<impl Layout<TimeSpec>>,
    mask: UserPtr<impl Layout<SigSetArg>>,
) -> Result<usize> {
    let deadline = match timeout.non_null() {
        Some(timeout) => Some(super::deadline(thread, timeout.load(thread.user())?.nanos()?)),
        None => None,
    };
    if let Some(mask) = mask.non_null() {
        let mask = mask.load(thread.user())?;
        super::begin_mask(thread, UserPtr::new(mask.addr as usize), mask.size as usize)?;
    }
    let result = wait(thread, count, [read, write, except], deadline).await;
    if !matches!(result, Ok(Err(Cut::Interrupted))) {
        super::end_mask(thread);
    }
    let lost = super::report_rest(thread, deadline, |left| timeout.store(thread.user(), &TimeSpec::from_nanos(left)));
    answer(result?, lost)
}

fn answer(result: Result<usize, Cut>, time_lost: bool) -> Result<usize> {
    match result {
        Ok(ready) => Ok(ready),
        Err(Cut::TimedOut) => Ok(0),
        // Made again, the call would wait for the whole time anew unless what is left could be stored.
        Err(Cut::Interrupted) if time_lost => Err(Errno::EINTR),
        Err(Cut::Interrupted) => Err(Errno::ERESTARTNOHAND),
    }
}

async fn wait<W>(thread: &Thread, count: i32, sets: Sets<W>, deadline: Option<Nanos>) -> Result<Result<usize, Cut>> {
    let count = usize::try_from(count).map_err(|_| Errno::EINVAL)?;
    let files = thread.files.read().clone();
    // What is beyond every open descriptor and an ordinary set is not looked at.
    let count = count.min(files.end().max(FD_SETSIZE));
    let words = count.div_ceil(64);
    // Whole words of the program's own are read and written, and nothing behind them.
    let bytes = count.div_ceil(8 * size_of::<W>()) * size_of::<W>();
    let mem = thread.user();
    let set = || -> Result<Set> {
        let mut set: Set = super::list_of(thread, words)?;
        set.resize(words, 0);
        Ok(set)
    };
    let mut asked = [set()?, set()?, set()?];
    for (set, at) in asked.iter_mut().zip(sets) {
        if !at.is_null() {
            mem.copy_in(&mut set.as_mut_slice().as_mut_bytes()[..bytes], at.addr()).map_err(|_| Errno::EFAULT)?;
        }
    }
    let wanted_of = |asked: &[Set; 3], fd: usize| {
        let (word, bit) = (fd / 64, 1u64 << (fd % 64));
        (0..3).filter(|&set| asked[set][word] & bit != 0).fold(0, |wanted, set| wanted | WANTED[set])
    };
    let most = (0..words).map(|at| (asked[0][at] | asked[1][at] | asked[2][at]).count_ones() as usize).sum();
    let mut list: WatchList = super::list_of(thread, most)?;
    let mut numbers: SmallVec<[u32; 8]> = super::list_of(thread, most)?;
    for fd in 0..count {
        let wanted = wanted_of(&asked, fd);
        if wanted != 0 {
            list.push(Watched { file: Some(super::file(&files, Fd(fd as i32))?), wanted, ready: 0 });
            numbers.push(fd as u32);
        }
    }
    drop(files);
    let result = super::wait(thread, &mut list, deadline).await?;
    if result == Err(Cut::Interrupted) {
        return Ok(Err(Cut::Interrupted));
    }
    let mut total = 0;
    for (number, watched) in numbers.iter().zip(&list) {
        let (word, bit) = (*number as usize / 64, 1u64 << (number % 64));
        for (set, wanted) in asked.iter_mut().zip(WANTED) {
            if set[word] & bit != 0 {
                if watched.ready & wanted == 0 {
                    set[word] &= !bit;
                } else {
                    total += 1;
                }
            }
        }
    }
    for (set, at) in asked.iter_mut().zip(sets) {
        // Bits past the last descriptor of interest come back as zero.
        if let Some(last) = set.last_mut().filter(|_| count % 64 != 0) {
            *last &= (1 << (count % 64)) - 1;
        }
        if !at.is_null() {
            mem.copy_out(at.addr(), &set.as_slice().as_bytes()[..bytes]).map_err(|_| Errno::EFAULT)?;
        }
    }
    // An event in no set the descriptor is in cannot end the wait, so a timeout is the only way to zero.
    Ok(match result {
        Ok(_) => Ok(total),
        Err(cut) => Err(cut),
    })
}
