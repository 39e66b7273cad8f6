/* Messages that meet memory which is not there: sent whole or not at all, received whole or lost. */
#include "../t.h"
#include <netinet/in.h>
#include <sys/socket.h>

static char *page; /* the last 96 bytes of it before memory that is not there: page + 4000 */

static void send_and_receive(const char *name, int to, int from)
{
	struct iovec part = {page + 4000, 200}, whole = {page, 200};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	say("%s\n", name);
	R(send(to, page + 4000, 200, 0));
	R(write(to, page + 4000, 200));
	R(sendmsg(to, &message, 0));
	R(recv(from, page, 4096, MSG_DONTWAIT));
	message.msg_iov = &whole;
	R(sendmsg(to, &message, 0));
	message.msg_iov = &part;
	R(recvmsg(from, &message, MSG_DONTWAIT));
	R(recv(from, page, 4096, MSG_DONTWAIT));
	R(send(to, page, 200, 0));
	R(recv(from, page + 4000, 96, 0));
	R(recv(from, page, 4096, MSG_DONTWAIT));
}

int main(void)
{
	page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(munmap(page + 4096, 4096));
	memset(page, 'x', 4096);
	int pair[2];
	must(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	send_and_receive("datagrams", pair[0], pair[1]);
	must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	send_and_receive("packets", pair[0], pair[1]);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof at;
	int s = must(socket(AF_INET, SOCK_DGRAM, 0));
	must(bind(s, (void *)&at, sizeof at));
	must(getsockname(s, (void *)&at, &len));
	must(connect(s, (void *)&at, sizeof at));
	send_and_receive("UDP", s, s);
	return t_failed;
}
