//! Picoprocesses: they are made, and end.

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::sync::atomic::Ordering;
use core::task::Poll;

use janua_abi::linux::Errno;
use janua_abi::pal::{Error, Kind};
use janua_kernel::table::Fd;
use janua_kernel::thread::work;
use janua_kernel::{UserPtr, UserStr};
use janua_object::fdtable::FdTable;
use janua_personality_linux::outside::{Notice, Order, Wanted};
use janua_personality_linux::task::clone::copy_fs;
use janua_personality_linux::task::exit;
use janua_personality_linux::thread::ThreadExt;
use janua_personality_linux::{Thread, fs};
use janua_port::outside::Program;
use janua_rt::Target;

use crate::answer::{Reply, Result, reply};
use crate::state::{self, State};
use crate::stream::pipe::Stream;
use crate::uri::Uri;
use crate::{handle, stream};

/// Most arguments of a program, and most bytes of them all.
const MOST_ARGUMENTS: usize = 1024;
const MOST_BYTES: usize = 128 << 10;
/// Where a picoprocess finds the stream to its parent.
const PARENT: i32 = 3;

/// The arguments at `args`, an array of strings with a null pointer behind it.
fn arguments(thread: &Thread, args: UserPtr<u64>) -> Result<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    let mut bytes = 0;
    if args.is_null() {
        return Ok(all);
    }
    loop {
        let at = args.at(all.len()).read(thread.user())?;
        if at == 0 {
            return Ok(all);
        }
        if all.len() == MOST_ARGUMENTS {
            return Err(Error::TooLong.into());
        }
        let one = UserStr(at as usize).read(thread.user(), MOST_BYTES - bytes, Errno::E2BIG)?;
        bytes += one.len();
        all.push(one);
    }
}

/// The program a URI names; without one that of the caller. Its path is judged, and it is made sure that it is there.
fn program(thread: &Thread, state: &State, uri: UserStr) -> Result<Vec<u8>> {
    if uri.is_null() {
        return Ok(state.exec.clone());
    }
    // An empty one is none.
    if uri.read(thread.user(), 2, Errno::E2BIG).is_ok_and(|text| text.is_empty()) {
        return Ok(state.exec.clone());
    }
    let Uri::File(path) = Uri::of(thread, uri)? else { return Err(Error::Invalid.into()) };
    let file = stream::open_file(thread, state, &path, false, stream::TO_READ)?;
    let path = file.path.as_ref().ok_or(Error::StreamNotThere)?;
    let context = thread.fs();
    let root = context.root.read().clone();
    Ok(path.write(&root).name)
}

/// DkProcessCreate: a picoprocess with a program, and the stream to it. It is there once its program is loaded.
pub async fn create(thread: &Thread, uri: UserStr, flags: u32, args: UserPtr<u64>) -> Reply {
    Reply::of(
        async {
            let state = state::of(thread)?;
            if flags != 0 {
                return Err(Error::Invalid.into());
            }
            let path = program(thread, &state, uri)?;
            let mut argv = arguments(thread, args)?;
            if argv.is_empty() {
                argv.push(path.clone());
            }
            let reserved = fs::fd::reserve(thread)?;
            let notice = Arc::new(Notice::default());
            let own = order(thread, &state, path, argv, &notice)?;
            thread.kernel.machine.wake_service();
            loaded(thread, &notice).await?;
            Ok(handle::word(Kind::Process, reserved.install(own.open(0), false)?) as usize)
        }
        .await,
    )
}

/// Waits until the program is loaded. Only a kill ends the wait before: the call must not begin again.
async fn loaded(thread: &Thread, notice: &Notice) -> core::result::Result<(), Errno> {
    let mut registration = None;
    poll_fn(|cx| {
        if registration.is_none() {
            registration = Some(notice.queue.register(Target::Task(cx.waker().clone()), u32::MAX));
        }
        match notice.get() {
            Some(result) => Poll::Ready(result),
            None if thread.work() & work::KILL != 0 => Poll::Ready(Err(Errno::EINTR)),
            None => Poll::Pending,
        }
    })
    .await
}

/// Puts the order for a picoprocess where the service finds it: the caller's end of the stream.
fn order(thread: &Thread, state: &Arc<State>, path: Vec<u8>, argv: Vec<Vec<u8>>, notice: &Arc<Notice>) -> Result<Arc<Stream>> {
    let name = format!("process:{}", thread.process().pid).into_bytes();
    let [own, other] = Stream::two(thread, (Kind::Process, b"process:child".to_vec()), (Kind::Process, name));
    let files = FdTable::new();
    for (file, number) in state.console.read().iter().zip(0..) {
        if let Some(file) = file {
            files.install_at(file.clone(), Fd(number), false, u64::MAX)?;
        }
    }
    files.install_at(other.open(0), Fd(PARENT), false, u64::MAX)?;
    let mut child = State::new(state.system.clone(), path.clone(), state.rules(), state.group.load(Ordering::Relaxed));
    child.manifest = state.manifest.clone();
    child.parent = Some(PARENT);
    let program = Program { path, argv, envp: thread.kernel.config.envp.clone(), ..Program::default() };
    let wanted = Wanted {
        order: Order { program: Box::new(program), notice: Some(notice.clone()) },
        fs: Arc::new(copy_fs(&thread.fs())),
        files: Arc::new(files),
        extension: Some(Arc::new(child)),
    };
    state.system.wanted.lock().push(wanted);
    Ok(own)
}

/// DkProcessExit.
pub fn exit(thread: &Thread, code: i32) -> Reply {
    reply(|| {
        state::of(thread)?;
        exit::exit_group(thread, code);
        Ok(0)
    })
}
