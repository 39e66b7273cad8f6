/* fork: copies memory, shares descriptors and file offsets, gives the right parent. */
/* also: i386-static */
#include "t.h"
static int data = 1;
int main(void)
{
	int *heap = malloc(sizeof *heap), local = 3;
	*heap = 2;
	pid_t me = getpid();
	int f = must(open("f", O_RDWR | O_CREAT, 0600));
	must(write(f, "0123456789", 10));
	lseek(f, 0, SEEK_SET);
	pid_t p = must(fork());
	if (!p) {
		T(getppid() == me);
		T(getpid() != me);
		T(getpid() == t_gettid());
		T(data == 1 && *heap == 2 && local == 3);
		data = 10, *heap = 20, local = 30;
		char b[4];
		R(read(f, b, 4));
		_exit(data + *heap + local);
	}
	int st;
	T(waitpid(p, &st, 0) == p);
	t_status("child", st);
	T(data == 1 && *heap == 2 && local == 3);
	R(lseek(f, 0, SEEK_CUR));
	R(waitpid(-1, &st, 0));
	R(waitpid(p, &st, 0));
	for (int i = 0; i < 20; i++) {
		p = must(fork());
		if (!p)
			_exit(i);
		must(waitpid(p, &st, 0));
		if (!WIFEXITED(st) || WEXITSTATUS(st) != i)
			t_status("lost", st);
	}
	/* A tree of processes, each adding its part. */
	int *sum = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int d = 0; d < 4; d++)
		must(fork()); /* parent and child both go on */
	__atomic_add_fetch(sum, 1, __ATOMIC_SEQ_CST);
	while (wait(0) > 0)
		;
	if (getpid() != me)
		_exit(0);
	N(*sum);
	return t_done();
}
