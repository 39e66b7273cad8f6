//! Descriptors in flight (SCM_RIGHTS), and the collection of sockets that only messages hold.
//!
//! A socket whose descriptor is in its own queue, or in a queue that only such sockets lead to, is closed by nobody. Such
//! rings are found by trial deletion: of every AF_UNIX file in flight, count the references that are in queues of files in
//! flight; a file with more references than that is held by somebody, and so is what its queue leads to. The rest is emptied.
//!
//! References move while the counting goes on, but a file gets new holders only when a message is taken. Taking one raises
//! `taken` while its queue is still locked; a collection during which `taken` has changed is given up. There is occasion for
//! one when an AF_UNIX socket is released and when descriptors are sent while many are in flight; a ring whose last descriptor is
//! closed stays until the next such moment. Since a collection costs as much as there are sockets in flight, of whomever, it
//! takes that many occasions more before the next is due ([`PER_OCCASION`]). Rings through other files that hold files (epoll) are not looked for.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hashbrown::HashMap;
use janua_abi::linux::{Errno, Result};
use janua_rt::{AtomicU64, Mutex};

use crate::file::OpenFile;
use crate::net::socket::SocketFile;
use crate::net::unix::UnixSocket;

/// Files in flight before a sender looks for rings.
const MANY: usize = 1000;

/// Sockets in flight for each occasion: with fewer, every one is used.
const PER_OCCASION: usize = 32;

/// Files that travel in a message.
pub struct Rights {
    files: Vec<Arc<OpenFile>>,
    sender: Sender,
    flight: Arc<Flight>,
}

/// On whose account files are in flight.
#[derive(Clone, Copy)]
pub struct Sender {
    pub uid: u32,
    /// Files the user may have in flight before the next message (RLIMIT_NOFILE); `None` for those no limit holds for.
    pub most: Option<u64>,
}

impl Rights {
    /// Puts files in flight. ETOOMANYREFS when the user has more than he may already.
    pub fn new(flight: &Arc<Flight>, files: Vec<Arc<OpenFile>>, sender: Sender) -> Result<Arc<Rights>> {
        {
            let mut users = flight.users.lock();
            let count = users.entry(sender.uid).or_insert(0);
            if sender.most.is_some_and(|most| *count > most) {
                return Err(Errno::ETOOMANYREFS);
            }
            *count += files.len() as u64;
        }
        {
            let mut sockets = flight.sockets.lock();
            for file in files.iter().filter(|file| unix_of(file).is_some()) {
                sockets.entry(file.id).or_insert_with(|| (Arc::downgrade(file), 0)).1 += 1;
            }
        }
        Ok(Arc::new(Rights { files, sender, flight: flight.clone() }))
    }

    pub fn files(&self) -> &[Arc<OpenFile>] {
        &self.files
    }

    /// Notes that a receiver is about to hold the files. Called with the message's queue locked.
    pub fn note_taken(&self) {
        self.flight.taken.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes the files out of flight.
    fn land(&mut self) -> Vec<Arc<OpenFile>> {
        {
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
        {
            let mut users = self.flight.users.lock();
            if let Some(count) = users.get_mut(&self.sender.uid) {
                *count -= self.files.len() as u64;
                if *count == 0 {
                    users.remove(&self.sender.uid);
                }
            }
        }
        core::mem::take(&mut self.files)
    }
}

impl Drop for Rights {
    fn drop(&mut self) {
        let files = self.land();
        if !files.is_empty() {
            self.flight.release(files);
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
    /// Files in flight by their senders' users.
    users: Mutex<HashMap<u32, u64>>,
    /// Threads that are releasing files.
    releasing: AtomicUsize,
    taken: AtomicU64,
    collecting: AtomicBool,
    /// Occasions for a collection since the last.
    occasions: AtomicUsize,
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

    /// Lets files go. A socket among them may be the last holder of messages with sockets that are the last holders of others, and so
    /// on, as deep as senders like: what such a socket loses in its release joins the list here, rather than being released inside of it.
    fn release(&self, mut files: Vec<Arc<OpenFile>>) {
        self.releasing.fetch_add(1, Ordering::SeqCst);
        while let Some(file) = files.pop() {
            // Others hold it, the last of whom releases it.
            let Some(last) = Arc::into_inner(file) else { continue };
            let Some(socket) = unix_of(&last).and_then(UnixSocket::keep_lost) else { continue };
            drop(last);
            for mut rights in socket.take_lost().into_iter().filter_map(Arc::into_inner) {
                files.append(&mut rights.land());
            }
        }
        self.releasing.fetch_sub(1, Ordering::SeqCst);
        self.collect();
    }

    /// An occasion to empty the queues of sockets that nobody can reach any more; later, while a thread is releasing files.
    pub fn collect(&self) {
        let flying = self.sockets.lock().len();
        let occasions = self.occasions.fetch_add(1, Ordering::Relaxed) + 1;
        if flying == 0 || occasions < flying / PER_OCCASION || self.releasing.load(Ordering::SeqCst) != 0 {
            return;
        }
        if self.collecting.swap(true, Ordering::Acquire) {
            return;
        }
        self.occasions.store(0, Ordering::Relaxed);
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
