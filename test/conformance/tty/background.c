/* A terminal used from the background: what stops who uses it, what an orphaned group gets, and which open makes a terminal the controlling one. */
#include "t.h"
#include <pty.h>
#include <termios.h>
static int m, s;
static const struct {
	unsigned long request;
	long arg;
	const char *text;
} changes[] = {
	{TCFLSH, TCIFLUSH, "TCFLSH"}, {TCFLSH, 7, "TCFLSH 7"}, {TCXONC, TCOON, "TCXONC"}, {TCSBRK, 1, "TCSBRK"}, {TCSBRKP, 0, "TCSBRKP"},
	{TIOCSBRK, 0, "TIOCSBRK"}, {TIOCCBRK, 0, "TIOCCBRK"},
};
enum { CHANGES = sizeof changes / sizeof *changes };
/* What a background process may try. */
static void tries(void)
{
	int line = 0;
	pid_t group = getpgrp();
	struct termios t;
	struct winsize w = {1, 2, 0, 0};
	R(tcgetattr(s, &t));
	R(ioctl(s, TIOCGETD, &line));
	R(ioctl(s, TIOCSWINSZ, &w));
	for (int i = 0; i < CHANGES; i++) {
		long r = ioctl(s, changes[i].request, changes[i].arg);
		say("%s: %s\n", changes[i].text, r ? t_errno(errno) : "done");
	}
	R(ioctl(s, TIOCSETD, &line));
	R(tcsetattr(s, TCSANOW, &t));
	R(ioctl(s, TIOCSPGRP, &group));
}
/* A change at a time, each by a process of its own. */
static void each(void)
{
	for (int i = 0; i < CHANGES; i++) {
		pid_t b = must(fork());
		if (!b) {
			setpgid(0, 0);
			signal(SIGTTOU, SIG_DFL);
			long r = ioctl(s, changes[i].request, changes[i].arg);
			say("%s: %s\n", changes[i].text, r ? t_errno(errno) : "done");
			_exit(0);
		}
		setpgid(b, b);
		int st;
		must(waitpid(b, &st, WUNTRACED));
		t_status(changes[i].text, st);
		if (!WIFSTOPPED(st))
			continue;
		must(tcsetpgrp(s, b));
		kill(-b, SIGCONT);
		must(waitpid(b, &st, 0));
		t_status(changes[i].text, st);
		must(tcsetpgrp(s, getpgrp()));
	}
	/* Who ignores or blocks the signal is not stopped. */
	CHILD("ignores", setpgid(0, 0); signal(SIGTTOU, SIG_IGN); tries());
	must(tcsetpgrp(s, getpgrp()));
}
/* A group whose leader's parent is not of the session: nobody would continue it. */
static void orphaned(void)
{
	int up[2], down[2];
	char c;
	must(pipe(up)), must(pipe(down));
	pid_t p = must(fork());
	if (!p) {
		if (!must(fork())) {
			setpgid(0, 0);
			signal(SIGTTOU, SIG_DFL), signal(SIGTTIN, SIG_DFL);
			must(read(down[0], &c, 1)); /* the parent has ended */
			char b[4];
			say("orphaned\n");
			R(read(s, b, 4));
			tries();
			must(write(up[1], "x", 1));
			_exit(0);
		}
		_exit(0);
	}
	t_reap("parent", p);
	must(write(down[1], "x", 1));
	must(read(up[0], &c, 1));
}
static void session(const char *name)
{
	must(setsid());
	signal(SIGTTOU, SIG_IGN);
	/* One that cannot be read does not become the controlling terminal by being opened. */
	int w = must(open(name, O_WRONLY));
	T(open("/dev/tty", O_RDWR) == -1 && errno == ENXIO);
	int r = must(open(name, O_RDONLY | O_NOCTTY));
	T(open("/dev/tty", O_RDWR) == -1 && errno == ENXIO);
	close(r);
	r = must(open(name, O_RDONLY));
	T((r = open("/dev/tty", O_RDWR)) >= 0);
	R(ioctl(w, TIOCSCTTY, 0)); /* it is so already */
	close(w), close(r);
	each();
	orphaned();
	_exit(t_failed);
}
static void without_right(const char *name)
{
	must(setsid());
	int w = must(open(name, O_WRONLY | O_NOCTTY)), r = must(open(name, O_RDONLY | O_NOCTTY));
	if (getuid() == 0)
		must(setresuid(65534, 65534, 65534));
	R(ioctl(w, TIOCSCTTY, 0));
	R(ioctl(r, TIOCSCTTY, 0));
	_exit(t_failed);
}
int main(void)
{
	must(openpty(&m, &s, 0, 0, 0));
	char name[64];
	strcpy(name, ttyname(s));
	pid_t p = must(fork());
	if (!p)
		session(name);
	t_reap("session", p);
	p = must(fork());
	if (!p)
		without_right(name);
	t_reap("session of nobody", p);
	return t_done();
}
