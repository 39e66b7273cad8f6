//! A kernel's monitor beside a tile that writes what it likes into the memory they share, and beside one that keeps to the protocol.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use janua_kernel::tiles::{Channel, Message, Monitor, Offer};
use janua_platform_model::tiles::tiles;
use janua_platform_model::{Model, Settings};
use janua_port::tiles::{CHANNELS, WINDOW};
use janua_port::{Link, Machine};
use janua_rt::channel::{Endpoint, MESSAGE_MOST, Piece, WHOLE};

use crate::bytes::Bytes;

const INTERFACE: u32 = 1;
const HOSTILE: u32 = 1;
const HONEST: u32 = 2;

#[derive(Default)]
struct Kept(Mutex<Vec<Channel>>);

impl Offer for Kept {
    fn bound(&self, channel: Channel) {
        self.0.lock().unwrap().push(channel);
    }
}

/// The input: a byte for the order of events, then steps of the hostile tile and of who uses channels to it.
pub fn run(input: &[u8]) {
    let mut bytes = Bytes(input);
    let model = Model::new(Settings { seed: bytes.byte().into(), frames: 1, ..Settings::default() });
    let all = tiles(3);
    let link = all[0].link(HOSTILE).expect("a link for each other tile");
    let own = Monitor::new(model, &*all[0]);
    let honest = Monitor::new(model, &*all[HONEST as usize]);
    let kept = Arc::new(Kept::default());
    for monitor in [&own, &honest] {
        monitor.offer(INTERFACE, kept.clone()).expect("nobody else offers it");
        monitor.start().expect("the model has threads");
    }
    let mut hostile = Endpoint::new(&link.channels[0], 1);
    let mut asked = Vec::new();
    let mut came = Vec::new();
    while !bytes.is_empty() {
        match bytes.below(10) {
            0..4 => declare(&mut bytes, &mut hostile),
            4 => write(&mut bytes, link),
            5 => drop(hostile.receive(&mut [0; 7])),
            6 => asked.extend(own.bind(HOSTILE, INTERFACE)),
            7 => drop(own.ping(HOSTILE)),
            8 => use_one(&mut bytes, &mut kept.0.lock().unwrap(), &mut came),
            _ => drop(asked.pop()),
        }
        link.bells[0].0.store(bytes.byte().into(), Ordering::SeqCst);
        model.park().unpark(&link.bells[0].0, 1);
        // One that the hostile tile rings again and again sleeps as little as it likes.
        model.run_for(20);
    }
    // What it has done is nobody else's affair.
    let answer = own.bind(HONEST, INTERFACE).expect("a tile that goes on");
    model.run_for(2000);
    assert!(matches!(answer.take(), Some(Ok(_))), "the other tile does not answer");
    model.end_threads();
}

/// A message that a monitor could send, or nearly.
fn declare(bytes: &mut Bytes<'_>, end: &mut Endpoint) {
    let channel = bytes.below(CHANNELS as u64 + 2) as usize;
    let message = match bytes.below(7) {
        0 => Message::Ping { token: bytes.byte().into() },
        1 => Message::Pong { token: bytes.below(4) },
        2 => Message::Bind { channel, interface: bytes.below(3) as u32 },
        3 => Message::Bound { channel },
        4 => Message::Refused { channel },
        5 => Message::Unbind { channel },
        _ => Message::Farewell,
    };
    let mut words = message.encode();
    if bytes.below(16) == 0 {
        words[bytes.below(7) as usize] = bytes.long();
    }
    let piece = if bytes.below(32) == 0 { Piece { bytes: bytes.byte() & 63, more: bytes.below(2) != 0 } } else { WHOLE };
    let _ = end.send(&words, piece);
}

/// Any word of the memory, or a header that fits.
fn write(bytes: &mut Bytes<'_>, link: &Link) {
    let lane = &link.channels[bytes.below(CHANNELS as u64) as usize][bytes.below(2) as usize];
    let at = bytes.below(WINDOW as u64 + 1) as usize;
    let line = lane.lines.get(at).unwrap_or(&lane.taken);
    match bytes.below(2) {
        0 => line.0[bytes.below(8) as usize].store(bytes.long(), Ordering::SeqCst),
        _ => {
            line.0[7].store(bytes.below(2) | bytes.below(57) << 2 | (at as u64) << 8 | bytes.below(40) << 16, Ordering::SeqCst)
        }
    }
}

/// The kernel's own use of one of its channels.
fn use_one(bytes: &mut Bytes<'_>, kept: &mut Vec<Channel>, came: &mut Vec<u8>) {
    let Some(at) = bytes.below(256).checked_rem(kept.len() as u64) else { return };
    let channel = &kept[at as usize];
    match bytes.below(3) {
        0 => drop(channel.send(&vec![1; bytes.below(0x1001) as usize])),
        1 => {
            came.clear();
            let _ = channel.receive(came);
            assert!(came.len() <= MESSAGE_MOST, "a message longer than any");
        }
        _ => drop(kept.swap_remove(at as usize)),
    }
}
