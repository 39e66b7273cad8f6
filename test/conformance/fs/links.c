/* link, symlink, readlink, unlink, mkdir, rmdir, mknod: the refusals and the counts. */
#include "t.h"
#include <sys/sysmacros.h>
static long nlink_(const char *n)
{
	struct stat s;
	return stat(n, &s) ? -1 : (long)s.st_nlink;
}
int main(void)
{
	char b[300], *l;
	umask(022);
	t_write("f", "x");
	must(mkdir("d", 0755));
	R(link("f", "g"));
	N(nlink_("f"));
	R(link("f", "g"));
	R(link("none", "h"));
	R(link("d", "e"));
	R(link("f", "none/h"));
	R(link("f", "f/h"));
	R(link("f", "d"));
	R(symlink("f", "s"));
	R(symlink("f", "s"));
	R(symlink("", "t"));
	R(link("s", "sl")); /* the link itself */
	T(readlink("sl", b, sizeof b) == 1);
	R(linkat(AT_FDCWD, "s", AT_FDCWD, "sf", AT_SYMLINK_FOLLOW));
	N(nlink_("f"));
	R(linkat(AT_FDCWD, "f", AT_FDCWD, "q", 0x8000));
	R(readlink("f", b, sizeof b));
	R(readlink("none", b, sizeof b));
	R(readlink("s", b, 0));
	must(symlink("a/longer/target", "lt"));
	R(readlink("lt", b, 3));
	R(readlink("lt", b, sizeof b));
	R(unlink("none"));
	R(unlink("d"));
	R(unlink("d/"));
	R(unlink("f/"));
	R(rmdir("f"));
	R(rmdir("none"));
	R(rmdir("d/."));
	R(rmdir("d/.."));
	R(rmdir("."));
	R(rmdir("/"));
	t_write("d/x", "");
	R(rmdir("d"));
	R(mkdir("d", 0755));
	R(mkdir("f/e", 0755));
	R(mkdir("none/e", 0755));
	R(mkdir("", 0755));
	R(mkdir("e/", 0755));
	R(mkdir("s", 0755));
	R(unlinkat(AT_FDCWD, "e", 0));
	R(unlinkat(AT_FDCWD, "e", AT_REMOVEDIR));
	R(unlinkat(AT_FDCWD, "f", AT_REMOVEDIR));
	R(unlinkat(AT_FDCWD, "f", 0x1000));
	R(unlink("g"));
	N(nlink_("f"));
	R(symlink("x", (l = memset(malloc(300), 'l', 299), l[299] = 0, l)));
	l[255] = 0;
	R(symlink("x", l));
	l = memset(malloc(5000), 't', 4999), l[4999] = 0;
	R(symlink(l, "toolong"));
	R(mknod("fifo", S_IFIFO | 0600, 0));
	R(mknod("reg", 0644, 0));
	R(mknod("reg", S_IFREG | 0644, 0));
	R(mknod("what", S_IFDIR | 0644, 0));
	R(mknod("sock", S_IFSOCK | 0644, 0));
	struct stat s;
	R(stat("sock", &s));
	T(S_ISSOCK(s.st_mode));
	R(open("sock", O_RDONLY));
	/* The current directory may vanish under one's feet. */
	must(mkdir("cwd", 0755)), must(chdir("cwd")), must(rmdir("../cwd"));
	R(getcwd(b, sizeof b) ? 0 : -1);
	R(open("x", O_CREAT | O_RDWR, 0600));
	R(stat(".", &s));
	R(chdir(".."));
	return t_done();
}
