/* A terminal's settings in their newer layout, with speeds; locked ones; what else is asked of a pseudoterminal. */
#include "t.h"
#include <sys/ioctl.h>
/* <asm/termbits.h> and <termios.h> do not go together, and musl's headers have none of it. */
struct old { unsigned i, o, c, l; unsigned char line, cc[19]; };
struct new { struct old t; unsigned ispeed, ospeed; };
#define GETS2 0x802c542aUL
#define SETS2 0x402c542bUL
#define SETSW2 0x402c542cUL
#define SETSF2 0x402c542dUL
#define GETS 0x5401
#define SETS 0x5402
#define SETSF 0x5404
#define GDEV 0x80045432UL
#define SIG 0x40045436UL
#define GEXCL 0x80045440UL
#define GLCK 0x5456
#define SLCK 0x5457
#define SPEED 010017
#define OTHER 010000
static int m, s;
static void show(void)
{
	struct new t;
	memset(&t, 0x55, sizeof t);
	must(ioctl(s, GETS2, &t));
	say("%o %u %u\n", t.t.c, t.ispeed, t.ospeed);
}
static int signals;
static void caught(int n) { signals = n; }
int main(void)
{
	char name[64];
	int k = 0, n = -1;
	m = must(open("/dev/ptmx", O_RDWR | O_NOCTTY));
	must(ioctl(m, TIOCSPTLCK, &k));
	must(ioctl(m, TIOCGPTN, &n));
	snprintf(name, sizeof name, "/dev/pts/%d", n);
	s = must(open(name, O_RDWR | O_NOCTTY));

	struct new t;
	R(ioctl(m, GETS2, &t));
	say("%o %u %u\n", t.t.c, t.ispeed, t.ospeed);
	show();
	t.t.c = (t.t.c & ~SPEED) | OTHER;
	t.ospeed = 12345, t.ispeed = 54321;
	R(ioctl(s, SETS2, &t)); /* the input's is the output's */
	show();
	t.t.c |= OTHER << 16, t.ispeed = 777;
	R(ioctl(s, SETSW2, &t));
	show();
	struct old o;
	must(ioctl(s, GETS, &o));
	say("%o\n", o.c);
	/* The old layout holds no numbers; there is no line that could have five bits. */
	R(ioctl(s, SETS, &o));
	show();
	o.c = 015 | 0400;
	R(ioctl(s, SETSF, &o));
	show();
	o.c = 010017;
	R(ioctl(s, SETS, &o));
	show();
	o.c = 0;
	R(ioctl(s, SETS, &o));
	show();
	t.t.l = 0;
	R(ioctl(m, SETSF2, &t));
	must(ioctl(s, GETS, &o));
	N(o.l);
	R(ioctl(s, GETS2, 8));
	R(ioctl(s, SETS2, 8));

	/* Nothing is locked; then one flag and one character are. */
	struct old lock;
	memset(&lock, 0x55, sizeof lock);
	R(ioctl(s, GLCK, &lock));
	say("%u %u %u %u %u %u\n", lock.i, lock.o, lock.c, lock.l, lock.line, lock.cc[3]);
	memset(&lock, 0, sizeof lock);
	lock.l = 8, lock.cc[0] = 1;
	R(ioctl(s, SLCK, &lock)); /* root only */
	if (!geteuid()) {
		R(ioctl(m, GLCK, &lock));
		say("%u %u\n", lock.l, lock.cc[0]);
		o.l = 0xa, o.cc[0] = 9, o.cc[1] = 9;
		R(ioctl(s, SETS, &o));
		must(ioctl(s, GETS, &o));
		T(o.l == 2 && o.cc[0] == 3 && o.cc[1] == 9);
		memset(&lock, 0, sizeof lock);
		must(ioctl(s, SLCK, &lock));
		must(ioctl(s, SETS, &o));
	}

	unsigned device = 0;
	struct stat st;
	must(fstat(s, &st));
	R(ioctl(s, GDEV, &device));
	T(device == st.st_rdev);
	R(ioctl(s, GEXCL, &k));
	N(k);
	R(ioctl(s, TIOCEXCL));
	R(ioctl(m, GEXCL, &k));
	N(k);
	R(ioctl(s, TIOCNXCL));
	R(ioctl(s, TIOCGSOFTCAR, &k));
	N(k);
	k = 1;
	R(ioctl(s, TIOCSSOFTCAR, &k));
	k = 0;
	R(ioctl(s, TIOCGSOFTCAR, &k));
	N(k);
	k = 0;
	R(ioctl(s, TIOCSETD, &k));
	k = 77;
	R(ioctl(s, TIOCSETD, &k));
	R(ioctl(s, TIOCSBRK));
	R(ioctl(s, TIOCCBRK));

	/* A signal as if typed: only from the master, and only one that can be typed. */
	R(ioctl(m, SIG, SIGUSR1));
	R(ioctl(s, SIG, SIGINT));
	pid_t child = must(fork());
	if (!child) {
		must(setsid());
		must(ioctl(s, TIOCSCTTY, 0));
		signal(SIGINT, caught);
		int sent = ioctl(m, SIG, SIGINT);
		for (int i = 0; i < 500 && !signals; i++)
			usleep(10000);
		_exit(sent ? 100 : signals);
	}
	int status;
	must(waitpid(child, &status, 0));
	N(WEXITSTATUS(status));
	return t_done();
}
