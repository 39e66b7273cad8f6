/* FICLONE, FICLONERANGE: the errors for files that cannot share blocks, and their order. */
#include "t.h"
#include <linux/fs.h>
int main(void)
{
	int a = must(memfd_create("a", 0)), b = must(memfd_create("b", 0)), p[2];
	must(write(b, "text", 4));
	must(pipe(p));
	int file = must(open("f", O_CREAT | O_RDWR, 0600)), path = must(open("f", O_PATH)), dir = must(open(".", O_RDONLY));
	int reading = must(open("f", O_RDONLY)), writing = must(open("f", O_WRONLY)), appending = must(open("f", O_RDWR | O_APPEND));
	int zero = must(open("/dev/zero", O_RDONLY)), proc = must(open("/proc/self/stat", O_RDONLY));
	R(ioctl(a, FICLONE, b));
	R(ioctl(a, FICLONE, a));
	R(ioctl(a, FICLONE, 99));
	R(ioctl(a, FICLONE, -1));
	R(ioctl(file, FICLONE, path));
	R(ioctl(path, FICLONE, file));
	R(ioctl(file, FICLONE, dir));
	R(ioctl(dir, FICLONE, file));
	R(ioctl(file, FICLONE, zero));
	R(ioctl(file, FICLONE, proc));
	R(ioctl(file, FICLONE, a));
	R(ioctl(p[1], FICLONE, p[0]));
	R(ioctl(file, FICLONE, writing));
	R(ioctl(reading, FICLONE, file));
	R(ioctl(appending, FICLONE, file));
	struct file_clone_range r = {.src_fd = b, .src_length = 4};
	R(ioctl(a, FICLONERANGE, &r));
	r.src_fd = 99;
	R(ioctl(a, FICLONERANGE, &r));
	R(ioctl(a, FICLONERANGE, 0));
	r.src_fd = dir;
	R(ioctl(file, FICLONERANGE, &r));
	return t_done();
}
