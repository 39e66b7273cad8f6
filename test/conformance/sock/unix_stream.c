/* AF_UNIX stream sockets: names, listen and accept, end of file, shutdown, credentials, addresses. */
#include "t.h"
#include <sys/socket.h>
#include <sys/un.h>
static struct sockaddr_un at(const char *n)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	strcpy(a.sun_path, n);
	return a;
}
static void name(const char *w, int f, int peer)
{
	struct sockaddr_un a;
	memset(&a, 0, sizeof a);
	socklen_t n = sizeof a;
	int r = peer ? getpeername(f, (void *)&a, &n) : getsockname(f, (void *)&a, &n);
	if (r)
		say("%s: %s\n", w, t_errno(errno));
	else
		say("%s: family %d length %d <%s>\n", w, a.sun_family, n, n > 2 ? a.sun_path[0] ? a.sun_path : a.sun_path + 1 : "");
}
int main(void)
{
	char b[64];
	struct sockaddr_un a = at("s"), x = at("other");
	R(socket(AF_UNIX, 77, 0));
	R(socket(AF_UNIX, SOCK_STREAM, 5));
	R(socket(9999, SOCK_STREAM, 0));
	int l = must(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	T(fcntl(l, F_GETFD) == FD_CLOEXEC);
	R(listen(l, 5));
	R(accept(l, 0, 0));
	name("unbound", l, 0);
	name("unconnected", l, 1);
	R(connect(l, (void *)&a, sizeof a));
	R(bind(l, (void *)&a, 1));
	R(bind(l, (void *)&a, 200));
	R(bind(l, (void *)8, sizeof a));
	R(bind(l, (void *)&a, sizeof a));
	R(bind(l, (void *)&x, sizeof x));
	struct stat s;
	R(stat("s", &s));
	T(S_ISSOCK(s.st_mode));
	int c = must(socket(AF_UNIX, SOCK_STREAM, 0));
	R(bind(c, (void *)&a, sizeof a));
	R(connect(c, (void *)&a, sizeof a)); /* nobody listens yet */
	R(listen(l, 1));
	R(connect(c, (void *)&a, sizeof a));
	R(connect(c, (void *)&a, sizeof a));
	int d = must(accept4(l, 0, 0, SOCK_CLOEXEC));
	T(fcntl(d, F_GETFD) == FD_CLOEXEC);
	name("listener", l, 0);
	name("accepted", d, 0);
	name("accepted's peer", d, 1);
	name("client's peer", c, 1);
	struct ucred u;
	socklen_t n = sizeof u;
	R(getsockopt(d, SOL_SOCKET, SO_PEERCRED, &u, &n));
	T(u.pid == getpid() && u.uid == getuid() && u.gid == getgid());
	R(send(c, "hello", 5, 0));
	R(recv(d, b, 3, MSG_PEEK));
	R(recv(d, b, sizeof b, 0));
	R(recv(d, b, sizeof b, MSG_DONTWAIT));
	R(write(d, "answer", 6));
	R(read(c, b, 2));
	R(read(c, b, 10));
	R(shutdown(c, SHUT_WR));
	R(read(d, b, 1));
	R(write(d, "still", 5));
	R(read(c, b, 10));
	R(send(c, "x", 1, MSG_NOSIGNAL));
	R(shutdown(c, 9));
	R(shutdown(l, SHUT_RDWR));
	struct pollfd p = {d, POLLIN | POLLOUT | POLLRDHUP, 0};
	R(poll(&p, 1, 0));
	N(p.revents);
	close(c);
	R(poll(&p, 1, 0));
	N(p.revents);
	R(send(d, "x", 1, MSG_NOSIGNAL));
	R(read(d, b, 1));
	/* Unread data at the close: the other end is notified. */
	int q[2];
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, q));
	must(write(q[0], "unread", 6));
	close(q[1]);
	R(read(q[0], b, 1));
	R(read(q[0], b, 1));
	/* The name stays, the listener goes. */
	close(l);
	c = must(socket(AF_UNIX, SOCK_STREAM, 0));
	R(connect(c, (void *)&a, sizeof a));
	must(unlink("s"));
	R(connect(c, (void *)&a, sizeof a));
	/* Abstract names, and names the kernel picks. */
	l = must(socket(AF_UNIX, SOCK_STREAM, 0));
	memset(&a, 0, sizeof a), a.sun_family = AF_UNIX;
	n = 3 + snprintf(a.sun_path + 1, 60, "janua-%d", getpid());
	R(bind(l, (void *)&a, n));
	R(listen(l, 5));
	R(connect(c, (void *)&a, n));
	int e = must(socket(AF_UNIX, SOCK_STREAM, 0));
	R(bind(e, (void *)&a, n));
	close(l);
	R(bind(e, (void *)&a, n));
	l = must(socket(AF_UNIX, SOCK_STREAM, 0));
	R(bind(l, (void *)&a, 2));
	n = sizeof a;
	must(getsockname(l, (void *)&a, &n));
	N(n);
	T(a.sun_path[0] == 0);
	int v;
	n = sizeof v;
	R(getsockopt(l, SOL_SOCKET, SO_TYPE, &v, &n));
	N(v);
	R(getsockopt(l, SOL_SOCKET, SO_DOMAIN, &v, &n));
	N(v);
	R(getsockopt(l, SOL_SOCKET, SO_ACCEPTCONN, &v, &n));
	N(v);
	R(getsockopt(l, SOL_SOCKET, SO_ERROR, &v, &n));
	R(getsockopt(l, SOL_SOCKET, 9999, &v, &n));
	R(getsockopt(0, SOL_SOCKET, SO_TYPE, &v, &n));
	return t_done();
}
