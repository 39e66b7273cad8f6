//! What the guard knows of a space: which parts of it can change, or are to run, and what was overwritten there.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use janua_port::{Backing, Prot};
use janua_text::patch_out;

/// What is under a span, as far as its contents can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Under {
    /// Private anonymous memory; only executable spans of it are kept.
    Anon,
    /// The same, with the contents of a file.
    Copied,
    /// A file no sandbox's program can write.
    Frozen,
    /// A private mapping of a file that can be written.
    Changing,
    /// Memory that has, or may get, other mappings.
    Shared,
}

/// A part of the space the guard must know of; its start is its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub end: usize,
    /// What was asked for.
    pub want: Prot,
    pub under: Under,
}

#[derive(Clone, Default)]
pub(super) struct State {
    spans: BTreeMap<usize, Span>,
    /// What was where `ud2` is now.
    pub patched_out: BTreeMap<usize, PatchedOut>,
    /// Pages of writable spans that the last fault has opened. A hint: a thread that faults on one takes it out and tries again before
    /// it opens the page itself, so that two threads that fault at once do not take the page from each other.
    pub open: BTreeSet<usize>,
}

/// An instruction that was overwritten.
#[derive(Clone, Copy, Debug)]
pub struct PatchedOut {
    pub bytes: [u8; patch_out::LONGEST],
    pub len: usize,
}

/// What a mapping of this backing has under it.
pub(super) fn under(backing: &Backing) -> Under {
    match backing {
        Backing::Anon => Under::Anon,
        Backing::AnonShared => Under::Shared,
        Backing::Object { frozen: true, .. } => Under::Frozen,
        Backing::Object { shared: true, .. } => Under::Shared,
        Backing::Object { .. } => Under::Changing,
    }
}

impl State {
    /// The parts of executable spans in `start..end`.
    pub fn executable(&self, start: usize, end: usize) -> Vec<(usize, usize, Span)> {
        self.touching(start, end)
            .filter(|(_, span)| span.want.exec)
            .map(|(at, span)| (at.max(start), span.end.min(end), span))
            .collect()
    }

    pub fn touching(&self, start: usize, end: usize) -> impl Iterator<Item = (usize, Span)> {
        let first = self.find(start).map_or(start, |(first, _)| first);
        self.spans.range(first..end.max(first)).map(|(&at, &span)| (at, span))
    }

    pub fn find(&self, addr: usize) -> Option<(usize, Span)> {
        let (&start, &span) = self.spans.range(..=addr).next_back()?;
        (addr < span.end).then_some((start, span))
    }

    /// Whether what is at `addr` may be executed, now or once it has been scanned.
    pub fn may_run(&self, addr: usize) -> bool {
        self.find(addr).is_some_and(|(_, span)| span.want.exec)
    }

    pub fn is_untouched(&self, start: usize, end: usize) -> bool {
        self.touching(start, end).next().is_none()
    }

    /// Takes out `start..end`: the spans, cut to it.
    pub fn take(&mut self, start: usize, end: usize) -> Vec<(usize, Span)> {
        if self.is_untouched(start, end) {
            return Vec::new();
        }
        for cut in [start, end] {
            if let Some((at, span)) = self.find(cut)
                && at < cut
            {
                self.spans.insert(at, Span { end: cut, ..span });
                self.spans.insert(cut, span);
            }
        }
        let taken: Vec<_> = self.spans.range(start..end).map(|(&at, &span)| (at, span)).collect();
        for (at, _) in &taken {
            self.spans.remove(at);
        }
        taken
    }

    /// Takes out what was overwritten in `start..end`.
    pub fn take_patched_out(&mut self, start: usize, end: usize) -> Vec<(usize, PatchedOut)> {
        let taken: Vec<_> = self.patched_out.range(start..end).map(|(&at, &found)| (at, found)).collect();
        for (at, _) in &taken {
            self.patched_out.remove(at);
        }
        taken
    }

    pub fn forget(&mut self, start: usize, end: usize) {
        self.take(start, end);
        self.take_patched_out(start, end);
        self.open.retain(|page| !(start..end).contains(page));
    }

    /// Adds a span in free space; private anonymous memory that is not to run is not kept. Neighbours of a kind are joined, so
    /// that a program that changes page after page does not leave a span for each.
    pub fn add(&mut self, start: usize, mut span: Span) {
        if !span.want.exec && span.under == Under::Anon {
            return;
        }
        let same = |other: &Span| other.want == span.want && other.under == span.under;
        if let Some(next) = self.spans.get(&span.end).copied()
            && same(&next)
        {
            self.spans.remove(&span.end);
            span.end = next.end;
        }
        if let Some((_, before)) = self.spans.range_mut(..start).next_back()
            && before.end == start
            && same(before)
        {
            before.end = span.end;
            return;
        }
        self.spans.insert(start, span);
    }
}
