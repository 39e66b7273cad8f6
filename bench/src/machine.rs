//! What the measuring machine is.

use std::collections::BTreeMap;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::model::{Machine, Tool};

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// The value after `key` and a colon in the first line that begins with it.
fn field(text: &str, key: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    })
}

/// This tool, and the kernel image it measures: the one that the environment variable names, or its own.
pub fn tool(variable: &str, image: &str) -> Tool {
    Tool {
        version: env!("CARGO_PKG_VERSION").into(),
        commit: env!("JANUA_COMMIT").into(),
        image: std::env::var(variable).unwrap_or_else(|_| image.into()),
    }
}

/// Load over the last minute.
pub fn load() -> f64 {
    read("/proc/loadavg").split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0.0)
}

/// Describes the machine. Takes a tenth of a second: the time stamp counter is compared with the clock.
pub fn describe() -> Machine {
    let info = read("/proc/cpuinfo");
    let value = |key: &str| field(&info, key).unwrap_or_default();
    let flags: Vec<String> = value("flags").split_whitespace().map(str::to_owned).collect();
    let has = |flag: &str| flags.iter().any(|f| f == flag);
    let memory = field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
    let mut mitigations = BTreeMap::new();
    for entry in fs::read_dir("/sys/devices/system/cpu/vulnerabilities").into_iter().flatten().flatten() {
        let answer = fs::read_to_string(entry.path()).unwrap_or_default();
        mitigations.insert(entry.file_name().to_string_lossy().into_owned(), answer.trim().to_owned());
    }
    Machine {
        processor: value("model name"),
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        stepping: format!("family {}, model {}, stepping {}", value("cpu family"), value("model"), value("stepping")),
        kernel: read("/proc/sys/kernel/osrelease"),
        kernel_version: read("/proc/sys/kernel/version"),
        virtual_machine: has("hypervisor"),
        memory_kib: memory.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0),
        governor: Some(read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")).filter(|g| !g.is_empty()),
        tsc_hz: janua_probe::ticks_per_second(),
        tsc_steady: has("constant_tsc") && has("nonstop_tsc"),
        mitigations,
        load: [load(), 0.0],
        flags,
    }
}

/// The last processor this process may run on: the first takes most interrupts.
pub fn quiet_processor() -> Option<usize> {
    let allowed = sched_getaffinity(None).ok()?;
    (0..CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu))
}

/// Two processors this process may run on, the last ones.
pub fn two_processors() -> Option<[usize; 2]> {
    let allowed = sched_getaffinity(None).ok()?;
    let mut all = (0..CpuSet::MAX_CPU).rev().filter(|cpu| allowed.is_set(*cpu));
    Some([all.next()?, all.next()?])
}

/// Pins this thread, and what it starts while the value lives, to one processor.
pub struct Pinned(Option<CpuSet>);

impl Pinned {
    pub fn to(processor: Option<usize>) -> Pinned {
        let pin = || {
            let before = sched_getaffinity(None).ok()?;
            let mut one = CpuSet::new();
            one.set(processor?);
            sched_setaffinity(None, &one).ok()?;
            Some(before)
        };
        Pinned(pin())
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // It was allowed before.
            let _ = sched_setaffinity(None, before);
        }
    }
}

/// The time now, UTC, as `2026-01-31T23:59:59Z`.
pub fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs());
    date(seconds)
}

/// Seconds since 1970 as a date, by counting days from 1 March of year 0 (the leap day comes last then).
fn date(seconds: u64) -> String {
    let (days, second) = (seconds / 86400 + 719_468, seconds % 86400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(date(0), "1970-01-01T00:00:00Z");
        assert_eq!(date(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(date(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(date(951_868_800), "2000-03-01T00:00:00Z");
        assert_eq!(date(1_735_689_599), "2024-12-31T23:59:59Z");
    }

    #[test]
    fn fields() {
        assert_eq!(field("model\t: 1\nmodel name\t: X: y\n", "model name").as_deref(), Some("X: y"));
        assert_eq!(field("a: b", "c"), None);
    }
}
