//! How processors write their tables. What an entry means is data here; the place of tables is [`crate::tree::Nodes`].

use crate::Entry;

/// One level of tables.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// An entry covers this many bytes, as a power of two.
    pub shift: u32,
    /// Entries of a table.
    pub entries: usize,
}

impl Level {
    /// The entry of a table of this level that an address belongs to.
    #[inline]
    pub const fn index(&self, addr: usize) -> usize {
        addr >> self.shift & (self.entries - 1)
    }

    /// Bytes an entry covers.
    #[inline]
    pub const fn span(&self) -> usize {
        1 << self.shift
    }
}

/// A processor's tables.
pub trait Format: Send + 'static {
    /// An entry as the processor reads it.
    type Word: Copy + Default + Send + 'static;
    /// The levels, the root's first; entries of the last are pages. The default word is an empty entry on each.
    const LEVELS: &'static [Level];

    /// The entry that leads to the table at a physical address, for user code.
    fn branch(table: usize) -> Self::Word;
    /// The physical address of the table an entry leads to, above the last level.
    fn table(word: Self::Word) -> Option<usize>;
    /// A page's entry.
    fn leaf(entry: Entry) -> Self::Word;
    /// What [`Format::leaf`] has written.
    fn entry(word: Self::Word) -> Option<Entry>;
}

/// Four levels of x86_64 (Intel SDM 3A, 4.5).
pub mod x86_64 {
    use janua_port::Prot;

    use super::{Format, Level};
    use crate::{Entry, PAGE, PageFrame};

    pub const PRESENT: u64 = 1;
    pub const WRITE: u64 = 1 << 1;
    pub const USER: u64 = 1 << 2;
    /// Ours: an entry without rights, kept for its frame. The processor sees it as absent.
    const HELD: u64 = 1 << 9;
    pub const NO_EXECUTE: u64 = 1 << 63;
    pub const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

    pub struct X86_64;

    impl Format for X86_64 {
        type Word = u64;
        const LEVELS: &'static [Level] = &[
            Level { shift: 39, entries: 512 },
            Level { shift: 30, entries: 512 },
            Level { shift: 21, entries: 512 },
            Level { shift: 12, entries: 512 },
        ];

        #[inline]
        fn branch(table: usize) -> u64 {
            table as u64 | PRESENT | WRITE | USER
        }

        #[inline]
        fn table(word: u64) -> Option<usize> {
            (word & PRESENT != 0).then_some((word & ADDRESS) as usize)
        }

        #[inline]
        fn leaf(entry: Entry) -> u64 {
            let Prot { read, write, exec } = entry.prot;
            let mut bits = (entry.frame.0 * PAGE) as u64 | USER;
            bits |= if read || write || exec { PRESENT } else { HELD };
            if write {
                bits |= WRITE;
            }
            if !exec {
                bits |= NO_EXECUTE;
            }
            bits
        }

        #[inline]
        fn entry(bits: u64) -> Option<Entry> {
            if bits & (PRESENT | HELD) == 0 {
                return None;
            }
            let some = bits & PRESENT != 0;
            let prot = Prot { read: some, write: some && bits & WRITE != 0, exec: some && bits & NO_EXECUTE == 0 };
            Some(Entry { frame: PageFrame((bits & ADDRESS) as usize / PAGE), prot })
        }
    }
}

/// The reference MMU of SPARC (architecture manual, version 8, appendix H). A context's table has one entry, which leads to the root.
pub mod srmmu {
    use janua_port::Prot;

    use super::{Format, Level};
    use crate::{Entry, PageFrame};

    /// The type of an entry: its low bits.
    const TYPE: u32 = 3;
    const TABLE: u32 = 1;
    pub const PAGE_ENTRY: u32 = 2;
    /// The access field.
    const ACCESS: u32 = 7;
    const ACCESS_SHIFT: u32 = 2;
    const CACHED: u32 = 0x80;
    /// Bits below the number of a page. A physical address is written without its lowest four.
    const NUMBER_SHIFT: u32 = 8;

    pub struct Srmmu;

    /// Rights the MMU does not have apart come together: what may be written may be read, and what may be executed. Pages without any right are
    /// the supervisor's.
    fn access(prot: Prot) -> u32 {
        match (prot.write, prot.exec, prot.read) {
            (true, true, _) => 3,
            (true, false, _) => 1,
            (false, true, _) => 2,
            (false, false, true) => 0,
            (false, false, false) => 7,
        }
    }

    impl Format for Srmmu {
        type Word = u32;
        const LEVELS: &'static [Level] =
            &[Level { shift: 24, entries: 256 }, Level { shift: 18, entries: 64 }, Level { shift: 12, entries: 64 }];

        fn branch(table: usize) -> u32 {
            (table >> 4) as u32 | TABLE
        }

        fn table(word: u32) -> Option<usize> {
            (word & TYPE == TABLE).then_some(((word & !TYPE) as usize) << 4)
        }

        fn leaf(entry: Entry) -> u32 {
            (entry.frame.0 << NUMBER_SHIFT) as u32 | CACHED | access(entry.prot) << ACCESS_SHIFT | PAGE_ENTRY
        }

        fn entry(word: u32) -> Option<Entry> {
            if word & TYPE != PAGE_ENTRY {
                return None;
            }
            let access = word >> ACCESS_SHIFT & ACCESS;
            let prot = Prot { read: access != 7, write: matches!(access, 1 | 3), exec: matches!(access, 2 | 3) };
            Some(Entry { frame: PageFrame((word >> NUMBER_SHIFT) as usize), prot })
        }
    }
}
