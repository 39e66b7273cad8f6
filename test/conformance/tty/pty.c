/* Pseudo-terminals: opening, names, canonical and raw input, echo, editing, output processing, window size, hang-up. */
#include "t.h"
#include <pty.h>
#include <termios.h>
static int m, s;
static char b[8192];
static void master(const char *w)
{
	struct pollfd p = {m, POLLIN, 0};
	int n = poll(&p, 1, 300) == 1;
	/* Linux hands over what was written in pieces, from another thread. */
	usleep(20000);
	n = n ? (int)read(m, b, sizeof b) : 0;
	say("%s: %d [", w, n);
	for (int i = 0; i < n; i++)
		say(b[i] < 32 || b[i] == 127 ? "\\%o" : "%c", b[i]);
	say("]\n");
}
static void slave(const char *w)
{
	struct pollfd p = {s, POLLIN, 0};
	int r = poll(&p, 1, 100);
	int n = r == 1 ? (int)read(s, b, sizeof b) : -7;
	say("%s: %d [", w, n);
	for (int i = 0; i < n; i++)
		say(b[i] < 32 || b[i] == 127 ? "\\%o" : "%c", b[i]);
	say("]\n");
}
static void type(const char *t) { must(write(m, t, strlen(t))); }
int main(void)
{
	struct termios t, o;
	m = must(open("/dev/ptmx", O_RDWR | O_NOCTTY));
	R(grantpt(m));
	int k = 1;
	char n[64];
	R(ptsname_r(m, n, sizeof n));
	R(open(n, O_RDWR | O_NOCTTY)); /* locked */
	R(unlockpt(m));
	R(ioctl(m, TIOCGPTLCK, &k));
	N(k);
	s = must(open(n, O_RDWR | O_NOCTTY));
	T(isatty(s) && isatty(m));
	T(!strcmp(ttyname(s), n));
	struct stat st;
	must(fstat(s, &st));
	T(S_ISCHR(st.st_mode) && st.st_rdev >> 8 == 136);
	R(tcgetattr(s, &t));
	say("%o %o %o %o\n", t.c_iflag, t.c_oflag, t.c_cflag & ~CBAUD, t.c_lflag);
	say("%d %d %d %d %d\n", t.c_cc[VINTR], t.c_cc[VERASE], t.c_cc[VEOF], t.c_cc[VMIN], t.c_cc[VSUSP]);
	R((int)cfgetospeed(&t));
	type("hello\n");
	master("echo");
	slave("line");
	type("abc\177d\025new\n"); /* erase one, kill the line */
	master("editing");
	slave("edited");
	type("two words\027x\n");
	master("word erase");
	slave("word erased");
	type("part");
	slave("no line yet");
	type("\004");
	slave("end of file pushes it");
	type("\004");
	slave("end of file");
	master("echo of part");
	type("\001\033\026\004\n");
	master("controls");
	slave("quoted");
	must(write(s, "out\n\tput\n", 9));
	master("output");
	o = t;
	t.c_lflag &= ~ECHO;
	R(tcsetattr(s, TCSANOW, &t));
	type("secret\r");
	master("no echo");
	slave("return is newline");
	t.c_oflag &= ~OPOST;
	must(tcsetattr(s, TCSADRAIN, &t));
	must(write(s, "raw\n", 4));
	master("no processing");
	cfmakeraw(&t);
	must(tcsetattr(s, TCSAFLUSH, &t));
	type("a\rb\003\n");
	slave("raw");
	t.c_cc[VMIN] = 4, t.c_cc[VTIME] = 0;
	must(tcsetattr(s, TCSANOW, &t));
	type("12");
	pid_t c = must(fork());
	if (!c) {
		t_asleep(getppid(), getppid());
		type("345");
		_exit(0);
	}
	R(read(s, b, 10)); /* waits for four */
	t_reap("typist", c);
	while (fcntl(s, F_SETFL, O_NONBLOCK), read(s, b, 10) > 0)
		;
	fcntl(s, F_SETFL, 0);
	t.c_cc[VMIN] = 0, t.c_cc[VTIME] = 1;
	must(tcsetattr(s, TCSANOW, &t));
	R(read(s, b, 10));
	fcntl(s, F_SETFL, O_NONBLOCK);
	t.c_cc[VMIN] = 1;
	must(tcsetattr(s, TCSANOW, &t));
	R(read(s, b, 10));
	fcntl(s, F_SETFL, 0);
	must(tcsetattr(s, TCSANOW, &o));
	struct winsize w = {24, 80, 0, 0};
	R(ioctl(m, TIOCSWINSZ, &w));
	memset(&w, 0, sizeof w);
	R(ioctl(s, TIOCGWINSZ, &w));
	say("%d x %d\n", w.ws_row, w.ws_col);
	type("left over\n");
	struct pollfd in = {s, POLLIN, 0};
	R(poll(&in, 1, 3000)); /* what is typed may take its time */
	R(ioctl(s, FIONREAD, &k));
	N(k);
	R(tcflush(s, TCIFLUSH));
	R(ioctl(s, FIONREAD, &k));
	N(k);
	R(tcgetattr(0, &t));
	R(tcdrain(s));
	R(ioctl(s, TIOCGPGRP, &k));
	must(write(s, "last", 4));
	close(s);
	read(m, b, 100), read(m, b, 100);
	R(read(m, b, 10));
	s = must(open(n, O_RDWR | O_NOCTTY));
	close(m);
	R(read(s, b, 10));
	R(write(s, "x", 1));
	R(access(n, F_OK));
	R(openpty(&m, &s, 0, 0, &w));
	R(ioctl(s, TIOCGWINSZ, &w));
	return t_done();
}
