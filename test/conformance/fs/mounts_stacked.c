/* The list of mounts names each by the place it is on: on itself, on one that is on another, moved, below the root of who reads. */
#include "t.h"
#include <sys/mount.h>
static char cwd[PATH_MAX];

static int lines(const char *file, const char *place)
{
	char *line = 0, want[PATH_MAX + 8], at[PATH_MAX];
	size_t size = 0;
	int n = 0;
	FILE *f = fopen(file, "r");
	if (!f)
		return -1;
	snprintf(want, sizeof want, "%s", place);
	while (getline(&line, &size, f) > 0)
		n += sscanf(line, strstr(file, "info") ? "%*s %*s %*s %*s %4095s" : "%*s %4095s", at) == 1 && !strcmp(at, want);
	free(line);
	fclose(f);
	return n;
}

static int both(const char *name)
{
	char place[2 * PATH_MAX];
	snprintf(place, sizeof place, "%s/%s", cwd, name);
	int n = lines("/proc/self/mounts", place);
	return n == lines("/proc/self/mountinfo", place) ? n : -2;
}

int main(void)
{
	enum { DEEP = 60 };
	int may, counts[8] = {0}, same = 1;
	must(getcwd(cwd, sizeof cwd) ? 0 : -1);
	must(mkdir("m", 0700));
	may = mount("none", "m", "tmpfs", 0, 0) == 0 && mount(0, "m", 0, MS_PRIVATE, 0) == 0; /* not for everybody */
	if (may) {
		for (int i = 1; i < DEEP; i++)
			must(mount("m", "m", 0, MS_BIND, 0));
		must(mkdir("m/a", 0700));
		must(mkdir("m/b", 0700));
		for (int i = 0; i < 3; i++)
			must(mount("none", "m/a", "tmpfs", 0, 0));
		must(mkdir("m/a/c", 0700));
		must(mkdir("m/a/c/d", 0700));
		must(mount("m/a/c", "m/a/c/d", 0, MS_BIND, 0));
		counts[0] = both("m"), counts[1] = both("m/a"), counts[2] = both("m/a/c/d"), counts[3] = both("m/b");
		must(mount("none", "m/b", "tmpfs", 0, 0));
		must(mkdir("m/b/e", 0700));
		must(mount("m/a/c/d", "m/b/e", 0, MS_MOVE, 0));
		counts[4] = both("m/b/e");
		fflush(stdout);
		/* Of who has another root. */
		int to[2], back[2];
		char c, b[65536], name[64];
		must(pipe(to)), must(pipe(back));
		pid_t child = must(fork());
		if (!child) {
			must(chroot("m/b"));
			must(write(back[1], "r", 1));
			must(read(to[0], &c, 1));
			_exit(0);
		}
		must(read(back[0], &c, 1));
		snprintf(name, sizeof name, "/proc/%d/mounts", (int)child);
		int f = must(open(name, O_RDONLY));
		ssize_t n = must(read(f, b, sizeof b - 1));
		b[n] = 0;
		counts[5] = (strstr(b, "none / tmpfs ") != 0) + 2 * (strstr(b, "none /e tmpfs ") != 0);
		close(f);
		must(write(to[1], "e", 1));
		must(waitpid(child, 0, 0));
		umount2("m/b/e", MNT_DETACH), umount2("m/b", MNT_DETACH);
		for (int i = 0; i < 3; i++)
			umount2("m/a", MNT_DETACH);
		for (int i = 0; i < DEEP; i++)
			umount2("m", MNT_DETACH);
		counts[6] = both("m");
		same = counts[0] == DEEP && counts[1] == 3 && counts[2] == 1 && counts[3] == 0 && counts[4] == 1
			&& counts[5] == 3 && counts[6] == 0;
	}
	if (!same)
		for (int i = 0; i < 8; i++)
			N(counts[i]);
	T(same);
	rmdir("m");
	return t_done();
}
