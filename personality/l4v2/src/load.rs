//! What the first tasks find: their images, the kernel info page, and what a Multiboot loader would have passed on.
//!
//! The first module is sigma0 and the last the root task; the kernel puts both where they are linked to. The others lie below the top of memory as they
//! are. Physical memory is sigma0's; the root task gets its pages from there by page faults.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use janua_abi::l4v2::PAGE;
use janua_abi::l4v2::boot::{LOADED, MAGIC, info, multiboot};
use janua_abi::l4v2::id::{Id, ROOT_TASK, SIGMA0_TASK};
use janua_abi::linux::{Errno, Result};
use janua_elf::{EM_386, ET_EXEC, Form, Header, PT_LOAD};

use crate::Kernel;
use crate::config::{Config, Module};
use crate::tasks::{First, make_task};

/// Memory below this is in no space: null pointers fault.
const LOW: u32 = 0x1_0000;
/// The kernel info page, the loader's structure and its strings, and the first stacks.
const INFO: u32 = LOW;
const LOADER: u32 = INFO + PAGE;
const LOADER_SIZE: u32 = 4 * PAGE;
const SIGMA0_STACK: u32 = LOADER + LOADER_SIZE;
const ROOT_STACK: u32 = SIGMA0_STACK + PAGE;
/// Memory of programs.
const FREE: u32 = ROOT_STACK + PAGE;

/// Least physical memory there must be.
const MEMORY_LEAST: u64 = 1 << 20;
const VERSION: u32 = 0x4a00_0002;
const NAME: &[u8] = b"Janua: L4 Version 2 on x86\0";
/// Priorities of the first two tasks.
const PRIORITY: u8 = 16;

/// A part of a program.
struct Segment {
    addr: u32,
    bytes: Range<usize>,
    size: u32,
}

/// A program that the kernel loads.
struct Program {
    entry: u32,
    segments: Vec<Segment>,
}

impl Program {
    /// From its first to its last byte.
    fn span(&self) -> Range<u32> {
        let start = self.segments.iter().map(|segment| segment.addr).min().unwrap_or_default();
        let end = self.segments.iter().map(|segment| segment.addr + segment.size).max().unwrap_or_default();
        start..end
    }
}

/// Where everything is to lie.
pub struct Plan {
    memory: u32,
    sigma0: Program,
    root: Program,
    /// Of the modules between the two, in their order.
    places: Vec<u32>,
}

impl Plan {
    /// Pages of physical memory.
    pub fn pages(&self) -> u32 {
        self.memory / PAGE
    }
}

fn shown(module: &Module) -> String {
    let name = module.command.split(|byte| *byte == b' ').next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// A static i386 executable; `None` for anything else.
fn parse(file: &[u8]) -> Option<Program> {
    let header = Header::read(file, Form::I386).filter(Header::claims_form)?;
    if header.kind != ET_EXEC || header.machine != EM_386 {
        return None;
    }
    let mut segments = Vec::new();
    for segment in header.segments(file)?.filter(|segment| segment.kind == PT_LOAD) {
        let in_file = segment.data(file)?.len();
        let (addr, size) = (u32::try_from(segment.vaddr).ok()?, u32::try_from(segment.memsz).ok()?);
        addr.checked_add(size)?;
        if in_file > size as usize {
            return None;
        }
        if size > 0 {
            let offset = usize::try_from(segment.offset).ok()?;
            segments.push(Segment { addr, bytes: offset..offset + in_file, size });
        }
    }
    (!segments.is_empty()).then_some(Program { entry: u32::try_from(header.entry).ok()?, segments })
}

/// The program of a module that the kernel loads, or why it cannot be one.
fn program(module: &Module, memory: u32) -> core::result::Result<Program, String> {
    let name = shown(module);
    let Some(program) = parse(&module.bytes) else {
        return Err(format!("{name}: not a static 32-bit executable (ELF, i386)"));
    };
    for segment in &program.segments {
        let end = segment.addr + segment.size;
        if segment.addr < FREE || end > memory {
            return Err(format!(
                "{name}: it is linked to {:#x}..{end:#x}, and memory for programs is {FREE:#x}..{memory:#x}",
                segment.addr
            ));
        }
    }
    Ok(program)
}

/// Looks at the modules and finds places for them; why it cannot be.
pub fn plan(config: &Config) -> core::result::Result<Plan, String> {
    let [first, between @ .., last] = &config.modules[..] else {
        return Err(String::from("a system of L4 needs two modules, sigma0 first and the root task last"));
    };
    if config.memory < MEMORY_LEAST {
        return Err(format!("{} bytes of memory are too few: there must be {MEMORY_LEAST}", config.memory));
    }
    let memory = u32::try_from(config.memory).unwrap_or(u32::MAX) & !(PAGE - 1);
    let (sigma0, root) = (program(first, memory)?, program(last, memory)?);
    let (one, other) = (sigma0.span(), root.span());
    if one.start < other.end && other.start < one.end {
        return Err(format!(
            "{} and {} are linked to the same memory: {:#x}..{:#x} and {:#x}..{:#x}",
            shown(first),
            shown(last),
            one.start,
            one.end,
            other.start,
            other.end
        ));
    }
    let mut top = memory;
    let mut places = Vec::new();
    for module in between {
        let size = u32::try_from(module.bytes.len()).unwrap_or(u32::MAX);
        let place = top.checked_sub(size).map(|place| place & !(PAGE - 1));
        top = match place.filter(|place| *place >= one.end.max(other.end)) {
            Some(place) => place,
            None => return Err(format!("{}: there is no memory left for it", shown(module))),
        };
        places.push(top);
    }
    let strings: usize = config.modules.iter().map(|module| module.command.len() + 1).sum();
    if multiboot::SIZE + between.len() * multiboot::MODULE_WORDS * 4 + strings > LOADER_SIZE as usize {
        return Err(String::from("the modules' arguments are too long"));
    }
    Ok(Plan { memory, sigma0, root, places })
}

/// Words at offsets of a page.
struct Page(Vec<u8>);

impl Page {
    fn set(&mut self, at: usize, word: u32) {
        self.0[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }

    fn set_range(&mut self, at: usize, range: Range<u32>) {
        self.set(at, range.start);
        self.set(at + 4, range.end);
    }
}

fn info_page(plan: &Plan) -> Vec<u8> {
    let mut page = Page(vec![0; PAGE as usize]);
    let strings = 0x100;
    page.set(0, MAGIC);
    page.set(info::VERSION, VERSION);
    page.0[info::STRINGS] = (strings / info::STRINGS_UNIT) as u8;
    page.0[strings..strings + NAME.len()].copy_from_slice(NAME);
    for (at, program, stack) in [(info::SIGMA0, &plan.sigma0, SIGMA0_STACK), (info::ROOT, &plan.root, ROOT_STACK)] {
        page.set(at, stack + PAGE - 8);
        page.set(at + 4, program.entry);
        page.set_range(at + 8, program.span());
    }
    page.set_range(info::MAIN_MEMORY, 0..plan.memory);
    page.set_range(info::RESERVED[0], 0..INFO + PAGE);
    page.0
}

/// The loader's structure for the root task: its own command line, and the modules between it and sigma0.
fn loader(plan: &Plan, config: &Config) -> Vec<u8> {
    let mut page = Page(vec![0; LOADER_SIZE as usize]);
    let between = config.modules.get(1..config.modules.len() - 1).unwrap_or_default();
    let modules = multiboot::SIZE;
    let mut text = modules + between.len() * multiboot::MODULE_WORDS * 4;
    let mut string = |page: &mut Page, command: &[u8]| {
        let at = LOADER + text as u32;
        page.0[text..text + command.len()].copy_from_slice(command);
        text += command.len() + 1;
        at
    };
    page.set(multiboot::FLAGS, multiboot::HAS_MEMORY | multiboot::HAS_COMMAND_LINE | multiboot::HAS_MODULES);
    page.set(multiboot::MEMORY_UPPER, (plan.memory >> 10).saturating_sub(1024));
    page.set(multiboot::MODULE_COUNT, between.len() as u32);
    page.set(multiboot::MODULES, LOADER + modules as u32);
    if let Some(root) = config.modules.last() {
        let at = string(&mut page, &root.command);
        page.set(multiboot::COMMAND_LINE, at);
    }
    for (index, (module, place)) in between.iter().zip(&plan.places).enumerate() {
        let at = modules + index * multiboot::MODULE_WORDS * 4;
        page.set_range(at, *place..*place + module.bytes.len() as u32);
        let command = string(&mut page, &module.command);
        page.set(at + 8, command);
    }
    page.0
}

/// Writes memory as planned, and starts the two tasks. ENOMEM.
pub fn start(kernel: &Arc<Kernel>, plan: &Plan) -> Result<()> {
    let object = kernel.memory.object();
    let put = |addr: u32, bytes: &[u8]| match object.write(addr.into(), bytes) {
        Ok(done) if done == bytes.len() => Ok(()),
        Ok(_) => Err(Errno::ENOMEM),
        Err(errno) => Err(errno),
    };
    let modules = &kernel.config.modules;
    put(INFO, &info_page(plan))?;
    put(LOADER, &loader(plan, &kernel.config))?;
    for (program, module) in [(&plan.sigma0, modules.first()), (&plan.root, modules.last())] {
        for segment in &program.segments {
            put(segment.addr, module.and_then(|module| module.bytes.get(segment.bytes.clone())).unwrap_or_default())?;
        }
    }
    for (module, place) in modules.iter().skip(1).zip(&plan.places) {
        put(*place, &module.bytes)?;
    }
    for stack in [SIGMA0_STACK, ROOT_STACK] {
        // What a function finds behind its return address.
        put(stack + PAGE - 4, &INFO.to_le_bytes())?;
    }
    let sigma0 = Id::new(SIGMA0_TASK, 0, ROOT_TASK, 0);
    let first = |id: Id, mcp: u8, pager: Id, program: &Program, stack: u32| First {
        id,
        priority: PRIORITY,
        mcp,
        pager,
        entry: [program.entry, stack + PAGE - 8],
        initial: [LOADED, LOADER, INFO],
    };
    let sigma0_key = make_task(kernel, first(sigma0, 0, Id::NIL, &plan.sigma0, SIGMA0_STACK))?;
    let info = INFO / PAGE..INFO / PAGE + 1;
    kernel.memory.give_all(LOW / PAGE..plan.pages(), info)?;
    let root_id = Id::new(ROOT_TASK, 0, 0, 0);
    let root_key = make_task(kernel, first(root_id, u8::MAX, sigma0, &plan.root, ROOT_STACK))?;
    let mut state = kernel.system.state();
    state.make_ready(sigma0_key);
    state.make_ready(root_key);
    Ok(())
}
