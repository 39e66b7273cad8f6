/* Files without a name: what stat(2), statfs(2) and chmod(2) report of them, by descriptor and by /proc/self/fd; and that the descriptors of
 * two processes differ. */
#include "../t.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/vfs.h>

static int pidfd(int pid)
{
	return must(syscall(SYS_pidfd_open, pid, 0));
}

static void look(const char *what, int fd)
{
	char name[64];
	struct stat a, b;
	struct statfs fs;

	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	say("%s\n", what);
	memset(&a, 0, sizeof a);
	R(fstat(fd, &a));
	say("mode %o links %d size %d owner %d\n", a.st_mode, (int)a.st_nlink, (int)a.st_size, (int)(a.st_uid != getuid() && a.st_uid));
	memset(&b, 0, sizeof b);
	R(stat(name, &b));
	T(a.st_ino == b.st_ino && a.st_dev == b.st_dev && a.st_mode == b.st_mode);
	memset(&fs, 0, sizeof fs);
	R(fstatfs(fd, &fs));
	say("type %lx, blocks of %d, names of %d\n", (long)fs.f_type, (int)fs.f_bsize, (int)fs.f_namelen);
	R(fsync(fd));
	R(fchdir(fd));
}

int main(void)
{
	int p[2], child, epoll = must(epoll_create1(0)), event = must(eventfd(0, 0));
	struct stat a, b;
	sigset_t none;

	must(pipe(p));
	sigemptyset(&none);
	look("epoll", epoll);
	look("eventfd", event);
	look("timerfd", must(timerfd_create(CLOCK_MONOTONIC, 0)));
	look("signalfd", must(signalfd(-1, &none, 0)));
	look("inotify", must(inotify_init()));
	look("pidfd", pidfd(getpid()));
	look("pipe", p[0]);
	look("socket", must(socket(AF_UNIX, SOCK_STREAM, 0)));
	if (getuid() == 0) {
		/* Everybody's, so that nobody changes them. */
		T(fchmod(epoll, 0666) == -1 && errno == EOPNOTSUPP);
		T(fchown(event, 0, 0) == -1 && errno == EOPNOTSUPP);
	}
	R(fchmod(p[0], 0640));
	child = must(fork());
	if (!child)
		_exit(0);
	must(fstat(pidfd(getpid()), &a));
	must(fstat(pidfd(getpid()), &b));
	T(a.st_ino == b.st_ino);
	must(fstat(pidfd(child), &b));
	T(a.st_ino != b.st_ino);
	must(waitpid(child, NULL, 0));
	return 0;
}
