/* Files, directories, the console, pipes. Run in a directory that is its own. */
#include "check.h"

static const char text[] = "the quick brown fox";
#define TEXT (sizeof text - 1)

static void files(void)
{
    char buf[64];
    PAL_HANDLE f = DkStreamOpen("file:one", PAL_ACCESS_RDWR, 0640, PAL_CREAT_ALWAYS, 0);
    check(f && PAL_GET_TYPE(f) == pal_type_file, "made");
    check(failed_with(DkStreamOpen("file:one", PAL_ACCESS_RDWR, 0640, PAL_CREAT_ALWAYS, 0), PAL_ERROR_STREAMEXIST), "once");
    check(DkStreamWrite(f, 10, TEXT, text, NULL) == TEXT, "written behind its end");
    check(DkStreamRead(f, 0, 64, buf, NULL, 0) == 10 + TEXT && buf[0] == 0 && same(buf + 10, text, TEXT), "read");
    check(DkStreamRead(f, 14, 5, buf, NULL, 0) == 5 && same(buf, "quick", 5), "read in the middle");
    check(failed_with(DkStreamRead(f, 100, 5, buf, NULL, 0), PAL_ERROR_ENDOFSTREAM), "behind the end");
    check(failed_with(DkStreamRead(f, 0, 0, buf, NULL, 0), PAL_ERROR_ZEROSIZE), "nothing read");
    check(failed_with(DkStreamWrite(f, 0, 0, buf, NULL), PAL_ERROR_ZEROSIZE), "nothing written");
    check(DkStreamSetLength(f, 2 * PAGE) == 2 * PAGE && DkStreamFlush(f), "longer");
    PAL_STREAM_ATTR attr;
    check(DkStreamAttributesQuerybyHandle(f, &attr) && attr.size == 2 * PAGE && attr.handle_type == pal_type_file &&
              (attr.share_flags & 0700) == 0600 && attr.readable && attr.writeable && !attr.runnable,
          "attributes by handle");
    PAL_NUM id = attr.file_id;
    check(DkStreamAttributesQuery("file:one", &attr) && attr.file_id == id, "attributes by name");
    char *shared = DkStreamMap(f, NULL, RW, 0, PAGE), *own = DkStreamMap(f, NULL, RW | PAL_PROT_WRITECOPY, 0, PAGE);
    check(shared && own && same(own + 10, text, TEXT), "mapped");
    own[10] = 'T';
    shared[0] = '!';
    check(DkStreamRead(f, 0, 11, buf, NULL, 0) == 11 && buf[0] == '!' && buf[10] == 't', "stores to the file, and to a copy");
    DkStreamUnmap(shared, PAGE);
    DkStreamUnmap(own, PAGE);
    check(failed_with(DkStreamMap(f, NULL, RW, 100, PAGE), PAL_ERROR_INVAL), "mapped from within a page");
    check(DkStreamGetName(f, buf, 64) > 8 && same(buf, "file:/", 6), "its name");
    check(failed_with(DkStreamGetName(f, buf, 4), PAL_ERROR_OVERFLOW), "no room for its name");
    check(DkStreamChangeName(f, "file:two") && !DkStreamAttributesQuery("file:one", &attr) && DkStreamAttributesQuery("file:two", &attr),
          "another name");
    PAL_HANDLE r = DkStreamOpen("file:two", PAL_ACCESS_RDONLY, 0, 0, 0);
    check(r && failed_with(DkStreamWrite(r, 0, 1, "x", NULL), PAL_ERROR_BADHANDLE), "read only");
    DkStreamDelete(r, PAL_DELETE_RD);
    check(pal_errno() == PAL_ERROR_INVAL, "a file has no directions");
    DkStreamDelete(r, 0);
    check(failed_with(DkStreamOpen("file:two", 0, 0, 0, 0), PAL_ERROR_STREAMNOTEXIST), "removed");
    DkObjectClose(r);
    check(failed_with(DkStreamRead(r, 0, 1, buf, NULL, 0), PAL_ERROR_BADHANDLE), "closed");
    DkObjectClose(f);
}

static void directories(void)
{
    char buf[256];
    PAL_HANDLE d = DkStreamOpen("dir:deep", 0, 0755, PAL_CREAT_ALWAYS, 0);
    check(d && PAL_GET_TYPE(d) == pal_type_dir, "a directory is made");
    check(failed_with(DkStreamOpen("dir:deep", 0, 0755, PAL_CREAT_ALWAYS, 0), PAL_ERROR_STREAMEXIST), "once");
    PAL_HANDLE f = DkStreamOpen("file:deep/x", PAL_ACCESS_WRONLY, 0600, PAL_CREAT_TRY, 0);
    PAL_HANDLE l = DkStreamOpen("dir:deep", 0, 0, 0, 0);
    check(failed_with(DkStreamRead(l, 0, sizeof buf, (PAL_PTR)0x5000, NULL, 0), PAL_ERROR_BADADDR), "names to nowhere");
    PAL_NUM n = DkStreamRead(l, 0, sizeof buf, buf, NULL, 0);
    check(f && n == 2 && same(buf, "x\0", 2), "its names");
    check(failed_with(DkStreamRead(l, 0, sizeof buf, buf, NULL, 0), PAL_ERROR_ENDOFSTREAM), "no more names");
    check(failed_with(DkStreamOpen("file:deep", 0, 0, 0, 0), PAL_ERROR_STREAMISDIR), "no file");
    check(failed_with(DkStreamOpen("dir:deep/x", 0, 0, 0, 0), PAL_ERROR_STREAMISFILE), "no directory");
    DkStreamDelete(d, 0);
    check(pal_errno() == PAL_ERROR_DENIED, "not empty");
    DkStreamDelete(f, 0);
    DkStreamDelete(d, 0);
    check(failed_with(DkStreamOpen("dir:deep", 0, 0, 0, 0), PAL_ERROR_STREAMNOTEXIST), "gone");
    DkObjectClose(d);
    DkObjectClose(f);
    DkObjectClose(l);
}

static PAL_HANDLE server;

static void serve(void *param)
{
    (void)param;
    char buf[8];
    PAL_HANDLE client = DkStreamWaitForClient(server);
    PAL_NUM n = DkStreamRead(client, 0, 8, buf, NULL, 0);
    DkStreamWrite(client, 0, n, buf, NULL);
    DkObjectClose(client);
}

static void pipes(void)
{
    char buf[64];
    PAL_HANDLE own = DkStreamOpen("pipe:", PAL_ACCESS_RDWR, 0, 0, 0);
    check(own && PAL_GET_TYPE(own) == pal_type_pipeprv && DkStreamWrite(own, 0, 3, "abc", NULL) == 3, "a pipe to oneself");
    PAL_STREAM_ATTR attr;
    check(DkStreamAttributesQuerybyHandle(own, &attr) && attr.size == 3 && attr.readable && !attr.disconnected, "three bytes wait");
    check(DkStreamRead(own, 0, 64, buf, NULL, 0) == 3 && same(buf, "abc", 3), "and are read");
    server = DkStreamOpen("pipe.srv:7", PAL_ACCESS_RDWR, 0, 0, 0);
    check(server && PAL_GET_TYPE(server) == pal_type_pipesrv, "a server");
    check(failed_with(DkStreamOpen("pipe.srv:7", PAL_ACCESS_RDWR, 0, 0, 0), PAL_ERROR_STREAMEXIST), "one of a name");
    check(failed_with(DkStreamOpen("pipe:8", PAL_ACCESS_RDWR, 0, 0, 0), PAL_ERROR_STREAMNOTEXIST), "none of another");
    check(failed_with(DkStreamRead(server, 0, 1, buf, NULL, 0), PAL_ERROR_NOTCONNECTION), "a server has no bytes");
    DkThreadCreate((PAL_PTR)serve, NULL, 0);
    PAL_HANDLE client = DkStreamOpen("pipe:7", PAL_ACCESS_RDWR, 0, 0, 0);
    check(client && PAL_GET_TYPE(client) == pal_type_pipe && DkStreamWrite(client, 0, 5, "hello", NULL) == 5, "a client");
    check(DkStreamRead(client, 0, 64, buf, NULL, 0) == 5 && same(buf, "hello", 5), "has its answer");
    check(failed_with(DkStreamRead(client, 0, 64, buf, NULL, 0), PAL_ERROR_ENDOFSTREAM), "and the end");
    check(failed_with(DkStreamWrite(client, 0, 1, "x", NULL), PAL_ERROR_ENDOFSTREAM), "a closed peer takes nothing");
    check(DkStreamAttributesQuerybyHandle(client, &attr) && attr.disconnected, "which shows");
    PAL_HANDLE second = DkStreamOpen("pipe:7", PAL_ACCESS_RDWR, 0, 0, PAL_OPTION_NONBLOCK);
    PAL_HANDLE accepted = DkStreamWaitForClient(server);
    check(accepted && PAL_GET_TYPE(accepted) == pal_type_pipecli && DkStreamGetName(accepted, buf, 64) == 8 && same(buf, "pipe:7:1", 8),
          "the second connection's name");
    check(failed_with(DkStreamRead(second, 0, 1, buf, NULL, 0), PAL_ERROR_TRYAGAIN), "nothing yet");
    DkStreamDelete(accepted, PAL_DELETE_WR);
    check(failed_with(DkStreamRead(second, 0, 1, buf, NULL, 0), PAL_ERROR_ENDOFSTREAM), "one direction shut down");
    check(DkStreamWrite(second, 0, 1, "y", NULL) == 1 && DkStreamRead(accepted, 0, 1, buf, NULL, 0) == 1, "and not the other");
    check(failed_with(DkStreamWaitForClient(client), PAL_ERROR_NOTSERVER), "no server");
    DkStreamDelete(server, 0);
    check(failed_with(DkStreamOpen("pipe:7", PAL_ACCESS_RDWR, 0, 0, 0), PAL_ERROR_STREAMNOTEXIST), "its name is gone");
}

int main(void)
{
    files();
    directories();
    pipes();
    PAL_STREAM_ATTR attr;
    PAL_HANDLE null = DkStreamOpen("dev:/dev/null", PAL_ACCESS_RDWR, 0, 0, 0);
    check(null && PAL_GET_TYPE(null) == pal_type_dev && DkStreamWrite(null, 0, 3, "abc", NULL) == 3, "a device");
    check(failed_with(DkStreamOpen("dev:/dev/../etc/passwd", 0, 0, 0, 0), PAL_ERROR_INVAL), "no device");
    check(DkStreamAttributesQuery("dev:tty", &attr) && attr.handle_type == pal_type_dev, "the console");
    check(failed_with(DkStreamAttributesQuery("pipe:1", &attr), PAL_ERROR_NOTSUPPORT), "attributes of a name that is none");
    pal_printf("%d failures\n", failures);
    return failures != 0;
}
