/* Standard error takes nothing any more, and a process that has used up the sandbox's memory is to be killed: it is, and timers go on. Its name is not for terminals. */
#include "../conformance/t.h"
#include <sys/prctl.h>
static void on_alarm(int sig)
{
	(void)sig;
}
int main(int argc, char **argv)
{
	if (argc < 2) {
		static char bytes[4096];
		int flags = must(fcntl(2, F_GETFL));
		must(fcntl(2, F_SETFL, flags | O_NONBLOCK));
		while (write(2, bytes, sizeof bytes) > 0 || write(2, bytes, 1) > 0)
			;
		must(fcntl(2, F_SETFL, flags));
	}
	pid_t pid = must(fork());
	if (pid == 0) {
		must(prctl(PR_SET_NAME, "\033]0;title\a\n"));
		size_t size = 512 << 20;
		volatile char *at = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		for (size_t n = 0; n < size; n += 4096) {
			at[n] = 1;
			if (n % (8 << 20) == 0)
				usleep(10000);
		}
		for (;;)
			pause();
	}
	t_reap("who has too much", pid);
	t_handle(SIGALRM, on_alarm, 0);
	struct itimerval soon = {.it_value = {0, 100000}};
	must(setitimer(ITIMER_REAL, &soon, 0));
	struct timespec most = {10, 0};
	R(nanosleep(&most, 0));
	return t_done();
}
