/* The file system one starts in: the host's files are there, can be read, changed, removed and replaced as on any other. */
#include "t.h"
#include <dirent.h>
static int has(const char *d, const char *n)
{
	DIR *q = opendir(d);
	int k = 0;
	for (struct dirent *e; q && (e = readdir(q));)
		k += !strcmp(e->d_name, n);
	if (q)
		closedir(q);
	return k;
}
int main(void)
{
	char d[64], p[128];
	snprintf(d, sizeof d, "/tmp/janua-conformance-%d", getpid());
	must(mkdir(d, 0700));
	must(chdir(d));
	t_write("x", "1");
	snprintf(p, sizeof p, "%s/x", d);
	R(access(p, R_OK));
	N(has("/tmp", d + 5));
	T(has("/etc", "passwd") == 1 && has("/", "usr") == 1 && has("/", "proc") == 1);
	struct stat s;
	T(stat("/bin/sh", &s) == 0 && S_ISREG(s.st_mode) && s.st_mode & 0111);
	T(stat("/etc/passwd", &s) == 0 && s.st_size > 0);
	int f = must(open("/etc/passwd", O_RDONLY));
	char b[5] = "";
	R(read(f, b, 4));
	S(b);
	T(mmap(0, 4096, PROT_READ, MAP_SHARED, f, 0) != MAP_FAILED);
	T(mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, f, 0) != MAP_FAILED);
	must(link("x", "y")), must(rename("y", "z")), must(unlink("z")), must(unlink("x"));
	must(chdir("/"));
	R(rmdir(d));
	N(has("/tmp", d + 5));
	return t_done();
}
