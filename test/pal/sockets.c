/* TCP and UDP on the loopback. */
#include "check.h"

static PAL_HANDLE server;

static void serve(void *param)
{
    (void)param;
    char buf[16];
    PAL_HANDLE client = DkStreamWaitForClient(server);
    PAL_NUM n = DkStreamRead(client, 0, 16, buf, NULL, 0);
    DkStreamWrite(client, 0, n, buf, NULL);
    DkObjectClose(client);
}

int main(void)
{
    char buf[64], from[64];
    PAL_STREAM_ATTR attr;
    server = DkStreamOpen("tcp.srv:127.0.0.1:8123", PAL_ACCESS_RDWR, 0, 0, 0);
    check(server && PAL_GET_TYPE(server) == pal_type_tcpsrv, "a server");
    check(DkStreamGetName(server, buf, 64) == 22 && same(buf, "tcp.srv:127.0.0.1:8123", 22), "its name");
    check(failed_with(DkStreamOpen("tcp.srv:127.0.0.1:8123", PAL_ACCESS_RDWR, 0, 0, 0), PAL_ERROR_STREAMEXIST), "one of an address");
    DkThreadCreate((PAL_PTR)serve, NULL, 0);
    PAL_HANDLE client = DkStreamOpen("tcp:127.0.0.1:8123", PAL_ACCESS_RDWR, 0, 0, 0);
    check(client && PAL_GET_TYPE(client) == pal_type_tcp, "a client");
    check(DkStreamWrite(client, 0, 5, "hello", NULL) == 5 && DkObjectsWaitAny(1, &client, NO_TIMEOUT) == client, "waited for");
    check(DkStreamAttributesQuerybyHandle(client, &attr) && attr.handle_type == pal_type_tcp && attr.size == 5 && attr.sendbuf > 0,
          "its attributes");
    check(DkStreamRead(client, 0, 64, buf, NULL, 0) == 5 && same(buf, "hello", 5), "has its answer");
    check(failed_with(DkStreamRead(client, 0, 64, buf, NULL, 0), PAL_ERROR_ENDOFSTREAM), "and the end");
    check(DkStreamFlush(client), "flushed");
    DkObjectClose(client);
    check(failed_with(DkStreamOpen("tcp:127.0.0.1:8124", PAL_ACCESS_RDWR, 0, 0, 0), PAL_ERROR_CONNFAILED), "nobody listens");
    check(failed_with(DkStreamOpen("tcp:192.0.2.1:80", PAL_ACCESS_RDWR, 0, 0, 0), PAL_ERROR_CONNFAILED), "no way to another machine");
    PAL_HANDLE bound = DkStreamOpen("tcp:127.0.0.1:9001:127.0.0.1:8123", PAL_ACCESS_RDWR, 0, 0, 0);
    PAL_HANDLE accepted = DkStreamWaitForClient(server);
    check(bound && accepted && DkStreamGetName(accepted, buf, 64) == 33 && same(buf, "tcp:127.0.0.1:8123:127.0.0.1:9001", 33),
          "from an address of one's own");
    PAL_HANDLE eager = DkStreamOpen("tcp.srv:[::1]:8125", PAL_ACCESS_RDWR, 0, 0, PAL_OPTION_NONBLOCK);
    check(eager && failed_with(DkStreamWaitForClient(eager), PAL_ERROR_TRYAGAIN), "nobody has come");

    PAL_HANDLE inbox = DkStreamOpen("udp.srv:127.0.0.1:7001", PAL_ACCESS_RDWR, 0, 0, 0);
    PAL_HANDLE sender = DkStreamOpen("udp:127.0.0.1:7002:127.0.0.1:7001", PAL_ACCESS_RDWR, 0, 0, 0);
    check(inbox && PAL_GET_TYPE(inbox) == pal_type_udpsrv && sender && PAL_GET_TYPE(sender) == pal_type_udp, "datagrams");
    check(DkStreamWrite(sender, 0, 4, "ping", NULL) == 4 && DkStreamRead(inbox, 0, 64, buf, from, 64) == 4 && same(buf, "ping", 4),
          "one arrives");
    check(same(from, "udp:127.0.0.1:7002", 19), "with its sender");
    check(DkStreamWrite(inbox, 0, 4, "pong", from) == 4 && DkStreamRead(sender, 0, 64, buf, NULL, 0) == 4 && same(buf, "pong", 4),
          "and has an answer");
    check(failed_with(DkStreamWrite(inbox, 0, 4, "pong", NULL), PAL_ERROR_NOTCONNECTION), "to nobody");
    check(failed_with(DkStreamWrite(inbox, 0, 4, "pong", "tcp:127.0.0.1:1"), PAL_ERROR_INVAL), "to no address of datagrams");
    DkStreamWrite(sender, 0, 4, "more", NULL);
    check(failed_with(DkStreamRead(inbox, 0, 64, buf, from, 4), PAL_ERROR_OVERFLOW), "no room for the sender");
    check(failed_with(DkStreamRead(inbox, 0, 64, buf, (PAL_PTR)0x5000, 64), PAL_ERROR_BADADDR), "a sender to nowhere");
    check(failed_with(DkStreamRead(inbox, 0, 64, (PAL_PTR)0x5000, NULL, 0), PAL_ERROR_BADADDR), "a datagram to nowhere");
    check(DkStreamRead(inbox, 0, 64, buf, from, 64) == 4 && same(buf, "more", 4), "and it is there still");
    check(failed_with(DkStreamOpen("tcp:127.0.0.1", 0, 0, 0, 0), PAL_ERROR_INVAL), "an address without a port");
    check(failed_with(DkStreamOpen("tcp.srv:9.9.9.9:80", 2, 0, 0, 0), PAL_ERROR_ADDRNOTEXIST), "an address that is not ours");
    pal_printf("%d failures\n", failures);
    return failures != 0;
}
