//! Paged address spaces: regions, demand paging, copy on write, memory objects, fork.
//!
//! What differs between machines is behind two traits: [`Frames`] is physical memory, [`Table`] is where an entry is
//! installed (a mapping in a traced process, say). A processor's tables are a [`tree::Tree`], of which the processor's [`format`]
//! defines what an entry is. Everything else is the same everywhere and holds no `unsafe`.
//!
//! Lock order: a [`Space`] before an [`Object`] before the frames. [`Object::truncate`] lets go of the object before it asks
//! the spaces that map it to forget the pages.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod capability;
pub mod format;
pub mod frames;
pub mod object;
#[cfg(test)]
#[path = "../../test/random.rs"]
mod random;
#[cfg(test)]
mod random_tests;
pub mod region;
pub mod report;
pub mod space;
pub mod table;
#[cfg(test)]
mod tests;
pub mod tree;
#[cfg(test)]
mod tree_tests;
pub mod user;
#[cfg(test)]
mod world;

pub use frames::{Frames, PageFrame};
pub use janua_port::PAGE;
pub use object::{Missing, Object};
pub use region::{AtFork, Behind};
pub use report::{PageKind, Report};
pub use space::{Access, Refused, Space};
pub use table::{Entry, Table};
pub use user::{Platform, UserSpace};
