/* Functions called for the first time by several threads at once, with arguments in vector registers and signals meanwhile: the dynamic
 * linker loads the registers again when it has found the function. */
#include "t.h"
/* not: i386 */
#include <math.h>
static volatile sig_atomic_t seen;
static volatile double three = 3, four = 4, seventeen = 17;
static void alarmed(int signal)
{
	seen++;
}
static void *threads(void *arg)
{
	double sum = 0;
	for (int n = 0; n < 3; n++) {
		sum += hypot(three, four) + fmod(seventeen, four) + remainder(seventeen, four) + pow(three, four) + ldexp(three, 3);
		sum += cbrt(three * 9) + fma(three, four, seventeen) + copysign(three, -four) + nextafter(three, three) + fdim(four, three);
		sum += fmax(three, four) + scalbn(three, 2) + atan2(three - 3, four) + strtod("2.5", 0) + atoi("7") + labs((long)-three);
	}
	*(double *)arg = sum;
	return 0;
}
int main(void)
{
	/* Enough calls that the code of the libraries is rewritten. */
	for (int n = 0; n < 50; n++) {
		getppid();
		usleep(1);
	}
	struct sigaction action = {.sa_handler = alarmed, .sa_flags = SA_RESTART};
	OK(sigaction(SIGALRM, &action, 0));
	int good = 0, status;
	/* Children bind everything anew. */
	for (int n = 0; n < 20; n++) {
		pid_t pid = fork();
		if (pid == 0) {
			struct itimerval often = {{0, 300}, {0, 300}};
			setitimer(ITIMER_REAL, &often, 0);
			pthread_t t[4];
			double sums[4];
			for (int i = 0; i < 4; i++)
				pthread_create(&t[i], 0, threads, &sums[i]);
			for (int i = 0; i < 4; i++)
				pthread_join(t[i], 0);
			for (int i = 0; i < 4; i++)
				if (sums[i] != sums[0] || fabs(sums[0] - 3 * (5 + 1 + 1 + 81 + 24 + 3 + 29 - 3 + 3 + 1 + 4 + 12 + 2.5 + 7 + 3)) > 1e-9)
					_exit(1);
			_exit(0);
		}
		must(waitpid(pid, &status, 0));
		good += status == 0;
	}
	N(good);
	double here;
	threads(&here);
	N((long)(here * 10));
	return t_done();
}
