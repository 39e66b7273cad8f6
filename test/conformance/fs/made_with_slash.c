/* What ends in a slash is a directory: other calls than mkdir make none, and report first if it is there. A link from elsewhere too. */
#include "t.h"
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static int bound(const char *path) {
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	strcpy(a.sun_path, path);
	int s = must(socket(AF_UNIX, SOCK_STREAM, 0));
	int r = bind(s, (struct sockaddr *)&a, sizeof a), e = errno;
	close(s);
	errno = e;
	return r;
}

int main(void) {
	must(mkdir("dir", 0755));
	close(must(open("file", O_CREAT | O_RDWR, 0644)));
	must(symlink("dir", "way"));
	must(symlink("none", "lost"));
	R(link("file", "dir/"));
	R(link("file", "file/"));
	R(link("file", "new/"));
	R(link("file", "way/"));
	R(link("file", "lost/"));
	R(symlink("a", "dir/"));
	R(symlink("a", "file/"));
	R(symlink("a", "new/"));
	R(symlink("a", "way/"));
	R(symlink("a", "lost/"));
	R(mknod("dir/", S_IFREG | 0600, 0));
	R(mknod("file/", S_IFREG | 0600, 0));
	R(mknod("new/", S_IFIFO | 0600, 0));
	R(mkdir("file/", 0700));
	R(mkdir("way/", 0700));
	R(mkdir("lost/", 0700));
	R(bound("dir/"));
	R(bound("file/"));
	R(bound("new/"));
	R(bound("socket"));
	R(bound("socket/"));
	R(rename("file", "dir/"));
	R(rename("file", "new/"));
	/* From another file system. */
	R(link("/proc/version", "file"));
	R(link("/proc/version", "dir/"));
	R(link("/proc/version", "new/"));
	R(link("/proc/version", "new"));
	R(link("dir", "file"));
	R(link("dir", "new"));
	return 0;
}
