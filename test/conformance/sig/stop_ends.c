/* Calls that end with EINTR when their process is stopped and continued, though no handler runs (signal(7)), and some that go on. */
#include "t.h"
#include <sys/epoll.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
static int to[2], pair[2], begins[2];
enum { EPOLL, WAITINFO, SEMOP, RECEIVE, POLL, READ, SLEEP, KINDS };
static const char *names[] = {"epoll_wait", "sigtimedwait", "semtimedop", "recv with a limit", "poll", "read", "nanosleep"};
static int call(int kind)
{
	struct timespec t = {60, 0}, brief = {0, 300000000};
	struct epoll_event e;
	struct pollfd p = {to[0], POLLIN, 0};
	struct sembuf down = {0, -1, 0};
	struct timeval limit = {60, 0};
	sigset_t m;
	char c;
	int fd, n;
	switch (kind) {
	case EPOLL:
		return fd = epoll_create1(0), epoll_wait(fd, &e, 1, 60000);
	case WAITINFO:
		return sigemptyset(&m), sigaddset(&m, SIGUSR1), sigprocmask(SIG_BLOCK, &m, 0),
		       /* musl's function goes on after EINTR. */
		       syscall(SYS_rt_sigtimedwait, &m, 0, &t, 8);
	case SEMOP:
		fd = semget(IPC_PRIVATE, 1, 0600), n = semtimedop(fd, &down, 1, &t);
		int e = errno;
		semctl(fd, 0, IPC_RMID), errno = e;
		return n;
	case RECEIVE:
		return setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), recv(pair[0], &c, 1, 0);
	case POLL:
		return poll(&p, 1, 60000);
	case READ:
		return read(to[0], &c, 1);
	default:
		return nanosleep(&brief, 0);
	}
}
static void tries(int kind, int stop)
{
	int st;
	pid_t pid = fork();
	if (!pid) {
		must(write(begins[1], "x", 1));
		errno = 0;
		int n = call(kind), e = errno;
		say("%s, %s: %d %s\n", names[kind], stop ? "stopped" : "a signal that is ignored", n, n < 0 ? t_errno(e) : "");
		_exit(0);
	}
	char c;
	/* From here on nothing but the call makes it sleep. */
	must(read(begins[0], &c, 1));
	t_asleep(pid, pid);
	if (stop) {
		kill(pid, SIGSTOP);
		waitpid(pid, &st, WUNTRACED);
		kill(pid, SIGCONT);
	} else {
		kill(pid, SIGCHLD);
		kill(pid, SIGWINCH);
		kill(pid, SIGCONT);
	}
	if (kind == POLL || kind == READ || !stop) {
		/* It waits again, or still. */
		if (kind != SLEEP)
			t_asleep(pid, pid);
		if (kind == POLL || kind == READ)
			must(write(to[1], "x", 1));
		else if (kind == RECEIVE)
			must(send(pair[1], "x", 1, 0));
		else if (kind == WAITINFO)
			kill(pid, SIGUSR1);
		else if (kind != SLEEP)
			kill(pid, SIGKILL);
	}
	waitpid(pid, &st, 0);
	t_status(names[kind], st);
	while (recv(pair[0], &c, 1, MSG_DONTWAIT) == 1)
		;
	if (kind == POLL)
		must(read(to[0], &c, 1));
}
int main(void)
{
	must(pipe(to));
	must(pipe(begins));
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	for (int kind = 0; kind < KINDS; kind++)
		tries(kind, 1), tries(kind, 0);
	/* signalfd: two signals wait, and there is memory for one record: one is read, and is not lost. */
	sigset_t m;
	long page = sysconf(_SC_PAGESIZE);
	struct signalfd_siginfo *i;
	char *p = mmap(0, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(p + page, page);
	i = (void *)(p + page - sizeof *i);
	sigemptyset(&m), sigaddset(&m, SIGUSR1), sigaddset(&m, SIGUSR2), sigaddset(&m, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &m, 0);
	int fd = must(signalfd(-1, &m, SFD_NONBLOCK));
	kill(getpid(), SIGUSR1), kill(getpid(), SIGUSR2), kill(getpid(), SIGRTMIN);
	N(read(fd, i, 2 * sizeof *i) / (long)sizeof *i);
	S(t_sig(i->ssi_signo));
	/* The one whose record had no place is gone. */
	N(read(fd, i, sizeof *i) / (long)sizeof *i);
	S(t_sig(i->ssi_signo));
	R(read(fd, i, sizeof *i));
	return t_done();
}
