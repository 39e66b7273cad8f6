/* A long write of a file in memory can be watched, and no other write comes between its parts. */
#include "t.h"

enum { PART = 2 << 20, PARTS = 16, TRIES = 40, ALL = PART * PARTS };

static char *part[2];

static pid_t write_all(volatile int *begun, int fd, int which)
{
	struct iovec list[PARTS];
	pid_t writer = must(fork());
	if (writer)
		return writer;
	for (int at = 0; at < PARTS; at++)
		list[at] = (struct iovec){part[which], PART};
	begun[which] = 1;
	_exit(writev(fd, list, PARTS) != ALL);
}

static void ends_well(pid_t child)
{
	int status;
	must(waitpid(child, &status, 0));
	must(status == 0 ? 0 : -1);
}

/* Whether the file was seen to grow. */
static int watched(volatile int *begun)
{
	struct stat st;
	int fd = must(memfd_create("watched", 0)), between = 0;
	begun[0] = 0;
	pid_t writer = write_all(begun, fd, 0);
	while (!*begun)
		sched_yield();
	do {
		must(fstat(fd, &st));
		between |= st.st_size > 0 && st.st_size < ALL;
		usleep(100);
	} while (st.st_size < ALL);
	ends_well(writer);
	close(fd);
	return between;
}

/* How often what two have appended changes from one's to the other's. */
static int changes(volatile int *begun)
{
	int fd = must(memfd_create("appended", 0)), count = 0;
	must(fcntl(fd, F_SETFL, O_APPEND));
	pid_t first = write_all(begun, fd, 0), second = write_all(begun, fd, 1);
	ends_well(first);
	ends_well(second);
	T(lseek(fd, 0, SEEK_END) == 2 * (off_t)ALL);
	char before = 0, now;
	for (off_t at = 0; at < 2 * (off_t)ALL; at += 4096) {
		must(pread(fd, &now, 1, at));
		count += at && now != before;
		before = now;
	}
	close(fd);
	return count;
}

int main(void)
{
	volatile int *begun = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(begun == MAP_FAILED ? -1 : 0);
	for (int which = 0; which < 2; which++) {
		part[which] = malloc(PART);
		memset(part[which], 'a' + which, PART);
	}
	int seen = 0;
	for (int try = 0; try < TRIES && !seen; try++)
		seen = watched(begun);
	T(seen);
	for (int try = 0; try < 3; try++)
		T(changes(begun) == 1);
	return t_done();
}
