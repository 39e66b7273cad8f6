/* A path asked for again and again, while what it leads to changes in every way there is: by unlink, rename, links, modes, the working
 * directory, the root, by another thread and another process. Files differ in their sizes. */
#include "t.h"

static char here[PATH_MAX / 2];

/* What stat(2) reports of a path, three times in a row: its size, "dir" or the error. */
static void again(const char *path)
{
	char line[256] = "";
	const char *shown = strncmp(path, here, strlen(here)) ? path : path + strlen(here) + 1;
	for (int i = 0; i < 3; i++) {
		struct stat s;
		char one[64];
		if (stat(path, &s))
			snprintf(one, sizeof one, " %s", t_errno(errno));
		else if (S_ISDIR(s.st_mode))
			snprintf(one, sizeof one, " dir");
		else
			snprintf(one, sizeof one, " %ld", (long)s.st_size);
		strcat(line, one);
	}
	say("%s:%s\n", shown, line);
}

static void make(const char *path, int size)
{
	int f = must(open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644));
	must(ftruncate(f, size));
	close(f);
}

static void *elsewhere(void *path)
{
	again(path);
	must(unlink(path));
	again(path);
	return NULL;
}

int main(void)
{
	must(getcwd(here, sizeof here) ? 0 : -1);
	char full[PATH_MAX];
	snprintf(full, sizeof full, "%s/a/b/file", here);
	must(mkdir("a", 0755));
	must(mkdir("a/b", 0755));
	make("a/b/file", 1);
	again(full);
	again("a/b/file");

	/* The file itself. */
	must(truncate("a/b/file", 2));
	again(full);
	must(unlink("a/b/file"));
	again(full);
	again("a/b/file");
	make("a/b/file", 3);
	again(full);
	make("a/b/other", 4);
	must(rename("a/b/other", "a/b/file"));
	again(full);
	make("a/b/other", 5);
	must(syscall(SYS_renameat2, AT_FDCWD, "a/b/other", AT_FDCWD, "a/b/file", 2));
	again(full);
	again("a/b/other");
	must(rename("a/b/file", "a/moved"));
	again(full);
	must(rename("a/moved", "a/b/file"));
	again(full);

	/* A directory on the way. */
	must(mkdir("c", 0755));
	must(mkdir("c/b", 0755));
	make("c/b/file", 6);
	must(rename("a/b", "a/away"));
	again(full);
	must(rename("c/b", "a/b"));
	again(full);
	again("a/away/file");
	must(unlink("a/b/file"));
	must(rmdir("a/b"));
	again(full);

	/* A link on the way, and one at the end. */
	must(symlink("away", "a/b"));
	again(full);
	must(mkdir("a/second", 0755));
	make("a/second/file", 7);
	must(unlink("a/b"));
	must(symlink("second", "a/b"));
	again(full);
	must(symlink("second/file", "a/link"));
	again("a/link");
	must(symlink("away/file", "a/new"));
	must(rename("a/new", "a/link"));
	again("a/link");
	struct stat s;
	for (int i = 0; i < 3; i++)
		T(!lstat("a/link", &s) && S_ISLNK(s.st_mode));
	again("a/link");

	/* Slashes and dots are part of what is asked. */
	again("a/second");
	again("a/second/");
	again("a/second/file/");
	again("a/./second/../second/file");

	/* The working directory. */
	must(mkdir("one", 0755));
	must(mkdir("two", 0755));
	make("one/here", 11);
	make("two/here", 12);
	must(chdir("one"));
	again("here");
	must(chdir("../two"));
	again("here");
	int one = must(open("../one", O_RDONLY | O_DIRECTORY));
	must(fchdir(one));
	again("here");
	must(rename("here", "gone"));
	again("here");
	must(rename("gone", "here"));
	must(chdir(".."));

	/* Another process, and another thread. */
	again("two/here");
	int status;
	pid_t child = must(fork());
	if (!child) {
		again("two/here");
		must(unlink("two/here"));
		_exit(0);
	}
	must(waitpid(child, &status, 0));
	again("two/here");
	make("two/here", 13);
	again("two/here");
	pthread_t thread;
	must(pthread_create(&thread, NULL, elsewhere, "two/here") ? -1 : 0);
	pthread_join(thread, NULL);
	again("two/here");

	/* A directory that is closed and opened again, for somebody who has no special rights. */
	make("two/here", 14);
	must(chmod(".", 0755));
	int to[2], from[2];
	char byte = 0;
	must(pipe(to));
	must(pipe(from));
	child = must(fork());
	if (!child) {
		if (!geteuid())
			must(setresuid(65534, 65534, 65534));
		for (int i = 0; i < 3; i++) {
			again("two/here");
			must(write(from[1], &byte, 1));
			must(read(to[0], &byte, 1));
		}
		_exit(0);
	}
	must(read(from[0], &byte, 1));
	must(chmod("two", 0600));
	must(write(to[1], &byte, 1));
	must(read(from[0], &byte, 1));
	must(chmod("two", 0755));
	must(write(to[1], &byte, 1));
	must(read(from[0], &byte, 1));
	must(write(to[1], &byte, 1));
	must(waitpid(child, &status, 0));
	N(status);

	/* Rights given up on the way. */
	child = must(fork());
	if (!child) {
		must(chmod("two", 0700));
		again("two/here");
		if (!geteuid()) {
			must(setresuid(65534, 65534, 65534));
			T(stat("two/here", &s) == -1 && errno == EACCES);
			T(stat("two/here", &s) == -1 && errno == EACCES);
		}
		_exit(t_failed);
	}
	must(waitpid(child, &status, 0));
	N(status);

	/* The root. */
	if (!geteuid()) {
		must(mkdir("one/one", 0755));
		make("one/one/here", 15);
		child = must(fork());
		if (!child) {
			must(chroot("one"));
			must(chdir("/"));
			again("/here");
			must(chroot("one"));
			again("/here");
			must(chdir("/"));
			again("here");
			_exit(0);
		}
		must(waitpid(child, &status, 0));
		N(status);
	}
	return t_failed;
}
