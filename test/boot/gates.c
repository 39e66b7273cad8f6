// Every gate of the bare x86_64 machine works as `syscall` does, and keeps what it promises to keep.
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long by_int30(long number, long a, long b, long c)
{
	register long r10 asm("r10") = 10, r8 asm("r8") = 8, r9 asm("r9") = 9;
	long result;
	uint64_t rcx = 0x1234, r11 = 0x5678;
	asm volatile("mov %[cx], %%rcx\n mov %[r11], %%r11\n int $0x30\n mov %%rcx, %[cx]\n mov %%r11, %[r11]"
		     : "=a"(result), [cx] "+r"(rcx), [r11] "+r"(r11)
		     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
		     : "rcx", "r11", "memory");
	if (rcx != 0x1234 || r11 != 0x5678)
		printf("int 0x30 lost rcx or r11\n");
	return result;
}

static long by_lock_nop(long number, long a, long b, long c)
{
	long result;
	asm volatile(".byte 0xf0, 0x90" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "memory");
	return result;
}

static long by_sysenter(long number, long a, long b, long c)
{
	long result;
	asm volatile("lea 1f(%%rip), %%rcx\n mov %%rsp, %%r11\n sysenter\n 1:"
		     : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

static long by_call_gate(long number, long a, long b, long c)
{
	static const struct __attribute__((packed)) {
		uint32_t offset;
		uint16_t selector;
	} gate = {0, 0x53};
	long result;
	asm volatile("lcall *%[gate]\n int $0x30"
		     : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), [gate] "m"(gate) : "memory");
	return result;
}

static volatile int alarms;
static void on_alarm(int signal) { (void)signal; alarms++; }

// A read that a handler with SA_RESTART interrupts is made again by the gate it came by.
static void restarts(const char *name, long (*by)(long, long, long, long))
{
	int ends[2];
	char byte = 0;
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	struct itimerval soon = {.it_value.tv_usec = 50000};
	sigaction(SIGALRM, &action, NULL);
	if (pipe(ends))
		return;
	alarms = 0;
	if (fork() == 0) {
		usleep(200000);
		_exit(write(ends[1], "x", 1) != 1);
	}
	setitimer(ITIMER_REAL, &soon, NULL);
	long got = by(SYS_read, ends[0], (long)&byte, 1);
	wait(NULL);
	printf("%s restarts: %s\n", name, got == 1 && byte == 'x' && alarms == 1 ? "yes" : "no");
	close(ends[0]);
	close(ends[1]);
}

// Single steps into the kernel stop nobody but themselves.
static void on_step(int signal) { (void)signal; }
static void steps(void)
{
	signal(SIGTRAP, on_step);
	long pid = getpid(), one, two;
	asm volatile("lea -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n"
		     "lea 1f(%%rip), %%rcx\n mov %%rsp, %%r11\n sysenter\n 1:\n"
		     "pushfq\n andq $~0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp"
		     : "=a"(one) : "a"(SYS_getpid) : "rcx", "r11", "memory", "cc");
	asm volatile("lea -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n syscall\n"
		     "pushfq\n andq $~0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp"
		     : "=a"(two) : "a"(SYS_getpid) : "rcx", "r11", "memory", "cc");
	printf("single steps: %s\n", one == pid && two == pid ? "harmless" : "wrong");
}

int main(void)
{
	long pid = getpid();
	printf("syscall %s\n", syscall(SYS_getpid) == pid ? "ok" : "wrong");
	printf("int 0x30 %s\n", by_int30(SYS_getpid, 0, 0, 0) == pid ? "ok" : "wrong");
	printf("lock nop %s\n", by_lock_nop(SYS_getpid, 0, 0, 0) == pid ? "ok" : "wrong");
	printf("sysenter %s\n", by_sysenter(SYS_getpid, 0, 0, 0) == pid ? "ok" : "wrong");
	printf("call gate %s\n", by_call_gate(SYS_getpid, 0, 0, 0) == pid ? "ok" : "wrong");
	fflush(stdout);
	by_int30(SYS_write, 1, (long)"int 0x30 writes\n", 16);
	by_lock_nop(SYS_write, 1, (long)"lock nop writes\n", 16);

	by_sysenter(SYS_write, 1, (long)"sysenter writes\n", 16);
	by_call_gate(SYS_write, 1, (long)"call gate writes\n", 17);
	restarts("int 0x30", by_int30);
	restarts("lock nop", by_lock_nop);
	restarts("sysenter", by_sysenter);
	restarts("call gate", by_call_gate);
	fflush(stdout);
	steps();

	long (*vsyscall_time)(long *) = (long (*)(long *))0xffffffffff600400;
	long (*vsyscall_gettimeofday)(struct timeval *, void *) =
		(long (*)(struct timeval *, void *))0xffffffffff600000;
	struct timeval tv = {0};
	time_t now = time(NULL);
	long there = vsyscall_time(NULL);
	printf("vsyscall time %s\n", there >= now && there - now < 3 ? "ok" : "wrong");
	printf("vsyscall gettimeofday %s\n",
	       vsyscall_gettimeofday(&tv, NULL) == 0 && tv.tv_sec >= now ? "ok" : "wrong");
	printf("no such call: %ld %ld\n", by_int30(9999, 0, 0, 0), by_lock_nop(9999, 0, 0, 0));
	return 0;
}
