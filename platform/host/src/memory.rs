//! The memory of a sandbox's kernel, as its supervisor makes it: the shared file, the image, their keys.

use alloc::vec::Vec;

use janua_entry::hosted::entry::{KERNEL_KEY, SELECTOR_KEY};
use janua_entry::hosted::{
    self, FILE_SIZE, IMAGE_SIZE, KERNEL_BASE, LINK_SIZE, LOW_PAGE, LOW_SHOWS, LOW_SIZE, SELECTOR_BASE, SELECTOR_SIZE,
    STACK_BASE, STACK_SIZE, THREADS,
};

use crate::image;
use crate::sandbox::{StartError, failed};
use crate::tiles::Tile;

/// Makes and maps the memory file.
pub fn map_memory() -> Result<(), StartError> {
    // SAFETY: new descriptor, new mapping at an address nothing else uses (NOREPLACE makes sure).
    unsafe {
        let fd = libc::memfd_create(c"janua-kernel".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return Err(failed("cannot make the kernel's memory (memfd_create)"));
        }
        if libc::ftruncate(fd, FILE_SIZE as i64) != 0 {
            return Err(failed("cannot size the kernel's memory (ftruncate; is there a limit on file sizes?)"));
        }
        let map = libc::mmap(
            KERNEL_BASE as *mut _,
            FILE_SIZE,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE,
            fd,
            0,
        );
        if map as usize != KERNEL_BASE {
            return Err(failed("cannot map the kernel's memory (mmap; is there a limit on address space?)"));
        }
        let low = libc::mmap(
            LOW_PAGE as *mut _,
            LOW_SIZE,
            libc::PROT_READ,
            libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE,
            fd,
            (LOW_SHOWS - KERNEL_BASE) as i64,
        );
        libc::close(fd);
        if low as usize != LOW_PAGE {
            return Err(failed("cannot map the kernel's low page at 64 KiB (mmap; is vm.mmap_min_addr higher?)"));
        }
        // In place of the file's pages: what the exit leaves in a line is no other process' business. A forked child
        // starts with lines of zeroes.
        let lines = libc::mmap(
            SELECTOR_BASE as *mut _,
            SELECTOR_SIZE,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED,
            -1,
            0,
        );
        if lines as usize != SELECTOR_BASE {
            return Err(failed("cannot map the kernel's selectors (mmap)"));
        }
        // A mapping of its own, by a flag nothing else has: for guard regions the host copies the page tables of all of it.
        if libc::madvise(STACK_BASE as *mut _, THREADS * STACK_SIZE, libc::MADV_DONTDUMP) != 0 {
            return Err(failed("cannot set up the kernel's stacks (madvise)"));
        }
        if libc::madvise(lines, SELECTOR_SIZE, libc::MADV_WIPEONFORK) != 0 {
            return Err(failed("cannot set up the kernel's selectors (madvise)"));
        }
    }
    Ok(())
}

/// Gives kernel memory its protection keys. The calling thread may still use it all.
pub fn lock(segments: &[image::Segment], tile: Option<&Tile>) -> Result<(), StartError> {
    for wanted in [KERNEL_KEY, SELECTOR_KEY] {
        // SAFETY: plain words.
        let key = unsafe { libc::syscall(libc::SYS_pkey_alloc, 0, 0) };
        if key < 0 {
            return Err(failed("the jail `pkey` needs two protection keys (pkey_alloc)"));
        }
        // The numbers are part of the kernel's code.
        if key != i64::from(wanted) {
            return Err(StartError {
                what: "the jail `pkey` needs the first two protection keys, which are in use",
                errno: libc::EBUSY,
            });
        }
    }
    let both = libc::PROT_READ | libc::PROT_WRITE;
    let image_end = KERNEL_BASE + IMAGE_SIZE;
    let ranges = [
        (image_end, SELECTOR_BASE, both, KERNEL_KEY),
        (SELECTOR_BASE, SELECTOR_BASE + SELECTOR_SIZE, both, SELECTOR_KEY),
        (SELECTOR_BASE + SELECTOR_SIZE, KERNEL_BASE + FILE_SIZE, both, KERNEL_KEY),
        (LOW_PAGE, LOW_PAGE + LOW_SIZE, libc::PROT_READ, KERNEL_KEY),
    ];
    let image = segments.iter().map(|segment| (segment.range.start, segment.range.end, segment.prot, KERNEL_KEY));
    let links = tile.into_iter().flat_map(|tile| &tile.links).map(|(other, _)| hosted::link(*other as usize));
    let links = links.map(|start| (start, start + LINK_SIZE, both, KERNEL_KEY));
    for (start, end, prot, key) in image.chain(ranges).chain(links) {
        // SAFETY: the sandbox's own mappings, whose rights stay as they are.
        if unsafe { libc::syscall(libc::SYS_pkey_mprotect, start, end - start, prot, key) } != 0 {
            return Err(failed("cannot lock the kernel's memory (pkey_mprotect)"));
        }
    }
    Ok(())
}

/// Maps a segment where the command's file has it: nothing is copied, and a process that ends soon never needs the huge pages
/// that the kernel makes of the text later (`janua_platform_linux::text`). Returns whether it could be done.
fn map_file(bytes: &[u8], file: Option<(i32, u64)>, segment: &image::Segment) -> bool {
    // The host maps pages around the one that is met: sixteen, where nobody has set another number.
    const AROUND: usize = 64 << 10;
    /// Bytes that are compared with the image's own.
    const PROOF: usize = 256;
    let Some((file, place)) = file.and_then(|(file, image)| Some((file, segment.place(image)?))) else { return false };
    let range = segment.range.clone();
    let (start, both, flags) =
        (range.start as *mut u8, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_FIXED);
    // SAFETY: replaces pages of the mapping just made, which nothing uses yet, and uses them. What the file has before and behind the
    // segment, the image does not have there, and user code may jump to whatever can run.
    unsafe {
        if libc::mmap(start.cast(), range.len(), both, flags, file, place as i64) != start.cast() {
            return false;
        }
        // Under an emulator or a debugging tool the host's name for the running program may be that of another.
        let (here, there) = (segment.filled.start as *const u8, bytes.get(segment.offset..).unwrap_or_default());
        let there = &there[..PROOF.min(segment.filled.len()).min(there.len())];
        if core::slice::from_raw_parts(here, there.len()) != there {
            return false;
        }
        start.write_bytes(0, segment.filled.start - range.start);
        (segment.filled.end as *mut u8).write_bytes(0, range.end - segment.filled.end);
        // With a page of its own in it the host copies the whole mapping at fork, where the child would fault in what it uses.
        start.write_volatile(start.read_volatile());
        // By faults, which bring several pages each: MADV_POPULATE_READ looks at every single one and takes more than twice as long.
        for at in range.step_by(AROUND) {
            (at as *const u8).read_volatile();
        }
    }
    true
}

/// Loads the image. What does not change any more, text and constants, is private memory: a forked process has it at once,
/// where it would have to fault in each page of a shared file. Returns the entry point and what is mapped.
pub fn load(bytes: &[u8]) -> Result<(usize, Vec<image::Segment>), StartError> {
    let broken = |what| StartError { what, errno: 0 };
    let mut segments = image::segments(bytes).map_err(broken)?;
    let room = image::room_behind(&segments);
    let file = image::file_of(bytes);
    for segment in segments.iter_mut().filter(|segment| !segment.is_data()) {
        let fits = !segment.is_text() || segment.huge().len() <= room;
        segment.is_mapped = segment.is_fixed && fits && map_file(bytes, file, segment);
        if segment.is_mapped {
            continue;
        }
        if segment.is_text() {
            segment.range = segment.huge();
        }
        let (start, len) = (segment.range.start as *mut _, segment.range.len());
        // SAFETY: replaces pages of the mapping just made, which nothing uses yet.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            if libc::mmap(start, len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) != start {
                return Err(failed("cannot map the kernel's text (mmap)"));
            }
            if segment.is_text() {
                // A host without huge pages refuses, and small ones do as well.
                libc::madvise(start, len, libc::MADV_HUGEPAGE);
            } else {
                // All of it is about to be written: one call costs half of a fault for each page. Before Linux 5.14 faults do it.
                libc::madvise(start, len, libc::MADV_POPULATE_WRITE);
            }
        }
    }
    crate::sandbox::close(file.map(|(file, _)| file));
    let parts = || segments.iter().map(|segment| (segment, segment.range.len()));
    // SAFETY: the image's part of the mapping just made.
    let memory = unsafe { core::slice::from_raw_parts_mut(KERNEL_BASE as *mut u8, IMAGE_SIZE) };
    let entry = image::load(bytes, memory, &segments).map_err(broken)?;
    for (segment, len) in parts() {
        // SAFETY: pages of the mapping, whose contents are complete.
        if unsafe { libc::mprotect(segment.range.start as *mut _, len, segment.prot) } != 0 {
            return Err(failed("cannot protect the kernel's text (mprotect)"));
        }
    }
    // What is between and behind the segments goes, so that a process has fewer mappings to copy at fork.
    let starts = segments.iter().map(|segment| segment.range.start).chain([KERNEL_BASE + IMAGE_SIZE]);
    let ends = [KERNEL_BASE].into_iter().chain(segments.iter().map(|segment| segment.range.end));
    for (start, end) in ends.zip(starts).filter(|(start, end)| start < end) {
        // SAFETY: pages of the mapping that the image does not use; nobody else may map there.
        if unsafe { libc::munmap(start as *mut _, end - start) } != 0 {
            return Err(failed("cannot unmap what the kernel does not use (munmap)"));
        }
    }
    Ok((entry, segments))
}
