/* openat2 within a directory, while another moves a directory out of it and back: ".." never leads out. */
#include "t.h"
#include <linux/openat2.h>

static volatile int over;

static void *mover(void *arg)
{
	while (!over) {
		must(rename("root/a/b", "out/b"));
		must(rename("out/b", "root/a/b"));
	}
	return 0;
}

int main(void)
{
	const char *dirs[] = {"root", "root/a", "root/a/b", "root/a/b/c", "out"};
	for (int i = 0; i < 5; i++)
		must(mkdir(dirs[i], 0755));
	t_write("secret", "x");
	int root = must(open("root", O_PATH));
	/* A walk that stays in the moving directory for a while. */
	char path[1024] = "a/b/";
	for (int i = 0; i < 100; i++)
		strcat(path, "c/../");
	strcat(path, "../../secret");
	pthread_t thread;
	must(-pthread_create(&thread, 0, mover, 0));
	int out = 0, odd = 0, within = 0;
	for (int i = 0; i < 4000; i++) {
		struct open_how how = {.flags = O_RDONLY, .resolve = i & 1 ? RESOLVE_IN_ROOT : RESOLVE_BENEATH};
		long fd = syscall(SYS_openat2, root, path, &how, sizeof how);
		if (fd >= 0)
			out++, close(fd);
		else
			odd += errno != ENOENT && errno != EAGAIN && errno != EXDEV;
		fd = syscall(SYS_openat2, root, "a/../a", &how, sizeof how);
		if (fd >= 0)
			within++, close(fd);
		else
			odd += errno != EAGAIN;
	}
	over = 1;
	pthread_join(thread, 0);
	T(within > 0);
	say("led out: %d, odd errors: %d\n", out, odd);
	return t_done();
}
