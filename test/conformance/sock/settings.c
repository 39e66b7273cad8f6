/* Settings of the network that can be written, and what they change. Natively in a network of its own, so that nobody else notices; without the right to
 * that only their text is looked at. What changes is put back. */
#include "t.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
static char b[256];
static char *get(const char *path)
{
	int f = open(path, O_RDONLY), n = f < 0 ? -1 : read(f, b, sizeof b - 1);
	if (f >= 0)
		close(f);
	b[n > 0 ? n : 0] = 0;
	return strdup(b);
}
static int set(const char *path, const char *text)
{
	int f = open(path, O_WRONLY);
	if (f < 0)
		return -1;
	int n = write(f, text, strlen(text)), e = errno;
	close(f);
	errno = e;
	return n;
}
#define WAITING "/proc/sys/net/core/somaxconn"
#define PORTS "/proc/sys/net/ipv4/ip_local_port_range"
#define FREE "/proc/sys/net/ipv4/ip_unprivileged_port_start"
#define FOREIGN "/proc/sys/net/ipv4/ip_nonlocal_bind"
/* How many connect at once to a listener that would like to have many wait, and nobody takes any. */
static int room(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "\0settings"};
	int l = must(socket(AF_UNIX, SOCK_STREAM, 0)), n = 0;
	must(bind(l, (void *)&a, 12));
	must(listen(l, 100));
	for (; n < 50; n++) {
		int s = must(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
		if (connect(s, (void *)&a, 12))
			break;
	}
	for (int f = l; f < l + n + 2; f++)
		close(f);
	return n;
}
static int port(int want, const char *where)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(want)};
	inet_pton(AF_INET, where, &a.sin_addr);
	socklen_t n = sizeof a;
	int s = must(socket(AF_INET, SOCK_DGRAM, 0)), r = bind(s, (void *)&a, sizeof a), e = errno;
	if (!r)
		must(getsockname(s, (void *)&a, &n));
	close(s);
	errno = e;
	return r ? -1 : ntohs(a.sin_port);
}
/* Like T, but silent when it holds: what may not be tried everywhere prints nothing. */
#define Q(c) do if (!(c)) t_true(#c, 0); while (0)
static void as_somebody(int first)
{
	pid_t p = must(fork());
	if (!p) {
		must(setresuid(1000, 1000, 1000));
		Q(port(first + 1, "127.0.0.1") == first + 1);
		Q(port(first - 1, "127.0.0.1") == -1 && errno == EACCES);
		Q(set(FREE, "1") == -1 && errno == EACCES);
		_exit(t_failed);
	}
	int st;
	Q(waitpid(p, &st, 0) == p && st == 0);
}
int main(void)
{
	char *waiting = get(WAITING), *ports = get(PORTS), *first = get(FREE), *foreign = get(FOREIGN);
	int from = 0, to = 0;
	T(atoi(waiting) > 0);
	T(sscanf(ports, "%d\t%d\n", &from, &to) == 2 && from > 0 && from <= to);
	T(atoi(first) >= 0 && atoi(first) <= from);
	T(!strcmp(foreign, "0\n") || !strcmp(foreign, "1\n"));
	if (unshare(CLONE_NEWNET) == 0) {
		struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
		must(ioctl(must(socket(AF_INET, SOCK_DGRAM, 0)), 0x8914 /* SIOCSIFFLAGS */, &lo));
		waiting = get(WAITING), ports = get(PORTS), first = get(FREE), foreign = get(FOREIGN);
	}
	if (set(WAITING, waiting) < 0 || set(PORTS, ports) < 0)
		return t_done();
	Q(set(WAITING, "7\n") == 2);
	Q(room() == 8);
	Q(set(WAITING, waiting) > 0);
	Q(room() == 50);
	Q(set(WAITING, "-1") == -1 && errno == EINVAL);
	Q(set(WAITING, "x") == -1 && errno == EINVAL);
	Q(!strcmp(get(WAITING), waiting));
	Q(set(PORTS, "40000 40009\n") > 0);
	for (int i = 0; i < 30; i++) {
		int p = port(0, "127.0.0.1");
		Q(p >= 40000 && p <= 40009);
	}
	Q(!strcmp(get(PORTS), "40000\t40009\n"));
	Q(set(PORTS, "40009 40000") == -1 && errno == EINVAL);
	Q(set(PORTS, ports) > 0);
	Q(!strcmp(get(PORTS), ports));
	Q(set(FREE, "99999") == -1 && errno == EINVAL);
	Q(set(FREE, "80") > 0);
	as_somebody(80);
	Q(set(FREE, "1024") > 0);
	as_somebody(1024);
	Q(set(FREE, first) > 0);
	Q(port(0, "198.51.100.7") == -1 && errno == EADDRNOTAVAIL);
	Q(set(FOREIGN, "1") > 0);
	Q(port(0, "198.51.100.7") > 0);
	Q(set(FOREIGN, foreign) > 0);
	return t_done();
}
