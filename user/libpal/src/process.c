/* Processes, time, randomness. */
#include "internal.h"

PAL_HANDLE DkProcessCreate(PAL_STR uri, PAL_FLG flags, PAL_STR *args)
{
    return pal_handle_of(CALL3(NR_PROCESS_CREATE, uri, flags, args));
}

void DkProcessExit(PAL_NUM code)
{
    for (;;)
        CALL1(NR_PROCESS_EXIT, code);
}

PAL_BOL DkProcessSandboxCreate(PAL_STR manifest, PAL_FLG flags)
{
    return !pal_failed(CALL2(NR_SANDBOX, manifest, flags));
}

PAL_NUM DkSystemTimeQuery(void)
{
    long now = CALL0(NR_TIME);
    return pal_failed(now) ? 0 : (PAL_NUM)now;
}

PAL_NUM DkRandomBitsRead(PAL_PTR buffer, PAL_NUM size)
{
    long got = CALL2(NR_RANDOM, buffer, size);
    return pal_failed(got) ? 0 : (PAL_NUM)got;
}
