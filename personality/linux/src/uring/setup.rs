//! io_uring_setup(2).

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use janua_abi::linux::capability::CAP_IPC_LOCK;
use janua_abi::linux::process::rlimit;
use janua_abi::linux::uring::{CqOffsets, Cqe, MOST_COMPLETIONS, MOST_ENTRIES, Params, SqOffsets, Sqe, feat, mmap, setup};
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_kernel::table::Fd;
use janua_object::file::flags::O_RDWR;
use zerocopy::IntoBytes;

use super::issuer;
use super::memory::{Region, Shared, pages};
use super::ring::{Ring, Shape, at};
use crate::thread::ThreadExt;
use crate::user::RingCharge;
use crate::{Thread, event};

/// What there is of what programs ask for. Not IORING_FEAT_SUBMIT_STABLE: what submissions point to is read when their operation begins.
const FEATURES: u32 = feat::SINGLE_MMAP
    | feat::NODROP
    | feat::RW_CUR_POS
    | feat::CUR_PERSONALITY
    | feat::FAST_POLL
    | feat::POLL_32BITS
    | feat::SQPOLL_NONFIXED
    | feat::EXT_ARG
    | feat::NATIVE_WORKERS
    | feat::RSRC_TAGS
    | feat::CQE_SKIP
    | feat::LINKED_FILE
    | feat::REG_REG_RING
    | feat::MIN_TIMEOUT;

const KNOWN: u32 = setup::IOPOLL
    | setup::SQPOLL
    | setup::SQ_AFF
    | setup::CQSIZE
    | setup::CLAMP
    | setup::ATTACH_WQ
    | setup::R_DISABLED
    | setup::SUBMIT_ALL
    | setup::COOP_TASKRUN
    | setup::TASKRUN_FLAG
    | setup::SQE128
    | setup::CQE32
    | setup::SINGLE_ISSUER
    | setup::DEFER_TASKRUN
    | setup::NO_SQARRAY;

/// Idle time of who looks into a ring, unless the program says otherwise: nanoseconds.
const IDLE: u64 = 1_000_000_000;

/// io_uring_setup(2)
pub fn io_uring_setup(thread: &Thread, entries: u32, params: UserPtr<Params>) -> Result<Fd> {
    let mut given = params.read(thread.user())?;
    let flags = given.flags;
    check(thread, &given)?;
    let sizes = sizes(entries, &given)?;
    given.sq_entries = sizes.0;
    given.cq_entries = sizes.1;
    let has = |flag: u32| flags & flag != 0;
    let completion = if has(setup::CQE32) { 2 * size_of::<Cqe>() } else { size_of::<Cqe>() };
    let submission = if has(setup::SQE128) { 2 * size_of::<Sqe>() } else { size_of::<Sqe>() };
    let array = (at::CQES + sizes.1 as usize * completion).next_multiple_of(64);
    let indices = if has(setup::NO_SQARRAY) { 0 } else { sizes.0 as usize * 4 };
    let lens = [pages(array + indices), pages(sizes.0 as usize * submission)];
    let idle = if given.sq_thread_idle == 0 { IDLE } else { u64::from(given.sq_thread_idle) * 1_000_000 };
    let shape = Shape { flags, submissions: sizes.0, completions: sizes.1, array, narrow: is_narrow(thread), idle, aio: false };
    let ring = make(thread, shape, lens, [mmap::SQ_RING, mmap::SQES], true)?;
    let access = ring.access(thread);
    for (offset, word) in
        [(at::SQ_MASK, sizes.0 - 1), (at::SQ_ENTRIES, sizes.0), (at::CQ_MASK, sizes.1 - 1), (at::CQ_ENTRIES, sizes.1)]
    {
        access.write(Region::Rings, offset, word.as_bytes());
    }
    given.features = FEATURES;
    describe(&mut given, array as u32);
    params.write(thread.user(), &given)?;
    if has(setup::SQPOLL) || has(setup::SINGLE_ISSUER) && !has(setup::R_DISABLED) {
        *ring.issuer.lock() = Some(Arc::downgrade(&issuer::of(thread)?));
    }
    if has(setup::SQPOLL) {
        let _ = ring.identity.set(thread.cred());
        super::poller::add(thread, &ring)?;
    }
    event::install(thread, ring, O_RDWR, true)
}

/// Whether the thread runs a program of 32-bit words.
pub fn is_narrow(thread: &Thread) -> bool {
    thread.process().mm().is_some_and(|mm| mm.bounds().high as u64 <= 1 << 32)
}

/// A ring of this shape with its memory, which counts for its maker.
pub fn make(thread: &Thread, shape: Shape, lens: [usize; 2], offsets: [u64; 2], wide: bool) -> Result<Arc<Ring>> {
    let cred = thread.cred();
    let bytes = lens[0] + lens[1];
    let charge = if cred.capable(CAP_IPC_LOCK) {
        None
    } else {
        let user = thread.charge.lock().user().clone();
        Some(RingCharge::take(user, bytes as u64, thread.limit(rlimit::MEMLOCK)).ok_or(Errno::ENOMEM)?)
    };
    let piece = thread.kernel.rings.pool.piece(bytes as u64, 0o600, &cred)?;
    piece.reserve()?;
    let shared = Shared::new(piece, lens, offsets, wide, shape.has(setup::SQPOLL));
    Ok(Ring::new(shape, shared, thread.machine().clock(), charge))
}

fn check(thread: &Thread, given: &Params) -> Result<()> {
    let flags = given.flags;
    let has = |flag: u32| flags & flag != 0;
    if flags & !KNOWN != 0 || given.reserved != [0; 3] {
        return Err(Errno::EINVAL);
    }
    let bad = if has(setup::SQPOLL) {
        has(setup::COOP_TASKRUN | setup::TASKRUN_FLAG | setup::DEFER_TASKRUN)
    } else {
        has(setup::SQ_AFF) || has(setup::TASKRUN_FLAG) && !has(setup::COOP_TASKRUN | setup::DEFER_TASKRUN)
    };
    if bad || has(setup::DEFER_TASKRUN) && !has(setup::SINGLE_ISSUER) {
        return Err(Errno::EINVAL);
    }
    if has(setup::SQ_AFF) && given.sq_thread_cpu as usize >= thread.machine().cpus() {
        return Err(Errno::EINVAL);
    }
    if has(setup::ATTACH_WQ) {
        super::find(thread, given.wq_fd, false).map_err(|errno| if errno == Errno::EBADF { errno } else { Errno::EINVAL })?;
    }
    Ok(())
}

/// Entries of the two rings, each a power of two.
fn sizes(entries: u32, given: &Params) -> Result<(u32, u32)> {
    let fit = |count: u32, most: u32| match count {
        0 => Err(Errno::EINVAL),
        count if count <= most => Ok(count.next_power_of_two()),
        _ if given.flags & setup::CLAMP != 0 => Ok(most),
        _ => Err(Errno::EINVAL),
    };
    let submissions = fit(entries, MOST_ENTRIES)?;
    if given.flags & setup::CQSIZE == 0 {
        return Ok((submissions, 2 * submissions));
    }
    let completions = fit(given.cq_entries, MOST_COMPLETIONS)?;
    if completions < submissions { Err(Errno::EINVAL) } else { Ok((submissions, completions)) }
}

fn describe(given: &mut Params, array: u32) {
    given.sq_off = SqOffsets {
        head: at::SQ_HEAD as u32,
        tail: at::SQ_TAIL as u32,
        ring_mask: at::SQ_MASK as u32,
        ring_entries: at::SQ_ENTRIES as u32,
        flags: at::SQ_FLAGS as u32,
        dropped: at::SQ_DROPPED as u32,
        array: if given.flags & setup::NO_SQARRAY != 0 { 0 } else { array },
        ..SqOffsets::default()
    };
    given.cq_off = CqOffsets {
        head: at::CQ_HEAD as u32,
        tail: at::CQ_TAIL as u32,
        ring_mask: at::CQ_MASK as u32,
        ring_entries: at::CQ_ENTRIES as u32,
        overflow: at::CQ_OVERFLOW as u32,
        cqes: at::CQES as u32,
        flags: at::CQ_FLAGS as u32,
        ..CqOffsets::default()
    };
}

/// By a thread that is about to use a ring: EBADFD for one that is not to be used yet, EEXIST for one that is another's alone.
pub fn check_issuer(ring: &Ring, issuer: &Arc<issuer::Issuer>) -> Result<()> {
    if ring.disabled.load(Ordering::SeqCst) {
        return Err(Errno::EBADFD);
    }
    if !ring.shape.has(setup::SINGLE_ISSUER) {
        return Ok(());
    }
    let only = ring.issuer.lock();
    let is_it = only.as_ref().is_some_and(|only| core::ptr::eq(only.as_ptr(), Arc::as_ptr(issuer)));
    if is_it { Ok(()) } else { Err(Errno::EEXIST) }
}
