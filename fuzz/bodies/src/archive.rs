//! Archives: that of a boot loader's module, and the entries of any.

use janua_personality_outside::archive::{self, Entry};

pub fn run(input: &[u8]) {
    if let Some((config, tree)) = archive::split(input) {
        assert!(config.len() + tree.len() < input.len());
    }
    let mut at = 0;
    loop {
        let before = at;
        let Ok(entry) = archive::next(input, &mut at) else { return };
        assert!(at >= before + archive::HEADER, "no progress");
        let Some(entry) = entry else { return };
        write_and_read(&entry);
        if at > input.len() {
            // The padding of the last one may be cut off.
            return assert!(archive::next(input, &mut at).is_err());
        }
    }
}

/// What has been read can be written, and is read again as the same.
fn write_and_read(entry: &Entry<'_>) {
    let mut written = Vec::new();
    archive::push(&mut written, entry);
    let read = archive::next(&written, &mut 0);
    // A name may begin with "./" twice, of which reading takes one away.
    if !entry.name.starts_with(b"./") && entry.name != b"TRAILER!!!" {
        assert_eq!(read, Ok(Some(*entry)));
    }
}
