//! What the first tasks find in memory: the kernel info page, and what the loader would have passed to the kernel (Multiboot, version 1).

/// The kernel info page begins so: "L4", a micro sign, "K".
pub const MAGIC: u32 = 0x4be6_344c;

/// Offsets in the kernel info page; ranges of memory are two words, from and to.
pub mod info {
    pub const VERSION: usize = 0x04;
    /// Where the strings begin that name the kernel, in units of [`STRINGS_UNIT`] bytes.
    pub const STRINGS: usize = 0x08;
    pub const STRINGS_UNIT: usize = 16;
    /// Stack pointer, first instruction and memory of the two first tasks.
    pub const SIGMA0: usize = 0x20;
    pub const ROOT: usize = 0x40;
    pub const MAIN_MEMORY: usize = 0x60;
    /// What the kernel has taken of it.
    pub const RESERVED: [usize; 2] = [0x68, 0x70];
    pub const DEDICATED: [usize; 4] = [0x80, 0x88, 0x90, 0x98];
    /// Microseconds since the start.
    pub const CLOCK: usize = 0xa0;
}

/// What a loader that speaks Multiboot leaves in eax.
pub const LOADED: u32 = 0x2bad_b002;

/// Offsets in Multiboot's structure, and the flags that show what of it is there.
pub mod multiboot {
    pub const FLAGS: usize = 0;
    pub const MEMORY_LOWER: usize = 4;
    pub const MEMORY_UPPER: usize = 8;
    pub const COMMAND_LINE: usize = 16;
    pub const MODULE_COUNT: usize = 20;
    pub const MODULES: usize = 24;
    pub const SIZE: usize = 88;

    pub const HAS_MEMORY: u32 = 1;
    pub const HAS_COMMAND_LINE: u32 = 4;
    pub const HAS_MODULES: u32 = 8;

    /// Words of a module: from, to, its command line, nothing.
    pub const MODULE_WORDS: usize = 4;
}

/// Requests to sigma0: the first word of a message to it, and the second.
pub mod sigma0 {
    /// Any page.
    pub const ANY_PAGE: u32 = 0xffff_fffc;
    /// The first word of requests that the second distinguishes: [`INFO_PAGE`] in its low byte.
    pub const SPECIAL: u32 = 1;
    pub const INFO_PAGE: u32 = 1;
    /// The second word of a request for 4 MiB: their size as a flexpage has it. Bit 0 of the address is set.
    pub const LARGE: u32 = 22 << 2;
    /// From here on addresses are those of devices.
    pub const MEMORY_END: u32 = 0x4000_0000;
}
