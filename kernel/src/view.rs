//! Memory of an object as the kernel's own threads look at it, wherever that is possible.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use janua_abi::linux::Errno;
use janua_port::user::Window;
use janua_port::{MemoryObject, UserMemory};
use janua_rt::OnceArc;

/// A range of a memory object that is shared with programs. Its window is opened by the first thread that can have one.
pub struct View {
    object: Arc<dyn MemoryObject>,
    at: u64,
    len: usize,
    window: OnceArc<dyn Window>,
    /// There is none to be had: not tried again.
    refused: AtomicBool,
}

impl View {
    /// Of `len` bytes of the object from `at` on, both page aligned.
    pub fn new(object: Arc<dyn MemoryObject>, at: u64, len: usize) -> View {
        View { object, at, len, window: OnceArc::default(), refused: AtomicBool::new(false) }
    }

    #[cold]
    fn open(&self) -> Option<&dyn UserMemory> {
        if self.refused.load(Ordering::Relaxed) {
            return None;
        }
        match self.object.window(self.at, self.len) {
            Ok(window) => {
                // Of two that open one at a time the second gives its own up.
                let _ = self.window.set(window);
            }
            Err(Errno::EXDEV) => {}
            Err(_) => self.refused.store(true, Ordering::Relaxed),
        }
        self.window.get()?.here()
    }
}

impl Window for View {
    #[inline]
    fn here(&self) -> Option<&dyn UserMemory> {
        match self.window.get() {
            Some(window) => window.here(),
            None => self.open(),
        }
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicUsize;

    use janua_port::Fault;

    use super::*;

    /// An object without contents, whose window can be had where `here` is set, unless there is an error.
    #[derive(Default)]
    struct Object {
        here: AtomicBool,
        wrong: Option<Errno>,
        asked: AtomicUsize,
    }

    struct Open;

    impl UserMemory for Open {
        fn is_user(&self, _addr: usize, _len: usize) -> bool {
            true
        }
        fn copy_in_partial(&self, dst: &mut [u8], _src: usize) -> usize {
            dst.len()
        }
        fn copy_out_partial(&self, _dst: usize, src: &[u8]) -> usize {
            src.len()
        }
        fn load_u32(&self, _addr: usize) -> Result<u32, Fault> {
            Ok(7)
        }
        fn cmpxchg_u32(&self, _addr: usize, _old: u32, _new: u32) -> Result<u32, Fault> {
            Err(Fault)
        }
    }

    impl Window for Open {
        fn here(&self) -> Option<&dyn UserMemory> {
            Some(self)
        }
    }

    impl MemoryObject for Object {
        fn read(&self, _at: u64, _out: &mut [u8]) -> janua_abi::linux::Result<usize> {
            Ok(0)
        }
        fn write(&self, _at: u64, _data: &[u8]) -> janua_abi::linux::Result<usize> {
            Ok(0)
        }
        fn truncate(&self, _size: u64) -> janua_abi::linux::Result<()> {
            Ok(())
        }
        fn allocate(&self, _mode: u32, _at: u64, _len: u64) -> janua_abi::linux::Result<()> {
            Ok(())
        }
        fn seek(&self, _at: u64, _hole: bool) -> janua_abi::linux::Result<u64> {
            Err(Errno::ENXIO)
        }
        fn resident(&self) -> u64 {
            0
        }
        fn window(&self, _at: u64, _len: usize) -> janua_abi::linux::Result<Arc<dyn Window>> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            match self.wrong {
                Some(errno) => Err(errno),
                None if self.here.load(Ordering::Relaxed) => Ok(Arc::new(Open)),
                None => Err(Errno::EXDEV),
            }
        }
    }

    #[test]
    fn a_window_is_opened_where_it_can_be_and_once() {
        let object = Arc::new(Object::default());
        let view = View::new(object.clone(), 0, 4096);
        assert!(view.here().is_none() && view.here().is_none());
        assert_eq!(object.asked.load(Ordering::Relaxed), 2, "another thread may have one");
        object.here.store(true, Ordering::Relaxed);
        assert_eq!(view.here().map(|memory| memory.load_u32(0)), Some(Ok(7)));
        assert!(view.here().is_some());
        assert_eq!(object.asked.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn where_there_is_none_nobody_asks_again() {
        let object = Arc::new(Object { wrong: Some(Errno::ENOMEM), ..Object::default() });
        let view = View::new(object.clone(), 0, 4096);
        assert!(view.here().is_none() && view.here().is_none());
        assert_eq!(object.asked.load(Ordering::Relaxed), 1);
    }
}
