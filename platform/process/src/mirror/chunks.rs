//! The words of a space's pages, by chunks of addresses of which most spaces have few.
//!
//! Looks at neighbours follow one another: the chunk that was met last is at hand. Its place is looked up otherwise, which takes no longer than the
//! logarithm of their number.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cell::Cell;

use janua_paging::PAGE;

use super::Word;

/// Pages of a chunk.
pub const CHUNK_PAGES: usize = 512;
/// Bytes of addresses that a chunk is for.
pub const CHUNK: usize = CHUNK_PAGES * PAGE;
const BITS: usize = u64::BITS as usize;

/// The words of [`CHUNK`] bytes of addresses.
pub struct Chunk {
    words: [Word; CHUNK_PAGES],
    /// Which of them are present: bits.
    present: [u64; CHUNK_PAGES / BITS],
}

impl Chunk {
    const NEW: Chunk = Chunk { words: [Word(0); CHUNK_PAGES], present: [0; CHUNK_PAGES / BITS] };

    /// The first page at or behind this one whose word is present.
    fn next(&self, from: usize) -> Option<usize> {
        let mut at = from / BITS;
        let mut bits = self.present.get(at)? & (u64::MAX << (from % BITS));
        while bits == 0 {
            at += 1;
            bits = *self.present.get(at)?;
        }
        Some(at * BITS + bits.trailing_zeros() as usize)
    }

    /// The words that are present, each with its number.
    pub fn iter(&self) -> impl Iterator<Item = (usize, Word)> {
        core::iter::successors(self.next(0), |at| self.next(at + 1)).map(|at| (at, self.words[at]))
    }
}

/// All of them. None is without a word that is present.
#[derive(Default)]
pub struct Chunks {
    /// Where each is, by the number of its addresses.
    places: BTreeMap<usize, usize>,
    chunks: Vec<Option<Box<Chunk>>>,
    /// Places that are empty.
    free: Vec<usize>,
    /// A chunk that is there, by number and place.
    last: Cell<Option<(usize, usize)>>,
}

impl Chunks {
    /// Where a chunk is.
    fn place(&self, number: usize) -> Option<usize> {
        if let Some((last, place)) = self.last.get()
            && last == number
        {
            return Some(place);
        }
        let place = *self.places.get(&number)?;
        self.last.set(Some((number, place)));
        Some(place)
    }

    fn chunk(&self, number: usize) -> Option<&Chunk> {
        self.chunks.get(self.place(number)?)?.as_deref()
    }

    /// The word of a page.
    pub fn word(&self, addr: usize) -> Word {
        self.chunk(addr / CHUNK).map_or(Word(0), |chunk| chunk.words[addr % CHUNK / PAGE])
    }

    /// Puts the word of a page in place of what it was.
    pub fn put(&mut self, addr: usize, word: Word) {
        let number = addr / CHUNK;
        let place = match self.place(number) {
            Some(place) => place,
            None if !word.is_present() => return,
            None => self.add(number),
        };
        let Some(chunk) = self.chunks[place].as_deref_mut() else { return };
        let at = addr % CHUNK / PAGE;
        chunk.words[at] = word;
        let bit = 1 << (at % BITS);
        if word.is_present() {
            chunk.present[at / BITS] |= bit;
            return;
        }
        chunk.present[at / BITS] &= !bit;
        if chunk.present == [0; CHUNK_PAGES / BITS] {
            self.remove(number, place);
        }
    }

    fn add(&mut self, number: usize) -> usize {
        let chunk = Some(Box::new(Chunk::NEW));
        let place = match self.free.pop() {
            Some(place) => {
                self.chunks[place] = chunk;
                place
            }
            None => {
                self.chunks.push(chunk);
                self.chunks.len() - 1
            }
        };
        self.places.insert(number, place);
        self.last.set(Some((number, place)));
        place
    }

    fn remove(&mut self, number: usize, place: usize) {
        self.places.remove(&number);
        self.last.set(None);
        self.chunks[place] = None;
        self.free.push(place);
        if self.places.is_empty() {
            (self.chunks, self.free) = (Vec::new(), Vec::new());
        }
    }

    /// The first page at or behind an address, and before `end`, whose word is present.
    pub fn next(&self, from: usize, end: usize) -> Option<(usize, Word)> {
        let found = |number: usize, first: usize| {
            let chunk = self.chunk(number)?;
            let at = chunk.next(first)?;
            Some((number * CHUNK + at * PAGE, chunk.words[at]))
        };
        let number = from / CHUNK;
        let met = found(number, from % CHUNK / PAGE).or_else(|| {
            let (next, _) = self.places.range(number + 1..).next()?;
            found(*next, 0)
        });
        met.filter(|(addr, _)| *addr < end)
    }

    /// Each chunk with its number.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Chunk)> {
        self.places.iter().filter_map(|(number, place)| Some((*number, self.chunks[*place].as_deref()?)))
    }

    /// Changes each word.
    pub fn change_all(&mut self, change: impl Fn(Word) -> Word) {
        self.chunks.iter_mut().flatten().for_each(|chunk| chunk.words.iter_mut().for_each(|word| *word = change(*word)));
    }

    /// Whether no word is present.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;

    /// Bytes that no seed repeats: xorshift.
    fn next(seed: &mut u64) -> usize {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed as usize
    }

    #[test]
    fn they_hold_what_a_map_of_pages_would() {
        let (mut chunks, mut model, mut seed) = (Chunks::default(), BTreeMap::new(), 0x9e37_79b9_7f4a_7c15);
        for _ in 0..40_000 {
            // Few chunks, some of them far away, in which few pages are met often.
            let addr = [0, 1, 2, 9, 0x3fff][next(&mut seed) % 5] * CHUNK + next(&mut seed) % 40 * 13 * PAGE % CHUNK;
            let end = addr + next(&mut seed) % 3 * CHUNK;
            match next(&mut seed) % 8 {
                0..3 => {
                    let word = Word(1 | (next(&mut seed) as u64 & 0xffff) << 12);
                    chunks.put(addr, word);
                    model.insert(addr, word.0);
                }
                3..6 => {
                    chunks.put(addr, Word(0));
                    model.remove(&addr);
                }
                6 => {
                    let met = model.range(addr..).next().filter(|(at, _)| **at < end);
                    assert_eq!(chunks.next(addr, end).map(|(at, word)| (at, word.0)), met.map(|(at, word)| (*at, *word)));
                }
                _ => assert_eq!(chunks.word(addr).0, model.get(&addr).copied().unwrap_or(0)),
            }
            assert_eq!(chunks.is_empty(), model.is_empty());
        }
        let all: Vec<_> = chunks
            .iter()
            .flat_map(|(number, chunk)| chunk.iter().map(move |(at, word)| (number * CHUNK + at * PAGE, word.0)))
            .collect();
        assert_eq!(all, model.into_iter().collect::<Vec<_>>());
        let count = chunks.chunks.iter().flatten().count();
        assert_eq!((count, count + chunks.free.len()), (chunks.places.len(), chunks.chunks.len()));
    }

    #[test]
    fn what_maps_nothing_takes_no_memory() {
        let mut chunks = Chunks::default();
        for number in 0..100 {
            chunks.put(number * CHUNK, Word(1));
            chunks.put(number * CHUNK, Word(0));
            assert!(chunks.is_empty() && chunks.chunks.is_empty());
            chunks.put(number * CHUNK, Word(0));
            assert!(chunks.chunks.is_empty(), "what is absent needs no chunk");
        }
    }
}
