//! The table of calls: one row a number, one truth for number, decode, dispatch, trace and documentation.

use alloc::boxed::Box;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use core::task::Poll;

use janua_abi::linux::{Errno, Result};
use janua_port::guest::{Outcome, PLAIN_CALLS, PlainCalls};
use janua_port::{Frame, words};
use janua_rt::slot::Slotted;

use crate::place::Place;
use crate::task::Personality;
use crate::thread::Thread;
use crate::user::{UserPtr, UserSlice, UserStr};

/// The words of a call.
pub type Words = [usize; 6];

/// A row's function, for entries that have its words in registers: where each comes is the machine's ([`janua_port::Plain`]).
pub type CallFn<P> = words::WordsFn<Slotted<Thread<P>>, Outcome>;

/// Defines a [`CallFn`] of `$p` that returns `$body`, an [`Outcome`]. Used by [`calls!`](crate::calls).
#[macro_export]
macro_rules! call_fn {
    ($p:ty, $seat:ident, $words:ident, $body:block) => {
        $crate::table::words_fn!($words, $seat: $crate::table::SeatOf<'_, $p> => $crate::table::OutcomeOf $body)
    };
}

/// A thread with its slot.
pub type SeatOf<'a, P> = Pin<&'a Slotted<Thread<P>>>;

/// How a row is executed. The first two need no frame, so that a machine may call their functions straight from its entry.
pub enum Run<P: Personality> {
    /// Returns at once, and never an internal restart code ([`Personality::is_special`]).
    Plain(CallFn<P>),
    /// May wait: builds its future in the thread's slot and polls it once ([`Thread::begin`]).
    Wait(CallFn<P>),
    /// Returns at once and reads or changes the registers.
    Frame(fn(&Thread<P>, &mut Frame, Words) -> isize),
    /// As `Wait`, for handlers that need the registers ([`Thread::frame`]).
    FrameWait(CallFn<P>),
    /// There is no handler.
    Missing,
}

impl<P: Personality> Run<P> {
    /// The function of a row that needs no frame.
    fn short(&self) -> Option<CallFn<P>> {
        match *self {
            Run::Plain(run) | Run::Wait(run) => Some(run),
            Run::Frame(_) | Run::FrameWait(_) | Run::Missing => None,
        }
    }
}

/// How much of a call there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    Full,
    /// What lacks.
    Partial(&'static str),
    /// Why it is missing; the call returns -ENOSYS.
    Missing(&'static str),
}

/// How the trace shows an argument word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Fd,
    Int,
    Unsigned,
    Hex,
    Octal,
    Str,
    Ptr,
    /// Names of a family that the personality knows ([`Personality::trace_named`]).
    Named(&'static str),
}

/// An argument as a row declares it.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    pub name: &'static str,
    pub kind: Kind,
}

/// One call.
pub struct Row<P: Personality> {
    pub number: usize,
    pub name: &'static str,
    pub params: &'static [Param],
    pub run: Run<P>,
    /// Where it may run.
    pub place: Place,
    pub support: Support,
}

impl<P: Personality> Row<P> {
    /// Builds the call in the thread's slot and polls it once. For rows that need no frame.
    pub(crate) fn build(&self, seat: SeatOf<'_, P>, words: Words) -> Poll<isize> {
        match self.run {
            Run::Plain(run) | Run::Wait(run) | Run::FrameWait(run) => words::call(run, words, seat).poll(),
            Run::Frame(_) | Run::Missing => Poll::Ready(Errno::ENOSYS.as_result()),
        }
    }

    /// Calls that read or change registers are made at home.
    fn is_placed(&self) -> bool {
        matches!(self.run, Run::Plain(_) | Run::Wait(_)) || self.place == Place::Home
    }
}

/// A typed argument: takes one machine word and checks it.
pub trait Arg: Sized {
    /// How the trace shows it.
    const KIND: Kind;
    /// The argument that a word encodes. The error is the call's result.
    fn decode(word: usize) -> Result<Self>;
}

macro_rules! int_args {
    ($($t:ty: $kind:ident,)*) => {
        $(impl Arg for $t {
            const KIND: Kind = Kind::$kind;
            #[inline]
            #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "the ABI ignores the upper bits of a narrow argument")]
            fn decode(word: usize) -> Result<Self> {
                Ok(word as $t)
            }
        })*
    };
}

int_args! {
    usize: Unsigned,
    isize: Int,
    u64: Unsigned,
    i64: Int,
    u32: Unsigned,
    i32: Int,
}

/// A descriptor number, unchecked against any table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fd(pub i32);

impl Arg for Fd {
    const KIND: Kind = Kind::Fd;
    #[inline]
    fn decode(word: usize) -> Result<Self> {
        Ok(Fd(word as i32))
    }
}

impl<T> Arg for UserPtr<T> {
    const KIND: Kind = Kind::Ptr;
    #[inline]
    fn decode(word: usize) -> Result<Self> {
        Ok(UserPtr::new(word))
    }
}

impl Arg for UserStr {
    const KIND: Kind = Kind::Str;
    #[inline]
    fn decode(word: usize) -> Result<Self> {
        Ok(UserStr(word))
    }
}

/// What a handler may return.
pub trait CallResult {
    /// The word for the result register: a value, or the negated error.
    fn word(self) -> isize;
}

impl CallResult for () {
    #[inline]
    fn word(self) -> isize {
        0
    }
}

macro_rules! int_results {
    ($($t:ty)*) => { $(impl CallResult for $t { #[inline] fn word(self) -> isize { self as isize } })* };
}

int_results! { usize isize i32 u32 i64 u64 }

impl CallResult for Fd {
    #[inline]
    fn word(self) -> isize {
        self.0 as isize
    }
}

impl<T: CallResult> CallResult for Result<T> {
    #[inline]
    fn word(self) -> isize {
        match self {
            Ok(value) => value.word(),
            Err(errno) => errno.as_result(),
        }
    }
}

/// The calls of one kernel instance: the personality's rows and which of them are in force.
pub struct Table<P: Personality> {
    rows: &'static [Row<P>],
    valid: Box<[AtomicBool]>,
    /// The functions of those rows in force that need no frame.
    plain: Box<PlainCalls>,
    /// How often a row has come into force or gone out of it.
    changes: AtomicU32,
}

impl<P: Personality> Table<P> {
    /// A table in which every row is invalid. `rows[n].number == n` is checked.
    pub fn new(rows: &'static [Row<P>]) -> Table<P> {
        assert!(rows.iter().enumerate().all(|(at, row)| row.number == at), "a row out of place");
        assert!(rows.iter().all(Row::is_placed), "a call that needs its registers is away from home");
        assert!(rows.len() < PLAIN_CALLS, "too many rows");
        Table {
            rows,
            valid: rows.iter().map(|_| AtomicBool::new(false)).collect(),
            plain: Box::new([const { AtomicPtr::new(core::ptr::null_mut()) }; PLAIN_CALLS]),
            changes: AtomicU32::new(0),
        }
    }

    /// Another one once a row has come into force or gone out of it: for who has made a table of its own from this one.
    #[inline]
    pub(crate) fn changes(&self) -> u32 {
        self.changes.load(Ordering::Acquire)
    }

    /// Puts a row in force. EINVAL for a number without a row or a handler.
    pub fn register(&self, number: usize) -> Result<()> {
        match self.rows.get(number) {
            Some(row) if !matches!(row.run, Run::Missing) => {
                self.set(row, true);
                Ok(())
            }
            _ => Err(Errno::EINVAL),
        }
    }

    /// Puts every row with a handler in force.
    pub fn register_all(&self) {
        for row in self.rows {
            self.set(row, !matches!(row.run, Run::Missing));
        }
    }

    fn set(&self, row: &Row<P>, valid: bool) {
        self.valid[row.number].store(valid, Ordering::Release);
        if let Some(run) = row.run.short()
            && let Some(word) = self.plain.get(row.number)
        {
            word.store(if valid { run as *mut () } else { core::ptr::null_mut() }, Ordering::Release);
        }
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// The functions of those rows in force that need no frame, by number.
    pub fn plain(&self) -> &PlainCalls {
        &self.plain
    }

    /// Takes a row out of force: from the next entry on the number is unknown.
    pub fn invalidate(&self, number: usize) {
        if let Some(row) = self.rows.get(number) {
            self.set(row, false);
        }
    }

    /// The row in force for a number.
    #[inline]
    pub fn get(&self, number: usize) -> Option<&'static Row<P>> {
        let row = self.rows.get(number)?;
        self.valid[number].load(Ordering::Relaxed).then_some(row)
    }

    /// Whether a row is one of this table's.
    pub fn holds(&self, row: &'static Row<P>) -> bool {
        self.rows.as_ptr_range().contains(&core::ptr::from_ref(row))
    }

    /// All rows, in force or not.
    pub fn rows(&self) -> &'static [Row<P>] {
        self.rows
    }
}

/// Argument types that do not fit in one word do not exist here: larger values go by pointer.
impl<T> Arg for UserSlice<T> {
    const KIND: Kind = Kind::Ptr;
    fn decode(_: usize) -> Result<Self> {
        Err(Errno::EINVAL)
    }
}

/// Declares a table of calls.
///
/// ```text
/// calls! {
///     pub static ROWS for MyPersonality;
///     0 read(fd: Fd, buf: UserPtr<u8>, len: usize) => wait fs::read, fs, Full;
///     1 number() => plain task::number, task, Full;
///     2 copy() => frame task::copy, home, Full;
///     3 shared::write_back;
///     4 load(path: UserStr) => missing, home, Missing("obsolete");
/// }
/// ```
/// A row that only names a function is declared by [`shared_calls!`](crate::shared_calls), for several tables.
///
/// A `plain` handler is `fn(&Thread<P>, args..) -> impl CallResult`; a `frame` handler takes `&mut Frame` after the thread; a `wait` handler is an `async fn`, and so is a `frame_wait` one ([`Run`]); a `seat` handler is given the thread with its slot
/// ([`SeatOf`]) in place of the thread, builds its future itself if it has to wait ([`Thread::begin`]), and returns an [`Outcome`]. The word behind
/// the handler is the row's [`Place`].
#[macro_export]
macro_rules! calls {
    ($(#[$meta:meta])* pub static $rows:ident for $p:ty; $($n:literal $name:ident $(:: $shared:ident)? $(( $($arg:ident : $t:ty),* $(,)? ) => $how:ident $($path:ident)::* , $place:ident , $support:ident $(($note:literal))?)? ;)*) => {
        $(#[$meta])*
        pub static $rows: &[$crate::table::Row<$p>] = &[
            $($crate::call_row!($p; $n, $name $(:: $shared)? $(($($arg: $t),*) => $how $($path)::* , $place, $support $(($note))?)?),)*
        ];
    };
}

/// Declares calls that several tables have under numbers of their own, each as a function that makes the row of a number.
///
/// ```text
/// shared_calls! {
///     for MyPersonality;
///     write_back(fd: Fd) => wait fs::sync::write_back, fs, Full;
/// }
/// ```
#[macro_export]
macro_rules! shared_calls {
    (for $p:ty; $($name:ident ( $($arg:ident : $t:ty),* $(,)? ) => $how:ident $($path:ident)::* , $place:ident , $support:ident $(($note:literal))? ;)*) => {
        $(#[doc = concat!("The row of `", stringify!($name), "`.")]
        pub const fn $name(number: usize) -> $crate::table::Row<$p> {
            $crate::call_row!($p; number, $name ($($arg: $t),*) => $how $($path)::* , $place, $support $(($note))?)
        })*
    };
}

/// One row: declared, or made by a function of [`shared_calls!`](crate::shared_calls). Used by [`calls!`](crate::calls).
#[macro_export]
macro_rules! call_row {
    ($p:ty; $n:expr, $module:ident :: $name:ident) => {
        $module::$name($n)
    };
    ($p:ty; $n:expr, $name:ident ( $($arg:ident : $t:ty),* ) => $how:ident $($path:ident)::* , $place:ident , $support:ident $(($note:literal))?) => {
        $crate::table::Row {
            number: $n,
            name: stringify!($name),
            params: &[$($crate::table::Param { name: stringify!($arg), kind: <$t as $crate::table::Arg>::KIND }),*],
            run: $crate::call_run!($how $p, $($path)::* ; $($arg: $t),*),
            place: $crate::call_place!($place),
            support: $crate::table::Support::$support $(($note))?,
        }
    };
}

/// The [`Place`] that a row's word names. Used by [`calls!`](crate::calls).
#[macro_export]
macro_rules! call_place {
    (home) => {
        $crate::Place::Home
    };
    (fs) => {
        $crate::Place::Fs
    };
    (mm) => {
        $crate::Place::Mm
    };
    (ipc) => {
        $crate::Place::Ipc
    };
    (task) => {
        $crate::Place::Task
    };
    (time) => {
        $crate::Place::Time
    };
    (net) => {
        $crate::Place::Net
    };
}

/// One row's dispatch: decodes the words in order and calls the handler. Used by [`calls!`](crate::calls).
#[macro_export]
macro_rules! call_run {
    (missing $p:ty, ; $($rest:tt)*) => { $crate::table::Run::Missing };
    (plain $p:ty, $($path:ident)::+ ; $($arg:ident : $t:ty),*) => {
        $crate::table::Run::Plain($crate::call_fn!($p, seat, words, {
            $crate::call_run!(@decode words; $($arg: $t),*);
            let thread: &$crate::Thread<$p> = seat.get_ref().owner();
            $crate::table::OutcomeOf::from($crate::table::CallResult::word($($path)::+(thread, $($arg),*)))
        }))
    };
    (frame $p:ty, $($path:ident)::+ ; $($arg:ident : $t:ty),*) => {
        $crate::table::Run::Frame({
            fn run(thread: &$crate::Thread<$p>, frame: &mut $crate::table::FrameOf, words: $crate::table::Words) -> isize {
                $crate::call_run!(@decode words; $($arg: $t),*);
                $crate::table::CallResult::word($($path)::+(thread, frame, $($arg),*))
            }
            run
        })
    };
    (wait $p:ty, $($rest:tt)*) => { $crate::table::Run::Wait($crate::call_run!(@begin $p, $($rest)*)) };
    (seat $p:ty, $($path:ident)::+ ; $($arg:ident : $t:ty),*) => {
        $crate::table::Run::Wait($crate::call_fn!($p, seat, words, {
            $crate::call_run!(@decode words; $($arg: $t),*);
            $($path)::+(seat, $($arg),*)
        }))
    };
    (frame_wait $p:ty, $($rest:tt)*) => { $crate::table::Run::FrameWait($crate::call_run!(@begin $p, $($rest)*)) };
    (@begin $p:ty, $($path:ident)::+ ; $($arg:ident : $t:ty),*) => {
        $crate::call_fn!($p, seat, words, {
            async fn call(thread: &$crate::Thread<$p>, words: $crate::table::Words) -> isize {
                $crate::call_run!(@decode words; $($arg: $t),*);
                $crate::table::CallResult::word($($path)::+(thread, $($arg),*).await)
            }
            $crate::Thread::begin(seat, call, words)
        })
    };
    // Binds each argument to its word; one that is refused is the call's result.
    (@decode $words:ident; $($arg:ident : $t:ty),*) => {
        let mut at = 0usize..;
        $(let $arg = match <$t as $crate::table::Arg>::decode($words[at.next().unwrap_or(0)]) {
            Ok(value) => value,
            Err(errno) => return errno.as_result().into(),
        };)*
        let _ = (&mut at, $words);
    };
}

/// The frame type rows see; named so that the macro does not depend on the caller's imports.
pub type FrameOf = Frame;
/// What the functions of rows return, named for the same reason.
pub type OutcomeOf = Outcome;
#[doc(hidden)]
pub use janua_port::words_fn;
