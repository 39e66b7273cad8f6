/* Many processes and many threads: the limit is reported, the rest is cleaned up. */
/* seconds: 60 */
#include "t.h"
static void *nap(void *a)
{
	pause();
	return a;
}
int main(void)
{
	pid_t p[300];
	int n = 0;
	for (; n < 300; n++)
		if (!(p[n] = must(fork()))) {
			pause();
			_exit(0);
		}
	N(n);
	for (int i = 0; i < n; i++)
		kill(p[i], SIGKILL);
	int st, killed = 0;
	while (wait(&st) > 0)
		killed += WIFSIGNALED(st);
	N(killed);
	CHILD("threads", {
		pthread_t t;
		int k = 0;
		while (k < 500 && pthread_create(&t, 0, nap, 0) == 0)
			k++;
		N(k);
	});
	CHILD("descriptors", {
		int k = 0;
		struct rlimit l = {1000, 1000};
		setrlimit(RLIMIT_NOFILE, &l);
		while (open("/dev/null", O_RDONLY) >= 0)
			k++;
		S(t_errno(errno));
		T(k >= 990);
	});
	/* A chain of orphans, each ending before its child. */
	int q[2];
	must(pipe(q));
	if (!must(fork())) {
		for (int i = 0; i < 50; i++)
			if (must(fork()))
				_exit(0);
		write(q[1], "end", 3);
		_exit(0);
	}
	close(q[1]);
	char b[4];
	R(read(q[0], b, 3));
	while (wait(0) > 0)
		;
	return t_done();
}
