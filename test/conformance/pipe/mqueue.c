/* POSIX message queues: order, limits, timeouts, and mq_notify by signal, by thread and taken back. */
#include "t.h"
#include <mqueue.h>
static volatile int got, code, value, from;
static void handler(int s, siginfo_t *i, void *c)
{
	(void)c;
	got = s;
	code = i->si_code;
	value = i->si_value.sival_int;
	from = i->si_pid;
}
static int woken[2];
static void in_thread(union sigval v)
{
	must(write(woken[1], &v.sival_int, 4));
}
static char name[32], b[64];
static mqd_t make(int flags)
{
	struct mq_attr a = {.mq_maxmsg = 3, .mq_msgsize = 16};
	return must(mq_open(name, O_RDWR | O_CREAT | flags, 0600, &a));
}
static void drain(mqd_t q)
{
	while (mq_receive(q, b, sizeof b, 0) >= 0)
		;
}
int main(void)
{
	snprintf(name, sizeof name, "/t-mqueue-%d", getpid());
	mqd_t q = make(O_EXCL | O_NONBLOCK);
	R(mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, 0));
	unsigned p;
	R(mq_send(q, "low", 3, 1));
	R(mq_send(q, "high", 4, 9));
	R(mq_send(q, "high2", 5, 9));
	R(mq_send(q, "full", 4, 9));
	R(mq_send(q, "much too long for it", 20, 9));
	R(mq_receive(q, b, 3, &p));
	for (int i = 0; i < 3; i++) {
		memset(b, 0, sizeof b);
		R(mq_receive(q, b, sizeof b, &p));
		say("%s %u\n", b, p);
	}
	R(mq_receive(q, b, sizeof b, &p));

	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	must(sigaction(SIGUSR1, &sa, 0));
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 42};
	R(mq_notify(q, &e));
	R(mq_notify(q, &e));
	pid_t c = must(fork());
	if (!c) {
		/* Another process' registration is in the way, and is not this one's to take back. */
		R(mq_notify(q, &e));
		R(mq_notify(q, 0));
		R(mq_notify(q, &e));
		mq_close(q);
		_exit(0);
	}
	t_reap("busy", c);
	N(got);
	c = must(fork());
	if (!c)
		_exit(mq_send(q, "x", 1, 0));
	t_reap("sender", c);
	T(got == SIGUSR1 && code == SI_MESGQ && from == c);
	N(value);
	/* Used up; and a message into a queue that is not empty notifies nobody. */
	got = 0;
	R(mq_notify(q, &e));
	R(mq_send(q, "y", 1, 0));
	N(got);
	drain(q);
	R(mq_send(q, "z", 1, 0));
	T(got == SIGUSR1);
	got = 0;
	drain(q);
	/* Taken back. */
	R(mq_notify(q, &e));
	R(mq_notify(q, 0));
	R(mq_send(q, "z", 1, 0));
	N(got);
	drain(q);
	/* A receiver that waits gets the message, and the registration stays. */
	R(mq_notify(q, &e));
	mqd_t w = must(mq_open(name, O_RDWR));
	c = must(fork());
	if (!c) {
		_exit(mq_receive(w, b, sizeof b, 0) == 1 ? b[0] : 1);
	}
	t_asleep(c, c);
	R(mq_send(q, "a", 1, 0));
	t_reap("receiver", c);
	N(got);
	R(mq_send(q, "b", 1, 0));
	T(got == SIGUSR1);
	got = 0;
	drain(q);
	/* Closing any descriptor of the queue takes it back too. */
	R(mq_notify(q, &e));
	must(mq_close(w));
	R(mq_send(q, "b", 1, 0));
	N(got);
	drain(q);
	e = (struct sigevent){.sigev_notify = SIGEV_NONE};
	R(mq_notify(q, &e));
	R(mq_notify(q, &e));
	R(mq_notify(q, 0));
	e.sigev_notify = SIGEV_SIGNAL, e.sigev_signo = 1000;
	R(mq_notify(q, &e));
	e.sigev_notify = 77;
	R(syscall(SYS_mq_notify, q, &e));
	R(syscall(SYS_mq_notify, q, 8));
	R(mq_notify(1, 0));
	R(mq_notify(99, 0));
	/* By a thread of the C library. */
	must(pipe(woken));
	e = (struct sigevent){.sigev_notify = SIGEV_THREAD, .sigev_notify_function = in_thread, .sigev_value.sival_int = 7};
	R(mq_notify(q, &e));
	R(mq_send(q, "t", 1, 0));
	int v = 0;
	R(read(woken[0], &v, 4));
	N(v);
	struct timespec past = {1, 0};
	drain(q);
	w = must(mq_open(name, O_RDWR));
	R(mq_timedreceive(w, b, sizeof b, 0, &past));
	R(mq_unlink(name));
	R(mq_unlink(name));
	return t_done();
}
