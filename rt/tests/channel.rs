//! Message channels: what both sides see of each other in any order of turns, and what becomes of a side whose other side forges.
#![cfg(not(loom))]

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::thread;

use janua_port::tiles::{Lane, WINDOW};
use janua_rt::channel::{Broken, Endpoint, LINE_BYTES, MESSAGE_MOST, Piece, Unsent, WHOLE, WORDS};

/// Numbers from a seed (xorshift64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

fn memory() -> &'static [Lane; 2] {
    Box::leak(Box::default())
}

fn pair() -> (&'static [Lane; 2], Endpoint, Endpoint) {
    let lanes = memory();
    (lanes, Endpoint::new(lanes, 0), Endpoint::new(lanes, 1))
}

/// The words of the n-th message.
fn words(number: u64) -> [u64; WORDS] {
    std::array::from_fn(|at| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(at as u32 * 9))
}

fn take(end: &mut Endpoint) -> Option<[u64; WORDS]> {
    let mut found = [0; WORDS];
    end.receive(&mut found).unwrap().map(|piece| {
        assert_eq!(piece, WHOLE);
        found
    })
}

/// The header of the line with this number, as an honest writer makes it.
fn header(line: u64, taken: u64) -> u64 {
    (line / WINDOW as u64 + 1) & 1 | 56 << 2 | (line & 0xff) << 8 | taken << 16
}

fn forge(lanes: &[Lane; 2], lane: usize, line: u64, header: u64) {
    lanes[lane].lines[line as usize % WINDOW].0[7].store(header, Ordering::Release);
}

#[test]
fn the_window_is_full_at_32_and_opens_with_an_acknowledgement() {
    let (_, mut one, mut other) = pair();
    for round in 0..5 {
        let first = one.room().unwrap();
        assert_eq!(first, WINDOW, "round {round}");
        for number in 0..WINDOW as u64 {
            one.send(&words(number), WHOLE).unwrap();
        }
        assert_eq!(one.send(&words(0), WHOLE), Err(Unsent::Full));
        // Half a window less one: nothing is owed yet.
        for number in 0..WINDOW as u64 / 2 - 1 {
            assert_eq!(take(&mut other), Some(words(number)));
        }
        assert_eq!(one.send(&words(0), WHOLE), Err(Unsent::Full));
        for number in WINDOW as u64 / 2 - 1..WINDOW as u64 {
            assert_eq!(take(&mut other), Some(words(number)));
        }
        assert_eq!(take(&mut other), None, "the epoch shows that what is there is of the last round");
    }
}

#[test]
fn an_acknowledgement_rides_on_a_message_the_other_way() {
    let (_, mut one, mut other) = pair();
    for number in 0..WINDOW as u64 {
        one.send(&words(number), WHOLE).unwrap();
    }
    for number in 0..3 {
        assert_eq!(take(&mut other), Some(words(number)));
    }
    other.send(&words(9), WHOLE).unwrap();
    assert_eq!(one.send(&words(0), WHOLE), Err(Unsent::Full));
    assert_eq!(take(&mut one), Some(words(9)));
    for number in 0..3 {
        one.send(&words(number), WHOLE).unwrap();
    }
    assert_eq!(one.send(&words(0), WHOLE), Err(Unsent::Full));
}

/// An acknowledgement that is older than what is known is no lie: it may have waited in its line while counts went by it.
#[test]
fn an_old_acknowledgement_is_passed_over() {
    let (_, mut one, mut other) = pair();
    other.send(&words(1), WHOLE).unwrap();
    for number in 0..10 * WINDOW as u64 {
        one.send(&words(number), WHOLE).unwrap();
        assert_eq!(take(&mut other), Some(words(number)));
    }
    assert_eq!(take(&mut one), Some(words(1)));
    assert!(one.room().unwrap() > WINDOW / 2);
}

#[test]
fn messages_of_every_length_arrive_whole() {
    let (_, mut one, mut other) = pair();
    let mut random = Random(7);
    let near = |at: usize| [at.saturating_sub(1), at, at + 1];
    let lengths = (0..200).chain([8, LINE_BYTES, 2 * LINE_BYTES, WINDOW * LINE_BYTES].into_iter().flat_map(near));
    for length in lengths.chain([MESSAGE_MOST - 1, MESSAGE_MOST]) {
        let message: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        let (mut sent, mut came) = (0, Vec::new());
        let mut turns = 0;
        loop {
            let whole = match one.send_bytes(&message, &mut sent) {
                Ok(()) => true,
                Err(why) => {
                    assert_eq!(why, Unsent::Full);
                    false
                }
            };
            assert_eq!(other.receive_bytes(&mut came).unwrap(), whole);
            if whole {
                break;
            }
            turns += 1;
            assert!(turns < 10, "{length} bytes do not get through");
        }
        assert_eq!(came, message, "{length} bytes");
    }
    assert_eq!(one.send_bytes(&vec![0; MESSAGE_MOST + 1], &mut 0), Err(Unsent::Length));
    assert_eq!(one.send_bytes(&[1], &mut 0), Ok(()), "one that is too long does the channel no harm");
}

/// Both sides in any order: what one sends the other receives, in order, once; where there is no room there are as many under way as the
/// acknowledgements allow for.
#[test]
fn any_order_of_turns_keeps_order_and_loses_nothing() {
    for seed in 1..=40 {
        let (_, one, other) = pair();
        let mut ends = [one, other];
        let mut under_way = [VecDeque::new(), VecDeque::new()];
        let mut random = Random(seed);
        for number in 0..5000 {
            let side = random.below(2);
            if random.below(2) == 0 {
                match ends[side].send(&words(number), WHOLE) {
                    Ok(()) => under_way[side].push_back(number),
                    Err(why) => {
                        assert_eq!(why, Unsent::Full);
                        assert!(under_way[side].len() > WINDOW / 2, "half of a window that has been read stays closed");
                    }
                }
                assert!(under_way[side].len() <= WINDOW);
            } else {
                assert_eq!(take(&mut ends[side]), under_way[1 - side].pop_front().map(words), "seed {seed}, turn {number}");
            }
        }
    }
}

/// Two threads, both ways at once: no line is read before it is whole, or after it has been written over.
#[test]
fn threads_read_no_torn_line() {
    const COUNT: u64 = 200_000;
    let (_, one, other) = pair();
    let turn = |mut end: Endpoint| {
        move || {
            let (mut sent, mut come) = (0, 0);
            while sent < COUNT || come < COUNT {
                while sent < COUNT && end.send(&words(sent), WHOLE).is_ok() {
                    sent += 1;
                }
                match take(&mut end) {
                    Some(found) => {
                        assert_eq!(found, words(come));
                        come += 1;
                    }
                    None => thread::yield_now(),
                }
            }
        }
    };
    let threads = [thread::spawn(turn(one)), thread::spawn(turn(other))];
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn each_lie_breaks_the_channel_and_has_its_name() {
    let short_with_more = header(0, 0) & !(0x3f << 2) | 9 << 2 | 2;
    let forged = [
        (header(0, 0) | 0x3f << 2, Broken::Header),
        (short_with_more, Broken::Header),
        (header(0, 0) | 1 << 8, Broken::Sequence),
        (header(0, 0) | 0x80 << 8, Broken::Sequence),
        (header(0, 3), Broken::Acknowledgement),
        (header(0, 1 << 40), Broken::Acknowledgement),
    ];
    for (lie, name) in forged {
        let (lanes, mut one, mut other) = pair();
        one.send(&words(0), WHOLE).unwrap();
        one.send(&words(1), WHOLE).unwrap();
        forge(lanes, 1, 0, lie);
        let mut found = [0; WORDS];
        assert_eq!(one.receive(&mut found), Err(name), "{lie:#x}");
        // For good, and for this side alone: what it has sent is there.
        forge(lanes, 1, 0, header(0, 0));
        assert_eq!(one.receive(&mut found), Err(name));
        assert_eq!(one.send(&words(2), WHOLE), Err(Unsent::Broken(name)));
        assert_eq!(one.room(), Err(name));
        assert_eq!(one.broken(), Some(name));
        assert_eq!(take(&mut other), Some(words(0)));
    }
}

#[test]
fn a_count_of_lines_never_sent_breaks_the_channel() {
    for lie in [WINDOW as u64 + 1, u64::MAX >> 1] {
        let (lanes, mut one, _) = pair();
        for number in 0..WINDOW as u64 {
            one.send(&words(number), WHOLE).unwrap();
        }
        lanes[0].taken.0[0].store(lie, Ordering::Release);
        assert_eq!(one.send(&words(0), WHOLE), Err(Unsent::Broken(Broken::Acknowledgement)), "{lie:#x}");
    }
}

#[test]
fn a_message_without_an_end_breaks_the_channel() {
    let (_, mut one, mut other) = pair();
    let mut came = Vec::new();
    let endless = Piece { bytes: LINE_BYTES as u8, more: true };
    for _ in 0..MESSAGE_MOST / LINE_BYTES {
        one.send(&words(0), endless).unwrap();
        assert_eq!(other.receive_bytes(&mut came), Ok(false));
    }
    one.send(&words(0), endless).unwrap();
    assert_eq!(other.receive_bytes(&mut came), Err(Broken::Length));
    assert!(came.len() <= MESSAGE_MOST);
}

/// Whatever is written into the lanes, at whatever time: a side receives no more than there are lines, nothing panics, and what is broken stays so.
#[test]
fn forged_lanes_do_no_harm() {
    let mut broken = 0;
    for seed in 1..=2000 {
        let (lanes, mut one, mut other) = pair();
        let mut random = Random(seed);
        let mut came = Vec::new();
        for _ in 0..200 {
            match random.below(8) {
                0 => forge(lanes, 1, random.next(), random.next()),
                // Nearly right.
                1 => forge(lanes, 1, random.next(), header(random.next() % 64, random.next() % 40)),
                2 => lanes[0].taken.0[0].store(random.next() >> random.below(64), Ordering::Release),
                3 => lanes[1].lines[random.below(WINDOW)].0[random.below(8)].store(random.next(), Ordering::Release),
                4 => drop(other.send(&words(seed), WHOLE)),
                5 => drop(one.send_bytes(&[7; 300], &mut random.below(400))),
                _ => {
                    let before = one.broken();
                    came.clear();
                    let got = one.receive_bytes(&mut came);
                    assert!(came.len() <= MESSAGE_MOST);
                    if let Some(why) = before {
                        assert_eq!(got, Err(why));
                    }
                }
            }
        }
        broken += usize::from(one.broken().is_some());
    }
    assert!(broken > 1000, "only {broken} of 2000 noticed");
}

/// A side that is made anew over used memory begins with empty lanes.
#[test]
fn a_new_pair_over_old_memory_sees_nothing_of_the_old() {
    let (lanes, mut one, mut other) = pair();
    for number in 0..WINDOW as u64 + 5 {
        one.send(&words(number), WHOLE).unwrap();
        take(&mut other).unwrap();
    }
    other.send(&words(0), WHOLE).unwrap();
    let (mut one, mut other) = (Endpoint::new(lanes, 0), Endpoint::new(lanes, 1));
    assert_eq!((take(&mut one), take(&mut other)), (None, None));
    assert_eq!(one.room(), Ok(WINDOW));
    one.send(&words(3), WHOLE).unwrap();
    assert_eq!(take(&mut other), Some(words(3)));
}
