//! Random bytes: the crate `rand_chacha`'s ChaCha20, keyed at start from the processor's generator and the time-stamp counter. The key
//! changes with each request, so nobody who reads it later knows what has been given out before.

use janua_arch::x86_64::cpu::rdtsc;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::cpu;
use crate::lock::Mutex;

/// ChaCha's key, 256 bits.
type Key = [u8; 32];

static KEY: Mutex<Key> = Mutex::new([0; 32]);

/// Puts the key's successor in its place, and returns what else that key generates.
fn advance(key: &mut Key) -> ChaCha20Rng {
    let mut generator = ChaCha20Rng::from_seed(*key);
    generator.fill_bytes(key);
    generator
}

/// Mixes a word into the key.
fn stir(key: &mut Key, word: u64) {
    for (byte, more) in key.iter_mut().zip(word.to_le_bytes()) {
        *byte ^= more;
    }
    advance(key);
}

/// Keys the generator. Without a processor's generator only times vary it.
pub fn init() {
    let mut key = KEY.lock();
    for _ in 0..32 {
        stir(&mut key, cpu::rdrand().unwrap_or_default());
        stir(&mut key, rdtsc());
    }
}

/// Fills with random bytes.
pub fn fill(out: &mut [u8]) {
    let mut key = KEY.lock();
    stir(&mut key, rdtsc());
    advance(&mut key).fill_bytes(out);
}
