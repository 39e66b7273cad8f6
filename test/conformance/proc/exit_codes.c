/* How a process can end, and what its parent sees. */
#include "t.h"
static void bye(void) { say("atexit\n"); }
static void *th(void *a)
{
	(void)a;
	t_ms(30);
	exit(8);
}
static void *th2(void *a)
{
	(void)a;
	t_ms(30);
	syscall(SYS_exit, 7);
	return 0;
}
int main(void)
{
	CHILD("exit 0", _exit(0));
	CHILD("exit 255", _exit(255));
	CHILD("exit 256", _exit(256));
	CHILD("exit -1", _exit(-1));
	CHILD("exit(3)", atexit(bye); exit(3));
	CHILD("abort", abort());
	CHILD("SYS_exit", syscall(SYS_exit, 44));
	CHILD("exit_group", syscall(SYS_exit_group, 45));
	CHILD("exit in a thread", pthread_t t; pthread_create(&t, 0, th, 0); pause());
	CHILD("main thread leaves first", pthread_t t; pthread_create(&t, 0, th2, 0); syscall(SYS_exit, 1));
	CHILD("kill self", kill(getpid(), SIGKILL); pause());
	CHILD("null", *(volatile int *)0 = 1);
	return t_done();
}
