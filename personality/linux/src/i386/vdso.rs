//! The vDSO of 32-bit programs: `__kernel_vsyscall`, by which their C library makes calls, and the two returns from handlers.
//!
//! A call is `int $0x80` whatever the processor offers: the gates turn it into a trap, and a faster instruction would be no
//! faster. The image is an ELF32 shared object of one page, put together here, with names (version LINUX_2.5), and with unwind
//! information, since a thread that is cancelled in a call is unwound through it.

use alloc::vec::Vec;

use janua_abi::linux::i386::elf::{EM_386, Header32, ProgramHeader32};
use janua_abi::linux::mman::{MAP_ANONYMOUS, MAP_PRIVATE, PAGE_SIZE};
use janua_abi::linux::{Errno, Result, elf};
use janua_object::mm::{Limits, MapRequest, Mm};
use janua_port::{Prot, UserMemory};
use zerocopy::IntoBytes;

/// Where the vDSO of an address space is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vdso {
    /// AT_SYSINFO_EHDR.
    pub header: u32,
    /// AT_SYSINFO.
    pub vsyscall: u32,
}

/// Offsets in the image.
pub const VSYSCALL: u32 = 0x400;
pub const SIGRETURN: u32 = 0x410;
pub const RT_SIGRETURN: u32 = 0x420;
const HASH: usize = 0xa0;
const SYMBOLS: usize = 0xc0;
const STRINGS: usize = 0x100;
const VERSIONS: usize = 0x160;
const DEFINITIONS: usize = 0x168;
const DYNAMIC: usize = 0x1a0;
const EH_FRAME_HEADER: usize = 0x200;
const EH_FRAME: usize = 0x208;

/// int $0x80; ret
const VSYSCALL_CODE: [u8; 3] = [0xcd, 0x80, 0xc3];
/// popl %eax; movl $119, %eax; int $0x80. Unwinders know a signal's frame by these bytes, and by the next ones.
pub const SIGRETURN_CODE: [u8; 8] = [0x58, 0xb8, 119, 0, 0, 0, 0xcd, 0x80];
/// movl $173, %eax; int $0x80
pub const RT_SIGRETURN_CODE: [u8; 7] = [0xb8, 173, 0, 0, 0, 0xcd, 0x80];

const FUNCTIONS: [(&str, u32, usize); 3] = [
    ("__kernel_vsyscall", VSYSCALL, VSYSCALL_CODE.len()),
    ("__kernel_sigreturn", SIGRETURN, SIGRETURN_CODE.len()),
    ("__kernel_rt_sigreturn", RT_SIGRETURN, RT_SIGRETURN_CODE.len()),
];
const SONAME: &str = "linux-gate.so.1";
const VERSION: &str = "LINUX_2.5";

/// Puts the image into an address space.
pub fn map(mm: &Mm, mem: &dyn UserMemory, limits: &Limits) -> Result<Vdso> {
    let prot = |write| Prot { read: true, write, exec: !write };
    let flags = MAP_PRIVATE | MAP_ANONYMOUS;
    let request = MapRequest { addr: 0, len: PAGE_SIZE, prot: prot(true), flags, file: None, offset: 0 };
    let at = mm.map(request, limits)?;
    mem.copy_out(at, &image()).map_err(|_| Errno::EFAULT)?;
    mm.protect(at, PAGE_SIZE, prot(false), false, limits)?;
    mm.set_special(at, PAGE_SIZE, "[vdso]");
    Ok(Vdso { header: at as u32, vsyscall: at as u32 + VSYSCALL })
}

/// The hash of ELF's symbol tables (System V ABI, chapter 5).
fn elf_hash(name: &str) -> u32 {
    name.bytes().fold(0u32, |hash, byte| {
        let hash = (hash << 4).wrapping_add(byte.into());
        let top = hash & 0xf000_0000;
        (hash ^ top >> 24) & !top
    })
}

/// Copies words or bytes to their place.
fn put(image: &mut [u8], at: usize, bytes: &[u8]) {
    image[at..at + bytes.len()].copy_from_slice(bytes);
}

/// The whole image.
fn image() -> Vec<u8> {
    let mut image = alloc::vec![0; (RT_SIGRETURN as usize + 16).next_multiple_of(16)];
    let total = image.len() as u32;
    put(&mut image, VSYSCALL as usize, &VSYSCALL_CODE);
    put(&mut image, SIGRETURN as usize, &SIGRETURN_CODE);
    put(&mut image, RT_SIGRETURN as usize, &RT_SIGRETURN_CODE);

    // Strings, each with the offset by which the tables name it.
    let mut strings = alloc::vec![0u8];
    let mut string = |text: &str| {
        let at = strings.len() as u32;
        strings.extend_from_slice(text.as_bytes());
        strings.push(0);
        at
    };
    let names = FUNCTIONS.map(|(name, ..)| string(name));
    let (soname, version) = (string(SONAME), string(VERSION));
    let strings_size = strings.len() as u32;
    put(&mut image, STRINGS, &strings);

    // One bucket: symbol 1, then each the next.
    put(&mut image, HASH, [1u32, 4, 1, 0, 2, 3, 0].as_bytes());
    const GLOBAL_FUNCTION: u32 = 0x12;
    const SOME_SECTION: u32 = 1 << 16;
    for (at, ((_, offset, size), name)) in FUNCTIONS.into_iter().zip(names).enumerate() {
        let symbol = [name, offset, size as u32, GLOBAL_FUNCTION | SOME_SECTION];
        put(&mut image, SYMBOLS + 16 * (at + 1), symbol.as_bytes());
    }
    put(&mut image, VERSIONS, [0u16, 2, 2, 2].as_bytes());
    // Two definitions, the object itself and the version: head (with flags and index), hash, where its name and the next are.
    let definition = |base: u32, index: u32, text: &str, name: u32, next: u32| {
        [1 | base << 16, index | 1 << 16, elf_hash(text), 20, next, name, 0]
    };
    put(&mut image, DEFINITIONS, definition(1, 1, SONAME, soname, 28).as_bytes());
    put(&mut image, DEFINITIONS + 28, definition(0, 2, VERSION, version, 0).as_bytes());

    let dynamic: [[u32; 2]; 10] = [
        [14, soname],                        // DT_SONAME
        [4, HASH as u32],                    // DT_HASH
        [5, STRINGS as u32],                 // DT_STRTAB
        [6, SYMBOLS as u32],                 // DT_SYMTAB
        [10, strings_size],                  // DT_STRSZ
        [11, 16],                            // DT_SYMENT
        [0x6fff_fffc, DEFINITIONS as u32],   // DT_VERDEF
        [0x6fff_fffd, 2],                    // DT_VERDEFNUM
        [0x6fff_fff0, VERSIONS as u32],      // DT_VERSYM
        [0, 0],
    ];
    put(&mut image, DYNAMIC, dynamic.as_bytes());

    // Unwind information of `__kernel_vsyscall`: the return address is on top of the stack all the time.
    put(&mut image, EH_FRAME_HEADER, &[1, 0x1b, 0xff, 0xff]);
    put(&mut image, EH_FRAME_HEADER + 4, &(EH_FRAME as u32 - (EH_FRAME_HEADER as u32 + 4)).to_le_bytes());
    let cie: [u8; 20] = [
        16, 0, 0, 0, // length
        0, 0, 0, 0, // a CIE
        1, b'z', b'R', 0, // version, augmentation
        1, 0x7c, 8, // alignment of code and data (-4), return address column
        1, 0x1b, // addresses are relative, 4 bytes
        0x0c, 4, 4, // DW_CFA_def_cfa esp+4
    ];
    put(&mut image, EH_FRAME, &cie);
    let fde = EH_FRAME + cie.len();
    let relative = VSYSCALL.wrapping_sub(fde as u32 + 8);
    put(&mut image, fde, [16u32, cie.len() as u32 + 4, relative, VSYSCALL_CODE.len() as u32].as_bytes());
    // No augmentation data; DW_CFA_offset of the return address, one unit below; padding.
    put(&mut image, fde + 16, &[0, 0x88, 1, 0]);

    let mut ident = [0; 16];
    ident[..4].copy_from_slice(&elf::MAGIC);
    ident[elf::EI_CLASS] = elf::CLASS32;
    ident[elf::EI_DATA] = elf::DATA_LSB;
    ident[6] = 1;
    let header = Header32 {
        ident,
        kind: elf::ET_DYN,
        machine: EM_386,
        version: 1,
        entry: VSYSCALL,
        phoff: 52,
        ehsize: 52,
        phentsize: 32,
        phnum: 3,
        ..Header32::default()
    };
    put(&mut image, 0, header.as_bytes());
    let segment = |kind: u32, offset: u32, size: u32, flags: u32| ProgramHeader32 {
        kind,
        offset,
        vaddr: offset,
        paddr: offset,
        filesz: size,
        memsz: size,
        flags,
        align: if kind == elf::PT_LOAD { PAGE_SIZE as u32 } else { 4 },
    };
    const PT_DYNAMIC: u32 = 2;
    const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
    let segments = [
        segment(elf::PT_LOAD, 0, total, elf::PF_R | elf::PF_X),
        segment(PT_DYNAMIC, DYNAMIC as u32, size_of_val(&dynamic) as u32, elf::PF_R),
        segment(PT_GNU_EH_FRAME, EH_FRAME_HEADER as u32, 8, elf::PF_R),
    ];
    put(&mut image, 52, segments.as_bytes());
    image
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_overlap() {
        let image = image();
        assert!(image.len() <= PAGE_SIZE);
        // What one part would have overwritten of another.
        assert_eq!(image[STRINGS + 1..STRINGS + 18], *b"__kernel_vsyscall");
        assert_eq!(image[VSYSCALL as usize..][..3], VSYSCALL_CODE);
        assert_eq!(image[EH_FRAME..][..4], 16u32.to_le_bytes());
        let strings: usize = FUNCTIONS.iter().map(|(name, ..)| name.len() + 1).sum::<usize>() + 1;
        assert!(STRINGS + strings + SONAME.len() + VERSION.len() + 2 <= VERSIONS);
        assert!(DEFINITIONS + 56 <= DYNAMIC && DYNAMIC + 80 <= EH_FRAME_HEADER && EH_FRAME + 44 <= VSYSCALL as usize);
    }

    #[test]
    fn hashes() {
        assert_eq!(elf_hash("LINUX_2.5"), 0x03ae_75f5);
    }
}
