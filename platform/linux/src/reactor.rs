//! Readiness of host descriptors: one thread of the first process waits for all of them.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use crate::lock::Mutex;
use janua_abi::linux::fcntl::open::O_CLOEXEC;
use janua_abi::linux::poll::{EpollEvent, epoll_ctl, event};
use janua_abi::linux::{Errno, Result};
use janua_port::host::HostReady;

use crate::sys::{self, nr};

/// Edge triggered. ERR and HUP always come.
const INTEREST: u32 = event::IN | event::PRI | event::OUT | event::RDHUP | 1 << 31;

/// The watched descriptors.
pub struct Reactor {
    epoll: i32,
    targets: Mutex<BTreeMap<i32, Arc<dyn HostReady>>>,
}

impl Reactor {
    /// Made by the first process, which also runs [`Reactor::run`].
    pub fn new() -> Result<Reactor> {
        let epoll = sys::words(nr::EPOLL_CREATE1, [O_CLOEXEC as usize, 0, 0, 0, 0, 0])? as i32;
        Ok(Reactor { epoll, targets: Mutex::new(BTreeMap::new()) })
    }

    pub fn watch(&self, fd: i32, target: Arc<dyn HostReady>) -> Result<()> {
        let event = EpollEvent { events: INTEREST, data: fd as u64 };
        let old = self.targets.lock().insert(fd, target);
        // SAFETY: the event is ours.
        let added = unsafe {
            sys::raw(
                nr::EPOLL_CTL,
                [self.epoll as usize, epoll_ctl::ADD as usize, fd as usize, &raw const event as usize, 0, 0],
            )
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
            let _ = sys::words(nr::EPOLL_CTL, [self.epoll as usize, epoll_ctl::DEL as usize, fd as usize, 0, 0, 0]);
        }
        drop(gone);
    }

    /// Waits and notifies, for the sandbox's life.
    pub fn run(&self) -> ! {
        let mut events: Box<[EpollEvent; 64]> = Box::new([EpollEvent::default(); 64]);
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
