/* /proc/self as programs read it: stat, status, cmdline, environ, exe, cwd, fd, task, limits. */
#include "t.h"
#include <dirent.h>
static char b[65536];
static ssize_t slurp(const char *n)
{
	int f = open(n, O_RDONLY);
	if (f < 0) {
		say("%s: %s\n", n, t_errno(errno));
		return -1;
	}
	ssize_t k, o = 0;
	while ((k = read(f, b + o, sizeof b - 1 - o)) > 0)
		o += k;
	close(f);
	b[o] = 0;
	return o;
}
int main(int argc, char **argv)
{
	if (argc == 1) {
		char *a[] = {"procfs", "one", "two words", 0}, *e[] = {"A=1", "B=two", 0};
		execve("/proc/self/exe", a, e);
		return 9;
	}
	ssize_t n = slurp("/proc/self/cmdline");
	for (int i = 0; i < n; i++)
		if (!b[i])
			b[i] = '|';
	S(b);
	n = slurp("/proc/self/environ");
	for (int i = 0; i < n; i++)
		if (!b[i])
			b[i] = '|';
	S(b);
	int pid = 0, ppid = 0, pgrp = 0, sid = 0;
	char st = 0, name[64] = "";
	slurp("/proc/self/stat");
	N(sscanf(b, "%d (%63[^)]) %c %d %d %d", &pid, name, &st, &ppid, &pgrp, &sid));
	T(pid == getpid() && ppid == getppid() && pgrp == getpgrp() && sid == getsid(0));
	say("name %s state %c\n", name, st);
	int sp = 0;
	for (char *q = strrchr(b, ')'); q && *q; q++)
		sp += *q == ' ';
	N(sp);
	slurp("/proc/self/status");
	const char *k[] = {"Name:", "Umask:", "State:", "Tgid:", "Pid:", "PPid:", "TracerPid:", "Uid:", "Gid:", "FDSize:", "Groups:", "VmPeak:", "VmSize:", "VmRSS:", "Threads:", "SigQ:", "SigPnd:", "SigBlk:", "SigIgn:", "SigCgt:", "CapEff:", "NoNewPrivs:", "Cpus_allowed:", "voluntary_ctxt_switches:"};
	for (size_t i = 0; i < sizeof k / sizeof *k; i++) {
		char w[64];
		snprintf(w, sizeof w, "\n%s", k[i]);
		say("%s %s\n", k[i], !strncmp(b, k[i], strlen(k[i])) || strstr(b, w) ? "there" : "MISSING");
	}
	char l[4096], l2[4096];
	n = readlink("/proc/self/exe", l, sizeof l - 1);
	T(n > 0 && (l[n] = 0, 1) && strstr(l, "procfs_self"));
	n = readlink("/proc/self/cwd", l, sizeof l - 1);
	T(n > 0 && (l[n] = 0, 1) && getcwd(l2, sizeof l2) && !strcmp(l, l2));
	n = readlink("/proc/self", l, sizeof l - 1);
	T(n > 0 && (l[n] = 0, 1) && atoi(l) == getpid());
	int f = must(open("file", O_CREAT | O_RDWR, 0600));
	must(dup2(f, 77));
	n = readlink("/proc/self/fd/77", l, sizeof l - 1);
	l[n > 0 ? n : 0] = 0;
	T(!strcmp(strrchr(l, '/') ? strrchr(l, '/') : "", "/file"));
	R(readlink("/proc/self/fd/78", l, sizeof l));
	must(unlink("file"));
	n = readlink("/proc/self/fd/77", l, sizeof l - 1);
	l[n > 0 ? n : 0] = 0;
	T(strstr(l, "/file (deleted)") != 0);
	int p[2];
	must(pipe(p));
	char fn[64];
	snprintf(fn, sizeof fn, "/proc/self/fd/%d", p[0]);
	n = readlink(fn, l, sizeof l - 1);
	l[n > 6 ? 6 : 0] = 0;
	S(l);
	must(write(f, "again", 5));
	T((n = open("/proc/self/fd/77", O_RDONLY)) >= 0 && read(n, l, 5) == 5 && !memcmp(l, "again", 5));
	DIR *d = opendir("/proc/self/task");
	int tasks = 0;
	for (struct dirent *e; d && (e = readdir(d));)
		tasks += e->d_name[0] != '.';
	N(tasks);
	T(slurp("/proc/self/limits") > 0 && strstr(b, "Max open files"));
	T(slurp("/proc/self/mountinfo") > 0);
	T(slurp("/proc/self/statm") > 0);
	T(slurp("/proc/self/oom_score_adj") > 0);
	return t_done();
}
