//! DkProcessSandboxCreate: the way under further rules, from which there is none back.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use janua_abi::pal::{Error, SANDBOX_PIPE};
use janua_kernel::UserStr;
use janua_personality_linux::Thread;
use janua_personality_outside::pal::manifest::{MOST, Manifest};

use crate::answer::{Reply, reply};
use crate::state::{self, Rules};
use crate::stream;
use crate::uri::Uri;

/// Most manifests a picoprocess is under.
const DEEPEST: usize = 16;

/// Puts the caller under the rules of one more manifest: what it may do is what all of them allow. With a flag the names of its pipes are its own from
/// now on.
pub fn create(thread: &Thread, uri: UserStr, flags: u32) -> Reply {
    reply(|| {
        let state = state::of(thread)?;
        if flags & !SANDBOX_PIPE != 0 {
            return Err(Error::Invalid.into());
        }
        let Uri::File(path) = Uri::of(thread, uri)? else { return Err(Error::Invalid.into()) };
        let file = stream::open_file(thread, &state, &path, false, stream::TO_READ)?;
        let text = stream::read_whole(thread, &file, MOST)?;
        let manifest = Manifest::parse(&text).map_err(|_| Error::Invalid)?;
        let mut rules = state.rules.write();
        if rules.len() == DEEPEST {
            return Err(Error::Denied.into());
        }
        let more: Vec<_> = rules.iter().cloned().chain([Arc::new(manifest)]).collect();
        *rules = Rules::from(more);
        drop(rules);
        if flags & SANDBOX_PIPE != 0 {
            state.group.store(state::random(thread.machine()), Ordering::Relaxed);
        }
        Ok(0)
    })
}
