/* Handles: a table with a place for each number of the kernel's. A pointer that is not to such a place is no handle. */
#include "internal.h"

#define HANDLES 65536

static union pal_handle *table;

bool pal_handles_begin(void)
{
    long made = CALL4(NR_ALLOC, 0, sizeof(union pal_handle) * HANDLES, 0, PAL_PROT_READ | PAL_PROT_WRITE);
    if (made < 0)
        return false;
    table = (union pal_handle *)made;
    return true;
}

PAL_HANDLE pal_handle_of(long result)
{
    if (pal_failed(result))
        return NULL;
    PAL_IDX number = (PAL_IDX)result;
    if (number >= HANDLES) {
        CALL1(NR_CLOSE, number);
        pal_fail(PAL_ERROR_NOMEM);
        return NULL;
    }
    table[number] = (union pal_handle) { .hdr = { .type = (PAL_IDX)(result >> 32), .number = number } };
    return &table[number];
}

bool pal_is_handle(PAL_HANDLE handle)
{
    uintptr_t at = (uintptr_t)handle - (uintptr_t)table;
    if (at < sizeof(union pal_handle) * HANDLES && at % sizeof(union pal_handle) == 0 && handle->hdr.type != 0)
        return true;
    pal_fail(PAL_ERROR_BADHANDLE);
    return false;
}

void DkObjectClose(PAL_HANDLE object)
{
    if (!pal_is_handle(object))
        return;
    object->hdr.type = 0;
    pal_failed(CALL1(NR_CLOSE, object->hdr.number));
}

PAL_BOL DkSendHandle(PAL_HANDLE stream, PAL_HANDLE cargo)
{
    return pal_is_handle(stream) && pal_is_handle(cargo) &&
           !pal_failed(CALL2(NR_SEND, stream->hdr.number, cargo->hdr.number));
}

PAL_HANDLE DkReceiveHandle(PAL_HANDLE stream)
{
    return pal_is_handle(stream) ? pal_handle_of(CALL1(NR_RECEIVE, stream->hdr.number)) : NULL;
}
