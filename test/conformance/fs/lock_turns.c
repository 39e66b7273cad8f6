/* Processes that take turns with one lock each wait for nobody who waits for them: no EDEADLK, and no turn is lost. Two with two locks in opposite order do. */
#include "t.h"
#define PROCESSES 6
#define TURNS 300
static int lock(int fd, int type, off_t at)
{
	struct flock what = {.l_type = type, .l_start = at, .l_len = 1};
	return fcntl(fd, F_SETLKW, &what);
}
int main(void)
{
	char path[] = "/tmp/lock_turnsXXXXXX";
	int fd = must(mkstemp(path)), bad = 0, status;
	int *count = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int n = 0; n < PROCESSES; n++) {
		if (must(fork()))
			continue;
		for (int turn = 0; turn < TURNS; turn++) {
			if (lock(fd, F_WRLCK, 0))
				_exit(errno == EDEADLK ? 1 : 2);
			++*(volatile int *)count;
			if (turn % 16 == 0)
				usleep(1);
			lock(fd, F_UNLCK, 0);
		}
		_exit(0);
	}
	while (wait(&status) > 0)
		bad |= status;
	N(bad);
	N(*count);
	int pipes[2];
	char byte = 0;
	must(pipe(pipes));
	must(lock(fd, F_WRLCK, 0));
	pid_t pid = must(fork());
	if (pid == 0) {
		must(lock(fd, F_WRLCK, 1));
		must(write(pipes[1], &byte, 1));
		_exit(lock(fd, F_WRLCK, 0) ? 1 : 0);
	}
	must(read(pipes[0], &byte, 1));
	t_ms(200);
	R(lock(fd, F_WRLCK, 1));
	must(lock(fd, F_UNLCK, 0));
	t_reap("the other", pid);
	unlink(path);
	return t_done();
}
