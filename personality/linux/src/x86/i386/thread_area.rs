//! Thread-local storage of 32-bit code: set_thread_area(2), and the segment registers of a new program or thread.

use janua_abi::linux::i386::UserDesc;
use janua_abi::linux::i386::process::user_desc;
use janua_abi::linux::{Errno, Result};
use janua_kernel::UserPtr;
use janua_port::Compat;

use crate::Thread;

/// The entries a thread may have, as set_thread_area(2) has set them.
pub type Areas = [UserDesc; 2];

/// A new program begins without thread areas and with the segment registers of its kind of code.
pub fn reset(thread: &Thread, is_32: bool) {
    let areas = core::mem::take(&mut *thread.areas.lock());
    let (Some(compat), Ok(registers)) = (thread.machine().compat(), thread.registers()) else { return };
    for (at, area) in areas.iter().enumerate() {
        if area.flags != 0 {
            let _ = registers.set_thread_area(&empty(compat.thread_areas().0 + at as u32));
        }
    }
    registers.set_landing(0);
    registers.set_segments(if is_32 { janua_port::Segments::FLAT } else { janua_port::Segments::default() });
}

fn empty(entry: u32) -> UserDesc {
    UserDesc { entry, base: 0, limit: 0, flags: user_desc::EMPTY }
}

/// First words of a thread made by clone(2) with CLONE_SETTLS from 32-bit code.
pub fn begin(thread: &Thread) {
    let area = thread.new_area.lock().take();
    if let (Some(area), Some(compat)) = (area, thread.machine().compat()) {
        let _ = set(thread, compat, &area);
    }
}

/// Reads and checks the descriptor a CLONE_SETTLS of 32-bit code points to. EFAULT, EINVAL.
pub fn for_clone(thread: &Thread, place: usize) -> Result<UserDesc> {
    let area = UserPtr::<UserDesc>::new(place).read(thread.user())?;
    let compat = thread.machine().compat().ok_or(Errno::EINVAL)?;
    check(compat, &area)?;
    Ok(area)
}

/// Which of a thread's areas an entry is. EINVAL.
fn slot(compat: &dyn Compat, entry: u32) -> Result<usize> {
    let (first, count) = compat.thread_areas();
    entry.checked_sub(first).filter(|at| *at < count).map(|at| at as usize).ok_or(Errno::EINVAL)
}

fn check(compat: &dyn Compat, area: &UserDesc) -> Result<usize> {
    if !area.is_empty() && !area.is_data() {
        return Err(Errno::EINVAL);
    }
    slot(compat, area.entry)
}

fn set(thread: &Thread, compat: &dyn Compat, area: &UserDesc) -> Result<()> {
    let at = check(compat, area)?;
    let (given, kept) = if area.is_empty() { (empty(area.entry), UserDesc::default()) } else { (*area, *area) };
    thread.registers()?.set_thread_area(&given)?;
    if let Some(slot) = thread.areas.lock().get_mut(at) {
        *slot = kept;
    }
    Ok(())
}

/// set_thread_area(2). ESRCH when no entry is free; EINVAL for what is no 32-bit data segment.
pub fn set_thread_area(thread: &Thread, place: UserPtr<UserDesc>) -> Result<()> {
    let mut area = place.read(thread.user())?;
    let compat = thread.machine().compat().ok_or(Errno::ENOSYS)?;
    if !area.is_empty() && !area.is_data() {
        return Err(Errno::EINVAL);
    }
    let chosen = area.entry == u32::MAX;
    if chosen {
        let free = thread.areas.lock().iter().position(|area| area.flags == 0).ok_or(Errno::ESRCH)?;
        area.entry = compat.thread_areas().0 + free as u32;
        place.write(thread.user(), &area)?;
    }
    set(thread, compat, &area)
}

/// get_thread_area(2).
pub fn get_thread_area(thread: &Thread, place: UserPtr<UserDesc>) -> Result<()> {
    let entry = UserPtr::<u32>::new(place.addr()).read(thread.user())?;
    place.write(thread.user(), &of(thread, entry)?)
}

/// A thread's area. EINVAL for an entry that can be none.
pub fn of(thread: &Thread, entry: u32) -> Result<UserDesc> {
    let compat = thread.machine().compat().ok_or(Errno::ENOSYS)?;
    let at = slot(compat, entry)?;
    let area = thread.areas.lock().get(at).copied().unwrap_or_default();
    Ok(if area.flags == 0 { empty(entry) } else { UserDesc { entry, ..area } })
}
