/* Runs the programs named by its arguments one after the other, each in an empty directory and a session of its own, and reports
 * what they wrote and how they ended. The first argument is the nice value they run with, every other SECONDS:PATH. For each
 * program it writes
 *
 *   @begin PATH
 *   @end STATUS LEFT BYTES      STATUS: as a shell reports it, or "timeout"; LEFT: processes that outlived the program
 *   (BYTES bytes of output)
 *
 * Every orphan becomes the runner's child, so nothing of a program outlives its turn: its children are killed, and theirs when they
 * have become its own. It never kills by anything but the number of a child. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OUTPUT_MOST (1 << 20)
/* How long processes that outlive the program may take to end by themselves. */
#define GRACE_MS 1500

static char output[OUTPUT_MOST];

static long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void tell(const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = write(1, bytes, len);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			_exit(3);
		if (n > 0)
			bytes += n, len -= n;
	}
}

static int removes(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path), 0;
}

/* Reaps what there is; whether living children remain. */
static int alive(pid_t program, int *status, int *ended)
{
	for (;;) {
		int st;
		pid_t p = waitpid(-1, &st, WNOHANG | __WALL);
		if (p == 0)
			return 1;
		if (p < 0)
			return 0;
		if (p == program)
			*status = st, *ended = 1;
	}
}

/* Kills the living children. */
static void kill_children(void)
{
	DIR *all = opendir("/proc");
	for (struct dirent *entry; all && (entry = readdir(all));) {
		char name[64], stat[512] = "";
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(name, sizeof name, "/proc/%.20s/stat", entry->d_name);
		int f = open(name, O_RDONLY | O_CLOEXEC);
		if (f < 0)
			continue;
		ssize_t n = read(f, stat, sizeof stat - 1);
		close(f);
		char *end = n > 0 ? strrchr(stat, ')') : 0, state;
		pid_t pid = atoi(entry->d_name), parent;
		if (pid > 1 && end && sscanf(end + 1, " %c %d", &state, &parent) == 2 && parent == getpid())
			kill(pid, SIGKILL);
	}
	if (all)
		closedir(all);
}

static void run(long limit, char *path)
{
	static int number;
	char line[4096], dir[32], home[64];
	char *args[] = {path, 0};
	const char *given = getenv("JANUA_SEED");
	char seed[64];
	char *env[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", home, "LC_ALL=C.UTF-8", "TERM=xterm",
		"TZ=UTC", given ? seed : 0, 0};
	int pipes[2], status = 0, ended = 0, left = 0, timeout = 0;
	size_t held = 0;

	snprintf(dir, sizeof dir, "/tmp/test%d", number++);
	snprintf(seed, sizeof seed, "JANUA_SEED=%s", given ? given : "");
	snprintf(home, sizeof home, "HOME=%s", dir);
	tell(line, snprintf(line, sizeof line, "@begin %s\n", path));
	if (mkdir(dir, 0755) || pipe2(pipes, O_CLOEXEC))
		_exit(4);
	pid_t program = fork();
	if (program < 0)
		_exit(5);
	if (program == 0) {
		int null = open("/dev/null", O_RDONLY);
		setsid();
		dup2(null, 0), dup2(pipes[1], 1), dup2(pipes[1], 2);
		if (null > 2)
			close(null);
		if (chdir(dir) == 0)
			execve(path, args, env);
		_exit(127);
	}
	close(pipes[1]);
	long end = now() + limit * 1000, grace = 0;
	for (int open = 1, living = 1; living || open;) {
		living = alive(program, &status, &ended);
		if (ended && !grace)
			grace = now() + GRACE_MS;
		timeout |= !ended && now() >= end;
		if (living && (timeout || (ended && now() >= grace))) {
			left = 1;
			kill_children();
		}
		struct pollfd in = {open ? pipes[0] : -1, POLLIN, 0};
		if (poll(&in, 1, living ? 5 : 0) == 0 && !living)
			break;
		if (in.revents) {
			char surplus[4096];
			int full = held == sizeof output;
			ssize_t n = read(pipes[0], full ? surplus : output + held, full ? sizeof surplus : sizeof output - held);
			if (n > 0 && !full)
				held += n;
			open = n > 0;
		}
	}
	close(pipes[0]);
	/* What is nested too deep for names stays. */
	nftw(dir, removes, 16, FTW_DEPTH | FTW_PHYS);
	int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	char end_of[32];
	snprintf(end_of, sizeof end_of, "%d", code);
	tell(line, snprintf(line, sizeof line, "@end %s %d %zu\n", timeout ? "timeout" : end_of, left && !timeout, held));
	tell(output, held);
	tell("\n", 1);
}

int main(int argc, char **argv)
{
	umask(022);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		return 2;
	if (argc < 2 || setpriority(PRIO_PROCESS, 0, atoi(argv[1])))
		return 2;
	for (int i = 2; i < argc; i++) {
		char *path = strchr(argv[i], ':');
		if (!path)
			return 2;
		run(atol(argv[i]), path + 1);
	}
	return 0;
}
