// The gates of 32-bit programs: `__kernel_vsyscall` by the processor's own instruction works as `int $0x80` does and keeps what
// it keeps; the clocks of the vDSO; far jumps to 64-bit code and back.
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned vsyscall __attribute__((used));

#define YES(condition) ((condition) ? "yes" : "no")

static long by_int80(long number, long a, long b, long c)
{
	long result;
	asm volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
	return result;
}

static long by_vsyscall(long number, long a, long b, long c)
{
	long result;
	asm volatile("call *vsyscall" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
	return result;
}

// Which instruction it is, by its bytes behind the three pushes.
static const char *instruction(void)
{
	const unsigned char *code = (const unsigned char *)(uintptr_t)vsyscall + 3;
	return !memcmp(code, "\x89\xe5\x0f\x34", 4) ? "sysenter" : !memcmp(code, "\x89\xcd\x0f\x05", 4) ? "syscall" : "int 0x80";
}

// All registers, and the flags: eax, ebx, ecx, edx, esi, edi, ebp, eflags.
struct registers {
	uint32_t word[8];
};

__attribute__((naked)) static void call_with(struct registers *r)
{
	asm volatile("push %ebx\n push %esi\n push %edi\n push %ebp\n mov 20(%esp), %edi\n push 28(%edi)\n popf\n"
		     "mov (%edi), %eax\n mov 4(%edi), %ebx\n mov 8(%edi), %ecx\n mov 12(%edi), %edx\n mov 16(%edi), %esi\n"
		     "mov 24(%edi), %ebp\n mov 20(%edi), %edi\n call *vsyscall\n"
		     "pushf\n cld\n push %edi\n mov 28(%esp), %edi\n mov %eax, (%edi)\n mov %ebx, 4(%edi)\n mov %ecx, 8(%edi)\n"
		     "mov %edx, 12(%edi)\n mov %esi, 16(%edi)\n mov %ebp, 24(%edi)\n pop %eax\n mov %eax, 20(%edi)\n"
		     "pop %eax\n mov %eax, 28(%edi)\n push $2\n popf\n pop %ebp\n pop %edi\n pop %esi\n pop %ebx\n ret");
}

// Direction, nested task, overflow, carry, identification: what a call must not be disturbed by and gives back. Not the alignment
// check, which the pushes of the vDSO would meet.
#define FLAGS 0x204c01

static int keeps(long number, long result)
{
	struct registers before, after;
	for (unsigned at = 0; at < 8; at++)
		before.word[at] = 0x11111111 * (at + 1);
	before.word[0] = number;
	before.word[7] = FLAGS | 0x202;
	if (number == SYS_getcwd) {
		before.word[1] = 0; // EFAULT: through the error's way
		before.word[2] = 16;
	}
	after = before;
	call_with(&after);
	before.word[0] = result;
	return (after.word[7] & FLAGS) == FLAGS && memcmp(&before, &after, 28) == 0;
}

// Six arguments: the last one of mmap2 counts pages of the file.
static int six(const char *self)
{
	unsigned char there[16];
	int fd = open(self, O_RDONLY);
	if (fd < 0 || pread(fd, there, sizeof there, 8192) != sizeof there)
		return 0;
	struct registers r = {{SYS_mmap2, 0, 4096, PROT_READ, MAP_PRIVATE, fd, 2, 0x202}};
	call_with(&r);
	close(fd);
	return r.word[0] < 0xfffff000 && !memcmp((void *)(uintptr_t)r.word[0], there, sizeof there);
}

static volatile int alarms;
static void on_alarm(int signal) { alarms++; }

// A read that a handler with SA_RESTART interrupts is made again; without the flag it ends with EINTR.
static int restarts(int flags, long wanted)
{
	int ends[2];
	char byte = 0;
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = flags};
	struct itimerval soon = {.it_value.tv_usec = 50000};
	sigaction(SIGALRM, &action, NULL);
	if (pipe(ends))
		return 0;
	alarms = 0;
	if (fork() == 0) {
		usleep(200000);
		_exit(write(ends[1], "x", 1) != 1);
	}
	setitimer(ITIMER_REAL, &soon, NULL);
	long got = by_vsyscall(SYS_read, ends[0], (long)&byte, 1);
	wait(NULL);
	close(ends[0]);
	close(ends[1]);
	return got == wanted && alarms == 1;
}

// A signal that comes with a call that returns at once: the handler runs, the call's result stays.
static int with_signal(void)
{
	alarms = 0;
	signal(SIGUSR1, on_alarm);
	return by_vsyscall(SYS_kill, getpid(), SIGUSR1, 0) == 0 && alarms == 1;
}

static volatile int steps, inside;
static void on_step(int signal, siginfo_t *info, void *context)
{
	unsigned at = ((ucontext_t *)context)->uc_mcontext.gregs[REG_EIP];
	steps++;
	inside |= at > vsyscall + 8 && at < vsyscall + 13;
}

// Stepped through: every instruction in front of and behind the kernel, and nothing of the kernel's.
static int stepped(void)
{
	struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
	sigaction(SIGTRAP, &action, NULL);
	long pid;
	unsigned flags;
	asm volatile("pushf\n orl $0x100, (%%esp)\n popf\n call *vsyscall\n pushf\n pushf\n andl $~0x100, (%%esp)\n popf\n pop %1"
		     : "=a"(pid), "=r"(flags) : "a"(SYS_getpid) : "memory", "cc");
	return pid == getpid() && (flags & 0x100) && inside && steps > 8 && steps < 24;
}

static void *function(const char *name)
{
	Elf32_Ehdr *eh = (void *)getauxval(AT_SYSINFO_EHDR);
	Elf32_Phdr *ph = (void *)((char *)eh + eh->e_phoff);
	Elf32_Dyn *d = 0;
	for (int i = 0; i < eh->e_phnum; i++)
		if (ph[i].p_type == PT_DYNAMIC)
			d = (void *)((char *)eh + ph[i].p_offset);
	char *strings = 0;
	Elf32_Sym *symbols = 0;
	uint32_t *hash = 0;
	for (; d->d_tag; d++) {
		void *at = (char *)eh + d->d_un.d_ptr;
		if (d->d_tag == DT_STRTAB) strings = at;
		if (d->d_tag == DT_SYMTAB) symbols = at;
		if (d->d_tag == DT_HASH) hash = at;
	}
	for (uint32_t i = 1; i < hash[1]; i++)
		if (!strcmp(strings + symbols[i].st_name, name))
			return (char *)eh + symbols[i].st_value;
	return 0;
}

static int in_order(const int64_t *a, const int64_t *b)
{
	return a[0] < b[0] || (a[0] == b[0] && a[1] <= b[1]);
}

static void clocks(void)
{
	int (*gettime)(int, int32_t *) = function("__vdso_clock_gettime");
	int (*gettime64)(int, int64_t *) = function("__vdso_clock_gettime64");
	int (*getres)(int, int32_t *) = function("__vdso_clock_getres");
	int (*day)(int32_t *, int32_t *) = function("__vdso_gettimeofday");
	int32_t (*seconds)(int32_t *) = function("__vdso_time");
	int (*processor)(unsigned *, unsigned *, void *) = function("__vdso_getcpu");
	if (!gettime || !gettime64 || !getres || !day || !seconds || !processor) {
		printf("functions of the vDSO are missing\n");
		return;
	}
	static const int good[] = {0, 1, 4, 5, 6, 7, 11, 2, 3};
	int right = 1;
	for (unsigned at = 0; at < sizeof good / sizeof *good; at++) {
		int64_t before[2], there[2], after[2];
		int32_t narrow[2] = {0}, res[2] = {9, 9}, known[2];
		int clock = good[at];
		by_int80(403, clock, (long)before, 0);
		right &= gettime64(clock, there) == 0 && gettime(clock, narrow) == 0;
		by_int80(403, clock, (long)after, 0);
		int64_t wide[2] = {narrow[0], narrow[1]};
		right &= in_order(before, there) && in_order(there, wide) && in_order(wide, after);
		right &= getres(clock, res) == 0 && by_int80(SYS_clock_getres, clock, (long)known, 0) == 0;
		right &= res[0] == known[0] && res[1] == known[1] && getres(clock, NULL) == 0;
	}
	printf("clocks of the vDSO: %s\n", YES(right));
	int64_t wide[2];
	int32_t narrow[2];
	printf("no such clock: %d %d %d\n", gettime64(99, wide), gettime(-1, narrow), getres(12, narrow));
	int32_t tv[2], zone[2] = {7, 7}, now = 0;
	int64_t before[2], after[2];
	by_int80(403, 0, (long)before, 0);
	right = day(tv, zone) == 0 && zone[0] == 0 && zone[1] == 0 && day(NULL, NULL) == 0;
	int32_t second = seconds(&now);
	by_int80(403, 0, (long)after, 0);
	int64_t micros[2] = {tv[0], tv[1] * 1000ll + 999};
	right &= tv[1] >= 0 && tv[1] < 1000000 && in_order(before, micros) && tv[0] <= after[0];
	right &= second == now && seconds(NULL) >= now && second >= before[0] && second <= after[0];
	printf("gettimeofday, time: %s\n", YES(right));
	unsigned cpu = 99, node = 99;
	printf("getcpu: %s\n", YES(processor(&cpu, &node, NULL) == 0 && cpu < 64 && node == 0 && processor(NULL, NULL, NULL) == 0));
}

static char *low;
static struct __attribute__((packed)) {
	uint32_t offset;
	uint16_t selector;
} to64 __attribute__((used)), back __attribute__((used)) = {0, 0x23};

// Runs 64-bit code: a number in eax; then eax. It comes back by a far jump.
static long wide(const char *code, unsigned length, long number)
{
	// jmp far [rip]: the address and the selector behind it.
	memcpy(low, code, length);
	memcpy(low + length, "\xff\x2d\0\0\0\0", 6);
	to64.offset = (uint32_t)(uintptr_t)low;
	to64.selector = 0x33;
	long result;
	asm volatile("movl $1f, %%ecx\n mov %%ecx, 6(%[end])\n movw $0x23, 10(%[end])\n ljmp *to64\n 1:"
		     : "=a"(result) : "a"(number), [end] "d"(low + length) : "ecx", "ebx", "esi", "edi", "memory", "cc");
	return result;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	long pid = getpid();
	vsyscall = getauxval(AT_SYSINFO);
	printf("calls by %s\n", instruction());
	printf("answers: %s\n", YES(by_int80(SYS_getpid, 0, 0, 0) == pid && by_vsyscall(SYS_getpid, 0, 0, 0) == pid));
	printf("keeps: %s %s %s\n", YES(keeps(SYS_getpid, pid)), YES(keeps(SYS_getcwd, -14)), YES(keeps(99999, -38)));
	printf("six arguments: %s\n", YES(six(argv[0])));
	printf("restarts: %s %s\n", YES(restarts(SA_RESTART, 1)), YES(restarts(0, -4)));
	printf("with a signal: %s\n", YES(with_signal()));
	printf("stepped: %s\n", YES(stepped()));
	clocks();
	low = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	// push rbx; push rsi; push rdi; push rbp... the native getpid by `syscall`; `int $0x80` in 64-bit code.
	printf("64-bit code: %s %s\n", YES(wide("\x0f\x05", 2, 39) == pid), YES(wide("\xcd\x80", 2, SYS_getpid) == pid));
	// By the machine's own numbers, from 32-bit code.
	long own;
	asm volatile("int $0x30" : "=a"(own) : "a"(39) : "memory");
	printf("int 0x30: %s\n", YES(own == pid));
	return 0;
}
