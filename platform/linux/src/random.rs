//! Random bytes from the host, fetched ahead: a few are asked for at each exec, and by programs.

use crate::lock::Mutex;
use crate::machine;
use crate::sys::{self, nr};

/// Bytes fetched at a time.
const AHEAD: usize = 512;
/// Requests up to this size are served from what was fetched ahead.
const SMALL: usize = 64;

struct Pool {
    bytes: [u8; AHEAD],
    /// The last so many are unused.
    left: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { bytes: [0; AHEAD], left: 0 });

/// Fills the slice with random bytes. Each is used once and forgotten; all processes of the sandbox share the pool, so a fork
/// does not repeat any.
pub fn fill(out: &mut [u8]) {
    if out.len() > SMALL {
        return fetch(out);
    }
    let mut pool = POOL.lock();
    if pool.left < out.len() {
        fetch(&mut pool.bytes);
        pool.left = AHEAD;
    }
    let start = AHEAD - pool.left;
    let taken = &mut pool.bytes[start..start + out.len()];
    out.copy_from_slice(taken);
    taken.fill(0);
    pool.left -= out.len();
}

fn fetch(out: &mut [u8]) {
    let mut done = 0;
    while done < out.len() {
        let rest = &mut out[done..];
        // SAFETY: the slice is ours.
        match unsafe { sys::raw_retry(nr::GETRANDOM, [rest.as_mut_ptr() as usize, rest.len(), 0, 0, 0, 0]) } {
            Ok(n) => done += n,
            Err(_) => {
                // Nothing can be done without, and going on with what is there would be worse.
                sys::write_all(2, b"janua: the host gives no random bytes\n");
                machine::stop_sandbox(125)
            }
        }
    }
}
