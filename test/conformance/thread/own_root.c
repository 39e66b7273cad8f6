/* A thread with a root of its own: what /proc shows of it begins there. While threads of a chrooted process end, nothing outside its
 * root is found through theirs. */
#include "t.h"
static volatile int step;
static volatile int tid;
static int mounts(const char *of)
{
	char name[64], b[4096];
	snprintf(name, sizeof name, "/proc/self/task/%s/mounts", of);
	int fd = must(open(name, O_RDONLY)), n = read(fd, b, sizeof b);
	must(close(fd));
	return n > 0;
}
static void *apart(void *a)
{
	(void)a;
	must(unshare(CLONE_FS));
	must(chroot("inner"));
	tid = syscall(SYS_gettid);
	step = 1;
	while (step == 1)
		t_ms(2);
	return 0;
}
static void *brief(void *a)
{
	(void)a;
	tid = syscall(SYS_gettid);
	return 0;
}
int main(void)
{
	char b[64], own[16];
	struct stat s;
	pthread_t t;
	alarm(20);
	if (getuid())
		return t_done();
	must(mkdir("inner", 0755));
	must(close(must(open("inner/mark", O_CREAT | O_WRONLY, 0600))));
	pthread_create(&t, 0, apart, 0);
	while (!step)
		t_ms(2);
	snprintf(own, sizeof own, "%d", getpid());
	snprintf(b, sizeof b, "%d", tid);
	say("mounts: own %d, the thread's %d\n", mounts(own), mounts(b));
	snprintf(b, sizeof b, "/proc/self/task/%d/root/mark", tid);
	R(stat(b, &s));
	step = 2;
	pthread_join(t, 0);
	pid_t p = must(fork());
	if (!p) {
		int outside = 0, tasks = must(open("/proc/self/task", O_RDONLY | O_DIRECTORY));
		must(chroot("inner"));
		must(chdir("/"));
		for (int i = 0; i < 1500; i++) {
			tid = 0;
			pthread_create(&t, 0, brief, 0);
			while (!tid)
				sched_yield();
			for (int ended = 0; !ended;) {
				snprintf(b, sizeof b, "%d/root/proc", tid);
				outside += !fstatat(tasks, b, &s, 0);
				snprintf(b, sizeof b, "%d/root/mark", tid);
				ended = fstatat(tasks, b, &s, 0) != 0;
			}
			pthread_join(t, 0);
		}
		say("found outside: %d\n", outside);
		_exit(0);
	}
	t_reap("chrooted", p);
	must(unlink("inner/mark"));
	must(rmdir("inner"));
	return t_done();
}
