//! Program files: as execve(2) reads them, and as what looks for their code does.

use janua_abi::linux::Errno;
use janua_elf::{Form, Header, ProgramHeader};
use janua_personality_linux::exec::elf::Elf;
use janua_port::PAGE;
use janua_text::elf::{self, Layout};
use janua_text::frames;

pub fn run(file: &[u8]) {
    for form in [Form::I386, Form::X86_64, Form { is_64: false, is_big_endian: true }] {
        read(file, form);
    }
    let source = |offset: u64, out: &mut [u8]| {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(file.len());
        let n = out.len().min(file.len() - from);
        out[..n].copy_from_slice(&file[from..from + n]);
        Ok(n)
    };
    let program = Elf::program(file, &source);
    match &program {
        Ok(program) => {
            check(program);
            match program.interpreter_path(&source) {
                Ok(Some(path)) => assert!(path.len() < 4096 && !path.contains(&0)),
                Ok(None) => {}
                Err(errno) => assert!([Errno::ENOEXEC, Errno::EIO].contains(&errno)),
            }
        }
        Err(errno) => assert_eq!(*errno, Errno::ENOEXEC),
    }
    match Elf::interpreter(&source) {
        Ok(interpreter) => check(&interpreter),
        Err(errno) => assert!([Errno::ELIBBAD, Errno::EIO].contains(&errno)),
    }
    if let Some(layout) = elf::layout(file) {
        let program = program.expect("its code is looked for, so it can be run");
        // Segments without a byte have a place, but nothing is looked for in them.
        if program.loads().all(|load| load.memsz > 0) {
            assert_eq!(program.span(), Some((layout.low as usize, layout.high as usize)));
        }
        check_layout(&layout, file);
    }
}

/// The headers as any loader reads them.
fn read(file: &[u8], form: Form) {
    let Some(header) = Header::read(file, form) else { return assert!(file.len() < form.sizes().0) };
    let Some(segments) = header.segments(file) else { return };
    let segments: Vec<ProgramHeader> = segments.collect();
    assert_eq!(segments.len(), usize::from(header.phnum));
    for segment in segments {
        assert!(segment.data(file).is_none_or(|data| data.len() as u64 == segment.filesz));
        assert!(segment.notes(file).all(|(name, _, data)| name.len() + data.len() <= file.len()));
        // What has been read is read again from what it is written as.
        let again = janua_elf::program_headers(&segment.bytes(), Form::X86_64).next();
        assert_eq!(again, Some(segment));
    }
}

fn check(elf: &Elf) {
    if let Some((start, end)) = elf.span() {
        assert!(start < end && start % PAGE == 0 && end % PAGE == 0);
    }
    let alignment = elf.alignment();
    assert!(alignment.is_power_of_two() && (PAGE..=1 << 30).contains(&alignment));
    let _ = (elf.headers_addr(), elf.wants_exec_stack(), elf.is_relocatable());
}

fn check_layout(layout: &Layout, file: &[u8]) {
    for segment in &layout.code {
        let end = segment.vaddr.checked_add(segment.len).expect("no end");
        assert!(segment.vaddr >= layout.low && end <= layout.high && segment.offset.checked_add(segment.len).is_some());
    }
    let Some((table, around)) = layout.frames else { return };
    assert!(table.wrapping_sub(around.vaddr) < around.len);
    let mut read = |to: &mut [u8], at: u64| {
        assert!(at >= around.offset && at + to.len() as u64 <= around.offset + around.len, "more than the file says there is");
        let from = usize::try_from(at).map_err(|_| Errno::EIO)?;
        to.copy_from_slice(file.get(from..from.saturating_add(to.len())).ok_or(Errno::EIO)?);
        Ok(())
    };
    for address in [0, table, around.vaddr, around.vaddr.wrapping_add(around.len), u64::MAX] {
        frames::is_signal_frame(layout, address, &mut read);
    }
}
