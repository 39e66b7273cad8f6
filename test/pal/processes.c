/* Picoprocesses: streams to them, handles and pages passed on. */
#include "check.h"

static int child(int argc, char **argv)
{
    char buf[16];
    PAL_HANDLE parent = pal_control.parent_process;
    if (argc != 3 || !same(argv[2], "two words", 10) || !parent)
        return 1;
    PAL_NUM n = DkStreamRead(parent, 0, 16, buf, NULL, 0);
    DkStreamWrite(parent, 0, n, buf, NULL);
    /* An event, which is set here and waited for there. */
    PAL_HANDLE event = DkReceiveHandle(parent);
    if (!event || PAL_GET_TYPE(event) != pal_type_event)
        return 2;
    DkEventSet(event);
    PAL_HANDLE file = DkReceiveHandle(parent);
    if (!file || DkStreamWrite(file, 0, 5, "child", NULL) != 5)
        return 3;
    /* A stream through a stream. */
    PAL_HANDLE pipe = DkReceiveHandle(parent);
    if (!pipe || DkStreamWrite(pipe, 0, 4, "pipe", NULL) != 4)
        return 4;
    PAL_NUM key;
    if (DkStreamRead(parent, 0, sizeof key, &key, NULL, 0) != sizeof key)
        return 5;
    char uri[32] = "gipc:";
    int at = 5;
    for (PAL_NUM power = 10000000000000000000UL, begun = 0; power; power /= 10) {
        PAL_NUM digit = key / power % 10;
        if (digit || begun || power == 1)
            uri[at++] = (char)('0' + digit), begun = 1;
    }
    uri[at] = 0;
    PAL_HANDLE channel = DkStreamOpen(uri, PAL_ACCESS_RDWR, 0, 0, 0);
    PAL_PTR addrs[2] = { NULL, NULL };
    PAL_NUM sizes[2] = { PAGE, 2 * PAGE };
    PAL_FLG prots[2] = { PAL_PROT_READ, RW };
    if (!channel || DkPhysicalMemoryMap(channel, 2, addrs, sizes, prots) != 3)
        return 6;
    char *first = addrs[0], *second = addrs[1];
    if (first[0] != 1 || second[0] != 2 || second[PAGE] != 3)
        return 7;
    second[0] = 9;
    if (DkPhysicalMemoryMap(channel, 1, addrs, sizes, prots) != 0 || pal_errno() != PAL_ERROR_TRYAGAIN)
        return 8;
    DkStreamWrite(parent, 0, 4, "over", NULL);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && same(argv[1], "child", 6))
        return child(argc, argv);
    if (argc > 1) {
        DkThreadDelayExecution(3600UL * 1000000);
        return 1;
    }
    char buf[64];
    PAL_STR args[] = { argv[0], "child", "two words", NULL };
    PAL_HANDLE process = DkProcessCreate(NULL, 0, args);
    check(process && PAL_GET_TYPE(process) == pal_type_process, "a picoprocess");
    check(DkStreamWrite(process, 0, 5, "hello", NULL) == 5 && DkStreamRead(process, 0, 5, buf, NULL, 0) == 5 && same(buf, "hello", 5),
          "the stream to it");
    PAL_HANDLE event = DkNotificationEventCreate(false);
    check(DkSendHandle(process, event), "an event is sent");
    check(DkObjectsWaitAny(1, &event, NO_TIMEOUT) == event, "and set there");
    PAL_HANDLE file = DkStreamOpen("file:shared", PAL_ACCESS_RDWR, 0600, PAL_CREAT_TRY, 0);
    check(DkSendHandle(process, file), "a file is sent");
    PAL_HANDLE server = DkStreamOpen("pipe.srv:1", PAL_ACCESS_RDWR, 0, 0, 0);
    PAL_HANDLE pipe = DkStreamOpen("pipe:1", PAL_ACCESS_RDWR, 0, 0, 0), end = DkStreamWaitForClient(server);
    check(DkSendHandle(process, pipe), "a stream is sent");
    DkObjectClose(pipe);
    check(DkStreamRead(end, 0, 64, buf, NULL, 0) == 4 && same(buf, "pipe", 4), "and written to there");
    check(DkStreamRead(file, 0, 64, buf, NULL, 0) == 5 && same(buf, "child", 5), "so is the file");
    PAL_NUM key;
    PAL_HANDLE channel = DkCreatePhysicalMemoryChannel(&key);
    char *pages = DkVirtualMemoryAlloc(NULL, 3 * PAGE, 0, RW);
    for (int i = 0; i < 3; i++)
        pages[i * PAGE] = (char)(i + 1);
    PAL_PTR addrs[2] = { pages, pages + PAGE };
    PAL_NUM sizes[2] = { PAGE, 2 * PAGE };
    check(channel && PAL_GET_TYPE(channel) == pal_type_gipc && DkPhysicalMemoryCommit(channel, 2, addrs, sizes, 0) == 3, "pages are sent");
    pages[0] = 99;
    DkStreamWrite(process, 0, sizeof key, &key, NULL);
    check(DkStreamRead(process, 0, 4, buf, NULL, 0) == 4 && same(buf, "over", 4) && pages[PAGE] == 2, "and mapped there, as they were");
    check(failed_with(DkStreamRead(process, 0, 4, buf, NULL, 0), PAL_ERROR_ENDOFSTREAM), "it has ended");
    check(failed_with(DkSendHandle(process, event), PAL_ERROR_ENDOFSTREAM), "and takes no handle");
    check(failed_with(DkReceiveHandle(process), PAL_ERROR_ENDOFSTREAM), "nor gives one");

    check(failed_with(DkProcessCreate("file:no/such", 0, args), PAL_ERROR_STREAMNOTEXIST), "no program");
    check(failed_with(DkProcessCreate("file:shared", 0, args), PAL_ERROR_DENIED), "a file that is no program");
    check(failed_with(DkProcessCreate("pipe:1", 0, args), PAL_ERROR_INVAL), "no file");
    check(failed_with(DkProcessCreate(NULL, 1, args), PAL_ERROR_INVAL), "flags there are not");
    check(failed_with(DkProcessCreate(NULL, 0, (PAL_STR *)0x5000), PAL_ERROR_BADADDR), "arguments of nobody");
    check(failed_with(DkSendHandle(event, file), PAL_ERROR_NOTSUPPORT), "an event is no stream");
    check(failed_with(DkSendHandle(end, server), PAL_ERROR_NOTSUPPORT), "a server is not sent");
    PAL_HANDLE own = DkStreamOpen("pipe:", PAL_ACCESS_RDWR, 0, 0, 0);
    check(failed_with(DkSendHandle(own, own), PAL_ERROR_DENIED), "nor a stream through itself");
    check(DkSendHandle(own, event) && PAL_GET_TYPE(DkReceiveHandle(own)) == pal_type_event, "what is sent to oneself comes");
    int sent = 0;
    while (DkSendHandle(own, event))
        sent++;
    check(sent == 64 && pal_errno() == PAL_ERROR_TRYAGAIN, "as many as there is room for");
    PAL_HANDLE two = DkStreamOpen("pipe:", PAL_ACCESS_RDWR, 0, 0, 0);
    check(failed_with(DkSendHandle(two, own), PAL_ERROR_DENIED), "a stream with handles in it is not sent");
    check(DkSendHandle(two, DkStreamOpen("pipe:", PAL_ACCESS_RDWR, 0, 0, 0)), "an empty one is");
    check(failed_with(DkPhysicalMemoryCommit(channel, 0, addrs, sizes, 0), PAL_ERROR_INVAL), "no pages");
    sizes[0] = 100;
    check(failed_with(DkPhysicalMemoryCommit(channel, 1, addrs, sizes, 0), PAL_ERROR_INVAL), "part of a page");
    sizes[0] = 1UL << 40;
    check(failed_with(DkPhysicalMemoryCommit(channel, 1, addrs, sizes, 0), PAL_ERROR_TOOLONG), "too many");
    sizes[0] = PAGE, addrs[0] = (PAL_PTR)0x5000;
    check(failed_with(DkPhysicalMemoryCommit(channel, 1, addrs, sizes, 0), PAL_ERROR_BADADDR), "pages of nobody");
    check(failed_with(DkStreamOpen("gipc:12345", PAL_ACCESS_RDWR, 0, 0, 0), PAL_ERROR_STREAMNOTEXIST), "a key that is none");
    pal_printf("%d failures\n", failures);
    /* The other one sleeps, and goes with the first. */
    PAL_STR idle[] = { argv[0], "idle", NULL };
    DkProcessCreate("", 0, idle);
    DkProcessExit(failures ? 1 : 7);
}
