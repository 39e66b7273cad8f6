/* Alternate stack: used with SA_ONSTACK, not nested, guarded while in use, catches a stack overflow. */
#include "t.h"
#include <setjmp.h>
static char *stk;
static sigjmp_buf j;
static int on(void *p) { return (char *)p >= stk && (char *)p < stk + 65536; }
static void h(int s)
{
	int x;
	stack_t o;
	sigaltstack(0, &o);
	say("%s on the stack %d flags %d\n", t_sig(s), on(&x), o.ss_flags);
	if (s == SIGUSR1) {
		stack_t n = {.ss_sp = stk, .ss_size = 65536};
		R(sigaltstack(&n, 0));
		raise(SIGUSR2);
	}
}
static void ov(int s, siginfo_t *i, void *u)
{
	int x;
	(void)i, (void)u;
	say("%s on the stack %d\n", t_sig(s), on(&x));
	siglongjmp(j, 1);
}
static int deep(volatile int n)
{
	if (n < 0)
		return 0;
	volatile char b[4096];
	b[n & 4095] = n;
	return deep(n + 1) + b[0];
}
static void *th(void *a)
{
	(void)a;
	stack_t o;
	sigaltstack(0, &o);
	N(o.ss_flags == SS_DISABLE);
	return 0;
}
int main(void)
{
	stk = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t s = {.ss_sp = stk, .ss_size = 65536}, o;
	R(sigaltstack(0, &o));
	N(o.ss_flags);
	t_handle(SIGUSR1, h, SA_ONSTACK);
	t_handle(SIGUSR2, h, 0);
	raise(SIGUSR1);
	stack_t none = {.ss_flags = SS_DISABLE};
	R(sigaltstack(&none, 0));
	s.ss_size = 100;
	R(sigaltstack(&s, 0));
	s.ss_size = 65536, s.ss_flags = 77;
	R(sigaltstack(&s, 0));
	s.ss_flags = 0;
	R(syscall(SYS_sigaltstack, 8, 0));
	R(sigaltstack(&s, &o));
	t_handle(SIGUSR2, h, 0);
	raise(SIGUSR1);
	t_handle(SIGUSR2, h, SA_ONSTACK);
	raise(SIGUSR1);
	raise(SIGUSR2);
	sigaltstack(0, &o);
	T(o.ss_sp == stk && o.ss_size == 65536 && o.ss_flags == 0);
	t_info(SIGSEGV, ov, SA_ONSTACK);
	struct rlimit l;
	getrlimit(RLIMIT_STACK, &l);
	l.rlim_cur = 1 << 20;
	setrlimit(RLIMIT_STACK, &l);
	if (!sigsetjmp(j, 1))
		deep(0);
	say("after the overflow\n");
	if (!sigsetjmp(j, 1))
		deep(0);
	say("after the second\n");
	CHILD("fork keeps it", sigaltstack(0, &o); N(o.ss_sp == stk));
	pthread_t t;
	pthread_create(&t, 0, th, 0);
	pthread_join(t, 0);
	s.ss_flags = SS_DISABLE;
	R(sigaltstack(&s, 0));
	sigaltstack(0, &o);
	N(o.ss_flags);
	CHILD("overflow with no stack", deep(0));
	CHILD("frame does not fit", {
		s.ss_flags = 0, s.ss_sp = stk;
		sigaltstack(&s, 0);
		munmap(stk, 65536);
		raise(SIGUSR1);
	});
	return t_done();
}
