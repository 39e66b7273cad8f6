/* Who may give a file another name: its owner, who may read and write it, root; nobody else, and nobody where rights come with running it. */
#include "t.h"
static void file(const char *name, mode_t mode)
{
	int fd = must(open(name, O_WRONLY | O_CREAT, 0600));
	must(fchmod(fd, mode));
	must(close(fd));
}
static void tries(const char *name)
{
	char to[64];
	snprintf(to, sizeof to, "mine/%s", name);
	say("%s: ", name);
	R(link(name, to));
	unlink(to);
}
int main(void)
{
	if (geteuid()) {
		say("for root\n");
		return 0;
	}
	char dir[] = "/tmp/link_othersXXXXXX";
	if (!mkdtemp(dir))
		return 99;
	must(chmod(dir, 0755));
	must(chdir(dir));
	must(mkdir("mine", 0755));
	must(chown("mine", 1000, 1000));
	file("closed", 0600);
	file("readable", 0644);
	file("open", 0666);
	file("setuid", 04666);
	file("setgid", 02676);
	file("setgid-not-run", 02666);
	file("own", 0400);
	must(chown("own", 1000, 1000));
	must(symlink("closed", "symlink"));
	must(mkfifo("fifo", 0666));
	must(chmod("fifo", 0666));
	static const char *names[] = {"closed", "readable", "open", "setuid", "setgid", "setgid-not-run", "own", "symlink", "fifo"};
	for (int as = 0; as < 2; as++) {
		if (as) {
			must(setgid(1000));
			must(setuid(1000));
		}
		for (unsigned n = 0; n < sizeof names / sizeof *names; n++)
			tries(names[n]);
		R(link("mine", "mine/mine"));
		R(link("absent", "mine/absent"));
		R(link("closed", "own"));
	}
	return t_done();
}
