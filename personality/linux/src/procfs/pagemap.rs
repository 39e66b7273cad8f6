//! /proc/PID/pagemap: a word for each page of the address space (proc_pid_pagemap(5)).

use alloc::sync::{Arc, Weak};
use alloc::vec;
use core::any::Any;
use core::ops::ControlFlow;

use janua_abi::linux::{Errno, Result};
use janua_kernel::iobuf::{ReadBuf, WriteBuf};
use janua_kernel::wait::PollTable;
use janua_object::file::{Events, File, whence};
use janua_object::mm::Mm;
use janua_object::{Caller, OpenFile};
use janua_port::PAGE;
use zerocopy::IntoBytes;

use super::Subject;
use super::memory::mm;
use crate::task::access;
use crate::{Seat, Task};

/// Bytes of a word.
const WORD: usize = 8;
/// Words made at a time.
const CHUNK: usize = 2048;
/// Which frame a page is, or where it was swapped to: never shown, as on Linux to who has no CAP_SYS_ADMIN outside.
const PLACE: u64 = (1 << 55) - 1;

/// The open file.
pub struct PageMap {
    task: Weak<Task>,
    /// The number of the program that was opened; after an exec there is nothing left to see.
    program: u64,
}

impl PageMap {
    /// ESRCH for a process without memory, ENOENT where the machine does not report it.
    pub fn new(subject: &Subject) -> Result<PageMap> {
        let task = subject.task()?;
        mm(subject)?;
        subject.seat()?.context().ok_or(Errno::ENOENT)?.page_map(0, &mut []).map_err(|_| Errno::ENOENT)?;
        Ok(PageMap { task: Arc::downgrade(task), program: task.program() })
    }

    /// Looks by way of a thread of the process while that runs the program that was opened; `None` when it does no more.
    fn with<T>(&self, look: impl FnOnce(&Seat, &Mm) -> T) -> Option<T> {
        let task = self.task.upgrade()?;
        let _held = access::hold(&task);
        let first = task.group.lock().threads.first().cloned();
        let seat = first.filter(|_| task.program() == self.program)?;
        Some(look(&seat, &*task.mm()?))
    }
}

/// The words of the pages from `addr` on. Pages of no mapping, such as the kernel's, read as zero.
fn words(seat: &Seat, mm: &Mm, addr: usize, out: &mut [u64]) -> Result<()> {
    seat.context().ok_or(Errno::ESRCH)?.page_map(addr, out)?;
    let end = addr + out.len() * PAGE;
    let mut clear_from = addr;
    let place = |at: usize| (at - addr) / PAGE;
    mm.each_region(addr, |region| {
        if region.start >= end {
            return ControlFlow::Break(());
        }
        if region.start > clear_from {
            out[place(clear_from)..place(region.start)].fill(0);
        }
        clear_from = region.end.min(end);
        ControlFlow::Continue(())
    });
    out[place(clear_from)..].fill(0);
    for word in out {
        *word &= !PLACE;
    }
    Ok(())
}

impl File for PageMap {
    fn splices(&self, _write: bool) -> bool {
        false
    }

    fn read(&self, _file: &OpenFile, _caller: &dyn Caller, buf: &mut ReadBuf<'_>, offset: u64) -> Result<usize> {
        if !offset.is_multiple_of(WORD as u64) || !buf.left().is_multiple_of(WORD) {
            return Err(Errno::EINVAL);
        }
        let mut chunk = vec![0; (buf.left() / WORD).min(CHUNK)];
        let mut moved = 0;
        while buf.left() > 0 && (moved == 0 || !buf.is_stopped()) {
            let page = usize::try_from(offset).unwrap_or(usize::MAX).saturating_add(moved) / WORD;
            let made = self.with(|seat, mm| {
                let left = (mm.bounds().high / PAGE).saturating_sub(page);
                let count = left.min(buf.left() / WORD).min(chunk.len());
                // Behind the last page there is nothing, and no address either.
                if count == 0 { Ok(0) } else { words(seat, mm, page * PAGE, &mut chunk[..count]).map(|()| count) }
            });
            match made {
                None | Some(Ok(0)) => break,
                Some(Ok(count)) => moved += buf.put(chunk[..count].as_bytes())?,
                Some(Err(errno)) if moved == 0 => return Err(errno),
                Some(Err(_)) => break,
            }
        }
        Ok(moved)
    }

    fn write(&self, _file: &OpenFile, _caller: &dyn Caller, _buf: &mut WriteBuf<'_>, _at: u64) -> Result<usize> {
        Err(Errno::EINVAL)
    }

    fn poll(&self, _file: &OpenFile, _caller: &dyn Caller, _table: Option<&mut PollTable>) -> Events {
        Events::ALWAYS
    }

    fn seekable(&self) -> bool {
        true
    }

    fn size(&self) -> Result<u64> {
        Ok(0)
    }

    fn seek(&self, file: &OpenFile, offset: i64, from: u32) -> Result<u64> {
        let mut pos = file.pos.lock();
        *pos = match from {
            whence::SEEK_SET => offset as u64,
            whence::SEEK_CUR => pos.wrapping_add_signed(offset),
            _ => return Err(Errno::EINVAL),
        };
        Ok(*pos)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
