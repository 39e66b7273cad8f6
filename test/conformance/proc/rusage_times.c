/* times and getrusage: they grow when work is done, children count after they are waited for. */
/* not: i386 */
#include "t.h"
#include <sys/times.h>
static void burn(long ms)
{
	struct timespec t;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < ms);
}
int main(void)
{
	struct rusage a, b;
	struct tms t;
	T(times(&t) != -1);
	T(getrusage(RUSAGE_SELF, &a) == 0);
	char *big = mmap(0, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(big == MAP_FAILED ? -1 : 0);
	memset(big, 1, 4 << 20);
	must(munmap(big, 4 << 20));
	burn(300);
	T(getrusage(RUSAGE_SELF, &b) == 0);
	long d = (b.ru_utime.tv_sec + b.ru_stime.tv_sec) * 1000 + (b.ru_utime.tv_usec + b.ru_stime.tv_usec) / 1000;
	T(d >= 200 && d < 2000);
	T(b.ru_maxrss > 3 << 10 && b.ru_maxrss < 4 << 20);
	times(&t);
	T(t.tms_utime + t.tms_stime >= 15 && t.tms_utime + t.tms_stime < 200);
	N(t.tms_cutime + t.tms_cstime);
	T(clock() >= 200000);
	pid_t p = must(fork());
	if (!p) {
		getrusage(RUSAGE_SELF, &a);
		T(a.ru_utime.tv_sec == 0 && a.ru_utime.tv_usec < 150000);
		/* A small process has little, whatever is beside it in its address space. */
		T(a.ru_maxrss < 4500);
		burn(250);
		_exit(0);
	}
	t_reap("child", p);
	getrusage(RUSAGE_CHILDREN, &b);
	d = (b.ru_utime.tv_sec + b.ru_stime.tv_sec) * 1000 + (b.ru_utime.tv_usec + b.ru_stime.tv_usec) / 1000;
	T(d >= 150 && d < 2000);
	times(&t);
	T(t.tms_cutime + t.tms_cstime >= 10);
	T(getrusage(RUSAGE_THREAD, &a) == 0);
	R(getrusage(5, &a));
	R(getrusage(RUSAGE_SELF, (void *)8));
	return t_done();
}
