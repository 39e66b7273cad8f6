/* What root of a sandbox may change there and nowhere else: settings below /proc/sys that take effect, and mounts, whose changes can be waited for. And timers of some
 * microseconds, which have expired when the call returns that sets them. Run by the suite `sandbox`, as root of a sandbox only. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MUST(what) ((what) ? (void)0 : (printf("%d: %s: %s\n", __LINE__, #what, strerror(errno)), exit(1)))

/* Writes a setting and reads it again. */
static void set(const char *name, const char *value, const char *want)
{
	char path[64], text[64] = "";
	snprintf(path, sizeof path, "/proc/sys/fs/%s", name);
	int fd = open(path, O_RDWR);
	MUST(fd >= 0);
	ssize_t got = write(fd, value, strlen(value));
	int why = got < 0 ? errno : 0;
	MUST(lseek(fd, 0, SEEK_SET) == 0 && read(fd, text, sizeof text - 1) > 0);
	close(fd);
	MUST(want ? !why && !strcmp(text, want) : why == EINVAL);
}

static int events(int fd, int timeout)
{
	struct pollfd p = {fd, POLLPRI, 0};
	return poll(&p, 1, timeout) == 1 ? p.revents : 0;
}

static void mounts(void)
{
	int fd = open("/proc/self/mounts", O_RDONLY), all = open("/proc/self/mountinfo", O_RDONLY), ep = epoll_create1(0);
	struct epoll_event e = {.events = EPOLLPRI}, got;
	MUST(fd >= 0 && all >= 0 && ep >= 0 && epoll_ctl(ep, EPOLL_CTL_ADD, all, &e) == 0);
	struct pollfd p = {fd, POLLIN, 0};
	MUST(poll(&p, 1, 0) == 1 && p.revents == POLLIN);
	MUST(events(fd, 0) == 0 && epoll_wait(ep, &got, 1, 0) == 0);
	MUST(mkdir("there", 0755) == 0 && mkdir("other", 0755) == 0);
	/* While it waits, and once for each. */
	for (int step = 0; step < 4; step++) {
		pid_t child = fork();
		if (!child) {
			usleep(20000);
			MUST(step ? 1 : mount("none", "there", "tmpfs", 0, 0) == 0);
			MUST(step != 1 || mount(0, "there", 0, MS_REMOUNT | MS_BIND | MS_RDONLY, 0) == 0);
			MUST(step != 2 || mount("there", "other", 0, MS_MOVE, 0) == 0);
			MUST(step != 3 || umount("other") == 0);
			_exit(0);
		}
		MUST(events(fd, 5000) == (POLLPRI | POLLERR));
		MUST(epoll_wait(ep, &got, 1, 5000) == 1 && got.events == (EPOLLPRI | EPOLLERR));
		int status;
		MUST(waitpid(child, &status, 0) == child && status == 0);
		MUST(events(fd, 0) == 0 && epoll_wait(ep, &got, 1, 0) == 0);
	}
	/* Other texts of /proc are always ready, and nothing for epoll. */
	MUST(epoll_ctl(ep, EPOLL_CTL_ADD, open("/proc/self/stat", O_RDONLY), &e) == -1 && errno == EPERM);
	printf("mounts: each change is reported\n");
}

static void pipes(void)
{
	int p[2];
	MUST(pipe(p) == 0);
	set("pipe-max-size", "5000\n", "8192\n");
	set("pipe-max-size", "0", 0);
	set("pipe-max-size", "4294967295", 0);
	MUST(fcntl(p[0], F_SETPIPE_SZ, 65536 * 2) == 65536 * 2);
	if (!fork()) {
		MUST(setuid(1000) == 0);
		MUST(fcntl(p[0], F_SETPIPE_SZ, 8192) == 8192);
		MUST(fcntl(p[0], F_SETPIPE_SZ, 8193) == -1 && errno == EPERM);
		MUST(pipe(p) == 0 && fcntl(p[0], F_GETPIPE_SZ) == 8192);
		_exit(0);
	}
	int status;
	MUST(wait(&status) > 0 && status == 0);
	printf("pipes: bounded by the setting\n");
}

static void watches(void)
{
	set("inotify/max_user_instances", "2", "2\n");
	set("inotify/max_user_watches", "1", "1\n");
	int a = inotify_init(), b = inotify_init();
	MUST(a >= 0 && b >= 0);
	MUST(inotify_init() == -1 && errno == EMFILE);
	MUST(inotify_add_watch(a, ".", IN_CREATE) > 0);
	MUST(inotify_add_watch(b, "/", IN_CREATE) == -1 && errno == ENOSPC);
	set("inotify/max_user_watches", "2", "2\n");
	MUST(inotify_add_watch(b, "/", IN_CREATE) > 0);
	set("inotify/max_user_watches", "-1", 0);
	set("inotify/max_user_watches", "2147483647", 0);
	printf("watches: bounded by the settings\n");
}

static void leases(void)
{
	set("lease-break-time", "1", "1\n");
	int fd = open("leased", O_CREAT | O_RDWR, 0644);
	signal(SIGIO, SIG_IGN);
	MUST(fd >= 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0);
	struct timespec from, to;
	clock_gettime(CLOCK_MONOTONIC, &from);
	if (!fork()) {
		MUST(open("leased", O_RDONLY) >= 0);
		_exit(0);
	}
	int status;
	MUST(wait(&status) > 0 && status == 0);
	clock_gettime(CLOCK_MONOTONIC, &to);
	MUST(to.tv_sec - from.tv_sec >= 1 && to.tv_sec - from.tv_sec < 40);
	printf("leases: broken in time\n");
}

/* The next process with a number is not the one before. */
static void numbers(void)
{
	char path[32], last[32];
	struct stat was, is;
	for (int i = 0; i < 100; i++) {
		pid_t one = fork();
		if (!one)
			pause();
		snprintf(path, sizeof path, "/proc/%d", one);
		MUST(stat(path, &was) == 0 && kill(one, SIGKILL) == 0 && waitpid(one, 0, 0) == one);
		int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY), len = snprintf(last, sizeof last, "%d", one - 1);
		MUST(fd >= 0 && write(fd, last, len) == len && close(fd) == 0);
		pid_t two = fork();
		if (!two)
			pause();
		MUST(stat(path, &is) == 0 || two != one);
		kill(two, SIGKILL), waitpid(two, 0, 0);
		if (two == one && was.st_ino != is.st_ino) {
			printf("numbers: another inode\n");
			return;
		}
	}
	printf("numbers: never the same process number with another inode\n");
}

static volatile int alarms;

static void count(int number)
{
	(void)number;
	alarms++;
}

static void timers(void)
{
	struct itimerval brief = {{0, 0}, {0, 0}}, left;
	struct itimerspec spec = {{0, 0}, {0, 0}};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	timer_t id;
	signal(SIGALRM, count);
	signal(SIGUSR1, count);
	MUST(timer_create(CLOCK_MONOTONIC, &event, &id) == 0);
	for (int n = 0; n < 100; n++) {
		brief.it_value.tv_usec = 1 + n % 10;
		MUST(setitimer(ITIMER_REAL, &brief, NULL) == 0);
		MUST(alarms == 3 * n + 1);
		spec.it_value.tv_nsec = 1 + n * 100;
		MUST(timer_settime(id, 0, &spec, NULL) == 0);
		MUST(alarms == 3 * n + 2);
		MUST(clock_gettime(CLOCK_MONOTONIC, &spec.it_value) == 0);
		MUST(timer_settime(id, TIMER_ABSTIME, &spec, NULL) == 0);
		MUST(alarms == 3 * n + 3);
		spec.it_value.tv_sec = 0;
	}
	MUST(getitimer(ITIMER_REAL, &left) == 0 && left.it_value.tv_sec == 0 && left.it_value.tv_usec == 0);
	puts("timers: those at hand have expired");
}

int main(void)
{
	mounts();
	pipes();
	watches();
	leases();
	numbers();
	timers();
	return 0;
}
