//! `janua list`.

use std::fmt::Write as _;
use std::process::ExitCode;

use rustix::fd::OwnedFd;

use super::client::{self, List};
use super::place::{Name, Place};
use super::wire::{About, Ask, Guest, Reply};

/// What is known of a sandbox; only its supervisor's number where that does not reply.
struct Shown {
    name: Name,
    pid: u32,
    reported: Option<(About, Vec<Guest>)>,
}

pub fn print(place: Option<&Place>, which: &List) -> ExitCode {
    let all = place.map(Place::all).unwrap_or_default();
    let text = match which {
        List { quiet: true, .. } => all.iter().fold(String::new(), |text, (name, _)| text + name.as_str() + "\n"),
        _ => {
            let all: Vec<Shown> = all.into_iter().filter_map(|(name, socket)| look(name, &socket)).collect();
            if which.json { json(&all) } else { table(&all) }
        }
    };
    crate::exit::print(text.as_bytes())
}

/// `None` for one that has ended meanwhile.
fn look(name: Name, socket: &OwnedFd) -> Option<Shown> {
    let pid = rustix::net::sockopt::socket_peercred(socket).ok()?.pid.as_raw_nonzero().get() as u32;
    client::ask(socket, &Ask::Report).ok()?;
    let mut about = None;
    let mut all = Vec::new();
    loop {
        match client::reply(socket, false) {
            Ok(Reply::About(reported)) => about = Some(reported),
            Ok(Reply::Guests { guests, more }) => {
                all.extend(guests);
                if !more {
                    return Some(Shown { name, pid, reported: about.map(|about| (about, all)) });
                }
            }
            // Its kernel does not listen, or is of another personality.
            Ok(Reply::Refused(_)) => return Some(Shown { name, pid, reported: about.map(|about| (about, all)) }),
            _ => {
                let alive = std::path::Path::new(&format!("/proc/{pid}")).exists();
                return alive.then_some(Shown { name, pid, reported: None });
            }
        }
    }
}

/// A guest's arguments as one line.
fn command(guest: &Guest) -> String {
    let words = guest.info.command.strip_suffix(b"\0").unwrap_or(&guest.info.command);
    line(&words.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>())
}

/// Words as one line, as a terminal may show it: what comes from inside could otherwise command it.
fn line(words: &[String]) -> String {
    words.join(" ").chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes}B"),
        1024..1_048_576 => format!("{}K", bytes >> 10),
        1_048_576..1_073_741_824 => format!("{:.1}M", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1}G", bytes as f64 / 1_073_741_824.0),
    }
}

pub(super) fn age(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{}s", seconds / 60, seconds % 60),
        3600..86400 => format!("{}h{}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{}h", seconds / 86400, seconds / 3600 % 24),
    }
}

pub(super) fn time(millis: u64) -> String {
    format!("{}.{:02}s", millis / 1000, millis / 10 % 100)
}

fn table(all: &[Shown]) -> String {
    let mut rows = vec![["NAME", "PID", "HOST", "STATE", "UP", "CPU", "MEMORY", "COMMAND"].map(str::to_owned)];
    for Shown { name, pid, reported } in all {
        let Some((about, guests)) = reported else {
            let dash = || "-".to_owned();
            rows.push([name.to_string(), dash(), pid.to_string(), "silent".to_owned(), dash(), dash(), dash(), dash()]);
            continue;
        };
        let state = match about {
            About { paused: true, .. } => "paused",
            About { detached: true, .. } => "detached",
            _ => "running",
        };
        let state = state.to_owned();
        rows.push([
            name.to_string(),
            "-".to_owned(),
            pid.to_string(),
            state,
            age(about.age),
            time(about.time),
            size(about.memory),
            line(&about.command),
        ]);
        for tile in &about.tiles {
            let state = if tile.ended.is_some() { "ended" } else { "runs" };
            let cores = format!("tile {} on {} of the processors", tile.number, tile.cores);
            let blank = String::new;
            let host = tile.pid.to_string();
            rows.push([blank(), "-".to_owned(), host, state.to_owned(), blank(), blank(), blank(), cores]);
        }
        for guest in guests {
            let info = &guest.info;
            let host = if guest.host == 0 { "-".to_owned() } else { guest.host.to_string() };
            let state = char::from(info.state).to_string();
            let used = time(info.time / 1_000_000);
            rows.push([
                String::new(),
                info.pid.to_string(),
                host,
                state,
                String::new(),
                used,
                size(info.memory),
                command(guest),
            ]);
        }
    }
    aligned(&rows)
}

/// Rows as lines, their cells below each other.
pub(super) fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}

fn json(all: &[Shown]) -> String {
    use crate::run::escaped;
    let quoted = |text: &str| format!("\"{}\"", escaped(text));
    let list = |words: &[String]| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(",");
    let sandboxes = all.iter().map(|Shown { name, pid, reported }| {
        let head = format!("{{\"name\":{},\"pid\":{pid}", quoted(name.as_str()));
        let Some((about, guests)) = reported else { return format!("{head},\"state\":\"silent\"}}") };
        let guests = guests.iter().map(|guest| {
            let info = &guest.info;
            let words = info.command.strip_suffix(b"\0").unwrap_or(&info.command);
            let words: Vec<String> = words.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
            format!(
                "{{\"pid\":{},\"parent\":{},\"host\":{},\"state\":{},\"threads\":{},\"uid\":{},\"time\":{:.6},\"memory\":{},\"command\":[{}]}}",
                info.pid,
                info.parent,
                if guest.host == 0 { "null".to_owned() } else { guest.host.to_string() },
                quoted(&char::from(info.state).to_string()),
                info.threads,
                info.uid,
                info.time as f64 / 1e9,
                info.memory,
                list(&words)
            )
        });
        let tiles = about.tiles.iter().map(|tile| {
            let ended = tile.ended.as_ref().map_or("null".to_owned(), |why| quoted(why));
            format!("{{\"tile\":{},\"pid\":{},\"cores\":{},\"ended\":{ended}}}", tile.number, tile.pid, tile.cores)
        });
        format!(
            "{head},\"state\":{},\"detached\":{},\"age\":{:.3},\"time\":{:.3},\"memory\":{},\"memory_limit\":{},\"command\":[{}],\"tiles\":[{}],\"guests\":[{}]}}",
            quoted(if about.paused { "paused" } else { "running" }),
            about.detached,
            about.age as f64 / 1e3,
            about.time as f64 / 1e3,
            about.memory,
            if about.memory_limit == u64::MAX { "null".to_owned() } else { about.memory_limit.to_string() },
            list(&about.command),
            tiles.collect::<Vec<_>>().join(","),
            guests.collect::<Vec<_>>().join(",")
        )
    });
    format!("[{}]\n", sandboxes.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use janua_port::outside::GuestInfo;

    fn one() -> Vec<Shown> {
        let info = GuestInfo { pid: 2, state: b'S', command: b"a\0\x1b[2J\0".to_vec(), ..GuestInfo::default() };
        let about = About { command: vec!["a".to_owned()], age: 61_000, memory: 3 << 20, ..About::default() };
        vec![Shown { name: Name::parse("web").unwrap(), pid: 7, reported: Some((about, vec![Guest { info, host: 9 }])) }]
    }

    #[test]
    fn a_guest_cannot_command_the_terminal() {
        let text = table(&one());
        assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()), "{text:?}");
        assert!(text.contains("1m1s") && text.contains("3.0M") && text.contains("a ?[2J"), "{text}");
    }

    #[test]
    fn the_list_is_json() {
        let text = json(&one());
        assert!(text.starts_with("[{\"name\":\"web\",\"pid\":7,\"state\":\"running\",\"detached\":false,"), "{text}");
        assert!(text.contains("\"command\":[\"a\",\"\\u001b[2J\"]}]}]"), "{text}");
        assert_eq!(json(&[]), "[]\n");
    }
}
