//! `janua stats`: what sandboxes that run use, and what their guests have done.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use janua_port::Account;
use janua_port::outside::{Metrics, ModuleInfo, TileInfo, TileState};

use super::client;
use super::detach::printable;
use super::list::{age, aligned, size, time};
use super::wire::{About, Ask, Figure, Reply, Usage};
use crate::exit;

/// What an account has: how much, of how much, at most so far, and how often somebody got none.
pub fn figure(account: &Account) -> Figure {
    let limit = account.limit();
    Figure {
        used: account.used() as u64,
        peak: account.peak() as u64,
        limit: (limit != usize::MAX).then_some(limit as u64),
        refused: account.refused() as u64,
    }
}

/// Prints them, whatever becomes of one.
pub fn print(names: &[String], as_json: bool) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    let mut all = Vec::new();
    for name in names {
        match ask(name) {
            Ok((about, usage)) => all.push((name.as_str(), about, usage)),
            Err(why) => code = exit::fail(&why),
        }
    }
    let text = match as_json {
        true => json(&all),
        // Names of columns alone tell nobody anything.
        false if all.is_empty() => String::new(),
        false => table(&all),
    };
    // A reader that closes early has seen what it wanted.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
    code
}

fn ask(name: &str) -> Result<(About, Usage), String> {
    let socket = client::reach(name)?;
    client::ask(&socket, &Ask::Usage)?;
    match client::reply(&socket, false)? {
        Reply::Usage(usage) => Ok(*usage),
        Reply::Refused(why) => Err(why),
        _ => Err("the sandbox's supervisor is of another version of janua".to_owned()),
    }
}

/// A sandbox, and what is known of it.
type Shown<'a> = (&'a str, About, Usage);

/// The accounts with their names.
fn accounts(usage: &Usage) -> [(&'static str, Figure); 4] {
    [("memory", usage.memory), ("disk", usage.disk), ("tasks", usage.tasks), ("host_descriptors", usage.descriptors)]
}

/// What there is to be had of a tile, in a word.
fn named(state: TileState) -> &'static str {
    match state {
        TileState::Listens(_) => "listens",
        TileState::Silent => "silent",
        TileState::Ended => "ended",
        TileState::Broken => "broken",
    }
}

fn table(all: &[Shown<'_>]) -> String {
    let mut rows = vec![["NAME", "FIGURE", "USED", "MOST", "LIMIT", "REFUSED"].map(str::to_owned)];
    for (name, about, usage) in all {
        let mut row = |what: &str, used: String| {
            let blank = String::new;
            rows.push([(*name).to_owned(), what.to_owned(), used, blank(), blank(), blank()]);
        };
        row("time since start", age(about.age));
        row("processor time", time(about.time));
        match &usage.inside {
            Some(inside) => {
                row("processes", inside.processes.to_string());
                row("open files", inside.files.to_string());
                match inside.calls {
                    Some(calls) => {
                        row("system calls", calls.made.to_string());
                        row("failed calls", calls.failed.to_string());
                        row("time in calls", time(calls.nanos / 1_000_000));
                    }
                    None => row("system calls", "not counted (janua run --stats)".to_owned()),
                }
                for ModuleInfo { name, core, kept, turns, .. } in &inside.modules {
                    let placed = if *kept { "stays on" } else { "on" };
                    row(&format!("module {}", printable(name).trim_end()), format!("{placed} core {core}, {turns} turns"));
                }
                for TileInfo { tile, state, heard, said } in &inside.tiles {
                    let state = match state {
                        TileState::Listens(nanos) => format!("answers after {:.1} us", *nanos as f64 / 1e3),
                        state => named(*state).to_owned(),
                    };
                    row(&format!("tile {tile}"), format!("{state}, {heard} messages heard, {said} said"));
                }
            }
            None => row("processes", if about.paused { "paused" } else { "not known" }.to_owned()),
        }
        for (what, figure) in accounts(usage) {
            let shown = |amount: u64| if matches!(what, "memory" | "disk") { size(amount) } else { amount.to_string() };
            let limit = figure.limit.map_or("none".to_owned(), shown);
            let what = what.replace('_', " ");
            rows.push([(*name).to_owned(), what, shown(figure.used), shown(figure.peak), limit, figure.refused.to_string()]);
        }
    }
    aligned(&rows)
}

fn json(all: &[Shown<'_>]) -> String {
    let sandboxes = all.iter().map(|(name, about, usage)| {
        let mut text = format!(
            "{{\"name\":\"{}\",\"pid\":{},\"paused\":{},\"age\":{:.3},\"time\":{:.3}",
            crate::run::escaped(name),
            about.pid,
            about.paused,
            about.age as f64 / 1e3,
            about.time as f64 / 1e3
        );
        let number = |number: Option<u64>| number.map_or("null".to_owned(), |number| number.to_string());
        for (what, Figure { used, peak, limit, refused }) in accounts(usage) {
            let limit = number(limit);
            let _ = write!(text, ",\"{what}\":{{\"used\":{used},\"peak\":{peak},\"limit\":{limit},\"refused\":{refused}}}");
        }
        let of = |value: fn(&Metrics) -> u64| number(usage.inside.as_ref().map(value));
        let processes = of(|inside| inside.processes.into());
        let _ = write!(text, ",\"processes\":{processes},\"files\":{},\"calls\":", of(|inside| inside.files));
        match usage.inside.as_ref().and_then(|inside| inside.calls) {
            Some(calls) => {
                let (made, failed, time) = (calls.made, calls.failed, calls.nanos as f64 / 1e9);
                let _ = write!(text, "{{\"made\":{made},\"failed\":{failed},\"time\":{time:.6}}}");
            }
            None => text.push_str("null"),
        }
        let modules = usage.inside.iter().flat_map(|inside| &inside.modules);
        let modules = modules.map(|ModuleInfo { name, core, kept, moved, turns }| {
            let name = crate::run::escaped(name);
            format!("{{\"name\":\"{name}\",\"core\":{core},\"kept\":{kept},\"moved\":{moved},\"turns\":{turns}}}")
        });
        let _ = write!(text, ",\"modules\":[{}]", modules.collect::<Vec<_>>().join(","));
        let tiles = usage.inside.iter().flat_map(|inside| &inside.tiles).map(|TileInfo { tile, state, heard, said }| {
            let after = match state {
                TileState::Listens(nanos) => format!("{:.9}", *nanos as f64 / 1e9),
                _ => "null".to_owned(),
            };
            let state = named(*state);
            format!("{{\"tile\":{tile},\"state\":\"{state}\",\"answer\":{after},\"heard\":{heard},\"said\":{said}}}")
        });
        let _ = write!(text, ",\"tiles\":[{}]", tiles.collect::<Vec<_>>().join(","));
        text + "}"
    });
    format!("[{}]\n", sandboxes.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use janua_port::outside::Calls;

    fn one(inside: Option<Metrics>) -> Vec<Shown<'static>> {
        let memory = Account::new(1 << 30);
        assert!(memory.take(3 << 20) && !memory.take(1 << 30));
        let usage = Usage { memory: figure(&memory), tasks: figure(&Account::new(usize::MAX)), inside, ..Usage::default() };
        vec![("web", About { pid: 7, age: 61_000, time: 1250, ..About::default() }, usage)]
    }

    #[test]
    fn what_is_known_is_in_table_and_json() {
        let calls = Some(Calls { made: 5, failed: 1, nanos: 2_000_000 });
        let module = ModuleInfo { name: "f\"s\n".to_owned(), core: 1, kept: true, moved: 2, turns: 70 };
        let tiles = [TileState::Listens(1500), TileState::Broken].into_iter().zip(1..);
        let tiles = tiles.map(|(state, tile)| TileInfo { tile, state, heard: 3, said: 4 }).collect();
        let inside = Metrics { processes: 2, files: 9, calls, modules: vec![module], tiles };
        let all = one(Some(inside));
        let text = table(&all);
        assert!(text.contains("module f\"s") && text.contains("on core 1, 70 turns"), "{text}");
        assert!(text.contains("1m1s") && text.contains("open files") && text.contains("system calls"), "{text}");
        assert!(text.lines().any(|line| line.split_whitespace().eq(["web", "memory", "3.0M", "3.0M", "1.0G", "1"])), "{text}");
        let text = json(&all);
        assert!(text.contains("\"memory\":{\"used\":3145728,\"peak\":3145728,\"limit\":1073741824,\"refused\":1}"), "{text}");
        assert!(text.contains("\"processes\":2,\"files\":9,\"calls\":{\"made\":5,\"failed\":1,\"time\":0.002000},"), "{text}");
        assert!(
            text.contains(
                "\"modules\":[{\"name\":\"f\\\"s\\n\",\"core\":1,\"kept\":true,\"moved\":2,\"turns\":70}],\"tiles\":["
            ),
            "{text}"
        );
        assert!(text.contains("{\"tile\":1,\"state\":\"listens\",\"answer\":0.000001500,\"heard\":3,\"said\":4}"), "{text}");
        assert!(text.ends_with("{\"tile\":2,\"state\":\"broken\",\"answer\":null,\"heard\":3,\"said\":4}]}]\n"), "{text}");
    }

    #[test]
    fn what_is_not_known_is_no_figure() {
        let all = one(None);
        assert!(table(&all).contains("not known"));
        assert!(json(&all).ends_with("\"processes\":null,\"files\":null,\"calls\":null,\"modules\":[],\"tiles\":[]}]\n"));
        assert_eq!(json(&[]), "[]\n");
    }
}
