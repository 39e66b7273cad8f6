/* open: the matrix of flags against a file, a directory, a link, a dangling link and nothing. */
#include "t.h"
static void one(const char *name, int flags, const char *text)
{
	int f = open(name, flags, 0640);
	if (f < 0) {
		say("%-8s %s: %s\n", name, text, t_errno(errno));
		return;
	}
	struct stat s;
	fstat(f, &s);
	say("%-8s %s: ok type %o size %ld flags %#x\n", name, text, s.st_mode >> 12, S_ISREG(s.st_mode) ? (long)s.st_size : 0, fcntl(f, F_GETFL) & ~O_LARGEFILE & ~0100000);
	close(f);
}
#define F(x) {x, #x}
static const struct { int f; const char *t; } set[] = {
	F(O_RDONLY), F(O_WRONLY), F(O_RDWR), F(3), F(O_RDONLY | O_CREAT), F(O_WRONLY | O_CREAT | O_EXCL), F(O_RDWR | O_TRUNC), F(O_RDONLY | O_DIRECTORY), F(O_RDWR | O_DIRECTORY),
	F(O_RDONLY | O_NOFOLLOW), F(O_PATH), F(O_PATH | O_NOFOLLOW), F(O_PATH | O_DIRECTORY), F(O_WRONLY | O_APPEND), F(O_RDONLY | O_NONBLOCK), F(O_RDONLY | O_CREAT | O_DIRECTORY),
	F(O_RDONLY | O_CREAT | O_NOFOLLOW), F(O_RDWR | O_SYNC), F(O_RDWR | O_DSYNC), F(O_PATH | O_CREAT), F(O_RDONLY | O_NOATIME),
};
int main(void)
{
	umask(022);
	for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
		t_write("file", "12345");
		must(mkdir("dir", 0755));
		must(symlink("file", "link"));
		must(symlink("none", "dangling"));
		must(symlink("dir", "dirlink"));
		const char *n[] = {"file", "dir", "link", "dirlink", "dangling", "new", "file/", "dir/", "new/", "link/", "dirlink/"};
		for (int k = 0; k < 11; k++) {
			one(n[k], set[i].f, set[i].t);
			if (k == 4)
				unlink("none");
		}
		unlink("file"), rmdir("dir"), unlink("link"), unlink("dangling"), unlink("dirlink"), unlink("new"), unlink("none");
	}
	return t_done();
}
