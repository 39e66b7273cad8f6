/* The page in which rewritten calls leave their words for a kernel in another process, and the code that does it, used by hand: words that change
 * while they are read, calls that are announced and not waited for, jumps into the midst of the code, another thread's page. Whatever comes of it
 * comes to who does it. */
/* skip none: the kernel is in the program's own process there, and calls need no page */
/* skip pkey: the kernel is in the program's own process there, and calls need no page */
/* process: refused */
#include "attack.h"
#include <stdatomic.h>

enum { IDLE, CALL, ANSWER, STOP };

/* The code, the value its pages are counted from, the caller's page: rax at 8, the words from 16 on, rcx and rsp at 128. */
static unsigned char *code;
static uintptr_t base;

static volatile uint64_t *own_page(void)
{
	uint32_t selector, limit = 0;
	memcpy(&selector, code + 2, 4);
	asm volatile("lsl %1, %0" : "+r"(limit) : "r"(selector));
	return (volatile uint64_t *)(base + limit);
}

/* What a trampoline loads: movabs $ENTRY, %r11; jmp *%r11. Null where no call is rewritten to a jump. */
static int find(void)
{
	static const unsigned char load[] = { 0x41, 0xbb }, look[] = { 0x45, 0x0f, 0x03, 0xdb, 0x4c, 0x03, 0x1d };
	char line[256];
	for (int n = 0; n < 64; n++)
		syscall(SYS_getppid);
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && !code && fgets(line, sizeof line, maps)) {
		unsigned long start, end;
		if (!strstr(line, "r-x") || !strstr(line, "[janua]") || sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		for (unsigned char *at = (void *)start; at + 13 < (unsigned char *)end && !code; at++)
			if (at[0] == 0x49 && at[1] == 0xbb && at[10] == 0x41 && at[11] == 0xff && at[12] == 0xe3)
				memcpy(&code, at + 2, 8);
	}
	if (maps)
		fclose(maps);
	if (!code)
		return 0;
	int32_t distance;
	if (memcmp(code, load, sizeof load) || memcmp(code + 6, look, sizeof look))
		return 0;
	memcpy(&distance, code + 13, 4);
	memcpy(&base, code + 17 + distance, 8);
	return 1;
}

/* Leaves a call in a page, as the code does, and goes on. */
static void leave_call(volatile uint64_t *page, long number, long a, long b, long c)
{
	page[1] = number;
	page[2] = a;
	page[3] = b;
	page[4] = c;
	page[5] = page[6] = page[7] = 0;
	atomic_signal_fence(memory_order_seq_cst);
	*(volatile uint32_t *)page = CALL;
}

static void many_calls(int count)
{
	while (count-- > 0)
		syscall(SYS_getppid);
}

/* Runs one try for a twentieth of a second at most; whether it reported that it won. */
static int won_by(int (*one)(void *), void *arg)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		struct itimerval soon = { .it_value = { .tv_usec = 50000 } };
		setitimer(ITIMER_REAL, &soon, 0);
		signal(SIGALRM, SIG_DFL);
		_exit(one(arg) ? 77 : 0);
	}
	return waitpid(pid, &status, 0) != pid || WIFEXITED(status) && WEXITSTATUS(status) == 77;
}

/* Takes page and code away, or tries to. */
static int unmap(void *arg)
{
	volatile uint64_t *page = own_page();
	void *places[] = { (void *)page, (void *)((uintptr_t)code & -4096) };
	for (int n = 0; n < 2; n++) {
		munmap(places[n], 4096);
		mprotect(places[n], 4096, PROT_NONE);
		madvise(places[n], 4096, MADV_DONTNEED);
		if (mmap(places[n], 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
			return 1;
		if (mremap(places[n], 4096, 8192, MREMAP_MAYMOVE) != MAP_FAILED)
			return 1;
	}
	page[100] = 1;
	many_calls(100);
	return page[100] != 1 || syscall(SYS_getppid) != getppid();
}

static volatile uint64_t *target;
static volatile int over;

static void *scribble(void *arg)
{
	static const long calls[] = { SYS_getppid, SYS_getpid, SYS_sched_yield, SYS_read, SYS_stat, SYS_futex, SYS_munmap, SYS_brk };
	uint64_t seed = day() + (uintptr_t)arg;
	while (!over) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		unsigned what = seed >> 60, place = seed >> 40 & 7;
		if (what < 6)
			*(volatile uint32_t *)target = seed >> 33 & 3;
		else if (what < 9)
			target[1] = calls[place];
		else if (what < 12)
			target[2 + place % 6] = seed;
		else if (what < 14)
			target[16 + place] = seed;
		else
			*(volatile uint32_t *)(target + 32) = seed;
	}
	return 0;
}

/* Another thread writes to the page while calls are made. */
static int forge(void *arg)
{
	pthread_t thread;
	target = own_page();
	if (pthread_create(&thread, 0, scribble, arg))
		return 0;
	many_calls(20000);
	over = 1;
	return 0;
}

/* Calls in another thread's name, which runs something else. */
static void *spin(void *arg)
{
	many_calls(100);
	target = own_page();
	for (;;)
		asm volatile("pause");
}

static int by_another(void *arg)
{
	pthread_t thread;
	long numbers[] = { SYS_getppid, SYS_exit, SYS_fork, SYS_pause, SYS_rt_sigreturn, SYS_execve, SYS_exit_group };
	if (pthread_create(&thread, 0, spin, 0))
		return 0;
	while (!target)
		sched_yield();
	leave_call(target, numbers[(uintptr_t)arg % 7], 0, 0, 0);
	usleep(20000);
	many_calls(100);
	return 0;
}

static void gone_on(void)
{
	_exit(0);
}

/* A call of its own that it does not wait for, of every kind: what wants the whole thread, what waits, what ends it. */
static int silent(void *arg)
{
	static char stack[65536] __attribute__((aligned(16)));
	long numbers[] = { SYS_getppid, SYS_fork, SYS_vfork, SYS_pause, SYS_exit, SYS_munmap, SYS_rt_sigreturn, SYS_arch_prctl, SYS_execve, SYS_sched_yield };
	volatile uint64_t *page = own_page();
	many_calls(200);
	page[16] = (uintptr_t)gone_on;
	page[17] = (uintptr_t)(stack + sizeof stack - 8);
	leave_call(page, numbers[(uintptr_t)arg % 10], 0, 0, 0);
	for (;;)
		asm volatile("pause");
}

/* Into the code at any byte of it, with registers that might do harm. */
static int jump(void *arg)
{
	static uintptr_t to, page;
	many_calls(20);
	to = (uintptr_t)arg;
	page = (uintptr_t)own_page();
	asm volatile("mov %0, %%r10\n\tmov %1, %%r11\n\tmov %%r11, %%rbx\n\tmov %%r11, %%rbp\n\tmov %%r11, %%r15\n\t"
		     "lea 1f(%%rip), %%rcx\n\tmov $110, %%eax\n\txor %%edi, %%edi\n\txor %%esi, %%esi\n\txor %%edx, %%edx\n\t"
		     "jmp *%%r10\n\t.byte 0x0f, 0x05\n\t1:"
		     :
		     : "m"(to), "m"(page)
		     : "rax", "rbx", "rcx", "rdx", "rdi", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory");
	_exit(0);
}

/* Looks at a page of a file, with calls announced all the time, after another process has cut it off and reported it. */
struct cut {
	volatile int ready, done;
};
static struct cut *cut;
static volatile char *mapped;

static void *looks(void *arg)
{
	volatile uint64_t *page;
	many_calls(200);
	page = own_page();
	for (;;) {
		int was_done = cut->done;
		leave_call(page, SYS_getppid, 0, 0, 0);
		(void)mapped[0];
		cut->ready = 1;
		if (was_done)
			_exit(77);
	}
}

static int keeps_a_page(void)
{
	int fd = memfd_create("cut", 0), status;
	cut = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || ftruncate(fd, 4096))
		return 1;
	pid_t pid = fork();
	if (pid == 0) {
		alarm(patience(5));
		mapped = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		mapped[0] = 1;
		looks(0);
	}
	while (!cut->ready && waitpid(pid, &status, WNOHANG) == 0)
		sched_yield();
	ftruncate(fd, 0);
	cut->done = 1;
	/* It ends by SIGBUS, or one of its announced calls has ended it before. */
	return waitpid(pid, &status, 0) != pid || WIFEXITED(status) && WEXITSTATUS(status) == 77;
}

static int attack(void)
{
	const char *gate = getenv("ATTACK_GATE");
	int won = 0;
	/* Many tries, each with a process of its own. */
	alarm(patience(90));
	if (!find())
		/* By another gate there is none of this. */
		return gate && strcmp(gate, "call") == 0 ? ENOENT : REFUSED;
	won |= won_by(unmap, 0);
	for (uintptr_t n = 0; n < part(8); n++)
		won |= won_by(forge, (void *)n);
	for (uintptr_t n = 0; n < 7; n++)
		won |= won_by(by_another, (void *)n);
	for (uintptr_t n = 0; n < 10; n++)
		won |= won_by(silent, (void *)n);
	uintptr_t start = (uintptr_t)code & -4096;
	for (uintptr_t n = 0; n < 1024 + 256; n += n < 1024 ? 5 : 1)
		won |= won_by(jump, (void *)(start + n));
	won |= keeps_a_page();
	many_calls(1000);
	return won ? 0 : REFUSED;
}
