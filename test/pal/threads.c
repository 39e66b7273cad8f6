/* Threads: begun, stopped and resumed, ended; their sleep; their own words. */
#include "check.h"

static PAL_HANDLE done, ready;
static volatile int ran, resumed, sum;

static void simple(void *param)
{
    __atomic_add_fetch(&sum, *(int *)param, __ATOMIC_SEQ_CST);
    DkEventSet(done);
}

static void sleeper(void *param)
{
    (void)param;
    DkEventSet(ready);
    PAL_NUM slept = DkThreadDelayExecution(3600UL * 1000000);
    ran = slept < 3600UL * 1000000;
    DkEventSet(done);
}

static void waiter(void *param)
{
    PAL_HANDLE never = param;
    DkEventSet(ready);
    ran = DkObjectsWaitAny(1, &never, NO_TIMEOUT) == NULL && pal_errno() == PAL_ERROR_INTERRUPTED;
    DkEventSet(done);
}

static void on_resume(PAL_PTR event, PAL_NUM arg, PAL_CONTEXT *context)
{
    (void)arg;
    (void)context;
    resumed++;
    DkExceptionReturn(event);
}

static void segments(void *param)
{
    (void)param;
    static long words[2];
    ran = DkThreadPrivate(words) == words && DkThreadPrivate(NULL) == words;
    long seen;
    words[1] = 42;
    __asm__ volatile("mov %%fs:8, %0" : "=r"(seen));
    ran &= seen == 42;
    ran &= DkSegmentRegister(PAL_SEGMENT_GS, words) == words && DkSegmentRegister(PAL_SEGMENT_GS, NULL) == words;
    DkEventSet(done);
}

int main(void)
{
    done = DkSynchronizationEventCreate(false);
    ready = DkSynchronizationEventCreate(false);
    int one = 1;
    for (int i = 0; i < 100; i++) {
        PAL_HANDLE thread = DkThreadCreate((PAL_PTR)simple, &one, 0);
        if (!thread || !DkObjectsWaitAny(1, &done, NO_TIMEOUT) || !DkObjectsWaitAny(1, &thread, NO_TIMEOUT))
            break;
        DkObjectClose(thread);
    }
    check(sum == 100, "a hundred threads, and each one's end");

    PAL_HANDLE stopped = DkThreadCreate((PAL_PTR)simple, &one, PAL_THREAD_STOPPED);
    check(stopped && !DkObjectsWaitAny(1, &done, 20000) && sum == 100, "stopped at first");
    check(DkThreadResume(stopped) && DkObjectsWaitAny(1, &done, NO_TIMEOUT) == done && sum == 101, "resumed");
    check(DkObjectsWaitAny(1, &stopped, NO_TIMEOUT) == stopped, "over");
    check(failed_with(DkThreadResume(stopped), PAL_ERROR_DENIED), "and not resumed again");

    PAL_HANDLE asleep = DkThreadCreate((PAL_PTR)sleeper, NULL, 0);
    DkObjectsWaitAny(1, &ready, NO_TIMEOUT);
    while (!DkObjectsWaitAny(1, &done, 1000))
        DkThreadResume(asleep);
    check(ran, "a sleep ends when its thread is resumed");
    ran = 0;
    DkSetExceptionHandler(on_resume, PAL_EVENT_RESUME, 0);
    PAL_HANDLE waiting = DkThreadCreate((PAL_PTR)waiter, DkNotificationEventCreate(false), 0);
    DkObjectsWaitAny(1, &ready, NO_TIMEOUT);
    while (!DkObjectsWaitAny(1, &done, 1000))
        DkThreadResume(waiting);
    check(ran && resumed > 0, "so does a wait, and the event comes");
    ran = 0;
    DkThreadCreate((PAL_PTR)segments, NULL, PAL_THREAD_DETACHED);
    DkObjectsWaitAny(1, &done, NO_TIMEOUT);
    check(ran, "segments");

    PAL_NUM before = DkSystemTimeQuery();
    PAL_NUM slept = DkThreadDelayExecution(20000);
    PAL_NUM after = DkSystemTimeQuery();
    check(slept >= 20000 && after - before >= 20000 && before > 1600000000UL * 1000000, "a sleep of 20 ms, and the time");
    DkThreadYieldExecution();
    check(failed_with(DkThreadCreate((PAL_PTR)simple, NULL, 1), PAL_ERROR_INVAL), "flags there are not");
    check(failed_with(DkThreadResume(done), PAL_ERROR_BADHANDLE), "no thread");
    check(failed_with(DkSegmentRegister(7, &one), PAL_ERROR_INVAL), "no register");
    check(failed_with(DkSegmentRegister(PAL_SEGMENT_GS, (PAL_PTR)(1UL << 63)), PAL_ERROR_DENIED), "a base in the kernel");
    pal_printf("%d failures\n", failures);
    return failures != 0;
}
