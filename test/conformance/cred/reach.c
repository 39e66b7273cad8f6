/* What a user has arranged does not reach programs with more rights than its own: signals of descriptors (F_SETOWN), of ended children
 * (clone's exit signal), of ended parents (PR_SET_PDEATHSIG) and of message queues (mq_notify), the words of personality(2), a root and
 * directory that others share (CLONE_FS). And what of /proc is not for every user to write. */
#include "t.h"
#include <grp.h>
#include <mqueue.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
enum { USER = 1000 };
static char path[] = "/tmp/t-reach-XXXXXX";
static void drop(void)
{
	must(setgroups(0, 0));
	must(setresgid(USER, USER, USER));
	must(setresuid(USER, USER, USER));
}
/* The set-user-ID program: reports on fd that it runs, and waits for an end of file there. Its exit code is its user. */
static int program(int in, int out)
{
	char b = 'x';
	must(write(out, &b, 1));
	while (read(in, &b, 1) > 0)
		;
	return geteuid() == 0 ? 0 : 1;
}
/* Runs it in place of the caller. */
static void run(int in, int out)
{
	char a[16], b[16];
	snprintf(a, sizeof a, "%d", in);
	snprintf(b, sizeof b, "%d", out);
	execl(path, path, a, b, NULL);
	_exit(9);
}
struct talk { int to[2], from[2]; };
static struct talk talk(void)
{
	struct talk t;
	must(pipe(t.to));
	must(pipe(t.from));
	return t;
}
static void runs(struct talk *t)
{
	char b;
	close(t->to[0]);
	close(t->from[1]);
	must(read(t->from[0], &b, 1) == 1 ? 0 : -1);
}
static void owner(int group)
{
	int s[2], ready[2];
	char b;
	must(pipe(ready));
	pid_t root = must(fork());
	if (!root) {
		must(setpgid(0, 0));
		must(write(ready[1], "x", 1));
		for (;;)
			pause();
	}
	must(read(ready[0], &b, 1));
	CHILD("user", {
		drop();
		must(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
		R(fcntl(s[0], F_SETOWN, group ? -root : root));
		R(fcntl(s[0], F_SETSIG, SIGKILL));
		R(fcntl(s[0], F_SETFL, O_ASYNC | O_NONBLOCK));
		R(write(s[1], "x", 1));
	});
	/* What is sent is there when write(2) returns. */
	t_ms(20);
	R(kill(root, SIGTERM));
	t_reap("root's process", root);
	/* The own process is reached. */
	CHILD("own", {
		drop();
		must(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
		R(fcntl(s[0], F_SETOWN, getpid()));
		R(fcntl(s[0], F_SETSIG, SIGTERM));
		R(fcntl(s[0], F_SETFL, O_ASYNC | O_NONBLOCK));
		write(s[1], "x", 1);
		t_ms(2000);
	});
}
static void exit_signal(void)
{
	struct talk t = talk();
	pid_t a = must(fork());
	if (!a) {
		drop();
		close(t.to[1]);
		close(t.from[0]);
		int go[2];
		must(pipe(go));
		pid_t c = must(syscall(SYS_clone, SIGKILL, 0, 0, 0, 0));
		if (!c) {
			char b;
			close(go[1]);
			close(t.to[0]);
			close(t.from[1]);
			read(go[0], &b, 1);
			_exit(0);
		}
		fcntl(go[1], F_SETFD, FD_CLOEXEC);
		run(t.to[0], t.from[1]);
	}
	runs(&t);
	/* The child ends by the exec's closing its pipe. */
	t_ms(50);
	close(t.to[1]);
	t_reap("parent with more rights, whose child ends", a);
	close(t.from[0]);
	CHILD("parent, whose child ends", {
		pid_t c = must(syscall(SYS_clone, SIGTERM, 0, 0, 0, 0));
		if (!c)
			_exit(0);
		t_ms(2000);
	});
	/* Its own exec makes a child one of the usual kind: waitpid without __WALL finds it. */
	CHILD("child that calls exec", {
		int called[2];
		char b;
		must(pipe2(called, O_CLOEXEC));
		pid_t c = must(syscall(SYS_clone, SIGTERM, 0, 0, 0, 0));
		if (!c) {
			execl("/bin/true", "true", NULL);
			_exit(9);
		}
		close(called[1]);
		must(read(called[0], &b, 1));
		int st;
		T(waitpid(c, &st, 0) == c && st == 0);
	});
}
static void parent_death(void)
{
	struct talk t = talk();
	must(prctl(PR_SET_CHILD_SUBREAPER, 1));
	CHILD("parent", {
		drop();
		int go[2];
		char b;
		must(pipe(go));
		pid_t c = must(fork());
		if (!c) {
			must(prctl(PR_SET_PDEATHSIG, SIGKILL));
			close(t.to[1]);
			close(t.from[0]);
			close(go[0]);
			run(t.to[0], t.from[1]);
		}
		close(t.from[1]);
		close(t.to[0]);
		close(t.to[1]);
		must(read(t.from[0], &b, 1));
	});
	close(t.to[0]);
	close(t.from[1]);
	close(t.from[0]);
	close(t.to[1]);
	int st;
	must(waitpid(-1, &st, 0));
	t_status("program with more rights, whose parent has ended", st);
	must(prctl(PR_SET_CHILD_SUBREAPER, 0));
	CHILD("changes of ids", {
		int s;
		must(prctl(PR_SET_PDEATHSIG, SIGTERM));
		drop();
		must(prctl(PR_GET_PDEATHSIG, &s));
		N(s);
	});
}
static void queue(void)
{
	char name[32];
	struct mq_attr a = {.mq_maxmsg = 4, .mq_msgsize = 8};
	struct talk t = talk();
	snprintf(name, sizeof name, "/t-reach-%d", getpid());
	mqd_t q = must(mq_open(name, O_CREAT | O_RDWR, 0600, &a));
	T(fcntl(q, F_GETFD) == FD_CLOEXEC);
	pid_t c = must(fork());
	if (!c) {
		drop();
		close(t.to[1]);
		close(t.from[0]);
		struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
		must(mq_notify(q, &e));
		must(fcntl(q, F_SETFD, 0));
		run(t.to[0], t.from[1]);
	}
	runs(&t);
	R(mq_send(q, "x", 1, 0));
	t_ms(20);
	close(t.to[1]);
	t_reap("program with more rights, registered before", c);
	close(t.from[0]);
	must(mq_unlink(name));
}
static void shared(int with)
{
	struct talk t = talk();
	close(t.to[1]);
	CHILD(with ? "shares root and directory" : "shares nothing", {
		drop();
		pid_t c = must(syscall(SYS_clone, (with ? CLONE_FS : 0) | SIGCHLD, 0, 0, 0, 0));
		if (!c)
			run(t.to[0], t.from[1]);
		t_reap("program (0: root's)", c);
	});
	close(t.to[0]), close(t.from[0]), close(t.from[1]);
}
static void words(void)
{
	struct talk t = talk();
	pid_t c = must(fork());
	if (!c) {
		close(t.to[1]);
		drop();
		must(personality(ADDR_NO_RANDOMIZE | MMAP_PAGE_ZERO | ADDR_COMPAT_LAYOUT | STICKY_TIMEOUTS));
		run(t.to[0], t.from[1]);
	}
	runs(&t);
	char p[64], b[16] = "";
	snprintf(p, sizeof p, "/proc/%d/personality", c);
	int f = must(open(p, O_RDONLY));
	must(read(f, b, 8));
	close(f);
	S(b);
	close(t.to[1]);
	t_reap("program", c);
	close(t.from[0]);
}
static ssize_t put(pid_t pid, const char *name, const char *text)
{
	char p[64];
	snprintf(p, sizeof p, "/proc/%d/%s", pid, name);
	int f = open(p, O_WRONLY | O_CLOEXEC);
	if (f < 0)
		return -1;
	ssize_t n = write(f, text, strlen(text));
	int e = errno;
	close(f);
	errno = e;
	return n;
}
static int readable(pid_t pid, const char *name)
{
	char at[64];
	snprintf(at, sizeof at, "/proc/%d/%s", pid, name);
	int f = open(at, O_RDONLY);
	if (f >= 0)
		close(f);
	return f < 0 ? -1 : 0;
}
static void settings(void)
{
	pid_t root = must(fork());
	if (!root)
		for (;;)
			pause();
	CHILD("user", {
		R(put(getpid(), "oom_score_adj", "700"));
		drop();
		prctl(PR_SET_DUMPABLE, 1);
		R(put(getpid(), "oom_score_adj", "1000"));
		R(put(getpid(), "oom_score_adj", "-1000"));
		R(put(getpid(), "oom_adj", "-17"));
		R(put(getpid(), "oom_adj", "16"));
		R(put(root, "oom_score_adj", "1000"));
		R(put(root, "timerslack_ns", "77777"));
		R(put(getpid(), "timerslack_ns", "77777"));
		N(prctl(PR_GET_TIMERSLACK));
		R(put(root, "comm", "another"));
		R(put(getpid(), "comm", "mine"));
		R(readable(root, "maps"));
		R(readable(root, "timers"));
		R(readable(getpid(), "timers"));
	});
	R(put(root, "comm", "another"));
	must(kill(root, SIGKILL));
	must(waitpid(root, 0, 0));
}
int main(int argc, char **argv)
{
	if (argc > 2)
		return program(atoi(argv[1]), atoi(argv[2]));
	if (geteuid() != 0) {
		say("not root\n");
		return 0;
	}
	char b[65536];
	int from = must(open("/proc/self/exe", O_RDONLY)), to = must(mkstemp(path));
	for (ssize_t n; (n = must(read(from, b, sizeof b))) > 0;)
		must(write(to, b, n));
	must(fchmod(to, 04755));
	close(to);
	close(from);
	owner(0);
	owner(1);
	exit_signal();
	parent_death();
	queue();
	shared(0);
	shared(1);
	words();
	settings();
	must(unlink(path));
	return t_done();
}
