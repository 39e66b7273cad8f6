/* inotify: events of each change, cookies, masks, one-shot, removal, poll. */
#include "t.h"
#include <sys/inotify.h>
static int fd;
static void drain(const char *what)
{
	char b[8192] __attribute__((aligned(8)));
	say("%s:", what);
	ssize_t n;
	uint32_t cookie = 0;
	while ((n = read(fd, b, sizeof b)) > 0)
		for (char *p = b; p < b + n;) {
			struct inotify_event *e = (void *)p;
			say(" [%d %#x %s%s]", e->wd, e->mask, e->len ? e->name : "-", e->cookie ? (cookie == e->cookie ? " same cookie" : " cookie") : "");
			cookie = e->cookie;
			p += sizeof *e + e->len;
		}
	say("\n");
}
int main(void)
{
	must(mkdir("d", 0755)), t_write("f", "x");
	R(inotify_init1(0x77));
	fd = must(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
	R(inotify_add_watch(fd, "d", IN_ALL_EVENTS));
	R(inotify_add_watch(fd, "f", IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_DELETE_SELF));
	R(inotify_add_watch(fd, "none", IN_MODIFY));
	R(inotify_add_watch(fd, "f", 0));
	R(inotify_add_watch(fd, "f", IN_MODIFY | IN_ONLYDIR));
	R(inotify_add_watch(99, "f", IN_MODIFY));
	R(inotify_add_watch(0, "f", IN_MODIFY));
	drain("nothing");
	R(read(fd, (char[64]){0}, 64));
	int g = must(open("d/new", O_CREAT | O_RDWR, 0600));
	drain("create");
	must(write(g, "abc", 3));
	drain("write");
	must(pread(g, (char[3]){0}, 3, 0));
	drain("read");
	must(ftruncate(g, 1));
	drain("truncate");
	close(g);
	drain("close");
	must(chmod("d/new", 0644));
	drain("chmod");
	must(rename("d/new", "d/moved"));
	drain("rename within");
	must(rename("d/moved", "out"));
	drain("rename out");
	must(rename("out", "d/in"));
	drain("rename in");
	must(link("f", "d/hard"));
	drain("link");
	must(mkdir("d/sub", 0755));
	drain("mkdir");
	must(rmdir("d/sub"));
	drain("rmdir");
	must(unlink("d/in"));
	drain("unlink");
	must(unlink("d/hard"));
	drain("unlink hard");
	g = must(open("f", O_WRONLY));
	must(write(g, "1", 1)), must(write(g, "2", 1)), must(write(g, "3", 1));
	drain("equal events join");
	close(g);
	drain("close");
	struct pollfd p = {fd, POLLIN, 0};
	R(poll(&p, 1, 0));
	must(symlink("x", "d/sym"));
	R(poll(&p, 1, 0));
	int n;
	R(ioctl(fd, FIONREAD, &n));
	N(n);
	drain("symlink");
	R(inotify_add_watch(fd, "d", IN_CREATE | IN_ONESHOT)); /* replaces the mask */
	t_write("d/1", ""), t_write("d/2", "");
	drain("one-shot");
	R(inotify_rm_watch(fd, 1));
	R(inotify_rm_watch(fd, 2));
	drain("removed");
	R(inotify_rm_watch(fd, 2));
	R(inotify_add_watch(fd, "f", IN_DELETE_SELF | IN_MOVE_SELF));
	must(rename("f", "h"));
	must(unlink("h"));
	drain("end of a file");
	R(inotify_add_watch(fd, "d", IN_CREATE | IN_MASK_CREATE));
	R(inotify_add_watch(fd, "d", IN_DELETE | IN_MASK_CREATE));
	R(inotify_add_watch(fd, "d", IN_DELETE | IN_MASK_ADD));
	R(read(fd, (char[8]){0}, 8));
	t_write("d/3", ""), unlink("d/3");
	R(read(fd, (char[8]){0}, 8));
	drain("both");
	return t_done();
}
