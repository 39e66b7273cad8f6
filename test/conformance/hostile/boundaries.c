/* Buffers at the edge of mapped memory, wrapped lengths, the kernel's own range, strings that do not end. */
/* not: i386 */
#include "t.h"
#include <sys/socket.h>
static char *edge; /* one page, nothing after it */
int main(void)
{
	edge = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(edge + 4096, 4096);
	int p[2], f = must(open("f", O_RDWR | O_CREAT, 0600));
	must(pipe(p));
	struct stat s;
	memset(edge, 'a', 4096);
	R(open(edge + 4090, O_RDONLY)); /* the string runs off the page */
	strcpy(edge + 4094, "f");
	R(access(edge + 4094, F_OK));
	R(syscall(SYS_fstat, f, edge + 4096 - sizeof s));
	R(syscall(SYS_fstat, f, edge + 4096 - sizeof s + 8));
	R(syscall(SYS_pipe2, edge + 4092, 0));
	R(syscall(SYS_pipe2, edge + 4088, 0));
	R(write(p[1], edge + 4090, 6));
	R(write(p[1], edge + 4096, 6));
	R(read(p[0], edge + 4096, 6));
	R(read(p[0], edge + 4090, 6));
	struct iovec v[2] = {{edge, 0x7fffffffffffffff}, {edge, 0x7fffffffffffffff}};
	R(writev(p[1], v, 2));
	R(syscall(SYS_writev, p[1], edge + 4096 - sizeof *v, 2));
	R(syscall(SYS_clock_gettime, 0, edge + 4088));
	R(syscall(SYS_rt_sigprocmask, SIG_SETMASK, 0, edge + 4092, 8));
	R(syscall(SYS_getcwd, edge + 4090, 4096) > 0 ? 0 : -1);
	R(syscall(SYS_uname, edge + 4000));
	R(syscall(SYS_getrandom, edge + 4000, 500, 0) > 0);
	R(syscall(SYS_poll, edge + 4092, 1, 0));
	R(syscall(SYS_futex, edge + 4096, 0, 0, 0, 0, 0));
	R(syscall(SYS_read, f, 0x552000000000, 100));
	R(syscall(SYS_write, f, 0x552000000000, 100));
	R(syscall(SYS_read, f, -4096l, 8192));
	R(syscall(SYS_write, f, 0xffffffff81000000, 100));
	R(syscall(SYS_write, f, 0x7fffffffe000, 0x10000) == -1);
	R(syscall(SYS_munmap, 0x7ffffffff000, 0x100000));
	R(syscall(SYS_mmap, 0xffff800000000000, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	R(syscall(SYS_mprotect, 0x7fffffff0000000, 4096, 7));
	R(syscall(SYS_sendto, p[1], edge, 1 << 30, 0, 0, 0));
	int q[2];
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, q));
	struct msghdr m = {.msg_iov = (void *)8, .msg_iovlen = 1};
	R(syscall(SYS_sendmsg, q[0], &m, 0));
	m.msg_iovlen = 100000;
	R(syscall(SYS_sendmsg, q[0], &m, 0));
	m = (struct msghdr){.msg_control = edge + 4090, .msg_controllen = 100};
	R(syscall(SYS_sendmsg, q[0], &m, 0));
	R(syscall(SYS_recvmsg, q[0], edge + 4080, MSG_DONTWAIT));
	R(syscall(SYS_rt_sigaction, SIGUSR1, edge + 4090, 0, 8));
	R(syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, edge + 4090));
	R(syscall(SYS_wait4, -1, edge + 4094, 0, 0));
	/* A stack pointer that leads nowhere: the process dies of its signal, no more. */
	CHILD("signal on a bad stack", {
		t_handle(SIGUSR1, (void (*)(int))_exit, 0);
		long r, pid = getpid(), tid = t_gettid();
		asm volatile("mov %%rsp,%%rbx\n mov $16,%%esp\n syscall\n mov %%rbx,%%rsp" : "=a"(r) : "a"(SYS_tgkill), "D"(pid), "S"(tid), "d"(SIGUSR1) : "rbx", "rcx", "r11", "memory");
	});
	CHILD("call on a bad stack", {
		long r;
		asm volatile("mov %%rsp,%%rbx\n mov $16,%%esp\n syscall\n mov %%rbx,%%rsp" : "=a"(r) : "a"(SYS_getppid) : "rbx", "rcx", "r11", "memory");
		_exit(r > 0 ? 5 : 6);
	});
	CHILD("return from no signal", syscall(SYS_rt_sigreturn));
	return t_done();
}
