/* vfork and exec, one after the other and by two threads, while other threads fork and map: each child of fork has all of its parent's
 * memory, but for what MADV_DONTFORK kept from it. */
#include "t.h"
/* seconds: 90 */
extern char **environ;
static char *pages;
static volatile int over;
static int spawn(void)
{
	int status;
	char *argv[] = {"true", 0};
	pid_t pid = vfork();
	if (pid == 0) {
		execve("/bin/true", argv, environ);
		_exit(77);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}
static void *spawns(void *arg)
{
	long bad = 0;
	for (int n = 0; n < 60; n++)
		bad += spawn() != 0;
	return (void *)bad;
}
static void *maps(void *arg)
{
	while (!over) {
		char *p = mmap(0, 16 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		p[4096] = 1;
		mprotect(p + 4096, 4096, PROT_READ);
		munmap(p, 16 * 4096);
	}
	return 0;
}
/* How a child finds the memory. */
static int child(void)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		for (int n = 0; n < 64; n++)
			if (pages[n * 4096] != (char)(n + 1))
				_exit(1);
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid ? status : -1;
}
int main(void)
{
	pages = mmap(0, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int n = 0; n < 64; n++)
		pages[n * 4096] = n + 1;
	N(spawn());
	N(child());
	pthread_t t[3];
	pthread_create(&t[0], 0, spawns, 0);
	pthread_create(&t[1], 0, spawns, 0);
	pthread_create(&t[2], 0, maps, 0);
	long bad = 0;
	for (int n = 0; n < 60; n++)
		bad += child() != 0;
	N(bad);
	for (int i = 0; i < 2; i++) {
		void *failed;
		pthread_join(t[i], &failed);
		N((long)failed);
	}
	over = 1;
	pthread_join(t[2], 0);
	/* An exec that fails, and one in a child that has made a child. */
	pid_t pid = vfork();
	if (pid == 0) {
		execve("/nowhere", 0, environ);
		_exit(errno == ENOENT ? 3 : 4);
	}
	int status;
	must(waitpid(pid, &status, 0));
	N(WEXITSTATUS(status));
	N(child());
	R(madvise(pages + 4096, 4096, MADV_DONTFORK));
	N(spawn());
	pid = fork();
	if (pid == 0) {
		unsigned char there;
		int first = mincore(pages, 4096, &there), second = mincore(pages + 4096, 4096, &there);
		_exit((first == 0) | (second == -1 && errno == ENOMEM) << 1);
	}
	must(waitpid(pid, &status, 0));
	N(WEXITSTATUS(status));
	R(madvise(pages + 4096, 4096, MADV_DOFORK));
	N(spawn());
	N(child());
	return t_done();
}
