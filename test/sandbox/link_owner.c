/* A user changes the owner of a symbolic link of his own, over and over, while another thread of his exchanges its name with that of root's file: the file stays root's. The
 * argument is a directory; run by root. */
#include "../conformance/t.h"
static volatile int over;
static volatile long exchanges;
static void *exchange(void *unused)
{
	(void)unused;
	while (!over) {
		syscall(SYS_renameat2, AT_FDCWD, "link", AT_FDCWD, "file", 2 /* RENAME_EXCHANGE */);
		exchanges++;
	}
	return 0;
}
static int is_roots(const char *name)
{
	struct stat stat;
	return lstat(name, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_uid == 0;
}
int main(int argc, char **argv)
{
	if (argc < 2 || chdir(argv[1]))
		return 99;
	must(close(must(open("file", O_CREAT | O_WRONLY, 0600))));
	must(chown(".", 1000, 1000));
	must(setgid(1000));
	must(setuid(1000));
	must(symlink("nowhere", "link"));
	pthread_t thread;
	must(-pthread_create(&thread, 0, exchange, 0));
	time_t end = time(0) + 20;
	while (exchanges < 20000 && time(0) < end)
		for (int n = 0; n < 50; n++)
			lchown("link", 1000, 1000);
	over = 1;
	pthread_join(thread, 0);
	say("%s\n", is_roots("file") || is_roots("link") ? "root's" : "taken");
	return t_done();
}
