/* A kill ends who makes pages of a huge mapping present, wherever it is just then. */
#include "t.h"

enum { READ = 22 };

/* Far more than can be looked at; as much as fits where addresses are short. */
#define SIZE ((size_t)1 << (sizeof(long) == 8 ? 45 : 28))

static void *huge(int prot, int flags)
{
	return mmap(0, SIZE, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

static void killed(const char *name, int which)
{
	pid_t child = must(fork());
	if (!child)
		for (;;) {
			void *at = huge(PROT_READ, which ? MAP_POPULATE : 0);
			if (at != MAP_FAILED && !which)
				madvise(at, SIZE, READ);
		}
	usleep(50000);
	must(kill(child, SIGKILL));
	int status = 0;
	must(waitpid(child, &status, 0));
	say("%s: killed %d\n", name, WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

int main(void)
{
	killed("madvise", 0);
	killed("mmap", 1);
	return t_done();
}
