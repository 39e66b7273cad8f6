/* Rings of calls on a kernel that has them: what waits, what is cancelled, what is refused, forged counts, entries that change while they are read, and how a ring ends. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include "../../user/ring/ring.c"

static struct janua_ring ring;
static int wrong;

static void check(const char *what, int holds)
{
	printf("%s: %s\n", what, holds ? "as it should" : "WRONG");
	wrong |= !holds;
}

static struct janua_call *put(uint64_t tag, unsigned number, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct janua_call *call = janua_ring_call(&ring);
	if (!call)
		exit(3);
	janua_call(call, tag, number, a, b, c, d, 0, 0);
	return call;
}

/* The result of the call with this tag, whatever else is over before; the others are kept in `other`. */
static int64_t result(uint64_t tag)
{
	static struct janua_end kept[256];
	static int count;
	for (;;) {
		for (int n = 0; n < count; n++)
			if (kept[n].tag == tag) {
				int64_t result = kept[n].result;
				kept[n] = kept[--count];
				return result;
			}
		while (count < 256 && janua_ring_end(&ring, &kept[count]))
			count++;
		for (int n = 0; n < count; n++)
			if (kept[n].tag == tag)
				goto again;
		long there = janua_ring_wait(&ring, 1, 5000000000);
		if (there < 0)
			return -9999;
	again:;
	}
}

static void on_alarm(int signal)
{
	(void)signal;
}

static void waits(void)
{
	int p[2], q[2];
	char b[8], c[8];
	if (pipe(p) || pipe(q))
		exit(3);
	put(1, SYS_read, p[0], (uintptr_t)b, 8, 0);
	put(2, SYS_read, q[0], (uintptr_t)c, 8, 0);
	put(3, SYS_getppid, 0, 0, 0, 0);
	janua_ring_submit(&ring, 1);
	check("what waits holds nobody up", result(3) == getppid());
	put(4, SYS_write, p[1], (uintptr_t)"one", 3, 0);
	janua_ring_submit(&ring, 1);
	check("what it waits for comes by the ring", result(1) == 3 && result(4) == 3);
	if (write(q[1], "three", 5) != 5)
		exit(3);
	check("or by another gate", result(2) == 5);
	put(5, SYS_read, p[0], (uintptr_t)b, 8, 0)->flags = JANUA_LINK;
	put(6, SYS_getppid, 0, 0, 0, 0);
	janua_ring_submit(&ring, 1);
	check("a wait ends in time", janua_ring_wait(&ring, 1, 20000000) == -ETIMEDOUT);
	put(7, JANUA_CANCEL, 5, 0, 0, 0);
	janua_ring_submit(&ring, 1);
	check("cancelled, with what is linked", result(7) == 0 && result(5) == -ECANCELED && result(6) == -ECANCELED);
	struct timespec time = { 0, 30000000 };
	put(8, SYS_nanosleep, (uintptr_t)&time, 0, 0, 0)->flags = JANUA_LINK;
	put(9, SYS_write, p[1], (uintptr_t)"two", 3, 0);
	janua_ring_submit(&ring, 1);
	check("sleeps", result(8) == 0 && result(9) == 3);
	struct sigaction act = { .sa_handler = on_alarm };
	sigaction(SIGALRM, &act, 0);
	timer_t timer;
	timer_create(CLOCK_MONOTONIC, 0, &timer);
	struct itimerspec when = { { 0, 20000000 }, { 0, 20000000 } };
	timer_settime(timer, 0, &when, 0);
	check("signals interrupt the wait", janua_ring_wait(&ring, 4, 0) == -EINTR);
	timer_delete(timer);
	/* More than may wait at a time, and more than are looked at behind them. */
	for (int n = 0; n < 40; n++)
		put(100 + n, SYS_read, q[0], (uintptr_t)b, 1, 0);
	put(200, JANUA_CANCEL, 139, 0, 0, 0);
	janua_ring_submit(&ring, 1);
	check("one that has not begun is cancelled", result(200) == 0 && result(139) == -ECANCELED);
	char many[39];
	int right = 0;
	if (write(q[1], many, 39) != 39)
		exit(3);
	for (int n = 0; n < 39; n++)
		right += result(100 + n) == 1;
	check("all of many", right == 39);
	close(p[0]), close(p[1]), close(q[0]), close(q[1]);
}

static void refused(void)
{
	static const int calls[] = { SYS_fork, SYS_clone, SYS_vfork, SYS_execve, SYS_exit, SYS_exit_group, SYS_rt_sigreturn, SYS_rt_sigprocmask,
		SYS_rt_sigaction, SYS_setuid, SYS_arch_prctl, SYS_set_robust_list, SYS_io_uring_setup, JANUA_RING_OPEN, JANUA_RING_CLOSE, JANUA_RING_WAIT };
	int count = sizeof calls / sizeof *calls, right = 0;
	for (int n = 0; n < count; n++)
		put(n, calls[n], 0, 0, 0, 0);
	janua_ring_submit(&ring, 1);
	for (int n = 0; n < count; n++)
		right += result(n) == -EXDEV;
	check("what is made at home alone", right == count);
	char *memory = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check("one a thread", syscall(JANUA_RING_OPEN, memory, 8, 8, 8) == -1 && errno == EBUSY);
}

/* In a child: a ring of its own in this memory. */
static int opened(void *at, unsigned calls, unsigned ends, unsigned under_way)
{
	return syscall(JANUA_RING_OPEN, at, calls, ends, under_way) < 0 ? errno : 0;
}

static void *rewrite(void *stop)
{
	for (unsigned n = 0; !__atomic_load_n((int *)stop, __ATOMIC_RELAXED); n++)
		for (unsigned at = 0; at < ring.call_count; at++) {
			ring.calls[at].number = n & 1 ? SYS_getppid : 1000 + n % 7;
			ring.calls[at].flags = n % 9;
			ring.calls[at].args[0] = (uint64_t)n << 32;
		}
	return 0;
}

static int forger(void)
{
	struct janua_ring *r = &ring;
	check("the child of a fork has none", syscall(JANUA_RING_WAIT, 0, 0) == -1 && errno == ENXIO);
	char *memory = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int sizes = opened(memory, 3, 8, 1) == EINVAL && opened(memory, 8, 0, 1) == EINVAL && opened(memory, 1 << 16, 8, 1) == EINVAL &&
		opened(memory + 8, 8, 8, 1) == EINVAL && opened(memory, 8, 8, 0) == EINVAL && opened(memory, 8, 8, 257) == EINVAL;
	check("sizes", sizes);
	mprotect(memory, 4096, PROT_READ);
	check("places", opened((void *)64, 8, 8, 1) == EFAULT && opened(memory, 8, 8, 1) == EFAULT && opened((void *)-64ul, 8, 8, 1) == EFAULT &&
		opened((void *)0x552000000000, 8, 8, 1) == EFAULT);
	munmap(memory, 1 << 20);
	if (janua_ring_open(r, 16, 4))
		return 3;
	/* Counts that cannot be. */
	static const uint32_t counts[] = { 17, 1000, 1u << 31, 0xffffffff };
	int nothing = 1;
	for (int n = 0; n < 4; n++) {
		r->head->submitted = counts[n];
		nothing &= janua_ring_wait(r, 0, 0) == 0 && r->head->taken == 0;
	}
	r->head->submitted = 0;
	check("more than a ring holds is nothing", nothing);
	for (int n = 0; n < 16; n++)
		put(n, SYS_getppid, 0, 0, 0, 0);
	r->head->reaped = 0x80000000;
	janua_ring_submit(r, 1);
	long there = janua_ring_wait(r, 0, 0);
	r->head->reaped = 0;
	int right = 0;
	for (int n = 0; n < 16; n++)
		right += result(n) == getppid();
	check("a forged count of completions costs room alone", there >= 0 && right == 16);
	/* What the kernel reports is its own, whatever is there. */
	put(1, SYS_getppid, 0, 0, 0, 0);
	r->head->posted = r->head->taken = 12345;
	janua_ring_submit(r, 1);
	syscall(JANUA_RING_WAIT, 1, 0);
	check("the kernel's counts are its own", r->head->posted == 17 && r->head->taken == 17 && result(1) == getppid());
	/* Entries that change. */
	int stop = 0, ends = 0, known = 0;
	pthread_t thread;
	pthread_create(&thread, 0, rewrite, &stop);
	for (int n = 0; n < 2000; n++) {
		for (int k = 0; k < 16 && janua_ring_call(r); k++)
			;
		janua_ring_submit(r, 0);
		janua_ring_wait(r, 1, 10000000);
		struct janua_end end;
		while (janua_ring_end(r, &end)) {
			ends++;
			known += end.result == getppid() || end.result == -ENOSYS || end.result == -EINVAL || end.result == -ECANCELED;
		}
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, 0);
	check("entries that change are one thing or the other", ends > 1000 && known == ends);
	janua_ring_close(r);
	/* Memory that goes. */
	if (janua_ring_open(r, 16, 4))
		return 3;
	put(1, SYS_munmap, (uintptr_t)r->head, 4096, 0, 0);
	put(2, SYS_getppid, 0, 0, 0, 0);
	janua_ring_submit(r, 0);
	long got = syscall(JANUA_RING_WAIT, 1, 50000000);
	check("memory that goes takes what is in it along", got >= 0 || errno == ETIMEDOUT);
	check("and the ring is closed all the same", syscall(JANUA_RING_CLOSE) == 0 && syscall(JANUA_RING_CLOSE) == -1 && errno == ENXIO);
	return wrong;
}

/* A child that waits by a ring for what never comes, and is ended. */
static void ends(int way)
{
	static const char *const names[] = { "killed", "exits", "runs another program", "closes it" };
	int p[2], q[2], status;
	char b[8];
	if (pipe(p) || pipe(q))
		exit(3);
	pid_t child = fork();
	if (child == 0) {
		close(p[1]), close(q[0]);
		if (janua_ring_open(&ring, 16, 4))
			_exit(3);
		for (int n = 0; n < 8; n++)
			put(n, SYS_read, p[0], (uintptr_t)b, 8, 0);
		janua_ring_submit(&ring, 1);
		if (write(q[1], "x", 1) != 1)
			_exit(3);
		if (way == 0)
			janua_ring_wait(&ring, 1, 0);
		if (way == 2)
			execl("/bin/true", "true", (char *)0);
		_exit(way == 3 && janua_ring_close(&ring));
	}
	close(p[0]), close(q[1]);
	if (read(q[0], b, 1) != 1)
		exit(3);
	usleep(way == 0 ? 50000 : 0);
	if (way == 0)
		kill(child, SIGKILL);
	waitpid(child, &status, 0);
	int as = way == 0 ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : WIFEXITED(status) && WEXITSTATUS(status) == 0;
	/* Nobody has the pipe any more, the calls of the ring included. */
	signal(SIGPIPE, SIG_IGN);
	char name[64];
	snprintf(name, sizeof name, "one with calls under way %s", names[way]);
	check(name, as && write(p[1], "x", 1) == -1 && errno == EPIPE);
	close(p[1]), close(q[0]);
}

int main(void)
{
	int status;
	setvbuf(stdout, 0, _IONBF, 0);
	if (janua_ring_open(&ring, 64, 8) || ring.alone)
		return printf("no ring\n"), 2;
	printf("served by %s\n", ring.watched ? "a module" : "the thread");
	waits();
	refused();
	pid_t child = fork();
	if (child == 0)
		_exit(forger());
	waitpid(child, &status, 0);
	check("forged rings", WIFEXITED(status) && WEXITSTATUS(status) == 0);
	for (int way = 0; way < 4; way++)
		ends(way);
	check("close", janua_ring_close(&ring) == 0);
	return wrong;
}
