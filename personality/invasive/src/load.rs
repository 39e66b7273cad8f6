//! A core's first words: the first of a tile loads the program and starts the others; each fills in its record.

use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::invasive::Ilet;
use janua_abi::invasive::record::{CoreRecord, entry, library};
use janua_abi::linux::{Errno, Result};
use janua_elf::{EM_SPARC, EM_X86_64, ET_EXEC, Form, Header, PF_R, PF_W, PF_X, PT_LOAD};
use janua_port::machine::processors;
use janua_port::{Backing, Frame, Prot, Space, Spawn, SpawnKind};
use zerocopy::IntoBytes;

use crate::Thread;
use crate::memory::{DATA, Layout, PAGE};
use crate::system::{NO_ROOM, ThreadExt};
use crate::tile::FIRST_CLAIM;

/// Exit code of a program that is none.
const NOT_A_PROGRAM: u8 = 126;

/// Where the core's record is.
fn record_of(layout: &Layout, core: usize) -> usize {
    layout.records + core * size_of::<CoreRecord>()
}

/// What [`crate::Invasive`] does in each new thread.
pub fn start_core(thread: &Thread) {
    pin(thread);
    if thread.index == 0 {
        let arguments = start_tile(thread).unwrap_or_else(|errno| match errno {
            Errno::ENOEXEC => thread.fatal(
                NOT_A_PROGRAM,
                format_args!("the program is not a static executable for this machine that fits its memory"),
            ),
            Errno::EACCES => thread
                .fatal(NOT_A_PROGRAM, format_args!("the program holds an instruction that would unlock the kernel's memory")),
            errno => thread.fatal(NO_ROOM, format_args!("the tile cannot start ({errno:?})")),
        });
        write_record(thread, arguments);
        start_other_cores(thread);
        if thread.ext.tile == 0 {
            let mut state = thread.tile().lock();
            state.cores[0].claim = FIRST_CLAIM;
            state.claim_entry(FIRST_CLAIM).cores = 1;
            // An i-let without a function is the application's main one.
            state.infect(FIRST_CLAIM, &[Ilet { first: FIRST_CLAIM as usize, ..Ilet::default() }], None);
        }
    } else {
        write_record(thread, arguments_at(&thread.kernel.layout));
    }
}

/// Puts the core where it stays.
fn pin(thread: &Thread) {
    let config = &thread.kernel.config;
    if !config.pinned {
        return;
    }
    let place = usize::from(thread.ext.tile) * config.cores as usize + thread.index;
    let pinned = processors(thread.machine()).nth(place).and_then(|processor| {
        let mut mask = [0; 16];
        *mask.get_mut(processor / 64)? = 1u64 << (processor % 64);
        thread.context()?.restrict(&mask).ok()
    });
    if pinned.is_none() {
        thread.fatal(NO_ROOM, format_args!("the machine has {} processors, too few for its tiles", thread.machine().cpus()));
    }
}

/// Maps what a tile needs and loads the program. Returns where its arguments are.
fn start_tile(thread: &Thread) -> Result<usize> {
    let layout = &thread.kernel.layout;
    let space = thread.task.ext.space.lock().clone().ok_or(Errno::ENOMEM)?;
    space.map(layout.records, Layout::RECORDS_SIZE, DATA, &Backing::Anon)?;
    load(thread, &space)?;
    thread.registers()?.set_tls(record_of(layout, 0));
    // An array of pointers with a null behind it, then the strings.
    let args = &thread.kernel.config.args;
    let (mut strings, mut pointers) = (Vec::new(), Vec::new());
    let at = arguments_at(layout);
    let text = at + (args.len() + 1) * size_of::<usize>();
    for arg in args {
        pointers.push(text + strings.len());
        strings.extend_from_slice(arg);
        strings.push(0);
    }
    pointers.push(0);
    let functions = functions_at(layout);
    if text + strings.len() > functions {
        return Err(Errno::E2BIG);
    }
    let user = thread.user();
    let copy = |to: usize, bytes: &[u8]| user.copy_out(to, bytes).map_err(|_| Errno::EFAULT);
    copy(at, pointers.as_bytes())?;
    copy(text, &strings)?;
    if let Some(direct) = &thread.kernel.direct {
        copy(functions, direct.functions.as_bytes())?;
    }
    Ok(at)
}

/// Records of at most 64 cores take two pages.
fn arguments_at(layout: &Layout) -> usize {
    layout.records + 2 * PAGE
}

/// The last page of the records' range.
fn functions_at(layout: &Layout) -> usize {
    layout.records + Layout::RECORDS_SIZE - PAGE
}

fn write_record(thread: &Thread, argv: usize) {
    let (kernel, layout) = (&thread.kernel, &thread.kernel.layout);
    let config = &kernel.config;
    let this = record_of(layout, thread.index);
    let Some((mut way, mut words)) = thread.context().map(|context| context.entry_descriptor()) else {
        thread.fatal(NO_ROOM, format_args!("the core has not begun to run"))
    };
    match way {
        entry::SIGNAL if config.asks_ids => way = entry::SIGNAL_ASKING,
        entry::INSTRUCTION if config.interrupts => way = entry::INTERRUPT,
        _ => {}
    }
    let library = usize::from(config.library);
    if library != library::GATE {
        let Some(address) = kernel.direct.as_ref().map(|direct| direct.entry) else {
            thread.fatal(NO_ROOM, format_args!("a configuration without a gate needs a kernel without a jail"))
        };
        (way, words) = (entry::JUMP, [address, 0, 0]);
    }
    let record = CoreRecord {
        this,
        cpu: thread.index,
        tile: usize::from(thread.ext.tile),
        tile_cores: config.cores as usize,
        tiles: usize::from(config.tiles),
        entry: way,
        entry_words: words,
        library,
        functions: if library == library::VANILLA { functions_at(layout) } else { 0 },
        answers: usize::from(config.answers),
        argc: config.args.len(),
        argv,
        stack_size: layout.stack_size,
        spare: 0,
    };
    if thread.user().copy_out(this, record.as_bytes()).is_err() {
        thread.fatal(NO_ROOM, format_args!("the core's record cannot be written"));
    }
}

fn start_other_cores(thread: &Thread) {
    let seats: Vec<_> = thread.tile().lock().cores.iter().skip(1).map(|core| core.seat.clone()).collect();
    for seat in seats {
        let spawn = Spawn {
            kind: SpawnKind::Thread,
            frame: Frame::default(),
            tls: Some(record_of(&thread.kernel.layout, seat.index)),
            guest: seat.clone(),
            space: None,
        };
        let started = thread.context().map_or(Err(Errno::ESRCH), |context| context.spawn(spawn));
        if let Err(errno) = started {
            thread.fatal(NO_ROOM, format_args!("core {} cannot start ({errno:?})", seat.index));
        }
    }
}

/// A segment of the program.
struct Segment {
    offset: usize,
    addr: usize,
    in_file: usize,
    in_memory: usize,
    prot: Prot,
}

/// What the loader needs of an ELF file.
struct Program {
    entry: usize,
    segments: Vec<Segment>,
}

/// A static executable of this machine's word size and byte order. `None` for anything else.
fn parse(file: &[u8]) -> Option<Program> {
    let machine = if Form::NATIVE.is_64 { EM_X86_64 } else { EM_SPARC };
    let header = Header::read(file, Form::NATIVE).filter(Header::claims_form)?;
    if header.kind != ET_EXEC || header.machine != machine {
        return None;
    }
    let mut segments = Vec::new();
    for segment in header.segments(file)?.filter(|segment| segment.kind == PT_LOAD) {
        segments.push(Segment {
            offset: usize::try_from(segment.offset).ok()?,
            addr: usize::try_from(segment.vaddr).ok()?,
            in_file: usize::try_from(segment.filesz).ok()?,
            in_memory: usize::try_from(segment.memsz).ok()?,
            prot: Prot { read: segment.has(PF_R), write: segment.has(PF_W), exec: segment.has(PF_X) },
        });
    }
    let entry = usize::try_from(header.entry).ok()?;
    // On SPARC a return to a place between two instructions is an error with traps off, which stops the machine.
    (machine != EM_SPARC || entry.is_multiple_of(4)).then_some(Program { entry, segments })
}

/// The address at which user code starts each i-let; 0 for a file that is no program.
pub fn entry(file: &[u8]) -> usize {
    parse(file).map_or(0, |program| program.entry)
}

/// Maps and fills the program's segments. ENOEXEC for a file that is none or does not fit, EACCES for code the machine forbids.
fn load(thread: &Thread, space: &Arc<dyn Space>) -> Result<()> {
    let file = &thread.kernel.config.program;
    let program = parse(file).ok_or(Errno::ENOEXEC)?;
    let bounds = space.bounds();
    // An instruction could lie across the border of two.
    if program.segments.iter().filter(|segment| segment.prot.exec).count() > 1 {
        return Err(Errno::ENOEXEC);
    }
    let mut mapped = 0;
    for segment in &program.segments {
        let end = segment.addr.checked_add(segment.in_memory).and_then(|end| end.checked_next_multiple_of(PAGE));
        let end = end.ok_or(Errno::ENOEXEC)?;
        let start = segment.addr & !(PAGE - 1);
        let bytes = segment.offset.checked_add(segment.in_file).and_then(|to| file.get(segment.offset..to));
        let bytes = bytes.filter(|bytes| bytes.len() <= segment.in_memory).ok_or(Errno::ENOEXEC)?;
        // Pages of their own, so that code is never writable.
        if start < mapped || end <= start || !bounds.contains(start, end - start) || segment.prot.write && segment.prot.exec {
            return Err(Errno::ENOEXEC);
        }
        mapped = end;
        if segment.prot.exec && (thread.kernel.refuses)(bytes) {
            return Err(Errno::EACCES);
        }
        space.map(start, end - start, DATA, &Backing::Anon)?;
        thread.user().copy_out(segment.addr, bytes).map_err(|_| Errno::EFAULT)?;
        if segment.prot != DATA {
            space.protect(start, end - start, segment.prot)?;
        }
    }
    if program.segments.is_empty() { Err(Errno::ENOEXEC) } else { Ok(()) }
}
