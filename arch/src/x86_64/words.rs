//! Functions of the words of a call, as an entry calls them that has the words in registers.

use core::pin::Pin;

/// A function of a call's six words, in the registers where they come, and of a last argument behind them. As a C function it finds them there.
#[allow(improper_ctypes_definitions, reason = "the last argument is only handed on")]
pub type WordsFn<T, R> = extern "C" fn(usize, usize, usize, usize, usize, usize, Pin<&T>) -> R;

/// Calls one.
#[inline]
pub fn call<T, R>(function: WordsFn<T, R>, [a, b, c, d, e, f]: [usize; 6], last: Pin<&T>) -> R {
    function(a, b, c, d, e, f, last)
}

/// Defines a [`WordsFn`]: `words_fn!(words, last: Pin<&T> => R { ... })`.
#[macro_export]
#[rustfmt::skip]
macro_rules! words_fn {
    ($words:ident, $last:ident: $t:ty => $r:ty $body:block) => {{
        #[allow(improper_ctypes_definitions, reason = "the last argument is only handed on")]
        extern "C" fn run(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize, $last: $t) -> $r {
            let $words: [usize; 6] = [a, b, c, d, e, f];
            $body
        }
        run
    }};
}
