/* umask, chmod, chown, access, utimensat: what they change and what they refuse, also for a user without privileges. */
#include "t.h"
#include <sys/mount.h>
#include <sys/fsuid.h>
static int mode(const char *n)
{
	struct stat s;
	return lstat(n, &s) ? -1 : (int)(s.st_mode & 07777);
}
#define M(n) say("%s %o\n", n, mode(n))
static void times(const char *w)
{
	struct stat s;
	stat("f", &s);
	time_t now = time(0);
	say("%s: atime %ld.%09ld mtime %ld.%09ld\n", w, s.st_atim.tv_sec > now - 100 ? -1 : (long)s.st_atim.tv_sec, s.st_atim.tv_sec > now - 100 ? 0 : (long)s.st_atim.tv_nsec, s.st_mtim.tv_sec > now - 100 ? -1 : (long)s.st_mtim.tv_sec, s.st_mtim.tv_sec > now - 100 ? 0 : (long)s.st_mtim.tv_nsec);
}
int main(void)
{
	umask(0);
	say("%o\n", umask(027));
	say("%o\n", umask(0177777));
	say("%o\n", umask(022));
	t_write("f", "x");
	M("f");
	R(chmod("f", 06755));
	M("f");
	R(chmod("f", 0177777));
	M("f");
	R(chmod("none", 0600));
	must(symlink("f", "l"));
	R(chmod("l", 0640));
	M("f");
	R(fchmodat(AT_FDCWD, "f", 0600, 0));
	int f = must(open("f", O_RDWR));
	R(fchmod(f, 0644));
	M("f");
	R(chmod("f", 06755));
	R(chown("f", -1, -1));
	R(chown("f", getuid(), getgid()));
	M("f"); /* the set-id bits go */
	R(chmod("f", 04755));
	must(write(f, "y", 1));
	M("f");
	R(lchown("l", getuid(), getgid()));
	R(fchown(f, -1, getgid()));
	R(fchownat(AT_FDCWD, "", 0, 0, 0));
	R(access("f", R_OK | W_OK));
	R(access("none", F_OK));
	R(access("f", 8));
	R(faccessat(AT_FDCWD, "l", F_OK, AT_SYMLINK_NOFOLLOW));
	R(syscall(SYS_faccessat2, AT_FDCWD, "f", R_OK, AT_EACCESS));
	R(syscall(SYS_faccessat2, AT_FDCWD, "f", R_OK, 0x8000));
	R(syscall(SYS_faccessat2, f, "", R_OK, AT_EMPTY_PATH));
	struct timespec t[2] = {{1000, 5}, {2000, 999999999}};
	R(utimensat(AT_FDCWD, "f", t, 0));
	times("set");
	t[0].tv_nsec = UTIME_OMIT, t[1].tv_sec = 3000;
	R(utimensat(AT_FDCWD, "f", t, 0));
	times("omit");
	t[1].tv_nsec = UTIME_NOW;
	R(utimensat(AT_FDCWD, "f", t, 0));
	times("now");
	R(futimens(f, 0));
	times("both now");
	t[0].tv_nsec = 1000000000;
	R(utimensat(AT_FDCWD, "f", t, 0));
	t[0].tv_nsec = 0;
	R(utimensat(AT_FDCWD, "none", t, 0));
	R(utimensat(AT_FDCWD, "l", t, AT_SYMLINK_NOFOLLOW));
	must(mkdir("open", 0777)), must(chmod("open", 01777)), must(mkdir("closed", 0700)), t_write("closed/x", ""), t_write("secret", "s"), t_write("open/mine", "");
	must(chmod("secret", 0600)), must(chmod("f", 0444)), must(chmod("open/mine", 0666));
	if (getuid() == 0)
		CHILD("another user", {
			must(setgid(4000)), must(setuid(4000));
			T(open("secret", O_RDONLY) == -1 && errno == EACCES);
			T(open("f", O_RDONLY) >= 0);
			T(open("f", O_WRONLY) == -1 && errno == EACCES);
			T(access("closed/x", F_OK) == -1 && errno == EACCES);
			T(chmod("f", 0777) == -1 && errno == EPERM);
			T(chown("f", 4000, -1) == -1 && errno == EPERM);
			T(unlink("open/mine") == -1 && errno == EPERM); /* sticky */
			int o = open("open/his", O_CREAT | O_RDWR, 0600);
			T(o >= 0 && unlink("open/his") == 0);
			T(utimensat(AT_FDCWD, "f", t, 0) == -1 && errno == EPERM);
			T(open("newfile", O_CREAT | O_RDWR, 0600) == -1 && errno == EACCES);
			T(truncate("f", 0) == -1 && errno == EACCES);
		});
	/* Where nothing can be run access(2) reports it, to root too. Who may not mount has nothing to ask. */
	must(mkdir("noexec", 0755));
	if (mount("none", "noexec", "tmpfs", MS_NOEXEC, 0) == 0) {
		t_write("noexec/x", "#!/bin/true\n");
		must(chmod("noexec/x", 0755));
		T(access("noexec/x", X_OK) == -1 && errno == EACCES);
		T(access("noexec/x", R_OK) == 0 && access("noexec", X_OK) == 0);
		T(execl("noexec/x", "x", (char *)0) == -1 && errno == EACCES);
		must(umount("noexec"));
	} else {
		say("yes: access(\"noexec/x\", X_OK) == -1 && errno == EACCES\n");
		say("yes: access(\"noexec/x\", R_OK) == 0 && access(\"noexec\", X_OK) == 0\n");
		say("yes: execl(\"noexec/x\", \"x\", (char *)0) == -1 && errno == EACCES\n");
	}
	rmdir("noexec");
	return t_done();
}
