//! /proc/cpuinfo.

use core::fmt::Write;
use core::sync::atomic::{AtomicU64, Ordering};

use janua_abi::linux::Result;
use janua_arch::x86_64::cpu::{cpuid, rdtsc};
use janua_port::Clock;
use janua_port::machine::processors;

use crate::procfs::{Subject, Text};

/// Features by the register and bit of CPUID that shows them: leaf 1 edx, leaf 1 ecx, leaf 7 ebx, leaf 0x80000001 edx and ecx.
#[rustfmt::skip]
const FEATURES: [&[(u32, &str)]; 5] = [
    &[
        (0, "fpu"), (3, "pse"), (4, "tsc"), (5, "msr"), (6, "pae"), (8, "cx8"), (11, "sep"), (15, "cmov"), (19, "clflush"),
        (23, "mmx"), (24, "fxsr"), (25, "sse"), (26, "sse2"), (28, "ht"),
    ],
    &[
        (0, "pni"), (1, "pclmulqdq"), (9, "ssse3"), (12, "fma"), (13, "cx16"), (19, "sse4_1"), (20, "sse4_2"), (22, "movbe"),
        (23, "popcnt"), (25, "aes"), (26, "xsave"), (28, "avx"), (29, "f16c"), (30, "rdrand"), (31, "hypervisor"),
    ],
    &[
        (0, "fsgsbase"), (3, "bmi1"), (5, "avx2"), (8, "bmi2"), (9, "erms"), (16, "avx512f"), (17, "avx512dq"), (18, "rdseed"),
        (19, "adx"), (23, "clflushopt"), (24, "clwb"), (28, "avx512cd"), (29, "sha_ni"), (30, "avx512bw"), (31, "avx512vl"),
    ],
    &[(11, "syscall"), (20, "nx"), (27, "rdtscp"), (29, "lm")],
    &[(0, "lahf_lm"), (5, "abm"), (6, "sse4a"), (8, "3dnowprefetch")],
];

/// Bits of leaf 0x80000007 edx (arch/x86/kernel/cpu/powerflags.c). That of an even time stamp counter, 8, has no name here.
const POWER: [&str; 13] = [
    " ts",
    " fid",
    " vid",
    " ttp",
    " tm",
    " stc",
    " 100mhzsteps",
    " hwpstate",
    "",
    " cpb",
    " eff_freq_ro",
    " proc_feedback",
    " acc_power",
];

/// Kilohertz of the time stamp counter: counted against the clock at the first question.
fn frequency(clock: &dyn Clock) -> u64 {
    const LONG: u64 = 2_000_000;
    /// A pair of readings further apart than this, nanoseconds, was interrupted.
    const CLOSE: u64 = 2_000;
    static KNOWN: AtomicU64 = AtomicU64::new(0);
    let known = KNOWN.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let both = || {
        let mut pair = (0, 0);
        for _ in 0..16 {
            let (before, count, after) = (clock.monotonic(), rdtsc(), clock.monotonic());
            pair = (count, before + (after - before) / 2);
            if after - before < CLOSE {
                break;
            }
        }
        pair
    };
    let start = both();
    while clock.monotonic() - start.1 < LONG {
        core::hint::spin_loop();
    }
    let end = both();
    let found = end.0.wrapping_sub(start.0).saturating_mul(1_000_000) / (end.1 - start.1);
    KNOWN.store(found, Ordering::Relaxed);
    found
}

/// A leaf beyond the basic ones; zeroes where the processor has none such.
fn beyond(leaf: u32) -> [u32; 4] {
    if cpuid(0x8000_0000, 0)[0] >= leaf { cpuid(leaf, 0) } else { [0; 4] }
}

/// KiB of the cache that Linux shows, and pages of 4 KiB in the second-level TLB, which it knows of AMD's processors: the second level of
/// theirs, the last of the others (arch/x86/kernel/cpu/cacheinfo.c).
fn caches(is_amd: bool, most: u32) -> (u32, u32) {
    if is_amd {
        let [_, tlb, second, _] = beyond(0x8000_0006);
        return (second >> 16, (tlb >> 16 & 0xfff) + (tlb & 0xfff));
    }
    let mut last = 0;
    if most >= 4 {
        for subleaf in 0..16 {
            let [kind, geometry, sets, _] = cpuid(4, subleaf);
            match (kind & 31, kind >> 5 & 7) {
                (0, _) => break,
                // Data or both, of the second level on.
                (1 | 3, 2..) => {
                    let ways = (geometry >> 22) + 1;
                    let parts = (geometry >> 12 & 0x3ff) + 1;
                    let line = (geometry & 0xfff) + 1;
                    let bytes = u64::from(ways) * u64::from(parts) * u64::from(line) * (u64::from(sets) + 1);
                    last = u32::try_from(bytes / 1024).unwrap_or(u32::MAX);
                }
                _ => {}
            }
        }
    }
    (last, 0)
}

/// The faults of the processor that CPUID shows, or that all have that run ahead. Others are in registers that only the machine's
/// own kernel reads.
fn bugs(is_amd: bool, text: &mut Text) {
    const SSB_NO: u32 = 1 << 26;
    const NULL_SELECTOR_CLEARS_BASE: u32 = 1 << 6;
    text.bytes(b"\nbugs\t\t:");
    if is_amd {
        text.bytes(b" sysret_ss_attrs");
        if beyond(0x8000_0021)[0] & NULL_SELECTOR_CLEARS_BASE == 0 {
            text.bytes(b" null_seg");
        }
    }
    text.bytes(b" spectre_v1 spectre_v2");
    if beyond(0x8000_0008)[1] & SSB_NO == 0 {
        text.bytes(b" spec_store_bypass");
    }
}

/// The file's text.
pub fn cpuinfo(subject: &Subject, text: &mut Text) -> Result<()> {
    let [most, b, c, d] = cpuid(0, 0);
    let mut vendor = [0; 12];
    for (part, word) in vendor.chunks_exact_mut(4).zip([b, d, c]) {
        part.copy_from_slice(&word.to_le_bytes());
    }
    let [version, ebx, leaf1c, leaf1d] = cpuid(1, 0);
    let leaf7b = if most >= 7 { cpuid(7, 0)[1] } else { 0 };
    let extended = cpuid(0x8000_0001, 0);
    let words = [leaf1d, leaf1c, leaf7b, extended[3], extended[2]];
    let mut brand = alloc::vec::Vec::new();
    for leaf in 0x8000_0002..=0x8000_0004 {
        for word in cpuid(leaf, 0) {
            brand.extend_from_slice(&word.to_le_bytes());
        }
    }
    let brand = brand.split(|byte| *byte == 0).next().unwrap_or_default();
    let base = version >> 8 & 15;
    let family = if base == 15 { base + (version >> 20 & 255) } else { base };
    let model = version >> 4 & 15 | if base == 6 || base == 15 { version >> 12 & 0xf0 } else { 0 };
    let cpus = subject.kernel.machine.cpus();
    let frequency = frequency(subject.kernel.machine.clock());
    let is_amd = matches!(&vendor, b"AuthenticAMD" | b"HygonGenuine");
    let (cache, tlb) = caches(is_amd, most);
    let sizes = beyond(0x8000_0008)[0];
    let (physical, linear) = if sizes == 0 { (36, 48) } else { (sizes & 255, sizes >> 8 & 255) };
    let power = beyond(0x8000_0007)[3];
    for cpu in processors(subject.kernel.machine) {
        let _ = write!(text, "processor\t: {cpu}\nvendor_id\t: ");
        text.bytes(&vendor);
        let _ = write!(text, "\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: ");
        text.bytes(brand.trim_ascii());
        let _ = write!(text, "\nstepping\t: {}\ncpu MHz\t\t: {}.{:03}\n", version & 15, frequency / 1000, frequency % 1000);
        if cache != 0 {
            let _ = writeln!(text, "cache size\t: {cache} KB");
        }
        let _ = write!(
            text,
            "physical id\t: 0\nsiblings\t: {cpus}\ncore id\t\t: {cpu}\ncpu cores\t: {cpus}\napicid\t\t: {cpu}\ninitial apicid\t: {cpu}\nfpu\t\t: yes\nfpu_exception\t: yes\ncpuid level\t: {most}\nwp\t\t: yes\nflags\t\t:",
        );
        for (word, features) in words.iter().zip(FEATURES) {
            for (bit, name) in features {
                if word >> bit & 1 != 0 {
                    let _ = write!(text, " {name}");
                }
            }
        }
        let line = (ebx >> 8 & 255) * 8;
        bugs(is_amd, text);
        // Two to a cycle, as ever.
        let bogomips = frequency / 5;
        let _ = write!(text, "\nbogomips\t: {}.{:02}\n", bogomips / 100, bogomips % 100);
        if tlb != 0 {
            let _ = writeln!(text, "TLB size\t: {tlb} 4K pages");
        }
        let _ = write!(
            text,
            "clflush size\t: {line}\ncache_alignment\t: {line}\naddress sizes\t: {physical} bits physical, {linear} bits virtual\npower management:"
        );
        for bit in (0..32).filter(|bit| power >> bit & 1 != 0) {
            let _ = match POWER.get(bit) {
                Some(name) => text.write_str(name),
                None => write!(text, " [{bit}]"),
            };
        }
        text.bytes(b"\n\n");
    }
    Ok(())
}
