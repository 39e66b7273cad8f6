/* F_NOTIFY: a directory's changes announced by a signal, which, how often, and until when. */
#include "t.h"
#ifndef F_SETSIG
#define F_SETSIG 10
#define F_GETSIG 11
#endif
#ifndef F_NOTIFY
#define F_NOTIFY 1026
#define DN_ACCESS 1
#define DN_MODIFY 2
#define DN_CREATE 4
#define DN_DELETE 8
#define DN_RENAME 16
#define DN_ATTRIB 32
#define DN_MULTISHOT 0x80000000
#endif
static volatile int signals, which, code, band, from;
static void hear(int n, siginfo_t *i, void *u)
{
	(void)u;
	signals++, which = n, code = i->si_code, band = i->si_band, from = i->si_fd;
}
static int dir;
static void heard(const char *what)
{
	if (signals == 0)
		say("  %s: nothing\n", what);
	else if (which >= SIGRTMIN)
		say("  %s: %d, code %d, band %#x, this descriptor %d\n", what, signals, code, band, from == dir);
	else
		say("  %s: %s\n", what, t_sig(which));
	signals = 0;
}
/* Everything that can happen in the directory, one after the other. */
static void all(void)
{
	char b[4];
	int f = open("d/file", O_RDWR | O_CREAT, 0600);
	heard("made");
	must(write(f, "text", 4));
	heard("written");
	must(pread(f, b, 4, 0));
	heard("read");
	must(fchmod(f, 0640));
	heard("mode");
	close(f);
	heard("closed");
	must(truncate("d/file", 2));
	heard("cut");
	must(link("d/file", "d/link"));
	heard("linked");
	must(rename("d/link", "d/other"));
	heard("renamed");
	must(rename("d/other", "out"));
	heard("moved out");
	must(rename("out", "d/other"));
	heard("moved in");
	must(unlink("d/other"));
	heard("unlinked");
	must(mkdir("d/sub", 0700));
	heard("directory made");
	f = must(open("d/sub/below", O_RDWR | O_CREAT, 0600));
	must(write(f, "x", 1));
	close(f);
	must(unlink("d/sub/below"));
	heard("below it");
	must(rmdir("d/sub"));
	heard("directory removed");
	must(chmod("d", 0750));
	heard("its own mode");
	must(unlink("d/file"));
	heard("removed");
}
static void watch(const char *what, unsigned mask)
{
	say("%s\n", what);
	dir = must(open("d", O_RDONLY));
	must(fcntl(dir, F_SETSIG, SIGRTMIN + 1));
	R(fcntl(dir, F_NOTIFY, mask | DN_MULTISHOT));
	all();
	must(close(dir));
	int f = must(open("d/last", O_RDWR | O_CREAT, 0600));
	must(write(f, "x", 1));
	close(f);
	must(unlink("d/last"));
	heard("after the end");
}
#define W(m) watch(#m, m)
int main(void)
{
	t_info(SIGIO, hear, SA_RESTART);
	t_info(SIGRTMIN + 1, hear, SA_RESTART);
	must(mkdir("d", 0700));
	W(DN_ACCESS), W(DN_MODIFY), W(DN_CREATE), W(DN_DELETE), W(DN_RENAME), W(DN_ATTRIB);
	/* Once, by the usual signal. */
	dir = must(open("d", O_RDONLY));
	R(fcntl(dir, F_NOTIFY, DN_CREATE | DN_DELETE));
	say("owner it %d, signal %d\n", fcntl(dir, F_GETOWN) == getpid(), fcntl(dir, F_GETSIG));
	close(must(open("d/a", O_RDWR | O_CREAT, 0600)));
	heard("first");
	must(unlink("d/a"));
	heard("second");
	/* Asked for twice: for both. Taken back. */
	must(fcntl(dir, F_SETSIG, SIGRTMIN + 1));
	R(fcntl(dir, F_NOTIFY, DN_CREATE | DN_MULTISHOT));
	R(fcntl(dir, F_NOTIFY, DN_DELETE | DN_MULTISHOT));
	close(must(open("d/a", O_RDWR | O_CREAT, 0600)));
	heard("made");
	must(unlink("d/a"));
	heard("unlinked");
	R(fcntl(dir, F_NOTIFY, 0));
	close(must(open("d/a", O_RDWR | O_CREAT, 0600)));
	heard("taken back");
	/* A child's doings are heard by who asked, and not by the child. */
	R(fcntl(dir, F_NOTIFY, DN_DELETE | DN_MULTISHOT));
	CHILD("child", must(unlink("d/a")); T(signals == 0));
	heard("a child's");
	must(close(dir));
	int f = must(open("file", O_RDWR | O_CREAT, 0600)), e[2];
	R(fcntl(f, F_NOTIFY, DN_MODIFY));
	R(fcntl(f, F_NOTIFY, 0));
	close(f);
	must(pipe(e));
	R(fcntl(e[0], F_NOTIFY, DN_MODIFY));
	f = must(open("d", O_PATH));
	R(fcntl(f, F_NOTIFY, DN_MODIFY));
	R(fcntl(-1, F_NOTIFY, DN_MODIFY));
	must(unlink("file"));
	must(rmdir("d"));
	return t_done();
}
