/* Calls that read or write memory for the program, given the kernel's: the kernel's and the host's copies must refuse. */
/* none: refused */
/* pkey: refused */
/* process: refused */
#include "attack.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/utsname.h>

static int attack(void)
{
	uintptr_t places[] = { KERNEL, CONTROL, SELECTORS, STACKS + 65536 - 512, HEAP, UNUSED };
	int zero = open("/dev/zero", O_RDONLY), file = open("file", O_RDWR | O_CREAT, 0600), exe = open("/proc/self/exe", O_RDONLY);
	int pipes[2], pair[2], won = 0;
	char text[4096] = { 1 };
	pipe(pipes);
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	write(file, text, sizeof text);
	write(pipes[1], text, sizeof text);
	write(pair[1], text, sizeof text);
	for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
		void *at = (void *)places[i];
		struct iovec vector = { at, 64 };
		struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1 };
		won |= read(zero, at, 64) > 0;
		won |= pread(file, at, 64, 0) > 0;
		/* A file of the host: its bytes may go straight to the program's memory. */
		won |= pread(exe, at, 64, 0) > 0;
		won |= read(pipes[0], at, 64) > 0;
		won |= read(pair[0], at, 64) > 0;
		won |= readv(zero, &vector, 1) > 0;
		won |= preadv(exe, &vector, 1, 0) > 0;
		won |= recvmsg(pair[0], &message, MSG_DONTWAIT) > 0;
		won |= write(file, at, 64) > 0;
		won |= write(1, at, 64) > 0;
		won |= write(pipes[1], at, 64) > 0;
		won |= writev(file, &vector, 1) > 0;
		won |= sendmsg(pair[1], &message, MSG_DONTWAIT) > 0;
		won |= vmsplice(pipes[1], &vector, 1, 0) > 0;
		won |= fstat(file, at) == 0;
		won |= statfs("/", at) == 0;
		won |= uname(at) == 0;
		won |= open(at, O_RDONLY) >= 0 || errno != EFAULT;
		won |= getcwd(at, 4096) != 0;
		won |= readlink("/proc/self/exe", at, 64) > 0;
		won |= syscall(SYS_getrandom, at, 64, 0) > 0;
		won |= syscall(SYS_clock_gettime, CLOCK_MONOTONIC, at) == 0;
		won |= syscall(SYS_gettimeofday, at, 0) == 0;
		won |= nanosleep(at, 0) == 0;
		won |= syscall(SYS_rt_sigaction, SIGUSR1, at, 0, 8) == 0;
		won |= syscall(SYS_rt_sigprocmask, 0, 0, at, 8) == 0;
		won |= syscall(SYS_futex, at, 5, 1, 1, (void *)places[i], 0) > 0;
		won |= wait4(-1, at, WNOHANG, 0) > 0;
		won |= getrusage(RUSAGE_SELF, at) == 0;
		won |= syscall(SYS_sched_getaffinity, 0, 64, at) > 0;
		won |= poll(at, 1, 0) > 0;
		won |= syscall(SYS_arch_prctl, 0x1003, at) == 0;
		won |= execve(at, 0, 0) == 0;
	}
	return won ? 0 : REFUSED;
}
