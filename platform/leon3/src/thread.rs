//! Threads: what each has.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_arch::sparc::switch::Context;
use janua_port::machine::ThreadId;
use janua_port::{Frame, Guest, Nanos};

use crate::lock::Mutex;

/// Bytes of a kernel stack.
const STACK: usize = 32 * 1024;
/// A minimal stack frame below the frame of registers: see `gate/entry/src/leon3/mod.rs`.
const BELOW: usize = 96;

/// A kernel stack.
#[repr(C, align(16))]
pub struct Stack(UnsafeCell<[u8; STACK]>);

/// What belongs to a thread alone: touched by itself, or by the scheduler while it does not run.
#[derive(Default)]
pub struct Own {
    pub context: Context,
    /// Floating-point registers and their state while another guest runs.
    pub fpu: [u64; 17],
    /// Processor time used up to when it last began to run, and when that was.
    pub used: Nanos,
    pub since: Nanos,
}

/// A thread of the machine.
pub struct Thread {
    pub id: ThreadId,
    pub own: UnsafeCell<Own>,
    /// `None` for threads of the kernel's own.
    pub guest: Option<Arc<dyn Guest>>,
    /// What a kernel thread does.
    pub body: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    /// The thread pointer, %g7: restored at each exit by the slow path.
    pub tls: AtomicUsize,
    /// `None` for the first thread, which has the boot stack.
    stack: Option<Box<Stack>>,
}

// SAFETY: `own` and `stack` are the parts without a lock: the running thread itself or the scheduler touch them, on the one core
// there is, with interrupts out.
unsafe impl Send for Thread {}
// SAFETY: as above.
unsafe impl Sync for Thread {}

static NEXT: AtomicU32 = AtomicU32::new(1);

fn id() -> ThreadId {
    ThreadId(NEXT.fetch_add(1, Ordering::Relaxed).into())
}

/// The flow of control that came from the boot code.
pub fn first() -> Arc<Thread> {
    Arc::new(Thread {
        id: id(),
        own: UnsafeCell::default(),
        guest: None,
        body: Mutex::new(None),
        tls: AtomicUsize::new(0),
        stack: None,
    })
}

/// A thread that begins with `start`. EAGAIN without memory.
pub fn make(
    frame: Frame,
    guest: Option<Arc<dyn Guest>>,
    body: Option<Box<dyn FnOnce() + Send>>,
    start: extern "C" fn() -> !,
) -> Result<Arc<Thread>> {
    let layout = core::alloc::Layout::new::<Stack>();
    // SAFETY: the size is not 0; all zeros are a stack.
    let stack = unsafe {
        let memory = alloc::alloc::alloc_zeroed(layout).cast::<Stack>();
        if memory.is_null() {
            return Err(Errno::EAGAIN);
        }
        Box::from_raw(memory)
    };
    let thread = Thread {
        id: id(),
        own: UnsafeCell::default(),
        guest,
        body: Mutex::new(body),
        tls: AtomicUsize::new(0),
        stack: Some(stack),
    };
    // SAFETY: the stack is new, and so is the thread. A guest's first steps leave the frame's place alone: their stack is below it.
    unsafe {
        thread.frame().write(frame);
        (*thread.own.get()).context = Context::new(start, thread.entry_stack());
    }
    Ok(Arc::new(thread))
}

impl Thread {
    /// Where the registers of user code are.
    pub fn frame(&self) -> *mut Frame {
        (self.entry_stack() + BELOW) as *mut Frame
    }

    /// The stack pointer with which a trap from user code begins; 0 for the first thread, which runs none.
    pub fn entry_stack(&self) -> usize {
        self.stack.as_ref().map_or(0, |stack| stack.0.get() as usize + STACK - BELOW - size_of::<Frame>())
    }
}
