//! What supervisor and kernel send each other, and what the supervisor leaves for a personality: read whole or not at all, and what was
//! read is read again from what it is written as.

use janua_personality_outside::linux::BootConfig;
use janua_personality_outside::{invasive, l4v2};
use janua_platform_boot::channel::{decode_answer, decode_request, encode_request};

pub fn run(input: &[u8]) {
    let Some((kind, bytes)) = input.split_first() else { return };
    match kind % 5 {
        0 => {
            if let Ok(request) = decode_request(bytes) {
                let written = encode_request(&request).expect("it came in a message");
                assert_eq!(decode_request(&written), Ok(request));
            }
        }
        1 => {
            if let Ok(answer) = decode_answer(bytes) {
                let written = postcard::to_allocvec(&answer).expect("it has been read");
                assert_eq!(decode_answer(&written), Ok(answer));
            }
        }
        2 => {
            if let Ok(config) = BootConfig::decode(bytes) {
                let written = config.encode();
                assert_eq!(BootConfig::decode(&written).map(|again| again.encode()), Ok(written));
            }
        }
        3 => {
            // Without the mark, which nobody guesses.
            let marked = [&invasive::Config::default().encode()[..16], bytes].concat();
            assert!(invasive::Config::is_one(&marked) && !l4v2::Config::is_one(&marked));
            if let Ok(config) = invasive::Config::decode(&marked) {
                assert!(config.tiles >= 1 && (1..=invasive::CORES_MOST).contains(&config.cores));
            }
        }
        _ => {
            let marked = [&l4v2::Config::default().encode()[..16], bytes].concat();
            assert!(l4v2::Config::is_one(&marked) && !invasive::Config::is_one(&marked));
            if let Ok(config) = l4v2::Config::decode(&marked) {
                assert!(config.modules.len() <= l4v2::MODULES_MOST && config.memory <= l4v2::MEMORY_MOST);
            }
        }
    }
}
