/* inotify: which events each call makes of a file and its directory, and in which order. */
/* not: i386 */
#include "t.h"
#include <sys/inotify.h>
#include <sys/sendfile.h>
static int f;
static char b[70000];
static const char *names[] = {"ACCESS", "MODIFY", "ATTRIB", "CLOSE_WRITE", "CLOSE_NOWRITE", "OPEN", "MOVED_FROM", "MOVED_TO", "CREATE", "DELETE", "DELETE_SELF", "MOVE_SELF"};
static void show(const char *what)
{
	char line[256];
	int n;
	say("%s:\n", what);
	while ((n = read(f, b, sizeof b)) > 0)
		for (int o = 0; o < n;) {
			struct inotify_event *e = (void *)(b + o);
			line[0] = 0;
			for (int i = 0; i < 12; i++)
				if (e->mask & 1 << i)
					strcat(line, " "), strcat(line, names[i]);
			say("  %d%s%s%s %s%s\n", e->wd, line, e->mask & IN_ISDIR ? " ISDIR" : "", e->mask & IN_IGNORED ? " IGNORED" : "", e->len ? e->name : "-", e->cookie ? " cookie" : "");
			o += sizeof *e + e->len;
		}
}
static void contents(void)
{
	char c;
	int d, x;
	d = must(open("d", O_RDONLY));
	syscall(SYS_getdents64, d, b, 4096);
	close(d);
	show("list");
	x = must(open("d/a", O_RDWR));
	read(x, &c, 1), write(x, "q", 1), pread(x, &c, 1, 0), ftruncate(x, 2), fsync(x);
	close(x);
	show("read and write");
	close(must(open("d/a", O_WRONLY | O_TRUNC)));
	show("truncated at open");
	close(must(open("d/a", O_WRONLY | O_CREAT, 0600)));
	show("not created");
	truncate("d/a", 5);
	show("truncate");
	chmod("d/a", 0700);
	show("chmod");
	struct timespec t[2] = {{1, 0}, {2, 0}};
	utimensat(AT_FDCWD, "d/a", t, 0);
	show("both times");
	t[0].tv_nsec = UTIME_OMIT;
	utimensat(AT_FDCWD, "d/a", t, 0);
	show("time of change");
	t[0].tv_nsec = 0, t[1].tv_nsec = UTIME_OMIT;
	utimensat(AT_FDCWD, "d/a", t, 0);
	show("time of access");
	utimensat(AT_FDCWD, "d/a", 0, 0);
	show("times now");
}
static void moved(void)
{
	t_write("src", "0123456789");
	int p[2], s = must(open("src", O_RDONLY)), x = must(open("d/n", O_RDWR | O_CREAT, 0700));
	off_t o = 0;
	must(pipe(p));
	show("made");
	sendfile(x, s, &o, 3);
	show("sendfile to");
	o = 0;
	sendfile(p[1], x, &o, 3);
	show("sendfile from");
	ftruncate(x, 100);
	char *m = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, x, 0);
	m[0] = 1;
	munmap(m, 4096);
	show("mapped");
	close(x), close(s), close(p[0]), close(p[1]);
	show("closed");
}
static void deleted(void)
{
	must(inotify_rm_watch(f, 2));
	int x = must(open("d/a", O_RDWR));
	show("opened");
	unlink("d/a");
	show("unlinked");
	write(x, "s", 1);
	show("written when gone");
	close(x);
	show("closed when gone");
	t_write("d/x", "");
	x = must(open("d/x", O_RDWR));
	must(inotify_add_watch(f, "d", IN_ALL_EVENTS | IN_EXCL_UNLINK));
	unlink("d/x");
	while (read(f, b, sizeof b) > 0)
		;
	write(x, "s", 1);
	close(x);
	show("gone and excluded");
}
static void run(void)
{
	pid_t p = must(fork());
	if (!p) {
		int k, from = must(open("/bin/true", O_RDONLY)), to = must(open("d/run", O_CREAT | O_WRONLY, 0755));
		while ((k = read(from, b, sizeof b)) > 0)
			write(to, b, k);
		_exit(0);
	}
	t_reap("copy", p);
	while (read(f, b, sizeof b) > 0)
		;
	p = must(fork());
	if (!p) {
		execl("d/run", "run", (char *)0);
		_exit(9);
	}
	t_reap("run", p);
	show("executed");
}
static void listed(void)
{
	char path[64];
	unsigned wd, sdev, mask, ignored;
	unsigned long ino;
	struct stat st;
	sprintf(path, "/proc/self/fdinfo/%d", f);
	int i = must(open(path, O_RDONLY)), n = read(i, b, 4000);
	b[n > 0 ? n : 0] = 0;
	char *line = strstr(b, "inotify");
	T(line && sscanf(line, "inotify wd:%x ino:%lx sdev:%x mask:%x ignored_mask:%x", &wd, &ino, &sdev, &mask, &ignored) == 5);
	must(stat("d", &st));
	T(ino == st.st_ino);
	say("%x %x %x\n", wd, mask & 0xffffff, ignored);
	close(i);
}
int main(void)
{
	must(mkdir("d", 0755));
	f = must(inotify_init1(IN_NONBLOCK));
	R(inotify_add_watch(f, "d", IN_ALL_EVENTS));
	t_write("d/a", "xyz");
	R(inotify_add_watch(f, "d/a", IN_ALL_EVENTS));
	show("made");
	contents();
	moved();
	deleted();
	run();
	listed();
	unlink("d/run"), unlink("d/n"), unlink("src");
	while (read(f, b, sizeof b) > 0)
		;
	rmdir("d");
	show("gone");
	return t_done();
}
