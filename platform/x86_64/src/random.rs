//! Random bytes: ChaCha20 (RFC 8439) keyed at start from the processor's generator and the time-stamp counter; the key changes
//! after each request.

use janua_arch::x86_64::cpu::rdtsc;

use crate::cpu;
use crate::lock::Mutex;

static STATE: Mutex<[u32; 8]> = Mutex::new([0; 8]);

fn quarter(s: &mut [u32; 16], a: usize, b: usize, c: usize, d: usize) {
    for (x, y, z, turn) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)] {
        s[x] = s[x].wrapping_add(s[y]);
        s[z] = (s[z] ^ s[x]).rotate_left(turn);
    }
}

fn block(key: &[u32; 8], counter: u32) -> [u8; 64] {
    let mut start = [0u32; 16];
    start[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
    start[4..12].copy_from_slice(key);
    start[12] = counter;
    let mut s = start;
    for _ in 0..10 {
        for column in 0..4 {
            quarter(&mut s, column, column + 4, column + 8, column + 12);
        }
        for diagonal in 0..4 {
            quarter(&mut s, diagonal, 4 + (diagonal + 1) % 4, 8 + (diagonal + 2) % 4, 12 + (diagonal + 3) % 4);
        }
    }
    let mut out = [0; 64];
    for ((word, add), bytes) in s.iter().zip(start).zip(out.chunks_exact_mut(4)) {
        bytes.copy_from_slice(&word.wrapping_add(add).to_le_bytes());
    }
    out
}

/// Mixes a word into the key.
fn stir(key: &mut [u32; 8], word: u64) {
    key[0] ^= word as u32;
    key[1] ^= (word >> 32) as u32;
    rekey(key, 0);
}

fn rekey(key: &mut [u32; 8], counter: u32) {
    let next = block(key, counter);
    for (word, bytes) in key.iter_mut().zip(next.chunks_exact(4)) {
        *word = u32::from_le_bytes(bytes.try_into().unwrap_or_default());
    }
}

/// Keys the generator. Without a processor's generator only times vary it.
pub fn init() {
    let mut key = STATE.lock();
    for _ in 0..32 {
        stir(&mut key, cpu::rdrand().unwrap_or_default());
        stir(&mut key, rdtsc());
    }
}

/// Fills with random bytes.
pub fn fill(out: &mut [u8]) {
    let mut key = STATE.lock();
    stir(&mut key, rdtsc());
    for (counter, chunk) in (1..).zip(out.chunks_mut(64)) {
        chunk.copy_from_slice(&block(&key, counter)[..chunk.len()]);
    }
    rekey(&mut key, 0);
}
