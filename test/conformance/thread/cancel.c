/* Cancellation: deferred at a call, asynchronous, disabled; cleanup handlers; in each blocking call. */
#include "t.h"
static int p[2];
static volatile int state, tid, sent;
static void clean(void *a) { say("cleanup %s\n", (char *)a); }
static void *in_read(void *a)
{
	char c;
	pthread_cleanup_push(clean, "outer");
	pthread_cleanup_push(clean, a);
	tid = t_gettid();
	read(p[0], &c, 1);
	say("not reached\n");
	pthread_cleanup_pop(0);
	pthread_cleanup_pop(0);
	return 0;
}
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static void unlock(void *a) { say("unlock %d\n", pthread_mutex_unlock(a)); }
static void *in_cond(void *a)
{
	(void)a;
	pthread_mutex_lock(&m);
	pthread_cleanup_push(unlock, &m);
	tid = t_gettid();
	for (;;)
		pthread_cond_wait(&c, &m);
	pthread_cleanup_pop(0);
	return 0;
}
static void *in_sleep(void *a)
{
	(void)a;
	tid = t_gettid();
	sleep(100);
	return 0;
}
static void *in_poll(void *a)
{
	(void)a;
	struct pollfd f = {p[0], POLLIN, 0};
	tid = t_gettid();
	poll(&f, 1, -1);
	return 0;
}
static void *spin(void *a)
{
	(void)a;
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
	tid = t_gettid();
	for (;;)
		state++;
}
static void *disabled(void *a)
{
	int o;
	(void)a;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &o);
	tid = t_gettid();
	while (!sent)
		t_ms(5);
	say("still here\n");
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &o);
	pthread_testcancel();
	say("not reached\n");
	return 0;
}
static void go(const char *w, void *(*f)(void *), void *a)
{
	pthread_t t;
	void *r;
	tid = 0;
	pthread_create(&t, 0, f, a);
	while (!tid)
		t_ms(1);
	if (f == spin)
		t_ms(20);
	else
		t_asleep(getpid(), tid);
	int e = pthread_cancel(t);
	sent = 1;
	pthread_join(t, &r);
	say("%s: cancel %d canceled %d\n", w, e, r == PTHREAD_CANCELED);
}
int main(void)
{
	must(pipe(p));
	go("read", in_read, "inner");
	go("cond", in_cond, 0);
	N(pthread_mutex_trylock(&m));
	go("sleep", in_sleep, 0);
	go("poll", in_poll, 0);
	go("asynchronous", spin, 0);
	go("disabled", disabled, 0);
	return t_done();
}
