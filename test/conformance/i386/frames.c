/* The signal frames of 32-bit code, with and without SA_SIGINFO, by the calls themselves. */
/* only: i386 i386-static */
#include "t.h"
#include <sys/ucontext.h>

struct action { void *handler; unsigned flags; void *restorer; unsigned mask[2]; };
struct old_action { void *handler; unsigned mask, flags; void *restorer; };

static volatile int number, code, matches, depth;
static volatile unsigned extra;

/* What the kernel calls, without anything of the C library between. */
static void plain(int s, struct sigcontext sc)
{
	number = s;
	matches = sc.ss == 0x2b && sc.cs == 0x23 && sc.ds == 0x2b && sc.es == 0x2b && sc.esp_at_signal == sc.esp;
	matches += sc.fpstate != 0 && ((struct _fpstate *)sc.fpstate)->magic == 0;
}

static void info(int s, siginfo_t *i, void *p)
{
	ucontext_t *u = p;
	number = s;
	code = i->si_code;
	extra = (unsigned)i->si_value.sival_int;
	matches = (u->uc_mcontext.gregs[REG_CS] & 0xffff) == 0x23;
	if (i->si_code == SI_USER) {
		u->uc_mcontext.gregs[REG_EBX] = 0x4321;
		u->uc_mcontext.gregs[REG_EAX] = 77;
	}
}

static void skip(int s, siginfo_t *i, void *p)
{
	ucontext_t *u = p;
	number = s;
	code = i->si_code;
	extra = (unsigned)i->si_addr;
	/* ud2, or the two bytes of a store through a null pointer */
	u->uc_mcontext.gregs[REG_EIP] += 2;
}

static void nested(int s)
{
	if (depth++ == 0)
		raise(SIGUSR2);
	number = number * 10 + (s == SIGUSR1);
}

static void computing(int s)
{
	asm volatile("fninit; fld1; fld1; fld1; pxor %xmm0, %xmm0");
}

static void set(int s, void *f, unsigned flags)
{
	struct action a = { f, flags, 0, { 0, 0 } };
	R(syscall(SYS_rt_sigaction, s, &a, 0, 8));
}

int main(void)
{
	/* Without a restorer the return is the vDSO's. */
	set(SIGUSR1, plain, 0);
	R(kill(getpid(), SIGUSR1));
	N(number), N(matches);
	struct old_action o = { plain, 0, SA_RESETHAND, 0 }, was;
	R(syscall(SYS_sigaction, SIGUSR2, &o, 0));
	R(kill(getpid(), SIGUSR2));
	N(number), N(matches);
	R(syscall(SYS_sigaction, SIGUSR2, 0, &was));
	T(was.handler == (void *)SIG_DFL);

	set(SIGUSR1, info, SA_SIGINFO);
	union sigval v = { .sival_int = 99 };
	R(sigqueue(getpid(), SIGUSR1, v));
	N(number), N(code), N(extra);
	/* Registers come back as the handler left them. */
	int result, left;
	asm volatile("push %%ebx\n mov $0x1234, %%ebx\n int $0x80\n mov %%ebx, %1\n pop %%ebx"
		     : "=a"(result), "=&D"(left) : "a"(SYS_alarm), "c"(0) : "memory");
	N(left);
	pid_t self = getpid();
	asm volatile("push %%ebx\n mov %2, %%ebx\n int $0x80\n mov %%ebx, %1\n pop %%ebx"
		     : "=a"(result), "=&D"(left) : "S"(self), "a"(SYS_kill), "c"(SIGUSR1) : "memory");
	N(result), N(left), N(number);

	set(SIGILL, skip, SA_SIGINFO);
	asm volatile("ud2");
	N(number), N(code);
	set(SIGSEGV, skip, SA_SIGINFO);
	asm volatile("movl %0, (%1)" :: "r"(1), "r"(16) : "memory");
	N(number), N(code), N(extra);

	number = 0;
	signal(SIGUSR1, nested), signal(SIGUSR2, nested);
	R(raise(SIGUSR1));
	N(number);

	/* x87 and SSE registers survive a handler that uses them. */
	signal(SIGUSR1, computing);
	double st = 0;
	int lanes[4] = { 1, 2, 3, 4 }, after[4];
	asm volatile("fninit\n fldpi\n movdqu %2, %%xmm0\n int $0x80\n movdqu %%xmm0, %1\n fstpl %0"
		     : "=m"(st), "=m"(after)
		     : "m"(lanes), "a"(SYS_kill), "b"(getpid()), "c"(SIGUSR1)
		     : "memory");
	T(st > 3.14159 && st < 3.1416);
	N(after[0]), N(after[3]);

	/* An alternate stack. */
	static char room[65536];
	stack_t ss = { room, 0, sizeof room }, old;
	R(sigaltstack(&ss, 0));
	set(SIGUSR2, skip, SA_SIGINFO | SA_ONSTACK);
	asm volatile("" ::: "memory");
	struct sigaction by_library = { .sa_handler = nested, .sa_flags = SA_ONSTACK };
	depth = 1;
	sigaction(SIGUSR2, &by_library, 0);
	R(raise(SIGUSR2));
	R(sigaltstack(0, &old));
	N(old.ss_flags), N(old.ss_size);

	/* Masks of old: one word. */
	unsigned mask = 1u << (SIGUSR1 - 1), before = 0, pending = 0;
	R(syscall(SYS_sigprocmask, SIG_BLOCK, &mask, &before));
	N(before);
	R(raise(SIGUSR1));
	R(syscall(SYS_sigpending, &pending));
	T(pending == mask);
	R(syscall(SYS_sigprocmask, SIG_UNBLOCK, &mask, 0));
	R(syscall(SYS_sigpending, &pending));
	N(pending);

	/* A call that a handler interrupts: restarted, or not. */
	pid_t child;
	int p[2];
	char c;
	must(pipe(p));
	struct sigaction again = { .sa_handler = nested, .sa_flags = SA_RESTART };
	sigaction(SIGUSR1, &again, 0);
	if (!(child = fork())) {
		usleep(100000);
		kill(getppid(), SIGUSR1);
		usleep(100000);
		_exit(write(p[1], "x", 1) != 1);
	}
	R(read(p[0], &c, 1));
	waitpid(child, 0, 0);
	again.sa_flags = 0;
	sigaction(SIGUSR1, &again, 0);
	if (!(child = fork())) {
		usleep(100000);
		_exit(kill(getppid(), SIGUSR1));
	}
	R(read(p[0], &c, 1));
	waitpid(child, 0, 0);
	return t_failed;
}
