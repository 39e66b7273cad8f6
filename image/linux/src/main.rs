//! The linux kernel image.
fn main() {}
