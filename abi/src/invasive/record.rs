//! What the library finds at the thread pointer of each core (`%fs` on x86-64, `%g7` on SPARC): where it runs and how it calls.
//! The program can read and write it, and the kernel never reads it.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// One core's record. The C side is `user/libsyscall/src/record.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct CoreRecord {
    /// The record's own address.
    pub this: usize,
    /// The core's number within its tile.
    pub cpu: usize,
    pub tile: usize,
    pub tile_cores: usize,
    pub tiles: usize,
    /// How calls enter: an [`entry`].
    pub entry: usize,
    /// What that needs, see there.
    pub entry_words: [usize; 3],
    /// [`library`]: which of the three configurations.
    pub library: usize,
    /// The kernel's functions by number, for the configuration without library and dispatcher; 0 otherwise.
    pub functions: usize,
    /// 1 when the library handles calls itself that need no privilege.
    pub answers: usize,
    /// The program's arguments: how many, and an array of pointers to strings.
    pub argc: usize,
    pub argv: usize,
    /// Bytes of an i-let's stack, a power of two; stacks are aligned to it.
    pub stack_size: usize,
    pub spare: usize,
}

const _: () = assert!(size_of::<CoreRecord>() == 16 * size_of::<usize>());

/// Entries, as the library knows them.
pub mod entry {
    /// The machine's own instruction: `syscall` on x86-64, `ta 0x10` on SPARC.
    pub const INSTRUCTION: usize = 0;
    /// A signal sent to oneself. Words: the host's process, the host's thread, the signal.
    pub const SIGNAL: usize = 1;
    /// A jump into the kernel. Words: the address.
    pub const JUMP: usize = 2;
    /// `int 0x30`, on x86-64.
    pub const INTERRUPT: usize = 3;
    /// As [`SIGNAL`], but the library asks the host for process and thread each time, as OctoPOS' guest layer does. For comparison.
    pub const SIGNAL_ASKING: usize = 4;
}

/// The configurations of an experiment.
pub mod library {
    /// `sys-lib-yes`: library, gate, dispatcher.
    pub const GATE: usize = 0;
    /// `sys-lib-no`: library and dispatcher, no gate. Needs a kernel without a jail.
    pub const DISPATCHER: usize = 1;
    /// `vanilla`: the kernel's function is called by its address. Needs a kernel without a jail.
    pub const VANILLA: usize = 2;
}
