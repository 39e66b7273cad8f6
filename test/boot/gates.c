// Every gate of the bare x86_64 machine answers as `syscall` does, and keeps what it says it keeps.
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
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

int main(void)
{
	long pid = getpid();
	printf("syscall %s\n", syscall(SYS_getpid) == pid ? "ok" : "wrong");
	printf("int 0x30 %s\n", by_int30(SYS_getpid, 0, 0, 0) == pid ? "ok" : "wrong");
	printf("lock nop %s\n", by_lock_nop(SYS_getpid, 0, 0, 0) == pid ? "ok" : "wrong");
	fflush(stdout);
	by_int30(SYS_write, 1, (long)"int 0x30 writes\n", 16);
	by_lock_nop(SYS_write, 1, (long)"lock nop writes\n", 16);

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
