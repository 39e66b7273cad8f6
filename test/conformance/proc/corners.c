/* Corners of processes and threads: high bits of numbers, who has ended, odd flags, other threads, futexes without memory. */
/* not: i386 */
#include "t.h"
#include <linux/futex.h>
#include <linux/kcmp.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#ifndef P_PIDFD
#define P_PIDFD 3
#endif
static long raw(unsigned long nr, long a, long b, long c)
{
	long r;
	__asm__ volatile("syscall" : "=a"(r) : "a"(nr), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	if (r < 0 && r > -4096) {
		errno = -r;
		return -1;
	}
	return r;
}
static volatile int go;
static volatile pid_t tid;
static void *waits(void *a)
{
	tid = t_gettid();
	while (!go)
		t_ms(1);
	return a;
}
static void *leaves(void *a)
{
	t_ms(50);
	R(kill(getpid(), 0));
	say("thread goes on\n");
	_exit(6);
	return a;
}
static volatile int got, who;
static void h(int s) { got = s, who = t_gettid(); }
static void numbers(void)
{
	/* Only the lower half of the number's register counts. */
	for (int i = 0; i < 12; i++)
		T(raw(0x100000000 | SYS_getpid, 0, 0, 0) == getpid());
	T(raw(0xffffffff00000000 | SYS_getppid, 0, 0, 0) == getppid());
	R(raw(0x7fffffff, 0, 0, 0));
	R(raw(0xffffffff, 0, 0, 0));
	R(raw(-1, 0, 0, 0));
	R(raw(0x40000000 | SYS_getpid, 0, 0, 0) == getpid() ? 0 : -1);
}
static void ended(void)
{
	siginfo_t i;
	pid_t p = must(fork());
	if (!p)
		_exit(3);
	int f = must(syscall(SYS_pidfd_open, p, 0));
	must(waitid(P_PID, p, &i, WEXITED | WNOWAIT));
	struct pollfd e = {f, POLLIN, 0};
	R(poll(&e, 1, 0));
	say("zombie %#x\n", e.revents);
	R(kill(p, 0));
	R(kill(p, SIGTERM));
	R(syscall(SYS_pidfd_send_signal, f, SIGTERM, 0, 0));
	R(syscall(SYS_tgkill, p, p, 0));
	R(syscall(SYS_pidfd_open, p, 0) >= 0 ? 0 : -1);
	R(getpgid(p) == getpgrp());
	R(setpgid(p, p));
	t_reap("child", p);
	R(poll(&e, 1, 0));
	say("reaped %#x\n", e.revents);
	R(syscall(SYS_pidfd_send_signal, f, 0, 0, 0));
	R(waitid(P_PIDFD, f, &i, WEXITED));
	R(kill(p, 0));
	close(f);
	/* A leader that ends before its threads. */
	p = must(fork());
	if (!p) {
		pthread_t t;
		pthread_create(&t, 0, leaves, 0);
		syscall(SYS_exit, 5);
	}
	f = must(syscall(SYS_pidfd_open, p, 0));
	t_reap("leader", p);
	close(f);
}
static void threads(void)
{
	pthread_t t;
	pthread_create(&t, 0, waits, 0);
	while (!tid)
		t_ms(1);
	t_handle(SIGUSR1, h, 0);
	/* kill(2) of a thread's number means its process. */
	R(kill(tid, 0));
	R(kill(tid, SIGUSR1));
	while (!got)
		t_ms(1);
	N(got == SIGUSR1);
	R(getpriority(PRIO_PROCESS, tid));
	T(getpgid(tid) == getpgrp());
	T(getsid(tid) == getsid(0));
	R(syscall(SYS_pidfd_open, tid, 0));
	R(setpgid(tid, 0));
	go = 1;
	pthread_join(t, 0);
}
static void flags(void)
{
	R(syscall(SYS_clone, CLONE_THREAD, 0, 0, 0, 0));
	R(syscall(SYS_clone, CLONE_THREAD | CLONE_SIGHAND, 0, 0, 0, 0));
	R(syscall(SYS_clone, CLONE_SIGHAND, 0, 0, 0, 0));
	R(syscall(SYS_clone, CLONE_FS | CLONE_NEWNS, 0, 0, 0, 0));
	R(syscall(SYS_clone, CLONE_PIDFD | CLONE_PARENT_SETTID, 0, 0, 0, 0));
	pid_t me = getpid();
	R(syscall(SYS_kcmp, me, me, KCMP_VM, 0, 0));
	R(syscall(SYS_kcmp, me, me, KCMP_IO, 0, 0));
	R(syscall(SYS_kcmp, me, me, KCMP_FILE, 1, 1));
	R(syscall(SYS_kcmp, me, me, 99, 0, 0));
	/* Timer slack goes to children; odd personalities stay. */
	R(prctl(PR_SET_TIMERSLACK, 123456));
	pid_t p = must(fork());
	if (!p) {
		N(prctl(PR_GET_TIMERSLACK));
		R(prctl(PR_SET_TIMERSLACK, 0));
		N(prctl(PR_GET_TIMERSLACK));
		_exit(0);
	}
	t_reap("slack", p);
	int v = 0;
	R(prctl(PR_GET_TSC, &v));
	N(v);
	p = must(fork());
	if (!p) {
		R(personality(ADDR_NO_RANDOMIZE | STICKY_TIMEOUTS));
		N(personality(0xffffffff));
		struct timeval t = {0, 5000};
		R(select(0, 0, 0, 0, &t));
		N(t.tv_usec);
		_exit(0);
	}
	t_reap("sticky", p);
	struct sched_param s = {0};
	R(sched_setscheduler(0, SCHED_BATCH | SCHED_RESET_ON_FORK, &s));
	N(sched_getscheduler(0));
	p = must(fork());
	if (!p) {
		N(sched_getscheduler(0));
		_exit(0);
	}
	t_reap("reset", p);
	R(sched_setscheduler(0, SCHED_OTHER, &s));
}
static long fx(void *a, int op, uint32_t v, void *t, void *b, uint32_t c) { return syscall(SYS_futex, a, op, v, t, b, c); }
static void futexes(void)
{
	char *m = mmap(0, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(m + 4096, 4096);
	mprotect(m + 8192, 4096, PROT_NONE);
	char *gone = m + 4096, *none = m + 8192;
	R(fx(gone, FUTEX_WAKE, 1, 0, 0, 0));
	R(fx(gone, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0, 0, 0));
	R(fx(none, FUTEX_WAKE, 1, 0, 0, 0));
	R(fx(none, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0, 0, 0));
	R(fx(gone, FUTEX_WAIT, 0, 0, 0, 0));
	R(fx(none, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, 0, 0, 0));
	R(fx(m, FUTEX_CMP_REQUEUE, 1, (void *)1, gone, 0));
	R(fx(m, FUTEX_CMP_REQUEUE | FUTEX_PRIVATE_FLAG, 1, (void *)1, gone, 0));
	R(fx(gone, FUTEX_CMP_REQUEUE, 1, (void *)1, m, 0));
	R(fx(m, FUTEX_REQUEUE, 1, (void *)1, none, 0));
	R(fx((void *)8, FUTEX_WAKE, 1, 0, 0, 0));
	R(fx((void *)8, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0, 0, 0));
	R(fx((void *)-4096, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0, 0, 0));
}
static int pi[2], told[2];
static void *watch(void *a)
{
	struct epoll_event e = {EPOLLIN | EPOLLEXCLUSIVE, {0}};
	int ep = must(epoll_create1(0));
	must(epoll_ctl(ep, EPOLL_CTL_ADD, pi[0], &e));
	*(volatile pid_t *)a = t_gettid();
	if (epoll_wait(ep, &e, 1, -1) == 1)
		write(told[1], "w", 1);
	/* Until the end, so that nobody else is woken by what this one leaves. */
	while (go != 2)
		t_ms(1);
	close(ep);
	return 0;
}
static void exclusive(void)
{
	pthread_t t[4];
	pid_t id[4] = {0};
	char b[8];
	must(pipe(pi)), must(pipe2(told, O_NONBLOCK));
	for (int i = 0; i < 4; i++) {
		pthread_create(&t[i], 0, watch, &id[i]);
		while (!*(volatile pid_t *)&id[i])
			t_ms(1);
		t_asleep(getpid(), id[i]);
	}
	must(write(pi[1], "x", 1));
	struct pollfd p = {told[0], POLLIN, 0};
	R(poll(&p, 1, 10000));
	t_ms(100); /* for those who should stay asleep */
	R(read(told[0], b, 8));
	must(write(pi[1], "xxx", 3)), must(write(pi[1], "x", 1)), must(write(pi[1], "x", 1));
	int n = 1;
	for (long end = t_now() + 10000; n < 4 && t_now() < end; t_ms(1)) {
		int k = read(told[0], b, 8);
		if (k > 0)
			n += k;
		else
			write(pi[1], "x", 1);
	}
	N(n);
	go = 2;
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
}
int main(void)
{
	numbers();
	ended();
	threads();
	flags();
	futexes();
	exclusive();
	return t_done();
}
