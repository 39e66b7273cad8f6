/* /proc/PID/cmdline of a program that writes a title over its arguments (setproctitle(3)). */
#include "t.h"
extern char **environ;
static void show(const char *what)
{
	char b[8192];
	int f = must(open("/proc/self/cmdline", O_RDONLY)), n = must(read(f, b, sizeof b));
	close(f);
	say("%s: %d bytes:", what, n);
	for (int i = 0; i < n && i < 64; i++)
		say(b[i] ? "%c" : "|", b[i]);
	say("\n");
}
int main(int argc, char **argv)
{
	if (argc == 1) {
		char big[6000];
		memset(big, 'e', sizeof big);
		memcpy(big, "BIG=", 4);
		big[sizeof big - 1] = 0;
		char *a[] = {"name", "one", "two", 0}, *e[] = {"A=1", "B=2", big, 0};
		execve("/proc/self/exe", a, e);
		return 99;
	}
	char *arg = argv[0], *env = environ[0];
	int args = env - arg;
	T(args == 13);
	show("as started");
	memset(arg, 0, args);
	memcpy(arg, "short", 5);
	show("shorter, ends with zeros");
	memset(arg, 'x', args - 1);
	show("all but the last byte");
	memset(arg, 'x', args);
	show("all, and what follows");
	memcpy(arg, "longer than the arguments", 26);
	show("longer");
	memset(arg, 'y', args + 8 + 5000);
	show("longer than a page");
	memset(arg, 'z', args);
	arg[4] = 0;
	show("a zero in it");
	return t_done();
}
