/* Whom a user may look into: programs with another group, what hides from its own user, programs that cannot be read. Asked in all
 * the ways there are. Where nobody else can be had (not root), nothing is shown. */
#include "t.h"
#include <grp.h>
#include <sys/prctl.h>
enum { USER = 1000, OTHER = 1234 };
static char dir[] = "/tmp/t-look-XXXXXX", path[64];
static void drop(void)
{
	must(setgroups(0, 0));
	must(setresgid(USER, USER, USER));
	must(setresuid(USER, USER, USER));
}
/* A child that has done `how` and waits. */
enum how { PLAIN, SET_GID, HIDDEN, DROPPED, UNREADABLE, ROOTS };
static const char *names[] = {"of the same user", "with another group", "not dumpable", "of root's, dropped", "not readable", "root's"};
static pid_t start(enum how how)
{
	int p[2];
	must(pipe(p));
	pid_t c = must(fork());
	if (!c) {
		char fd[16], b[80];
		snprintf(fd, sizeof fd, "%d", p[1]);
		close(p[0]);
		if (how != ROOTS)
			drop();
		if (how == PLAIN || how == SET_GID || how == UNREADABLE || how == HIDDEN) {
			snprintf(b, sizeof b, "%s/%s", dir, how == SET_GID ? "sgid" : how == UNREADABLE ? "xonly" : "plain");
			execl(b, b, "wait", fd, how == HIDDEN ? "0" : "", NULL);
			_exit(9);
		}
		must(write(p[1], "x", 1));
		for (;;)
			pause();
	}
	close(p[1]);
	char b;
	must(read(p[0], &b, 1) == 1 ? 0 : -1);
	close(p[0]);
	return c;
}
static int opens(pid_t c, const char *name, int flags)
{
	char b[64];
	snprintf(b, sizeof b, "/proc/%d/%s", c, name);
	int f = open(b, flags | O_CLOEXEC);
	int ok = f >= 0;
	if (ok && (flags & O_ACCMODE) == O_RDONLY && strcmp(name, "mem") && strcmp(name, "fd"))
		ok = read(f, b, 1) == 1;
	if (f >= 0)
		close(f);
	return ok;
}
static int links(pid_t c, const char *name)
{
	char p[64], b[64];
	snprintf(p, sizeof p, "/proc/%d/%s", c, name);
	return readlink(p, b, sizeof b) > 0;
}
static long stat_field(pid_t c, int n)
{
	char p[64], b[1024];
	snprintf(p, sizeof p, "/proc/%d/stat", c);
	int f = must(open(p, O_RDONLY | O_CLOEXEC));
	ssize_t k = must(read(f, b, sizeof b - 1));
	close(f);
	b[k] = 0;
	char *at = strrchr(b, ')') + 1;
	for (; n > 3; n--)
		at = strchr(at + 1, ' ');
	return strtoul(at + 1, 0, 10) > 1;
}
/* A plain program is not asked what a security module of the host may keep to its parent. */
static void ask(pid_t c, int plain)
{
	long word;
	struct iovec l = {&word, sizeof word}, r = {(void *)8, sizeof word};
	void *head;
	size_t len;
	struct stat st;
	char b[64];
	if (!plain) {
		N(opens(c, "mem", O_RDWR));
		N(opens(c, "personality", O_RDONLY));
		R(syscall(SYS_process_vm_readv, c, &l, 1, &r, 1, 0));
	}
	N(opens(c, "environ", O_RDONLY));
	N(opens(c, "auxv", O_RDONLY));
	N(opens(c, "maps", O_RDONLY));
	N(opens(c, "smaps", O_RDONLY));
	N(opens(c, "fd", O_RDONLY));
	N(opens(c, "fdinfo/0", O_RDONLY));
	N(opens(c, "cmdline", O_RDONLY));
	N(opens(c, "status", O_RDONLY));
	N(links(c, "fd/0"));
	N(links(c, "cwd"));
	N(links(c, "root"));
	N(links(c, "exe"));
	N(links(c, "ns/pid"));
	N(stat_field(c, 26));
	N(stat_field(c, 28));
	N(stat_field(c, 45));
	N(stat_field(c, 48));
	R(syscall(SYS_get_robust_list, c, &head, &len) == 0);
	R(syscall(SYS_kcmp, getpid(), c, 2, 0, 0) >= 0);
	int p = must(syscall(SYS_pidfd_open, c, 0));
	if (!plain)
		OK(syscall(SYS_pidfd_getfd, p, 0, 0));
	snprintf(b, sizeof b, "/proc/%d/environ", c);
	must(stat(b, &st));
	N(st.st_uid);
	N(st.st_gid);
	snprintf(b, sizeof b, "/proc/%d", c);
	must(stat(b, &st));
	N(st.st_uid);
	N(st.st_gid);
}
static void copy(const char *name, int mode, gid_t group)
{
	char b[65536], to[64];
	snprintf(to, sizeof to, "%s/%s", dir, name);
	int f = must(open("/proc/self/exe", O_RDONLY)), t = must(open(to, O_CREAT | O_WRONLY | O_CLOEXEC, 0700));
	for (ssize_t n; (n = must(read(f, b, sizeof b))) > 0;)
		must(write(t, b, n));
	must(fchown(t, 0, group));
	must(fchmod(t, mode));
	close(t);
	close(f);
}
int main(int argc, char **argv)
{
	if (argc > 1) {
		if (*argv[3])
			prctl(PR_SET_DUMPABLE, 0);
		write(atoi(argv[2]), "x", 1);
		for (;;)
			pause();
	}
	if (geteuid() != 0) {
		say("not root\n");
		return 0;
	}
	must(mkdtemp(dir) ? 0 : -1);
	must(chmod(dir, 0755));
	copy("plain", 0755, 0);
	copy("sgid", 02755, OTHER);
	copy("xonly", 0711, 0);
	for (enum how how = PLAIN; how <= ROOTS; how++) {
		pid_t c = start(how);
		say("-- a program %s\n", names[how]);
		CHILD("asked", drop(); ask(c, how == PLAIN));
		must(kill(c, SIGKILL));
		must(waitpid(c, 0, 0));
	}
	/* One that has hidden itself still has its own descriptors, and no more than that. */
	CHILD("itself", {
		drop();
		char b[64];
		T(opens(getpid(), "fd", O_RDONLY));
		T(readlink("/proc/self/fd/0", b, sizeof b) > 0);
		T(open("/proc/self/environ", O_RDONLY) == -1 && errno == EACCES);
		T(open("/proc/self/mem", O_RDWR) == -1 && errno == EACCES);
		T(open("/proc/self/maps", O_RDONLY) >= 0);
		prctl(PR_SET_DUMPABLE, 1);
		T(open("/proc/self/environ", O_RDONLY) >= 0);
	});
	const char *made[] = {"plain", "sgid", "xonly"};
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, made[i]);
		must(unlink(path));
	}
	must(rmdir(dir));
	return t_done();
}
