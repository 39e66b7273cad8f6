/* Who may look into a process loses that with the exec of a set-user-ID program, and not a moment later: writers that never stop do not
 * reach the new program, and files of /proc opened before show nothing of it. */
/* seconds: 120 */
#include "t.h"
#include <grp.h>
#include <sys/prctl.h>
enum { WRITERS = 4, ROUNDS = 25, USER = 1000 };
static long mark = 0x4141414141414141;
/* Where the set-user-ID program looks for the mark: the same address in every copy of this file that is mapped where it is wanted. */
static void *const place = (void *)0x23450000;
static volatile int target, stop;
static int by_file;
static void *writer(void *unused)
{
	int known = 0, fd = -1;
	while (!stop) {
		int now = target;
		if (!now) {
			usleep(100);
		} else if (by_file) {
			if (now != known) {
				char p[40];
				if (fd >= 0)
					close(fd);
				snprintf(p, sizeof p, "/proc/%d/mem", now);
				fd = open(p, O_RDWR);
				known = now;
			}
			if (fd >= 0)
				pwrite(fd, &mark, sizeof mark, (off_t)(uintptr_t)place);
		} else {
			struct iovec l = {&mark, sizeof mark}, r = {place, sizeof mark};
			syscall(SYS_process_vm_writev, now, &l, 1, &r, 1, 0);
		}
	}
	return 0;
}
/* The set-user-ID program: maps the page and watches it. */
static int look(void)
{
	volatile long *page = mmap(place, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (page == MAP_FAILED || geteuid() != 0)
		return 3;
	for (long end = t_now() + 10; t_now() < end;)
		if (*page)
			return 42;
	return 0;
}
static void drop(void)
{
	must(setgroups(0, 0));
	must(setresgid(USER, USER, USER));
	must(setresuid(USER, USER, USER));
	must(prctl(PR_SET_DUMPABLE, 1));
}
static void race(const char *path)
{
	drop();
	pthread_t t[WRITERS];
	int marked = 0, other = 0;
	for (int i = 0; i < WRITERS; i++)
		must(-pthread_create(&t[i], 0, writer, 0));
	for (int i = 0; i < ROUNDS; i++) {
		pid_t c = must(fork());
		if (!c) {
			/* So that there is something to write to before the exec too. */
			mmap(place, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
			usleep(1000);
			execl(path, path, "look", NULL);
			_exit(9);
		}
		target = c;
		int st;
		must(waitpid(c, &st, 0));
		target = 0;
		marked += WIFEXITED(st) && WEXITSTATUS(st) == 42;
		other += !WIFEXITED(st) || (WEXITSTATUS(st) != 0 && WEXITSTATUS(st) != 42);
	}
	stop = 1;
	for (int i = 0; i < WRITERS; i++)
		pthread_join(t[i], 0);
	N(marked);
	N(other);
}
/* Files opened before the exec. */
static void opened_before(const char *path)
{
	static const char *names[] = {"environ", "maps", "smaps", "mem"};
	int go[2], fd[4];
	drop();
	must(pipe2(go, O_CLOEXEC));
	pid_t c = must(fork());
	if (!c) {
		char b;
		close(go[1]);
		read(go[0], &b, 1);
		execl(path, path, "wait", NULL);
		_exit(9);
	}
	close(go[0]);
	for (int i = 0; i < 4; i++) {
		char p[40];
		snprintf(p, sizeof p, "/proc/%d/%s", c, names[i]);
		fd[i] = must(open(p, O_RDONLY));
	}
	close(go[1]);
	char b[64];
	/* Its own name changes with the exec. */
	for (int i = 0; i < 1000; i++) {
		char p[40];
		snprintf(p, sizeof p, "/proc/%d/environ", c);
		int f = open(p, O_RDONLY);
		if (f < 0)
			break;
		close(f);
		t_ms(2);
	}
	for (int i = 0; i < 4; i++) {
		ssize_t n = pread(fd[i], b, sizeof b, i == 3 ? (off_t)(uintptr_t)place : 0);
		say("%s, opened before the exec: %zd\n", names[i], n);
	}
	must(kill(c, SIGKILL));
	must(waitpid(c, 0, 0));
}
int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "look"))
		return look();
	if (argc > 1 && !strcmp(argv[1], "wait")) {
		mmap(place, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		for (;;)
			pause();
	}
	if (geteuid() != 0) {
		/* Nobody else to be. */
		say("not root\n");
		return 0;
	}
	char path[] = "/tmp/t-exec-race-XXXXXX", b[65536];
	int from = must(open("/proc/self/exe", O_RDONLY)), to = must(mkstemp(path));
	for (ssize_t n; (n = must(read(from, b, sizeof b))) > 0;)
		must(write(to, b, n));
	must(fchmod(to, 04755));
	close(to);
	close(from);
	CHILD("process_vm_writev", race(path));
	by_file = 1;
	CHILD("/proc/PID/mem", race(path));
	CHILD("opened before", opened_before(path));
	must(unlink(path));
	return t_done();
}
