//! What a sandbox may have: the options of `janua run` that set it, and what is allowed without them.

use std::time::Duration;

use janua_platform_host::sandbox::Limits;

/// The options.
#[derive(clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct Allowance {
    /// Memory: what the programs have touched, and all of the kernel's heap, of files in memory and of shared memory. A number with K,
    /// M, G or T, or max for no limit; the default is seven eighths of what the host has available at the start. Beyond it allocations
    /// fail; when programs touch more than there is of what they were promised, the largest process is killed
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<usize>,

    /// Files in memory: the overlay, /dev/shm and every tmpfs together. Written as for --memory; the default is half of that
    #[arg(long, value_name = "SIZE", value_parser = size)]
    disk: Option<usize>,

    /// Processes and threads; fork and clone beyond it fail. The default is the kernel's own limit, 32768
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pids: Option<u32>,

    /// Processors: the sandbox stays on this many of the host's (all, if it has fewer), chosen at the start by affinity; they are not
    /// reserved for it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    cpus: Option<u32>,

    /// Time until the sandbox is ended, with exit code 124: a number with ms, s, m, h or d (5 is 5s)
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    time: Option<Duration>,

    /// Write how it ended to this descriptor, as a line of JSON: exit, signal, limit, fault, usage, limits, cgroup
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    status_fd: Option<i32>,
}

/// What was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Bytes; `usize::MAX` for no limit, `None` where nothing was given.
    pub memory: Option<usize>,
    pub disk: Option<usize>,
    pub pids: Option<u32>,
    pub cpus: Option<u32>,
    pub time: Option<Duration>,
    /// Where the outcome is written.
    pub status_fd: Option<i32>,
}

impl From<Allowance> for Allowed {
    fn from(asked: Allowance) -> Allowed {
        let Allowance { memory, disk, pids, cpus, time, status_fd } = asked;
        Allowed { memory, disk, pids, cpus, time, status_fd }
    }
}

impl Allowed {
    /// The limits of a sandbox that starts now.
    pub fn limits(&self) -> Limits {
        let memory = self.memory.unwrap_or_else(|| available().map_or(usize::MAX, |bytes| bytes / 8 * 7));
        let count = |number: Option<u32>| number.map_or(usize::MAX, |number| number as usize);
        Limits {
            memory,
            disk: self.disk.unwrap_or(if memory == usize::MAX { memory } else { memory / 2 }),
            threads: count(self.pids),
            cpus: count(self.cpus),
            time: self.time,
        }
    }

    /// Those of the limits that a cgroup is to keep too: what was asked for. `None` when nothing was, and there is to be no group.
    pub fn for_group(&self, limits: &Limits) -> Option<Limits> {
        let asked = |asked: bool, limit: usize| if asked { limit } else { usize::MAX };
        let kept = Limits {
            memory: asked(self.memory.is_some(), limits.memory),
            threads: asked(self.pids.is_some(), limits.threads),
            cpus: asked(self.cpus.is_some(), limits.cpus),
            ..Limits::NONE
        };
        Some(kept).filter(|kept| *kept != Limits::NONE)
    }
}

/// Bytes that the host could give without swapping, within the limit of the control group this runs in.
fn available() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let all = line.split_ascii_whitespace().next()?.parse::<usize>().ok()?.saturating_mul(1024);
    Some(all.min(group_left().unwrap_or(usize::MAX)))
}

/// What is left of the limit of the control group (version 2) this runs in.
fn group_left() -> Option<usize> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let value = |file: &str| {
        let text = std::fs::read_to_string(format!("/sys/fs/cgroup{own}/{file}")).ok()?;
        text.trim().parse::<usize>().ok()
    };
    value("memory.max")?.checked_sub(value("memory.current")?)
}

/// Bytes, or `max` for as many as there are.
fn size(text: &str) -> Result<usize, String> {
    if text.eq_ignore_ascii_case("max") {
        return Ok(usize::MAX);
    }
    let bytes = crate::args::size(text).map_err(|why| format!("{why} (or max, for no limit)"))?;
    usize::try_from(bytes)
        .ok()
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "the least is 1; a program needs some megabytes".to_owned())
}

/// "10s", "5m"; seconds without a unit.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| "not a whole number with a unit, as in 10s or 5m".to_owned())?;
    let unit = match &text[digits.len()..] {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60 * 1000,
        "h" => 3600 * 1000,
        "d" => 24 * 3600 * 1000,
        unit => return Err(format!("the unit `{unit}` is not ms, s, m, h or d")),
    };
    let millis = number.checked_mul(unit).filter(|millis| *millis > 0);
    millis.map(Duration::from_millis).ok_or_else(|| "too short or too long".to_owned())
}

/// Bytes as one would write them: 256M, 1536K, 1000.
pub fn shown(bytes: usize) -> String {
    let units = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
    // Whole units, or large enough that a tenth suffices.
    for (shift, unit) in units {
        if bytes >> shift > 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    match units.into_iter().find(|(shift, _)| bytes >> shift > 0) {
        Some((shift, unit)) if bytes >> 20 > 0 => format!("{:.1}{unit}", bytes as f64 / (1u64 << shift) as f64),
        _ => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times() {
        assert_eq!(
            (size("256M"), size("1g"), size("max"), size("4096")),
            (Ok(256 << 20), Ok(1 << 30), Ok(usize::MAX), Ok(4096))
        );
        assert!(size("0").is_err() && size("10X").is_err() && size("").is_err());
        let millis = |text| duration(text).map(|time| time.as_millis());
        assert_eq!((millis("10s"), millis("5m"), millis("250ms"), millis("2")), (Ok(10_000), Ok(300_000), Ok(250), Ok(2000)));
        assert!(millis("0s").is_err() && millis("s").is_err() && millis("1y").is_err() && millis("1.5s").is_err());
        let texts = [256 << 20, 1 << 30, 1536 << 10, 1000, 19 << 27];
        assert_eq!(texts.map(shown), ["256M", "1G", "1536K", "1000", "2432M"]);
        assert_eq!(shown(20_000_000_001), "18.6G");
    }

    #[test]
    fn what_nobody_asked_for() {
        let limits = Allowed { memory: Some(1 << 30), pids: Some(7), ..Allowed::default() }.limits();
        assert_eq!((limits.memory, limits.disk, limits.threads, limits.cpus), (1 << 30, 1 << 29, 7, usize::MAX));
        let limits = Allowed { memory: Some(usize::MAX), ..Allowed::default() }.limits();
        assert_eq!((limits.memory, limits.disk, limits.time), (usize::MAX, usize::MAX, None));
        assert!(Allowed::default().limits().memory > 1 << 20);
        assert_eq!(Allowed::default().for_group(&Allowed::default().limits()), None);
        let asked = Allowed { memory: Some(usize::MAX), cpus: Some(2), ..Allowed::default() };
        assert_eq!(asked.for_group(&asked.limits()), Some(Limits { cpus: 2, ..Limits::NONE }));
    }
}
