/* Memory: anywhere, in a place, over another mapping, taken away in part. */
#include "check.h"

static int faults;

static void handler(PAL_PTR event, PAL_NUM arg, PAL_CONTEXT *context)
{
    (void)arg;
    faults++;
    /* Over the load `mov (%reg), %al`: two bytes, as probe() has it. */
    context->rip += 2;
    DkExceptionReturn(event);
}

static bool readable(volatile char *at)
{
    int before = faults;
    char byte;
    __asm__ volatile(".byte 0x8a, 0x07" : "=a"(byte) : "D"(at) : "memory");
    return faults == before;
}

int main(void)
{
    DkSetExceptionHandler(handler, PAL_EVENT_MEMFAULT, 0);
    char *a = DkVirtualMemoryAlloc(NULL, 4 * PAGE, 0, RW);
    check(a != NULL && (uintptr_t)a % PAGE == 0, "allocated");
    for (PAL_NUM i = 0; i < 4; i++)
        a[i * PAGE] = (char)(i + 1);
    DkVirtualMemoryFree(a + PAGE, 2 * PAGE);
    check(readable(a) && !readable(a + PAGE) && !readable(a + 2 * PAGE) && readable(a + 3 * PAGE), "freed in part");
    char *b = DkVirtualMemoryAlloc(a, 4 * PAGE, 0, RW);
    check(b == a && a[0] == 0 && a[3 * PAGE] == 0, "mapped over what was there");
    a[0] = 7;
    check(DkVirtualMemoryProtect(a, PAGE, PAL_PROT_NONE) && !readable(a), "protected");
    check(DkVirtualMemoryProtect(a, PAGE, PAL_PROT_READ) && a[0] == 7, "readable again");
    char *low = DkVirtualMemoryAlloc(NULL, PAGE, PAL_ALLOC_32BIT, RW);
    check(low && (uintptr_t)low < 1UL << 32, "below 4 GiB");
    char *far = DkVirtualMemoryAlloc(NULL, 1UL << 40, PAL_ALLOC_RESERVE, RW);
    check(far && !readable(far), "addresses alone");
    check(DkVirtualMemoryAlloc(far, PAGE, 0, RW) == far && readable(far), "and memory at some of them");
    DkVirtualMemoryFree(far, 1UL << 40);

    check(failed_with(DkVirtualMemoryAlloc(a + 1, PAGE, 0, RW), PAL_ERROR_INVAL), "an address between pages");
    check(failed_with(DkVirtualMemoryAlloc(NULL, 0, 0, RW), PAL_ERROR_INVAL), "nothing");
    check(failed_with(DkVirtualMemoryAlloc(NULL, 100, 0, RW), PAL_ERROR_INVAL), "part of a page");
    check(failed_with(DkVirtualMemoryAlloc(NULL, PAGE, 64, RW), PAL_ERROR_INVAL), "a kind there is not");
    check(failed_with(DkVirtualMemoryAlloc(NULL, PAGE, 0, 64), PAL_ERROR_INVAL), "rights there are not");
    check(failed_with(DkVirtualMemoryAlloc((PAL_PTR)(~0UL & ~(PAGE - 1)), PAGE, 0, RW), PAL_ERROR_INVAL), "the last page");
    check(!DkVirtualMemoryAlloc((PAL_PTR)(1UL << 60), PAGE, 0, RW), "no address of a program");
    check(failed_with(DkVirtualMemoryAlloc(pal_control.library_begin, PAGE, 0, RW), PAL_ERROR_DENIED), "the library's own code");
    check(failed_with(DkVirtualMemoryProtect(pal_control.library_begin, PAGE, 0), PAL_ERROR_DENIED), "its rights");
    DkVirtualMemoryFree(pal_control.library_begin, PAGE);
    check(pal_errno() == PAL_ERROR_DENIED, "and its end");
    check(!DkVirtualMemoryProtect(a - (1UL << 30), PAGE, PAL_PROT_READ), "rights to what is not there");
    pal_printf("%d failures\n", failures);
    return failures != 0;
}
