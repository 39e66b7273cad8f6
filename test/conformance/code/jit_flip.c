/* A JIT that keeps its code either writable or executable: mprotect(2) between the two, at once and often. */
#include "t.h"
#include <setjmp.h>
#define PAGE 4096
typedef int fn(void);
/* mov $value, %eax; ret */
static void emit(unsigned char *p, int value)
{
	p[0] = 0xb8;
	memcpy(p + 1, &value, 4);
	p[5] = 0xc3;
}

static volatile int code, at_fault;
static char *fault;
static sigjmp_buf out;
static void on(int s, siginfo_t *i, void *c)
{
	code = i->si_code;
	at_fault = (char *)i->si_addr == fault;
	siglongjmp(out, s);
}
#define FAULTS(stmt) ({ int s_ = sigsetjmp(out, 1); if (!s_) { stmt; } s_; })
int main(void)
{
	t_info(SIGSEGV, on, 0);
	unsigned char *p = mmap(0, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	T(p != MAP_FAILED);
	fault = (char *)p;
	emit(p, 7);
	N(FAULTS(((fn *)p)()));
	N(code);
	T(at_fault);
	R(mprotect(p, 16 * PAGE, PROT_READ | PROT_EXEC));
	N(((fn *)p)());
	N(FAULTS(*p = 1));
	N(code);
	T(at_fault);
	/* One function after another, each in the place of the one before. */
	long sum = 0, bad = 0;
	for (int i = 0; i < 2000; i++) {
		unsigned char *at = p + i * 37 % (16 * PAGE - 8);
		bad += mprotect(p, 16 * PAGE, PROT_READ | PROT_WRITE) != 0;
		emit(at, i);
		bad += mprotect(p, 16 * PAGE, PROT_READ | PROT_EXEC) != 0;
		sum += ((fn *)at)();
	}
	N(sum);
	N(bad);
	/* Only the page that changes. */
	for (int i = 0; i < 16; i++) {
		mprotect(p + i * PAGE, PAGE, PROT_READ | PROT_WRITE);
		emit(p + i * PAGE, 100 + i);
		mprotect(p + i * PAGE, PAGE, PROT_READ | PROT_EXEC);
	}
	sum = 0;
	for (int i = 0; i < 16; i++)
		sum += ((fn *)(p + i * PAGE))();
	N(sum);
	/* Code that runs from one page into the next. */
	mprotect(p, 2 * PAGE, PROT_READ | PROT_WRITE);
	emit(p + PAGE - 3, 0x1234567);
	mprotect(p, 2 * PAGE, PROT_READ | PROT_EXEC);
	N(((fn *)(p + PAGE - 3))());
	/* No access at all and back. */
	R(mprotect(p, PAGE, PROT_NONE));
	N(FAULTS(((fn *)p)()));
	R(mprotect(p, PAGE, PROT_READ | PROT_EXEC));
	return t_done();
}
