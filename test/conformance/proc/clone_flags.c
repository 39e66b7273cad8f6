/* clone with a choice of shared parts: memory, descriptors, directory, parent, ids. */
#include "t.h"
static char stack[65536] __attribute__((aligned(16)));
static volatile int shared;
static volatile pid_t ptid, ctid;
static int fn(void *a)
{
	shared = 5;
	if (a)
		close(*(int *)a);
	return 6;
}
static int dir(void *a)
{
	(void)a;
	return chdir("/") ? 1 : 0;
}
static int parent(void *a)
{
	return getppid() == *(pid_t *)a ? 0 : 1;
}
int main(void)
{
	char *top = stack + sizeof stack;
	pid_t p = must(clone(fn, top, SIGCHLD, 0));
	t_reap("no sharing", p);
	N(shared);
	p = must(clone(fn, top, CLONE_VM | SIGCHLD, 0));
	t_reap("CLONE_VM", p);
	N(shared);
	int f = must(dup(1));
	p = must(clone(fn, top, CLONE_VM | SIGCHLD, &f));
	t_reap("own files", p);
	R(fcntl(f, F_GETFD));
	p = must(clone(fn, top, CLONE_VM | CLONE_FILES | SIGCHLD, &f));
	t_reap("CLONE_FILES", p);
	R(fcntl(f, F_GETFD));
	char a[4096], b[4096];
	must(getcwd(a, sizeof a) ? 0 : -1);
	p = must(clone(dir, top, CLONE_VM | SIGCHLD, 0));
	t_reap("own directory", p);
	must(getcwd(b, sizeof b) ? 0 : -1);
	T(!strcmp(a, b));
	p = must(clone(dir, top, CLONE_VM | CLONE_FS | SIGCHLD, 0));
	t_reap("CLONE_FS", p);
	S(getcwd(b, sizeof b));
	must(chdir(a));
	/* The ids a parent and a child are given. */
	p = must(clone(fn, top, CLONE_VM | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD, 0, &ptid, 0, &ctid));
	T(ptid == p);
	t_reap("tid flags", p);
	N(ctid);
	pid_t me = getpid();
	CHILD("CLONE_PARENT's maker", {
		pid_t q = clone(parent, top, CLONE_PARENT | SIGCHLD, &me);
		T(q > 0);
		R(waitpid(q, 0, 0));
	});
	t_reap("CLONE_PARENT", -1);
	/* No signal at the end: found by __WCLONE or __WALL only. */
	p = must(clone(fn, top, CLONE_VM, 0));
	R(waitpid(-1, 0, 0));
	int st;
	T(waitpid(p, &st, __WALL) == p);
	t_status("no signal", st);
	p = must(clone(fn, top, CLONE_VM | SIGUSR1 * 0, 0));
	T(waitpid(-1, &st, __WCLONE) == p);
	R(syscall(SYS_clone, CLONE_THREAD, 0, 0, 0, 0));
	R(syscall(SYS_clone, CLONE_SIGHAND, 0, 0, 0, 0));
	R(syscall(SYS_clone, CLONE_FS | CLONE_NEWNS, 0, 0, 0, 0));
	return t_done();
}
