//! The log of a sandbox in the background: what its programs and janua itself write to standard output and error, as much of it as came
//! last.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use rustix::fd::OwnedFd;

use super::place::{Name, Place};

/// A log has two files at most, of this size.
const SIZE: u64 = 4 << 20;

/// The files of a log by their kinds.
pub const OLDER: &str = "log.1";
pub const NEWER: &str = "log";

pub fn remove(place: &Place, name: &Name) {
    for kind in [OLDER, NEWER] {
        place.remove(name, kind);
    }
}

/// Writes what comes by the pipe to a new log, until nobody has its other end any more. `name` gives the sandbox's name first, and is
/// notified when there is a log.
pub fn keep(mut name: UnixStream, pipe: OwnedFd) {
    let mut given = String::new();
    let Ok(_) = name.read_to_string(&mut given) else { return };
    let (Some(given), Ok(Some(place))) = (Name::parse(&given), Place::find()) else { return };
    remove(&place, &given);
    let (Ok(mut log), mut pipe) = (place.create(&given, NEWER), File::from(pipe)) else { return };
    if name.write_all(&[0]).is_err() {
        return;
    }
    let (mut piece, mut size) = ([0; 16 << 10], 0);
    loop {
        let count = match pipe.read(&mut piece) {
            Ok(0) => return,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        if size + count as u64 > SIZE && place.rename(&given, NEWER, OLDER).is_ok() {
            size = 0;
            if let Ok(next) = place.create(&given, NEWER) {
                log = next;
            }
        }
        // What a full file system does not take is lost; the programs go on.
        if log.write_all(&piece[..count]).is_ok() {
            size += count as u64;
        }
    }
}
