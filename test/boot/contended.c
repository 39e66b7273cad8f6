// Calls by every gate that wait for one another's locks, or give their core away: a thread that leaves its core in the middle of a call
// goes on where it was, on whichever core, with all its registers.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS 6
#define TURNS 3000

static const struct __attribute__((packed)) {
	uint32_t offset;
	uint16_t selector;
} gate __attribute__((used)) = {0, 0x53};

// A call of three words, with values in the registers it must keep; counts what is not as it was.
#define CALL(instruction, ...) ({ \
	register long kept8 asm("r8") = turn ^ 8; \
	register long kept9 asm("r9") = turn ^ 9; \
	register long kept10 asm("r10") = turn ^ 10; \
	register long kept12 asm("r12") = turn ^ 12; \
	long answer, di = word, si = turn ^ 6, dx = turn ^ 2, before, after; \
	asm volatile("mov %%rsp, %[before]\n" instruction "\nmov %%rsp, %[after]" \
		     : "=a"(answer), "+D"(di), "+S"(si), "+d"(dx), "+r"(kept8), "+r"(kept9), "+r"(kept10), "+r"(kept12), \
		       [before] "=&m"(before), [after] "=m"(after) \
		     : "0"(number) : __VA_ARGS__); \
	wrong += di != word || si != (turn ^ 6) || dx != (turn ^ 2) || kept8 != (turn ^ 8) || kept9 != (turn ^ 9) || \
		 kept10 != (turn ^ 10) || kept12 != (turn ^ 12) || before != after; \
	answer; })

static int way;

static void *work(void *unused)
{
	long wrong = 0;
	(void)unused;
	for (long turn = 0; turn < TURNS; turn++) {
		long number = SYS_dup, word = 1, copy = -1;
		for (int part = 0; part < 3; part++) {
			long answer = -1;
			switch (way) {
			case 0: answer = CALL("syscall", "rcx", "r11", "memory"); break;
			case 1: answer = CALL("int $0x30", "memory"); break;
			case 2: answer = CALL(".byte 0xf0, 0x90", "memory"); break;
			case 3: answer = CALL("lcall *gate(%%rip)\nint $0x30", "memory"); break;
			}
			if (part == 0)
				copy = answer, number = SYS_close, word = answer;
			else
				wrong += answer != 0, number = SYS_sched_yield;
		}
		wrong += copy < 3;
	}
	return (void *)wrong;
}

int main(void)
{
	static const char *const names[] = {"syscall", "int 0x30", "lock nop", "call gate"};
	for (way = 0; way < 4; way++) {
		pthread_t threads[THREADS];
		long wrong = 0;
		for (int at = 0; at < THREADS; at++)
			pthread_create(&threads[at], NULL, work, NULL);
		for (int at = 0; at < THREADS; at++) {
			void *result;
			pthread_join(threads[at], &result);
			wrong += (long)result;
		}
		printf("%s: %s\n", names[way], wrong ? "wrong" : "kept");
	}
	return 0;
}
