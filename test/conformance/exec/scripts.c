/* #! scripts: the one optional argument, relative and nested interpreters, execveat by descriptor. */
#include "t.h"
static void ff(const char *n, const char *b)
{
	int f = must(open(n, O_CREAT | O_WRONLY | O_TRUNC, 0755));
	must(write(f, b, strlen(b)));
	close(f);
}
static void go(const char *w, const char *p)
{
	char *a[] = {"zero", "one", "two", 0}, *e[] = {"V=1", 0};
	CHILD(w, execve(p, a, e); say("%s: %s\n", p, t_errno(errno)); _exit(99));
}
int main(int argc, char **argv)
{
	if (argc > 1) {
		for (int i = 1; i < argc; i++)
			say(" [%d]<%s>", i, argv[i]);
		say("\n");
		return 3;
	}
	char me[4096], b[5000];
	ssize_t n = must(readlink("/proc/self/exe", me, sizeof me - 1));
	me[n] = 0;
	must(symlink(me, "m"));
	snprintf(b, sizeof b, "#!m\nrest\n");
	ff("s1", b);
	go("plain", "s1");
	ff("s2", "#!m  a b  c \t\nrest\n");
	go("one argument", "./s2");
	ff("s3", "#! \t m\n");
	go("blanks before", "s3");
	ff("s4", "#!m");
	go("no newline", "s4");
	ff("s5", "#!s2\n");
	go("nested", "s5");
	ff("s6", "#!s5 six\n");
	go("nested with argument", "s6");
	ff("n1", "#!n2\n"), ff("n2", "#!n3\n"), ff("n3", "#!n4\n"), ff("n4", "#!n5\n"), ff("n5", "#!n6\n"), ff("n6", "#!m\n");
	go("four deep", "n3");
	go("five deep", "n2");
	go("six deep", "n1");
	memset(b, 'l', sizeof b);
	memcpy(b, "#!m ", 4);
	b[400] = '\n', b[401] = 0;
	ff("s7", b);
	go("long argument", "s7");
	memset(b, 'l', sizeof b);
	memcpy(b, "#!", 2);
	b[400] = '\n', b[401] = 0;
	ff("s8", b);
	go("long interpreter", "s8");
	int d = must(open(".", O_RDONLY | O_DIRECTORY));
	char *a[] = {"zero", "one", 0}, *e[] = {0};
	CHILD("execveat", syscall(SYS_execveat, d, "s1", a, e, 0); _exit(98));
	int f = must(open("s1", O_RDONLY));
	must(dup2(f, 60));
	CHILD("script by descriptor", syscall(SYS_execveat, 60, "", a, e, AT_EMPTY_PATH); _exit(98));
	must(fcntl(60, F_SETFD, FD_CLOEXEC));
	CHILD("closed at exec", R(syscall(SYS_execveat, 60, "", a, e, AT_EMPTY_PATH)));
	f = must(open("m", O_PATH | O_CLOEXEC));
	CHILD("fexecve", fexecve(f, a, e); _exit(98));
	return t_done();
}
