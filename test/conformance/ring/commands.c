/* Commands of sockets (IORING_OP_URING_CMD), and the error for what is to be installed without being registered. */
/* host: io_uring */
/* not: musl */
/* linux: 6.8 */
#include "ring.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <linux/filter.h>
enum { COMMAND = 46, INSTALL = 54, INQ = 0, OUTQ, GET, SET };
static struct ring r;
static int command(const char *what, int fd, uint64_t op, int level, int name, void *value, int len)
{
	struct io_uring_sqe *s = ring_sqe(&r, COMMAND, fd, 0, 0, op, 1);
	uint64_t v = (uintptr_t)value;
	s->addr = (uint32_t)level | (uint64_t)(uint32_t)name << 32;
	memcpy((char *)s + 44, &len, 4);
	memcpy((char *)s + 48, &v, 8);
	return ring_do(&r, what);
}
int main(void)
{
	int s[2], value = 1, p[2];
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	must(ring_open(&r, 8, 0, 0));
	int l = must(socket(AF_INET, SOCK_STREAM, 0));
	must(bind(l, (void *)&a, n)), must(listen(l, 1)), must(getsockname(l, (void *)&a, &n));
	s[0] = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect(s[0], (void *)&a, n));
	s[1] = must(accept(l, 0, 0));
	must(write(s[0], "hello", 5));
	t_ms(10);
	command("in", s[1], INQ, 0, 0, 0, 0);
	command("in, the other", s[0], INQ, 0, 0, 0, 0);
	command("in, listening", l, INQ, 0, 0, 0, 0);
	command("out, listening", l, OUTQ, 0, 0, 0, 0);
	command("out", s[1], OUTQ, 0, 0, 0, 0);
	command("set", s[0], SET, SOL_SOCKET, SO_KEEPALIVE, &value, 4);
	value = 0;
	command("get", s[0], GET, SOL_SOCKET, SO_KEEPALIVE, &value, 4);
	N(value);
	command("get a byte", s[0], GET, SOL_SOCKET, SO_KEEPALIVE, &value, 1);
	command("get with more room", s[0], GET, SOL_SOCKET, SO_TYPE, &value, 64);
	N(value);
	command("get of no room", s[0], GET, SOL_SOCKET, SO_TYPE, &value, -1);
	command("get of TCP", s[0], GET, IPPROTO_TCP, TCP_NODELAY, &value, 4);
	value = 1;
	command("set of TCP", s[0], SET, IPPROTO_TCP, TCP_NODELAY, &value, 4);
	n = sizeof value, value = 0;
	R(getsockopt(s[0], IPPROTO_TCP, TCP_NODELAY, &value, &n));
	N(value);
	command("set, too short", s[0], SET, SOL_SOCKET, SO_KEEPALIVE, &value, 2);
	command("set, negative", s[0], SET, SOL_SOCKET, SO_KEEPALIVE, &value, -4);
	command("set, no such", s[0], SET, SOL_SOCKET, 999, &value, 4);
	command("get, bad memory", s[0], GET, SOL_SOCKET, SO_TYPE, (void *)8, 4);
	command("set, bad memory", s[0], SET, SOL_SOCKET, SO_KEEPALIVE, (void *)8, 4);
	command("no such command", s[0], 99, 0, 0, 0, 0);
	command("a word too many", s[0], 1ull << 32, 0, 0, 0, 0);
	must(pipe(p));
	command("pipe", p[0], INQ, 0, 0, 0, 0);
	command("none", 999, INQ, 0, 0, 0, 0);
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
	command("unix", p[0], INQ, 0, 0, 0, 0);
	/* By a registered file. */
	R(r_register(r.fd, IORING_REGISTER_FILES, s, 2));
	struct io_uring_sqe *q = ring_sqe(&r, COMMAND, 1, 0, 0, INQ, 1);
	q->flags = IOSQE_FIXED_FILE;
	ring_do(&r, "registered");
	ring_one(&r, "install what is not registered", INSTALL, s[0], 0, 0, 0);
	ring_one(&r, "install nothing", INSTALL, 999, 0, 0, 0);
	q = ring_sqe(&r, INSTALL, 0, 0, 0, 0, 1);
	q->flags = IOSQE_FIXED_FILE;
	struct io_uring_cqe c;
	must(ring_submit(&r, 1));
	T(ring_take(&r, &c) && c.res >= 0);
	return t_done();
}
