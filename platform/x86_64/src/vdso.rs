//! The pages of the kernel's half that user code may read and execute: the vDSO (`janua_arch::x86_64::vdso`), the functions of this machine
//! behind it, the numbers these read, and the vsyscall page when it is native.
//!
//! They are the same in every space, and never change once the clock runs; who reads the numbers looks at their sequence count
//! nevertheless, which is odd while they are written.

use core::arch::global_asm;
use core::sync::atomic::{AtomicBool, Ordering};

use janua_abi::linux::time::COARSE;
use janua_arch::x86_64::vdso::{self, Data};
use janua_arch::x86_64::vdso32;
use janua_paging::{Frames, PAGE};

use crate::boot::DIRECT;
use crate::frames::{FRAMES, Physical};
use crate::{clock, tables};

/// The numbers, the vDSO's data and its code, and this file's functions, one page each.
const TIME: usize = 0xffff_ffff_ff5f_b000;
const DATA: usize = TIME + PAGE;
const CODE: usize = DATA + PAGE;
const SOURCE: usize = CODE + PAGE;
/// Part of Linux' system-call interface.
const VSYSCALL: usize = 0xffff_ffff_ff60_0000;

const _: () = assert!(vdso::DATA_SIZE == PAGE && vdso::CODE_SIZE == PAGE);

/// The descriptor whose limit is a core's number, and its selector, which `getcpu` asks for.
pub const CORE_ENTRY: usize = 15;
const CORE_SELECTOR: usize = CORE_ENTRY << 3 | 3;

/// The page at [`TIME`].
#[repr(C)]
struct Numbers {
    sequence: u64,
    /// The time-stamp counter at start.
    start: u64,
    /// Nanoseconds a count, times 2^32.
    scale: u64,
    /// Nanoseconds since 1970 at start.
    date: u64,
}

/// Whether the vsyscall page is native.
static NATIVE: AtomicBool = AtomicBool::new(false);

/// rax: nanoseconds since start, r10: date, r8: the numbers. Changes rdx, r9.
macro_rules! now {
    () => {
        "mov r8, {time}\n70:\nmov r9, [r8]\ntest r9d, 1\njnz 70b\nlfence\nrdtsc\nshl rdx, 32\nor rax, rdx\n\
         sub rax, [r8 + 8]\nmul qword ptr [r8 + 16]\nshrd rax, rdx, 32\nmov r10, [r8 + 24]\ncmp r9, [r8]\njne 70b"
    };
}

global_asm!(
    ".pushsection .rodata.vdso_source, \"a\", @progbits",
    ".balign 16",
    ".globl source_begin, source_clock_gettime, source_gettimeofday, source_time, source_getcpu, source_clock_getres, source_end",
    "source_begin:",
    // edi clock, one that needs no call; rsi timespec. 0x821: the clocks that count from 1970 (REALTIME, its coarse one, TAI).
    "source_clock_gettime:",
    now!(),
    "mov ecx, 0x821",
    "bt ecx, edi",
    "jnc 2f",
    "add rax, r10",
    "2:",
    "xor edx, edx",
    "mov ecx, 1000000000",
    "div rcx",
    "mov [rsi], rax",
    "mov [rsi + 8], rdx",
    "xor eax, eax",
    "ret",
    // rdi timeval, rsi timezone
    ".balign 16",
    "source_gettimeofday:",
    "test rdi, rdi",
    "jz 2f",
    now!(),
    "add rax, r10",
    "xor edx, edx",
    "mov ecx, 1000000000",
    "div rcx",
    "mov [rdi], rax",
    "mov eax, edx",
    "xor edx, edx",
    "mov ecx, 1000",
    "div ecx",
    "mov [rdi + 8], rax",
    "2:",
    "test rsi, rsi",
    "jz 3f",
    "mov qword ptr [rsi], 0",
    "3:",
    "xor eax, eax",
    "ret",
    // rdi time_t
    ".balign 16",
    "source_time:",
    now!(),
    "add rax, r10",
    "xor edx, edx",
    "mov ecx, 1000000000",
    "div rcx",
    "test rdi, rdi",
    "jz 2f",
    "mov [rdi], rax",
    "2:",
    "ret",
    // rdi processor, rsi node
    ".balign 16",
    "source_getcpu:",
    "mov eax, {selector}",
    "lsl eax, eax",
    "test rdi, rdi",
    "jz 2f",
    "mov [rdi], eax",
    "2:",
    "test rsi, rsi",
    "jz 3f",
    "mov dword ptr [rsi], 0",
    "3:",
    "xor eax, eax",
    "ret",
    // edi clock, one that needs no call; rsi timespec. 0x60: the coarse ones.
    ".balign 16",
    "source_clock_getres:",
    "mov edx, 1",
    "mov ecx, 0x60",
    "mov eax, {coarse}",
    "bt ecx, edi",
    "cmovc edx, eax",
    "test rsi, rsi",
    "jz 2f",
    "mov qword ptr [rsi], 0",
    "mov [rsi + 8], rdx",
    "2:",
    "xor eax, eax",
    "ret",
    "source_end:",
    ".popsection",
    time = const TIME as isize,
    selector = const CORE_SELECTOR,
    coarse = const COARSE as u32,
);

unsafe extern "C" {
    static source_begin: u8;
    static source_clock_gettime: u8;
    static source_gettimeofday: u8;
    static source_time: u8;
    static source_getcpu: u8;
    static source_clock_getres: u8;
    static source_end: u8;
}

/// Where a function of this file is for user code.
fn at(function: *const u8) -> usize {
    SOURCE + (function as usize - &raw const source_begin as usize)
}

/// Makes a page that user code may read, or read and execute.
fn make(addr: usize, content: &[u8], exec: bool) {
    let frame = FRAMES.take().expect("no memory for the vDSO");
    let physical = Physical::address_of(frame);
    // SAFETY: a fresh frame, which nobody else knows yet; the content is not larger.
    unsafe {
        let page = core::slice::from_raw_parts_mut((DIRECT + physical) as *mut u8, PAGE);
        page.fill(if exec { 0xcc } else { 0 });
        page[..content.len()].copy_from_slice(content);
    }
    tables::map_for_user(addr, physical, exec);
}

/// Makes the pages. After the clock, before the first space. `start`, `scale` and `date` are the clock's.
pub fn init(command_line: &[u8], start: u64, scale: u64, date: u64) {
    let numbers = Numbers { sequence: 2, start, scale, date };
    let words = [numbers.sequence, numbers.start, numbers.scale, numbers.date];
    let bytes: [u8; size_of::<Numbers>()] = core::array::from_fn(|at| words[at / 8].to_le_bytes()[at % 8]);
    make(TIME, &bytes, false);
    // SAFETY: both symbols bound one piece of read-only data.
    let source = unsafe {
        let (start, end) = (&raw const source_begin, &raw const source_end);
        core::slice::from_raw_parts(start, end as usize - start as usize)
    };
    make(SOURCE, source, true);
    let data = Data {
        clock_gettime: at(&raw const source_clock_gettime) as u64,
        gettimeofday: at(&raw const source_gettimeofday) as u64,
        time: at(&raw const source_time) as u64,
        getcpu: at(&raw const source_getcpu) as u64,
        clock_getres: at(&raw const source_clock_getres) as u64,
        call_entry: 0,
    };
    let words = [data.clock_gettime, data.gettimeofday, data.time, data.getcpu, data.clock_getres, data.call_entry];
    let bytes: [u8; 48] = core::array::from_fn(|at| words[at / 8].to_le_bytes()[at % 8]);
    make(DATA, &bytes, false);
    make(CODE, vdso::image(), true);
    if command_line.split(|byte| *byte == b' ').any(|word| word == b"vsyscall=native") {
        let functions = [&raw const source_gettimeofday, &raw const source_time, &raw const source_getcpu];
        let mut page = [0xcc; PAGE];
        for (index, function) in functions.into_iter().enumerate() {
            // jmp
            let from = index * 1024;
            page[from] = 0xe9;
            let distance = at(function).wrapping_sub(VSYSCALL + from + 5) as i32;
            page[from + 1..from + 5].copy_from_slice(&distance.to_le_bytes());
        }
        make(VSYSCALL, &page, true);
        NATIVE.store(true, Ordering::Relaxed);
    }
}

/// The numbers for the vDSO of 32-bit programs, which has them in itself: they never change.
pub fn data32() -> vdso32::Data {
    let [start, scale, date] = clock::numbers();
    vdso32::Data { start, scale, date, coarse: COARSE as u32 }
}

/// The pages that programs read and those they execute, from start to end.
pub const RANGES: [(usize, usize); 2] = [(TIME, CODE), (CODE, SOURCE + PAGE)];

/// Whether user code may be at this address of the kernel's half.
pub fn contains(addr: usize) -> bool {
    let functions = (CODE..SOURCE + PAGE).contains(&addr);
    functions || NATIVE.load(Ordering::Relaxed) && (VSYSCALL..VSYSCALL + PAGE).contains(&addr)
}
