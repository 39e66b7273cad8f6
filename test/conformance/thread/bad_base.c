/* A thread's base that no processor would take is refused where the thread is made. */
/* not: i386 */
#include "../t.h"
#include <linux/sched.h>
static void *waits(void *a)
{
	must(read(*(int *)a, (char[1]){ 0 }, 1));
	return 0;
}

int main(void)
{
	R(syscall(SYS_clone, CLONE_SETTLS | SIGCHLD, 0, 0, 0, 0x8000000000000000));
	R(syscall(SYS_clone, CLONE_SETTLS | SIGCHLD, 0, 0, 0, 0xffff800000000000));
	struct clone_args c = { .flags = CLONE_SETTLS, .exit_signal = SIGCHLD, .tls = 0x0000900000000000 };
	R(syscall(SYS_clone3, &c, sizeof c));
	/* Each thread is a directory more in its process' list of them. */
	struct stat s;
	int p[2];
	pthread_t t;
	must(stat("/proc/self/task", &s));
	N(s.st_nlink);
	must(pipe(p));
	pthread_create(&t, 0, waits, &p[0]);
	must(stat("/proc/self/task", &s));
	N(s.st_nlink);
	must(write(p[1], "x", 1));
	pthread_join(t, 0);
	return t_done();
}
