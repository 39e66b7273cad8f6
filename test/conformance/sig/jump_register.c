/* Code that has jumped by rcx, which then holds its own address as behind a call, keeps its other registers over a signal: when a handler
 * sends it there, and when a timer interrupts it. */
/* not: i386 */
#include "t.h"
#include <ucontext.h>
extern char landed[], spinning[];
uint64_t got[2];
void by_handler(int pid);
void by_timer(void);
asm(".text\n"
    /* kill(pid, SIGUSR1), whose handler goes on at `landed`. */
    "by_handler: push %rbx; mov $62, %eax; mov $10, %esi; syscall; ud2\n"
    "by_timer: push %rbx; mov $0x1111, %r11d; lea spinning(%rip), %rcx; push $0x202; popfq\n"
    "spinning: jmp *%rcx\n"
    "landed: mov %r11, got(%rip); mov %rcx, 8+got(%rip); pop %rbx; ret\n");
static volatile int count;
static void handler(int signal, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	if (signal == SIGUSR1) {
		registers[REG_RIP] = registers[REG_RCX] = (uintptr_t)landed;
		registers[REG_R11] = 0x1111;
		registers[REG_EFL] = 0x202;
	} else if (++count == 20)
		registers[REG_RIP] = (uintptr_t)landed;
}
int main(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	struct itimerval often = {{0, 1000}, {0, 1000}}, never = {0};
	must(sigaction(SIGUSR1, &action, 0));
	must(sigaction(SIGALRM, &action, 0));
	by_handler(getpid());
	T(got[0] == 0x1111);
	T(got[1] == (uintptr_t)landed);
	must(setitimer(ITIMER_REAL, &often, 0));
	by_timer();
	must(setitimer(ITIMER_REAL, &never, 0));
	T(got[0] == 0x1111);
	T(got[1] == (uintptr_t)spinning);
	return 0;
}
