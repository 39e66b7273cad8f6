//! Whether KVM can carry the kernel: software KVM inside a virtual machine boots it, and then its gates fail or crawl. So a machine
//! runs for a second at most whose one program uses them.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use janua_elf::{ET_EXEC, Form, PF_R, PF_X, PT_LOAD, ProgramHeader, file_header};
use janua_personality_outside::archive::{self, EMPTY, Entry};

use super::qemu::{self, Accelerator, Shape};

/// How long the test may take: natively it takes a fraction of that.
const LIMIT: Duration = Duration::from_secs(1);
/// The test program's exit code when the calls by all gates have returned.
const GOOD: u8 = 42;
/// Its name.
pub const PROGRAM: &str = "/test";

/// Where its one segment is.
const BASE: u64 = 0x40_0000;
/// Bytes of the file header and its one program header.
const HEADERS: usize = Form::X86_64.sizes().0 + Form::X86_64.sizes().1;

/// getpid by `syscall`, `int 0x30`, LOCK NOP and, on Intel's processors, `sysenter`: exits with [`GOOD`] if all agree.
#[rustfmt::skip]
const CODE: [u8; 87] = [
    0xb8, 39, 0, 0, 0,                  // mov eax, 39 (getpid)
    0x0f, 0x05,                         // syscall
    0x41, 0x89, 0xc4,                   // mov r12d, eax
    0xb8, 39, 0, 0, 0,
    0xcd, 0x30,                         // int 0x30
    0x44, 0x39, 0xe0,                   // cmp eax, r12d
    0x75, 53,                           // jne bad
    0xb8, 39, 0, 0, 0,
    0xf0, 0x90,                         // lock nop
    0x44, 0x39, 0xe0,
    0x75, 41,                           // jne bad
    0x31, 0xc0,                         // xor eax, eax
    0x0f, 0xa2,                         // cpuid
    0x81, 0xfb, b'G', b'e', b'n', b'u', // cmp ebx, "Genu"
    0x75, 22,                           // jne good
    0xb8, 39, 0, 0, 0,
    0x48, 0x8d, 0x0d, 5, 0, 0, 0,       // lea rcx, [rip + 5]: behind the sysenter
    0x49, 0x89, 0xe3,                   // mov r11, rsp
    0x0f, 0x34,                         // sysenter
    0x44, 0x39, 0xe0,
    0x75, 7,                            // jne bad
    0xbf, GOOD, 0, 0, 0,                // good: mov edi, GOOD
    0xeb, 5,                            // jmp end
    0xbf, 1, 0, 0, 0,                   // bad: mov edi, 1
    0xb8, 231, 0, 0, 0,                 // end: mov eax, 231 (exit_group)
    0x0f, 0x05,                         // syscall
];

/// The test program: a static executable of one segment.
fn program() -> Vec<u8> {
    let len = (HEADERS + CODE.len()) as u64;
    let segment =
        ProgramHeader { kind: PT_LOAD, flags: PF_R | PF_X, offset: 0, vaddr: BASE, filesz: len, memsz: len, align: 0x1000 };
    [&file_header(ET_EXEC, BASE + HEADERS as u64, 1)[..], &segment.bytes(), &CODE].concat()
}

/// A file tree that holds the test program.
fn tree(module: &mut Vec<u8>) {
    let dir = |name| Entry { name, mode: 0o40755, links: 2, ..EMPTY };
    for name in [&b"dev"[..], b"proc"] {
        archive::push(module, &dir(name));
    }
    let data = program();
    archive::push(module, &Entry { name: b"test", mode: 0o100_755, data: &data, ..EMPTY });
    archive::finish(module);
}

/// Whether KVM is to be used; asked once for each start of the host, and remembered in the user's cache.
pub fn is_usable() -> bool {
    if fs::File::options().read(true).write(true).open("/dev/kvm").is_err() {
        return false;
    }
    let start = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let remembered = cache().and_then(|place| fs::read_to_string(place).ok());
    if let Some(verdict) = remembered.as_deref().and_then(|text| text.strip_prefix(start.trim())) {
        return verdict.trim() == "yes";
    }
    let usable = test().is_ok();
    if let Some(place) = cache() {
        // Without it the test is made again.
        let _ = place.parent().map(fs::create_dir_all);
        let _ = fs::write(place, format!("{} {}\n", start.trim(), if usable { "yes" } else { "no" }));
    }
    usable
}

fn cache() -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let dir = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?;
    dir.is_absolute().then(|| dir.join("janua/kvm"))
}

/// Makes the test: why KVM cannot be used.
pub fn test() -> Result<(), String> {
    run(Accelerator::Kvm, LIMIT)
}

fn run(accelerator: Accelerator, limit: Duration) -> Result<(), String> {
    let image = super::image()?;
    let mut module = archive::module(&super::test_config().encode());
    tree(&mut module);
    let machine = qemu::machine(Shape { accelerator, memory: 64, processors: 1, model: None }, &image, &module, None)?;
    let mut command = machine.command;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| format!("QEMU cannot be started: {error}."))?;
    let mut voice = child.stderr.take();
    let began = Instant::now();
    let mut ended: Option<ExitStatus> = None;
    while ended.is_none() && began.elapsed() < limit {
        ended = child.try_wait().ok().flatten();
        std::thread::sleep(Duration::from_millis(5));
    }
    if ended.is_none() {
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!("the kernel's gates did not answer within {} s there.", limit.as_secs()));
    }
    let mut said = String::new();
    // What it printed is all there is; it has ended.
    let _ = voice.as_mut().map(|voice| voice.read_to_string(&mut said));
    match said.lines().find_map(qemu::exit_code) {
        Some(GOOD) => Ok(()),
        Some(code) => Err(format!("the kernel's gates do not work there (the test ended with {code}).")),
        None => Err(format!("the kernel does not run there ({}).", said.lines().next().unwrap_or("it said nothing"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_program_is_what_its_comments_say() {
        let elf = program();
        assert_eq!(elf.len(), HEADERS + CODE.len());
        // A jump's target is behind its last byte: `bad` and `good`.
        let target = |jump: usize| jump + 2 + CODE[jump + 1] as usize;
        assert_eq!([20, 32, 66].map(target), [75; 3]);
        assert_eq!((target(44), target(73)), (68, 80));
        assert_eq!((CODE[75], CODE[68], CODE[80], CODE[61..63].to_vec()), (0xbf, 0xbf, 0xb8, vec![0x0f, 0x34]));
    }
}
