/* Sockets of the host (--net host): what is sent arrives, each byte once and in order, however little the host takes at a time;
 * and nothing of the kernel's own memory goes out. Every line is as natively, but for those of "refused", which are run on Janua only. */
#include "../conformance/t.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define TOTAL (1 << 19)

static unsigned char pattern[TOTAL], got[TOTAL + 1];
static int server, client;

/* A connection whose sender has little room. */
static void connection(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof at;
	int room = 262144, less = 16384, listener = must(socket(AF_INET, SOCK_STREAM, 0));
	must(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &room, sizeof room));
	must(bind(listener, (void *)&at, sizeof at));
	must(listen(listener, 1));
	must(getsockname(listener, (void *)&at, &len));
	client = must(socket(AF_INET, SOCK_STREAM, 0));
	must(setsockopt(client, SOL_SOCKET, SO_SNDBUF, &less, sizeof less));
	must(connect(client, (void *)&at, sizeof at));
	server = must(accept(listener, 0, 0));
	must(close(listener));
}

static void *reads(void *unused)
{
	long n = 0, k;
	while (n <= TOTAL && (k = read(server, got + n, TOTAL + 1 - n > 20000 ? 20000 : TOTAL + 1 - n)) > 0)
		n += k;
	return (void *)n;
}

static long by_send(long n)
{
	return send(client, pattern + n, TOTAL - n, 0);
}

static long by_write(long n)
{
	return write(client, pattern + n, TOTAL - n);
}

static long by_writev(long n)
{
	/* Ranges of odd lengths, an empty one among them. */
	struct iovec list[8];
	for (int i = 0; i < 8; i++) {
		long len = i == 3 ? 0 : 5001 + i * 3333;
		if (len > TOTAL - n)
			len = TOTAL - n;
		list[i] = (struct iovec){pattern + n, len};
		n += len;
	}
	return writev(client, list, 8);
}

static void moves(const char *name, long (*some)(long), int nonblocking)
{
	pthread_t thread;
	connection();
	if (nonblocking)
		must(fcntl(client, F_SETFL, O_NONBLOCK));
	memset(got, 0, sizeof got);
	pthread_create(&thread, 0, reads, 0);
	long n = 0;
	while (n < TOTAL) {
		long k = some(n);
		if (k < 0 && errno == EAGAIN) {
			struct pollfd ready = {client, POLLOUT, 0};
			poll(&ready, 1, -1);
			continue;
		}
		if (k <= 0)
			break;
		n += k;
	}
	must(close(client));
	void *count;
	pthread_join(thread, &count);
	say("%s%s: %d sent, %d received, %s\n", name, nonblocking ? " without waiting" : "", (int)n, (int)(long)count, memcmp(pattern, got, TOTAL) ? "other bytes" : "the same bytes");
	must(close(server));
}

/* What there is no room for in the reader's memory stays to be read. */
static void torn(const char *name, int ranges)
{
	struct pollfd ready;
	char *at = mmap(0, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(mprotect(at + 4096, 4096, PROT_NONE));
	connection();
	ready = (struct pollfd){server, POLLIN, 0};
	must(send(client, pattern, 5000, 0));
	must(poll(&ready, 1, -1));
	long n = 0, k;
	struct iovec list[] = {{at + 4096 - 1000, 600}, {at + 4096 - 400, 3000}};
	errno = 0;
	k = ranges ? readv(server, list, 2) : recv(server, at + 4096 - 1000, 3000, 0);
	say("%s: %d", name, (int)k);
	n = k > 0 ? k : 0;
	int same = !memcmp(at + 4096 - 1000, pattern, n);
	errno = 0;
	k = recv(server, at + 4096, 100, 0);
	say(" %d %s", (int)k, t_errno(errno));
	must(close(client));
	memset(got, 0, 6000);
	long rest = 0;
	while ((k = read(server, got + rest, 6000 - rest)) > 0)
		rest += k;
	say(" %d %s\n", (int)rest, same && !memcmp(got, pattern + n, 5000 - n) ? "in order" : "other bytes");
	errno = 0;
	k = recv(server, at + 4096, 100, 0);
	say("%s: at the end %d\n", name, (int)k);
	must(close(server));
	must(munmap(at, 3 * 4096));
}

/* A send that asks the host to take pages instead of a copy: only what was sent may arrive, whatever happens meanwhile. */
static void zerocopy(void)
{
	connection();
	int one = 1, big = 4 << 20;
	setsockopt(client, SOL_SOCKET, 60 /* SO_ZEROCOPY */, &one, sizeof one);
	setsockopt(client, SOL_SOCKET, SO_SNDBUF, &big, sizeof big);
	must(fcntl(client, F_SETFL, O_NONBLOCK));
	static char piece[65536], in[65536];
	memset(piece, 'A', sizeof piece);
	long sent = 0, n;
	while ((n = send(client, piece, sizeof piece, 0x4000000 /* MSG_ZEROCOPY */ | MSG_DONTWAIT)) > 0)
		sent += n;
	T(sent > 0);
	/* Work for the kernel, in buffers of such sizes, with other bytes. */
	static char other[60000];
	memset(other, 'B', sizeof other);
	int pair[2];
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	for (int i = 0; i < 64; i++) {
		char name[32];
		snprintf(name, sizeof name, "other%d", i);
		int file = must(open(name, O_CREAT | O_RDWR, 0600));
		must(write(file, other, sizeof other));
		must(close(file));
		send(pair[0], other, sizeof other, MSG_DONTWAIT);
	}
	long wrong = 0;
	for (long all = 0; all < sent; all += n) {
		n = must(recv(server, in, sizeof in, 0));
		for (long i = 0; i < n; i++)
			wrong += in[i] != 'A';
	}
	N(wrong);
	for (int i = 0; i < 64; i++) {
		char name[32];
		snprintf(name, sizeof name, "other%d", i);
		unlink(name);
	}
	must(close(client));
	must(close(server));
}

static void records(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof at;
	char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(munmap(page + 4096, 4096));
	int s = must(socket(AF_INET, SOCK_DGRAM, 0));
	must(bind(s, (void *)&at, sizeof at));
	must(getsockname(s, (void *)&at, &len));
	must(connect(s, (void *)&at, sizeof at));
	R(send(s, page + 4000, 200, 0));
	R(recv(s, page, 4096, MSG_DONTWAIT));
	R(send(s, page, 200, 0));
	R(recv(s, page + 4000, 200, 0));
	R(recv(s, page, 4096, MSG_DONTWAIT));
	must(close(s));
}

/* What a user without privileges may not have done, whatever the one may who runs the sandbox. */
static void rights(void)
{
	if (geteuid())
		return;
	fflush(0);
	pid_t pid = fork();
	if (pid) {
		t_reap("of a user", pid);
		return;
	}
	must(setgid(1000));
	must(setuid(1000));
	int one = 1, mark = 77, high = 6, stream = must(socket(AF_INET, SOCK_STREAM, 0)), dgram = must(socket(AF_INET, SOCK_DGRAM, 0));
	int six = socket(AF_INET6, SOCK_DGRAM, 0);
	char eight[8] = {0, 0, 1, 4};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(81), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	R(bind(stream, (void *)&at, sizeof at));
	R(setsockopt(dgram, SOL_SOCKET, SO_MARK, &mark, sizeof mark));
	R(setsockopt(dgram, SOL_SOCKET, SO_PRIORITY, &mark, sizeof mark));
	R(setsockopt(dgram, SOL_SOCKET, SO_PRIORITY, &high, sizeof high));
	R(setsockopt(dgram, SOL_SOCKET, SO_DEBUG, &one, sizeof one));
	R(setsockopt(dgram, SOL_SOCKET, SO_RCVBUFFORCE, &one, sizeof one));
	R(setsockopt(dgram, SOL_IP, 19 /* IP_TRANSPARENT */, &one, sizeof one));
	if (six >= 0) {
		R(setsockopt(six, SOL_IPV6, 75 /* IPV6_TRANSPARENT */, &one, sizeof one));
		R(setsockopt(six, SOL_IPV6, 54 /* IPV6_HOPOPTS */, eight, sizeof eight));
	}
	R(setsockopt(stream, SOL_TCP, 13 /* TCP_CONGESTION */, "reno", 4));
	R(setsockopt(dgram, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3));
	R(setsockopt(dgram, SOL_SOCKET, SO_BINDTODEVICE, "", 0));
	R(socket(AF_INET, SOCK_RAW, 1));
	_exit(t_failed);
}

static void refused(void)
{
	static const struct { int level, name; } options[] = {
		{SOL_SOCKET, 50 /* SO_ATTACH_BPF */}, {SOL_SOCKET, 51}, {SOL_SOCKET, 52}, {SOL_SOCKET, 60 /* SO_ZEROCOPY */},
		{SOL_SOCKET, 76 /* SO_PASSPIDFD */}, {SOL_SOCKET, 77 /* SO_PEERPIDFD */}, {SOL_SOCKET, 78}, {SOL_SOCKET, 80 /* SO_DEVMEM_DONTNEED */},
		{IPPROTO_TCP, 31 /* TCP_ULP */}, {IPPROTO_TCP, 35 /* TCP_ZEROCOPY_RECEIVE */}, {IPPROTO_IP, 64 /* IPT_SO_SET_REPLACE */}, {IPPROTO_IPV6, 64},
	};
	char value[128] = {1};
	connection();
	for (unsigned i = 0; i < sizeof options / sizeof *options; i++) {
		socklen_t len = sizeof value;
		int set = setsockopt(client, options[i].level, options[i].name, value, sizeof value) < 0 ? errno : 0;
		int get = getsockopt(client, options[i].level, options[i].name, value, &len) < 0 ? errno : 0;
		say("%d %d: set %s, get %s\n", options[i].level, options[i].name, t_errno(set), t_errno(get));
	}
}

int main(int argc, char **argv)
{
	for (int i = 0; i < TOTAL; i++)
		pattern[i] = (i * 2654435761u) >> 24;
	if (argc > 1 && !strcmp(argv[1], "refused")) {
		refused();
		return t_failed;
	}
	for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
		moves("send", by_send, nonblocking);
		moves("write", by_write, nonblocking);
		moves("writev", by_writev, nonblocking);
	}
	rights();
	torn("one range", 0);
	torn("two ranges", 1);
	zerocopy();
	records();
	return t_failed;
}
