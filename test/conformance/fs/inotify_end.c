/* inotify: a file without a name ends, for who watches it, with its last use: open, mapped, a working directory, or the directory of one that is. */
#include "t.h"
#include <sys/inotify.h>
static int fd;
static void drain(const char *what)
{
	char b[4096] __attribute__((aligned(8)));
	ssize_t n;
	say("%s:", what);
	while ((n = read(fd, b, sizeof b)) > 0)
		for (char *p = b; p < b + n;) {
			struct inotify_event *e = (void *)p;
			say(" [%d %#x %s]", e->wd, e->mask, e->len ? e->name : "-");
			p += sizeof *e + e->len;
		}
	say("\n");
}
#define FILE_ENDS (IN_ATTRIB | IN_DELETE_SELF)
#define DIR_ENDS (IN_DELETE | IN_DELETE_SELF)
int main(void)
{
	fd = must(inotify_init1(IN_NONBLOCK));
	/* As tail -F has them when somebody removes the directory. */
	must(mkdir("d", 0755));
	int f = must(open("d/f", O_CREAT | O_RDWR, 0600));
	must(write(f, "text", 4));
	R(inotify_add_watch(fd, "d", DIR_ENDS));
	R(inotify_add_watch(fd, "d/f", FILE_ENDS | IN_CLOSE_WRITE));
	must(unlink("d/f"));
	drain("unlinked, still open");
	must(rmdir("d"));
	drain("its directory removed");
	int g = must(dup(f));
	close(f);
	drain("one of two descriptors closed");
	close(g);
	drain("the other too");

	f = must(open("m", O_CREAT | O_RDWR, 0600));
	must(ftruncate(f, 4096));
	void *p = mmap(0, 4096, PROT_READ, MAP_SHARED, f, 0);
	T(p != MAP_FAILED);
	R(inotify_add_watch(fd, "m", FILE_ENDS));
	close(f);
	must(unlink("m"));
	drain("unlinked, still mapped");
	must(munmap(p, 4096));
	drain("unmapped");

	must(mkdir("w", 0755));
	R(inotify_add_watch(fd, "w", DIR_ENDS));
	must(chdir("w"));
	must(rmdir("../w"));
	drain("a working directory");
	must(chdir("/tmp"));
	drain("left");

	char name[] = "/tmp/inotify_end.XXXXXX";
	must(mkdtemp(name) ? 0 : -1);
	must(chdir(name));
	int to[2];
	must(pipe(to));
	must(mkdir("c", 0755));
	R(inotify_add_watch(fd, "c", DIR_ENDS));
	pid_t child = must(fork());
	if (!child) {
		char c;
		must(chdir("c"));
		must(write(to[1], "x", 1));
		close(to[1]);
		pause();
		_exit(read(to[0], &c, 1) < 0);
	}
	char c;
	must(read(to[0], &c, 1));
	must(rmdir("c"));
	drain("another process's working directory");
	must(kill(child, SIGKILL));
	must(waitpid(child, 0, 0));
	drain("it has ended");

	/* By rename. */
	t_write("old", "1"), t_write("new", "2");
	f = must(open("new", O_RDONLY));
	R(inotify_add_watch(fd, "new", FILE_ENDS));
	must(rename("old", "new"));
	drain("replaced, still open");
	close(f);
	drain("closed");
	t_write("old", "1");
	R(inotify_add_watch(fd, "new", FILE_ENDS));
	must(rename("old", "new"));
	drain("replaced, unused");

	/* The watch goes first: nothing is reported, nothing kept. */
	f = must(open("gone", O_CREAT | O_RDWR, 0600));
	int wd = R(inotify_add_watch(fd, "gone", FILE_ENDS));
	must(unlink("gone"));
	R(inotify_rm_watch(fd, wd));
	close(f);
	drain("no watch any more");

	/* Two names: no end before both are gone. */
	f = must(open("a", O_CREAT | O_RDWR, 0600));
	must(link("a", "b"));
	R(inotify_add_watch(fd, "a", FILE_ENDS));
	must(unlink("a"));
	drain("one name gone");
	close(f);
	drain("closed");
	must(unlink("b"));
	drain("no name");
	must(unlink("new"));
	must(chdir("/"));
	must(rmdir(name));
	return t_done();
}
