/* Lists that are root's to read: caches of objects, and timers that are set, an own one among them. */
#include "../t.h"
#include <sys/stat.h>

static char text[1 << 20];

static int take(const char *path)
{
	int f = open(path, O_RDONLY), all = 0, n;
	if (f < 0)
		return -1;
	while (all < (int)sizeof text - 1 && (n = read(f, text + all, sizeof text - 1 - all)) > 0)
		all += n;
	text[all] = 0;
	close(f);
	return 0;
}

/* Whether a timer is set that expires in that many seconds. */
static int has(int seconds)
{
	for (char *at = text; (at = strstr(at, "[in ")); at++) {
		long long nanos = strtoll(at + 4, 0, 10);
		if (nanos > (seconds - 60) * 1000000000LL && nanos <= seconds * 1000000000LL)
			return 1;
	}
	return 0;
}

int main(void)
{
	struct stat s;
	for (int i = 0; i < 2; i++) {
		const char *path = i ? "/proc/timer_list" : "/proc/slabinfo";
		must(stat(path, &s));
		say("%s %o %d\n", path, s.st_mode, (int)s.st_uid);
		if (getuid())
			R(take(path));
	}
	if (getuid())
		return t_done();
	must(take("/proc/slabinfo"));
	T(!strncmp(text, "slabinfo - version: 2.1\n# name            <active_objs> ", 56));
	const int hours = 30 * 3600 + 1234;
	must(take("/proc/timer_list"));
	T(!strncmp(text, "Timer List Version: v0.10\nHRTIMER_MAX_CLOCK_BASES: ", 51));
	T(strstr(text, "\nnow at ") && strstr(text, "\ncpu: 0\n clock 0:\n") && strstr(text, "\nactive timers:\n"));
	N(has(hours));
	struct itimerval t = { .it_value = { hours, 0 } };
	must(setitimer(ITIMER_REAL, &t, 0));
	must(take("/proc/timer_list"));
	N(has(hours));
	T(strstr(text, "it_real_fn") != 0);
	t.it_value.tv_sec = 0;
	must(setitimer(ITIMER_REAL, &t, 0));
	must(take("/proc/timer_list"));
	N(has(hours));
	return t_done();
}
