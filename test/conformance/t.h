/* What every conformance test shares: print what a call returned, in a form that is the same on every correct kernel.
 *
 * The runner builds each test with several C libraries, runs it natively, then on Janua under each gate, and compares output and exit
 * status byte for byte. So a test prints results by name and never an address, a process number or a time.
 *
 *   R(call)     prints the call as written and its value, or -1 and the name of errno
 *   OK(call)    the same, but any value that is not negative prints as "ok" (for descriptors and process numbers)
 *   T(cond)     prints whether a condition holds; one that does not makes the test exit with 1
 *   N(expr)     prints an expression and its number
 *   S(expr)     prints an expression and its string
 *   must(call)  a step the test cannot go on without: exits with 99 when it fails
 *
 * Every line leaves in one write(2), so that lines of several processes cannot mix.
 */
#ifndef T_H
#define T_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int t_failed;

static void say(const char *f, ...)
{
	char b[4096];
	va_list v;
	va_start(v, f);
	int n = vsnprintf(b, sizeof b, f, v);
	va_end(v);
	if (n > (int)sizeof b - 1)
		n = sizeof b - 1;
	for (int o = 0; o < n;) {
		ssize_t w = write(1, b + o, n - o);
		if (w <= 0)
			break;
		o += w;
	}
}

static const char *t_errno(int e)
{
	static __thread char b[24];
	switch (e) {
#define E(x) case x: return #x;
	E(EPERM) E(ENOENT) E(ESRCH) E(EINTR) E(EIO) E(ENXIO) E(E2BIG) E(ENOEXEC) E(EBADF) E(ECHILD) E(EAGAIN) E(ENOMEM) E(EACCES)
	E(EFAULT) E(ENOTBLK) E(EBUSY) E(EEXIST) E(EXDEV) E(ENODEV) E(ENOTDIR) E(EISDIR) E(EINVAL) E(ENFILE) E(EMFILE) E(ENOTTY)
	E(ETXTBSY) E(EFBIG) E(ENOSPC) E(ESPIPE) E(EROFS) E(EMLINK) E(EPIPE) E(EDOM) E(ERANGE) E(EDEADLK) E(ENAMETOOLONG) E(ENOLCK)
	E(ENOSYS) E(ENOTEMPTY) E(ELOOP) E(ENODATA) E(ETIME) E(EOVERFLOW) E(EUSERS) E(ENOTSOCK) E(EDESTADDRREQ) E(EMSGSIZE)
	E(EPROTOTYPE) E(ENOPROTOOPT) E(EPROTONOSUPPORT) E(ESOCKTNOSUPPORT) E(EOPNOTSUPP) E(EPFNOSUPPORT) E(EAFNOSUPPORT)
	E(EADDRINUSE) E(EADDRNOTAVAIL) E(ENETDOWN) E(ENETUNREACH) E(ECONNABORTED) E(ECONNRESET) E(ENOBUFS) E(EISCONN) E(ENOTCONN)
	E(ETIMEDOUT) E(ECONNREFUSED) E(EHOSTUNREACH) E(EALREADY) E(EINPROGRESS) E(ESTALE) E(ECANCELED) E(EOWNERDEAD)
	E(ENOTRECOVERABLE) E(EILSEQ) E(EBADFD) E(ELIBBAD)
#undef E
	}
	snprintf(b, sizeof b, "errno %d", e);
	return b;
}

static const char *t_sig(int s)
{
	static __thread char b[24];
	switch (s) {
#define E(x) case x: return #x;
	E(SIGHUP) E(SIGINT) E(SIGQUIT) E(SIGILL) E(SIGTRAP) E(SIGABRT) E(SIGBUS) E(SIGFPE) E(SIGKILL) E(SIGUSR1) E(SIGSEGV) E(SIGUSR2)
	E(SIGPIPE) E(SIGALRM) E(SIGTERM) E(SIGSTKFLT) E(SIGCHLD) E(SIGCONT) E(SIGSTOP) E(SIGTSTP) E(SIGTTIN) E(SIGTTOU) E(SIGURG)
	E(SIGXCPU) E(SIGXFSZ) E(SIGVTALRM) E(SIGPROF) E(SIGWINCH) E(SIGIO) E(SIGPWR) E(SIGSYS)
#undef E
	}
	if (s >= SIGRTMIN && s <= SIGRTMAX)
		snprintf(b, sizeof b, "SIGRTMIN+%d", s - SIGRTMIN);
	else
		snprintf(b, sizeof b, "signal %d", s);
	return b;
}

/* The line of a call's result; r is what it gave, e the errno after it. */
static long t_report(const char *what, long r, int e, int hide)
{
	if (r == -1)
		say("%s = -1 %s\n", what, t_errno(e));
	else if (hide && r >= 0)
		say("%s ok\n", what);
	else
		say("%s = %ld\n", what, r);
	errno = e;
	return r;
}

static void t_true(const char *what, int yes)
{
	say("%s: %s\n", yes ? "yes" : "NO", what);
	if (!yes)
		t_failed = 1;
}

static long t_must(const char *what, int line, long r)
{
	if (r == -1) {
		int e = errno;
		say("line %d: %s failed: %s\n", line, what, t_errno(e));
		_exit(99);
	}
	return r;
}

#define R(e) (errno = 0, ({ long r_ = (long)(e); int e_ = errno; t_report(#e, r_, e_, 0); }))
#define OK(e) (errno = 0, ({ long r_ = (long)(e); int e_ = errno; t_report(#e, r_, e_, 1); }))
#define T(e) t_true(#e, !!(e))
#define N(e) say("%s: %ld\n", #e, (long)(e))
#define S(e) say("%s: %s\n", #e, (e))
#define must(e) t_must(#e, __LINE__, (long)(e))

/* The seed of random tests, which the runner chooses; 0 without one. */
static uint64_t t_seed(void)
{
	const char *word = getenv("JANUA_SEED");
	return word ? strtoull(word, 0, 10) : 0;
}

/* Prints a wait status. */
static void t_status(const char *who, int st)
{
	if (WIFEXITED(st))
		say("%s: exited %d\n", who, WEXITSTATUS(st));
	else if (WIFSIGNALED(st))
		say("%s: killed by %s\n", who, t_sig(WTERMSIG(st)));
	else if (WIFSTOPPED(st))
		say("%s: stopped by %s\n", who, t_sig(WSTOPSIG(st)));
	else if (WIFCONTINUED(st))
		say("%s: continued\n", who);
	else
		say("%s: status %#x\n", who, st);
}

/* Waits for a child and prints how it ended. */
static void t_reap(const char *who, pid_t p)
{
	int st = 0;
	while (waitpid(p, &st, 0) == -1)
		if (errno != EINTR) {
			say("%s: waitpid %s\n", who, t_errno(errno));
			return;
		}
	t_status(who, st);
}

/* Runs the statement in a child of its own, and prints how the child ended. No core file. */
#define CHILD(who, ...) do { \
	pid_t p_ = must(fork()); \
	if (!p_) { struct rlimit l_ = {0, 0}; setrlimit(RLIMIT_CORE, &l_); { __VA_ARGS__; } _exit(t_failed); } \
	t_reap(who, p_); } while (0)

static void t_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};
	while (nanosleep(&t, &t) == -1 && errno == EINTR)
		;
}

/* Milliseconds of the monotonic clock. */
static long t_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The state letter of a thread of this process as /proc shows it, '?' when it has none. */
static char t_state(pid_t pid, pid_t tid)
{
	char p[64], b[512];
	snprintf(p, sizeof p, "/proc/%d/task/%d/stat", pid, tid);
	int f = open(p, O_RDONLY | O_CLOEXEC);
	if (f < 0)
		return '?';
	ssize_t n = read(f, b, sizeof b - 1);
	close(f);
	if (n <= 0)
		return '?';
	b[n] = 0;
	char *q = strrchr(b, ')');
	return q && q[1] ? q[2] : '?';
}

/* Waits until that thread sleeps in a call: at most two seconds, then goes on all the same. */
static void t_asleep(pid_t pid, pid_t tid)
{
	for (int i = 0; i < 400; i++) {
		char c = t_state(pid, tid);
		if (c == 'S' || c == '?')
			break;
		t_ms(5);
	}
	t_ms(30);
}

static void t_handle(int sig, void (*f)(int), int flags)
{
	struct sigaction a;
	memset(&a, 0, sizeof a);
	a.sa_handler = f;
	a.sa_flags = flags;
	must(sigaction(sig, &a, 0));
}

static void t_info(int sig, void (*f)(int, siginfo_t *, void *), int flags)
{
	struct sigaction a;
	memset(&a, 0, sizeof a);
	a.sa_sigaction = f;
	a.sa_flags = flags | SA_SIGINFO;
	must(sigaction(sig, &a, 0));
}

static pid_t t_gettid(void) { return syscall(SYS_gettid); }

static int t_done(void) { return t_failed; }

/* A file of the working directory with the given content. */
static void t_write(const char *name, const char *text)
{
	int f = must(open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
	must(write(f, text, strlen(text)));
	close(f);
}
#endif
