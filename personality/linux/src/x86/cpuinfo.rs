//! /proc/cpuinfo.

use core::fmt::Write;

use janua_abi::linux::Result;
use janua_arch::x86_64::cpu::cpuid;
use janua_port::machine::processors;

use crate::procfs::{Subject, Text};

/// Features by the register and bit of CPUID that tells them: leaf 1 edx, leaf 1 ecx, leaf 7 ebx, leaf 0x80000001 edx and ecx.
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
    for cpu in processors(subject.kernel.machine) {
        let _ = write!(text, "processor\t: {cpu}\nvendor_id\t: ");
        text.bytes(&vendor);
        let _ = write!(text, "\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: ");
        text.bytes(brand.trim_ascii());
        let _ = write!(
            text,
            "\nstepping\t: {}\nphysical id\t: 0\nsiblings\t: {cpus}\ncore id\t\t: {cpu}\ncpu cores\t: {cpus}\napicid\t\t: {cpu}\nfpu\t\t: yes\nfpu_exception\t: yes\ncpuid level\t: {most}\nwp\t\t: yes\nflags\t\t:",
            version & 15
        );
        for (word, features) in words.iter().zip(FEATURES) {
            for (bit, name) in features {
                if word >> bit & 1 != 0 {
                    let _ = write!(text, " {name}");
                }
            }
        }
        let line = (ebx >> 8 & 255) * 8;
        let _ = write!(text, "\nclflush size\t: {line}\ncache_alignment\t: {line}\n\n");
    }
    Ok(())
}
