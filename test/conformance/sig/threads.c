/* Signals in a program with threads: directed, shared, one mask each, group exit and stop of all. */
#include "t.h"
static volatile int hit[4], ready;
static __thread int self;
static pid_t tid[4];
static void h(int s)
{
	(void)s;
	__atomic_add_fetch(&hit[self], 1, __ATOMIC_SEQ_CST);
}
static void *th(void *a)
{
	self = (long)a;
	tid[self] = t_gettid();
	sigset_t m;
	sigemptyset(&m), sigaddset(&m, SIGUSR1);
	pthread_sigmask(self == 2 ? SIG_UNBLOCK : SIG_BLOCK, &m, 0);
	__atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
	while (ready < 100)
		usleep(2000);
	return 0;
}
static void *die(void *a)
{
	(void)a;
	t_ms(20);
	*(volatile int *)8 = 1;
	return 0;
}
static void *spin(void *a)
{
	volatile long *n = a;
	for (;;)
		++*n;
}
int main(void)
{
	t_handle(SIGUSR1, h, 0);
	t_handle(SIGUSR2, h, 0);
	sigset_t m;
	sigemptyset(&m), sigaddset(&m, SIGUSR1);
	sigprocmask(SIG_BLOCK, &m, 0);
	pthread_t t[4];
	for (long i = 1; i < 4; i++)
		pthread_create(&t[i], 0, th, (void *)i);
	while (ready < 3)
		t_ms(2);
	for (int i = 0; i < 5; i++) {
		int was = hit[2];
		kill(getpid(), SIGUSR1);
		for (int k = 0; k < 1000 && hit[2] == was; k++)
			t_ms(2);
	}
	say("only the one that lets it in: %d %d %d %d\n", hit[0], hit[1], hit[2], hit[3]);
	for (int i = 1; i < 4; i++) {
		int was = hit[i];
		must(syscall(SYS_tgkill, getpid(), tid[i], SIGUSR2));
		for (int k = 0; k < 1000 && hit[i] == was; k++)
			t_ms(2);
	}
	say("directed: %d %d %d %d\n", hit[0], hit[1], hit[2], hit[3]);
	R(syscall(SYS_tgkill, 1 << 20, tid[1], SIGUSR2));
	pthread_kill(t[1], SIGUSR1); /* blocked there: pending for that thread alone */
	sigpending(&m);
	N(sigismember(&m, SIGUSR1));
	ready = 100;
	for (int i = 1; i < 4; i++)
		pthread_join(t[i], 0);
	CHILD("a fault in a thread ends all", pthread_t d; pthread_create(&d, 0, die, 0); for (;;) pause());
	CHILD("a kill ends all", pthread_t d; pthread_create(&d, 0, th, (void *)1); kill(getpid(), SIGTERM); for (;;) pause());
	volatile long *n = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t p = must(fork());
	if (!p) {
		pthread_t d;
		for (int i = 0; i < 3; i++)
			pthread_create(&d, 0, spin, (void *)(n + i * 8));
		for (;;)
			pause();
	}
	while (!n[0] || !n[8] || !n[16])
		t_ms(2);
	int st;
	kill(p, SIGSTOP);
	must(waitpid(p, &st, WUNTRACED));
	t_status("all threads", st);
	t_ms(20);
	long a = n[0], b = n[8], c = n[16];
	t_ms(50);
	T(a == n[0] && b == n[8] && c == n[16]);
	kill(p, SIGCONT);
	for (int i = 0; i < 1000 && (n[0] == a || n[8] == b || n[16] == c); i++)
		t_ms(2);
	T(a != n[0] && b != n[8] && c != n[16]);
	kill(p, SIGKILL);
	t_reap("all threads", p);
	return t_done();
}
