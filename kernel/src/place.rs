//! Where a call runs.

/// Where the call of a row may run: at home, on the thread that made it, or away, on a module for calls of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Place {
    /// At home alone: it reads or changes registers, starts or ends threads, or acts on the processor it runs on.
    Home,
    /// Files and what is waited for on them.
    Fs,
    /// Mappings.
    Mm,
    /// Messages, semaphores, shared words.
    Ipc,
    /// Processes, threads, their rights, and how they interrupt each other.
    Task,
    /// Clocks and timers.
    Time,
    /// Sockets.
    Net,
}

impl Place {
    pub const ALL: [Place; 7] = [Place::Home, Place::Fs, Place::Mm, Place::Ipc, Place::Task, Place::Time, Place::Net];

    /// The word that tables, traces and documents use.
    pub const fn name(self) -> &'static str {
        match self {
            Place::Home => "home",
            Place::Fs => "fs",
            Place::Mm => "mm",
            Place::Ipc => "ipc",
            Place::Task => "task",
            Place::Time => "time",
            Place::Net => "net",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places(u8);

impl Places {
    /// Every kind of call that may run away.
    pub const AWAY: Places = Places(!Place::Home.bit());
    pub const NONE: Places = Places(0);

    /// The set without a kind.
    pub const fn without(self, place: Place) -> Places {
        Places(self.0 & !place.bit())
    }

    pub const fn has(self, place: Place) -> bool {
        self.0 & place.bit() != 0
    }
}
