// What 32-bit code must not do through the gates of 32-bit programs: each line is one attempt, in a process of its own.
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char *low;
static int fast; // whether the processor's instruction is sysenter

static struct __attribute__((packed)) far {
	uint32_t offset;
	uint16_t selector;
} far __attribute__((used));

// The processor's instruction, on this stack.
static void on_stack(uint32_t stack)
{
	if (fast)
		asm volatile("mov %0, %%ebp\n sysenter" : : "r"(stack), "a"(SYS_getpid) : "memory");
	else
		asm volatile("mov %0, %%esp\n xor %%ebp, %%ebp\n syscall" : : "r"(stack), "a"(SYS_getpid) : "memory");
}
static void null_stack(void) { on_stack(0); }
static void kernel_stack(void) { on_stack(0xfffff000); }
static void stack_at_the_end(void) { on_stack(0xfffffffe); }
static void odd_null_stack(void) { on_stack(1); }
static void unmapped_stack(void)
{
	char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(page + 4096, 4096);
	on_stack((uint32_t)page + 4094); // half of the word is there
}
static void unreadable_stack(void)
{
	on_stack((uint32_t)mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}
// A stack nobody has touched: the page is brought for the kernel, and the pops are good.
static void fresh_odd_stack(void)
{
	char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	on_stack((uint32_t)page + 3); // returns to 0
}
static void no_landing(void)
{
	uint32_t vdso = getauxval(AT_SYSINFO_EHDR);
	munmap((void *)vdso, 4096);
	on_stack((uint32_t)low + 2048);
}
static void written_landing(void)
{
	// The landing place is the program's affair: what it puts there is executed in ring 3.
	uint32_t vdso = getauxval(AT_SYSINFO_EHDR);
	mmap((void *)vdso, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	memset((void *)vdso, 0xf4, 4096); // hlt
	on_stack((uint32_t)low + 2048);
}
static void step_in(void)
{
	asm volatile("pushf\n orl $0x100, (%%esp)\n popf" : : : "memory", "cc");
	on_stack((uint32_t)low + 2048);
}
static void huge_number(void)
{
	long result;
	asm volatile("call *%1" : "=a"(result) : "r"(getauxval(AT_SYSINFO)), "a"(0x80000000) : "memory");
	asm volatile("call *%1" : "=a"(result) : "r"(getauxval(AT_SYSINFO)), "a"(-1) : "memory");
	_exit(result == -38 ? 7 : 0);
}

// Far jumps.
static void jump(uint32_t offset, uint16_t selector)
{
	far = (struct far){offset, selector};
	asm volatile("ljmp *far");
}
static void far_to_kernel_code(void) { jump((uint32_t)low, 0x10); }
static void far_to_kernel_code_rpl3(void) { jump((uint32_t)low, 0x13); }
static void far_to_kernel_data(void) { jump((uint32_t)low, 0x18); }
static void far_to_task(void) { jump(0, 0x40); }
static void far_to_null(void) { jump((uint32_t)low, 0); }
static void far_to_nothing(void) { jump(0, 0x33); }
static void far_beyond(void) { jump(0, 0x1f3); }
static void kernel_stack_segment(void) { asm volatile("mov %0, %%ss" : : "r"(0x18)); }
// Not lret and iret: QEMU 7.2 reads their stack as the kernel would (docs/x86_64.md).
static void leaves_by_sysexit(void) { asm volatile("sysexit"); }

// 64-bit code of a 32-bit program: what it has in the upper halves counts for nothing.
static void wide(const char *code, unsigned length)
{
	memcpy(low, code, length);
	jump((uint32_t)low, 0x33);
}
// The registers' upper halves point into the kernel: mov $SYS_getpid, %eax; movabs $0xffff800000000000, %rbx; mov %ebp, %ecx;
// lea (%rbx,%rcx), %rbp; mov %rbp, %rsp; sysenter, whose return is to 32-bit code on the stack at the lower half.
static void wide_sysenter(void)
{
	if (!fast)
		raise(SIGSEGV); // it would be an invalid instruction
	*(uint32_t *)(low + 2048 + 12) = 0; // pops, then returns to 0
	asm volatile("" : : : "memory");
	memcpy(low, "\xb8\x14\0\0\0\x48\xbb\0\0\0\0\0\x80\xff\xff\x89\xe9\x48\x8d\x2c\x0b\x48\x89\xec\x0f\x34", 26);
	far = (struct far){(uint32_t)low, 0x33};
	asm volatile("mov %0, %%ebp\n ljmp *far" : : "r"(low + 2048));
}
// mov $-4096, %rax; jmp *%rax
static void wide_jump_to_kernel(void) { wide("\x48\xc7\xc0\0\xf0\xff\xff\xff\xe0", 9); }
// movabs $0x8000000000000000, %rsp; push %rax
static void wide_bad_stack(void) { wide("\x48\xbc\0\0\0\0\0\0\0\x80\x50", 11); }
// mov $0, %ecx; sysretq
static void wide_sysret(void) { wide("\xb9\0\0\0\0\x48\x0f\x07", 8); }

#define CASE(name) {#name, name}
static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	CASE(null_stack), CASE(kernel_stack), CASE(stack_at_the_end), CASE(odd_null_stack), CASE(unmapped_stack),
	CASE(unreadable_stack), CASE(fresh_odd_stack), CASE(no_landing), CASE(written_landing), CASE(step_in), CASE(huge_number),
	CASE(far_to_kernel_code), CASE(far_to_kernel_code_rpl3), CASE(far_to_kernel_data), CASE(far_to_task), CASE(far_to_null),
	CASE(far_to_nothing), CASE(far_beyond), CASE(kernel_stack_segment),
	CASE(leaves_by_sysexit), CASE(wide_sysenter), CASE(wide_jump_to_kernel), CASE(wide_bad_stack),
	CASE(wide_sysret),
};

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	fast = ((unsigned char *)getauxval(AT_SYSINFO))[6] == 0x34;
	low = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (unsigned at = 0; at < sizeof cases / sizeof *cases; at++) {
		int status;
		pid_t child = fork();
		if (child == 0) {
			cases[at].run();
			_exit(0);
		}
		waitpid(child, &status, 0);
		printf("%s %d\n", cases[at].name, WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status));
	}
	return 0;
}
