//! What may be executed, where the kernel's memory is locked by a protection key: [`CodeGuard`].
//!
//! The key opens by an instruction, so user code must hold none that loads the key register, and must not be able to make one.
//! The guard is between the list of mappings and the machine, and sees every host mapping of the space being made, changed,
//! moved and emptied. It keeps three rules:
//!
//! 1. No page is writable and executable at once. A mapping that is asked to be both is one of the two at a time: a fetch
//!    from a writable page opens it for execution, a store to an executable one closes it again. The list of mappings, and so
//!    /proc/self/maps, shows what was asked for.
//! 2. A page is executable only after [`janua_text::scan`] has found nothing in it and across its borders, while nobody could
//!    write to it: it is made read-only first, then scanned, then made executable.
//! 3. The contents of an executable page change only by way of this mapping. Private anonymous memory is like that, and so are
//!    files no sandbox's program can write. Private mappings of other files are copied into anonymous memory; shared
//!    mappings of what can be written elsewhere are refused (EACCES).
//!
//! A page in which something is found stays not executable, unless it belongs to a file and the instruction that holds the find is
//! known for certain ([`janua_text::patch_out`]: the dynamic linker's `xrstor`, a `lea` with an unlucky distance): that is
//! overwritten with `ud2`, in this mapping alone, and [`CodeGuard::patched_out_at`] returns what was there. In memory without a file nothing is
//! overwritten, because just-in-time compilers read and change what they have made: what has to be done there is done by the kernel
//! as far as it can ([`super::walk`]).
//!
//! The kernel's own changes of code, [`CodeGuard::patch`], keep the same rules: closed, written, scanned with what is around them, opened.
//!
//! Everything goes from not executable to executable in [`CodeGuard::open`] and nowhere else. Executable pages are always
//! readable. Lock order: the list of mappings, the guard, what keeps writes to other processes off ([`Common::remote`]). The guard's lock is not held
//! across stores to user memory that may fault, because a fault takes it.

mod spans;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use janua_abi::linux::mman::*;
use janua_abi::linux::{Errno, Result};
use janua_object::mm::jail::{Guard, Interrupted};
use janua_port::jail::Ground;
use janua_port::space::{Access, Bounds};
use janua_port::{Backing, Machine, Prot, Space, UserMemory};
use janua_rt::{Mutex, RwLock};
use janua_text::patch_out;
use janua_text::scan::{self, CONTEXT, Hit};

use crate::found::{Found, Range};
use crate::walk;

use spans::{Span, State, Under, under};

pub use spans::PatchedOut;

/// What the guards of one kernel share.
#[derive(Default)]
pub struct Common {
    /// Held exclusively while the machine writes to the memory of another process; shared while pages are made executable. The machine looks up the
    /// pages once, as writable, and copies afterwards: a page that is closed and scanned meanwhile would still be written to. One lock for all
    /// spaces, since the process that was found by a thread's number may be another by then.
    pub remote: RwLock<()>,
    pub found: Found,
    counters: Counters,
}

/// What the guards of a kernel have done, for `--stats`.
#[derive(Default)]
struct Counters {
    /// Bytes scanned.
    scanned: AtomicU64,
    /// Times pages were made executable.
    opened: AtomicU64,
    /// Times a store made a page writable again.
    closed: AtomicU64,
    /// Instructions overwritten.
    patched_out: AtomicU64,
    /// Pages that stay not executable, each time one is asked for.
    refused: AtomicU64,
    /// Bytes copied from files that can be written.
    copied: AtomicU64,
}

impl Common {
    /// What `--stats` reports of executable memory; nothing where it is not guarded.
    pub fn report(&self) -> String {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { scanned, opened, closed, patched_out, refused, copied } = &self.counters;
        let (scanned, copied) = (read(scanned) / 1024, read(copied) / 1024);
        let (opened, closed) = (read(opened), read(closed));
        let (patched_out, refused) = (read(patched_out), read(refused));
        if opened + refused == 0 {
            return String::new();
        }
        format!(
            "code: {scanned} KiB scanned, {copied} KiB copied from files that can be written; made executable {opened} times, \
             writable again {closed} times; {patched_out} instructions overwritten, {refused} pages refused\n"
        )
    }
}

fn count(counter: &AtomicU64, by: usize) {
    counter.fetch_add(by as u64, Ordering::Relaxed);
}

/// File mappings up to this are scanned as a whole when they are made, larger ones in pieces when they are run.
const EAGER: usize = 8 << 20;
/// A fetch opens the block it is in: of a file, of anonymous memory.
const FILE_BLOCK: usize = 256 << 10;
const ANON_BLOCK: usize = 16 << 10;

const CLOSED: Prot = Prot { read: true, write: false, exec: false };
const OPEN: Prot = Prot { read: true, write: false, exec: true };
const WRITABLE: Prot = Prot { read: true, write: true, exec: false };

/// A space in which nothing runs that was not looked at. See the top of the file.
pub struct CodeGuard {
    inner: Arc<dyn Space>,
    ground: &'static dyn Ground,
    user: Arc<dyn UserMemory>,
    machine: Option<&'static dyn Machine>,
    common: &'static Common,
    state: Mutex<State>,
}

impl CodeGuard {
    /// Guards an empty space, whose memory is read and written by `user`. With a `machine` pages with something overwritten are the same for all.
    pub fn new(
        inner: Arc<dyn Space>,
        ground: &'static dyn Ground,
        user: Arc<dyn UserMemory>,
        machine: Option<&'static dyn Machine>,
        common: &'static Common,
    ) -> CodeGuard {
        CodeGuard { inner, ground, user, machine, common, state: Mutex::default() }
    }

    /// What was at `addr` before it was overwritten with `ud2`, if it still is.
    pub fn patched_out_at(&self, addr: usize) -> Option<PatchedOut> {
        let found = *self.state.lock().patched_out.get(&addr)?;
        let mut now = [0; patch_out::LONGEST];
        self.user.copy_in(&mut now[..found.len], addr).ok()?;
        (now[..found.len] == patch_out::filler(found.len)[..found.len]).then_some(found)
    }

    /// Makes pages of executable spans not executable, and writable where that was asked for.
    fn close(&self, state: &State, start: usize, end: usize) -> Result<()> {
        for (from, to, span) in state.executable(start, end) {
            self.inner.protect(from, to - from, closed(span.want))?;
        }
        Ok(())
    }

    /// Makes `start..end`, which is in one executable span, executable where nothing is found in it. Returns whether the page of
    /// `wanted` is.
    fn open(&self, state: &mut State, start: usize, end: usize, span: Span, wanted: usize) -> Result<bool> {
        // Also where nobody asked for the right to write: a fork may have copied a page in the middle of a change.
        self.inner.protect(start, end - start, CLOSED)?;
        let hits = self.scan(state, start, end);
        self.open_without(state, start, end, span, wanted, hits)
    }

    /// The second half of [`CodeGuard::open`]: the pages are read-only, and `hits` (addresses) have been found.
    fn open_without(
        &self,
        state: &mut State,
        start: usize,
        end: usize,
        span: Span,
        wanted: usize,
        mut hits: Vec<Hit>,
    ) -> Result<bool> {
        if !hits.is_empty() && matches!(span.under, Under::Frozen | Under::Copied) {
            let mut changed = Vec::new();
            for hit in &hits {
                changed.extend(self.patch_out(state, start, end, hit, span.under)?);
            }
            for (from, to) in changed {
                hits.retain(|hit| hit.at >= to || hit.at + hit.len <= from);
                hits.extend(self.scan(state, from, to));
            }
            hits.sort_unstable_by_key(|hit| hit.at);
        }
        // Ranges between the pages that hold a find; a find across two pages is as harmless when one of them cannot run.
        let mut from = start;
        let mut may_run = true;
        for hit in hits {
            let page = (hit.at + hit.len - 1).min(end - 1) & !(PAGE_SIZE - 1);
            count(&self.common.counters.refused, 1);
            may_run &= wanted & !(PAGE_SIZE - 1) != page;
            if page > from {
                self.inner.protect(from, page - from, OPEN)?;
            }
            from = from.max(page + PAGE_SIZE);
        }
        if from < end {
            self.inner.protect(from, end - from, OPEN)?;
        }
        count(&self.common.counters.opened, 1);
        Ok(may_run)
    }

    /// Finds in pages nobody can write now, in order; `at` is an address. Bytes that cannot be read (a file's end) cannot be
    /// executed either. What is next to the range counts if it may run, now or after a fetch; otherwise the call that asks for that
    /// right later has it scanned, with this range beside it.
    fn scan(&self, state: &State, start: usize, end: usize) -> Vec<Hit> {
        const PIECE: usize = 4 * PAGE_SIZE;
        let mut found = Vec::new();
        let mut buffer = vec![0; CONTEXT + PIECE + CONTEXT];
        let user = &*self.user;
        let (before, behind) = (state.may_run(start - 1), state.may_run(end));
        let mut at = start;
        while at < end {
            let len = PIECE.min(end - at);
            let context = if at + len < end || behind { CONTEXT } else { 0 };
            let body = user.copy_in_partial(&mut buffer[CONTEXT..CONTEXT + len + context], at);
            // A range that ends early for want of a neighbour, or of a file: the rest reads as zeroes.
            buffer[CONTEXT + body..CONTEXT + len + CONTEXT].fill(0);
            if body < len {
                // Behind a page that cannot be read there may be others that can.
                for page in (at..at + len).step_by(PAGE_SIZE) {
                    let place = CONTEXT + page - at;
                    user.copy_in_partial(&mut buffer[place..place + PAGE_SIZE], page);
                }
                let place = CONTEXT + len;
                user.copy_in_partial(&mut buffer[place..place + context], at + len);
            }
            buffer[..CONTEXT].fill(0);
            if at > start || before {
                user.copy_in_partial(&mut buffer[..CONTEXT], at - CONTEXT);
            }
            let hits = scan::hits_touching(&buffer[..CONTEXT + len + CONTEXT], CONTEXT..CONTEXT + len);
            for hit in hits.filter(|hit| hit.kind.loads_keys()) {
                let hit = Hit { at: at + hit.at - CONTEXT, ..hit };
                // One across a border of pieces is found from both sides.
                if found.last() != Some(&hit) {
                    found.push(hit);
                }
            }
            at += len;
        }
        count(&self.common.counters.scanned, end - start);
        found
    }

    /// Overwrites an instruction of a file's, if it is certain that it is one and is in `start..end`, which is closed and stays
    /// so. Returns the pages that others could write to for a moment and that must be scanned again.
    fn patch_out(
        &self,
        state: &mut State,
        start: usize,
        end: usize,
        hit: &Hit,
        under: Under,
    ) -> Result<Option<(usize, usize)>> {
        let user = &*self.user;
        let from = hit.at.saturating_sub(patch_out::BEFORE).max(start);
        let to = (hit.at + patch_out::LONGEST).min(end);
        let mut code = vec![0; to.saturating_sub(from)];
        if hit.at < start || user.copy_in(&mut code, from).is_err() {
            return Ok(None);
        }
        let Some(found) = patch_out::instruction(&code, hit.at - from) else { return Ok(None) };
        let at = from + found.start;
        let mut bytes = [0; patch_out::LONGEST];
        bytes[..found.len()].copy_from_slice(&code[found.clone()]);
        let page = at & !(PAGE_SIZE - 1);
        let len = (at + found.len()).next_multiple_of(PAGE_SIZE) - page;
        let filler = &patch_out::filler(found.len())[..found.len()];
        let mut written = under == Under::Frozen && self.replace(page, len, at, filler).is_ok();
        if !written {
            self.inner.protect(page, len, WRITABLE)?;
            written = user.copy_out(at, filler).is_ok();
            self.inner.protect(page, len, CLOSED)?;
        }
        if written {
            state.patched_out.insert(at, PatchedOut { bytes, len: found.len() });
            count(&self.common.counters.patched_out, 1);
        }
        Ok(Some((page, page + len)))
    }

    /// Maps pages with the same contents, but for `bytes` at `at`, in place of pages of a file.
    fn replace(&self, page: usize, len: usize, at: usize, bytes: &[u8]) -> Result<()> {
        let machine = self.machine.ok_or(Errno::EOPNOTSUPP)?;
        let mut contents = vec![0; len];
        self.user.copy_in(&mut contents, page).map_err(|_| Errno::EFAULT)?;
        contents[at - page..at - page + bytes.len()].copy_from_slice(bytes);
        for (index, contents) in contents.chunks(PAGE_SIZE).enumerate() {
            let (object, offset) = self.common.found.patched(machine, contents)?;
            let page = page + index * PAGE_SIZE;
            self.inner.map(page, PAGE_SIZE, CLOSED, &Backing::Object { object, offset, shared: false, frozen: true })?;
        }
        Ok(())
    }

    /// Maps a file that does not change, and lets it run: by what is known of it, or after a scan.
    fn map_file(&self, state: &mut State, start: usize, span: Span, backing: &Backing) -> Result<()> {
        let len = span.end - start;
        let Backing::Object { object, offset, .. } = backing else { return Err(Errno::EINVAL) };
        let (made, offset) = (self.common.found.of(object), *offset);
        let key = if made.is_none() && len <= EAGER { Range::new(&**object, offset, len) } else { None };
        let known = match &made {
            Some(made) => Some(made.hits(offset, len)),
            None => key.and_then(|key| self.common.found.hits(&key)),
        };
        let clean = known.as_ref().is_some_and(|known| known.is_empty());
        let at_once = clean && !span.want.write && !state.may_run(start - 1) && !state.may_run(span.end);
        self.inner.map(start, len, if at_once { OPEN } else { closed(span.want) }, backing)?;
        state.forget(start, span.end);
        state.add(start, span);
        if let Some(made) = &made {
            state.patched_out.extend(made.patched_out(offset, len).map(|(at, found)| (start + at, found)));
        }
        if at_once {
            count(&self.common.counters.opened, 1);
            return Ok(());
        }
        if span.want.write || known.is_none() && len > EAGER {
            return Ok(());
        }
        let hits = match known {
            Some(known) => {
                let mut hits = self.across(state, start);
                hits.extend(known.iter().map(|hit| Hit { at: hit.at.wrapping_add(start), ..*hit }));
                hits.extend(self.across(state, span.end));
                hits
            }
            None => {
                let hits = self.scan(state, start, span.end);
                if let Some(key) = key {
                    let inside = hits.iter().filter(|hit| hit.at >= start && hit.at + hit.len <= span.end);
                    self.common.found.keep(key, inside.map(|hit| Hit { at: hit.at - start, ..*hit }).collect());
                }
                hits
            }
        };
        self.open_without(state, start, span.end, span, 0, hits).map(|_| ())
    }

    /// Finds across a border between pages.
    fn across(&self, state: &State, border: usize) -> Vec<Hit> {
        if !state.may_run(border - 1) || !state.may_run(border) {
            return Vec::new();
        }
        let mut around = [0; 2 * CONTEXT];
        let user = &*self.user;
        user.copy_in_partial(&mut around[..CONTEXT], border - CONTEXT);
        user.copy_in_partial(&mut around[CONTEXT..], border);
        scan::hits(&around)
            .filter(|hit| hit.kind.loads_keys() && hit.at < CONTEXT && hit.at + hit.len > CONTEXT)
            .map(|hit| Hit { at: border - CONTEXT + hit.at, ..hit })
            .collect()
    }

    /// Replaces private mappings of files that can be written, in `start..end`, by anonymous memory with the same contents; their rights
    /// are left to the caller. What could not be copied whole stays known as what it was, so that the next try copies it again.
    fn own_changing(&self, state: &mut State, start: usize, end: usize) -> Result<()> {
        let changing = state.touching(start, end).filter(|(_, span)| span.under == Under::Changing);
        let changing: Vec<_> = changing.map(|(at, span)| (at.max(start), span.end.min(end))).collect();
        for (from, to) in changing {
            self.ground.own(from, to - from)?;
            count(&self.common.counters.copied, to - from);
            for (at, span) in state.take(from, to) {
                state.add(at, Span { under: Under::Copied, ..span });
            }
        }
        Ok(())
    }
}

/// The host's rights for pages of a span that are not executable at the moment. A page that is to be executed can be read.
fn closed(want: Prot) -> Prot {
    Prot { read: want.read || want.exec, write: want.write, exec: false }
}

impl Space for CodeGuard {
    fn map(&self, addr: usize, len: usize, prot: Prot, backing: &Backing) -> Result<()> {
        let end = addr.checked_add(len).ok_or(Errno::EINVAL)?;
        let mut state = self.state.lock();
        let mut span = Span { end, want: prot, under: under(backing) };
        if !prot.exec {
            self.inner.map(addr, len, prot, backing)?;
            state.forget(addr, end);
            state.add(addr, span);
            return Ok(());
        }
        let _nobody_writes = self.common.remote.read();
        if span.under == Under::Shared {
            count(&self.common.counters.refused, len / PAGE_SIZE);
            return Err(Errno::EACCES);
        }
        if span.under == Under::Frozen {
            return self.map_file(&mut state, addr, span, backing);
        }
        self.inner.map(addr, len, closed(prot), backing)?;
        state.forget(addr, end);
        if span.under == Under::Changing {
            state.add(addr, Span { want: closed(prot), ..span });
            let owned = self.own_changing(&mut state, addr, end);
            if owned.is_err() && self.inner.unmap(addr, len).is_ok() {
                state.forget(addr, end);
            }
            owned?;
            state.take(addr, end);
            span.under = Under::Copied;
        }
        state.add(addr, span);
        if span.under != Under::Copied || prot.write || len > EAGER {
            return Ok(());
        }
        // Nobody can write to it: that is how it was mapped.
        let hits = self.scan(&state, addr, end);
        self.open_without(&mut state, addr, end, span, 0, hits).map(|_| ())
    }

    fn unmap(&self, addr: usize, len: usize) -> Result<()> {
        let mut state = self.state.lock();
        self.inner.unmap(addr, len)?;
        state.forget(addr, addr.saturating_add(len));
        Ok(())
    }

    fn protect(&self, addr: usize, len: usize, prot: Prot) -> Result<()> {
        let end = addr.checked_add(len).ok_or(Errno::EINVAL)?;
        let mut state = self.state.lock();
        if !prot.exec {
            self.inner.protect(addr, len, prot)?;
            for (at, span) in state.take(addr, end) {
                state.add(at, Span { want: prot, ..span });
            }
            return Ok(());
        }
        let _nobody_writes = self.common.remote.read();
        if state.touching(addr, end).any(|(_, span)| span.under == Under::Shared) {
            count(&self.common.counters.refused, len / PAGE_SIZE);
            return Err(Errno::EACCES);
        }
        if let Err(errno) = self.own_changing(&mut state, addr, end) {
            // Everything keeps the rights it had; what cannot be given them back has fewer.
            for (at, span) in state.touching(addr, end) {
                let (from, to) = (at.max(addr), span.end.min(end));
                let _ = self.inner.protect(from, to - from, closed(span.want));
            }
            return Err(errno);
        }
        self.inner.protect(addr, len, closed(prot))?;
        let mut eager = Vec::new();
        let mut at = addr;
        // Nothing fails from here on until every span is back in its place.
        for (start, mut span) in state.take(addr, end) {
            span.want = prot;
            if at < start {
                state.add(at, Span { end: start, want: prot, under: Under::Anon });
            }
            state.add(start, span);
            if matches!(span.under, Under::Frozen | Under::Copied) && span.end - start <= EAGER && !prot.write {
                eager.push((start, span));
            }
            at = span.end;
        }
        if at < end {
            state.add(at, Span { end, want: prot, under: Under::Anon });
        }
        for (start, span) in eager {
            self.open(&mut state, start, span.end, span, 0)?;
        }
        Ok(())
    }

    fn remap(&self, old: usize, old_len: usize, new: usize, new_len: usize) -> Result<()> {
        let mut state = self.state.lock();
        // Code that moves has new neighbours.
        self.close(&state, old, old + old_len)?;
        self.inner.remap(old, old_len, new, new_len)?;
        let same = state.find(old).map(|(_, span)| span);
        let mut moved = state.take(old, old + old_len);
        let patched_out = state.take_patched_out(old, old + old_len);
        state.forget(new, new + new_len);
        if let Some((_, last)) = moved.last_mut()
            && last.end == old + old_len
            && new_len > old_len
        {
            last.end = old + new_len;
        }
        if old_len == 0
            && let Some(same) = same
        {
            // A second mapping of shared memory.
            state.add(new, Span { end: new + new_len, ..same });
        }
        for (at, span) in moved {
            state.add(at - old + new, Span { end: span.end - old + new, ..span });
        }
        state.patched_out.extend(patched_out.into_iter().map(|(at, found)| (at - old + new, found)));
        Ok(())
    }

    fn remap_keep(&self, old: usize, len: usize, new: usize) -> Result<()> {
        let mut state = self.state.lock();
        self.close(&state, old, old + len)?;
        self.inner.remap_keep(old, len, new)?;
        let kept = state.take(old, old + len);
        let patched_out = state.take_patched_out(old, old + len);
        state.forget(new, new + len);
        state.patched_out.extend(patched_out.into_iter().map(|(at, found)| (at - old + new, found)));
        for (at, span) in kept {
            state.add(at, span);
            state.add(at - old + new, Span { end: span.end - old + new, ..span });
        }
        Ok(())
    }

    fn advise(&self, addr: usize, len: usize, advice: u32) -> Result<()> {
        // Dropped pages come back with the contents of the file, which may not be what was scanned; and a store to a page that is
        // open for execution would fail.
        let contents_change = matches!(
            advice,
            MADV_DONTNEED
                | MADV_FREE
                | MADV_REMOVE
                | MADV_DONTNEED_LOCKED
                | MADV_POPULATE_WRITE
                | MADV_GUARD_INSTALL
                | MADV_GUARD_REMOVE
        );
        if !contents_change {
            return self.inner.advise(addr, len, advice);
        }
        let state = self.state.lock();
        self.close(&state, addr, addr.saturating_add(len))?;
        self.inner.advise(addr, len, advice)
    }

    fn sync(&self, addr: usize, len: usize, flags: u32) -> Result<()> {
        self.inner.sync(addr, len, flags)
    }

    fn resident(&self, addr: usize, len: usize, out: &mut [u8]) -> Result<()> {
        self.inner.resident(addr, len, out)
    }

    fn reset(self: Arc<Self>, shared: bool) -> Result<Arc<dyn Space>> {
        // What comes of it has no guard yet: [`janua_object::mm::jail::Jail::enclose`].
        self.inner.clone().reset(shared)
    }

    fn bounds(&self) -> Bounds {
        self.inner.bounds()
    }
}

impl CodeGuard {
    /// The same for the space of a fork's child.
    pub fn copied_to(&self, child: Arc<dyn Space>) -> CodeGuard {
        // What the host has for a page may be older or newer than this copy, if another thread is just changing it. A fault in
        // the child sets it right: [`Guard::fault`] looks at what was asked for, and does not trust that a page is open or closed.
        let state = Mutex::new(self.state.lock().clone());
        let CodeGuard { ground, machine, common, .. } = *self;
        CodeGuard { inner: child, ground, user: self.user.clone(), machine, common, state }
    }

    /// [`Guard::fault`].
    fn set_right(&self, addr: usize, access: Access) -> bool {
        let mut state = self.state.lock();
        let Some((start, span)) = state.find(addr).filter(|(_, span)| span.want.exec) else { return false };
        let page = addr & !(PAGE_SIZE - 1);
        match access {
            Access::Fetch if span.want.write && state.open.remove(&page) => true,
            Access::Fetch => {
                let _nobody_writes = self.common.remote.read();
                let size = match span.under {
                    _ if span.want.write => PAGE_SIZE,
                    Under::Frozen | Under::Copied => FILE_BLOCK,
                    _ => ANON_BLOCK,
                };
                let block = addr & !(size - 1);
                let (from, to) = (block.max(start), (block + size).min(span.end));
                let opened = self.open(&mut state, from, to, span, addr).unwrap_or(false);
                if opened && span.want.write {
                    state.open.insert(page);
                }
                opened
            }
            Access::Store if span.want.write => {
                count(&self.common.counters.closed, 1);
                state.open.remove(&page);
                self.inner.protect(page, PAGE_SIZE, WRITABLE).is_ok()
            }
            Access::Store | Access::Load => false,
        }
    }

    /// Replaces `old` at `addr`, in executable memory that is not writable, by `new` of the same length, so that a thread that
    /// runs there meanwhile is held until it is done. EAGAIN when other bytes are there, EACCES where the new ones must not run.
    pub fn patch(&self, addr: usize, old: &[u8], new: &[u8]) -> Result<()> {
        let end = addr.checked_add(new.len()).ok_or(Errno::EINVAL)?;
        let (page, last) = (addr & !(PAGE_SIZE - 1), end.next_multiple_of(PAGE_SIZE));
        let mut state = self.state.lock();
        let _nobody_writes = self.common.remote.read();
        let may = |&(start, span): &(usize, Span)| {
            let fixed = matches!(span.under, Under::Anon | Under::Copied | Under::Frozen);
            fixed && span.want.exec && !span.want.write && start <= page && last <= span.end
        };
        let (_, span) = state.find(addr).filter(may).ok_or(Errno::EACCES)?;
        // Whether the bytes have been exchanged. An error means that the page may still be written to: then nothing of it counts
        // as scanned, and the next fetch closes it first.
        let swap = |old: &[u8], new: &[u8]| -> Result<bool> {
            self.inner.protect(page, last - page, WRITABLE)?;
            let mut now = vec![0; old.len()];
            let same = self.user.copy_in(&mut now, addr).is_ok() && now == old;
            let written = same && self.user.copy_out(addr, new).is_ok();
            self.inner.protect(page, last - page, CLOSED)?;
            Ok(written)
        };
        let mut result = if swap(old, new)? { Ok(()) } else { Err(Errno::EAGAIN) };
        let mut hits = self.scan(&state, page, last);
        if result.is_ok() && hits.iter().any(|hit| hit.at < end && hit.at + hit.len > addr) {
            swap(new, old)?;
            hits = self.scan(&state, page, last);
            result = Err(Errno::EACCES);
        }
        self.open_without(&mut state, page, last, span, addr, hits)?;
        result
    }

    /// [`Guard::copies`].
    fn copied_parts(&self, start: usize, end: usize) -> Vec<(usize, usize)> {
        let state = self.state.lock();
        let copied = state.touching(start, end).filter(|(_, span)| span.under == Under::Copied);
        copied.map(|(at, span)| (at.max(start), span.end.min(end))).collect()
    }

    /// Whether code at `addr` was asked to be executable and must not run nevertheless, so that the kernel does its work one instruction
    /// at a time. To be asked when [`Guard::fault`] has not helped.
    fn is_non_executable(&self, addr: usize) -> bool {
        self.state.lock().find(addr).is_some_and(|(_, span)| span.want.exec)
    }
}

impl Guard for CodeGuard {
    fn fault(&self, addr: usize, access: Access) -> bool {
        self.set_right(addr, access)
    }

    fn user_fault(&self, by: &mut Interrupted<'_>, addr: usize, access: Access) -> bool {
        // The work of an instruction is done for 64-bit code only.
        let steps = !by.frame.is_compat_mode();
        let right = self.set_right(addr, access);
        match access {
            Access::Fetch => right || steps && self.is_non_executable(addr) && walk::walk(by, addr / PAGE_SIZE),
            Access::Store => right && (!walk::is_near(by.frame, addr) || steps && walk::step_over(by)),
            Access::Load => false,
        }
    }

    fn illegal(&self, by: &mut Interrupted<'_>) -> bool {
        if by.frame.is_compat_mode() {
            return false;
        }
        let found = self.patched_out_at(by.frame.rip as usize);
        found.is_some_and(|found| walk::step_as(by, &found.bytes[..found.len]))
    }

    fn copies(&self, start: usize, end: usize) -> Vec<(usize, usize)> {
        self.copied_parts(start, end)
    }
}
