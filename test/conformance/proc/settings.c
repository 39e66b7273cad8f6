/* Files of /proc that can be written, and some that cannot. What changes is put back. */
#include "t.h"
#include <sys/msg.h>
#include <sys/utsname.h>
static char b[256];
static const char *get(const char *path)
{
	int f = open(path, O_RDONLY), n = f < 0 ? -1 : read(f, b, sizeof b - 1);
	if (f >= 0)
		close(f);
	b[n > 0 ? n : 0] = 0;
	return n < 0 ? "?" : b;
}
static int set(const char *path, const char *text)
{
	int f = open(path, O_WRONLY);
	if (f < 0)
		return -1;
	int n = write(f, text, strlen(text)), e = errno;
	close(f);
	errno = e;
	return n;
}
int main(void)
{
	struct utsname u;
	int root = geteuid() == 0;
	T(set("/proc/sys/kernel/ostype", "x") == -1 && errno == EACCES);
	T(set("/proc/sys/kernel/version", "x") == -1 && errno == EACCES);
	char *old = strdup(get("/proc/sys/kernel/domainname"));
	if (set("/proc/sys/kernel/domainname", old) < 0)
		root = 0;
	T(!root || !strcmp(get("/proc/sys/kernel/domainname"), old));
	must(uname(&u));
	T(!strncmp(u.domainname, old, strlen(u.domainname)));
	old = strdup(get("/proc/sys/fs/nr_open"));
	T(atoi(old) >= 1024);
	T(!root || (set("/proc/sys/fs/nr_open", "7") == -1 && errno == EINVAL));
	T(!root || set("/proc/sys/fs/nr_open", old) > 0);
	T(atoi(get("/proc/sys/kernel/ns_last_pid")) > 0);
	struct msginfo info;
	must(msgctl(0, IPC_INFO, (void *)&info));
	T(atoi(get("/proc/sys/kernel/msgmni")) == info.msgmni);
	old = strdup(get("/proc/sys/kernel/msgmni"));
	T(!root || (set("/proc/sys/kernel/msgmni", "99999") == -1 && errno == EINVAL));
	T(!root || set("/proc/sys/kernel/msgmni", old) > 0);
	T(atoi(get("/proc/sys/kernel/shmmni")) > 0);
	S(get("/proc/self/oom_adj"));
	S(get("/proc/self/coredump_filter"));
	char *root_line = 0;
	FILE *m = fopen("/proc/self/mountstats", "r");
	while (m && fgets(b, sizeof b, m))
		if (strstr(b, " mounted on / with fstype "))
			root_line = b;
	T(root_line);
	CHILD("own", {
		T(set("/proc/self/oom_adj", "15") == 2);
		S(get("/proc/self/oom_score_adj"));
		R(set("/proc/self/oom_adj", "16"));
		R(set("/proc/self/coredump_filter", "0x3f"));
		S(get("/proc/self/coredump_filter"));
		R(set("/proc/self/coredump_filter", "010"));
		S(get("/proc/self/coredump_filter"));
		R(set("/proc/self/coredump_filter", "nonsense"));
	});
	return t_done();
}
