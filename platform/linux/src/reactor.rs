//! Readiness of host descriptors: one thread of the first process waits for all of them.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use crate::lock::Mutex;
use janua_abi::linux::{Errno, Result};
use janua_port::host::HostReady;

use crate::sys::{self, nr};

const EPOLL_CTL_ADD: usize = 1;
const EPOLL_CTL_DEL: usize = 2;
const EPOLL_CLOEXEC: usize = 0o2000000;
/// IN, PRI, OUT, RDHUP and edge triggered; ERR and HUP always come.
const INTEREST: u32 = 0x1 | 0x2 | 0x4 | 0x2000 | 1 << 31;

#[repr(C, packed)]
#[derive(Clone, Copy, Default)]
struct Event {
    events: u32,
    data: u64,
}

/// The watched descriptors.
pub struct Reactor {
    epoll: i32,
    targets: Mutex<BTreeMap<i32, Arc<dyn HostReady>>>,
}

impl Reactor {
    /// Made by the first process, which also runs [`Reactor::run`].
    pub fn new() -> Result<Reactor> {
        let epoll = sys::words(nr::EPOLL_CREATE1, [EPOLL_CLOEXEC, 0, 0, 0, 0, 0])? as i32;
        Ok(Reactor { epoll, targets: Mutex::new(BTreeMap::new()) })
    }

    pub fn watch(&self, fd: i32, target: Arc<dyn HostReady>) -> Result<()> {
        let event = Event { events: INTEREST, data: fd as u64 };
        let old = self.targets.lock().insert(fd, target);
        // SAFETY: the event is ours.
        let added = unsafe {
            sys::raw(nr::EPOLL_CTL, [self.epoll as usize, EPOLL_CTL_ADD, fd as usize, &raw const event as usize, 0, 0])
        };
        match added {
            Ok(_) | Err(Errno::EEXIST) => {
                drop(old);
                Ok(())
            }
            Err(errno) => {
                let gone = self.targets.lock().remove(&fd);
                drop((gone, old));
                Err(errno)
            }
        }
    }

    pub fn unwatch(&self, fd: i32) {
        let gone = self.targets.lock().remove(&fd);
        if gone.is_some() {
            let _ = sys::words(nr::EPOLL_CTL, [self.epoll as usize, EPOLL_CTL_DEL, fd as usize, 0, 0, 0]);
        }
        drop(gone);
    }

    /// Waits and tells, for the sandbox's life.
    pub fn run(&self) -> ! {
        let mut events: Box<[Event; 64]> = Box::new([Event::default(); 64]);
        loop {
            // SAFETY: the array is ours.
            let count = unsafe {
                sys::raw(nr::EPOLL_PWAIT, [self.epoll as usize, events.as_mut_ptr() as usize, events.len(), usize::MAX, 0, 8])
            };
            for event in &events[..count.unwrap_or(0)] {
                let fd = event.data as i32;
                let target = self.targets.lock().get(&fd).cloned();
                if let Some(target) = target {
                    target.ready(event.events);
                }
            }
        }
    }
}
