/* The console is what the program began with, whatever is at its descriptors by now. */
#include "check.h"

static long call(long number, long a, long b, long c)
{
    long result;
    register long none __asm__("r10") = 0;
    __asm__ volatile("syscall" : "=a"(result), "+r"(none) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r8", "r9", "r11", "memory");
    return result;
}

/* By the kernel's numbers: the console at the descriptor that has become free. */
static bool again(long descriptor)
{
    long closed = call(32, descriptor, 0, 0), opened = call(15, (long)"dev:tty", 2, 0);
    return closed == 0 && (int)opened == descriptor;
}

int main(void)
{
    char attr[256];
    PAL_NUM right = 0, rounds = 3000;
    PAL_HANDLE tty = DkStreamOpen("dev:tty", PAL_ACCESS_RDWR, 0, 0, 0);
    check(tty && DkStreamWrite(tty, 0, 9, "by itself", NULL) == 9 && DkStreamWrite(tty, 0, 1, "\n", NULL) == 1, "the console");
    for (PAL_NUM i = 0; i < rounds; i++)
        right += again(0) && again(1);
    check(right == rounds, "consoles in the console's place");
    check(call(26, 0, (long)attr, 0) == 0 && call(26, 1, (long)attr, 0) == 0, "their attributes");
    check(call(32, 0, 0, 0) == 0 && call(32, 1, 0, 0) == 0, "closed");
    PAL_HANDLE last = DkStreamOpen("dev:tty", PAL_ACCESS_RDWR, 0, 0, 0);
    check(last && DkStreamWrite(last, 0, 11, "still there", NULL) == 11 && DkStreamWrite(last, 0, 1, "\n", NULL) == 1, "and there still");
    pal_printf("%d failures\n", failures);
    return failures != 0;
}
