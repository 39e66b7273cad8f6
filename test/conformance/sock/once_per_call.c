/* A time limit is one of a call, however many parts it moves; and a connection looks for its name first. */
#include "t.h"
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

static void connected(int pair[2]) {
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof a;
	int l = must(socket(AF_INET, SOCK_STREAM, 0));
	must(bind(l, (void *)&a, sizeof a));
	must(getsockname(l, (void *)&a, &len));
	must(listen(l, 5));
	pair[0] = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect(pair[0], (void *)&a, sizeof a));
	pair[1] = must(accept(l, NULL, NULL));
	close(l);
}

/* Five bytes come 400 ms apart: who waits 600 ms in all does not get them all. */
static void receiving(void) {
	int pair[2];
	char data[5];
	struct timeval limit = {0, 600000};
	connected(pair);
	must(setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
	pid_t child = must(fork());
	if (!child) {
		for (int i = 0; i < 5; i++) {
			t_ms(400);
			send(pair[0], "x", 1, MSG_NOSIGNAL);
		}
		_exit(0);
	}
	T(recv(pair[1], data, 5, MSG_WAITALL) < 5);
	t_reap("sender", child);
}

/* A reader takes a part every 400 ms: who may wait 600 ms in all does not get rid of 16 MiB. */
static void sending(int how) {
	static char data[16 << 20];
	int pair[2];
	struct timeval limit = {0, 600000};
	connected(pair);
	must(setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit));
	pid_t child = must(fork());
	if (!child) {
		static char part[1 << 20];
		close(pair[0]);
		for (long n = 1; n > 0;) {
			t_ms(400);
			n = recv(pair[1], part, sizeof part, MSG_WAITALL);
		}
		_exit(0);
	}
	long n = how ? write(pair[0], data, sizeof data) : send(pair[0], data, sizeof data, 0);
	T(n > 0 && n < (long)sizeof data);
	close(pair[0]);
	close(pair[1]);
	t_reap("reader", child);
}

int main(void) {
	receiving();
	sending(0);
	sending(1);

	int pair[2];
	struct sockaddr_un nowhere = {.sun_family = AF_UNIX, .sun_path = "not_there"};
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	R(connect(pair[0], (void *)&nowhere, sizeof nowhere));
	return t_failed;
}
