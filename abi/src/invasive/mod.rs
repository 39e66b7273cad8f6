//! The invasive interface (OctoPOS): what applications and kernel share is in here and nowhere else.
//!
//! A call is seven machine words, a number and six arguments, and returns one. A machine word is `usize`: 64 bits on x86-64,
//! 32 on SPARC v8. Larger values go by pointer. The layouts are those of the C headers in `user/libsyscall/include`.

pub mod call;
pub mod record;
pub mod types;

pub use types::{DispatchClaim, Future, Ilet, InfectSignal, MemoryType, ProxyClaim, Signal};
