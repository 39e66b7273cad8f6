/* Events, semaphores, and waiting for several objects. */
#include "check.h"

static PAL_HANDLE event, semaphore, pipe, finished;
static int woken;

static void waiter(void *param)
{
    (void)param;
    if (DkObjectsWaitAny(1, &event, NO_TIMEOUT) == event)
        __atomic_add_fetch(&woken, 1, __ATOMIC_SEQ_CST);
    DkSemaphoreRelease(finished, 1);
}

static void setter(void *param)
{
    (void)param;
    DkThreadDelayExecution(10000);
    DkEventSet(event);
}

static void contender(void *param)
{
    int *counter = param;
    for (int i = 0; i < 1000; i++) {
        DkObjectsWaitAny(1, &semaphore, NO_TIMEOUT);
        *(volatile int *)counter += 1;
        DkSemaphoreRelease(semaphore, 1);
    }
    DkSemaphoreRelease(finished, 1);
}

int main(void)
{
    finished = DkSemaphoreCreate(8, 8);
    check(finished && !DkObjectsWaitAny(1, &finished, 0) && pal_errno() == PAL_ERROR_TRYAGAIN, "all units are taken");

    event = DkSynchronizationEventCreate(false);
    DkEventSet(event);
    DkEventSet(event);
    check(DkObjectsWaitAny(1, &event, 0) == event, "a set before its wait is kept");
    check(!DkObjectsWaitAny(1, &event, 0), "once");
    DkEventSet(event);
    DkEventClear(event);
    check(!DkObjectsWaitAny(1, &event, 0), "cleared");
    DkThreadCreate((PAL_PTR)setter, NULL, 0);
    check(DkObjectsWaitAny(1, &event, NO_TIMEOUT) == event, "set while it is waited for");
    for (int i = 0; i < 4; i++)
        DkThreadCreate((PAL_PTR)waiter, NULL, 0);
    int one_each = 0;
    for (int i = 0; i < 4; i++) {
        DkEventSet(event);
        DkObjectsWaitAny(1, &finished, NO_TIMEOUT);
        one_each += __atomic_load_n(&woken, __ATOMIC_SEQ_CST) == i + 1;
    }
    check(one_each == 4, "each of four sets wakes one of four");

    PAL_HANDLE all = DkNotificationEventCreate(true);
    check(DkObjectsWaitAny(1, &all, 0) == all && DkObjectsWaitAny(1, &all, 0) == all, "a notification stays");
    DkEventClear(all);
    check(!DkObjectsWaitAny(1, &all, 0), "until it is cleared");

    semaphore = DkSemaphoreCreate(0, 1);
    static int counter;
    for (int i = 0; i < 3; i++)
        DkThreadCreate((PAL_PTR)contender, &counter, 0);
    for (int i = 0; i < 3; i++)
        DkObjectsWaitAny(1, &finished, NO_TIMEOUT);
    check(counter == 3000, "a semaphore of one is a lock");
    PAL_HANDLE three = DkSemaphoreCreate(1, 3);
    bool two = DkObjectsWaitAny(1, &three, 0) && DkObjectsWaitAny(1, &three, 0) && !DkObjectsWaitAny(1, &three, 0);
    check(two, "the first number is what is taken");
    DkSemaphoreRelease(three, 4);
    check(pal_errno() == PAL_ERROR_OVERFLOW && !DkObjectsWaitAny(1, &three, 0), "more than there are");
    DkSemaphoreRelease(three, 3);
    check(DkObjectsWaitAny(1, &three, 0) == three, "as many as there are");

    pipe = DkStreamOpen("pipe:", PAL_ACCESS_RDWR, 0, 0, 0);
    PAL_HANDLE mixed[] = { event, semaphore, pipe };
    DkObjectsWaitAny(1, &semaphore, 0);
    check(!DkObjectsWaitAny(3, mixed, 10000), "nothing of three within 10 ms");
    DkStreamWrite(pipe, 0, 1, "x", NULL);
    check(DkObjectsWaitAny(3, mixed, NO_TIMEOUT) == pipe, "a stream among them");
    DkSemaphoreRelease(semaphore, 1);
    check(DkObjectsWaitAny(3, mixed, NO_TIMEOUT) == semaphore, "the first that is ready");
    DkEventSet(event);
    check(DkObjectsWaitAny(3, mixed, 0) == event && DkObjectsWaitAny(3, mixed, 0) == pipe, "and what was taken is taken");
    PAL_HANDLE many[200];
    for (int i = 0; i < 200; i++)
        many[i] = i == 150 ? all : event;
    DkEventSet(all);
    check(DkObjectsWaitAny(200, many, NO_TIMEOUT) == all, "one of two hundred");

    PAL_NUM before = DkSystemTimeQuery();
    DkObjectsWaitAny(1, &event, 30000);
    check(DkSystemTimeQuery() - before >= 30000, "30 ms are no less");
    check(failed_with(DkSemaphoreCreate(2, 1), PAL_ERROR_INVAL), "more taken than there are");
    check(failed_with(DkSemaphoreCreate(0, 0), PAL_ERROR_INVAL), "a semaphore of none");
    DkEventSet(semaphore);
    check(pal_errno() == PAL_ERROR_BADHANDLE, "a semaphore is no event");
    DkSemaphoreRelease(event, 1);
    check(pal_errno() == PAL_ERROR_BADHANDLE, "an event is no semaphore");
    check(failed_with(DkObjectsWaitAny(0, mixed, 0), PAL_ERROR_INVAL), "nothing to wait for");
    check(failed_with(DkObjectsWaitAny(1UL << 60, mixed, 0), PAL_ERROR_INVAL), "too much to wait for");
    pal_printf("%d failures\n", failures);
    return failures != 0;
}
