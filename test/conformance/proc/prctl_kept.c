/* Settings of prctl(2) that are kept for a thread or a process: which values they take, and who inherits them. */
#include "t.h"
#include <sys/prctl.h>
#ifndef PR_MCE_KILL
#define PR_MCE_KILL 33
#define PR_MCE_KILL_GET 34
#endif
#define P(a, b, c, d, e) R(prctl(a, (long)(b), (long)(c), (long)(d), (long)(e)))
enum { EVENTS_OFF = 31, EVENTS_ON = 32, SET_FLUSHER = 57, GET_FLUSHER = 58 };
static int may;
static void *thread(void *p)
{
	(void)p;
	P(PR_MCE_KILL_GET, 0, 0, 0, 0);
	P(PR_MCE_KILL, 1, 0, 0, 0);
	T(!may || prctl(GET_FLUSHER, 0, 0, 0, 0) == 1);
	return 0;
}
/* Whether this process has CAP_SYS_RESOURCE. */
static int may_now(void)
{
	char line[256];
	unsigned long long caps = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (fgets(line, sizeof line, f))
		sscanf(line, "CapEff: %llx", &caps);
	fclose(f);
	return caps >> 24 & 1;
}
static int gives(int r, int value) { return may ? r == value : r == -1 && errno == EPERM; }
static int refuses(int r) { return r == -1 && errno == (may ? EINVAL : EPERM); }
static void flusher(void)
{
	T(gives(prctl(GET_FLUSHER, 0, 0, 0, 0), 0));
	T(refuses(prctl(SET_FLUSHER, 2, 0, 0, 0))), T(refuses(prctl(SET_FLUSHER, 1, 1, 0, 0))), T(refuses(prctl(SET_FLUSHER, 1, 0, 0, 1)));
	T(refuses(prctl(GET_FLUSHER, 1, 0, 0, 0))), T(refuses(prctl(GET_FLUSHER, 0, 0, 0, 1)));
	T(gives(prctl(SET_FLUSHER, 1, 0, 0, 0), 0)), T(gives(prctl(GET_FLUSHER, 0, 0, 0, 0), 1));
}
int main(void)
{
	P(EVENTS_OFF, 0, 0, 0, 0), P(EVENTS_ON, 1, 2, 3, 4);
	P(PR_MCE_KILL_GET, 0, 0, 0, 0);
	for (int what = -1; what < 3; what++)
		for (int policy = -1; policy < 4; policy++) {
			say("what %d, policy %d\n", what, policy);
			P(PR_MCE_KILL, what, policy, 0, 0);
			P(PR_MCE_KILL_GET, 0, 0, 0, 0);
		}
	P(PR_MCE_KILL, 1, 1, 1, 0), P(PR_MCE_KILL, 1, 1, 0, 1);
	P(PR_MCE_KILL_GET, 1, 0, 0, 0), P(PR_MCE_KILL_GET, 0, 0, 0, 1);
	P(PR_MCE_KILL, 1, 1, 0, 0);
	may = may_now();
	flusher();
	pthread_t t;
	must(pthread_create(&t, 0, thread, 0));
	pthread_join(t, 0);
	P(PR_MCE_KILL_GET, 0, 0, 0, 0);
	CHILD("child", P(PR_MCE_KILL_GET, 0, 0, 0, 0); T(gives(prctl(GET_FLUSHER, 0, 0, 0, 0), 1)));
	T(gives(prctl(SET_FLUSHER, 0, 0, 0, 0), 0)), T(gives(prctl(GET_FLUSHER, 0, 0, 0, 0), 0));
	if (geteuid() == 0)
		CHILD("nobody", must(setresuid(65534, 65534, 65534)); may = 0; flusher());
	return t_done();
}
