//! System calls as a compiler would place them: `mov $nr, %eax; syscall`, the number known at the site.

use std::arch::asm;

/// One system call with up to six arguments; the result as the kernel gave it (negative: an error).
///
/// # Safety
/// The call must be sound with these arguments: pointers valid for what the kernel does with them.
#[inline(always)]
pub unsafe fn call<const NR: i64>(args: [usize; 6]) -> i64 {
    let result: i64;
    // SAFETY: the caller vouches for the call; the kernel changes rax, rcx and r11 only.
    unsafe {
        asm!("mov eax, {nr}", "syscall", nr = const NR, out("rax") result,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2], in("r10") args[3], in("r8") args[4], in("r9") args[5],
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

/// As [`call`], for calls of up to three arguments, with an error told apart.
///
/// # Safety
/// As for [`call`].
#[inline(always)]
pub unsafe fn call3<const NR: i64>(what: &str, a: usize, b: usize, c: usize) -> Result<usize, crate::Skip> {
    // SAFETY: as the caller vouches.
    let result = unsafe { call::<NR>([a, b, c, 0, 0, 0]) };
    if result < 0 { Err(crate::Skip::call(what, -result)) } else { Ok(result as usize) }
}
