/* Memory, and pages that are passed on. */
#include "internal.h"

PAL_PTR DkVirtualMemoryAlloc(PAL_PTR addr, PAL_NUM size, PAL_FLG alloc_type, PAL_FLG prot)
{
    long at = CALL4(NR_ALLOC, addr, size, alloc_type, prot);
    return pal_failed(at) ? NULL : (PAL_PTR)at;
}

void DkVirtualMemoryFree(PAL_PTR addr, PAL_NUM size)
{
    pal_failed(CALL2(NR_FREE, addr, size));
}

PAL_BOL DkVirtualMemoryProtect(PAL_PTR addr, PAL_NUM size, PAL_FLG prot)
{
    return !pal_failed(CALL3(NR_PROTECT, addr, size, prot));
}

PAL_PTR DkStreamMap(PAL_HANDLE stream, PAL_PTR address, PAL_FLG prot, PAL_NUM offset, PAL_NUM size)
{
    if (!pal_is_handle(stream))
        return NULL;
    long at = CALL5(NR_MAP, stream->hdr.number, address, prot, offset, size);
    return pal_failed(at) ? NULL : (PAL_PTR)at;
}

void DkStreamUnmap(PAL_PTR addr, PAL_NUM size)
{
    pal_failed(CALL2(NR_UNMAP, addr, size));
}

PAL_HANDLE DkCreatePhysicalMemoryChannel(PAL_NUM *key)
{
    return pal_handle_of(CALL1(NR_GIPC_CREATE, key));
}

PAL_NUM DkPhysicalMemoryCommit(PAL_HANDLE channel, PAL_NUM entries, PAL_PTR *addrs, PAL_NUM *sizes, PAL_FLG flags)
{
    if (!pal_is_handle(channel))
        return 0;
    long pages = CALL5(NR_GIPC_COMMIT, channel->hdr.number, entries, addrs, sizes, flags);
    return pal_failed(pages) ? 0 : (PAL_NUM)pages;
}

PAL_NUM DkPhysicalMemoryMap(PAL_HANDLE channel, PAL_NUM entries, PAL_PTR *addrs, PAL_NUM *sizes, PAL_FLG *prots)
{
    if (!pal_is_handle(channel))
        return 0;
    long pages = CALL5(NR_GIPC_MAP, channel->hdr.number, entries, addrs, sizes, prots);
    return pal_failed(pages) ? 0 : (PAL_NUM)pages;
}

PAL_BOL DkInstructionCacheFlush(PAL_PTR addr, PAL_NUM size)
{
    return !pal_failed(CALL2(NR_FLUSH_CODE, addr, size));
}
