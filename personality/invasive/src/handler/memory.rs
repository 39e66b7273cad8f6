//! octo_memory.h, pages: what `mem_allocate` is made of, which is in the library.

use janua_abi::invasive::MemoryType;

use crate::Thread;
use crate::handler::FAILED;
use crate::memory::PAGE;
use crate::system::ThreadExt;

/// Whether there is memory of this type. Memory that tiles share is there where all tiles are one.
fn exists(thread: &Thread, kind: usize) -> bool {
    let local = [MemoryType::TlmLocal as usize, MemoryType::TlmGlobal as usize].contains(&kind);
    local || kind == MemoryType::Shm as usize && thread.kernel.config.tiles == 1
}

/// Zeroed pages; 0 when there is no room or no such memory.
pub fn map(thread: &Thread, kind: usize, pages: usize) -> usize {
    let space = thread.task.ext.space.lock().clone();
    match space.filter(|_| exists(thread, kind)) {
        Some(space) => thread.tile().lock().heap.map(&*space, pages).unwrap_or(0),
        None => 0,
    }
}

pub fn unmap(thread: &Thread, addr: usize, pages: usize) -> isize {
    let Some(space) = thread.task.ext.space.lock().clone() else { return FAILED };
    let done = thread.tile().lock().heap.unmap(&*space, addr, pages);
    if done == Ok(true) { 0 } else { FAILED }
}

pub fn page_size(_thread: &Thread) -> usize {
    PAGE
}

pub fn page_count(thread: &Thread, kind: usize) -> usize {
    if exists(thread, kind) { thread.tile().lock().heap.pages() } else { 0 }
}
