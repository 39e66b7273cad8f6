// What would harm the machine ends the program that does it, and nothing else.
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void null_read(void) { (void)*(volatile int *)0; }
static void kernel_read(void) { (void)*(volatile int *)0xffffffff80100000; }
static void kernel_write(void) { *(volatile int *)0xffff800000100000 = 1; }
static void kernel_jump(void) { ((void (*)(void))0xffffffff80109000)(); }
static void non_canonical_jump(void) { ((void (*)(void))0x8000000000000000)(); }
static void non_canonical_read(void) { (void)*(volatile int *)0x8000000000000000; }
static void halts(void) { asm volatile("hlt"); }
static void masks(void) { asm volatile("cli"); }
static void ports(void) { asm volatile("outb %%al, $0xf4" : : "a"(0x10)); }
static void page_table(void) { asm volatile("mov %%rax, %%cr3" : : "a"(0)); }
static void msr(void) { asm volatile("wrmsr" : : "c"(0xc0000082), "a"(0), "d"(0)); }
static void invalid(void) { asm volatile("ud2"); }
static void divides(void) { asm volatile("div %%ecx" : : "a"(1), "d"(0), "c"(0)); }
static void breakpoint(void) { asm volatile("int3"); }
static void gate_of_kernel(void) { asm volatile("int $0xef"); }
static void stack_in_kernel(void) { asm volatile("mov %0, %%rsp; push %%rax" : : "r"(0xffff800000200000)); }
static void null_stack(void) { asm volatile("xor %esp, %esp; syscall; push %rax"); }
static void data_is_no_code(void)
{
	static unsigned char code[] = {0xc3};
	((void (*)(void))code)();
}
static void text_is_read_only(void) { *(volatile char *)(uintptr_t)text_is_read_only = 0; }
static void returns_from_no_signal(void)
{
	// A signal frame of garbage: whatever it asks for must not reach the kernel.
	static unsigned char garbage[4096];
	for (unsigned i = 0; i < sizeof garbage; i++)
		garbage[i] = 0xa5;
	asm volatile("mov %0, %%rsp; mov $15, %%eax; syscall" : : "r"(garbage + 1024) : "memory");
}

static void all_memory(void)
{
	// More than the machine has.
	char *all = mmap(NULL, 1L << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	for (long at = 0; at < 1L << 30; at += 4096)
		all[at] = 1;
}

#define CASE(name) {#name, name}
static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	CASE(null_read), CASE(kernel_read), CASE(kernel_write), CASE(kernel_jump), CASE(non_canonical_jump),
	CASE(non_canonical_read), CASE(halts), CASE(masks), CASE(ports), CASE(page_table), CASE(msr), CASE(invalid),
	CASE(divides), CASE(breakpoint), CASE(gate_of_kernel), CASE(stack_in_kernel), CASE(null_stack),
	CASE(data_is_no_code), CASE(text_is_read_only), CASE(returns_from_no_signal), CASE(all_memory),
};

int main(void)
{
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		int status;
		pid_t child = fork();
		if (child == 0) {
			cases[i].run();
			_exit(0);
		}
		waitpid(child, &status, 0);
		printf("%s %d\n", cases[i].name, WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status));
	}
	return 0;
}
