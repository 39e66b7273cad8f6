//! Attributes of streams.

use janua_abi::linux::net::so;
use janua_abi::pal::{Attributes, Error, Kind};
use janua_kernel::table::Fd;
use janua_kernel::{UserPtr, UserStr};
use janua_object::net::{Socket, socket as object};
use janua_object::vfs::{Attr, FileKind, Perm, access};
use janua_object::{Events, OpenFile};
use janua_personality_linux::Thread;
use janua_personality_linux::thread::ThreadExt;

use super::file;
use super::pipe::Stream;
use crate::answer::{Reply, Result, reply};
use crate::uri::Uri;
use crate::{handle, state};

fn seconds(nanos: i64) -> u64 {
    u64::try_from(nanos).unwrap_or(0) / 1_000_000_000
}

/// What a file's attributes show.
fn of_file(thread: &Thread, kind: Kind, attr: &Attr) -> Attributes {
    let (perm, cred) = (Perm::from(attr), thread.cred());
    let may = |want: u32| u8::from(access::check(&perm, &cred, want).is_ok());
    Attributes {
        kind: kind as u32,
        file_id: attr.ino,
        size: attr.size,
        access_time: seconds(attr.atime),
        change_time: seconds(attr.mtime),
        create_time: seconds(attr.ctime),
        readable: may(access::READ),
        writeable: may(access::WRITE),
        runnable: may(access::EXEC),
        share: attr.mode & 0o777,
        ..Attributes::default()
    }
}

fn kind_of(attr: &Attr) -> Kind {
    match attr.kind() {
        Some(FileKind::Directory) => Kind::Directory,
        Some(FileKind::CharDevice | FileKind::BlockDevice) => Kind::Device,
        _ => Kind::File,
    }
}

/// DkStreamAttributesQuery.
pub fn query(thread: &Thread, uri: UserStr, out: UserPtr<Attributes>) -> Reply {
    reply(|| {
        let state = state::of(thread)?;
        let attributes = match Uri::of(thread, uri)? {
            Uri::File(path) | Uri::Dir(path) | Uri::Device(path) => {
                let attr = file::stat(thread, &state, &path)?;
                of_file(thread, kind_of(&attr), &attr)
            }
            Uri::Tty => Attributes { kind: Kind::Device as u32, readable: 1, writeable: 1, ..Attributes::default() },
            // Others are nowhere but in handles.
            _ => return Err(Error::NotSupported.into()),
        };
        out.write(thread.user(), &attributes)?;
        Ok(0)
    })
}

/// DkStreamAttributesQuerybyHandle.
pub fn query_by_handle(thread: &Thread, fd: Fd, out: UserPtr<Attributes>) -> Reply {
    reply(|| {
        state::of(thread)?;
        let file = handle::get(thread, fd)?;
        out.write(thread.user(), &of_handle(thread, &file)?)?;
        Ok(0)
    })
}

fn of_handle(thread: &Thread, file: &OpenFile) -> Result<Attributes> {
    let kind = handle::kind(file);
    let mut attributes = match kind {
        Kind::File | Kind::Directory => of_file(thread, kind, &file.attr()?),
        kind => {
            let events = file.poll(&thread.caller(), None);
            Attributes {
                kind: kind as u32,
                readable: events.intersects(Events::READABLE).into(),
                writeable: events.intersects(Events::OUT | Events::WRNORM).into(),
                ..Attributes::default()
            }
        }
    };
    attributes.nonblocking = file.nonblocking().into();
    if let Some(stream) = file.downcast::<Stream>() {
        let (held, gone) = stream.state();
        attributes.size = held as u64;
        attributes.disconnected = gone.into();
    }
    if let Ok(socket) = object::of_file(file) {
        of_socket(thread, &*socket.socket, &mut attributes);
    }
    Ok(attributes)
}

/// Microseconds of an option that is a time.
fn micros(value: &[u8]) -> u64 {
    let word = |at: usize| value.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_ne_bytes);
    word(0).saturating_mul(1_000_000).saturating_add(word(8))
}

fn of_socket(thread: &Thread, socket: &dyn Socket, attributes: &mut Attributes) {
    const SOCKET: u32 = 1;
    const TCP: u32 = 6;
    const TCP_NODELAY: u32 = 1;
    const TCP_CORK: u32 = 3;
    let option =
        |level: u32, name: u32, room: usize| socket.get_option(&thread.caller(), level, name, room).unwrap_or_default();
    let number = |level: u32, name: u32| {
        let value = option(level, name, 4);
        value.get(..4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_ne_bytes)
    };
    attributes.size = socket.readable_bytes() as u64;
    attributes.reuseaddr = u8::from(number(SOCKET, so::REUSEADDR) != 0);
    attributes.sendbuf = number(SOCKET, so::SNDBUF).into();
    attributes.receivebuf = number(SOCKET, so::RCVBUF).into();
    attributes.receivetimeout = micros(&option(SOCKET, so::RCVTIMEO, 16));
    attributes.sendtimeout = micros(&option(SOCKET, so::SNDTIMEO, 16));
    let linger = option(SOCKET, so::LINGER, 8);
    let half = |at: usize| linger.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_ne_bytes);
    attributes.linger = if half(0) != 0 { half(4).into() } else { 0 };
    if !socket.common().is_records() {
        attributes.tcp_keepalive = u8::from(number(SOCKET, so::KEEPALIVE) != 0);
        attributes.tcp_nodelay = u8::from(number(TCP, TCP_NODELAY) != 0);
        attributes.tcp_cork = u8::from(number(TCP, TCP_CORK) != 0);
        attributes.disconnected = u8::from(!socket.is_listening() && socket.peer_name().is_err());
    }
}
