/* The end of a connection that was given up does not reach the one that the socket has now. */
#include "../t.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

int main(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	socklen_t n = sizeof a;
	char b[8];
	int l = must(socket(AF_INET, SOCK_STREAM, 0));
	must(bind(l, (void *)&a, sizeof a));
	must(listen(l, 4));
	must(getsockname(l, (void *)&a, &n));
	for (int unread = 0; unread < 2; unread++) {
		int c = must(socket(AF_INET, SOCK_STREAM, 0));
		must(connect(c, (void *)&a, sizeof a));
		int first = must(accept(l, 0, 0));
		if (unread)
			must(send(c, "x", 1, 0));
		t_ms(20);
		must(connect(c, &none, sizeof none));
		must(connect(c, (void *)&a, sizeof a));
		int second = must(accept(l, 0, 0));
		close(first);
		t_ms(20);
		R(recv(c, b, sizeof b, MSG_DONTWAIT));
		R(send(second, "yes", 3, 0));
		R(recv(c, b, sizeof b, 0));
		R(send(c, "too", 3, 0));
		R(recv(second, b, sizeof b, 0));
		close(second);
		R(recv(c, b, sizeof b, 0));
		close(c);
	}
	return t_done();
}
