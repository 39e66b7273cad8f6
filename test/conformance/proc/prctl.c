/* prctl as C libraries and shells use it. */
#include "t.h"
#include <sys/prctl.h>
int main(void)
{
	char n[32];
	memset(n, 'z', sizeof n);
	R(prctl(PR_SET_NAME, "a-name-longer-than-sixteen"));
	R(prctl(PR_GET_NAME, n));
	S(n);
	int f = must(open("/proc/self/comm", O_RDONLY));
	ssize_t k = read(f, n, sizeof n - 1);
	n[k > 0 ? k : 0] = 0;
	say("comm %s", n);
	N(prctl(PR_GET_DUMPABLE));
	R(prctl(PR_SET_DUMPABLE, 0));
	N(prctl(PR_GET_DUMPABLE));
	R(prctl(PR_SET_DUMPABLE, 1));
	R(prctl(PR_SET_DUMPABLE, 7));
	R(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	N(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	R(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
	N(prctl(PR_GET_KEEPCAPS));
	R(prctl(PR_SET_KEEPCAPS, 1));
	N(prctl(PR_GET_KEEPCAPS));
	R(prctl(PR_SET_KEEPCAPS, 2));
	R(prctl(PR_SET_TIMERSLACK, 1000));
	N(prctl(PR_GET_TIMERSLACK));
	R(prctl(PR_CAPBSET_READ, 1000));
	T(prctl(PR_CAPBSET_READ, 0) >= 0);
	R(prctl(99999, 0, 0, 0, 0));
	R(prctl(PR_SET_NAME, (char *)8));
	CHILD("inherits", {
		N(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
		prctl(PR_GET_NAME, n);
		S(n);
	});
	return t_done();
}
