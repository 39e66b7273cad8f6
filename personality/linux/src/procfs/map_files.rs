//! /proc/PID/map_files: a link for each mapping of a file, named by its addresses (proc_pid_map_files(5)).

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use janua_abi::linux::{Errno, Result};
use janua_object::OpenFile;
use janua_object::file::flags;
use janua_object::mm::Label;

use super::Subject;
use super::memory::mm;

/// Where a mapping begins and ends.
pub type Range = (usize, usize);

/// The name of a mapping's link.
pub fn name((start, end): Range) -> String {
    format!("{start:x}-{end:x}")
}

/// The addresses that a name gives, as [`name`] writes them.
pub fn range(text: &[u8]) -> Option<Range> {
    let (start, end) = core::str::from_utf8(text).ok()?.split_once('-')?;
    let word = |text: &str| usize::from_str_radix(text, 16).ok();
    let range = (word(start)?, word(end)?);
    (name(range).as_bytes() == text).then_some(range)
}

/// The file mapped at exactly this range. ENOENT.
pub fn file(subject: &Subject, (start, end): Range) -> Result<Arc<OpenFile>> {
    let mut found = None;
    mm(subject).map_err(|_| Errno::ENOENT)?.each_region(start, |region| {
        if (region.start, region.end) == (start, end)
            && let Label::File(file) = &region.label
        {
            found = Some(file.clone());
        }
        core::ops::ControlFlow::Break(())
    });
    found.ok_or(Errno::ENOENT)
}

/// All mappings of files, in order.
pub fn ranges(subject: &Subject) -> Vec<Range> {
    let Ok(mm) = mm(subject) else { return Vec::new() };
    let of_file = |label: &Label| matches!(label, Label::File(_));
    mm.regions().iter().filter(|region| of_file(&region.label)).map(|region| (region.start, region.end)).collect()
}

/// Permission bits of a link: what the mapped description may do.
pub fn mode(subject: &Subject, range: Range) -> Result<u32> {
    Ok(match file(subject, range)?.flags() & flags::O_ACCMODE {
        flags::O_RDONLY => 0o400,
        flags::O_WRONLY => 0o200,
        _ => 0o600,
    })
}
