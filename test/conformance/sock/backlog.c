/* A listener's backlog that is full: who waits there goes on as soon as there is room, however many gave up before it. */
#include "../t.h"
#include <netinet/in.h>
#include <sys/socket.h>

static struct sockaddr_in at;

static int waits(void)
{
	int s = must(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
	T(connect(s, (void *)&at, sizeof at) < 0 && errno == EINPROGRESS);
	return s;
}

static int ready(int fd, int events)
{
	struct pollfd p = {fd, events, 0};
	return poll(&p, 1, 20000) == 1 && p.revents & events;
}

int main(void)
{
	socklen_t len = sizeof at;
	struct sockaddr none = {.sa_family = AF_UNSPEC};
	at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = must(socket(AF_INET, SOCK_STREAM, 0)), first = must(socket(AF_INET, SOCK_STREAM, 0));
	must(bind(listener, (void *)&at, sizeof at));
	must(getsockname(listener, (void *)&at, &len));
	must(listen(listener, 0));
	R(connect(first, (void *)&at, sizeof at));

	/* Three that give up, each in its way, then one that does not. */
	must(close(waits()));
	int again = waits();
	R(connect(again, &none, sizeof none));
	must(close(waits()));
	int last = waits();
	int served = must(accept(listener, 0, 0));
	T(ready(listener, POLLIN));
	T(ready(last, POLLOUT));
	int error = -1;
	len = sizeof error;
	R(getsockopt(last, SOL_SOCKET, SO_ERROR, &error, &len));
	N(error);
	int other = must(accept(listener, 0, 0));
	R(write(last, "last", 4));
	char text[8] = {0};
	R(read(other, text, sizeof text));
	S(text);
	must(close(served));
	must(close(other));
	must(close(last));

	/* The socket that gave up connects to a listener with room. */
	must(fcntl(again, F_SETFL, 0));
	R(connect(again, (void *)&at, sizeof at));

	/* A backlog that grows lets those in who wait. */
	int more = waits();
	R(listen(listener, 5));
	T(ready(more, POLLOUT));
	must(close(more));
	return t_failed;
}
