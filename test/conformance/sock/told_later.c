/* What a call cannot report is not lost: the end of a connection behind the bytes of MSG_WAITALL, descriptors there is no room for
 * the numbers of, what UDP_CORK has kept back. */
#include "../t.h"
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

static void reset_behind_bytes(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof at;
	int listener = must(socket(AF_INET, SOCK_STREAM, 0)), client = must(socket(AF_INET, SOCK_STREAM, 0));
	must(bind(listener, (void *)&at, sizeof at));
	must(getsockname(listener, (void *)&at, &len));
	must(listen(listener, 5));
	must(connect(client, (void *)&at, sizeof at));
	int server = must(accept(listener, 0, 0));
	must(write(client, "0123456789", 10));
	pid_t reader = getpid(), child = must(fork());
	if (!child) {
		/* Once the reader has the bytes and waits for more. */
		int left = 1;
		while (!ioctl(server, FIONREAD, &left) && left)
			usleep(1000);
		t_asleep(reader, reader);
		struct linger now = {1, 0};
		must(setsockopt(client, SOL_SOCKET, SO_LINGER, &now, sizeof now));
		_exit(0);
	}
	must(close(client));
	char text[100];
	R(recv(server, text, sizeof text, MSG_WAITALL));
	R(recv(server, text, sizeof text, 0));
	R(recv(server, text, sizeof text, 0));
	must(waitpid(child, 0, 0));
}

static void descriptors(void)
{
	int pair[2], zero = 0;
	char control[CMSG_SPACE(sizeof zero)] = {0}, text[8];
	char *none = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec bytes = {text, 5};
	struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	must(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof zero);
	memcpy(CMSG_DATA(head), &zero, sizeof zero);
	memset(text, 'x', sizeof text);
	must(sendmsg(pair[0], &message, 0));
	int next = must(dup(0));
	must(close(next));
	message.msg_control = none;
	message.msg_controllen = 64;
	R(recvmsg(pair[1], &message, 0));
	T(message.msg_flags == MSG_CTRUNC);
	N((int)message.msg_controllen);
	int now = must(dup(0));
	T(now == next);
	must(close(now));
}

static void corked(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, other = at;
	socklen_t len = sizeof at;
	int receiver = must(socket(AF_INET, SOCK_DGRAM, 0)), third = must(socket(AF_INET, SOCK_DGRAM, 0)), s = must(socket(AF_INET, SOCK_DGRAM, 0));
	int on = 1, off = 0;
	char text[16] = {0};
	must(bind(receiver, (void *)&at, sizeof at));
	must(getsockname(receiver, (void *)&at, &len));
	must(bind(third, (void *)&other, sizeof other));
	must(getsockname(third, (void *)&other, &len));
	R(setsockopt(s, IPPROTO_UDP, UDP_CORK, &on, sizeof on));
	R(sendto(s, "ab", 2, 0, (void *)&at, sizeof at));
	R(sendto(s, "cd", 2, 0, (void *)&at, sizeof at));
	R(recv(receiver, text, sizeof text, MSG_DONTWAIT));
	R(setsockopt(s, IPPROTO_UDP, UDP_CORK, &off, sizeof off));
	R(recv(receiver, text, sizeof text, MSG_DONTWAIT));
	S(text);
	R(setsockopt(s, IPPROTO_UDP, UDP_CORK, &off, sizeof off));
	R(recv(receiver, text, sizeof text, MSG_DONTWAIT));
	/* Where the first bytes were to go decides. */
	R(sendto(s, "ef", 2, MSG_MORE, (void *)&at, sizeof at));
	R(sendto(s, "gh", 2, 0, (void *)&other, sizeof other));
	R(recv(third, text, sizeof text, MSG_DONTWAIT));
	R(recv(receiver, text, sizeof text, MSG_DONTWAIT));
	S(text);
}

int main(void)
{
	reset_behind_bytes();
	descriptors();
	corked();
	return t_failed;
}
