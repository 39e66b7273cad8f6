//! Pipes in place of terminals, for a program in a sandbox among others: who has a terminal's descriptor reads what is typed there also when the program
//! has ended.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rustix::pipe::{PipeFlags, pipe_with};

use super::exec::is_terminal;

/// Puts an end of a pipe in the place of each of the standard `streams` among `files` that is a terminal, and hands on what comes by it. The receiver ends when
/// all that was written has been shown and nobody can write more; a message comes for each part shown.
pub fn in_place_of_terminals(files: &[u32], streams: &mut [OwnedFd]) -> Result<Receiver<()>, String> {
    let (shown, parts) = channel();
    for &number in files.iter().filter(|number| is_terminal(**number)) {
        let place = &mut streams[number as usize];
        replace(number, place, &shown).map_err(|error| format!("cannot use the terminal: {error}"))?;
    }
    Ok(parts)
}

fn replace(number: u32, place: &mut OwnedFd, shown: &Sender<()>) -> io::Result<()> {
    let (reads, writes) = pipe_with(PipeFlags::CLOEXEC)?;
    let terminal = File::from(place.as_fd().try_clone_to_owned()?);
    let (inside, own) = if number == 0 { (reads, writes) } else { (writes, reads) };
    *place = inside;
    let own = File::from(own);
    // Who types has shown nothing, and may do so for ever.
    let shown = (number != 0).then(|| shown.clone());
    let body = move || {
        // Whichever side goes: there is nothing more to hand on.
        let _ = match shown {
            None => hand_on(terminal, own, None),
            Some(shown) => hand_on(own, terminal, Some(&shown)),
        };
    };
    thread::Builder::new().spawn(body).map(drop)
}

fn hand_on(mut from: File, mut to: File, shown: Option<&Sender<()>>) -> io::Result<()> {
    let mut bytes = [0; 4096];
    loop {
        let count = match from.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if count == 0 {
            return Ok(());
        }
        to.write_all(&bytes[..count])?;
        if let Some(shown) = shown {
            let _ = shown.send(());
        }
    }
}
