//! Descriptors of L4's messages, and the flexpages in them.

use janua_abi::l4v2::fpage::{Fpage, window};
use janua_abi::l4v2::message::{Amount, Into, NONE, Receive, STRINGS_MOST, Send};

use crate::bytes::Bytes;

pub fn run(input: &[u8]) {
    let mut words = Bytes(input);
    while !words.is_empty() {
        let [send, receive, dope, sent, received, base] = [(); 6].map(|()| words.word());
        assert_eq!(Send::of(send).is_none(), send == NONE);
        if let Some(Send { buffer: Some(buffer), .. }) = Send::of(send) {
            assert!(buffer != 0 && buffer % 4 == 0);
        }
        assert_eq!(Receive::of(receive).is_none(), receive == NONE);
        match Receive::of(receive).map(|receive| receive.into) {
            Some(Into::Buffer(buffer)) => assert!(buffer != 0 && buffer % 4 == 0),
            // The window is checked like that of a buffer, below.
            Some(Into::Window(page)) => check(Fpage(sent), page, base),
            Some(Into::Words) | None => {}
        }
        let amount = Amount::of(dope);
        assert!(amount.strings <= STRINGS_MOST && Amount::of(amount.dope()) == amount);
        check(Fpage(sent), Fpage(received), base);
    }
}

/// Nothing is mapped outside of what was sent, or of what was to be received.
fn check(sent: Fpage, received: Fpage, base: u32) {
    let (Some(from), Some(to)) = (sent.range(), received.range()) else {
        return assert_eq!(window(sent, received, base), None);
    };
    assert!(from.end <= 1 << 32 && to.end <= 1 << 32);
    let window = window(sent, received, base).expect("both are there");
    assert!(window.len > 0 && [window.source, window.target, window.len].iter().all(|number| number % 4096 == 0));
    assert!(window.source >= from.start && window.source + window.len <= from.end);
    assert!(window.target >= to.start && window.target + window.len <= to.end);
}
