/* splice(2) between pipes whose input another reader empties while there is no room: it goes on waiting. And copy_file_range(2) within
 * one file: what overlaps is decided by what there is to copy. */
#include "t.h"
static int from[2], to[2];
static void *move(void *unused)
{
	long n = syscall(SYS_splice, from[0], 0, to[1], 0, 10, 0);
	say("moved %ld\n", n);
	return 0;
}
static long copy(int fd, long long at, long long to, size_t len)
{
	return syscall(SYS_copy_file_range, fd, &at, fd, &to, len, 0);
}
int main(void)
{
	static char full[65536];
	char c[4];
	pthread_t t;
	must(pipe(from)), must(pipe(to));
	must(write(to[1], full, sizeof full));
	must(write(from[1], "x", 1));
	pthread_create(&t, 0, move, 0);
	t_ms(200);
	R(read(from[0], c, 1));
	R(read(to[0], full, sizeof full));
	t_ms(200);
	must(write(from[1], "yz", 2));
	pthread_join(t, 0);
	R(read(to[0], c, 4));
	say("%.2s\n", c);

	int fd = must(open("f", O_CREAT | O_RDWR, 0644));
	must(write(fd, "0123456789", 10));
	R(copy(fd, 0, 20, 1000));
	R(lseek(fd, 0, SEEK_END));
	R(copy(fd, 100, 50, 1000));
	R(copy(fd, 0, 5, 10));
	R(copy(fd, 25, 4, 1000));
	R(pread(fd, c, 4, 4));
	say("%.4s\n", c);
	must(unlink("f"));
	return t_failed;
}
