/* exec in a program with threads: the others end, the caller becomes the leader with the program's number. */
#include "t.h"
static pid_t me;
static void *idle(void *a)
{
	(void)a;
	for (;;)
		pause();
}
static void *run(void *a)
{
	char n[32];
	(void)a;
	snprintf(n, sizeof n, "%d", me);
	T(t_gettid() != me);
	execl("/proc/self/exe", "threads", n, (char *)0);
	return 0;
}
int main(int argc, char **argv)
{
	if (argc > 1) {
		T(getpid() == atoi(argv[1]));
		T(t_gettid() == getpid());
		T(t_state(getpid(), getpid()) == 'R');
		char b[4096];
		int f = open("/proc/self/status", O_RDONLY);
		ssize_t n = read(f, b, sizeof b - 1);
		b[n > 0 ? n : 0] = 0;
		T(strstr(b, "Threads:\t1\n") != 0);
		return t_done() ? 1 : 7;
	}
	CHILD("from a thread", {
		me = getpid();
		pthread_t t;
		for (int i = 0; i < 5; i++)
			pthread_create(&t, 0, idle, 0);
		pthread_create(&t, 0, run, 0);
		pause();
	});
	CHILD("from the leader", {
		me = getpid();
		pthread_t t;
		for (int i = 0; i < 5; i++)
			pthread_create(&t, 0, idle, 0);
		char n[32];
		snprintf(n, sizeof n, "%d", me);
		execl("/proc/self/exe", "threads", n, (char *)0);
	});
	return t_done();
}
