/* /proc/self/loginuid and sessionid: set once by a process that has none, inherited; and files of /proc are emptied without an error. */
#include "t.h"
static unsigned number(const char *path)
{
	char b[32] = "";
	int f = must(open(path, O_RDONLY));
	must(read(f, b, sizeof b - 1));
	close(f);
	return strtoul(b, 0, 10);
}
static int set(const char *path, const char *text)
{
	int f = open(path, O_RDWR), n = f < 0 ? -1 : write(f, text, strlen(text)), e = errno;
	close(f), errno = e;
	return n;
}
/* The line of the first condition that does not hold, 0 if all do. */
#define HOLDS(c) do { if (!(c)) return __LINE__; } while (0)
static int child(const char *own, const char *parents)
{
	unsigned session = number("/proc/self/sessionid");
	HOLDS(session != -1u && number("/proc/self/loginuid") == getuid());
	if (getuid()) {
		HOLDS(set("/proc/self/loginuid", own) == -1 && errno == EPERM);
		return 0;
	}
	HOLDS(set(parents, "7") == -1 && errno == EPERM);
	HOLDS(set("/proc/self/loginuid", "7\n") == 2 && number("/proc/self/loginuid") == 7);
	HOLDS(number("/proc/self/sessionid") != session);
	HOLDS(set("/proc/self/loginuid", "4294967295") == 10 && number("/proc/self/sessionid") == -1u);
	return 0;
}
static int login(void)
{
	char own[32], parents[64];
	int s;
	/* A host's session may have a login already, and some kernels keep none. */
	if (access("/proc/self/loginuid", F_OK) || number("/proc/self/loginuid") != -1u)
		return 0;
	snprintf(own, sizeof own, "%u", getuid());
	snprintf(parents, sizeof parents, "/proc/%d/loginuid", getpid());
	HOLDS(number("/proc/self/sessionid") == -1u);
	HOLDS(set("/proc/self/loginuid", "x") == -1 && errno == EINVAL);
	HOLDS(set("/proc/self/loginuid", own) == (int)strlen(own));
	unsigned session = number("/proc/self/sessionid");
	if (!must(fork()))
		_exit(child(own, parents));
	must(wait(&s));
	HOLDS(s == 0);
	HOLDS(number("/proc/self/loginuid") == getuid() && number("/proc/self/sessionid") == session);
	return 0;
}
int main(void)
{
	int f = must(open("/proc/self/comm", O_RDWR));
	R(ftruncate(f, 0)), R(ftruncate(f, 5));
	close(f);
	f = must(open("/proc/self/oom_score_adj", O_RDWR));
	R(ftruncate(f, 0)), R(ftruncate(f, -1));
	close(f);
	R(login());
	return t_failed;
}
