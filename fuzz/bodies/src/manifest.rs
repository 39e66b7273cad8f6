//! Manifests of the personality `pal`, and what is wrong with them.

use janua_personality_outside::pal::manifest::{MOST, Manifest};

pub fn run(input: &[u8]) {
    match Manifest::parse(input) {
        Ok(manifest) => {
            assert!(input.len() <= MOST);
            assert!(manifest.mounts.iter().all(|mount| !mount.kind.is_empty() && !mount.path.is_empty()));
            assert!(manifest.env.iter().all(|entry| entry.contains('=')));
            for rule in &manifest.net {
                assert!(rule.bind.ports.0 <= rule.bind.ports.1 && rule.peer.ports.0 <= rule.peer.ports.1);
            }
        }
        Err(why) => assert_eq!(why.lines().count(), 1, "{why:?}"),
    }
}
