//! This kernel as one tile of several: what it shares with each other one, how it wakes and hears it, and how it ends.
//!
//! Every tile has an image of its own in memory of its own ([`crate::divide`]), so all that is static in the kernel is there once for each tile, at the same
//! address. Its page tables map its memory, its local APICs, and a [`Pair`] with each other tile. Ports, the I/O APIC, the clocks that are
//! read once and the disk are the first tile's. What the others write goes to it by messages; the interrupt [`apic::TILE`] makes it look.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

use janua_paging::PAGE;
use janua_port::tiles::{Lane, Line, TILES_MOST};
use janua_port::{Asked, Link, Request, Tiles};
use janua_rt::channel::{Endpoint, MESSAGE_MOST, Unsent};

use crate::boot::{DIRECT, MapEntry, Module, OtherPage, StartInfo};
use crate::core::MOST;
use crate::frames::Range;
use crate::lock::Mutex;
use crate::machine::power_off;
use crate::{apic, clock, cpu, machine, report, sched, serial, shoot};

/// Bytes of a command line that a tile is handed on.
pub const LINE_MOST: usize = 1024;

/// What a kernel is among others. Written by the first one before the tile starts, and by nobody after.
#[repr(C)]
pub struct Given {
    /// First, since a kernel is handed its address as that of its start information.
    pub info: StartInfo,
    pub module: Module,
    pub map: MapEntry,
    pub tile: u32,
    pub count: u32,
    /// How much higher in memory its image is than where it was linked to be.
    pub moved: usize,
    /// The memory that is its own. For the first tile: what is not, but the others', and what all share.
    pub share: Range,
    /// Bytes of what each other tile has.
    pub size: usize,
    /// Where the pairs begin.
    pub pairs: usize,
    /// The APIC numbers of its cores.
    pub cores: [u32; MOST],
    pub core_count: usize,
    /// Those of the first core of each tile.
    pub firsts: [u32; TILES_MOST as usize],
    /// With a zero at its end.
    pub line: [u8; LINE_MOST + 1],
}

const _: () = assert!(size_of::<Given>() <= PAGE);

/// What two tiles share, and nobody else has. All zero at start. What the other tile writes is not believed.
#[repr(C, align(4096))]
pub struct Pair {
    link: Link,
    /// What the tile with the higher number writes on the console, where the other is the first tile.
    console: [Lane; 2],
    /// Each written by one tile, that with the lower number first.
    sides: [Side; 2],
    /// What the first tile has measured, for the other: the clock's three numbers, and the timer's frequency.
    clock: [AtomicU64; 4],
    /// A line each way, for what is measured ([`crate::measure`]).
    pub(crate) words: [Line; 2],
}

/// What a tile lets another know of it without the help of its kernel.
#[repr(C, align(64))]
struct Side {
    /// One of the words below.
    state: AtomicU32,
    /// With [`ENDED`]: the exit code.
    code: AtomicU8,
    /// With [`FAILED`]: why, and bytes of it.
    len: AtomicU32,
    why: [AtomicU8; WHY_MOST],
}

const WHY_MOST: usize = 2048;

/// The kernel is on its way.
const STARTING: u32 = 0;
/// It has begun, without a program.
const LISTENS: u32 = 1;
/// It has begun, and a program runs.
const RUNS: u32 = 2;
/// It has ended as it should.
const ENDED: u32 = 3;
/// It has failed.
const FAILED: u32 = 4;

/// Null where there is one kernel, which has the whole machine.
static GIVEN: AtomicPtr<Given> = AtomicPtr::new(core::ptr::null_mut());

fn given() -> Option<&'static Given> {
    // SAFETY: null, or set once at start to what nobody changes any more.
    unsafe { GIVEN.load(Ordering::Acquire).as_ref() }
}

/// How many tiles there are; 1 without any.
pub fn count() -> u32 {
    given().map_or(1, |given| given.count)
}

/// The number of this one.
pub fn own() -> u32 {
    given().map_or(0, |given| given.tile)
}

/// How much higher in memory this image is than where it was linked to be.
pub fn moved() -> usize {
    given().map_or(0, |given| given.moved)
}

/// The APIC numbers of this tile's cores; `None` where all are.
pub fn cores() -> Option<&'static [u32]> {
    given().map(|given| &given.cores[..given.core_count])
}

/// Where another tile's share begins, and its first core's APIC number. By the first tile.
pub fn start_of(tile: u32) -> (usize, u32) {
    given().map_or((0, 0), |given| (given.share.0 + (tile as usize - 1) * given.size, given.firsts[tile as usize]))
}

/// Whether a large page of physical memory is to be mapped: the tile's own, and its local APICs.
pub fn has(address: usize) -> bool {
    let Some(given) = given() else { return true };
    let within = (given.share.0..given.share.1).contains(&address);
    if given.tile == 0 { !within } else { within || address == apic::LOCAL & !(crate::tables::LARGE_PAGE - 1) }
}

/// The pages to be mapped besides: what is shared with each other tile, and where the tile's own cores begin.
pub fn pages() -> impl Iterator<Item = usize> {
    let shared = others().flat_map(|peer| {
        let pair = pair(peer).map_or(0, |pair| core::ptr::from_ref(pair) as usize - DIRECT);
        (pair..pair + size_of::<Pair>()).step_by(PAGE)
    });
    let own = given().map(|given| match given.tile {
        0 => core::ptr::from_ref(given) as usize - DIRECT,
        tile => OtherPage::of(tile).address(),
    });
    shared.chain(own)
}

fn others() -> impl Iterator<Item = u32> {
    (0..count()).filter(|tile| *tile != own())
}

/// Pairs of a machine of so many tiles.
pub fn pairs_of(count: u32) -> usize {
    (count * count.saturating_sub(1) / 2) as usize
}

/// What this tile shares with another.
pub(crate) fn pair(peer: u32) -> Option<&'static Pair> {
    let given = given()?;
    let (low, high) = (given.tile.min(peer), given.tile.max(peer));
    if low == high || high >= given.count {
        return None;
    }
    let address = DIRECT + given.pairs + (pairs_of(high) + low as usize) * size_of::<Pair>();
    // SAFETY: memory set aside for it, zeroed before any tile began, mapped by both tiles' tables; it is of atomic words alone.
    Some(unsafe { &*(address as *const Pair) })
}

/// Which of each two things in a pair is the own one: 0 or 1.
fn side(peer: u32) -> usize {
    usize::from(own() > peer)
}

fn own_side(peer: u32) -> Option<&'static Side> {
    pair(peer).map(|pair| &pair.sides[side(peer)])
}

fn other_side(peer: u32) -> Option<&'static Side> {
    pair(peer).map(|pair| &pair.sides[1 - side(peer)])
}

/// This kernel is the first of several. Comes after all others' images have been made.
pub fn become_first(first: &'static Given) {
    GIVEN.store(core::ptr::from_ref(first).cast_mut(), Ordering::Release);
    for peer in others() {
        *EARS[peer as usize].lock() = pair(peer).map(|pair| Ear { end: Endpoint::new(&pair.console, 0), text: Vec::new() });
    }
}

/// This kernel is another one. Returns which of the memory it has been given is not its own: none.
pub fn join(other: &'static Given) -> Range {
    GIVEN.store(core::ptr::from_ref(other).cast_mut(), Ordering::Release);
    *MOUTH.lock() = pair(0).map(|pair| Endpoint::new(&pair.console, 1));
    serial::has_no_input();
    (0, 0)
}

/// Leaves another tile the clock, which is read once for all.
pub fn leave_clock(peer: u32) {
    let [start, scale, date] = clock::numbers();
    if let Some(pair) = pair(peer) {
        for (place, number) in pair.clock.iter().zip([start, scale, date, apic::frequency()]) {
            place.store(number, Ordering::Relaxed);
        }
    }
}

/// Takes it. The time-stamp counters of a machine's cores are one clock.
pub fn take_clock() {
    if let Some(pair) = pair(0) {
        let [start, scale, date, frequency] = pair.clock.each_ref().map(|number| number.load(Ordering::Relaxed));
        clock::set([start, scale, date]);
        apic::set_frequency(frequency.max(1));
    }
}

/// Makes another tile look at what it shares with this one.
pub fn ring(peer: u32) {
    if let Some(first) = given().and_then(|given| given.firsts.get(peer as usize)) {
        apic::send(*first, apic::TILE);
    }
}

/// Lets all other tiles know how it stands with this one.
fn announce(state: u32) {
    for peer in others() {
        if let Some(own) = own_side(peer) {
            own.state.store(state, Ordering::Release);
        }
        ring(peer);
    }
}

/// This kernel has begun ([`crate::BareMachine::begun`]).
pub fn begun(runs: bool) {
    let state = if runs { RUNS } else { LISTENS };
    for peer in others() {
        if let Some(own) = own_side(peer) {
            // A short program may have ended by now.
            let _ = own.state.compare_exchange(STARTING, state, Ordering::AcqRel, Ordering::Relaxed);
        }
        ring(peer);
    }
}

/// Waits until all other tiles have begun. Those that cannot are a reason not to start.
pub fn wait_for_all() {
    for peer in others() {
        let Some(other) = other_side(peer) else { continue };
        while other.state.load(Ordering::Acquire) == STARTING {
            hear();
            shoot::relax();
        }
        check(peer);
    }
}

/// Ends the machine if another tile has failed, before programs have started.
pub fn check(peer: u32) {
    if let Some(other) = other_side(peer).filter(|other| other.state.load(Ordering::Acquire) == FAILED) {
        hear();
        report::stop(format_args!("tile {peer} cannot start: {}", Why(other)));
    }
}

/// This kernel is over. The first tile is the last to end: it waits for the programs of the others.
pub fn end(code: u8) -> ! {
    if own() != 0 {
        others().filter_map(own_side).for_each(|own| own.code.store(code, Ordering::Relaxed));
        announce(ENDED);
        report::stop_others();
        cpu::halt();
    }
    loop {
        let seen = ENDINGS.load(Ordering::SeqCst);
        look();
        if !others().filter_map(other_side).any(|other| other.state.load(Ordering::Acquire) == RUNS) {
            power_off(code);
        }
        sched::park(&ENDINGS, seen, None);
    }
}

/// This kernel, which is not the first, has failed: leaves all others why. Uses no heap and no lock. Its other cores have been stopped.
pub fn fail(why: fmt::Arguments<'_>) -> ! {
    let mut words = Words(0);
    let _ = words.write_fmt(why);
    others().filter_map(own_side).for_each(|own| own.len.store(words.0 as u32, Ordering::Relaxed));
    announce(FAILED);
    cpu::halt();
}

/// Writes for all others; bytes written. What there is no room for is left out.
struct Words(usize);

impl Write for Words {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes().take(WHY_MOST - self.0) {
            others().filter_map(own_side).for_each(|own| own.why[self.0].store(byte, Ordering::Relaxed));
            self.0 += 1;
        }
        Ok(())
    }
}

/// Why another tile has failed, as far as it is text.
struct Why<'a>(&'a Side);

impl fmt::Display for Why<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.0.len.load(Ordering::Relaxed) as usize;
        for byte in self.0.why.iter().take(len) {
            let byte = byte.load(Ordering::Relaxed);
            out.write_char(if byte == b'\n' || byte.is_ascii_graphic() { char::from(byte) } else { ' ' })?;
        }
        Ok(())
    }
}

/// The tiles of which it has been reported that they have ended, a bit each; and those of which the kernel has not been notified.
static KNOWN: AtomicU32 = AtomicU32::new(0);
static UNREPORTED: AtomicU32 = AtomicU32::new(0);
/// Changes when a tile has ended.
static ENDINGS: AtomicU32 = AtomicU32::new(0);

/// Another tile has rung: wakes who sleeps on a bell, and takes notice of what has ended. The first tile shows what the others write.
pub fn on_interrupt() {
    for peer in others() {
        if let Some(pair) = pair(peer) {
            sched::unpark(&pair.link.bells[side(peer)].0, 1);
        }
    }
    look();
}

fn look() {
    let mut new = 0;
    for peer in others() {
        let state = other_side(peer).map_or(STARTING, |other| other.state.load(Ordering::Acquire));
        if matches!(state, ENDED | FAILED) {
            new |= 1 << peer;
        }
    }
    // What they have written before they ended comes first.
    hear();
    new &= !KNOWN.fetch_or(new, Ordering::AcqRel);
    if new == 0 {
        return;
    }
    others().filter(|peer| new & 1 << peer != 0).for_each(report_end);
    UNREPORTED.fetch_or(new, Ordering::AcqRel);
    ENDINGS.fetch_add(1, Ordering::SeqCst);
    sched::unpark(&ENDINGS, 1);
    machine::wake_service();
}

/// On the first tile, which has the console.
fn report_end(peer: u32) {
    let Some(other) = other_side(peer).filter(|_| own() == 0) else { return };
    let mut voice = report::Voice;
    let _ = match (other.state.load(Ordering::Acquire), other.code.load(Ordering::Relaxed)) {
        (FAILED, _) => writeln!(voice, "janua: tile {peer} has ended: {}", Why(other)),
        (_, 0) => Ok(()),
        (_, code) => writeln!(voice, "janua: tile {peer} has ended with exit code {code}"),
    };
}

/// What the kernel is to be notified of: tiles that have ended.
pub fn requests() -> Vec<Asked> {
    let ended = UNREPORTED.swap(0, Ordering::AcqRel);
    let tiles = (0..TILES_MOST).filter(|tile| ended & 1 << tile != 0);
    tiles.map(|tile| Asked { request: Request::TileEnded { tile }, handed: Vec::new() }).collect()
}

/// Whose words a tile has the first one write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// Programs', on the serial line.
    Program = 0,
    /// The kernel's.
    Kernel = 1,
}

/// What another tile than the first writes with.
static MOUTH: Mutex<Option<Endpoint>> = Mutex::new(None);

/// Bytes of text in one message: the first is the [`Voice`]'s.
const TEXT_MOST: usize = 1000;

const _: () = assert!(TEXT_MOST < MESSAGE_MOST);

/// Has the first tile write bytes, and waits as long as it has no room for them.
pub fn write(voice: Voice, bytes: &[u8]) {
    let mut mouth = MOUTH.lock();
    let Some(end) = mouth.as_mut() else { return };
    for text in bytes.chunks(TEXT_MOST) {
        let mut message = [0; 1 + TEXT_MOST];
        message[0] = voice as u8;
        message[1..=text.len()].copy_from_slice(text);
        let mut sent = 0;
        while let Err(unsent) = end.send_bytes(&message[..=text.len()], &mut sent) {
            if unsent != Unsent::Full {
                return;
            }
            ring(0);
            shoot::relax();
        }
        ring(0);
    }
}

/// What the first tile hears another by.
struct Ear {
    end: Endpoint,
    text: Vec<u8>,
}

static EARS: [Mutex<Option<Ear>>; TILES_MOST as usize] = [const { Mutex::new(None) }; TILES_MOST as usize];

/// For what is measured: the lane's own end, while nothing is written.
pub(crate) fn with_ear<T>(peer: u32, f: impl FnOnce(&mut Endpoint) -> T) -> Option<T> {
    EARS[peer as usize].lock().as_mut().map(|ear| f(&mut ear.end))
}

/// The other side's.
pub(crate) fn with_mouth(f: impl FnOnce(&mut Endpoint)) {
    if let Some(end) = MOUTH.lock().as_mut() {
        f(end);
    }
}

/// Messages of one tile that are dealt with before others have their turn.
const ROUND: usize = 8;

/// Shows what the other tiles have had written.
fn hear() {
    let mut more = false;
    for peer in others() {
        let mut ear = EARS[peer as usize].lock();
        let Some(Ear { end, text }) = ear.as_mut() else { continue };
        let mut left = ROUND;
        let broken = loop {
            if left == 0 {
                more = true;
                break false;
            }
            match end.receive_bytes(text) {
                Ok(true) => show(text),
                Ok(false) => break false,
                Err(_) => break true,
            }
            text.clear();
            left -= 1;
        };
        if broken {
            *ear = None;
            let _ = writeln!(report::Voice, "janua: tile {peer} writes what is no message: nothing more of it is shown");
        }
    }
    if more {
        ring(0);
    }
}

fn show(message: &[u8]) {
    match message.split_first() {
        Some((voice, text)) if *voice == Voice::Kernel as u8 => serial::say(text),
        Some((_, text)) => serial::write(text),
        None => {}
    }
}

struct BareTiles;

impl Tiles for BareTiles {
    fn count(&self) -> u32 {
        count()
    }
    fn own(&self) -> u32 {
        own()
    }
    fn link(&self, peer: u32) -> Option<&'static Link> {
        pair(peer).map(|pair| &pair.link)
    }
}

/// What this kernel has of other tiles; `None` where there are none.
pub fn beside() -> Option<Box<dyn Tiles>> {
    given().map(|_| Box::new(BareTiles) as Box<dyn Tiles>)
}
