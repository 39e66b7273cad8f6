/* What kcmp(2) compares beside files and memory: contexts of i/o, what a process' end undoes, and what an epoll watches. */
#include "../t.h"
#include <linux/kcmp.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/wait.h>
enum { PROCESS = 1, BEST_EFFORT = 2 << 13, IDLE = 3 << 13 };
#ifndef CLONE_IO
#define CLONE_IO 0x80000000
#endif

static long compare(pid_t other, int kind)
{
	long r = syscall(SYS_kcmp, getpid(), other, kind, 0, 0);
	return r > 0 ? 1 : r;
}

static pid_t waits(void)
{
	pid_t p = must(fork());
	while (!p)
		pause();
	return p;
}

static void end(pid_t p)
{
	must(kill(p, SIGKILL));
	must(waitpid(p, 0, 0));
}

static void *thread(void *a)
{
	*(pid_t *)a = syscall(SYS_gettid);
	pause();
	return 0;
}

static void io(void)
{
	pid_t p = waits();
	R(compare(p, KCMP_IO));
	R(syscall(SYS_ioprio_set, PROCESS, 0, BEST_EFFORT | 3));
	R(compare(p, KCMP_IO));
	end(p);
	/* A child has the priority in a context of its own, or in one with its parent. */
	p = waits();
	R(syscall(SYS_ioprio_get, PROCESS, p) & ~7);
	R(compare(p, KCMP_IO));
	end(p);
#ifdef __x86_64__
	p = must(syscall(SYS_clone, CLONE_IO | SIGCHLD, 0, 0, 0, 0));
	while (!p)
		pause();
	R(compare(p, KCMP_IO));
	R(syscall(SYS_ioprio_set, PROCESS, p, IDLE));
	R(syscall(SYS_ioprio_get, PROCESS, 0));
	end(p);
#endif
}

static void undo(void)
{
	pid_t p = waits();
	R(compare(p, KCMP_SYSVSEM));
	int id = must(semget(IPC_PRIVATE, 1, 0600));
	struct sembuf plain = { 0, 1, 0 }, undone = { 0, 1, SEM_UNDO };
	must(semop(id, &plain, 1));
	R(compare(p, KCMP_SYSVSEM));
	must(semop(id, &undone, 1));
	R(compare(p, KCMP_SYSVSEM));
	R(compare(getpid(), KCMP_SYSVSEM));
	must(semctl(id, 0, IPC_RMID));
	R(compare(p, KCMP_SYSVSEM));
	end(p);
	volatile pid_t tid = 0;
	pthread_t t;
	must(-pthread_create(&t, 0, thread, (void *)&tid));
	while (!tid)
		usleep(1000);
	R(compare(tid, KCMP_SYSVSEM));
	R(compare(tid, KCMP_FILES));
}

static void epoll(void)
{
	int e = must(epoll_create1(0)), a[2], b[2];
	must(pipe(a));
	must(pipe(b));
	struct epoll_event event = { .events = EPOLLIN };
	must(epoll_ctl(e, EPOLL_CTL_ADD, a[0], &event));
	struct kcmp_epoll_slot slot = { e, a[0], 0 };
	pid_t me = getpid();
#define AT(fd) syscall(SYS_kcmp, me, me, KCMP_EPOLL_TFD, fd, &slot)
	R(AT(a[0]));
	T(AT(b[0]) > 0);
	R(AT(99));
	slot.toff = 1;
	R(AT(a[0]));
	slot.toff = 0;
	slot.tfd = b[0];
	R(AT(a[0]));
	slot.efd = a[0];
	R(AT(a[0]));
	slot.efd = 99;
	R(AT(a[0]));
	R(syscall(SYS_kcmp, me, me, KCMP_EPOLL_TFD, a[0], 1));
	/* The second file of the same number: the first one's is another's by now. */
	int kept = must(dup(a[0]));
	must(dup2(b[0], a[0]));
	must(epoll_ctl(e, EPOLL_CTL_ADD, a[0], &event));
	slot = (struct kcmp_epoll_slot){ e, a[0], 0 };
	int first = AT(kept) == 0;
	slot.toff = 1;
	int second = AT(kept) == 0;
	N(first + second);
	slot.toff = 2;
	R(AT(kept));
}

int main(void)
{
	io();
	undo();
	epoll();
	R(syscall(SYS_kcmp, getpid(), getpid(), 8, 0, 0));
	return t_done();
}
