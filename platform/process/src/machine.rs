//! The machine the kernel sees.

use alloc::boxed::Box;
use alloc::sync::Arc;

use janua_abi::linux::Result;
use janua_paging::Object;
use janua_platform_linux::{LinuxMachine, boot, vdso};
use janua_port::machine::{Isa, Memory, NewSpace, Outside};
use janua_port::{
    Accounts, Clock, Compat, Console, Context, Guest, Host, HostedGate, Machine, MemoryObject, Nanos, Park, Space, SpawnKind,
};

use crate::files::{self, ProcessHost};
use crate::physical::MEMORY;
use crate::space::{self, ProcessSpace};
use crate::{life, mailbox, near, zygote};

/// The linux platform's machine with guests in processes of their own; one in a sandbox.
pub struct ProcessMachine {
    linux: &'static LinuxMachine,
}

/// Makes physical memory and the process that guests' processes are made from.
fn prepare(linux: &LinuxMachine) -> Result<()> {
    let limit = boot::accounts().memory.limit();
    // Files in memory and the kernel's heap have accounts of their own, and are part of it. What is kept of the host's files is not.
    let limit = limit.min(linux.memory().total as usize);
    // Who has most is ended when it is too much by more than what may be an error of counting. There must be as much for that to be seen.
    let beyond = limit / 16;
    MEMORY.init(limit.saturating_add(files::set_bound(limit)).saturating_add(beyond))?;
    if mailbox::are_used() {
        vdso::set_call_entry(mailbox::entry())?;
    }
    zygote::start()
}

impl ProcessMachine {
    /// Prepares the calling process, the sandbox's first, as [`LinuxMachine::start`] does.
    pub fn start(gate: &'static dyn HostedGate) -> Result<&'static ProcessMachine> {
        let linux = LinuxMachine::start(gate, prepare)?;
        Ok(Box::leak(Box::new(ProcessMachine { linux })))
    }

    /// Where rewritten call sites jump in guests' processes, when the gate wants them rewritten.
    pub fn call_entry(&self) -> Option<usize> {
        mailbox::are_used().then(mailbox::entry)
    }

    /// [`LinuxMachine::serve`].
    pub fn serve(&'static self, mut serve: impl FnMut() -> Option<Nanos>) -> ! {
        self.linux.serve(move || {
            MEMORY.give_back();
            let next = near::look();
            serve().into_iter().chain(next).min()
        })
    }
}

impl Machine for ProcessMachine {
    fn clock(&self) -> &dyn Clock {
        self.linux.clock()
    }
    fn console(&self) -> &dyn Console {
        self.linux.console()
    }
    fn park(&self) -> &dyn Park {
        self.linux.park()
    }
    fn host(&self) -> Option<&dyn Host> {
        Some(&ProcessHost)
    }
    fn memory_object(&self, _name: &str) -> Result<Arc<dyn MemoryObject>> {
        Ok(Object::new(&MEMORY, 0))
    }
    fn compat(&self) -> Option<&dyn Compat> {
        self.linux.compat()
    }
    fn spawn_first(&self, guest: Arc<dyn Guest>) -> Result<(Arc<dyn Context>, Arc<dyn Space>)> {
        life::spawn_first(guest)
    }
    fn spawn_kernel(&self, name: &'static str, body: Box<dyn FnOnce() + Send>) -> Result<()> {
        self.linux.spawn_kernel(name, body)
    }
    fn wake_service(&self) {
        self.linux.wake_service();
    }
    fn space_for(&self, kind: SpawnKind, parent: &Arc<dyn Space>) -> Result<NewSpace> {
        Ok(NewSpace::Whole(match kind {
            SpawnKind::Fork => space::copy(ProcessSpace::of(parent))?,
            SpawnKind::Thread | SpawnKind::SharedSpace => parent.clone(),
        }))
    }
    fn isa(&self) -> Isa {
        self.linux.isa()
    }
    fn cpus(&self) -> usize {
        self.linux.cpus()
    }
    fn allowed(&self, word: usize) -> u64 {
        self.linux.allowed(word)
    }
    fn cpu(&self) -> usize {
        self.linux.cpu()
    }
    fn pin(&self, processor: usize) -> Result<()> {
        self.linux.pin(processor)
    }
    fn accounts(&self) -> &'static Accounts {
        self.linux.accounts()
    }
    fn resident_guests(&self, _exact: Option<usize>) -> Option<usize> {
        Some(MEMORY.own_bytes())
    }
    fn memory(&self) -> Memory {
        self.linux.memory()
    }
    fn random(&self, out: &mut [u8]) {
        self.linux.random(out);
    }
    fn vdso(&self) -> Option<[(usize, usize); 2]> {
        self.linux.vdso()
    }
    fn notify_outside(&self, event: Outside) {
        if let Outside::Ended(_) = event {
            // The supervisor ends what is left then: what the last programs have stored must be in their files.
            let _ = files::write_back();
        }
        self.linux.notify_outside(event);
    }
}
