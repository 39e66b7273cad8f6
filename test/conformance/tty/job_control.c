/* A terminal and its session: controlling terminal, foreground group, ^C ^Z ^\, SIGTTIN, SIGTTOU, SIGWINCH, hang-up. */
#include "t.h"
#include <pty.h>
#include <termios.h>
static int m, s, out[2];
static sigset_t none;
static void tell(const char *t) { write(out[1], t, strlen(t)); }
static void h(int n)
{
	tell(t_sig(n));
	tell(" ");
}
/* What was heard, printed at the end: the leader talks meanwhile. */
static char hear[4096];
static int heard;
static void wait_for(const char *w)
{
	char b[512];
	size_t n = 0;
	struct pollfd p = {out[0], POLLIN, 0};
	while (n < sizeof b - 1 && poll(&p, 1, 5000) == 1 && read(out[0], b + n, 1) == 1 && b[n] != '.')
		n++;
	b[n] = 0;
	heard += snprintf(hear + heard, sizeof hear - heard, "%s: %s\n", w, b);
}
/* The next event of the background child. */
static void next(pid_t b)
{
	int st;
	must(waitpid(b, &st, WUNTRACED));
	t_status("child", st);
}
static void fg(pid_t g) { must(tcsetpgrp(s, g)); }
static void child(void)
{
	char x[16];
	struct termios t;
	setpgid(0, 0);
	sigprocmask(SIG_SETMASK, &none, 0);
	for (int i = 1; i < 32; i++)
		signal(i, SIG_DFL);
	tcgetattr(s, &t);
	R(read(s, x, 16));
	raise(SIGSTOP);
	t.c_lflag |= TOSTOP;
	R(tcsetattr(s, TCSANOW, &t));
	raise(SIGSTOP);
	R(write(s, "background\n", 11));
	raise(SIGSTOP);
	signal(SIGTTOU, SIG_IGN);
	R(tcsetpgrp(s, getpgrp()));
	T(tcgetpgrp(s) == getpgrp());
	_exit(3);
}
static void leader(void)
{
	char c;
	int f;
	pid_t b;
	T(ioctl(s, TIOCSCTTY, 0) == -1 && errno == EPERM); /* not yet a session leader */
	must(setsid());
	T(open("/dev/tty", O_RDWR) == -1 && errno == ENXIO);
	R(ioctl(s, TIOCSCTTY, 0));
	T((f = open("/dev/tty", O_RDWR)) >= 0);
	T(tcgetpgrp(s) == getpid() && tcgetsid(s) == getpid());
	T(tcsetpgrp(s, 1 << 20) == -1);
	int all[] = {SIGINT, SIGQUIT, SIGTSTP, SIGWINCH, SIGHUP};
	sigset_t block;
	sigemptyset(&block);
	for (int i = 0; i < 5; i++)
		t_handle(all[i], h, 0), sigaddset(&block, all[i]);
	sigprocmask(SIG_BLOCK, &block, 0);
	signal(SIGTTOU, SIG_IGN);
	tell("ready.");
	for (int i = 0; i < 4; i++)
		sigsuspend(&none), tell(".");
	b = must(fork());
	if (!b)
		child();
	setpgid(b, b);
	next(b); /* it reads in the background */
	fg(b);
	kill(-b, SIGCONT);
	tell("type.");
	next(b); /* it has read */
	fg(getpgrp());
	kill(-b, SIGCONT);
	next(b); /* it changes the settings in the background */
	fg(b);
	kill(-b, SIGCONT);
	next(b);
	fg(getpgrp());
	kill(-b, SIGCONT);
	next(b); /* it writes in the background, TOSTOP is set */
	fg(b);
	kill(-b, SIGCONT);
	next(b);
	fg(getpgrp());
	kill(-b, SIGCONT);
	next(b); /* takes the terminal itself */
	fg(getpgrp());
	b = must(fork());
	if (!b) {
		setpgid(0, 0);
		signal(SIGTTIN, SIG_IGN);
		R(read(s, &c, 1)); /* background and ignoring: an error */
		_exit(0);
	}
	t_reap("ignores SIGTTIN", b);
	tell("hang up.");
	sigsuspend(&none);
	tell(".");
	R(read(s, &c, 1));
	R(write(s, &c, 1));
	T(open("/dev/tty", O_RDWR) == -1);
	_exit(t_failed);
}
int main(void)
{
	struct winsize w = {30, 90, 0, 0};
	sigemptyset(&none);
	must(openpty(&m, &s, 0, 0, 0)), must(pipe(out));
	char name[64];
	strcpy(name, ttyname(s));
	pid_t l = must(fork());
	if (!l) {
		close(m);
		leader();
	}
	wait_for("leader");
	must(write(m, "\003", 1));
	wait_for("^C");
	must(write(m, "\034", 1));
	wait_for("^\\");
	must(write(m, "\032", 1));
	wait_for("^Z");
	must(ioctl(m, TIOCSWINSZ, &w));
	must(ioctl(m, TIOCSWINSZ, &w)); /* the same size again: no signal */
	wait_for("window");
	wait_for("background");
	must(write(m, "line\n", 5));
	wait_for("hang up");
	close(s), close(m);
	wait_for("hung up");
	t_reap("leader", l);
	say("%s", hear);
	T(open(name, O_RDWR | O_NOCTTY) == -1);
	return t_done();
}
