/* User and group ids: a set that is consistent, and what may be changed. Stated as properties: the ids are the caller's. */
#include "t.h"
#include <grp.h>
#include <sys/fsuid.h>
int main(void)
{
	uid_t r, e, s;
	gid_t gr, ge, gs;
	R(getresuid(&r, &e, &s));
	R(getresgid(&gr, &ge, &gs));
	T(r == getuid() && e == geteuid() && gr == getgid() && ge == getegid());
	R(setresuid(-1, -1, -1));
	R(setresuid(r, r, r));
	R(setresgid(gr, gr, gr));
	R(setuid(r));
	R(setgid(gr));
	R(setreuid(-1, e));
	T((uid_t)setfsuid(-1) == e);
	T((gid_t)setfsgid(-1) == ge);
	gid_t g[70000 / sizeof(gid_t)];
	int n = getgroups(0, 0);
	T(n >= 0);
	T(getgroups(1000, g) == n);
	R(getgroups(-1, g));
	R(getresuid((uid_t *)8, &e, &s));
	if (e == 0) {
		CHILD("drop", {
			gid_t l[2] = {7, 9};
			T(setgroups(2, l) == 0);
			T(getgroups(10, g) == 2 && g[0] == 7 && g[1] == 9);
			T(setresgid(100, 101, 102) == 0);
			T(setresuid(1000, 1001, 1002) == 0);
			getresuid(&r, &e, &s);
			T(r == 1000 && e == 1001 && s == 1002);
			T(setresuid(-1, 1003, -1) == -1 && errno == EPERM);
			T(setuid(0) == -1 && errno == EPERM);
			T(setresuid(-1, 1002, -1) == 0 && geteuid() == 1002);
			T(setgroups(0, 0) == -1 && errno == EPERM);
			T(setreuid(1002, 1002) == 0);
			getresuid(&r, &e, &s);
			T(r == 1002 && e == 1002 && s == 1002);
			T(open("/etc/shadow", O_RDONLY) == -1);
			T(kill(getppid(), 0) == -1 && errno == EPERM);
		});
	} else {
		T(setuid(e + 1) == -1 && errno == EPERM);
		T(setgroups(0, 0) == -1 && errno == EPERM);
	}
	T(geteuid() == e || e == 1002);
	return t_done();
}
