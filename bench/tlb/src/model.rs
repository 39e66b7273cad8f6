//! The TLB of the article's processor, a Core i7-5500U (Broadwell): 4 KiB pages have 64 entries for data and 128 for instructions, 2 MiB
//! pages 32 and 8; behind them 1536 entries hold translations of both sizes for both. Replacement is by least recent use.
//! (Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter on Haswell and Broadwell; CPUID leaf 2 of the processor.)

/// A page's number, and the level of tables that maps it: 4 KiB, or 2 MiB when large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    pub number: u64,
    pub large: bool,
    /// Mapped as global: a write of CR3 does not touch it.
    pub global: bool,
}

/// A set-associative table.
struct Cache {
    ways: usize,
    /// The sets one after the other, each from the most recently used on.
    slots: Vec<Option<Page>>,
}

impl Cache {
    fn new(entries: usize, ways: usize) -> Cache {
        Cache { ways, slots: vec![None; entries] }
    }

    /// Whether it holds the page, which is the most recently used of its set afterwards.
    fn look(&mut self, page: Page) -> bool {
        let set = page.number as usize % (self.slots.len() / self.ways);
        let set = &mut self.slots[set * self.ways..][..self.ways];
        let found = set.iter().position(|slot| *slot == Some(page));
        let last = found.unwrap_or(set.len() - 1);
        set[..=last].rotate_right(1);
        set[0] = Some(page);
        found.is_some()
    }

    fn forget(&mut self, gone: impl Fn(&Page) -> bool) {
        for slot in &mut self.slots {
            if slot.as_ref().is_some_and(&gone) {
                *slot = None;
            }
        }
    }
}

/// What an access wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Instruction,
    Data,
}

/// Misses of instructions and of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misses {
    /// Of the first level: served by the second, some cycles later, or by a walk.
    pub first: [u64; 2],
    /// Of both: the processor reads the page tables.
    pub walks: [u64; 2],
}

/// The two levels.
pub struct Tlb {
    /// By [`Kind`], each for small and large pages.
    first: [[Cache; 2]; 2],
    second: Cache,
    pub misses: Misses,
}

impl Tlb {
    pub fn new() -> Tlb {
        Tlb {
            first: [[Cache::new(128, 4), Cache::new(8, 8)], [Cache::new(64, 4), Cache::new(32, 4)]],
            second: Cache::new(1536, 6),
            misses: Misses::default(),
        }
    }

    pub fn access(&mut self, kind: Kind, page: Page) {
        if self.first[kind as usize][usize::from(page.large)].look(page) {
            return;
        }
        self.misses.first[kind as usize] += 1;
        if !self.second.look(page) {
            self.misses.walks[kind as usize] += 1;
        }
    }

    /// A fetch of a page that is not mapped: no table ever holds it, and the processor walks each time.
    pub fn access_unmapped(&mut self, kind: Kind) {
        self.misses.first[kind as usize] += 1;
        self.misses.walks[kind as usize] += 1;
    }

    fn forget(&mut self, gone: impl Fn(&Page) -> bool) {
        for cache in self.first.iter_mut().flatten().chain([&mut self.second]) {
            cache.forget(&gone);
        }
    }

    /// A write of CR3 without process-context identifiers.
    pub fn change_root(&mut self) {
        self.forget(|page| !page.global);
    }

    /// `invlpg`, of a page of either size.
    pub fn forget_page(&mut self, addr: u64) {
        self.forget(|page| page.number == addr >> if page.large { 21 } else { 12 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn small(number: u64) -> Page {
        Page { number, large: false, global: false }
    }

    #[test]
    fn the_least_recently_used_goes() {
        let mut cache = Cache::new(8, 4);
        // All of one set.
        assert!([0, 2, 4, 6].iter().all(|number| !cache.look(small(*number))));
        assert!(cache.look(small(0)));
        assert!(!cache.look(small(8)));
        assert!(cache.look(small(0)));
        assert!(!cache.look(small(2)));
        // The other set is untouched.
        assert!(!cache.look(small(1)) && cache.look(small(1)));
    }

    #[test]
    fn the_second_level_answers_what_the_first_has_lost() {
        let mut tlb = Tlb::new();
        for number in 0..65 {
            tlb.access(Kind::Data, small(number));
        }
        assert_eq!(tlb.misses, Misses { first: [0, 65], walks: [0, 65] });
        // The set of page 0 had five.
        tlb.access(Kind::Data, small(0));
        assert_eq!(tlb.misses, Misses { first: [0, 66], walks: [0, 65] });
        // Instructions have a first level of their own and share the second.
        tlb.access(Kind::Instruction, small(3));
        assert_eq!(tlb.misses, Misses { first: [1, 66], walks: [0, 65] });
    }

    #[test]
    fn a_new_root_leaves_what_is_global() {
        let mut tlb = Tlb::new();
        let (own, kernel) = (small(1), Page { number: 2, large: true, global: true });
        for page in [own, kernel] {
            tlb.access(Kind::Data, page);
        }
        tlb.misses = Misses::default();
        tlb.change_root();
        tlb.access(Kind::Data, kernel);
        assert_eq!(tlb.misses, Misses::default());
        tlb.access(Kind::Data, own);
        assert_eq!(tlb.misses.walks, [0, 1]);
        tlb.forget_page(2 << 21 | 0x1234);
        tlb.access(Kind::Data, kernel);
        assert_eq!(tlb.misses.walks, [0, 2]);
    }
}
