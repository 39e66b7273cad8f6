/* A record lock that is got after its descriptor was closed is not kept: nobody could give it up. */
#include "../t.h"
static int held, waiting;
static volatile pid_t waiter;

static void *waits(void *a)
{
	struct flock l = { .l_type = F_WRLCK };
	waiter = t_gettid();
	R(fcntl(waiting, F_SETLKW, &l));
	return a;
}

int main(void)
{
	int to[2], back[2];
	char c;
	must(pipe(to));
	must(pipe(back));
	held = must(open("file", O_RDWR | O_CREAT, 0600));
	pid_t child = must(fork());
	if (!child) {
		struct flock l = { .l_type = F_WRLCK };
		int own = must(open("file", O_RDWR));
		must(fcntl(own, F_SETLK, &l));
		must(write(back[1], "l", 1));
		must(read(to[0], &c, 1));
		close(own);
		must(read(to[0], &c, 1));
		/* The other process has no descriptor that the lock could be by. */
		own = must(open("file", O_RDWR));
		R(fcntl(own, F_SETLK, &l));
		_exit(0);
	}
	must(read(back[0], &c, 1));
	waiting = must(open("file", O_RDWR));
	pthread_t t;
	pthread_create(&t, 0, waits, 0);
	while (!waiter)
		t_ms(1);
	t_asleep(getpid(), waiter);
	close(waiting);
	must(write(to[1], "g", 1));
	pthread_join(t, 0);
	must(write(to[1], "g", 1));
	int s;
	must(waitpid(child, &s, 0));
	N(s);
	struct flock before = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = -1, .l_len = 1 };
	R(fcntl(held, F_SETLK, &before));
	unlink("file");
	return t_done();
}
