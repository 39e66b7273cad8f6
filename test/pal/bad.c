/* Handles, pointers and words that are none: errors, and the program goes on. */
#include "check.h"

static long call(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

int main(void)
{
    union pal_handle forged = { .hdr = { pal_type_file, 1 } };
    char buf[16];
    check(failed_with(DkStreamRead(NULL, 0, 1, buf, NULL, 0), PAL_ERROR_BADHANDLE), "no handle");
    check(failed_with(DkStreamRead(&forged, 0, 1, buf, NULL, 0), PAL_ERROR_BADHANDLE), "a forged one");
    check(failed_with(DkStreamRead((PAL_HANDLE)0x5000, 0, 1, buf, NULL, 0), PAL_ERROR_BADHANDLE), "a pointer to nowhere");
    check(failed_with(DkStreamRead((PAL_HANDLE)((char *)pal_control.first_thread + 8), 0, 1, buf, NULL, 0), PAL_ERROR_BADHANDLE),
          "one into a handle");
    DkObjectClose(NULL);
    check(pal_errno() == PAL_ERROR_BADHANDLE, "none closed");
    PAL_HANDLE event = DkNotificationEventCreate(false);
    check(failed_with(DkStreamRead(event, 0, 1, buf, NULL, 0), PAL_ERROR_BADHANDLE), "an event read");
    check(failed_with(DkStreamMap(event, NULL, RW, 0, PAGE), PAL_ERROR_NOTSUPPORT), "an event mapped");
    check(failed_with(DkStreamSetLength(event, 1), PAL_ERROR_NOTSUPPORT), "an event made longer");
    check(failed_with(DkStreamFlush(event), PAL_ERROR_NOTSUPPORT), "an event flushed");
    check(failed_with(DkStreamGetName(event, buf, 16), PAL_ERROR_NOTSUPPORT), "an event's name");
    check(failed_with(DkStreamOpen("file:x", 3, 0, 0, 0), PAL_ERROR_INVAL), "access that is none");
    check(failed_with(DkStreamOpen("file:x", 0, 01000, 0, 0), PAL_ERROR_INVAL), "permissions that are none");
    check(failed_with(DkStreamOpen("file:x", 0, 0, 1, 0), PAL_ERROR_INVAL), "creation that is none");
    check(failed_with(DkStreamOpen("file:x", 0, 0, 0, 1), PAL_ERROR_INVAL), "options that are none");
    check(failed_with(DkStreamOpen("", 0, 0, 0, 0), PAL_ERROR_INVAL), "an empty URI");
    check(failed_with(DkStreamOpen("pipe:99999999999999999999", 2, 0, 0, 0), PAL_ERROR_INVAL), "a number that is too large");
    char *uri = DkVirtualMemoryAlloc(NULL, 4 * PAGE, 0, RW);
    for (PAL_NUM i = 0; i < 4 * PAGE; i++)
        uri[i] = 'a';
    check(failed_with(DkStreamOpen(uri, 0, 0, 0, 0), PAL_ERROR_TOOLONG), "a URI without an end");
    PAL_HANDLE pipe = DkStreamOpen("pipe:", PAL_ACCESS_RDWR, 0, 0, 0);
    check(failed_with(DkStreamWrite(pipe, 0, 1UL << 62, buf, NULL), PAL_ERROR_BADADDR), "more bytes than there are");
    check(failed_with(DkStreamWrite(pipe, 0, 8, (PAL_PTR)0x5000, NULL), PAL_ERROR_BADADDR), "bytes of nobody");
    DkStreamWrite(pipe, 0, 8, "12345678", NULL);
    check(failed_with(DkStreamRead(pipe, 0, 8, (PAL_PTR)0x5000, NULL, 0), PAL_ERROR_BADADDR), "room of nobody");
    check(DkStreamRead(pipe, 0, 8, buf, NULL, 0) == 8, "and nothing is lost");
    DkStreamDelete(pipe, 64);
    check(pal_errno() == PAL_ERROR_INVAL, "directions that are none");
    check(failed_with(DkStreamAttributesQuerybyHandle(pipe, (PAL_STREAM_ATTR *)0x5000), PAL_ERROR_BADADDR), "attributes to nowhere");
    check(failed_with(DkCreatePhysicalMemoryChannel((PAL_NUM *)0x5000), PAL_ERROR_BADADDR), "a key to nowhere");
    check(failed_with(DkPhysicalMemoryMap(pipe, 1, (PAL_PTR *)uri, (PAL_NUM *)uri, (PAL_FLG *)uri), PAL_ERROR_BADHANDLE), "no channel");
    PAL_NUM key, size = PAGE;
    PAL_HANDLE channel = DkCreatePhysicalMemoryChannel(&key);
    PAL_PTR page = uri, *anywhere = DkVirtualMemoryAlloc(NULL, PAGE, 0, RW);
    PAL_FLG rights = PAL_PROT_READ;
    check(DkPhysicalMemoryCommit(channel, 1, &page, &size, 0) == 1, "a page on its way");
    *anywhere = NULL;
    DkVirtualMemoryProtect(anywhere, PAGE, PAL_PROT_READ);
    check(failed_with(DkPhysicalMemoryMap(channel, 1, anywhere, &size, &rights), PAL_ERROR_BADADDR), "to a place that cannot be written");
    page = NULL;
    check(DkPhysicalMemoryMap(channel, 1, &page, &size, &rights) == 1 && *(char *)page == 'a', "and it is on its way still");
    check(failed_with(DkStreamChangeName(pipe, "pipe:3"), PAL_ERROR_NOTSUPPORT), "a pipe's name changed");

    /* By the kernel's numbers: there is nothing behind them, or nothing of the caller's. */
    check(call(44, 0, 0, 0) == -38 && call(1000, 0, 0, 0) == -38 && call(-1, 0, 0, 0) == -38, "numbers without a call");
    check(call(12, 12345, 0, 0) == -2007 && call(12, -1, 0, 0) == -2007, "descriptors that are none");
    check(call(43, (long)buf, 0x5000, 0x5000) == -2015, "a library that is nowhere");
    check(call(14, 3, 0x5000, 0) == -2015, "handles of nobody");
    pal_printf("%d failures\n", failures);
    return failures != 0;
}
