//! 32-bit code in a 64-bit process: a far return to the host's 32-bit code segment, with code, data and stack below 4 GiB.
//!
//! That needs no 32-bit libraries and measures the gates that only 32-bit code has. The vDSO for 32-bit programs is asked for with
//! `arch_prctl(ARCH_MAP_VDSO_32)`, once the 64-bit one has been unmapped: a process has one, and `sysenter` returns into it.
//! All of it happens in a child process.

use std::arch::global_asm;
use std::ptr;

use object::{Object, ObjectSymbol};

use crate::isolate::isolated;
use crate::meter::Meter;
use crate::{Samples, Skip, sys};

/// Numbers of the i386 table.
const GETPPID: u32 = 64;
const GETTIMEOFDAY: u32 = 78;

/// What the 32-bit code works on. Offsets are used by name in the assembly.
#[repr(C)]
#[derive(Default)]
struct Block {
    /// The 64-bit stack pointer while 32-bit code runs.
    stack: u64,
    /// The top of the stack for 32-bit code.
    low_stack: u64,
    count: u32,
    /// The address the loop calls.
    target: u32,
    /// Where 64-bit code goes on.
    back: u32,
    result: u32,
    number: u32,
    /// The first argument.
    argument: u32,
    /// The C function that `probe32_function` calls.
    function: u32,
    time: [u32; 2],
}

// `probe32_enter(block in rdi, address of probe32_run below 4 GiB in rsi)` saves what the C convention keeps, loads data segments,
// which 32-bit code needs, and changes to 32-bit code (selector 0x23; 64-bit code has 0x33, data 0x2b: part of Linux's ABI).
// Between probe32_begin and probe32_end everything is position independent: it is copied below 4 GiB.
global_asm!(
    ".pushsection .text.janua_probe32, \"ax\", @progbits",
    ".globl probe32_enter, probe32_begin, probe32_run, probe32_int80, probe32_sysenter, probe32_function, probe32_back, probe32_end",
    ".hidden probe32_enter, probe32_begin, probe32_run, probe32_int80, probe32_sysenter, probe32_function, probe32_back, probe32_end",
    "probe32_enter:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov [rdi + {stack}], rsp",
    "mov eax, 0x2b",
    "mov ds, eax",
    "mov es, eax",
    "mov rsp, [rdi + {low_stack}]",
    "push 0x23",
    "push rsi",
    "retfq",
    "probe32_begin:",
    ".code32",
    "probe32_run:",
    "2:",
    "mov eax, [edi + {number}]",
    "mov ebx, [edi + {argument}]",
    "xor ecx, ecx",
    "call dword ptr [edi + {target}]",
    "mov [edi + {result}], eax",
    "dec dword ptr [edi + {count}]",
    "jnz 2b",
    "push 0x33",
    "push dword ptr [edi + {back}]",
    "retf",
    "probe32_int80:",
    "int 0x80",
    "ret",
    // The kernel goes on in the vDSO, which pops these and returns.
    "probe32_sysenter:",
    "push ecx",
    "push edx",
    "push ebp",
    "mov ebp, esp",
    "sysenter",
    // A function of the vDSO: arguments on the stack.
    "probe32_function:",
    "push 0",
    "push ebx",
    "call dword ptr [edi + {function}]",
    "add esp, 8",
    "ret",
    ".code64",
    // Back in 64-bit code; upper halves of registers are what they may be.
    "probe32_back:",
    "mov edi, edi",
    "mov rsp, [rdi + {stack}]",
    "xor eax, eax",
    "mov ds, eax",
    "mov es, eax",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    "probe32_end:",
    ".popsection",
    stack = const std::mem::offset_of!(Block, stack),
    low_stack = const std::mem::offset_of!(Block, low_stack),
    count = const std::mem::offset_of!(Block, count),
    target = const std::mem::offset_of!(Block, target),
    back = const std::mem::offset_of!(Block, back),
    result = const std::mem::offset_of!(Block, result),
    number = const std::mem::offset_of!(Block, number),
    argument = const std::mem::offset_of!(Block, argument),
    function = const std::mem::offset_of!(Block, function),
);

unsafe extern "C" {
    fn probe32_enter(block: *mut Block, run: usize);
    static probe32_begin: u8;
    static probe32_end: u8;
    static probe32_run: u8;
    static probe32_int80: u8;
    static probe32_sysenter: u8;
    static probe32_function: u8;
    static probe32_back: u8;
}

const PAGE: usize = 4096;
const STACK: usize = 16 * PAGE;

/// The copied code and the data beside it.
struct Low {
    code: usize,
    block: *mut Block,
}

/// Memory below 4 GiB.
fn low_memory(length: usize) -> Result<usize, Skip> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT;
    // SAFETY: a new mapping where the kernel likes.
    let at = unsafe { libc::mmap(ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if at == libc::MAP_FAILED { Err(Skip::last("mmap(MAP_32BIT)")) } else { Ok(at as usize) }
}

impl Low {
    fn new() -> Result<Low, Skip> {
        let code = low_memory(PAGE)?;
        let data = low_memory(PAGE + STACK)?;
        let begin = &raw const probe32_begin;
        // SAFETY: both symbols bound one piece of code, less than a page; the target was just mapped, writable.
        unsafe {
            let length = (&raw const probe32_end).offset_from(begin) as usize;
            ptr::copy_nonoverlapping(begin, code as *mut u8, length);
            if libc::mprotect(code as *mut _, PAGE, libc::PROT_READ | libc::PROT_EXEC) != 0 {
                return Err(Skip::last("mprotect"));
            }
        }
        let block = data as *mut Block;
        let low = Low { code, block };
        let fresh =
            Block { low_stack: (data + PAGE + STACK) as u64, back: low.at(&raw const probe32_back), ..Block::default() };
        // SAFETY: the page is mapped, writable and aligned.
        unsafe { block.write(fresh) };
        Ok(low)
    }

    /// Where a symbol of the code is in the copy.
    fn at(&self, symbol: *const u8) -> u32 {
        (self.code + (symbol as usize - &raw const probe32_begin as usize)) as u32
    }

    /// Measures calls of `target` with this number and the address of the block's time as the argument.
    fn measure(&self, meter: &Meter, number: u32, target: u32, function: u32) -> Samples {
        // SAFETY: the block was written in `new`; only this thread uses it.
        let block = unsafe { &mut *self.block };
        (block.number, block.target, block.function) = (number, target, function);
        block.argument = (&raw const block.time) as usize as u32;
        let samples = meter.many(1 << 24, |count| {
            block.count = count as u32;
            // SAFETY: code, block and stack are below 4 GiB; the assembly keeps what the C convention keeps.
            unsafe { probe32_enter(block, self.at(&raw const probe32_run) as usize) };
            Ok(())
        })?;
        let result = block.result as i32;
        if result < 0 { Err(Skip::call("the 32-bit call", -i64::from(result))) } else { Ok(samples) }
    }
}

/// Address ranges of this process whose name in `/proc/self/maps` begins so.
fn mapped(prefix: &str) -> Vec<(usize, usize)> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let parse = |line: &str| {
        let range = line.split(' ').next()?;
        let (from, to) = range.split_once('-')?;
        Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?))
    };
    maps.lines()
        .filter(|line| line.split_whitespace().nth(5).is_some_and(|n| n.starts_with(prefix)))
        .filter_map(parse)
        .collect()
}

/// Replaces the 64-bit vDSO of this process by the 32-bit one, and finds a function in it.
fn vdso32(function: &str) -> Result<u32, Skip> {
    /// asm/prctl.h
    const ARCH_MAP_VDSO_32: usize = 0x2002;
    for (from, to) in mapped("[vvar").into_iter().chain(mapped("[vdso]")) {
        // SAFETY: this child takes its times with rdtsc and makes its calls itself: nothing uses the vDSO any more.
        unsafe { libc::munmap(from as *mut _, to - from) };
    }
    // A place below 4 GiB with room for the pages before it.
    let room = low_memory(64 * PAGE)?;
    // SAFETY: mapped above; then mapped again by the kernel at the same place.
    let result = unsafe {
        libc::munmap(room as *mut _, 64 * PAGE);
        sys::call::<{ libc::SYS_arch_prctl }>([ARCH_MAP_VDSO_32, room, 0, 0, 0, 0])
    };
    if result < 0 {
        return Err(Skip::call("arch_prctl(ARCH_MAP_VDSO_32)", -result));
    }
    let &(from, to) = mapped("[vdso]").first().ok_or_else(|| Skip("no 32-bit vDSO was mapped".into()))?;
    // SAFETY: readable for the life of this process, by /proc/self/maps.
    let image = unsafe { std::slice::from_raw_parts(from as *const u8, to - from) };
    let file = object::read::elf::ElfFile32::<object::Endianness>::parse(image)
        .map_err(|error| Skip(format!("the 32-bit vDSO: {error}")))?;
    let symbol = file.dynamic_symbols().find(|symbol| symbol.name() == Ok(function));
    let symbol = symbol.ok_or_else(|| Skip(format!("the 32-bit vDSO has no {function}")))?;
    u32::try_from(from + symbol.address() as usize).map_err(|_| Skip("the 32-bit vDSO is above 4 GiB".into()))
}

/// Row `int80-32`.
pub fn int80(meter: &Meter) -> Samples {
    isolated(|| {
        let low = Low::new()?;
        low.measure(meter, GETPPID, low.at(&raw const probe32_int80), 0)
    })
}

/// Row `tod-int80`.
pub fn tod_int80(meter: &Meter) -> Samples {
    isolated(|| {
        let low = Low::new()?;
        low.measure(meter, GETTIMEOFDAY, low.at(&raw const probe32_int80), 0)
    })
}

fn by_sysenter(meter: &Meter, number: u32) -> Samples {
    isolated(|| {
        vdso32("__kernel_vsyscall")?;
        let low = Low::new()?;
        low.measure(meter, number, low.at(&raw const probe32_sysenter), 0)
    })
}

/// Row `sysenter-32`.
pub fn sysenter(meter: &Meter) -> Samples {
    by_sysenter(meter, GETPPID)
}

/// Row `tod-sysenter`.
pub fn tod_sysenter(meter: &Meter) -> Samples {
    by_sysenter(meter, GETTIMEOFDAY)
}

/// Row `vsyscall-32`.
pub fn kernel_vsyscall(meter: &Meter) -> Samples {
    isolated(|| {
        let target = vdso32("__kernel_vsyscall")?;
        Low::new()?.measure(meter, GETPPID, target, 0)
    })
}

/// Row `tod-vdso32`.
pub fn tod_vdso(meter: &Meter) -> Samples {
    isolated(|| {
        let function = vdso32("__vdso_gettimeofday")?;
        let low = Low::new()?;
        low.measure(meter, 0, low.at(&raw const probe32_function), function)
    })
}
