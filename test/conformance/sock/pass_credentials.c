/* Options of one family of sockets, asked of others. */
/* linux: 6.16 */
#include "t.h"
#include <netinet/in.h>
#include <sys/socket.h>
static void one(int domain, int kind, int name, const char *what)
{
	int s = must(socket(domain, kind, 0));
	for (int value = 0; value < 2; value++) {
		int got = -1;
		socklen_t len = sizeof got;
		say("%s, %d\n", what, value);
		R(setsockopt(s, SOL_SOCKET, name, &value, sizeof value));
		R(setsockopt(s, SOL_SOCKET, name, &value, 2));
		if (R(getsockopt(s, SOL_SOCKET, name, &got, &len)) == 0)
			N(got);
	}
	close(s);
}
int main(void)
{
	one(AF_INET, SOCK_STREAM, SO_PASSCRED, "credentials, TCP");
	one(AF_INET, SOCK_DGRAM, SO_PASSCRED, "credentials, UDP");
	one(AF_INET6, SOCK_STREAM, SO_PASSCRED, "credentials, TCP by IPv6");
	one(AF_UNIX, SOCK_STREAM, SO_PASSCRED, "credentials, stream");
	one(AF_UNIX, SOCK_DGRAM, SO_PASSCRED, "credentials, datagrams");
	one(AF_UNIX, SOCK_STREAM, SO_REUSEPORT, "port, stream");
	one(AF_INET, SOCK_STREAM, SO_REUSEPORT, "port, TCP");
	return t_done();
}
