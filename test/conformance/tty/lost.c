/* Terminals that sessions lose: one that is hung up leaves its session free to take another; one that another session takes is not the old one's to give up.
   And the status of packet mode, which is urgent. */
#include "t.h"
#include <pty.h>
#include <termios.h>
static int master(char *name)
{
	int m = must(open("/dev/ptmx", O_RDWR | O_NOCTTY));
	must(unlockpt(m));
	must(ptsname_r(m, name, 64));
	return m;
}
static void taken(void)
{
	char n[64], c;
	int m = master(n), old[2], thief[2];
	must(pipe(old)), must(pipe(thief));
	pid_t a = must(fork());
	if (!a) {
		must(setsid());
		signal(SIGHUP, SIG_IGN);
		must(open(n, O_RDWR));
		must(write(thief[1], "x", 1));
		must(read(old[0], &c, 1));
		_exit(0);
	}
	must(read(thief[0], &c, 1));
	pid_t b = must(fork());
	if (!b) {
		must(setsid());
		int s = must(open(n, O_RDWR | O_NOCTTY));
		long r = R(ioctl(s, TIOCSCTTY, 1));
		must(write(old[1], "x", 1));
		int st;
		if (r == 0) {
			must(read(thief[0], &c, 1));
			OK(open("/dev/tty", O_RDWR));
			T(tcgetpgrp(s) == getpid());
		}
		_exit(0);
	}
	int st;
	must(waitpid(a, &st, 0));
	must(write(thief[1], "x", 1));
	must(waitpid(b, &st, 0));
	N(st);
	close(m);
}
static void hung_up(void)
{
	char n[64], other[64], c;
	int m = master(n), m2 = master(other), here[2], there[2];
	must(pipe(here)), must(pipe(there));
	pid_t a = must(fork());
	if (!a) {
		close(m);
		must(setsid());
		signal(SIGHUP, SIG_IGN);
		must(open(n, O_RDWR));
		must(write(here[1], "x", 1));
		must(read(there[0], &c, 1));
		OK(open("/dev/tty", O_RDWR));
		int s = must(open(other, O_RDWR));
		OK(open("/dev/tty", O_RDWR));
		R(ioctl(s, TIOCSCTTY, 0));
		T(tcgetpgrp(s) == getpid());
		_exit(t_failed);
	}
	must(read(here[0], &c, 1));
	close(m);
	must(write(there[1], "x", 1));
	int st;
	must(waitpid(a, &st, 0));
	N(st);
	close(m2);
}
static void packets(void)
{
	char n[64], b[16];
	int on = 1, m = master(n), s = must(open(n, O_RDWR | O_NOCTTY));
	must(ioctl(m, TIOCPKT, &on));
	struct pollfd p = {m, POLLPRI, 0};
	R(poll(&p, 1, 0));
	must(tcflush(s, TCIOFLUSH));
	R(poll(&p, 1, 1000));
	say("%#x\n", p.revents & (POLLPRI | POLLIN));
	R(read(m, b, sizeof b));
	R(poll(&p, 1, 0));
}
int main(void)
{
	taken();
	hung_up();
	packets();
	return t_failed;
}
