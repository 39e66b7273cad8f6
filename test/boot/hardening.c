// What the gates must not do, whatever a program has in its registers: each line is one attempt, in a process of its own where it
// is to end it.
#define _GNU_SOURCE
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KERNEL 0xffff800000200000
#define NON_CANONICAL 0x8000000000000000

static const struct __attribute__((packed)) {
	uint32_t offset;
	uint16_t selector;
} gate __attribute__((used)) = {0, 0x53}, kernel_code = {0, 0x10}, task = {0, 0x40};

// Return addresses and stacks that ring 3 has no right to.
static void sysenter_to(uint64_t rip, uint64_t rsp)
{
	asm volatile("mov %0, %%rcx\n mov %1, %%r11\n sysenter" : : "r"(rip), "r"(rsp), "a"(SYS_getpid) : "rcx", "r11");
}
static void returns_to_kernel(void) { sysenter_to(0xffffffff80100000, 0); }
static void returns_to_non_canonical(void) { sysenter_to(NON_CANONICAL, 0); }
static void returns_to_hole(void) { sysenter_to(0x7fffffffffff, 0); }
static void returns_to_null(void) { sysenter_to(0, 0); }
static void vsyscall_on(uint64_t stack)
{
	asm volatile("mov %0, %%rsp\n mov $0xffffffffff600400, %%rax\n xor %%edi, %%edi\n jmp *%%rax" : : "r"(stack));
}
static void vsyscall_on_kernel_stack(void) { vsyscall_on(KERNEL); }
static void vsyscall_at_the_end(void) { vsyscall_on(0x7fffffffff80); }
static void vsyscall_on_null(void) { vsyscall_on(0); }
static void vsyscall_on_non_canonical(void) { vsyscall_on(NON_CANONICAL); }
static void vsyscall_middle(void) { ((void (*)(void))0xffffffffff600404)(); }
static void vsyscall_read(void) { (void)*(volatile int *)0xffffffffff600000; }

// Privileged instructions and descriptors.
static void loads_gdt(void) { uint64_t table[2] = {0}; asm volatile("lgdt %0" : : "m"(table)); }
static void stores_gdt(void) { uint64_t table[2]; asm volatile("sgdt %0" : "=m"(table)); }
static void stores_machine_word(void) { uint64_t word; asm volatile("smsw %0" : "=r"(word)); }
static void swaps_gs(void) { asm volatile("swapgs"); }
static void opens_user_memory(void) { asm volatile("stac"); }
static void cr0(void) { asm volatile("mov %%cr0, %%rax" : : : "rax"); }
static void cr4(void) { asm volatile("mov %%rax, %%cr4" : : "a"(0)); }
static void returns_by_sysret(void) { asm volatile("mov $0, %%ecx\n sysretq" : : : "rcx"); }
static void leaves_by_sysexit(void) { asm volatile("sysexit"); }
static void far_to_kernel_code(void) { asm volatile("lcall *%0" : : "m"(kernel_code)); }
static void far_to_task(void) { asm volatile("lcall *%0" : : "m"(task)); }
static void kernel_stack_segment(void) { asm volatile("mov %0, %%ss" : : "r"(0x18)); }
static void raises(int vector)
{
	switch (vector) {
	case 0x08: asm volatile("int $0x08"); break;
	case 0x0e: asm volatile("int $0x0e"); break;
	case 0x02: asm volatile("int $0x02"); break;
	case 0xf0: asm volatile("int $0xf0"); break;
	case 0xff: asm volatile("int $0xff"); break;
	}
}
static void raises_nmi(void) { raises(0x02); }
static void raises_double_fault(void) { raises(0x08); }
static void raises_page_fault(void) { raises(0x0e); }
static void raises_interrupt(void) { raises(0xf0); }
static void raises_spurious(void) { raises(0xff); }

#define CASE(name) {#name, name}
static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	CASE(returns_to_kernel), CASE(returns_to_non_canonical), CASE(returns_to_hole), CASE(returns_to_null),
	CASE(vsyscall_on_kernel_stack), CASE(vsyscall_at_the_end), CASE(vsyscall_on_null), CASE(vsyscall_on_non_canonical),
	CASE(vsyscall_middle), CASE(vsyscall_read), CASE(loads_gdt), CASE(stores_gdt), CASE(stores_machine_word), CASE(swaps_gs),
	CASE(opens_user_memory), CASE(cr0), CASE(cr4), CASE(returns_by_sysret), CASE(leaves_by_sysexit), CASE(far_to_kernel_code),
	CASE(far_to_task), CASE(kernel_stack_segment), CASE(raises_nmi), CASE(raises_double_fault),
	CASE(raises_page_fault), CASE(raises_interrupt), CASE(raises_spurious),
};

// A call by each gate with the registers of this structure; what is in them afterwards.
struct registers {
	uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15, flags;
};
#define CALL(name, before, instruction) \
	__attribute__((naked)) static void name(struct registers *r) \
	{ \
		asm volatile("push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n push %rdi\n" \
			     "push 120(%rdi)\n popfq\n" \
			     "mov (%rdi), %rax\n mov 8(%rdi), %rbx\n mov 16(%rdi), %rcx\n mov 24(%rdi), %rdx\n" \
			     "mov 32(%rdi), %rsi\n mov 48(%rdi), %rbp\n mov 56(%rdi), %r8\n mov 64(%rdi), %r9\n" \
			     "mov 72(%rdi), %r10\n mov 80(%rdi), %r11\n mov 88(%rdi), %r12\n mov 96(%rdi), %r13\n" \
			     "mov 104(%rdi), %r14\n mov 112(%rdi), %r15\n mov 40(%rdi), %rdi\n" before instruction \
			     "\n pushfq\n cld\n xchg %rdi, 8(%rsp)\n mov %rax, (%rdi)\n mov %rbx, 8(%rdi)\n mov %rcx, 16(%rdi)\n" \
			     "mov %rdx, 24(%rdi)\n mov %rsi, 32(%rdi)\n mov %rbp, 48(%rdi)\n mov %r8, 56(%rdi)\n" \
			     "mov %r9, 64(%rdi)\n mov %r10, 72(%rdi)\n mov %r11, 80(%rdi)\n mov %r12, 88(%rdi)\n" \
			     "mov %r13, 96(%rdi)\n mov %r14, 104(%rdi)\n mov %r15, 112(%rdi)\n pop %rax\n mov %rax, 120(%rdi)\n" \
			     "pop %rax\n mov %rax, 40(%rdi)\n push $2\n popfq\n" \
			     "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret"); \
	}
CALL(by_syscall, "", "syscall")
CALL(by_int30, "", "int $0x30")
CALL(by_lock_nop, "", ".byte 0xf0, 0x90")
CALL(by_sysenter, "lea 1f(%rip), %rcx\n mov %rsp, %r11\n", "sysenter\n 1:")
CALL(by_call_gate, "", "lcall *gate(%rip)\n int $0x30")

static const struct {
	const char *name;
	void (*call)(struct registers *);
	int takes_rcx_r11;
} gates[] = {
	{"syscall", by_syscall, 1}, {"sysenter", by_sysenter, 1}, {"int 0x30", by_int30, 0}, {"lock nop", by_lock_nop, 0},
	{"call gate", by_call_gate, 0},
};

// Direction, alignment check, nested task, overflow, carry: what a call must not be disturbed by and gives back.
#define FLAGS 0x44c01

static int keeps(unsigned which, long number, long result)
{
	struct registers before, after;
	for (unsigned at = 0; at < sizeof before / 8; at++)
		((uint64_t *)&before)[at] = 0x1111111111111111 * (at + 1);
	before.rax = number;
	before.flags = FLAGS | 0x202;
	if (number == SYS_getcwd) {
		before.rdi = 0; // EFAULT: through the error's way
		before.rsi = 16;
	}
	after = before;
	gates[which].call(&after);
	if (gates[which].takes_rcx_r11) {
		// The address to go on at, and the flags or what was there: nothing of the kernel's.
		if (after.rcx >> 47 || (after.r11 >> 47 && after.r11 != before.r11))
			return 0;
		before.rcx = after.rcx;
		before.r11 = after.r11;
	}
	before.rax = result;
	return (after.flags & FLAGS) == FLAGS && memcmp(&before, &after, offsetof(struct registers, flags)) == 0;
}

static void registers(void)
{
	for (unsigned at = 0; at < sizeof gates / sizeof *gates; at++)
		printf("%s keeps: %s %s %s\n", gates[at].name, keeps(at, SYS_getpid, getpid()) ? "yes" : "no",
		       keeps(at, SYS_getcwd, -14) ? "yes" : "no", keeps(at, 99999, -38) ? "yes" : "no");
}

// A GS base of the kernel's half is the program's affair.
static void gs_base(void)
{
	uint64_t there;
	asm volatile("wrgsbase %0" : : "r"(KERNEL));
	for (unsigned at = 0; at < sizeof gates / sizeof *gates; at++) {
		struct registers r = {.rax = SYS_getpid, .flags = 0x202};
		gates[at].call(&r);
		if (r.rax != (uint64_t)getpid())
			printf("%s with a strange GS base: wrong\n", gates[at].name);
	}
	for (int count = 0; count < 20; count++)
		syscall(SYS_sched_yield);
	asm volatile("rdgsbase %0" : "=r"(there));
	asm volatile("wrgsbase %0" : : "r"(0L));
	printf("GS base is kept: %s\n", there == KERNEL ? "yes" : "no");
}

// Calls while the stack pointer is a kernel address: entries must not use it.
static void stack_in_kernel(void)
{
	static uint64_t saved;
	long one, two, three;
	asm volatile("mov %%rsp, %3\n mov %4, %%rsp\n mov %5, %%eax\n syscall\n mov %%rax, %0\n"
		     "mov %5, %%eax\n int $0x30\n mov %%rax, %1\n mov %5, %%eax\n .byte 0xf0, 0x90\n mov %3, %%rsp\n mov %%rax, %2"
		     : "=&r"(one), "=&r"(two), "=&r"(three), "+m"(saved)
		     : "r"(KERNEL), "i"(SYS_getpid) : "rax", "rcx", "r11", "memory");
	long pid = getpid();
	printf("stack in the kernel: %s\n", one == pid && two == pid && three == pid ? "harmless" : "wrong");
}

static void on_step(int signal) { (void)signal; }
static void single_steps(void)
{
	signal(SIGTRAP, on_step);
	long pid = getpid(), result;
	asm volatile("lea -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n lcall *gate(%%rip)\n int $0x30\n"
		     "pushfq\n andq $~0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp"
		     : "=a"(result) : "a"(SYS_getpid) : "memory", "cc");
	printf("single step into the call gate: %s\n", result == pid ? "harmless" : "wrong");
}

// The vDSO is one for all programs: nobody takes it from the others.
static void shared_code(void)
{
	char *vdso = (char *)getauxval(AT_SYSINFO_EHDR);
	pid_t child = fork();
	int status;
	if (child == 0) {
		int refused = 0;
		for (int prot = 0; prot < 8; prot++)
			refused += prot != (PROT_READ | PROT_EXEC) && mprotect(vdso, 4096, prot) != 0;
		refused += munmap(vdso, 4096) != 0;
		refused += mmap(vdso, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED;
		refused += mremap(vdso, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)0x10000000) == MAP_FAILED;
		refused += madvise(vdso, 4096, MADV_DONTNEED) != 0;
		refused += madvise(vdso, 4096, MADV_REMOVE) != 0;
		refused += syscall(SYS_read, 0, vdso, 1) < 0;
		_exit(refused);
	}
	waitpid(child, &status, 0);
	struct timespec now;
	printf("the vDSO stays: %d refused, %s\n", WEXITSTATUS(status), clock_gettime(CLOCK_MONOTONIC, &now) == 0 ? "there" : "gone");
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
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
	registers();
	gs_base();
	stack_in_kernel();
	single_steps();
	shared_code();
	return 0;
}
