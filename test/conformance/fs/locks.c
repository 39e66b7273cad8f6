/* flock, record locks of a process, locks of an open file: who excludes whom, when they go. */
#include "t.h"
#include <sys/file.h>
static struct flock l(int t, long s, long n) { return (struct flock){.l_type = t, .l_whence = SEEK_SET, .l_start = s, .l_len = n}; }
static int set(int f, int cmd, int t, long s, long n)
{
	struct flock x = l(t, s, n);
	return fcntl(f, cmd, &x);
}
static void who(int f, int cmd, long s, long n, pid_t me)
{
	struct flock x = l(F_WRLCK, s, n);
	int r = fcntl(f, cmd, &x);
	if (r)
		say("asked: %s\n", t_errno(errno));
	else if (x.l_type == F_UNLCK)
		say("asked %ld+%ld: free\n", s, n);
	else
		say("asked %ld+%ld: %s %ld+%ld by %s\n", s, n, x.l_type == F_RDLCK ? "read" : "write", (long)x.l_start, (long)x.l_len, x.l_pid == me ? "parent" : x.l_pid == -1 ? "a file" : "other");
}
int main(void)
{
	pid_t me = getpid();
	int a = must(open("f", O_RDWR | O_CREAT, 0600)), b = must(open("f", O_RDWR)), r = must(open("f", O_RDONLY));
	R(flock(a, LOCK_SH));
	R(flock(b, LOCK_SH | LOCK_NB));
	R(flock(b, LOCK_EX | LOCK_NB));
	R(flock(a, LOCK_UN));
	R(flock(b, LOCK_EX | LOCK_NB));
	R(flock(a, LOCK_SH | LOCK_NB));
	int d = must(dup(b));
	R(flock(d, LOCK_EX | LOCK_NB)); /* the same open file */
	close(b);
	R(flock(a, LOCK_SH | LOCK_NB)); /* d still holds it */
	close(d);
	R(flock(a, LOCK_SH | LOCK_NB));
	R(flock(a, 77));
	R(flock(99, LOCK_SH));
	CHILD("inherits", R(flock(a, LOCK_UN)));
	b = must(open("f", O_RDWR));
	R(flock(b, LOCK_EX | LOCK_NB));
	/* Record locks. */
	R(set(a, F_SETLK, F_WRLCK, 10, 10));
	R(set(b, F_SETLK, F_WRLCK, 10, 10)); /* one's own never conflict */
	R(set(r, F_SETLK, F_WRLCK, 0, 1));
	R(set(r, F_SETLK, F_RDLCK, 30, 5));
	R(set(a, F_SETLK, 9, 0, 1));
	R(set(a, F_SETLK, F_RDLCK, 12, 3)); /* splits the range */
	CHILD("other process", {
		who(a, F_GETLK, 0, 5, me);
		who(a, F_GETLK, 0, 0, me);
		who(a, F_GETLK, 12, 1, me);
		who(a, F_GETLK, 15, 1, me);
		R(set(a, F_SETLK, F_RDLCK, 12, 3));
		R(set(a, F_SETLK, F_RDLCK, 11, 3));
		R(set(a, F_SETLK, F_WRLCK, 12, 1));
		R(set(a, F_SETLK, F_WRLCK, 20, 5));
		R(set(a, F_SETLK, F_WRLCK, -5, 2));
	});
	who(a, F_GETLK, 0, 0, me);
	close(must(open("f", O_RDONLY))); /* any close of the file drops all of them */
	CHILD("after a close", R(set(a, F_SETLK, F_WRLCK, 0, 0)));
	/* Waiting, and the deadlock that is seen. */
	int p[2], q[2];
	char c;
	must(pipe(p)), must(pipe(q));
	R(set(a, F_SETLK, F_WRLCK, 0, 1));
	pid_t k = must(fork());
	if (!k) {
		must(set(a, F_SETLK, F_WRLCK, 1, 1));
		write(p[1], "x", 1);
		int e = set(a, F_SETLKW, F_WRLCK, 0, 1);
		say("child got it: %d\n", e);
		_exit(0);
	}
	read(p[0], &c, 1);
	t_asleep(k, k);
	R(set(a, F_SETLKW, F_WRLCK, 1, 1));
	set(a, F_SETLK, F_UNLCK, 0, 0);
	t_reap("child", k);
	/* Locks of an open file. */
	R(set(a, F_OFD_SETLK, F_WRLCK, 0, 10));
	R(set(b, F_OFD_SETLK, F_WRLCK, 5, 10));
	R(set(b, F_OFD_SETLK, F_WRLCK, 10, 10));
	who(b, F_OFD_GETLK, 0, 1, me);
	CHILD("shares the open file", R(set(a, F_OFD_SETLK, F_RDLCK, 0, 5)); R(set(a, F_SETLK, F_WRLCK, 0, 1)));
	close(a);
	R(set(b, F_OFD_SETLK, F_WRLCK, 0, 10));
	R(lockf(r, F_TEST, 0));
	return t_done();
}
