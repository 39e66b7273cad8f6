/* What the processor does to a program, and failures. */
#include "check.h"

static volatile int hits;
static volatile PAL_NUM seen, number;
static void *resume_at;

static void skip(PAL_PTR event, PAL_NUM arg, PAL_CONTEXT *context)
{
    hits++;
    seen = arg;
    context->rip = (PAL_NUM)resume_at;
    DkExceptionReturn(event);
}

static void returns(PAL_PTR event, PAL_NUM arg, PAL_CONTEXT *context)
{
    (void)event;
    (void)arg;
    hits++;
    context->rip = (PAL_NUM)resume_at;
}

static void failure(PAL_PTR event, PAL_NUM arg, PAL_CONTEXT *context)
{
    (void)context;
    number = arg;
    DkExceptionReturn(event);
}

static PAL_HANDLE done;

static void other(void *param)
{
    (void)param;
    DkStreamOpen("none", 0, 0, 0, 0);
    DkEventSet(done);
}

#define AROUND(instruction)                                                                                        \
    __asm__ volatile("lea 1f(%%rip), %%rax; mov %%rax, %0; " instruction "; 1:" : "=m"(resume_at) : : "rax", "rcx", "rdx", "memory")

int main(void)
{
    check(DkSetExceptionHandler(skip, PAL_EVENT_DIVZERO, 0), "a handler");
    AROUND("xor %%ecx, %%ecx; xor %%edx, %%edx; div %%ecx");
    check(hits == 1 && seen < (PAL_NUM)resume_at && seen >= (PAL_NUM)resume_at - 4, "divided by zero");
    DkSetExceptionHandler(skip, PAL_EVENT_ILLEGAL, 0);
    AROUND("ud2");
    check(hits == 2 && seen == (PAL_NUM)resume_at - 2, "an invalid instruction");
    DkSetExceptionHandler(skip, PAL_EVENT_MEMFAULT, 0);
    AROUND("mov $0x5000, %%ecx; movl $1, (%%rcx)");
    check(hits == 3 && seen == 0x5000, "no memory");
    DkSetExceptionHandler(returns, PAL_EVENT_MEMFAULT, PAL_EVENT_PRIVATE | PAL_EVENT_RESET);
    AROUND("mov $0x5000, %%ecx; movl $1, (%%rcx)");
    check(hits == 4 && seen == 0x5000, "a handler of the thread's own that returns");
    seen = 0;
    AROUND("mov $0x6000, %%ecx; movl $1, (%%rcx)");
    check(hits == 5 && seen == 0x6000, "which is for once");

    check(DkSetExceptionHandler(failure, PAL_EVENT_FAILURE, 0), "a handler of failures");
    check(!DkStreamOpen("none", 0, 0, 0, 0) && number == PAL_ERROR_INVAL, "what is no URI");
    check(!DkStreamOpen((PAL_STR)0x5000, 0, 0, 0, 0) && number == PAL_ERROR_BADADDR, "a pointer to nowhere");
    check(!DkRandomBitsRead((PAL_PTR)0x5000, 8) && number == PAL_ERROR_BADADDR, "another");
    check(!DkRandomBitsRead((PAL_PTR)(1UL << 63), 8) && number == PAL_ERROR_BADADDR, "one into the kernel");
    DkSetExceptionHandler(NULL, PAL_EVENT_FAILURE, 0);
    number = 0;
    check(!DkStreamOpen("none", 0, 0, 0, 0) && number == 0 && pal_errno() == PAL_ERROR_INVAL, "without a handler");
    DkSetExceptionHandler(failure, PAL_EVENT_FAILURE, PAL_EVENT_PRIVATE);
    done = DkSynchronizationEventCreate(false);
    DkThreadCreate((PAL_PTR)other, NULL, 0);
    DkObjectsWaitAny(1, &done, NO_TIMEOUT);
    check(number == 0, "another thread's failure is not this one's");
    check(failed_with(DkSetExceptionHandler(skip, 8, 0), PAL_ERROR_INVAL), "an event there is not");
    check(failed_with(DkSetExceptionHandler(skip, 2, 64), PAL_ERROR_INVAL), "flags there are not");

    unsigned char bits[32] = { 0 };
    int any = 0;
    check(DkRandomBitsRead(bits, 32) == 32, "random bits");
    for (int i = 0; i < 32; i++)
        any |= bits[i];
    check(any, "not all of them 0");
    unsigned char *code = DkVirtualMemoryAlloc(NULL, PAGE, 0, RW);
    static const unsigned char made[] = { 0xb8, 42, 0, 0, 0, 0xc3 };
    for (unsigned i = 0; i < sizeof made; i++)
        code[i] = made[i];
    DkVirtualMemoryProtect(code, PAGE, PAL_PROT_READ | PAL_PROT_EXEC);
    check(DkInstructionCacheFlush(code, PAGE) && ((int (*)(void))code)() == 42, "code that was made");
    check(failed_with(DkInstructionCacheFlush((PAL_PTR)(1UL << 62), PAGE), PAL_ERROR_BADADDR), "code of nobody");
    check(pal_control.cpu_info.cpu_num > 0 && length(pal_control.cpu_info.cpu_vendor) == 12 && pal_control.mem_total > 0 &&
              pal_control.first_thread && PAL_GET_TYPE(pal_control.first_thread) == pal_type_thread,
          "the control block");
    pal_printf("%d failures\n", failures);
    return failures != 0;
}
