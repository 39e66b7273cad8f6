/* Set-user-ID bits: an owner's chmod does not arrive when the file has become another's, and who writes to a file, gives it away or
 * cuts it takes them off. As root; others see what an owner may do. */
#include "t.h"
enum { USER = 1000 };
static int mode(const char *p)
{
	struct stat s;
	must(stat(p, &s));
	return s.st_mode & 07777;
}
/* An owner sets the bit all the time, while root takes the file and gives it back. */
static void race(void)
{
	int *stop = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), lent = 0;
	close(must(open("f", O_CREAT | O_RDWR, 0644)));
	must(chown("f", USER, USER));
	pid_t p = must(fork());
	if (!p) {
		must(setgid(USER)), must(setuid(USER));
		while (!*(volatile int *)stop)
			chmod("f", 04755);
		_exit(0);
	}
	for (long end = t_now() + 1500; t_now() < end;) {
		must(chown("f", 0, 0));
		for (int i = 0; i < 20; i++)
			lent += !!(mode("f") & 04000);
		must(chown("f", USER, USER));
	}
	*stop = 1;
	t_reap("owner", p);
	T(lent == 0);
	must(unlink("f"));
}
static void change(const char *how, void (*act)(int fd))
{
	must(chmod("g", 06755));
	pid_t p = must(fork());
	if (!p) {
		if (!getuid())
			must(setgid(USER)), must(setuid(USER));
		act(must(open("g", O_RDWR)));
		_exit(0);
	}
	t_reap(how, p);
	say("%s: %o\n", how, mode("g"));
}
static void writes(int fd) { must(write(fd, "a", 1)); }
static void cuts(int fd) { must(ftruncate(fd, 3)); }
static void cuts_by_name(int fd) { must(truncate("g", 2)); }
static void opens(int fd) { must(open("g", O_WRONLY | O_TRUNC)); }
static void allocates(int fd) { must(fallocate(fd, 0, 0, 4096)); }
int main(int argc, char **argv)
{
	if (argc > 1) {
		char c;
		return read(0, &c, 1) != 0;
	}
	if (!getuid())
		race();
	close(must(open("g", O_CREAT | O_RDWR, 0644)));
	if (!getuid())
		must(chown("g", USER, USER));
	change("write", writes);
	change("ftruncate", cuts);
	change("truncate", cuts_by_name);
	change("O_TRUNC", opens);
	change("fallocate", allocates);

	/* Given to nobody. */
	must(chmod("g", 06755));
	R(chown("g", -1, -1));
	say("%o\n", mode("g"));
	must(chmod("g", 02745));
	R(chown("g", -1, -1));
	say("%o\n", mode("g"));
	must(mkfifo("fifo", 0600));
	must(chmod("fifo", 06755));
	R(chown("fifo", getuid(), -1));
	say("%o\n", mode("fifo"));
	must(unlink("fifo"));
	must(unlink("g"));

	/* A program that runs is not cut. */
	int in = must(open("/proc/self/exe", O_RDONLY)), out = must(open("run", O_CREAT | O_WRONLY, 0755)), pipes[2];
	char b[65536];
	for (ssize_t n; (n = must(read(in, b, sizeof b))) > 0;)
		must(write(out, b, n));
	close(in), close(out);
	must(pipe(pipes));
	pid_t p = must(fork());
	if (!p) {
		dup2(pipes[0], 0), close(pipes[0]), close(pipes[1]);
		execl("./run", "run", "wait", (char *)0);
		_exit(9);
	}
	close(pipes[0]);
	t_asleep(p, p);
	for (int i = 0; i < 400 && open("run", O_WRONLY) >= 0; i++)
		t_ms(5);
	R(truncate("run", 10));
	close(pipes[1]);
	t_reap("run", p);
	R(truncate("run", 10));
	must(unlink("run"));
	return t_failed;
}
