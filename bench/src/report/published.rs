//! Figures that others published, and what peers cost: shown beside the measured ones, labelled as theirs.

/// A table of somebody's figures.
pub struct Published {
    pub title: &'static str,
    /// Who measured, where.
    pub source: &'static str,
    pub columns: &'static [&'static str],
    /// The first cell names the row.
    pub rows: &'static [&'static [&'static str]],
}

const ARTICLE: &str = "“The evolution of x86 architecture system calls” (habr.com, post 347596): Intel i7-5500U, Linux 4.14.13, minimum of \
                       1,000 calls of gettimeofday";

/// The article's times of gettimeofday in ns: our row, with and without kernel page-table isolation.
pub const GETTIMEOFDAY: &[(&str, f64, f64)] = &[
    ("tod-int80", 498.0, 317.0),
    ("tod-sysenter", 338.0, 150.0),
    ("tod-syscall", 278.0, 103.0),
    ("tod-vsyscall", 692.0, 496.0),
    ("tod-vsyscall-native", 278.0, 103.0),
    ("tod-vdso", 37.0, 37.0),
    ("tod-vdso32", 51.0, 51.0),
];

const OCTOPOS: &str =
    "E. Dengler, Decoupling User and Kernel Space: A System Call Framework for OctoPOS, FAU Erlangen 2020, Table 5.2: averages";

/// OctoPOS' empty system call with 0 to 6 parameters: machine and variant, averages in ticks, ns per tick.
pub const EMPTY_CALLS: &[(&str, [f64; 7], f64)] = &[
    ("x86guest (Linux guest layer, i5-4590), vanilla", [0.0, 0.0, 17.0, 16.0, 31.0, 1.0, 16.0], 1.0),
    ("x86guest, library without system calls", [24.0, 9.0, 8.0, 9.0, 9.0, 11.0, 9.0], 1.0),
    ("x86guest, system calls", [3319.0, 3319.0, 3316.0, 3316.0, 3319.0, 3321.0, 3318.0], 1.0),
    ("x64native (bare metal, Xeon E7-4830 v3, 2.1 GHz), vanilla", [2.0, 2.0, 3.0, 3.0, 3.0, 4.0, 4.0], 1.0 / 2.1),
    ("x64native, library without system calls", [9.0, 10.0, 9.0, 10.0, 11.0, 10.0, 10.0], 1.0 / 2.1),
    ("x64native, system calls", [703.0, 696.0, 702.0, 702.0, 700.0, 700.0, 699.0], 1.0 / 2.1),
    ("leon (SPARC v8 on FPGA, 50 MHz), vanilla", [6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0], 20.0),
    ("leon, library without system calls", [52.0, 53.0, 54.0, 55.0, 56.0, 57.0, 58.0], 20.0),
    ("leon, system calls", [133.0, 134.0, 135.0, 136.0, 137.0, 138.0, 139.0], 20.0),
];

/// The source line of [`EMPTY_CALLS`].
pub const EMPTY_CALLS_SOURCE: &str = OCTOPOS;

/// The source line of [`GETTIMEOFDAY`].
pub const GETTIMEOFDAY_SOURCE: &str = ARTICLE;

/// Names of the peers in [`PEERS`].
pub const PEER_NAMES: [&str; 5] = [
    "proot 5.1",
    "User Mode Linux 7.2, seccomp",
    "gVisor 2026-09, systrap",
    "Gramine 1.9, unmodified program",
    "Gramine 1.9, patched C library",
];

/// What the peers cost, as multiples of native, by our row. Measured for this project, on another day, in one run with its own
/// native: a virtual machine of two cores, Linux 6.18, one static program, the best of 7 to 13 rounds.
pub const PEERS: &[(&str, [f64; 5])] = &[
    ("syscall", [99.0, 57.0, 78.0, 20.0, 0.8]),
    ("syscall-2thr", [159.0, 119.0, 131.0, 32.0, 0.8]),
    ("vdso", [1.0, 246.0, 1.4, 5.9, 6.0]),
    ("clock", [71.0, 41.0, 51.0, 14.0, 0.9]),
    ("signal", [18.0, 9.4, 12.0, 3.0, 0.4]),
    ("clock-vdso", [1.0, 246.0, 1.4, 5.9, 6.0]),
    ("clock-call", [71.0, 41.0, 51.0, 14.0, 0.9]),
    ("read-zero-1", [72.0, 44.0, 54.0, 16.0, 1.5]),
    ("write-null-1", [85.0, 49.0, 59.0, 18.0, 1.6]),
    ("pread-4k", [32.0, 19.0, 27.0, 7.8, 1.8]),
    ("pwrite-4k", [22.0, 20.0, 18.0, 5.9, 1.8]),
    ("open-close", [31.0, 26.0, 41.0, 7.9, 3.2]),
    ("stat", [32.0, 25.0, 32.0, 4.5, 0.9]),
    ("creat-unlink", [6.2, 6.4, 6.9, 2.9, 2.2]),
    ("pipe", [14.0, 13.0, 13.0, 5.9, 2.4]),
    ("unix", [7.5, 5.9, 9.7, 3.2, 1.5]),
    ("futex-thr", [9.2, 11.0, 6.5, 1.5, 2.2]),
    ("thread", [3.3, 2.6, 6.5, 5.5, 5.1]),
    ("fork-wait", [2.9, 15.0, 14.0, 92.0, 103.0]),
    ("fork-exec-wait", [3.6, 11.0, 11.0, 50.0, 64.0]),
    ("vfork-exec-wait", [3.7, 6.4, 9.8, 90.0, 99.0]),
    ("mmap-touch", [5.2, 8.4, 13.0, 2.8, 1.4]),
    ("fault", [1.0, 11.0, 1.4, 1.1, 1.0]),
    ("signal-self", [18.0, 9.4, 12.0, 3.0, 0.4]),
    ("eventfd", [64.0, 39.0, 47.0, 15.0, 2.7]),
    ("epoll", [44.0, 24.0, 32.0, 13.0, 4.5]),
];

/// The source line of [`PEERS`].
pub const PEERS_SOURCE: &str = "measured for this project on another day, each as a multiple of native in its own run (virtual machine of 2 \
                                cores, Linux 6.18, one static program, best of 7 to 13 rounds)";

/// The thesis' times of a task, milliseconds: in memory, by zCore and by its asynchronous form, and the same on a disk.
pub fn task(number: usize) -> Option<Vec<f64>> {
    let table = TABLES.iter().find(|table| table.source == ZCORE && table.columns.len() == 5)?;
    table.rows.get(number)?.iter().skip(1).map(|cell| cell.parse().ok()).collect()
}

/// The thesis' Tables 3 and 4.
pub fn events() -> Option<&'static Published> {
    TABLES.iter().find(|table| table.source == BARRELFISH)
}

/// Of them the row of an event that is set after so many microseconds, without its name.
pub fn event(table: &Published, micros: usize) -> Option<&'static [&'static str]> {
    let number = |name: &str| name.chars().filter(char::is_ascii_digit).collect::<String>().parse::<usize>().ok();
    let row = table.rows.iter().find(|row| number(row[0]) == Some(micros))?;
    row.get(1..)
}

/// What the best peer costs for one of our rows: the multiple, and which.
pub fn best_peer(row: &str) -> Option<(f64, &'static str)> {
    let (_, ratios) = PEERS.iter().find(|(name, _)| *name == row)?;
    let (index, ratio) = ratios.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1))?;
    Some((*ratio, PEER_NAMES[index]))
}

const FIASCO: &str = "U. Steinberg, Fiasco µ-Kernel User-Mode Port, TU Dresden 2002";
/// The source line of the six tasks.
pub const ZCORE: &str =
    "Y. Wu, Exploring Asynchronous Operating System Design Using Rust, Imperial College London 2022, Tables 5.2 to 5.7";
const BARRELFISH: &str =
    "Y. Bieri, Running Linux Binaries over Barrelfish using a LibraryOS, ETH Zürich 2015: two Intel E5-2670 v2, 2.5 GHz";

/// Every other table.
pub const TABLES: &[Published] = &[
    Published {
        title: "gettimeofday by every gate, ns",
        source: ARTICLE,
        columns: &["gate", "with page-table isolation", "without"],
        rows: &[
            &["int 80h", "498", "317"],
            &["sysenter", "338", "150"],
            &["syscall", "278", "103"],
            &["vsyscall, emulated", "692", "496"],
            &["vsyscall, native", "278", "103"],
            &["vDSO", "37", "37"],
            &["vDSO-32", "51", "51"],
        ],
    },
    Published {
        title: "Empty system call by number of parameters, ticks ± standard deviation",
        source: OCTOPOS,
        columns: &["machine, variant", "0", "1", "2", "3", "4", "5", "6"],
        rows: &[
            &["x86guest, vanilla", "0 ± 3", "0 ± 3", "17 ± 2", "16 ± 1", "31 ± 3", "1 ± 3", "16 ± 1"],
            &["x86guest, sys-lib-no", "24 ± 53", "9 ± 3", "8 ± 3", "9 ± 3", "9 ± 3", "11 ± 3", "9 ± 3"],
            &[
                "x86guest, sys-lib-yes",
                "3319 ± 54",
                "3319 ± 50",
                "3316 ± 45",
                "3316 ± 37",
                "3319 ± 48",
                "3321 ± 49",
                "3318 ± 48",
            ],
            &["x64native, vanilla", "2 ± 2", "2 ± 2", "3 ± 2", "3 ± 2", "3 ± 2", "4 ± 0", "4 ± 0"],
            &["x64native, sys-lib-no", "9 ± 2", "10 ± 2", "9 ± 2", "10 ± 2", "11 ± 2", "10 ± 2", "10 ± 2"],
            &["x64native, sys-lib-yes", "703 ± 2", "696 ± 2", "702 ± 2", "702 ± 2", "700 ± 2", "700 ± 2", "699 ± 2"],
            &["leon, vanilla", "6 ± 0", "7 ± 0", "8 ± 0", "9 ± 0", "10 ± 0", "11 ± 0", "12 ± 0"],
            &["leon, sys-lib-no", "52 ± 0", "53 ± 0", "54 ± 0", "55 ± 0", "56 ± 0", "57 ± 0", "58 ± 0"],
            &["leon, sys-lib-yes", "133 ± 0", "134 ± 0", "135 ± 0", "136 ± 0", "137 ± 0", "138 ± 0", "139 ± 0"],
        ],
    },
    Published {
        title: "Cheapest system call: kernels and user-mode kernels (Figure 5.1)",
        source: FIASCO,
        columns: &["kernel", "Duron 800, clocks", "µs", "Pentium 4 1600, clocks", "µs"],
        rows: &[
            &["Linux 2.4.19, getpid", "273", "0.3", "1650", "1"],
            &["User Mode Linux 2.4.19-32, getpid, without jail", "33500", "42", "111000", "69"],
            &["User Mode Linux 2.4.19-32, getpid, with jail", "136000", "170", "207000", "129"],
            &["Fiasco, id_nearest", "305", "0.4", "1631", "1"],
            &["Fiasco-UX, id_nearest", "17600", "22", "49400", "31"],
        ],
    },
    Published {
        title: "L4 ping-pong, short IPC (Figure 5.2)",
        source: FIASCO,
        columns: &["kernel", "Duron 800, clocks", "µs", "Pentium 4 1600, clocks", "µs"],
        rows: &[
            &["Fiasco, same address space", "543", "0.7", "3280", "2.0"],
            &["Fiasco, between address spaces", "890", "1.1", "4095", "2.5"],
            &["Fiasco-UX, same address space", "46500", "58", "94500", "59"],
            &["Fiasco-UX, between address spaces", "43500", "54", "88000", "55"],
        ],
    },
    Published {
        title: "Cost of emulation by ptrace (Figure 5.3), clocks",
        source: FIASCO,
        columns: &["operation", "Duron 800", "Pentium 4 1600"],
        rows: &[
            &["cli, sti, iret in the signal handler", "3145", "5556"],
            &["waitpid", "636", "2056"],
            &["PTRACE_GETREGS", "842", "2648"],
            &["PTRACE_SETREGS", "1119", "2880"],
            &["PTRACE_PEEKTEXT", "941", "2316"],
            &["PTRACE_SYSCALL", "2958", "8096"],
            &["fault of a task", "8000", "15000"],
            &["map a page in a task", "18000", "40000"],
            &["unmap a page in a task", "17000", "40000"],
        ],
    },
    Published {
        title: "System calls on another core: run time of six tasks, ms",
        source: ZCORE,
        columns: &["task", "zCore, ramfs", "asynchronous, ramfs", "zCore, disk", "asynchronous, disk"],
        rows: &[
            &["0: many cheap calls", "4943.05", "21421.63", "5019.23", "21742.38"],
            &["1: stat of 1,200 files", "7522.78", "7526.08", "14353.72", "14257.45"],
            &["2: wc of all files", "931.12", "941.81", "19501.75", "19150.05"],
            &["3: two of task 0", "9871.63", "38031.88", "10012.26", "38379.68"],
            &["4: two of task 1", "15041.74", "15071.40", "28800.77", "29262.01"],
            &["5: two of task 2", "1655.45", "1695.72", "38921.19", "39215.17"],
        ],
    },
    Published {
        title: "Waiting for an event that comes after a while, µs ± standard deviation (Tables 3 and 4)",
        source: BARRELFISH,
        columns: &["signalled after", "Linux", "Barrelfish, slice of 80 ms", "Barrelfish, slice of 1 ms"],
        rows: &[
            &["3,000 µs", "3253 ± 19", "80014 ± 33", "3367 ± 506"],
            &["30,000 µs", "30219 ± 14", "80015 ± 39", "30373 ± 493"],
            &["100,000 µs", "100209 ± 10", "160020 ± 84", "100432 ± 502"],
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_rectangular() {
        for table in TABLES {
            assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.title);
        }
    }

    #[test]
    fn peers_are_of_rows_that_exist() {
        for (name, ratios) in PEERS {
            assert!(janua_probe::ROWS.iter().any(|row| row.name == *name), "{name}");
            assert!(ratios.iter().all(|ratio| *ratio > 0.0));
        }
        for (name, ..) in GETTIMEOFDAY {
            // One row exists on the bare machine only.
            let known = *name == crate::bare::NATIVE_PAGE || janua_probe::ROWS.iter().any(|row| row.name == *name);
            assert!(known, "{name}");
        }
        assert_eq!(best_peer("syscall"), Some((0.8, "Gramine 1.9, patched C library")));
        assert_eq!(best_peer("start"), None);
    }
}
