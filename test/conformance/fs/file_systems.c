/* What statfs(2) reports of the file systems that are the kernel's own, and that it is the same by name and by descriptor. */
#include "../t.h"
#include <sys/vfs.h>

static void look(const char *path)
{
	struct statfs a = { 0 }, b = { 0 };
	say("%s\n", path);
	R(statfs(path, &a));
	say("type %lx, names of %d\n", (unsigned long)(unsigned)a.f_type, (int)a.f_namelen);
	int fd = open(path, O_PATH);
	if (fd < 0)
		return;
	must(fstatfs(fd, &b));
	T(a.f_type == b.f_type && a.f_bsize == b.f_bsize && a.f_blocks == b.f_blocks);
	must(close(fd));
}

int main(void)
{
	look("/proc");
	look("/proc/self/status");
	look("/proc/self/fd");
	look("/dev");
	look("/dev/null");
	look("/dev/pts");
	look("/dev/shm");
	look("/sys");
	look("/sys/class/net");
	look("/sys/class/net/lo/mtu");
	look("/sys/devices/system/cpu/online");
	struct statfs fs;
	R(statfs("/sys/nothing", &fs));
	R(statfs("/proc/nothing", &fs));
	R(statfs("/proc/self/status/below", &fs));
	R(statfs("", &fs));
	R(syscall(SYS_statfs, "/proc", 1));
	R(fstatfs(99, &fs));
	/* Each has no room, and no blocks that are in use. */
	must(statfs("/proc", &fs));
	N(fs.f_blocks + fs.f_bfree + fs.f_bavail);
	must(statfs("/sys", &fs));
	N(fs.f_blocks + fs.f_bfree + fs.f_bavail);
	return t_done();
}
