/* timer_create(2) that cannot store the timer's number: nothing of the timer is left. */
#include "../t.h"
static int timers(void)
{
	char buf[4096];
	int fd = must(open("/proc/self/timers", O_RDONLY)), count = 0;
	ssize_t n = must(read(fd, buf, sizeof buf - 1));
	close(fd);
	buf[n] = 0;
	for (char *p = buf; (p = strstr(p, "signal:")); p++)
		count++;
	return count;
}
int main(void)
{
	int id = -7;
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = 99};
	int readable = access("/proc/self/timers", R_OK) == 0;
	for (int i = 0; i < 3; i++)
		R(syscall(SYS_timer_create, CLOCK_MONOTONIC, NULL, (void *)1));
	T(!readable || timers() == 0);
	R(syscall(SYS_timer_create, CLOCK_MONOTONIC, &e, &id));
	e.sigev_signo = SIGUSR1;
	R(syscall(SYS_timer_create, CLOCK_MONOTONIC, &e, &id));
	T(id >= 0);
	T(!readable || timers() == 1);
	R(syscall(SYS_timer_delete, id));
	T(!readable || timers() == 0);
	R(syscall(SYS_timer_delete, id));
	return t_done();
}
