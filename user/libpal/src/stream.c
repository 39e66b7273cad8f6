/* Streams. */
#include "internal.h"

PAL_HANDLE DkStreamOpen(PAL_STR uri, PAL_FLG access, PAL_FLG share_flags, PAL_FLG create, PAL_FLG options)
{
    return pal_handle_of(CALL5(NR_OPEN, uri, access, share_flags, create, options));
}

PAL_HANDLE DkStreamWaitForClient(PAL_HANDLE server)
{
    return pal_is_handle(server) ? pal_handle_of(CALL1(NR_WAIT_FOR_CLIENT, server->hdr.number)) : NULL;
}

static PAL_NUM amount(long result)
{
    return pal_failed(result) ? 0 : (PAL_NUM)result;
}

PAL_NUM DkStreamRead(PAL_HANDLE stream, PAL_NUM offset, PAL_NUM count, PAL_PTR buffer, PAL_PTR source, PAL_NUM size)
{
    return pal_is_handle(stream) ? amount(CALL6(NR_READ, stream->hdr.number, offset, count, buffer, source, size)) : 0;
}

PAL_NUM DkStreamWrite(PAL_HANDLE stream, PAL_NUM offset, PAL_NUM count, const void *buffer, PAL_STR dest)
{
    return pal_is_handle(stream) ? amount(CALL5(NR_WRITE, stream->hdr.number, offset, count, buffer, dest)) : 0;
}

void DkStreamDelete(PAL_HANDLE stream, PAL_FLG access)
{
    if (pal_is_handle(stream))
        pal_failed(CALL2(NR_DELETE, stream->hdr.number, access));
}

PAL_NUM DkStreamSetLength(PAL_HANDLE stream, PAL_NUM length)
{
    return pal_is_handle(stream) ? amount(CALL2(NR_SET_LENGTH, stream->hdr.number, length)) : 0;
}

PAL_BOL DkStreamFlush(PAL_HANDLE stream)
{
    return pal_is_handle(stream) && !pal_failed(CALL1(NR_FLUSH, stream->hdr.number));
}

PAL_NUM DkStreamGetName(PAL_HANDLE stream, char *buffer, PAL_NUM size)
{
    return pal_is_handle(stream) ? amount(CALL3(NR_GET_NAME, stream->hdr.number, buffer, size)) : 0;
}

PAL_BOL DkStreamAttributesQuery(PAL_STR uri, PAL_STREAM_ATTR *attr)
{
    return !pal_failed(CALL2(NR_QUERY, uri, attr));
}

PAL_BOL DkStreamAttributesQuerybyHandle(PAL_HANDLE stream, PAL_STREAM_ATTR *attr)
{
    return pal_is_handle(stream) && !pal_failed(CALL2(NR_QUERY_BY_HANDLE, stream->hdr.number, attr));
}

PAL_BOL DkStreamChangeName(PAL_HANDLE stream, PAL_STR uri)
{
    return pal_is_handle(stream) && !pal_failed(CALL2(NR_CHANGE_NAME, stream->hdr.number, uri));
}
