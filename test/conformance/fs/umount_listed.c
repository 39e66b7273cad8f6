/* A file system that nobody uses can be unmounted while others read the list of mounts. */
#include "t.h"
#include <sys/mount.h>
static volatile int stop;
static void *reader(void *name)
{
	char b[65536];
	while (!stop) {
		int f = must(open(name, O_RDONLY));
		while (read(f, b, sizeof b) > 0)
			;
		close(f);
	}
	return 0;
}
int main(void)
{
	static const char *names[] = {"/proc/self/mounts", "/proc/self/mountinfo", "/proc/self/mountstats"};
	pthread_t t[3];
	int busy = 0, mounts = 0;
	must(mkdir("place", 0700));
	for (int i = 0; i < 3; i++)
		must(pthread_create(&t[i], 0, reader, (void *)names[i]));
	for (int i = 0; i < 300; i++) {
		if (mount("none", "place", "tmpfs", 0, 0))
			break; /* not for everybody */
		mounts++;
		if (umount("place"))
			busy++, umount2("place", MNT_DETACH);
	}
	/* One that is used is. */
	if (mount("none", "place", "tmpfs", 0, 0) == 0) {
		int f = must(open("place/file", O_CREAT | O_RDWR, 0600));
		T(umount("place") == -1 && errno == EBUSY);
		close(f);
		T(umount("place") == 0);
	}
	stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	T(busy == 0);
	T(mounts == 0 || mounts == 300);
	rmdir("place");
	return t_done();
}
