/* Children of one thread (__WNOTHREAD), a zombie's owner, who sent the signal of a parent's death, and kill(-1) by one who may reach nobody. */
#include "t.h"
#include <sys/prctl.h>
static void *other(void *unused)
{
	R(wait4(-1, 0, __WNOTHREAD | WNOHANG, 0));
	siginfo_t i;
	R(waitid(P_ALL, 0, &i, WEXITED | WNOHANG | WNOWAIT | __WNOTHREAD));
	return 0;
}
static pid_t made, maker;
static void *makes(void *unused)
{
	maker = syscall(SYS_gettid);
	made = must(fork());
	if (!made)
		_exit(0);
	return 0;
}
static void drop(int id)
{
	if (!getuid())
		must(setgid(id)), must(setuid(id));
}
int main(void)
{
	pthread_t t;
	siginfo_t i;
	pid_t p = must(fork());
	if (!p)
		_exit(0);
	must(waitid(P_PID, p, &i, WEXITED | WNOWAIT));
	pthread_create(&t, 0, other, 0);
	pthread_join(t, 0);
	T(wait4(-1, 0, __WNOTHREAD, 0) == p);
	/* Of a thread that has ended they are another's. */
	int own = 0;
	for (int k = 0; k < 40; k++) {
		pthread_create(&t, 0, makes, 0);
		pthread_join(t, 0);
		while (t_state(getpid(), maker) != '?')
			;
		own += wait4(-1, 0, __WNOTHREAD, 0) == made;
	}
	N(own);

	/* A zombie keeps its ids. */
	if (!(p = must(fork()))) {
		drop(777);
		_exit(3);
	}
	must(waitid(P_PID, p, &i, WEXITED | WNOWAIT));
	char b[4096], name[40];
	snprintf(name, sizeof name, "/proc/%d/status", p);
	int fd = must(open(name, O_RDONLY));
	ssize_t n = must(read(fd, b, sizeof b - 1));
	b[n] = 0;
	unsigned uid = getuid() ? getuid() : 777, shown = 0;
	char *line = strstr(b, "\nUid:\t");
	T(line && sscanf(line, "\nUid:\t%u", &shown) == 1 && shown == uid);
	struct stat s;
	must(fstat(fd, &s));
	T(s.st_uid == 0);
	snprintf(name, sizeof name, "/proc/%d", p);
	must(stat(name, &s));
	T(s.st_uid == uid);
	close(fd);
	t_reap("zombie", p);

	/* The parent's death. */
	int up[2], end[2];
	must(pipe(up)), must(pipe(end));
	if (!(p = must(fork()))) {
		drop(777);
		if (!must(fork())) {
			sigset_t m;
			sigemptyset(&m), sigaddset(&m, SIGUSR1);
			sigprocmask(SIG_BLOCK, &m, 0);
			must(prctl(PR_SET_PDEATHSIG, SIGUSR1));
			must(write(up[1], "r", 1));
			must(sigwaitinfo(&m, &i));
			T(i.si_uid == uid && i.si_code == SI_USER);
			_exit(0);
		}
		must(read(up[0], b, 1));
		_exit(0);
	}
	close(end[1]);
	must(read(end[0], b, 1));
	t_reap("parent", p);

	/* Everybody, which is somebody: what is out of reach is no error. */
	CHILD("alone", drop(54321); R(kill(-1, 0)));
	return t_failed;
}
