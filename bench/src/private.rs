//! Directories to work in, below those that all users share.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::Failure;

/// Names that are tried.
const TRIES: u32 = 16;

/// A new directory, of this user's alone, whose name begins so. It is never one that is there already: that could be another user's, with links in
/// it that lead elsewhere.
pub fn directory(above: &Path, name: &str) -> Result<PathBuf, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    let mut last = above.to_path_buf();
    for at in 0..TRIES {
        last = above.join(format!("{name}-{}-{:x}", std::process::id(), now.wrapping_add(at)));
        match DirBuilder::new().mode(0o700).create(&last) {
            Ok(()) => return Ok(last),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Failure::new(format!("cannot make {}: {error}", last.display())),
        }
    }
    Failure::new(format!("cannot make {}: names like this are all taken", last.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn it_is_new_and_closed_to_others() {
        let above = std::env::temp_dir();
        let [one, two] = [(); 2].map(|()| super::directory(&above, "janua-private-test").unwrap());
        assert_ne!(one, two);
        for dir in [one, two] {
            assert_eq!(dir.metadata().unwrap().mode() & 0o7777, 0o700);
            std::fs::remove_dir(dir).unwrap();
        }
        assert!(super::directory(&above.join("no/such"), "x").is_err());
    }
}
