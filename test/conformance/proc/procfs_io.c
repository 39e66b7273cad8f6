/* /proc/PID/io: what a process, a thread and a child have read and written since somebody has looked; what may not be seen. */
#include "t.h"
struct io { long rchar, wchar, syscr, syscw, read, write, cancelled; };
static char path[64];
static struct io get(const char *p)
{
	struct io i = {-1, -1, -1, -1, -1, -1, -1};
	FILE *f = fopen(p, "r");
	if (f && fscanf(f, "rchar: %ld wchar: %ld syscr: %ld syscw: %ld read_bytes: %ld write_bytes: %ld cancelled_write_bytes: %ld", &i.rchar,
	                &i.wchar, &i.syscr, &i.syscw, &i.read, &i.write, &i.cancelled) != 7)
		i.rchar = -2;
	if (f)
		fclose(f);
	return i;
}
static char b[5000];
static int e[2];
static void move(void)
{
	must(write(e[1], b, 1000));
	must(read(e[0], b, 1000));
	struct iovec v[2] = {{b, 300}, {b + 300, 400}};
	must(writev(e[1], v, 2));
	must(readv(e[0], v, 2));
	int f = must(open("file", O_RDWR | O_CREAT, 0600));
	must(pwrite(f, b, 2000, 10));
	must(pread(f, b, 5000, 10));
	/* What fails moves nothing. */
	if (read(-1, b, 5000) != -1 || read(e[1], b, 5000) != -1)
		t_failed = 1;
	close(f);
}
static void *thread(void *a)
{
	struct io *i = a;
	char p[64];
	snprintf(p, sizeof p, "/proc/self/task/%ld/io", (long)syscall(SYS_gettid));
	i[0] = get(p);
	move();
	i[1] = get(p);
	return 0;
}
int main(void)
{
	must(pipe(e));
	struct io i = get("/proc/self/io"), j, own[2];
	T(i.rchar >= 0 && i.wchar >= 0 && i.syscr >= 0 && i.syscw >= 0 && i.read >= 0 && i.write >= 0 && i.cancelled >= 0);
	i = get("/proc/self/io");
	move();
	j = get("/proc/self/io");
	/* The file itself was read too. */
	T(j.rchar - i.rchar >= 3700 && j.rchar - i.rchar < 3700 + 500);
	N(j.wchar - i.wchar);
	T(j.syscr - i.syscr >= 3 && j.syscr - i.syscr < 10);
	N(j.syscw - i.syscw);
	/* A thread's are among its process', also when it is gone. */
	pthread_t t;
	i = get("/proc/self/io");
	pthread_create(&t, 0, thread, own);
	pthread_join(t, 0);
	j = get("/proc/self/io");
	N(own[1].wchar - own[0].wchar);
	N(j.wchar - i.wchar);
	T(j.rchar - i.rchar >= 3700);
	snprintf(path, sizeof path, "/proc/self/task/%d/io", getpid());
	T(get(path).wchar >= 3700 && get(path).wchar < j.wchar);
	/* Another's, which waits in a call when it is looked at first. */
	int go[2], done[2];
	must(pipe(go));
	must(pipe(done));
	pid_t p = must(fork());
	if (!p) {
		char c;
		must(read(go[0], &c, 1));
		must(write(done[1], b, 1234));
		must(read(go[0], &c, 1));
		_exit(0);
	}
	snprintf(path, sizeof path, "/proc/%d/io", p);
	t_asleep(p, p);
	i = get(path);
	must(write(go[1], "x", 1));
	for (int got = 0; got < 1234;)
		got += must(read(done[0], b, 1234));
	t_asleep(p, p);
	j = get(path);
	N(j.wchar - i.wchar);
	N(j.rchar - i.rchar);
	if (geteuid() == 0)
		CHILD("another's", must(setresuid(1000, 1000, 1000)); R(open(path, O_RDONLY)));
	must(write(go[1], "x", 1));
	t_reap("child", p);
	must(unlink("file"));
	return t_done();
}
