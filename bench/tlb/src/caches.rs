//! What the caches of several processors would miss: a first level for data and one for instructions and a TLB for each on every core, and one last level that all
//! share. The sizes are those of the thesis' processor, a Core i5-8279U (Coffee Lake), without its second level: 32 KiB of 8 ways, 64 and 128 translations of 4
//! ways, 6 MiB of 12 ways; lines of 64 bytes, pages of 4 KiB, replacement by least recent use. A store takes the line from the other cores.

/// Sets of tags, each from the most recently used on.
struct Sets {
    ways: usize,
    tags: Vec<u64>,
}

/// No line or page has this tag.
const EMPTY: u64 = u64::MAX;

impl Sets {
    fn new(entries: usize, ways: usize) -> Sets {
        Sets { ways, tags: vec![EMPTY; entries] }
    }

    fn set(&mut self, tag: u64) -> &mut [u64] {
        let set = (tag % (self.tags.len() / self.ways) as u64) as usize;
        &mut self.tags[set * self.ways..][..self.ways]
    }

    /// Whether it has the tag, which is the most recently used of its set afterwards.
    fn touch(&mut self, tag: u64) -> bool {
        let set = self.set(tag);
        let found = set.iter().position(|slot| *slot == tag);
        let last = found.unwrap_or(set.len() - 1);
        set[..=last].rotate_right(1);
        set[0] = tag;
        found.is_some()
    }

    fn forget(&mut self, tag: u64) {
        if let Some(slot) = self.set(tag).iter_mut().find(|slot| **slot == tag) {
            *slot = EMPTY;
        }
    }
}

/// What one core did, and missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub instructions: u64,
    /// Instructions, data.
    pub first: [u64; 2],
    pub last: u64,
    pub tlb: [u64; 2],
}

struct Core {
    first: [Sets; 2],
    tlb: [Sets; 2],
    counts: Counts,
}

impl Core {
    fn new() -> Core {
        Core {
            first: [Sets::new(512, 8), Sets::new(512, 8)],
            tlb: [Sets::new(128, 4), Sets::new(64, 4)],
            counts: Counts::default(),
        }
    }
}

/// The cores and what they share.
pub struct Caches {
    cores: Vec<Core>,
    last: Sets,
}

/// Addresses from here on are the kernel's, and mapped the same for all programs.
const KERNEL: u64 = 1 << 63;

impl Caches {
    pub fn new() -> Caches {
        Caches { cores: Vec::new(), last: Sets::new(6 << 20 >> 6, 12) }
    }

    fn core(&mut self, number: usize) -> &mut Core {
        while self.cores.len() <= number {
            self.cores.push(Core::new());
        }
        &mut self.cores[number]
    }

    /// An access at a virtual address, and where that is in memory. `which`: 0 for instructions, 1 for data.
    fn access(&mut self, number: usize, which: usize, addr: u64, place: u64) {
        let core = self.core(number);
        core.counts.tlb[which] += u64::from(!core.tlb[which].touch(addr >> 12));
        let line = place >> 6;
        if !core.first[which].touch(line) {
            core.counts.first[which] += 1;
            let missed = !self.last.touch(line);
            self.cores[number].counts.last += u64::from(missed);
        }
    }

    pub fn execute(&mut self, core: usize, addr: u64, place: u64) {
        self.core(core).counts.instructions += 1;
        self.access(core, 0, addr, place);
    }

    pub fn data(&mut self, core: usize, addr: u64, place: u64, store: bool) {
        self.access(core, 1, addr, place);
        if store {
            let others = self.cores.iter_mut().enumerate().filter(|(number, _)| *number != core);
            others.for_each(|(_, other)| other.first[1].forget(place >> 6));
        }
    }

    /// A write of CR3: the translations of user addresses go.
    pub fn change_root(&mut self, core: usize) {
        for slot in self.core(core).tlb.iter_mut().flat_map(|tlb| &mut tlb.tags) {
            if *slot < KERNEL >> 12 {
                *slot = EMPTY;
            }
        }
    }

    /// What each core has counted since this was asked last.
    pub fn take(&mut self) -> Vec<Counts> {
        self.cores.iter_mut().map(|core| std::mem::take(&mut core.counts)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_touched_is_there_until_its_set_is_full() {
        let mut caches = Caches::new();
        for line in 0..9 {
            // All of one set of the first level.
            caches.data(0, line << 12, line << 12, false);
        }
        caches.data(0, 0, 0, false);
        let counts = caches.take()[0];
        assert_eq!((counts.first, counts.last, counts.instructions), ([0, 10], 9, 0), "the last level still has the first");
        caches.execute(0, 0, 1 << 40);
        assert_eq!(caches.take()[0], Counts { instructions: 1, first: [1, 0], last: 1, tlb: [1, 0] });
    }

    #[test]
    fn a_store_takes_the_line_from_the_others() {
        let mut caches = Caches::new();
        caches.data(0, 64, 64, false);
        caches.data(1, 64, 64, true);
        caches.take();
        caches.data(0, 64, 64, false);
        caches.data(1, 64, 64, false);
        let counts = caches.take();
        assert_eq!((counts[0].first[1], counts[0].last, counts[1].first[1]), (1, 0, 0));
    }

    #[test]
    fn a_new_root_leaves_the_kernels_translations() {
        let mut caches = Caches::new();
        let kernel = 0xffff_8000_0000_0000;
        for _ in 0..2 {
            caches.data(0, 4096, 0, false);
            caches.data(0, kernel, 0, false);
            caches.change_root(0);
        }
        assert_eq!(caches.take()[0].tlb, [0, 3]);
    }
}
