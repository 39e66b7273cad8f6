//! The table of calls: every number of the x86-64 interface, one row each.
//!
//! Source: the kernel's syscall_64.tbl as of 6.18. Numbers 337 to 423 were never assigned.

use janua_abi::linux::futex::FutexWaitv;
use janua_abi::linux::ipc::{MsqidDs, Sembuf, ShmidDs};
use janua_abi::linux::net::{MmsgHdr, MsgHdr};
use janua_abi::linux::poll::{EpollEvent, PollFd, SigSetArg};
use janua_abi::linux::process::{Rlimit, Rusage, SysInfo, TimeVal, UtsName};
use janua_abi::linux::signal::{SigAction, SigInfo, StackT};
use janua_abi::linux::stat::{OpenHow, Stat, Statfs, Statx};
use janua_abi::linux::time::{ITimerSpec, ITimerVal, SigEvent, TimeSpec, TimeZone, Timex, Tms};
use janua_kernel::calls;
use janua_kernel::table::Fd;
use janua_kernel::{UserPtr, UserStr};

use crate::Linux;
use crate::cred::{self, capability};
use crate::fs::at::{AtFlags, DirFd, Mode};
use crate::fs::open::OpenFlags;
use crate::futex::FutexOp;
use crate::limits::Resource;
use crate::net::args::{Domain, Level, MsgFlags, Type};
use crate::poll::epoll::Op as EpollOp;
use crate::prctl::PrctlOption;
use crate::signal::calls::Signal;
use crate::task::clone::CloneFlags;
use crate::task::wait::WaitOptions;
use crate::time::ClockArg;
use crate::{event, exec, fs, futex, ipc, limits, misc, mm, net, poll, prctl, restart, sched, signal, task, time, usage};

calls! {
    /// All rows, by number.
    pub static ROWS for Linux;

    0 read(fd: Fd, buf: UserPtr<u8>, len: usize) => wait fs::rw::read, Full;

    1 write(fd: Fd, buf: UserPtr<u8>, len: usize) => wait fs::rw::write, Full;

    2 open(path: UserStr, flags: OpenFlags, mode: Mode) => wait fs::open::open, Full;

    3 close(fd: Fd) => plain fs::fd::close, Full;

    4 stat(path: UserStr, out: UserPtr<Stat>) => plain fs::stat::stat, Full;

    5 fstat(fd: Fd, out: UserPtr<Stat>) => plain fs::stat::fstat, Full;

    6 lstat(path: UserStr, out: UserPtr<Stat>) => plain fs::stat::lstat, Full;

    7 poll(fds: UserPtr<PollFd>, count: u32, timeout: i32) => wait poll::poll::poll, Full;

    8 lseek(fd: Fd, offset: i64, whence: fs::rw::Whence) => plain fs::rw::lseek, Full;

    9 mmap(addr: mm::Addr, length: usize, prot: mm::ProtWord, flags: mm::MapWord, fd: Fd, offset: u64) => plain mm::mmap, Full;

    10 mprotect(addr: mm::Addr, len: usize, prot: mm::ProtWord) => plain mm::mprotect, Full;

    11 munmap(addr: mm::Addr, length: usize) => plain mm::munmap, Full;

    12 brk(addr: mm::Addr) => plain mm::brk, Full;

    13 rt_sigaction(signal: Signal, act: UserPtr<SigAction>, oldact: UserPtr<SigAction>, size: usize) => plain signal::calls::rt_sigaction, Full;

    14 rt_sigprocmask(how: i32, set: UserPtr<u64>, oldset: UserPtr<u64>, size: usize) => plain signal::calls::rt_sigprocmask, Full;

    15 rt_sigreturn() => frame signal::frame::sigreturn, Full;

    16 ioctl(fd: Fd, request: fs::fcntl::Request, arg: usize) => plain fs::fcntl::ioctl, Full;

    17 pread64(fd: Fd, buf: UserPtr<u8>, len: usize, offset: i64) => wait fs::rw::pread64, Full;

    18 pwrite64(fd: Fd, buf: UserPtr<u8>, len: usize, offset: i64) => wait fs::rw::pwrite64, Full;

    19 readv(fd: Fd, list: UserPtr<[usize; 2]>, count: usize) => wait fs::rw::readv, Full;

    20 writev(fd: Fd, list: UserPtr<[usize; 2]>, count: usize) => wait fs::rw::writev, Full;

    21 access(path: UserStr, mode: u32) => plain fs::stat::access, Full;

    22 pipe(out: UserPtr<[i32; 2]>) => plain fs::pipe::pipe, Full;

    23 select(count: i32, read: UserPtr<u64>, write: UserPtr<u64>, except: UserPtr<u64>, timeout: UserPtr<TimeVal>) => wait poll::select::select, Full;

    24 sched_yield() => plain sched::sched_yield, Full;

    25 mremap(old_address: mm::Addr, old_size: usize, new_size: usize, flags: mm::RemapWord, new_address: mm::Addr) => plain mm::mremap, Full;

    26 msync(addr: mm::Addr, length: usize, flags: mm::SyncWord) => plain mm::msync, Full;

    27 mincore(addr: mm::Addr, length: usize, vec: UserPtr<u8>) => plain mm::mincore, Full;

    28 madvise(addr: mm::Addr, length: usize, advice: mm::AdviceWord) => plain mm::madvise, Partial("no memory errors by hand (MADV_HWPOISON, MADV_SOFT_OFFLINE)");

    29 shmget(key: i32, size: usize, shmflg: ipc::GetFlags) => plain ipc::shmget, Partial("no huge pages");

    30 shmat(shmid: i32, shmaddr: mm::Addr, shmflg: u32) => plain ipc::shmat, Full;

    31 shmctl(shmid: i32, cmd: ipc::Command, buf: UserPtr<ShmidDs>) => plain ipc::shmctl, Full;

    32 dup(fd: Fd) => plain fs::fd::dup, Full;

    33 dup2(old: Fd, new: Fd) => plain fs::fd::dup2, Full;

    34 pause() => wait signal::calls::pause, Full;

    35 nanosleep(time: UserPtr<TimeSpec>, remaining: UserPtr<TimeSpec>) => wait time::sleep::nanosleep, Full;

    36 getitimer(which: i32, value: UserPtr<ITimerVal>) => plain time::interval::getitimer, Full;

    37 alarm(seconds: u32) => plain time::interval::alarm, Full;

    38 setitimer(which: i32, value: UserPtr<ITimerVal>, old: UserPtr<ITimerVal>) => plain time::interval::setitimer, Full;

    39 getpid() => plain task::session::getpid, Full;

    40 sendfile(fd_out: Fd, fd_in: Fd, offset: UserPtr<i64>, count: usize) => wait fs::splice::sendfile, Full;

    41 socket(domain: Domain, kind: Type, protocol: u32) => plain net::socket, Full;

    42 connect(fd: Fd, addr: UserPtr<u8>, addr_len: i32) => wait net::connect::connect, Full;

    43 accept(fd: Fd, addr: UserPtr<u8>, addr_len: UserPtr<i32>) => wait net::connect::accept, Full;

    44 sendto(fd: Fd, buf: UserPtr<u8>, len: usize, flags: MsgFlags, addr: UserPtr<u8>, addr_len: i32) => wait net::transfer::sendto, Partial("no MSG_ZEROCOPY, no TCP fast open");

    45 recvfrom(fd: Fd, buf: UserPtr<u8>, len: usize, flags: MsgFlags, addr: UserPtr<u8>, addr_len: UserPtr<i32>) => wait net::transfer::recvfrom, Partial("no error queue");

    46 sendmsg(fd: Fd, message: UserPtr<MsgHdr>, flags: MsgFlags) => wait net::transfer::sendmsg, Partial("no MSG_ZEROCOPY, no TCP fast open");

    47 recvmsg(fd: Fd, message: UserPtr<MsgHdr>, flags: MsgFlags) => wait net::transfer::recvmsg, Partial("no error queue");

    48 shutdown(fd: Fd, how: i32) => plain net::shutdown, Full;

    49 bind(fd: Fd, addr: UserPtr<u8>, addr_len: i32) => plain net::bind, Full;

    50 listen(fd: Fd, backlog: i32) => plain net::listen, Full;

    51 getsockname(fd: Fd, addr: UserPtr<u8>, addr_len: UserPtr<i32>) => plain net::getsockname, Full;

    52 getpeername(fd: Fd, addr: UserPtr<u8>, addr_len: UserPtr<i32>) => plain net::getpeername, Full;

    53 socketpair(domain: Domain, kind: Type, protocol: u32, pair: UserPtr<[i32; 2]>) => plain net::socketpair, Full;

    54 setsockopt(fd: Fd, level: Level, name: u32, value: UserPtr<u8>, len: i32) => plain net::options::setsockopt, Partial("no socket filters, zero copy, kernel TLS");

    55 getsockopt(fd: Fd, level: Level, name: u32, value: UserPtr<u8>, len: UserPtr<i32>) => plain net::options::getsockopt, Partial("no socket filters, zero copy, kernel TLS");

    56 clone(flags: CloneFlags, stack: usize, parent_tid: UserPtr<u32>, child_tid: UserPtr<u32>, tls: usize) => wait task::clone::clone, Partial("no namespaces; threads share descriptors and directory");

    57 fork() => wait task::clone::fork, Full;

    58 vfork() => wait task::clone::vfork, Full;

    59 execve(pathname: UserStr, argv: UserPtr<usize>, envp: UserPtr<usize>) => wait exec::execve, Partial("64-bit programs only; no file capabilities");

    60 exit(code: i32) => plain task::exit::exit, Full;

    61 wait4(pid: i32, status: UserPtr<u32>, options: WaitOptions, usage: UserPtr<Rusage>) => wait task::wait::wait4, Full;

    62 kill(pid: i32, signal: Signal) => plain signal::kill::kill, Full;

    63 uname(names: UserPtr<UtsName>) => plain misc::uname, Full;

    64 semget(key: i32, nsems: i32, semflg: ipc::GetFlags) => plain ipc::semget, Full;

    65 semop(semid: i32, sops: UserPtr<Sembuf>, nsops: usize) => wait ipc::semop, Full;

    66 semctl(semid: i32, semnum: i32, cmd: ipc::Command, arg: usize) => plain ipc::semctl, Full;

    67 shmdt(shmaddr: mm::Addr) => plain ipc::shmdt, Full;

    68 msgget(key: i32, msgflg: ipc::GetFlags) => plain ipc::msgget, Full;

    69 msgsnd(msqid: i32, msgp: UserPtr<i64>, msgsz: usize, msgflg: u32) => wait ipc::msgsnd, Full;

    70 msgrcv(msqid: i32, msgp: UserPtr<i64>, msgsz: usize, msgtyp: i64, msgflg: u32) => wait ipc::msgrcv, Full;

    71 msgctl(msqid: i32, cmd: ipc::Command, buf: UserPtr<MsqidDs>) => plain ipc::msgctl, Full;

    72 fcntl(fd: Fd, command: fs::fcntl::FcntlCommand, arg: usize) => wait fs::fcntl::fcntl, Partial("no leases, no directory notification, write hints are refused");

    73 flock(fd: Fd, op: fs::locks::FlockOp) => wait fs::locks::flock, Full;

    74 fsync(fd: Fd) => plain fs::sync::fsync, Full;

    75 fdatasync(fd: Fd) => plain fs::sync::fdatasync, Full;

    76 truncate(path: UserStr, size: i64) => plain fs::attr::truncate, Full;

    77 ftruncate(fd: Fd, size: i64) => plain fs::attr::ftruncate, Full;

    78 getdents(fd: Fd, out: UserPtr<u8>, size: u32) => plain fs::dir::getdents, Full;

    79 getcwd(out: UserPtr<u8>, size: usize) => plain fs::dir::getcwd, Full;

    80 chdir(path: UserStr) => plain fs::dir::chdir, Full;

    81 fchdir(fd: Fd) => plain fs::dir::fchdir, Full;

    82 rename(old: UserStr, new: UserStr) => plain fs::names::rename, Full;

    83 mkdir(path: UserStr, mode: Mode) => plain fs::names::mkdir, Full;

    84 rmdir(path: UserStr) => plain fs::names::rmdir, Full;

    85 creat(path: UserStr, mode: Mode) => wait fs::open::creat, Full;

    86 link(old: UserStr, new: UserStr) => plain fs::names::link, Full;

    87 unlink(path: UserStr) => plain fs::names::unlink, Full;

    88 symlink(target: UserStr, path: UserStr) => plain fs::names::symlink, Full;

    89 readlink(path: UserStr, out: UserPtr<u8>, size: i32) => plain fs::names::readlink, Full;

    90 chmod(path: UserStr, mode: Mode) => plain fs::attr::chmod, Full;

    91 fchmod(fd: Fd, mode: Mode) => plain fs::attr::fchmod, Full;

    92 chown(path: UserStr, uid: u32, gid: u32) => plain fs::attr::chown, Full;

    93 fchown(fd: Fd, uid: u32, gid: u32) => plain fs::attr::fchown, Full;

    94 lchown(path: UserStr, uid: u32, gid: u32) => plain fs::attr::lchown, Full;

    95 umask(mask: Mode) => plain fs::dir::umask, Full;

    96 gettimeofday(time: UserPtr<TimeVal>, zone: UserPtr<TimeZone>) => plain time::clock::gettimeofday, Full;

    97 getrlimit(resource: Resource, limit: UserPtr<Rlimit>) => plain limits::getrlimit, Full;

    98 getrusage(who: i32, usage: UserPtr<Rusage>) => plain usage::getrusage, Partial("all processor time counts as user time; faults and switches are not counted");

    99 sysinfo(info: UserPtr<SysInfo>) => plain misc::sysinfo, Partial("no load averages");

    100 times(times: UserPtr<Tms>) => plain time::clock::times, Full;

    101 ptrace() => missing, Missing("no guest can trace another: their registers and memory are reached only by their own threads");

    102 getuid() => plain cred::ids::getuid, Full;

    103 syslog(action: i32, buf: UserPtr<u8>, len: i32) => plain misc::syslog, Partial("the log is empty");

    104 getgid() => plain cred::ids::getgid, Full;

    105 setuid(uid: u32) => plain cred::ids::setuid, Full;

    106 setgid(gid: u32) => plain cred::ids::setgid, Full;

    107 geteuid() => plain cred::ids::geteuid, Full;

    108 getegid() => plain cred::ids::getegid, Full;

    109 setpgid(pid: i32, pgid: i32) => plain task::session::setpgid, Full;

    110 getppid() => plain task::session::getppid, Full;

    111 getpgrp() => plain task::session::getpgrp, Full;

    112 setsid() => plain task::session::setsid, Full;

    113 setreuid(real: u32, effective: u32) => plain cred::ids::setreuid, Full;

    114 setregid(real: u32, effective: u32) => plain cred::ids::setregid, Full;

    115 getgroups(size: i32, list: UserPtr<u32>) => plain cred::ids::getgroups, Full;

    116 setgroups(size: usize, list: UserPtr<u32>) => plain cred::ids::setgroups, Full;

    117 setresuid(real: u32, effective: u32, saved: u32) => plain cred::ids::setresuid, Full;

    118 getresuid(real: UserPtr<u32>, effective: UserPtr<u32>, saved: UserPtr<u32>) => plain cred::ids::getresuid, Full;

    119 setresgid(real: u32, effective: u32, saved: u32) => plain cred::ids::setresgid, Full;

    120 getresgid(real: UserPtr<u32>, effective: UserPtr<u32>, saved: UserPtr<u32>) => plain cred::ids::getresgid, Full;

    121 getpgid(pid: i32) => plain task::session::getpgid, Full;

    122 setfsuid(uid: u32) => plain cred::ids::setfsuid, Full;

    123 setfsgid(gid: u32) => plain cred::ids::setfsgid, Full;

    124 getsid(pid: i32) => plain task::session::getsid, Full;

    125 capget(header: UserPtr<capability::Header>, data: UserPtr<capability::Data>) => plain cred::capability::capget, Full;

    126 capset(header: UserPtr<capability::Header>, data: UserPtr<capability::Data>) => plain cred::capability::capset, Full;

    127 rt_sigpending(set: UserPtr<u8>, size: usize) => plain signal::calls::rt_sigpending, Full;

    128 rt_sigtimedwait(set: UserPtr<u64>, info: UserPtr<SigInfo>, timeout: UserPtr<[i64; 2]>, size: usize) => wait signal::calls::rt_sigtimedwait, Full;

    129 rt_sigqueueinfo(pid: i32, signal: Signal, info: UserPtr<SigInfo>) => plain signal::kill::rt_sigqueueinfo, Full;

    130 rt_sigsuspend(mask: UserPtr<u64>, size: usize) => wait signal::calls::rt_sigsuspend, Full;

    131 sigaltstack(new: UserPtr<StackT>, old: UserPtr<StackT>) => frame signal::altstack::sigaltstack, Full;

    132 utime(path: UserStr, times: UserPtr<[i64; 2]>) => plain fs::attr::utime, Full;

    133 mknod(path: UserStr, mode: Mode, dev: u64) => plain fs::names::mknod, Full;

    134 uselib() => missing, Missing("libraries in the format before ELF");

    135 personality(persona: u32) => plain misc::personality, Partial("the execution domain is kept but only ADDR_NO_RANDOMIZE has an effect");

    136 ustat() => missing, Missing("obsolete; statfs tells more");

    137 statfs(path: UserStr, out: UserPtr<Statfs>) => plain fs::stat::statfs, Full;

    138 fstatfs(fd: Fd, out: UserPtr<Statfs>) => plain fs::stat::fstatfs, Full;

    139 sysfs() => missing, Missing("obsolete; /proc/filesystems lists file systems");

    140 getpriority(which: u32, who: u32) => plain sched::getpriority, Full;

    141 setpriority(which: u32, who: u32, nice: i32) => plain sched::setpriority, Partial("the value is kept for the whole process and not passed to the machine");

    142 sched_setparam(pid: i32, param: UserPtr<u32>) => plain sched::sched_setparam, Partial("remembered; the machine schedules all threads alike");

    143 sched_getparam(pid: i32, param: UserPtr<u32>) => plain sched::sched_getparam, Full;

    144 sched_setscheduler(pid: i32, policy: i32, param: UserPtr<u32>) => plain sched::sched_setscheduler, Partial("remembered; the machine schedules all threads alike");

    145 sched_getscheduler(pid: i32) => plain sched::sched_getscheduler, Full;

    146 sched_get_priority_max(policy: u32) => plain sched::sched_get_priority_max, Full;

    147 sched_get_priority_min(policy: u32) => plain sched::sched_get_priority_min, Full;

    148 sched_rr_get_interval(pid: i32, interval: UserPtr<[i64; 2]>) => plain sched::sched_rr_get_interval, Full;

    149 mlock(addr: mm::Addr, len: usize) => plain mm::mlock, Partial("counted and made present; not kept from the host's swap");

    150 munlock(addr: mm::Addr, len: usize) => plain mm::munlock, Full;

    151 mlockall(flags: mm::LockWord) => plain mm::mlockall, Partial("counted; not kept from the host's swap");

    152 munlockall() => plain mm::munlockall, Full;

    153 vhangup() => missing, Missing("terminals are hung up by their own driver, when a session leader ends");

    154 modify_ldt() => missing, Missing("segments of a program's own serve 16- and 32-bit code only");

    155 pivot_root(new_root: UserStr, put_old: UserStr) => plain fs::mount::pivot_root, Full;

    156 _sysctl() => missing, Missing("removed from Linux in 5.5; /proc/sys is the way");

    157 prctl(option: PrctlOption, a: usize, b: usize, c: usize, d: usize) => plain prctl::prctl, Partial("no seccomp, PR_SET_MM, speculation or dispatch control");

    158 arch_prctl(code: u32, addr: mm::Addr) => plain mm::arch_prctl, Partial("no CPUID faulting, shadow stacks or dynamic vector state");

    159 adjtimex(state: UserPtr<Timex>) => plain time::clock::adjtimex, Partial("reads only: EPERM for a change");

    160 setrlimit(resource: Resource, limit: UserPtr<Rlimit>) => plain limits::setrlimit, Full;

    161 chroot(path: UserStr) => plain fs::dir::chroot, Full;

    162 sync() => plain fs::sync::sync, Full;

    163 acct() => missing, Missing("no process accounting file is written; waits and /proc give the figures");

    164 settimeofday(time: UserPtr<TimeVal>, zone: UserPtr<TimeZone>) => plain time::clock::settimeofday, Partial("the clock is the machine's: EPERM");

    165 mount(source: UserStr, target: UserStr, kind: UserStr, flags: fs::mount::MsFlags, data: UserPtr<u8>) => plain fs::mount::mount, Partial("one name space, all mounts private; file systems tmpfs, proc, devtmpfs");

    166 umount2(target: UserStr, flags: fs::mount::UmountFlags) => plain fs::mount::umount2, Partial("MNT_EXPIRE");

    167 swapon() => missing, Missing("swapping is the host's affair");

    168 swapoff() => missing, Missing("swapping is the host's affair");

    169 reboot() => missing, Missing("a sandbox ends with its first program and cannot be restarted from inside");

    170 sethostname(name: UserPtr<u8>, len: usize) => plain misc::sethostname, Full;

    171 setdomainname(name: UserPtr<u8>, len: usize) => plain misc::setdomainname, Full;

    172 iopl() => missing, Missing("guests have no access to i/o ports");

    173 ioperm() => missing, Missing("guests have no access to i/o ports");

    174 create_module() => missing, Missing("removed from Linux in 2.6");

    175 init_module() => missing, Missing("the kernel has no loadable modules");

    176 delete_module() => missing, Missing("the kernel has no loadable modules");

    177 get_kernel_syms() => missing, Missing("removed from Linux in 2.6");

    178 query_module() => missing, Missing("removed from Linux in 2.6");

    179 quotactl() => missing, Missing("no quotas");

    180 nfsservctl() => missing, Missing("removed from Linux in 3.1");

    181 getpmsg() => missing, Missing("a number reserved for STREAMS, never implemented by Linux");

    182 putpmsg() => missing, Missing("a number reserved for STREAMS, never implemented by Linux");

    183 afs_syscall() => missing, Missing("a number reserved for AFS, never implemented by Linux");

    184 tuxcall() => missing, Missing("a number reserved for TUX, never implemented by Linux");

    185 security() => missing, Missing("a number reserved for security modules, never implemented by Linux");

    186 gettid() => plain task::session::gettid, Full;

    187 readahead(fd: Fd, offset: i64, count: usize) => plain fs::sync::readahead, Full;

    188 setxattr(path: UserStr, attr: UserStr, value: UserPtr<u8>, size: usize, flags: u32) => plain fs::xattr::setxattr, Full;

    189 lsetxattr(path: UserStr, attr: UserStr, value: UserPtr<u8>, size: usize, flags: u32) => plain fs::xattr::lsetxattr, Full;

    190 fsetxattr(fd: Fd, attr: UserStr, value: UserPtr<u8>, size: usize, flags: u32) => plain fs::xattr::fsetxattr, Full;

    191 getxattr(path: UserStr, attr: UserStr, out: UserPtr<u8>, size: usize) => plain fs::xattr::getxattr, Full;

    192 lgetxattr(path: UserStr, attr: UserStr, out: UserPtr<u8>, size: usize) => plain fs::xattr::lgetxattr, Full;

    193 fgetxattr(fd: Fd, attr: UserStr, out: UserPtr<u8>, size: usize) => plain fs::xattr::fgetxattr, Full;

    194 listxattr(path: UserStr, out: UserPtr<u8>, size: usize) => plain fs::xattr::listxattr, Full;

    195 llistxattr(path: UserStr, out: UserPtr<u8>, size: usize) => plain fs::xattr::llistxattr, Full;

    196 flistxattr(fd: Fd, out: UserPtr<u8>, size: usize) => plain fs::xattr::flistxattr, Full;

    197 removexattr(path: UserStr, attr: UserStr) => plain fs::xattr::removexattr, Full;

    198 lremovexattr(path: UserStr, attr: UserStr) => plain fs::xattr::lremovexattr, Full;

    199 fremovexattr(fd: Fd, attr: UserStr) => plain fs::xattr::fremovexattr, Full;

    200 tkill(tid: i32, signal: Signal) => plain signal::kill::tkill, Full;

    201 time(place: UserPtr<i64>) => plain time::clock::time, Full;

    202 futex(addr: usize, op: FutexOp, value: u32, timeout: usize, addr2: usize, value3: u32) => wait futex::futex, Full;

    203 sched_setaffinity(pid: i32, len: usize, mask: UserPtr<u8>) => plain sched::sched_setaffinity, Full;

    204 sched_getaffinity(pid: i32, len: usize, mask: UserPtr<u8>) => plain sched::sched_getaffinity, Full;

    205 set_thread_area() => missing, Missing("thread areas in the descriptor table are for 32-bit code; 64-bit code uses arch_prctl");

    206 io_setup() => missing, Missing("no kernel-side asynchronous i/o; POSIX aio of the C library works with threads");

    207 io_destroy() => missing, Missing("no kernel-side asynchronous i/o; POSIX aio of the C library works with threads");

    208 io_getevents() => missing, Missing("no kernel-side asynchronous i/o; POSIX aio of the C library works with threads");

    209 io_submit() => missing, Missing("no kernel-side asynchronous i/o; POSIX aio of the C library works with threads");

    210 io_cancel() => missing, Missing("no kernel-side asynchronous i/o; POSIX aio of the C library works with threads");

    211 get_thread_area() => missing, Missing("thread areas in the descriptor table are for 32-bit code; 64-bit code uses arch_prctl");

    212 lookup_dcookie() => missing, Missing("removed from Linux in 6.6");

    213 epoll_create(size: i32) => plain poll::epoll::epoll_create, Full;

    214 epoll_ctl_old() => missing, Missing("replaced by epoll_ctl before it was ever in a release");

    215 epoll_wait_old() => missing, Missing("replaced by epoll_wait before it was ever in a release");

    216 remap_file_pages() => missing, Missing("deprecated; Linux itself emulates it with mmap");

    217 getdents64(fd: Fd, out: UserPtr<u8>, size: u32) => plain fs::dir::getdents64, Full;

    218 set_tid_address(address: usize) => plain task::set_tid_address, Full;

    219 restart_syscall() => wait restart::restart_syscall, Full;

    220 semtimedop(semid: i32, sops: UserPtr<Sembuf>, nsops: usize, timeout: UserPtr<[i64; 2]>) => wait ipc::semtimedop, Full;

    221 fadvise64(fd: Fd, offset: i64, len: i64, advice: u32) => plain fs::sync::fadvise64, Full;

    222 timer_create(clock: ClockArg, event: UserPtr<SigEvent>, timer: UserPtr<i32>) => plain time::posix::timer_create, Full;

    223 timer_settime(timer: i32, flags: u32, new: UserPtr<ITimerSpec>, old: UserPtr<ITimerSpec>) => plain time::posix::timer_settime, Full;

    224 timer_gettime(timer: i32, value: UserPtr<ITimerSpec>) => plain time::posix::timer_gettime, Full;

    225 timer_getoverrun(timer: i32) => plain time::posix::timer_getoverrun, Full;

    226 timer_delete(timer: i32) => plain time::posix::timer_delete, Full;

    227 clock_settime(clock: ClockArg, time: UserPtr<TimeSpec>) => plain time::clock::clock_settime, Partial("the clock is the machine's: EPERM");

    228 clock_gettime(clock: ClockArg, time: UserPtr<TimeSpec>) => plain time::clock::clock_gettime, Full;

    229 clock_getres(clock: ClockArg, resolution: UserPtr<TimeSpec>) => plain time::clock::clock_getres, Full;

    230 clock_nanosleep(clock: ClockArg, flags: u32, time: UserPtr<TimeSpec>, remaining: UserPtr<TimeSpec>) => wait time::sleep::clock_nanosleep, Full;

    231 exit_group(code: i32) => plain task::exit::exit_group, Full;

    232 epoll_wait(epfd: Fd, events: UserPtr<EpollEvent>, most: i32, timeout: i32) => wait poll::epoll::epoll_wait, Full;

    233 epoll_ctl(epfd: Fd, op: EpollOp, fd: Fd, event: UserPtr<EpollEvent>) => plain poll::epoll::epoll_ctl, Full;

    234 tgkill(tgid: i32, tid: i32, signal: Signal) => plain signal::kill::tgkill, Full;

    235 utimes(path: UserStr, times: UserPtr<[[i64; 2]; 2]>) => plain fs::attr::utimes, Full;

    236 vserver() => missing, Missing("a number reserved for Linux-VServer, never implemented by Linux");

    237 mbind() => missing, Missing("memory nodes are the host's affair");

    238 set_mempolicy() => missing, Missing("memory nodes are the host's affair");

    239 get_mempolicy() => missing, Missing("memory nodes are the host's affair");

    240 mq_open(name: UserStr, oflag: OpenFlags, mode: u32, attr: UserPtr<ipc::MqAttr>) => plain ipc::mq_open, Full;

    241 mq_unlink(name: UserStr) => plain ipc::mq_unlink, Full;

    242 mq_timedsend(mqdes: Fd, msg: UserPtr<u8>, len: usize, prio: u32, timeout: UserPtr<[i64; 2]>) => wait ipc::mq_timedsend, Full;

    243 mq_timedreceive(mqdes: Fd, msg: UserPtr<u8>, len: usize, prio: UserPtr<u32>, timeout: UserPtr<[i64; 2]>) => wait ipc::mq_timedreceive, Full;

    244 mq_notify() => missing, Missing("message queues are waited for with poll or a thread");

    245 mq_getsetattr(mqdes: Fd, new: UserPtr<ipc::MqAttr>, old: UserPtr<ipc::MqAttr>) => plain ipc::mq_getsetattr, Full;

    246 kexec_load() => missing, Missing("there is no other kernel to boot into from inside a sandbox");

    247 waitid(id_type: u32, id: i32, info: UserPtr<SigInfo>, options: WaitOptions, usage: UserPtr<Rusage>) => wait task::wait::waitid, Full;

    248 add_key() => missing, Missing("no key retention service");

    249 request_key() => missing, Missing("no key retention service");

    250 keyctl() => missing, Missing("no key retention service");

    251 ioprio_set(which: i32, who: i32, word: u32) => plain sched::ioprio_set, Partial("single processes; remembered, the host orders i/o itself");

    252 ioprio_get(which: i32, who: i32) => plain sched::ioprio_get, Partial("single processes");

    253 inotify_init() => plain fs::inotify::inotify_init, Full;

    254 inotify_add_watch(fd: Fd, path: UserStr, mask: fs::inotify::WatchMask) => plain fs::inotify::inotify_add_watch, Full;

    255 inotify_rm_watch(fd: Fd, wd: i32) => plain fs::inotify::inotify_rm_watch, Full;

    256 migrate_pages() => missing, Missing("memory nodes are the host's affair");

    257 openat(dir: DirFd, path: UserStr, flags: OpenFlags, mode: Mode) => wait fs::open::openat, Full;

    258 mkdirat(dir: DirFd, path: UserStr, mode: Mode) => plain fs::names::mkdirat, Full;

    259 mknodat(dir: DirFd, path: UserStr, mode: Mode, dev: u64) => plain fs::names::mknodat, Full;

    260 fchownat(dir: DirFd, path: UserStr, uid: u32, gid: u32, flags: AtFlags) => plain fs::attr::fchownat, Full;

    261 futimesat(dir: DirFd, path: UserStr, times: UserPtr<[[i64; 2]; 2]>) => plain fs::attr::futimesat, Full;

    262 newfstatat(dir: DirFd, path: UserStr, out: UserPtr<Stat>, flags: AtFlags) => plain fs::stat::newfstatat, Full;

    263 unlinkat(dir: DirFd, path: UserStr, flags: AtFlags) => plain fs::names::unlinkat, Full;

    264 renameat(old_dir: DirFd, old: UserStr, new_dir: DirFd, new: UserStr) => plain fs::names::renameat, Full;

    265 linkat(old_dir: DirFd, old: UserStr, new_dir: DirFd, new: UserStr, flags: AtFlags) => plain fs::names::linkat, Full;

    266 symlinkat(target: UserStr, dir: DirFd, path: UserStr) => plain fs::names::symlinkat, Full;

    267 readlinkat(dir: DirFd, path: UserStr, out: UserPtr<u8>, size: i32) => plain fs::names::readlinkat, Full;

    268 fchmodat(dir: DirFd, path: UserStr, mode: Mode) => plain fs::attr::fchmodat, Full;

    269 faccessat(dir: DirFd, path: UserStr, mode: u32) => plain fs::stat::faccessat, Full;

    270 pselect6(count: i32, read: UserPtr<u64>, write: UserPtr<u64>, except: UserPtr<u64>, timeout: UserPtr<TimeSpec>, mask: UserPtr<SigSetArg>) => wait poll::select::pselect6, Full;

    271 ppoll(fds: UserPtr<PollFd>, count: u32, timeout: UserPtr<TimeSpec>, mask: UserPtr<u64>, mask_size: usize) => wait poll::poll::ppoll, Full;

    272 unshare(flags: CloneFlags) => plain task::unshare, Partial("no namespaces; threads of one process always share");

    273 set_robust_list(head: usize, len: usize) => plain futex::robust::set_robust_list, Full;

    274 get_robust_list(tid: i32, head: UserPtr<u64>, len: UserPtr<u64>) => plain futex::robust::get_robust_list, Full;

    275 splice(fd_in: Fd, off_in: UserPtr<i64>, fd_out: Fd, off_out: UserPtr<i64>, len: usize, flags: fs::splice::SpliceFlags) => wait fs::splice::splice, Full;

    276 tee(fd_in: Fd, fd_out: Fd, len: usize, flags: fs::splice::SpliceFlags) => wait fs::splice::tee, Full;

    277 sync_file_range(fd: Fd, offset: i64, bytes: i64, flags: u32) => plain fs::sync::sync_file_range, Full;

    278 vmsplice(fd: Fd, list: UserPtr<[usize; 2]>, count: usize, flags: fs::splice::SpliceFlags) => wait fs::splice::vmsplice, Full;

    279 move_pages() => missing, Missing("memory nodes are the host's affair");

    280 utimensat(dir: DirFd, path: UserStr, times: UserPtr<[[i64; 2]; 2]>, flags: AtFlags) => plain fs::attr::utimensat, Full;

    281 epoll_pwait(epfd: Fd, events: UserPtr<EpollEvent>, most: i32, timeout: i32, mask: UserPtr<u64>, mask_size: usize) => wait poll::epoll::epoll_pwait, Full;

    282 signalfd(fd: Fd, mask: UserPtr<u64>, size: usize) => plain signal::signalfd::signalfd, Full;

    283 timerfd_create(clock: ClockArg, flags: u32) => plain event::timerfd_create, Full;

    284 eventfd(initial: u32) => plain event::eventfd, Full;

    285 fallocate(fd: Fd, mode: u32, offset: i64, len: i64) => plain fs::attr::fallocate, Full;

    286 timerfd_settime(fd: Fd, flags: u32, new: UserPtr<ITimerSpec>, old: UserPtr<ITimerSpec>) => plain event::timerfd_settime, Full;

    287 timerfd_gettime(fd: Fd, value: UserPtr<ITimerSpec>) => plain event::timerfd_gettime, Full;

    288 accept4(fd: Fd, addr: UserPtr<u8>, addr_len: UserPtr<i32>, flags: Type) => wait net::connect::accept4, Full;

    289 signalfd4(fd: Fd, mask: UserPtr<u64>, size: usize, flags: u32) => plain signal::signalfd::signalfd4, Full;

    290 eventfd2(initial: u32, flags: u32) => plain event::eventfd2, Full;

    291 epoll_create1(flags: u32) => plain poll::epoll::epoll_create1, Full;

    292 dup3(old: Fd, new: Fd, flags: fs::fd::DupFlags) => plain fs::fd::dup3, Full;

    293 pipe2(out: UserPtr<[i32; 2]>, flags: fs::pipe::PipeFlags) => plain fs::pipe::pipe2, Full;

    294 inotify_init1(flags: fs::inotify::InotifyFlags) => plain fs::inotify::inotify_init1, Full;

    295 preadv(fd: Fd, list: UserPtr<[usize; 2]>, count: usize, offset: i64) => wait fs::rw::preadv, Full;

    296 pwritev(fd: Fd, list: UserPtr<[usize; 2]>, count: usize, offset: i64) => wait fs::rw::pwritev, Full;

    297 rt_tgsigqueueinfo(tgid: i32, tid: i32, signal: Signal, info: UserPtr<SigInfo>) => plain signal::kill::rt_tgsigqueueinfo, Full;

    298 perf_event_open() => missing, Missing("no performance counters are given to guests");

    299 recvmmsg(fd: Fd, list: UserPtr<MmsgHdr>, count: u32, flags: MsgFlags, timeout: UserPtr<TimeSpec>) => wait net::transfer::recvmmsg, Partial("no error queue");

    300 fanotify_init() => missing, Missing("watches of whole mounts; inotify is there");

    301 fanotify_mark() => missing, Missing("watches of whole mounts; inotify is there");

    302 prlimit64(pid: i32, resource: Resource, new: UserPtr<Rlimit>, old: UserPtr<Rlimit>) => plain limits::prlimit64, Full;

    303 name_to_handle_at() => missing, Missing("files have no handles that outlive a descriptor");

    304 open_by_handle_at() => missing, Missing("files have no handles that outlive a descriptor");

    305 clock_adjtime(clock: ClockArg, state: UserPtr<Timex>) => plain time::clock::clock_adjtime, Partial("reads only: EPERM for a change");

    306 syncfs(fd: Fd) => plain fs::sync::syncfs, Full;

    307 sendmmsg(fd: Fd, list: UserPtr<MmsgHdr>, count: u32, flags: MsgFlags) => wait net::transfer::sendmmsg, Partial("no MSG_ZEROCOPY, no TCP fast open");

    308 setns() => missing, Missing("there are no namespaces to enter");

    309 getcpu(cpu: UserPtr<u32>, node: UserPtr<u32>) => plain sched::getcpu, Full;

    310 process_vm_readv(pid: u32, local_iov: UserPtr<[usize; 2]>, liovcnt: usize, remote_iov: UserPtr<[usize; 2]>, riovcnt: usize, flags: usize) => plain mm::process_vm_readv, Full;

    311 process_vm_writev(pid: u32, local_iov: UserPtr<[usize; 2]>, liovcnt: usize, remote_iov: UserPtr<[usize; 2]>, riovcnt: usize, flags: usize) => plain mm::process_vm_writev, Full;

    312 kcmp(pid1: i32, pid2: i32, kind: i32, index1: usize, index2: usize) => plain misc::kcmp, Partial("no KCMP_IO, KCMP_SYSVSEM, KCMP_EPOLL_TFD");

    313 finit_module() => missing, Missing("the kernel has no loadable modules");

    314 sched_setattr(pid: i32, attr: UserPtr<u32>, flags: u32) => plain sched::sched_setattr, Partial("remembered; no SCHED_DEADLINE, no utilisation clamps");

    315 sched_getattr(pid: i32, attr: UserPtr<u8>, size: usize, flags: u32) => plain sched::sched_getattr, Full;

    316 renameat2(old_dir: DirFd, old: UserStr, new_dir: DirFd, new: UserStr, flags: u32) => plain fs::names::renameat2, Full;

    317 seccomp() => missing, Missing("no filters on a guest's own calls yet; prctl says that none is installed");

    318 getrandom(buf: UserPtr<u8>, len: usize, flags: u32) => plain misc::getrandom, Full;

    319 memfd_create(name: UserStr, flags: mm::MemfdFlags) => plain mm::memfd_create, Partial("no huge pages");

    320 kexec_file_load() => missing, Missing("there is no other kernel to boot into from inside a sandbox");

    321 bpf() => missing, Missing("no programs are loaded into the kernel");

    322 execveat(dirfd: Fd, pathname: UserStr, argv: UserPtr<usize>, envp: UserPtr<usize>, flags: u32) => wait exec::execveat, Partial("as execve");

    323 userfaultfd() => missing, Missing("page faults are served by the host and never seen by the kernel");

    324 membarrier(cmd: u32, flags: u32, cpu_id: u32) => plain mm::membarrier, Partial("no restartable sequences");

    325 mlock2(addr: mm::Addr, len: usize, flags: u32) => plain mm::mlock2, Partial("as mlock");

    326 copy_file_range(fd_in: Fd, off_in: UserPtr<i64>, fd_out: Fd, off_out: UserPtr<i64>, len: usize, flags: u32) => wait fs::splice::copy_file_range, Full;

    327 preadv2(fd: Fd, list: UserPtr<[usize; 2]>, count: usize, offset: i64, offset_high: usize, flags: fs::rw::RwFlags) => wait fs::rw::preadv2, Full;

    328 pwritev2(fd: Fd, list: UserPtr<[usize; 2]>, count: usize, offset: i64, offset_high: usize, flags: fs::rw::RwFlags) => wait fs::rw::pwritev2, Full;

    329 pkey_mprotect(addr: mm::Addr, len: usize, prot: mm::ProtWord, pkey: i32) => plain mm::pkey_mprotect, Partial("no keys are given out");

    330 pkey_alloc(flags: usize, access_rights: usize) => plain mm::pkey_alloc, Partial("no keys are given out: ENOSPC");

    331 pkey_free(pkey: i32) => plain mm::pkey_free, Partial("no keys are given out: EINVAL");

    332 statx(dir: DirFd, path: UserStr, flags: AtFlags, mask: u32, out: UserPtr<Statx>) => plain fs::stat::statx, Full;

    333 io_pgetevents() => missing, Missing("no kernel-side asynchronous i/o; POSIX aio of the C library works with threads");

    334 rseq() => missing, Missing("threads may move between processors without the kernel seeing it; the C library does without");

    335 uretprobe() => missing, Missing("a gate of the host's own user-space probes, not a call for programs");

    336 uprobe() => missing, Missing("a gate of the host's own user-space probes, not a call for programs");

    337 unassigned() => missing, Missing("not a number of this interface");

    338 unassigned() => missing, Missing("not a number of this interface");

    339 unassigned() => missing, Missing("not a number of this interface");

    340 unassigned() => missing, Missing("not a number of this interface");

    341 unassigned() => missing, Missing("not a number of this interface");

    342 unassigned() => missing, Missing("not a number of this interface");

    343 unassigned() => missing, Missing("not a number of this interface");

    344 unassigned() => missing, Missing("not a number of this interface");

    345 unassigned() => missing, Missing("not a number of this interface");

    346 unassigned() => missing, Missing("not a number of this interface");

    347 unassigned() => missing, Missing("not a number of this interface");

    348 unassigned() => missing, Missing("not a number of this interface");

    349 unassigned() => missing, Missing("not a number of this interface");

    350 unassigned() => missing, Missing("not a number of this interface");

    351 unassigned() => missing, Missing("not a number of this interface");

    352 unassigned() => missing, Missing("not a number of this interface");

    353 unassigned() => missing, Missing("not a number of this interface");

    354 unassigned() => missing, Missing("not a number of this interface");

    355 unassigned() => missing, Missing("not a number of this interface");

    356 unassigned() => missing, Missing("not a number of this interface");

    357 unassigned() => missing, Missing("not a number of this interface");

    358 unassigned() => missing, Missing("not a number of this interface");

    359 unassigned() => missing, Missing("not a number of this interface");

    360 unassigned() => missing, Missing("not a number of this interface");

    361 unassigned() => missing, Missing("not a number of this interface");

    362 unassigned() => missing, Missing("not a number of this interface");

    363 unassigned() => missing, Missing("not a number of this interface");

    364 unassigned() => missing, Missing("not a number of this interface");

    365 unassigned() => missing, Missing("not a number of this interface");

    366 unassigned() => missing, Missing("not a number of this interface");

    367 unassigned() => missing, Missing("not a number of this interface");

    368 unassigned() => missing, Missing("not a number of this interface");

    369 unassigned() => missing, Missing("not a number of this interface");

    370 unassigned() => missing, Missing("not a number of this interface");

    371 unassigned() => missing, Missing("not a number of this interface");

    372 unassigned() => missing, Missing("not a number of this interface");

    373 unassigned() => missing, Missing("not a number of this interface");

    374 unassigned() => missing, Missing("not a number of this interface");

    375 unassigned() => missing, Missing("not a number of this interface");

    376 unassigned() => missing, Missing("not a number of this interface");

    377 unassigned() => missing, Missing("not a number of this interface");

    378 unassigned() => missing, Missing("not a number of this interface");

    379 unassigned() => missing, Missing("not a number of this interface");

    380 unassigned() => missing, Missing("not a number of this interface");

    381 unassigned() => missing, Missing("not a number of this interface");

    382 unassigned() => missing, Missing("not a number of this interface");

    383 unassigned() => missing, Missing("not a number of this interface");

    384 unassigned() => missing, Missing("not a number of this interface");

    385 unassigned() => missing, Missing("not a number of this interface");

    386 unassigned() => missing, Missing("not a number of this interface");

    387 unassigned() => missing, Missing("not a number of this interface");

    388 unassigned() => missing, Missing("not a number of this interface");

    389 unassigned() => missing, Missing("not a number of this interface");

    390 unassigned() => missing, Missing("not a number of this interface");

    391 unassigned() => missing, Missing("not a number of this interface");

    392 unassigned() => missing, Missing("not a number of this interface");

    393 unassigned() => missing, Missing("not a number of this interface");

    394 unassigned() => missing, Missing("not a number of this interface");

    395 unassigned() => missing, Missing("not a number of this interface");

    396 unassigned() => missing, Missing("not a number of this interface");

    397 unassigned() => missing, Missing("not a number of this interface");

    398 unassigned() => missing, Missing("not a number of this interface");

    399 unassigned() => missing, Missing("not a number of this interface");

    400 unassigned() => missing, Missing("not a number of this interface");

    401 unassigned() => missing, Missing("not a number of this interface");

    402 unassigned() => missing, Missing("not a number of this interface");

    403 unassigned() => missing, Missing("not a number of this interface");

    404 unassigned() => missing, Missing("not a number of this interface");

    405 unassigned() => missing, Missing("not a number of this interface");

    406 unassigned() => missing, Missing("not a number of this interface");

    407 unassigned() => missing, Missing("not a number of this interface");

    408 unassigned() => missing, Missing("not a number of this interface");

    409 unassigned() => missing, Missing("not a number of this interface");

    410 unassigned() => missing, Missing("not a number of this interface");

    411 unassigned() => missing, Missing("not a number of this interface");

    412 unassigned() => missing, Missing("not a number of this interface");

    413 unassigned() => missing, Missing("not a number of this interface");

    414 unassigned() => missing, Missing("not a number of this interface");

    415 unassigned() => missing, Missing("not a number of this interface");

    416 unassigned() => missing, Missing("not a number of this interface");

    417 unassigned() => missing, Missing("not a number of this interface");

    418 unassigned() => missing, Missing("not a number of this interface");

    419 unassigned() => missing, Missing("not a number of this interface");

    420 unassigned() => missing, Missing("not a number of this interface");

    421 unassigned() => missing, Missing("not a number of this interface");

    422 unassigned() => missing, Missing("not a number of this interface");

    423 unassigned() => missing, Missing("not a number of this interface");

    424 pidfd_send_signal(pidfd: Fd, signal: Signal, info: UserPtr<SigInfo>, flags: u32) => plain signal::kill::pidfd_send_signal, Full;

    425 io_uring_setup() => missing, Missing("no submission rings yet; programs fall back to ordinary calls");

    426 io_uring_enter() => missing, Missing("no submission rings yet; programs fall back to ordinary calls");

    427 io_uring_register() => missing, Missing("no submission rings yet; programs fall back to ordinary calls");

    428 open_tree() => missing, Missing("mounts are made with mount(2)");

    429 move_mount() => missing, Missing("mounts are made with mount(2)");

    430 fsopen() => missing, Missing("mounts are made with mount(2)");

    431 fsconfig() => missing, Missing("mounts are made with mount(2)");

    432 fsmount() => missing, Missing("mounts are made with mount(2)");

    433 fspick() => missing, Missing("mounts are made with mount(2)");

    434 pidfd_open(pid: i32, flags: u32) => plain task::pidfd::pidfd_open, Full;

    435 clone3(args: UserPtr<u8>, size: usize) => wait task::clone::clone3, Partial("no namespaces; threads share descriptors and directory; no set_tid");

    436 close_range(first: u32, last: u32, flags: fs::fd::CloseRangeFlags) => plain fs::fd::close_range, Partial("CLOSE_RANGE_UNSHARE parts the whole process from those it shares descriptors with, not one thread");

    437 openat2(dir: DirFd, path: UserStr, how: UserPtr<OpenHow>, size: usize) => wait fs::open::openat2, Full;

    438 pidfd_getfd(pidfd: Fd, fd: Fd, flags: u32) => plain task::pidfd::pidfd_getfd, Full;

    439 faccessat2(dir: DirFd, path: UserStr, mode: u32, flags: AtFlags) => plain fs::stat::faccessat2, Full;

    440 process_madvise() => missing, Missing("a guest's memory is advised on only by its own threads");

    441 epoll_pwait2(epfd: Fd, events: UserPtr<EpollEvent>, most: i32, timeout: UserPtr<TimeSpec>, mask: UserPtr<u64>, mask_size: usize) => wait poll::epoll::epoll_pwait2, Full;

    442 mount_setattr() => missing, Missing("mounts are changed with mount(2)");

    443 quotactl_fd() => missing, Missing("no quotas");

    444 landlock_create_ruleset() => missing, Missing("no Landlock rules; what a sandbox may reach is decided outside");

    445 landlock_add_rule() => missing, Missing("no Landlock rules; what a sandbox may reach is decided outside");

    446 landlock_restrict_self() => missing, Missing("no Landlock rules; what a sandbox may reach is decided outside");

    447 memfd_secret() => missing, Missing("memory hidden from the kernel itself cannot be had of the host");

    448 process_mrelease() => missing, Missing("memory of a dying process is released at once by its own last thread");

    449 futex_waitv(words: UserPtr<FutexWaitv>, count: u32, flags: u32, timeout: UserPtr<TimeSpec>, clock: ClockArg) => wait futex::multiple::futex_waitv, Full;

    450 set_mempolicy_home_node() => missing, Missing("memory nodes are the host's affair");

    451 cachestat() => missing, Missing("the page cache is the host's");

    452 fchmodat2(dir: DirFd, path: UserStr, mode: Mode, flags: AtFlags) => plain fs::attr::fchmodat2, Full;

    453 map_shadow_stack() => missing, Missing("no shadow stacks");

    454 futex_wake(addr: usize, bitset: u64, most: i32, flags: u32) => plain futex::wake::futex_wake, Full;

    455 futex_wait(addr: usize, value: u64, bitset: u64, flags: u32, timeout: UserPtr<TimeSpec>, clock: ClockArg) => wait futex::wait::futex_wait, Full;

    456 futex_requeue(words: UserPtr<FutexWaitv>, flags: u32, wake: i32, most: i32) => plain futex::wake::futex_requeue, Full;

    457 statmount() => missing, Missing("mounts are listed in /proc/self/mountinfo");

    458 listmount() => missing, Missing("mounts are listed in /proc/self/mountinfo");

    459 lsm_get_self_attr() => missing, Missing("there are no security modules");

    460 lsm_set_self_attr() => missing, Missing("there are no security modules");

    461 lsm_list_modules() => missing, Missing("there are no security modules");

    462 mseal() => missing, Missing("mappings cannot be sealed");

    463 setxattrat() => missing, Missing("not written yet");

    464 getxattrat() => missing, Missing("not written yet");

    465 listxattrat() => missing, Missing("not written yet");

    466 removexattrat() => missing, Missing("not written yet");

    467 open_tree_attr() => missing, Missing("mounts are made with mount(2)");

    468 file_getattr() => missing, Missing("no file attributes beyond the mode");

    469 file_setattr() => missing, Missing("no file attributes beyond the mode");

}
