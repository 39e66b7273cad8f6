//! What the machine has of a thread, for any thread of the kernel.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use janua_abi::linux::{Errno, Result};
use janua_port::machine::{Demand, ThreadId};
use janua_port::{Context, Fault, Nanos, Reach, Registers, Space, Spawn, UserMemory};

use crate::machine::{Carrier, FPU, Model, initial_fpu};
use crate::memory::{ModelSpace, is_user, lock};

/// A thread, by its number, which no other ever has.
pub struct ModelContext {
    pub model: &'static Model,
    pub id: ThreadId,
}

impl ModelContext {
    fn carrier(&self) -> Option<Arc<Carrier>> {
        self.model.find(self.id)
    }

    fn space(&self) -> Option<Arc<dyn Space>> {
        Some(lock(&self.carrier()?.space).clone())
    }
}

impl Reach for ModelContext {
    type Near = Model;
    fn near(&self) -> &Model {
        self.model
    }
    fn is_caller(&self) -> bool {
        self.is_near()
    }
    fn is_near(&self) -> bool {
        self.model.is_turn_of(self.id)
    }
    fn read(&self, addr: usize, out: &mut [u8]) -> usize {
        self.space().map_or(0, |space| ModelSpace::of(&space).read(addr, out))
    }
    fn write(&self, addr: usize, data: &[u8]) -> usize {
        self.space().map_or(0, |space| ModelSpace::of(&space).write(addr, data))
    }
    fn load(&self, addr: usize) -> std::result::Result<u32, Fault> {
        self.space().map_or(Err(Fault), |space| ModelSpace::of(&space).load_u32(addr))
    }
    fn exchange(&self, addr: usize, old: u32, new: u32) -> std::result::Result<u32, Fault> {
        self.space().map_or(Err(Fault), |space| ModelSpace::of(&space).cmpxchg_u32(addr, old, new))
    }
}

impl Context for ModelContext {
    fn id(&self) -> ThreadId {
        self.id
    }
    fn memory(&self) -> &dyn UserMemory {
        self
    }
    /// A processor's would be out of reach while another thread runs, so here they are too.
    fn registers(&self) -> Result<&dyn Registers> {
        if self.is_near() { Ok(self) } else { Err(Errno::EXDEV) }
    }
    fn spawn(&self, spawn: Spawn) -> Result<Arc<dyn Context>> {
        if !self.is_near() {
            return Err(Errno::EXDEV);
        }
        let creator = self.model.current_carrier();
        let space = spawn.space.unwrap_or_else(|| lock(&creator.space).clone());
        Ok(self.model.add(spawn.guest, spawn.frame, space, Some(&creator), spawn.tls))
    }
    fn kick(&self) {
        // Work is looked at before each instruction.
    }
    fn restrict(&self, cpus: &[u64]) -> Result<()> {
        if cpus.first().is_some_and(|word| word & 1 != 0) { Ok(()) } else { Err(Errno::EINVAL) }
    }
    fn promise(&self, demand: Option<Demand>) -> Result<()> {
        self.model.promise(&*self.carrier().ok_or(Errno::ESRCH)?, demand)
    }
    fn cpu(&self, _whole_task: bool) -> Option<Nanos> {
        Some(self.carrier()?.used.load(Ordering::Relaxed))
    }
    fn resident(&self) -> Option<u64> {
        Some(ModelSpace::of(&self.space()?).bytes().0)
    }
    fn peak_resident(&self) -> u64 {
        self.space().map_or(0, |space| ModelSpace::of(&space).bytes().1)
    }
}

impl Registers for ModelContext {
    fn tls(&self) -> usize {
        self.model.current_carrier().tls.load(Ordering::Relaxed)
    }
    fn set_tls(&self, value: usize) {
        if is_user(value, 0) {
            self.model.current_carrier().tls.store(value, Ordering::Relaxed);
        }
    }
    fn gs(&self) -> usize {
        self.model.current_carrier().gs.load(Ordering::Relaxed)
    }
    fn set_gs(&self, value: usize) {
        if is_user(value, 0) {
            self.model.current_carrier().gs.store(value, Ordering::Relaxed);
        }
    }
    fn fpu_save(&self, area: &mut [u8]) {
        let carrier = self.model.current_carrier();
        let state = lock(&carrier.fpu);
        let len = area.len().min(FPU);
        area[..len].copy_from_slice(&state[..len]);
    }
    fn fpu_restore(&self, area: &[u8]) -> Result<()> {
        let carrier = self.model.current_carrier();
        let mut state = lock(&carrier.fpu);
        let len = area.len().min(FPU);
        state[..len].copy_from_slice(&area[..len]);
        Ok(())
    }
    fn fpu_reset(&self) {
        *lock(&self.model.current_carrier().fpu) = initial_fpu();
    }
}
