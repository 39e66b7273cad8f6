//! Time, randomness, code that has been written, and the library's start.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use janua_abi::linux::Errno;
use janua_abi::pal::{ALLOC_ALIGN, Error, Kind, Start};
use janua_kernel::UserPtr;
use janua_kernel::iobuf::WriteBuf;
use janua_kernel::table::Fd;
use janua_object::OpenFile;
use janua_object::file::flags::O_RDWR;
use janua_personality_linux::Thread;
use janua_personality_linux::fs::fd;
use janua_personality_linux::misc::getrandom;
use janua_personality_linux::task::pidfd::PidFd;
use janua_personality_linux::thread::ThreadExt;
use janua_personality_outside::pal::manifest::Debug;

use crate::answer::{Reply, Result, reply};
use crate::state::{self, Library, State};
use crate::{exception, handle, stream};

/// DkSystemTimeQuery: microseconds since 1970.
pub fn time(thread: &Thread) -> Reply {
    reply(|| {
        state::of(thread)?;
        Ok((thread.machine().clock().realtime() / 1000) as usize)
    })
}

/// DkRandomBitsRead.
pub fn random(thread: &Thread, buf: UserPtr<u8>, size: usize) -> Reply {
    reply(|| {
        state::of(thread)?;
        Ok(getrandom(thread, buf, size, 0)?)
    })
}

/// DkInstructionCacheFlush. The processor sees to it by itself, and the return from a call has it fetch anew; the range must be the program's.
pub fn flush_code(thread: &Thread, addr: usize, size: usize) -> Reply {
    reply(|| {
        state::of(thread)?;
        if thread.user().is_user(addr, size) { Ok(0) } else { Err(Error::BadAddress.into()) }
    })
}

/// PalStart: what the library asks once, before all else. `code` is where it is itself.
pub fn start(thread: &Thread, out: UserPtr<Start>, upcall: usize, restorer: usize, low: usize, high: usize) -> Reply {
    reply(|| {
        let state = state::unstarted(thread)?;
        let user = thread.user();
        let size = high.checked_sub(low).ok_or(Error::BadAddress)?;
        if !user.is_code(upcall) || !user.is_code(restorer) || !user.is_user(low, size) {
            return Err(Error::BadAddress.into());
        }
        if state.started.load(Ordering::Relaxed) {
            return Err(Error::Denied.into());
        }
        // What cannot be reported would have happened all the same.
        out.write(user, &Start::default())?;
        if state.started.swap(true, Ordering::Relaxed) {
            return Err(Error::Denied.into());
        }
        let files = thread.files();
        *state.console.write() = [0, 1, 2].map(|number| files.get(Fd(number)).ok());
        let code = (low & !(ALLOC_ALIGN - 1), high.next_multiple_of(ALLOC_ALIGN));
        *state.library.write() = Library { upcall, restorer, code };
        exception::begin(thread, &state)?;
        let bounds = thread.process().mm().ok_or(Errno::ENOMEM)?.bounds();
        let seat = thread.seat().ok_or(Errno::ESRCH)?;
        let own = OpenFile::new(Arc::new(PidFd::new(&thread.task, Some(&seat))), O_RDWR, None);
        let block = Start {
            manifest: manifest(thread, &state)?,
            parent: state.parent.map_or(0, |parent| handle::word(Kind::Process, Fd(parent))),
            thread: handle::install(thread, own)? as u64,
            debug: debug(thread, &state)?,
            process_id: thread.process().pid.into(),
            host_id: state.system.host_id,
            user_low: bounds.low as u64,
            user_high: bounds.high as u64,
            page_size: janua_port::PAGE as u64,
            alloc_align: ALLOC_ALIGN as u64,
            mem_total: thread.machine().memory().total,
            cpu_count: thread.machine().cpus() as u64,
        };
        out.write(user, &block)?;
        Ok(0)
    })
}

/// The manifest as a file that nobody else has.
fn manifest(thread: &Thread, state: &State) -> Result<u64> {
    let Some(text) = &state.manifest else { return Ok(0) };
    let file = thread.kernel.memory.memfd(&thread.kernel.vfs, b"manifest", 0o400, 0, &thread.cred());
    file.ops.write(&file, &thread.caller(), &mut WriteBuf::kernel(text), 0)?;
    Ok(handle::install(thread, file)? as u64)
}

/// Where the library reports to, if its manifest wants that.
fn debug(thread: &Thread, state: &State) -> Result<u64> {
    let rules = state.rules();
    let Some(manifest) = rules.first() else { return Ok(0) };
    match &manifest.debug {
        Debug::None => Ok(0),
        Debug::Inline => match thread.files().get(Fd(2)) {
            Ok(file) => Ok(handle::word(Kind::Device, fd::install(thread, file, false)?)),
            Err(_) => Ok(0),
        },
        Debug::File(path) => {
            let file = stream::open_file(thread, state, path.as_bytes(), false, stream::TO_REPORT)?;
            Ok(handle::install(thread, file)? as u64)
        }
    }
}
