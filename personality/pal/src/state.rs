//! What the personality keeps: for the kernel, and for each picoprocess.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use janua_abi::linux::Errno;
use janua_object::OpenFile;
use janua_personality_linux::Thread;
use janua_personality_linux::outside::Wanted;
use janua_personality_linux::thread::ThreadExt;
use janua_personality_outside::pal::manifest::Manifest;
use janua_port::Machine;
use janua_rt::{Mutex, RwLock};

use crate::answer::Result;
use crate::bulk::Channel;
use crate::stream::server::Server;

/// A pipe's name: whose group may use it, and its number.
pub type PipeName = (u64, u64);

/// One per kernel.
pub struct System {
    /// Servers of pipes.
    pub pipes: Mutex<BTreeMap<PipeName, Weak<Server>>>,
    /// Channels for pages, by key.
    pub channels: Mutex<BTreeMap<u64, Weak<Channel>>>,
    /// Picoprocesses that the service is to make.
    pub wanted: Mutex<Vec<Wanted>>,
    /// Held while a handle is put into a stream ([`crate::handle`]).
    pub sending: Mutex<()>,
    /// Of this kernel among all; for programs.
    pub host_id: u64,
}

impl System {
    pub fn new(machine: &dyn Machine) -> Arc<System> {
        Arc::new(System {
            pipes: Mutex::default(),
            channels: Mutex::default(),
            wanted: Mutex::default(),
            sending: Mutex::default(),
            host_id: random(machine),
        })
    }
}

/// A number that nobody guesses, and no 0.
pub fn random(machine: &dyn Machine) -> u64 {
    let mut bytes = [0; 8];
    machine.random(&mut bytes);
    u64::from_ne_bytes(bytes) >> 1 | 1
}

/// Rules a picoprocess is under: those of all its manifests hold.
pub type Rules = Arc<[Arc<Manifest>]>;

/// What the library gave when it started.
#[derive(Clone, Copy, Debug, Default)]
pub struct Library {
    /// Where the kernel enters it for events, and what a handler returns to.
    pub upcall: usize,
    pub restorer: usize,
    /// Where it is in memory: its addresses are not for allocating.
    pub code: (usize, usize),
}

/// Standard input, output and error.
pub type ConsoleFiles = [Option<Arc<OpenFile>>; 3];

/// A picoprocess.
pub struct State {
    pub system: Arc<System>,
    /// The path of its executable.
    pub exec: Vec<u8>,
    pub rules: RwLock<Rules>,
    /// Under what names its pipes are ([`PipeName`]).
    pub group: AtomicU64,
    /// The manifest's text, for its handle.
    pub manifest: Option<Arc<[u8]>>,
    /// Descriptors it begins with: the stream to its parent.
    pub parent: Option<i32>,
    /// What it had at the descriptors 0 to 2 when its library started, before its program could close or open any.
    pub console: RwLock<ConsoleFiles>,
    pub library: RwLock<Library>,
    /// The library has started: before that there are no calls.
    pub started: AtomicBool,
    /// A call before that has been reported.
    early: AtomicBool,
}

impl State {
    pub fn new(system: Arc<System>, exec: Vec<u8>, rules: Rules, group: u64) -> State {
        State {
            system,
            exec,
            rules: RwLock::new(rules),
            group: AtomicU64::new(group),
            manifest: None,
            parent: None,
            console: RwLock::default(),
            library: RwLock::default(),
            started: AtomicBool::new(false),
            early: AtomicBool::new(false),
        }
    }

    /// The rules in force.
    pub fn rules(&self) -> Rules {
        self.rules.read().clone()
    }
}

/// The calling thread's picoprocess, whether its library has started or not.
pub fn unstarted(thread: &Thread) -> Result<Arc<State>> {
    let extension = thread.process().extension.read().clone();
    Ok(extension.and_then(|extension| extension.downcast().ok()).ok_or(Errno::ESRCH)?)
}

const EARLY: &[u8] = b"janua: the program makes calls before its library has started: is it linked with libpal?\n";

/// The calling thread's picoprocess. A program without the library, which makes Linux' calls, finds none: NOTIMPLEMENTED, and a line for a person, since
/// few such programs get as far as to report that.
pub fn of(thread: &Thread) -> Result<Arc<State>> {
    let state = unstarted(thread)?;
    if state.started.load(Ordering::Relaxed) {
        return Ok(state);
    }
    if !state.early.swap(true, Ordering::Relaxed) {
        thread.machine().console().write(EARLY);
    }
    Err(janua_abi::pal::Error::NotImplemented.into())
}
