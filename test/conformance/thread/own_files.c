/* Descriptors of one thread alone: unshare(CLONE_FILES), close_range(CLOSE_RANGE_UNSHARE), clone without CLONE_FILES; what others see of
 * them, when they are closed, and what a child, a thread and exec take along. */
#include "t.h"
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define HERE 40
#define THERE 41
static volatile int step, tid;
static int ends[2];
static const char *has(int fd) { return fcntl(fd, F_GETFD) < 0 ? "no" : "yes"; }
static int listed(const char *where, int fd)
{
	char name[80], to[80];
	snprintf(name, sizeof name, "/proc/%s/fd/%d", where, fd);
	return readlink(name, to, sizeof to) >= 0;
}
static void at(const char *who)
{
	char own[40];
	snprintf(own, sizeof own, "self/task/%d", (int)syscall(SYS_gettid));
	say("%s: here %s, there %s; in its /proc %d %d, in its process' %d %d\n", who, has(HERE), has(THERE), listed(own, HERE), listed(own, THERE),
	    listed("self", HERE), listed("self", THERE));
}
static void *follower(void *name)
{
	at(name);
	return 0;
}
static void follow(const char *name)
{
	pthread_t t;
	pthread_create(&t, 0, follower, (void *)name);
	pthread_join(t, 0);
}
static void turn(int to)
{
	step = to;
	while (step == to)
		t_ms(2);
}
static void *own(void *a)
{
	(void)a;
	tid = syscall(SYS_gettid);
	R(unshare(CLONE_FILES));
	at("after unshare");
	must(dup2(1, THERE));
	must(close(HERE));
	must(dup2(ends[1], 50));
	at("the thread");
	follow("a thread it makes");
	pid_t p = must(fork());
	if (!p) {
		at("a child it makes");
		_exit(0);
	}
	t_reap("child", p);
	turn(1);
	return 0;
}
static void *ranger(void *a)
{
	(void)a;
	R(syscall(SYS_close_range, HERE, HERE, CLOSE_RANGE_UNSHARE));
	at("after close_range");
	return 0;
}
static char stack[65536] __attribute__((aligned(64)));
static volatile int cleared = 1, got[2];
static int bare(void *a)
{
	(void)a;
	syscall(SYS_close, HERE);
	got[0] = syscall(SYS_dup3, 1, THERE, 0);
	got[1] = syscall(SYS_close, 99);
	syscall(SYS_exit, 0);
	return 0;
}
static void *leaver(void *a)
{
	(void)a;
	must(unshare(CLONE_FILES));
	must(dup2(1, THERE));
	must(close(HERE));
	must(fcntl(must(dup2(1, 45)), F_SETFD, FD_CLOEXEC));
	execl("/proc/self/exe", "again", "exec", (char *)0);
	return 0;
}
int main(int argc, char **argv)
{
	pthread_t t;
	char c;
	if (argc > 1) {
		at("after exec");
		say("closed by exec: %s\n", has(45));
		return t_done();
	}
	must(dup2(1, HERE));
	must(pipe2(ends, O_CLOEXEC));
	pthread_create(&t, 0, own, 0);
	while (!step)
		t_ms(2);
	at("the first thread");
	follow("another of its");
	/* The thread alone has the other end by then. */
	must(close(ends[1]));
	must(fcntl(ends[0], F_SETFL, O_NONBLOCK));
	R(read(ends[0], &c, 1));
	step = 2;
	pthread_join(t, 0);
	for (int i = 0; i < 500 && read(ends[0], &c, 1) < 0; i++)
		t_ms(2);
	R(read(ends[0], &c, 1));
	pthread_create(&t, 0, ranger, 0);
	pthread_join(t, 0);
	at("the first thread");
	must(clone(bare, stack + sizeof stack, CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID, 0, 0, 0, &cleared));
	while (cleared)
		t_ms(2);
	say("a thread without CLONE_FILES: %d\n", got[0]);
	at("the first thread");
	R(unshare(CLONE_FILES));
	must(dup2(1, THERE));
	at("the first thread on its own");
	follow("a thread of it");
	must(close(THERE));
	pthread_create(&t, 0, leaver, 0);
	pthread_join(t, 0);
	return 9;
}
