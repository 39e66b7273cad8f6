//! What a module has its call's home thread do: touch user memory in place.
//!
//! A call that is away reaches its thread's memory from afar where the machine can. What it cannot do there (a page that has yet to be made,
//! an atomic exchange in another process) is an errand: the home thread, which waits for the call's end, does it and replies. The module sleeps
//! meanwhile.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use janua_port::machine::ThreadId;
use janua_port::user::{NoMemory, copy_str_by_pages};
use janua_port::{Context, Fault, Spun, UserMemory};
use janua_rt::atomic::AtomicU32;
use janua_rt::{Mutex, OnceArc, wake};

use crate::thread::WakeState;

/// Most bytes of one errand.
const MOST: usize = 64 * 1024;

/// How long a module sleeps before it looks whether the home thread still lives, nanoseconds.
const LOOK: u64 = 100_000_000;

/// How long it spins before, nanoseconds: most errands are short.
const SPIN: u64 = 15_000;

/// What the home thread is to do.
enum Errand {
    Read { addr: usize, len: usize },
    Write { addr: usize, data: Vec<u8> },
    Zero { addr: usize, len: usize },
    Load { addr: usize },
    Exchange { addr: usize, old: u32, new: u32 },
}

/// What it got: bytes, how many were done, or a word.
enum Reply {
    Bytes(Vec<u8>),
    Count(usize),
    Word(Result<u32, Fault>),
}

#[derive(Default)]
struct Inbox {
    /// The call is away: the home thread looks here.
    open: bool,
    errand: Option<Errand>,
}

/// The memory of a thread whose call is away.
pub(crate) struct AwayMemory {
    /// What the machine has of the thread.
    pub context: OnceArc<dyn Context>,
    wake: Arc<WakeState>,
    /// The module may reach the memory from where it runs.
    pub direct: AtomicBool,
    /// Held from an errand to its reply.
    turn: Mutex<()>,
    /// Where the home thread finds what it is to do.
    inbox: Mutex<Inbox>,
    reply: Mutex<Option<Reply>>,
    /// The wake word of who waits for a reply.
    word: AtomicU32,
}

impl AwayMemory {
    pub fn new(wake: Arc<WakeState>) -> AwayMemory {
        AwayMemory {
            context: OnceArc::default(),
            wake,
            direct: AtomicBool::new(false),
            turn: Mutex::new(()),
            inbox: Mutex::default(),
            reply: Mutex::new(None),
            word: AtomicU32::new(wake::QUIET),
        }
    }

    /// The memory as the machine has it.
    fn machines(&self) -> &dyn UserMemory {
        match self.context.get() {
            Some(context) => context.memory(),
            None => &NoMemory,
        }
    }

    /// The same for accesses from afar, where the module may make them.
    fn afar(&self) -> &dyn UserMemory {
        if self.direct.load(Ordering::Relaxed) { self.machines() } else { &NoMemory }
    }

    /// By the home thread, before its call goes away.
    pub fn open(&self) {
        self.inbox.lock().open = true;
    }

    /// By the home thread, whose call is over: does what was asked of it last.
    pub fn close(&self) {
        self.inbox.lock().open = false;
        self.serve();
    }

    /// By the home thread: does what is asked of it.
    pub fn serve(&self) {
        let errand = self.inbox.lock().errand.take();
        let Some(errand) = errand else { return };
        let memory = self.machines();
        let reply = match errand {
            Errand::Read { addr, len } => {
                let mut bytes = vec![0; len];
                let got = memory.copy_in_partial(&mut bytes, addr);
                bytes.truncate(got);
                Reply::Bytes(bytes)
            }
            Errand::Write { addr, data } => Reply::Count(memory.copy_out_partial(addr, &data)),
            Errand::Zero { addr, len } => Reply::Count(if memory.zero(addr, len).is_ok() { len } else { 0 }),
            Errand::Load { addr } => Reply::Word(memory.load_u32(addr)),
            Errand::Exchange { addr, old, new } => Reply::Word(memory.cmpxchg_u32(addr, old, new)),
        };
        *self.reply.lock() = Some(reply);
        self.wake.raise_word(&self.word);
    }

    /// By the module, or by who looks into another thread's memory. `None` when the home thread has ended, or its
    /// call: then the memory is as it is for others.
    fn ask(&self, errand: Errand) -> Option<Reply> {
        let _turn = self.turn.lock();
        let machine = self.wake.machine;
        {
            let mut inbox = self.inbox.lock();
            if !inbox.open {
                return None;
            }
            inbox.errand = Some(errand);
        }
        self.wake.raise_word(&self.wake.home);
        loop {
            wake::rearm(&self.word);
            if let Some(reply) = self.reply.lock().take() {
                return Some(reply);
            }
            if self.context.get().is_none_or(|context| context.id() == ThreadId::default()) {
                self.inbox.lock().errand.take();
                return None;
            }
            if machine.park().spin(&self.word, wake::QUIET, SPIN) == Spun::Changed {
                continue;
            }
            let again = machine.clock().monotonic() + LOOK;
            if wake::intend_to_park(&self.word) {
                machine.park().park(&self.word, wake::PARKED, Some(again));
            }
        }
    }

    /// Does `part(at, len)` for so many bytes, a part at a time, until one is not done whole: bytes done. Others who are ready run in between, since
    /// nothing takes the processor from a module.
    fn by_parts(&self, len: usize, mut part: impl FnMut(usize, usize) -> usize) -> usize {
        let mut done = 0;
        while done < len {
            let want = (len - done).min(MOST);
            let got = part(done, want);
            done += got;
            if got < want {
                break;
            }
            if done < len {
                self.wake.machine.park().yield_now();
            }
        }
        done
    }

    fn ask_word(&self, errand: Errand) -> Option<Result<u32, Fault>> {
        match self.ask(errand) {
            Some(Reply::Word(word)) => Some(word),
            _ => None,
        }
    }
}

impl UserMemory for AwayMemory {
    fn in_place(&self) -> bool {
        false
    }

    fn is_user(&self, addr: usize, len: usize) -> bool {
        self.machines().is_user(addr, len)
    }

    fn is_code(&self, addr: usize) -> bool {
        self.machines().is_code(addr)
    }

    fn in_range(&self, addr: usize, len: usize) -> bool {
        self.machines().in_range(addr, len)
    }

    fn copy_in_partial(&self, dst: &mut [u8], src: usize) -> usize {
        if !self.is_user(src, dst.len()) {
            return 0;
        }
        self.by_parts(dst.len(), |at, len| {
            let part = &mut dst[at..at + len];
            let done = self.afar().copy_in_partial(part, src + at);
            if done == len {
                return len;
            }
            match self.ask(Errand::Read { addr: src + at + done, len: len - done }) {
                Some(Reply::Bytes(bytes)) => {
                    part[done..done + bytes.len()].copy_from_slice(&bytes);
                    done + bytes.len()
                }
                _ => done + self.machines().copy_in_partial(&mut part[done..], src + at + done),
            }
        })
    }

    fn copy_out_partial(&self, dst: usize, src: &[u8]) -> usize {
        if !self.is_user(dst, src.len()) {
            return 0;
        }
        self.by_parts(src.len(), |at, len| {
            let part = &src[at..at + len];
            let done = self.afar().copy_out_partial(dst + at, part);
            if done == len {
                return len;
            }
            match self.ask(Errand::Write { addr: dst + at + done, data: part[done..].to_vec() }) {
                Some(Reply::Count(count)) => done + count,
                _ => done + self.machines().copy_out_partial(dst + at + done, &part[done..]),
            }
        })
    }

    fn copy_out_some(&self, parts: &[(usize, &[u8])]) -> usize {
        // The rest is for who asks for it by itself.
        self.afar().copy_out_some(parts)
    }

    fn zero(&self, dst: usize, len: usize) -> Result<(), Fault> {
        if !self.is_user(dst, len) {
            return Err(Fault);
        }
        let done = self.by_parts(len, |at, len| {
            if self.afar().zero(dst + at, len).is_ok() {
                return len;
            }
            match self.ask(Errand::Zero { addr: dst + at, len }) {
                Some(Reply::Count(count)) => count,
                _ if self.machines().zero(dst + at, len).is_ok() => len,
                _ => 0,
            }
        });
        if done == len { Ok(()) } else { Err(Fault) }
    }

    fn copy_str(&self, dst: &mut [u8], src: usize) -> Result<Option<usize>, Fault> {
        self.afar().copy_str(dst, src).or_else(|_| copy_str_by_pages(self, dst, src))
    }

    fn load_u32(&self, addr: usize) -> Result<u32, Fault> {
        match self.afar().load_u32(addr) {
            Ok(word) => Ok(word),
            Err(Fault) => self.ask_word(Errand::Load { addr }).unwrap_or_else(|| self.machines().load_u32(addr)),
        }
    }

    fn cmpxchg_u32(&self, addr: usize, old: u32, new: u32) -> Result<u32, Fault> {
        let asked = self.ask_word(Errand::Exchange { addr, old, new });
        asked.unwrap_or_else(|| self.machines().cmpxchg_u32(addr, old, new))
    }
}
