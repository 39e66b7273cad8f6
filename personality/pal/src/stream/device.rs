//! The console: the first program's standard input and output.

use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;

use janua_abi::linux::Result;
use janua_abi::pal::Error;
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_object::file::offset;
use janua_object::vfs::Attr;
use janua_object::{Caller, Events, File, OpenFile};

use crate::state::State;

/// Standard input and output as one.
pub struct Console {
    input: Option<Arc<OpenFile>>,
    output: Option<Arc<OpenFile>>,
}

impl Console {
    /// For access of this kind (O_RDONLY and the like). Made of what the picoprocess began with alone: what its program opens has no part in it.
    pub fn open(state: &State, flags: u32) -> Arc<OpenFile> {
        let [input, output, _] = state.console.read().clone();
        OpenFile::new(Arc::new(Console { input, output }), flags, None)
    }
}

impl File for Console {
    fn read(&self, _file: &OpenFile, caller: &dyn Caller, buf: &mut ReadBuf<'_>, _offset: u64) -> Result<usize> {
        let input = self.input.as_ref().ok_or(Error::StreamNotThere.errno())?;
        if input.ops.seekable() && !input.ops.keeps_position() {
            let mut pos = input.pos.lock();
            let n = input.ops.read(input, caller, buf, *pos)?;
            *pos += n as u64;
            return Ok(n);
        }
        input.ops.read(input, caller, buf, offset::CURRENT)
    }

    fn write(&self, _file: &OpenFile, caller: &dyn Caller, buf: &mut WriteBuf<'_>, _offset: u64) -> Result<usize> {
        let output = self.output.as_ref().ok_or(Error::StreamNotThere.errno())?;
        if output.ops.seekable() && !output.ops.keeps_position() {
            let mut pos = output.pos.lock();
            let n = output.ops.write(output, caller, buf, *pos)?;
            *pos += n as u64;
            return Ok(n);
        }
        output.ops.write(output, caller, buf, offset::CURRENT)
    }

    fn poll(&self, _file: &OpenFile, caller: &dyn Caller, mut table: Option<&mut PollTable>) -> Events {
        let mut events = Events::empty();
        if let Some(input) = &self.input {
            events |= input.poll(caller, table.as_deref_mut()) & Events::READABLE;
        }
        if let Some(output) = &self.output {
            events |= output.poll(caller, table) & (Events::OUT | Events::WRNORM);
        }
        events
    }

    fn streams(&self) -> bool {
        true
    }

    fn attr(&self) -> Result<Attr> {
        let one = self.input.as_ref().or(self.output.as_ref()).ok_or(Error::StreamNotThere.errno())?;
        one.attr()
    }

    fn label(&self) -> String {
        String::from("dev:tty")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
