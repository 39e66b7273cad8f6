//! Several threads at once: on a disk that is slow, or refuses, who has to wait; and what readers see of a writer.

use super::*;

/// The piece of a disk that holds these bytes.
fn piece_with(disk: &Disk, bytes: &[u8]) -> usize {
    let image = disk.image();
    let found = image.pieces.iter().find(|(_, piece)| piece[..] == *bytes);
    *found.expect("the bytes are on the disk").0
}

/// Does something that must not wait for a disk that is closed.
fn at_once<T: Send>(disk: &Disk, act: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let (reported, done) = mpsc::channel();
        scope.spawn(move || reported.send(act()));
        done.recv_timeout(Duration::from_secs(20)).unwrap_or_else(|_| {
            disk.release(false);
            panic!("it waits for the disk")
        })
    })
}

/// Reads from a page on, of a file whose errors are wanted.
fn read_page(file: &OpenFile, page: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0xee; PIECE];
    let n = file.ops.read(file, &common::anybody(), &mut ReadBuf::kernel(&mut bytes), (page * PIECE) as u64)?;
    bytes.truncate(n);
    Ok(bytes)
}

#[test]
fn a_slow_read_holds_up_only_who_wants_its_pages() {
    let w = World::new(64 * MIB);
    let content = pattern(MIB, 11);
    w.put("/f", &content);
    w.put("/g", &content[..5000]);
    let w = w.again();
    let (file, other) = (w.open("/f", O_RDWR).unwrap(), w.open("/g", O_RDWR).unwrap());
    let disk = w.disk;
    disk.close(piece_with(disk, &content[..PIECE]));
    thread::scope(|scope| {
        let first = scope.spawn(|| read_page(&file, 0));
        disk.asked(1);
        // Other parts of the file, its attributes, and other files; a write beside the pages on their way, which is read again.
        assert_eq!(at_once(disk, || read(&file, PIECE, 100 * PIECE as u64)), content[100 * PIECE..101 * PIECE]);
        assert_eq!(at_once(disk, || write(&file, &[7; 100], 200 * PIECE as u64 + 50)), Ok(100));
        assert_eq!(at_once(disk, || read(&file, 200, 200 * PIECE as u64))[50..150], [7; 100]);
        assert_eq!(at_once(disk, || file.attr().unwrap().size), MIB as u64);
        assert_eq!(at_once(disk, || read(&other, 5000, 0)), content[..5000]);
        assert_eq!(at_once(disk, || other.ops.sync(false)), Ok(()));
        // Who wants the same pages waits with the first, who writes into them and who moves blocks waits for both.
        let second = scope.spawn(|| read_page(&file, 0));
        let neighbour = scope.spawn(|| read_page(&file, 9));
        thread::sleep(Duration::from_millis(100));
        let writer = scope.spawn(|| {
            assert_eq!(write(&file, &[8; PIECE], 5 * PIECE as u64), Ok(PIECE));
            file.ops.truncate(&file, 20 * PIECE as u64)
        });
        thread::sleep(Duration::from_millis(100));
        assert!(!second.is_finished() && !neighbour.is_finished() && !writer.is_finished());
        disk.release(false);
        for reader in [first, second] {
            assert_eq!(reader.join().unwrap().unwrap(), content[..PIECE]);
        }
        assert_eq!(neighbour.join().unwrap().unwrap(), content[9 * PIECE..10 * PIECE]);
        assert_eq!(writer.join().unwrap(), Ok(()));
    });
    assert_eq!(disk.asked(0), 1, "the pages are read once");
    let mut expected = content[..20 * PIECE].to_vec();
    expected[5 * PIECE..6 * PIECE].fill(8);
    assert!(read(&file, MIB, 0) == expected);
    drop((file, other));
    assert!(w.again().get("/f").unwrap() == expected);
}

#[test]
fn a_failed_read_is_an_error_for_all_who_want_its_pages() {
    let w = World::new(64 * MIB);
    let content = pattern(MIB, 12);
    w.put("/f", &content);
    let w = w.again();
    let file = w.open("/f", O_RDWR).unwrap();
    let disk = w.disk;
    disk.close(piece_with(disk, &content[5 * PIECE..6 * PIECE]));
    thread::scope(|scope| {
        let first = scope.spawn(|| read_page(&file, 5));
        disk.asked(1);
        let others: Vec<_> = (0..3).map(|_| scope.spawn(|| read_page(&file, 5))).collect();
        // Read with it, and readable.
        let neighbour = scope.spawn(|| read_page(&file, 20));
        // Its first part must be read.
        let writer = scope.spawn(|| write(&file, &[1; 10], 5 * PIECE as u64 + 3));
        thread::sleep(Duration::from_millis(100));
        assert!(!neighbour.is_finished() && !writer.is_finished() && others.iter().all(|other| !other.is_finished()));
        disk.release(true);
        assert_eq!(first.join().unwrap(), Err(Errno::EIO));
        for other in others {
            assert_eq!(other.join().unwrap(), Err(Errno::EIO));
        }
        assert_eq!(neighbour.join().unwrap().unwrap(), content[20 * PIECE..21 * PIECE]);
        assert_eq!(writer.join().unwrap(), Err(Errno::EIO));
    });
    // It is no worse for it once the disk is well.
    disk.release(false);
    assert!(read(&file, MIB, 0) == content);
}

/// A file of which the disk has one content and the memory another, the disk being closed to the first page; both contents.
fn half_written() -> (World, Arc<OpenFile>, Vec<u8>, Vec<u8>) {
    let w = World::new(64 * MIB);
    let (old, new) = (pattern(MIB, 14), pattern(MIB, 15));
    w.put("/f", &old);
    let w = w.again();
    let file = w.open("/f", O_RDWR).unwrap();
    assert!(read(&file, MIB, 0) == old);
    assert_eq!(write(&file, &new[..40 * PIECE], 0), Ok(40 * PIECE));
    w.disk.close_to_writes(piece_with(w.disk, &old[..PIECE]));
    let now = [&new[..40 * PIECE], &old[40 * PIECE..]].concat();
    (w, file, old, now)
}

#[test]
fn a_slow_write_back_holds_up_nobody_who_uses_the_file() {
    let (w, file, _, mut now) = half_written();
    let disk = w.disk;
    thread::scope(|scope| {
        let first = scope.spawn(|| file.ops.sync(false));
        disk.asked(1);
        // Pages on their way, others, and the size, are read and written meanwhile.
        assert!(at_once(disk, || read(&file, MIB, 0)) == now);
        let mut change = |at: usize, bytes: &[u8]| {
            assert_eq!(at_once(disk, || write(&file, bytes, at as u64)), Ok(bytes.len()));
            now.resize(now.len().max(at + bytes.len()), 0);
            now[at..at + bytes.len()].copy_from_slice(bytes);
        };
        change(10, b"again");
        change(50 * PIECE, &[9; PIECE]);
        change(MIB, b"longer");
        assert!(at_once(disk, || read(&file, 2 * MIB, 0)) == now);
        assert_eq!(at_once(disk, || file.ops.size()), Ok(MIB as u64 + 6));
        // Who wants it written waits, and so does who cuts it.
        let second = scope.spawn(|| file.ops.sync(false));
        thread::sleep(Duration::from_millis(100));
        let cutter = scope.spawn(|| file.ops.truncate(&file, 45 * PIECE as u64));
        thread::sleep(Duration::from_millis(100));
        assert!(!first.is_finished() && !second.is_finished() && !cutter.is_finished());
        disk.release(false);
        assert_eq!(first.join().unwrap(), Ok(()));
        assert_eq!(second.join().unwrap(), Ok(()));
        assert_eq!(cutter.join().unwrap(), Ok(()));
        now.truncate(45 * PIECE);
    });
    assert!(read(&file, MIB, 0) == now);
    let cut = World::mount(Disk::of(disk.cut(|_| false)));
    assert!(cut.get("/f").unwrap()[..45 * PIECE] == now, "what was written meanwhile was dirty again, and the second wrote it");
    drop(file);
    assert!(w.again().get("/f").unwrap() == now);
}

#[test]
fn what_the_disk_refuses_to_take_stays_dirty() {
    let (w, file, old, mut now) = half_written();
    let disk = w.disk;
    thread::scope(|scope| {
        let first = scope.spawn(|| file.ops.sync(false));
        disk.asked(1);
        let second = scope.spawn(|| file.ops.sync(false));
        assert_eq!(at_once(disk, || write(&file, b"later", 3)), Ok(5));
        now[3..8].copy_from_slice(b"later");
        disk.release(true);
        // Each tries, and each hears of it.
        assert_eq!(first.join().unwrap(), Err(Errno::EIO));
        assert_eq!(second.join().unwrap(), Err(Errno::EIO));
    });
    assert!(read(&file, MIB, 0) == now);
    let cut = World::mount(Disk::of(disk.cut(|_| false)));
    assert!(cut.get("/f").unwrap()[..PIECE] == old[..PIECE]);
    disk.release(false);
    assert_eq!(file.ops.sync(false), Ok(()));
    let cut = World::mount(Disk::of(disk.cut(|_| false)));
    assert!(cut.get("/f").unwrap() == now);
}

#[test]
fn readers_see_what_one_writer_does_at_any_time() {
    const PAGES: usize = 300;
    // A quarter of the memory is for files: 64 pages, so they come and go.
    let w = World::try_mount(small(MIB as u64), Disk::new(64 * MIB)).unwrap();
    let content = pattern(PAGES * PIECE, 13);
    w.put("/f", &content);
    w.fs.sync().unwrap();
    let file = w.open("/f", O_RDWR).unwrap();
    let mut random = random::numbers(random::given().unwrap_or(0), 1);
    let mut next = move |below: usize| random(below as u64) as usize;
    let over = AtomicBool::new(false);
    let mut model = content.clone();
    /// Sets it at the end, however that comes.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    thread::scope(|scope| {
        let _over = Over(&over);
        // Somebody else writes back all the time.
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                w.fs.sync().unwrap();
                file.ops.sync(false).unwrap();
            }
        });
        for reader in 0..3 {
            let (file, over, content) = (&file, &over, &content);
            scope.spawn(move || {
                let mut random = random::numbers(random::given().unwrap_or(0), 2 + reader);
                while !over.load(Ordering::Relaxed) {
                    let at = random((PAGES * PIECE) as u64) as usize;
                    let bytes = read(file, 1 + random(9000) as usize, at as u64);
                    // Written, or cut out.
                    assert!(bytes.iter().zip(&content[at..]).all(|(is, was)| is == was || *is == 0));
                }
            });
        }
        for turn in 0..400 {
            let (at, len) = (next(PAGES * PIECE - 20_000), next(20_000));
            match next(10) {
                0 => {
                    file.ops.truncate(&file, at as u64).unwrap();
                    model.resize(at, 0);
                }
                1 => {
                    const PUNCH: u32 = 3;
                    file.ops.allocate(&file, PUNCH, at as u64, len as u64 + 1).unwrap();
                    let end = model.len();
                    model[at.min(end)..(at + len + 1).min(end)].fill(0);
                }
                2 => file.ops.sync(true).unwrap(),
                3..6 => {
                    let mut expected = model[at.min(model.len())..].to_vec();
                    expected.truncate(len);
                    assert!(read(&file, len, at as u64) == expected, "turn {turn}");
                }
                _ => {
                    assert_eq!(write(&file, &content[at..at + len], at as u64), Ok(len));
                    if len > 0 {
                        model.resize(model.len().max(at + len), 0);
                        model[at..at + len].copy_from_slice(&content[at..at + len]);
                    }
                }
            }
        }
    });
    assert!(read(&file, PAGES * PIECE, 0) == model);
    drop(file);
    assert!(w.again().get("/f").unwrap() == model);
}
