//! Host threads and processes for guest threads, and what each does between entries.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering, compiler_fence, fence};

use janua_abi::linux::Result;
use janua_abi::linux::futex::op;
use janua_abi::linux::prctl;
use janua_abi::linux::process::clone;
use janua_abi::linux::signal::{SIGCHLD, SIGKILL};
use janua_abi::linux::time::TimeSpec;
use janua_entry::hosted::entry;
use janua_entry::hosted::{self, Area, FAST_CALLS, FastPath, KICK, Own};
use janua_port::drive::PARKED;
use janua_port::guest::{NO_CALLS, PLAIN_CALLS};
use janua_port::{Carrier, Context, Flow, Frame, Guest, Nanos, Next, Plain, Spawn, SpawnKind, drive};

use crate::area;
use crate::boot::{self, Jail};
use crate::context::{HostedContext, here};
use crate::identity;
use crate::machine;
use crate::signal;
use crate::spare;
use crate::sys::{self, nr};
use crate::threads;
use crate::{faults, guard, heap, idle, kept, text};

const THREAD_FLAGS: u64 = clone::VM | clone::FS | clone::FILES | clone::SIGHAND | clone::THREAD | clone::SYSVSEM;
/// Every guest process is a child of the supervisor, which reaps it and notices when it is killed from outside.
const PROCESS_FLAGS: u64 = clone::FILES | clone::PARENT | SIGCHLD as u64;

/// A process that goes on for the thread that made it (`space`): the child stores its own id.
pub const HOP_FLAGS: u64 = PROCESS_FLAGS | clone::CHILD_SETTID;
/// Every flag a clone of this platform has.
pub const CLONE_FLAGS: u32 = (THREAD_FLAGS | PROCESS_FLAGS | HOP_FLAGS | clone::SETTLS | clone::PARENT_SETTID) as u32;

/// One of these every clone has, so that no process is the child of a guest's.
pub const CLONE_PARENT_OR_THREAD: u32 = (clone::PARENT | clone::THREAD) as u32;

/// The two words of an area's guest; zeroes where there is none.
fn guest_words(index: usize) -> [usize; 2] {
    area::of(index).guest.each_ref().map(|word| word.load(Ordering::Relaxed))
}

fn set_guest_words(index: usize, words: [usize; 2]) {
    for (word, value) in area::of(index).guest.iter().zip(words) {
        word.store(value, Ordering::Relaxed);
    }
}

/// Whether an area has a guest.
pub fn has_guest(index: usize) -> bool {
    guest_words(index) != [0; 2]
}

/// The guest of an area that has one, which is the calling thread's.
pub fn guest(index: usize) -> &'static dyn Guest {
    // SAFETY: the two words came from `Arc::into_raw` in `prepare`; the count they hold is given up in `end`, by the thread
    // itself, after its last use of the guest.
    unsafe { &*core::mem::transmute::<[usize; 2], *const dyn Guest>(guest_words(index)) }
}

/// [`janua_port::Context::set_plain`].
pub fn set_plain(plain: Option<Plain<'_>>) {
    let area = hosted::area(here());
    let functions = plain.map_or(NO_CALLS.as_ptr(), |plain| plain.native.as_ptr());
    // SAFETY: the thread's own area; only its entries read the word, and it is not in one. Thread and work words stay: they are the same
    // for a guest's life wherever they are used.
    unsafe { (&raw mut (*area).own.fast_path.functions).write_volatile(functions) };
}

/// The word of threads whose calls all go by the frame.
static NO_WORK: AtomicU32 = AtomicU32::new(0);
const _: () = assert!(PLAIN_CALLS == FAST_CALLS);

/// An area for a guest thread of a host thread that is yet to be made.
fn prepare(frame: Frame, tls: Option<usize>, guest: Arc<dyn Guest>) -> Result<usize> {
    let index = area::take()?;
    let (shared, own) = (area::of(index), area::of(here()));
    text::inherit(index);
    shared.host_pid.store(0, Ordering::Relaxed);
    shared.host_tid.store(0, Ordering::Relaxed);
    shared.identified.store(false, Ordering::Relaxed);
    spare::nothing_counted(shared);
    // As the host has it.
    shared.touched.store(own.touched.load(Ordering::Relaxed), Ordering::Relaxed);
    for (to, from) in shared.name.iter().zip(&own.name) {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    fill(index, frame, tls, guest);
    Ok(index)
}

/// Gives an area, on which no guest thread runs, its next one.
fn fill(index: usize, frame: Frame, tls: Option<usize>, guest: Arc<dyn Guest>) {
    let shared = area::of(index);
    shared.in_guest.store(0, Ordering::Relaxed);
    shared.made.store(0, Ordering::Relaxed);
    idle::start(shared);
    // SAFETY: no guest thread runs on it, and a thread that waits for one does not look.
    let area = unsafe { area::own(index) };
    area.frame = frame;
    area.selector_value = machine::get().gate.selector_value();
    area.keyed = u8::from(boot::jail() == Jail::Pkey);
    area.stepping = 0;
    area.fast_path = match guest.plain() {
        Some(Plain { native, thread, work, .. }) => FastPath { functions: native.as_ptr(), thread, work },
        None => FastPath { functions: NO_CALLS.as_ptr(), thread: core::ptr::null(), work: &raw const NO_WORK },
    };
    // SAFETY: a raw pointer to a trait object is two words; `guest` and `end` read them back.
    set_guest_words(index, unsafe { core::mem::transmute::<*const dyn Guest, [usize; 2]>(Arc::into_raw(guest)) });
    area.body = 0;
    area.tls = tls.unwrap_or(usize::MAX);
}

/// Starts a host thread or process on the area's stack.
fn launch(index: usize, flags: u64, tls: Option<usize>) -> Result<u32> {
    // No call of `sys`, since the child goes on elsewhere.
    if let Some(errno) = faults::of(nr::CLONE) {
        return Err(errno);
    }
    if flags & clone::THREAD != 0 {
        kept::note_several();
    }
    let area = hosted::area(index);
    let stack = hosted::stack_start(index) - 8;
    // SAFETY: the new stack is the area's own, unused; `hosted_clone` pops the area's address in the child. The tid word is in
    // kernel memory, which the child maps too.
    let result = unsafe {
        (stack as *mut usize).write(area as usize);
        // The host stores the id before the child runs, so that every thread that knows of the new one knows its id. The child's first
        // access to its stack is then a read, for which the host maps all of the stack that exists at once.
        let flags = flags | clone::PARENT_SETTID | if tls.is_some() { clone::SETTLS } else { 0 };
        threads::hosted_clone(
            flags,
            stack,
            (&raw const (*area).shared.host_tid) as *mut u32,
            (&raw const (*area).shared.host_tid) as *mut u32,
            tls.unwrap_or(0),
        )
    };
    janua_abi::linux::Errno::from_raw(result).map(|tid| tid as u32)
}

/// Forks that have been begun, and those that are done.
static FORKS: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

/// After so many forks and threads it is worth the trouble to make the heap easier to meet ([`heap::unite`]).
pub const OFTEN: u32 = 32;

/// How many forks have been begun, and how many are done.
pub fn forks() -> [u32; 2] {
    [FORKS[0].load(Ordering::SeqCst), FORKS[1].load(Ordering::SeqCst)]
}

/// [`janua_port::Context::spawn`], of the calling thread.
pub fn spawn(spawn: Spawn) -> Result<Arc<dyn Context>> {
    let (flags, own_process) = match spawn.kind {
        SpawnKind::Thread => (THREAD_FLAGS, false),
        SpawnKind::Fork => (PROCESS_FLAGS, true),
        SpawnKind::SharedSpace => (PROCESS_FLAGS | clone::VM, true),
    };
    match spawn.kind {
        // A child that shares the space has the same pages until it runs a program: then they are copied as by a fork.
        SpawnKind::Fork | SpawnKind::SharedSpace => text::before_fork(here()),
        SpawnKind::Thread => text::before_thread(here()),
    }
    if spawn.kind == SpawnKind::Thread {
        identify(here())?;
        if let Some(index) = spare::take() {
            return Ok(spawn_spare(index, spawn));
        }
    }
    let index = prepare(spawn.frame, spawn.tls, spawn.guest)?;
    area::of(index).host_pid.store(if own_process { 0 } else { own_pid() }, Ordering::Relaxed);
    area::set_space(index, (flags & clone::VM != 0).then(here));
    if flags & clone::VM != 0 {
        // Alone until now, which identified the caller.
        let known = identify(here());
        if let Err(errno) = known {
            drop_guest(index);
            area::give_back(index);
            return Err(errno);
        }
        hosted::join(index);
    }
    // Who finds the new thread in the kernel's tables may use its context from here on: nothing in the area is its predecessor's any more.
    let context = Arc::new(HostedContext::new(index));
    guest(index).attach(context.clone());
    FORKS[0].fetch_add(1, Ordering::SeqCst);
    let launched = launch(index, flags, spawn.tls);
    let done = FORKS[1].fetch_add(1, Ordering::SeqCst);
    if done % OFTEN == OFTEN - 1 && heap::is_divided() {
        machine::wake_service();
    }
    if own_process {
        area::let_go(here());
    }
    match launched {
        Ok(_) => Ok(context),
        Err(errno) => {
            if flags & clone::VM != 0 {
                hosted::leave(index);
            }
            drop_guest(index);
            area::give_back(index);
            Err(errno)
        }
    }
}

/// The same by a thread of the calling process that waits for a guest, and has its identity.
fn spawn_spare(index: usize, spawn: Spawn) -> Arc<dyn Context> {
    text::inherit(index);
    fill(index, spawn.frame, spawn.tls, spawn.guest);
    hosted::join(index);
    let context = Arc::new(HostedContext::new(index));
    guest(index).attach(context.clone());
    spare::begin(index, spawn.tls);
    context
}

/// The first guest process: like a fork of the kernel's own first process.
pub fn spawn_first(guest: Arc<dyn Guest>) -> Result<Arc<dyn Context>> {
    spawn(Spawn { kind: SpawnKind::Fork, frame: Frame::start(0, 0), tls: Some(0), guest, space: None })
}

/// A thread without a guest, in the calling process.
pub fn spawn_kernel(body: Box<dyn FnOnce() + Send>) -> Result<()> {
    let index = area::take()?;
    let shared = area::of(index);
    text::inherit(index);
    shared.in_guest.store(0, Ordering::Relaxed);
    shared.host_pid.store(own_pid(), Ordering::Relaxed);
    shared.space.store(area::NO_SPACE, Ordering::Relaxed);
    set_guest_words(index, [0; 2]);
    // SAFETY: just taken; no thread runs on it.
    let area = unsafe { area::own(index) };
    let body = Box::into_raw(Box::new(body));
    area.body = body as usize;
    launch(index, THREAD_FLAGS, None).map(|_| ()).inspect_err(|_| {
        // SAFETY: made above, and no thread has begun that would take it.
        drop(unsafe { Box::from_raw(body) });
        area.body = 0;
        area::give_back(index);
    })
}

/// A thread of the calling process that runs a guest's calls, and whose guest's code runs elsewhere: what it takes of the host is charged to
/// that guest.
pub fn spawn_beside(guest: Arc<dyn Guest>, body: Box<dyn FnOnce() + Send>) -> Result<()> {
    let index = area::take()?;
    let shared = area::of(index);
    text::inherit(index);
    shared.in_guest.store(0, Ordering::Relaxed);
    shared.host_pid.store(own_pid(), Ordering::Relaxed);
    shared.space.store(area::NO_SPACE, Ordering::Relaxed);
    shared.serves.store(0, Ordering::Relaxed);
    idle::start(shared);
    // SAFETY: a raw pointer to a trait object is two words; `guest` and `end` read them back.
    set_guest_words(index, unsafe { core::mem::transmute::<*const dyn Guest, [usize; 2]>(Arc::into_raw(guest)) });
    // SAFETY: just taken; no thread runs on it.
    let area = unsafe { area::own(index) };
    let body = Box::into_raw(Box::new(body));
    area.body = body as usize;
    hosted::join(index);
    launch(index, THREAD_FLAGS, None).map(|_| ()).inspect_err(|_| {
        hosted::leave(index);
        drop_guest(index);
        // SAFETY: made above, and no thread has begun that would take it.
        drop(unsafe { Box::from_raw(body) });
        area.body = 0;
        area::give_back(index);
    })
}

/// The host process of the calling thread.
fn own_pid() -> u32 {
    area::of(here()).host_pid.load(Ordering::Relaxed)
}

fn drop_guest(index: usize) {
    let words = guest_words(index);
    if words == [0; 2] {
        return;
    }
    set_guest_words(index, [0; 2]);
    // SAFETY: the caller is the area's thread at its end, or its creator when it never ran: nobody has the words any more.
    drop(unsafe { Arc::from_raw(core::mem::transmute::<[usize; 2], *const dyn Guest>(words)) });
}

/// What every new host thread needs before user code may run on it.
pub fn arm(index: usize) -> Result<()> {
    signal::set_stack(index)?;
    arm_again(index)
}

/// The same after a hop to a new process, which inherits the signal stack (and runs on it, so that it could not be set).
pub fn arm_again(index: usize) -> Result<()> {
    let this = area::of(index);
    let tid = this.host_tid.load(Ordering::Relaxed);
    if this.host_pid.load(Ordering::Relaxed) == 0 {
        this.host_pid.store(tid, Ordering::Relaxed);
        // Should the supervisor be killed, nothing of the sandbox stays behind.
        sys::words(nr::PRCTL, [prctl::SET_PDEATHSIG as usize, SIGKILL as usize, 0, 0, 0, 0])?;
        if machine::is_orphaned() {
            sys::exit_group(hosted::ENDED);
        }
        machine::get().gate.arm_process(tid)?;
    }
    // A thread of a process that others share has been counted by its creator.
    let alone = hosted::is_empty();
    if alone {
        hosted::join(index);
    }
    // Under the jail every entry asks for the identity; otherwise the rewritten call alone does, where there are others.
    if !alone || boot::jail() == Jail::Pkey {
        identify(index)?;
    }
    machine::get().gate.arm_thread(hosted::selector(index))
}

/// Sees to it that the calling thread, whose area it is, has its identity where the entries ask for one. The host call takes 0.3 us on
/// some machines and 5 on others, so a process with one thread does without as long as it can.
fn identify(index: usize) -> Result<()> {
    let known = &area::of(index).identified;
    let keyed = boot::jail() == Jail::Pkey;
    let asked = keyed || machine::get().gate.call_entry(keyed).is_some();
    if asked && !known.load(Ordering::Relaxed) {
        identity::set(index)?;
        known.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// Makes the calling thread's calls independent of its selector: it will not run user code again.
pub fn disarm() -> Result<()> {
    machine::get().gate.disarm_thread()
}

/// First Rust code of a new host thread.
///
/// # Safety
/// Called by `hosted_clone` with the area it was given.
pub unsafe extern "C" fn child_main(area: *mut Area) -> ! {
    let index = hosted::index_of(area as usize);
    guard_stack(index);
    // SAFETY: the selector of this thread, which the host reads only after `arm`.
    unsafe { hosted::selector(index).write_volatile(hosted::SELECTOR_ALLOW) };
    // SAFETY: the thread itself.
    let this = unsafe { area::own(index) };
    if this.body != 0 {
        // SAFETY: made by `spawn_kernel` for this thread alone.
        let body = unsafe { Box::from_raw(this.body as *mut Box<dyn FnOnce() + Send>) };
        this.body = 0;
        body();
        end(index);
    }
    if arm(index).is_err() {
        sys::write_all(2, b"janua: the host refuses to arm a new thread's gate\n");
        machine::stop_sandbox(125);
    }
    begin_guest(this, index)
}

/// The guest of the calling thread's area begins.
pub fn begin_guest(this: &mut Own, index: usize) -> ! {
    // The sandbox has one gate, so every call of the thread comes by it.
    let guest = guest(index);
    guest.set_gate(machine::get().gate.id());
    let flow = guest.start(&mut this.frame);
    let area = carry_on(this, index, flow);
    // SAFETY: `carry_on` has decided that the thread may go to user code.
    unsafe { entry::hosted_exit(area) }
}

/// Makes the lowest page of a new thread's stack a guard, unless a thread of this address space has had that stack before.
fn guard_stack(index: usize) {
    let space = area::of(index).space.load(Ordering::Relaxed);
    // SAFETY: the thread itself.
    let this = unsafe { area::own(index) };
    // A thread of the kernel's own is in a space without a number.
    let known = this.body == 0 && this.guarded == space;
    if !known {
        guard::set(index);
        this.guarded = if this.body == 0 { space } else { 0 };
    }
}

/// The calling thread, as [`drive()`] has it.
pub struct Hosted<'a> {
    index: usize,
    in_guest: &'a AtomicU8,
    /// What it remembers of its waits ([`idle`]).
    pub idle: &'a AtomicU32,
}

impl Carrier for Hosted<'_> {
    #[inline]
    fn enter_user(&mut self) {
        // From here on a kick is a host signal; before, it was a flag. Either we see the work or the kicker sees that we are in user
        // code: its membarrier(2) stands in for the fence that is missing here, on the way of every call.
        self.in_guest.store(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    fn stay(&mut self) {
        self.in_guest.store(0, Ordering::SeqCst);
    }

    fn sleep(&mut self, word: &AtomicU32, deadline: Option<Nanos>) {
        park(word, PARKED, deadline);
    }

    fn wait(&mut self, word: &AtomicU32, deadline: Option<Nanos>) {
        guard::check(self.index);
        text::settle(self.index);
        idle::wait(self, word, deadline);
    }
}

/// What a thread does after an entry: goes back, waits, or ends. Returns the area to leave through.
pub fn carry_on(this: &mut Own, index: usize, flow: Flow) -> *mut Area {
    let shared = area::of(index);
    let mut carrier = Hosted { index, in_guest: &shared.in_guest, idle: &shared.idle };
    match drive(&mut carrier, guest(index), &mut this.frame, flow) {
        Next::User => hosted::area(index),
        Next::End => end(index),
    }
}

fn end(index: usize) -> ! {
    guard::check(index);
    let had_guest = has_guest(index);
    if had_guest {
        hosted::leave(index);
    }
    area::note_ended(index);
    drop_guest(index);
    boot::accounts().forgive(index + 1);
    if had_guest && area::of(index).space.load(Ordering::Relaxed) != area::NO_SPACE {
        spare::keep(index);
        if hosted::is_empty() {
            spare::dismiss();
            kept::keep(index);
            kept::forget(area::of(index));
        }
    }
    finish(index)
}

/// Ends the calling thread, whose guest is gone. Nothing is allocated from here on.
pub fn finish(index: usize) -> ! {
    let _ = signal::set_mask(u64::MAX);
    // Between the area's return and this thread's last call another thread may use the area and its selector.
    let _ = disarm();
    let (word, bit) = area::taken(index);
    // SAFETY: the thread's own area, nothing of it is used afterwards; signals are blocked.
    unsafe { threads::hosted_end(word, bit) }
}

const MEMBARRIER_GLOBAL_EXPEDITED: usize = 2;
const MEMBARRIER_REGISTER_GLOBAL_EXPEDITED: usize = 4;

/// Makes [`kick`] possible; inherited by all processes of the sandbox.
pub fn register_barrier() -> Result<()> {
    sys::words(nr::MEMBARRIER, [MEMBARRIER_REGISTER_GLOBAL_EXPEDITED, 0, 0, 0, 0, 0]).map(|_| ())
}

/// A full fence in every running thread of the sandbox.
pub fn barrier() {
    fence(Ordering::SeqCst);
    // Registered at the start, so it cannot fail.
    let _ = sys::words(nr::MEMBARRIER, [MEMBARRIER_GLOBAL_EXPEDITED, 0, 0, 0, 0, 0]);
}

/// [`Shared::in_guest`](hosted::Shared::in_guest) of a thread to which a kick is on its way.
const IN_GUEST_KICKED: u8 = 2;

/// Interrupts the thread if it runs user code.
pub fn kick(index: usize) {
    // The thread itself sees its work as it leaves the kernel.
    if index == here() {
        return;
    }
    let this = area::of(index);
    barrier();
    // One host signal until the thread's next entry: signals sent faster than their frames are laid out would pile up on its stack.
    if this.in_guest.compare_exchange(1, IN_GUEST_KICKED, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
        let (pid, tid) = (this.host_pid.load(Ordering::Relaxed), this.host_tid.load(Ordering::Relaxed));
        let _ = sys::words(nr::TGKILL, [pid as usize, tid as usize, KICK as usize, 0, 0, 0]);
    }
}

const BITSET_ALL: usize = 0xffff_ffff;

/// Sleeps while the word has the value. Kernel words are shared between processes, so the futex is not a private one.
pub fn park(word: &AtomicU32, expected: u32, deadline: Option<Nanos>) {
    let time = deadline.map(TimeSpec::from_nanos);
    let time = time.as_ref().map_or(0, |time| &raw const *time as usize);
    let word = &raw const *word as usize;
    // SAFETY: the word and the time are ours and outlive the call.
    let _ = unsafe { sys::raw(nr::FUTEX, [word, op::WAIT_BITSET as usize, expected as usize, time, 0, BITSET_ALL]) };
}

/// Wakes sleepers of [`park`].
pub fn unpark(word: &AtomicU32, count: u32) {
    let word = &raw const *word as usize;
    // SAFETY: the host only looks up the address.
    let _ = unsafe { sys::raw(nr::FUTEX, [word, op::WAKE as usize, count as usize, 0, 0, 0]) };
}
