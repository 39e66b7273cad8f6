/* Options whose value is not what was set, and one that can only be read. */
#include "t.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#ifndef SO_BPF_EXTENSIONS
#define SO_BPF_EXTENSIONS 48
#endif

int main(void) {
	int s = must(socket(AF_INET, SOCK_STREAM, 0)), value;
	static const int seconds[] = {-5, 0, 1, 2, 3, 4, 7, 8, 50, 64, 127, 128, 247, 248, 10000, 29887, 29888, 2147483647};
	for (unsigned i = 0; i < sizeof seconds / sizeof *seconds; i++) {
		socklen_t len = sizeof value;
		must(setsockopt(s, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds[i], sizeof value));
		must(getsockopt(s, IPPROTO_TCP, TCP_DEFER_ACCEPT, &value, &len));
		say("%d: %d\n", seconds[i], value);
	}
	socklen_t len = sizeof value;
	R(getsockopt(s, SOL_SOCKET, SO_BPF_EXTENSIONS, &value, &len));
	N(value);
	R(setsockopt(s, SOL_SOCKET, SO_BPF_EXTENSIONS, &value, sizeof value));
	return 0;
}
