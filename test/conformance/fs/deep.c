/* A directory whose name is longer than any call may give: what is asked for by such a name is refused, what goes by steps works. */
#include "t.h"

static long cwd(char *to, unsigned long size)
{
	return syscall(SYS_getcwd, to, size);
}

int main(void)
{
	static char name[201], buf[20000];
	memset(name, 'd', 200);
	for (int depth = 0; depth < 30; depth++) {
		must(mkdir(name, 0755));
		must(chdir(name));
	}
	R(cwd(buf, sizeof buf));
	R(cwd(buf, 10));
	R(readlink("/proc/self/cwd", buf, sizeof buf));
	t_write("file", "abc");
	int fd = must(open("file", O_RDONLY)), dir = must(open(".", O_RDONLY | O_DIRECTORY));
	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	R(readlink(name, buf, sizeof buf));
	R(readlink(name, buf, 5));
	must(close(fd));
	R(access("file", R_OK));
	/* Still there, by steps. */
	struct stat s;
	R(fstatat(dir, "file", &s, 0));
	must(unlink("file"));
	memset(name, 'd', 200);
	for (int depth = 0; depth < 30; depth++) {
		must(chdir(".."));
		must(rmdir(name));
	}
	R(access(name, F_OK));
	return t_failed;
}
