/* unshare(CLONE_FS) in one thread of several: its directory and umask are its own from then on, what it makes begins with them, and exec
 * takes them along. */
#include "t.h"
static char home[PATH_MAX];
static volatile int step;
static void at(const char *who)
{
	char b[PATH_MAX], name[64], link[PATH_MAX] = "";
	must(getcwd(b, sizeof b) ? 0 : -1);
	snprintf(name, sizeof name, "/proc/self/task/%d/cwd", (int)syscall(SYS_gettid));
	must(readlink(name, link, sizeof link - 1));
	mode_t m = umask(0);
	umask(m);
	struct stat st;
	say("%s: %s, the same in /proc: %d, umask %03o, %s here\n", who, !strcmp(b, home) ? "home" : b, !strcmp(b, link), m,
	    stat("mark", &st) ? "nothing" : "the mark");
}
static void *follower(void *name)
{
	at(name);
	return 0;
}
static void follow(const char *name)
{
	pthread_t t;
	pthread_create(&t, 0, follower, (void *)name);
	pthread_join(t, 0);
}
static void *own(void *a)
{
	(void)a;
	R(unshare(CLONE_FS));
	at("after unshare");
	must(chdir("/"));
	umask(027);
	at("the thread");
	follow("a thread it makes");
	pid_t p = must(fork());
	if (!p) {
		at("a child it makes");
		_exit(0);
	}
	t_reap("child", p);
	step = 1;
	while (step == 1)
		t_ms(2);
	at("the thread, later");
	return 0;
}
static void *leaver(void *a)
{
	(void)a;
	must(unshare(CLONE_FS));
	must(chdir("sub"));
	umask(011);
	execl("/proc/self/exe", "again", "exec", (char *)0);
	return 0;
}
int main(int argc, char **argv)
{
	pthread_t t;
	if (argc > 1) {
		must(getcwd(home, sizeof home) ? 0 : -1);
		say("after exec in sub: %d\n", !strcmp(strrchr(home, '/'), "/sub"));
		at("after exec");
		must(chdir(".."));
		must(rmdir("sub"));
		must(unlink("mark"));
		return t_done();
	}
	umask(022);
	must(getcwd(home, sizeof home) ? 0 : -1);
	must(close(must(open("mark", O_CREAT | O_WRONLY, 0600))));
	must(mkdir("sub", 0700));
	pthread_create(&t, 0, own, 0);
	while (!step)
		t_ms(2);
	at("the first thread");
	follow("another of its");
	must(chdir("sub"));
	umask(007);
	char b[PATH_MAX];
	say("moved: %s\n", strrchr(getcwd(b, sizeof b), '/'));
	step = 2;
	pthread_join(t, 0);
	must(chdir(home));
	at("back");
	R(unshare(CLONE_FS));
	at("the first thread on its own");
	pthread_create(&t, 0, leaver, 0);
	pthread_join(t, 0);
	return 9;
}
