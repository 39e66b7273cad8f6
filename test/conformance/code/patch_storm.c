/* Calls from code made at run time, at the moment it is being rewritten: by several threads, with signals whose handler calls
 * there too, and with a thread that forks children which call there. */
/* not: i386 */
/* seconds: 60 */
#include "t.h"
#define PAGE 4096
#define SITES 24
#define ROUNDS 40
#define CALLERS 3
#define CALLS 400

typedef long fn(long);
static unsigned char *code;
static volatile long wrong, handled, stop;
static volatile int round_now;

/* A call of getpid in one of three forms: the number just before it, in the argument, and with a test of the result. */
static void emit(unsigned char *p, int form)
{
	static const unsigned char forms[3][20] = {
		{0xb8, SYS_getpid, 0, 0, 0, 0x0f, 0x05, 0xc3},
		{0x89, 0xf8, 0x0f, 0x05, 0x48, 0x3d, 0x00, 0xf0, 0xff, 0xff, 0x77, 0x01, 0xc3, 0xc3},
		{0xb8, SYS_getpid, 0, 0, 0, 0x90, 0x0f, 0x05, 0x48, 0x89, 0xc0, 0x90, 0x90, 0xc3},
	};
	memcpy(p, forms[form], sizeof forms[form]);
}

static long at(int site)
{
	return ((fn *)(code + 128 + 160 * site))(SYS_getpid);
}

static void on_signal(int s)
{
	int e = errno;
	(void)s;
	handled++;
	if (at(handled % SITES) != getpid())
		wrong++;
	errno = e;
}

static void *caller(void *seed)
{
	uint64_t state = 0x9e3779b97f4a7c15ul * (t_seed() * 1000 + (long)seed + 1 + round_now);
	pid_t pid = getpid();
	for (int i = 0; i < CALLS; i++) {
		state ^= state << 13, state ^= state >> 7, state ^= state << 17;
		if (at(state % SITES) != pid)
			__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
	}
	return 0;
}

static void *forker(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			int bad = 0;
			for (int k = 0; k < 8; k++)
				for (int site = 0; site < SITES; site++)
					bad += at(site) != getpid();
			_exit(bad != 0);
		}
		int status = -1;
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (status)
			__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
	}
	return 0;
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &action, 0);
	for (round_now = 0; round_now < ROUNDS; round_now++) {
		unsigned char *made = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		must(made != MAP_FAILED ? 0 : -1);
		memset(made, 0x90, PAGE);
		for (int site = 0; site < SITES; site++)
			emit(made + 128 + 160 * site, site % 3);
		must(mprotect(made, PAGE, round_now & 1 ? PROT_READ | PROT_EXEC : PROT_READ | PROT_WRITE | PROT_EXEC));
		code = made;
		pthread_t threads[CALLERS + 1];
		struct itimerval every = {{0, 500}, {0, 500}}, never = {0};
		setitimer(ITIMER_REAL, &every, 0);
		for (long i = 0; i < CALLERS; i++)
			must(-pthread_create(&threads[i], 0, caller, (void *)i));
		must(-pthread_create(&threads[CALLERS], 0, forker, 0));
		for (int i = 0; i <= CALLERS; i++)
			pthread_join(threads[i], 0);
		while (!handled)
			at(0);
		setitimer(ITIMER_REAL, &never, 0);
		must(munmap(made, PAGE));
	}
	N(wrong);
	T(handled > 0);
	return t_done();
}
