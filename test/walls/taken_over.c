/* A kernel in a guest's hands, and what is left to reach of the host: the second and third wall without the first.
 *
 * Under `--jail none` a guest can do what a compromised kernel could: it sets its selector to "allow" and jumps to the kernel's own
 * `syscall`, so that the host runs any call it likes, made from kernel text. Each row below is one such call and the end it must
 * have: `stopped` by the second wall, `lost` (the supervisor has noticed that a process is gone), an errno from the third (or `reached`, a control that shows the way to be real).
 *
 *   taken_over list             the rows: options of janua run, what of the host the end needs, end, name
 *   taken_over row NAME         one of them
 *   taken_over call NUMBER      any call, with arguments of 0
 *   taken_over status           what the host reports of the process
 *
 * OUTSIDE names a directory that is not shown for writing, INSIDE_INODE is the number of one that is, where there is one; VICTIM is a process of the
 * same user outside; GADGET is the address of `syscall; ret` in the kernel's text.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* The selector lines: one for each thread, its first byte is the selector. */
#define SELECTORS (0x552000000000ul + (32ul << 20))
#define LINES 128
#define LINE 64
enum { ALLOW, BLOCK };

static uintptr_t gadget;

static void selectors(char value)
{
	for (int i = 0; i < LINES; i++)
		((volatile char *)SELECTORS)[LINE * i] = value;
}

/* A call of the host's from kernel text: its raw result. */
static long host(long number, long a, long b, long c, long d, long e, long f)
{
	selectors(ALLOW);
	long got;
	register long r10 asm("r10") = d, r8 asm("r8") = e, r9 asm("r9") = f;
	asm volatile("call *%[gadget]"
		     : "=a"(got)
		     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9), [gadget] "m"(gadget)
		     : "rcx", "r11", "memory");
	selectors(BLOCK);
	return got;
}

#define host(number, a, b, c, d, e, f) host(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static const char *outside;
static pid_t victim;

/* Paths in that directory. */
static char *OUT(const char *name)
{
	static char text[4][512];
	static int n;
	n = (n + 1) % 4;
	snprintf(text[n], sizeof *text, "%s/%s", outside, name);
	return text[n];
}

static long host_open_at(int dir, const char *path, int flags)
{
	struct open_how how = {.flags = flags, .mode = flags & O_CREAT ? 0600 : 0};
	return host(SYS_openat2, dir, path, &how, sizeof how, 0, 0);
}

static long host_open(const char *path, int flags)
{
	return host_open_at(AT_FDCWD, path, flags);
}

static long host_status(int dir, const char *path, struct statx *status)
{
	return host(SYS_statx, dir, path, *path ? AT_SYMLINK_NOFOLLOW : AT_EMPTY_PATH, STATX_BASIC_STATS, status, 0);
}

static long names(int dir, const char *path)
{
	struct statx status;
	return host_status(dir, path, &status);
}

enum { DESCRIPTORS = 128 };

/* The kernel's descriptor of the directory that is shown: with a mount namespace the only way to it. */
static int shown(void)
{
	struct statx status;
	for (int fd = 0; fd < DESCRIPTORS; fd++)
		if (!host_status(fd, "", &status) && status.stx_ino == strtoul(getenv("INSIDE_INODE"), 0, 10))
			return fd;
	return -1;
}

/* Whether a descriptor leads above what is shown. */
static long names_above_descriptors(void)
{
	for (int fd = 0; fd < DESCRIPTORS; fd++)
		if (!names(fd, "../../../../../../../../../../../../etc/passwd"))
			return 0;
	return -ENOENT;
}

/* A file of /proc of another process. */
static long host_open_proc(pid_t pid, const char *name, int flags)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
	return host_open(path, flags);
}

static long host_parent(void)
{
	/* getppid is not in the list: the host shows it in /proc/self/stat, after the name and the state. */
	char text[512] = {0};
	long fd = host_open("/proc/self/stat", O_RDONLY);
	if (fd < 0)
		return fd;
	host(SYS_read, fd, text, sizeof text - 1, 0, 0, 0);
	host(SYS_close, fd, 0, 0, 0, 0, 0);
	char *end = strrchr(text, ')');
	return end ? atol(end + 4) : -ENODATA;
}

static char word[64];

static long copy(int call)
{
	/* The victim's stack, as the runner found it. */
	struct iovec own = {word, 8}, other = {(void *)strtoul(getenv("VICTIM_STACK"), 0, 16), 8};
	return host(call, victim, &own, 1, &other, 1, 0);
}

static long abstract(int kind)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	long fd = host(SYS_socket, AF_UNIX, kind, 0, 0, 0, 0);
	return fd < 0 ? fd : host(SYS_connect, fd, &address, sizeof address, 0, 0, 0);
}

static long touch(int dir, const char *path)
{
	struct timespec times[2] = {{0}};
	return host(SYS_utimensat, dir, path, times, 0, 0, 0);
}

/* name, options of janua run (plain: by a caller without CAP_SYS_ADMIN), what of the host the end needs (landlock, mounts, pids), end, the call */
#define ROWS(R) \
	/* Controls: the way is real, and what the sandbox is shown can be had. */ \
	R("control_gettid", "-", "-", "reached", host(SYS_gettid, 0, 0, 0, 0, 0, 0)) \
	R("control_read_file", "-", "-", "reached", host_open(OUT("file"), O_RDONLY)) \
	R("control_read_shown", "root", "-", "reached", host_open_at(shown(), "file", O_RDONLY)) \
	R("control_write_bind", "bind", "-", "reached", host_open_at(shown(), "new", O_WRONLY | O_CREAT)) \
	R("control_mkdir_bind", "bind", "-", "reached", host(SYS_mkdirat, shown(), "dir", 0700, 0, 0, 0)) \
	R("control_socket", "net", "-", "reached", host(SYS_socket, AF_INET, SOCK_DGRAM, 0, 0, 0, 0)) \
	/* Neither wall's: what docs/security.md says is left. */ \
	R("left_times_bind", "bind", "-", "reached", touch(shown(), "file")) \
	R("left_names", "-", "-", "reached", names(AT_FDCWD, OUT("file"))) \
	/* The third wall: a tree of its own. */ \
	R("times", "-", "mounts", "EROFS", touch(AT_FDCWD, OUT("file"))) \
	R("times_of_nested", "-", "mounts", "EROFS | ENOENT", touch(AT_FDCWD, "/dev/null")) \
	R("times_outside", "bind", "mounts", "EROFS", touch(AT_FDCWD, OUT("file"))) \
	R("times_shown", "root", "mounts", "EROFS", touch(AT_FDCWD, "/file")) \
	R("mode", "bind", "mounts", "EROFS", host(SYS_fchmodat, AT_FDCWD, OUT("file"), 0600, 0, 0, 0)) \
	R("owner", "bind", "mounts", "EROFS", host(SYS_fchownat, AT_FDCWD, OUT("file"), -1, -1, 0, 0)) \
	R("mode_by_proc", "bind", "mounts", "EROFS | EPERM | EACCES", host(SYS_fchmodat, AT_FDCWD, "/proc/self/root/etc/passwd", 0644, 0, 0, 0)) \
	R("names_hidden", "root", "mounts", "ENOENT", names(AT_FDCWD, OUT("file"))) \
	R("names_above", "root", "mounts", "ENOENT", names(AT_FDCWD, "../../../../../../../../etc/passwd")) \
	R("names_above_descriptors", "root of directory", "mounts", "ENOENT", names_above_descriptors()) \
	R("proc_of_victim", "-", "pids 6.15", "ENOENT", host_open_proc(victim, "status", O_RDONLY)) \
	R("proc_of_victim_hidden", "root", "mounts", "ENOENT", host_open_proc(victim, "status", O_RDONLY)) \
	R("read_device", "-", "mounts", "EACCES | ENOENT", host_open("/dev/zero", O_RDONLY)) \
	R("new_terminal", "-", "mounts", "EACCES | ENOENT", host_open("/dev/ptmx", O_RDONLY)) \
	R("names_of_devices", "-", "mounts 6.15", "ENOENT", names(AT_FDCWD, "/dev/zero")) \
	R("names_of_terminals", "-", "mounts 6.15", "ENOENT", names(AT_FDCWD, "/dev/pts/ptmx")) \
	/* A caller without CAP_SYS_ADMIN: no tree of its own, but nothing of /dev. */ \
	R("control_read_plain", "plain", "-", "reached", host_open(OUT("file"), O_RDONLY)) \
	R("control_read_system_plain", "plain", "-", "reached", host_open("/etc/passwd", O_RDONLY)) \
	R("left_names_plain", "plain", "-", "reached", names(AT_FDCWD, "/dev/zero")) \
	R("left_proc_plain", "plain", "-", "reached", host_open("/proc/stat", O_RDONLY)) \
	R("read_device_plain", "plain", "landlock", "EACCES", host_open("/dev/zero", O_RDONLY)) \
	R("read_device_by_link_plain", "plain", "landlock", "EACCES", host_open("/proc/self/root/dev/zero", O_RDONLY)) \
	R("new_terminal_plain", "plain", "landlock", "EACCES", host_open("/dev/ptmx", O_RDONLY)) \
	R("write_device_plain", "plain", "landlock", "EACCES", host_open("/dev/null", O_WRONLY)) \
	R("write_file_plain", "plain", "landlock", "EACCES", host_open(OUT("file"), O_WRONLY)) \
	/* The third wall: numbers of its own. */ \
	R("nice", "-", "pids", "ESRCH", host(SYS_setpriority, 0, victim, 19, 0, 0, 0)) \
	R("processors", "-", "pids", "ESRCH", host(SYS_sched_setaffinity, victim, 8, &(long){-1}, 0, 0, 0)) \
	R("urgent", "-", "pids", "ESRCH", host(SYS_tgkill, victim, victim, SIGURG, 0, 0, 0)) \
	/* The third wall: files. */ \
	R("write_file", "-", "landlock", "EROFS | EACCES", host_open(OUT("file"), O_WRONLY)) \
	R("write_file_both", "-", "landlock", "EROFS | EACCES", host_open(OUT("file"), O_RDWR)) \
	R("append_file", "-", "landlock", "EROFS | EACCES", host_open(OUT("file"), O_WRONLY | O_APPEND)) \
	R("truncate_file", "-", "landlock", "EROFS | EACCES", host_open(OUT("file"), O_RDONLY | O_TRUNC)) \
	R("create_file", "-", "landlock", "EROFS | EACCES", host_open(OUT("new"), O_WRONLY | O_CREAT)) \
	R("unnamed_file", "-", "landlock", "EROFS | EACCES", host_open(outside, O_WRONLY | O_TMPFILE)) \
	R("write_device", "-", "landlock", "EACCES | ENOENT", host_open("/dev/null", O_WRONLY)) \
	R("write_proc", "-", "landlock", "EROFS | EACCES", host_open("/proc/self/oom_score_adj", O_WRONLY)) \
	R("read_hidden", "root", "landlock", "ENOENT | EACCES", host_open(OUT("file"), O_RDONLY)) \
	R("list_hidden", "root", "landlock", "ENOENT | EACCES", host_open(outside, O_RDONLY | O_DIRECTORY)) \
	R("write_shown", "root", "landlock", "EROFS | EACCES", host_open_at(shown(), "file", O_WRONLY)) \
	R("create_outside", "bind", "landlock", "EROFS | EACCES", host_open(OUT("new"), O_WRONLY | O_CREAT)) \
	R("write_outside", "bind", "landlock", "EROFS | EACCES", host_open(OUT("file"), O_WRONLY)) \
	R("mkdir_outside", "bind", "landlock", "EROFS | EACCES", host(SYS_mkdirat, AT_FDCWD, OUT("dir"), 0700, 0, 0, 0)) \
	R("unlink_outside", "bind", "landlock", "EROFS | EACCES", host(SYS_unlinkat, AT_FDCWD, OUT("file"), 0, 0, 0, 0)) \
	R("symlink_outside", "bind", "landlock", "EROFS | EACCES", host(SYS_symlinkat, "/etc", AT_FDCWD, OUT("link"), 0, 0, 0)) \
	R("fifo_outside", "bind", "landlock", "EROFS | EACCES", host(SYS_mknodat, AT_FDCWD, OUT("fifo"), S_IFIFO | 0600, 0, 0, 0)) \
	R("rename_outside", "bind", "landlock", "EROFS | EACCES", host(SYS_renameat2, AT_FDCWD, OUT("file"), AT_FDCWD, OUT("other"), 0, 0)) \
	R("move_in", "bind", "landlock", "EROFS | EACCES | EXDEV", host(SYS_renameat2, AT_FDCWD, OUT("file"), shown(), "stolen", 0, 0)) \
	R("link_in", "bind", "landlock", "EROFS | EACCES | EXDEV", host(SYS_linkat, AT_FDCWD, OUT("file"), shown(), "stolen", 0, 0)) \
	R("device_in_bind", "bind", "landlock", "EPERM", host(SYS_mknodat, shown(), "disk", S_IFBLK | 0600, 0x800, 0, 0)) \
	/* The third wall: processes. */ \
	R("memory_of_victim", "-", "landlock", "ENOENT | EACCES", host_open_proc(victim, "mem", O_RDONLY)) \
	R("environment_of_victim", "-", "landlock", "ENOENT | EACCES", host_open_proc(victim, "environ", O_RDONLY)) \
	R("files_of_victim", "-", "landlock", "ENOENT | EACCES", host_open_proc(victim, "fd/0", O_RDONLY)) \
	R("root_of_victim", "-", "landlock", "ENOENT | EACCES", host_open_proc(victim, "root/etc/passwd", O_RDONLY)) \
	R("memory_of_supervisor", "-", "landlock", "ENOENT | EACCES", host_open_proc(host_parent(), "mem", O_RDWR)) \
	R("read_victim", "-", "landlock", "ESRCH | EPERM", copy(SYS_process_vm_readv)) \
	R("write_victim", "-", "landlock", "ESRCH | EPERM", copy(SYS_process_vm_writev)) \
	/* The second wall. */ \
	R("kill_victim", "-", "-", "stopped", host(SYS_kill, victim, SIGKILL, 0, 0, 0, 0)) \
	R("tgkill_victim", "-", "-", "stopped", host(SYS_tgkill, victim, victim, SIGTERM, 0, 0, 0)) \
	R("ptrace", "-", "-", "stopped", host(SYS_ptrace, 16, victim, 0, 0, 0, 0)) \
	R("execve", "-", "-", "stopped", host(SYS_execve, "/bin/true", 0, 0, 0, 0, 0)) \
	R("execveat", "-", "-", "stopped", host(SYS_execveat, AT_FDCWD, "/bin/true", 0, 0, 0, 0)) \
	R("unshare", "-", "-", "stopped", host(SYS_unshare, CLONE_NEWUSER, 0, 0, 0, 0, 0)) \
	R("clone_newuser", "-", "-", "stopped", host(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0, 0)) \
	R("clone_traced", "-", "-", "stopped", host(SYS_clone, CLONE_PTRACE | SIGCHLD, 0, 0, 0, 0, 0)) \
	R("clone_orphan", "-", "-", "stopped", host(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0)) \
	R("exit_by_itself", "-", "-", "lost", host(SYS_exit_group, 0, 0, 0, 0, 0, 0)) \
	R("clone3", "-", "-", "stopped", host(SYS_clone3, word, 64, 0, 0, 0, 0)) \
	R("open", "-", "-", "stopped", host(SYS_open, OUT("file"), O_RDONLY, 0, 0, 0, 0)) \
	R("mount", "-", "-", "stopped", host(SYS_mount, "none", "/mnt", "tmpfs", 0, 0, 0)) \
	R("chroot", "-", "-", "stopped", host(SYS_chroot, "/", 0, 0, 0, 0, 0)) \
	R("put_into_terminal", "-", "-", "stopped", host(SYS_ioctl, 0, TIOCSTI, "x", 0, 0, 0)) \
	R("steal_terminal", "-", "-", "stopped", host(SYS_ioctl, 0, TIOCSCTTY, 1, 0, 0, 0)) \
	R("console_ioctl", "-", "-", "stopped", host(SYS_ioctl, 0, 0x541c /* TIOCLINUX */, word, 0, 0, 0)) \
	R("setown", "-", "-", "stopped", host(SYS_fcntl, 0, F_SETOWN, victim, 0, 0, 0)) \
	R("dumpable", "-", "-", "stopped", host(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0, 0)) \
	R("keep_capabilities", "-", "-", "stopped", host(SYS_prctl, PR_SET_KEEPCAPS, 1, 0, 0, 0, 0)) \
	R("trap_cpuid", "-", "-", "stopped", host(SYS_arch_prctl, 0x1012, 0, 0, 0, 0, 0)) \
	R("strict_seccomp", "-", "-", "stopped", host(SYS_seccomp, 0, 0, 0, 0, 0, 0)) \
	R("socket", "-", "-", "stopped", host(SYS_socket, AF_INET, SOCK_STREAM, 0, 0, 0, 0)) \
	R("chmod", "-", "-", "stopped", host(SYS_fchmodat, AT_FDCWD, OUT("file"), 0777, 0, 0, 0)) \
	R("chown", "-", "-", "stopped", host(SYS_fchownat, AT_FDCWD, OUT("file"), 1, 1, 0, 0)) \
	R("unlink", "-", "-", "stopped", host(SYS_unlinkat, AT_FDCWD, OUT("file"), 0, 0, 0, 0)) \
	R("rename", "-", "-", "stopped", host(SYS_renameat2, AT_FDCWD, OUT("file"), AT_FDCWD, OUT("other"), 0, 0)) \
	R("mkdir", "-", "-", "stopped", host(SYS_mkdirat, AT_FDCWD, OUT("dir"), 0700, 0, 0, 0)) \
	R("group_of_victim", "-", "-", "stopped", host(SYS_setpriority, 1, victim, 19, 0, 0, 0)) \
	R("unix_socket", "net", "-", "stopped", abstract(SOCK_STREAM)) \
	R("packet_socket", "net", "-", "stopped", host(SYS_socket, AF_PACKET, SOCK_RAW, 0x300, 0, 0, 0)) \
	R("vsock_socket", "net", "-", "stopped", host(SYS_socket, AF_VSOCK, SOCK_STREAM, 0, 0, 0, 0)) \
	R("alg_socket", "net", "-", "stopped", host(SYS_socket, AF_ALG, SOCK_SEQPACKET, 0, 0, 0, 0))

#define NAMED(NAME, OPTIONS, NEEDS, END, CALL) {NAME, OPTIONS, NEEDS, END},
static const struct {
	const char *name, *options, *needs, *end;
} rows[] = {ROWS(NAMED)};

static long run(const char *name)
{
#define CASE(NAME, OPTIONS, NEEDS, END, CALL) \
	if (!strcmp(name, NAME)) \
		return CALL;
	ROWS(CASE)
	return -ENODATA;
}

/* The lines of the host's /proc/self/status and /proc/self/limits that the walls set. */
static void status(void)
{
	static const char *const files[] = {"/proc/self/status", "/proc/self/limits"};
	static const char *const wanted[] = {"NoNewPrivs", "Seccomp:", "CapInh", "CapPrm", "CapEff", "CapAmb", "Max core file size"};
	static char text[16384];
	for (int i = 0; i < 2; i++) {
		long fd = host_open(files[i], O_RDONLY), n = 0, got;
		while (fd >= 0 && (got = host(SYS_read, fd, text + n, sizeof text - 1 - n, 0, 0, 0)) > 0)
			n += got;
		text[n] = 0;
		for (char *line = strtok(text, "\n"); line; line = strtok(0, "\n"))
			for (unsigned k = 0; k < sizeof wanted / sizeof *wanted; k++)
				if (!strncmp(line, wanted[k], strlen(wanted[k])))
					puts(line);
	}
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "list")) {
		for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
			printf("%s\t%s\t%s\t%s\n", rows[i].options, rows[i].needs, rows[i].end, rows[i].name);
		return 0;
	}
	gadget = strtoul(getenv("GADGET") ?: "0", 0, 16);
	outside = getenv("OUTSIDE") ?: "/";
	victim = atoi(getenv("VICTIM") ?: "0");
	if (!gadget || argc < 2)
		return 99;
	/* The host's own number of the thread is none that the program knows. */
	if (host(SYS_gettid, 0, 0, 0, 0, 0, 0) == gettid())
		return 98;
	long got = 0;
	if (!strcmp(argv[1], "status"))
		status();
	else if (argc == 3 && !strcmp(argv[1], "row"))
		got = run(argv[2]);
	else if (argc == 3 && !strcmp(argv[1], "call"))
		got = host(atol(argv[2]), 0, 0, 0, 0, 0, 0);
	else
		return 97;
	printf("end: %s\n", got < 0 ? strerrorname_np(-got) ?: "unknown" : "reached");
	return 0;
}
