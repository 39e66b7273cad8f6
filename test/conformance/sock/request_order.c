/* What is looked at first: the place of a request about an interface before the right to make it; levels that a socket does not have. */
#include "t.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <net/if.h>
#include <grp.h>

static void levels(const char *what, int fd)
{
	int value;
	socklen_t size;
	say("%s\n", what);
#define GET(level, name) (size = sizeof value, getsockopt(fd, level, name, &value, &size))
	R(GET(IPPROTO_TCP, 999));
	R(GET(IPPROTO_UDP, 999));
	R(GET(IPPROTO_IP, 999));
	R(GET(IPPROTO_IPV6, IPV6_V6ONLY));
	R(GET(77, 1));
	R(setsockopt(fd, IPPROTO_IPV6, 999, &value, sizeof value));
}

int main(void)
{
	int datagram = must(socket(AF_INET, SOCK_DGRAM, 0)), stream = must(socket(AF_INET, SOCK_STREAM, 0));
	levels("UDP", datagram);
	levels("TCP", stream);
	if (getuid() == 0) {
		must(setgroups(0, 0));
		must(setgid(65534));
		must(setuid(65534));
	}
	struct ifreq request = { 0 };
	strcpy(request.ifr_name, "lo");
	R(ioctl(datagram, SIOCSIFFLAGS, (void *)8));
	R(ioctl(datagram, SIOCSIFADDR, (void *)8));
	R(ioctl(datagram, SIOCSIFMTU, (void *)8));
	R(ioctl(datagram, SIOCGIFFLAGS, (void *)8));
	R(ioctl(datagram, SIOCSIFFLAGS, &request));
	R(ioctl(datagram, SIOCSIFMTU, &request));
	/* The list of another's thread. */
	void *head;
	size_t size;
	R(syscall(SYS_get_robust_list, 1, &head, &size));
	R(syscall(SYS_get_robust_list, 4194303, &head, &size));
	R(syscall(SYS_get_robust_list, -1, &head, &size));
	return 0;
}
