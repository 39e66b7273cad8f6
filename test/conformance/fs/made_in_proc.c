/* A name that is not in /proc cannot be made: ENOENT, before any permission is looked at, for root and for others. */
#include "t.h"
#include <sys/stat.h>

static void make(void) {
	R(mkdir("/proc/x", 0700));
	R(mkdir("/proc/sys/x", 0700));
	R(mkdir("/proc/self/x", 0700));
	R(mkdir("/proc/self/fd/x", 0700));
	R(mkdir("/proc/version", 0700));
	R(symlink("a", "/proc/x"));
	R(mknod("/proc/x", S_IFREG | 0600, 0));
	R(mknod("/proc/x", S_IFIFO | 0600, 0));
	R(link("/proc/version", "/proc/x"));
	R(rename("/proc/version", "/proc/x"));
	R(rename("/proc/x", "/proc/y"));
	R(open("/proc/x", O_CREAT | O_RDWR, 0600));
	R(open("/proc/x", O_CREAT | O_EXCL | O_RDWR, 0600));
	R(open("/proc/self/x", O_CREAT | O_RDWR, 0600));
	R(unlink("/proc/x"));
	R(rmdir("/proc/x"));
	/* Nothing can be made among the terminals either. */
	R(mkdir("/dev/pts/x", 0700));
	R(open("/dev/pts/x", O_CREAT | O_RDWR, 0600));
	R(mknod("/dev/pts/x", S_IFREG | 0600, 0));
}

int main(void) {
	make();
	if (geteuid() == 0) {
		must(setgid(65534));
		must(setuid(65534));
	}
	make();
	return 0;
}
