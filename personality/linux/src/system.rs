//! State of one Linux kernel instance: what would be globals elsewhere.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::linux::process::UtsName;
use janua_object::memfd::MemFs;
use janua_object::mm::jail::Jail;
use janua_object::net::NetSystem;
use janua_object::sysv::Ipc;
use janua_object::tty::pts::Pairs;
use janua_object::vfs::Vfs;
use janua_port::{Machine, Nanos, RingGate, Space, UserMemory};
use janua_rt::{AtomicU64, Mutex, RwLock};

use crate::boot::BootConfig;
use crate::dev::terminal::Outer;
use crate::fs::{FileState, FsContext};
use crate::mm::watch::Watch;
use crate::task::Tree;
use crate::task::exit::Ending;
use crate::tiles::Monitor;
use crate::user::Users;
use crate::{Seat, Task};

/// One per kernel.
pub struct System {
    /// Processes, threads, groups, families.
    pub tree: Mutex<Tree>,
    pub users: Users,
    pub futexes: crate::futex::FutexTable,
    pub timers: crate::time::Timers,
    /// Held while an epoll is added to an epoll.
    pub nesting: Mutex<()>,
    /// What uname(2) reports; the names can be set.
    pub uts: RwLock<UtsName>,
    /// The name space.
    pub vfs: Vfs,
    /// Files in memory without a name.
    pub memory: Arc<MemFs>,
    /// What keeps guests from this kernel and rewrites their calls; `None` where the machine does the one and calls trap.
    pub jail: Option<&'static dyn Jail>,
    /// Most descriptors anybody may ask for (/proc/sys/fs/nr_open).
    pub nr_open: AtomicU64,
    /// System V IPC objects.
    pub ipc: Ipc,
    /// Locks and watches of files.
    pub files: FileState,
    /// Sockets.
    pub net: NetSystem,
    /// The place programs start from: the root of the whole tree of names.
    pub root: Arc<FsContext>,
    /// When the kernel started, monotonic and since 1970.
    pub booted: Nanos,
    pub booted_real: Nanos,
    /// How much ran lately.
    pub(crate) load: crate::load::Load,
    /// How this kernel was started.
    pub config: BootConfig,
    /// New address spaces by the process they are for, on their way to the thread that loads a program there.
    pub new_spaces: Mutex<BTreeMap<u32, Arc<dyn Space>>>,
    /// What the outside has asked for beside the first program.
    pub outside: crate::outside::Running,
    /// The pseudoterminals; there from the start of the first program.
    pub pairs: RwLock<Option<Arc<Pairs>>>,
    /// The outside's terminal, when there is one.
    pub outer: RwLock<Option<Arc<Outer>>>,
    /// Who was ended because memory was used up.
    pub watch: Watch,
    /// The memory of rings, and who looks into those that nobody announces.
    pub rings: crate::uring::Rings,
    /// The gate by which programs make rings of calls; `None` where the image has none.
    pub ring_gate: RwLock<Option<&'static dyn RingGate>>,
    /// What hears the other tiles, where there are some.
    pub monitor: RwLock<Option<Arc<Monitor>>>,
    /// Programs on other tiles than the one that starts them.
    pub place: crate::place::Placing,
    /// The end of the sandbox.
    pub ending: Ending,
}

impl System {
    pub fn new(
        machine: &'static dyn Machine,
        jail: Option<&'static dyn Jail>,
        config: BootConfig,
        vfs: Vfs,
        root: Arc<FsContext>,
    ) -> System {
        let memory = MemFs::new(&vfs);
        System {
            nr_open: AtomicU64::new(crate::limits::NR_OPEN),
            ipc: Ipc::new(&vfs, memory.clone()),
            rings: crate::uring::Rings::new(&vfs),
            ring_gate: RwLock::new(None),
            monitor: RwLock::new(None),
            place: Default::default(),
            memory,
            jail,
            tree: Mutex::new(Tree::default()),
            users: Users::default(),
            futexes: crate::futex::FutexTable::default(),
            timers: crate::time::Timers::default(),
            nesting: Mutex::new(()),
            uts: RwLock::new(crate::misc::uts_name(&config)),
            files: FileState::new(&vfs.watches),
            vfs,
            net: crate::net::system(machine, config.net),
            root,
            booted: machine.clock().monotonic(),
            booted_real: machine.clock().realtime(),
            load: crate::load::Load::default(),
            config,
            new_spaces: Mutex::default(),
            outside: Default::default(),
            pairs: RwLock::default(),
            outer: RwLock::default(),
            watch: Watch::default(),
            ending: Ending::default(),
        }
    }

    /// Writes `user`, the memory of another process than the caller's, at a time when the jail can bear it: bytes written.
    pub fn write_remote(&self, user: &dyn UserMemory, addr: usize, data: &[u8]) -> usize {
        let Some(jail) = self.jail else { return user.copy_out_partial(addr, data) };
        let mut written = 0;
        jail.write_remote(&mut || written = user.copy_out_partial(addr, data));
        written
    }

    /// A process by number, ended or not.
    pub fn process(&self, pid: u32) -> Option<Arc<Task>> {
        self.tree.lock().process(pid).cloned()
    }

    /// A live thread by number.
    pub fn thread(&self, tid: u32) -> Option<Arc<Seat>> {
        self.tree.lock().thread(tid)
    }

    /// All processes in order of their numbers, ended ones included.
    pub fn processes(&self) -> Vec<Arc<Task>> {
        self.tree.lock().processes().cloned().collect()
    }
}
