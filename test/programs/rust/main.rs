//! A static Rust guest: threads, channels, locks, thread locals, processes, sockets, a panic that is caught.

use std::cell::Cell;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::{Arc, Barrier, Condvar, Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

thread_local!(static LOCAL: Cell<u64> = const { Cell::new(1) });

fn threads() {
    let sum = Arc::new(AtomicU64::new(0));
    let map = Arc::new(RwLock::new(HashMap::new()));
    let barrier = Arc::new(Barrier::new(16));
    let all: Vec<_> = (0..16u64)
        .map(|i| {
            let (sum, map, barrier) = (sum.clone(), map.clone(), barrier.clone());
            thread::Builder::new().name(format!("worker-{i}")).spawn(move || {
                barrier.wait();
                for k in 0..1000 {
                    sum.fetch_add(k, Ordering::Relaxed);
                    LOCAL.with(|l| l.set(l.get() + i));
                }
                map.write().unwrap().insert(i, LOCAL.with(Cell::get));
                thread::current().name().map(str::len).unwrap()
            })
        })
        .collect();
    let names: usize = all.into_iter().map(|t| t.unwrap().join().unwrap()).sum();
    println!("sum {} names {names} last {}", sum.load(Ordering::Relaxed), map.read().unwrap()[&15]);

    let pair = Arc::new((Mutex::new(0u32), Condvar::new()));
    let (send, receive) = channel();
    for i in 0..4 {
        let (pair, send) = (pair.clone(), send.clone());
        thread::spawn(move || {
            let (lock, cond) = &*pair;
            let mut turn = lock.lock().unwrap();
            while *turn % 4 != i {
                turn = cond.wait(turn).unwrap();
            }
            *turn += 1;
            cond.notify_all();
            send.send(i).unwrap();
        });
    }
    drop(send);
    println!("turns {:?}", receive.iter().collect::<std::collections::BTreeSet<_>>());
    let (keep, receive) = channel::<()>();
    let begin = Instant::now();
    println!("timeout {}", receive.recv_timeout(Duration::from_millis(30)) == Err(RecvTimeoutError::Timeout));
    println!("waited {}", begin.elapsed() >= Duration::from_millis(30));
    drop(keep);
    std::panic::set_hook(Box::new(|_| {}));
    println!("panic caught {}", thread::spawn(|| panic!("on purpose")).join().is_err());
    let many: Vec<_> = (0..200).map(|i| thread::spawn(move || i)).collect();
    println!("many {}", many.into_iter().map(|t| t.join().unwrap()).sum::<i32>());
}

fn sockets() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        for stream in listener.incoming().take(10) {
            thread::spawn(move || {
                let mut stream = stream.unwrap();
                let mut line = String::new();
                BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
                stream.write_all(line.to_uppercase().as_bytes()).unwrap();
            });
        }
    });
    let answers: Vec<String> = (0..10)
        .map(|i| {
            let mut stream = TcpStream::connect(address).unwrap();
            writeln!(stream, "client {i}").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer.trim().to_string()
        })
        .collect();
    server.join().unwrap();
    println!("{} {}", answers[0], answers[9]);
    println!("refused {:?}", TcpStream::connect(address).map(|_| ()).map_err(|e| e.kind()));
    let (a, b) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    a.send_to(b"datagram", b.local_addr().unwrap()).unwrap();
    let mut buffer = [0; 100];
    let (n, from) = b.recv_from(&mut buffer).unwrap();
    println!("udp {n} {}", from == a.local_addr().unwrap());
    let (mut x, mut y) = UnixStream::pair().unwrap();
    x.write_all(b"pair").unwrap();
    drop(x);
    let mut text = String::new();
    y.read_to_string(&mut text).unwrap();
    println!("{text}");
}

fn processes() {
    let mut child = Command::new("sort").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"pear\napple\nfig\n").unwrap();
    let output = child.wait_with_output().unwrap();
    println!("{:?} {}", String::from_utf8_lossy(&output.stdout), output.status);
    let status = Command::new("sh").args(["-c", "kill -TERM $$"]).status().unwrap();
    println!("{status}");
    println!("{:?}", Command::new("./missing").spawn().map(|_| ()).map_err(|e| e.kind()));
    std::fs::write("text", "file").unwrap();
    println!("{:?} {:?}", std::fs::read_to_string("text"), std::fs::rename("text", "other"));
    println!("{:?}", std::fs::metadata("text").map(|_| ()).map_err(|e| e.kind()));
}

fn main() {
    threads();
    sockets();
    processes();
    std::process::exit(9);
}
