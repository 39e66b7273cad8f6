/* Events, semaphores, waiting. */
#include "internal.h"

PAL_HANDLE DkSemaphoreCreate(PAL_NUM initial, PAL_NUM max)
{
    return pal_handle_of(CALL2(NR_SEMAPHORE, initial, max));
}

void DkSemaphoreRelease(PAL_HANDLE semaphore, PAL_NUM count)
{
    if (pal_is_handle(semaphore))
        pal_failed(CALL2(NR_RELEASE, semaphore->hdr.number, count));
}

PAL_HANDLE DkNotificationEventCreate(PAL_BOL initial)
{
    return pal_handle_of(CALL1(NR_NOTIFICATION, initial));
}

PAL_HANDLE DkSynchronizationEventCreate(PAL_BOL initial)
{
    return pal_handle_of(CALL1(NR_SYNCHRONIZATION, initial));
}

void DkEventSet(PAL_HANDLE event)
{
    if (pal_is_handle(event))
        pal_failed(CALL1(NR_SET, event->hdr.number));
}

void DkEventClear(PAL_HANDLE event)
{
    if (pal_is_handle(event))
        pal_failed(CALL1(NR_CLEAR, event->hdr.number));
}

/* Handles that need no memory of their own. */
#define FEW 64
#define MOST 4096

static PAL_HANDLE wait_any(PAL_NUM count, PAL_HANDLE *handles, int *numbers, PAL_NUM microseconds)
{
    for (PAL_NUM i = 0; i < count; i++) {
        if (!pal_is_handle(handles[i]))
            return NULL;
        numbers[i] = (int)handles[i]->hdr.number;
    }
    long ready = CALL3(NR_WAIT_ANY, count, numbers, microseconds);
    return pal_failed(ready) ? NULL : handles[ready];
}

PAL_HANDLE DkObjectsWaitAny(PAL_NUM count, PAL_HANDLE *handles, PAL_NUM microseconds)
{
    int few[FEW];
    if (count == 0 || count > MOST) {
        pal_fail(PAL_ERROR_INVAL);
        return NULL;
    }
    if (count <= FEW)
        return wait_any(count, handles, few, microseconds);
    PAL_NUM bytes = (count * sizeof(int) + 4095) & ~4095UL;
    int *numbers = DkVirtualMemoryAlloc(NULL, bytes, 0, PAL_PROT_READ | PAL_PROT_WRITE);
    if (!numbers)
        return NULL;
    PAL_HANDLE ready = wait_any(count, handles, numbers, microseconds);
    DkVirtualMemoryFree(numbers, bytes);
    return ready;
}
