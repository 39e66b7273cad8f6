/* Resource limits: kept, inherited, checked, and felt. */
/* not: i386 */
#include "t.h"
static void xfsz(int s) { say("handler %s\n", t_sig(s)); }
int main(void)
{
	struct rlimit r, q;
	R(getrlimit(100, &r));
	R(setrlimit(RLIMIT_NOFILE, (void *)8));
	T(getrlimit(RLIMIT_STACK, &r) == 0 && r.rlim_cur >= 65536);
	T(getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur <= r.rlim_max);
	q.rlim_cur = 32, q.rlim_max = r.rlim_max;
	R(setrlimit(RLIMIT_NOFILE, &q));
	T(sysconf(_SC_OPEN_MAX) == 32);
	int n = 0, f, last = -1;
	while ((f = dup(1)) >= 0)
		last = f, n++;
	S(t_errno(errno));
	N(last);
	R(open("/dev/null", O_RDONLY));
	R(fcntl(1, F_DUPFD, 32));
	R(dup2(1, 40));
	int pi[2];
	R(pipe(pi));
	for (int i = 3; i < 32; i++)
		close(i);
	q.rlim_cur = 33, q.rlim_max = 32;
	R(setrlimit(RLIMIT_NOFILE, &q));
	CHILD("inherits", getrlimit(RLIMIT_NOFILE, &q); N(q.rlim_cur));
	R(prlimit(0, RLIMIT_NOFILE, &r, &q));
	N(q.rlim_cur);
	R(prlimit(0x3ffffff, RLIMIT_NOFILE, 0, &q));
	/* File size. */
	CHILD("RLIMIT_FSIZE", {
		t_handle(SIGXFSZ, xfsz, 0);
		q.rlim_cur = q.rlim_max = 10;
		setrlimit(RLIMIT_FSIZE, &q);
		f = must(open("big", O_RDWR | O_CREAT | O_TRUNC, 0600));
		R(write(f, "0123456", 7));
		R(write(f, "0123456", 7));
		R(write(f, "0123456", 7));
		R(ftruncate(f, 11));
		R(ftruncate(f, 10));
	});
	CHILD("SIGXFSZ", {
		q.rlim_cur = q.rlim_max = 0;
		setrlimit(RLIMIT_FSIZE, &q);
		f = must(open("big2", O_RDWR | O_CREAT | O_TRUNC, 0600));
		write(f, "x", 1);
	});
	CHILD("RLIMIT_AS", {
		q.rlim_cur = q.rlim_max = 256 << 20;
		setrlimit(RLIMIT_AS, &q);
		T(mmap(0, 512 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == ENOMEM);
	});
	CHILD("RLIMIT_CPU", {
		q.rlim_cur = 1, q.rlim_max = 5;
		setrlimit(RLIMIT_CPU, &q);
		for (volatile long i = 0;; i++)
			;
	});
	/* Nice values go down again for those who may (root). */
	CHILD("nicer", {
		R(setpriority(PRIO_PROCESS, 0, 5));
		R(setpriority(PRIO_PROCESS, 0, 2));
		R(setpriority(PRIO_PROCESS, 0, -3));
		N(getpriority(PRIO_PROCESS, 0));
	});
	return t_done();
}
