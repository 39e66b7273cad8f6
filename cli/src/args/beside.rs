//! Options for machines of several tiles.

use std::ffi::OsString;

use super::{Boot, Refusal, refuse};
use crate::options::{BootTiles, Tiles};

/// Kernels of a machine, for the personalities that have one each.
const MOST: u8 = janua_port::tiles::TILES_MOST as u8;
/// Processors of a bare machine.
const PROCESSORS: u32 = 64;

/// The kernels side by side that a bare machine is to have, or why it cannot.
pub fn booted(boot: &Boot) -> Result<Option<BootTiles>, Refusal> {
    let has_kernels = boot.platform != "leon3" && matches!(boot.personality.as_deref(), None | Some("linux" | "pal"));
    if !has_kernels {
        if !boot.on.is_empty() || boot.messages.is_some() {
            return refuse("--on and --messages are for tiles of the personalities `linux` and `pal`", "leave them out");
        }
        return Ok(None);
    }
    if boot.tiles == 1 {
        if boot.cores.is_some() || !boot.on.is_empty() || boot.messages.is_some() {
            return refuse(
                "--cores, --on and --messages are for tiles, and there is one",
                "add --tiles N; --smp N gives the machine processors",
            );
        }
        return Ok(None);
    }
    if boot.tiles > MOST {
        return refuse(format!("--tiles {}: there are at most {MOST} kernels side by side", boot.tiles), "give fewer");
    }
    if boot.disk.is_some() {
        return refuse("--disk: not on several tiles yet, of which one could have it", "leave --disk out, or --tiles");
    }
    if boot.away.is_on() {
        return refuse("--syscall-cores: not on several tiles yet", "leave --syscall-cores out, or --tiles");
    }
    let count = u32::from(boot.tiles);
    let divided = boot.smp.filter(|smp| smp.is_multiple_of(count)).map(|smp| smp / count);
    let cores = boot.cores.or(divided).unwrap_or(1);
    if count * cores > PROCESSORS || boot.smp.is_some_and(|smp| smp != count * cores) {
        return refuse(
            format!(
                "{count} tiles of {cores} processors: these are {}, at most {PROCESSORS}, and as many as --smp has",
                count * cores
            ),
            "leave --smp out, and give --tiles and --cores",
        );
    }
    Ok(Some(BootTiles {
        kernels: Tiles { count, cores, spread: false },
        programs: programs(&boot.on, count)?,
        messages: boot.messages,
    }))
}

/// The programs of the tiles behind the first.
fn programs(on: &[String], count: u32) -> Result<Vec<Option<Vec<OsString>>>, Refusal> {
    let mut programs = vec![None; count as usize - 1];
    for text in on {
        let mut words = text.split_ascii_whitespace();
        let tile = words.next().and_then(|word| word.parse::<usize>().ok()).filter(|tile| (1..count as usize).contains(tile));
        let command: Vec<OsString> = words.map(OsString::from).collect();
        match tile {
            Some(tile) if !command.is_empty() && programs[tile - 1].is_none() => programs[tile - 1] = Some(command),
            _ => {
                return refuse(
                    format!("--on '{text}': not a tile from 1 to {}, each once, and its program", count - 1),
                    "give it as in --on '1 seq 5'; the program behind -- is the first tile's, 0",
                );
            }
        }
    }
    Ok(programs)
}

/// How many kernels, and where they and their programs are.
#[derive(clap::Args)]
pub struct Beside {
    /// Tiles of the machine. For the personality linux, 2 to 16: kernels side by side that share nothing but messages; the program runs on the first (docs/tiles.md)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub tiles: u8,

    /// Cores of each tile: for the personality linux processors of the host, all of them divided by the tiles where nothing is said
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub cores: Option<u32>,

    /// The tile that programs run on: local, the one that starts them; spread, members of pipelines on all of them in turn, and no file in the kernels' memory can
    /// be changed (docs/tiles.md)
    #[arg(long, value_name = "local|spread", value_parser = ["local", "spread"], hide_possible_values = true)]
    place: Option<String>,
}

impl Beside {
    /// The kernels side by side that the personality `linux` is to have, or why it cannot.
    pub fn kernels(&self, personality: &str, away: bool) -> Result<Option<Tiles>, Refusal> {
        let several = self.tiles != 1 || self.cores.is_some();
        if self.place.is_some() && (personality != "linux" || self.tiles == 1) {
            return refuse(
                "--place is for programs of the personality `linux` on several tiles",
                "add --tiles N, or leave it out",
            );
        }
        match personality {
            "linux" if several => {}
            "l4v2" | "pal" if several => {
                return refuse("--tiles and --cores are for the personalities `linux` and `invasive`", "leave them out");
            }
            _ => return Ok(None),
        }
        if self.tiles == 1 {
            return refuse(
                "--cores is for tiles, and there is one",
                "add --tiles N; --cpus N limits the processors of all programs",
            );
        }
        if self.tiles > MOST {
            return refuse(format!("--tiles {}: the personality `linux` has at most {MOST}", self.tiles), "give fewer");
        }
        if away {
            return refuse("--syscall-cores: not on several tiles yet", "leave --syscall-cores out, or --tiles");
        }
        let there = janua_platform_host::processors() as u32;
        let cores = self.cores.unwrap_or_else(|| (there / u32::from(self.tiles)).max(1));
        if cores > there {
            return refuse(format!("--cores {cores}: this machine has {there} processors to be used"), "give no more");
        }
        Ok(Some(Tiles { count: self.tiles.into(), cores, spread: self.place.as_deref() == Some("spread") }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, Command};
    use clap::Parser;

    fn parse(args: &[&str]) -> Result<Option<Tiles>, String> {
        let all = ["janua", "run"].iter().chain(args);
        match Args::try_parse_from(all).map_err(|e| e.to_string())?.command {
            Command::Run(run) => run.options().map(|options| options.tiles).map_err(|r| r.to_string()),
            _ => Err("not run".into()),
        }
    }

    fn boot(args: &[&str]) -> Result<(Option<BootTiles>, u32), String> {
        let all = ["janua", "boot"].iter().chain(args).chain(&["--", "x"]);
        match Args::try_parse_from(all).map_err(|e| e.to_string())?.command {
            Command::Boot(boot) => boot.options().map(|o| (o.tiles, o.smp)).map_err(|r| r.to_string()),
            _ => Err("not boot".into()),
        }
    }

    #[test]
    fn bare_machines_are_divided() {
        let shape = |args: &[&str]| boot(args).map(|(tiles, smp)| (tiles.map(|t| (t.kernels.count, t.kernels.cores)), smp));
        assert_eq!(shape(&[]), Ok((None, 2)));
        assert_eq!(shape(&["--tiles", "2", "--cores", "1"]), Ok((Some((2, 1)), 2)));
        assert_eq!(shape(&["--tiles", "3"]), Ok((Some((3, 1)), 3)));
        assert_eq!(shape(&["--tiles", "2", "--smp", "8", "--personality", "pal"]), Ok((Some((2, 4)), 8)));
        assert_eq!(shape(&["--tiles", "2", "--personality", "invasive"]), Ok((None, 2)));
        let programs = boot(&["--tiles", "3", "--on", "2 seq  5"]).unwrap().0.unwrap().programs;
        assert_eq!(programs, [None, Some(vec!["seq".into(), "5".into()])]);
        for (wrong, why) in [
            (&["--tiles", "17"][..], "at most 16"),
            (&["--cores", "2"], "there is one"),
            (&["--on", "1 x"], "there is one"),
            (&["--tiles", "2", "--smp", "3"], "--smp"),
            (&["--tiles", "16", "--cores", "5"], "at most 64"),
            (&["--tiles", "2", "--on", "2 x"], "--on '2 x'"),
            (&["--tiles", "2", "--on", "0 x"], "--on '0 x'"),
            (&["--tiles", "2", "--on", "1"], "--on '1'"),
            (&["--tiles", "2", "--on", "1 x", "--on", "1 y"], "--on '1 y'"),
            (&["--tiles", "2", "--disk", "d"], "--disk"),
            (&["--tiles", "2", "--syscall-cores", "1"], "--syscall-cores"),
            (&["--personality", "invasive", "--on", "1 x"], "--on"),
            (&["--platform", "leon3", "--personality", "invasive", "--on", "1 x"], "--on"),
        ] {
            assert!(boot(wrong).unwrap_err().contains(why), "{wrong:?}");
        }
    }

    #[test]
    fn tiles_have_processors() {
        let tiles = |args: &[&str]| parse(&[args, &["--", "x"]].concat());
        assert_eq!(tiles(&[]), Ok(None));
        assert_eq!(tiles(&["--tiles", "2", "--cores", "1"]), Ok(Some(Tiles { count: 2, cores: 1, spread: false })));
        assert!(tiles(&["--tiles", "2", "--place", "spread"]).unwrap().unwrap().spread);
        let most = tiles(&["--tiles", "16", "--place", "local"]).unwrap().unwrap();
        assert_eq!((most.count, most.cores >= 1), (16, true));
        for (wrong, why) in [
            (&["--tiles", "17"][..], "at most 16"),
            (&["--cores", "1"], "--cpus N"),
            (&["--tiles", "2", "--cores", "64"], "this machine has"),
            (&["--place", "spread"], "add --tiles"),
            (&["--place", "local"], "--place"),
            (&["--tiles", "2", "--syscall-cores", "1"], "--syscall-cores"),
            (&["--personality", "invasive", "--tiles", "2", "--place", "local"], "--place"),
        ] {
            assert!(tiles(wrong).unwrap_err().contains(why), "{wrong:?}");
        }
        let invasive = ["--personality", "invasive", "--tiles", "64", "--cores", "64"];
        assert_eq!(tiles(&invasive), Ok(None));
    }
}
