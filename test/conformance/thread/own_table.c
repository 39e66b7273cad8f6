/* unshare(CLONE_FILES): of a thread that shares with nobody nothing changes; a thread whose first one has ended has the process' table. */
#define _GNU_SOURCE
#include "t.h"
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
static volatile int notified;
static void note(int n) { notified += n == SIGUSR1; }
static void alone(void)
{
	struct mq_attr attr = {.mq_maxmsg = 2, .mq_msgsize = 8};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	t_handle(SIGUSR1, note, 0);
	mqd_t q = mq_open("/own_table", O_RDWR | O_CREAT | O_NONBLOCK, 0600, &attr);
	T(q != (mqd_t)-1);
	must(mq_unlink("/own_table"));
	R(mq_notify(q, &event));
	R(unshare(CLONE_FILES));
	R(mq_send(q, "x", 1, 0));
	N(notified);
	must(mq_close(q));
}
static int ends[2], go[2];
static void *rest(void *arg)
{
	char c;
	/* By then it has ended. */
	t_ms(200);
	if (unshare(CLONE_FILES) || close(ends[1]))
		_exit(1);
	_exit(read(go[0], &c, 1) != 1);
	return arg;
}
int main(void)
{
	alone();
	must(pipe(ends));
	must(pipe(go));
	pid_t p = must(fork());
	if (!p) {
		pthread_t t;
		pthread_create(&t, 0, rest, 0);
		syscall(SYS_exit, 0);
	}
	must(close(ends[1]));
	struct pollfd at = {ends[0], POLLIN, 0};
	R(poll(&at, 1, 5000));
	T(at.revents == POLLHUP);
	R(write(go[1], "g", 1));
	t_reap("the one whose first thread has ended", p);
	return t_done();
}
