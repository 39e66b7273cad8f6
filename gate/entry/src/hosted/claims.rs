//! The parts of the address space that runtimes lay claim to wherever they run, and a test that the kernel is in none.
//! docs/layout.md describes what they are.

use super::{KERNEL_BASE, KERNEL_END, LOW_PAGE, LOW_SIZE};

/// Who, from where, to where (behind the last byte).
const CLAIMS: &[(&str, usize, usize)] = &[
    ("AddressSanitizer: shadow and the gap in it", 0x7fff_8000, 0x1000_7fff_8000),
    ("AddressSanitizer, LeakSanitizer: allocator, up to LLVM 16 and in gcc", 0x6000_0000_0000, 0x6400_0000_0000),
    ("the same from LLVM 17 on", 0x5000_0000_0000, 0x5400_0000_0000),
    ("ThreadSanitizer: shadow", 0x0080_0000_0000, 0x3000_0000_0000),
    ("ThreadSanitizer: meta data and what it closes up to programs", 0x3000_0000_0000, 0x5500_0000_0000),
    ("ThreadSanitizer: what it closes behind programs, traces, heap", 0x5680_0000_0000, 0x7e80_0000_0000),
    ("MemorySanitizer, DataFlowSanitizer: shadows, origins and what they close", 0x0100_0000_0000, 0x5100_0000_0000),
    ("MemorySanitizer: origins, what it closes, allocator", 0x6000_0000_0000, 0x7400_0000_0000),
    ("relocatable programs on Linux, and their heaps", 0x5555_5555_4000, 0x5680_0000_0000),
    ("what Linux maps by itself: libraries, stack", 0x7e80_0000_0000, 0x8000_0000_0000),
    ("programs that are not relocatable: lld from 2 MiB, others from 4 MiB on; 32-bit programs", 0x20_0000, 1 << 32),
    ("SBCL: static and dynamic space", 0x5000_0000, 0x30_0000_0000),
    ("Wine: shared page of the user, the first gibibytes behind 4 GiB", 0x7ffe_0000, 0x1_1400_0000),
    ("Go: its heap's first place", 0x00c0_0000_0000, 0x00e0_0000_0000),
    ("Java's Z collector", 0x0400_0000_0000, 0x1400_0000_0000),
    ("Valgrind: its own program", 0x3800_0000, 0x5a00_0000),
];

#[test]
fn the_kernel_is_in_nobodys_way() {
    for (start, end) in [(KERNEL_BASE - 4096, KERNEL_END), (LOW_PAGE, LOW_PAGE + LOW_SIZE)] {
        for &(who, from, to) in CLAIMS {
            assert!(end <= from || start >= to, "{start:#x}..{end:#x} meets {who}, {from:#x}..{to:#x}");
        }
    }
}
