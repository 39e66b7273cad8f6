/* A kill ends a long write: nobody waits for all of it. */
#include "t.h"

enum { PART = 2 << 20, PARTS = 64, TRIES = 20 };

/* How much of it a writer who is killed soon after it has begun leaves behind. */
static off_t left_behind(volatile int *begun, const struct iovec *list)
{
	int status, fd = must(memfd_create("long", 0));
	*begun = 0;
	pid_t writer = must(fork());
	if (writer == 0) {
		*begun = 1;
		writev(fd, list, PARTS);
		_exit(0);
	}
	while (!*begun)
		sched_yield();
	usleep(3000);
	kill(writer, SIGKILL);
	must(waitpid(writer, &status, 0));
	off_t size = must(lseek(fd, 0, SEEK_END));
	close(fd);
	return size;
}

int main(void)
{
	volatile int *begun = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *part = calloc(1, PART);
	struct iovec list[PARTS];
	for (int at = 0; at < PARTS; at++)
		list[at] = (struct iovec){part, PART};
	must(begun == MAP_FAILED || !part ? -1 : 0);
	int cut = 0;
	for (int try = 0; try < TRIES && !cut; try++) {
		off_t size = left_behind(begun, list);
		cut = size > 0 && size < (off_t)PARTS * PART;
	}
	T(cut);
	return t_done();
}
