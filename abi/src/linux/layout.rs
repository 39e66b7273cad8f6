//! How a value is in a program's memory.
//!
//! A call's handler works with one type for a structure; programs of other word sizes lay the same structure out in another
//! way. The row of the call names the layout, and the handler takes any that stands for its type.

use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::Result;

/// A layout of `T` in a program's memory.
pub trait Layout<T>: FromBytes + IntoBytes + Immutable + Copy {
    /// The value that was read.
    fn load(self) -> T;
    /// The value as it is to be written. EOVERFLOW when a field does not fit and must not be cut.
    fn store(value: &T) -> Result<Self>;
}

/// Types that are in memory as they are.
macro_rules! native {
    ($($t:ty)*) => {
        $(impl Layout<$t> for $t {
            #[inline]
            fn load(self) -> $t {
                self
            }
            #[inline]
            fn store(value: &$t) -> Result<$t> {
                Ok(*value)
            }
        })*
    };
}

use super::fcntl::Flock;
use super::futex::RobustListHead;
use super::ipc::{MsqidDs, SemidDs, ShmInfo, ShmInfo64, ShmidDs};
use super::net::{MmsgHdr, MsgHdr};
use super::poll::SigSetArg;
use super::process::{Rlimit, Rusage, SysInfo, TimeVal};
use super::signal::{SigAction, SigInfo, StackT};
use super::stat::{Stat, Statfs};
use super::time::{ITimerSpec, ITimerVal, SigEvent, TimeSpec, Timex, Tms};

native! {
    usize u64 i64 [usize; 2] [i64; 2] [[i64; 2]; 2] [i64; 8]
    TimeSpec TimeVal ITimerSpec ITimerVal Timex Tms SigEvent
    Stat Statfs Rlimit Rusage SysInfo Flock
    SigAction SigInfo StackT SigSetArg RobustListHead
    MsgHdr MmsgHdr MsqidDs SemidDs ShmidDs ShmInfo ShmInfo64
}
