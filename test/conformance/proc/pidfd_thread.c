/* linux: 6.9 */
/* A descriptor of a thread: signals go to that thread, unless a flag names its process; one that has ended gets none. */
#include "../t.h"

#define THREAD 1
#define GROUP 2

static int go[2], tid[2];

static int pending(int signal)
{
	sigset_t set;
	must(sigpending(&set));
	return sigismember(&set, signal);
}

static int taken(int signal, int *code)
{
	sigset_t set;
	siginfo_t info;
	long none[2] = {0, 0};
	sigemptyset(&set);
	sigaddset(&set, signal);
	/* Not by the C library, some of which report SI_USER where it is SI_TKILL. */
	int got = syscall(SYS_rt_sigtimedwait, &set, &info, &none, 8);
	*code = info.si_code;
	return got == signal;
}

static void *other(void *unused)
{
	int own = t_gettid(), code;
	char c;
	must(write(tid[1], &own, sizeof own));
	must(read(go[0], &c, 1));
	T(taken(SIGUSR1, &code));
	T(code == SI_TKILL);
	T(!taken(SIGUSR1, &code));
	return 0;
}

static long send_by(int fd, int signal, int flags)
{
	return syscall(SYS_pidfd_send_signal, fd, signal, 0, flags);
}

int main(void)
{
	sigset_t set;
	pthread_t thread;
	int number, code;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, 0);
	must(pipe(go));
	must(pipe(tid));
	pthread_create(&thread, 0, other, 0);
	must(read(tid[0], &number, sizeof number));
	int fd = must(syscall(SYS_pidfd_open, number, O_EXCL)), whole = must(syscall(SYS_pidfd_open, getpid(), 0));
	R(send_by(fd, SIGUSR1, 0));
	T(!pending(SIGUSR1));
	/* For the process. */
	R(send_by(fd, SIGUSR2, GROUP));
	T(pending(SIGUSR2));
	T(taken(SIGUSR2, &code));
	T(code == SI_USER);
	/* A process's descriptor means its first thread when a thread is asked for. */
	R(send_by(whole, SIGUSR1, THREAD));
	T(taken(SIGUSR1, &code));
	T(code == SI_TKILL);
	R(send_by(fd, 0, THREAD));
	must(write(go[1], "g", 1));
	pthread_join(thread, 0);
	/* The C library is notified of the end a little before others are. */
	struct pollfd ended = {fd, POLLIN, 0};
	T(poll(&ended, 1, 20000) == 1);
	R(send_by(fd, 0, 0));
	R(send_by(fd, 0, THREAD));
	R(send_by(whole, 0, 0));
	return t_failed;
}
