/* What /proc/self/fdinfo shows of files without a name: counters, sets of signals, epolls, processes. */
#include "t.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* The lines that begin so, without the numbers behind "pos:". */
static void tell(const char *what, int fd, const char *start)
{
	char path[64], line[256];
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	FILE *file = fopen(path, "r");
	must(file ? 0 : -1);
	int count = 0;
	while (fgets(line, sizeof line, file)) {
		if (strncmp(line, start, strlen(start)))
			continue;
		count++;
		char *rest = strstr(line, "  pos:");
		strcpy(rest ? rest : strchr(line, '\n'), "");
		say("%s: %s\n", what, line);
	}
	fclose(file);
	T(count > 0);
}

static void numbers(const char *what, int fd, int self)
{
	char path[64], line[256];
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	FILE *file = fopen(path, "r");
	must(file ? 0 : -1);
	int number = 0, names = 0;
	while (fgets(line, sizeof line, file)) {
		sscanf(line, "Pid: %d", &number);
		names += !strncmp(line, "NSpid:", 6);
	}
	fclose(file);
	say("%s: %s, %d names\n", what, number == self ? "its number" : number == -1 ? "none" : "another", names);
}

int main(void)
{
	int counter = must(eventfd(31, EFD_NONBLOCK)), one = must(eventfd(0, EFD_SEMAPHORE));
	tell("counter", counter, "eventfd-count:");
	uint64_t much = 0xfffffffffffffff0;
	must(write(counter, &much, 8) == -1 ? 0 : -1);
	much -= 64;
	must(write(counter, &much, 8) == 8 ? 0 : -1);
	tell("counter", counter, "eventfd-count:");
	tell("semaphore", one, "eventfd-count:");

	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	int signals = must(signalfd(-1, &set, 0));
	tell("signals", signals, "sigmask:");
	sigaddset(&set, SIGRTMAX);
	must(signalfd(signals, &set, 0));
	tell("signals", signals, "sigmask:");

	int epoll = must(epoll_create1(0));
	struct epoll_event event = { EPOLLIN | EPOLLET, { .u64 = 0x123456789abcdef0 } };
	must(epoll_ctl(epoll, EPOLL_CTL_ADD, counter, &event));
	tell("epoll", epoll, "tfd:");
	event = (struct epoll_event){ EPOLLIN | EPOLLONESHOT, { .u64 = 7 } };
	must(epoll_ctl(epoll, EPOLL_CTL_MOD, counter, &event));
	tell("changed", epoll, "tfd:");
	R(epoll_wait(epoll, &event, 1, 0));
	tell("disarmed", epoll, "tfd:");

	pid_t child = must(fork());
	if (!child) {
		pause();
		_exit(0);
	}
	int process = must((int)syscall(SYS_pidfd_open, child, 0)), own = must((int)syscall(SYS_pidfd_open, getpid(), 0));
	numbers("own", own, getpid());
	numbers("child", process, child);
	must(kill(child, SIGKILL));
	siginfo_t info;
	must(waitid(P_PID, child, &info, WEXITED | WNOWAIT));
	numbers("ended", process, child);
	must(waitpid(child, 0, 0) == child ? 0 : -1);
	numbers("waited for", process, child);
	return 0;
}
