//! Descriptors in flight (SCM_RIGHTS), and the collection of sockets that only messages hold.
//!
//! A socket whose descriptor lies in its own queue, or in a queue that only such sockets lead to, is closed by nobody. Such
//! rings are found by trial deletion: of every AF_UNIX file in flight, count the references that lie in queues of files in
//! flight; a file with more references than that is held by somebody, and so is what its queue leads to. The rest is emptied.
//!
//! References move while the counting goes on, but a file gets new holders only when a message is taken. Taking one raises
//! `taken` while its queue is still locked; a collection during which `taken` has changed is given up. The collection runs
//! when an AF_UNIX socket is released and when descriptors are sent while many are in flight; a ring whose last descriptor is
//! closed stays until the next such moment. Rings through other files that hold files (epoll) are not looked for.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hashbrown::HashMap;
use janua_rt::Mutex;

use crate::file::OpenFile;
use crate::net::socket::SocketFile;
use crate::net::unix::UnixSocket;

/// Files in flight before a sender looks for rings.
const MANY: usize = 1000;

/// Files on their way in a message.
pub struct Rights {
    files: Vec<Arc<OpenFile>>,
    flight: Arc<Flight>,
}

impl Rights {
    /// Puts files in flight.
    pub fn new(flight: &Arc<Flight>, files: Vec<Arc<OpenFile>>) -> Arc<Rights> {
        {
            let mut sockets = flight.sockets.lock();
            for file in files.iter().filter(|file| unix_of(file).is_some()) {
                sockets.entry(file.id).or_insert_with(|| (Arc::downgrade(file), 0)).1 += 1;
            }
        }
        Arc::new(Rights { files, flight: flight.clone() })
    }

    pub fn files(&self) -> &[Arc<OpenFile>] {
        &self.files
    }

    /// Notes that a receiver is about to hold the files. Called with the message's queue locked.
    pub fn note_taken(&self) {
        self.flight.taken.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for Rights {
    fn drop(&mut self) {
        let mut sockets = self.flight.sockets.lock();
        for file in self.files.iter().filter(|file| unix_of(file).is_some()) {
            if let Some(entry) = sockets.get_mut(&file.id) {
                entry.1 -= 1;
                if entry.1 == 0 {
                    sockets.remove(&file.id);
                }
            }
        }
    }
}

fn unix_of(file: &OpenFile) -> Option<&UnixSocket> {
    file.downcast::<SocketFile>()?.socket.as_any().downcast_ref()
}

/// The AF_UNIX sockets in flight in one kernel, by description, with the messages that carry them.
#[derive(Default)]
pub struct Flight {
    sockets: Mutex<HashMap<u64, (Weak<OpenFile>, usize)>>,
    taken: AtomicU64,
    collecting: AtomicBool,
}

struct Candidate {
    file: Arc<OpenFile>,
    /// References found in the queues of candidates.
    inside: usize,
    /// Candidates in this one's queue.
    leads_to: Vec<u64>,
    held: bool,
}

impl Flight {
    /// Whether so many are in flight that a sender should look for rings.
    pub fn is_crowded(&self) -> bool {
        self.sockets.lock().len() > MANY
    }

    /// Empties the queues of sockets that nobody can reach any more.
    pub fn collect(&self) {
        if self.sockets.lock().is_empty() || self.collecting.swap(true, Ordering::Acquire) {
            return;
        }
        for lost in self.unreachable() {
            if let Some(socket) = unix_of(&lost) {
                socket.discard();
            }
        }
        self.collecting.store(false, Ordering::Release);
    }

    fn unreachable(&self) -> Vec<Arc<OpenFile>> {
        let taken = self.taken.load(Ordering::SeqCst);
        let mut candidates: HashMap<u64, Candidate> = self
            .sockets
            .lock()
            .iter()
            .filter_map(|(&id, (file, _))| {
                Some((id, Candidate { file: file.upgrade()?, inside: 0, leads_to: Vec::new(), held: false }))
            })
            .collect();

        let ids: Vec<u64> = candidates.keys().copied().collect();
        for id in &ids {
            let mut found = Vec::new();
            if let Some(socket) = unix_of(&candidates[id].file) {
                socket.each_rights(&mut |rights| found.extend(rights.files.iter().map(|file| file.id)));
            }
            found.retain(|id| candidates.contains_key(id));
            for id in &found {
                if let Some(candidate) = candidates.get_mut(id) {
                    candidate.inside += 1;
                }
            }
            if let Some(candidate) = candidates.get_mut(id) {
                candidate.leads_to = found;
            }
        }

        // One reference is this function's own.
        let mut reached: Vec<u64> = ids
            .iter()
            .copied()
            .filter(|id| candidates.get(id).is_some_and(|one| Arc::strong_count(&one.file) > one.inside + 1))
            .collect();
        while let Some(id) = reached.pop() {
            if let Some(candidate) = candidates.get_mut(&id)
                && !core::mem::replace(&mut candidate.held, true)
            {
                reached.extend_from_slice(&candidate.leads_to);
            }
        }
        if self.taken.load(Ordering::SeqCst) != taken {
            return Vec::new();
        }
        candidates.into_values().filter(|candidate| !candidate.held).map(|candidate| candidate.file).collect()
    }
}
