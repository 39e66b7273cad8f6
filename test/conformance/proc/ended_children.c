/* A child that has ended counts against RLIMIT_NPROC until it has been waited for; and children are waited for in the order in which
   they came, also those that a subreaper adopts. */
#include "t.h"
#include <sys/prctl.h>

enum { MOST = 6 };

static int born(void)
{
	pid_t pid = fork();
	if (!pid)
		_exit(0);
	return pid;
}

static void ended(pid_t pid)
{
	siginfo_t info;
	must(waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
}

/* A user of this process alone, who is not root. */
static void become_a_user(uid_t uid)
{
	struct rlimit limit = {MOST, MOST};
	must(setrlimit(RLIMIT_NPROC, &limit));
	must(setresuid(uid, uid, uid));
}

static void *idle(void *queue)
{
	char byte;
	read(*(int *)queue, &byte, 1);
	return 0;
}

/* As many as the user may have, and the error of the next. */
static int fill(pid_t *pids)
{
	int count = 0;
	for (; count < 2 * MOST; count++) {
		pids[count] = born();
		if (pids[count] < 0)
			break;
		ended(pids[count]);
	}
	S(t_errno(errno));
	return count;
}

static void wait_for_all(void)
{
	while (wait(0) > 0)
		;
}

static void reaper(void)
{
	must(prctl(PR_SET_CHILD_SUBREAPER, 1));
	pid_t own = must(born()), adopted[3];
	ended(own);
	int p[2];
	must(pipe(p));
	pid_t middle = must(fork());
	if (!middle) {
		for (int i = 0; i < 3; i++) {
			adopted[i] = must(born());
			ended(adopted[i]);
		}
		write(p[1], adopted, sizeof adopted);
		_exit(0);
	}
	must(read(p[0], adopted, sizeof adopted));
	ended(middle);
	pid_t last = must(born());
	ended(last);
	T(wait(0) == own);
	T(wait(0) == middle);
	for (int i = 0; i < 3; i++)
		T(wait(0) == adopted[i]);
	T(wait(0) == last);
	R(wait(0));
}

int main(void)
{
	uid_t uid = 1000000 + getpid();
	CHILD("ended children", {
		pid_t pids[2 * MOST];
		become_a_user(uid);
		N(fill(pids));
		/* One that is waited for makes room for one. */
		T(waitpid(pids[2], 0, 0) == pids[2]);
		pids[2] = must(born());
		R(born());
		ended(pids[2]);
		for (int i = 0; i < MOST - 1; i++)
			T(wait(0) > 0);
		N(fill(pids));
		wait_for_all();
	});
	CHILD("threads", {
		int p[2];
		must(pipe(p));
		become_a_user(uid);
		/* A process of three threads that has ended counts once. */
		pid_t pid = must(fork());
		if (!pid) {
			pthread_t thread;
			for (int i = 0; i < 2; i++)
				T(pthread_create(&thread, 0, idle, &p[0]) == 0);
			_exit(0);
		}
		ended(pid);
		pid_t pids[2 * MOST];
		N(fill(pids));
		wait_for_all();
	});
	CHILD("nobody waits", {
		become_a_user(uid);
		signal(SIGCHLD, SIG_IGN);
		for (int i = 0; i < 3 * MOST; i++) {
			must(born());
			R(wait(0));
		}
	});
	CHILD("order", reaper());
	return t_failed;
}
