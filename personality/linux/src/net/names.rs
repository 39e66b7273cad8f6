//! Names of sockets in the file system.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use janua_kernel::{Errno, Result};
use janua_object::Caller;
use janua_object::net::NetCaller;
use janua_object::vfs::access::{self, Who};
use janua_object::vfs::{FileKind, Inode, Make, Resolve, Walk};

use crate::caller::ThisThread;
use crate::fs::at::{self, CWD};
use crate::fs::names::file_name;

impl NetCaller for ThisThread<'_> {
    fn make_socket_node(&self, path: &[u8], mode: u32) -> Result<Arc<dyn Inode>> {
        let thread = self.0;
        let start = at::start(thread, CWD, path)?;
        let mut walk = Walk::new(at::vfs(thread), self, &start, Resolve::empty());
        let parent = walk.parent(path)?;
        let umask = thread.fs.read().umask.load(Ordering::Relaxed);
        let node = Make::Node { mode: FileKind::Socket as u32 | mode & !umask, rdev: 0 };
        let name = file_name(&mut walk, &parent);
        let made = name.and_then(|name| at::vfs(thread).make(walk.who(), &parent.dir, name, &node));
        match made {
            Ok(place) => Ok(place.inode().clone()),
            Err(Errno::EEXIST) => Err(Errno::EADDRINUSE),
            Err(errno) => Err(errno),
        }
    }

    fn find_node(&self, path: &[u8]) -> Result<Arc<dyn Inode>> {
        let place = at::find(self.0, CWD, path, true)?;
        Who { caller: self, cred: &self.cred() }.check(&**place.inode(), access::WRITE)?;
        Ok(place.inode().clone())
    }
}
