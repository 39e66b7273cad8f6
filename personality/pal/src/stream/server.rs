//! Servers of pipes, and who connects to them.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use core::any::Any;
use core::sync::atomic::{AtomicU64, Ordering};

use janua_abi::linux::{Errno, Result};
use janua_abi::pal::{Error, Kind};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_object::file::flags::O_RDWR;
use janua_object::vfs::Attr;
use janua_object::{Caller, Events, File, OpenFile, anon};
use janua_personality_linux::Thread;
use janua_port::Clock;
use janua_rt::{Mutex, WaitQueue};

use super::pipe::Stream;
use crate::state::{PipeName, System};

/// Most clients that have connected and not been waited for, and most servers there are.
const BACKLOG: usize = 128;
const MOST_SERVERS: usize = 65_536;

/// A server.
pub struct Server {
    system: Arc<System>,
    clock: &'static dyn Clock,
    pub name: PipeName,
    backlog: Mutex<VecDeque<Arc<Stream>>>,
    queue: WaitQueue,
    /// How many have connected.
    connections: AtomicU64,
}

impl Server {
    /// Makes one of a name. STREAMEXIST when there is one.
    pub fn open(system: &Arc<System>, clock: &'static dyn Clock, name: PipeName, nonblocking: u32) -> Result<Arc<OpenFile>> {
        let mut pipes = system.pipes.lock();
        if pipes.get(&name).is_some_and(|known| known.strong_count() > 0) {
            return Err(Errno::EEXIST);
        }
        if pipes.len() == MOST_SERVERS {
            return Err(Errno::ENOMEM);
        }
        let server = Arc::new(Server {
            system: system.clone(),
            clock,
            name,
            backlog: Mutex::default(),
            queue: WaitQueue::new(),
            connections: AtomicU64::new(0),
        });
        pipes.insert(name, Arc::downgrade(&server));
        Ok(OpenFile::new(server, O_RDWR | nonblocking, None))
    }

    /// Connects: the client's end. STREAMNOTEXIST without a server of that name, CONNFAILED when it has too many who wait.
    pub fn connect(thread: &Thread, system: &System, name: PipeName) -> Result<Arc<Stream>> {
        let server = system.pipes.lock().get(&name).and_then(Weak::upgrade).ok_or(Errno::ENOENT)?;
        let number = server.connections.fetch_add(1, Ordering::Relaxed);
        let client = (Kind::Pipe, format!("pipe:{}", name.1).into_bytes());
        let accepted = (Kind::PipeClient, format!("pipe:{}:{number}", name.1).into_bytes());
        let [client, accepted] = Stream::two(thread, client, accepted);
        let mut backlog = server.backlog.lock();
        if backlog.len() == BACKLOG {
            return Err(Error::ConnectionFailed.errno());
        }
        backlog.push_back(accepted);
        drop(backlog);
        server.queue.wake_all();
        Ok(client)
    }

    /// The next who has connected.
    pub fn accept(&self) -> Option<Arc<Stream>> {
        self.backlog.lock().pop_front()
    }

    /// Woken when somebody connects.
    pub fn arrivals(&self) -> &WaitQueue {
        &self.queue
    }

    /// Whether somebody waits to be waited for.
    pub fn has_clients(&self) -> bool {
        !self.backlog.lock().is_empty()
    }

    /// Takes the name away: nobody connects any more.
    pub fn remove_name(&self) {
        let mut pipes = self.system.pipes.lock();
        if pipes.get(&self.name).is_some_and(|known| core::ptr::eq(known.as_ptr(), self)) {
            pipes.remove(&self.name);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.remove_name();
    }
}

impl File for Server {
    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut ReadBuf<'_>, _offset: u64) -> Result<usize> {
        Err(Error::NotConnection.errno())
    }

    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut WriteBuf<'_>, _offset: u64) -> Result<usize> {
        Err(Error::NotConnection.errno())
    }

    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, table: Option<&mut PollTable>) -> Events {
        if let Some(table) = table {
            table.add(&self.queue);
        }
        if self.has_clients() { Events::IN } else { Events::empty() }
    }

    fn attr(&self) -> Result<Attr> {
        Ok(anon::attr(self.clock))
    }

    fn label(&self) -> String {
        format!("pipe.srv:{}", self.name.1)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
