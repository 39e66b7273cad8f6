//! Addresses and control messages of sockets, and programs of socket filters.

use std::sync::OnceLock;

use janua_abi::linux::net::{SockFilter, af};
use janua_object::net::addr::{SockAddr, UnixName};
use janua_object::net::control::{self, Control, Words};
use janua_object::net::filter::{Filter, Packet};
use janua_platform_model::{Model, Settings};
use zerocopy::FromBytes;

pub fn run(input: &[u8]) {
    let Some((kind, bytes)) = input.split_first() else { return };
    match kind % 4 {
        0 => address(bytes),
        1 => control_messages(bytes, Words::Wide),
        2 => control_messages(bytes, Words::Narrow),
        _ => filter(bytes),
    }
}

fn address(bytes: &[u8]) {
    let Ok(addr) = SockAddr::decode(bytes) else { return };
    assert_eq!(addr.family(), u16::from_ne_bytes([bytes[0], bytes[1]]));
    let raw = addr.encode();
    // The longest path has no room for a NUL where a program names it, and gets one where it is returned (unix(7)).
    if matches!(&addr, SockAddr::Unix(UnixName::Path(path)) if path.len() == 108) {
        return assert_eq!(raw.as_bytes().len(), bytes.len() + 1);
    }
    assert_eq!(SockAddr::decode(raw.as_bytes()), Ok(addr), "{:?}", raw.as_bytes());
}

fn control_messages(bytes: &[u8], words: Words) {
    let Ok(list) = control::parse(bytes, words) else { return };
    let mut copy = Control::new(bytes.len() + 16, words);
    for message in &list {
        copy.add(message.level, message.kind, &message.data);
    }
    assert!(!copy.truncated);
    assert_eq!(control::parse(copy.as_bytes(), words), Ok(list.clone()));
    // With less room nothing is written beyond it.
    for room in 0..bytes.len().min(64) {
        let mut cut = Control::new(room, words);
        list.iter().for_each(|message| cut.add(message.level, message.kind, &message.data));
        assert!(cut.as_bytes().len() <= room);
    }
}

fn filter(bytes: &[u8]) {
    static MODEL: OnceLock<&'static Model> = OnceLock::new();
    let (head, code) = bytes.split_at(bytes.len().min(24));
    let code: Vec<SockFilter> = code.chunks_exact(8).filter_map(|part| SockFilter::read_from_bytes(part).ok()).collect();
    let Ok(filter) = Filter::new(code, *MODEL.get_or_init(|| Model::new(Settings::default()))) else { return };
    for network in [&[][..], &head[..head.len() / 2]] {
        let packet = Packet { head, data: bytes, network, protocol: 0x800, interface: Some((1, af::UNIX)) };
        // It ends: a program that may run for ever is refused.
        filter.run(&packet);
    }
}
