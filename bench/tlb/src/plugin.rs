//! QEMU's interface for plugins, version 1 (QEMU documentation, "TCG Plugins"; `qemu-plugin.h`).
//!
//! Arguments: `out=FILE` and `global=on|off`. The file gets a line a sample: misses of instructions and of data in the first level, then
//! those that both levels missed, then writes of CR3.
//!
//! With `model=caches` a line is what one core did between two marks of a program's: `core NUMBER`, instructions, misses of the first level for instructions
//! and data, of the last, and of the TLBs for instructions and data. `end` follows the last core.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs::File;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::caches::Caches;
use crate::machine::{Class, Instruction, Machine};

/// An opaque thing of QEMU's.
#[repr(C)]
struct Opaque([u8; 0]);

type Executed = extern "C" fn(c_uint, *mut c_void);
type Accessed = extern "C" fn(c_uint, u32, u64, *mut c_void);
type Translated = extern "C" fn(u64, *mut Opaque);

/// The callback looks at no register.
const NO_REGISTERS: c_int = 0;
/// Reads and writes.
const BOTH: c_int = 3;

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: u64, callback: Translated);
    fn qemu_plugin_register_vcpu_insn_exec_cb(insn: *mut Opaque, callback: Executed, flags: c_int, data: *mut c_void);
    fn qemu_plugin_register_vcpu_mem_cb(insn: *mut Opaque, callback: Accessed, flags: c_int, which: c_int, data: *mut c_void);
    fn qemu_plugin_tb_n_insns(block: *const Opaque) -> usize;
    fn qemu_plugin_tb_get_insn(block: *const Opaque, index: usize) -> *mut Opaque;
    fn qemu_plugin_insn_data(insn: *const Opaque) -> *const u8;
    fn qemu_plugin_insn_size(insn: *const Opaque) -> usize;
    fn qemu_plugin_insn_vaddr(insn: *const Opaque) -> u64;
    fn qemu_plugin_mem_size_shift(info: u32) -> c_uint;
    fn qemu_plugin_mem_is_store(info: u32) -> bool;
    fn qemu_plugin_insn_haddr(insn: *const Opaque) -> *const u8;
    fn qemu_plugin_get_hwaddr(info: u32, vaddr: u64) -> *const Opaque;
    fn qemu_plugin_hwaddr_phys_addr(addr: *const Opaque) -> u64;
}

/// The version of the interface, which QEMU looks for.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "QEMU's name")]
pub static qemu_plugin_version: c_int = 1;

/// The machine and where its samples go.
struct State {
    machine: Machine,
    out: File,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

fn with(act: impl FnOnce(&mut State)) {
    // Nothing panics under the lock; if it did, a wrong count is not what QEMU should end by.
    let mut state = STATE.lock().unwrap_or_else(|error| error.into_inner());
    if let Some(state) = state.as_mut() {
        act(state);
    }
}

extern "C" fn executed(_core: c_uint, data: *mut c_void) {
    with(|state| {
        if let Some(sample) = state.machine.execute(data as u64) {
            let ([ifirst, dfirst], [iwalks, dwalks]) = (sample.misses.first, sample.misses.walks);
            // A line that cannot be written is missed by the reader of the file.
            let _ = writeln!(state.out, "{ifirst} {dfirst} {iwalks} {dwalks} {}", sample.roots);
        }
    });
}

extern "C" fn accessed(_core: c_uint, info: u32, addr: u64, _data: *mut c_void) {
    // SAFETY: QEMU's own word, in the callback it came with.
    let size = 1 << unsafe { qemu_plugin_mem_size_shift(info) };
    with(|state| state.machine.access(addr, size));
}

extern "C" fn translated(_id: u64, block: *mut Opaque) {
    // SAFETY: the block is good for the time of the call; so are its instructions, and their bytes up to their sizes.
    unsafe {
        for index in 0..qemu_plugin_tb_n_insns(block) {
            let insn = qemu_plugin_tb_get_insn(block, index);
            let size = qemu_plugin_insn_size(insn);
            let bytes = std::slice::from_raw_parts(qemu_plugin_insn_data(insn), size);
            let word = Instruction { addr: qemu_plugin_insn_vaddr(insn), size: size as u8, class: Class::of(bytes) }.pack();
            qemu_plugin_register_vcpu_insn_exec_cb(insn, executed, NO_REGISTERS, word as *mut c_void);
            qemu_plugin_register_vcpu_mem_cb(insn, accessed, NO_REGISTERS, BOTH, std::ptr::null_mut());
        }
    }
}

/// What the caches of all cores do, and where it goes.
struct Shared {
    caches: Caches,
    out: File,
}

static SHARED: Mutex<Option<Shared>> = Mutex::new(None);
/// Between the marks.
static COUNTING: AtomicBool = AtomicBool::new(false);

fn shared(act: impl FnOnce(&mut Shared)) {
    let mut state = SHARED.lock().unwrap_or_else(|error| error.into_inner());
    if let Some(state) = state.as_mut() {
        act(state);
    }
}

/// An instruction in memory, as [`count`] finds it.
struct Fetched {
    addr: u64,
    place: u64,
}

/// The marks' bytes, but for the last (`janua_probe::tasks`).
const MARK: [u8; 6] = [0x0f, 0x1f, 0x80, 0x4a, 0x54, 0x42];

extern "C" fn begins(_core: c_uint, _data: *mut c_void) {
    shared(|shared| drop(shared.caches.take()));
    COUNTING.store(true, Ordering::Relaxed);
}

extern "C" fn ends(_core: c_uint, _data: *mut c_void) {
    COUNTING.store(false, Ordering::Relaxed);
    shared(|shared| {
        for (number, counts) in shared.caches.take().iter().enumerate() {
            let ([ifirst, dfirst], [itlb, dtlb]) = (counts.first, counts.tlb);
            // A line that cannot be written is missed by the reader of the file.
            let _ =
                writeln!(shared.out, "core {number} {} {ifirst} {dfirst} {} {itlb} {dtlb}", counts.instructions, counts.last);
        }
        let _ = writeln!(shared.out, "end");
    });
}

extern "C" fn count(core: c_uint, data: *mut c_void) {
    if !COUNTING.load(Ordering::Relaxed) {
        return;
    }
    // SAFETY: made for this instruction when it was translated, and never freed.
    let fetched = unsafe { &*data.cast::<Fetched>() };
    shared(|shared| shared.caches.execute(core as usize, fetched.addr, fetched.place));
}

extern "C" fn count_access(core: c_uint, info: u32, addr: u64, _data: *mut c_void) {
    if !COUNTING.load(Ordering::Relaxed) {
        return;
    }
    // SAFETY: QEMU's own words, in the callback they came with; the handle is null for what is no memory.
    let (place, store) = unsafe {
        let handle = qemu_plugin_get_hwaddr(info, addr);
        if handle.is_null() {
            return;
        }
        (qemu_plugin_hwaddr_phys_addr(handle), qemu_plugin_mem_is_store(info))
    };
    shared(|shared| shared.caches.data(core as usize, addr, place, store));
}

extern "C" fn count_root(core: c_uint, _data: *mut c_void) {
    if COUNTING.load(Ordering::Relaxed) {
        shared(|shared| shared.caches.change_root(core as usize));
    }
}

extern "C" fn translated_for_caches(_id: u64, block: *mut Opaque) {
    // SAFETY: as in `translated`.
    unsafe {
        for index in 0..qemu_plugin_tb_n_insns(block) {
            let insn = qemu_plugin_tb_get_insn(block, index);
            let bytes = std::slice::from_raw_parts(qemu_plugin_insn_data(insn), qemu_plugin_insn_size(insn));
            let hook = |callback, data| qemu_plugin_register_vcpu_insn_exec_cb(insn, callback, NO_REGISTERS, data);
            match bytes.strip_prefix(&MARK) {
                Some([1]) => hook(begins, std::ptr::null_mut()),
                Some([2]) => hook(ends, std::ptr::null_mut()),
                _ => {
                    // Memory of the machine's is at one place of QEMU's: it represents the physical address, apart from those of data.
                    let place = qemu_plugin_insn_haddr(insn) as u64 | 1 << 63;
                    let fetched = Box::new(Fetched { addr: qemu_plugin_insn_vaddr(insn), place });
                    hook(count, Box::into_raw(fetched).cast());
                    if Class::of(bytes) == Class::Root {
                        hook(count_root, std::ptr::null_mut());
                    }
                    qemu_plugin_register_vcpu_mem_cb(insn, count_access, NO_REGISTERS, BOTH, std::ptr::null_mut());
                }
            }
        }
    }
}

/// QEMU calls it once, with the plugin's arguments. Not 0: QEMU ends.
///
/// # Safety
/// `arguments` are `count` strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: u64,
    _info: *const c_void,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    let mut out = None;
    let (mut global, mut caches) = (false, false);
    for index in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: the caller's word.
        let argument = unsafe { CStr::from_ptr(*arguments.add(index)) }.to_string_lossy();
        match argument.split_once('=') {
            Some(("out", path)) => out = File::create(path).map_err(|error| eprintln!("{path}: {error}")).ok(),
            Some(("global", value)) => global = value == "on",
            Some(("model", value)) => caches = value == "caches",
            _ => eprintln!("the TLB's plugin has no argument `{argument}`"),
        }
    }
    let Some(out) = out else { return 1 };
    if caches {
        *SHARED.lock().unwrap_or_else(|error| error.into_inner()) = Some(Shared { caches: Caches::new(), out });
        // SAFETY: the plugin's own number, and a function that lives as long as QEMU.
        unsafe { qemu_plugin_register_vcpu_tb_trans_cb(id, translated_for_caches) };
        return 0;
    }
    *STATE.lock().unwrap_or_else(|error| error.into_inner()) = Some(State { machine: Machine::new(global), out });
    // SAFETY: the plugin's own number, and a function that lives as long as QEMU.
    unsafe { qemu_plugin_register_vcpu_tb_trans_cb(id, translated) };
    0
}
