/* Files made with the set-group-ID bit in a directory that hands its group on, by somebody who is not of that group, under a umask. */
#include "t.h"
static void made(const char *how, const char *name, mode_t mode, mode_t mask)
{
	struct stat s;
	umask(mask);
	if (*how == 'o')
		close(must(open(name, O_CREAT | O_EXCL | O_WRONLY, mode)));
	else
		must(mknod(name, S_IFREG | mode, 0));
	must(stat(name, &s));
	say("%s, mode %o, mask %o: %o\n", how, mode, mask, s.st_mode & 07777);
	unlink(name);
}
int main(void)
{
	static const mode_t modes[] = {02755, 02745, 06777, 0755}, masks[] = {0, 010, 077, 02010};
	umask(0);
	must(mkdir("dir", 0777)), must(chmod("dir", 02777));
	pid_t p = must(fork());
	if (!p) {
		if (geteuid() == 0)
			must(setresgid(65534, 65534, 65534)), must(setresuid(65534, 65534, 65534));
		for (unsigned i = 0; i < 4; i++)
			for (unsigned j = 0; j < 4; j++)
				made("open", "dir/file", modes[i], masks[j]), made("mknod", "dir/file", modes[i], masks[j]);
		_exit(0);
	}
	t_reap("another", p);
	made("open", "dir/file", 02755, 010);
	rmdir("dir");
	return t_done();
}
