//! The table of calls, in the order of the classes in which Graphene's authors counted them. Numbers are Janua's own: Graphene's calls are functions.
//!
//! A handle is returned with its kind above bit 32. Where a call's arguments are not those of the function of its name, the library does the rest
//! (`user/libpal`).

use janua_abi::pal::{Attributes, Start};
use janua_kernel::calls;
use janua_kernel::table::Fd;
use janua_kernel::{UserPtr, UserStr};
use janua_personality_linux::Linux;

use crate::{bulk, exception, handle, memory, misc, process, sandbox, stream, sync, thread};

calls! {
    /// By number.
    pub static ROWS for Linux;
    0 DkVirtualMemoryAlloc(addr: usize, size: usize, alloc_type: u32, prot: u32) => plain memory::alloc, mm, Full;
    1 DkVirtualMemoryFree(addr: usize, size: usize) => plain memory::free, mm, Full;
    2 DkVirtualMemoryProtect(addr: usize, size: usize, prot: u32) => plain memory::protect, mm, Full;
    3 DkThreadCreate(stack: usize, handle: UserPtr<u32>, alive: UserPtr<u32>) => frame_wait thread::create, home, Full;
    4 DkThreadDelayExecution(micros: u64) => wait thread::delay, time, Full;
    5 DkThreadYieldExecution() => plain thread::yields, home, Full;
    6 DkThreadExit() => plain thread::exit, home, Full;
    7 DkThreadResume(target: Fd) => plain thread::resume, task, Full;
    8 DkSemaphoreCreate(taken: u64, most: u64) => plain sync::semaphore, ipc, Full;
    9 DkSemaphoreRelease(semaphore: Fd, units: u64) => plain sync::release, ipc, Full;
    10 DkNotificationEventCreate(set: u32) => plain sync::notification, ipc, Full;
    11 DkSynchronizationEventCreate(set: u32) => plain sync::synchronization, ipc, Full;
    12 DkEventSet(event: Fd) => plain sync::set, ipc, Full;
    13 DkEventClear(event: Fd) => plain sync::clear, ipc, Full;
    14 DkObjectsWaitAny(count: usize, handles: UserPtr<i32>, micros: u64) => wait sync::wait_any, ipc, Full;
    15 DkStreamOpen(uri: UserStr, access: u32, share: u32, create: u32, options: u32) => wait stream::open, fs, Full;
    16 DkStreamWaitForClient(server: Fd) => wait stream::wait_for_client, fs, Full;
    17 DkStreamRead(stream: Fd, offset: u64, count: usize, buf: UserPtr<u8>, source: UserPtr<u8>, size: usize) => wait stream::read, fs, Full;
    18 DkStreamWrite(stream: Fd, offset: u64, count: usize, buf: UserPtr<u8>, dest: UserStr) => wait stream::write, fs, Full;
    19 DkStreamDelete(stream: Fd, access: u32) => plain stream::delete, fs, Full;
    20 DkStreamMap(stream: Fd, addr: usize, prot: u32, offset: u64, size: usize) => plain stream::map, mm, Full;
    21 DkStreamUnmap(addr: usize, size: usize) => plain stream::unmap, mm, Full;
    22 DkStreamSetLength(stream: Fd, length: u64) => plain stream::set_length, fs, Full;
    23 DkStreamFlush(stream: Fd) => plain stream::flush, fs, Full;
    24 DkStreamGetName(stream: Fd, buf: UserPtr<u8>, size: usize) => plain stream::get_name, fs, Full;
    25 DkStreamAttributesQuery(uri: UserStr, attr: UserPtr<Attributes>) => plain stream::attr::query, fs, Partial("files, directories and devices: other streams have attributes only by their handles");
    26 DkStreamAttributesQuerybyHandle(stream: Fd, attr: UserPtr<Attributes>) => plain stream::attr::query_by_handle, fs, Full;
    27 DkProcessCreate(uri: UserStr, flags: u32, args: UserPtr<u64>) => wait process::create, home, Full;
    28 DkProcessExit(code: i32) => plain process::exit, home, Full;
    29 DkSystemTimeQuery() => plain misc::time, time, Full;
    30 DkRandomBitsRead(buf: UserPtr<u8>, size: usize) => plain misc::random, fs, Full;
    31 DkInstructionCacheFlush(addr: usize, size: usize) => plain misc::flush_code, home, Full;
    32 DkObjectClose(object: Fd) => plain handle::close, fs, Full;
    33 DkSegmentRegister(register: u32, addr: usize) => plain thread::segment_register, home, Full;
    34 DkSetExceptionHandler(event: u32, on: u32) => plain exception::set_handler, task, Full;
    35 DkExceptionReturn() => frame exception::go_on, home, Full;
    36 DkSendHandle(stream: Fd, cargo: Fd) => plain handle::send, ipc, Partial("over pipes and to processes, not over TCP; servers of pipes are not sent, nor a stream in which handles wait");
    37 DkReceiveHandle(stream: Fd) => wait handle::receive, ipc, Full;
    38 DkStreamChangeName(stream: Fd, uri: UserStr) => plain stream::change_name, fs, Partial("files and directories: sockets keep their addresses");
    39 DkCreatePhysicalMemoryChannel(key: UserPtr<u64>) => plain bulk::create, ipc, Full;
    40 DkPhysicalMemoryCommit(channel: Fd, count: usize, addrs: UserPtr<u64>, sizes: UserPtr<u64>, flags: u32) => plain bulk::commit, mm, Full;
    41 DkPhysicalMemoryMap(channel: Fd, count: usize, addrs: UserPtr<u64>, sizes: UserPtr<u64>, prots: UserPtr<u32>) => plain bulk::map, mm, Full;
    42 DkProcessSandboxCreate(manifest: UserStr, flags: u32) => plain sandbox::create, fs, Partial("there is no broadcast stream that a group of its own would have");
    43 PalStart(block: UserPtr<Start>, upcall: usize, restorer: usize, low: usize, high: usize) => plain misc::start, home, Full;
}

#[cfg(test)]
mod tests {
    use super::ROWS;

    #[test]
    fn there_are_43_calls_and_the_library_s_start() {
        assert_eq!(ROWS.len(), 44);
        assert!(ROWS.iter().take(43).all(|row| row.name.starts_with("Dk")));
        assert!(ROWS.iter().all(|row| !matches!(row.run, janua_kernel::Run::Missing)));
    }
}
