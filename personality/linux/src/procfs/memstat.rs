//! What the system's memory is used for: meminfo, vmstat, zoneinfo and buddyinfo of /proc.
//!
//! Amounts of the machine are the machine's; what is attributed to somebody is what this kernel accounts for. It swaps nothing, reclaims
//! nothing and writes nothing back by itself: what Linux counts of that is 0 here because it does not happen.

use core::fmt::Write;

use janua_abi::linux::Result;
use janua_port::PAGE;

use super::{Subject, Text};
use crate::load;

/// Bytes.
struct Amounts {
    total: u64,
    free: u64,
    available: u64,
    /// What caches would give back, and files in memory, which lie there as in a cache.
    cached: u64,
    /// Files in memory (overlay, tmpfs).
    shmem: u64,
    /// Memory of their own that programs have touched.
    anon: u64,
    /// The kernel's heap, and shared memory without a file.
    kernel: u64,
    /// All that has been promised, and what may be.
    committed: u64,
    limit: u64,
}

impl Amounts {
    fn of(subject: &Subject) -> Amounts {
        let machine = subject.kernel.machine;
        let (memory, accounts) = (machine.memory(), machine.accounts());
        let shmem = accounts.disk.used() as u64;
        let firm = accounts.firm() as u64;
        let anon = load::resident(&subject.kernel).map_or(memory.total - memory.free.min(memory.total), |bytes| bytes as u64);
        Amounts {
            total: memory.total,
            free: memory.free,
            available: memory.available,
            cached: memory.available.saturating_sub(memory.free).saturating_add(shmem),
            shmem,
            anon,
            kernel: firm.saturating_sub(shmem),
            committed: accounts.memory.used() as u64,
            limit: memory.total.min(accounts.memory.limit() as u64),
        }
    }
}

/// /proc/meminfo.
pub fn meminfo(subject: &Subject, text: &mut Text) -> Result<()> {
    let amounts = Amounts::of(subject);
    let kib = |bytes: u64| bytes / 1024;
    for (name, value) in [
        ("MemTotal", kib(amounts.total)),
        ("MemFree", kib(amounts.free)),
        ("MemAvailable", kib(amounts.available)),
        ("Buffers", 0),
        ("Cached", kib(amounts.cached)),
        ("SwapCached", 0),
        // There are no lists of what was used lately.
        ("Active", 0),
        ("Inactive", 0),
        ("SwapTotal", 0),
        ("SwapFree", 0),
        ("Dirty", 0),
        ("Writeback", 0),
        ("AnonPages", kib(amounts.anon)),
        ("Mapped", 0),
        ("Shmem", kib(amounts.shmem)),
        ("KReclaimable", 0),
        ("Slab", kib(amounts.kernel)),
        ("SReclaimable", 0),
        ("SUnreclaim", kib(amounts.kernel)),
        ("CommitLimit", kib(amounts.limit)),
        ("Committed_AS", kib(amounts.committed)),
        ("VmallocTotal", 34_359_738_367),
        ("HugePages_Total", 0),
        ("HugePages_Free", 0),
        ("HugePages_Rsvd", 0),
        ("HugePages_Surp", 0),
        ("Hugepagesize", 2048),
        ("Hugetlb", 0),
    ] {
        let column = alloc::format!("{name}:");
        let unit = if name.starts_with("HugePages") { "" } else { " kB" };
        let _ = writeln!(text, "{column:16}{value:8}{unit}");
    }
    Ok(())
}

/// What Linux counts of paging, swapping, reclaiming and compacting.
const NEVER: [&str; 29] = [
    "pgpgin",
    "pgpgout",
    "pswpin",
    "pswpout",
    "pgactivate",
    "pgdeactivate",
    "pglazyfree",
    "pgrefill",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgscan_direct_throttle",
    "pginodesteal",
    "slabs_scanned",
    "kswapd_inodesteal",
    "pageoutrun",
    "allocstall_normal",
    "pgrotated",
    "pgmigrate_success",
    "pgmigrate_fail",
    "compact_stall",
    "compact_fail",
    "compact_success",
    "numa_pte_updates",
    "numa_hint_faults",
    "numa_pages_migrated",
    "unevictable_pgs_culled",
    "unevictable_pgs_scanned",
];

/// /proc/vmstat.
pub fn vmstat(subject: &Subject, text: &mut Text) -> Result<()> {
    let amounts = Amounts::of(subject);
    let (_, used) = load::used(&subject.kernel);
    let pages = |bytes: u64| bytes / PAGE as u64;
    for (name, value) in [
        ("nr_free_pages", pages(amounts.free)),
        ("nr_anon_pages", pages(amounts.anon)),
        ("nr_file_pages", pages(amounts.cached)),
        ("nr_dirty", 0),
        ("nr_writeback", 0),
        ("nr_shmem", pages(amounts.shmem)),
        ("nr_slab_reclaimable", 0),
        ("nr_slab_unreclaimable", pages(amounts.kernel)),
        ("nr_dirtied", 0),
        ("nr_written", 0),
        ("pgfault", used.minor_faults + used.major_faults),
        ("pgmajfault", used.major_faults),
        ("oom_kill", subject.kernel.machine.accounts().killed() as u64),
    ] {
        let _ = writeln!(text, "{name} {value}");
    }
    for name in NEVER {
        let _ = writeln!(text, "{name} 0");
    }
    Ok(())
}

/// /proc/zoneinfo: all memory is one zone of one node, from which nothing is reclaimed.
pub fn zoneinfo(subject: &Subject, text: &mut Text) -> Result<()> {
    let amounts = Amounts::of(subject);
    let pages = |bytes: u64| bytes / PAGE as u64;
    text.bytes(b"Node 0, zone   Normal\n  per-node stats\n");
    for (name, value) in [
        ("nr_slab_reclaimable", 0),
        ("nr_slab_unreclaimable", pages(amounts.kernel)),
        ("nr_anon_pages", pages(amounts.anon)),
        ("nr_file_pages", pages(amounts.cached)),
        ("nr_dirty", 0),
        ("nr_writeback", 0),
        ("nr_shmem", pages(amounts.shmem)),
    ] {
        let _ = writeln!(text, "      {name:12} {value}");
    }
    let (free, all) = (pages(amounts.free), pages(amounts.total));
    let _ = writeln!(text, "  pages free     {free}");
    for (name, value) in [
        ("boost", 0),
        ("min", 0),
        ("low", 0),
        ("high", 0),
        ("promo", 0),
        ("spanned", all),
        ("present", all),
        ("managed", all),
        ("cma", 0),
    ] {
        let _ = writeln!(text, "        {name:8} {value}");
    }
    let _ = writeln!(text, "        protection: (0)\n      {:12} {free}", "nr_free_pages");
    text.bytes(b"  node_unreclaimable:  0\n  start_pfn:           0\n");
    Ok(())
}

/// /proc/buddyinfo: free blocks of 1, 2, 4, ... pages. Free memory is not kept in blocks of these sizes, so there are none of any.
pub fn buddyinfo(_: &Subject, text: &mut Text) -> Result<()> {
    const ORDERS: usize = 11;
    text.bytes(b"Node 0, zone   Normal ");
    for _ in 0..ORDERS {
        text.bytes(b"     0 ");
    }
    text.bytes(b"\n");
    Ok(())
}
