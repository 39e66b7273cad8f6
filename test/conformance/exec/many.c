/* Many programs one after the other and side by side; a pipe between each pair. */
/* also: i386-static */
#include "t.h"
#include <spawn.h>
extern char **environ;
int main(int argc, char **argv)
{
	if (argc > 2) {
		int n = atoi(argv[2]);
		if (n > 0) {
			char b[16];
			snprintf(b, sizeof b, "%d", n - 1);
			execl("/proc/self/exe", "many", "chain", b, (char *)0);
			return 99;
		}
		return 17;
	}
	if (argc > 1) {
		char b[4096];
		ssize_t n;
		while ((n = read(0, b, sizeof b)) > 0) {
			for (int i = 0; i < n; i++)
				b[i]++;
			if (write(1, b, n) != n)
				return 1;
		}
		return 0;
	}
	CHILD("chain of 50", execl("/proc/self/exe", "many", "chain", "50", (char *)0));
	int in = -1, first = -1;
	for (int i = 0; i < 10; i++) {
		int p[2];
		if (i == 0) {
			must(pipe2(p, O_CLOEXEC));
			first = p[1], in = p[0];
		}
		must(pipe2(p, O_CLOEXEC));
		pid_t c = must(fork());
		if (!c) {
			dup2(in, 0), dup2(p[1], 1);
			execl("/proc/self/exe", "many", "filter", (char *)0);
			_exit(99);
		}
		close(in), close(p[1]);
		in = p[0];
	}
	must(write(first, "ABC", 3));
	close(first);
	char b[16] = "";
	R(read(in, b, sizeof b));
	S(b);
	int good = 0, st;
	while (wait(&st) > 0)
		good += st == 0;
	N(good);
	for (int i = 0; i < 20; i++) {
		pid_t c;
		char *a[] = {"true", 0};
		if (posix_spawn(&c, "/bin/true", 0, 0, a, environ) == 0 && waitpid(c, &st, 0) == c)
			good += st == 0;
	}
	N(good);
	pid_t c;
	char *a[] = {"x", 0};
	S(t_errno(posix_spawn(&c, "/no/such", 0, 0, a, environ)));
	N(system("exit 5") >> 8);
	FILE *o = popen("cat", "w");
	T(o && fputs("text\n", o) >= 0); /* it leaves at the close */
	N(pclose(o));
	return t_done();
}
