//! The calls that every interface has under the same number: from 424 on new ones get one for all.
//!
//! Source: the kernel's syscall.tbl of all architectures as of 6.18.

/// [`calls!`](janua_kernel::calls) of an interface's own rows and of these. Between interfaces they differ in the layout of two structures.
macro_rules! with_generic {
    ($(#[$meta:meta])* pub static $rows:ident for $p:ty, SigInfo = $info:ty, TimeSpec = $time:ty; $($own:tt)*) => {
        calls! {
            $(#[$meta])* pub static $rows for $p;
            $($own)*
            424 pidfd_send_signal(pidfd: Fd, signal: Signal, info: UserPtr<$info>, flags: u32) => plain crate::signal::kill::pidfd_send_signal, task, Full;
            425 io_uring_setup(entries: u32, params: UserPtr<janua_abi::linux::uring::Params>) => plain crate::uring::io_uring_setup, home, Partial("no file does polled i/o (IOPOLL), no rings in the program's memory (NO_MMAP)");
            426 io_uring_enter(fd: u32, to_submit: u32, min_complete: u32, flags: u32, arg: usize, arg_size: usize) => wait crate::uring::io_uring_enter, home, Partial("what a submission points to is read when its operation begins; files on a disk are read and written before it returns; no commands but those of sockets, no bundles, bundled or vectored transfers from registered buffers; sends without a copy (SEND_ZC) copy");
            427 io_uring_register(fd: u32, opcode: u32, arg: usize, count: u32) => plain crate::uring::io_uring_register, home, Partial("registered buffers are ranges, not held in memory; no workers to limit or place (IOWQ_*), no rings of buffers that the kernel maps");
            428 open_tree() => missing, home, Missing("mounts are made with mount(2)");
            429 move_mount() => missing, home, Missing("mounts are made with mount(2)");
            430 fsopen() => missing, home, Missing("mounts are made with mount(2)");
            431 fsconfig() => missing, home, Missing("mounts are made with mount(2)");
            432 fsmount() => missing, home, Missing("mounts are made with mount(2)");
            433 fspick() => missing, home, Missing("mounts are made with mount(2)");
            434 pidfd_open(pid: i32, flags: u32) => plain task::pidfd::pidfd_open, task, Full;
            435 clone3(args: UserPtr<u8>, size: usize) => frame_wait task::clone::clone3, home, Partial("no namespaces; threads share descriptors; no set_tid");
            436 close_range(first: u32, last: u32, flags: fs::fd::CloseRangeFlags) => plain fs::fd::close_range, fs, Full;
            437 openat2(dir: DirFd, path: UserStr, how: UserPtr<OpenHow>, size: usize) => wait fs::open::openat2, fs, Partial("as open");
            438 pidfd_getfd(pidfd: Fd, fd: Fd, flags: u32) => plain task::pidfd::pidfd_getfd, ipc, Full;
            439 faccessat2(dir: DirFd, path: UserStr, mode: u32, flags: AtFlags) => plain fs::stat::faccessat2, fs, Full;
            440 process_madvise() => missing, home, Missing("a guest's memory is advised on only by its own threads");
            441 epoll_pwait2(epfd: Fd, events: UserPtr<EpollEvent>, most: i32, timeout: UserPtr<$time>, mask: UserPtr<u64>, mask_size: usize) => wait poll::epoll::epoll_pwait2, fs, Full;
            442 mount_setattr() => missing, home, Missing("mounts are changed with mount(2)");
            443 quotactl_fd() => missing, home, Missing("no quotas");
            444 landlock_create_ruleset() => missing, home, Missing("no Landlock rules; what a sandbox may reach is decided outside");
            445 landlock_add_rule() => missing, home, Missing("no Landlock rules; what a sandbox may reach is decided outside");
            446 landlock_restrict_self() => missing, home, Missing("no Landlock rules; what a sandbox may reach is decided outside");
            447 memfd_secret() => missing, home, Missing("memory hidden from the kernel itself cannot be had of the host");
            448 process_mrelease() => missing, home, Missing("memory of a dying process is released at once by its own last thread");
            449 futex_waitv(words: UserPtr<FutexWaitv>, count: u32, flags: u32, timeout: UserPtr<$time>, clock: ClockArg) => wait futex::multiple::futex_waitv, ipc, Full;
            450 set_mempolicy_home_node() => missing, home, Missing("memory nodes are the host's affair");
            451 cachestat() => missing, home, Missing("the page cache is the host's");
            452 fchmodat2(dir: DirFd, path: UserStr, mode: Mode, flags: AtFlags) => plain fs::attr::fchmodat2, fs, Full;
            453 map_shadow_stack() => missing, home, Missing("no shadow stacks");
            454 futex_wake(addr: usize, bitset: u64, most: i32, flags: u32) => plain futex::wake::futex_wake, ipc, Full;
            455 futex_wait(addr: usize, value: u64, bitset: u64, flags: u32, timeout: UserPtr<$time>, clock: ClockArg) => wait futex::wait::futex_wait, ipc, Full;
            456 futex_requeue(words: UserPtr<FutexWaitv>, flags: u32, wake: i32, most: i32) => plain futex::wake::futex_requeue, ipc, Full;
            457 statmount() => missing, home, Missing("mounts are listed in /proc/self/mountinfo");
            458 listmount() => missing, home, Missing("mounts are listed in /proc/self/mountinfo");
            459 lsm_get_self_attr() => missing, home, Missing("there are no security modules");
            460 lsm_set_self_attr() => missing, home, Missing("there are no security modules");
            461 lsm_list_modules() => missing, home, Missing("there are no security modules");
            462 mseal() => missing, home, Missing("mappings cannot be sealed");
            463 setxattrat(dir: DirFd, path: UserStr, flags: AtFlags, attr: UserStr, args: UserPtr<u8>, size: usize) => plain fs::xattr::setxattrat, fs, Full;
            464 getxattrat(dir: DirFd, path: UserStr, flags: AtFlags, attr: UserStr, args: UserPtr<u8>, size: usize) => plain fs::xattr::getxattrat, fs, Partial("security.* is not found of a host's file that the user may not open, nor of its links and devices");
            465 listxattrat(dir: DirFd, path: UserStr, flags: AtFlags, list: UserPtr<u8>, size: usize) => plain fs::xattr::listxattrat, fs, Full;
            466 removexattrat(dir: DirFd, path: UserStr, flags: AtFlags, attr: UserStr) => plain fs::xattr::removexattrat, fs, Full;
            467 open_tree_attr() => missing, home, Missing("mounts are made with mount(2)");
            468 file_getattr() => missing, home, Missing("no file attributes beyond the mode");
            469 file_setattr() => missing, home, Missing("no file attributes beyond the mode");
        }
    };
}

pub(crate) use with_generic;
