/* Directories: entries, types, seeking, changes while reading, removal while open. */
#include "t.h"
#include <dirent.h>
static int cmp(const void *a, const void *b) { return strcmp(*(char **)a, *(char **)b); }
static void list(const char *d)
{
	DIR *q = opendir(d);
	char *n[3000];
	int k = 0;
	for (struct dirent *e; q && (e = readdir(q));) {
		char b[300];
		snprintf(b, sizeof b, "%s:%d", e->d_name, e->d_type);
		n[k++] = strdup(b);
	}
	if (q)
		closedir(q);
	qsort(n, k, sizeof *n, cmp);
	say("%s has %d:", d, k);
	for (int i = 0; i < k && k < 20; i++)
		say(" %s", n[i]);
	say("\n");
}
int main(void)
{
	must(mkdir("d", 0755)), t_write("d/file", ""), must(mkdir("d/sub", 0755)), must(symlink("x", "d/link")), must(mkfifo("d/fifo", 0600));
	list("d");
	list("d/sub");
	char b[1024];
	int f = must(open("d", O_RDONLY | O_DIRECTORY));
	R(syscall(SYS_getdents64, f, b, 10));
	T(syscall(SYS_getdents64, f, b, sizeof b) > 0);
	R(syscall(SYS_getdents64, f, b, sizeof b));
	R(lseek(f, 0, SEEK_SET));
	T(syscall(SYS_getdents64, f, b, sizeof b) > 0);
	lseek(f, 0, SEEK_SET);
	R(syscall(SYS_getdents64, f, (void *)8, 1024));
	R(syscall(SYS_getdents64, 99, b, sizeof b));
	int g = must(open("d/file", O_RDONLY));
	R(syscall(SYS_getdents64, g, b, sizeof b));
	must(mkdir("many", 0755));
	for (int i = 0; i < 2000; i++) {
		snprintf(b, sizeof b, "many/entry-%d", i);
		must(close(must(open(b, O_CREAT | O_WRONLY, 0600))));
	}
	list("many");
	/* telldir and seekdir lead back to the same entry. */
	DIR *q = opendir("many");
	for (int i = 0; i < 700; i++)
		readdir(q);
	long pos = telldir(q);
	char name[300];
	strcpy(name, readdir(q)->d_name);
	for (int i = 0; i < 500; i++)
		readdir(q);
	seekdir(q, pos);
	T(!strcmp(readdir(q)->d_name, name));
	rewinddir(q);
	/* Removing what has been read skips nothing and repeats nothing. */
	int n = 0;
	for (struct dirent *e; (e = readdir(q));)
		if (e->d_name[0] == 'e')
			n += unlinkat(dirfd(q), e->d_name, 0) == 0;
	N(n);
	closedir(q);
	list("many");
	f = must(open("many", O_RDONLY));
	R(rmdir("many"));
	R(syscall(SYS_getdents64, f, b, sizeof b));
	R(openat(f, "new", O_CREAT | O_RDWR, 0600));
	struct stat s;
	R(fstat(f, &s));
	N(s.st_nlink);
	/* d_ino is what stat reports. */
	q = opendir("d");
	int same = 1;
	for (struct dirent *e; (e = readdir(q));)
		if (e->d_name[0] != '.')
			same &= fstatat(dirfd(q), e->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0 && s.st_ino == e->d_ino;
	T(same);
	return t_done();
}
