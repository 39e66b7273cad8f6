//! The messages between supervisor and kernel: one datagram each.

use alloc::vec::Vec;

use janua_abi::linux::{Errno, Result};
use janua_port::{Answer, Request};

/// Bytes of an encoded request, and of an answer; the host takes more at once.
pub const REQUEST_MOST: usize = 128 << 10;
pub const ANSWER_MOST: usize = 32 << 10;
/// Descriptors that can come with a request.
pub const HANDED_MOST: usize = 8;

/// The bytes of a request. E2BIG when it is too long.
pub fn encode_request(request: &Request) -> Result<Vec<u8>> {
    postcard::to_allocvec(request).ok().filter(|bytes| bytes.len() <= REQUEST_MOST).ok_or(Errno::E2BIG)
}

/// A request from the bytes of a message. EINVAL for what is none, or has something behind it.
pub fn decode_request(bytes: &[u8]) -> Result<Request> {
    whole(bytes)
}

/// An answer from the bytes of a message, likewise.
pub fn decode_answer(bytes: &[u8]) -> Result<Answer> {
    whole(bytes)
}

fn whole<'a, T: serde::Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        _ => Err(Errno::EINVAL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;
    use alloc::vec;
    use janua_port::outside::{GuestInfo, Program};

    #[test]
    fn look_is_one_byte() {
        assert_eq!(postcard::to_allocvec(&Answer::Look).unwrap(), [0]);
    }

    #[test]
    fn answers_are_whole_or_none() {
        let guest = GuestInfo { pid: 2, command: b"sh\0-c\0".to_vec(), ..GuestInfo::default() };
        let answer = Answer::Guests { id: 7, guests: vec![guest], more: false };
        let bytes = postcard::to_allocvec(&answer).unwrap();
        assert_eq!(decode_answer(&bytes), Ok(answer));
        for len in 0..bytes.len() {
            assert_eq!(decode_answer(&bytes[..len]), Err(Errno::EINVAL), "{len} bytes");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(decode_answer(&longer), Err(Errno::EINVAL));
        // A list that claims to have more members than there can be bytes.
        assert_eq!(decode_answer(&[1, 7, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0]), Err(Errno::EINVAL));
    }

    #[test]
    fn requests_are_whole_or_none() {
        let request = Request::Signal { id: 300, signal: 9 };
        let bytes = encode_request(&request).unwrap();
        assert_eq!(decode_request(&bytes), Ok(request));
        assert_eq!(decode_request(&bytes[..bytes.len() - 1]), Err(Errno::EINVAL));
        assert_eq!(decode_request(&[&bytes[..], &[0]].concat()), Err(Errno::EINVAL));
    }

    #[test]
    fn a_request_has_a_bound() {
        let program = |len| Request::Run { id: 2, program: Box::new(Program { path: vec![b'x'; len], ..Program::default() }) };
        assert!(encode_request(&program(100_000)).is_ok());
        assert_eq!(encode_request(&program(REQUEST_MOST)), Err(Errno::E2BIG));
    }
}
