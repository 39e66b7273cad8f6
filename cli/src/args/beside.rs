//! Options for machines of several tiles.

use super::{Refusal, refuse};
use crate::options::Tiles;

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
        const MOST: u8 = janua_port::tiles::TILES_MOST as u8;
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
