/* Rules: those the program begins with, and further ones it goes under. */
#include "check.h"

static bool put(const char *uri, const char *text)
{
    PAL_HANDLE f = DkStreamOpen(uri, PAL_ACCESS_WRONLY, 0644, PAL_CREAT_TRY, 0);
    bool written = f && DkStreamWrite(f, 0, length(text), text, NULL) == length(text);
    if (f)
        DkObjectClose(f);
    return written;
}

int main(void)
{
    char buf[32];
    check(pal_control.manifest_handle && DkStreamRead(pal_control.manifest_handle, 0, 9, buf, NULL, 0) == 9 && same(buf, "# sandbox", 9),
          "the manifest");
    check(put("file:open/a", "a"), "a file in the mount");
    check(failed_with(DkStreamOpen("file:/etc/passwd", 0, 0, 0, 0), PAL_ERROR_DENIED), "one outside");
    check(failed_with(DkStreamOpen("file:open/../../etc/passwd", 0, 0, 0, 0), PAL_ERROR_DENIED), "one outside by dots");
    check(failed_with(DkStreamOpen("file:opened", 0, 0, 0, 0), PAL_ERROR_DENIED), "one whose name begins alike");
    check(!DkStreamOpen("file:open/link/passwd", 0, 0, 0, 0), "one behind a link");
    PAL_STREAM_ATTR attr;
    check(failed_with(DkStreamAttributesQuery("file:/etc", &attr), PAL_ERROR_DENIED), "attributes outside");
    PAL_HANDLE a = DkStreamOpen("file:open/a", PAL_ACCESS_RDWR, 0, 0, 0);
    check(failed_with(DkStreamChangeName(a, "file:/tmp/a"), PAL_ERROR_DENIED), "a name outside");
    PAL_HANDLE listening = DkStreamOpen("tcp.srv:127.0.0.1:8000", PAL_ACCESS_RDWR, 0, 0, 0);
    check(listening != NULL, "an address of the rules");
    DkObjectClose(listening);
    check(failed_with(DkStreamOpen("tcp.srv:127.0.0.1:8001", PAL_ACCESS_RDWR, 0, 0, 0), PAL_ERROR_DENIED), "one that is not");
    check(failed_with(DkStreamOpen("tcp:10.1.2.3:80", PAL_ACCESS_RDWR, 0, 0, 0), PAL_ERROR_DENIED), "a peer that is not");

    check(put("file:open/moved", "fs.mount.root.type = chroot\nfs.mount.root.uri = file:open\n"
              "net.rules.1 = 0.0.0.0:0:0.0.0.0:0\nnet.port.rebase_on_lo = 1000\n"), "rules that move ports");
    check(DkProcessSandboxCreate("file:open/moved", 0), "under them");
    check(failed_with(DkStreamOpen("tcp.srv:127.0.0.1:8000", PAL_ACCESS_RDWR, 0, 0, 0), PAL_ERROR_DENIED), "moved out of the first rules");
    check(failed_with(DkStreamOpen("tcp.srv:127.0.0.1:65000", PAL_ACCESS_RDWR, 0, 0, 0), PAL_ERROR_DENIED), "beyond the last port");
    listening = DkStreamOpen("tcp.srv:127.0.0.1:7000", PAL_ACCESS_RDWR, 0, 0, 0);
    check(listening && DkStreamGetName(listening, buf, 32) == 22 && same(buf, "tcp.srv:127.0.0.1:7000", 22), "moved into them");
    DkObjectClose(listening);

    check(put("file:open/narrow", "fs.mount.root.type = chroot\nfs.mount.root.uri = file:open/deep\n"), "further rules");
    check(put("file:open/wrong", "fs.mount.root.kind = chroot\n"), "and wrong ones");
    PAL_HANDLE deep = DkStreamOpen("dir:open/deep", 0, 0755, PAL_CREAT_TRY, 0);
    check(deep != NULL, "a place for them");
    PAL_HANDLE server = DkStreamOpen("pipe.srv:5", PAL_ACCESS_RDWR, 0, 0, 0);
    check(failed_with(DkProcessSandboxCreate("file:open/wrong", 0), PAL_ERROR_INVAL), "wrong rules");
    check(failed_with(DkProcessSandboxCreate("file:open/none", 0), PAL_ERROR_STREAMNOTEXIST), "none");
    check(failed_with(DkProcessSandboxCreate("file:/etc/passwd", 0), PAL_ERROR_DENIED), "rules from outside");
    check(failed_with(DkProcessSandboxCreate("file:open/narrow", 64), PAL_ERROR_INVAL), "flags there are not");
    check(DkStreamOpen("pipe:5", PAL_ACCESS_RDWR, 0, 0, 0) != NULL, "a pipe's name before");
    check(DkProcessSandboxCreate("file:open/narrow", PAL_SANDBOX_PIPE), "under the further ones");
    check(put("file:open/deep/b", "b"), "what both allow");
    check(failed_with(DkStreamOpen("file:open/a", 0, 0, 0, 0), PAL_ERROR_DENIED), "what one allows");
    check(DkStreamRead(a, 0, 1, buf, NULL, 0) == 1, "what was open stays so");
    check(failed_with(DkStreamOpen("tcp.srv:127.0.0.1:8000", 2, 0, 0, 0), PAL_ERROR_DENIED), "no address");
    check(failed_with(DkStreamOpen("pipe:5", PAL_ACCESS_RDWR, 0, 0, 0), PAL_ERROR_STREAMNOTEXIST), "no name of the old group's pipes");
    DkObjectClose(server);
    pal_printf("%d failures\n", failures);
    return failures != 0;
}
