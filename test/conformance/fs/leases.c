/* Leases: who may have which beside whom, who is notified and how when another opens or cuts the file, who waits and until when. */
#include "t.h"
#ifndef F_SETLEASE
#define F_SETLEASE 1024
#define F_GETLEASE 1025
#endif
#ifndef F_SETSIG
#define F_SETSIG 10
#define F_GETSIG 11
#endif
static volatile int told, code, band, from;
static void hear(int n, siginfo_t *i, void *u)
{
	(void)u;
	told = n, code = i->si_code, band = i->si_band, from = i->si_fd;
}
static const char *type(int fd)
{
	int t = fcntl(fd, F_GETLEASE);
	return t == F_RDLCK ? "read" : t == F_WRLCK ? "write" : t == F_UNLCK ? "none" : t_errno(errno);
}
static void notified(int fd)
{
	for (int i = 0; i < 100 && !told; i++)
		t_ms(5);
	say("  %s", told ? t_sig(told) : "nothing");
	if (told >= SIGRTMIN)
		say(", code %d, band %#x, this descriptor %d", code, band, from == fd);
	say("; lease %s\n", type(fd));
	told = 0;
}
/* What /proc/locks shows of this process' lease; not found by the file's number, which need not fit 32-bit programs. */
static void listed(void)
{
	char line[256], state[16] = "no", mode[16] = "";
	FILE *f = fopen("/proc/locks", "r");
	while (fgets(line, sizeof line, f)) {
		char its_state[16], its_mode[16];
		int pid;
		if (sscanf(line, "%*s LEASE %15s %15s %d", its_state, its_mode, &pid) == 3 && pid == getpid())
			strcpy(state, its_state), strcpy(mode, its_mode);
	}
	fclose(f);
	say("listed: %s lease %s\n", state, mode);
}
static void which(void)
{
	int r = must(open("file", O_RDONLY)), w, e[2];
	say("lease %s\n", type(r));
	R(fcntl(r, F_SETLEASE, F_UNLCK));
	R(fcntl(r, F_SETLEASE, 7));
	listed();
	R(fcntl(r, F_SETLEASE, F_RDLCK));
	listed();
	say("lease %s, signal %d, owner it %d\n", type(r), fcntl(r, F_GETSIG), fcntl(r, F_GETOWN) == getpid());
	R(fcntl(r, F_SETLEASE, F_WRLCK));
	say("lease %s\n", type(r));
	w = must(dup(r));
	say("of a copy %s\n", type(w));
	must(close(r));
	say("of a copy %s\n", type(w));
	R(fcntl(w, F_SETLEASE, F_RDLCK));
	r = must(open("file", O_RDONLY | O_NONBLOCK));
	say("of another %s\n", type(r));
	R(fcntl(r, F_SETLEASE, F_RDLCK));
	R(fcntl(r, F_SETLEASE, F_WRLCK));
	R(fcntl(w, F_SETLEASE, F_UNLCK));
	R(fcntl(w, F_SETLEASE, F_UNLCK));
	say("owner %d\n", fcntl(w, F_GETOWN));
	R(fcntl(r, F_SETLEASE, F_WRLCK));
	must(close(w));
	R(fcntl(r, F_SETLEASE, F_WRLCK));
	say("lease %s\n", type(r));
	must(close(r));
	w = must(open("file", O_RDWR));
	R(fcntl(w, F_SETLEASE, F_RDLCK));
	R(fcntl(w, F_SETLEASE, F_WRLCK));
	void *m = mmap(0, 4096, PROT_READ, MAP_SHARED, w, 0);
	R(fcntl(w, F_SETLEASE, F_UNLCK));
	R(fcntl(w, F_SETLEASE, F_WRLCK));
	R(fcntl(w, F_SETLEASE, F_UNLCK));
	must(close(w));
	r = must(open("file", O_RDONLY));
	R(fcntl(r, F_SETLEASE, F_WRLCK));
	R(fcntl(r, F_SETLEASE, F_RDLCK));
	munmap(m, 4096);
	R(fcntl(r, F_SETLEASE, F_RDLCK));
	must(close(r));
	r = must(open(".", O_RDONLY));
	R(fcntl(r, F_SETLEASE, F_WRLCK));
	must(close(r));
	must(pipe(e));
	R(fcntl(e[0], F_SETLEASE, F_RDLCK));
	must(close(e[0]));
	must(close(e[1]));
	r = must(open("file", O_PATH));
	R(fcntl(r, F_SETLEASE, F_RDLCK));
	must(close(r));
	CHILD("another's", if (!geteuid()) must(setresuid(1000, 1000, 1000)); r = open("/etc/passwd", O_RDONLY);
	      R(fcntl(r, F_SETLEASE, F_RDLCK)));
}
/* Another opens it so, waiting or not; the holder hears of it and gives up, or weakens. */
static void broken(const char *what, int lease, int flags, int signal, int then)
{
	int fd = must(open("file", O_RDONLY));
	say("%s\n", what);
	told = 0;
	if (signal)
		must(fcntl(fd, F_SETSIG, signal));
	R(fcntl(fd, F_SETLEASE, lease));
	pid_t p = must(fork());
	if (!p) {
		must(close(fd));
		int n = flags < 0 ? truncate("file", 100) : open("file", flags, 0600);
		_exit(n < 0 ? errno : 0);
	}
	int waits = !(flags & O_NONBLOCK) || flags < 0;
	if (!waits)
		t_reap("  other", p);
	notified(fd);
	listed();
	if (waits) {
		say("  in a while it %s\n", (t_ms(50), waitpid(p, 0, WNOHANG)) ? "has gone on" : "still waits");
		if (then >= 0)
			R(fcntl(fd, F_SETLEASE, then));
		else
			must(close(fd));
		t_reap("  other", p);
	}
	if (then >= 0) {
		say("  lease %s, signal %d, owned %d\n", type(fd), fcntl(fd, F_GETSIG), fcntl(fd, F_GETOWN) != 0);
		must(close(fd));
	}
}
static void interrupted(int n) { (void)n; }
int main(void)
{
	alarm(60);
	t_write("file", "text");
	t_info(SIGIO, hear, SA_RESTART);
	t_info(SIGRTMIN + 2, hear, SA_RESTART);
	which();
	broken("read lease, to be written", F_RDLCK, O_WRONLY, 0, F_UNLCK);
	broken("read lease, by a signal with more", F_RDLCK, O_RDWR, SIGRTMIN + 2, F_UNLCK);
	broken("read lease, not waiting", F_RDLCK, O_WRONLY | O_NONBLOCK, SIGRTMIN + 2, 0);
	broken("read lease, cut", F_RDLCK, -1, 0, F_UNLCK);
	broken("read lease, emptied", F_RDLCK, O_WRONLY | O_TRUNC, 0, F_UNLCK);
	broken("read lease, made", F_RDLCK, O_RDWR | O_CREAT, 0, F_UNLCK);
	broken("write lease, to be read", F_WRLCK, O_RDONLY, SIGRTMIN + 2, F_RDLCK);
	broken("write lease, to be read", F_WRLCK, O_RDONLY, 0, F_UNLCK);
	broken("write lease, to be read, not waiting", F_WRLCK, O_RDONLY | O_NONBLOCK, 0, 0);
	broken("write lease, to be written", F_WRLCK, O_WRONLY, 0, F_UNLCK);
	broken("write lease, closed", F_WRLCK, O_RDWR, 0, -1);
	/* What does not matter to a lease. */
	int fd = must(open("file", O_RDONLY)), other = must(open("file", O_RDONLY));
	R(fcntl(fd, F_SETLEASE, F_RDLCK));
	must(close(must(open("file", O_RDONLY))));
	must(close(must(open("file", O_PATH))));
	struct stat s;
	must(stat("file", &s));
	must(chmod("file", 0640));
	must(rename("file", "same"));
	must(rename("same", "file"));
	notified(fd);
	must(close(other));
	/* A wait that a signal ends. */
	t_handle(SIGALRM, interrupted, 0);
	struct itimerval soon = {.it_value = {0, 100000}};
	must(setitimer(ITIMER_REAL, &soon, 0));
	R(open("file", O_WRONLY));
	notified(fd);
	R(open("file", O_WRONLY | O_NONBLOCK));
	R(fcntl(fd, F_SETLEASE, F_RDLCK));
	say("lease %s\n", type(fd));
	R(fcntl(fd, F_SETLEASE, F_UNLCK));
	OK(open("file", O_WRONLY | O_NONBLOCK));
	must(unlink("file"));
	return t_done();
}
