//! Monitors of kernels beside each other: binding, unbinding, full windows, and tiles that end or lie.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use janua_abi::linux::{Errno, Result};
use janua_kernel::tiles::{Answer, Channel, Message, Monitor, Offer, PINGS_MOST};
use janua_platform_model::tiles::tiles;
use janua_platform_model::{Model, Settings};
use janua_port::machine::Outside;
use janua_port::tiles::{CHANNELS, WINDOW};
use janua_port::{Link, Machine};
use janua_rt::channel::{Endpoint, MESSAGE_MOST, Piece, WHOLE};

const ECHO: u32 = 7;
const KEEP: u32 = 8;

/// Keeps the channels that are bound.
#[derive(Default)]
struct Kept(Mutex<Vec<Channel>>);

impl Offer for Kept {
    fn bound(&self, channel: Channel) {
        self.0.lock().unwrap().push(channel);
    }
}

/// Answers each message with the same, on a thread of its own for each channel, and ends with its channel.
struct Echo(&'static Model);

impl Offer for Echo {
    fn bound(&self, channel: Channel) {
        let model = self.0;
        let body = move || {
            while let Ok(message) = receive(model, &channel) {
                until(model, || match channel.send(&message) {
                    Err(Errno::EAGAIN) => None,
                    sent => Some(sent),
                })
                .ok();
            }
        };
        model.spawn_kernel("echo", Box::new(body)).unwrap();
    }
}

/// Sleeps a thread of a kernel's own until the test has a result.
fn until<T>(model: &'static Model, mut test: impl FnMut() -> Option<T>) -> T {
    let never = AtomicU32::new(0);
    loop {
        if let Some(result) = test() {
            return result;
        }
        model.park().park(&never, 0, Some(model.clock().monotonic() + 1000));
    }
}

fn wait<T>(model: &'static Model, answer: Result<Arc<Answer<T>>>) -> Result<T> {
    let answer = answer?;
    until(model, || answer.take())
}

fn receive(model: &'static Model, channel: &Channel) -> Result<Vec<u8>> {
    let mut into = Vec::new();
    until(model, || match channel.receive(&mut into) {
        Ok(true) => Some(Ok(())),
        Ok(false) => None,
        Err(why) => Some(Err(why)),
    })?;
    Ok(into)
}

/// A machine with so many tiles, whose monitors listen if they are among these.
fn start(count: u32, seed: u64, listen: &[u32]) -> (&'static Model, Vec<Arc<Monitor>>, Vec<Option<&'static Link>>) {
    let model = Model::new(Settings { seed, ..Settings::default() });
    let all = tiles(count);
    let links = (0..count).map(|peer| all[0].link(peer)).collect();
    let monitors: Vec<_> = all.iter().map(|tiles| Monitor::new(model, &**tiles)).collect();
    for (number, monitor) in monitors.iter().enumerate() {
        if listen.contains(&(number as u32)) {
            monitor.start().unwrap();
        }
        if number + 1 < monitors.len() {
            model.next_kernel();
        }
    }
    (model, monitors, links)
}

/// Runs a body as a thread of the machine's until it is over.
fn run(model: &'static Model, body: impl FnOnce() + Send + 'static) {
    let done = Arc::new(AtomicU32::new(0));
    let mark = done.clone();
    let body = move || {
        body();
        mark.store(1, Ordering::SeqCst);
    };
    model.spawn_kernel("test", Box::new(body)).unwrap();
    model.run_for(300_000);
    assert_eq!(done.load(Ordering::SeqCst), 1, "it hangs");
}

#[test]
fn a_channel_is_bound_used_and_unbound_and_serves_again() {
    for seed in 1..=20 {
        let (model, monitors, _) = start(2, seed, &[0, 1]);
        monitors[1].offer(ECHO, Arc::new(Echo(model))).unwrap();
        assert_eq!(monitors[1].offer(ECHO, Arc::new(Echo(model))).err(), Some(Errno::EEXIST));
        let monitor = monitors[0].clone();
        run(model, move || {
            // More often than there are channels.
            for round in 0..2 * CHANNELS {
                let channel = wait(model, monitor.bind(1, ECHO)).unwrap();
                assert_eq!(channel.peer(), 1);
                for length in [0, 1, 56, 57, 3000, MESSAGE_MOST] {
                    let message = vec![round as u8; length];
                    channel.send(&message).unwrap();
                    assert_eq!(receive(model, &channel), Ok(message));
                }
                assert_eq!(channel.send(&vec![0; MESSAGE_MOST + 1]), Err(Errno::EMSGSIZE));
            }
            assert_eq!(wait(model, monitor.bind(1, KEEP)).err(), Some(Errno::ECONNREFUSED));
            assert_eq!(wait(model, monitor.ping(1)), Ok(()));
            for no_tile in [0, 2, u32::MAX] {
                assert_eq!(monitor.bind(no_tile, ECHO).err(), Some(Errno::ENXIO), "tile {no_tile}");
            }
        });
    }
}

#[test]
fn an_answer_is_waited_for_until_it_is_there_or_the_time_is_over() {
    for seed in 1..=5 {
        // The third tile does not listen.
        let (model, monitors, _) = start(3, seed, &[0, 1]);
        let monitor = monitors[0].clone();
        run(model, move || {
            let now = || model.clock().monotonic();
            let wait = |tile: u32, nanos: u64| monitor.ping(tile).unwrap().wait(model, now() + nanos);
            assert_eq!(wait(1, 1_000_000_000), Some(Ok(())));
            let known = monitor.known(1).unwrap();
            assert_eq!((known.ended, known.heard, known.said), (None, 1, 1));
            let began = now();
            assert_eq!(wait(2, 20_000), None);
            assert!(now() >= began + 20_000);
            let silent = monitor.known(2).unwrap();
            assert_eq!((silent.heard, silent.said), (0, 1));
            monitor.tile_ended(2);
            assert_eq!(monitor.ping(2).err(), Some(Errno::EHOSTDOWN));
            assert_eq!(monitor.known(2).unwrap().ended, Some(Errno::EHOSTDOWN));
            assert_eq!(monitor.known(0).err(), Some(Errno::ENXIO));
        });
    }
}

#[test]
fn who_unbinds_leaves_what_it_has_sent_and_then_an_error() {
    let (model, monitors, _) = start(2, 3, &[0, 1]);
    let kept = Arc::new(Kept::default());
    monitors[1].offer(KEEP, kept.clone()).unwrap();
    let monitor = monitors[0].clone();
    run(model, move || {
        let channel = wait(model, monitor.bind(1, KEEP)).unwrap();
        channel.send(b"last words").unwrap();
        drop(channel);
        let other = until(model, || kept.0.lock().unwrap().pop());
        assert_eq!(receive(model, &other), Ok(b"last words".to_vec()));
        assert_eq!(receive(model, &other), Err(Errno::EPIPE));
        assert_eq!(other.send(b"too late"), Err(Errno::EPIPE));
    });
}

#[test]
fn channels_are_bounded_and_each_side_has_its_own() {
    let (model, monitors, _) = start(2, 5, &[0, 1]);
    let kept: Vec<_> = (0..2).map(|_| Arc::new(Kept::default())).collect();
    for (monitor, kept) in monitors.iter().zip(&kept) {
        monitor.offer(KEEP, kept.clone()).unwrap();
    }
    run(model, move || {
        let mut held = Vec::new();
        // Both ask at once, for all they can get.
        for monitor in &monitors {
            let other = 1 - monitor.own();
            let asked: Vec<_> = core::iter::from_fn(|| monitor.bind(other, KEEP).ok()).collect();
            assert!(asked.len() == CHANNELS / 2, "{} channels", asked.len());
            assert_eq!(monitor.bind(other, KEEP).err(), Some(Errno::ENOBUFS));
            held.extend(asked);
        }
        let channels: Vec<_> = held.iter().map(|answer| until(model, || answer.take()).unwrap()).collect();
        for (number, channel) in channels.iter().enumerate() {
            channel.send(&[number as u8]).unwrap();
        }
        for (side, kept) in kept.iter().enumerate() {
            until(model, || (kept.0.lock().unwrap().len() == CHANNELS / 2).then_some(()));
            for (number, channel) in kept.0.lock().unwrap().iter().enumerate() {
                let expected = (1 - side) * (CHANNELS / 2) + number;
                assert_eq!(receive(model, channel), Ok(vec![expected as u8]));
            }
        }
    });
}

#[test]
fn a_full_window_is_an_error_until_it_opens() {
    let (model, monitors, _) = start(2, 11, &[0, 1]);
    let kept = Arc::new(Kept::default());
    monitors[1].offer(KEEP, kept.clone()).unwrap();
    let monitor = monitors[0].clone();
    run(model, move || {
        let channel = wait(model, monitor.bind(1, KEEP)).unwrap();
        let other = until(model, || kept.0.lock().unwrap().pop());
        for number in 0..WINDOW {
            channel.send(&[number as u8]).unwrap();
        }
        assert_eq!(channel.send(b"no room"), Err(Errno::EAGAIN));
        for number in 0..WINDOW / 2 {
            assert_eq!(receive(model, &other), Ok(vec![number as u8]));
        }
        // One that does not fit is taken whole, and what is behind it waits.
        channel.send(&[9; MESSAGE_MOST]).unwrap();
        assert_eq!(channel.send(b"behind"), Err(Errno::EAGAIN));
        for number in WINDOW / 2..WINDOW {
            assert_eq!(receive(model, &other), Ok(vec![number as u8]));
        }
        // The monitors see to the rest of it: its sender does nothing more.
        assert_eq!(receive(model, &other), Ok(vec![9; MESSAGE_MOST]));
        channel.send(b"behind").unwrap();
        assert_eq!(receive(model, &other), Ok(b"behind".to_vec()));
        assert_eq!(wait(model, monitor.ping(1)), Ok(()), "the monitors' own channel is another");
    });
}

#[test]
fn pings_that_nobody_answers_are_bounded() {
    let (_, monitors, _) = start(2, 1, &[]);
    for _ in 0..PINGS_MOST {
        monitors[0].ping(1).unwrap();
    }
    assert_eq!(monitors[0].ping(1).err(), Some(Errno::EAGAIN));
}

/// The tile ends after it has been asked and before it answers; a channel to it, and one to a third tile, are open.
#[test]
fn a_tile_that_ends_in_the_middle_of_a_bind_is_an_error_and_the_others_go_on() {
    for seed in 1..=20 {
        let (model, monitors, _) = start(3, seed, &[0, 1, 2]);
        let kept = Arc::new(Kept::default());
        monitors[1].offer(KEEP, kept).unwrap();
        monitors[2].offer(ECHO, Arc::new(Echo(model))).unwrap();
        let monitor = monitors[0].clone();
        run(model, move || {
            let third = wait(model, monitor.bind(2, ECHO)).unwrap();
            let open = wait(model, monitor.bind(1, KEEP)).unwrap();
            // From here on tile 1 takes no turn: no time passes between this and the supervisor's report.
            let asked = monitor.bind(1, KEEP).unwrap();
            let ping = monitor.ping(1).unwrap();
            monitor.tile_ended(1);
            assert_eq!(asked.take().map(|result| result.err()), Some(Some(Errno::EHOSTDOWN)));
            assert_eq!(ping.take(), Some(Err(Errno::EHOSTDOWN)));
            assert_eq!(open.send(b"x"), Err(Errno::EHOSTDOWN));
            assert_eq!(open.receive(&mut Vec::new()), Err(Errno::EHOSTDOWN));
            assert_eq!(monitor.bind(1, KEEP).err(), Some(Errno::EHOSTDOWN));
            assert_eq!(monitor.ended(1), Ok(Some(Errno::EHOSTDOWN)));
            drop(open);
            assert_eq!(monitor.ended(2), Ok(None));
            third.send(b"still here").unwrap();
            assert_eq!(receive(model, &third), Ok(b"still here".to_vec()));
        });
    }
}

#[test]
fn a_farewell_ends_what_is_open_and_what_was_sent_before_is_received() {
    let (model, monitors, _) = start(2, 9, &[0, 1]);
    let kept = Arc::new(Kept::default());
    monitors[1].offer(KEEP, kept.clone()).unwrap();
    let (monitor, other) = (monitors[0].clone(), monitors[1].clone());
    run(model, move || {
        let channel = wait(model, monitor.bind(1, KEEP)).unwrap();
        let theirs = until(model, || kept.0.lock().unwrap().pop());
        theirs.send(b"before").unwrap();
        other.farewell();
        until(model, || monitor.ended(1).unwrap());
        assert_eq!(receive(model, &channel), Ok(b"before".to_vec()));
        assert_eq!(receive(model, &channel), Err(Errno::EHOSTDOWN));
    });
    assert!(model.notified().iter().all(|event| !matches!(event, Outside::Over(_))));
}

/// What a monitor of another tile's may not say, each alone, and what ends with it: that tile, for this one.
#[test]
fn a_monitor_that_breaks_the_protocol_is_ended_and_nobody_else() {
    let own = 2;
    let forged: Vec<([u64; 7], Piece)> = [
        Message::Pong { token: 5 }.encode(),
        Message::Bound { channel: own }.encode(),
        Message::Refused { channel: own }.encode(),
        Message::Unbind { channel: own }.encode(),
        Message::Unbind { channel: CHANNELS }.encode(),
        Message::Unbind { channel: 0 }.encode(),
        Message::Bound { channel: usize::MAX }.encode(),
        // One of this tile's half, the monitors', and none.
        Message::Bind { channel: own, interface: KEEP }.encode(),
        Message::Bind { channel: 0, interface: KEEP }.encode(),
        Message::Bind { channel: CHANNELS + 8, interface: KEEP }.encode(),
        [3, 1, 1 << 40, 0, 0, 0, 0],
        [1, 0, 0, 0, 0, 0, 1],
        [0; 7],
        [99, 0, 0, 0, 0, 0, 0],
    ]
    .into_iter()
    .map(|words| (words, WHOLE))
    .chain([(Message::Ping { token: 1 }.encode(), Piece { bytes: 8, more: false })])
    .collect();
    for (lie, piece) in forged {
        // Tile 1 is this program; tile 2 is honest.
        let (model, monitors, links) = start(3, 1, &[0, 2]);
        monitors[0].offer(KEEP, Arc::new(Kept::default())).unwrap();
        monitors[2].offer(ECHO, Arc::new(Echo(model))).unwrap();
        let link = links[1].unwrap();
        let mut end: Endpoint = Endpoint::new(&link.channels[0], 1);
        let monitor = monitors[0].clone();
        run(model, move || {
            end.send(&lie, piece).unwrap();
            ring(model, link);
            assert_eq!(until(model, || monitor.ended(1).unwrap()), Errno::EPROTO, "{lie:?}");
            let channel = wait(model, monitor.bind(2, ECHO)).unwrap();
            channel.send(b"hello").unwrap();
            assert_eq!(receive(model, &channel), Ok(b"hello".to_vec()));
        });
    }
}

/// Rings the bell of tile 0.
fn ring(model: &'static Model, link: &'static Link) {
    link.bells[0].0.store(1, Ordering::SeqCst);
    model.park().unpark(&link.bells[0].0, 1);
}

/// One that asks and asks and takes no answer out causes no more of them than there is room for.
#[test]
fn a_monitor_that_takes_nothing_out_is_ended() {
    let (model, monitors, links) = start(2, 1, &[0]);
    let link = links[1].unwrap();
    let mut end: Endpoint = Endpoint::new(&link.channels[0], 1);
    let monitor = monitors[0].clone();
    run(model, move || {
        for token in 0.. {
            if end.send(&Message::Ping { token }.encode(), WHOLE).is_err() {
                ring(model, link);
                let room = until(model, || match (monitor.ended(1).unwrap(), end.room()) {
                    (Some(why), _) => Some(Err(why)),
                    (None, Ok(room)) if room > 0 => Some(Ok(())),
                    _ => None,
                });
                match room {
                    Ok(()) => continue,
                    Err(why) => return assert_eq!(why, Errno::EPROTO),
                }
            }
            assert!(token < 1000, "it keeps them all");
        }
    });
}

/// A broken channel is that channel's end, and not its tile's.
#[test]
fn a_channel_that_is_broken_ends_alone() {
    let (model, monitors, links) = start(2, 1, &[0, 1]);
    monitors[1].offer(ECHO, Arc::new(Echo(model))).unwrap();
    let monitor = monitors[0].clone();
    let link = links[1].unwrap();
    run(model, move || {
        let broken = wait(model, monitor.bind(1, ECHO)).unwrap();
        let whole = wait(model, monitor.bind(1, ECHO)).unwrap();
        // The lane that tile 1 writes of the first channel that tile 0 asks for: a line out of turn.
        link.channels[2][1].lines[0].0[7].store(1 | 8 << 2 | 5 << 8, Ordering::SeqCst);
        assert_eq!(receive(model, &broken), Err(Errno::EPROTO));
        assert_eq!(broken.send(b"x"), Err(Errno::EPROTO));
        whole.send(b"hello").unwrap();
        assert_eq!(receive(model, &whole), Ok(b"hello".to_vec()));
        assert_eq!(monitor.ended(1), Ok(None));
    });
}
