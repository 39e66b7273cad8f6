//! What a call returns: a number, or one of the interface's errors.

use janua_abi::linux::Errno;
use janua_abi::pal::{Error, errno};
use janua_kernel::table::CallResult;
use janua_kernel::wait::Cut;

/// An error as it goes into the result register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure(Errno);

impl From<Errno> for Failure {
    fn from(error: Errno) -> Failure {
        Failure(errno(error))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure(error.errno())
    }
}

impl From<Cut> for Failure {
    fn from(cut: Cut) -> Failure {
        cut.errno(Errno::EAGAIN).into()
    }
}

impl Failure {
    /// Whether it is this error.
    pub fn is(self, error: Error) -> bool {
        self == error.into()
    }
}

pub type Result<T = usize> = core::result::Result<T, Failure>;

/// What a row returns.
pub struct Reply(Result);

impl CallResult for Reply {
    fn word(self) -> isize {
        match self.0 {
            Ok(value) => value as isize,
            Err(Failure(errno)) => errno.as_result(),
        }
    }
}

impl Reply {
    /// What a handler returns that may wait.
    pub fn of(result: Result) -> Reply {
        Reply(result)
    }
}

/// What a handler returns at once.
pub fn reply(handler: impl FnOnce() -> Result) -> Reply {
    Reply(handler())
}
