//! The i386 interface where it differs from the x86-64 one: structures with 32-bit words, and how they map to the kernel's
//! own types ([`super::layout::Layout`]).
//!
//! Source: the kernel's compat structures for x86 (asm/compat.h, linux/compat.h) and the i386 uapi headers.

pub mod ipc;
pub mod net;
pub mod process;
pub mod ptrace;
pub mod signal;
pub mod stat;
pub mod time;

pub use process::UserDesc;

/// End of the part of the address space that 32-bit programs may map.
pub const HIGHEST: usize = 0xffff_e000;

/// Derives for a structure as it is in a 32-bit program's memory, and its size.
macro_rules! structs {
    ($($(#[$meta:meta])* $name:ident ($size:literal) { $($(#[$field_meta:meta])* $field:ident: $t:ty,)* })*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
            #[repr(C)]
            pub struct $name { $($(#[$field_meta])* pub $field: $t,)* }
            const _: () = assert!(size_of::<$name>() == $size);
        )*
    };
}
pub(crate) use structs;
