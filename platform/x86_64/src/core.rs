//! What each core has of its own: descriptor tables, the task state, the words its entries find through GS.

use core::arch::asm;
use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use janua_abi::linux::vsyscall;
use janua_arch::x86_64::vdso32::Instruction;
use janua_entry::bare::{BASE_TO_END, PUSHED, VSYSCALL_NUMBERS};
use janua_port::Way;

use crate::apic;
use crate::compat;
use crate::cpu;
use crate::entry;
use crate::isolation;
use crate::machine;
use crate::sched::Turn;
use crate::tables::{self, InUse};
use crate::unprotected;
use crate::vdso;

pub const KERNEL_CS: u16 = 0x10;
pub const KERNEL_SS: u16 = 0x18;
const TSS: u16 = 0x40;
/// The call gate: programs call 0x53.
const CALL_GATE: usize = 0x50 / 8;

/// Interrupt stacks (the task state's IST), 1 to 4.
const DOUBLE_FAULT_STACK: u8 = 1;
const NMI_STACK: u8 = 2;
const MACHINE_CHECK_STACK: u8 = 3;
/// Single steps may end at an entry's first instruction, whose stack is no stack yet.
const DEBUG_STACK: u8 = 4;
const EXCEPTION_STACK: usize = 8192;

/// The 64-bit task state segment.
#[repr(C, packed(4))]
struct TaskState {
    reserved0: u32,
    /// Stack pointer on the way to ring 0.
    rsp0: u64,
    rsp1: u64,
    rsp2: u64,
    reserved1: u64,
    ist: [u64; 7],
    reserved2: u64,
    reserved3: u16,
    io_map: u16,
}

const _: () = assert!(size_of::<TaskState>() == 104);

#[repr(C, align(16))]
struct ExceptionStack([u8; EXCEPTION_STACK]);

/// What the processor and the entries read and write: the first words are known to the assembly by their offset.
#[repr(C)]
struct Words {
    /// `gs:[0]`. Where an entry by `syscall` or `sysenter` starts to push: below the place of ss in the running thread's frame.
    frame_top: u64,
    /// `gs:[8]`. A register of user code, for the few instructions until it is pushed.
    scratch: u64,
    /// `gs:[16]`. The address of the core itself.
    itself: u64,
    /// `gs:[24]`. The place of rip in the frame ([`BASE_TO_END`]).
    frame_base: u64,
    /// `gs:[32]` and `gs:[40]`. The physical roots of the tables in use: the kernel's, and those for user code, which are others
    /// with page-table isolation ([`crate::isolation`]).
    kernel_root: u64,
    user_root: u64,
    /// `gs:[48]`. With isolation, where what interrupts user code starts to push: the end of `entry_stack`.
    entry_top: u64,
    /// `gs:[56]`. Another register.
    scratch2: u64,
    /// `gs:[64]`. Where the five words of an interrupt are on the entry stack ([`PUSHED`]).
    entry_pushed: u64,
    /// `gs:[72]`. The first address that is not user code's.
    user_end: u64,
    /// `gs:[80]`. The numbers of the vsyscall page's calls.
    vsyscalls: [u16; vsyscall::CALLS.len()],
    task: TaskState,
    gdt: [u64; GDT_ENTRIES],
    /// Beside the words, so that both are one page for the processor to look up.
    entry_stack: EntryStack,
    stacks: [ExceptionStack; 4],
    /// Whether the program whose calls it takes is a 32-bit one.
    is_32: bool,
}

const _: () = {
    assert!(offset_of!(Words, entry_pushed) == 64 && offset_of!(Words, user_end) == 72 && offset_of!(Words, vsyscalls) == 80);
    assert!(offset_of!(Words, stacks) <= 4096);
    // The gates' entries know both.
    assert!(offset_of!(Words, vsyscalls) == VSYSCALL_NUMBERS);
    assert!(PUSHED == offset_of!(Words, entry_stack) + size_of::<EntryStack>() - 5 * 8);
};

/// Entries of a core's descriptor table: as Linux has them, and the call gate's two where Linux has none.
const GDT_ENTRIES: usize = 16;

#[repr(C, align(16))]
struct EntryStack([u64; 128]);

/// One core, which finds itself by GS while it is in the kernel.
///
/// Whole pages, which the tables of user code map too with page-table isolation.
#[repr(C, align(4096))]
pub struct Core {
    words: UnsafeCell<Words>,
    /// Its number, from 0 on in the order they came.
    pub number: usize,
    apic: AtomicU32,
    /// What it runs.
    pub turn: Turn,
    /// The page tables it uses.
    pub in_use: InUse,
}

// SAFETY: `words` is changed by the core itself only, or before it runs; `turn` is sound by itself.
unsafe impl Sync for Core {}
// SAFETY: as above; it holds no reference to where it is before `load`.
unsafe impl Send for Core {}

/// Most cores: sets of them are words of 64 bits.
pub const MOST: usize = 64;

/// The first core.
static FIRST: Core = Core::new(0, 0);
/// Every core that runs, by number.
static CORES: [AtomicPtr<Core>; MOST] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MOST];
/// How many run.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// How many cores run.
pub fn count() -> usize {
    RUNNING.load(Ordering::Acquire)
}

/// The core of a number, once it runs.
pub fn get(number: usize) -> Option<&'static Core> {
    let core = CORES.get(number)?.load(Ordering::Acquire);
    // SAFETY: null, or a static or leaked core.
    unsafe { core.as_ref() }
}

/// The cores that run.
pub fn all() -> impl Iterator<Item = &'static Core> {
    (0..count()).filter_map(get)
}

/// The calling core. Not to be kept across anything that may switch threads: the thread may go on on another one.
#[inline]
pub fn here() -> &'static Core {
    let core: *const Core;
    // SAFETY: in the kernel GS is the core's; the word was set by `load`.
    unsafe { asm!("mov {}, gs:[16]", out(reg) core, options(nostack, preserves_flags)) };
    // SAFETY: a static or leaked core.
    unsafe { &*core }
}

#[repr(C, packed)]
struct TablePointer {
    limit: u16,
    base: u64,
}

/// The interrupt descriptor table, the same for all cores.
#[repr(C, align(4096))]
struct Idt(UnsafeCell<[[u64; 2]; 256]>);

// SAFETY: written once, before the first use.
unsafe impl Sync for Idt {}

static IDT: Idt = Idt(UnsafeCell::new([[0; 2]; 256]));

/// An interrupt gate (interrupts off on entry).
fn gate(handler: u64, stack: u8, user: bool) -> [u64; 2] {
    let access = 0x8e00 | if user { 0x6000 } else { 0 };
    let low =
        handler & 0xffff | u64::from(KERNEL_CS) << 16 | u64::from(stack) << 32 | access << 32 | (handler & 0xffff_0000) << 32;
    [low, handler >> 32]
}

/// CR4 bits.
const CR4_TSD: u64 = 1 << 2;
const CR4_PGE: u64 = 1 << 7;
const CR4_OSFXSR: u64 = 1 << 9;
const CR4_OSXMMEXCPT: u64 = 1 << 10;
const CR4_UMIP: u64 = 1 << 11;
const CR4_FSGSBASE: u64 = 1 << 16;
const CR4_OSXSAVE: u64 = 1 << 18;
const CR4_SMEP: u64 = 1 << 20;
const CR4_SMAP: u64 = 1 << 21;

/// What of the processor is used.
#[derive(Clone, Copy)]
pub struct Features {
    pub smap: bool,
}

impl Core {
    /// A core that does not run yet.
    pub const fn new(number: usize, apic: u32) -> Core {
        let task = TaskState {
            reserved0: 0,
            rsp0: 0,
            rsp1: 0,
            rsp2: 0,
            reserved1: 0,
            ist: [0; 7],
            reserved2: 0,
            reserved3: 0,
            io_map: 104,
        };
        // Linux' layout, which programs may see in their selectors: 0x10 and 0x18 kernel, 0x23 user 32-bit code, 0x2b user data,
        // 0x33 user 64-bit code; sysexit wants another data segment behind it.
        let gdt = [
            0,
            0,
            0x00af_9b00_0000_ffff,
            0x00cf_9300_0000_ffff,
            0x00cf_fb00_0000_ffff,
            0x00cf_f300_0000_ffff,
            0x00af_fb00_0000_ffff,
            0x00cf_f300_0000_ffff,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
        ];
        let stacks = [const { ExceptionStack([0; EXCEPTION_STACK]) }; 4];
        let words = Words {
            frame_top: 0,
            scratch: 0,
            itself: 0,
            frame_base: 0,
            kernel_root: 0,
            user_root: 0,
            entry_top: 0,
            scratch2: 0,
            entry_pushed: 0,
            user_end: 1 << 47,
            vsyscalls: vsyscall::CALLS,
            task,
            gdt,
            entry_stack: EntryStack([0; 128]),
            stacks,
            is_32: false,
        };
        Core { words: UnsafeCell::new(words), number, apic: AtomicU32::new(apic), turn: Turn::new(), in_use: InUse::new() }
    }

    /// The number interrupts are sent to.
    #[inline]
    pub fn apic(&self) -> u32 {
        self.apic.load(Ordering::Relaxed)
    }

    /// Its bit in a set of cores.
    pub fn bit(&self) -> u64 {
        1 << self.number
    }

    /// Makes this the calling core: descriptor tables, task state, GS.
    ///
    /// # Safety
    /// No other core is, or has ever been, this one; the interrupt descriptor table is filled.
    unsafe fn load(&'static self) {
        // SAFETY: the caller's word: nobody else uses the words yet. The descriptors are those of this kernel's layout.
        unsafe {
            let words = &mut *self.words.get();
            words.itself = core::ptr::from_ref(self) as u64;
            let root = tables::kernel_root() as u64;
            (words.kernel_root, words.user_root) = (root, root);
            words.entry_top = &raw const words.entry_stack as u64 + size_of::<EntryStack>() as u64;
            words.entry_pushed = words.entry_top - 5 * 8;
            words.task.rsp0 = words.entry_top;
            for (slot, stack) in words.stacks.iter_mut().enumerate() {
                // Above the stack: the tables of the kernel, for those that may come with any others in use.
                const TOP: usize = EXCEPTION_STACK - 16;
                stack.0[TOP..TOP + 8].copy_from_slice(&root.to_le_bytes());
                words.task.ist[slot] = core::ptr::from_ref(stack) as u64 + TOP as u64;
            }
            tables::share(words.itself as usize, size_of::<Core>());
            let task = &raw const words.task as u64;
            words.gdt[8] = 103 | (task & 0xff_ffff) << 16 | 0x89 << 40 | (task >> 24 & 0xff) << 56;
            words.gdt[9] = task >> 32;
            // Read-only data of ring 3, as large as the core's number.
            words.gdt[vdso::CORE_ENTRY] = self.number as u64 | 0xf1 << 40 | 4 << 52;
            // A 64-bit call gate (type 0xc) that ring 3 may use.
            if let Some(handler) = machine::entry(Way::CallGate, false) {
                words.gdt[CALL_GATE] =
                    handler & 0xffff | u64::from(KERNEL_CS) << 16 | 0xec00 << 32 | (handler & 0xffff_0000) << 32;
                words.gdt[CALL_GATE + 1] = handler >> 32;
            }
            let gdt = TablePointer { limit: (size_of_val(&words.gdt) - 1) as u16, base: words.gdt.as_ptr() as u64 };
            let idt = TablePointer { limit: (size_of::<[[u64; 2]; 256]>() - 1) as u16, base: IDT.0.get() as u64 };
            asm!(
                "lgdt [{gdt}]",
                "lidt [{idt}]",
                "mov ss, {ss:e}",
                "xor {t:e}, {t:e}",
                "mov ds, {t:e}",
                "mov es, {t:e}",
                "mov fs, {t:e}",
                "mov gs, {t:e}",
                "push {cs}",
                "lea {t}, [rip + 2f]",
                "push {t}",
                "retfq",
                "2:",
                "mov {t:e}, {tss}",
                "ltr {t:x}",
                gdt = in(reg) &raw const gdt,
                idt = in(reg) &raw const idt,
                ss = in(reg) u64::from(KERNEL_SS),
                cs = in(reg) u64::from(KERNEL_CS),
                tss = const TSS,
                t = out(reg) _,
            );
            cpu::wrmsr(cpu::MSR_GS_BASE, words.itself);
            cpu::wrmsr(cpu::MSR_KERNEL_GS_BASE, 0);
            cpu::wrmsr(cpu::MSR_FS_BASE, 0);
        }
    }

    /// The core runs: others find it.
    pub fn announce(&'static self) {
        CORES[self.number].store(core::ptr::from_ref(self).cast_mut(), Ordering::Release);
        RUNNING.fetch_add(1, Ordering::AcqRel);
    }

    /// Sets where entries of the thread that runs next put its registers: the end of its frame.
    pub fn set_frame_end(&self, end: usize) {
        // SAFETY: the calling core's own words; interrupts are off in the kernel.
        unsafe {
            let words = self.words.get();
            (&raw mut (*words).frame_top).write(end as u64 - 8);
            (&raw mut (*words).frame_base).write((end - BASE_TO_END) as u64);
            if !isolation::is_on() {
                (&raw mut (*words).task.rsp0).write_unaligned(end as u64);
            }
        }
    }

    /// With isolation, what a gate's interrupt has pushed stays on the core's entry stack until the return to user mode: the thread that leaves the
    /// core takes it along, the one that comes brings its own.
    pub fn exchange_pushed(&self, leaves: &mut [u64; 5], comes: &[u64; 5]) {
        if isolation::is_on() {
            // SAFETY: the calling core's own words; interrupts are off in the kernel, and those of its own do not use that stack.
            unsafe {
                let stack = &raw mut (*self.words.get()).entry_stack;
                let pushed = stack.add(1).cast::<[u64; 5]>().sub(1);
                *leaves = pushed.read();
                pushed.write(*comes);
            }
        }
    }

    /// Sets the segments that 32-bit user code has for its threads.
    pub fn set_areas(&self, areas: [u64; compat::COUNT]) {
        // SAFETY: the calling core's own words; interrupts are off in the kernel.
        unsafe {
            let gdt = &raw mut (*self.words.get()).gdt;
            for (index, area) in areas.into_iter().enumerate() {
                (*gdt)[compat::FIRST as usize + index] = area;
            }
        }
    }

    /// Sets which entry the program's 32-bit code has, and `sysenter`: of a 32-bit program, or of one of 64-bit code.
    pub fn set_program(&self, is_32: bool) {
        // SAFETY: the calling core's own words; interrupts are off in the kernel. The registers get the addresses of entries.
        unsafe {
            let known = &raw mut (*self.words.get()).is_32;
            if known.read() == is_32 {
                return;
            }
            known.write(is_32);
            match instruction32() {
                Instruction::Sysenter => cpu::wrmsr(cpu::MSR_SYSENTER_EIP, sysenter_entry(is_32)),
                Instruction::Syscall => cpu::wrmsr(cpu::MSR_CSTAR, syscall32_entry(is_32)),
                Instruction::Int80 => {}
            }
        }
    }

    /// Sets the tables in use, for entries and exits: the kernel's and user code's.
    pub fn set_roots(&self, kernel: usize, user: usize) {
        // SAFETY: the calling core's own words; interrupts are off in the kernel.
        unsafe {
            let words = self.words.get();
            (&raw mut (*words).kernel_root).write(kernel as u64);
            (&raw mut (*words).user_root).write(user as u64);
        }
    }
}

/// Whether a gate takes calls by this way.
fn is_open(way: Way) -> bool {
    machine::gates().iter().any(|gate| gate.ways().contains(&way))
}

/// The instruction by which 32-bit programs of this machine make their calls.
pub fn instruction32() -> Instruction {
    match &cpu::vendor() {
        b"GenuineIntel" if is_open(Way::SysenterCompat) => Instruction::Sysenter,
        b"AuthenticAMD" | b"HygonGenuine" if is_open(Way::SyscallCompat) => Instruction::Syscall,
        _ => Instruction::Int80,
    }
}

/// Where `sysenter` leads. For a processor that has it open ([`init`]).
fn sysenter_entry(is_32: bool) -> u64 {
    machine::entry(if is_32 { Way::SysenterCompat } else { Way::Sysenter }, false).unwrap_or(0)
}

/// Where the `syscall` of 32-bit code leads.
fn syscall32_entry(is_32: bool) -> u64 {
    let entry = if is_32 { machine::entry(Way::SyscallCompat, false) } else { None };
    entry.unwrap_or_else(isolation::refused_address)
}

/// Exceptions that user code may raise by `int`: breakpoint and overflow.
const FOR_USER: [u8; 2] = [3, 4];

/// Where the interrupt descriptors are, and their size.
pub fn interrupt_table() -> (usize, usize) {
    (IDT.0.get() as usize, size_of::<Idt>())
}

/// Sets the calling core up as the first: tables, task state, control registers, call registers. The ways that no gate takes
/// calls by are shut.
pub fn init() -> Features {
    let guarded = has_smap();
    // SAFETY: the first core, at start, before anything else uses these statics.
    unsafe {
        let idt = &mut *IDT.0.get();
        for (vector, slot) in idt.iter_mut().enumerate() {
            let stack = match vector as u8 {
                entry::DOUBLE_FAULT => DOUBLE_FAULT_STACK,
                entry::NMI => NMI_STACK,
                entry::MACHINE_CHECK => MACHINE_CHECK_STACK,
                entry::DEBUG => DEBUG_STACK,
                _ => 0,
            };
            let vector = vector as u8;
            let by_int = is_open(Way::Interrupt(vector));
            let taken =
                [Way::Interrupt(vector), Way::Exception(vector)].into_iter().find_map(|way| machine::entry(way, guarded));
            let handler = taken.unwrap_or_else(|| isolation::vector_address(vector));
            *slot = gate(handler, stack, by_int || FOR_USER.contains(&vector));
        }
        FIRST.apic.store(apic::id(), Ordering::Relaxed);
        FIRST.load();
    }
    let features = control();
    FIRST.announce();
    features
}

/// Sets the calling core up as another one.
///
/// # Safety
/// `core` is the calling core's alone, and not in use yet.
pub unsafe fn join(core: &'static Core) {
    // SAFETY: the caller's word.
    unsafe { core.load() };
    control();
}

/// CPUID leaf 7.
fn extended_features() -> [u32; 4] {
    let cpuid = janua_arch::x86_64::cpu::cpuid;
    if cpuid(0, 0)[0] >= 7 { cpuid(7, 0) } else { [0; 4] }
}

/// Whether the processor keeps the kernel from user memory.
pub fn has_smap() -> bool {
    extended_features()[1] & 1 << 20 != 0
}

/// Whether the processor has XSAVE, and CR4 takes its bit. QEMU's emulation ([`cpu::is_emulated`]) takes it for XSAVEOPT's, and where
/// there is none (models like Opteron_G5) executes the write for ever.
fn has_xsave() -> bool {
    let cpuid = janua_arch::x86_64::cpu::cpuid;
    cpuid(1, 0)[2] & 1 << 26 != 0 && (cpuid(0xd, 1)[0] & 1 != 0 || !cpu::is_emulated())
}

fn control() -> Features {
    let cpuid = janua_arch::x86_64::cpu::cpuid;
    let (extended, xsave) = (extended_features(), has_xsave());
    let has = |bit: u32| extended[1] & 1 << bit != 0;
    // Programs without protection are executed, and reached, as the kernel is.
    let protects = !unprotected::is_on();
    let smap = protects && has_smap();
    // With isolation no translation may outlive a change of tables.
    let global = if isolation::is_on() { 0 } else { CR4_PGE };
    let mut cr4 = cpu::cr4() & !CR4_TSD | global | CR4_OSFXSR | CR4_OSXMMEXCPT;
    let umip = extended[2] & 1 << 2 != 0;
    for (there, bit) in
        [(xsave, CR4_OSXSAVE), (has(0), CR4_FSGSBASE), (protects && has(7), CR4_SMEP), (smap, CR4_SMAP), (umip, CR4_UMIP)]
    {
        if there {
            cr4 |= bit;
        }
    }
    // x87, SSE, and AVX and AVX-512 where they are.
    const USED: u64 = 0b1110_0111;
    // SAFETY: each bit was asked for above; the kernel maps no page for user code and executes none of the user's, and reaches
    // user memory only by `crate::user`, which opens it.
    unsafe {
        cpu::set_cr4(cr4);
        if xsave {
            let known = cpuid(0xd, 0);
            cpu::set_xcr0((u64::from(known[3]) << 32 | u64::from(known[0])) & USED);
        }
        cpu::wrmsr(cpu::MSR_STAR, u64::from(KERNEL_CS) << 32 | 0x23 << 48);
        // Without the gate it is an invalid instruction.
        let syscall = machine::entry(Way::Syscall, false);
        cpu::wrmsr(cpu::MSR_LSTAR, syscall.unwrap_or_else(isolation::refused_address));
        cpu::wrmsr(cpu::MSR_CSTAR, syscall32_entry(false));
        // Carry to identification: TF, IF, DF, IOPL, NT, AC, RF, VM and ID are clear at entry, as Linux has it.
        cpu::wrmsr(cpu::MSR_SFMASK, 0x0025_7fd5);
        // AMD's processors refuse `sysenter` in 64-bit code; with a selector of 0 it faults everywhere else.
        let sysenter = machine::entry(Way::Sysenter, false).filter(|_| cpu::vendor() == *b"GenuineIntel");
        cpu::wrmsr(cpu::MSR_SYSENTER_CS, if sysenter.is_some() { u64::from(KERNEL_CS) } else { 0 });
        cpu::wrmsr(cpu::MSR_SYSENTER_EIP, sysenter.unwrap_or(0));
        // Never pushed to: the entry loads another, and what may come before that has a stack of its own.
        cpu::wrmsr(cpu::MSR_SYSENTER_ESP, 0);
    }
    Features { smap }
}
