//! The machine the kernel sees.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_entry::leon3::janua_enter_user;
use janua_paging::Object;
use janua_platform_bare::outside::OWN;
use janua_port::machine::{Fpu, Isa, Memory, NewSpace, Outside};
use janua_port::{
    Clock, Console, Context, Frame, Guest, Host, Machine, MemoryObject, Nanos, Park, Space, SpawnKind, TrapGate, UserMemory,
};

use crate::frames::{self, FRAMES};
use crate::thread::{self, Thread};
use crate::{boot, clock, context, report, sched, space, trap, uart, unprotected};

/// The machine; there is one.
pub struct Leon3 {
    gates: &'static [&'static dyn TrapGate],
    module: &'static [u8],
}

static MACHINE: AtomicPtr<Leon3> = AtomicPtr::new(core::ptr::null_mut());
/// The word the service thread sleeps on.
static SERVICE: AtomicU32 = AtomicU32::new(0);

/// The gates of this image.
pub fn gates() -> &'static [&'static dyn TrapGate] {
    // SAFETY: null until set by `Leon3::start` from a leaked box, before any guest exists.
    unsafe { MACHINE.load(Ordering::Acquire).as_ref() }.map_or(&[], |machine| machine.gates)
}

/// Whether applications are kept out of the kernel.
static PROTECTED: AtomicBool = AtomicBool::new(true);

/// Whether applications are kept out of the kernel.
pub fn is_protected() -> bool {
    PROTECTED.load(Ordering::Relaxed)
}

impl Leon3 {
    /// From now on applications run as supervisor and may call the kernel's functions: to measure what protection costs.
    pub fn unprotect(&self) {
        PROTECTED.store(false, Ordering::Relaxed);
    }

    /// Makes the machine usable: memory, clock, the calling thread. The image calls it first, once. It reports what cannot be
    /// and ends the machine.
    pub fn start(gates: &'static [&'static dyn TrapGate]) -> &'static Leon3 {
        uart::init();
        let Some(loaded) = boot::loaded() else {
            report::stop(format_args!("no module was loaded (start it by `janua boot --platform leon3`)"))
        };
        let module = loaded.module;
        frames::init(module.as_ptr() as usize + module.len(), loaded.memory_end);
        clock::init();
        sched::init(thread::first());
        let machine = Box::leak(Box::new(Leon3 { gates, module }));
        MACHINE.store(machine, Ordering::Release);
        machine
    }

    /// Where applications jump that may call the kernel by address.
    pub fn call_entry(&self) -> Option<usize> {
        (!is_protected()).then(unprotected::dispatch)
    }

    /// What the loader brought besides the kernel.
    pub fn module(&self) -> &'static [u8] {
        self.module
    }

    /// The calling thread from now on: `serve` does what is due and returns when it wants to be called again;
    /// [`Machine::wake_service`] calls it earlier.
    pub fn serve(&'static self, mut serve: impl FnMut() -> Option<Nanos>) -> ! {
        loop {
            SERVICE.store(0, Ordering::SeqCst);
            let deadline = serve();
            sched::park(&SERVICE, 0, deadline);
        }
    }
}

struct KernelVoice;

impl Console for KernelVoice {
    fn write(&self, bytes: &[u8]) {
        // There is one line for this and for what programs write: a message is known by how it begins.
        if bytes.starts_with(b"janua: ") {
            uart::write(OWN.as_bytes());
        }
        uart::write(bytes);
    }
}

struct Words;

impl Park for Words {
    fn park(&self, word: &AtomicU32, expected: u32, deadline: Option<Nanos>) {
        sched::park(word, expected, deadline);
    }
    fn unpark(&self, word: &AtomicU32, count: u32) {
        sched::unpark(word, count);
    }
    fn yield_now(&self) {
        sched::yield_now();
    }
}

/// The running thread. Not counted: for use where it cannot end.
pub fn running() -> &'static Thread {
    let thread = sched::current();
    let own: *const Thread = &raw const *thread;
    drop(thread);
    // SAFETY: the scheduler holds the running thread; who uses this is on its stack.
    unsafe { &*own }
}

/// First code of a thread with a guest.
pub extern "C" fn guest_main() -> ! {
    sched::arrived();
    let thread = running();
    if let Some(guest) = thread.guest.as_deref() {
        // SAFETY: the running thread's own, above this stack; nobody else uses it.
        let frame = unsafe { &mut *thread.frame() };
        let flow = guest.start(frame);
        trap::go_on(thread, guest, frame, flow);
        // SAFETY: the frame is where an entry puts it, and nothing on this stack is needed any more.
        unsafe { janua_enter_user(frame) }
    }
    sched::end()
}

/// First code of a thread of the kernel's own.
extern "C" fn kernel_main() -> ! {
    sched::arrived();
    let body = sched::current().body.lock().take();
    if let Some(body) = body {
        body();
    }
    sched::end()
}

impl Machine for Leon3 {
    fn clock(&self) -> &dyn Clock {
        &clock::Ticks
    }
    fn console(&self) -> &dyn Console {
        &KernelVoice
    }
    fn park(&self) -> &dyn Park {
        &Words
    }
    fn host(&self) -> Option<&dyn Host> {
        None
    }

    fn memory_object(&self, _name: &str) -> Result<Arc<dyn MemoryObject>> {
        Ok(Object::new(&FRAMES, 0))
    }

    fn spawn_first(&self, guest: Arc<dyn Guest>) -> Result<(Arc<dyn Context>, Arc<dyn Space>)> {
        let space = space::make()?;
        let thread = thread::make(Frame::default(), Some(guest), None, guest_main)?;
        Ok((context::begin(thread), space))
    }

    fn spawn_kernel(&self, _name: &'static str, body: Box<dyn FnOnce() + Send>) -> Result<()> {
        sched::start(thread::make(Frame::default(), None, Some(body), kernel_main)?);
        Ok(())
    }

    fn wake_service(&self) {
        if SERVICE.swap(1, Ordering::SeqCst) == 0 {
            sched::unpark(&SERVICE, 1);
        }
    }

    fn space_for(&self, kind: SpawnKind, parent: &Arc<dyn Space>) -> Result<NewSpace> {
        match kind {
            SpawnKind::Fork => Err(Errno::ENOSYS),
            SpawnKind::Thread | SpawnKind::SharedSpace => Ok(NewSpace::Whole(parent.clone())),
        }
    }

    fn isa(&self) -> Isa {
        Isa { fpu: Fpu { size: context::FPU_SIZE, features: 0 }, hwcap: janua_arch::hwcap() }
    }

    fn cpus(&self) -> usize {
        1
    }
    fn cpu(&self) -> usize {
        0
    }
    fn memory(&self) -> Memory {
        FRAMES.memory()
    }
    fn random(&self, out: &mut [u8]) {
        // The machine has no source of randomness: a sequence that differs from start to start only by when it is asked for.
        let mut state = clock::now() | 1;
        for byte in out {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = state as u8;
        }
    }
    fn notify_outside(&self, event: Outside) {
        // Nobody is outside but the console, and the machine's switch.
        if let Outside::Over(code) = event {
            report::power_off(code)
        }
    }
}

/// Sleeping of contended locks.
pub struct LockSleep;

impl LockSleep {
    pub fn sleep(word: &AtomicU32, expected: u32) {
        sched::park(word, expected, None);
    }
    pub fn wake(word: &AtomicU32) {
        sched::unpark(word, 1);
    }
}
