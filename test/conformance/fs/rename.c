/* rename and renameat2: over files and directories, NOREPLACE, EXCHANGE, into itself. */
#include "t.h"
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE 2
#define RENAME_WHITEOUT 4
#endif
static long r2(const char *a, const char *b, unsigned f) { return syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, f); }
static const char *in(const char *n)
{
	static char b[64];
	int f = open(n, O_RDONLY);
	if (f < 0)
		return t_errno(errno);
	ssize_t k = read(f, b, 63);
	close(f);
	if (k < 0)
		return t_errno(errno);
	b[k] = 0;
	return b;
}
int main(void)
{
	t_write("a", "A"), t_write("b", "B");
	must(mkdir("d", 0755)), must(mkdir("e", 0755)), must(mkdir("full", 0755)), t_write("full/x", "X"), must(symlink("a", "l"));
	R(rename("a", "a"));
	R(rename("a", "b"));
	S(in("b"));
	S(in("a"));
	R(rename("none", "x"));
	R(rename("b", "none/x"));
	R(rename("b", "d"));
	R(rename("d", "b"));
	R(rename("d", "e"));
	R(rename("e", "full"));
	R(rename("full", "e"));
	S(in("e/x"));
	R(rename("e", "e/sub"));
	R(rename("e", "e/sub/deeper"));
	R(rename("b", "b/x"));
	R(rename("e/x", "e"));
	R(rename(".", "x"));
	R(rename("e/.", "x"));
	R(rename("b", ".."));
	R(rename("l", "m"));
	R(readlink("m", (char[8]){0}, 8));
	R(rename("b", "m")); /* replaces the link, not its target */
	S(in("m"));
	t_write("p", "P"), t_write("q", "Q");
	R(r2("p", "q", RENAME_NOREPLACE));
	R(r2("p", "r", RENAME_NOREPLACE));
	R(r2("r", "q", RENAME_EXCHANGE));
	S(in("r"));
	S(in("q"));
	R(r2("r", "e", RENAME_EXCHANGE));
	S(in("e"));
	S(in("r/x"));
	R(r2("r", "none", RENAME_EXCHANGE));
	R(r2("r", "q", RENAME_EXCHANGE | RENAME_NOREPLACE));
	R(r2("r", "q", 0x100));
	/* Hard links of one file: nothing happens. */
	must(link("q", "q2"));
	R(rename("q", "q2"));
	S(in("q"));
	R(rename("q/", "z"));
	R(rename("r", "z/"));
	S(in("z/x"));
	/* A moved directory takes its open files and its .. along. */
	must(mkdir("one", 0755)), must(mkdir("two", 0755)), must(mkdir("one/c", 0755));
	must(chdir("one/c"));
	must(rename("../../one/c", "../../two/c"));
	char w[4096];
	T(getcwd(w, sizeof w) && !strcmp(w + strlen(w) - 6, "/two/c"));
	must(chdir(".."));
	T(getcwd(w, sizeof w) && !strcmp(w + strlen(w) - 4, "/two"));
	int f = must(open("c/file", O_CREAT | O_RDWR, 0600));
	must(rename("c/file", "file2"));
	R(write(f, "still", 5));
	S(in("file2"));
	int d = must(open("c", O_RDONLY));
	R(renameat(AT_FDCWD, "file2", d, "back"));
	S(in("c/back"));
	return t_done();
}
