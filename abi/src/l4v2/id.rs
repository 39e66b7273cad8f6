//! Names of threads: 64 bits, most of them for a world of several machines and nested clans.

/// Tasks a machine may have, and threads of a task.
pub const TASKS: u16 = 2048;
pub const THREADS: u8 = 128;

/// The task that has all memory at the start, and the one that has everything else.
pub const SIGMA0_TASK: u16 = 2;
pub const ROOT_TASK: u16 = 4;

/// A thread's name: `low` has version, thread and task, `high` the place of the task among clans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Id {
    pub low: u32,
    pub high: u32,
}

impl Id {
    /// Nobody.
    pub const NIL: Id = Id { low: 0, high: 0 };
    /// No name at all: "leave it as it is".
    pub const INVALID: Id = Id { low: u32::MAX, high: u32::MAX };

    /// Thread `thread` of a task, with version 0.
    pub const fn new(task: u16, thread: u8, chief: u16, nest: u8) -> Id {
        let low = (task as u32 & 0x7ff) << 17 | (thread as u32 & 0x7f) << 10;
        Id { low, high: (nest as u32 & 0xf) << 28 | (chief as u32 & 0x7ff) << 17 }
    }

    pub const fn is_nil(self) -> bool {
        self.low == 0
    }

    /// Only the low word is looked at.
    pub const fn is_invalid(self) -> bool {
        self.low == u32::MAX
    }

    /// The number of an interrupt's line, for the name of an interrupt.
    pub const fn interrupt(self) -> Option<u8> {
        if self.high == 0 && self.low >= 1 && self.low <= 255 { Some((self.low - 1) as u8) } else { None }
    }

    pub const fn task(self) -> u16 {
        (self.low >> 17 & 0x7ff) as u16
    }

    pub const fn thread(self) -> u8 {
        (self.low >> 10 & 0x7f) as u8
    }

    /// Version: the low ten bits below the four high ones.
    pub const fn version(self) -> u16 {
        (self.low >> 28 << 10 | self.low & 0x3ff) as u16
    }

    pub const fn chief(self) -> u16 {
        (self.high >> 17 & 0x7ff) as u16
    }

    pub const fn nest(self) -> u8 {
        (self.high >> 28) as u8
    }

    /// The same task's thread with this number.
    pub const fn sibling(self, thread: u8) -> Id {
        Id { low: self.low & !(0x7f << 10) | (thread as u32 & 0x7f) << 10, high: self.high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_two_tasks_have_the_names_that_programs_know() {
        let sigma0 = Id::new(SIGMA0_TASK, 0, ROOT_TASK, 0);
        assert_eq!((sigma0.low, sigma0.high), (0x0004_0000, 4 << 17));
        assert_eq!(Id::new(ROOT_TASK, 0, 0, 0), Id { low: 0x0008_0000, high: 0 });
    }

    #[test]
    fn each_field_has_its_bits() {
        let id = Id { low: 0xf000_03ff | 5 << 17 | 127 << 10, high: 3 << 28 | 2047 << 17 | 0x1_ffff };
        assert_eq!((id.task(), id.thread(), id.version(), id.chief(), id.nest()), (5, 127, 0x3fff, 2047, 3));
        assert_eq!(id.sibling(1).thread(), 1);
        assert_eq!((id.sibling(1).task(), id.sibling(1).version()), (5, 0x3fff));
    }

    #[test]
    fn interrupts_are_names_of_no_thread() {
        assert_eq!(Id { low: 1, high: 0 }.interrupt(), Some(0));
        assert_eq!(Id { low: 255, high: 0 }.interrupt(), Some(254));
        assert_eq!(Id { low: 256, high: 0 }.interrupt(), None);
        assert_eq!(Id::NIL.interrupt(), None);
        assert_eq!(Id { low: 1, high: 1 }.interrupt(), None);
    }
}
