/* TIOCGPTPEER: a terminal's other side without its name. */
#include "t.h"
#include <termios.h>
#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif
int main(void)
{
	int master = must(open("/dev/ptmx", O_RDWR | O_NOCTTY)), unlocked = 0, number, name = -1;
	/* Locked, as by its name. */
	R(ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY));
	must(ioctl(master, TIOCSPTLCK, &unlocked));
	must(ioctl(master, TIOCGPTN, &number));
	int peer = must(ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY));
	N(fcntl(peer, F_GETFD));
	T((fcntl(peer, F_GETFL) & (O_ACCMODE | O_NONBLOCK)) == O_RDWR);
	T(isatty(peer));
	char path[64], seen[64] = "", c[8] = "";
	snprintf(path, sizeof path, "/dev/pts/%d", number);
	struct stat a, b;
	must(fstat(peer, &a));
	must(stat(path, &b));
	T(a.st_ino == b.st_ino && a.st_rdev == b.st_rdev && a.st_dev == b.st_dev);
	snprintf(seen, sizeof seen, "/proc/self/fd/%d", peer);
	T(readlink(seen, seen, sizeof seen - 1) == (ssize_t)strlen(path) && !strncmp(seen, path, strlen(path)));
	R(write(peer, "ab\n", 3));
	/* Linux hands it over in pieces, from another thread. */
	usleep(20000);
	R(read(master, c, 8));
	R(write(master, "cd\n", 3));
	R(read(peer, c, 8));
	/* Its flags. */
	int quiet = must(ioctl(master, TIOCGPTPEER, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
	N(fcntl(quiet, F_GETFD));
	T((fcntl(quiet, F_GETFL) & (O_ACCMODE | O_NONBLOCK)) == O_NONBLOCK);
	R(write(quiet, "x", 1));
	R(read(quiet, c, 1));
	/* Not of the slave, and not of others. */
	R(ioctl(peer, TIOCGPTPEER, O_RDWR));
	R(ioctl(open("/dev/null", O_RDWR), TIOCGPTPEER, O_RDWR));
	/* A session's leader without a terminal gets it, unless it does not want it. */
	pid_t pid = must(fork());
	if (!pid) {
		must(setsid());
		close(must(ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY)));
		R(open("/dev/tty", O_RDWR));
		must(ioctl(master, TIOCGPTPEER, O_RDWR));
		T((name = open("/dev/tty", O_RDWR)) >= 0);
		T(tcgetsid(name) == getpid());
		signal(SIGHUP, SIG_IGN);
		_exit(t_failed);
	}
	int st;
	must(waitpid(pid, &st, 0));
	N(WEXITSTATUS(st));
	close(peer), close(quiet);
	/* No descriptor left. */
	struct rlimit limit = {master + 1, master + 1};
	must(setrlimit(RLIMIT_NOFILE, &limit));
	for (int i = 0; i <= master; i++)
		if (fcntl(i, F_GETFD) < 0)
			must(dup2(master, i));
	R(ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY));
	return t_done();
}
